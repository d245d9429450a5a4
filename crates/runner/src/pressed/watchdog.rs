//! Ends a run before the machine freezes. What it goes by is the kernel's own account of waiting: the share of the last ten
//! seconds in which everything that wanted to run waited for memory or for I/O (PSI `full avg10`,
//! Documentation/accounting/psi.rst), of the cgroup where there is one; and, where nothing limits the run, what is left of RAM and swap.
//! Waiting for a page from swap is waiting for I/O to the kernel, unless the page had been in use shortly before.

use basics::Bytes;
use basics::pressure::Pressure;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Duration = Duration::from_millis(250);
/// With less of RAM available, and less of swap free, no program can be started to end the run by hand.
const LEAST: Bytes = Bytes(48 << 20);
const PSI: &str = "/proc/pressure/memory";
const PSI_IO: &str = "/proc/pressure/io";

/// Looks at what the plan says it should.
pub(super) struct Watchdog {
    percent: Option<f64>,
    pressures: [PathBuf; 2],
    /// Nothing but this holds the run back.
    unlimited: bool,
    looked: Instant,
}

impl Watchdog {
    /// `of_group`: the cgroup's own account.
    pub fn new(pressure: &Pressure, of_group: Option<PathBuf>) -> Self {
        Watchdog {
            percent: pressure.watchdog.map(f64::from),
            pressures: of_group
                .map_or_else(|| [PSI.into(), PSI_IO.into()], |memory| [memory.with_file_name("io.pressure"), memory]),
            unlimited: pressure.memory.is_none(),
            looked: Instant::now(),
        }
    }

    /// Why the run should end now.
    pub fn looks(&mut self) -> Option<String> {
        if self.looked.elapsed() < EVERY {
            return None;
        }
        self.looked = Instant::now();
        if let Some(percent) = self.percent
            && let Some(stalled) = self.stalled().filter(|stalled| *stalled >= percent)
        {
            return Some(format!(
                "ended by the watchdog: all that wanted to run waited for memory or I/O for {stalled:.0} % of ten seconds, and \
                 {percent:.0} % was the limit"
            ));
        }
        let available = sys::memory::available().map(Bytes).filter(|_| self.unlimited)?;
        let free = sys::memory::swap_free().map_or(Bytes(0), Bytes);
        let out_of_both = available < LEAST && free < LEAST;
        out_of_both
            .then(|| format!("ended by the watchdog: only {available} of RAM were available, and {free} of swap"))
    }
}

impl Watchdog {
    /// What it lacks of what it was to go by.
    pub fn lacks(&self) -> Option<&'static str> {
        (self.percent.is_some() && self.stalled().is_none()).then_some(
            "this kernel does not tell how long work waits for memory (PSI is off: psi=1 on its command line), so the watchdog \
             goes by what is left of RAM and swap alone",
        )
    }

    /// The worse of the two, in per cent.
    fn stalled(&self) -> Option<f64> {
        self.pressures.iter().filter_map(|path| full_avg10(path)).reduce(f64::max)
    }
}

/// `full avg10=12.34 …`, in per cent; nothing where the kernel keeps no such account.
fn full_avg10(path: &Path) -> Option<f64> {
    of_text(&std::fs::read_to_string(path).ok()?)
}

fn of_text(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("full avg10="))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_account_is_read() {
        let text = "some avg10=50.00 avg60=1.00 avg300=0.00 total=5\nfull avg10=31.25 avg60=0.10 avg300=0.00 total=4\n";
        assert_eq!(of_text(text), Some(31.25));
        assert_eq!(of_text("some avg10=1.00 avg60=1.00 avg300=0.00 total=5\n"), None);
    }

    #[test]
    fn it_barks_at_the_limit_and_not_below() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("memory.pressure");
        let barks = |stalled: &str, watchdog: Option<u8>| {
            std::fs::write(&file, format!("full avg10={stalled} avg60=0.00 avg300=0.00 total=1\n")).unwrap();
            let pressure = Pressure { memory: Some(Bytes(1)), lock: None, watchdog };
            let mut watchdog = Watchdog::new(&pressure, Some(file.clone()));
            watchdog.looked -= 2 * EVERY;
            watchdog.looks()
        };
        assert!(barks("60.00", Some(60)).unwrap().contains("60 % was the limit"));
        assert_eq!(barks("59.99", Some(60)), None);
        assert_eq!(barks("100.00", None), None);
    }
}
