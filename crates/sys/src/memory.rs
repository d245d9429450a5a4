//! Memory whose place and fate are known: page-aligned, taken from the kernel directly, touched before use, locked when
//! the rights allow it.

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap_anonymous, munmap};
use std::io;
use std::ptr::NonNull;

/// Bytes that new programs can have without swapping: `MemAvailable` of `/proc/meminfo` (Linux 3.14 and later); nothing
/// where the kernel does not tell.
pub fn available() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A page-aligned block of anonymous memory, all zeros at first, given back on drop.
#[derive(Debug)]
pub struct Buffer {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the buffer owns its mapping alone; access goes through borrows of it, as with Vec<u8>.
unsafe impl Send for Buffer {}
// SAFETY: shared borrows only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes `len` bytes (rounded up to a page by the kernel) and touches each page, so that no page fault is left for
    /// the measurement.
    ///
    /// # Errors
    /// `ENOMEM`, and `EINVAL` when `len` is 0.
    pub fn new(len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, MapFlags::PRIVATE) }?;
        let at = NonNull::new(at.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffer = Buffer { at, len };
        for byte in buffer.as_mut_slice().iter_mut().step_by(4096) {
            // SAFETY: a valid, exclusive reference; volatile, since storing the zero that is there has no other effect.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        Ok(buffer)
    }
    /// Keeps the pages in RAM until drop.
    ///
    /// # Errors
    /// `ENOMEM` or `EPERM` when RLIMIT_MEMLOCK is too small; the buffer is as usable as before.
    pub fn lock(&mut self) -> io::Result<()> {
        // SAFETY: the range is this buffer's own mapping.
        Ok(unsafe { mlock(self.at.as_ptr().cast(), self.len) }?)
    }
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `at` is a live mapping of `len` initialised bytes, borrowed as self is.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }
    /// Where it begins, for the ring; writing through it needs what an exclusive borrow would give.
    #[inline]
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.at
    }
    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this buffer's own and nobody borrows it any more. Failure leaves it mapped: a leak.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_memory_is_available() {
        assert!(available().unwrap() > 1 << 20);
    }

    #[test]
    fn a_buffer_is_aligned_zeroed_and_writable() {
        let mut buffer = Buffer::new(10_000).unwrap();
        assert_eq!(buffer.as_slice().as_ptr().align_offset(4096), 0);
        assert!(buffer.as_slice().iter().all(|&b| b == 0));
        buffer.as_mut_slice()[9_999] = 7;
        assert_eq!(buffer.as_slice()[9_999], 7);
        assert!(Buffer::new(0).is_err());
    }
}
