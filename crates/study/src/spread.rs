//! How operations spread: the rate of one direction over the intervals of a step, and latencies over bounds. For formats
//! of other programs that hold such figures; what a spread means is said by [`crate::summarise`].

use crate::model::StepView;
use basics::{Interval, Latencies, Nanos, Side, stats};

/// A figure over the intervals of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation; 0 of a single interval.
    pub stdev: f64,
    /// Intervals.
    pub samples: u64,
}

/// Of one direction, which `side` takes from an interval: operations a second and bytes a second. Nothing without an
/// interval in which there was time.
pub fn spread(step: &StepView<'_>, side: impl Fn(&Interval) -> &Side) -> Option<(Spread, Spread)> {
    let rates = |amount: &dyn Fn(&Side) -> u64| -> Option<Spread> {
        let timed = step.intervals.iter().filter(|interval| interval.end > interval.start);
        let rates: Vec<f64> =
            timed.map(|interval| amount(side(interval)) as f64 / (interval.end - interval.start).secs()).collect();
        Some(Spread {
            min: rates.iter().copied().reduce(f64::min)?,
            max: rates.iter().copied().reduce(f64::max)?,
            mean: stats::mean(&rates)?,
            stdev: stats::stdev(&rates).unwrap_or(0.0),
            samples: rates.len() as u64,
        })
    };
    Some((rates(&Side::operations)?, rates(&|side| side.bytes)?))
}

/// The share of operations, 0 to 1, from each bound up to the next, in ascending order; the first share is of those below
/// the first bound. All are 0 where there was no operation.
pub fn shares(latencies: &[&Latencies], bounds: &[Nanos]) -> Vec<f64> {
    let mut counts = vec![0u64; bounds.len() + 1];
    for (latency, count) in latencies.iter().flat_map(|latencies| latencies.buckets()) {
        counts[bounds.partition_point(|bound| *bound <= latency)] += count;
    }
    let all: u64 = counts.iter().sum();
    counts.into_iter().map(|count| count as f64 / all.max(1) as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;

    #[test]
    fn a_rate_spreads_over_its_intervals() {
        let step = Step::page_read("sda", Nanos(1_000_000)).replaced(&[10, 30, 20], Nanos(1_000_000));
        let (iops, bytes) = spread(&step.view(), |interval| &interval.read).unwrap();
        let width = (step.intervals[0].end - step.intervals[0].start).secs();
        let expected = Spread { min: 10.0, max: 30.0, mean: 20.0, stdev: 10.0, samples: 3 };
        for (is, should) in [
            (iops.min, expected.min),
            (iops.max, expected.max),
            (iops.mean, expected.mean),
            (iops.stdev, expected.stdev),
        ] {
            assert!((is * width / should - 1.0).abs() < 1e-9, "{iops:?}");
        }
        assert_eq!(
            (iops.samples, spread(&step.view(), |interval| &interval.write).map(|both| both.0.max)),
            (3, Some(0.0))
        );
        assert!(bytes.mean > iops.mean);
        let mut empty = step;
        empty.intervals.clear();
        assert_eq!(spread(&empty.view(), |interval| &interval.read), None);
    }

    #[test]
    fn latencies_lie_between_bounds() {
        let mut all = Latencies::new();
        all.record_n(Nanos(5), 1);
        all.record_n(Nanos(10), 2);
        all.record_n(Nanos(500), 1);
        assert_eq!(shares(&[&all], &[Nanos(10), Nanos(100)]), [0.25, 0.5, 0.25]);
        assert_eq!(shares(&[], &[Nanos(10)]), [0.0, 0.0]);
    }
}
