//! Who a process is, told apart from a later one that got the same number, and whether it still lives. A journal entry
//! or a running record belongs to such an identity; whoever starts later may clear up only after one that is gone.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal, test_kill_process};
use serde::{Deserialize, Serialize};
use std::io;

/// A process of one boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Its number, as its own PID namespace counts.
    pub pid: u32,
    /// Its start, in clock ticks since boot (field 22 of `/proc/PID/stat`): tells it from a later one of the same number.
    pub start_ticks: u64,
    /// Inode of its PID namespace: a number means nothing in another container's.
    pub pid_namespace: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// What can be said about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It ended, or the machine was started again since.
    Gone,
    /// It belongs to another PID namespace of this boot, or may not be looked at; treat it as alive.
    Unknowable,
}

impl Identity {
    /// Of the calling process.
    ///
    /// # Errors
    /// When `/proc` is not mounted or not readable; the message names the file.
    pub fn of_this_process() -> io::Result<Self> {
        Self::of(std::process::id())
    }

    /// Of another process of the same PID namespace.
    ///
    /// # Errors
    /// When there is none of that number, or `/proc` is not mounted or not readable; the message names the file.
    pub fn of(pid: u32) -> io::Result<Self> {
        let (_, start_ticks) = stat_of(pid)?;
        Ok(Identity { pid, start_ticks, pid_namespace: pid_namespace()?, boot_id: boot_id()? })
    }

    /// Sends a signal to exactly this process, never to a later one of the same number; false when it is gone, or of
    /// another PID namespace.
    ///
    /// # Errors
    /// The kernel's, as when this user may not.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(false),
            // Before Linux 5.3; then the number has to do.
            Err(Errno::NOSYS) => None,
            opened => Some(opened?),
        };
        // Looked at after it was opened: a process that lives now is the one that the handle means.
        if self.life()? != Life::Alive {
            return Ok(false);
        }
        let sent = handle.map_or_else(|| kill_process(pid, signal), |handle| pidfd_send_signal(handle, signal));
        match sent {
            Err(Errno::SRCH) => Ok(false),
            sent => Ok(sent.map(|()| true)?),
        }
    }

    /// Whether that process still lives, as seen from the calling one. A zombie is gone: it holds nothing any more.
    ///
    /// # Errors
    /// When `/proc` is not mounted or not readable; the message names the file.
    pub fn life(&self) -> io::Result<Life> {
        if self.boot_id != boot_id()? {
            return Ok(Life::Gone);
        }
        if self.pid_namespace != pid_namespace()? {
            return Ok(Life::Unknowable);
        }
        match stat_of(self.pid) {
            Ok((_, start)) if start != self.start_ticks => Ok(Life::Gone),
            Ok(('Z' | 'X' | 'x', _)) => Ok(Life::Gone),
            Ok(_) => Ok(Life::Alive),
            // `hidepid` hides the processes of other users, which are there all the same.
            Err(_) => match i32::try_from(self.pid).ok().and_then(Pid::from_raw).map(test_kill_process) {
                Some(Err(Errno::SRCH)) | None => Ok(Life::Gone),
                Some(_) => Ok(Life::Unknowable),
            },
        }
    }
}

/// CPU time of all threads of this process so far, in user mode and in the kernel (`getrusage(RUSAGE_SELF)`).
pub fn cpu_time() -> std::time::Duration {
    // SAFETY: rusage is plain integers, for which zeros are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the struct that we own. It refuses only a bad address or a bad `who`.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let duration = |t: libc::timeval| std::time::Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

/// The same of another process; none once it is gone.
pub fn cpu_time_of(pid: u32) -> Option<std::time::Duration> {
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the C library fills the clock's name, which is ours.
    let refused = unsafe { libc::clock_getcpuclockid(i32::try_from(pid).ok()?, &raw mut clock) };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct that we own.
    (refused == 0 && unsafe { libc::clock_gettime(clock, &raw mut time) } == 0)
        .then(|| std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// `read_to_string` whose error names the file.
fn read(path: &str) -> io::Result<String> {
    std::fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))
}

fn boot_id() -> io::Result<String> {
    read("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

fn pid_namespace() -> io::Result<u64> {
    let path = "/proc/self/ns/pid";
    let stat = rustix::fs::stat(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    Ok(stat.st_ino)
}

/// State and start time. The name of a program may hold blanks and parentheses, so fields are counted from the last one.
fn stat_of(pid: u32) -> io::Result<(char, u64)> {
    let path = format!("/proc/{pid}/stat");
    let text = read(&path)?;
    let mut fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let state = fields.next().and_then(|state| state.chars().next());
    let start = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    state.zip(start).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {text:?} lacks fields")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn this_process_lives_and_an_impostor_does_not() {
        let me = Identity::of_this_process().unwrap();
        assert_eq!(me.life().unwrap(), Life::Alive);
        let same_number = Identity { start_ticks: me.start_ticks + 1, ..me.clone() };
        assert_eq!(same_number.life().unwrap(), Life::Gone);
        let before_reboot = Identity { boot_id: "another".into(), ..me.clone() };
        assert_eq!(before_reboot.life().unwrap(), Life::Gone);
        let contained = Identity { pid_namespace: 1, ..me };
        assert_eq!(contained.life().unwrap(), Life::Unknowable);
    }

    #[test]
    fn a_zombie_and_a_reaped_process_are_gone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let identity = Identity::of(child.id()).unwrap();
        assert_eq!(identity.life().unwrap(), Life::Alive);
        let later = Identity { start_ticks: identity.start_ticks - 1, ..identity.clone() };
        assert!(!later.signal(Signal::KILL).unwrap(), "another process has its number");
        assert!(identity.signal(Signal::KILL).unwrap());
        while identity.life().unwrap() == Life::Alive {
            std::thread::yield_now();
        }
        assert_eq!(identity.life().unwrap(), Life::Gone);
        child.wait().unwrap();
        assert_eq!(identity.life().unwrap(), Life::Gone);
        assert!(!identity.signal(Signal::KILL).unwrap());
    }
}
