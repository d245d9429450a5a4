//! The memory of another process, from outside: which of its pages are in its page table (`/proc/PID/pagemap`), and advice
//! to the kernel about them (process_madvise(2), Linux 5.10). Advice never changes what the process reads there.

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Ranges said in one call. The kernel takes 1024 (UIO_MAXIOV), but recent ones (6.18 was seen) hold the process's address space through
/// all of them, for as long as a disk's queue is full: a thread that starts or ends waits for that, and all others behind it.
const AT_ONCE: usize = 4;
/// Pages that are found before any of them is read, on 64 bits (`PVM_MAX_USER_PAGES`); half of what 32 bits allow.
const READ_AT_ONCE: u64 = 1024;
/// Of an entry of pagemap: the page is in the page table, or has its place in swap (proc(5)).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const ENTRY: usize = 8;
/// Of an entry of pagemap: the number of its frame, which is 0 for who may not know (CAP_SYS_ADMIN).
const FRAME: u64 = (1 << 55) - 1;
/// What `/proc/kpageflags` says of a frame (Documentation/admin-guide/mm/pagemap.rst): changed since it was read, of no file, with a
/// place in swap that holds the same.
const DIRTY: u64 = 1 << 4;
const ANONYMOUS: u64 = 1 << 12;
const SWAP_CACHE: u64 = 1 << 13;

/// A scan of pagemap (linux/fs.h, 6.7): which pages are there, in runs, without a look at each one's frame. Its ioctl is
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: u64 = 0xC060_6610;
const IS_PRESENT: u64 = 1 << 3;
const IS_SWAPPED: u64 = 1 << 4;

/// `struct pm_scan_arg`.
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    told: u64,
}

/// `struct page_region`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// What is said of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// It will be touched soon: bring it in now, without waiting.
    WillNeed,
    /// It goes first when memory is short.
    Cold,
    /// It goes now: to swap, or, unchanged from its file, away.
    PageOut,
}

impl Advice {
    fn number(self) -> libc::c_int {
        match self {
            Advice::WillNeed => libc::MADV_WILLNEED,
            Advice::Cold => libc::MADV_COLD,
            Advice::PageOut => libc::MADV_PAGEOUT,
        }
    }
}

/// Whole pages of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Address of the first; a multiple of the page.
    pub at: u64,
    /// Bytes; a multiple of the page.
    pub len: u64,
}

/// Where a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// In the page table: a touch meets no fault.
    Present,
    /// In swap, or in its cache.
    Swapped,
    /// Never touched, or in its file alone.
    Nowhere,
}

/// A process whose memory is looked at. It stays the same process: a later one of its number is never meant.
#[derive(Debug)]
pub struct Peer {
    process: OwnedFd,
    pagemap: File,
    number: Pid,
    /// Where the kernel tells what frames are used for; root alone is told.
    frames: Option<File>,
    /// This kernel scans pagemap, as far as is known.
    scans: AtomicBool,
    page: u64,
}

