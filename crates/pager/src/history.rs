//! The order in which a program met its units, as far back as is worth remembering, and whether it repeats itself: the last
//! visit of a unit says what came after it then, and so what comes now. Nothing is assumed of the order but that. It may be an order of
//! all threads together, or one of each, where each goes through a part of its own at its own pace.

use crate::units::Id;
use std::collections::{HashMap, VecDeque};

/// A unit that was visited so few visits ago is still being visited: threads are a few MB apart.
const STILL: u64 = 48;
/// Visits remembered.
const LONGEST: usize = 256 << 10;
/// A visit is as expected when it is at most so many places from where it was after the one before: two threads are never
/// twice at exactly the same distance.
const NEAR: u64 = 24;
/// Visits by which predictability is judged; twice as many as may be met in the old direction where a program turns round.
const JUDGED: usize = 96;
/// In a cycle all of them were visited the same number of visits ago, but for what stayed in memory meanwhile, and met no fault. Where
/// a program turns round and comes back piece by piece, each piece in the old direction, every piece is another number ago.
const AGO: u64 = 2 * NEAR;
/// The shortest cycle that is worth anything, 24 MiB.
const SHORTEST: u64 = 96;
/// Threads that are followed each by itself, at most.
pub const MOST_PARTS: usize = 16;
/// Of visits that were judged, so many for which it is waited until each thread's order is known, where each seems to go on by itself.
const PATIENCE: u64 = 1000;
/// A thread counts that made at least one in so many of the visits, and a quarter of as many as the others did in the mean.
const COUNTS: u64 = 32;
const MEAN: u64 = 4;
/// Laps take the same time that differ by less than one part in so many.
const ABREAST: u64 = 16;
/// What those whose order is known visited, of all.
const MOST: f64 = 0.6;
/// Of a thread's visits that were as expected, such a part tells that what is half as long ago is a lap.
const HALVES: usize = 8;
/// Threads remembered.
const THREADS: usize = 64;
const NEVER: u64 = u64::MAX;

/// A visit.
#[derive(Debug, Clone, Copy)]
struct Visit {
    unit: Id,
    thread: u32,
    /// Which of the thread's visits, and when, in tenths of ms; both begin again at 0 after the largest.
    nth: u32,
    at: u32,
}

/// A lap of a cycle: the units in their order, and what it took, in ns.
pub type Lap = (Vec<Id>, u64);

/// Visits in the order of time.
#[derive(Debug, Default)]
pub struct History {
    log: VecDeque<Visit>,
    /// Number of the log's first visit.
    base: u64,
    /// By unit: the number of its last visit.
    last: Vec<u64>,
    /// How the visits of all threads follow each other, and those of each.
    all: Sequence,
    threads: HashMap<u32, Thread>,
    /// One order of all did not hold.
    apart: bool,
}

/// A thread's own visits.
#[derive(Debug, Default)]
struct Thread {
    visits: u32,
    /// The number of the last one among all.
    last: u64,
    sequence: Sequence,
}

/// Whether visits come as those before did.
#[derive(Debug, Default)]
struct Sequence {
    /// Where the next visit was before, if the program repeats itself.
    expected: Option<u64>,
    /// Visits, and those of them that were judged.
    visits: u64,
    judged: u64,
    /// Of the last visits: the one before of the same unit, where that was as expected, and how many visits ago that was.
    outcomes: VecDeque<Option<(u64, u64)>>,
    hits: usize,
}

impl Sequence {
    /// The visit of this number is of a unit that is known: of one that was visited last by the one of that number, if that belongs to
    /// the same sequence.
    fn visit(&mut self, seen: Option<u64>, number: u64) {
        let hit = seen.zip(self.expected).is_some_and(|(seen, expected)| seen.abs_diff(expected) <= NEAR);
        self.outcomes.push_back(seen.filter(|_| hit).map(|seen| (seen, number - seen)));
        self.hits += usize::from(hit);
        self.judged += 1;
        if self.outcomes.len() > JUDGED {
            self.hits -= usize::from(self.outcomes.pop_front().flatten().is_some());
        }
        // One that is elsewhere does not end what was expected: the next may go on.
        self.expected = seen.map(|seen| seen + 1).or(self.expected);
    }

