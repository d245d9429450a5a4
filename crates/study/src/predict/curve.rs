//! Memory as a purchase: from how much is missed with each amount of memory, what another GB would do. The curve is measured by
//! others, from a sample of the page accesses of the program as it runs.

use super::said;
use crate::findings::times;
use basics::{Bytes, Known};
use serde::{Deserialize, Serialize};

/// Bytes that a token misses against memory: a miss-ratio curve times the bytes touched. For other programs than models a token is
/// whatever is counted: a request, a pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Curve {
    /// Memory for the program, and bytes missed per token with it; in any order.
    pub points: Vec<(Bytes, f64)>,
}

/// What a token costs beside the curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Seconds a token takes when nothing is missed, above 0.
    pub in_memory_s: f64,
    /// Rate at which missed bytes come back, 10^6 a second, above 0.
    pub fault_mbps: f64,
    /// What one fault brings.
    pub page: Bytes,
}

/// An amount of memory and what it gives.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// For the program.
    pub memory: Bytes,
    /// Bytes missed per token.
    pub missed: f64,
    /// Tokens a second.
    pub tps: f64,
    /// Pages that come back in a second.
    pub faults_per_s: f64,
}

/// What more memory would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Purchase {
    /// As it is, and with one step after the other more, as far as the curve reaches.
    pub steps: Vec<Step>,
    /// `1 GiB more doubles it, 2 GiB more and the disk no longer matters`.
    pub sentence: String,
}

/// Share of a token's time in memory below which waiting for the disk does not matter.
const MATTERS: f64 = 0.05;
/// Steps that are looked at most.
const MOST_STEPS: usize = 64;
/// A gain below this is little.
const LITTLE: f64 = 1.1;
/// Between these it is double.
const DOUBLE: (f64, f64) = (1.8, 2.2);

