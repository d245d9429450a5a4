//! A process and all that it starts: those of them that wait for pages are each cared for.

use crate::after::After;
use crate::session::{Session, Standing};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks for new processes, in ns.
const LOOK: u64 = 500_000_000;

/// The pager of a process and its descendants.
#[derive(Debug)]
pub struct Pager {
    pid: u32,
    program: Option<PathBuf>,
    sessions: HashMap<u32, Session>,
    looked: u64,
    trouble: Option<String>,
    /// Who looks after those that were followed in a control group when this ends; or none can.
    after: Option<io::Result<After>>,
    /// CPU time of the hands of those that ended.
    hands: Duration,
}

impl Pager {
    /// Of this process, and those that it starts; `program` is this one, which serves as a hand of its own (`hand.rs`).
    ///
    /// # Errors
    /// With a sentence, when it is not there or may not be helped.
    pub fn of(pid: u32, program: Option<PathBuf>) -> io::Result<Self> {
        let sessions = HashMap::from([(pid, Session::of(pid, program.clone())?)]);
        Ok(Pager { pid, program, sessions, looked: 0, trouble: None, after: None, hands: Duration::ZERO })
    }

    /// Does what is to be done now; how long nothing needs to be done then, or none once all have ended.
    pub fn step(&mut self) -> Option<Duration> {
        let now = now();
        if now.saturating_sub(self.looked) >= LOOK {
            self.looked = now;
            for pid in descendants(self.pid) {
                // One that has ended meanwhile, or runs for another user, is none of ours.
                if !self.sessions.contains_key(&pid)
                    && let Ok(session) = Session::of(pid, self.program.clone())
                {
                    self.sessions.insert(pid, session);
                }
            }
        }
        let mut next = Duration::from_millis(100);
        let (sessions, trouble, hands) = (&mut self.sessions, &mut self.trouble, &mut self.hands);
        let (program, after) = (&self.program, &mut self.after);
        sessions.retain(|pid, session| match session.step(now) {
            Ok(wait) => {
                next = next.min(wait);
                if session.is_in_a_group()
                    && let Some(program) = program
                    && let Ok(after) = after.get_or_insert_with(|| After::of(program))
                {
                    after.also(*pid);
                }
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    *trouble = Some(error.to_string());
                }
                *hands += session.hand_cpu();
                false
            }
        });
        if now == self.looked {
            self.yield_to_who_is_short(now);
        }
        (!self.sessions.is_empty()).then_some(next)
    }

    /// Those that wait for nothing do without what they do not use, while one is followed that could use it.
    fn yield_to_who_is_short(&mut self, now: u64) {
        let Some(pid) = self.sessions.iter().find_map(|(pid, session)| session.is_short().then_some(*pid)) else {
            return;
        };
        let Some(short) = self.sessions.remove(&pid) else { return };
        self.sessions.values_mut().for_each(|session| session.yields_to(&short, now));
        self.sessions.insert(pid, short);
    }

    /// CPU time that all this took: this process's, that of its hands, and of who looks after the programs.
    pub fn cpu_time(&self) -> Duration {
        let hands: Duration = self.sessions.values().map(Session::hand_cpu).sum();
        let after = self.after.iter().flatten().map(After::cpu).sum::<Duration>();
        sys::process::cpu_time() + self.hands + hands + after
    }

    /// What could not be done for one of them, if anything.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// How all of them stand, the one first that has most done for it.
    pub fn standings(&self) -> Vec<Standing> {
        let mut all: Vec<Standing> = self.sessions.values().map(Session::standing).collect();
        all.sort_by_key(|standing| std::cmp::Reverse((standing.ahead_bytes, standing.pid)));
        all
    }

    /// For whoever wants to know why.
    pub fn inside(&self) -> String {
        self.sessions.values().map(Session::inside).collect::<Vec<_>>().join("; ")
    }
}

/// All that a process started, and what they did; by `/proc/PID/task/TID/children`, or by everybody's parents.
/// Whoever looks may be one of them, and helps itself to nothing.
fn descendants(pid: u32) -> Vec<u32> {
    if Path::new("/proc/thread-self/children").exists() {
        reached(pid, told)
    } else {
        let parents = parents();
        reached(pid, |pid| parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child).collect())
    }
}

fn reached(pid: u32, children: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() && all.len() < 256 {
        all.extend(children(all[next]).into_iter().filter(|child| *child != std::process::id()));
        next += 1;
    }
    all
}

/// Children as the kernel tells them.
fn told(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        all.extend(children.split_ascii_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    all
}

/// Every process and its parent, for kernels without CONFIG_PROC_CHILDREN.
fn parents() -> Vec<(u32, u32)> {
    let pair = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = text.rsplit_once(')')?;
        Some((pid, rest.split_ascii_whitespace().nth(1)?.parse().ok()?))
    };
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(pair).collect()
}

/// CLOCK_MONOTONIC in ns, as the faults' times are.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn descendants_are_found_in_both_ways_and_oneself_is_left_out() {
        let script = "sleep 60 & echo; wait";
        let mut shell = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(&mut shell.stdout.take().unwrap(), &mut [0]).unwrap();
        let parents = parents();
        let by_parents =
            |pid| parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child).collect::<Vec<_>>();
        let both = [descendants(shell.id()), reached(shell.id(), by_parents)];
        let own = descendants(parents.iter().find(|(pid, _)| *pid == std::process::id()).unwrap().1);
        for pid in both[1].iter().rev() {
            let pid = rustix::process::Pid::from_raw(*pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        shell.wait().unwrap();
        assert!(both[0].len() == 2 && both[0] == both[1], "{both:?}");
        assert!(!own.contains(&std::process::id()), "{own:?}");
    }
}