    /// Of the last visits, those that were as expected, as far as they went forth through what was: a program that turns round and comes
    /// the same way meets its units near to where they were expected, too, one by one in the wrong direction.
    fn forth(&self) -> usize {
        let (mut forth, mut before) = (0, None);
        for now in self.outcomes.iter().flatten().map(|(seen, _)| *seen as i64) {
            forth += before.map_or(0, |before: i64| (now - before).clamp(-(NEAR as i64), NEAR as i64));
            before = Some(now);
        }
        self.hits.min(forth.max(0) as usize)
    }

    fn predictable(&self) -> f64 {
        self.forth() as f64 / JUDGED as f64
    }

    fn ago(&self) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.outcomes.iter().flatten().map(|(_, ago)| *ago)
    }

    /// Visits of a lap, where enough of the last ones say so.
    fn period(&self, enough: f64) -> Option<u64> {
        let period = self.ago().next_back()?;
        let steady = self.ago().filter(|ago| ago.abs_diff(period) <= AGO).count();
        (self.forth().min(steady) as f64 >= enough * JUDGED as f64).then_some(period)
    }

    /// The same of one thread among others. While those are late, what it uses may stay in memory for a lap: the visits of a lap are more
    /// or fewer then, and some are of a unit that was visited two laps ago.
    fn uneven_period(&self, enough: f64) -> Option<u64> {
        let mut ago: Vec<u64> = self.ago().collect();
        ago.sort_unstable();
        let middle = *ago.get(ago.len() / 2)?;
        let near = |lap: u64| ago.iter().filter(|ago| ago.abs_diff(lap) <= AGO.min(lap / 8)).count();
        let half = near(middle / 2);
        let steady = half + near(middle) + near(2 * middle);
        let is_known = self.forth().min(steady) as f64 >= enough * JUDGED as f64 && middle > 2 * AGO;
        is_known.then(|| if HALVES * half >= JUDGED { middle / 2 } else { middle })
    }
}

impl History {
    fn end(&self) -> u64 {
        self.base + self.log.len() as u64
    }

    /// A unit is touched by a thread, at this time in ns. False when that goes on from before.
    pub fn visit(&mut self, unit: Id, thread: u32, now: u64) -> bool {
        let index = unit as usize;
        if self.last.len() <= index {
            self.last.resize(index + 1, NEVER);
        }
        let (before, end) = (self.last[index], self.end());
        if before != NEVER && end - before <= STILL {
            return false;
        }
        self.all.visits += 1;
        let own = self.threads.entry(thread).or_default();
        own.sequence.visits += 1;
        let nth = own.visits;
        (own.visits, own.last) = (nth.wrapping_add(1), end);
        // What was never there before speaks neither for nor against.
        if before != NEVER
            && let Some(at) = before.checked_sub(self.base)
        {
            let seen = self.log[at as usize];
            self.all.visit(Some(before), end);
            own.sequence.visit((seen.thread == thread && seen.nth < nth).then_some(seen.nth.into()), nth.into());
        }
        if self.threads.len() > THREADS {
            let oldest = self.threads.iter().min_by_key(|(_, thread)| thread.last).map(|(thread, _)| *thread);
            oldest.map(|oldest| self.threads.remove(&oldest));
        }
        self.last[index] = end;
        self.log.push_back(Visit { unit, thread, nth, at: (now / 100_000) as u32 });
        if self.log.len() > LONGEST {
            self.log.pop_front();
            self.base += 1;
        }
        true
    }

    /// Part of the last visits that were as expected, of all together or of each thread by itself.
    pub fn predictable(&self) -> f64 {
        let most = self.most();
        let forth: usize = most.iter().map(|one| one.sequence.forth()).sum();
        let judged: usize = most.iter().map(|one| one.sequence.outcomes.len()).sum();
        self.all.predictable().max(forth as f64 / judged.max(JUDGED) as f64)
    }

