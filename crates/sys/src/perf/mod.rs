//! What perf_event_open(2) takes and gives, for those who listen to the kernel: events, and the rings through which it tells of
//! them.

mod ring;

pub(crate) use ring::{Body, Found, Ring};

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// linux/perf_event.h.
pub(crate) const TYPE_SOFTWARE: u32 = 1;
pub(crate) const TYPE_TRACEPOINT: u32 = 2;
pub(crate) const SAMPLE_TID: u64 = 1 << 1;
pub(crate) const SAMPLE_TIME: u64 = 1 << 2;
pub(crate) const SAMPLE_ADDR: u64 = 1 << 3;
pub(crate) const SAMPLE_CPU: u64 = 1 << 7;
pub(crate) const SAMPLE_RAW: u64 = 1 << 10;
pub(crate) const SAMPLE_IDENTIFIER: u64 = 1 << 16;
pub(crate) const DISABLED: u64 = 1;
pub(crate) const INHERIT: u64 = 1 << 1;
pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
pub(crate) const WATERMARK: u64 = 1 << 14;
pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
pub(crate) const CONTEXT_SWITCH: u64 = 1 << 26;
pub(crate) const USE_CLOCKID: u64 = 1 << 25;
pub(crate) const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
pub(crate) const IOC_ENABLE: u32 = 0x2400;
pub(crate) const IOC_DISABLE: u32 = 0x2401;
pub(crate) const IOC_SET_OUTPUT: u32 = 0x2405;
/// `_IOW('$', 6, char *)`
pub(crate) const IOC_SET_FILTER: u32 = 0x4000_2406 | ((size_of::<usize>() as u32) << 16);
/// `_IOR('$', 7, __u64 *)`: the length of a pointer is in it.
pub(crate) const IOC_ID: u32 = 0x8000_2407 | ((size_of::<usize>() as u32) << 16);

/// `struct perf_event_attr` as of PERF_ATTR_SIZE_VER5 (Linux 4.1), which later kernels take too.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
    pub(crate) sample_regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) sample_max_stack: u16,
    pub(crate) reserved: u16,
}

/// An event of a thread (`None` for all) on a processor.
pub(crate) fn open(attr: &Attr, thread: Option<u32>, cpu: i32) -> io::Result<OwnedFd> {
    let none: libc::c_int = -1;
    let thread = thread.map_or(-1, |thread| thread as libc::pid_t);
    // SAFETY: the kernel reads `size` bytes of the struct, which lives through the call.
    let fd = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const *attr, thread, cpu, none, FLAG_FD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Tells of those of a tracepoint alone of which this is true (Documentation/trace/events.rst, 5.1).
pub(crate) fn filter(event: &OwnedFd, what: &str) -> io::Result<()> {
    let text = CString::new(what)?;
    // SAFETY: the kernel reads a string that ends with 0 and lives through the call.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_FILTER as libc::Ioctl, text.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn control(event: &OwnedFd, order: u32, argument: libc::c_ulong) -> io::Result<()> {
    // SAFETY: these orders take a number or nothing; the descriptor is an event's own.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), order as libc::Ioctl, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn id_of(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: the kernel writes one u64, which lives through the call.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), IOC_ID as libc::Ioctl, &raw mut id) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
}

/// The processors that are on: `0-3,6`.
pub(crate) fn online() -> io::Result<Vec<i32>> {
    let path = "/sys/devices/system/cpu/online";
    let text = std::fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    listed(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {text:?}")))
}

pub(crate) fn listed(text: &str) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?);
    }
    Some(all)
}
