//! Loop devices by their ioctls (linux/loop.h): which number is free, a file behind it, and away again. Maintained crates
//! for this need bindgen at build time and lack `LOOP_CONFIGURE` (Linux 5.8), which sets everything in one step, so that
//! no program sees the device half made.

use linux_raw_sys::loop_device::{
    LO_FLAGS_DIRECT_IO, LO_FLAGS_PARTSCAN, LO_FLAGS_READ_ONLY, LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE,
    loop_config, loop_info64,
};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The number of a loop device that nothing is behind; made when there is none. Another process may take it meanwhile.
///
/// # Errors
/// The kernel's; opening `/dev/loop-control` needs rights.
pub fn free() -> io::Result<u32> {
    let control = File::options().read(true).write(true).open("/dev/loop-control")?;
    // SAFETY: this request takes no argument and touches no memory of ours.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// What of a file is behind a loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it; its partitions are looked for.
    Whole,
    /// So many bytes from there on.
    Of {
        /// Where it begins, in bytes.
        offset: u64,
        /// Its length in bytes.
        len: u64,
        /// Nothing is written.
        read_only: bool,
    },
}

/// Puts the file, or a part of it, behind the loop device: read and written past the page cache, logical sectors of `sector` bytes.
/// `name` is what `losetup` shows, cut to 63 bytes.
///
/// # Errors
/// `EBUSY` when something is behind it already, `EINVAL` on kernels before 5.8.
pub fn configure(device: impl AsFd, file: impl AsFd, part: Part, sector: u32, name: &str) -> io::Result<()> {
    // SAFETY: plain integers and arrays of them, for which zeros are a value.
    let mut info: loop_info64 = unsafe { std::mem::zeroed() };
    info.lo_flags = LO_FLAGS_DIRECT_IO as u32;
    match part {
        Part::Whole => info.lo_flags |= LO_FLAGS_PARTSCAN as u32,
        Part::Of { offset, len, read_only } => {
            (info.lo_offset, info.lo_sizelimit) = (offset, len);
            info.lo_flags |= if read_only { LO_FLAGS_READ_ONLY as u32 } else { 0 };
        }
    }
    for (to, from) in info.lo_file_name.iter_mut().take(63).zip(name.bytes()) {
        *to = from;
    }
    let fd = u32::try_from(file.as_fd().as_raw_fd()).map_err(io::Error::other)?;
    let config = loop_config { fd, block_size: sector, info, __reserved: [0; 8] };
    // SAFETY: both descriptors are borrowed for the call; the kernel reads a whole loop_config from a live one.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes the file away. While others have the device open this happens when the last of them closes it.
///
/// # Errors
/// `ENXIO` when nothing is behind it.
pub fn detach(device: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is borrowed for the call, which takes no argument.
    let result = unsafe { libc::ioctl(device.as_fd().as_raw_fd(), LOOP_CLR_FD as _, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
