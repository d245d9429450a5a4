//! A control group with limits of memory: what runs in it feels a smaller machine. The group, and the memory controller
//! where it had to be given to the groups of a hierarchy, go when their owner is dropped, and at the next start after a
//! kill, together with all processes of ours inside. Which of the kernel's two interfaces there is (v1, v2, or both beside each
//! other) is hidden here. What somebody else put into the group goes on in the one above.

mod undo;

use crate::error::ChangeError;
use crate::guard::unescape;
use crate::journal::{Journal, Standing, random};
use crate::kind::Change;
use crate::value::write;
use basics::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use undo::lists;
pub(crate) use undo::{ControllerChange, GroupChange};

const CONTROLLER: &str = "memory";
/// In the environment of every process that is started for a group, and so of those that it starts: they end with the group. A
/// process without it was put there by somebody else, and goes to the group above instead.
pub const MARK: &str = "TIERMARK_GROUP";
/// What the names of all our groups begin with.
const PREFIX: &str = "tiermark-";

/// What a group may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory.
    pub memory: Bytes,
    /// Swap beyond it: 0 for none at all, None for as much as there is.
    pub swap: Option<Bytes>,
    /// How much the kernel prefers to swap rather than to drop files' pages, 0 to 200; v1 alone has it for a group.
    pub swappiness: Option<u8>,
}

/// Where groups with the memory controller are made.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// Root of the hierarchy.
    root: PathBuf,
    /// Control group v2.
    v2: bool,
    /// Root of a v2 hierarchy without the controller, where this is v1.
    beside: Option<PathBuf>,
}

/// Looks into a mount table (proc(5), mountinfo); `offers` says whether the root of a v2 hierarchy has the controller.
fn place(table: &str, offers: impl Fn(&Path) -> bool) -> Option<Place> {
    let (mut v1, mut v2) = (None, None);
    for line in table.lines() {
        let Some((mount, file_system)) = line.split_once(" - ") else { continue };
        let Some(at) = mount.split(' ').nth(4).map(unescape) else { continue };
        let mut words = file_system.split(' ');
        match (words.next(), words.nth(1)) {
            (Some("cgroup2"), _) => v2 = v2.or(Some(at)),
            (Some("cgroup"), Some(options)) if options.split(',').any(|option| option == CONTROLLER) => {
                v1 = v1.or(Some(at));
            }
            _ => {}
        }
    }
    match v2 {
        Some(root) if offers(&root) => Some(Place { root, v2: true, beside: None }),
        beside => v1.map(|root| Place { root, v2: false, beside }),
    }
}

/// Moves this process into each of the groups. A process does that first of all: memory that it has already stays where it was
/// counted.
///
/// # Errors
/// The kernel's, with the path.
pub fn join(groups: &[PathBuf]) -> io::Result<()> {
    for group in groups {
        let path = group.join("cgroup.procs");
        write(&path, "0").map_err(|e| io::Error::new(e.kind(), format!("cannot join {}: {e}", group.display())))?;
    }
    Ok(())
}

/// A control group that is removed, and all in it killed, when this is dropped.
#[derive(Debug)]
pub struct Cgroup {
    journal: Journal,
    /// In the order in which they were made.
    standing: Vec<Standing>,
    groups: Vec<PathBuf>,
    v2: bool,
    notes: Vec<String>,
}

