//! The order in which a region's blocks are visited. A permutation needs no memory: three keyed rounds of invertible
//! steps shuffle the numbers below the next power of two, and numbers beyond the region are shuffled again until they
//! fall inside ("cycle walking", Black & Rogaway, *Ciphers with Arbitrary Finite Domains*, 2002).

use basics::job::Order;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A seeded permutation of `0..n`.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    n: u64,
    mask: u64,
    shift: u32,
    /// For each round an odd factor and a summand.
    keys: [(u64, u64); 3],
}

impl Permutation {
    pub(crate) fn new(n: u64, rng: &mut Xoshiro256PlusPlus) -> Self {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(1);
        Permutation {
            n: n.max(1),
            mask: u64::MAX >> (64 - bits),
            shift: bits.div_ceil(2),
            keys: [(); 3].map(|()| (rng.next_u64() | 1, rng.next_u64())),
        }
    }
    /// The number at `index` (below `n`).
    #[inline(always)]
    pub(crate) fn at(&self, index: u64) -> u64 {
        let mut x = index;
        loop {
            for (factor, summand) in self.keys {
                // Each step can be undone modulo the power of two: an odd factor, a shift by half of the bits, a sum.
                x = x.wrapping_mul(factor).wrapping_add(summand) & self.mask;
                x ^= x >> self.shift;
            }
            // More than half of all numbers are inside, so this ends, after less than one extra turn on average.
            if x < self.n {
                return x;
            }
        }
    }
}

/// Gives one block number after the other.
#[derive(Debug)]
pub(crate) struct Visits {
    n: u64,
    next: u64,
    rng: Xoshiro256PlusPlus,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Sequential,
    Permuted(Permutation),
    Uniform,
    Strided(u64),
    Zipf { law: Zipf<f64>, scatter: Permutation },
}

/// A number below `n`, all equally likely but for a bias of n / 2^64 (Lemire, *Fast Random Integer Generation in an
/// Interval*, 2019, without the rejection).
#[inline]
pub(crate) fn below(n: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(n)) >> 64) as u64
}

impl Visits {
    /// Over `n` (at least 1) blocks.
    pub(crate) fn new(order: Order, n: u64, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let kind = match order {
            Order::Sequential => Kind::Sequential,
            Order::Permuted => Kind::Permuted(Permutation::new(n, &mut rng)),
            Order::Uniform => Kind::Uniform,
            Order::Strided { places, .. } => Kind::Strided(u64::from(places)),
            Order::Zipf { theta } => match Zipf::new(n as f64, theta) {
                Ok(law) => Kind::Zipf { law, scatter: Permutation::new(n, &mut rng) },
                // `Job::check` has refused every exponent that the law refuses.
                Err(_) => Kind::Uniform,
            },
        };
        Visits { n, next: 0, rng, kind }
    }
    /// The next block.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        match &mut self.kind {
            Kind::Sequential => step(&mut self.next, self.n),
            Kind::Permuted(permutation) => {
                let block = permutation.at(step(&mut self.next, self.n));
                if self.next == 0 {
                    *permutation = Permutation::new(self.n, &mut self.rng);
                }
                block
            }
            Kind::Uniform => below(self.n, &mut self.rng),
            Kind::Strided(places) => {
                let place = step(&mut self.next, *places);
                (u128::from(place) * u128::from(self.n) / u128::from(*places)) as u64
            }
            Kind::Zipf { law, scatter } => {
                let rank = law.sample(&mut self.rng) as u64;
                scatter.at(rank.clamp(1, self.n) - 1)
            }
        }
    }
}

impl Visits {
    /// In sequential order, leaves out the next `blocks`: an operation has covered them.
    #[inline]
    pub(crate) fn skip(&mut self, blocks: u64) {
        if let Kind::Sequential = self.kind {
            // At 0 the operation has ended the region; there is nothing to leave out.
            self.next = if self.next == 0 { 0 } else { (self.next + blocks) % self.n };
        }
    }
}

/// Counts on, and begins again after the last.
#[inline]
fn step(next: &mut u64, n: u64) -> u64 {
    let index = *next;
    *next = if index + 1 == n { 0 } else { index + 1 };
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each block exactly once a pass, in each of two passes, for any size.
        #[test]
        fn a_permutation_visits_each_block_once(n in 1u64..5000, seed: u64) {
            let mut visits = Visits::new(Order::Permuted, n, seed);
            for _pass in 0..2 {
                let mut seen = vec![false; n as usize];
                for _ in 0..n {
                    let block = visits.next() as usize;
                    prop_assert!(!std::mem::replace(&mut seen[block], true), "block {} twice", block);
                }
            }
        }
    }

    /// Neighbours in the order are no neighbours on the disk: distances spread evenly over the region.
    #[test]
    fn a_permutation_looks_random() {
        const N: u64 = 100_003;
        let mut visits = Visits::new(Order::Permuted, N, 7);
        let mut distances = [0u32; 16];
        let mut last = visits.next();
        for _ in 1..N {
            let block = visits.next();
            distances[(((block + N - last) % N) * 16 / N) as usize] += 1;
            last = block;
        }
        let expected = N as f64 / 16.0;
        let chi2: f64 = distances.iter().map(|&d| (f64::from(d) - expected).powi(2) / expected).sum();
        // 15 degrees of freedom: 37.7 is exceeded once in a thousand; a lattice gives tens of thousands.
        assert!(chi2 < 60.0, "chi² {chi2}: {distances:?}");
    }

    #[test]
    fn two_passes_and_two_seeds_differ() {
        let take = |seed| -> Vec<u64> {
            let mut visits = Visits::new(Order::Permuted, 1000, seed);
            (0..2000).map(|_| visits.next()).collect()
        };
        let (a, b) = (take(1), take(2));
        assert_ne!(a[..1000], a[1000..]);
        assert_ne!(a, b);
        assert_eq!(a, take(1));
    }

    /// With exponent 1.2 over 10,000 blocks the favourite takes 1/ζ, ζ = Σ k^-1.2 ≈ 4.8: 21 %, and is anywhere.
    #[test]
    fn zipf_is_skewed_as_its_exponent_says() {
        let mut visits = Visits::new(Order::Zipf { theta: 1.2 }, 10_000, 3);
        let mut counts = vec![0u32; 10_000];
        for _ in 0..100_000 {
            counts[visits.next() as usize] += 1;
        }
        let zeta: f64 = (1..=10_000).map(|k| f64::from(k).powf(-1.2)).sum();
        let favourite = counts.iter().position(|c| Some(c) == counts.iter().max()).unwrap();
        let share = f64::from(counts[favourite]) / 100_000.0;
        assert!((share * zeta - 1.0).abs() < 0.05, "{share} instead of {}", 1.0 / zeta);
        assert_ne!(favourite, 0, "the favourites are scattered");
        let mut sorted = counts.clone();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let second = f64::from(sorted[1]) / 100_000.0;
        assert!((second * zeta * 2f64.powf(1.2) - 1.0).abs() < 0.1);
    }

    /// Place n of so many is n · length / places, floored; after the last the first comes again.
    #[test]
    fn strided_places_are_at_equal_distances() {
        let mut visits = Visits::new(Order::Strided { places: 4, align: basics::Bytes(1) }, 10, 3);
        assert_eq!([(); 5].map(|()| visits.next()), [0, 2, 5, 7, 0]);
    }

    #[test]
    fn uniform_covers_all() {
        let mut visits = Visits::new(Order::Uniform, 10, 3);
        let mut counts = [0u32; 10];
        (0..10_000).for_each(|_| counts[visits.next() as usize] += 1);
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
    }
}
