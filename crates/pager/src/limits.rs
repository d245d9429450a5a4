//! How much memory a process can have: the limits of its control groups (v1, v2 or none) and the machine's own, each less
//! what cannot leave it. Page cache and the swap cache can, so that they do not count.

use std::path::{Path, PathBuf};

/// Of the machine, what the kernel wants free before it looks for more (watermarks), and room for what starts meanwhile.
const RESERVE: f64 = 0.03;
const RESERVE_LEAST: u64 = 48 << 20;

/// Where one is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Level {
    V1(PathBuf),
    V2(PathBuf),
    Machine,
}

/// All that hold a process, the nearest first.
#[derive(Debug)]
pub struct Limits {
    levels: Vec<Level>,
}

/// One that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Which of them it is.
    pub level: usize,
    /// Bytes.
    pub limit: u64,
    /// Of them, what is there and cannot leave without swap: anonymous memory, mapped files, shared memory, the kernel's own.
    pub held: u64,
}

impl Limits {
    /// Those of this process.
    pub fn of(pid: u32) -> Self {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut levels = Vec::new();
        if let Some((root, group, v2)) = place(&groups, &mounts, "memory") {
            levels.extend(upwards(&root, &group).map(|at| if v2 { Level::V2(at) } else { Level::V1(at) }));
        }
        levels.push(Level::Machine);
        Limits { levels }
    }

    /// Its nearest control group, where that counts its memory apart from `other`'s.
    pub fn group_beside(&self, other: &Limits) -> Option<&Path> {
        self.group().filter(|group| other.group() != Some(group))
    }

    fn group(&self) -> Option<&Path> {
        match self.levels.first()? {
            Level::V1(path) | Level::V2(path) => Some(path),
            Level::Machine => None,
        }
    }

    /// The limits as they are now; cheap.
    pub fn numbers(&self) -> Vec<Option<u64>> {
        self.levels.iter().map(Level::limit).collect()
    }

    /// The one that leaves the least room.
    pub fn tightest(&self) -> Option<Limit> {
        let limit =
            |(at, level): (usize, &Level)| Some(Limit { level: at, limit: level.limit()?, held: level.held()? });
        let all = self.levels.iter().enumerate().filter_map(limit);
        all.min_by_key(|limit| limit.limit as i64 - limit.held as i64)
    }
}

/// How often the control groups of a process held it because its quota of processor time was used up.
#[derive(Debug)]
pub struct Throttled(Vec<PathBuf>);

impl Throttled {
    /// Those of this process.
    pub fn of(pid: u32) -> Self {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let place = place(&groups, &mounts, "cpu");
        Throttled(
            place.iter().flat_map(|(root, group, _)| upwards(root, group)).map(|at| at.join("cpu.stat")).collect(),
        )
    }

    /// Periods in which one of them did, so far.
    pub fn periods(&self) -> u64 {
        self.0
            .iter()
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .map(|text| sum(&text, &["nr_throttled"]))
            .sum()
    }
}

/// A group and all above it but the root, which has no limits.
fn upwards(root: &Path, group: &str) -> impl Iterator<Item = PathBuf> {
    let (at, root) = (root.join(group.trim_start_matches('/')), root.to_owned());
    let all: Vec<PathBuf> =
        at.ancestors().take_while(|at| at.starts_with(&root) && *at != root).map(Path::to_owned).collect();
    all.into_iter()
}

