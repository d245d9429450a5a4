//! What share of a cyclic scan is read again each round, by the law after which a kernel chooses what to drop. The truth on a
//! machine lies between the two laws here or is measured.

/// Share of what is touched that is missed each round when the page to be dropped is drawn at random: m = 1 − exp(−m·x) with
/// x = touched / memory left for it (FIELD-NOTES.md 14; a page survives the m·x·A pages that are brought in between two touches
/// of it, each of which drops one of A at random). Nothing up to x = 1, beyond it between 1 − 1/x (the best that any law can
/// do) and 1. Classic LRU misses everything as soon as x is above 1.
pub fn random_misses(x: f64) -> f64 {
    if x.is_nan() || x <= 1.0 {
        return 0.0;
    }
    if x.is_infinite() {
        return 1.0;
    }
    // 1 − exp(−m·x) − m is above 0 at the lower end, below 0 at the upper one, and crosses once.
    let (mut low, mut high) = (1.0 - 1.0 / x, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 1.0 - f64::exp(-middle * x) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_not_missed_and_what_is_far_too_large_is() {
        assert_eq!((random_misses(0.5), random_misses(1.0), random_misses(f64::NAN)), (0.0, 0.0, 0.0));
        assert!(random_misses(1.001) < 0.01 && random_misses(20.0) > 0.999 && random_misses(f64::INFINITY) == 1.0);
        // 1 − exp(−0.7968 × 2) is 0.7968.
        assert!((random_misses(2.0) - 0.7968).abs() < 1e-4);
    }

    /// The law against what it is the law of: pages dropped at random under a cyclic scan.
    #[test]
    fn a_simulated_scan_misses_as_much() {
        let (pages, room) = (3000_usize, 2000_usize);
        let mut kept = vec![false; pages];
        let mut slots: Vec<usize> = Vec::new();
        let (mut state, mut missed, mut touched) = (1u64, 0, 0);
        for round in 0..60 {
            for page in 0..pages {
                touched += usize::from(round >= 20);
                if kept[page] {
                    continue;
                }
                missed += usize::from(round >= 20);
                kept[page] = true;
                if slots.len() < room {
                    slots.push(page);
                    continue;
                }
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let slot = (state >> 33) as usize % room;
                kept[slots[slot]] = false;
                slots[slot] = page;
            }
        }
        let found = missed as f64 / touched as f64;
        assert!((found - random_misses(1.5)).abs() < 0.02, "{found}, by the law {}", random_misses(1.5));
    }

    proptest! {
        #[test]
        fn it_rises_with_the_lack_of_memory(x in 1.0f64..50.0, more in 0.01f64..5.0) {
            let misses = random_misses(x);
            prop_assert!((1.0 - 1.0 / x - 1e-9..=1.0).contains(&misses));
            prop_assert!(random_misses(x + more) >= misses);
        }
    }
}
