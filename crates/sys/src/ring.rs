//! A bare io_uring for block I/O on one descriptor: mapped rings, entries whose fixed fields are written once, `enter`
//! inlined, buffers that the ring owns so that safe code cannot touch what the kernel is filling. Linux 5.10 and later;
//! newer features are asked for and done without when refused. Layouts are those of the kernel's
//! `include/uapi/linux/io_uring.h`.

mod feature;
mod shared;

pub use feature::{Feature, Refusal};

use crate::memory::{Buffer, Pages};
use feature::{refused, set_up};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::io_uring::{
    IoringEnterFlags, IoringFeatureFlags, IoringRegisterOp, IoringSetupFlags, io_uring_enter, io_uring_enter_arg,
    io_uring_getevents_arg, io_uring_ptr, io_uring_register, io_uring_rsrc_update,
};
use shared::Shared;
use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a dropped ring waits for what is in flight before it gives its buffers up to the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

const OFFSET_SQ_RING: u64 = 0;
const OFFSET_SQES: u64 = 0x1000_0000;

const OP_FSYNC: u8 = 3;
const OP_READ_FIXED: u8 = 4;
const OP_WRITE_FIXED: u8 = 5;
const OP_READ: u8 = 22;
const OP_WRITE: u8 = 23;
const FLAG_FIXED_FILE: u8 = 1;
const FSYNC_DATASYNC: u32 = 1;
const RWF_DSYNC: u32 = 2;

