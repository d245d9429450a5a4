//! Which vector is asked for next: a few often, most seldom.

use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A prime beyond any count of vectors that fits into RAM, so that its multiples go through all of them.
const PRIME: u64 = 1_099_511_627_791;

/// Draws by a Zipf law, with the popular ones spread over all.
#[derive(Debug, Clone)]
pub struct Popularity {
    count: u64,
    /// None where all are alike.
    law: Option<Zipf<f64>>,
    rng: Xoshiro256PlusPlus,
}

impl Popularity {
    /// Of so many vectors, by an exponent; 0 is all alike.
    pub fn new(count: u64, theta: f64, seed: u64) -> Self {
        let law = (theta > 0.0).then(|| Zipf::new(count.max(1) as f64, theta).ok()).flatten();
        Popularity { count: count.max(1), law, rng: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        let rank = match &self.law {
            Some(law) => (law.sample(&mut self.rng) as u64).saturating_sub(1).min(self.count - 1),
            None => ((u128::from(self.rng.next_u64()) * u128::from(self.count)) >> 64) as u64,
        };
        (u128::from(rank) * u128::from(PRIME) % u128::from(self.count)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_asked_for_often() {
        let mut seen = vec![0u32; 1000];
        let mut popularity = Popularity::new(1000, 1.0, 1);
        (0..100_000).for_each(|_| seen[popularity.draw() as usize] += 1);
        let first = seen[0];
        seen.sort_unstable_by(|a, b| b.cmp(a));
        // Zipf with exponent 1: the first of 1000 has 1 of 7.49.
        assert_eq!(first, seen[0]);
        assert!((12_500..14_500).contains(&seen[0]), "{}", seen[0]);
        assert!(seen.iter().filter(|seen| **seen > 0).count() > 950);
        let mut alike = Popularity::new(10, 0.0, 1);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[alike.draw() as usize] += 1);
        assert!(seen.iter().all(|seen| (850..1150).contains(seen)), "{seen:?}");
    }
}
