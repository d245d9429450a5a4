//! Processes of our own that must not outlive this one.

use rustix::process::{Signal, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The process that `command` starts gets `signal` when the thread that starts it ends, however it ends; SIGKILL included.
pub fn dies_with_us(command: &mut Command, signal: Signal) -> &mut Command {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only calls that are async-signal-safe: prctl, getppid, and no allocation.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(signal))?;
            // Whoever died before the line above is not noticed by it.
            if rustix::process::getppid() != Some(parent) {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_child_dies_with_its_thread() {
        let start = || dies_with_us(Command::new("sleep").arg("60"), Signal::KILL).spawn().unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
