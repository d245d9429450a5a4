//! Following a program through its cycle: where it is by its faults, what is asked for ahead of it, what is sent out behind it, and
//! what stays. A state machine: it is told of faults and of the room that there is, and does everything through [`World`].

mod jumps;
mod paging;

use crate::cycle::Cycle;
use crate::keep::Keep;
use crate::lag::Lag;
use crate::units::{Id, UNIT};
use crate::window::Window;
use crate::world::World;
use std::collections::{HashMap, HashSet};

/// Units of which a thread may be ahead of what was asked for and still be where it is expected.
const SLIP: i64 = 64;
/// Predictability is judged over so long, in ns, and over so many units at least. What is wanted again just after it was sent out is no
/// better than what was not expected: the program came back, and not round.
const SLICE: u64 = 500_000_000;
const SLICE_UNITS: u32 = 24;
/// More units that were not expected than this part of all that were touched, and the cycle is over. Units, not major faults: where all
/// goes well, those alone are left that were not expected.
const ASTRAY: f64 = 0.25;
/// So often in a lap that never ends.
const JUMPS: u32 = 3;
/// So much longer without a lap than one took, or so many ns, and the cycle is over if the program is elsewhere.
const OVERDUE: u64 = 5;
const OVERDUE_LEAST: u64 = 2_000_000_000;
/// Units of which another fault is no news.
const NO_NEWS: usize = 16;
/// Of the window of a program that runs in bursts, a part, one in so many, for which room is left.
const SPARED: u64 = 32;
/// And so much of it may still be on its way when a pause ends: nothing is asked for in a burst, and the disk has something to do in it.
const ARRIVING: u64 = 5;
/// Of it, so much is left to be used when more is asked for in a burst all the same.
const RESERVE: u64 = 10;
/// Laps after which it is known which pages of a unit are used.
const SETTLED: u64 = 6;

/// What became of it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// Laps.
    pub laps: u64,
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes sent out.
    pub sent: u64,
    /// Major faults of units of the cycle, and of others.
    pub expected: u64,
    pub unexpected: u64,
    /// Kept bytes that were gone.
    pub lost: u64,
    /// Units that were touched again just after they went.
    pub early: u64,
    /// The last lap, and the shortest since somebody judged, in ns.
    pub lap: u64,
    pub shortest: u64,
}

impl Tally {
    /// Together with another, of which the laps' times are.
    pub fn and(self, other: Tally) -> Tally {
        Tally {
            laps: self.laps + other.laps,
            asked: self.asked + other.asked,
            sent: self.sent + other.sent,
            expected: self.expected + other.expected,
            unexpected: self.unexpected + other.unexpected,
            lost: self.lost + other.lost,
            early: self.early + other.early,
            lap: other.lap,
            shortest: other.shortest,
        }
    }
}

/// Following.
#[derive(Debug)]
pub struct Follow {
    cycle: Cycle,
    /// Places counted on and on: the foremost thread's, the next to ask for, the next to send out.
    front: i64,
    asked: i64,
    near: i64,
    behind: i64,
    /// Bytes asked for and not passed.
    outstanding: u64,
    /// Bytes that can be brought in before the kernel makes room for them by itself, as far as is known; less than none where some of
    /// what is left is spared.
    left: Option<i64>,
    /// Bytes that may be.
    window: Window,
    /// Of a program that runs in bursts: when the last one began, and what was left last since then.
    balanced: Option<(u64, i64)>,
    /// For the cycle, and all that comes and goes with it; all there is where nothing says otherwise.
    room: u64,
    /// How many are followed of this program: what is counted of all of it is of this one as much as of each other.
    parts: u64,
    part: f32,
    keep: Keep,
    lag: Lag,
    threads: HashMap<u32, (i64, u64)>,
    /// Where a thread was met last, far from the front, and how many units in a row there.
    elsewhere: HashMap<u32, (i64, u32)>,
    /// Where it is instead.
    jumped: Option<i64>,
    slice: (u64, u32, u32),
    /// Such spans in a row in which it seemed to be over.
    bad: u32,
    news: [Id; NO_NEWS],
    /// Sent out to see whether they are used.
    unknown: HashSet<Id>,
    astray: bool,
    /// Places that go out because less is kept: the next, and how many are left.
    sweep: (usize, usize),
    lap_began: (i64, u64),
    /// What a lap took before; since when there was none, and major faults since then outside of the cycle.
    lap_before: Option<u64>,
    no_lap: (u64, u32),
    /// How often the program went elsewhere since the last lap.
    jumps: u32,
    slow_now: i64,
    tally: Tally,
}

