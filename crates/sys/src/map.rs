//! A file mapped into memory, touched page by page. A page that the file system cannot deliver (the file became shorter,
//! the medium failed, the disk is full) raises SIGBUS; here it becomes an error: a handler puts an empty page in its
//! place and notes the address, as systemd's `sigbus.c` does.

use rustix::fs::fstat;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mlock, mmap, msync, munmap};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// One mapping that the handler looks after. All zero when free.
struct Watched {
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first address that failed since it was last asked, plus 1; 0 when none did.
    failed: AtomicUsize,
}

/// Mappings that may exist at a time: as many as a job may have threads, and some.
const MOST: usize = 512;

static WATCHED: [Watched; MOST] =
    [const { Watched { start: AtomicUsize::new(0), end: AtomicUsize::new(0), failed: AtomicUsize::new(0) } }; MOST];

/// A range of a file in memory. Shared: what is stored reaches the file.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    len: usize,
    page: usize,
    watched: usize,
}

// SAFETY: the mapping has no owner's thread; all accesses to its bytes are atomic.
unsafe impl Send for Mapping {}

/// Replaces the page that failed by an empty one and notes it. Only async-signal-safe things here: atomics, `mmap`,
/// `sigaction`.
extern "C" fn on_sigbus(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid siginfo to an SA_SIGINFO handler; si_addr is set for SIGBUS.
    let address = unsafe { (*info).si_addr() } as usize;
    for watched in &WATCHED {
        let (start, end) = (watched.start.load(Ordering::Acquire), watched.end.load(Ordering::Acquire));
        if start <= address && address < end {
            let page = page_size();
            let at = address - address % page;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            // SAFETY: replaces one page inside a mapping of ours, which is only accessed by atomics, never by reference.
            let new = unsafe { libc::mmap(at as *mut _, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            if new != libc::MAP_FAILED {
                let _ = watched.failed.compare_exchange(0, address + 1, Ordering::AcqRel, Ordering::Relaxed);
                return;
            }
        }
    }
    // Not ours: let it kill the process as it would have, when the instruction runs again.
    // SAFETY: restores the default action of this signal.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

fn page_size() -> usize {
    rustix::param::page_size()
}

fn install_handler() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The first call reads the auxiliary vector: not in the handler.
        page_size();
        // SAFETY: sigaction is plain data, for which zeros are a value; the handler has the signature that SA_SIGINFO
        // asks for and does only what is async-signal-safe.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        }
    });
}

