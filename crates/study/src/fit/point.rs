//! Steps as points that a fit can use: what was done in plain numbers, told by the shape of the job, with the intervals
//! left out that show something else (a stall, a full cache).

use super::replay::Work;
use crate::little;
use crate::model::{Origin, StepView};
use basics::job::{Block, Direction, Engine, Entropy, Order, Pacing, Sync};
use basics::little::{Cause, Verdict};
use basics::stats::batch_means;
use basics::{Interval, Nanos, Side};

/// Deviation from Little's law that is put right.
const OFF: f64 = 0.1;

/// One steady step.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// `step 3 rand-read-4k-qd1`, with the run's number where there are several.
    pub label: String,
    /// Share of reads, 0 to 1.
    pub reads: f64,
    pub sequential: bool,
    pub size: u64,
    /// Operations in flight, over all threads.
    pub depth: u32,
    /// Sequences that it goes on with at once: one of each thread, unless all read the same places.
    pub streams: u32,
    /// Writes between two syncs.
    pub sync_every: Option<u32>,
    /// Ended by an fsync inside the time.
    pub end_sync: bool,
    /// Part of the target that was worked on, in bytes, where the job says so.
    pub region: Option<(u64, u64)>,
    pub seconds: f64,
    pub read: Side,
    pub write: Side,
    /// What the latencies must be multiplied with so that Little's law holds.
    pub little: f64,
    /// Half width of the 95 % interval of the rate, as a part of it.
    pub noise: f64,
    /// The same from the series alone, where that is long enough: latencies of a fixed cycle differ without any chance.
    pub series_noise: Option<f64>,
    /// The series, for what changes over time.
    pub series: Vec<Moment>,
}

/// A piece of the series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub start: f64,
    pub end: f64,
    pub operations: u64,
    pub bytes: u64,
    /// Longest latency of those that were completed, seconds.
    pub longest: f64,
}

impl Point {
    /// The step as a point; nothing when it is none (broken off, open loop, several sizes, no device).
    pub fn new(run: usize, runs: usize, origin: &Origin<'_>, step: &StepView<'_>) -> Option<Self> {
        let job = step.job;
        let Block::Fixed(size) = job.block else { return None };
        let used = step.engine.map_or(job.engine, |engine| engine.used);
        let device = !(matches!(used, Engine::Memory | Engine::Mmap) || used.is_workload());
        if !step.is_whole() || job.pacing != Pacing::Closed || !device || step.elapsed.0 == 0 || size.0 == 0 {
            return None;
        }
        // Through the page cache nothing is said about a device, unless each write is followed by a sync.
        let sync_every = match job.sync {
            Sync::None => None,
            Sync::Dsync | Sync::OSync => Some(1),
            Sync::Fsync { every } | Sync::Fdatasync { every } => Some(every.max(1)),
        };
        if !job.direct && !matches!(origin, Origin::Simulated(_)) && sync_every != Some(1) {
            return None;
        }
        // A block that is looked for says nothing of rates.
        if job.entropy == Entropy::Tagged && step.read.operations() + step.write.operations() == 1 {
            return None;
        }
        let depth = if used == Engine::Psync { 1 } else { job.depth };
        let reads = match job.direction {
            Direction::Read => 1.0,
            Direction::Write => 0.0,
            Direction::Mixed { read_percent } => f64::from(read_percent) / 100.0,
        };
        let which = if runs > 1 { format!("run {} ", run + 1) } else { String::new() };
        let series: Vec<Moment> = step.intervals.iter().map(|interval| Moment::new(interval)).collect();
        let mut point = Point {
            label: format!("{which}step {} {}", step.index, step.name),
            reads,
            sequential: job.order == Order::Sequential,
            size: size.0,
            depth: depth * job.threads,
            streams: if job.separate_regions { job.threads } else { 1 },
            sync_every,
            end_sync: job.end_fsync && job.direction.writes(),
            region: job.size.filter(|_| job.threads == 1).map(|size| (job.offset.0, size.0)),
            seconds: step.elapsed.secs(),
            read: step.read.clone(),
            write: step.write.clone(),
            little: 1.0,
            noise: 0.0,
            series_noise: None,
            series,
        };
        point.obey_little(step, depth);
        let rates: Vec<f64> = point.series.iter().map(Moment::rate).collect();
        let part = batch_means(&rates).map(|interval| interval.percent() / 100.0);
        point.series_noise = part.filter(|part| part.is_finite());
        point.noise = point.rate_noise();
        Some(point)
    }

