//! What an emulated disk says of itself: what it was asked, and where it could not keep its profile's word, so that it never
//! lies about how slow it really was.

use basics::{Bytes, Latencies, Nanos};
use serde::{Deserialize, Serialize};

/// Figures since the start, as they are shown. Sizes are bytes, times microseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Since the disk was ready, s.
    pub uptime_s: f64,
    /// Reads, writes, flushes, trims that came.
    pub reads: u64,
    /// Writes, zeros included.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Trims.
    pub trims: u64,
    /// Bytes read.
    #[serde(rename = "read_B")]
    pub read_bytes: u64,
    /// Bytes written.
    #[serde(rename = "written_B")]
    pub written_bytes: u64,
    /// Requests that the profile would have served faster than the way through FUSE and the loop device lets.
    pub floor_reached: u64,
    /// What the way costs a read now, as the kernel's account of the device shows it; taken off the profile's time.
    pub way_read_us: f64,
    /// And a write.
    pub way_write_us: f64,
    /// What of it is outside the kernel's account, as measured at the start: a program's own way into the device's queue and back.
    #[serde(default)]
    pub way_outside_us: f64,
    /// By how much the way scatters by itself, a standard deviation; the profile's own scatter is narrowed by it.
    #[serde(default)]
    pub way_scatter_us: f64,
    /// Requests that were answered later than the profile says by more than a twentieth of their time.
    pub late: u64,
    /// How late answers left, in µs: half of them at most so much.
    pub late_p50_us: f64,
    /// 99 % of them.
    pub late_p99_us: f64,
    /// The latest.
    pub late_max_us: f64,
    /// Mean time of a read by the profile.
    pub read_mean_us: f64,
    /// Mean time of a write by the profile.
    pub write_mean_us: f64,
    /// CPU time of the emulator since the start, by request.
    pub cpu_us_per_request: f64,
    /// Requests that failed, for whatever reason.
    pub failed: u64,
    /// What lies in the backing.
    #[serde(rename = "taken_B")]
    pub taken_bytes: u64,
    /// What a power cut would put at risk.
    #[serde(rename = "unflushed_B")]
    pub unflushed_bytes: u64,
    /// Sectors that power cuts have taken back.
    pub sectors_lost: u64,
    /// Faults at work.
    pub faults: Vec<FaultFigures>,
    /// False while it is disconnected or without power.
    pub online: bool,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FaultFigures {
    /// As it was written.
    pub fault: String,
    /// How often it has struck.
    pub struck: u64,
}

impl Figures {
    /// Requests that data went with.
    pub fn transfers(&self) -> u64 {
        self.reads + self.writes
    }
    /// Share of the requests in which the floor was reached or the answer was late, 0 to 1.
    pub fn unkept(&self) -> f64 {
        let all = self.transfers() + self.flushes;
        if all == 0 { 0.0 } else { (self.floor_reached + self.late) as f64 / all as f64 }
    }
    /// One line, for people: what happened since `before`.
    pub fn line(&self, before: &Figures) -> String {
        let seconds = (self.uptime_s - before.uptime_s).max(1e-3);
        let rate = |now: u64, then: u64| basics::units::significant(now.saturating_sub(then) as f64 / seconds);
        let mbps = |now: u64, then: u64| basics::units::significant(now.saturating_sub(then) as f64 / seconds / 1e6);
        let mut line = format!(
            "reads {} IOPS {} MB/s  writes {} IOPS {} MB/s  flushes {}/s  holds {}",
            rate(self.reads, before.reads),
            mbps(self.read_bytes, before.read_bytes),
            rate(self.writes, before.writes),
            mbps(self.written_bytes, before.written_bytes),
            rate(self.flushes, before.flushes),
            Bytes(self.taken_bytes),
        );
        let all = (self.transfers() + self.flushes).saturating_sub(before.transfers() + before.flushes);
        let share = |now: u64, then: u64| 100.0 * now.saturating_sub(then) as f64 / all.max(1) as f64;
        let (floor, late) = (share(self.floor_reached, before.floor_reached), share(self.late, before.late));
        if floor >= 0.5 {
            line += &format!("  floor reached in {floor:.0} % of the requests");
        }
        if late >= 0.5 {
            line += &format!("  {late:.0} % late");
        }
        if !self.online {
            line += "  OFF";
        }
        line
    }
}

/// What is counted while requests come and go.
#[derive(Debug)]
pub(crate) struct Counters {
    pub figures: Figures,
    lateness: Latencies,
    read_ns: u64,
    write_ns: u64,
}

impl Counters {
    pub fn new() -> Self {
        Counters { figures: Figures::default(), lateness: Latencies::new(), read_ns: 0, write_ns: 0 }
    }

    /// A transfer and its time by the profile.
    pub fn transfer(&mut self, read: bool, len: u64, time: Nanos) {
        let figures = &mut self.figures;
        if read {
            figures.reads += 1;
            figures.read_bytes += len;
            self.read_ns += time.0;
        } else {
            figures.writes += 1;
            figures.written_bytes += len;
            self.write_ns += time.0;
        }
    }

    /// An answer left so much after it was due, of a request of that time; one at the floor is counted there.
    pub fn answered(&mut self, late: Nanos, time: Nanos, floor: bool) {
        self.lateness.record(late);
        if !floor && late.0 > time.0 / 20 {
            self.figures.late += 1;
        }
    }

    pub fn snapshot(&self) -> Figures {
        let mean = |ns: u64, n: u64| if n == 0 { 0.0 } else { ns as f64 / n as f64 / 1e3 };
        let late = |percent| self.lateness.percentile(percent).map_or(0.0, Nanos::us);
        Figures {
            late_p50_us: late(50.0),
            late_p99_us: late(99.0),
            late_max_us: self.lateness.max().map_or(0.0, Nanos::us),
            read_mean_us: mean(self.read_ns, self.figures.reads),
            write_mean_us: mean(self.write_ns, self.figures.writes),
            ..self.figures.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_kept_is_said() {
        let mut counters = Counters::new();
        for i in 0..100 {
            counters.transfer(i % 2 == 0, 4096, Nanos(100_000));
            counters.answered(Nanos(if i < 10 { 50_000 } else { 100 }), Nanos(100_000), false);
        }
        counters.figures.floor_reached = 3;
        counters.figures.uptime_s = 1.0;
        counters.figures.online = true;
        let figures = counters.snapshot();
        assert_eq!((figures.late, figures.reads, figures.read_mean_us), (10, 50, 100.0));
        assert!((figures.unkept() - 0.13).abs() < 1e-9);
        let line = figures.line(&Figures::default());
        assert!(line.contains("floor reached in 3 % of the requests") && line.contains("10 % late"), "{line}");
    }
}
