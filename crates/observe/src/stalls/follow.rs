//! One thread through what the scheduler tells of it: when it left its processor and why, when it was woken, when and after whom it
//! came back. What it waited for in the file system is told apart by who synced meanwhile.

use super::Stood;
use basics::spikes::Cause;
use std::collections::{HashMap, VecDeque};

/// Shorter ones explain no request that anybody would call slow.
pub(super) const SHORTEST: u64 = 100_000;

/// As `prev_state` of sched_switch has it (include/linux/sched.h): 0 is runnable.
const INTERRUPTIBLE: i64 = 1;
const UNINTERRUPTIBLE: i64 = 2;
const STOPPED: i64 = 4 | 8;

/// Who was on a processor before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Previous {
    pub pid: u32,
    pub comm: String,
}

/// Off its processor.
#[derive(Debug, Clone, Copy)]
struct Away {
    /// Since then, in this state.
    since: u64,
    state: i64,
    /// It had something to do since then.
    runnable: Option<u64>,
}

/// A thread that is followed.
#[derive(Debug, Default)]
pub(super) struct Follow {
    away: Option<Away>,
    pub stood: Vec<Stood>,
    /// How many of these have been idle since.
    settled: usize,
}

impl Follow {
    /// It left its processor.
    pub fn left(&mut self, at: u64, state: i64) {
        let idle = state & INTERRUPTIBLE != 0;
        if idle {
            for stood in &mut self.stood[self.settled..] {
                stood.idle = Some(at);
            }
            self.settled = self.stood.len();
        }
        let waits = state & (INTERRUPTIBLE | UNINTERRUPTIBLE | STOPPED) != 0;
        self.away = Some(Away { since: at, state, runnable: (!waits).then_some(at) });
    }

    /// Somebody woke it.
    pub fn woken(&mut self, at: u64) {
        let Some(away) = &mut self.away else { return };
        if away.runnable.is_some() {
            return;
        }
        away.runnable = Some(at);
        let cause = match away.state {
            state if state & UNINTERRUPTIBLE != 0 => Cause::Disk,
            state if state & STOPPED != 0 => Cause::Stopped,
            _ => return,
        };
        let since = away.since;
        self.stands(cause, since, at, String::new());
    }

    /// It has a processor again, after this one; `whose` tells what kind of program that is.
    pub fn back(&mut self, at: u64, previous: Previous, whose: impl FnOnce(&Previous) -> Cause) {
        if self.away.is_some_and(|away| away.runnable.is_none()) {
            // Nobody was heard waking it.
            self.woken(at);
        }
        let Some(Away { runnable: Some(since), .. }) = self.away.take() else { return };
        if at.saturating_sub(since) >= SHORTEST {
            let cause = whose(&previous);
            let who = if cause == Cause::Processor { previous.comm } else { String::new() };
            self.stands(cause, since, at, who);
        }
    }

    /// Since when it has something to do and no processor.
    pub fn waits_since(&self) -> Option<u64> {
        self.away?.runnable
    }

    /// It did something else, until then.
    pub fn stands(&mut self, cause: Cause, from: u64, until: u64, who: String) {
        if until.saturating_sub(from) >= SHORTEST || cause == Cause::Fork {
            self.stood.push(Stood { thread: None, cause, from, until, idle: None, who });
        }
    }

    /// Until then nothing more is heard: what it is in now.
    pub fn end(&mut self, at: u64) {
        self.woken(at);
    }
}

/// Who had a processor, as far as that is heard: the turns of the threads that are listened to, and who else was there last.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// One of them has it since then.
    since: Option<u64>,
    /// From, until; the last ones.
    done: VecDeque<(u64, u64)>,
    /// Who had it before or after one of them.
    other: Option<Previous>,
}

/// Turns that are remembered: those of a wait of 10 ms, and more.
const TURNS: usize = 256;

impl Turns {
    /// It went from one to the next at this time; `None` is one that is listened to.
    pub fn passed(&mut self, at: u64, from: Option<Previous>, to: Option<Previous>) {
        match (from, self.since.take()) {
            (Some(other), _) => self.see(other),
            (None, Some(since)) => {
                if self.done.len() == TURNS {
                    self.done.pop_front();
                }
                self.done.push_back((since, at));
            }
            (None, None) => {}
        }
        match to {
            Some(other) => self.see(other),
            None => self.since = Some(at),
        }
    }

    fn see(&mut self, other: Previous) {
        // Nobody.
        if other.pid != 0 {
            self.other = Some(other);
        }
    }

    /// Who else had it for most of this time; none where that were those that are listened to, or nobody is known.
    pub fn mostly_another(&self, from: u64, until: u64) -> Option<&Previous> {
        let ours: u64 = self.done.iter().map(|(a, b)| b.min(&until).saturating_sub(*a.max(&from))).sum();
        let running = self.since.map_or(0, |since| until.saturating_sub(since.max(from)));
        self.other.as_ref().filter(|_| 2 * (ours + running) < until.saturating_sub(from))
    }
}

/// Syncs of a server's threads.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    begun: HashMap<u32, u64>,
    /// Thread, from, until.
    done: Vec<(u32, u64, u64)>,
}

