//! One step in figures: rates over the measured time, latency percentiles that the number of operations can carry, the
//! confidence interval and the spread of the rate.

use crate::model::{CpuPerOp, LatencySummary, SideSummary, StepSummary, StepView};
use crate::series::{self, Way};
use basics::stats::{batch_means, variation};
use basics::{Known, Latencies, Nanos, Side};

/// The percentiles that are looked for.
const PERCENTILES: [f64; 8] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
/// Beyond p99, a percentile is given only when at least this many operations lie above it.
const BEYOND: f64 = 10.0;

/// Sums a step up.
///
/// Rates are over the whole measured time, an fsync at its end included. The confidence interval comes from the
/// interval series by batch means; it is unknown below ten intervals.
pub fn summarise(step: &StepView<'_>) -> StepSummary {
    let operations = step.read.operations() + step.write.operations();
    StepSummary {
        index: step.index,
        name: step.name.to_owned(),
        tier: step.tier.map(str::to_owned),
        read: side(step, step.read, Way::Read),
        write: side(step, step.write, Way::Write),
        cpu: step.cpu.filter(|_| operations > 0).map(|(user, system)| cpu_per_op(user, system, operations)),
        missing_intervals: series::missing(step),
        read_from_disks: crate::layer::read_from_disks(step),
        compressed_to: crate::layer::compressed_to(step),
        in_flight: crate::little::of_step(step),
    }
}

/// Twenty ticks of 10 ms (`sysconf(_SC_CLK_TCK)` is 100 on every Linux): with fewer, chance decides whether a tick met the
/// thread in user mode or in the kernel.
const TOLD_APART: Nanos = Nanos::from_millis(200);

fn cpu_per_op(user: Nanos, system: Nanos, operations: u64) -> CpuPerOp {
    let per_op = |nanos: Nanos| nanos.us() / operations as f64;
    let whole = user + system;
    let split_us = (whole >= TOLD_APART).then(|| (per_op(user), per_op(system)));
    CpuPerOp { total_us: per_op(whole), split_us }
}

fn side(step: &StepView<'_>, side: &Side, way: Way) -> Option<SideSummary> {
    let ops = side.operations();
    let seconds = step.elapsed.secs();
    // Without operations or time there is no rate, and none is not a rate of zero.
    if ops == 0 || seconds <= 0.0 {
        return None;
    }
    let iops = ops as f64 / seconds;
    let pieces = series::pieces(step, way);
    let short = || Known::not_measured("too short");
    let ci95_percent = batch_means(&series::rates(&pieces))
        .map_or_else(short, |interval| Known::Is(100.0 * interval.half_width / iops));
    Some(SideSummary {
        iops,
        mbps: basics::Bytes(side.bytes).mbps(step.elapsed),
        ops,
        lat: latency_of(side),
        service: side.service.as_ref().map(latency),
        ci95_percent,
        variation: variation(&series::rates(&series::joined(pieces))).map_or_else(short, Known::Is),
    })
}

/// Sums the latencies of a direction up. Where operations were timed in batches there is a mean and nothing else: a batch's
/// mean says neither how slow its slowest operation was nor how many were.
pub fn latency_of(side: &Side) -> LatencySummary {
    if side.is_each_timed() {
        return latency(&side.latency);
    }
    let max = Known::not_measured("timed in batches");
    LatencySummary { mean: Known::or_not_reported(side.latency.mean()), percentiles: Vec::new(), max }
}

/// Sums a histogram up.
pub fn latency(histogram: &Latencies) -> LatencySummary {
    let count = histogram.count() as f64;
    let carried = |percent: f64| percent <= 99.0 || count * (100.0 - percent) / 100.0 >= BEYOND - 1e-6;
    LatencySummary {
        mean: Known::or_not_reported(histogram.mean()),
        percentiles: PERCENTILES
            .into_iter()
            .filter(|percent| carried(*percent))
            .filter_map(|percent| Some((percent, histogram.percentile(percent)?)))
            .collect(),
        max: Known::or_not_reported(histogram.max()),
    }
}

