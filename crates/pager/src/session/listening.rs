//! What is heard of a process: which of its faults the kernel is to tell in each mode, and what each of them says.

use super::{Mode, Session};
use crate::streams::Streams;
use crate::units::{Id, UNIT};
use crate::world::World;
use std::io;
use sys::faults::{Fault, Faults};

/// Units brought in together ahead of a run of rising addresses while nothing better is known, as long as so many are there still.
const BATCH: u64 = 4;
/// Of a processor, what that costs at most, one part in so many; pages of files that a hand brings in do not count, they need no writing.
/// Twice as much of it brings neither the first laps sooner nor a short scan more than a thirtieth.
const HELP: u64 = 32;
/// The same after so long, in ns, while it is dear: what the kernel has to write before it can bring anything in (the first time that a
/// program's memory is swapped out) takes three times as much as all that follows, and where the disk is slow nothing is won by it.
const HELP_DEAR: u64 = 128;
const LONG: u64 = 6_000_000_000;
/// From so many ns for each byte on it is, by what so many bytes took last: 1 ms for 1 MB.
const DEAR: u64 = 1;
const PRICED: u64 = 8 << 20;
/// Major faults of which one is told while there is nothing to be had but the return of order.
const SPARSE: u64 = 8;

impl Session {
    /// From now on to what this mode is to be told of, and to nothing else.
    pub(super) fn listen_for(&mut self, mode: Mode) -> io::Result<()> {
        self.deafen();
        self.faults = self.faults_for(mode)?;
        Ok(())
    }

    pub(super) fn deafen(&mut self) {
        self.untold += self.faults.take().map_or(0, |faults| faults.lost());
    }

    fn faults_for(&mut self, mode: Mode) -> io::Result<Option<Faults>> {
        // By units: some eight are told of each.
        let some = (UNIT / self.memory.page() / 8).max(1);
        let (minor, major) = match mode {
            Mode::Watching => return Ok(None),
            Mode::Resting => (0, SPARSE.min(some)),
            Mode::Learning if self.reads => (1, 1),
            Mode::Learning => (some, 1),
            Mode::Following => {
                let follow = self.follow.as_ref();
                // All pages but one of every other unit are mapped beforehand.
                self.every = follow.is_some_and(Streams::maps);
                // Of a file sixteen pages come by one fault.
                match self.is_of_files(&follow.map(Streams::order).unwrap_or_default()) {
                    _ if self.every => (1, 1),
                    true => ((some / 8).max(1), 1),
                    false => (some, 1),
                }
            }
        };
        Faults::sampled(self.pid, minor, major).map(Some)
    }

    /// Hears what faults there were.
    pub(super) fn listen(&mut self, now: u64) {
        let Some(faults) = &mut self.faults else { return };
        self.found.clear();
        let found = &mut self.found;
        faults.poll(&mut |fault| found.push(fault));
        if self.found.is_empty() {
            return;
        }
        self.active = now;
        let found = std::mem::take(&mut self.found);
        for fault in &found {
            match self.mode {
                Mode::Following => self.followed(fault),
                Mode::Learning | Mode::Resting => self.learned(fault),
                Mode::Watching => {}
            }
        }
        self.found = found;
    }

    fn unit(&mut self, fault: &Fault) -> Option<Id> {
        if !self.memory.has(fault.addr) {
            self.memory.renew(fault.at);
            if !self.memory.has(fault.addr) {
                return None;
            }
        }
        self.memory.units.at(fault.addr)
    }

    fn followed(&mut self, fault: &Fault) {
        let unit = if fault.major { self.unit(fault) } else { self.memory.units.known(fault.addr) };
        if let Some(follow) = &mut self.follow {
            follow.fault(unit, fault.tid, fault.major, fault.at);
            let Some(unit) = unit.filter(|unit| !follow.knows(*unit)) else { return };
            // A minor fault tells it as well: it was wanted back before it had gone.
            self.missed += u32::from(follow.is_stranger(fault.tid) && self.sent.remove(&unit));
            if fault.major {
                if follow.is_stranger(fault.tid) {
                    self.others.visit(unit, fault.tid, fault.at);
                }
                self.run(fault);
            } else if self.helped.contains(&unit) {
                // It was brought in on a guess, and is used.
                follow.turned_up(unit, fault.tid);
            }
        }
    }

    fn learned(&mut self, fault: &Fault) {
        let unit = if fault.major {
            self.unit(fault)
        } else {
            let known = self.memory.units.known(fault.addr).filter(|unit| self.helped.contains(unit));
            // What the kernel read on of a file.
            known.or_else(|| if self.reads { self.unit(fault).filter(|unit| self.memory.is_file(*unit)) } else { None })
        };
        let Some(unit) = unit else { return };
        let fresh = self.history.visit(unit, fault.tid, fault.at);
        if fresh {
            self.known.visit(unit);
        }
        if fresh && self.mode == Mode::Learning && self.may_help(fault.at) {
            self.run(fault);
        }
    }

    /// What bringing in on a guess took since it was begun to learn leaves something for more.
    fn may_help(&mut self, now: u64) -> bool {
        let took = self.memory.bringing_took();
        let (took_before, guessed) = self.priced;
        let bytes = self.guessed.saturating_sub(guessed);
        if bytes >= PRICED {
            self.is_dear = took.saturating_sub(took_before) > DEAR * bytes;
            self.priced = (took, self.guessed);
        }
        took - self.took <= allowed(now.saturating_sub(self.learning.0), self.is_dear)
    }

    /// Where the order is not known, rising addresses are as good a guess as any.
    fn run(&mut self, fault: &Fault) {
        let place = fault.addr / UNIT;
        if self.recent.contains(&place) {
            return;
        }
        let is_run = self.recent.contains(&(place.wrapping_sub(1))) && self.recent.contains(&(place.wrapping_sub(2)));
        self.recent.rotate_right(1);
        self.recent[0] = place;
        if is_run {
            self.rose = fault.at;
            // Some at a time: by itself, a call for one unit costs as much as bringing it in.
            if !place.is_multiple_of(BATCH) {
                return;
            }
            for next in place + 1..=place + 2 * BATCH {
                let address = next * UNIT;
                if !self.memory.has(address) {
                    break;
                }
                let Some(unit) = self.memory.units.at(address) else { break };
                if !self.charged && self.memory.is_file(unit) {
                    self.charge();
                }
                // Or it was, a lap ago.
                if self.helped.insert(unit) || next > place + BATCH {
                    let look = self.memory.look(unit);
                    self.memory.ahead(unit, look.absent);
                    self.guessed += u64::from(look.bytes(look.absent));
                }
            }
        }
    }
}

/// What bringing in on a guess may have taken after so long, both in ns.
fn allowed(learning: u64, is_dear: bool) -> u64 {
    let long = if is_dear { learning.saturating_sub(LONG) } else { 0 };
    (learning - long) / HELP + long / HELP_DEAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guess_that_is_dear_is_made_less_often_where_learning_takes_long() {
        let second = 1_000_000_000;
        assert_eq!(allowed(22 * second, false), 687_500_000);
        assert_eq!(allowed(22 * second, true), 312_500_000);
        assert_eq!(allowed(5 * second, true), allowed(5 * second, false));
    }
}
