//! What the calling thread has used, and how sharply it sleeps.

use std::num::NonZeroU64;
use std::time::Duration;

/// CPU time of a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

/// CPU time of the calling thread (`getrusage(RUSAGE_THREAD)`). Kernels that count by ticks split user from system by
/// sampling: trust the split over seconds, not over milliseconds.
pub fn usage() -> Usage {
    // SAFETY: rusage is plain integers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the struct that we own. It refuses only a bad address or a bad `who`.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let duration = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    Usage { user: duration(usage.ru_utime), system: duration(usage.ru_stime) }
}

/// CPU time of the calling thread so far, to the nanosecond.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Major faults of the calling thread so far: pages that it had to wait for while they were read (`getrusage(RUSAGE_THREAD)`).
/// A page that read-ahead had fetched before counts as minor.
pub fn major_faults() -> u64 {
    // SAFETY: rusage is plain integers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the struct that we own. It refuses only a bad address or a bad `who`.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_majflt as u64
}

/// Lets the calling thread's sleeps end when they are due, not up to 50 µs later to save wake-ups. A kernel that refuses
/// leaves them as they are.
pub fn sharpen_timers() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Gives the calling thread its own copy of the table of descriptors (`CLONE_FILES`), so that the kernel need not count a
/// reference to the file in and out again at each call: 2 to 4 % of a cached read of 4 KiB. What the thread opens from now
/// on is its own, and what others close stays open here until the thread ends. A kernel that refuses leaves it shared.
pub fn own_descriptors() {
    // SAFETY: descriptors that this thread was lent stay open in its copy, under the same numbers; those that it makes from
    // now on would mean nothing to another thread, and callers are told so.
    let _ = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) };
}

/// Keeps the calling thread, and those that it starts, on one CPU.
///
/// # Errors
/// `EINVAL` when there is no such CPU or it may not be used.
pub fn pin(cpu: usize) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    if cpu >= rustix::thread::CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL.into());
    }
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        std::thread::spawn(|| assert!(pin(1000).is_err() && pin(100_000).is_err())).join().unwrap();
    }

    #[test]
    fn work_is_counted() {
        let before = usage();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let after = usage();
        assert!(after.user + after.system > before.user + before.system);
    }
}
