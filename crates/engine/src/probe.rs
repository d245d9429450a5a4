//! Which engine is right for a job on a target, and why. Where it may, it tries: a few dozen reads at random places each
//! way, never a write. Where it may not (a descriptor that cannot be read, the page cache, which reading would fill) or
//! where reading says nothing (a job that only writes, whose file may hold extents that are read without I/O) it goes by
//! the kind of the job.

use crate::Target;
use crate::blocking::{Psync, drive as drive_blocking};
use crate::geometry::Share;
use crate::meter::{Meter, Shape};
use crate::queued::{Rings, drive as drive_queued};
use crate::slowest::Slowest;
use crate::stream::Stream;
use crate::worker::{Tally, Timeline, Worker};
use basics::job::{Direction, Engine, Entropy, Order, Sync};
use basics::units::significant;
use basics::{Bytes, Job, Nanos};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use sys::clock::Clock;
use sys::ring::Feature;

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The engine to take; never `Auto`.
    pub engine: Engine,
    /// The reason, a sentence without its full stop.
    pub why: String,
}

/// Reads that each way is tried with, and the time that it may take.
const READS: u64 = 64;
const TIME: Nanos = Nanos::from_millis(15);
/// Each way is tried so often, in turns, and its best time counts: another program's burst hits one try, not both.
const TRIES: usize = 2;
/// One operation at a time is another measurement than the queue that was asked for, so it is chosen only where the queue
/// clearly is in the way (zram without DEFER_TASKRUN: 3 times as fast), not where the tries merely differ.
const CLEARLY: f64 = 1.5;

fn choice(engine: Engine, why: impl Into<String>) -> Choice {
    Choice { engine, why: why.into() }
}

/// The engine for `job` on `target`: what the job asks for, or for `Auto` what a probe of at most 60 ms finds.
pub fn probe(job: &Job, target: &Target<'_>) -> Choice {
    let fd = match target {
        Target::Memory { .. } => return choice(Engine::Memory, "the target is memory"),
        Target::Keys(_) => return choice(Engine::Resp, "the target is a key-value server"),
        Target::Touched { .. } => return choice(Engine::Touch, "the target is memory that may be swapped"),
        Target::Null { .. } if job.depth == 1 => return choice(Engine::Psync, "the target is null, the depth is 1"),
        Target::Null { .. } => return choice(Engine::IoUring, "the target is null, the depth is more than 1"),
        Target::File { fd, .. } => *fd,
    };
    if job.engine != Engine::Auto {
        return choice(job.engine, "");
    }
    if job.depth == 1 {
        return choice(Engine::Psync, "at depth 1 a plain call is the shortest way");
    }
    if job.entropy == Entropy::Tagged && job.direction.reads() {
        return choice(Engine::Psync, "only plain calls look at what they read");
    }
    if let Err(error) = Rings::new(fd, &Job { direction: Direction::Read, ..job.clone() }, 0, &[]) {
        return choice(Engine::Psync, format!("io_uring cannot be used here ({error}), so the depth is 1"));
    }
    let direct = matches!(target, Target::File { direct: true, .. });
    if !direct && job.direction.writes() {
        return choice(Engine::Psync, "writes to the page cache are copies, which a ring only hands to helper threads");
    }
    let readable = sys::file::access(fd).is_ok_and(|(read, _)| read);
    if !direct || !readable || !job.direction.reads() {
        let cause = match (job.direction.reads(), readable) {
            (false, _) => "writes are not probed",
            (true, false) => "the descriptor cannot be read",
            (true, true) => "the page cache is not probed",
        };
        return choice(Engine::IoUring, format!("depth {} needs a queue ({cause})", job.depth));
    }
    let (mut ring, mut call) = (None::<f64>, None::<f64>);
    for _ in 0..TRIES {
        ring = better(ring, rate(job, target, fd, true));
        call = better(call, rate(job, target, fd, false));
    }
    match (ring, call) {
        (Some(ring), Some(call)) => {
            let engine = if call > CLEARLY * ring { Engine::Psync } else { Engine::IoUring };
            let (ring, call) = (significant(ring), significant(call));
            choice(engine, format!("probed: {ring} reads/s by io_uring at depth {}, {call} one at a time", job.depth))
        }
        _ => choice(Engine::IoUring, format!("depth {} needs a queue (the probe's reads failed)", job.depth)),
    }
}

fn better(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().max_by(f64::total_cmp)
}

/// Reads a second by one way; nothing when a read fails.
fn rate(job: &Job, target: &Target<'_>, fd: BorrowedFd<'_>, ring: bool) -> Option<f64> {
    let mut job = Job { direction: Direction::Read, order: Order::Permuted, threads: 1, ..job.clone() };
    job.sync = Sync::None;
    job.stop.operations = Some(READS.max(2 * u64::from(job.depth)).min(1024));
    job.stop.bytes = None;
    let share: Share = *crate::geometry::shares(&job, target).ok()?.first()?;
    let alignment = match target {
        Target::File { alignment: Bytes(alignment), .. } => *alignment,
        _ => 1,
    };
    let clock = Clock::best();
    let rate = clock.rate();
    let stop = AtomicBool::new(false);
    let meter = Meter::new(Shape { resolution: 5 }, true, false, false);
    let mut psync = Psync::new(fd, alignment, &job, 0, &stop).ok()?;
    let mut queue = if ring { Some(Rings::new(fd, &job, 0, &[]).ok()?.0) } else { None };
    let start = clock.ticks();
    let timeline = Timeline { start, measure: start, end: start + rate.ticks(TIME.0 as f64) as u64 };
    let worker = Worker {
        clock,
        rate,
        stop: &stop,
        timeline,
        stream: Stream::new(&job, &share),
        schedule: None,
        sync: Sync::None,
        end_fsync: false,
        each: Vec::new(),
        slowest: Slowest::new(0),
        thread: 0,
        tally: Tally::new(&meter, share, timeline),
    };
    let finish = match &mut queue {
        Some(queue) => drive_queued(worker, queue, job.depth, alignment),
        None => drive_blocking(worker, &mut psync, false),
    };
    let moved = meter.read.as_ref()?.bytes.load(std::sync::atomic::Ordering::Relaxed);
    let failed = matches!(finish.ended, Some(crate::Ended::Failed { .. }));
    let elapsed = rate.nanos(finish.last.checked_sub(start)? as f64);
    (!failed && moved > 0).then(|| moved as f64 / job.block.largest().0 as f64 * 1e9 / elapsed)
}

/// A refusal in the words of a record.
pub(crate) fn dropped(feature: Feature, error: &std::io::Error) -> (String, String) {
    (feature.name().to_owned(), format!("{error}; it came with {}", feature.since()))
}