    /// The threads that made the visits since it was last in doubt, but for a few.
    fn most(&self) -> Vec<&Thread> {
        let all = self.all.visits;
        let count = |one: &&Thread| one.sequence.visits > 0 && COUNTS * one.sequence.visits >= all;
        let threads = self.threads.values().filter(count).count() as u64;
        self.threads.values().filter(count).filter(|one| MEAN * threads * one.sequence.visits >= all).collect()
    }

    /// It comes to what it knows, and hardly anything was as expected. Of threads each by itself that is told by how long it was in vain to
    /// wait for their orders.
    pub fn is_chance(&self) -> bool {
        let predictable = if self.may_wait() { self.predictable() } else { self.all.predictable() };
        self.all.outcomes.len() == JUDGED && predictable < 0.25
    }

    /// An order of each thread may still turn out.
    fn may_wait(&self) -> bool {
        self.all.judged < PATIENCE.max(2 * (JUDGED * self.most().len()) as u64)
    }

    /// The cycles that the program is in, each in the order of its last lap: one of all threads, or one of each where each goes on as it
    /// did before, whatever the others do meanwhile. None while it does not repeat itself.
    pub fn cycles(&self, enough: f64) -> Vec<Lap> {
        match self.parts(enough) {
            Parts::None => self.cycle(enough).into_iter().collect(),
            Parts::Unknown => Vec::new(),
            Parts::Some(periods) => {
                let own: Vec<Lap> =
                    periods.into_iter().filter_map(|(thread, period)| self.lap_of(thread, period)).collect();
                match self.cycle(enough).filter(|_| !self.apart && are_abreast(&own)) {
                    Some(all) => vec![all],
                    None => own,
                }
            }
        }
    }

    /// Followed in one order, or each in its own, it did not hold: where both are to be had it is to be the other next time.
    pub fn did_not_hold(&mut self, parts: usize) {
        self.apart = parts == 1;
    }

    fn cycle(&self, enough: f64) -> Option<Lap> {
        let period = self.all.period(enough)?;
        if period < SHORTEST || period > self.log.len() as u64 {
            return None;
        }
        let from = self.log.len() - period as usize;
        Some(lap(self.log.range(from..)))
    }

    fn parts(&self, enough: f64) -> Parts {
        let most = self.most();
        if !(2..=MOST_PARTS).contains(&most.len()) {
            return Parts::None;
        }
        let count = |(hits, judged), one: &&Thread| (hits + one.sequence.hits, judged + one.sequence.outcomes.len());
        let (hits, judged) = most.iter().fold((0, 0), count);
        // Together they may have been so by chance, while the slower one was in memory.
        let goes_on = hits as f64 >= enough * judged as f64;
        if goes_on && self.may_wait() && most.iter().any(|one| one.sequence.uneven_period(enough).is_none()) {
            return Parts::Unknown;
        }
        let known =
            |(thread, own): (&u32, &Thread)| Some((*thread, own.sequence.uneven_period(enough)?, own.sequence.visits));
        let mut known: Vec<(u32, u64, u64)> = self.threads.iter().filter_map(known).collect();
        // By the thread, so that it is the same whenever it is asked.
        known.sort_unstable();
        let together: u64 = known.iter().map(|(_, period, _)| period).sum();
        let theirs: u64 = known.iter().map(|(.., visits)| visits).sum();
        let is_most = theirs as f64 >= MOST * self.all.visits as f64;
        if !(2..=MOST_PARTS).contains(&known.len()) || together < SHORTEST || !is_most {
            return Parts::None;
        }
        Parts::Some(known.into_iter().map(|(thread, period, _)| (thread, period)).collect())
    }

    /// The cycle of one thread alone that went round so often at least since it was last in doubt.
    pub fn cycle_of(&self, thread: u32, laps: u64, enough: f64) -> Option<Lap> {
        let own = &self.threads.get(&thread)?.sequence;
        let period = own.uneven_period(enough).filter(|period| own.visits >= laps * period)?;
        self.lap_of(thread, period)
    }

