//! Turns a job into latency histograms on an opened target: psync, io_uring, mmap or memory; pacing; stop rules. It
//! knows no file format and no report, opens no file and creates none: the caller hands it what may be used.
//!
//! Threads count into meters that the calling thread reads once an interval; nothing is locked, allocated or
//! handed over while they measure.
#![forbid(unsafe_code)]

mod blocking;
mod buffers;
mod collect;
mod confidence;
mod decode;
mod entropy;
mod gate;
mod geometry;
mod memory;
mod meter;
mod null;
mod order;
mod pace;
mod probe;
mod queued;
mod refill;
mod resp;
mod run;
mod simulate;
mod slowest;
mod stream;
mod token;
mod touch;
mod worker;

pub use decode::{Decoded, decode};
pub use probe::{Choice, probe};
pub use resp::{Endpoint, Keys, Names, NullServer, key_name};
pub use simulate::simulate;
pub use touch::fill;

use basics::outcome::Slow;
use basics::redis_commands::Command;
use basics::{Bytes, Each, EngineUse, Interval, Job, Latencies, Nanos, Side};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use sys::region::Region;
use thiserror::Error;

/// What a job runs against. The caller has opened it with the flags that the job asks for.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A file or a block device.
    File {
        /// Opened for what the job does.
        fd: BorrowedFd<'a>,
        /// How much of it may be used, from offset 0.
        len: Bytes,
        /// Offsets, lengths and buffers are multiples of this when O_DIRECT is on.
        alignment: Bytes,
        /// True when the descriptor really has O_DIRECT.
        direct: bool,
    },
    /// Memory of this process, taken and touched by the engine before the first operation.
    Memory {
        /// How much.
        size: Bytes,
    },
    /// Memory that may be swapped, as [`fill`] left it.
    Touched {
        /// All of it.
        region: &'a Region,
    },
    /// A key-value server: block *i* is key *i*, a read a GET, a write a SET.
    Keys(Keys<'a>),
    /// Nothing: what is left is the harness.
    Null {
        /// Time that each operation takes.
        service: Nanos,
        /// Every `.0`, all operations wait for `.1`.
        stall: Option<(Nanos, Nanos)>,
    },
}

/// How the outside stops a running job.
#[derive(Debug, Clone, Copy)]
pub struct Control<'a> {
    /// Once it is set the job ends within some 20 ms, during the warm-up too; what was measured is kept. The engine only
    /// reads it, so it may be the flag that a signal sets.
    pub cancel: &'a AtomicBool,
}

impl<'a> Control<'a> {
    /// A job that ends early once `cancel` is set.
    pub fn new(cancel: &'a AtomicBool) -> Self {
        Control { cancel }
    }
}

/// Why a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Its time is over.
    Time,
    /// Its bytes are moved.
    Bytes,
    /// Its operations are done.
    Operations,
    /// The figure is known as well as was asked.
    Confidence,
    /// [`Control::cancel`].
    Cancelled,
    /// An operation failed; everything before it is kept.
    Failed {
        /// `read`, `write`, `fsync`, or `io_uring_enter` when the ring itself failed.
        what: &'static str,
        /// Where.
        offset: Bytes,
        /// The kernel's error number; `ENODATA` when a file ended in the middle of a read, since it has become shorter.
        errno: i32,
    },
    /// A server answered that it does not do it; everything before it is kept.
    Refused {
        /// In its words.
        said: String,
    },
    /// A read of a tagged job found something else than what is written there; everything before it is kept.
    Astray {
        /// The first sector of which that is so.
        offset: Bytes,
        /// Where its content was written, if it says so.
        holds: Option<Bytes>,
    },
}

impl Ended {
    /// Not as the job was planned to end.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Ended::Failed { .. } | Ended::Refused { .. } | Ended::Astray { .. })
    }
}

