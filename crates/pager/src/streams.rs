//! All that is followed of a program: one way of all its threads together, or one of each that goes through a part of its own, at
//! its own pace. Each has its part of the room, and what goes on in one says nothing of another.

use crate::follow::{Follow, Tally};
use crate::history::Lap;
use crate::units::Id;
use crate::world::World;
use std::collections::HashMap;

/// Threads whose way is remembered.
const THREADS: usize = 1024;
/// Units in a row, less those that are elsewhere, that make a thread one of those that go along there; and the most that count.
const GOES: u32 = 6;
const MOST_GOES: u32 = 32;
/// It is judged over so long, in ns, and so many faults at least, whether the program is where it is followed or its other threads are what
/// matters now: so many times as many of theirs, so often in a row.
const SLICE: u64 = 500_000_000;
const FAULTS: u64 = 48;
const OTHERS: u64 = 3;
const OFTEN: u32 = 3;
/// One that met no fault while the others went round so often in the mean needs no room.
const IDLES: u64 = 4;

/// Following each.
#[derive(Debug)]
pub struct Streams {
    all: Vec<Stream>,
    /// Where a thread was last, and how sure that is.
    threads: HashMap<u32, (usize, u32)>,
    /// Who is first to have what is left.
    first: usize,
    /// Since when faults were counted: of threads that go along any of them, and of others; and how often it was too many of others.
    slice: (u64, u64, u64),
    strange: u32,
    /// What became of those that are not followed any more, and of other threads' faults; and laps by which there were more in the mean before there were others.
    gone: Tally,
    laps: u64,
}

/// One of them.
#[derive(Debug)]
struct Stream {
    follow: Follow,
    /// Laps of all of them when it met a fault last.
    met: u64,
}

impl Streams {
    /// Along these, with the program at the first unit of each.
    ///
    /// # Panics
    /// Without any.
    pub fn new(laps: &[Lap], now: u64) -> Self {
        assert!(!laps.is_empty(), "nothing to follow");
        let mut streams = Streams {
            all: Vec::new(),
            threads: HashMap::new(),
            first: 0,
            slice: (now, 0, 0),
            strange: 0,
            gone: Tally::default(),
            laps: 0,
        };
        laps.iter().for_each(|lap| streams.add(lap, now));
        streams
    }

    fn add(&mut self, (order, took): &Lap, now: u64) {
        let mut follow = Follow::new(order, 0, now);
        follow.lap_took(*took);
        self.all.push(Stream { follow, met: self.all_laps() });
        self.number();
    }

    /// There are as many as there are now.
    fn number(&mut self) {
        let parts = self.all.len() as u64;
        self.follows_mut().for_each(|follow| follow.beside(parts));
    }

    fn follows(&self) -> impl Iterator<Item = &Follow> {
        self.all.iter().map(|stream| &stream.follow)
    }

    fn follows_mut(&mut self) -> impl Iterator<Item = &mut Follow> {
        self.all.iter_mut().map(|stream| &mut stream.follow)
    }

    /// A thread that was elsewhere goes along this from now on.
    pub fn join(&mut self, lap: &Lap, thread: u32, world: &mut impl World, now: u64) {
        let (room, laps) = (self.space(), self.tally().laps);
        self.add(lap, now);
        self.laps += laps - self.tally().laps;
        let last = self.all.len() - 1;
        self.all[last].follow.survey(world);
        self.threads.insert(thread, (last, GOES));
        self.room(room);
    }

    /// Where a thread goes along, if it was seen to.
    fn goes_along(&self, thread: u32) -> Option<usize> {
        self.threads.get(&thread).filter(|(_, sure)| *sure >= GOES).map(|(at, _)| *at)
    }

    /// Whether this thread goes along none of them, as far as is known.
    pub fn is_stranger(&self, thread: u32) -> bool {
        self.goes_along(thread).is_none()
    }

