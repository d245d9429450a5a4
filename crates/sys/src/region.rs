//! Anonymous memory that may be larger than what the kernel lets stay in RAM: taken untouched, never locked, each access an
//! atomic load or store, so that several threads may use it at once. What the kernel does to its pages meanwhile (swapping
//! them out and in) is what is measured.

use rustix::mm::{MapFlags, ProtFlags, mlockall, mmap_anonymous, munlock, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes that move between memory and cache at a time on all machines this runs on.
const LINE: usize = 64;

/// A block of anonymous memory, given back on drop.
#[derive(Debug)]
pub struct Region {
    at: NonNull<u8>,
    len: usize,
    page: usize,
}

// SAFETY: the mapping has no owner's thread.
unsafe impl Send for Region {}
// SAFETY: all accesses to its bytes are atomic.
unsafe impl Sync for Region {}

impl Region {
    /// Takes `len` bytes and touches none of them.
    ///
    /// # Errors
    /// `ENOMEM` when the address space or the kernel's promise of memory is too small, `EINVAL` when `len` is 0.
    pub fn new(len: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Without a promise of memory for all of it: whether it has a place is what is to be found out.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap_anonymous(std::ptr::null_mut(), len, protection, flags) }?;
        let at = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: our own mapping. Where all of the process is to be locked, this is not.
        let _ = unsafe { munlock(at.as_ptr(), len) };
        Ok(Region { at: at.cast(), len, page: rustix::param::page_size() })
    }
    /// Its length in bytes.
    pub fn size(&self) -> usize {
        self.len
    }
    /// Where it begins.
    pub(crate) fn start(&self) -> *const u8 {
        self.at.as_ptr()
    }
    /// Length of a page in bytes.
    pub fn page(&self) -> usize {
        self.page
    }
    /// Loads a byte of each cache line of `len` bytes from `at` on, so that all of them come to the CPU.
    ///
    /// # Panics
    /// When the range is not inside the region.
    #[inline]
    pub fn load(&self, at: usize, len: usize) -> u8 {
        assert!(at <= self.len && len <= self.len - at);
        (at..at + len).step_by(LINE).fold(0, |all, next| {
            // SAFETY: inside the mapping, by the assertion; atomic, since another thread may store there.
            all ^ unsafe { AtomicU8::from_ptr(self.at.as_ptr().add(next)) }.load(Ordering::Relaxed)
        })
    }
    /// Stores `value` at the first word of each page that begins within `len` bytes from `at` on: the pages are changed, and
    /// compress as before.
    ///
    /// # Panics
    /// When the range is not inside the region.
    #[inline]
    pub fn stamp(&self, at: usize, len: usize, value: u64) {
        assert!(at <= self.len && len <= self.len - at);
        let mut next = at.next_multiple_of(self.page);
        while next + size_of::<u64>() <= at + len {
            // SAFETY: inside the mapping, by the loop's condition; aligned, being the beginning of a page.
            unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(next).cast()) }.store(value, Ordering::Relaxed);
            next += self.page;
        }
    }
    /// Stores `data`, whole words of it, from `at` (a multiple of 8) on.
    ///
    /// # Panics
    /// When the range is not inside the region, or `at` is none of its words.
    pub fn fill(&self, at: usize, data: &[u8]) {
        assert!(at <= self.len && data.len() <= self.len - at && at.is_multiple_of(size_of::<u64>()));
        for (i, word) in data.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: inside the mapping and aligned, by the assertion.
            unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(at + 8 * i).cast()) }
                .store(u64::from_ne_bytes(*word), Ordering::Relaxed);
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody borrows any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}

/// Keeps all other memory of this process in RAM, now and from now on, as far as it is touched; regions that are made later
/// are not locked. True when the rights allow it.
pub fn lock_everything_else() -> bool {
    let flags = rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::FUTURE;
    mlockall(flags | rustix::mm::MlockAllFlags::ONFAULT).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded() {
        let region = Region::new(1 << 20).unwrap();
        let page = region.page();
        assert_eq!(region.load(0, 1 << 20), 0);
        region.fill(page, &[7; 4096]);
        assert_eq!(region.load(page, 64), 7);
        region.stamp(0, 1 << 20, 0x0101_0101_0101_0101);
        assert_eq!((region.load(page, 64), region.load(page + 64, 64)), (1, 7));
        assert!(Region::new(0).is_err());
    }

    #[test]
    fn a_region_takes_no_memory_until_it_is_touched() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
        };
        let before = resident();
        let region = Region::new(64 << 20).unwrap();
        let taken = (resident().saturating_sub(before)) * region.page();
        assert!(taken < 32 << 20, "{taken}");
    }
}