impl Follow {
    /// Along these units, with the program at the first.
    pub fn new(order: &[Id], room: u64, now: u64) -> Self {
        let cycle = Cycle::new(order, UNIT as u32);
        let n = cycle.len();
        let mut follow = Follow {
            cycle,
            front: 0,
            asked: 1,
            near: 1,
            behind: 0,
            outstanding: 0,
            left: None,
            window: Window::new(now),
            balanced: None,
            room,
            parts: 1,
            part: 0.0,
            keep: Keep::default(),
            lag: Lag::default(),
            threads: HashMap::new(),
            elsewhere: HashMap::new(),
            jumped: None,
            slice: (now, 0, 0),
            bad: 0,
            news: [Id::MAX; NO_NEWS],
            unknown: HashSet::new(),
            astray: false,
            sweep: (0, n),
            lap_began: (0, now),
            lap_before: None,
            no_lap: (now, 0),
            jumps: 0,
            slow_now: 0,
            tally: Tally { shortest: u64::MAX, ..Tally::default() },
        };
        follow.resize();
        follow
    }

    /// A lap took so long before it was followed, in ns.
    pub fn lap_took(&mut self, time: u64) {
        self.lap_before = Some(time);
    }

    /// What one took then; none where nobody knows.
    pub fn lap_before(&self) -> Option<u64> {
        self.lap_before
    }

    /// It is one of so many parts of the same program.
    pub fn beside(&mut self, parts: u64) {
        self.window.beside(parts);
        self.keep.beside(self.parts, parts);
        self.parts = parts;
    }

    fn len(&self) -> i64 {
        self.cycle.len() as i64
    }

    fn index(&self, place: i64) -> usize {
        place.rem_euclid(self.len()) as usize
    }

    /// So much room is there now.
    pub fn room(&mut self, room: u64) {
        if room.abs_diff(self.room) > self.room / 16 {
            self.keep.changed();
        }
        self.room = room;
        self.resize();
    }