impl Syncs {
    pub fn enter(&mut self, tid: u32, at: u64) {
        self.begun.insert(tid, at);
    }

    pub fn exit(&mut self, tid: u32, at: u64) {
        let from = self.begun.remove(&tid);
        self.done.extend(from.filter(|from| at - from >= SHORTEST).map(|from| (tid, from, at)));
    }

    /// What the main thread waited for: its own syncs in place of the waits that they are made of, and whose syncs held it up.
    pub fn explain(mut self, main: u32, end: u64, stood: &mut Vec<Stood>) {
        for (tid, from) in std::mem::take(&mut self.begun) {
            self.done.push((tid, from, end));
        }
        let (own, others): (Vec<_>, Vec<_>) = self.done.into_iter().partition(|(tid, ..)| *tid == main);
        let covered = |all: &[(u32, u64, u64)], stood: &Stood| {
            let of =
                |(_, from, until): &(u32, u64, u64)| until.min(&stood.until).saturating_sub(*from.max(&stood.from));
            2 * all.iter().map(of).sum::<u64>() >= stood.until - stood.from
        };
        stood.retain(|stood| stood.cause != Cause::Disk || !covered(&own, stood));
        for one in stood.iter_mut().filter(|stood| stood.cause == Cause::Disk) {
            if covered(&others, one) {
                one.cause = Cause::PendingSync;
            }
        }
        for (_, from, until) in own {
            stood.push(Stood { thread: None, cause: Cause::OwnSync, from, until, idle: None, who: String::new() });
        }
        stood.sort_by_key(|stood| stood.from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn by(comm: &str) -> Previous {
        Previous { pid: 7, comm: comm.to_owned() }
    }

    #[test]
    fn why_a_thread_stood_is_told_apart() {
        let mut follow = Follow::default();
        // Preempted for 3 ms by another program.
        follow.left(10 * MS, 0);
        follow.back(13 * MS, by("python3"), |_| Cause::Processor);
        // Nothing to do, woken, soon back: no stall, and from then on the one before is over.
        follow.left(14 * MS, 1);
        follow.woken(20 * MS);
        follow.back(20 * MS + 50_000, by("swapper/0"), |_| Cause::Steal);
        // A disk, then late to a processor.
        follow.left(30 * MS, 2);
        follow.woken(35 * MS);
        follow.back(36 * MS, by("job-1"), |_| Cause::Load);
        // Stopped, and nobody was heard waking it.
        follow.left(40 * MS, 4);
        follow.back(90 * MS, by("swapper/0"), |_| Cause::Steal);
        let seen: Vec<_> =
            follow.stood.iter().map(|s| (s.cause, s.from / MS, s.until / MS, s.idle.map(|i| i / MS))).collect();
        assert_eq!(
            seen,
            [
                (Cause::Processor, 10, 13, Some(14)),
                (Cause::Disk, 30, 35, None),
                (Cause::Load, 35, 36, None),
                (Cause::Stopped, 40, 90, None)
            ]
        );
        assert_eq!(follow.stood[0].who, "python3");
    }

    #[test]
    fn who_synced_is_why_it_waited() {
        let mut stood = Vec::new();
        let disk = |from, until| Stood {
            thread: None,
            cause: Cause::Disk,
            from: from * MS,
            until: until * MS,
            idle: None,
            who: String::new(),
        };
        stood.extend([disk(10, 19), disk(31, 39), disk(50, 60)]);
        let mut syncs = Syncs::default();
        // Its own from 9 to 20, another's from 30 on, which never ended.
        for (tid, enter, exit) in [(1, 9, 20), (2, 25, 42)] {
            syncs.enter(tid, enter * MS);
            syncs.exit(tid, exit * MS);
        }
        syncs.explain(1, 100 * MS, &mut stood);
        let seen: Vec<_> = stood.iter().map(|s| (s.cause, s.from / MS, s.until / MS)).collect();
        assert_eq!(seen, [(Cause::OwnSync, 9, 20), (Cause::PendingSync, 31, 39), (Cause::Disk, 50, 60)]);
    }

    #[test]
    fn who_had_the_processor_longest_is_whom_one_waited_for() {
        let hog = || Some(Previous { pid: 9, comm: "sh".to_owned() });
        let mut turns = Turns::default();
        assert_eq!(turns.mostly_another(0, 10), None, "nobody was seen");
        // The load runs from 1 to 2 and from 8 to 9 ms, the hog between and after.
        turns.passed(MS, hog(), None);
        turns.passed(2 * MS, None, hog());
        turns.passed(8 * MS, hog(), None);
        assert_eq!(turns.mostly_another(2 * MS, 9 * MS), hog().as_ref());
        assert_eq!(turns.mostly_another(8 * MS, 9 * MS), None);
        assert_eq!(turns.mostly_another(MS, 2 * MS), None);
        turns.passed(9 * MS, None, Some(Previous { pid: 0, comm: String::new() }));
        assert_eq!(turns.mostly_another(0, 12 * MS), hog().as_ref());
    }
}
