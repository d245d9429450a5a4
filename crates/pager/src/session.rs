//! One process, from the first look at its faults to its end: watched at no cost until it waits for pages, listened to until its
//! order is known, followed as long as that pays, and left alone otherwise.

mod following;
mod listening;
mod pace;
mod standing;

pub use standing::Standing;

use crate::after::RENEWED;
use crate::beside::Beside;
use crate::counts::{Counts, anonymous, brought_by_a_fault, reads_files};
use crate::follow::Tally;
use crate::history::History;
use crate::known::Known;
use crate::memory::Memory;
use crate::penance::Penance;
use crate::quota::Quota;
use crate::room::Room;
use crate::streams::Streams;
use crate::units::Id;
use serde::Serialize;
use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use sys::faults::{Fault, Faults};

/// Major faults a second from which on a process is worth listening to, and below which it is not any more.
const WORTH: f64 = 30.0;
const NOT_WORTH: f64 = 5.0;
/// Between two looks at its count of major faults.
const COUNT: u64 = 200_000_000;
/// Without anything that would be worth it for so long, listening ends.
const ENOUGH: u64 = 4_000_000_000;
/// After a run of rising addresses another is likely for so long, in ns.
const QUICK: u64 = 200_000_000;
/// Bytes a second are told over so long.
const SECOND: u64 = 1_000_000_000;
/// A process that reads of files without an order is listened to in full again, after so long: what one fault in a few tells of a file,
/// of which the kernel reads on, is too little to find an order by.
const AGAIN: u64 = 3_000_000_000;
/// Listening costs a program that faults thousands of times a second some percent. Where no order returned for so long it ends, until
/// faults come so many times as often as then, or so much more rarely, or so much later.
const PATIENCE: u64 = 4_000_000_000;
const OTHERWISE: f64 = 1.3;
const DEAF: u64 = 30_000_000_000;
/// A part of what the rate was counts as it is now, in five looks a second.
const USUAL: f64 = 0.2;
/// A program that runs for less than one part in so many of the time rests.
const HARDLY: u64 = 20;

/// What is being done about a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// It hardly waits for pages: its count of faults is looked at, nothing else.
    #[default]
    Watching,
    /// Its faults are listened to, for their order.
    Learning,
    /// There was no order: one fault in a few is listened to, in case it returns.
    Resting,
    /// Its next pages are kept ahead of it.
    Following,
}

/// A process under the pager's care.
#[derive(Debug)]
pub struct Session {
    pid: u32,
    memory: Memory,
    room: Room,
    /// This program, to serve as a hand in the process's control group.
    program: Option<PathBuf>,
    /// Whether there can be one was tried.
    charged: bool,
    /// Where its stack begins: elsewhere once it has become another program (exec).
    stack: u64,
    mode: Mode,
    faults: Option<Faults>,
    found: Vec<Fault>,
    history: History,
    /// What was followed last.
    known: Known,
    /// Asked for while nothing was known: a touch of theirs meets no major fault; and bytes of that in all.
    helped: HashSet<Id>,
    guessed: u64,
    /// CPU time that bringing in had taken, in ns, and those bytes, when it was last looked at what that costs; and whether it was dear.
    priced: (u64, u64),
    is_dear: bool,
    recent: [u64; 8],
    /// When rising addresses were seen last.
    rose: u64,
    /// Its processor time at a moment, in ns.
    ran: (u64, u64),
    follow: Option<Streams>,
    /// What threads visited since it is followed that do not go along.
    others: History,
    /// Units that were sent out because nobody knew of them; and those of them that other threads wanted back since.
    sent: HashSet<Id>,
    missed: u32,
    total: Tally,
    /// Bytes brought in up to a moment, and a second since the moment before.
    brought: (u64, u64),
    bringing: f64,
    fastest: f64,
    lap_before: u64,
    /// When following ended last.
    ended: u64,
    /// Major faults of a lap before it was helped, and those that following spared it until it ended last.
    faults_before: u64,
    avoided: u64,
    /// When it was begun to learn, and the major faults until then.
    learning: (u64, u64),
    /// CPU time that bringing in had taken then, in ns.
    took: u64,
    counted: (u64, Counts),
    /// When the kernel was last had to count anew what its limits hold.
    renewed: u64,
    rate: f64,
    /// Major and minor faults a second, of late.
    usual: [f64; 2],
    /// Not listened to since then, when they came at these rates.
    deaf: Option<(u64, [f64; 2])>,
    /// It waits for pages of files.
    reads: bool,
    /// Of processor time.
    quota: Quota,
    /// Every fault is told while it is followed.
    every: bool,
    active: u64,
    worth: u64,
    rested: u64,
    rest_until: u64,
    penance: Penance,
    beside: Beside,
    followed_since: u64,
    laps_judged: u64,
    /// The lap in which what nobody knows of was looked for last, and the one after which it is looked for anew.
    sought: (u64, u64),
    untold: u64,
    /// CPU time of hands that ended.
    hands: Duration,
}