    /// Time blocked in submission is missing in some tools' latencies: what Little's law says of the depth is put back. An
    /// engine that completes in submission has one operation in flight for each thread, whatever was asked.
    fn obey_little(&mut self, step: &StepView<'_>, depth: u32) {
        let mut found = little::at_depth(step, depth);
        if depth > 1 && found.verdict == Verdict::Off(Cause::InSubmission) {
            self.depth = step.job.threads;
            found = little::at_depth(step, 1);
        }
        let unsaid = matches!(found.verdict, Verdict::Unsaid(_));
        if !unsaid && found.sum > 0.0 && (found.sum / found.depth - 1.0).abs() > OFF {
            self.little = found.depth / found.sum;
        }
    }

    fn rate_noise(&self) -> f64 {
        // At depth 1 the rate is the inverse of a mean of independent latencies, mostly.
        let from_latencies = [&self.read, &self.write].map(|side| {
            let count = side.latency.count() as f64;
            let (mean, stdev) = (side.latency.mean(), side.latency.stdev());
            mean.zip(stdev)
                .filter(|(mean, _)| mean.0 > 0)
                .map_or(0.0, |(mean, s)| 1.96 * s.secs() / mean.secs() / count.sqrt())
        });
        from_latencies.into_iter().chain(self.series_noise).fold(0.0, f64::max).min(0.5)
    }

    /// Keeps only the moments for which `keep` holds; the series stays whole.
    pub fn cleaned(mut self, step: &StepView<'_>, keep: impl Fn(&Moment) -> bool) -> Self {
        let kept = || step.intervals.iter().zip(&self.series).filter(|(_, moment)| keep(moment));
        if kept().count() == self.series.len() {
            return self;
        }
        let mut all = Interval::default();
        let mut seconds = 0.0;
        for (interval, moment) in kept() {
            all.read.merge(&interval.read);
            all.write.merge(&interval.write);
            seconds += moment.end - moment.start;
        }
        if all.read.operations() + all.write.operations() > 0 && seconds > 0.0 {
            (self.read, self.write, self.seconds) = (all.read, all.write, seconds);
            self.noise = self.noise.max(1.0 / ((self.read.operations() + self.write.operations()) as f64).sqrt());
        }
        self
    }

    /// To be tried on a model.
    pub fn work(&self) -> Work {
        let Point { reads, sequential, size, depth, streams, .. } = *self;
        Work { reads, sequential, size, depth, streams }
    }

    /// Operations a second, both directions.
    pub fn iops(&self) -> f64 {
        (self.read.operations() + self.write.operations()) as f64 / self.seconds
    }
    /// One direction.
    pub fn side(&self, read: bool) -> &Side {
        if read { &self.read } else { &self.write }
    }
    /// Mean latency of a direction as Little's law has it, µs.
    pub fn mean_us(&self, read: bool) -> Option<f64> {
        let mean = self.side(read).latency.mean()?.us();
        Some(mean * self.little)
    }
    /// True for one direction only, with nothing made durable meanwhile.
    pub fn is_pure(&self, read: bool) -> bool {
        self.sync_every.is_none() && !self.end_sync && self.reads == if read { 1.0 } else { 0.0 }
    }
}

impl Moment {
    fn new(interval: &Interval) -> Self {
        let longest = [&interval.read, &interval.write].iter().filter_map(|side| side.latency.max()).max();
        Moment {
            start: interval.start.secs(),
            end: interval.end.secs(),
            operations: interval.read.operations() + interval.write.operations(),
            bytes: interval.read.bytes + interval.write.bytes,
            longest: longest.map_or(0.0, Nanos::secs),
        }
    }
    pub fn width(&self) -> f64 {
        self.end - self.start
    }
    pub fn rate(&self) -> f64 {
        if self.width() > 0.0 { self.operations as f64 / self.width() } else { 0.0 }
    }
}