    /// The last visits of a thread, so many.
    fn lap_of(&self, thread: u32, period: u64) -> Option<Lap> {
        let own = || self.log.iter().rev().filter(|visit| visit.thread == thread);
        let mut visits: Vec<&Visit> = own().take(period as usize).collect();
        visits.reverse();
        let (order, _) = lap(visits.iter().copied());
        // Up to where it was a lap ago, whatever it waited for in between.
        let took = own().next()?.at.wrapping_sub(own().nth(period as usize).or(visits.first().copied())?.at);
        (visits.len() as u64 == period).then(|| (order, tenths(took)))
    }

    /// For whoever wants to know why.
    pub fn inside(&self) -> String {
        let of = |name: String, one: &Sequence| {
            format!("{name} {} visits, {} of {} as expected", one.visits, one.hits, one.outcomes.len())
        };
        let mut all = vec![of("all".to_owned(), &self.all)];
        all.extend(
            self.threads
                .iter()
                .filter(|(_, one)| one.sequence.visits > 0)
                .map(|(thread, one)| of(thread.to_string(), &one.sequence)),
        );
        all.join("; ")
    }

    /// Threads whose visits are remembered.
    pub fn threads(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// Visits so far.
    pub fn visits(&self) -> u64 {
        self.end()
    }

    /// What comes now is judged afresh; what was visited is still known.
    pub fn doubt(&mut self) {
        self.all = Sequence::default();
        self.threads.values_mut().for_each(|thread| thread.sequence = Sequence::default());
    }
}

/// Whether threads go each through a part of its own.
enum Parts {
    None,
    /// It seems so, and some were not seen for long enough.
    Unknown,
    /// These, with the visits of a lap of each.
    Some(Vec<(u32, u64)>),
}

fn lap<'a>(visits: impl Iterator<Item = &'a Visit> + Clone) -> Lap {
    let mut times = visits.clone().map(|visit| visit.at);
    let first = times.next().unwrap_or(0);
    let took = times.last().unwrap_or(first).wrapping_sub(first);
    (visits.map(|visit| visit.unit).collect(), tenths(took))
}

/// In ns.
fn tenths(of_ms: u32) -> u64 {
    u64::from(of_ms) * 100_000
}

