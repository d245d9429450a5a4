//! Sweeps among the steps of a run: steps one after the other whose jobs differ in nothing but the length of an operation,
//! the depth, or the share of reads. What a curve means is said by the findings; whether it may be drawn is said here.

use crate::model::{RunView, SideSummary, StepView};
use crate::summary::summarise;
use basics::Job;
use basics::job::{Block, Direction, Order, Stop};
use basics::units::significant;

/// Fewest points of a curve.
const POINTS: usize = 3;
/// A rate that is known to no better than ±20 % draws no curve: SNIA calls a device steady within that range.
const UNSURE_PERCENT: f64 = 20.0;
/// A rise or fall by less than this factor is none.
const MOVES: f64 = 1.25;
/// A curve that turns so often goes by fits and starts: a dip on the way up turns twice.
const TURNS: usize = 3;

/// What changes from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Bytes of an operation.
    Size,
    /// Operations in flight over all threads.
    Depth,
    /// Reads, per cent of all operations.
    Reads,
}

impl Axis {
    /// Stable name: `size`, `depth` or `reads`.
    pub fn word(self) -> &'static str {
        match self {
            Axis::Size => "size",
            Axis::Depth => "depth",
            Axis::Reads => "reads",
        }
    }
}

/// One direction of a sweep.
#[derive(Debug, Clone)]
pub struct Sweep<'r, 'a> {
    /// What changes.
    pub axis: Axis,
    /// Reads, or writes.
    pub reads: bool,
    /// Upwards, and mixes from all reads to none.
    pub points: Vec<Point<'r, 'a>>,
}

/// A step that is a point of a curve.
#[derive(Debug, Clone)]
pub struct Point<'r, 'a> {
    /// Where on the axis.
    pub at: u64,
    /// The step.
    pub step: &'r StepView<'a>,
    /// This direction of it.
    pub side: SideSummary,
}

/// The curves of a run, in the order of its steps. Steps that did not come to their end are no points, nor are those of rounds
/// that are repeated until they hold still: what they show before is not the device's.
pub fn sweeps<'r, 'a>(run: &'r RunView<'a>) -> Vec<Sweep<'r, 'a>> {
    let in_rounds = |step: &StepView<'_>| run.rounds.is_some_and(|rounds| rounds.holds(step.index as usize));
    let mut out = Vec::new();
    let mut group: Vec<&'r StepView<'a>> = Vec::new();
    let mut axis = None;
    for step in run.steps.iter().filter(|step| step.is_whole() && !in_rounds(step)) {
        let next = group.last().and_then(|last| between(last, step));
        // On along the same axis, in the same sense.
        let goes_on = match (&group[..], axis, next) {
            ([_], _, Some(_)) => true,
            ([.., before, last], Some(axis), Some(next)) if axis == next => {
                let [a, b, c] = [before, last, &step].map(|step| at(axis, step.job));
                (a < b) == (b < c)
            }
            _ => false,
        };
        if !goes_on {
            curves(axis, &group, &mut out);
            group.clear();
        }
        axis = next.filter(|_| goes_on);
        group.push(step);
    }
    curves(axis, &group, &mut out);
    out
}

fn curves<'r, 'a>(axis: Option<Axis>, group: &[&'r StepView<'a>], out: &mut Vec<Sweep<'r, 'a>>) {
    let Some(axis) = axis else { return };
    for reads in [true, false] {
        let point = |step: &&'r StepView<'a>| {
            let summary = summarise(step);
            let side = if reads { summary.read } else { summary.write }?;
            Some(Point { at: at(axis, step.job), step, side })
        };
        let mut points: Vec<Point<'r, 'a>> = group.iter().filter_map(point).collect();
        // Sizes and depths are told upwards and mixes from all reads to none, in whatever order they were measured.
        points.sort_by_key(|point| point.at);
        if axis == Axis::Reads {
            points.reverse();
        }
        if points.len() >= POINTS {
            out.push(Sweep { axis, reads, points });
        }
    }
}

