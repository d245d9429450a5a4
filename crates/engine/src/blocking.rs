//! One operation at a time for each thread: `preadv2` and `pwritev2`, or the pages of a mapping. One time stamp an
//! operation serves as its end and as the beginning of the next, so the harness's own few nanoseconds are in the latency
//! and are known from the null target.

use crate::buffers::{Layout, pages, prepare, without};
use crate::entropy::{Filler, astray};
use crate::pace::wait_until;
use crate::stream::Op;
use crate::worker::{Finish, Worker, data_only, failed};
use crate::{Ended, EngineError};
use basics::job::{Entropy, Lead, Order, Sync};
use basics::{Bytes, Job};
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use sys::map::Mapping;
use sys::memory::Buffer;

/// What a thread can do one of at a time. Errors are the kernel's numbers; `ECANCELED` means that the operation was given
/// up because the job was stopped.
pub(crate) trait Device {
    /// Makes the data of a write ready.
    fn prepare(&mut self, op: &Op);
    /// What the job wants read before the operation, outside its time.
    fn lead(&mut self, _op: &Op) -> Result<(), i32> {
        Ok(())
    }
    /// Does all of it.
    fn perform(&mut self, op: &Op) -> Result<(), i32>;
    /// Makes what was written durable.
    fn flush(&mut self, data_only: bool) -> Result<(), i32>;
    /// Looks at what was just read: at a byte in so many, or at whether it is what the job writes there.
    fn examine(&mut self, _op: &Op) -> Option<Ended> {
        None
    }
}

/// Drives `device` until the job ends.
///
/// `singly`: operations are looked at one by one, with something read before or examined after each, or each kept.
pub(crate) fn drive(mut worker: Worker<'_>, device: &mut impl Device, singly: bool) -> Finish {
    let ended = match (&worker.schedule, singly) {
        (None, false) => run::<false, false>(&mut worker, device),
        (Some(_), false) => run::<true, false>(&mut worker, device),
        (None, true) => run::<false, true>(&mut worker, device),
        (Some(_), true) => run::<true, true>(&mut worker, device),
    };
    worker.finish(ended, || device.flush(false))
}

/// The loop, once for closed and once for open loop; those that look at operations one by one are loops of their own, so
/// that the others do not pay for it.
fn run<const OPEN: bool, const SINGLY: bool>(worker: &mut Worker<'_>, device: &mut impl Device) -> Option<Ended> {
    let clock = worker.clock;
    let sync = worker.sync;
    let mut now = clock.ticks();
    loop {
        if worker.stop.load(Relaxed) {
            return None;
        }
        if now >= worker.tally.horizon && worker.tally.cross(now, 0, 0) {
            return Some(Ended::Time);
        }
        let all_sent = worker.tally.all_sent();
        if all_sent.is_some() {
            return all_sent;
        }
        let mut due = now;
        if OPEN && let Some(schedule) = &mut worker.schedule {
            due = worker.timeline.start + schedule.due();
            now = wait_until(due.min(worker.tally.horizon), clock, worker.rate, worker.stop)?;
            if now >= worker.tally.horizon {
                // The warm-up or the job was over before the operation was due.
                continue;
            }
            schedule.advance();
        }
        let op = worker.stream.next(worker.tally.bytes_left());
        worker.tally.sent(1, u64::from(op.len));
        let mut begin = now;
        if SINGLY && let Err(errno) = device.lead(&op) {
            return Some(failed(&Op { read: true, ..op }, errno));
        }
        if !op.read {
            device.prepare(&op);
        }
        if SINGLY || !op.read {
            begin = clock.ticks();
            due = if OPEN { due } else { begin };
        }
        match device.perform(&op) {
            Ok(()) => {}
            Err(libc_errno::ECANCELED) => return None,
            Err(errno) => return Some(failed(&op, errno)),
        }
        if SINGLY
            && op.read
            && let Some(astray) = device.examine(&op)
        {
            return Some(astray);
        }
        if !op.read
            && worker.tally.is_sync_due(sync)
            && let Err(errno) = device.flush(data_only(sync))
        {
            return Some(Ended::Failed { what: "fsync", offset: Bytes(op.offset), errno });
        }
        now = clock.ticks();
        worker.tally.record(&op, due, begin, now);
        if SINGLY {
            worker.keep(&op, begin, begin, now);
        }
    }
}

