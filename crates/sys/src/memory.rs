//! Memory whose place and fate are known: page-aligned, taken from the kernel directly, touched before use or never, locked when
//! the rights allow it.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;

/// Bytes that new programs can have without swapping: `MemAvailable` of `/proc/meminfo` (Linux 3.14 and later); nothing
/// where the kernel does not tell.
pub fn available() -> Option<u64> {
    meminfo("MemAvailable:")
}

/// Bytes of swap that are free (`SwapFree`), of all areas; nothing where the kernel does not tell.
pub fn swap_free() -> Option<u64> {
    meminfo("SwapFree:")
}

fn meminfo(key: &str) -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A huge page of most kernels. Those with pages of 16 or 64 KiB have only longer ones, which no buffer fills.
pub const HUGE_PAGE: usize = 2 << 20;

/// Which pages a buffer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Those that any program gets. Where in RAM they lie is chance: neighbours, or each somewhere else.
    Usual,
    /// Huge ones, each of 2 MiB in one piece.
    Huge,
}

/// A page-aligned block of anonymous memory, all zeros at first, given back on drop.
#[derive(Debug)]
pub struct Buffer {
    at: NonNull<u8>,
    len: usize,
    /// With the rest of its last huge page.
    whole_pages: usize,
    /// The mapping that it is a part of.
    map: (NonNull<c_void>, usize),
}