impl Cgroup {
    /// Makes the group `tiermark-NAME` with these limits for `run`, at the root of the hierarchy. `name` is of letters, digits and `-`.
    ///
    /// # Errors
    /// [`ChangeError::Lacks`] without a memory controller, without root, or when no swap at all was asked for and the kernel
    /// does not count it; [`ChangeError::Apply`] when there is such a group, or with the kernel's reason;
    /// [`ChangeError::Journal`].
    pub fn make(journal: &Journal, run: &str, name: &str, limits: &Limits) -> Result<Self, ChangeError> {
        const TABLE: &str = "/proc/self/mountinfo";
        let table = std::fs::read_to_string(TABLE).map_err(|source| ChangeError::Apply {
            action: "read",
            path: TABLE.into(),
            source,
        })?;
        let offers = |root: &Path| lists(&root.join("cgroup.controllers")).unwrap_or(false);
        let place = place(&table, offers).ok_or_else(|| ChangeError::Lacks {
            what: "this machine has no memory controller for control groups".to_owned(),
            remedy: "on Raspberry Pi OS add cgroup_enable=memory cgroup_memory=1 to the line in /boot/firmware/cmdline.txt \
                     and start again, or take memory away by locked ballast (--lock)",
        })?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "its name may have letters, digits and - only");
            let path = place.root.join(format!("{PREFIX}{name}"));
            return Err(ChangeError::Apply { action: "make the control group", path, source });
        }
        // From here on a return drops it, and so undoes it.
        let mut group = Cgroup {
            journal: journal.clone(),
            standing: Vec::new(),
            groups: Vec::new(),
            v2: place.v2,
            notes: Vec::new(),
        };
        if place.v2 {
            group.give_controller(run, &place.root)?;
        }
        group.add(run, &place.root, name)?;
        group.limit(limits)?;
        // v1 does not tell of pressure; an empty v2 group does, for the same processes.
        if let Some(Err(error)) = place.beside.map(|root| group.add(run, &root, name)) {
            group.notes.push(format!("pressure cannot be seen: {error}"));
        }
        Ok(group)
    }

    fn give_controller(&mut self, run: &str, root: &Path) -> Result<(), ChangeError> {
        let path = root.join("cgroup.subtree_control");
        if lists(&path).unwrap_or(false) {
            return Ok(());
        }
        let id = format!("{run}-cgroup-{:016x}", random());
        let change = Change::CgroupController(ControllerChange::of(path.clone()));
        self.standing.push(self.journal.begin(run, id, change)?);
        write(&path, &format!("+{CONTROLLER}"))
            .map_err(|source| ChangeError::as_root("write +memory to", path, source))?;
        self.journal.step("memory controller given");
        Ok(())
    }

    fn add(&mut self, run: &str, root: &Path, name: &str) -> Result<(), ChangeError> {
        const MAKE: &str = "make the control group";
        let path = root.join(format!("{PREFIX}{name}"));
        if path.symlink_metadata().is_ok() {
            return Err(ChangeError::as_root(MAKE, path, io::ErrorKind::AlreadyExists.into()));
        }
        let id = format!("{run}-cgroup-{:016x}", random());
        let standing = self.journal.begin(run, id, Change::Cgroup(GroupChange::of(path.clone())))?;
        if let Err(source) = std::fs::create_dir(&path) {
            // Not made, or made by somebody else meanwhile.
            self.journal.forget(&standing)?;
            return Err(ChangeError::as_root(MAKE, path, source));
        }
        self.standing.push(standing);
        self.journal.step("control group made");
        self.groups.push(path);
        Ok(())
    }

    /// Writes one limit.
    fn put(&self, file: &str, value: &str) -> Result<(), ChangeError> {
        let path = self.memory().join(file);
        write(&path, value).map_err(|source| ChangeError::as_root("write the limit", path, source))?;
        self.journal.step("limit written");
        Ok(())
    }

    fn limit(&mut self, limits: &Limits) -> Result<(), ChangeError> {
        let memory = limits.memory.0;
        let (of_memory, of_swap) = if self.v2 {
            ("memory.max", "memory.swap.max")
        } else {
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        };
        // v1 refuses a limit of both together that is below that of memory.
        self.put(of_memory, &memory.to_string())?;
        let counted = self.memory().join(of_swap).exists();
        match limits.swap {
            Some(swap) if counted => {
                let limit = if self.v2 { swap.0 } else { memory.saturating_add(swap.0) };
                self.put(of_swap, &limit.to_string())?;
            }
            Some(Bytes(0)) => {
                return Err(ChangeError::Lacks {
                    what: "this kernel does not count the swap of a control group, so none at all cannot be promised"
                        .to_owned(),
                    remedy: "add swapaccount=1 to the kernel's command line and start again, or switch swap off (swapoff -a)",
                });
            }
            Some(swap) => self.notes.push(format!("the kernel does not count swap, so it is not limited to {swap}")),
            None => {}
        }
        if self.v2 {
            // One process that is too large is ended, not all.
            let _ = write(&self.memory().join("memory.oom.group"), "0");
        }
        if let Some(swappiness) = limits.swappiness {
            if self.memory().join("memory.swappiness").exists() {
                self.put("memory.swappiness", &swappiness.to_string())?;
            } else {
                self.notes.push(format!(
                    "control groups v2 have no swappiness of their own: not {swappiness} of the group's but vm.swappiness decides"
                ));
            }
        }
        Ok(())
    }

    /// The group that has the limits.
    fn memory(&self) -> &Path {
        &self.groups[0]
    }

    /// The directories whose `cgroup.procs` a process must write itself into ([`join`]).
    pub fn groups(&self) -> &[PathBuf] {
        &self.groups
    }

    /// What could not be had, as sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The most memory that it took; None where the kernel does not say (v2 before Linux 5.19).
    pub fn peak(&self) -> Option<Bytes> {
        let file = if self.v2 { "memory.peak" } else { "memory.max_usage_in_bytes" };
        std::fs::read_to_string(self.memory().join(file)).ok()?.trim().parse().ok().map(Bytes)
    }

    /// How many processes the kernel ended for want of memory.
    pub fn oom_kills(&self) -> Option<u64> {
        let file = if self.v2 { "memory.events" } else { "memory.oom_control" };
        oom_kills(&std::fs::read_to_string(self.memory().join(file)).ok()?)
    }

    /// Major faults of all that ran in it.
    pub fn major_faults(&self) -> Option<u64> {
        let text = std::fs::read_to_string(self.memory().join("memory.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("pgmajfault ")?.trim().parse().ok())
    }

    /// Whether what zswap takes is counted in it: groups v2 do, groups v1 do not.
    pub fn counts_zswap(&self) -> bool {
        self.v2
    }

    /// Gives it another limit of memory and leaves that of swap beyond it as it is. What is above is pushed out first; where the kernel
    /// cannot do that at once (`EBUSY`), it is tried again the next time.
    ///
    /// # Errors
    /// [`ChangeError::Apply`].
    pub fn give(&self, memory: Bytes) -> Result<(), ChangeError> {
        let file = if self.v2 { "memory.max" } else { "memory.limit_in_bytes" };
        let path = self.memory().join(file);
        match write(&path, &memory.0.to_string()) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => Ok(()),
            result => result.map_err(|source| ChangeError::as_root("write the limit", path, source)),
        }
    }

    /// Has the kernel add up its statistics of the group, which it does by itself every two seconds only. Reclaim goes by them: a
    /// group that fast swap turns over in less looks as if it had inactive pages when it has none, nothing is made
    /// inactive, and the kernel ends the process although there is swap. Of runs with 256 MiB touched at random in 160 on zram
    /// 5 of 14 ended so (Linux 6.18), and of those for which this was done every 50 ms none.
    pub fn refresh(&self) {
        let _ = std::fs::read(self.memory().join("memory.stat"));
    }

    /// The file that tells how long processes waited for memory; None where the kernel does not say.
    pub fn pressure(&self) -> Option<PathBuf> {
        let path = self.groups.last()?.join("memory.pressure");
        // Where it is switched off it is there and cannot be read.
        std::fs::read(&path).is_ok().then_some(path)
    }

    /// Kills what is in it and removes it now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Undo`], [`ChangeError::Away`]; the next start tries again.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        let mut result = Ok(());
        while let Some(standing) = self.standing.pop() {
            result = result.and(self.journal.end(&standing));
        }
        result
    }
}

