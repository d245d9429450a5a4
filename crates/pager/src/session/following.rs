//! Following, as a part of a process's care: when it begins, what it is told and given while it goes on, and when it ends because it is
//! no gain or the program is elsewhere.

use super::{ENOUGH, Mode, SECOND, Session};
use crate::counts::WORTH_READ;
use crate::folios::with_folios;
use crate::follow::Tally;
use crate::groups::Groups;
use crate::history::{History, Lap, MOST_PARTS};
use crate::known::Known;
use crate::quota::Quota;
use crate::room::Room;
use crate::streams::Streams;
use crate::units::{Id, UNIT};
use crate::world::World;
use std::collections::HashSet;
use std::io;
use std::time::Duration;

/// Part of the visits that must be as expected before it is followed.
const SURE: f64 = 0.7;
/// Laps that were followed from which on an order is worth remembering.
const PROVED: u64 = 3;
/// Laps after which what is there and not of the cycle is looked for; and so much of it is found at a time, one unit for so many of the
/// cycle's, and goes out before there is another search: what is used all the same is missed until it turns up.
const SOUGHT: u64 = 2;
const UNKNOWN: usize = 4;
/// One in so many of them that another thread wants back, and it is not tried again.
const MISSED: usize = 4;
const FEW: u32 = 8;
/// At first so many, to see whether one does: what others had would be ours before they have it back.
const PROBE: usize = 32;
/// A lap is a gain when it takes less than this part of the time that one took without it: laps differ by chance.
const GAIN: f64 = 0.9;
/// The same where less is kept than one part in so many: all that it does then is to read ahead, as the kernel does by itself.
const GAIN_AHEAD: f64 = 0.67;
const NOTHING: u64 = 50;
/// A thread that was elsewhere must have gone round so often, and not so many times as quickly as the others: what it has is in memory then
/// but for what was just taken from it, and best left there.
const LAPS: u64 = 3;
const QUICK: u64 = 2;
/// A part that is shorter than the others are in the mean, by so much, is not worth another.
const SMALL: usize = 4;
/// A program that runs for less than one part in so many of the time stands.
const STANDS: u64 = 8;

impl Session {
    /// Begins to follow when the order is known.
    pub(super) fn may_follow(&mut self, now: u64) -> io::Result<bool> {
        if now < self.rest_until {
            return Ok(false);
        }
        if let Some(lap) = self.known.returned() {
            tracing::debug!("{}: an order that was known returns", self.pid);
            self.begin(&[lap], now)?;
            return Ok(true);
        }
        let mut laps = self.history.cycles(SURE);
        if laps.is_empty() {
            return Ok(false);
        }
        tracing::debug!("{}: it goes round: {}", self.pid, self.history.inside());
        let before = self.lap_before;
        let mut taken: HashSet<Id> = laps.iter().flat_map(|(order, _)| order).copied().collect();
        for (order, time) in &mut laps {
            // A lap that began before it was followed last says nothing of how long one takes.
            let spans = before > 0 && now.saturating_sub(*time) < self.ended;
            *time = if spans { before } else { *time };
            order.rotate_right(1);
            *order = self.with_folios(order, |unit| taken.contains(&unit));
            taken.extend(order.iter());
        }
        self.begin(&laps, now)?;
        let (since, majors) = (self.counted.0.saturating_sub(self.learning.0), self.counted.1.major - self.learning.1);
        self.faults_before = (majors as f64 * self.lap_before as f64 / since.max(1) as f64) as u64;
        Ok(true)
    }

    /// An order with what the kernel reads of files along with it, and is nobody else's.
    fn with_folios(&mut self, order: &[Id], taken: impl Fn(Id) -> bool) -> Vec<Id> {
        let memory = &mut self.memory;
        with_folios(order, |unit, by| {
            let address = memory.units.address(unit).checked_add_signed(by * UNIT as i64)?;
            let unit = memory.has(address).then(|| memory.units.at(address)).flatten()?;
            (memory.is_file(unit) && !taken(unit)).then_some(unit)
        })
    }

