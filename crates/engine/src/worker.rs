//! What every measuring thread carries, whichever engine it drives: its operations, its schedule, its counters, and the
//! rules by which it begins to count and stops.

use crate::Ended;
use crate::geometry::Share;
use crate::meter::{Lane, Meter};
use crate::pace::Schedule;
use crate::slowest::Slowest;
use crate::stream::{Op, Stream};
use basics::job::Sync;
use basics::outcome::Slow;
use basics::redis_commands::Command;
use basics::{Bytes, Each, Latencies, Nanos};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use sys::clock::{Clock, Rate};
use sys::thread::Usage;

/// The moments of a run, in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    /// The first operation may be sent.
    pub(crate) start: u64,
    /// The warm-up is over.
    pub(crate) measure: u64,
    /// No operation is sent any more; `u64::MAX` when time does not end the job.
    pub(crate) end: u64,
}

/// What a thread has left when it is done.
#[derive(Debug)]
pub(crate) struct Finish {
    /// Why it ended; nothing when it was told to stop.
    pub(crate) ended: Option<Ended>,
    /// When it was done, the final sync included; 0 when it was never past the warm-up.
    pub(crate) last: u64,
    /// CPU time since the warm-up was over.
    pub(crate) usage: Usage,
    /// Open loop: operations that were due and never sent.
    pub(crate) missed: u64,
    /// Each operation by itself, if the job wants that.
    pub(crate) each: Vec<Each>,
    /// Touched memory: touches that met a major fault.
    pub(crate) faults: Latencies,
    /// The slowest requests to a server.
    pub(crate) slowest: Vec<Slow>,
    /// Each command of a mix by itself.
    pub(crate) commands: Vec<(Command, Latencies)>,
}

/// A measuring thread.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    pub(crate) clock: Clock,
    pub(crate) rate: Rate,
    /// Set by whoever ends the job for all.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) timeline: Timeline,
    pub(crate) stream: Stream,
    pub(crate) schedule: Option<Schedule>,
    pub(crate) sync: Sync,
    pub(crate) end_fsync: bool,
    /// With room for all operations of the job, if each is to be kept.
    pub(crate) each: Vec<Each>,
    pub(crate) slowest: Slowest,
    pub(crate) thread: u32,
    pub(crate) tally: Tally<'a>,
}

/// The counters of a thread: what it may still send, what it has completed.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    meter: &'a Meter,
    timeline: Timeline,
    share: Share,
    /// Completions not to be counted: all during the warm-up.
    skip: u64,
    /// From this tick on [`Tally::cross`] has something to say.
    pub(crate) horizon: u64,
    operations: u64,
    bytes: u64,
    moved: [u64; 2],
    usage: Usage,
    writes: u32,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(meter: &'a Meter, share: Share, timeline: Timeline) -> Self {
        Tally {
            meter,
            timeline,
            share,
            skip: u64::MAX,
            horizon: timeline.measure,
            operations: u64::MAX,
            bytes: u64::MAX,
            moved: [0; 2],
            usage: Usage::default(),
            writes: 0,
        }
    }
    /// To be called when `now` has reached the horizon: begins to count after the warm-up, with what is in flight; true
    /// when the time is over.
    #[cold]
    pub(crate) fn cross(&mut self, now: u64, in_flight: u64, bytes_in_flight: u64) -> bool {
        if self.skip == u64::MAX {
            self.usage = sys::thread::usage();
            // What was sent before and completes now counts, so that a deep queue is full from the first moment; should
            // that be more than is to be counted at all, the surplus does not.
            self.skip = in_flight.saturating_sub(self.share.operations);
            self.operations = self.share.operations.saturating_sub(in_flight);
            self.bytes = self.share.bytes.saturating_sub(bytes_in_flight);
            self.horizon = self.timeline.end;
        }
        now >= self.timeline.end
    }
    /// What ends this thread's part of the job, when all of it has been sent.
    #[inline(always)]
    pub(crate) fn all_sent(&self) -> Option<Ended> {
        if self.operations == 0 {
            Some(Ended::Operations)
        } else if self.bytes == 0 {
            Some(Ended::Bytes)
        } else {
            None
        }
    }
    /// Bytes that the next operation may have at most.
    #[inline(always)]
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes
    }
    /// Operations that may still be sent.
    pub(crate) fn operations_left(&self) -> u64 {
        self.operations
    }
    #[inline(always)]
    pub(crate) fn sent(&mut self, operations: u64, bytes: u64) {
        self.operations -= operations;
        self.bytes -= bytes;
    }
    fn lane(&self, read: bool) -> Option<&'a Lane> {
        if read { self.meter.read.as_ref() } else { self.meter.write.as_ref() }
    }
    /// Counts an operation that completed at `now`: sent at `begin`, due at `due`.
    #[inline(always)]
    pub(crate) fn record(&mut self, op: &Op, due: u64, begin: u64, now: u64) {
        if self.skips() {
            return;
        }
        let Some(lane) = self.lane(op.read) else { return };
        lane.latency.record(now.saturating_sub(due));
        if let Some(service) = &lane.service {
            service.record(now.saturating_sub(begin));
        }
        self.count(lane, op.read, u64::from(op.len), op.offset);
    }
    /// Counts `n` operations of one line each that took `units` each on average, in the unit that the meter was made for:
    /// one latency, which is all that the clock saw.
    pub(crate) fn record_batch(&mut self, n: u64, units: u64, bytes: u64, offset: u64) {
        if self.skips() {
            return;
        }
        let Some(lane) = self.lane(true) else { return };
        lane.latency.record(units);
        lane.untimed.store(lane.untimed.load(Relaxed) + n.saturating_sub(1), Relaxed);
        self.count(lane, true, bytes, offset);
    }
    #[inline(always)]
    fn count(&mut self, lane: &Lane, read: bool, bytes: u64, offset: u64) {
        let moved = &mut self.moved[usize::from(read)];
        *moved += bytes;
        lane.bytes.store(*moved, Relaxed);
        self.meter.position.store(offset, Relaxed);
    }
    /// Whether what completes now is counted.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        self.skip == 0
    }
    #[inline(always)]
    fn skips(&mut self) -> bool {
        if self.skip == 0 {
            return false;
        }
        if self.skip != u64::MAX {
            self.skip -= 1;
        }
        true
    }
    /// Counts a write that is to be made durable every `every` writes; true when this is the one.
    #[inline(always)]
    pub(crate) fn is_sync_due(&mut self, sync: Sync) -> bool {
        let (Sync::Fsync { every } | Sync::Fdatasync { every }) = sync else { return false };
        self.writes += 1;
        if self.writes < every {
            return false;
        }
        self.writes = 0;
        true
    }
}

