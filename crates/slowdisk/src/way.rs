//! What the way through FUSE and the loop device costs, and how that is known: it is measured once at the start, one request
//! at a time, and from then on followed by the kernel's own account of the loop device, since a queue of requests and busy
//! CPUs make it longer. What the kernel says its requests took, less what the profile owes them, is what the correction
//! lacks.

use crate::calibrate::CROWD;
use crate::faults::Act;
use basics::Nanos;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Requests of a direction that one look needs: fewer, and those under way at its ends weigh too much.
const LEAST: u64 = 64;
/// Kernel and emulator must agree on the number of requests, but for this share and those under way; else requests were
/// split or merged between them, and their times are not comparable.
const AGREE: f64 = 0.02;
const UNDER_WAY: u64 = 16;

/// Whether two counts of the same requests are near enough for their times to be held against each other.
fn agree(kernel: u64, counted: u64) -> bool {
    kernel.abs_diff(counted).saturating_sub(UNDER_WAY) as f64 <= AGREE * kernel as f64
}

/// A direction with fewer requests than a look needs is as busy as it was since its last one, after so long.
const STALE: u64 = 250_000_000;

/// Share of what is lacking that one look adds: less than 1, for a look also sees chance.
const GAIN: f64 = 0.4;
/// So much may the way come to cost beyond what it cost at the start, ns: more is a machine without time for it. That cannot be
/// made good by answering the other requests early; it is said (late answers), not hidden.
const MOST_MORE: f64 = 150e3;
/// Nor is an answer that left later than that made good by others, ns: what delays it is another program.
const LATE: f64 = 100e3;
/// What can be outside the kernel's account on any machine, alone and in a crowd, ns: more was another program's doing.
const MOST_OUTSIDE: [f64; 2] = [30e3, 60e3];

/// Nor of each byte: pages are pinned and released at some 30 GB/s.
pub(crate) const MOST_OUTSIDE_PER_BYTE: f64 = 0.1;
/// Nor does a way scatter by more by itself, ns of standard deviation.
pub(crate) const MOST_SCATTER: f64 = 60e3;
/// Fewer under way on average are one at a time.
const ALONE: f64 = 1.5;

/// Requests, the sum of their times, and their bytes where those are known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Sum {
    pub requests: u64,
    pub nanos: f64,
    pub bytes: u64,
}

