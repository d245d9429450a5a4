//! The stop rule "until the figure is known to so many per cent". Whoever looks at an interval after every value and stops
//! at the first that is narrow picks those that are narrow by chance, and they miss the truth too often. So the looks are
//! few, each at a quarter more values than the one before, and two in a row must agree.

use basics::stats;

/// Values of the series that are kept; beyond it, neighbours are joined, so that memory is bounded.
const MOST: usize = 4096;
/// Values before the first look: with fewer, the correlation of neighbours is hardly known.
const FIRST_LOOK: usize = 20;
/// A look is satisfied by this part of the width asked for: what choosing the moment costs in honesty, so that the width
/// that is promised still holds the truth in nine runs of ten (simulated: see the test).
const MARGIN: f64 = 0.8;
/// Narrow intervals in a row that end the job.
const AGREEING: u32 = 2;

/// The values of a figure, interval by interval, and what the looks at them have shown.
#[derive(Debug)]
pub(crate) struct Series {
    values: Vec<f64>,
    /// Intervals that one value stands for, and the sum and number of those gathered for the next.
    stride: usize,
    pending: (f64, usize),
    /// All values that came, and at how many of them the next look is.
    seen: usize,
    next_look: usize,
    narrow: u32,
}

impl Series {
    pub(crate) fn new() -> Self {
        Series {
            values: Vec::with_capacity(MOST),
            stride: 1,
            pending: (0.0, 0),
            seen: 0,
            next_look: FIRST_LOOK,
            narrow: 0,
        }
    }

    /// Takes the next value; true when the mean of all is known to `percent` of itself with 95 % confidence.
    pub(crate) fn is_known(&mut self, value: f64, percent: f64) -> bool {
        self.seen += 1;
        self.pending = (self.pending.0 + value, self.pending.1 + 1);
        if self.pending.1 == self.stride {
            self.values.push(self.pending.0 / self.stride as f64);
            self.pending = (0.0, 0);
        }
        if self.values.len() == MOST {
            let joined = self.values.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect::<Vec<_>>();
            self.values.clear();
            self.values.extend(joined);
            self.stride *= 2;
        }
        if self.seen >= self.next_look {
            self.next_look = self.seen + self.seen / 4;
            let is_narrow = stats::batch_means(&self.values).is_some_and(|known| known.percent() <= MARGIN * percent);
            self.narrow = if is_narrow { self.narrow + 1 } else { 0 };
        }
        self.narrow >= AGREEING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Runs the rule on a first-order process of mean 100 and unit shocks, stationary from the start; the interval that
    /// it stopped at.
    fn stopped(rho: f64, percent: f64, rng: &mut Xoshiro256PlusPlus) -> stats::Interval {
        let mut shock = || (0..12).map(|_| rng.next_u64() as f64 / u64::MAX as f64).sum::<f64>() - 6.0;
        let mut x = shock() / (1.0 - rho * rho).sqrt();
        let mut series = Series::new();
        while !series.is_known(100.0 + x, percent) {
            x = rho * x + shock();
        }
        stats::batch_means(&series.values).unwrap()
    }

    /// Whether the rule stops at its first chance or late, the width that it promises holds the truth.
    #[test]
    fn stated_intervals_hold_the_truth() {
        const RUNS: u32 = 1000;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut all = String::new();
        let mut worst = 1.0f64;
        for rho in [0.0, 0.5, 0.8] {
            for percent in [10.0, 1.0, 0.5, 0.3] {
                let holds = |_: &u32| {
                    let interval = stopped(rho, percent, &mut rng);
                    (interval.mean - 100.0).abs() <= percent / 100.0 * interval.mean
                };
                let share = (0..RUNS).filter(holds).count() as f64 / f64::from(RUNS);
                all += &format!("rho {rho}, to {percent} %: {share}\n");
                worst = worst.min(share);
            }
        }
        assert!(worst >= 0.9, "{all}");
    }

    /// One narrow look is not enough, and between looks nothing is decided.
    #[test]
    fn it_takes_two_looks() {
        let mut series = Series::new();
        let known = (1..).find(|n| series.is_known(100.0 + f64::from(n % 2), 5.0));
        assert_eq!(known, Some(25));
    }
}