impl LatencySummary {
    /// The latency at a percentile, if the data carry it.
    pub fn percentile(&self, percent: f64) -> Option<basics::Nanos> {
        self.percentiles.iter().find(|(p, _)| *p == percent).map(|(_, latency)| *latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;
    use basics::{Interval, Nanos};

    #[test]
    fn a_percentile_needs_ten_operations_beyond_it() {
        let known = |count| {
            let mut histogram = Latencies::new();
            histogram.record_n(Nanos(1000), count);
            latency(&histogram).percentiles.iter().map(|(percent, _)| *percent).collect::<Vec<_>>()
        };
        assert_eq!(known(0), Vec::<f64>::new());
        assert_eq!(known(3), [50.0, 90.0, 95.0, 99.0]);
        assert_eq!(known(9_999), [50.0, 90.0, 95.0, 99.0]);
        assert_eq!(known(10_000), [50.0, 90.0, 95.0, 99.0, 99.9]);
        assert_eq!(known(10_000_000).len(), 8);
    }

    #[test]
    fn what_was_timed_in_batches_has_a_mean_and_no_percentiles() {
        let mut step = Step::page_read("RAM", Nanos(1000));
        let latencies = step.read.latency.count();
        step.read.untimed = 255 * latencies;
        let read = summarise(&step.view()).read.unwrap();
        assert_eq!(read.ops, 256 * latencies);
        assert_eq!(read.lat.mean, Known::Is(Nanos(1000)));
        assert!(read.lat.percentiles.is_empty() && read.lat.max.is_unknown());
    }

    #[test]
    fn rates_are_over_the_measured_time() {
        let mut step = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 20], Nanos(1_000_000));
        step.cpu = Some((Nanos(40_000_000), Nanos(200_000_000)));
        let summary = summarise(&step.view());
        let read = summary.read.unwrap();
        assert_eq!((read.ops, read.iops), (2000, 1000.0));
        assert!((read.mbps - 16.384).abs() < 1e-9);
        assert_eq!(read.ci95_percent, Known::Is(0.0));
        assert_eq!(read.variation, Known::Is(0.0));
        assert_eq!(summary.cpu, Some(CpuPerOp { total_us: 120.0, split_us: Some((20.0, 100.0)) }));
        step.cpu = Some((Nanos(20_000_000), Nanos(0)));
        let short = CpuPerOp { total_us: 10.0, split_us: None };
        assert_eq!(summarise(&step.view()).cpu, Some(short), "two ticks cannot tell user from system");
        assert!(summary.write.is_none());
    }

    /// A stump of an interval at the end, in which little could be done, is no drop of the rate; nor is a gap, whose
    /// intervals were lost: only an interval that says zero is one.
    #[test]
    fn a_stump_and_a_lost_interval_are_no_drop() {
        let mut step = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 20], Nanos(1_000_000));
        let end = step.elapsed;
        step.intervals.push(Interval { start: end, end: end + Nanos(10_000_000), ..Interval::default() });
        let variation = |step: &Step| summarise(&step.view()).read.unwrap().variation;
        assert_eq!(variation(&step), Known::Is(0.0));
        assert_eq!(summarise(&step.view()).missing_intervals, 0);
        step.intervals.drain(5..10);
        assert_eq!(variation(&step), Known::Is(0.0));
        assert_eq!(summarise(&step.view()).missing_intervals, 5);
        step.intervals[7].read.clear();
        assert!(*variation(&step).get().unwrap() > 0.2);
    }

    /// An imported record may claim anything: time that no memory could hold as pieces, and intervals out of order.
    #[test]
    fn a_hostile_series_takes_no_more_memory_than_it_has_intervals() {
        let mut step = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 20], Nanos(1_000_000));
        step.job.interval = Nanos(1);
        step.intervals[19].start = Nanos(u64::MAX - 1);
        step.intervals[19].end = Nanos(u64::MAX);
        step.intervals.swap(3, 9);
        let summary = summarise(&step.view());
        assert!(summary.missing_intervals > 1 << 60);
        assert!(summary.read.is_some());
    }

    #[test]
    fn without_time_there_is_no_rate() {
        let mut step = Step::page_read("sda", Nanos(1_000_000));
        step.elapsed = Nanos(0);
        assert_eq!(summarise(&step.view()).read, None);
    }

    #[test]
    fn too_few_intervals_give_no_interval() {
        let step = Step::page_read("sda", Nanos(1_000_000)).replaced(&[100; 9], Nanos(1_000_000));
        assert_eq!(summarise(&step.view()).read.unwrap().ci95_percent, Known::not_measured("too short"));
    }
}
