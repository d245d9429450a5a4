//! A prediction for this machine from a probe of what its kernel keeps: a scan round and round of memory of which only a part
//! fits. It measures the share that is missed and the rate at which it comes back, which figures leave open. How a probe is made
//! is left to others.

use super::{Need, Predicted, random_misses, said};
use basics::units::significant;
use basics::{Bytes, Known};
use serde::{Deserialize, Serialize};

/// What was scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Anonymous memory with swap below: how weights lie that a runner loads.
    Anonymous,
    /// A mapped file: how weights lie that a runner maps.
    File,
}

/// One scan of the probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbePoint {
    /// Share of the scanned memory that there was room for, above 0 and at most 1.
    pub kept: f64,
    /// Bytes brought in per byte touched, once the scan had settled. Readahead that is dropped unused makes it more than 1.
    pub missed: f64,
    /// Bytes brought in by the time that this took, 10^6 a second; what a fault costs the CPU is in it. Unknown where nothing
    /// was brought in.
    pub mbps: Known<f64>,
}

/// What a probe of this machine measured. Several points of one share are repetitions, whose spread gives the interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The scans, in any order; [`share_to_probe`] says of what share they should be.
    pub points: Vec<ProbePoint>,
    /// What a scan touched.
    pub size: Bytes,
    /// What was scanned.
    pub backing: Backing,
    /// Threads that scanned, and that multiplied: the runner's number.
    pub threads: u32,
    /// Bytes of weights in memory that these threads multiply in a second, 10^6 a second; each reading.
    pub multiply_mbps: Vec<f64>,
    /// Memory that a process could take before swapping began.
    pub available: Known<Bytes>,
    /// Share (0 to 1) of the shorter of both, multiplying and reading, that happened during the other when a scan multiplied as well.
    /// Unknown: nothing is taken for hidden, and for the upper end of the interval all of it.
    pub overlap: Known<f64>,
}

/// What a few readings say lies at least this far to both sides of them: what a probe should reach (FIELD-NOTES.md 14). Three that
/// happen to agree are no better.
const SPREAD: f64 = 0.15;
/// Shares that are closer than this are repetitions of one.
const REPEATED: f64 = 0.03;
/// Up to here it is the share that counts; beyond, how many bytes have no room. A kernel that misses all of a scan (classic LRU)
/// went on missing all of 121, 327 and 694 MiB until 26, 22 and 39 MiB of them had no room, and missed a quarter to a half of
/// them when 12 to 19 had none.
const EDGE: f64 = 0.8;
/// Farther than this from any share that was tried, the sentence says so.
const FAR: f64 = 0.15;

/// Least, middle and most.
type Range = [f64; 3];

fn range(readings: &[f64]) -> Option<Range> {
    let sane: Vec<f64> = readings.iter().copied().filter(|value| value.is_finite() && *value >= 0.0).collect();
    let middle = basics::stats::median(&sane)?;
    let ends = (middle * (1.0 - SPREAD), middle * (1.0 + SPREAD));
    let (low, high) = sane.iter().fold(ends, |(low, high), value| (low.min(*value), high.max(*value)));
    Some([low, middle, high])
}

/// All readings of one share.
struct Group {
    kept: f64,
    /// Between both laws: 0 for replacement at random, 1 for classic LRU; below 0 the kernel keeps more, above 1 it reads too much.
    place: Range,
    mbps: Option<Range>,
}

impl Probe {
    fn groups(&self) -> Vec<Group> {
        let valid = |point: &&ProbePoint| point.kept > 0.0 && point.kept < 1.0 && point.missed >= 0.0;
        let mut points: Vec<&ProbePoint> = self.points.iter().filter(valid).collect();
        points.sort_by(|a, b| a.kept.total_cmp(&b.kept));
        let groups = points.chunk_by(|a, b| b.kept - a.kept < REPEATED).filter_map(|same| {
            let kept = basics::stats::mean(&same.iter().map(|point| point.kept).collect::<Vec<_>>())?;
            let missed = range(&same.iter().map(|point| point.missed).collect::<Vec<_>>())?;
            let random = random_misses(1.0 / kept);
            let mbps: Vec<f64> =
                same.iter().filter_map(|point| point.mbps.get().copied()).filter(|rate| *rate > 0.0).collect();
            let place = missed.map(|missed| (missed - random) / (1.0 - random).max(f64::EPSILON));
            Some(Group { kept, place, mbps: range(&mbps) })
        });
        groups.collect()
    }
}

