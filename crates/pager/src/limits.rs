//! How much memory a process can have: the limits of its control groups (v1, v2 or none) and the machine's own, each less
//! what cannot leave it. Page cache and the swap cache can, so that they do not count.

use crate::groups::Groups;
use std::fs::File;
use std::os::unix::fs::FileExt;
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
    /// Of the groups among them, the files by which the kernel has their counts told.
    counts: Vec<File>,
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
    /// Pages of files, which leave when there is need, and those of them that leave first.
    pub files: u64,
    pub idle_files: u64,
}

impl Limits {
    /// Those of this process.
    pub fn of(pid: u32) -> Self {
        let levels = levels(pid);
        let counts = levels.iter().filter_map(|level| File::open(level.counts()?).ok()).collect();
        Limits { levels, counts }
    }

    /// Whether one of them holds another process, too.
    pub fn hold(&self, level: usize, pid: u32) -> bool {
        self.levels.get(level).is_some_and(|level| levels(pid).contains(level))
    }

    /// The limits as they are now; cheap.
    pub fn numbers(&self) -> Vec<Option<u64>> {
        self.levels.iter().map(Level::limit).collect()
    }

    /// The one that leaves the least room.
    pub fn tightest(&self) -> Option<Limit> {
        let all = self.levels.iter().enumerate().filter_map(|(at, level)| level.now(at));
        all.min_by_key(|limit| limit.limit as i64 - limit.held as i64)
    }

    /// Has the kernel count anew what they hold. It decides by counts as old as two seconds whether pages that were used a while ago may
    /// go; where all that is in memory was used since, it finds none that it may take, and ends the program. Whoever asks for the counts
    /// renews them, and what they are does not matter here.
    pub fn renew(&self) {
        for counts in &self.counts {
            // Of one byte, too, all are made. Those of a group that is gone decide nothing.
            let _ = counts.read_at(&mut [0], 0);
        }
    }

    /// Where a control group tells all that it has, as its limit counts it. None of the machine.
    pub fn used(&self, level: usize) -> Option<File> {
        let path = match self.levels.get(level)? {
            Level::V1(path) => path.join("memory.usage_in_bytes"),
            Level::V2(path) => path.join("memory.current"),
            Level::Machine => return None,
        };
        File::open(path).ok()
    }
}

fn levels(pid: u32) -> Vec<Level> {
    let groups = Groups::of(pid, "memory");
    let level = if groups.are_v2 { Level::V2 } else { Level::V1 };
    groups.all.into_iter().map(level).chain([Level::Machine]).collect()
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

    /// Where a control group tells what it counts; it is the same in both versions.
    fn counts(&self) -> Option<PathBuf> {
        match self {
            Level::V1(path) | Level::V2(path) => Some(path.join("memory.stat")),
            Level::Machine => None,
        }
    }

    /// It, the one of this number, and what is there below it.
    fn now(&self, level: usize) -> Option<Limit> {
        let limit = self.limit()?;
        let now = |held, idle_files, files| Limit { level, limit, held, files: idle_files + files, idle_files };
        Some(match self {
            Level::V1(path) => {
                let stat = std::fs::read_to_string(self.counts()?).ok()?;
                let kernel = number(&path.join("memory.kmem.usage_in_bytes")).unwrap_or(0);
                let held = sum(&stat, &["total_rss"])
                    + sum(&stat, &["total_mapped_file"]).max(sum(&stat, &["total_shmem"]))
                    + kernel;
                now(held, sum(&stat, &["total_inactive_file"]), sum(&stat, &["total_active_file"]))
            }
            Level::V2(_) => {
                let stat = std::fs::read_to_string(self.counts()?).ok()?;
                let kernel = ["pagetables", "kernel_stack", "slab_unreclaimable", "percpu", "sock"];
                let mapped = sum(&stat, &["file_mapped"]).max(sum(&stat, &["shmem"]));
                let held = sum(&stat, &["anon"]) + mapped + sum(&stat, &kernel);
                now(held, sum(&stat, &["inactive_file"]), sum(&stat, &["active_file"]))
            }
            Level::Machine => {
                let info = std::fs::read_to_string("/proc/meminfo").ok()?;
                let shared = sum(&info, &["Mapped"]).max(sum(&info, &["Shmem"]));
                let rest = ["AnonPages", "SUnreclaim", "PageTables", "KernelStack", "Percpu", "VmallocUsed", "Mlocked"];
                // Locked pages are anonymous as a rule, and would count twice.
                let held = sum(&info, &rest[..6]) + shared;
                now(held, sum(&info, &["Inactive(file)"]), sum(&info, &["Active(file)"]))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_itself_is_a_limit() {
        let limit = Limits::of(std::process::id()).tightest().unwrap();
        assert!(limit.held > 0 && limit.limit > 1 << 20);
        assert_eq!(sum("a 5\nb: 2 kB\nc x\n", &["a", "b", "c"]), 5 + 2048);
    }
}
