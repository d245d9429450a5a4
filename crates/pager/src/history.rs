//! The order in which a program met its units, as far back as is worth remembering, and whether it repeats itself: the last
//! visit of a unit says what came after it then, and so what comes now. Nothing is assumed of the order but that.

use crate::units::Id;
use std::collections::VecDeque;

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
const NEVER: u64 = u64::MAX;

/// Visits in the order of time.
#[derive(Debug, Default)]
pub struct History {
    log: VecDeque<(Id, u64)>,
    /// Number of the log's first visit.
    base: u64,
    /// By unit: the number of its last visit.
    last: Vec<u64>,
    /// Where this visit was expected, if the program repeats itself.
    expected: Option<u64>,
    /// Of the last visits: the one before of the same unit, where that was as expected, and how many visits ago that was.
    outcomes: VecDeque<Option<(u64, u64)>>,
    hits: usize,
}

impl History {
    fn end(&self) -> u64 {
        self.base + self.log.len() as u64
    }

    /// A unit is touched, at this time in ns. False when that goes on from before.
    pub fn visit(&mut self, id: Id, now: u64) -> bool {
        let index = id as usize;
        if self.last.len() <= index {
            self.last.resize(index + 1, NEVER);
        }
        let (before, end) = (self.last[index], self.end());
        if before != NEVER && end - before <= STILL {
            return false;
        }
        let seen = (before != NEVER && before >= self.base).then_some(before);
        let hit = seen.zip(self.expected).is_some_and(|(seen, expected)| seen.abs_diff(expected) <= NEAR);
        // What was never there before speaks neither for nor against.
        if seen.is_some() {
            self.judge(seen.filter(|_| hit).map(|seen| (seen, end - seen)));
        }
        // One that is new, or elsewhere, does not end what was expected: the next may go on.
        self.expected = seen.map(|seen| seen + 1).or(self.expected);
        self.last[index] = end;
        self.log.push_back((id, now));
        if self.log.len() > LONGEST {
            self.log.pop_front();
            self.base += 1;
        }
        true
    }

    fn judge(&mut self, hit: Option<(u64, u64)>) {
        self.outcomes.push_back(hit);
        self.hits += usize::from(hit.is_some());
        if self.outcomes.len() > JUDGED {
            self.hits -= usize::from(self.outcomes.pop_front().flatten().is_some());
        }
    }

    /// Part of the last visits that were as expected, as far as they went forth through what was: a program that turns round and comes
    /// the same way meets its units near to where they were expected, too, one by one in the wrong direction.
    pub fn predictable(&self) -> f64 {
        let (mut forth, mut before) = (0, None);
        for now in self.outcomes.iter().flatten().map(|(seen, _)| *seen as i64) {
            forth += before.map_or(0, |before: i64| (now - before).clamp(-(NEAR as i64), NEAR as i64));
            before = Some(now);
        }
        self.hits.min(forth.max(0) as usize) as f64 / JUDGED as f64
    }

    /// It comes to what it knows, and hardly anything was as expected.
    pub fn is_chance(&self) -> bool {
        self.outcomes.len() == JUDGED && self.predictable() < 0.25
    }

    /// The cycle that the program is in, in the order of its last lap, and how long that took in ns; none while it does not
    /// repeat itself.
    pub fn cycle(&self, enough: f64) -> Option<(Vec<Id>, u64)> {
        let ago = || self.outcomes.iter().flatten().map(|(_, ago)| *ago);
        let period = ago().next_back()?;
        let steady = ago().filter(|ago| ago.abs_diff(period) <= AGO).count();
        let is_sure = self.predictable().min(steady as f64 / JUDGED as f64) >= enough;
        if !is_sure || period < SHORTEST || period > self.log.len() as u64 {
            return None;
        }
        let from = self.log.len() - period as usize;
        let time = self.log.back()?.1.saturating_sub(self.log.get(from)?.1);
        Some((self.log.iter().skip(from).map(|(id, _)| *id).collect(), time))
    }

    /// Visits so far.
    pub fn visits(&self) -> u64 {
        self.end()
    }

    /// What comes now is judged afresh; what was visited is still known.
    pub fn doubt(&mut self) {
        self.outcomes.clear();
        (self.hits, self.expected) = (0, None);
    }
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
        order.iter().for_each(|id| assert!(history.visit(*id, u64::from(*id))));
        assert!(history.cycle(0.75).is_none());
        order.iter().take(90).for_each(|id| assert!(history.visit(*id, 0)));
        let (cycle, _) = history.cycle(0.75).unwrap();
        assert_eq!((cycle.len(), cycle[1910], cycle[0]), (2000, order[0], order[90]));
        assert!(!history.visit(order[89], 0), "it is still there");
    }

    #[test]
    fn two_threads_in_disorder_repeat_themselves_all_the_same() {
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..3 {
            for block in 0..250u64 {
                let turn = rng.next_u64() % 8;
                for i in 0..8 {
                    history.visit((block * 8 + (i + turn) % 8) as Id, 0);
                }
            }
        }
        assert!(history.predictable() > 0.9, "{}", history.predictable());
        assert!(history.cycle(0.75).unwrap().0.len().abs_diff(2000) < 16);
    }

    #[test]
    fn to_and_fro_is_no_cycle() {
        let mut history = History::default();
        let mut most = 0f64;
        for lap in 0..6 {
            for id in 0..2000 {
                history.visit(if lap % 2 == 0 { id } else { 1999 - id }, 0);
                most = most.max(history.predictable());
            }
        }
        assert!(most < 0.7 && history.cycle(0.7).is_none(), "{most}");
    }

    #[test]
    fn back_piece_by_piece_is_no_cycle() {
        // A model that is trained: its layers forth and back, each from its beginning.
        let mut history = History::default();
        for lap in 0..6 {
            for layer in 0..40u32 {
                let layer = if lap % 2 == 0 { layer } else { 39 - layer };
                for unit in 0..64 {
                    history.visit(64 * layer + unit, 0);
                    assert!(history.cycle(0.7).is_none(), "lap {lap}, layer {layer}");
                }
            }
        }
    }

    #[test]
    fn chance_is_no_cycle() {
        let mut history = History::default();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut most = 0f64;
        for _ in 0..40_000 {
            history.visit((rng.next_u64() % 4000) as Id, 0);
            most = most.max(history.predictable());
        }
        assert!(most < 0.2, "{most}");
    }
}