/// `oom_kill` of a list of names and numbers.
fn oom_kills(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        while let Some(standing) = self.standing.pop() {
            if let Err(error) = self.journal.end(&standing) {
                tracing::warn!("{error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup memory rw,devices\n";
    const V2: &str = "41 31 0:38 / /sys/fs/my\\040groups rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_controller_is_found_in_either_interface() {
        let (v1, v2) = (PathBuf::from("/sys/fs/cgroup/memory"), PathBuf::from("/sys/fs/my groups"));
        let hybrid = [V2, V1].concat();
        let beside = Some(v2.clone());
        assert_eq!(place(V1, |_| true), Some(Place { root: v1.clone(), v2: false, beside: None }));
        assert_eq!(place(&hybrid, |_| false), Some(Place { root: v1, v2: false, beside }));
        assert_eq!(place(&hybrid, |_| true), Some(Place { root: v2, v2: true, beside: None }));
        assert_eq!(place(V2, |_| false), None);
        assert_eq!(place("22 27 0:21 / /proc rw - proc memory rw,memory", |_| true), None);
    }

    #[test]
    fn kills_are_counted_in_either_interface() {
        assert_eq!(oom_kills("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"), Some(2));
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"), Some(4));
        assert_eq!(oom_kills("oom_kill_disable 0\nunder_oom 0\n"), None);
    }
}