    fn resize(&mut self) {
        self.window.room(self.room);
        let all = self.cycle.bytes().max(1);
        let moving = |part: f64| self.window.bytes() + ((1.0 - part) * self.lag.units() * UNIT as f64) as u64;
        let kept = self.keep.bytes(self.room, moving(f64::from(self.part)));
        let part = if self.room >= all + moving(1.0) + self.keep.slack() { 1.0 } else { kept as f32 / all as f32 };
        let part = part.clamp(0.0, 1.0);
        if part < self.part - 0.04 {
            // It will not wait until the program has passed everything.
            self.sweep = (self.index(self.asked), self.cycle.len());
        }
        self.part = part;
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> u64 {
        (f64::from(self.part) * self.cycle.bytes() as f64) as u64
    }

    /// So much can be brought in before the kernel makes room for it by itself. It looks at forty pages for one that goes, and takes
    /// what is kept with it.
    pub fn left(&mut self, bytes: Option<u64>) {
        // In a burst nothing is sent out, and what the program meets there it brings in itself.
        let spared = if self.is_bursty() { self.window.bytes() / SPARED } else { 0 };
        self.left = bytes.map(|bytes| bytes as i64 - spared as i64);
    }

    /// What is left, less what is still to be asked for: of a program that runs in bursts, at the end of each pause.
    fn balance(&mut self) {
        let Some(left) = self.left else { return };
        let balance = left - self.window.bytes().saturating_sub(self.outstanding) as i64;
        if !self.is_bursty() {
            self.keep.balance(balance);
            self.keep.at_least(balance);
        } else if let Some((began, balance)) = self.balanced.replace((self.window.began(), balance))
            && began != self.window.began()
        {
            self.keep.balance(balance);
        }
    }

    /// The nearest place of a unit, as a distance from the front: what is expected there first.
    fn distance(&self, unit: Id) -> Option<i64> {
        let n = self.len();
        let at = self.front.rem_euclid(n);
        let reach = self.reach();
        let mut best: Option<i64> = None;
        for place in self.cycle.places(unit) {
            let forth = (place as i64 - at).rem_euclid(n);
            for d in [forth, forth - n] {
                let better = match best {
                    None => true,
                    Some(best) => {
                        let inside = |d: i64| (-self.back()..=reach).contains(&d);
                        (inside(d) && !inside(best)) || (inside(d) == inside(best) && d.abs() < best.abs())
                    }
                };
                if better {
                    best = Some(d);
                }
            }
        }
        best
    }

    /// These were sent out without being known to be used: when they turn up the program is where it was.
    pub fn may_turn_up(&mut self, units: &[Id]) {
        self.unknown.extend(units);
    }

    /// A unit that is not known is used where the program is.
    pub fn turned_up(&mut self, unit: Id) {
        let place = self.index(self.front);
        self.cycle.turned_up(place, unit);
    }

    /// A fault of the program: at this unit, if it is one that is known, by this thread, at this time.
    pub fn fault(&mut self, unit: Option<Id>, thread: u32, major: bool, now: u64) {
        if self.astray {
            return;
        }
        let distance = unit.and_then(|unit| self.distance(unit));
        let Some(d) = distance else {
            if major {
                self.no_lap.1 += 1;
                self.tally.unexpected += 1;
                // Much of it was in memory while it was learned, and turns up now.
                if self.is_learned() && unit.is_none_or(|unit| !self.unknown.contains(&unit)) {
                    self.judge(unit.unwrap_or(Id::MAX - 1), false);
                }
                if let Some(unit) = unit {
                    self.turned_up(unit);
                }
            }
            return;
        };
        let place = self.front + d;
        if d > self.reach() || -d > self.back() {
            if let Some(unit) = unit.filter(|_| major) {
                self.tally.unexpected += 1;
                self.judge(unit, false);
            }
            if self.goes_on_at(place, thread) {
                self.jumped = Some(place);
            }
            return;
        }
        let is_near = d <= self.stride() || self.goes_on_at(place, thread);
        if is_near {
            self.elsewhere.remove(&thread);
        }
        self.tally.expected += u64::from(major);
        let early = major && self.early(place);
        self.judge(unit.unwrap_or(Id::MAX), !early);
        if major {
            let index = self.index(place);
            let entry = self.cycle.get_mut(index);
            // There when it was looked at, gone when it was its turn: the kernel takes first what was used longest ago.
            if entry.home && entry.skip == 0 && entry.rank < self.part {
                entry.home = false;
                self.keep.lost(u64::from(entry.bytes));
                self.tally.lost += u64::from(entry.bytes);
            }
            // All of it may be wanted again; what was left out on purpose is no loss then.
            if std::mem::take(&mut entry.skip) != 0 {
                entry.home = false;
            }
        }
        self.threads.insert(thread, (place, now));
        if d > 0 && is_near {
            self.advance(place, now);
        }
    }

    /// All of it is known that was in memory while it was learned: more of it where threads wait for each other.
    fn is_learned(&self) -> bool {
        self.tally.laps >= if self.parts > 1 { SETTLED } else { 2 }
    }

    /// A unit that was sent out may be wanted again: because a thread is further behind than was thought, or because the program
    /// uses it in more places than one, or because it came back.
    fn early(&mut self, place: i64) -> bool {
        let index = self.index(place);
        if place >= self.behind || self.cycle.get(index).rank < self.part {
            return false;
        }
        self.tally.early += 1;
        let (front, len) = (self.front, self.len());
        if self.lag.early(front - place, front, len, || self.cycle.is_early(index)) {
            self.cycle.keep_first(index);
        }
        true
    }

    fn judge(&mut self, unit: Id, expected: bool) {
        if !self.news.contains(&unit) {
            self.news.rotate_right(1);
            self.news[0] = unit;
            let (_, good, bad) = &mut self.slice;
            *(if expected { good } else { bad }) += 1;
        }
    }

    fn advance(&mut self, to: i64, now: u64) {
        let before = self.outstanding;
        for place in self.front..to {
            let index = self.index(place);
            let entry = self.cycle.get_mut(index);
            let asked = std::mem::take(&mut entry.asked);
            self.outstanding = self.outstanding.saturating_sub(u64::from(asked));
        }
        self.window.used(before - self.outstanding, now);
        self.front = to;
        self.asked = self.asked.max(to + 1);
        self.near = self.near.max(to + 1);
        if self.front - self.lap_began.0 >= self.len() {
            self.lap(now);
        }
    }

    fn lap(&mut self, now: u64) {
        self.tally.laps += 1;
        self.tally.lap = now.saturating_sub(self.lap_began.1);
        self.tally.shortest = self.tally.shortest.min(self.tally.lap);
        self.lap_began = (self.front, now);
        (self.no_lap, self.jumps) = ((now, 0), 0);
        self.lag.lap(self.len());
        let kept = self.kept();
        self.keep.lap(self.room, kept);
        // What was used while the order was learned, and is not any more, would be kept for good: only what comes in shows whether it
        // is used. As much is brought in, whatever it is.
        self.cycle.turn(1.0 - self.part);
        if let Some(moved) = self.cycle.renew(UNIT as u32) {
            let old = moved.len() as i64 - 1;
            if self.cycle.len() == 0 {
                self.astray = true;
                return;
            }
            let new = self.len();
            let to = |place: i64| place.div_euclid(old) * new + moved[place.rem_euclid(old) as usize] as i64;
            (self.front, self.asked, self.behind) = (to(self.front), to(self.asked), to(self.behind));
            self.lap_began.0 = to(self.lap_began.0);
            self.lag.renewed(self.front);
            self.near = to(self.near);
            self.jumped = self.jumped.map(to);
            self.threads.values_mut().for_each(|(place, _)| *place = to(*place));
            self.asked = self.asked.max(self.front + 1);
            self.outstanding = (0..self.cycle.len()).map(|at| u64::from(self.cycle.get(at).asked)).sum();
        }
        self.resize();
    }

    /// Does what is to be done now.
    pub fn act(&mut self, world: &mut impl World, now: u64) {
        if !self.astray {
            self.jump(world, now);
        }
        // A lap that ends there may leave no cycle.
        if self.astray {
            return;
        }
        let (since, good, bad) = self.slice;
        if now.saturating_sub(since) >= SLICE {
            let all = good + bad;
            if all >= SLICE_UNITS {
                self.bad = if f64::from(bad) > ASTRAY * f64::from(all) { self.bad + 1 } else { 0 };
            }
            // Who went round it some times has not left it for one bad moment: what the kernel took beside it turns up at once.
            self.astray |= self.bad > u32::from(self.tally.laps >= SETTLED);
            self.slice = (now, 0, 0);
        }
        let (since, outside) = self.no_lap;
        // It is elsewhere, or jumps to and fro so often that no lap ends.
        let goes_elsewhere = !self.is_learned() && outside >= SLICE_UNITS || self.jumps >= JUMPS;
        if let Some(lap) = self.lap_before.filter(|_| goes_elsewhere) {
            self.astray |= now.saturating_sub(since) > (OVERDUE * lap).max(OVERDUE_LEAST);
        }
        // A processor taken from one of its threads now makes the others wait for that one, and its quota runs meanwhile. There is time
        // when it pauses.
        if self.is_bursty() {
            if self.window.is_in_burst(now) && RESERVE * self.outstanding > self.window.bytes() {
                return;
            }
            // What goes and what comes of a burst is as much as what is left: what was asked for and is not counted yet is no room.
            let coming = (world.coming() / self.parts) as i64;
            self.left = self.left.map(|left| left - coming);
        }
        self.send_out(world, now);
        self.ask(world);
        self.balance();
        self.ask_again(world);
        self.sweep(world);
        // Where nothing is put into the page table nobody can say.
        let window = self.window.bytes();
        let is_asked_for = !self.window.is_in_burst(now) && self.outstanding >= window;
        if !self.maps() || is_asked_for && world.under_way() / self.parts <= window / ARRIVING {
            self.window.full();
        }
        let kept = self.kept();
        if self.keep.is_hurt(kept) {
            self.keep.lap(self.room, kept);
            self.resize();
            if self.sweep.1 == 0 {
                // What is there and should not be.
                self.sweep = (self.index(self.asked), self.cycle.len());
            }
        }
    }

    /// Looks where all of it is, at first.
    pub fn survey(&mut self, world: &mut impl World) {
        for index in 0..self.cycle.len() {
            let look = world.look(self.cycle.get(index).unit);
            self.cycle.size(index, look.bytes(look.present | look.absent));
        }
        self.resize();
    }

    /// Where all of it is now, as it was found: each unit once.
    pub fn count(&self, world: &mut impl World) -> u64 {
        let first = (0..self.cycle.len()).filter(|at| self.cycle.places(self.cycle.get(*at).unit).next() == Some(*at));
        let here = |at: usize| {
            let look = world.look(self.cycle.get(at).unit);
            u64::from(look.bytes(look.present))
        };
        first.map(here).sum()
    }

    /// The program does something else now.
    pub fn is_astray(&self) -> bool {
        self.astray
    }

    /// Whether a unit is part of the cycle.
    pub fn knows(&self, unit: Id) -> bool {
        self.cycle.places(unit).next().is_some()
    }

    /// What comes from now on is judged anew.
    pub fn judged(&mut self) {
        self.tally.shortest = u64::MAX;
    }

    /// All of it is kept: there is nothing to do.
    pub fn fits(&self) -> bool {
        self.part >= 1.0
    }

    /// What became of it.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Bytes of the cycle.
    pub fn bytes(&self) -> u64 {
        self.cycle.bytes()
    }

    /// The units, from where the program is.
    pub fn order(&self) -> Vec<Id> {
        let mut order = self.cycle.order();
        if !order.is_empty() {
            order.rotate_left(self.index(self.front));
        }
        order
    }

    /// Where the program is: part of the cycle, and how many units are asked for ahead of it.
    pub fn cursor(&self) -> (f64, i64) {
        let n = self.len().max(1);
        (self.front.rem_euclid(n) as f64 / n as f64, self.asked - self.front)
    }

    /// Bytes that are asked for ahead at most.
    pub fn window(&self) -> u64 {
        self.window.bytes()
    }

    /// Its quota of processor time was used up, and it was held.
    pub fn held(&mut self) {
        self.window.held();
    }

    /// Whether it is known not to run now.
    pub fn stands(&mut self, stands: bool) {
        self.window.stands(stands);
    }

    /// It runs, or waits for what is asked for: the next step has something to do.
    pub fn is_busy(&self, now: u64) -> bool {
        self.window.is_in_burst(now) || self.outstanding < self.window.bytes()
    }

    /// The program runs in bursts, and is not to be disturbed in them.
    fn is_bursty(&self) -> bool {
        self.window.is_bursty() && self.tally.laps >= SETTLED
    }

    /// What a fault takes is missing in its quota: pages are put into its page table beforehand, and every one of its faults counts.
    pub fn maps(&self) -> bool {
        (self.window.is_held() || self.window.is_bursty()) && self.tally.laps >= SETTLED
    }

    /// Bytes for the cycle and what comes and goes with it.
    pub fn space(&self) -> u64 {
        self.room
    }

    /// For whoever wants to know why.
    pub fn inside(&self) -> String {
        format!(
            "n {} front {} slow {} asked {} behind {} out {:.1}M win {:.1}M room {:.0}M part {:.3} slack {:.1}M left {:.1}M lag {:.0} thr {}; in all: asked {:.0}M sent {:.0}M lost {:.1}M early {} expected {} unexpected {}",
            self.len(),
            self.front,
            self.slow_now,
            self.asked,
            self.behind,
            self.outstanding as f64 / 1e6,
            self.window.bytes() as f64 / 1e6,
            self.room as f64 / 1e6,
            self.part,
            self.keep.slack() as f64 / 1e6,
            self.left.map_or(f64::NAN, |left| left as f64 / 1e6),
            self.lag.units(),
            self.threads.len(),
            self.tally.asked as f64 / 1e6,
            self.tally.sent as f64 / 1e6,
            self.tally.lost as f64 / 1e6,
            self.tally.early,
            self.tally.expected,
            self.tally.unexpected
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