impl Sum {
    pub fn since(self, before: Sum) -> Sum {
        Sum {
            requests: self.requests.saturating_sub(before.requests),
            nanos: self.nanos - before.nanos,
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
    pub fn mean(self) -> f64 {
        self.nanos / self.requests.max(1) as f64
    }
    /// Bytes of a request, on average.
    pub fn length(self) -> f64 {
        self.bytes as f64 / self.requests.max(1) as f64
    }
}

/// The kernel's account of a block device: reads and writes completed, and their times from entering the device's queue
/// (Documentation/block/stat.rst). Times are kept in ns and shown in ms, cumulated, so that a look of 100 ms errs by 1 %
/// of a request that takes as long, and not at all in the long run.
#[derive(Debug)]
pub(crate) struct Account(File);

impl Account {
    /// Of `/dev/NAME`; nothing where the kernel keeps none.
    pub fn open(device: &Path) -> Option<Self> {
        let block = Path::new("/sys/block").join(device.file_name()?);
        let kept = std::fs::read_to_string(block.join("queue/iostats")).ok()?;
        (kept.trim() == "1").then(|| File::open(block.join("stat")).ok().map(Account)).flatten()
    }
    /// Reads and writes so far.
    pub fn read(&self) -> io::Result<[Sum; 2]> {
        let mut text = [0; 512];
        let len = self.0.read_at(&mut text, 0)?;
        parse(&String::from_utf8_lossy(&text[..len])).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// Fields 1, 3, 4 and 5, 7, 8: reads, their sectors of 512 B, their ms; writes, theirs.
fn parse(text: &str) -> Option<[Sum; 2]> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let sum = |at: usize| {
        let (requests, sectors, millis) = (*fields.get(at)?, *fields.get(at + 2)?, *fields.get(at + 3)?);
        Some(Sum { requests, nanos: millis as f64 * 1e6, bytes: sectors * 512 })
    };
    Some([sum(0)?, sum(4)?])
}

/// Between what was measured with one request under way and with [`CROWD`].
fn between([alone, crowd]: [f64; 2], under_way: f64) -> f64 {
    alone + (crowd - alone) * ((under_way - 1.0) / f64::from(CROWD - 1)).clamp(0.0, 1.0)
}

/// What is taken off the profile's times, half of it before the model is asked and half after, so that a busy device needs
/// none. The bytes of a read are copied after the answer leaves, those of a write before the request comes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Way {
    /// Of a read, and of a write, whatever its size, ns.
    pub base: [f64; 2],
    /// Neither is ever taken to be more, ns.
    most: f64,
    /// Of each byte, ns.
    pub per_byte: f64,
    /// Of a flush, ns.
    pub flush: f64,
    /// What programs see beyond the kernel's account, ns: their own way into the device's queue and back, when one request is
    /// under way and when [`CROWD`] are.
    pub outside: [f64; 2],
    /// And of each byte, ns: the pages of a large buffer are pinned before, and let go after.
    pub outside_per_byte: f64,
    /// By how much the way scatters, ns of standard deviation, alone and in a crowd.
    pub scatter: [f64; 2],
    /// When the last look at each direction was, and how many of its requests were under way on average before it.
    at: [Nanos; 2],
    busy: [f64; 2],
    /// What reads and writes were owed so far, and what kernel and emulator had counted at the last look.
    owed: [Sum; 2],
    looked: [[Sum; 2]; 2],
}

impl Way {
    /// As measured at the start.
    pub fn new(base: f64, per_byte: f64, outside: [f64; 2]) -> Self {
        let outside = [0, 1].map(|at| f64::min(outside[at], MOST_OUTSIDE[at]));
        Way { base: [base; 2], most: base + MOST_MORE, per_byte, outside, flush: base, ..Way::default() }
    }

    /// The account's requests so far are not the device's.
    pub fn begin(&mut self, now: Nanos, kernel: [Sum; 2]) {
        self.at = [now; 2];
        for (looked, kernel) in self.looked.iter_mut().zip(kernel) {
            *looked = [kernel, Sum::default()];
        }
    }

    /// What is taken off before and after the model.
    pub fn halves(&self, act: Act, len: u64) -> (f64, f64) {
        let half = self.base[usize::from(act != Act::Read)] / 2.0;
        match act {
            Act::Read => (half, half + self.per_byte * len as f64),
            Act::Write => (half + self.per_byte * len as f64, half),
            Act::Flush => (self.flush / 2.0, self.flush / 2.0),
            Act::Trim => (half, half),
        }
    }

    /// A read or write is answered so late that should have taken so long, the floor and stalls included.
    pub fn answered(&mut self, read: bool, owed: Nanos, late: Nanos) {
        let sum = &mut self.owed[usize::from(!read)];
        sum.requests += 1;
        sum.nanos += owed.0 as f64 + (late.0 as f64 - LATE).max(0.0);
    }

    /// What is outside now, ns.
    pub fn outside(&self) -> f64 {
        between(self.outside, self.under_way())
    }

    /// How many requests are under way, on average since the last look.
    pub fn under_way(&self) -> f64 {
        self.busy.iter().sum()
    }

    /// Whether requests come one at a time: each when the program has seen the answer to the one before. Not known before the
    /// first look.
    pub fn is_one_at_a_time(&self) -> bool {
        (f64::MIN_POSITIVE..ALONE).contains(&self.under_way())
    }

    /// By how much the way scatters now, ns of standard deviation.
    pub fn scatter(&self) -> f64 {
        between(self.scatter, self.under_way())
    }

    /// Holds the kernel's account at this moment against what was owed.
    pub fn look(&mut self, now: Nanos, kernel: [Sum; 2]) {
        for (side, taken) in kernel.into_iter().enumerate() {
            let owed = self.owed[side];
            let [taken_before, owed_before] = self.looked[side];
            let (took, due) = (taken.since(taken_before), owed.since(owed_before));
            let since = now.0.saturating_sub(self.at[side].0);
            // By Little's law.
            let busy = took.nanos / since.max(1) as f64;
            if took.requests.min(due.requests) < LEAST && took.requests.abs_diff(due.requests) < LEAST {
                if since > STALE {
                    self.busy[side] = busy;
                }
                continue;
            }
            self.looked[side] = [taken, owed];
            self.at[side] = now;
            self.busy[side] = busy;
            if agree(took.requests, due.requests) {
                let outside = self.outside() + self.outside_per_byte * took.length();
                let lacks = took.mean() + outside - due.mean();
                self.base[side] = (self.base[side] + GAIN * lacks).clamp(0.0, self.most);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        let line = "    1200        3    96000      870      400        0     6400      512        0      900     1382        0        0        0        0        7        2\n";
        let [reads, writes] = parse(line).unwrap();
        assert_eq!((reads, writes.requests), (Sum { requests: 1200, nanos: 870e6, bytes: 96000 * 512 }, 400));
        assert_eq!(writes.mean(), 1.28e6);
        assert!(parse("12 3 4").is_none() && parse("").is_none());
    }

    /// A device that owes 500 µs, over a way that takes 90 for a read and 130 for a write, of which 10 outside: whatever
    /// the start has measured, the way is found.
    #[test]
    fn the_way_is_followed() {
        let mut way = Way::new(44_000.0, 0.0, [10_000.0, 30_000.0]);
        let mut kernel = [Sum::default(); 2];
        for turn in 1..=20 {
            for (side, truth) in [90_000.0, 130_000.0].into_iter().enumerate() {
                for _ in 0..100 {
                    way.answered(side == 0, Nanos(500_000), Nanos(0));
                    kernel[side].requests += 1;
                    kernel[side].nanos += 490_000.0 + truth - way.base[side];
                }
            }
            // 200 requests of 500 µs in 100 ms: one under way.
            way.look(Nanos(turn * 100_000_000), kernel);
        }
        assert!((way.base[0] - 90_000.0).abs() < 100.0 && (way.base[1] - 130_000.0).abs() < 100.0, "{way:?}");
    }

    /// On a busy machine some answers leave milliseconds late, and requests wait before anybody sees them: the others keep
    /// their times.
    #[test]
    fn another_programs_delays_are_not_made_good() {
        let mut way = Way::new(40_000.0, 0.0, [500_000.0, 900_000.0]);
        assert_eq!(way.outside, MOST_OUTSIDE);
        let mut kernel = [Sum::default(); 2];
        for turn in 1..=20 {
            for i in 0..100 {
                let late = if i % 20 == 0 { 6_000_000 } else { 0 };
                way.answered(true, Nanos(400_000), Nanos(late));
                kernel[0].requests += 1;
                kernel[0].nanos += 400_000.0 + 40_000.0 - way.base[0] - 30_000.0 + late as f64;
            }
            way.look(Nanos(turn * 100_000_000), kernel);
        }
        assert!(way.base[0] < 50_000.0, "{way:?}");
        // Nor is it without bound what comes before.
        for turn in 21..=60 {
            (0..100).for_each(|_| way.answered(true, Nanos(400_000), Nanos(0)));
            kernel[0].requests += 100;
            kernel[0].nanos += 100.0 * 900_000.0;
            way.look(Nanos(turn * 100_000_000), kernel);
        }
        assert_eq!(way.base[0], 190_000.0);
    }

    #[test]
    fn a_direction_that_rests_is_not_busy() {
        let mut way = Way::new(0.0, 0.0, [10.0, 40.0]);
        let reads = Sum { requests: 1000, nanos: 1000.0 * 1.6e6, bytes: 0 };
        (0..1000).for_each(|_| way.answered(true, Nanos(1_600_000), Nanos(0)));
        way.look(Nanos(100_000_000), [reads, Sum::default()]);
        assert_eq!(way.busy, [16.0, 0.0]);
        way.look(Nanos(200_000_000), [reads, Sum::default()]);
        assert_eq!(way.busy[0], 16.0, "it may only be slow");
        way.look(Nanos(400_000_000), [reads, Sum::default()]);
        assert_eq!(way.busy[0], 0.0);
    }

    /// Bug: the first look counted those who had measured the way, and took the device for busy.
    #[test]
    fn what_measured_the_way_is_not_the_devices() {
        let mut way = Way::new(0.0, 0.0, [10.0, 40.0]);
        let measured = Sum { requests: 50_000, nanos: 9e9, bytes: 0 };
        way.begin(Nanos(1_000_000_000), [measured, Sum::default()]);
        way.look(Nanos(1_300_000_000), [measured, Sum::default()]);
        assert_eq!((way.under_way(), way.base), (0.0, [0.0; 2]));
    }

    #[test]
    fn more_is_outside_in_a_crowd() {
        let outside = [0.1, 1.0, 2.0, 4.0, 16.0].map(|busy| between([10.0, 40.0], busy));
        assert_eq!(outside, [10.0, 10.0, 20.0, 40.0, 40.0]);
    }

    #[test]
    fn requests_that_were_split_on_the_way_say_nothing() {
        let mut way = Way::new(44_000.0, 0.0, [0.0; 2]);
        (0..200).for_each(|_| way.answered(true, Nanos(500_000), Nanos(0)));
        way.look(Nanos(1), [Sum { requests: 100, nanos: 100.0 * 900_000.0, bytes: 0 }, Sum::default()]);
        assert_eq!(way.base, [44_000.0; 2]);
        // And the next look begins anew.
        (0..100).for_each(|_| way.answered(true, Nanos(500_000), Nanos(0)));
        way.look(
            Nanos(1),
            [Sum { requests: 200, nanos: 100.0 * 900_000.0 + 100.0 * 510_000.0, bytes: 0 }, Sum::default()],
        );
        assert!((way.base[0] - 48_000.0).abs() < 1.0, "{way:?}");
    }

    #[test]
    fn what_large_buffers_cost_outside_counts_by_the_byte() {
        let mut way = Way::new(40_000.0, 0.0, [0.0; 2]);
        way.outside_per_byte = 0.05;
        let mut kernel = Sum::default();
        for turn in 1..=50 {
            for _ in 0..100 {
                way.answered(true, Nanos(2_500_000), Nanos(0));
                // What the kernel counts is 30 µs beyond the answer; the MiB costs another 52 outside of its account.
                kernel = Sum {
                    requests: kernel.requests + 1,
                    nanos: kernel.nanos + 2_500_000.0 + 30_000.0 - way.base[0],
                    bytes: kernel.bytes + (1 << 20),
                };
            }
            way.look(Nanos(turn * 100_000_000), [kernel, Sum::default()]);
        }
        assert!((way.base[0] - 30_000.0 - 0.05 * f64::from(1 << 20)).abs() < 100.0, "{way:?}");
    }

    #[test]
    fn a_few_requests_wait_for_more() {
        let mut way = Way::new(0.0, 0.0, [0.0; 2]);
        (0..10).for_each(|_| way.answered(false, Nanos(1000), Nanos(0)));
        way.look(Nanos(1), [Sum::default(), Sum { requests: 10, nanos: 1e6, bytes: 0 }]);
        assert_eq!(way.base[1], 0.0);
        (0..60).for_each(|_| way.answered(false, Nanos(1000), Nanos(0)));
        way.look(Nanos(1), [Sum::default(), Sum { requests: 70, nanos: 7e6, bytes: 0 }]);
        assert!(way.base[1] > 0.0);
    }
}