    fn begin(&mut self, laps: &[Lap], now: u64) -> io::Result<()> {
        // It may have gone to another group since.
        (self.room, self.quota) = (Room::of(self.pid), Quota::of(self.pid));
        self.charged = self.memory.is_charged();
        let order: Vec<Id> = laps.iter().flat_map(|(order, _)| order).copied().collect();
        if self.is_of_files(&order) {
            self.charge();
        } else {
            // That process takes the place of what could be kept.
            self.hands += self.memory.uncharge();
        }
        // What was guessed to be next, and was not.
        let order_has: HashSet<Id> = order.iter().copied().collect();
        for unit in self.helped.drain().filter(|unit| !order_has.contains(unit)) {
            let absent = self.memory.look(unit).absent;
            self.memory.release(unit, absent);
        }
        self.memory.send_out_read_ahead(&order_has);
        self.memory.keep_unknown();
        let mut follow = Streams::new(laps, now);
        follow.survey(&mut self.memory);
        (self.lap_before, _) = follow.took();
        let parts = follow.parts();
        self.follow = Some(follow);
        self.tell_room(now);
        (self.followed_since, self.laps_judged, self.sought) = (now, 0, (0, SOUGHT));
        (self.sent, self.missed, self.others) = (HashSet::new(), 0, History::default());
        tracing::debug!(
            "{}: {} units in {} places, {parts} each for itself, a lap took {:.2} s",
            self.pid,
            order_has.len(),
            order.len(),
            self.lap_before as f64 / 1e9
        );
        self.turn(Mode::Following, now)
    }

    /// Whether units of files are more than a few of these.
    pub(super) fn is_of_files(&self, order: &[Id]) -> bool {
        let files = order.iter().step_by(16).filter(|unit| self.memory.is_file(**unit)).count();
        files * 32 > order.len()
    }

    /// Pages of files are to count against its own limit.
    pub(super) fn charge(&mut self) {
        let Some(program) = self.program.clone().filter(|_| !self.charged) else { return };
        self.charged = true;
        let nearest = |pid| Groups::of(pid, "memory").all.into_iter().next();
        // Of the same group, whoever brings them in is charged as the process is.
        let Some(group) = nearest(self.pid).filter(|group| nearest(std::process::id()).as_ref() != Some(group)) else {
            return;
        };
        if let Err(error) = self.memory.charge(&group, &program) {
            tracing::debug!("{}: {}: {error}", self.pid, group.display());
        }
    }

    /// Tells it how much room there is.
    fn tell_room(&mut self, now: u64) {
        let Some(follow) = &mut self.follow else { return };
        if let Some(room) = self.room.measure(follow, &mut self.memory, self.active, now) {
            follow.room(room);
        }
    }

    /// A thread that was elsewhere when the others' orders were learned is followed, too, once its own is known.
    pub(super) fn strangers_join(&mut self, now: u64) {
        for thread in self.others.threads() {
            let Some(follow) =
                self.follow.as_ref().filter(|follow| follow.parts() < MOST_PARTS && follow.is_stranger(thread))
            else {
                continue;
            };
            let Some((mut order, took)) = self.others.cycle_of(thread, LAPS, SURE) else { continue };
            let known = order.iter().filter(|unit| follow.knows(**unit)).count();
            let is_quick = QUICK * took < follow.tally().lap;
            if is_quick || 2 * known > order.len() || SMALL * order.len() * follow.parts() < follow.order().len() {
                continue;
            }
            order.rotate_right(1);
            let taken: HashSet<Id> = follow.order().into_iter().collect();
            let lap = (self.with_folios(&order, |unit| taken.contains(&unit)), took);
            let Some(follow) = &mut self.follow else { return };
            follow.join(&lap, thread, &mut self.memory, now);
            (self.lap_before, _) = follow.took();
            tracing::debug!("{}: {thread} joins, {} units", self.pid, order.len());
        }
    }

