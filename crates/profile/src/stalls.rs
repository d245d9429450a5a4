//! Moments at which nothing moves: a device collecting garbage. When they come is seeded.

use crate::distribution::unit;
use crate::format::Stall;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// The stalls of a device. Times are ns on its clock.
#[derive(Debug, Clone)]
pub(crate) struct Stalls {
    laws: Vec<Stall>,
    seed: u64,
}

impl Stalls {
    pub(crate) fn new(laws: &[Stall], seed: u64) -> Self {
        Stalls { laws: laws.to_vec(), seed }
    }

    /// When something that begins at `start` and takes `time` is done, stalls included.
    pub(crate) fn done(&self, start: f64, time: f64) -> f64 {
        let mut done = start + time;
        for (which, stall) in self.laws.iter().enumerate() {
            let (period, length) = (stall.period_ms * 1e6, stall.length_ms * 1e6);
            // A stall strays forward only, at most up to where the next may begin.
            let stray = |k: u64| {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (k << 8) ^ which as u64);
                unit(&mut rng) * stall.spread * (period - length)
            };
            // The first comes after a whole period.
            let mut k = ((start / period) as u64).max(1);
            loop {
                let begins = k as f64 * period + stray(k);
                if begins >= done {
                    break;
                }
                let ends = begins + length;
                if ends > start {
                    // What is under way freezes for as long as the stall lasts from then on.
                    done += ends - begins.max(start);
                }
                k += 1;
            }
        }
        done
    }

    /// When the medium is done that begins at `start`, and there is room for what has `arrived`.
    pub(crate) fn done_with_room(&self, start: f64, time: f64, arrived: f64, room: f64) -> f64 {
        let waits = arrived.max(start);
        self.done(start, time).max(self.done(waits, (room - waits).max(0.0)))
    }
}