    /// How many there are.
    pub fn parts(&self) -> usize {
        self.all.len()
    }

    fn sum(&self, of: impl Fn(&Follow) -> u64) -> u64 {
        self.follows().map(of).sum()
    }

    fn all_laps(&self) -> u64 {
        self.sum(|follow| follow.tally().laps)
    }

    /// What those that have such a time take for as much as they go through together, each going on at its own pace; none while none has
    /// one.
    fn together(&self, time: impl Fn(&Stream) -> Option<u64>) -> Option<u64> {
        if let [one] = self.all.as_slice() {
            return time(one);
        }
        let timed =
            self.all.iter().filter_map(|stream| Some((stream.follow.bytes() as f64, time(stream)?.max(1) as f64)));
        let (bytes, rate) = timed.fold((0.0, 0.0), |(all, rate), (bytes, time)| (all + bytes, rate + bytes / time));
        (rate > 0.0).then(|| (bytes / rate) as u64)
    }

    /// So much room is there now.
    pub fn room(&mut self, room: u64) {
        let (laps, parts) = (self.all_laps(), self.all.len() as u64);
        let idles = |stream: &Stream| laps.saturating_sub(stream.met) > IDLES * parts && !stream.follow.fits();
        // Not all of them at once: whoever went round last met a fault there.
        let bytes = |stream: &Stream| if idles(stream) { 0 } else { stream.follow.bytes() };
        let all = self.all.iter().map(bytes).sum::<u64>().max(1) as f64;
        for stream in &mut self.all {
            let part = bytes(stream) as f64 / all;
            stream.follow.room((room as f64 * part) as u64);
        }
    }

    /// So much can be brought in before the kernel makes room for it by itself; see [`Follow::left`].
    pub fn left(&mut self, bytes: Option<u64>) {
        let parts = self.all.len() as u64;
        self.follows_mut().for_each(|follow| follow.left(bytes.map(|bytes| bytes / parts)));
    }

    /// Whose a unit is: before others that one's where the thread was last.
    fn whose(&self, unit: Id, thread: u32) -> Option<usize> {
        let own = self.threads.get(&thread).map(|(at, _)| *at).filter(|at| self.all[*at].follow.knows(unit));
        own.or_else(|| self.follows().position(|follow| follow.knows(unit)))
    }

    /// A fault of the program: at this unit, if it is one that is known, by this thread, at this time.
    pub fn fault(&mut self, unit: Option<Id>, thread: u32, major: bool, now: u64) {
        let whose = unit.and_then(|unit| self.whose(unit, thread));
        if let Some(at) = whose {
            if self.threads.len() >= THREADS {
                self.threads.clear();
            }
            let (before, sure) = self.threads.entry(thread).or_insert((at, 0));
            *sure = if *before == at { (*sure + 1).min(MOST_GOES) } else { 1 };
            *before = at;
        } else if major && let Some((_, sure)) = self.threads.get_mut(&thread) {
            *sure = sure.saturating_sub(1);
        }
        // Of a thread that goes along none of them nobody can say where it should be.
        let Some(at) = whose.or_else(|| self.goes_along(thread)) else {
            self.slice.2 += u64::from(major);
            self.gone.unexpected += u64::from(major);
            return;
        };
        self.slice.1 += 1;
        self.all[at].met = self.all_laps();
        self.all[at].follow.fault(unit, thread, major, now);
    }

    /// A unit that is not known is used where this thread is.
    pub fn turned_up(&mut self, unit: Id, thread: u32) {
        if let Some(at) = self.goes_along(thread) {
            self.all[at].follow.turned_up(unit);
        }
    }

    /// These were sent out without being known to be used; see [`Follow::may_turn_up`].
    pub fn may_turn_up(&mut self, units: &[Id]) {
        self.follows_mut().for_each(|follow| follow.may_turn_up(units));
    }

