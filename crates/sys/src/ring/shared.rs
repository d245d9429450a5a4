//! The memory that a ring shares with the kernel.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A mapping of the ring's memory, unmapped on drop.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) at: NonNull<u8>,
    len: usize,
}

impl Shared {
    pub(super) fn new(ring: &OwnedFd, len: usize, offset: u64) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap(std::ptr::null_mut(), len, protection, flags, ring, offset) }?;
        let at = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Shared { at, len })
    }
    /// A counter of the ring at `offset`.
    pub(super) fn counter(&self, offset: u32) -> io::Result<NonNull<AtomicU32>> {
        if offset as usize + 4 > self.len || !offset.is_multiple_of(4) {
            return Err(io::Error::other("the kernel describes a ring larger than its mapping"));
        }
        // SAFETY: within the mapping, by the check.
        Ok(unsafe { self.at.add(offset as usize) }.cast())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping; the ring that holds pointers into it is being dropped.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}