/// All that a job gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What ran.
    pub engine: EngineUse,
    /// Why it ended.
    pub ended: Ended,
    /// Measured time, warm-up left out.
    pub elapsed: Nanos,
    /// Reads.
    pub read: Side,
    /// Writes.
    pub write: Side,
    /// Touched memory: the touches that met a major fault, warm-up left out. Empty for all other targets.
    pub faults: Latencies,
    /// CPU time of the measuring threads in user mode (by rusage: long runs only).
    pub cpu_user: Nanos,
    /// CPU time of the measuring threads in the kernel.
    pub cpu_system: Nanos,
    /// Each operation by itself, where the job wants that.
    pub each: Vec<Each>,
    /// The slowest requests to a server, as many as [`Keys::slowest`] asks for.
    pub slowest: Vec<Slow>,
    /// Requests to a server: each command of [`Keys::commands`] by itself.
    pub commands: Vec<(Command, Latencies)>,
    /// When the measurement began, ns of CLOCK_MONOTONIC; 0 where nothing was real.
    pub began: u64,
    /// What a reader of the figures must know, each a sentence.
    pub notes: Vec<String>,
}

/// A job that could not be started.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A field is nonsense.
    #[error(transparent)]
    Job(#[from] basics::job::JobError),
    /// The profile says nothing of what the job asks for.
    #[error(transparent)]
    Profile(profile::ProfileError),
    /// The region does not fit the target, or alignment forbids the block size.
    #[error("{0}")]
    Geometry(String),
    /// The engine asked for does not exist here.
    #[error("engine {engine} cannot be used here: {why}; leave engine=auto")]
    Unavailable {
        /// Its name.
        engine: &'static str,
        /// The kernel's answer.
        why: String,
    },
    /// Memory or a thread could not be had.
    #[error("{what}: {source}")]
    System {
        /// What was asked of the system.
        what: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
}

/// Receives each interval as it ends; called on a thread that does no I/O.
pub trait Sink {
    /// The interval just ended; the reference is reused for the next.
    fn interval(&mut self, interval: &Interval);
}

impl<F: FnMut(&Interval)> Sink for F {
    fn interval(&mut self, interval: &Interval) {
        self(interval);
    }
}

/// Runs `job` on `target` to its end. [`Sink::interval`] is called on the calling thread, which does no I/O itself.
///
/// # Errors
/// When it cannot start. What fails later is in [`Outcome::ended`], with everything measured until then.
pub fn run(job: &Job, target: Target<'_>, control: &Control<'_>, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
    run::run(job, target, control, sink, &[])
}

/// Refuses what can be known to make no sense before a target of `len` bytes that is a file or a device is opened: a region
/// that does not fit, a thread without a block, direct I/O in pieces that no sector has.
///
/// # Errors
/// [`EngineError::Geometry`].
pub fn may_fit(job: &Job, len: Bytes) -> Result<(), EngineError> {
    /// The smallest sector there is; [`run()`] knows the target's own.
    const SECTOR: u64 = 512;
    if job.direct {
        geometry::aligned(job, Bytes(SECTOR))?;
    }
    geometry::shares_within(job, len, job.separate_regions).map(drop)
}

/// The harness's own cost in nanoseconds an operation, everything but the operation itself: both loops, the one of plain
/// calls and the one of the queue at depth 32, run for half of [`CALIBRATION`] on a null target, and the dearer counts.
///
/// # Errors
/// When no thread or memory can be had.
pub fn calibrate() -> Result<f64, EngineError> {
    let loop_cost = |depth| {
        let job = Job {
            order: basics::job::Order::Permuted,
            depth,
            size: Some(Bytes(basics::units::GIB)),
            stop: basics::job::Stop { time: Some(Nanos(CALIBRATION.0 / 2)), ..Default::default() },
            ..Job::default()
        };
        let target = Target::Null { service: Nanos(0), stall: None };
        let outcome = run(&job, target, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {})?;
        Ok::<_, EngineError>(outcome.elapsed.0 as f64 / outcome.read.operations().max(1) as f64)
    };
    Ok(loop_cost(1)?.max(loop_cost(32)?))
}

/// Fills `piece` with bytes that nothing compresses, others for each `place`.
pub fn random(piece: &mut [u8], seed: u64, place: u64) {
    entropy::Filler::new(basics::job::Entropy::Incompressible, seed, place).fill(piece);
}

/// How long [`calibrate`] takes.
pub const CALIBRATION: Nanos = Nanos::from_millis(50);