/// In proportion between the two neighbours, beyond the first and the last as these.
fn interpolate(points: &[(f64, Range)], at: f64) -> Option<Range> {
    let above = points.partition_point(|(x, _)| *x < at);
    let (before, after) = (above.checked_sub(1).and_then(|i| points.get(i)), points.get(above));
    match (before, after) {
        (Some((x0, a)), Some((x1, b))) => {
            let part = (at - x0) / (x1 - x0).max(f64::EPSILON);
            Some([0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * part))
        }
        (Some((_, all)), None) | (None, Some((_, all))) => Some(*all),
        (None, None) => None,
    }
}

/// The share of a scan of `size` that a probe should leave memory for, when a model is to have so much: the model's own, and
/// where nearly all fits, that which lacks as many bytes.
pub fn share_to_probe(need: &Need, left: Bytes, size: Bytes) -> f64 {
    let left = left.0.saturating_sub(need.resident.0);
    let lacking = need.cycle().0.saturating_sub(left) as f64;
    let kept = left as f64 / (need.cycle().0 as f64).max(f64::EPSILON);
    kept.min(EDGE).max(1.0 - lacking / (size.0 as f64).max(f64::EPSILON))
}

/// What a model does on the probed machine with so much memory left for the runner, from its limit or [`Probe::available`].
///
/// Misses are carried from the shares that were tried to that of the model as their place between the two laws, which moves
/// smoothly where the misses themselves fall off a cliff at 1; they are never below what has no room. The rate of the fault path is
/// interpolated by share. Where nearly all fits, the scan that lacked as many bytes stands for it, not that of its share. The
/// interval is that of the readings.
pub fn predict_with_probe(need: &Need, probe: &Probe, left: Bytes) -> Predicted {
    let like = share_to_probe(need, left, probe.size);
    let left = Bytes(left.0.saturating_sub(need.resident.0));
    let touched = need.touched().0 as f64;
    let needs = format!("{} of the {} that are left", said(need.cycle()), said(left));
    let Some([slow, multiply, fast]) = range(&probe.multiply_mbps).filter(|all| all[0] > 0.0) else {
        let why = "the probe did not measure how fast this CPU multiplies weights".to_owned();
        return Predicted::unknown("multiplying not measured", why);
    };
    let in_memory = |mbps: f64| touched / (mbps * 1e6);
    if need.cycle() <= left {
        let [low, tps, high] = [slow, multiply, fast].map(|mbps| Known::Is(1.0 / in_memory(mbps)));
        let why = format!("fits: the tier does not matter, it needs {needs}");
        return Predicted { tps, tps_low: low, tps_high: high, why };
    }
    let kept = left.0 as f64 / need.cycle().0 as f64;
    let groups = probe.groups();
    let places: Vec<(f64, Range)> = groups.iter().map(|group| (group.kept, group.place)).collect();
    let rates: Vec<(f64, Range)> = groups.iter().filter_map(|group| Some((group.kept, group.mbps?))).collect();
    let (Some(place), Some([slowest, mbps, fastest])) = (interpolate(&places, like), interpolate(&rates, like)) else {
        let why = format!("does not fit, it needs {needs}, and the probe saw nothing come back");
        return Predicted::unknown("the probe saw nothing", why);
    };
    let random = need.random_misses(left);
    let [least, misses, most] = place.map(|place| (place + (1.0 - place) * random).max(1.0 - kept));
    let hidden = |unknown: f64| probe.overlap.get().copied().unwrap_or(unknown).clamp(0.0, 1.0);
    let tps = |multiply: f64, misses: f64, mbps: f64, hidden: f64| {
        let (computing, reading) = (in_memory(multiply), misses * touched / (mbps * 1e6));
        1.0 / (computing + reading - hidden * computing.min(reading))
    };
    let again = said(Bytes((misses * touched) as u64));
    let way = match probe.backing {
        Backing::Anonymous => format!("thrash: every token reads {again} through swap"),
        Backing::File => format!("clean file pages are dropped and read again, {again} a token"),
    };
    let nearest = groups.iter().map(|group| (group.kept - like).abs()).fold(f64::INFINITY, f64::min);
    let far =
        if nearest > FAR { format!("; the probe tried no share near {}", significant(like)) } else { String::new() };
    let rate = between_rates(slowest, fastest, mbps);
    Predicted {
        tps: Known::Is(tps(multiply, misses, mbps, hidden(0.0))),
        tps_low: Known::Is(tps(slow, most, slowest, hidden(0.0))),
        tps_high: Known::Is(tps(fast, least, fastest, hidden(1.0))),
        why: format!("{way} at {rate} MB/s; it needs {needs}{far}"),
    }
}