/// Threads whose laps take the same time wait for each other at each, or oftener, and may share their work in another way each time.
fn are_abreast(laps: &[Lap]) -> bool {
    let times = || laps.iter().map(|(_, took)| *took);
    times().max() <= times().min().map(|least| least + least / ABREAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    #[test]
    fn a_cycle_is_known_soon_after_it_begins_again() {
        let mut history = History::default();
        let order: Vec<Id> = (0..2000).map(|i| (i * 37) % 2000).collect();
        order.iter().for_each(|id| assert!(history.visit(*id, 1, u64::from(*id))));
        assert!(history.cycles(0.75).is_empty());
        order.iter().take(90).for_each(|id| assert!(history.visit(*id, 1, 0)));
        let (cycle, _) = history.cycles(0.75).remove(0);
        assert_eq!((cycle.len(), cycle[1910], cycle[0]), (2000, order[0], order[90]));
        assert!(!history.visit(order[89], 1, 0), "it is still there");
    }

    #[test]
    fn two_threads_in_disorder_repeat_themselves_all_the_same() {
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut threads = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..3 {
            for block in 0..250u64 {
                let turn = rng.next_u64() % 8;
                for i in 0..8 {
                    history.visit((block * 8 + (i + turn) % 8) as Id, (threads.next_u64() % 2) as u32, 0);
                }
            }
        }
        assert!(history.predictable() > 0.9, "{}", history.predictable());
        assert!(history.cycles(0.75)[0].0.len().abs_diff(2000) < 16);
    }

    #[test]
    fn to_and_fro_is_no_cycle() {
        let mut history = History::default();
        let mut most = 0f64;
        for lap in 0..6 {
            for id in 0..2000 {
                history.visit(if lap % 2 == 0 { id } else { 1999 - id }, 1, 0);
                most = most.max(history.predictable());
            }
        }
        assert!(most < 0.7 && history.cycles(0.7).is_empty(), "{most}");
    }

    #[test]
    fn back_piece_by_piece_is_no_cycle() {
        // A model that is trained: its layers forth and back, each from its beginning.
        let mut history = History::default();
        for lap in 0..6 {
            for layer in 0..40u32 {
                let layer = if lap % 2 == 0 { layer } else { 39 - layer };
                for unit in 0..64 {
                    history.visit(64 * layer + unit, 1, 0);
                    assert!(history.cycles(0.7).is_empty(), "lap {lap}, layer {layer}");
                }
            }
        }
    }

    #[test]
    fn each_thread_may_have_a_part_of_its_own() {
        // Four, of which none is ever twice as far before another.
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut at = [0u32; 4];
        let found = (0..8000).find(|now| {
            let thread = (rng.next_u64() % 5).min(3) as u32;
            let place = &mut at[thread as usize];
            history.visit(1000 * thread + *place * 7 % 500, thread, now * 1_000_000);
            *place += 1;
            !history.cycles(0.7).is_empty()
        });
        // The first three are half as quick as the last: theirs is the time that it takes.
        assert!((2500..3200).contains(&found.unwrap()), "{found:?} {at:?}");
        let cycles = history.cycles(0.7);
        assert_eq!(cycles.len(), 4);
        for (thread, (order, time)) in cycles.iter().enumerate() {
            assert_eq!(order.len(), 500, "{thread}");
            assert!(order.windows(2).all(|two| (two[0] + 7) % 500 == two[1] % 500), "{thread}");
            assert!((500_000_000..8_000_000_000).contains(time), "{time}");
        }
    }

    #[test]
    fn threads_that_are_abreast_have_one_order_until_that_does_not_hold() {
        let mut history = History::default();
        for now in 0..1200u64 {
            let (thread, at) = ((now % 2) as u32, (now / 2 % 250) as u32);
            history.visit(1000 * thread + at, thread, now * 1_000_000);
        }
        assert_eq!(history.cycles(0.7).len(), 1);
        history.did_not_hold(1);
        assert_eq!(history.cycles(0.7).len(), 2);
        history.did_not_hold(2);
        assert_eq!(history.cycles(0.7).len(), 1);
    }

    #[test]
    fn threads_that_each_go_back_piece_by_piece_have_no_order() {
        let mut history = History::default();
        for lap in 0..6 {
            for layer in 0..40u32 {
                let layer = if lap % 2 == 0 { layer } else { 39 - layer };
                for unit in 0..32 {
                    for thread in 0..2 {
                        history.visit(10_000 * thread + 32 * layer + unit, thread, 0);
                        assert!(history.cycles(0.7).is_empty(), "lap {lap}, layer {layer}");
                    }
                }
            }
        }
    }

    #[test]
    fn one_that_goes_round_beside_one_that_does_not_is_not_waited_for_in_vain() {
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
        let mut at = 0;
        let chance = (0..20_000).find(|_| {
            if rng.next_u64() % 10 < 4 {
                history.visit(at % 1000, 1, 0);
                at += 1;
            } else {
                history.visit((1000 + rng.next_u64() % 1500) as Id, 2, 0);
            }
            history.is_chance()
        });
        assert!(chance.is_some_and(|visits| visits < 8000), "{chance:?}");
    }

    #[test]
    fn threads_that_share_a_part_have_one_order() {
        // Others each lap, as a model runner takes them.
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        for lap in 0..3 {
            for unit in 0..1000 {
                history.visit(unit, 2 * lap + (rng.next_u64() % 2) as u32, 0);
            }
        }
        assert_eq!(history.cycles(0.7).len(), 1);
    }

    #[test]
    fn chance_is_no_cycle() {
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut most = 0f64;
        for _ in 0..40_000 {
            history.visit((rng.next_u64() % 4000) as Id, (rng.next_u64() % 2) as u32, 0);
            most = most.max(history.predictable());
        }
        assert!(most < 0.2, "{most}");
    }
}