/// `struct io_uring_sqe`, the fields that reads, writes and fsync use.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    ioprio: u16,
    fd: i32,
    offset: u64,
    address: u64,
    len: u32,
    op_flags: u32,
    user_data: u64,
    buffer_index: u16,
    personality: u16,
    splice_fd: i32,
    unused: [u64; 2],
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// A ring with a fixed number of slots, each with its own part of one locked buffer and at most one operation in
/// flight. It belongs to the thread that made it.
#[derive(Debug)]
pub struct Ring<'fd> {
    ring: OwnedFd,
    /// Index of the registered ring, when that was granted.
    registered: Option<i32>,
    timeouts: bool,
    fixed_file: bool,
    fixed_buffers: bool,
    /// Holds what the pointers below point into.
    _rings: Shared,
    entries: Shared,
    sq_mask: u32,
    sq_len: u32,
    sq_tail: NonNull<AtomicU32>,
    /// Entries written so far, and of these entries the kernel has taken so far.
    tail: u32,
    taken: u32,
    cq_mask: u32,
    cq_head: NonNull<AtomicU32>,
    cq_tail: NonNull<AtomicU32>,
    cq_first: NonNull<Completion>,
    /// Completions handed out so far, and known to be there.
    head: u32,
    known: u32,
    arena: ManuallyDrop<Buffer>,
    stride: usize,
    busy: Box<[bool]>,
    in_flight: u32,
    file: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Ring<'fd> {
    /// A ring on `file` with `slots` (1 to 32768) slots of `stride` bytes each, and what it has to do without. The
    /// features in `refuse` are treated as refused by the kernel.
    ///
    /// # Errors
    /// `ENOSYS` or `EPERM` where io_uring is absent or forbidden, `ENOMEM` where memory may not be locked.
    pub fn new(
        file: BorrowedFd<'fd>,
        slots: u32,
        stride: usize,
        pages: Pages,
        refuse: &[Feature],
    ) -> io::Result<(Self, Vec<Refusal>)> {
        let mut refusals = Vec::new();
        let (ring, params) = set_up(slots.max(1), refuse, &mut refusals)?;
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::NODROP) {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "io_uring of this kernel is older than Linux 5.10's",
            ));
        }
        let (sq, cq) = (params.sq_off, params.cq_off);
        let has_array = !params.flags.contains(IoringSetupFlags::NO_SQARRAY);
        let array_len = if has_array { sq.array as usize + params.sq_entries as usize * 4 } else { 0 };
        let cqes_len = cq.cqes as usize + params.cq_entries as usize * size_of::<Completion>();
        let rings = Shared::new(&ring, array_len.max(cqes_len), OFFSET_SQ_RING)?;
        let entries = Shared::new(&ring, params.sq_entries as usize * size_of::<Entry>(), OFFSET_SQES)?;
        if has_array {
            for i in 0..params.sq_entries {
                let index = rings.counter(sq.array + 4 * i)?;
                // SAFETY: inside the mapping by `counter`; the kernel reads it after the tail has been stored.
                unsafe { index.as_ref() }.store(i, Ordering::Relaxed);
            }
        }
        let load = |offset| -> io::Result<u32> {
            // SAFETY: inside the mapping by `counter`.
            Ok(unsafe { rings.counter(offset)?.as_ref() }.load(Ordering::Acquire))
        };
        // Beyond the addresses of a 32-bit machine there is no such memory either.
        let size = stride.max(1).checked_mul(slots.max(1) as usize).ok_or(io::ErrorKind::OutOfMemory)?;
        let arena = Buffer::new(size, pages)?;
        let mut out = Ring {
            registered: None,
            timeouts: params.features.contains(IoringFeatureFlags::EXT_ARG) && !refuse.contains(&Feature::Timeout),
            fixed_file: false,
            fixed_buffers: false,
            sq_mask: load(sq.ring_mask)?,
            sq_len: params.sq_entries,
            sq_tail: rings.counter(sq.tail)?,
            tail: load(sq.tail)?,
            taken: load(sq.head)?,
            cq_mask: load(cq.ring_mask)?,
            cq_head: rings.counter(cq.head)?,
            cq_tail: rings.counter(cq.tail)?,
            cq_first: rings.counter(cq.cqes)?.cast(),
            head: load(cq.head)?,
            known: load(cq.head)?,
            arena: ManuallyDrop::new(arena),
            stride,
            busy: vec![false; slots.max(1) as usize].into_boxed_slice(),
            in_flight: 0,
            file: PhantomData,
            ring,
            _rings: rings,
            entries,
        };
        if !out.timeouts {
            refusals.push(refused(Feature::Timeout));
        }
        out.register(file, refuse, &mut refusals);
        let template = Entry {
            flags: if out.fixed_file { FLAG_FIXED_FILE } else { 0 },
            fd: if out.fixed_file { 0 } else { file.as_raw_fd() },
            ..Entry::default()
        };
        for i in 0..out.sq_len {
            // SAFETY: the mapping holds `sq_len` entries, and the kernel reads none before the tail moves.
            unsafe { out.entries.at.cast::<Entry>().add(i as usize).write(template) };
        }
        Ok((out, refusals))
    }

    /// Registers ring, file and buffers, each on its own account.
    fn register(&mut self, file: BorrowedFd<'_>, refuse: &[Feature], refusals: &mut Vec<Refusal>) {
        let ring = self.ring.as_fd();
        let mut attempt = |feature: Feature, op, arg: *const c_void| {
            let result = if refuse.contains(&feature) {
                Err(Errno::INVAL)
            } else {
                // SAFETY: each `arg` below points to one live element of the type that `op` takes.
                unsafe { io_uring_register(ring, op, arg, 1) }
            };
            if let Err(error) = result {
                refusals.push(Refusal { feature, error: error.into() });
            }
            result.is_ok()
        };
        let files = [file.as_raw_fd()];
        self.fixed_file = attempt(Feature::RegisteredFile, IoringRegisterOp::RegisterFiles, files.as_ptr().cast());
        let arena = [libc::iovec {
            iov_base: self.arena.as_mut_slice().as_mut_ptr().cast(),
            iov_len: self.arena.as_slice().len(),
        }];
        self.fixed_buffers =
            attempt(Feature::RegisteredBuffers, IoringRegisterOp::RegisterBuffers, arena.as_ptr().cast());
        let mut update = io_uring_rsrc_update::default();
        // The kernel chooses the index and writes it here.
        update.offset = u32::MAX;
        update.data = io_uring_ptr::new(std::ptr::without_provenance_mut(ring.as_raw_fd() as usize));
        let granted = attempt(Feature::RegisteredRing, IoringRegisterOp::RegisterRingFds, (&raw mut update).cast());
        self.registered = granted.then_some(update.offset as i32);
    }

    /// How many operations it can hold in flight.
    pub fn slots(&self) -> u32 {
        self.busy.len() as u32
    }
    /// Operations handed over and not reaped yet.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }
    /// Entries that can still be written before the next `enter`.
    #[inline]
    pub fn room(&self) -> u32 {
        self.sq_len - self.tail.wrapping_sub(self.taken)
    }
    /// A slot's part of the buffer; nothing while its operation is in flight.
    pub fn slot_mut(&mut self, slot: u32) -> Option<&mut [u8]> {
        let start = slot as usize * self.stride;
        (!*self.busy.get(slot as usize)?).then(|| &mut self.arena.as_mut_slice()[start..start + self.stride])
    }
    /// Locks the buffers in RAM, best effort.
    ///
    /// # Errors
    /// When RLIMIT_MEMLOCK forbids it; nothing else changes.
    pub fn lock(&mut self) -> io::Result<()> {
        self.arena.lock()
    }

    /// The memory of all slots.
    pub fn arena(&self) -> &Buffer {
        &self.arena
    }

    /// Writes an entry for `slot`, whose bytes from `at` on, `len` of them, are filled or written.
    ///
    /// # Panics
    /// When the slot is busy or does not exist, the bytes are not inside it, or there is no [`Ring::room`].
    #[inline]
    fn push(&mut self, slot: u32, opcode: u8, at: usize, len: u32, offset: u64, op_flags: u32) {
        assert!(!self.busy[slot as usize] && at + len as usize <= self.stride && self.room() > 0);
        self.busy[slot as usize] = true;
        self.in_flight += 1;
        let fsync = opcode == OP_FSYNC;
        let start = slot as usize * self.stride + at;
        // SAFETY: `start` is inside the arena, since the slot exists and `at` is inside it.
        let address = unsafe { self.arena.start().add(start) };
        // SAFETY: the index is masked to the mapping's size, and the entry is free: the kernel has taken what it held,
        // or `room` would have been 0.
        let entry = unsafe { self.entries.at.cast::<Entry>().add((self.tail & self.sq_mask) as usize).as_mut() };
        entry.opcode = opcode;
        entry.offset = offset;
        entry.address = if fsync { 0 } else { address.as_ptr() as u64 };
        entry.len = len;
        entry.op_flags = op_flags;
        entry.user_data = u64::from(slot);
        self.tail = self.tail.wrapping_add(1);
    }
    /// Reads `len` bytes at `offset` of the file into the slot, from its byte `at` on. Sent by the next `enter`.
    ///
    /// # Panics
    /// When the slot is busy or does not exist, the bytes are not inside it, or there is no [`Ring::room`].
    #[inline]
    pub fn read(&mut self, slot: u32, at: usize, len: u32, offset: u64) {
        let opcode = if self.fixed_buffers { OP_READ_FIXED } else { OP_READ };
        self.push(slot, opcode, at, len, offset, 0);
    }
    /// Writes `len` bytes of the slot, from its byte `at` on, at `offset` of the file; durably if `dsync`.
    ///
    /// # Panics
    /// As [`Ring::read`].
    #[inline]
    pub fn write(&mut self, slot: u32, at: usize, len: u32, offset: u64, dsync: bool) {
        let opcode = if self.fixed_buffers { OP_WRITE_FIXED } else { OP_WRITE };
        self.push(slot, opcode, at, len, offset, if dsync { RWF_DSYNC } else { 0 });
    }
    /// Makes what has *completed* before durable; with `data_only` as `fdatasync`.
    ///
    /// # Panics
    /// As [`Ring::read`].
    pub fn fsync(&mut self, slot: u32, data_only: bool) {
        self.push(slot, OP_FSYNC, 0, 0, 0, if data_only { FSYNC_DATASYNC } else { 0 });
    }

    /// Sends what was written since and waits until `wait` completions are there (at most as many as are in flight).
    ///
    /// # Errors
    /// What `io_uring_enter` says; interruption and momentary lack of memory are no errors, the next call goes on.
    #[inline]
    pub fn enter(&mut self, wait: u32) -> io::Result<()> {
        self.publish();
        let (send, wait) = (self.tail.wrapping_sub(self.taken), wait.min(self.in_flight));
        // SAFETY: the entries refer to the arena, which the ring keeps until they have completed, and to the file, which
        // outlives the ring by its lifetime.
        let result = unsafe { io_uring_enter(self.handle(), send, wait, self.enter_flags()) };
        self.sent(result)
    }
    /// As [`Ring::enter`], and returns after `at_most` in any case.
    ///
    /// # Errors
    /// As [`Ring::enter`].
    pub fn enter_for(&mut self, wait: u32, at_most: Duration) -> io::Result<()> {
        if !self.timeouts {
            return self.enter_and_poll(wait, at_most);
        }
        self.publish();
        let (send, wait) = (self.tail.wrapping_sub(self.taken), wait.min(self.in_flight));
        let time = rustix::io_uring::Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: i64::from(at_most.subsec_nanos()) as _,
        };
        let ts = io_uring_ptr::new((&raw const time).cast_mut().cast());
        let arg = io_uring_getevents_arg { ts, ..Default::default() };
        let flags = self.enter_flags() | IoringEnterFlags::EXT_ARG;
        // SAFETY: as in `enter`; `time` and `arg` live through the call.
        let result = unsafe { io_uring_enter_arg(self.handle(), send, wait, flags, Some(&arg)) };
        self.sent(result)
    }
    /// For kernels without a time limit in `enter`: the ring's descriptor turns readable when a completion is there.
    fn enter_and_poll(&mut self, wait: u32, at_most: Duration) -> io::Result<()> {
        self.enter(0)?;
        if wait > 0 && !self.has_completion() {
            let time = rustix::event::Timespec {
                tv_sec: at_most.as_secs() as i64,
                tv_nsec: i64::from(at_most.subsec_nanos()) as _,
            };
            match rustix::event::poll(&mut [PollFd::new(&self.ring, PollFlags::IN)], Some(&time)) {
                Ok(_) | Err(Errno::INTR) => self.enter(0)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
    /// The next completion: its slot, and bytes moved or a negative error number. The slot is free again.
    #[inline]
    pub fn reap(&mut self) -> Option<(u32, i32)> {
        if self.head == self.known {
            // SAFETY: both point into the mapping that `self._rings` holds.
            let (head, tail) = unsafe { (self.cq_head.as_ref(), self.cq_tail.as_ref()) };
            head.store(self.head, Ordering::Release);
            self.known = tail.load(Ordering::Acquire);
            if self.head == self.known {
                return None;
            }
        }
        // SAFETY: masked to the size of the mapping; the kernel has written it, by the acquired tail, and will not write
        // it again before the head has been stored.
        let completion = unsafe { self.cq_first.add((self.head & self.cq_mask) as usize).read() };
        self.head = self.head.wrapping_add(1);
        let slot = completion.user_data as u32;
        self.busy[slot as usize] = false;
        self.in_flight -= 1;
        Some((slot, completion.result))
    }

    /// Whether all that was sent has completed, though it may not have been reaped.
    pub fn is_all_done(&self) -> bool {
        // SAFETY: points into the mapping that `self._rings` holds.
        unsafe { self.cq_tail.as_ref() }.load(Ordering::Acquire).wrapping_sub(self.head) == self.in_flight
    }

    fn has_completion(&self) -> bool {
        // SAFETY: points into the mapping that `self._rings` holds.
        self.head != unsafe { self.cq_tail.as_ref() }.load(Ordering::Acquire)
    }
    /// Tells the kernel what was written and what was reaped. A completion that it finds no place for goes to a list that it
    /// allocates for, a fifth of what a read of the page cache costs.
    #[inline]
    fn publish(&self) {
        // SAFETY: both point into the mapping that `self._rings` holds.
        let (sq_tail, cq_head) = unsafe { (self.sq_tail.as_ref(), self.cq_head.as_ref()) };
        cq_head.store(self.head, Ordering::Release);
        sq_tail.store(self.tail, Ordering::Release);
    }
    /// What `enter` takes as its descriptor: the ring, or the index of the registered ring.
    #[inline]
    fn handle(&self) -> BorrowedFd<'_> {
        match self.registered {
            // SAFETY: with REGISTERED_RING the kernel reads the number as an index, not as a descriptor; it is not −1.
            Some(index) => unsafe { BorrowedFd::borrow_raw(index) },
            None => self.ring.as_fd(),
        }
    }
    /// GETEVENTS always: without it DEFER_TASKRUN never works completions off.
    #[inline]
    fn enter_flags(&self) -> IoringEnterFlags {
        match self.registered {
            Some(_) => IoringEnterFlags::GETEVENTS | IoringEnterFlags::REGISTERED_RING,
            None => IoringEnterFlags::GETEVENTS,
        }
    }
    #[inline]
    fn sent(&mut self, result: rustix::io::Result<u32>) -> io::Result<()> {
        match result {
            Ok(taken) => self.taken = self.taken.wrapping_add(taken),
            // Each of these means that nothing was taken; what was written is still there for the next call.
            Err(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::TIME) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
    /// Reaps all that is in flight; false when the kernel keeps some for longer than [`PATIENCE`].
    fn drain(&mut self) -> bool {
        let begun = Instant::now();
        while self.in_flight > 0 {
            while self.reap().is_some() {}
            let left = PATIENCE.saturating_sub(begun.elapsed());
            if self.in_flight > 0 && (left.is_zero() || self.enter_for(1, left).is_err()) {
                return false;
            }
        }
        true
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let idle = self.drain();
        if let Some(index) = self.registered {
            let mut update = io_uring_rsrc_update::default();
            update.offset = index as u32;
            // SAFETY: one live element of the type that the operation takes.
            let _ = unsafe {
                io_uring_register(&self.ring, IoringRegisterOp::UnregisterRingFds, (&raw const update).cast(), 1)
            };
        }
        if !idle {
            // The kernel may still write there: the pages are never given back.
            return;
        }
        // Closing a ring releases these at some later time; a file system would be busy until then.
        for (held, op) in [
            (self.fixed_file, IoringRegisterOp::UnregisterFiles),
            (self.fixed_buffers, IoringRegisterOp::UnregisterBuffers),
        ] {
            if held {
                // SAFETY: takes no argument.
                let _ = unsafe { io_uring_register(&self.ring, op, std::ptr::null(), 0) };
            }
        }
        // SAFETY: dropped once, here, and not used afterwards; nothing is in flight.
        unsafe { ManuallyDrop::drop(&mut self.arena) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    fn stamped(blocks: u64) -> std::fs::File {
        let mut file = tempfile::tempfile().unwrap();
        for i in 0..blocks {
            file.write_all(&[i as u8; 4096]).unwrap();
        }
        file
    }

    /// The next completion; without COOP_TASKRUN a wait may be interrupted by the completion itself.
    fn next(ring: &mut Ring<'_>) -> (u32, i32) {
        loop {
            ring.enter_for(1, Duration::from_secs(5)).unwrap();
            if let Some(completion) = ring.reap() {
                return completion;
            }
        }
    }

    fn read_back(refuse: &[Feature]) -> Vec<Feature> {
        let file = stamped(16);
        let (mut ring, refusals) = Ring::new(file.as_fd(), 8, 4096, Pages::Usual, refuse).unwrap();
        for slot in 0..8 {
            ring.read(slot, 0, 4096, u64::from(slot) * 2 * 4096);
        }
        assert!(ring.slot_mut(3).is_none(), "a busy slot is out of reach");
        let mut seen = 0;
        while seen < 8 {
            ring.enter(1).unwrap();
            while let Some((slot, result)) = ring.reap() {
                assert_eq!(result, 4096);
                assert!(ring.slot_mut(slot).unwrap().iter().all(|&b| u32::from(b) == slot * 2));
                seen += 1;
            }
        }
        ring.slot_mut(0).unwrap().fill(99);
        ring.write(0, 0, 4096, 4096, true);
        assert_eq!(next(&mut ring), (0, 4096));
        ring.fsync(1, true);
        assert_eq!(next(&mut ring), (1, 0));
        let mut block = [0; 4096];
        crate::file::read_at(file.as_fd(), &mut block, 4096).unwrap();
        assert_eq!(block, [99; 4096]);
        refusals.into_iter().map(|r| r.feature).collect()
    }

    /// Each feature alone, and all together, may be missing: the same bytes come.
    #[test]
    fn works_without_any_feature() {
        use Feature::*;
        let native = read_back(&[]);
        let all = [
            NoSqArray,
            DeferTaskrun,
            SingleIssuer,
            CoopTaskrun,
            RegisteredRing,
            Timeout,
            RegisteredFile,
            RegisteredBuffers,
        ];
        for feature in all {
            let dropped = read_back(&[feature]);
            assert!(dropped.contains(&feature), "{feature:?}");
            assert!(native.iter().all(|f| dropped.contains(f)));
        }
        assert_eq!(read_back(&all).len(), all.len());
    }

    #[test]
    fn what_is_reaped_makes_room_for_what_completes_next() {
        let file = stamped(8);
        let (mut ring, _) = Ring::new(file.as_fd(), 4, 4096, Pages::Usual, &[]).unwrap();
        (0..4).for_each(|slot| ring.read(slot, 0, 4096, 0));
        while !ring.is_all_done() {
            ring.enter(4).unwrap();
        }
        for turn in 0..8 {
            for _ in 0..2 {
                let (slot, _) = ring.reap().unwrap();
                ring.read(slot, 0, 4096, 4096);
            }
            let begun = Instant::now();
            while !ring.is_all_done() {
                // With all four places taken the kernel keeps the completions to itself, and no wait brings them.
                assert!(begun.elapsed() < Duration::from_secs(5), "turn {turn}");
                ring.enter(4).unwrap();
            }
        }
    }

    #[test]
    fn waiting_has_an_end() {
        for refuse in [&[][..], &[Feature::Timeout]] {
            let (read, write) = std::io::pipe().unwrap();
            let (mut ring, _) = Ring::new(read.as_fd(), 1, 64, Pages::Usual, refuse).unwrap();
            ring.read(0, 0, 64, u64::MAX);
            let begun = Instant::now();
            ring.enter_for(1, Duration::from_millis(20)).unwrap();
            assert_eq!(ring.reap(), None);
            assert!(begun.elapsed().as_millis() >= 15, "{:?}", begun.elapsed());
            drop(write);
            assert_eq!(next(&mut ring), (0, 0));
        }
    }
}
