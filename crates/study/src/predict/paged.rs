//! What the pager (docs/pager.md) would make of a model on a tier: the disk's sequential rate for what is not kept, beside
//! multiplying instead of after it.

use super::figures::{FROM_MODEL_TO_MODEL, in_memory_s};
use super::{Board, Need, Predicted, Probe, Tier, between, said};
use basics::units::significant;
use basics::{Bytes, Known};

/// Of the memory that is left, kept for good, least and most: 0.90 of a mapped model's, 0.96 of Ollama's own weights, 0.97 of a scan's
/// were (docs/pager.md); the rest is what comes in and goes out.
const KEPT: [f64; 2] = [0.90, 0.97];
/// Of the disk's sequential rate, reached: 91 to 97 % of it were.
const REACHED: [f64; 2] = [0.90, 1.0];
/// Of the speed in memory, where that is the limit: the pager takes 1 ms of a processor for each MB.
const BESIDE: f64 = 0.9;

/// From published figures.
pub fn predict_paged(need: &Need, tier: &Tier, board: &Board, locked: Bytes) -> Predicted {
    let Some(in_memory) = in_memory_s(need, board) else {
        let why = format!("how fast {} multiplies weights in memory is not known", board.name);
        return Predicted::unknown("memory speed unknown", why);
    };
    if tier.takes_memory {
        return Predicted::unknown("no room", format!("{} takes from memory what it holds of weights", tier.name));
    }
    let rate = tier.path.clone().map(|path| path.sequential_mbps);
    let seconds = [in_memory * FROM_MODEL_TO_MODEL, in_memory / FROM_MODEL_TO_MODEL];
    paged(need, &rate, seconds, board.left(locked, need))
}

/// From a probe of this machine and its disk's sequential rate, with so much memory left for the runner.
pub fn paged_with_probe(need: &Need, probe: &Probe, disk_mbps: &Known<f64>, left: Bytes) -> Predicted {
    let rates = probe.multiply_mbps.iter().copied().filter(|rate| rate.is_finite() && *rate > 0.0);
    let ends = rates.fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    if ends.1 == 0.0 {
        let why = "the probe did not measure how fast this CPU multiplies weights".to_owned();
        return Predicted::unknown("multiplying not measured", why);
    }
    let left = Bytes(left.0.saturating_sub(need.resident.0));
    let seconds = [ends.0, ends.1].map(|rate| need.touched().0 as f64 / (rate * 1e6));
    paged(need, disk_mbps, seconds, (left, left))
}

/// `seconds` of a token in memory, and what memory is left: the worse of each first.
fn paged(need: &Need, rate: &Known<f64>, seconds: [f64; 2], (least, most): (Bytes, Bytes)) -> Predicted {
    let cycle = need.cycle();
    if cycle <= least {
        let [tps_low, tps_high] = seconds.map(|seconds| Known::Is(1.0 / seconds));
        let tps = Known::Is((seconds[0] * seconds[1]).sqrt().recip());
        return Predicted { tps, tps_low, tps_high, why: "fits: the pager has nothing to do".to_owned() };
    }
    if need.reach > need.weights {
        let why = "which experts a token takes has no order that could be learned: no faster than without".to_owned();
        return Predicted::unknown("no order", why);
    }
    let Some(rate) = rate.get().copied().filter(|rate| *rate > 0.0) else {
        return Predicted::unknown("rate unknown", "how fast its disk reads in sequence is not known".to_owned());
    };
    let reads = [read_again(cycle, least, KEPT[0]), read_again(cycle, most, KEPT[1])];
    let [low, high] = round_s(cycle, (least, most), rate, seconds).map(f64::recip);
    let bytes = between(Bytes(reads[1] as u64), Bytes(reads[0] as u64));
    let why = format!(
        "the pager keeps what fits of {}: every token reads {bytes} ahead at up to {} MB/s",
        said(cycle),
        significant(rate)
    );
    Predicted { tps: Known::Is((low * high).sqrt()), tps_low: Known::Is(low), tps_high: Known::Is(high), why }
}

/// Bytes that have to be read again in each round where so much of what is left is kept.
fn read_again(cycle: Bytes, left: Bytes, kept: f64) -> f64 {
    (cycle.0 as f64 - kept * left.0 as f64).max(0.0)
}

/// A round through `cycle` in the same order again and again, with so much memory for it (least and most), from a disk of this
/// sequential rate: seconds at worst and at best. `work_s` is the program's own part, which goes on beside the reading: the slower of
/// the two is what a round takes.
pub(crate) fn round_s(cycle: Bytes, (least, most): (Bytes, Bytes), mbps: f64, work_s: [f64; 2]) -> [f64; 2] {
    let round = |end: usize, left, beside: f64| {
        (work_s[end] / beside).max(read_again(cycle, left, KEPT[end]) / (REACHED[end] * mbps * 1e6))
    };
    [round(0, least, BESIDE), round(1, most, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::super::{Usage, pi5};
    use super::*;
    use basics::units::GIB;
    use gguf::Shape;

    /// What was measured here (docs/pager.md): 727 MB of weights with 682 MB, of which Ollama takes some 50, on 425 MB/s.
    #[test]
    fn what_was_measured_is_within() {
        let shape = Shape::parse("layers=12,embd=2048,ffn=5632,heads=16,kv_heads=16,vocab=32000,quant=Q8_0").unwrap();
        let header = shape.header();
        let need = Need::of("m", &header, &gguf::decode(&header).unwrap(), Usage { prompt: 16, generated: 60 });
        let probe = Probe {
            points: Vec::new(),
            size: Bytes(160_000_000),
            backing: super::super::Backing::Anonymous,
            threads: 2,
            multiply_mbps: vec![13_000.0, 14_000.0],
            available: Known::default(),
            overlap: Known::default(),
        };
        let said = paged_with_probe(&need, &probe, &Known::Is(425.0), Bytes(681_574_400));
        assert!(said.contains(3.2), "{said:?}");
        assert!(paged_with_probe(&need, &probe, &Known::default(), Bytes(681_574_400)).tps.is_unknown());
        assert!(paged_with_probe(&need, &probe, &Known::Is(425.0), Bytes(2 * GIB)).why.starts_with("fits"));
    }

    #[test]
    fn a_purchase_is_predicted_with_it_too() {
        let need = Need::named("gemma2:2b", Usage::default()).unwrap();
        let board = pi5(Bytes(4 * GIB));
        let tier = Tier::of(profile::find("optane-pi5").unwrap(), board.page);
        let (without, with) = (
            super::super::predict(&need, &tier, &board, Bytes(2_800_000_000)),
            predict_paged(&need, &tier, &board, Bytes(2_800_000_000)),
        );
        assert!(with.tps.get().unwrap() > without.tps.get().unwrap(), "{with:?} {without:?}");
        assert!(with.tps_high.get().unwrap() > with.tps_low.get().unwrap());
    }
}