impl Session {
    /// Of this process; `program` is this one, for a hand of the pager's in the process's control group (`hand.rs`).
    ///
    /// # Errors
    /// With a sentence, when it is not there or may not be helped.
    pub fn of(pid: u32, program: Option<PathBuf>) -> io::Result<Self> {
        // Asked before: should it become another program meanwhile, that is noticed at the first count.
        let stack = Counts::of(pid)?.stack;
        let memory = Memory::of(pid)?;
        Ok(Session {
            pid,
            memory,
            program,
            charged: false,
            stack,
            room: Room::of(pid),
            mode: Mode::Watching,
            faults: None,
            found: Vec::new(),
            history: History::default(),
            known: Known::default(),
            helped: HashSet::new(),
            guessed: 0,
            priced: (0, 0),
            is_dear: false,
            recent: [0; 8],
            rose: 0,
            ran: (0, 0),
            follow: None,
            others: History::default(),
            sent: HashSet::new(),
            missed: 0,
            total: Tally::default(),
            brought: (0, 0),
            bringing: 0.0,
            fastest: 0.0,
            lap_before: 0,
            ended: 0,
            faults_before: 0,
            avoided: 0,
            learning: (0, 0),
            took: 0,
            counted: (0, Counts::default()),
            renewed: 0,
            rate: 0.0,
            usual: [0.0; 2],
            deaf: None,
            reads: false,
            quota: Quota::of(pid),
            every: false,
            active: 0,
            worth: 0,
            rested: 0,
            rest_until: 0,
            penance: Penance::default(),
            beside: Beside::default(),
            followed_since: 0,
            laps_judged: 0,
            sought: (0, 0),
            untold: 0,
            hands: Duration::ZERO,
        })
    }

    /// Does what is to be done now; how long nothing needs to be done then.
    ///
    /// # Errors
    /// `NotFound` once the process has ended; others when it may not be helped any more.
    pub fn step(&mut self, now: u64) -> io::Result<Duration> {
        if now.saturating_sub(self.counted.0) >= COUNT {
            self.count(now)?;
        }
        if self.faults.is_some() && self.follow.is_none() {
            // Who does nothing but wait for an order is to cost next to nothing.
            let pause = if self.mode == Mode::Learning { RENEWED.as_nanos() as u64 } else { COUNT };
            if now.saturating_sub(self.renewed) >= pause {
                self.renewed = now;
                self.room.renew_counts();
            }
        }
        self.listen(now);
        match self.mode {
            Mode::Watching => {
                if self.rate >= WORTH || self.reads {
                    self.turn(Mode::Learning, now)?;
                }
                Ok(Duration::from_millis(100))
            }
            Mode::Learning => {
                if !self.may_follow(now)? {
                    if self.history.is_chance() {
                        self.rest(now, self.penance.usual())?;
                    } else if now.saturating_sub(self.worth) > ENOUGH {
                        self.turn(Mode::Watching, now)?;
                    }
                }
                self.memory.flush();
                // Only who runs ahead must be quick; what is merely written down can wait.
                let quick = now.saturating_sub(self.rose) < QUICK;
                Ok(Duration::from_millis(if quick { 2 } else { 8 }))
            }
            Mode::Resting => {
                self.rested(now)?;
                Ok(Duration::from_millis(if self.deaf.is_some() { 100 } else { 20 }))
            }
            Mode::Following => {
                self.follow(now)?;
                self.memory.flush();
                Ok(self.pace(now))
            }
        }
    }

