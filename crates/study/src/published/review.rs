//! An SSD review's sweeps: a curve for each direction by transfer size, by depth, and over the mix of reads and writes.

use super::point;
use crate::knee::{Knee, knee};
use crate::model::RunView;
use crate::steady::{Steadiness, steadiness};
use basics::job::Direction;
use basics::units::significant;
use basics::{Bytes, Nanos};
use serde::Serialize;

/// All curves of a review.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Review {
    /// In the order of the steps.
    pub sweeps: Vec<Sweep>,
    /// How the writes held still that went before, where they were to end by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precondition: Option<Steadiness>,
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// `size`, `depth-seq`, `depth-rand` or `mixed`.
    pub name: &'static str,
    /// `read` or `write`.
    pub rw: &'static str,
    /// Along the axis, in the order of the article.
    pub points: Vec<Point>,
    /// Of a sweep over depths: where it saturates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knee: Option<Knee>,
}

/// One point of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Where on the axis.
    #[serde(flatten)]
    pub at: At,
    /// What was measured there.
    #[serde(flatten)]
    pub figures: point::Figures,
}

/// The axis of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum At {
    /// Length of an operation.
    #[serde(rename = "bs_B")]
    Size(u64),
    /// Operations in flight over all threads.
    #[serde(rename = "depth")]
    Depth(u32),
    /// Share of reads.
    #[serde(rename = "read_percent")]
    Reads(u8),
}

impl At {
    /// The order of the article, whatever was measured first: upwards, and from all reads to none.
    fn place(self) -> u64 {
        match self {
            At::Size(bytes) => bytes,
            At::Depth(depth) => depth.into(),
            At::Reads(percent) => 100 - u64::from(percent.min(100)),
        }
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            At::Size(bytes) => write!(f, "{}", Bytes(*bytes)),
            At::Depth(depth) => write!(f, "depth {depth}"),
            At::Reads(percent) => write!(f, "{percent} % reads"),
        }
    }
}

/// What is known so well is printed without its interval.
const SURE_PERCENT: f64 = 3.0;

const NAMES: [&str; 4] = ["size", "depth-seq", "depth-rand", "mixed"];

/// Steps whose writes bring a device to where it is measured: it is to change meanwhile.
pub(super) fn preparing(run: &RunView<'_>) -> Vec<u32> {
    let prepares = |name: &str| ["fill-", "precondition"].iter().any(|start| name.starts_with(start));
    run.steps.iter().filter(|step| prepares(step.name)).map(|step| step.index).collect()
}

pub(super) fn figures(run: &RunView<'_>) -> Review {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for step in &run.steps {
        let Some(name) =
            NAMES.into_iter().find(|name| step.name.strip_prefix(name).is_some_and(|r| r.starts_with('-')))
        else {
            continue;
        };
        let at = match (name, step.job.direction) {
            ("size", _) => At::Size(step.job.block.largest().0),
            ("mixed", Direction::Mixed { read_percent }) => At::Reads(read_percent),
            _ => At::Depth(step.job.depth * step.job.threads),
        };
        for (rw, figures) in ["read", "write"].into_iter().zip(point::of(step)) {
            let Some(figures) = figures else { continue };
            let point = Point { at, figures };
            match sweeps.iter_mut().find(|sweep| (sweep.name, sweep.rw) == (name, rw)) {
                Some(sweep) => sweep.points.push(point),
                None => sweeps.push(Sweep { name, rw, points: vec![point], knee: None }),
            }
        }
    }
    for sweep in &mut sweeps {
        sweep.points.sort_by_key(|point| point.at.place());
        let depth = |point: &Point| match point.at {
            At::Depth(depth) => Some((depth, point.figures.iops, point.figures.lat_us.mean)),
            At::Size(_) | At::Reads(_) => None,
        };
        sweep.knee = knee(&sweep.points.iter().filter_map(depth).collect::<Vec<_>>());
    }
    Review { sweeps, precondition: steadiness(run) }
}