/// Root and path of the group that counts something, such as memory, and whether it is of v2.
fn place(groups: &str, mounts: &str, what: &str) -> Option<(PathBuf, String, bool)> {
    let mounted = |wanted: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let (mount, file_system) = line.split_once(" - ")?;
            let mut words = file_system.split(' ');
            let is = words.next() == Some(wanted);
            let has = option.is_none_or(|option| words.nth(1).is_some_and(|all| all.split(',').any(|o| o == option)));
            (is && has).then(|| mount.split(' ').nth(4).map(PathBuf::from))?
        })
    };
    let mut fields = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let all: Vec<_> = fields.by_ref().collect();
    let v1 = all.iter().find(|(_, controllers, _)| controllers.split(',').any(|name| name == what));
    if let Some((_, _, path)) = v1 {
        return Some((mounted("cgroup", Some(what))?, (*path).to_owned(), false));
    }
    let (_, _, path) = all.iter().find(|(number, controllers, _)| *number == "0" && controllers.is_empty())?;
    Some((mounted("cgroup2", None)?, (*path).to_owned(), true))
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// `key value` or `key: value kB` lines.
fn sum(text: &str, keys: &[&str]) -> u64 {
    let value = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let key = words.next()?.trim_end_matches(':');
        let value: u64 = words.next()?.parse().ok()?;
        let unit = if words.next() == Some("kB") { 1024 } else { 1 };
        keys.contains(&key).then_some(value * unit)
    };
    text.lines().filter_map(value).sum()
}

impl Level {
    fn limit(&self) -> Option<u64> {
        match self {
            Level::V1(path) => number(&path.join("memory.limit_in_bytes")).filter(|limit| *limit < 1 << 60),
            Level::V2(path) => {
                let [max, high] = ["memory.max", "memory.high"].map(|name| number(&path.join(name)));
                max.into_iter().chain(high).min()
            }
            Level::Machine => {
                let total = sum(&std::fs::read_to_string("/proc/meminfo").ok()?, &["MemTotal"]);
                Some(total - ((total as f64 * RESERVE) as u64).max(RESERVE_LEAST).min(total))
            }
        }
    }

    fn held(&self) -> Option<u64> {
        Some(match self {
            Level::V1(path) => {
                let stat = std::fs::read_to_string(path.join("memory.stat")).ok()?;
                let kernel = number(&path.join("memory.kmem.usage_in_bytes")).unwrap_or(0);
                sum(&stat, &["total_rss"])
                    + sum(&stat, &["total_mapped_file"]).max(sum(&stat, &["total_shmem"]))
                    + kernel
            }
            Level::V2(path) => {
                let stat = std::fs::read_to_string(path.join("memory.stat")).ok()?;
                let kernel = ["pagetables", "kernel_stack", "slab_unreclaimable", "percpu", "sock"];
                sum(&stat, &["anon"]) + sum(&stat, &["file_mapped"]).max(sum(&stat, &["shmem"])) + sum(&stat, &kernel)
            }
            Level::Machine => {
                let info = std::fs::read_to_string("/proc/meminfo").ok()?;
                let shared = sum(&info, &["Mapped"]).max(sum(&info, &["Shmem"]));
                let rest = ["AnonPages", "SUnreclaim", "PageTables", "KernelStack", "Percpu", "VmallocUsed", "Mlocked"];
                // Locked pages are anonymous as a rule, and would count twice.
                sum(&info, &rest[..6]) + shared
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 1 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n\
        32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n\
        33 31 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n";

    #[test]
    fn groups_of_both_kinds_are_found() {
        let v1 = place("4:memory:/tiermark-a\n0::/tiermark-a\n", MOUNTS, "memory").unwrap();
        assert_eq!(v1, ("/sys/fs/cgroup/memory".into(), "/tiermark-a".to_owned(), false));
        let v2 = place("0::/user.slice/x\n", MOUNTS, "memory").unwrap();
        assert_eq!(v2, ("/sys/fs/cgroup/unified".into(), "/user.slice/x".to_owned(), true));
        assert_eq!(place("", MOUNTS, "memory"), None);
        let all: Vec<_> = upwards(Path::new("/g"), "/a/b").collect();
        assert_eq!(all, [Path::new("/g/a/b"), Path::new("/g/a")]);
        assert_eq!(place("4:memory:/a\n", "", "memory"), None);
    }

    #[test]
    fn the_machine_itself_is_a_limit() {
        let limit = Limits::of(std::process::id()).tightest().unwrap();
        assert!(limit.held > 0 && limit.limit > 1 << 20);
        assert_eq!(sum("a 5\nb: 2 kB\nc x\n", &["a", "b", "c"]), 5 + 2048);
    }
}