/// Where a job stands on an axis.
fn at(axis: Axis, job: &Job) -> u64 {
    match (axis, job.direction) {
        (Axis::Size, _) => job.block.largest().0,
        (Axis::Depth, _) => u64::from(job.depth) * u64::from(job.threads),
        (Axis::Reads, Direction::Mixed { read_percent }) => u64::from(read_percent),
        (Axis::Reads, direction) => u64::from(direction.reads()) * 100,
    }
}

/// The one axis along which two steps differ.
fn between(a: &StepView<'_>, b: &StepView<'_>) -> Option<Axis> {
    let same = Job::default();
    // How long a point takes, and by which seed, is no part of what is asked.
    let bare = |job: &Job| Job { seed: 0, stop: Stop::default(), ..job.clone() };
    let blind = |axis: Axis, job: &Job| match axis {
        Axis::Size => Job { block: same.block.clone(), ..bare(job) },
        Axis::Depth => Job { depth: 1, threads: 1, separate_regions: true, ..bare(job) },
        Axis::Reads => Job { direction: same.direction, ..bare(job) },
    };
    let mixed = |step: &StepView<'_>| matches!(step.job.direction, Direction::Mixed { .. });
    let differs = |axis: &Axis| {
        at(*axis, a.job) != at(*axis, b.job)
            && blind(*axis, a.job) == blind(*axis, b.job)
            && (*axis != Axis::Reads || mixed(a) && mixed(b))
    };
    let fixed = |step: &StepView<'_>| matches!(step.job.block, Block::Fixed(_));
    let alike = (a.tier, a.target) == (b.tier, b.target) && fixed(a) && fixed(b);
    [Axis::Size, Axis::Depth, Axis::Reads].into_iter().find(differs).filter(|_| alike)
}

impl Sweep<'_, '_> {
    /// What was asked, without what changes: `sequential reads of 128 KiB`.
    pub fn title(&self) -> String {
        let Some(Point { step, .. }) = self.points.first() else { return String::new() };
        let (job, way) = (step.job, if self.reads { "reads" } else { "writes" });
        let order = if job.order == Order::Sequential { "sequential" } else { "random" };
        let depth = u64::from(job.depth) * u64::from(job.threads);
        let block = job.block.largest();
        let mut title = match self.axis {
            Axis::Size => format!("{order} {way} at depth {depth}"),
            Axis::Depth => format!("{order} {way} of {block}"),
            Axis::Reads => format!("{order} {way} of {block} among others at depth {depth}"),
        };
        if let (Axis::Size | Axis::Depth, Direction::Mixed { read_percent }) = (self.axis, job.direction) {
            title += &format!(" in a mix of {read_percent} % reads");
        }
        if !job.direct {
            title += ", buffered";
        }
        title
    }

    /// Why the curve is not to be drawn or judged, when that is so: its points are not known well enough, or they go up and
    /// down.
    pub fn erratic(&self) -> Option<String> {
        let unsure: Vec<f64> = self.points.iter().filter_map(|point| point.side.ci95_percent.get().copied()).collect();
        let bad = unsure.iter().filter(|percent| **percent > UNSURE_PERCENT).count();
        let worst = unsure.iter().copied().fold(0.0, f64::max);
        if 2 * bad >= self.points.len() {
            let known = significant(worst.round());
            return Some(format!("{bad} of {} points are known to no better than ±{known} %", self.points.len()));
        }
        let mut turns = 0;
        let mut rose = None;
        let mut last = self.rate(self.points.first()?);
        for rate in self.points.iter().map(|point| self.rate(point)) {
            let rises = rate >= MOVES * last;
            if !rises && rate * MOVES > last {
                continue;
            }
            turns += usize::from(rose.is_some_and(|rose| rose != rises));
            (rose, last) = (Some(rises), rate);
        }
        (turns >= TURNS).then(|| format!("its rate turns {turns} times, each time by a quarter or more"))
    }

