//! The memory through which the kernel tells of events: a page with two positions, and the records after it.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of records, a power of two: what a user without rights may lock for each processor (`perf_event_mlock_kb`, 516).
const LEAST: usize = 256 << 10;
/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;
const RECORD_LOST: u32 = 2;
const RECORD_SAMPLE: u32 = 9;
const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
/// Type, flags, length.
const HEADER: usize = 8;

/// A record.
pub(crate) enum Found<'r> {
    /// An event.
    Sample(Body<'r>),
    /// A thread got a processor, or lost it: although it had something to do?
    Switch { body: Body<'r>, preempted: bool },
}

/// What a record holds after its header.
pub(crate) struct Body<'r> {
    ring: &'r Ring,
    at: u64,
    len: u64,
}

impl Body<'_> {
    /// Its `nth` word.
    pub(crate) fn word(&self, nth: u64) -> u64 {
        u64::from_ne_bytes(self.ring.read(self.at + 8 * nth))
    }

    /// What comes after the `nth` word as a length of 32 bits and so many bytes, as SAMPLE_RAW has it.
    pub(crate) fn raw(&self, nth: u64, into: &mut Vec<u8>) {
        let at = 8 * nth;
        let len = u64::from(u32::from_ne_bytes(self.ring.read(self.at + at)));
        let len = len.min(self.len.saturating_sub(at + 4));
        into.clear();
        // Whole words: what they reach into beyond the end is cut off again.
        into.extend((0..len.div_ceil(8)).flat_map(|i| self.ring.read::<8>(self.at + at + 4 + 8 * i)));
        into.truncate(len as usize);
    }
}

/// The ring of one processor.
#[derive(Debug)]
pub(crate) struct Ring {
    at: NonNull<u8>,
    page: usize,
    len: usize,
    room: usize,
    event: RawFd,
}

// SAFETY: the mapping has no owner's thread, and is read through an exclusive borrow alone.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of this event, into which others of the same processor may be told to write, with room for so many bytes
    /// (a power of two) where they are granted.
    pub(crate) fn new(event: &OwnedFd, room: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let map =
            |room| unsafe { mmap(std::ptr::null_mut(), page + room, protection, MapFlags::SHARED, event.as_fd(), 0) };
        let [wanted, least] = [room, LEAST].map(|room| room.max(page));
        let (at, room) = match map(wanted) {
            Ok(at) => (at, wanted),
            Err(_) => (map(least)?, least),
        };
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { at, page, len: page + room, room, event: event.as_raw_fd() })
    }

    /// The descriptor of its event.
    pub(crate) fn event(&self) -> RawFd {
        self.event
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both positions lie in the first page of the mapping, aligned; the kernel accesses them as we do.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(offset).cast()) }
    }

    /// Copies `N` bytes from `position` on, which may go round the end.
    fn read<const N: usize>(&self, position: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let at = position as usize % self.room;
        if at + N <= self.room {
            // SAFETY: inside the mapping. The kernel does not write here until the tail has passed.
            return unsafe { std::ptr::read_unaligned(self.at.as_ptr().add(self.page + at).cast::<[u8; N]>()) };
        }
        for (i, byte) in bytes.iter_mut().enumerate() {
            let at = self.page + (position as usize + i) % self.room;
            // SAFETY: inside the mapping. The kernel does not write here until the tail has passed.
            *byte = unsafe { std::ptr::read_volatile(self.at.as_ptr().add(at)) };
        }
        bytes
    }

    /// Takes all that is there; the number of records that were lost.
    pub(crate) fn drain(&mut self, take: &mut impl FnMut(Found<'_>)) -> u64 {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let mut lost = 0;
        while tail < head {
            let header = self.read::<HEADER>(tail);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            let body = Body { ring: self, at: tail + HEADER as u64, len: size.saturating_sub(HEADER as u64) };
            match kind {
                RECORD_SAMPLE => take(Found::Sample(body)),
                RECORD_SWITCH => {
                    let misc = u16::from_ne_bytes([header[4], header[5]]);
                    let out = MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT;
                    take(Found::Switch { body, preempted: misc & out == out });
                }
                // Number of the event, and how many.
                RECORD_LOST => lost += body.word(1),
                _ => {}
            }
            // A length of nothing would hold this up for ever.
            tail += size.max(HEADER as u64);
        }
        // What was read is read before the kernel may write over it.
        fence(Ordering::SeqCst);
        self.position(TAIL).store(tail, Ordering::Release);
        lost
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody borrows any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}