/// The kernel's numbers for the few errors that are told apart.
pub(crate) mod libc_errno {
    pub(crate) use sys::errno::{EAGAIN, ECANCELED, EINTR, EIO, ENODATA, EPIPE, EPROTO};
}

pub(crate) fn errno(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc_errno::EIO)
}

/// `preadv2` and `pwritev2`.
pub(crate) struct Psync<'a> {
    fd: BorrowedFd<'a>,
    /// Short transfers that end off this multiple cannot be continued with O_DIRECT.
    alignment: u64,
    dsync: bool,
    stop: &'a AtomicBool,
    layout: Layout,
    filler: Filler,
    /// The seed of the tags that are read, where they are.
    tagged: Option<u64>,
    lead: Option<Lead>,
    /// One byte in so many is looked at; 0: none.
    touch: usize,
    buffer: Buffer,
    turn: usize,
    at: usize,
}

impl<'a> Psync<'a> {
    /// With one slot's buffer, filled.
    pub(crate) fn new(
        fd: BorrowedFd<'a>,
        alignment: u64,
        job: &Job,
        thread: u32,
        stop: &'a AtomicBool,
    ) -> std::io::Result<Self> {
        let layout = Layout::new(job, 1);
        let mut filler = Filler::new(job.entropy, job.seed, u64::from(thread));
        let mut buffer = Buffer::new(layout.stride(), pages(job))?;
        layout.fill(buffer.as_mut_slice(), &mut filler);
        let dsync = matches!(job.sync, Sync::Dsync | Sync::OSync);
        let tagged = (job.entropy == Entropy::Tagged).then_some(job.seed);
        let (lead, touch) = (job.lead, job.touch.map_or(0, |every| every.0 as usize));
        Ok(Psync { fd, alignment, dsync, stop, layout, filler, tagged, lead, touch, buffer, turn: 0, at: 0 })
    }
    /// Keeps the buffer in RAM, best effort; what could not be had of it.
    pub(crate) fn settle(&mut self, job: &Job) -> Vec<(String, String)> {
        let locked = self.buffer.lock();
        without(job, locked, &self.buffer)
    }
    /// One transfer from byte `done` of the operation on. Inlined even though it has two callers: a call and a result that
    /// goes through memory are a tenth of what the harness costs.
    #[inline(always)]
    fn transfer(&mut self, op: &Op, done: usize) -> std::io::Result<usize> {
        let offset = op.offset + done as u64;
        if op.read {
            sys::file::read_at(self.fd, &mut self.buffer.as_mut_slice()[done..op.len as usize], offset)
        } else {
            let part = &self.buffer.as_slice()[self.at + done..self.at + op.len as usize];
            sys::file::write_at(self.fd, part, offset, self.dsync)
        }
    }
    /// What the kernel left undone at the first try.
    #[cold]
    fn resume(&mut self, op: &Op, mut result: std::io::Result<usize>) -> Result<(), i32> {
        let mut done = 0;
        loop {
            match result {
                Ok(n) => {
                    done += n;
                    if done == op.len as usize {
                        return Ok(());
                    }
                    continues(op, n as u64, self.alignment)?;
                }
                Err(error) => match errno(&error) {
                    libc_errno::EINTR | libc_errno::EAGAIN if self.stop.load(Relaxed) => {
                        return Err(libc_errno::ECANCELED);
                    }
                    libc_errno::EINTR | libc_errno::EAGAIN => {}
                    other => return Err(other),
                },
            }
            result = self.transfer(op, done);
        }
    }
}

/// May a transfer that moved only `moved` bytes be continued? At the end of a file it may not.
pub(crate) fn continues(op: &Op, moved: u64, alignment: u64) -> Result<(), i32> {
    if moved > 0 && moved.is_multiple_of(alignment.max(1)) {
        return Ok(());
    }
    Err(if op.read { libc_errno::ENODATA } else { libc_errno::EIO })
}

