//! How well the latencies of a step are known: 95 % confidence intervals of its mean and its percentiles. They come from how
//! one interval of the series differs from the next, so that slow operations which come together count as one misfortune.

use crate::model::StepView;
use crate::series::{Way, in_order};
use basics::stats::{Interval, batch_means};
use basics::{Latencies, Nanos, Side};

/// Half width of a normal 95 % interval, in standard deviations.
const NORMAL: f64 = 1.96;

/// What the series of one direction says of its latencies.
pub(crate) struct Certainty<'a> {
    whole: &'a Latencies,
    parts: Vec<&'a Latencies>,
}

impl<'a> Certainty<'a> {
    /// Of reads or of writes; nothing where operations were timed in batches.
    pub fn of(step: &'a StepView<'a>, way: Way) -> Option<Self> {
        let side = |read: &'a Side, write: &'a Side| if way == Way::Read { read } else { write };
        let whole = side(step.read, step.write);
        let parts = in_order(step).map(|interval| &side(&interval.read, &interval.write).latency).collect();
        whole.is_each_timed().then_some(Certainty { whole: &whole.latency, parts })
    }

    /// Of the mean, µs.
    pub fn mean(&self) -> Option<[f64; 2]> {
        let sum = |part: &&Latencies| part.mean().unwrap_or_default().us() * part.count() as f64;
        let found = ratio(&self.parts.iter().map(|part| (sum(part), part.count() as f64)).collect::<Vec<_>>())?;
        let mean = self.whole.mean()?.us();
        Some([(mean - found.half_width).max(0.0), mean + found.half_width])
    }

    /// Of a percentile, µs: the share of operations below it has an interval, and its ends are percentiles again (Woodruff,
    /// *Confidence Intervals for Medians and Other Position Measures*, 1952). Chance alone makes it no narrower than that
    /// of as many independent operations. Unknown where it would reach beyond the operations seen.
    pub fn percentile(&self, percent: f64) -> Option<[f64; 2]> {
        let at = self.whole.percentile(percent)?;
        let (share, count) = (percent / 100.0, self.whole.count() as f64);
        let parts: Vec<(f64, f64)> = self.parts.iter().map(|part| (not_above(part, at), part.count() as f64)).collect();
        let half = ratio(&parts)?.half_width.max(NORMAL * (share * (1.0 - share) / count).sqrt());
        // Beyond the slowest operation seen there is nothing to say how slow.
        if half >= share || share + half >= 1.0 {
            return None;
        }
        let end = |share: f64| self.whole.percentile(100.0 * share).map(Nanos::us);
        Some([end(share - half)?, end(share + half)?])
    }
}

fn not_above(part: &Latencies, at: Nanos) -> f64 {
    part.buckets().take_while(|(latency, _)| *latency <= at).map(|(_, count)| count).sum::<u64>() as f64
}

/// Of sums over counts: what each part lacks or has too much for the whole's ratio is a series with that ratio as its mean
/// (Cochran, *Sampling Techniques*, 1977, 6.4).
fn ratio(parts: &[(f64, f64)]) -> Option<Interval> {
    let (sum, count) = parts.iter().fold((0.0, 0.0), |(sum, count), (x, n)| (sum + x, count + n));
    if count <= 0.0 {
        return None;
    }
    let (ratio, each) = (sum / count, count / parts.len() as f64);
    batch_means(&parts.iter().map(|(x, n)| ratio + (x - ratio * n) / each).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of 100 operations of about 100 µs, of which so many take 40 ms.
    fn parts(slow: impl Fn(u64) -> u64) -> Vec<Latencies> {
        let part = |number: u64| {
            let mut part = Latencies::new();
            (0..100 - slow(number)).for_each(|i| part.record(Nanos(100_000 + (i * 7919 + number * 104_729) % 9_000)));
            part.record_n(Nanos(40_000_000), slow(number));
            part
        };
        (0..200).map(part).collect()
    }

    fn of(parts: &[Latencies], what: impl Fn(&Certainty<'_>) -> Option<[f64; 2]>) -> [f64; 2] {
        let mut whole = Latencies::new();
        parts.iter().for_each(|part| whole.merge(part));
        what(&Certainty { whole: &whole, parts: parts.iter().collect() }).unwrap()
    }

    #[test]
    fn a_steady_device_is_known_well() {
        let parts = parts(|_| 0);
        let ([from, to], [low, high]) = (of(&parts, |all| all.mean()), of(&parts, |all| all.percentile(99.0)));
        assert!(from > 104.0 && to < 105.0, "{from} to {to}");
        assert!(low > 108.0 && high < 109.1, "{low} to {high}");
    }

    /// Six operations in six hundred are slow, and come at once: the p99 is on the edge, and both may be the truth.
    #[test]
    fn a_percentile_at_the_edge_of_a_stall_may_be_either() {
        let [low, high] = of(&parts(|number| if number % 6 == 3 { 6 } else { 0 }), |all| all.percentile(99.0));
        assert!(low < 110.0 && high > 39_000.0, "{low} to {high}");
        let [low, high] = of(&parts(|number| if number % 6 == 3 { 6 } else { 0 }), |all| all.percentile(50.0));
        assert!(low > 100.0 && high < 109.0, "{low} to {high}");
    }

    #[test]
    fn few_operations_do_not_bound_a_percentile() {
        let few: Vec<Latencies> = parts(|_| 0).into_iter().take(3).flat_map(|part| spread(&part)).collect();
        let mut whole = Latencies::new();
        few.iter().for_each(|part| whole.merge(part));
        let known = Certainty { whole: &whole, parts: few.iter().collect() };
        assert!(known.percentile(99.0).is_none() && known.percentile(50.0).is_some(), "300 operations");
    }

    /// The same in parts of ten.
    fn spread(part: &Latencies) -> Vec<Latencies> {
        let all: Vec<Nanos> = part.buckets().flat_map(|(latency, n)| (0..n).map(move |_| latency)).collect();
        let of = |ten: &[Nanos]| {
            let mut part = Latencies::new();
            ten.iter().for_each(|latency| part.record(*latency));
            part
        };
        (0..10).map(|at| of(&all.iter().skip(at).step_by(10).copied().collect::<Vec<_>>())).collect()
    }

    #[test]
    fn slow_times_that_come_together_are_one_misfortune() {
        let width = |[low, high]: [f64; 2]| high - low;
        let spread = width(of(&parts(|number| u64::from(number % 4 == 0)), |all| all.mean()));
        let together = width(of(&parts(|number| if number % 100 < 25 { 1 } else { 0 }), |all| all.mean()));
        assert!(together > 1.5 * spread, "{spread} and {together}");
    }
}
