//! Many operations in flight for each thread. What has completed is refilled one by one or in batches, whichever brings
//! more ([`crate::refill`]). A stamp before and one after each `enter` serve all that it sent and all that it brought.

use crate::blocking::{continues, flush, libc_errno};
use crate::buffers::{Layout, pages, prepare, without};
use crate::entropy::Filler;
use crate::pace::{SPIN, wait_until};
use crate::refill::Refill;
use crate::stream::Op;
use crate::worker::{Finish, Worker, data_only, failed};
use crate::{Ended, blocking::errno};
use basics::job::Sync;
use basics::{Bytes, Job};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use sys::ring::{Feature, Refusal, Ring};

/// What is asked of a queue for a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece {
    /// An operation from its byte `done` on; `turn` chooses the data of a write.
    Transfer { op: Op, done: u32, turn: usize },
    /// Make durable what has completed.
    Flush { data_only: bool },
}

/// A device with a queue. Results are bytes or negative error numbers; `ECANCELED` means given up because of a stop.
pub(crate) trait Queue {
    /// Whether it is to be found out if single refills or batches bring more.
    const CHOOSES: bool = true;
    /// Whether the data of a write take time to be made, which is not the target's.
    const MAKES_DATA: bool = true;
    /// What was reaped last took so many ticks, and counts.
    #[inline(always)]
    fn took(&mut self, _ticks: u64) {}
    /// How many pieces can be issued before the next `enter`.
    fn room(&self) -> u32;
    fn issue(&mut self, slot: u32, piece: Piece);
    /// Sends; waits for at least one completion if told to, for so long at most.
    fn enter(&mut self, wait: bool, at_most: Option<Duration>) -> Result<(), i32>;
    fn reap(&mut self) -> Option<(u32, i32)>;
    /// When what was reaped last was sent and when its answer was there, in ticks, where that is known better than by the stamps
    /// around `enter`.
    #[inline(always)]
    fn stamps(&self) -> Option<(u64, u64)> {
        None
    }
    /// Has all that was sent completed, though it may not have been reaped?
    fn is_all_done(&self) -> bool;
    /// Makes durable, at once.
    fn flush(&mut self, data_only: bool) -> Result<(), i32>;
}

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
struct Slot {
    op: Op,
    done: u32,
    turn: u32,
    due: u64,
    begin: u64,
    /// The write is done and its sync is on its way.
    syncing: bool,
}

struct Loop<'w, 'a, 'q, Q> {
    worker: &'w mut Worker<'a>,
    queue: &'q mut Q,
    alignment: u64,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose operation has to be sent again: the rest of it, its sync, or all of it.
    again: Vec<u32>,
    refill: Refill,
    ended: Option<Ended>,
    stopped: bool,
}

/// Drives `queue` with `depth` operations in flight until the job ends.
pub(crate) fn drive<Q: Queue>(mut worker: Worker<'_>, queue: &mut Q, depth: u32, alignment: u64) -> Finish {
    let idle = Op { offset: 0, len: 0, read: true };
    let slot = Slot { op: idle, done: 0, turn: 0, due: 0, begin: 0, syncing: false };
    let choose = Q::CHOOSES && depth > 1 && worker.schedule.is_none();
    let refill = Refill::new(worker.clock.ticks(), worker.rate, choose);
    let mut state = Loop {
        worker: &mut worker,
        queue,
        alignment,
        slots: vec![slot; depth as usize],
        free: (0..depth).rev().collect(),
        again: Vec::with_capacity(depth as usize),
        refill,
        ended: None,
        stopped: false,
    };
    state.run();
    let ended = state.ended;
    worker.finish(ended, || queue.flush(false))
}

