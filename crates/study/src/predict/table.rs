//! The buyer's guide: models over tiers, and one tier against another in a sentence.

use super::figures::{in_memory_s, waiting_s};
use super::{Board, Need, Predicted, Tier, predict, predict_paged, said};
use crate::findings::times;
use basics::{Bytes, Known};
use serde::{Deserialize, Serialize};

/// A model on a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The model.
    pub model: String,
    /// The tier that swap would be on.
    pub profile: String,
    /// With the pager beside it.
    #[serde(default)]
    pub pager: bool,
    /// What is to be expected.
    #[serde(flatten)]
    pub predicted: Predicted,
}

/// Every model on every tier, the tiers of one model side by side; with `pager` each of them once more with the pager beside it.
pub fn predict_table(needs: &[Need], tiers: &[Tier], board: &Board, locked: Bytes, pager: bool) -> Vec<Row> {
    let row = |need: &Need, tier: &Tier, pager: bool| {
        let predict = if pager { predict_paged } else { predict };
        let predicted = predict(need, tier, board, locked);
        Row { model: need.model.clone(), profile: tier.name.clone(), pager, predicted }
    };
    let ways: &[bool] = if pager { &[false, true] } else { &[false] };
    let all = needs.iter().flat_map(|need| tiers.iter().map(move |tier| (need, tier)));
    all.flat_map(|(need, tier)| ways.iter().map(move |with| row(need, tier, *with))).collect()
}

/// How many times faster one tier is than another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Versus {
    /// At least; below 1 it is slower.
    pub low: Known<f64>,
    /// At most.
    pub high: Known<f64>,
    /// `Optane against USB for gemma2:2b on 4 GiB with 2.80 GB locked: 3.1 to 4.6 times faster`.
    pub sentence: String,
}

/// Ratios as close to 1 as this are no difference.
const SAME: f64 = 0.05;

/// One tier against another for a model. Whatever law the board's kernel has and however much memory it leaves, it is the same on
/// both, so the ratio is better known than either rate. What may differ is how much is written meanwhile: both are compared
/// as if nothing were, and as if 30 % of the operations were writes.
pub fn versus(need: &Need, one: &Tier, other: &Tier, board: &Board, locked: Bytes) -> Versus {
    let lock = if locked.0 > 0 { format!(" with {} locked", said(locked)) } else { String::new() };
    let head = format!("{} against {} for {} on {}{lock}", one.name, other.name, need.model, said(board.ram));
    let (least, most) = board.left(locked, need);
    let ratios = if need.cycle() <= least { vec![1.0] } else { ratios(need, [one, other], board, [least, most]) };
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(0.0, f64::max);
    if ratios.is_empty() {
        let none = || Known::not_measured("not published");
        let lacks: Vec<String> = [one, other]
            .map(|tier| predict(need, tier, board, locked))
            .into_iter()
            .filter(|all| all.tps.is_unknown())
            .map(|all| all.why)
            .collect();
        let sentence = format!("{head}: unknown, {}", lacks.first().map_or("nothing was published", String::as_str));
        return Versus { low: none(), high: none(), sentence };
    }
    let answer = if high <= 1.0 + SAME && low >= 1.0 - SAME {
        "no difference".to_owned()
    } else if low >= 1.0 - SAME {
        format!("{} faster", range(low, high))
    } else if high <= 1.0 + SAME {
        format!("{} slower", range(1.0 / high, 1.0 / low))
    } else {
        format!("between {} times slower and {} times faster", times(1.0 / low), times(high))
    };
    let answer = if need.cycle() <= least { format!("{answer}, it fits") } else { answer };
    Versus { low: Known::Is(low), high: Known::Is(high), sentence: format!("{head}: {answer}") }
}

fn range(low: f64, high: f64) -> String {
    let (low_said, high_said) = (times(low), times(high));
    if low <= 1.0 + SAME {
        format!("up to {high_said} times")
    } else if low_said == high_said {
        format!("{low_said} times")
    } else {
        format!("{low_said} to {high_said} times")
    }
}