impl Device for Psync<'_> {
    fn prepare(&mut self, op: &Op) {
        if matches!(self.lead, Some(Lead::Same(_))) {
            // What was read stands where it is to be written from.
            self.at = 0;
            return;
        }
        self.at = prepare(&self.layout, &mut self.filler, self.turn, self.buffer.as_mut_slice(), op);
        self.turn = self.turn.wrapping_add(1);
    }
    fn lead(&mut self, op: &Op) -> Result<(), i32> {
        let Some(Lead::Page(page) | Lead::Same(page)) = self.lead else { return Ok(()) };
        let read = |len| Op { read: true, len, ..*op };
        self.perform(&read(op.len.min(page.0 as u32)))?;
        match self.lead {
            Some(Lead::Same(_)) => self.perform(&read(op.len)),
            _ => Ok(()),
        }
    }
    /// Inlined into both loops: coming out of the kernel, a CPU that has forgotten its callers (as the mitigations of
    /// Spectre v2 make it) mispredicts every return.
    #[inline(always)]
    fn perform(&mut self, op: &Op) -> Result<(), i32> {
        match self.transfer(op, 0) {
            Ok(n) if n == op.len as usize => Ok(()),
            other => self.resume(op, other),
        }
    }
    fn flush(&mut self, data_only: bool) -> Result<(), i32> {
        flush(self.fd, data_only)
    }
    fn examine(&mut self, op: &Op) -> Option<Ended> {
        if self.touch != 0 {
            let read = &mut self.buffer.as_mut_slice()[..op.len as usize];
            read.iter_mut().step_by(self.touch).for_each(|byte| *byte &= 1);
            std::hint::black_box(read);
        }
        let seed = self.tagged?;
        let (offset, holds) = astray(seed, &self.buffer.as_slice()[..op.len as usize], op.offset)?;
        Some(Ended::Astray { offset: Bytes(offset), holds: holds.map(Bytes) })
    }
}

/// `fsync` or `fdatasync`.
pub(crate) fn flush(fd: BorrowedFd<'_>, data_only: bool) -> Result<(), i32> {
    let result = if data_only { sys::file::fdatasync(fd) } else { sys::file::fsync(fd) };
    result.map_err(|error| errno(&error))
}

/// The pages of a shared mapping: a read loads one byte of each page, a write stores the whole block.
pub(crate) struct Mmap<'a> {
    fd: BorrowedFd<'a>,
    map: Mapping,
    /// Where the mapping begins in the file.
    base: u64,
    dsync: bool,
    layout: Layout,
    filler: Filler,
    buffer: Vec<u8>,
    turn: usize,
    at: usize,
}

impl<'a> Mmap<'a> {
    /// Maps a region, advised as fio does it: random or sequential.
    pub(crate) fn new(fd: BorrowedFd<'a>, base: u64, len: u64, job: &Job, thread: u32) -> Result<Self, EngineError> {
        let unavailable = |why: String| EngineError::Unavailable { engine: "mmap", why };
        // The largest page of any Linux is 64 KiB.
        let start = base - base % (64 << 10);
        let too_long = |_| unavailable(format!("{} do not fit this machine's addresses", Bytes(len)));
        let map_len = usize::try_from(base - start + len).map_err(too_long)?;
        let map = Mapping::new(fd, start, map_len, job.direction.writes()).map_err(|e| unavailable(e.to_string()))?;
        map.advise(job.order != Order::Sequential).map_err(|e| unavailable(e.to_string()))?;
        let layout = Layout::new(job, 1);
        let mut filler = Filler::new(job.entropy, job.seed, u64::from(thread));
        let mut buffer = vec![0; layout.stride()];
        layout.fill(&mut buffer, &mut filler);
        Ok(Mmap {
            fd,
            map,
            base: start,
            dsync: matches!(job.sync, Sync::Dsync | Sync::OSync),
            layout,
            filler,
            buffer,
            turn: 0,
            at: 0,
        })
    }
    /// A page could not be had: is the file shorter now, or did the medium fail?
    fn reason(&self, at: usize) -> i32 {
        match sys::map::file_size(self.fd) {
            Ok(size) if size > 0 && self.base + at as u64 >= size => libc_errno::ENODATA,
            _ => libc_errno::EIO,
        }
    }
}

impl Device for Mmap<'_> {
    fn prepare(&mut self, op: &Op) {
        self.at = prepare(&self.layout, &mut self.filler, self.turn, &mut self.buffer, op);
        self.turn = self.turn.wrapping_add(1);
    }
    fn perform(&mut self, op: &Op) -> Result<(), i32> {
        let (at, len) = ((op.offset - self.base) as usize, op.len as usize);
        if op.read {
            return self.map.touch(at, len).map_err(|at| self.reason(at));
        }
        self.map.store(at, &self.buffer[self.at..self.at + len]).map_err(|at| self.reason(at))?;
        if self.dsync {
            self.map.flush(at, len).map_err(|error| errno(&error))?;
        }
        Ok(())
    }
    fn flush(&mut self, data_only: bool) -> Result<(), i32> {
        flush(self.fd, data_only)
    }
}