impl Peer {
    /// The process of this number.
    ///
    /// # Errors
    /// `NotFound` when there is none, `PermissionDenied` when it is another user's and the right to look is missing
    /// (CAP_SYS_PTRACE), the kernel's.
    pub fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        let process = pidfd_open(number, PidfdFlags::empty())
            .map_err(|e| io::Error::new(io::Error::from(e).kind(), format!("process {pid} cannot be had: {e}")))?;
        let path = format!("/proc/{pid}/pagemap");
        let pagemap = File::open(&path).map_err(|e| {
            let way = match e.kind() {
                io::ErrorKind::PermissionDenied => "; be root, or have CAP_SYS_NICE and CAP_SYS_PTRACE",
                _ => "",
            };
            io::Error::new(e.kind(), format!("{path}: {e}{way}"))
        })?;
        let frames = File::open("/proc/kpageflags").ok();
        let scans = AtomicBool::new(true);
        Ok(Peer { number, process, pagemap, frames, scans, page: rustix::param::page_size() as u64 })
    }

    /// Length of a page in bytes.
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Says it of all ranges, of as many at once as the kernel takes; those that are not there any more are passed over.
    /// Bytes of which it was said. That is no promise: what is held by others, or on its way onto the kernel's lists,
    /// stays where it is.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_SYS_NICE or the right to trace the process, `Unsupported` before Linux 5.10, `NotFound`
    /// when the process has ended, each with a sentence; the kernel's.
    pub fn advise(&self, ranges: &[Range], advice: Advice) -> io::Result<u64> {
        let mut parts: Vec<libc::iovec> = Vec::with_capacity(ranges.len().min(AT_ONCE));
        let (mut next, mut all, mut apart) = (0, 0, false);
        while next < ranges.len() {
            let batch = &ranges[next..ranges.len().min(next + AT_ONCE)];
            parts.clear();
            for range in batch {
                match parts.last_mut() {
                    // Each is walked, and flushed from the processors, by itself.
                    Some(last) if !apart && last.iov_base as u64 + last.iov_len as u64 == range.at => {
                        last.iov_len += range.len as usize;
                    }
                    _ => parts.push(libc::iovec { iov_base: range.at as *mut _, iov_len: range.len as usize }),
                }
            }
            let zero: libc::c_uint = 0;
            // SAFETY: the kernel reads the vector, which lives through the call; the addresses in it are the other
            // process's, and none of these kinds of advice changes a byte of it.
            let done = unsafe {
                libc::syscall(
                    libc::SYS_process_madvise,
                    self.process.as_raw_fd(),
                    parts.as_ptr(),
                    parts.len(),
                    advice.number(),
                    zero,
                )
            };
            if done < 0 {
                let error = io::Error::last_os_error();
                // The first of them is a hole, or may not be paged out.
                if !matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EINVAL | libc::EBADF | libc::EFAULT)) {
                    return Err(explained(error));
                }
                // Of some that were said together nobody knows which: once more, each by itself.
                (next, apart) = if parts[0].iov_len as u64 > batch[0].len { (next, true) } else { (next + 1, apart) };
                continue;
            }
            apart = false;
            let done = done as u64;
            all += done;
            // It stops at the first that is not there and tells how far it came.
            let mut sum = 0;
            let whole = batch
                .iter()
                .take_while(|range| {
                    sum += range.len;
                    sum <= done
                })
                .count();
            next += whole + usize::from(whole < batch.len());
        }
        Ok(all)
    }

    /// Has the pages of a range put into its page table, and waits for those that have to be read: the program meets no fault of theirs
    /// then. Stops at one that cannot be read. The kernel knows the process by its number here: should it have ended this moment, a byte
    /// of its successor's is read, which does nothing to it.
    pub fn map(&self, range: Range) {
        let number = self.number.as_raw_nonzero().get();
        let most = READ_AT_ONCE * self.page;
        for at in (range.at..range.at + range.len).step_by(most as usize) {
            // All pages of what is to be read are found before the first byte of it is copied (`process_vm_rw_single_vec` in
            // mm/process_vm_access.c), and there is room for one: four fifths of what reading bytes of them two by two costs.
            let mut byte = 0_u8;
            let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            let len = most.min(range.at + range.len - at);
            let there = libc::iovec { iov_base: at as *mut _, iov_len: len as usize };
            // SAFETY: the kernel writes at most one byte, into `byte`, which lives through the call; the addresses in `there` are the
            // other process's, and nothing is changed at them.
            let read = unsafe { libc::process_vm_readv(number, &raw const here, 1, &raw const there, 1, 0) };
            if read < 1 {
                break;
            }
        }
    }

    /// Where the pages of a range are, one after the other, into `into`, which is emptied before. Short when the process has
    /// ended.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&self, range: Range, into: &mut Vec<Lies>) -> io::Result<()> {
        if self.scans.load(Relaxed) {
            match self.scan(range, into) {
                // An older kernel: from now on by entries.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::EINVAL)) => {
                    self.scans.store(false, Relaxed);
                }
                looked => return looked,
            }
        }
        self.read(range, into)
    }

    /// By a scan, which looks at no page's frame and so costs less than an entry for each page.
    fn scan(&self, range: Range, into: &mut Vec<Lies>) -> io::Result<()> {
        into.clear();
        into.resize((range.len / self.page) as usize, Lies::Nowhere);
        let mut regions = [Region::default(); 64];
        let (mut start, end) = (range.at, range.at + range.len);
        while start < end {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start,
                end,
                vec: regions.as_mut_ptr() as u64,
                vec_len: regions.len() as u64,
                any_of: IS_PRESENT | IS_SWAPPED,
                told: IS_PRESENT | IS_SWAPPED,
                ..Scan::default()
            };
            // SAFETY: the kernel reads and writes the structure and at most `vec_len` regions, both of which live through the call.
            let found = unsafe { libc::ioctl(self.pagemap.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
            if found < 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ESRCH) {
                    return Err(error);
                }
                // It has ended.
                into.clear();
                return Ok(());
            }
            for region in &regions[..found as usize] {
                let nth = |at: u64| ((at - range.at) / self.page) as usize;
                let lies = if region.categories & IS_PRESENT != 0 { Lies::Present } else { Lies::Swapped };
                if let Some(pages) = into.get_mut(nth(region.start)..nth(region.end)) {
                    pages.fill(lies);
                }
            }
            if scan.walk_end <= start {
                break;
            }
            start = scan.walk_end;
        }
        Ok(())
    }

    /// By an entry for each page.
    fn read(&self, range: Range, into: &mut Vec<Lies>) -> io::Result<()> {
        into.clear();
        let mut bytes = [0; 512 * ENTRY];
        let (mut page, end) = (range.at / self.page, (range.at + range.len) / self.page);
        while page < end {
            let wanted = ((end - page) as usize * ENTRY).min(bytes.len());
            let got = self.pagemap.read_at(&mut bytes[..wanted], page * ENTRY as u64)?;
            if got < ENTRY {
                break;
            }
            let entries = bytes[..got].as_chunks::<ENTRY>().0;
            into.extend(entries.iter().map(|entry| match u64::from_ne_bytes(*entry) {
                entry if entry & PRESENT != 0 => Lies::Present,
                entry if entry & SWAPPED != 0 => Lies::Swapped,
                _ => Lies::Nowhere,
            }));
            page += entries.len() as u64;
        }
        Ok(())
    }

    /// Whether the page at this address has to be written when it goes: neither swap nor a file has it as it is. None where it is not
    /// in memory, or that may not be known.
    pub fn costs_a_write(&self, at: u64) -> Option<bool> {
        let entry = |file: &File, nth: u64| {
            let mut entry = [0; ENTRY];
            file.read_exact_at(&mut entry, nth * ENTRY as u64).ok().map(|()| u64::from_ne_bytes(entry))
        };
        let page = entry(&self.pagemap, at / self.page)?;
        let frame = page & FRAME;
        if page & PRESENT == 0 || frame == 0 {
            return None;
        }
        let flags = entry(self.frames.as_ref()?, frame)?;
        Some(flags & DIRTY != 0 || flags & ANONYMOUS != 0 && flags & SWAP_CACHE == 0)
    }
}