    /// Does what is to be done now.
    pub fn act(&mut self, world: &mut impl World, now: u64) {
        let (since, own, others) = self.slice;
        if now.saturating_sub(since) >= SLICE && own + others >= FAULTS {
            self.strange = if others > OTHERS * own { self.strange + 1 } else { 0 };
            self.slice = (now, 0, 0);
        }
        let parts = self.all.len();
        self.first = (self.first + 1) % parts;
        (0..parts).for_each(|nth| self.all[(self.first + nth) % parts].follow.act(world, now));
        if self.follows().any(Follow::is_astray) && !self.follows().all(Follow::is_astray) {
            self.drop_astray();
        }
    }

    /// One thread may do something else now, and the others go on.
    fn drop_astray(&mut self) {
        let (room, laps) = (self.space(), self.tally().laps);
        let gone = self.follows().filter(|follow| follow.is_astray()).map(Follow::tally);
        self.gone = Tally { laps: 0, ..gone.fold(self.gone, Tally::and) };
        self.all.retain(|stream| !stream.follow.is_astray());
        // Places are counted otherwise now; where each is turns out at once.
        self.threads.clear();
        let all_laps = self.all_laps();
        self.all.iter_mut().for_each(|stream| stream.met = all_laps);
        self.number();
        self.laps = laps.saturating_sub(self.all_laps() / self.all.len() as u64);
        self.room(room);
    }

    /// Looks where all of it is, at first.
    pub fn survey(&mut self, world: &mut impl World) {
        self.follows_mut().for_each(|follow| follow.survey(world));
    }

    /// Bytes of all that are in memory, as it was found.
    pub fn count(&self, world: &mut impl World) -> u64 {
        self.follows().map(|follow| follow.count(world)).sum()
    }

    /// The program does something else now.
    pub fn is_astray(&self) -> bool {
        self.strange >= OFTEN || self.follows().all(Follow::is_astray)
    }

    /// Whether a unit is part of it.
    pub fn knows(&self, unit: Id) -> bool {
        self.follows().any(|follow| follow.knows(unit))
    }

    /// What comes from now on is judged anew.
    pub fn judged(&mut self) {
        self.follows_mut().for_each(Follow::judged);
    }

    /// All of it is kept: there is nothing to do.
    pub fn fits(&self) -> bool {
        self.follows().all(Follow::fits)
    }

    /// What became of it: laps in the mean, and what one takes of as much as goes on.
    pub fn tally(&self) -> Tally {
        let sum = self.follows().map(Follow::tally).fold(self.gone, Tally::and);
        Tally {
            laps: self.laps + sum.laps / self.all.len() as u64,
            lap: self.together(|one| Some(one.follow.tally().lap).filter(|lap| *lap > 0)).unwrap_or(0),
            shortest: self.together(shortest).unwrap_or(u64::MAX),
            ..sum
        }
    }

    /// What one took before it was followed, in ns; and the same of those alone that went round since somebody judged.
    pub fn took(&self) -> (u64, u64) {
        let before = |one: &Stream| one.follow.lap_before();
        let all = self.together(before).unwrap_or(0);
        (all, self.together(|one| shortest(one).and_then(|_| before(one))).unwrap_or(all))
    }

    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        self.sum(Follow::bytes)
    }

    /// Bytes that are kept.
    pub fn kept(&self) -> u64 {
        self.sum(Follow::kept)
    }

    /// Bytes for it and what comes and goes with it.
    pub fn space(&self) -> u64 {
        self.sum(Follow::space)
    }

    /// Bytes that are asked for ahead at most.
    pub fn window(&self) -> u64 {
        self.sum(Follow::window)
    }

    /// The units of each, from where the program is.
    pub fn order(&self) -> Vec<Id> {
        self.follows().flat_map(Follow::order).collect()
    }

    /// Where the program is, part of the first of them, and how many units are asked for ahead in all.
    pub fn cursor(&self) -> (f64, i64) {
        let cursors = || self.follows().map(Follow::cursor);
        (cursors().next().map_or(0.0, |(at, _)| at), cursors().map(|(_, ahead)| ahead).sum())
    }

    /// Its quota of processor time was used up, and it was held.
    pub fn held(&mut self) {
        self.follows_mut().for_each(Follow::held);
    }

    /// Whether it is known not to run now.
    pub fn stands(&mut self, stands: bool) {
        self.follows_mut().for_each(|follow| follow.stands(stands));
    }

    /// It runs, or waits for what is asked for: the next step has something to do.
    pub fn is_busy(&self, now: u64) -> bool {
        self.follows().any(|follow| follow.is_busy(now))
    }

    /// Pages are put into its page table beforehand, and every one of its faults counts; see [`Follow::maps`].
    pub fn maps(&self) -> bool {
        self.follows().any(Follow::maps)
    }

    /// For whoever wants to know why.
    pub fn inside(&self) -> String {
        self.follows().map(Follow::inside).collect::<Vec<_>>().join("; ")
    }
}

