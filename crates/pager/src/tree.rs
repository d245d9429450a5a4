//! A process and all that it starts: those of them that wait for pages are each cared for.

use crate::session::{Session, Standing};
use std::collections::HashMap;
use std::io;
use std::time::Duration;

/// Between two looks for new processes, in ns.
const LOOK: u64 = 500_000_000;

/// The pager of a process and its descendants.
#[derive(Debug)]
pub struct Pager {
    pid: u32,
    sessions: HashMap<u32, Session>,
    looked: u64,
    trouble: Option<String>,
}

impl Pager {
    /// Of this process, and those that it starts.
    ///
    /// # Errors
    /// With a sentence, when it is not there or may not be helped.
    pub fn of(pid: u32) -> io::Result<Self> {
        let sessions = HashMap::from([(pid, Session::of(pid)?)]);
        Ok(Pager { pid, sessions, looked: 0, trouble: None })
    }

    /// Does what is to be done now; how long nothing needs to be done then, or none once all have ended.
    pub fn step(&mut self) -> Option<Duration> {
        let now = now();
        if now.saturating_sub(self.looked) >= LOOK {
            self.looked = now;
            for pid in descendants(self.pid) {
                // One that has ended meanwhile, or runs for another user, is none of ours.
                if !self.sessions.contains_key(&pid)
                    && let Ok(session) = Session::of(pid)
                {
                    self.sessions.insert(pid, session);
                }
            }
        }
        let mut next = Duration::from_millis(100);
        let (sessions, trouble) = (&mut self.sessions, &mut self.trouble);
        sessions.retain(|_, session| match session.step(now) {
            Ok(wait) => {
                next = next.min(wait);
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    *trouble = Some(error.to_string());
                }
                false
            }
        });
        (!self.sessions.is_empty()).then_some(next)
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
fn descendants(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut next = 0;
    while next < all.len() && all.len() < 256 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", all[next]));
        for task in tasks.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_ascii_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
        next += 1;
    }
    all
}

/// CLOCK_MONOTONIC in ns, as the faults' times are.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