    fn rested(&mut self, now: u64) -> io::Result<()> {
        if now.saturating_sub(self.worth) > ENOUGH {
            return self.turn(Mode::Watching, now);
        }
        if let Some((since, then)) = self.deaf {
            if now < self.rest_until {
                return Ok(());
            }
            let other = |(now, then): (f64, f64)| now.max(then) > OTHERWISE * now.min(then).max(WORTH);
            let changed = self.usual.into_iter().zip(then).any(other);
            // Of a file's pages, one fault in a few tells too little.
            return match changed || now.saturating_sub(since) > DEAF {
                true if self.reads => self.turn(Mode::Learning, now),
                true => self.turn(Mode::Resting, now),
                false => Ok(()),
            };
        }
        let back = self.history.predictable() > 0.5 || self.known.returned().is_some();
        if now >= self.rest_until && back || self.reads && now >= self.rest_until + AGAIN {
            return self.turn(Mode::Learning, now);
        }
        if now.saturating_sub(self.rested) > PATIENCE {
            self.deaf = Some((now, self.usual));
            self.deafen();
        }
        Ok(())
    }

    fn count(&mut self, now: u64) -> io::Result<()> {
        let counts = Counts::of(self.pid)?;
        // None while it ends, or where its memory may not be looked at.
        let stack = if counts.stack == 0 { self.stack } else { counts.stack };
        let before = std::mem::replace(&mut self.stack, stack);
        if before != stack && before != 0 {
            return self.became_another(now);
        }
        let (before, counted) = self.counted;
        if before > 0 {
            let rate = |count: u64, then: u64| count.saturating_sub(then) as f64 * 1e9 / (now - before) as f64;
            self.rate = rate(counts.major, counted.major);
            let [minor, read] = [rate(counts.minor, counted.minor), rate(counts.read, counted.read)];
            for (usual, now) in self.usual.iter_mut().zip([self.rate, minor]) {
                *usual += USUAL * (now - *usual);
            }
            let brought = || brought_by_a_fault(self.memory.page());
            let (reads, learns) = (reads_files(read, self.rate, minor, brought), self.mode == Mode::Learning);
            // Listened to for major faults so far. Whoever paused since goes on in the order that is half known.
            let afresh = reads && !self.reads && learns;
            self.reads = reads || self.reads && learns;
            if afresh {
                self.turn(Mode::Learning, now)?;
            }
            if self.rate >= NOT_WORTH || reads {
                self.worth = now;
            }
        }
        self.counted = (now, counts);
        self.strangers_join(now);
        if let Some(follow) = &mut self.follow
            && self.quota.has_held()
        {
            follow.held();
        }
        let (since, before) = self.brought;
        if now.saturating_sub(since) >= SECOND {
            let asked = self.tally().asked;
            self.bringing = (asked - before) as f64 * SECOND as f64 / now.saturating_sub(since) as f64;
            self.brought = (now, asked);
            self.fastest = self.fastest.max(self.bringing);
            if self.mode == Mode::Following {
                let others = self.room.others() / 1e6;
                tracing::debug!("{}: others {others:.1}M, {}", self.pid, self.inside());
            }
        }
        Ok(())
    }

    /// It runs another program now, and nothing that was known of its memory holds.
    fn became_another(&mut self, now: u64) -> io::Result<()> {
        tracing::debug!("{}: another program", self.pid);
        self.end_follow(now);
        let fresh = Session::of(self.pid, self.program.clone())?;
        let (total, guessed, avoided, untold, hands) =
            (self.total, self.guessed, self.avoided, self.untold, self.hand_cpu());
        *self = Session { total, guessed, avoided, untold, hands, ..fresh };
        Ok(())
    }

