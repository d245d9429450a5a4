//! Durable writes: a row for each size and call, as databases' readers compare them.

use super::point;
use crate::model::RunView;
use basics::Bytes;
use basics::job::Sync;
use basics::units::significant;
use serde::Serialize;

/// Every size and call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fsync {
    /// In the order of the steps.
    pub points: Vec<Point>,
}

/// One size with one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Length of a write.
    #[serde(rename = "bs_B")]
    pub bs: u64,
    /// `fsync` or `fdatasync`.
    pub sync: &'static str,
    /// Write and call together.
    #[serde(flatten)]
    pub figures: point::Figures,
}

pub(super) fn figures(run: &RunView<'_>) -> Fsync {
    let points = run.steps.iter().filter_map(|step| {
        let sync = match step.job.sync {
            Sync::Fsync { .. } => "fsync",
            Sync::Fdatasync { .. } => "fdatasync",
            Sync::None | Sync::Dsync | Sync::OSync => return None,
        };
        let [_, write] = point::of(step);
        Some(Point { bs: step.job.block.largest().0, sync, figures: write? })
    });
    Fsync { points: points.collect() }
}

impl Fsync {
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |point: &Point| {
            let lat = &point.figures.lat_us;
            let [mean, p50, p99] = [lat.mean, lat.p50, lat.p99].map(significant);
            let (bs, rate) = (Bytes(point.bs).to_string(), significant(point.figures.iops));
            format!("{bs:>7} write + {:<9}  mean {mean} µs, median {p50} µs, p99 {p99} µs; {rate} a second", point.sync)
        };
        self.points.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::Nanos;

    #[test]
    fn each_size_and_call_is_a_row() {
        let mut other = Step::fsyncs("sda", Nanos(2_000_000)).block(65536);
        other.job.sync = Sync::Fdatasync { every: 1 };
        let run = Run::of("fsync", &[]).steps([Step::fsyncs("sda", Nanos(1_000_000)), other]);
        let found = figures(&run.view());
        let rows: Vec<_> = found.points.iter().map(|p| (p.bs, p.sync, p.figures.lat_us.mean.round())).collect();
        assert_eq!(rows, [(4096, "fsync", 1000.0), (65536, "fdatasync", 2000.0)]);
        assert_eq!(
            found.lines()[1],
            " 64 KiB write + fdatasync  mean 2,000 µs, median 2,001 µs, p99 2,001 µs; 500 a second"
        );
    }
}
