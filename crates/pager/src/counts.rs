//! What the kernel counts of a process, from `/proc`: its faults, what it reads, what of it is in memory. And where its stack begins,
//! by which another program is known.

use crate::folios::FOLIO;
use std::io;

/// Bytes a second: read of files, a process that has so many is worth being listened to, whatever its major faults are; brought in ahead of
/// it, less than this is hardly anything.
pub const WORTH_READ: f64 = 4e6;

/// What was counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Minor faults.
    pub minor: u64,
    /// Major faults.
    pub major: u64,
    /// Bytes that it had read from disks; 0 where that is not told (another user's).
    pub read: u64,
    /// Where its stack begins: elsewhere once it has become another program (exec).
    pub stack: u64,
}

impl Counts {
    /// Of this process.
    ///
    /// # Errors
    /// `NotFound` when it has ended.
    pub fn of(pid: u32) -> io::Result<Self> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, format!("process {pid} has ended"));
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|_| gone())?;
        let read = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let read = read.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok()).unwrap_or(0);
        Self::told(&stat, read).ok_or_else(gone)
    }

    /// As `/proc/PID/stat` tells it (proc_pid_stat(5): fields 3, 10, 12 and 28); none of one that has ended.
    fn told(stat: &str, read: u64) -> Option<Self> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).and_then(|word| word.parse().ok()).unwrap_or(0);
        let ended = matches!(*fields.first()?, "Z" | "X" | "x");
        (!ended).then(|| Counts { minor: field(10), major: field(12), read, stack: field(28) })
    }
}

/// Bytes that the kernel reads of swap for one major fault, at most: 2 to the power of `vm.page-cluster` pages, as many as 32
/// (`swap_vma_ra_win` in mm/swap_state.c); by its default, 8, where it does not tell.
pub fn brought_by_a_fault(page: u64) -> u64 {
    let told = std::fs::read_to_string("/proc/sys/vm/page-cluster").ok();
    page << told.and_then(|text| text.trim().parse().ok()).map_or(3, |cluster: u32| cluster.min(5))
}

/// Whether it waits for pages of files, by what it reads in bytes a second and its major and minor faults: of a file the kernel reads on
/// by itself, and a program that waits for that meets minor faults alone, few where its folios are large. So many faults must be able to
/// map it, though; and what major faults have brought from swap, bytes each, does not count: they tell of themselves. How many is asked
/// only of who reads enough.
pub fn reads_files(read: f64, major: f64, minor: f64, brought: impl FnOnce() -> u64) -> bool {
    if read < WORTH_READ {
        return false;
    }
    let of_files = read - major * brought() as f64;
    of_files >= WORTH_READ && FOLIO as f64 * (major + minor) >= of_files
}

/// Bytes of a process that are in memory.
pub fn resident(pid: u32, page: u64) -> u64 {
    page * in_memory(pid).0
}

/// The same without what is of files, or shared.
pub fn anonymous(pid: u32, page: u64) -> u64 {
    let (all, shared) = in_memory(pid);
    page * all.saturating_sub(shared)
}

/// Pages: all, and those of them that are of files or shared (proc_pid_statm(5): fields 2 and 3).
fn in_memory(pid: u32) -> (u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut numbers = text.split(' ').skip(1).map(|word| word.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_swap_is_not_of_files() {
        let brought = || 32768;
        assert!(!reads_files(360e6, 13_000.0, 20_000.0, brought), "at random, out of swap");
        assert!(
            reads_files(360e6, 1200.0, 20_000.0, brought),
            "what the kernel reads on of a file, 32 pages each time"
        );
        assert!(reads_files(400e6, 0.0, 200.0, brought), "in large folios");
        assert!(!reads_files(400e6, 0.0, 100.0, brought), "by read(2)");
        assert!(!reads_files(3e6, 0.0, 200.0, brought), "hardly anything");
    }

    #[test]
    fn the_fields_are_where_the_manual_has_them() {
        let rest: Vec<String> = (4..=52).map(|number| number.to_string()).collect();
        let stat = |state: &str| format!("7 (a) b) {state} {}", rest.join(" "));
        let counts = Counts { minor: 10, major: 12, read: 5, stack: 28 };
        assert_eq!(Counts::told(&stat("S"), 5), Some(counts));
        assert_eq!(Counts::told(&stat("Z"), 5), None);
        assert_eq!(Counts::told("", 5), None);
        let own = Counts::of(std::process::id()).unwrap();
        assert!(own.minor > 0 && own.stack > 0 && resident(std::process::id(), 4096) > 0, "{own:?}");
        let anonymous = anonymous(std::process::id(), 4096);
        assert!((4096..=4096 << 5).contains(&brought_by_a_fault(4096)));
        assert!(anonymous > 0 && anonymous < resident(std::process::id(), 4096));
    }
}