impl Review {
    pub(super) fn lines(&self) -> Vec<String> {
        let before = self.precondition.iter().map(|steady| format!("written full before: {}", steady.verdict()));
        let sure = format!(
            "behind what is known to no better than ±{SURE_PERCENT} % stands its 95 % interval, or a ? where none is known"
        );
        let sure = (!self.sweeps.is_empty()).then_some(sure);
        before.chain(sure).chain(self.sweeps.iter().flat_map(Sweep::lines)).collect()
    }
}

impl Sweep {
    fn lines(&self) -> Vec<String> {
        let title = match self.name {
            "size" => "by transfer size at depth 1",
            "depth-seq" => "by depth, 128 KiB in sequence",
            "depth-rand" => "by depth, 4 KiB at random",
            _ => "mixed, 4 KiB at random, depth 16",
        };
        let mut lines = vec![format!("{}s {title}", self.rw)];
        let time = |us: f64| Nanos((us * 1e3).round() as u64).to_string();
        for Point { at, figures } in &self.points {
            let lat = &figures.lat_us;
            let far = match (lat.p99_999, &lat.p99_999_why) {
                (Some(us), _) => time(us),
                (None, why) => why.clone().unwrap_or_default(),
            };
            let known = |(us, ci95): (f64, Option<[f64; 2]>)| match ci95 {
                Some([low, high]) if high - us > us * SURE_PERCENT / 100.0 || us - low > us * SURE_PERCENT / 100.0 => {
                    format!("{} ({} to {})", time(us), time(low), time(high))
                }
                Some(_) => time(us),
                None => format!("{} (?)", time(us)),
            };
            let [mean, p50, p99] =
                [(lat.mean, lat.mean_ci95), (lat.p50, lat.p50_ci95), (lat.p99, lat.p99_ci95)].map(known);
            let [iops, mbps] = [figures.iops, figures.mbps].map(significant);
            let at = at.to_string();
            lines.push(format!(
                "{at:>11}  {iops:>9} IOPS  {mbps:>6} MB/s  mean {mean}, median {p50}, p99 {p99}, p99.999 {far}"
            ));
        }
        if let Some(knee) = self.knee {
            lines.push(format!(
                "saturated from depth {} on; at the deepest point an operation waits {} times as long",
                knee.depth,
                significant(knee.beyond)
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};

    #[test]
    fn a_cache_that_fills_as_it_should_is_no_unstable_device() {
        let steps = ["fill-size-write", "size-read-16KiB"].map(|name| Step::page_read("x", Nanos(100_000)).named(name));
        let run = Run::of("ssd-review", &[]).steps(steps);
        assert_eq!(preparing(&run.view()), [0]);
    }

    #[test]
    fn steps_become_curves() {
        let deep = |depth: u32| {
            let latency = Nanos(100_000 * u64::from((depth / 4).max(1)));
            Step::small_reads("x", depth, latency).named(&format!("depth-rand-read-qd{depth}"))
        };
        let mut steps = vec![Step::page_read("x", Nanos(100_000)).named("size-read-16KiB")];
        steps.extend([1, 2, 4, 8, 16].map(deep));
        let review = figures(&Run::of("ssd-review", &[]).steps(steps).view());
        let names: Vec<_> = review.sweeps.iter().map(|sweep| (sweep.name, sweep.rw, sweep.points.len())).collect();
        assert_eq!(names, [("size", "read", 1), ("depth-rand", "read", 5)]);
        assert_eq!(review.sweeps[0].points[0].at, At::Size(16384));
        let knee = review.sweeps[1].knee.unwrap();
        assert_eq!((knee.depth, knee.beyond.round()), (4, 4.0));
        assert!(review.lines().iter().any(|line| line.starts_with("saturated from depth 4 on")));
        let json = serde_json::to_value(&review).unwrap();
        assert_eq!(json["sweeps"][1]["points"][2]["depth"], 4);
        assert!(json["sweeps"][0]["points"][0]["lat_us"]["p50"].is_number());
    }
}
