//! What a descriptor says about itself (the size and sector of a block device, the alignment that direct I/O wants), and
//! reads, writes and syncs on it whose syscall is inlined.

use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::ReadWriteFlags;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// `BLKGETSIZE64` of linux/fs.h, `_IOR(0x12, 114, size_t)`: its number carries the width of `size_t`, whence two values.
#[cfg(target_pointer_width = "64")]
const BLKGETSIZE64: u32 = 0x8008_1272;
#[cfg(target_pointer_width = "32")]
const BLKGETSIZE64: u32 = 0x8004_1272;

/// Size of an opened block device in bytes.
///
/// # Errors
/// `ENOTTY` when the descriptor is no block device.
pub fn block_device_size(fd: impl AsFd) -> io::Result<u64> {
    let mut size = 0u64;
    // The kernel writes 64 bits here on 32-bit machines too.
    // SAFETY: the descriptor is borrowed for the call and the kernel writes eight bytes to a live u64.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKGETSIZE64 as _, &raw mut size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(size) }
}

/// Writes out and drops what the kernel holds of a block device (`BLKFLSBUF`, `_IO(0x12, 97)` of linux/fs.h).
///
/// # Errors
/// `ENOTTY` when the descriptor is no block device, `EACCES` without `CAP_SYS_ADMIN`.
pub fn drop_buffers(fd: impl AsFd) -> io::Result<()> {
    const BLKFLSBUF: u32 = 0x1261;
    // SAFETY: the descriptor is borrowed for the call, which has no argument.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), BLKFLSBUF as _, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Pages of a range of an opened file that are in memory, whoever brought them in (cachestat(2), Linux 6.5).
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EPERM` for who neither owns the file nor may write to it.
pub fn pages_in_cache(fd: impl AsFd, at: u64, len: u64) -> io::Result<u64> {
    // The same number on all architectures that have it, and not in every libc's table.
    const CACHESTAT: libc::c_long = 451;
    let range = [at, len];
    // `struct cachestat` of linux/mman.h: in the cache, dirty, being written, gone, gone of late.
    let mut told = [0u64; 5];
    // SAFETY: the descriptor is borrowed for the call, which reads two u64 and writes five, all of them live.
    let result = unsafe {
        libc::syscall(CACHESTAT, fd.as_fd().as_raw_fd(), range.as_ptr(), told.as_mut_ptr(), 0 as libc::c_uint)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(told[0]) }
}

/// Logical sector of an opened block device in bytes: the unit of direct I/O on it.
///
/// # Errors
/// `ENOTTY` when the descriptor is no block device.
pub fn logical_block_size(fd: impl AsFd) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blksszget(fd)?)
}

/// Physical sector of an opened block device in bytes: what the device writes without reading first.
///
/// # Errors
/// `ENOTTY` when the descriptor is no block device.
pub fn physical_block_size(fd: impl AsFd) -> io::Result<u32> {
    Ok(rustix::fs::ioctl_blkpbszget(fd)?)
}

/// What direct I/O on an opened file or device must be aligned to in bytes, the stricter of memory and offset
/// (`statx` with `STATX_DIOALIGN`, Linux 6.1). Nothing when the kernel, or the file system, does not say, and nothing
/// when it says that direct I/O is not supported.
pub fn dio_alignment(fd: impl AsFd) -> Option<u32> {
    let wanted = StatxFlags::DIOALIGN;
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    let told = stat.stx_mask & wanted.bits() != 0;
    let strictest = stat.stx_dio_mem_align.max(stat.stx_dio_offset_align);
    (told && strictest > 0).then_some(strictest)
}

/// Spares reads the update of the file's access time (`O_NOATIME`, 50 ns of a cached read of 4 KiB).
///
/// # Errors
/// `EPERM` unless the file is the user's own, or the user root.
pub fn skip_access_time(fd: impl AsFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&fd)?;
    Ok(rustix::fs::fcntl_setfl(&fd, flags | OFlags::NOATIME)?)
}

/// May this descriptor be read, may it be written?
///
/// # Errors
/// The kernel's.
pub fn access(fd: impl AsFd) -> io::Result<(bool, bool)> {
    let mode = rustix::fs::fcntl_getfl(fd)? & OFlags::ACCMODE;
    Ok((mode != OFlags::WRONLY, mode != OFlags::RDONLY))
}

/// Reads at `offset` by `pread64`, the syscall inlined (libc's function costs 15 % on a cached read of 4 KiB; `preadv2`,
/// which has nothing to offer without its flags, costs the copy of its vector). May read less than asked, 0 at the end
/// of the file.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn read_at(fd: BorrowedFd<'_>, into: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(rustix::io::pread(fd, into, offset)?)
}

/// Writes at `offset` by `pwrite64`, or durably before it returns when `dsync`, by `pwritev2` with `RWF_DSYNC`. May write
/// less than asked.
///
/// # Errors
/// The kernel's.
#[inline]
pub fn write_at(fd: BorrowedFd<'_>, from: &[u8], offset: u64, dsync: bool) -> io::Result<usize> {
    if dsync {
        return Ok(rustix::io::pwritev2(fd, &[IoSlice::new(from)], offset, ReadWriteFlags::DSYNC)?);
    }
    Ok(rustix::io::pwrite(fd, from, offset)?)
}

/// Makes an opened file's data and metadata durable.
///
/// # Errors
/// The kernel's; data may be lost then.
pub fn fsync(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fsync(fd)?)
}

/// Makes an opened file's data durable, and of its metadata what is needed to read them.
///
/// # Errors
/// The kernel's; data may be lost then.
pub fn fdatasync(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::fs::fdatasync(fd)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn a_plain_file_is_no_block_device() {
        let file = File::open("/proc/self/exe").unwrap();
        assert_eq!(block_device_size(&file).unwrap_err().raw_os_error(), Some(libc::ENOTTY));
        assert!(logical_block_size(&file).is_err());
        assert_eq!(access(&file).unwrap(), (true, false));
        if let Some(alignment) = dio_alignment(&file) {
            assert!(alignment.is_power_of_two(), "{alignment}");
        }
    }

    #[test]
    fn what_was_written_just_now_is_in_memory() {
        let (file, page) = (tempfile::tempfile().unwrap(), rustix::param::page_size());
        write_at(file.as_fd(), &vec![7; 3 * page], 0, false).unwrap();
        file.set_len(8 * page as u64).unwrap();
        match pages_in_cache(&file, page as u64, 7 * page as u64) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
                println!("SKIP what_was_written_just_now_is_in_memory: {error}; Linux 6.5 tells");
            }
            told => assert_eq!(told.unwrap(), 2),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let file = tempfile::tempfile().unwrap();
        skip_access_time(&file).unwrap();
        assert_eq!(access(&file).unwrap(), (true, true));
        assert_eq!(write_at(file.as_fd(), b"tier", 3, true).unwrap(), 4);
        fdatasync(file.as_fd()).unwrap();
        fsync(file.as_fd()).unwrap();
        let mut back = [1; 16];
        assert_eq!(read_at(file.as_fd(), &mut back, 0).unwrap(), 7);
        assert_eq!(&back[..8], b"\0\0\0tier\x01");
    }
}
