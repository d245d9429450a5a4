//! A prediction from published figures alone: the interval between classic LRU and replacement at random, over what is not
//! known of the memory that a board leaves.

use super::{Board, FaultPath, Need, Predicted, Tier, between, said};
use basics::units::significant;
use basics::{Bytes, Known};

/// CPU time that the kernel spends on a page that comes from swap, seconds; threads fault side by side (FIELD-NOTES.md 14).
const FAULT_S: f64 = 16e-6;

/// How far weights a second may be from model to model on one machine: eleven models on a Raspberry Pi 5 (README of
/// dambergn/ollama-benchmarks, in the test below) make 9.5 to 11.5·10^9 a second, any two of them at most 21 % apart. In bytes a
/// second they differ by 5.5 to 10.1·10^9: what a core does is by the weight.
pub(super) const FROM_MODEL_TO_MODEL: f64 = 1.2;
/// Types with more bits get more bytes a second, up to what memory gives: Q8_0 1.48 times what that table's models of 4 to 5 bits
/// have on average. More was not seen.
const WIDER_TYPES: f64 = 1.5;
/// How far the rate of the fault path may be from what its formula gives: the rows of the article are met within 22 % by one law
/// (FIELD-NOTES.md 14), and where both laws agree nothing else would say that the rate is not known exactly.
const FAULT_RATE: f64 = 1.2;
/// Numbers of the cache are halves.
const KV_NUMBER: f64 = 2.0;

/// Seconds a token takes on `board` with everything in memory; nothing where its rate is not known.
pub(super) fn in_memory_s(need: &Need, board: &Board) -> Option<f64> {
    let sane = |rate: &Known<f64>| rate.get().copied().filter(|rate| rate.is_finite() && *rate > 0.0);
    let touched = need.touched().0 as f64;
    let numbers = need.multiplied as f64 + (touched - need.weights.0 as f64) / KV_NUMBER;
    let by_bytes = sane(&board.memory_mbps).map(|mbps| touched / (mbps * 1e6));
    let by_weights = sane(&board.weights_per_s).map(|rate| numbers / rate);
    match (by_bytes, by_weights) {
        (Some(bytes), Some(weights)) => Some(weights.max(bytes / WIDER_TYPES)),
        (bytes, weights) => weights.or(bytes),
    }
}

/// Seconds a token takes on `board` beside those in memory, when `misses` of what it touches come back over a fault path of
/// `mbps`.
pub(super) fn waiting_s(need: &Need, board: &Board, misses: f64, mbps: f64) -> f64 {
    let missed = misses * need.touched().0 as f64;
    let cpu = FAULT_S * missed / board.page.0.max(1) as f64 / f64::from(board.threads.max(1));
    missed / (mbps * 1e6) + cpu
}

/// What a model does on a board of which only figures are known, with so much of its RAM taken away and swap on that tier. The
/// weights are taken for anonymous memory, as Ollama has them when memory is short (FIELD-NOTES.md 14).
///
/// From below every page is read again by every token, as with classic LRU and the least memory that may be left, from above what
/// replacement at random misses with the most. A fault gets a page as fast as while nothing is written; how far that may be off,
/// and how far the rate of memory, widens both ends by a fifth.
pub fn predict(need: &Need, tier: &Tier, board: &Board, locked: Bytes) -> Predicted {
    let (least, most) = board.left(locked, need);
    let (cycle, free) = (need.cycle(), between(least, most));
    let held = if need.kv.is_unknown() { "weights alone, the cache is unknown, " } else { "" };
    let needs = format!("{held}{} of the {free} that are left", said(cycle));
    let Some(in_memory) = in_memory_s(need, board) else {
        let why = format!("how fast {} multiplies weights in memory is not known", board.name);
        return Predicted::unknown("memory speed unknown", why);
    };
    let (slow, fast) = (in_memory * FROM_MODEL_TO_MODEL, in_memory / FROM_MODEL_TO_MODEL);
    if cycle <= least {
        let [tps, tps_low, tps_high] = [in_memory, slow, fast].map(|seconds| Known::Is(1.0 / seconds));
        let why = format!("fits: the tier does not matter, it needs {needs}");
        return Predicted { tps, tps_low, tps_high, why };
    }
    if tier.takes_memory {
        let why = format!(
            "does not fit: it needs {needs}, and {} takes from memory what it holds of weights, which do not compress",
            tier.name
        );
        return Predicted::unknown("no room", why);
    }
    let Known::Is(FaultPath { mbps, sequential_mbps, .. }) = tier.path else {
        let why = format!("does not fit, it needs {needs}, and how fast {} reads was not published", tier.name);
        return Predicted::unknown("no reads published", why);
    };
    let misses = need.random_misses(most);
    let tps = |in_memory: f64, misses: f64, mbps: f64| 1.0 / (in_memory + waiting_s(need, board, misses, mbps));
    let fastest = (mbps * FAULT_RATE).min(sequential_mbps).max(mbps);
    let (low, high) = (tps(slow, 1.0, mbps / FAULT_RATE), tps(fast, misses, fastest));
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
        assert!(all.contains(*all.tps.get().unwrap()));
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

    /// Everything fits in this table of a Raspberry Pi 5 (README of dambergn/ollama-benchmarks); its board's rate is taken from one row
    /// and the others are predicted.
    #[test]
    fn published_models_that_fit_are_within_the_interval() {
        let rows = [
            ("deepseek-r1:1.5b", 6.48),
            ("llama3.2:1b", 7.69),
            ("llama3.2:3b", 3.25),
            ("deepseek-r1:7b", 1.53),
            ("llama3.1:8b", 1.43),
            ("qwen2.5:0.5b", 20.35),
            ("qwen2.5:1.5b", 7.49),
            ("qwen2.5:3b", 3.59),
            ("qwen2.5:7b", 1.61),
            ("phi3:3.8b", 2.6),
            ("gemma2:2b", 4.2),
        ];
        let first = need(rows[0].0);
        let (mbps, weights) = (first.touched().0 as f64 * rows[0].1 / 1e6, first.multiplied as f64 * rows[0].1);
        let board = Board { memory_mbps: Known::Is(mbps), weights_per_s: Known::Is(weights), ..pi5(Bytes(16 * GIB)) };
        for (name, published) in rows {
            let found = predict(&need(name), &tier("sd-evo-pi5"), &board, Bytes(0));
            assert!(found.contains(published), "{name}: {published}, {found:?}");
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
        (board.memory_mbps, board.weights_per_s) = (Known::not_measured("no"), Known::default());
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
