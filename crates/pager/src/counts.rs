//! What the kernel counts of a process, from `/proc`: its faults, what it reads, what of it is in memory. And where its stack begins,
//! by which another program is known.

use std::io;

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
        assert!(anonymous > 0 && anonymous < resident(std::process::id(), 4096));
    }
}