    /// What is expected to change evenly along the axis: bytes where operations grow, operations elsewhere.
    pub(crate) fn rate(&self, point: &Point<'_, '_>) -> f64 {
        if self.axis == Axis::Size { point.side.mbps } else { point.side.iops }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::Nanos;

    /// A point of a sweep over depths: so many operations in each 100 ms.
    pub fn deep(depth: u32, count: u64) -> Step {
        let latency = Nanos(100_000_000 * u64::from(depth) / count);
        let mut step = Step::small_reads("x", depth, Nanos(1_000_000)).replaced(&[count; 20], latency);
        (step.job.depth, step.job.threads) = (depth / depth.min(4), depth.min(4));
        step.named(&format!("deep-{depth}"))
    }
    /// A point of a sweep over sizes at depth 1.
    pub fn long(bytes: u64, us: u64) -> Step {
        let latency = Nanos(us * 1000);
        let counts = [100_000 / us; 20];
        Step::page_read("x", latency).block(bytes).replaced(&counts, latency).named(&format!("long-{bytes}"))
    }

    #[test]
    fn neighbours_that_differ_in_one_thing_are_a_sweep() {
        let steps = [long(4096, 100), long(8192, 110), long(16384, 130), long(32768, 150)];
        let steps = steps.into_iter().chain([deep(1, 100), deep(2, 200), deep(4, 300), deep(8, 310)]);
        // Nothing goes on from 4 KiB at depth 8.
        let run = Run::default().steps(steps.chain([long(65536, 200), Step::seq_read("x", 100.0)]));
        let view = run.view();
        let found = sweeps(&view);
        let told: Vec<_> = found.iter().map(|sweep| (sweep.axis, sweep.title(), sweep.points.len())).collect();
        assert_eq!(
            told,
            [
                (Axis::Size, "random reads at depth 1".to_owned(), 4),
                (Axis::Depth, "random reads of 4 KiB".to_owned(), 4)
            ]
        );
        assert_eq!(found[1].points.iter().map(|point| point.at).collect::<Vec<_>>(), [1, 2, 4, 8]);
        let mut short = Run::default().steps([deep(1, 100), deep(2, 200), deep(4, 300)]);
        short.steps[1].state = crate::State::Interrupted;
        assert!(sweeps(&short.view()).is_empty(), "two points are no curve");
    }

    #[test]
    fn the_mixes_have_a_curve_for_each_way() {
        let mixed = |read_percent: u8| {
            let counts = [u64::from(read_percent).max(1); 20];
            let other = [u64::from(100 - read_percent).max(1); 20];
            let mut step = Step::swap_sim("x").reads(&counts, Nanos(1000)).writes(&other, Nanos(1000));
            step.job.direction = Direction::Mixed { read_percent };
            step
        };
        let run = Run::default().steps([100, 70, 30, 0].map(mixed));
        let view = run.view();
        let found = sweeps(&view);
        assert_eq!(
            found.iter().map(|sweep| (sweep.axis, sweep.reads)).collect::<Vec<_>>(),
            [(Axis::Reads, true), (Axis::Reads, false)]
        );
        assert_eq!(found[0].points.iter().map(|point| point.at).collect::<Vec<_>>(), [100, 70, 30, 0]);
    }

    #[test]
    fn a_dip_is_no_fit_and_start() {
        let of = |rates: [u64; 6]| {
            let depths = [1, 2, 4, 8, 16, 32];
            let run = Run::default().steps(depths.into_iter().zip(rates).map(|(depth, rate)| deep(depth, rate)));
            let view = run.view();
            sweeps(&view)[0].erratic()
        };
        assert_eq!(of([100, 60, 100, 160, 200, 200]), None);
        // One dip over sizes, whose bytes a second are not its operations a second: it is drawn.
        let sizes = [(4096, 10), (8192, 12), (16384, 40), (32768, 32), (65536, 50)];
        let run = Run::default().steps(sizes.map(|(bytes, us)| long(bytes, us)));
        assert_eq!(sweeps(&run.view())[0].erratic(), None);
        let told = of([100, 60, 140, 70, 160, 80]).unwrap();
        assert_eq!(told, "its rate turns 4 times, each time by a quarter or more");
        let fits = (1..=3).map(|i| {
            let counts: Vec<u64> = (0..40).map(|at| if at / 10 % 2 == 0 { 5 } else { 400 }).collect();
            deep(1 << i, 100).replaced(&counts, Nanos(1_000_000))
        });
        let run = Run::default().steps(fits);
        let view = run.view();
        let told = sweeps(&view)[0].erratic().unwrap();
        assert!(told.starts_with("3 of 3 points are known to no better than ±"), "{told}");
    }
}
