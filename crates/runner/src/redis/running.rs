//! A server that runs already and serves somebody: nothing of it is changed. Keys that are there are read; where writes are allowed
//! they go to keys of this run's own, which end by themselves after a while and are removed before.

use super::{Site, failed};
use crate::RunError;
use basics::Bytes;
use basics::redis::Server;
use engine::Names;
use redisd::{Address, Control, Info};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For its keys to be found.
const LOOK: Duration = Duration::from_secs(60);
/// What a server has for a key beside its value, about: an entry, an object, a name, a time to live (Redis 7, by MEMORY USAGE).
const OVERHEAD: u64 = 150;

/// It runs.
pub(super) struct Running {
    server: redisd::Running,
    pid: Option<u32>,
    /// Before the names of keys that are set.
    prefix: String,
    /// So many of them.
    keys: u64,
    /// Those that are read, where none is set.
    names: Option<Names>,
    mean: Bytes,
    /// Where its files lie, as far as that is told and on this machine.
    dir: PathBuf,
    notes: Vec<String>,
}

impl Running {
    /// Finds it, and its keys where they are to be read.
    pub fn attach(url: &str, writes: bool, server: &Server, site: Site<'_>) -> Result<(Self, Control), RunError> {
        let running = redisd::Running::at(url).map_err(failed)?;
        let mut control = running.control().map_err(failed)?;
        let info = control.info().map_err(failed)?;
        let pid = running.process(info.number("process_id"), Path::new("/proc"));
        let mut notes = vec![keeps(&mut control, &info)];
        if pid.is_none() {
            notes.push("its process is not seen from here: neither its CPU time nor what it waited for".to_owned());
        }
        let (mut names, mut mean) = (None, Bytes(0));
        if !writes {
            let begun = Instant::now();
            let most = usize::try_from(server.keys).unwrap_or(usize::MAX);
            let keys = running.string_keys(most, &|| begun.elapsed() > LOOK).map_err(failed)?;
            if keys.is_empty() {
                return Err(failed(format!(
                    "{} has no key that holds a string, so there is nothing to read; say --writes to set keys of tiermark's own there",
                    running.url()
                )));
            }
            mean = Bytes(keys.iter().map(|key| key.length).sum::<u64>() / keys.len() as u64);
            names = Some(Names::new(keys.iter().map(|key| key.name.as_slice())));
        }
        let dir = control.setting("dir").filter(|_| pid.is_some()).map(PathBuf::from).unwrap_or_default();
        let (prefix, keys) = (format!("tiermark:{}:", site.run), server.keys);
        Ok((Running { server: running, pid, prefix, keys, names, mean, dir, notes }, control))
    }

    /// Whether this run's keys may be set, with values that long.
    pub fn may_fill(&self, control: &mut Control, value: Bytes) -> Result<(), RunError> {
        let needs = self.keys.saturating_mul(value.0 + OVERHEAD);
        may_set(&control.info().map_err(failed)?, needs).map_err(failed)
    }

    pub fn address(&self) -> &Address {
        self.server.address()
    }

    pub fn greeting(&self) -> Vec<u8> {
        self.server.greeting()
    }

    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// What stands before keys that are set, and those that are read.
    pub fn keys(&self) -> (&str, Option<&Names>) {
        (&self.prefix, self.names.as_ref())
    }

    /// Length of the values that are read.
    pub fn mean(&self) -> Bytes {
        self.mean.max(Bytes(1))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Removes what was set.
    pub fn end(self) -> Vec<RunError> {
        if self.names.is_some() {
            return Vec::new();
        }
        let names = (0..self.keys).map(|key| format!("{}{}", self.prefix, engine::key_name(key)));
        self.server.remove(names).err().map(failed).into_iter().collect()
    }
}

/// What it keeps on its disk, by its own settings.
fn keeps(control: &mut Control, info: &Info) -> String {
    let log = info.number("aof_enabled").map(|on| match on {
        0 => "no log".to_owned(),
        _ => format!("a log, appendfsync {}", control.setting("appendfsync").as_deref().unwrap_or("unknown")),
    });
    let snapshots = control.setting("save").map(|save| match save.as_str() {
        "" => "no snapshots".to_owned(),
        save => format!("snapshots, save {save}"),
    });
    let both: Vec<String> = log.into_iter().chain(snapshots).collect();
    match both.as_slice() {
        [] => "it does not tell what it keeps".to_owned(),
        both => format!("it keeps {}", both.join(" and ")),
    }
}

/// Whether keys may be set: where they belong to it alone, and nobody else's must go for them.
fn may_set(info: &Info, needs: u64) -> Result<(), String> {
    if info.number("cluster_enabled") == Some(1) {
        return Err("it belongs to a cluster, whose keys are spread by their names; without --writes its own are read"
            .to_owned());
    }
    if info.get("role") == Some("slave") {
        return Err(
            "it is a replica, which takes no writes; give the URL of its primary, or leave --writes away".to_owned()
        );
    }
    let number = |key: &str| info.number(key).unwrap_or(0);
    let most = match number("maxmemory") {
        // A half of the machine: a fork may have to copy the rest.
        0 => number("total_system_memory") / 2,
        most => most,
    };
    let room = most.saturating_sub(number("used_memory"));
    if most > 0 && needs > room {
        return Err(format!(
            "the keys that would be set take some {}, and it has room for {}; take fewer --keys, or a smaller --payload",
            Bytes(needs),
            Bytes(room)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_elses_keys_go_for_ours() {
        let info = |text: &str| Info::parse(text);
        assert_eq!(may_set(&info("role:master\r\nmaxmemory:0\r\n"), 1 << 40), Ok(()), "nothing is known");
        let full = may_set(&info("maxmemory:1000\r\nused_memory:900\r\n"), 101).unwrap_err();
        assert!(full.contains("101 B") && full.contains("100 B"), "{full}");
        let replica = may_set(&info("role:slave\r\n"), 1).unwrap_err();
        assert!(replica.contains("primary"), "{replica}");
        assert!(may_set(&info("cluster_enabled:1\r\n"), 1).unwrap_err().contains("cluster"));
    }
}