/// True when `fdatasync` is enough.
pub(crate) fn data_only(sync: Sync) -> bool {
    matches!(sync, Sync::Fdatasync { .. })
}

impl Worker<'_> {
    /// Keeps an operation by itself, if it counts and there is room for it.
    pub(crate) fn keep(&mut self, op: &Op, due: u64, begin: u64, now: u64) {
        if self.each.len() == self.each.capacity() || due < self.timeline.measure {
            return;
        }
        let nanos = |ticks: u64| Nanos(self.rate.nanos(ticks as f64) as u64);
        self.each.push(Each {
            offset: Bytes(op.offset),
            len: Bytes(u64::from(op.len)),
            read: op.read,
            at: nanos(due - self.timeline.measure),
            latency: nanos(now - due),
            waited: nanos(begin.saturating_sub(due)),
        });
    }

    /// The end of a thread: the final sync inside the measured time if the job wants it, then the account.
    pub(crate) fn finish(self, mut ended: Option<Ended>, flush: impl FnOnce() -> Result<(), i32>) -> Finish {
        let counting = self.tally.skip != u64::MAX;
        let complete = matches!(ended, Some(Ended::Time | Ended::Bytes | Ended::Operations) | None);
        if self.end_fsync
            && complete
            && counting
            && let Err(errno) = flush()
        {
            ended = Some(Ended::Failed { what: "fsync", offset: Bytes(0), errno });
        }
        // Not the last completion: in open loop the quiet time after it belongs to the measurement.
        let done = self.clock.ticks();
        if ended.as_ref().is_some_and(Ended::is_failure) {
            self.stop.store(true, Relaxed);
        }
        let now = sys::thread::usage();
        let before = if counting { self.tally.usage } else { now };
        let usage =
            Usage { user: now.user.saturating_sub(before.user), system: now.system.saturating_sub(before.system) };
        let until = self.timeline.end.min(done).saturating_sub(self.timeline.start);
        let missed = match (&self.schedule, &ended) {
            (Some(schedule), Some(Ended::Time)) => schedule.missed(until),
            _ => 0,
        };
        Finish {
            ended,
            last: if counting { done } else { 0 },
            usage,
            missed,
            each: self.each,
            faults: Latencies::lazy(),
            slowest: self.slowest.told(self.thread, self.timeline.measure, self.rate).collect(),
            commands: Vec::new(),
        }
    }
}

/// The failure of an operation.
pub(crate) fn failed(op: &Op, errno: i32) -> Ended {
    Ended::Failed { what: if op.read { "read" } else { "write" }, offset: Bytes(op.offset), errno }
}