    /// Sends out what is there and not of the order, unless other threads use it.
    fn send_out_leftovers(&mut self) {
        let Some(follow) = &mut self.follow else { return };
        if self.missed >= FEW && MISSED * self.missed as usize > self.sent.len() + self.missed as usize {
            self.memory.keep_unknown();
            (self.sought.1, self.missed) = (u64::MAX, 0);
        }
        let laps = follow.tally().laps;
        if laps <= self.sought.0 || laps < self.sought.1 || follow.fits() {
            return;
        }
        self.sought.0 = laps;
        let order: HashSet<Id> = follow.order().into_iter().collect();
        let most = if self.sent.is_empty() { PROBE } else { order.len() / UNKNOWN };
        let (sent, all) = self.memory.send_out_unknown(&order, most);
        // None while the ones before still go: whether those are wanted back is not known yet.
        if !sent.is_empty() {
            let (pid, missed) = (self.pid, self.missed);
            tracing::debug!("{pid}: {} units of which nobody knows go, {missed} of those before came back", sent.len());
            follow.may_turn_up(&sent);
            (self.sent, self.missed) = (sent.into_iter().collect(), 0);
        }
        if all {
            self.sought.1 = 2 * laps;
        }
    }

    pub(super) fn follow(&mut self, now: u64) -> io::Result<()> {
        if self.room.is_due(now) {
            self.tell_room(now);
        }
        self.send_out_leftovers();
        // A program that was held stands at once, and the disk need not wait until it is missed.
        let runs = if self.every { self.runs(STANDS, now) } else { None };
        let Some(follow) = &mut self.follow else { return Ok(()) };
        follow.left(self.room.left());
        if let Some(runs) = runs {
            follow.stands(!runs);
        }
        follow.act(&mut self.memory, now);
        let maps = follow.maps();
        let tally = follow.tally();
        let (over, mut no_gain) = (follow.is_astray(), false);
        // It goes on, and hardly anything has to be brought in for that; one that pauses is followed when it comes back.
        let idles = self.bringing < WORTH_READ && now.saturating_sub(self.active) < SECOND;
        // What it brought, once it is settled.
        if tally.laps >= self.laps_judged + 3 {
            self.laps_judged = tally.laps;
            let (_, before) = follow.took();
            follow.judged();
            tracing::debug!("{}: lap {:.3} s, {}", self.pid, tally.lap as f64 / 1e9, follow.inside());
            // The shortest: a pause, or a prompt, makes one of them long.
            let enough = if NOTHING * follow.kept() < follow.bytes() { GAIN_AHEAD } else { GAIN };
            no_gain = tally.shortest as f64 > enough * before as f64 && !follow.fits();
            if !no_gain {
                self.penance.gains();
            }
        }
        if over || no_gain {
            tracing::debug!("{}: left alone: {tally:?} {}", self.pid, follow.inside());
            // What was no lap was no order of all threads, either.
            if tally.laps > 0 || follow.parts() > 1 {
                self.history.did_not_hold(follow.parts());
            }
            self.end_follow(now);
            if no_gain {
                self.known = Known::default();
            }
            let followed = Duration::from_nanos(now.saturating_sub(self.followed_since));
            let penance = match no_gain || tally.laps == 0 {
                true => self.penance.in_vain(followed),
                false => self.penance.elsewhere(followed),
            };
            self.rest(now, penance)?;
        } else if maps != self.every {
            self.listen_for(Mode::Following)?;
        } else if now.saturating_sub(self.worth) > ENOUGH && (follow.fits() || idles) {
            self.end_follow(now);
            self.turn(Mode::Watching, now)?;
        }
        Ok(())
    }

    pub(super) fn end_follow(&mut self, now: u64) {
        self.ended = now;
        if let Some(follow) = self.follow.take() {
            // It was no lap: what it seemed to take says nothing of the next order's.
            if follow.tally().laps == 0 {
                self.lap_before = 0;
            }
            // Of several it would have to be known where each is.
            if follow.tally().laps >= PROVED && follow.parts() == 1 {
                self.known = Known::of(follow.order(), self.lap_before);
            }
            self.avoided += self.avoids(&follow.tally());
            self.total = self.total.and(follow.tally());
        }
    }

    pub(super) fn avoids(&self, tally: &Tally) -> u64 {
        (tally.laps * self.faults_before).saturating_sub(tally.expected + tally.unexpected)
    }
}