fn shortest(one: &Stream) -> Option<u64> {
    Some(one.follow.tally().shortest).filter(|lap| *lap < u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::follow::tests::Machine;
    use crate::units::UNIT;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Units of each thread's part.
    const PART: u64 = 800;
    const ROOM: usize = 1000;

    /// Threads that go each through a part of its own, the second half as quick, and a third, if at all, that uses all of its at random.
    struct Threads {
        machine: Machine,
        rng: Xoshiro256PlusPlus,
        at: [u64; 2],
        majors: u32,
    }

    impl Threads {
        fn new() -> Self {
            let rng = Xoshiro256PlusPlus::seed_from_u64(1);
            Threads { machine: Machine::new(ROOM), rng, at: [0; 2], majors: 0 }
        }

        fn unit(thread: usize, place: u64) -> Id {
            (thread as u64 * PART + place * 7 % PART) as Id
        }

        fn runs(&mut self, streams: &mut Streams, steps: u64, third: u64) {
            for _ in 0..steps {
                let chance = self.rng.next_u64() % 100;
                let (thread, unit) = if chance < third {
                    (2, (2 * PART + self.rng.next_u64() % 100) as Id)
                } else {
                    let thread = usize::from(chance.is_multiple_of(3));
                    self.at[thread] += 1;
                    (thread, Self::unit(thread, self.at[thread]))
                };
                let (fault, major) = self.machine.touch(unit);
                if fault {
                    self.majors += u32::from(major);
                    let now = self.machine.now * 600_000;
                    streams.fault(Some(unit), thread as u32, major, now);
                    streams.act(&mut self.machine, now);
                }
            }
        }
    }

    fn lap(thread: usize) -> Lap {
        ((0..PART).map(|place| Threads::unit(thread, place)).collect(), 1_000_000_000)
    }

    fn followed(threads: &mut Threads, laps: &[Lap]) -> Streams {
        let mut streams = Streams::new(laps, 0);
        streams.room(ROOM as u64 * UNIT);
        streams.survey(&mut threads.machine);
        streams
    }

    #[test]
    fn each_is_followed_at_its_own_pace() {
        let mut threads = Threads::new();
        let mut streams = followed(&mut threads, &[lap(0), lap(1)]);
        threads.runs(&mut streams, 10 * PART, 0);
        let (read, majors) = (threads.machine.read, threads.majors);
        threads.runs(&mut streams, 10 * PART, 0);
        let read = (threads.machine.read - read) as f64 / (10 * PART) as f64;
        // 0.375 at least; all of it by the kernel alone.
        assert!(
            read < 0.47 && threads.majors - majors < 100,
            "{read} {} {}",
            threads.majors - majors,
            streams.inside()
        );
        assert!(!streams.is_astray());
    }

    #[test]
    fn a_thread_that_was_elsewhere_joins() {
        let mut threads = Threads::new();
        let mut streams = followed(&mut threads, &[lap(0)]);
        threads.runs(&mut streams, 3 * PART, 0);
        assert!(streams.is_stranger(1) && !streams.is_stranger(0));
        let (mut order, took) = lap(1);
        order.rotate_left((threads.at[1] % PART) as usize);
        let now = threads.machine.now * 600_000;
        streams.join(&(order, took), 1, &mut threads.machine, now);
        assert!(!streams.is_stranger(1));
        threads.runs(&mut streams, 10 * PART, 0);
        let majors = threads.majors;
        threads.runs(&mut streams, 10 * PART, 0);
        assert!(
            threads.majors - majors < 100 && !streams.is_astray(),
            "{} {}",
            threads.majors - majors,
            streams.inside()
        );
    }

    #[test]
    fn one_that_loses_its_order_ends_alone() {
        let mut threads = Threads::new();
        let mut streams = followed(&mut threads, &[lap(0), lap(1)]);
        threads.runs(&mut streams, 8 * PART, 0);
        let (before, mut now) = (streams.tally(), threads.machine.now * 600_000);
        for _ in 0..8000 {
            if streams.parts() == 1 {
                break;
            }
            now += 2_000_000;
            let unit = Threads::unit(1, threads.rng.next_u64() % PART);
            streams.fault(Some(unit), 1, true, now);
            streams.act(&mut threads.machine, now);
        }
        assert!(streams.parts() == 1 && !streams.is_astray() && streams.is_stranger(1), "{}", streams.inside());
        let after = streams.tally();
        assert!(after.laps >= before.laps && after.asked >= before.asked, "{before:?} {after:?}");
        streams.room(ROOM as u64 * UNIT);
        assert_eq!(streams.space(), ROOM as u64 * UNIT, "the other has it all");
        // And then that one goes on to memory that nobody knows.
        for nth in 0..8000 {
            now += 2_000_000;
            streams.fault(Some((10_000 + nth) as Id), 0, true, now);
            streams.act(&mut threads.machine, now);
        }
        assert!(streams.is_astray(), "{}", streams.inside());
    }

    #[test]
    fn one_that_pauses_says_nothing_of_how_long_a_lap_takes() {
        let mut threads = Threads::new();
        let mut streams = followed(&mut threads, &[lap(0), lap(1)]);
        threads.runs(&mut streams, 4 * PART, 0);
        streams.judged();
        for _ in 0..10 * PART {
            threads.at[0] += 1;
            let (fault, major) = threads.machine.touch(Threads::unit(0, threads.at[0]));
            let now = threads.machine.now * 600_000;
            if fault {
                streams.fault(Some(Threads::unit(0, threads.at[0])), 0, major, now);
            }
            streams.act(&mut threads.machine, now);
        }
        assert_eq!(streams.took(), (1_000_000_000, 1_000_000_000));
        let (shortest, own) = (streams.tally().shortest, streams.all[0].follow.tally().shortest);
        assert!(shortest.abs_diff(own) <= 1, "{shortest} {own}");
        // Nor does it need room.
        streams.room(ROOM as u64 * UNIT);
        assert_eq!((streams.all[0].follow.space(), streams.all[1].follow.space()), (ROOM as u64 * UNIT, 0));
    }

    #[test]
    fn what_others_do_is_no_sign_unless_they_alone_do_something() {
        let mut threads = Threads::new();
        let mut streams = followed(&mut threads, &[lap(0), lap(1)]);
        threads.runs(&mut streams, 20 * PART, 30);
        assert!(streams.is_stranger(2) && !streams.is_astray(), "{}", streams.inside());
        threads.runs(&mut streams, 1, 0);
        for nth in 0..20_000 {
            let now = threads.machine.now * 600_000 + nth * 1_000_000;
            streams.fault(Some((2 * PART + nth % 1000) as Id), 2, true, now);
            streams.act(&mut threads.machine, now);
        }
        assert!(streams.is_astray());
    }
}
