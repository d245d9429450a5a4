//! Where the bytes of a process and of all that it started are, looked at from outside once a second: in RAM as its own or as a
//! file's, or in swap.

use basics::decoding::Lay;
use basics::{Bytes, Nanos};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// Looks at a process and its children's children.
#[derive(Default)]
pub(super) struct Watch {
    begun: Option<Instant>,
    next: Option<Instant>,
    most: Bytes,
    pub seen: Vec<Lay>,
}

impl Watch {
    /// From now on it counts.
    pub fn begin(&mut self) {
        (self.begun, self.next) = (Some(Instant::now()), None);
    }

    /// Looks, when it is time to.
    pub fn look(&mut self, pid: u32) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + EVERY);
        let mut all = Lay { at: self.begun.map_or(Nanos(0), |begun| begun.elapsed().into()), ..Lay::default() };
        let of = |pid: u32| read(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?);
        for one in family(pid).into_iter().filter_map(of) {
            all.anonymous = all.anonymous + one.anonymous;
            all.file = all.file + one.file;
            all.swap = all.swap + one.swap;
        }
        self.most = self.most.max(all.anonymous + all.file + all.swap);
        if self.begun.is_some() && self.most.0 > 0 {
            self.seen.push(all);
        }
    }

    /// The most that there was in RAM and swap together.
    pub fn most(&self) -> Bytes {
        self.most
    }
}

/// Whether it runs: one that has ended and is not waited for yet does not.
pub(super) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| !status.contains("\nState:\tZ"))
}

/// Of a process and all that it started, the one with the most memory.
pub(super) fn largest(pid: u32) -> u32 {
    let held = |pid: &u32| {
        let lay = read(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?;
        Some(lay.anonymous + lay.file + lay.swap)
    };
    family(pid).into_iter().max_by_key(|pid| held(pid)).unwrap_or(pid)
}

/// A process and all that it and they have started.
fn family(first: u32) -> Vec<u32> {
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let parent = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()
    };
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut all = vec![first];
    let mut next = 0;
    while let Some(of) = all.get(next).copied() {
        all.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    all
}

/// What `/proc/PID/status` says (proc_pid_status(5); kernels keep these as counters, so that looking costs nothing, as going
/// through smaps would).
fn read(status: &str) -> Option<Lay> {
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(Bytes(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10))
    };
    Some(Lay { at: Nanos(0), anonymous: of("RssAnon:")?, file: of("RssFile:")?, swap: of("VmSwap:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_is_read() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let lay = read(&status).unwrap();
        assert!(lay.anonymous.0 > 0 && lay.file.0 > 0, "{lay:?}");
        let text = "VmSwap:\t    1024 kB\nRssAnon:\t      12 kB\nRssFile:\t       0 kB\n";
        let lay = read(text).unwrap();
        assert_eq!((lay.anonymous, lay.file, lay.swap), (Bytes(12288), Bytes(0), Bytes(1 << 20)));
        assert_eq!(read("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn children_count_and_the_dead_do_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(family(std::process::id()).contains(&child.id()));
        assert!(is_alive(child.id()));
        child.kill().unwrap();
        let begun = Instant::now();
        while is_alive(child.id()) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait().unwrap();
        let mut watch = Watch::default();
        watch.look(std::process::id());
        assert!(watch.seen.is_empty(), "nothing counts before it begins");
        watch.begin();
        watch.look(std::process::id());
        watch.look(std::process::id());
        assert_eq!(watch.seen.len(), 1);
        assert!(watch.most().0 > 1 << 20);
    }
}