/// A rate, with its ends where they differ by more than the spread of a single reading.
fn between_rates(low: f64, high: f64, mbps: f64) -> String {
    if high > low * (1.0 + 3.0 * SPREAD) {
        format!("{} to {}", significant(low), significant(high))
    } else {
        significant(mbps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Usage;
    use super::*;

    fn need() -> Need {
        Need::named("gemma2:2b", Usage::default()).unwrap()
    }

    /// A machine whose kernel lies at `place` between both laws and whose faults bring `mbps`.
    fn probe(place: f64, mbps: f64) -> Probe {
        let point = |kept: f64, by: f64| {
            let random = random_misses(1.0 / kept);
            ProbePoint { kept, missed: (place + (1.0 - place) * random) * by, mbps: Known::Is(mbps * by) }
        };
        Probe {
            size: Bytes(160_000_000),
            points: [0.9, 0.4, 0.6].into_iter().flat_map(|kept| [point(kept, 0.98), point(kept, 1.02)]).collect(),
            backing: Backing::Anonymous,
            threads: 4,
            multiply_mbps: vec![8000.0, 8200.0],
            available: Known::Is(Bytes(1_000_000_000)),
            overlap: Known::default(),
        }
    }

    fn left(share: f64) -> Bytes {
        Bytes((need().cycle().0 as f64 * share) as u64 + need().resident.0)
    }

    /// On machines of either law, and in between, at shares that were not tried.
    #[test]
    fn a_known_machine_is_found_again() {
        let touched = need().touched().0 as f64 / 1e6;
        for place in [-0.2, 0.0, 0.5, 1.0] {
            for share in [0.3, 0.5, 0.75, 0.95] {
                let misses = place + (1.0 - place) * random_misses(1.0 / share);
                let truth = 1.0 / (touched / 8100.0 + misses.max(1.0 - share) * touched / 60.0);
                let found = predict_with_probe(&need(), &probe(place, 60.0), left(share));
                let tps = found.tps.get().unwrap();
                assert!((tps / truth - 1.0).abs() < 0.04, "{place} {share}: {tps}, truly {truth}");
                assert!(found.contains(truth), "{found:?}");
                assert!(found.why.starts_with("thrash: every token reads"), "{}", found.why);
            }
        }
    }

    #[test]
    fn what_fits_is_as_fast_as_it_multiplies() {
        let found = predict_with_probe(&need(), &probe(1.0, 60.0), left(1.01));
        let tps = *found.tps.get().unwrap();
        assert!((tps / (8100e6 / need().touched().0 as f64) - 1.0).abs() < 1e-9, "{found:?}");
        assert!(found.contains(tps) && found.why.starts_with("fits"));
    }

    #[test]
    fn the_runner_waits_unless_the_probe_shows_that_it_does_not() {
        let mut fast = probe(1.0, 8100.0);
        let waits = predict_with_probe(&need(), &fast, left(0.6));
        fast.overlap = Known::Is(1.0);
        let hides = predict_with_probe(&need(), &fast, left(0.6));
        let ratio = hides.tps.get().unwrap() / waits.tps.get().unwrap();
        assert!((1.9..2.01).contains(&ratio), "{ratio}");
        assert!(waits.contains(*hides.tps.get().unwrap()), "unknown leaves room for it");
        fast.overlap = Known::Is(0.0);
        assert!(!predict_with_probe(&need(), &fast, left(0.6)).contains(*hides.tps.get().unwrap()));
    }

    #[test]
    fn readings_that_agree_have_a_spread_all_the_same() {
        let mut single = probe(1.0, 60.0);
        single.points.retain(|point| point.missed > 1.0);
        let found = predict_with_probe(&need(), &single, left(0.6));
        let (low, high) = (found.tps_low.get().unwrap(), found.tps_high.get().unwrap());
        assert!(high / low > 1.6 && high / low < 2.0, "{found:?}");
    }

    #[test]
    fn a_probe_that_saw_nothing_says_nothing() {
        let mut empty = probe(1.0, 60.0);
        empty.points.clear();
        let found = predict_with_probe(&need(), &empty, left(0.6));
        assert!(found.tps.is_unknown() && found.why.contains("saw nothing"), "{found:?}");
        empty.multiply_mbps.clear();
        assert!(predict_with_probe(&need(), &empty, left(2.0)).tps.is_unknown());
        let mut odd = probe(1.0, 60.0);
        odd.points.push(ProbePoint { kept: f64::NAN, missed: f64::NAN, mbps: Known::Is(f64::INFINITY) });
        assert_eq!(
            predict_with_probe(&need(), &odd, left(0.6)),
            predict_with_probe(&need(), &probe(1.0, 60.0), left(0.6))
        );
    }

    #[test]
    fn far_from_what_was_tried_it_says_so_and_it_survives_json() {
        let mut file = probe(1.0, 60.0);
        file.backing = Backing::File;
        let found = predict_with_probe(&need(), &file, left(0.1));
        assert!(
            found.why.contains("clean file pages are dropped") && found.why.contains("no share near 0.100"),
            "{}",
            found.why
        );
        let text = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<Probe>(&text).unwrap(), file);
    }
}