/// The ratio under each law, amount of memory and amount of writing; none where either tier's rate is not known.
fn ratios(need: &Need, tiers: [&Tier; 2], board: &Board, left: [Bytes; 2]) -> Vec<f64> {
    let [Known::Is(one), Known::Is(other)] = tiers.map(|tier| tier.path.clone()) else { return Vec::new() };
    let Some(in_memory) = in_memory_s(need, board) else { return Vec::new() };
    if tiers.iter().any(|tier| tier.takes_memory) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for left in left {
        let lru = if need.cycle() <= left { 0.0 } else { 1.0 };
        for misses in [lru, need.random_misses(left)] {
            for (a, b) in [(one.mbps, other.mbps), (one.amid_writes_mbps, other.amid_writes_mbps)] {
                let time = |mbps| in_memory + waiting_s(need, board, misses, mbps);
                all.push(time(b) / time(a));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Usage, pi5, usb_array};
    use super::*;
    use basics::units::GIB;

    const LOCKED: Bytes = Bytes(2_800_000_000);

    fn need(name: &str) -> Need {
        Need::named(name, Usage::default()).unwrap()
    }

    fn all(board: &Board) -> (Tier, Tier) {
        let optane = Tier { name: "Optane".to_owned(), ..Tier::of(profile::find("optane-pi5").unwrap(), board.page) };
        (optane, Tier { name: "USB".to_owned(), ..usb_array(board.page).unwrap() })
    }

    #[test]
    fn a_table_has_every_model_on_every_tier() {
        let board = pi5(Bytes(4 * GIB));
        let tiers: Vec<Tier> = profile::shipped().iter().map(|profile| Tier::of(profile, board.page)).collect();
        let needs = ["gemma2:2b", "qwen2.5:3b"].map(need);
        let both = predict_table(&needs, &tiers, &board, LOCKED, true);
        let paged: Vec<bool> = both.iter().map(|row| row.pager).collect();
        assert!(both.len() == 2 * needs.len() * tiers.len() && paged.chunks(2).all(|two| two == [false, true]));
        let rows = predict_table(&needs, &tiers, &board, LOCKED, false);
        assert_eq!(rows.len(), 2 * tiers.len());
        assert!(rows.iter().all(|row| !row.predicted.why.is_empty() && !row.predicted.why.ends_with('.')));
        let row = rows.iter().find(|row| row.profile == "nvme-usb3-pi5" && row.model == "gemma2:2b").unwrap();
        let text = serde_json::to_value(row).unwrap();
        for key in ["profile", "model", "tps", "tps_low", "tps_high", "why"] {
            assert!(text.get(key).is_some(), "{text}");
        }
        let told = "from nvme-usb3-pi5 at 79.7 MB/s";
        assert!(row.predicted.why.contains(told), "{}", row.predicted.why);
        assert_eq!(serde_json::from_value::<Row>(text).unwrap(), *row);
    }

    /// The article's own ratio for this model is 4.55 by tokens/s and 4.84 by total time.
    #[test]
    fn a_purchase_is_a_sentence() {
        let board = pi5(Bytes(4 * GIB));
        let (optane, usb) = all(&board);
        let found = versus(&need("gemma2:2b"), &optane, &usb, &board, LOCKED);
        let (low, high) = (*found.low.get().unwrap(), *found.high.get().unwrap());
        assert!((2.5..3.6).contains(&low) && (4.2..5.0).contains(&high), "{}", found.sentence);
        let head = "Optane against USB for gemma2:2b on 4 GiB with 2.80 GB locked: ";
        assert!(found.sentence.starts_with(head) && found.sentence.ends_with("times faster"), "{}", found.sentence);
        let back = versus(&need("gemma2:2b"), &usb, &optane, &board, LOCKED);
        assert!(back.sentence.ends_with("times slower"), "{}", back.sentence);
        assert!((back.low.get().unwrap() * high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_difference_and_unknown_are_said() {
        let board = pi5(Bytes(8 * GIB));
        let (optane, usb) = all(&board);
        let fits = versus(&need("gemma2:2b"), &optane, &usb, &board, Bytes(0));
        assert!(fits.sentence.ends_with("on 8 GiB: no difference, it fits"), "{}", fits.sentence);
        let unread = Tier::of(profile::find("p3700").unwrap(), board.page);
        let found = versus(&need("qwen2.5:14b"), &optane, &unread, &board, Bytes(0));
        assert!(found.low.is_unknown() && found.sentence.contains("unknown, does not fit"), "{}", found.sentence);
    }
}