impl<Q: Queue> Loop<'_, '_, '_, Q> {
    fn is_over(&self) -> bool {
        self.stopped || self.ended.is_some()
    }

    fn run(&mut self) {
        let clock = self.worker.clock;
        let depth = self.slots.len();
        let mut now = clock.ticks();
        let mut completed = 0;
        loop {
            if !self.is_over() {
                self.check(now);
            }
            let looks = self.refill.is_due(now);
            let more = self.send(now);
            if self.free.len() == depth {
                if self.is_over() {
                    return;
                }
                if let Some(schedule) = &self.worker.schedule {
                    let due = self.worker.timeline.start + schedule.due();
                    let until = due.min(self.worker.tally.horizon);
                    match wait_until(until, clock, self.worker.rate, self.worker.stop) {
                        Some(then) => now = then,
                        None => self.stopped = true,
                    }
                }
                continue;
            }
            // A look sees what has completed by the sending alone.
            let (wait, at_most) = if looks { (false, None) } else { self.patience(more, now) };
            if let Err(errno) = self.queue.enter(wait, at_most) {
                // The ring itself is broken; what it holds will not come back through it.
                self.fail(Ended::Failed { what: "io_uring_enter", offset: Bytes(0), errno });
                return;
            }
            now = clock.ticks();
            if looks {
                self.refill.look(now, completed, self.queue.is_all_done());
            }
            // No more are taken than the next `enter` refills: what the program has no time for yet is still on its way, and
            // `depth` operations always are (Little's law holds). At a rate, nobody waits for a slot.
            let most = if self.worker.schedule.is_some() { u32::MAX } else { self.refill.most() };
            for _ in 0..most {
                let Some((slot, result)) = self.queue.reap() else { break };
                completed += 1;
                let mut then = now;
                if let Some((sent, answered)) = self.queue.stamps() {
                    let closed = self.worker.schedule.is_none();
                    let state = &mut self.slots[slot as usize];
                    (state.begin, state.due) = (sent, if closed { sent } else { state.due });
                    then = answered;
                    if result >= 0 && self.worker.tally.counts() {
                        let took = then.saturating_sub(self.slots[slot as usize].due);
                        self.queue.took(took);
                    }
                }
                self.complete(slot, result, then);
            }
        }
    }

    /// Is the job over?
    #[inline]
    fn check(&mut self, now: u64) {
        if self.worker.stop.load(Relaxed) {
            self.stopped = true;
        } else if now >= self.worker.tally.horizon {
            let in_flight = (self.slots.len() - self.free.len()) as u64;
            let busy = |slot: &Slot| u64::from(slot.op.len);
            let bytes = self.slots.iter().map(busy).sum();
            if self.worker.tally.cross(now, in_flight, bytes) {
                self.ended = Some(Ended::Time);
                return;
            }
        }
        if let Some(ended) = self.worker.tally.all_sent() {
            self.ended = Some(ended);
        }
    }

    /// Issues what may be sent now; true when more could be and only the batch is full.
    #[inline]
    fn send(&mut self, now: u64) -> bool {
        while !self.again.is_empty() && self.queue.room() > 0 {
            let Some(slot) = self.again.pop() else { break };
            let Slot { op, done, turn, syncing, .. } = self.slots[slot as usize];
            let piece = if syncing {
                Piece::Flush { data_only: data_only(self.worker.sync) }
            } else {
                Piece::Transfer { op, done, turn: turn as usize }
            };
            self.queue.issue(slot, piece);
        }
        if self.is_over() {
            return false;
        }
        let most = self.refill.most().min(self.queue.room());
        for _ in 0..most {
            let Some(&slot) = self.free.last() else { return false };
            if self.worker.tally.all_sent().is_some() {
                return false;
            }
            let mut due = now;
            if let Some(schedule) = &mut self.worker.schedule {
                due = self.worker.timeline.start + schedule.due();
                if due > now {
                    return false;
                }
                schedule.advance();
            }
            self.free.pop();
            let op = self.worker.stream.next(self.worker.tally.bytes_left());
            self.worker.tally.sent(1, u64::from(op.len));
            // Each slot goes through its own parts in turn.
            let turn = self.slots[slot as usize].turn.wrapping_add(u32::from(!op.read));
            self.queue.issue(slot, Piece::Transfer { op, done: 0, turn: turn as usize });
            let mut begin = now;
            if !op.read && Q::MAKES_DATA {
                // Its data have been made meanwhile, which is not the target's time.
                begin = self.worker.clock.ticks();
                due = if self.worker.schedule.is_some() { due } else { begin };
            }
            self.slots[slot as usize] = Slot { op, done: 0, turn, due, begin, syncing: false };
        }
        !self.free.is_empty()
    }

    /// Shall `enter` wait, and for how long?
    #[inline]
    fn patience(&self, more: bool, now: u64) -> (bool, Option<Duration>) {
        let Some(schedule) = &self.worker.schedule else { return (!more, None) };
        if more {
            return (false, None);
        }
        if self.is_over() || self.free.is_empty() {
            return (true, None);
        }
        let due = (self.worker.timeline.start + schedule.due()).min(self.worker.tally.horizon);
        let left = Duration::from_nanos(self.worker.rate.nanos(due.saturating_sub(now) as f64) as u64);
        // Close before the next is due a wait would end late: look, come back, look again.
        if left > SPIN { (true, Some(left - SPIN)) } else { (false, None) }
    }

    #[inline]
    fn complete(&mut self, slot: u32, result: i32, now: u64) {
        let state = &mut self.slots[slot as usize];
        let plain = state.op.read || !Q::MAKES_DATA;
        if result == state.op.len as i32 && !state.syncing && state.done == 0 && plain {
            // The usual case of a read, and of what needs no sync: all of it at once.
            self.worker.tally.record(&state.op, state.due, state.begin, now);
            if self.worker.slowest.takes(now.saturating_sub(state.due)) {
                self.worker.slowest.keep(state.due, state.begin, now, state.op.read);
            }
            if self.worker.each.capacity() > 0 {
                self.worker.keep(&state.op, state.due, state.begin, now);
            }
            state.op.len = 0;
            self.free.push(slot);
            return;
        }
        self.complete_slowly(slot, result, now);
    }

    fn complete_slowly(&mut self, slot: u32, result: i32, now: u64) {
        let (alignment, is_over) = (self.alignment, self.is_over());
        let state = &mut self.slots[slot as usize];
        let op = state.op;
        match -result {
            libc_errno::EINTR | libc_errno::EAGAIN => {
                return if is_over { self.release(slot) } else { self.again.push(slot) };
            }
            libc_errno::ECANCELED if self.worker.stop.load(Relaxed) => {
                self.stopped = true;
                return self.release(slot);
            }
            errno if errno > 0 => {
                let syncing = state.syncing;
                self.release(slot);
                self.fail(match syncing {
                    true => Ended::Failed { what: "fsync", offset: Bytes(op.offset), errno },
                    false => failed(&op, errno),
                });
                return;
            }
            _ => {}
        }
        if !state.syncing {
            state.done += result as u32;
            if state.done < op.len {
                return match continues(&op, result as u64, alignment) {
                    Ok(()) => self.again.push(slot),
                    Err(errno) => {
                        self.release(slot);
                        self.fail(failed(&op, errno));
                    }
                };
            }
            if !op.read && self.worker.tally.is_sync_due(self.worker.sync) {
                state.syncing = true;
                return self.again.push(slot);
            }
        }
        let (due, begin) = (state.due, state.begin);
        self.worker.tally.record(&op, due, begin, now);
        self.release(slot);
    }

    fn release(&mut self, slot: u32) {
        self.slots[slot as usize].op.len = 0;
        self.free.push(slot);
    }

    /// The first failure is the reason; what comes after it is its consequence.
    fn fail(&mut self, failure: Ended) {
        self.worker.stop.store(true, Relaxed);
        if !matches!(self.ended, Some(Ended::Failed { .. })) {
            self.ended = Some(failure);
        }
    }
}

