//! When operations are due, and waiting for that moment. In open loop the schedule does not know how the target fares: an
//! operation that could not be sent in time keeps its intended time, and its latency counts from there.

use basics::job::Pacing;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use sys::clock::{Clock, Rate};

/// Before this much is left a waiting thread sleeps, then it spins: a sleeper wakes up to 60 µs late (FIELD-NOTES.md 15),
/// and that would count as latency.
pub(crate) const SPIN: Duration = Duration::from_micros(60);
/// The longest sleep at a stretch, so that a cancelled job ends soon.
const NAP: Duration = Duration::from_millis(20);

/// The schedule of one thread, in ticks.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Ticks since the start; a fraction of a tick adds up at a million operations a second.
    next: f64,
    gap: f64,
    poisson: Option<Xoshiro256PlusPlus>,
}

impl Schedule {
    /// The part of thread `index` of `threads`; nothing in closed loop.
    pub(crate) fn new(pacing: Pacing, index: u32, threads: u32, seed: u64, rate: Rate) -> Option<Self> {
        let (iops, poisson) = match pacing {
            Pacing::Closed => return None,
            Pacing::Fixed { iops } => (iops, false),
            Pacing::Poisson { iops } => (iops, true),
        };
        let gap = rate.ticks(1e9 * f64::from(threads) / iops);
        // The sum of independent Poisson streams is one; fixed streams are shifted against each other.
        let next = if poisson { 0.0 } else { gap * f64::from(index) / f64::from(threads) };
        let seed = seed.wrapping_mul(31).wrapping_add(u64::from(index) << 40);
        let mut schedule = Schedule { next, gap, poisson: poisson.then(|| Xoshiro256PlusPlus::seed_from_u64(seed)) };
        if poisson {
            schedule.advance();
        }
        Some(schedule)
    }
    /// When the next operation is due, in ticks since the start.
    pub(crate) fn due(&self) -> u64 {
        self.next as u64
    }
    /// On to the one after.
    pub(crate) fn advance(&mut self) {
        self.next += match &mut self.poisson {
            None => self.gap,
            Some(rng) => {
                let unit: f64 = Exp1.sample(rng);
                self.gap * unit
            }
        };
    }
    /// Operations due before `end` (ticks since the start) that were never sent.
    pub(crate) fn missed(&self, end: u64) -> u64 {
        ((end as f64 - self.next) / self.gap).max(0.0) as u64
    }
}

/// Waits until `due`; returns the time, or nothing when `stop` was set meanwhile.
pub(crate) fn wait_until(due: u64, clock: Clock, rate: Rate, stop: &AtomicBool) -> Option<u64> {
    loop {
        let now = clock.ticks();
        if now >= due {
            return Some(now);
        }
        if stop.load(Relaxed) {
            return None;
        }
        let left = Duration::from_nanos(rate.nanos((due - now) as f64) as u64);
        if left > SPIN {
            std::thread::sleep((left - SPIN).min(NAP));
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(pacing: Pacing, index: u32, threads: u32, n: usize) -> Vec<u64> {
        let rate = Clock::kernel().rate();
        let mut schedule = Schedule::new(pacing, index, threads, 1, rate).unwrap();
        let take = |_| {
            let due = schedule.due();
            schedule.advance();
            due
        };
        (0..n).map(take).collect()
    }

    #[test]
    fn a_fixed_rate_is_shared_evenly() {
        let mut all =
            [times(Pacing::Fixed { iops: 1e6 }, 0, 2, 3), times(Pacing::Fixed { iops: 1e6 }, 1, 2, 3)].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1000, 2000, 3000, 4000, 5000]);
        let rate = Clock::kernel().rate();
        assert!(Schedule::new(Pacing::Closed, 0, 1, 1, rate).is_none());
    }

    /// Exponential gaps: mean as asked, and as wide as the mean.
    #[test]
    fn poisson_gaps_are_exponential() {
        let due = times(Pacing::Poisson { iops: 1e6 }, 0, 1, 20_000);
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = basics::stats::mean(&gaps).unwrap();
        let variation = basics::stats::variation(&gaps).unwrap();
        assert!((mean / 1000.0 - 1.0).abs() < 0.03, "{mean}");
        assert!((variation - 1.0).abs() < 0.05, "{variation}");
    }

    #[test]
    fn waiting_ends_in_time_or_when_stopped() {
        let clock = Clock::best();
        let rate = clock.rate();
        let due = clock.ticks() + rate.ticks(3e6) as u64;
        let now = wait_until(due, clock, rate, &AtomicBool::new(false)).unwrap();
        assert!(now >= due);
        assert_eq!(wait_until(u64::MAX, clock, rate, &AtomicBool::new(true)), None);
    }
}