fn explained(error: io::Error) -> io::Error {
    let (kind, what) = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => (
            io::ErrorKind::PermissionDenied,
            "its memory may not be advised on; be root, or have CAP_SYS_NICE and CAP_SYS_PTRACE",
        ),
        Some(libc::ENOSYS) => (io::ErrorKind::Unsupported, "this kernel has no process_madvise (Linux 5.10)"),
        Some(libc::ESRCH) => (io::ErrorKind::NotFound, "the process has ended"),
        _ => (error.kind(), "process_madvise failed"),
    };
    io::Error::new(kind, format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    #[test]
    fn pages_are_seen_where_they_are_and_holes_passed_over() {
        let peer = Peer::open(std::process::id()).unwrap();
        let page = peer.page() as usize;
        // SAFETY: a new mapping, given back below; only its own pages are touched and changed.
        let at = unsafe {
            mmap_anonymous(std::ptr::null_mut(), 8 * page, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }
        .unwrap();
        // SAFETY: inside of it; the sixth page is given back, and one stored to.
        unsafe {
            munmap(at.byte_add(5 * page), page).unwrap();
            at.byte_add(3 * page).cast::<u8>().write_volatile(7);
            mprotect(at.byte_add(7 * page), page, MprotectFlags::READ).unwrap();
        }
        let mut lies = Vec::new();
        peer.look(Range { at: at as u64, len: 8 * page as u64 }, &mut lies).unwrap();
        let expected = |i| if i == 3 { Lies::Present } else { Lies::Nowhere };
        assert_eq!(lies, (0..8).map(expected).collect::<Vec<_>>());
        peer.read(Range { at: at as u64, len: 8 * page as u64 }, &mut lies).unwrap();
        assert_eq!(lies, (0..8).map(expected).collect::<Vec<_>>(), "in both ways the same");
        let ranges = (0..8).map(|i| Range { at: at as u64 + i * page as u64, len: page as u64 }).collect::<Vec<_>>();
        match peer.advise(&ranges, Advice::Cold) {
            Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) => {
                println!("SKIP a part of pages_are_seen_where_they_are: {error}");
            }
            said => assert_eq!(said.unwrap(), 7 * page as u64),
        }
        // Pages of zeros are put there for who only reads. It stops at the hole.
        peer.map(Range { at: at as u64 + 2 * page as u64, len: 6 * page as u64 });
        peer.look(Range { at: at as u64, len: 8 * page as u64 }, &mut lies).unwrap();
        let expected = |i| if (2..5).contains(&i) { Lies::Present } else { Lies::Nowhere };
        assert_eq!(lies, (0..8).map(expected).collect::<Vec<_>>());
        // SAFETY: read while it is still there, then given back.
        unsafe {
            assert_eq!(at.byte_add(3 * page).cast::<u8>().read_volatile(), 7);
            munmap(at, 8 * page).unwrap();
        }
    }

    #[test]
    fn who_is_not_there_is_said() {
        let error = Peer::open(u32::MAX >> 1).unwrap_err();
        assert!(error.to_string().contains("cannot be had"), "{error}");
        assert_eq!(explained(io::Error::from_raw_os_error(libc::EPERM)).kind(), io::ErrorKind::PermissionDenied);
    }
}