/// A ring on a file or device.
pub(crate) struct Rings<'fd> {
    ring: Ring<'fd>,
    fd: BorrowedFd<'fd>,
    layout: Layout,
    filler: Filler,
    dsync: bool,
}

impl<'fd> Rings<'fd> {
    /// A ring for the job's depth, its buffers filled; and what it does without.
    pub(crate) fn new(
        fd: BorrowedFd<'fd>,
        job: &Job,
        thread: u32,
        refuse: &[Feature],
    ) -> std::io::Result<(Self, Vec<Refusal>)> {
        let layout = Layout::new(job, job.depth);
        let (mut ring, refusals) = Ring::new(fd, job.depth, layout.stride(), pages(job), refuse)?;
        let mut filler = Filler::new(job.entropy, job.seed, u64::from(thread));
        for slot in 0..job.depth {
            if let Some(buffer) = ring.slot_mut(slot) {
                layout.fill(buffer, &mut filler);
            }
        }
        Ok((Rings { ring, fd, layout, filler, dsync: matches!(job.sync, Sync::Dsync | Sync::OSync) }, refusals))
    }
    /// Keeps the buffers in RAM, best effort; what could not be had of it.
    pub(crate) fn settle(&mut self, job: &Job) -> Vec<(String, String)> {
        let locked = self.ring.lock();
        without(job, locked, self.ring.arena())
    }
}

impl Queue for Rings<'_> {
    #[inline]
    fn room(&self) -> u32 {
        self.ring.room()
    }
    #[inline]
    fn issue(&mut self, slot: u32, piece: Piece) {
        match piece {
            Piece::Transfer { op, done, .. } if op.read => {
                self.ring.read(slot, done as usize, op.len - done, op.offset + u64::from(done));
            }
            Piece::Transfer { op, done, turn } => {
                let at = match self.ring.slot_mut(slot) {
                    // The rest of a short write goes out as it was.
                    Some(buffer) if done == 0 => prepare(&self.layout, &mut self.filler, turn, buffer, &op),
                    _ => self.layout.part(turn),
                };
                let rest = at + done as usize;
                self.ring.write(slot, rest, op.len - done, op.offset + u64::from(done), self.dsync);
            }
            Piece::Flush { data_only } => self.ring.fsync(slot, data_only),
        }
    }
    #[inline]
    fn enter(&mut self, wait: bool, at_most: Option<Duration>) -> Result<(), i32> {
        let result = match at_most {
            None => self.ring.enter(u32::from(wait)),
            Some(time) => self.ring.enter_for(u32::from(wait), time),
        };
        result.map_err(|error| errno(&error))
    }
    #[inline]
    fn reap(&mut self) -> Option<(u32, i32)> {
        self.ring.reap()
    }
    #[inline]
    fn is_all_done(&self) -> bool {
        self.ring.is_all_done()
    }
    fn flush(&mut self, data_only: bool) -> Result<(), i32> {
        flush(self.fd, data_only)
    }
}