impl Mapping {
    /// Maps `len` bytes of the file from `offset` (a multiple of the page) on, for reading or for both.
    ///
    /// # Errors
    /// The kernel's (`EACCES` when the descriptor is not open for that, `ENOMEM` when the address space is too small), and
    /// `Other` when 512 mappings exist already.
    pub fn new(file: BorrowedFd<'_>, offset: u64, len: usize, writable: bool) -> io::Result<Self> {
        install_handler();
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
        let at = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset) }?;
        let at = NonNull::new(at.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let start = at.as_ptr() as usize;
        let free = WATCHED
            .iter()
            .position(|w| w.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok());
        let Some(watched) = free else {
            // SAFETY: made above and not handed out.
            let _ = unsafe { munmap(at.as_ptr().cast(), len) };
            return Err(io::Error::other("too many mappings of files at a time"));
        };
        WATCHED[watched].failed.store(0, Ordering::Relaxed);
        WATCHED[watched].end.store(start + len, Ordering::Release);
        Ok(Mapping { at, len, page: page_size(), watched })
    }
    /// Tells the kernel whether the pages will be touched at random, so that it does not read around them, or in order.
    ///
    /// # Errors
    /// The kernel's.
    pub fn advise(&self, random: bool) -> io::Result<()> {
        let advice = if random { Advice::Random } else { Advice::Sequential };
        // SAFETY: our own mapping; this advice changes no content.
        Ok(unsafe { madvise(self.at.as_ptr().cast(), self.len, advice) }?)
    }
    /// Reads all pages and keeps them in RAM until drop, against whatever would take them meanwhile.
    ///
    /// # Errors
    /// `ENOMEM` or `EPERM` when RLIMIT_MEMLOCK is too small or a page cannot be read; the mapping is as usable as before.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: our own mapping; locking changes no content.
        Ok(unsafe { mlock(self.at.as_ptr().cast(), self.len) }?)
    }
    /// Loads one byte of each page of `len` bytes from `at` on.
    ///
    /// # Errors
    /// The offset in the mapping of a page that could not be delivered.
    ///
    /// # Panics
    /// When the range is not inside the mapping.
    #[inline]
    pub fn touch(&self, at: usize, len: usize) -> Result<(), usize> {
        assert!(at <= self.len && len <= self.len - at);
        let mut next = at;
        while next < at + len {
            // SAFETY: inside the mapping, by the assertion; atomic, since another thread may store there.
            unsafe { AtomicU8::from_ptr(self.at.as_ptr().add(next)) }.load(Ordering::Relaxed);
            next += self.page - next % self.page;
        }
        self.verdict()
    }
    /// Stores `data` from `at` on.
    ///
    /// # Errors
    /// The offset in the mapping of a page that could not be delivered.
    ///
    /// # Panics
    /// When the range is not inside the mapping.
    pub fn store(&self, at: usize, data: &[u8]) -> Result<(), usize> {
        assert!(at <= self.len && data.len() <= self.len - at);
        let (words, rest) = data.as_chunks::<4>();
        let aligned = at.is_multiple_of(4);
        for (i, word) in words.iter().enumerate() {
            // SAFETY: inside the mapping, by the assertion.
            let to = unsafe { self.at.as_ptr().add(at + 4 * i) };
            if aligned {
                // SAFETY: as above, and aligned to 4; atomic, since another thread may store there.
                unsafe { AtomicU32::from_ptr(to.cast()) }.store(u32::from_ne_bytes(*word), Ordering::Relaxed);
            } else {
                for (j, byte) in word.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { AtomicU8::from_ptr(to.add(j)) }.store(*byte, Ordering::Relaxed);
                }
            }
        }
        for (j, byte) in rest.iter().enumerate() {
            // SAFETY: inside the mapping, by the assertion.
            unsafe { AtomicU8::from_ptr(self.at.as_ptr().add(at + 4 * words.len() + j)) }
                .store(*byte, Ordering::Relaxed);
        }
        self.verdict()
    }
    /// Makes `len` bytes from `at` on durable (`msync(MS_SYNC)`), with the pages around them.
    ///
    /// # Errors
    /// The kernel's.
    ///
    /// # Panics
    /// When the range is not inside the mapping.
    pub fn flush(&self, at: usize, len: usize) -> io::Result<()> {
        assert!(at <= self.len && len <= self.len - at);
        let start = at - at % self.page;
        // SAFETY: pages of our own mapping, by the assertion; no content changes.
        Ok(unsafe { msync(self.at.as_ptr().add(start).cast(), at + len - start, MsyncFlags::SYNC) }?)
    }
    /// Did a page fail since the last call?
    #[inline]
    fn verdict(&self) -> Result<(), usize> {
        let failed = &WATCHED[self.watched].failed;
        if failed.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err((failed.swap(0, Ordering::AcqRel) - 1).saturating_sub(self.at.as_ptr() as usize))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let watched = &WATCHED[self.watched];
        watched.end.store(0, Ordering::Release);
        // SAFETY: our own mapping, which nobody borrows any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
        watched.start.store(0, Ordering::Release);
    }
}

/// Size of an opened file in bytes now: tells a file that became shorter from a medium that failed.
///
/// # Errors
/// The kernel's.
pub fn file_size(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(fstat(file)?.st_size as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn what_is_stored_reaches_the_file() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * 65536).unwrap();
        let map = Mapping::new(file.as_fd(), 65536, 2 * 65536, true).unwrap();
        map.advise(true).unwrap();
        map.touch(0, 2 * 65536).unwrap();
        map.store(4096, b"aligned words").unwrap();
        map.store(5001, b"odd place").unwrap();
        map.flush(4096, 1000).unwrap();
        let mut back = [0; 13];
        crate::file::read_at(file.as_fd(), &mut back, 65536 + 4096).unwrap();
        assert_eq!(&back, b"aligned words");
        let mut back = [0; 9];
        crate::file::read_at(file.as_fd(), &mut back, 65536 + 5001).unwrap();
        assert_eq!(&back, b"odd place");
    }

    /// A file that becomes shorter raises SIGBUS: that must be an error here, and only for the pages that are gone.
    #[test]
    fn a_page_that_is_gone_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(65536 * 2).unwrap();
        let map = Mapping::new(file.as_fd(), 0, 65536 * 2, true).unwrap();
        map.touch(0, 65536 * 2).unwrap();
        file.set_len(65536).unwrap();
        assert_eq!(map.touch(65536, 65536), Err(65536));
        assert_eq!(map.touch(0, 65536), Ok(()));
        file.set_len(65536 / 2).unwrap();
        assert!(map.store(40000, &[1; 100]).is_err());
        assert_eq!(file_size(file.as_fd()).unwrap(), 65536 / 2);
    }
}