    fn turn(&mut self, mode: Mode, now: u64) -> io::Result<()> {
        tracing::debug!("{}: {:?} to {mode:?}, {:.0} major faults/s", self.pid, self.mode, self.rate);
        self.listen_for(mode)?;
        if mode == Mode::Learning {
            // It may have gone to another group since.
            self.room = Room::of(self.pid);
            self.learning = (now, self.counted.1.major);
            self.took = self.memory.bringing_took();
            (self.priced, self.is_dear) = ((self.took, self.guessed), false);
            self.history.doubt();
            self.known.doubt();
            self.helped.clear();
        }
        // What it read while it was listened to says nothing of what it reads from now on.
        self.reads &= mode != Mode::Watching;
        (self.mode, self.worth, self.active, self.rested, self.deaf) = (mode, now, now, now, None);
        Ok(())
    }

    fn rest(&mut self, now: u64, penance: Duration) -> io::Result<()> {
        self.rest_until = now + penance.as_nanos() as u64;
        self.turn(Mode::Resting, now)?;
        self.history.doubt();
        Ok(())
    }

    fn tally(&self) -> Tally {
        self.follow.as_ref().map_or(self.total, |follow| self.total.and(follow.tally()))
    }

    /// Whether it ran for this part, one in so many, of the time since this was asked last; none once it has ended.
    fn runs(&mut self, part: u64, now: u64) -> Option<bool> {
        let ran = sys::process::cpu_time_of(self.pid)?.as_nanos() as u64;
        let (since, before) = std::mem::replace(&mut self.ran, (now, ran));
        Some(part * ran.saturating_sub(before) >= now.saturating_sub(since))
    }

    /// It is followed, and does not fit.
    pub fn is_short(&self) -> bool {
        self.follow.as_ref().is_some_and(|follow| !follow.fits())
    }

    /// Another of its family is short: what this one has and does not use goes out, if it counts for the same limit.
    pub fn yields_to(&mut self, short: &Session, now: u64) {
        if self.mode == Mode::Watching
            && let Some(limit) = short.room.shared_with(self.pid)
            && let Some(runs) = self.runs(HARDLY, now)
            && self.beside.goes(anonymous(self.pid, self.memory.page()), limit, runs, now)
        {
            tracing::debug!("{}: sent out, for {}", self.pid, short.pid);
            self.memory.renew(now);
            self.memory.send_out_all();
        }
    }

    /// It is followed, in the memory of a control group.
    pub fn is_in_a_group(&self) -> bool {
        self.follow.is_some() && self.room.is_a_group()
    }

    /// CPU time of its hands, which are processes of their own.
    pub fn hand_cpu(&self) -> Duration {
        self.hands + self.memory.hand_cpu()
    }

    /// For whoever wants to know why.
    pub fn inside(&self) -> String {
        let history = format!("visits {} predictable {:.2}", self.history.visits(), self.history.predictable());
        self.follow.as_ref().map_or(history, Streams::inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use std::io::Write;

    #[test]
    fn a_process_that_becomes_another_program_is_met_anew() {
        use std::process::{Command, Stdio};
        // It does so twice, the second time before anything was counted of what it was then.
        let becomes = "read line; exec sh -c 'read line; exec sleep 60' second";
        let mut shell = Command::new("sh").args(["-c", becomes]).stdin(Stdio::piped()).spawn().unwrap();
        let session = Session::of(shell.id(), None);
        let mut now = 1;
        let mut step = |session: &mut Session| {
            now += COUNT;
            session.step(now).unwrap();
        };
        let id = shell.id();
        let until = |what: &str| {
            while !std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap().contains(what) {
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        if let Ok(mut session) = session {
            session.total.laps = 7;
            until("read");
            step(&mut session);
            let (stack, before) = (session.stack, session.standing().name);
            step(&mut session);
            assert!(stack != 0 && session.stack == stack);
            shell.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            until("\0second");
            step(&mut session);
            let second = session.stack;
            drop(shell.stdin.take());
            until("sleep\x0060");
            step(&mut session);
            assert!(![0, stack, second].contains(&session.stack) && second != stack);
            assert_eq!((before.as_str(), session.standing().name.as_str()), ("sh", "sleep"));
            assert_eq!(session.standing().laps, 7, "what was done stays counted");
            let unit = session.memory.units.at(session.stack).unwrap();
            assert_ne!(session.memory.look(unit).present, 0, "its memory is the new program's");
        } else {
            println!("SKIP a_process_that_becomes_another_program_is_met_anew: {}", session.unwrap_err());
        }
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
