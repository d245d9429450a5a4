//! A prediction from published figures alone: the interval between classic LRU and replacement at random, over what is not
//! known of the memory that a board leaves.

use super::{Board, FaultPath, Need, Predicted, Tier, between, said};
use basics::units::significant;
use basics::{Bytes, Known};

/// CPU time that the kernel spends on a page that comes from swap, seconds; threads fault side by side (FIELD-NOTES.md 14).
const FAULT_S: f64 = 16e-6;

/// Seconds a token takes on `board` when `misses` of what it touches come back over a fault path of `mbps`.
pub(super) fn seconds(need: &Need, board: &Board, memory_mbps: f64, misses: f64, mbps: f64) -> f64 {
    let touched = need.touched().0 as f64;
    let missed = misses * touched;
    let cpu = FAULT_S * missed / board.page.0.max(1) as f64 / f64::from(board.threads.max(1));
    touched / (memory_mbps * 1e6) + missed / (mbps * 1e6) + cpu
}

/// What a model does on a board of which only figures are known, with so much of its RAM taken away and swap on that tier. The
/// weights are taken for anonymous memory, as Ollama has them when memory is short (FIELD-NOTES.md 14).
///
/// From below every page is read again by every token, as with classic LRU and the least memory that may be left, from above what
/// replacement at random misses with the most. A fault gets a page as fast as while nothing is written.
pub fn predict(need: &Need, tier: &Tier, board: &Board, locked: Bytes) -> Predicted {
    let (least, most) = board.left(locked, need);
    let (cycle, free) = (need.cycle(), between(least, most));
    let held = if need.kv.is_unknown() { "weights alone, the cache is unknown, " } else { "" };
    let needs = format!("{held}{} of the {free} that are left", said(cycle));
    let Some(memory_mbps) = board.memory_mbps.get().copied().filter(|rate| *rate > 0.0) else {
        let why = format!("how fast {} multiplies weights in memory is not known", board.name);
        return Predicted::unknown("memory speed unknown", why);
    };
    let tps = |misses: f64, mbps: f64| 1.0 / seconds(need, board, memory_mbps, misses, mbps);
    if cycle <= least {
        let all = || Known::Is(tps(0.0, 1.0));
        let why = format!("fits: the tier does not matter, it needs {needs}");
        return Predicted { tps: all(), tps_low: all(), tps_high: all(), why };
    }
    if tier.takes_memory {
        let why = format!(
            "does not fit: it needs {needs}, and {} takes from memory what it holds of weights, which do not compress",
            tier.name
        );
        return Predicted::unknown("no room", why);
    }
    let Known::Is(FaultPath { mbps, .. }) = tier.path else {
        let why = format!("does not fit, it needs {needs}, and how fast {} reads was not published", tier.name);
        return Predicted::unknown("no reads published", why);
    };
    let misses = need.random_misses(most);
    let (low, high) = (tps(1.0, mbps), tps(misses, mbps));
    let touched = need.touched();
    let again = between(Bytes((misses * touched.0 as f64) as u64), touched);
    let rate = significant(mbps);
    let why = if cycle <= most {
        format!(
            "on the edge: it needs {needs}; if it fits the tier does not matter, else every token reads up to {} from {} at {rate} MB/s",
            said(touched),
            tier.name
        )
    } else {
        format!("thrash: every token reads {again} from {} at {rate} MB/s; it needs {needs}", tier.name)
    };
    Predicted { tps: Known::Is((low * high).sqrt()), tps_low: Known::Is(low), tps_high: Known::Is(high), why }
}

#[cfg(test)]
mod tests {
    use super::super::{Usage, pi5};
    use super::*;
    use basics::units::GIB;

    fn need(name: &str) -> Need {
        Need::named(name, Usage::default()).unwrap()
    }

    fn tier(name: &str) -> Tier {
        Tier::of(profile::find(name).unwrap(), Bytes(16_384))
    }

    const LOCKED: Bytes = Bytes(2_800_000_000);

    #[test]
    fn what_fits_does_not_ask_for_the_tier() {
        let board = pi5(Bytes(4 * GIB));
        let on = |name: &str| predict(&need("gemma2:2b"), &tier(name), &board, Bytes(0));
        assert_eq!(on("optane-pi5"), on("sd-evo-pi5"));
        assert_eq!(on("optane-pi5"), on("p3700"));
        let all = on("zram-pi5");
        assert_eq!((&all.tps_low, &all.tps_high), (&all.tps, &all.tps));
        assert!((4.5..5.5).contains(all.tps.get().unwrap()), "{all:?}");
        assert!(all.why.starts_with("fits: the tier does not matter"), "{}", all.why);
    }

    #[test]
    fn a_slower_tier_a_larger_model_and_less_memory_are_never_faster() {
        let board = pi5(Bytes(4 * GIB));
        let ends = |model: &str, on: &str, locked: u64| {
            let found = predict(&need(model), &tier(on), &board, Bytes(locked));
            (found.tps_low.into_option().unwrap(), found.tps_high.into_option().unwrap())
        };
        let falls = |faster: (f64, f64), slower: (f64, f64)| {
            assert!(slower.0 <= faster.0 && slower.1 <= faster.1, "{faster:?} {slower:?}");
            assert!(slower.0 <= slower.1 && slower.0 > 0.0);
        };
        falls(ends("gemma2:2b", "optane-pi5", LOCKED.0), ends("gemma2:2b", "nvme-usb3-pi5", LOCKED.0));
        falls(ends("gemma2:2b", "nvme-usb3-pi5", LOCKED.0), ends("gemma2:2b", "sd-evo-pi5", LOCKED.0));
        falls(ends("gemma2:2b", "optane-pi5", LOCKED.0), ends("qwen2.5:7b", "optane-pi5", LOCKED.0));
        for gigabytes in 0..5 {
            let locked = gigabytes * 1_000_000_000;
            falls(ends("llama3.2:3b", "optane-pi5", locked), ends("llama3.2:3b", "optane-pi5", locked + 1_000_000_000));
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut board = pi5(Bytes(4 * GIB));
        let unread = predict(&need("qwen2.5:3b"), &tier("p3700"), &board, LOCKED);
        assert_eq!(unread.tps.to_string(), "no reads published");
        assert!(unread.why.contains("p3700 reads was not published"), "{}", unread.why);
        let zram = predict(&need("qwen2.5:3b"), &tier("zram-pi5"), &board, LOCKED);
        assert!(zram.tps.is_unknown() && zram.why.contains("do not compress"), "{}", zram.why);
        board.memory_mbps = Known::not_measured("no");
        let found = predict(&need("qwen2.5:3b"), &tier("optane-pi5"), &board, LOCKED);
        assert!(found.tps_high.is_unknown() && !found.contains(0.2), "{found:?}");
    }

    /// Of a model that may fit or not the interval reaches from one to the other, and the sentence says so.
    #[test]
    fn on_the_edge_both_may_be_true() {
        let board = pi5(Bytes(4 * GIB));
        let model = need("deepseek-r1:1.5b");
        let locked = Bytes(4 * GIB - model.cycle().0 - model.resident.0 - 300_000_000);
        let found = predict(&model, &tier("sd-evo-pi5"), &board, locked);
        assert!(found.contains(8.0) && found.contains(0.1), "{found:?}");
        assert!(found.why.starts_with("on the edge"), "{}", found.why);
    }
}