// SAFETY: the buffer owns its mapping alone; access goes through borrows of it, as with Vec<u8>.
unsafe impl Send for Buffer {}
// SAFETY: shared borrows only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Takes `len` bytes (rounded up to a page by the kernel) and touches each page, so that no page fault is left for
    /// the measurement. That huge pages are wanted does not mean that there are any: see [`Buffer::is_huge`].
    ///
    /// # Errors
    /// `ENOMEM`, and `EINVAL` when `len` is 0.
    pub fn new(len: usize, pages: Pages) -> io::Result<Self> {
        let mut buffer = Buffer::mapped(len, pages)?;
        for byte in buffer.as_mut_slice().iter_mut().step_by(4096) {
            // SAFETY: a valid, exclusive reference; volatile, since storing the zero that is there has no other effect.
            unsafe { std::ptr::write_volatile(byte, 0) };
        }
        Ok(buffer)
    }
    /// Takes `len` bytes of usual pages and touches none: the kernel gives each when it is first written.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn untouched(len: usize) -> io::Result<Self> {
        Buffer::mapped(len, Pages::Usual)
    }
    fn mapped(len: usize, pages: Pages) -> io::Result<Self> {
        // Room for a start at the next boundary.
        let whole = match pages {
            Pages::Huge if len > 0 => {
                len.checked_next_multiple_of(HUGE_PAGE).and_then(|len| len.checked_add(HUGE_PAGE))
            }
            _ => Some(len),
        };
        let whole = whole.ok_or(io::ErrorKind::OutOfMemory)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing that exists.
        let map = unsafe { mmap_anonymous(std::ptr::null_mut(), whole, protection, MapFlags::PRIVATE) }?;
        let map = NonNull::new(map).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffer = Buffer { at: map.cast(), len, whole_pages: len, map: (map, whole) };
        if pages == Pages::Huge {
            let to_boundary = map.cast::<u8>().align_offset(HUGE_PAGE);
            // SAFETY: the boundary is less than a huge page away, and the mapping is one longer than what begins there.
            buffer.at = unsafe { buffer.at.add(to_boundary) };
            buffer.whole_pages = whole - HUGE_PAGE;
            // SAFETY: the range is a part of this mapping; the advice changes no byte. Where it is refused, as by a kernel
            // without huge pages, the usual ones serve as well.
            let _ = unsafe { madvise(buffer.at.as_ptr().cast(), buffer.whole_pages, Advice::LinuxHugepage) };
        }
        Ok(buffer)
    }
    /// Makes zeros of a part. Its whole pages are the kernel's until they are written again; locked ones since Linux 5.18, before
    /// that they stay.
    pub fn forget(&mut self, part: Range<usize>) {
        let page = rustix::param::page_size();
        let (from, to) = (part.start.next_multiple_of(page), part.end / page * page);
        let bytes = &mut self.as_mut_slice()[part.clone()];
        if from >= to {
            return bytes.fill(0);
        }
        let (first, rest) = bytes.split_at_mut(from - part.start);
        let (whole, last) = rest.split_at_mut(to - from);
        first.fill(0);
        last.fill(0);
        let forgotten = [Advice::LinuxDontneedLocked, Advice::LinuxDontNeed].into_iter().any(|advice| {
            // SAFETY: whole pages of a private anonymous mapping, borrowed by nobody else: they read as zeros from then on.
            unsafe { madvise(whole.as_mut_ptr().cast(), whole.len(), advice) }.is_ok()
        });
        if !forgotten {
            whole.fill(0);
        }
    }
    /// Whether all of it lies in huge pages, by the kernel's account of this process.
    ///
    /// # Errors
    /// When `/proc/self/smaps` cannot be read or does not tell.
    pub fn is_huge(&self) -> io::Result<bool> {
        let smaps = std::fs::read_to_string("/proc/self/smaps")?;
        let at = self.at.as_ptr() as usize;
        let begins = |line: &str| -> Option<bool> {
            let (from, to) = line.split_once(' ')?.0.split_once('-')?;
            Some((usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?).contains(&at))
        };
        let mut lines = smaps.lines().skip_while(|line| begins(line) != Some(true));
        let huge = lines.find_map(|line| line.strip_prefix("AnonHugePages:"));
        let huge_kib = huge.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
        huge_kib.map(|kib| kib * 1024 >= self.len).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
    /// Keeps the pages in RAM until drop.
    ///
    /// # Errors
    /// `ENOMEM` or `EPERM` when RLIMIT_MEMLOCK is too small; the buffer is as usable as before.
    pub fn lock(&mut self) -> io::Result<()> {
        // SAFETY: the range is this buffer's own mapping. In whole huge pages: locking a part of one takes it apart.
        Ok(unsafe { mlock(self.at.as_ptr().cast(), self.whole_pages) }?)
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
        let _ = unsafe { munmap(self.map.0.as_ptr(), self.map.1) };
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
        let mut buffer = Buffer::new(10_000, Pages::Usual).unwrap();
        assert_eq!(buffer.as_slice().as_ptr().align_offset(4096), 0);
        assert!(buffer.as_slice().iter().all(|&b| b == 0));
        buffer.as_mut_slice()[9_999] = 7;
        assert_eq!(buffer.as_slice()[9_999], 7);
        assert!(Buffer::new(0, Pages::Usual).is_err());
        assert!(Buffer::new(0, Pages::Huge).is_err());
        assert!(Buffer::new(usize::MAX, Pages::Huge).is_err());
    }

    #[test]
    fn what_is_forgotten_reads_as_zeros_and_the_rest_does_not() {
        let page = rustix::param::page_size();
        let mut buffer = Buffer::untouched(5 * page).unwrap();
        for part in [page..3 * page, 100..4 * page + 7, 30..40, 0..0, 0..5 * page] {
            buffer.as_mut_slice().fill(9);
            buffer.forget(part.clone());
            let right = |(at, byte): (usize, &u8)| *byte == if part.contains(&at) { 0 } else { 9 };
            assert!(buffer.as_slice().iter().enumerate().all(right), "{part:?}");
        }
    }

    /// A kernel need not have huge pages or any left; what it says is held against the boundary.
    #[test]
    fn a_huge_buffer_begins_at_the_boundary_of_a_huge_page() {
        let mut buffer = Buffer::new(3 << 20, Pages::Huge).unwrap();
        assert_eq!(buffer.as_slice().as_ptr().align_offset(HUGE_PAGE), 0);
        buffer.as_mut_slice()[(3 << 20) - 1] = 7;
        assert_eq!((buffer.as_slice()[0], buffer.as_slice()[(3 << 20) - 1]), (0, 7));
        let allowed = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        if allowed.contains("[madvise]") {
            assert!(!Buffer::new(64 << 10, Pages::Usual).unwrap().is_huge().unwrap(), "nobody asked");
        }
        if allowed.contains("[never]") || allowed.is_empty() {
            assert!(!buffer.is_huge().unwrap());
        }
        // Bug: half a huge page was locked, and the kernel took it apart.
        if buffer.is_huge().unwrap() && buffer.lock().is_ok() {
            assert!(buffer.is_huge().unwrap());
        }
    }
}
