//! The slowest requests of a thread, by themselves: as many as asked for, in memory that is taken before the first is sent. To look
//! whether one belongs to them costs a comparison.

use basics::Nanos;
use basics::outcome::Slow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use sys::clock::Rate;

/// Ticks: how long it took, when it was due, when it was sent, and whether it was a read.
type Kept = Reverse<(u64, u64, u64, bool)>;

#[derive(Debug)]
pub(crate) struct Slowest {
    most: usize,
    /// The quickest of them on top.
    kept: BinaryHeap<Kept>,
    /// Only what takes longer belongs to them.
    bar: u64,
}

impl Slowest {
    /// Room for so many.
    pub(crate) fn new(most: usize) -> Self {
        Slowest { most, kept: BinaryHeap::with_capacity(most + 1), bar: if most == 0 { u64::MAX } else { 0 } }
    }

    /// Does one that took so many ticks belong to them?
    #[inline(always)]
    pub(crate) fn takes(&self, took: u64) -> bool {
        took > self.bar
    }

    /// One that does.
    #[cold]
    pub(crate) fn keep(&mut self, due: u64, begin: u64, now: u64, read: bool) {
        self.kept.push(Reverse((now.saturating_sub(due), due, begin, read)));
        if self.kept.len() > self.most {
            self.kept.pop();
            self.bar = self.kept.peek().map_or(u64::MAX, |Reverse(least)| least.0);
        }
    }

    /// All of them, with times since `measure`.
    pub(crate) fn told(self, thread: u32, measure: u64, rate: Rate) -> impl Iterator<Item = Slow> {
        let nanos = move |ticks: u64| Nanos(rate.nanos(ticks as f64) as u64);
        let counts = move |kept: &Kept| kept.0.1 >= measure;
        self.kept.into_iter().filter(counts).map(move |Reverse((took, due, begin, read))| Slow {
            thread,
            read,
            at: nanos(due - measure),
            waited: nanos(begin.saturating_sub(due)),
            latency: nanos(took),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_stay() {
        let rate = sys::clock::Clock::kernel().rate();
        let mut slowest = Slowest::new(3);
        for took in [5, 1, 9, 7, 2, 8, 3] {
            if slowest.takes(took) {
                slowest.keep(100, 102, 100 + took, true);
            }
        }
        // One of the warm-up.
        slowest.keep(10, 10, 5000, true);
        let mut told: Vec<u64> = slowest.told(4, 50, rate).map(|slow| slow.latency.0).collect();
        told.sort_unstable();
        assert_eq!(told, [8, 9]);
        assert!(!Slowest::new(0).takes(u64::MAX - 1));
        let mut one = Slowest::new(1);
        one.keep(100, 102, 107, false);
        let told: Vec<Slow> = one.told(4, 50, rate).collect();
        let slow = Slow { thread: 4, read: false, at: Nanos(50), waited: Nanos(2), latency: Nanos(7) };
        assert_eq!(told, [slow]);
    }
}
