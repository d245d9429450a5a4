//! Where a process's bytes are, looked at from outside once a second: in RAM as its own or as a file's, or in swap.

use basics::decoding::Lay;
use basics::{Bytes, Nanos};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

/// Looks at one process.
pub(super) struct Watch {
    pid: u32,
    begun: Option<Instant>,
    next: Instant,
    pub seen: Vec<Lay>,
}

impl Watch {
    pub fn new(pid: u32) -> Self {
        Watch { pid, begun: None, next: Instant::now(), seen: Vec::new() }
    }

    /// From now on it counts.
    pub fn begin(&mut self) {
        (self.begun, self.next) = (Some(Instant::now()), Instant::now());
    }

    /// Looks, when it is time to.
    pub fn look(&mut self) {
        let Some(begun) = self.begun.filter(|_| Instant::now() >= self.next) else { return };
        self.next = Instant::now() + EVERY;
        let at = Nanos::from(begun.elapsed());
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        self.seen.extend(status.ok().and_then(|status| read(&status, at)));
    }
}

/// What `/proc/PID/status` says (proc_pid_status(5); kernels keep these as counters, so that looking costs nothing, as going
/// through smaps would).
fn read(status: &str, at: Nanos) -> Option<Lay> {
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        Some(Bytes(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10))
    };
    Some(Lay { at, anonymous: of("RssAnon:")?, file: of("RssFile:")?, swap: of("VmSwap:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_is_read() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let lay = read(&status, Nanos(7)).unwrap();
        assert!(lay.anonymous.0 > 0 && lay.file.0 > 0 && lay.at == Nanos(7), "{lay:?}");
        let text = "VmSwap:\t    1024 kB\nRssAnon:\t      12 kB\nRssFile:\t       0 kB\n";
        let lay = read(text, Nanos(0)).unwrap();
        assert_eq!((lay.anonymous, lay.file, lay.swap), (Bytes(12288), Bytes(0), Bytes(1 << 20)));
        assert_eq!(read("Name:\tkthreadd\n", Nanos(0)), None);
    }
}