impl Curve {
    /// The points that make sense, by memory; of several with one amount the first.
    fn sorted(&self) -> Vec<(f64, f64)> {
        let sane = |point: &&(Bytes, f64)| point.1.is_finite() && point.1 >= 0.0;
        let mut points: Vec<(f64, f64)> = self.points.iter().filter(sane).map(|(x, y)| (x.0 as f64, *y)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.dedup_by_key(|point| point.0);
        points
    }

    /// Bytes missed per token with so much memory, in proportion between two points. Unknown outside of the curve, but where
    /// nothing is missed at its end: more memory does not change that.
    pub fn missed(&self, memory: Bytes) -> Known<f64> {
        let (points, at) = (self.sorted(), memory.0 as f64);
        let above = points.partition_point(|(x, _)| *x < at);
        match (above.checked_sub(1).and_then(|i| points.get(i)), points.get(above)) {
            (_, Some((x, missed))) if *x == at => Known::Is(*missed),
            (Some((x0, a)), Some((x1, b))) => Known::Is(a + (b - a) * (at - x0) / (x1 - x0)),
            (Some((_, missed)), None) if *missed == 0.0 => Known::Is(0.0),
            _ => Known::not_measured("outside of the curve"),
        }
    }

    /// What so much memory gives.
    pub fn step(&self, work: &Work, memory: Bytes) -> Known<Step> {
        self.missed(memory).map(|missed| {
            let tps = 1.0 / (work.in_memory_s + missed / (work.fault_mbps * 1e6));
            Step { memory, missed, tps, faults_per_s: tps * missed / work.page.0.max(1) as f64 }
        })
    }

    /// What more memory than `now` would do, in steps of `more`. Unknown where the curve does not reach `now`.
    pub fn purchase(&self, work: &Work, now: Bytes, more: Bytes) -> Known<Purchase> {
        let sane = |value: f64| value.is_finite() && value > 0.0;
        if !sane(work.in_memory_s) || !sane(work.fault_mbps) {
            return Known::not_measured("neither the time in memory nor the rate of faults may be 0");
        }
        let first = match self.step(work, now) {
            Known::Is(first) => first,
            Known::Unknown(why) => return Known::Unknown(why),
        };
        let mut steps = vec![first];
        while steps.len() < MOST_STEPS && more.0 > 0 && self.matters(work, steps[steps.len() - 1]) {
            let memory = Bytes(now.0.saturating_add(more.0.saturating_mul(steps.len() as u64)));
            let Known::Is(step) = self.step(work, memory) else { break };
            steps.push(step);
        }
        let sentence = self.sentence(work, &steps, more);
        Known::Is(Purchase { steps, sentence })
    }

    fn matters(&self, work: &Work, step: Step) -> bool {
        step.missed / (work.fault_mbps * 1e6) > MATTERS * work.in_memory_s
    }

    fn sentence(&self, work: &Work, steps: &[Step], more: Bytes) -> String {
        let amount = |count: usize| said(more * count as u64);
        let (first, last) = (steps[0], steps[steps.len() - 1]);
        if !self.matters(work, first) {
            return "more memory changes nothing: the disk does not matter as it is".to_owned();
        }
        if steps.len() == 1 {
            return format!("what {} more would do is unknown: the curve ends before", amount(1));
        }
        let gain = |count: usize| {
            let by = steps[count].tps / first.tps;
            match by {
                _ if by < LITTLE => format!("{} more changes little", amount(count)),
                _ if (DOUBLE.0..DOUBLE.1).contains(&by) => format!("{} more doubles it", amount(count)),
                _ => format!("{} more makes it {} times as fast", amount(count), times(by)),
            }
        };
        let end = steps.len() - 1;
        let by = times(last.tps / first.tps);
        match (self.matters(work, last), end) {
            (false, 1) => format!("{} more and the disk no longer matters: {by} times as fast", amount(1)),
            (false, _) => {
                format!("{}, {} more and the disk no longer matters: {by} times as fast", gain(1), amount(end))
            }
            (true, 1) => format!("{}, and the disk still matters", gain(1)),
            (true, _) => format!("{}, {}, and the disk still matters", gain(1), gain(end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::units::GIB;

    const WORK: Work = Work { in_memory_s: 0.2, fault_mbps: 400.0, page: Bytes(16_384) };

    /// 1.6 GB at a time, all of which is missed with 0.5 GiB: 4.2 s; half with 1.5 GiB, nothing with 2.5.
    fn curve() -> Curve {
        let point = |halves: u64, missed: f64| (Bytes(halves * GIB / 2), missed);
        Curve { points: vec![point(5, 0.0), point(1, 1.6e9), point(3, 0.8e9)] }
    }

    #[test]
    fn more_memory_is_a_sentence() {
        let found = curve().purchase(&WORK, Bytes(GIB / 2), Bytes(GIB)).into_option().unwrap();
        assert_eq!(found.steps.len(), 3);
        assert_eq!(
            found.sentence,
            "1 GiB more doubles it, 2 GiB more and the disk no longer matters: 21 times as fast"
        );
        let first = found.steps[0];
        assert!((first.tps - 1.0 / 4.2).abs() < 1e-9);
        assert!((first.faults_per_s - 1.6e9 / 16_384.0 / 4.2).abs() < 1e-6);
        let near = curve().purchase(&WORK, Bytes(2 * GIB), Bytes(GIB)).into_option().unwrap();
        assert_eq!(near.sentence, "1 GiB more and the disk no longer matters: 6 times as fast");
        let enough = curve().purchase(&WORK, Bytes(3 * GIB), Bytes(GIB)).into_option().unwrap();
        assert_eq!(enough.sentence, "more memory changes nothing: the disk does not matter as it is");
    }

    #[test]
    fn beyond_the_curve_nothing_is_known() {
        assert!(curve().missed(Bytes(GIB / 4)).is_unknown());
        assert_eq!(curve().missed(Bytes(9 * GIB)), Known::Is(0.0), "nothing was missed before");
        let mut short = curve();
        short.points.retain(|(memory, _)| memory.0 < 2 * GIB);
        assert!(short.missed(Bytes(2 * GIB)).is_unknown());
        let found = short.purchase(&WORK, Bytes(GIB / 2), Bytes(GIB)).into_option().unwrap();
        assert_eq!(found.sentence, "1 GiB more doubles it, and the disk still matters");
        let found = short.purchase(&WORK, Bytes(GIB), Bytes(GIB)).into_option().unwrap();
        assert_eq!(found.sentence, "what 1 GiB more would do is unknown: the curve ends before");
        assert!(Curve::default().purchase(&WORK, Bytes(GIB), Bytes(GIB)).is_unknown());
        let none = Work { in_memory_s: 0.0, ..WORK };
        assert!(curve().purchase(&none, Bytes(GIB), Bytes(GIB)).is_unknown());
    }

    /// Classic LRU: nothing helps until everything fits.
    #[test]
    fn a_cliff_is_told() {
        let cliff = Curve { points: vec![(Bytes(GIB), 3e9), (Bytes(3 * GIB), 3e9), (Bytes(3 * GIB + 1), 0.0)] };
        let found = cliff.purchase(&WORK, Bytes(GIB), Bytes(GIB)).into_option().unwrap();
        assert_eq!(
            found.sentence,
            "1 GiB more changes little, 3 GiB more and the disk no longer matters: 39 times as fast"
        );
        let odd = Curve { points: vec![(Bytes(GIB), f64::NAN), (Bytes(GIB), 1.0), (Bytes(GIB), 2.0)] };
        assert_eq!(odd.missed(Bytes(GIB)), Known::Is(1.0));
    }
}
