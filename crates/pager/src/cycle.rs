//! The units of a cycle in their order, found by unit and changed as the program changes: what turns up at a place is put in
//! there, what is passed again and again without a touch is taken out.

use crate::units::Id;

const NONE: u32 = u32::MAX;
/// Passed untouched so often, a unit is no part of the cycle any more.
const MISSES: u8 = 3;
/// Of all places, those that are kept first at most.
const MOST_FIRST: f64 = 0.4;
/// Places in a row that are kept or not together: most lie side by side, and what goes in one call is flushed from the processors at once.
const TOGETHER: u64 = 2;
/// Of the golden ratio: parts of one that are as far from each other as can be, however many there are.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// A unit at its place in the cycle.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Which.
    pub unit: Id,
    /// Bytes of it that the program uses, as far as is known.
    pub bytes: u32,
    /// Bytes asked for, and not passed yet.
    pub asked: u32,
    /// It belongs to the kept part when that is a larger part of all than this: 0 to 1.
    pub rank: f32,
    /// The same among its like: those that are kept first, and the others.
    chance: f32,
    first: bool,
    /// It was found all in memory when it was last passed.
    pub home: bool,
    /// Pages that were brought in and never touched, and those last brought in, a bit for each.
    pub skip: u64,
    /// Those last brought in.
    pub brought: u64,
    /// Those of them that were put into the program's page table, used or not.
    pub mapped: u64,
    /// It was brought in to stay, and not looked at since.
    pub wanted: bool,
    missed: u8,
    early: bool,
}

/// The cycle.
#[derive(Debug, Default)]
pub struct Cycle {
    entries: Vec<Entry>,
    /// By unit: its first place; by place: the next of the same unit.
    first: Vec<u32>,
    next: Vec<u32>,
    /// To be put in behind a place.
    fresh: Vec<(u32, Id)>,
    stale: usize,
    ranks: u64,
    /// Places that are kept first, and whether that changed since all were ranked.
    firsts: usize,
    unranked: bool,
    /// Added to the chance of each, round one, until it is one.
    turned: f32,
    bytes: u64,
}

impl Cycle {
    /// Of these units in this order; `bytes` each, for all that is known.
    pub fn new(order: &[Id], bytes: u32) -> Self {
        let mut cycle = Cycle::default();
        for unit in order {
            let entry = cycle.entry(*unit, bytes);
            cycle.entries.push(entry);
        }
        cycle.index();
        cycle
    }

    fn entry(&mut self, unit: Id, bytes: u32) -> Entry {
        self.ranks += 1;
        let chance = ((self.ranks / TOGETHER) as f64 * GOLDEN).fract() as f32;
        Entry {
            unit,
            bytes,
            asked: 0,
            rank: chance,
            chance,
            first: false,
            home: false,
            skip: 0,
            brought: 0,
            mapped: 0,
            wanted: false,
            missed: 0,
            early: false,
        }
    }

    /// Gives each its rank: those that are kept first share the lowest, the others the rest, each spread over the cycle. What is there
    /// twice is kept or not wherever it is.
    fn rank(&mut self) {
        let decides: Vec<usize> = self.entries.iter().map(|entry| self.first[entry.unit as usize] as usize).collect();
        self.firsts = decides.iter().filter(|at| self.entries[**at].first).count();
        let low = self.firsts as f32 / decides.len().max(1) as f32;
        for (at, by) in decides.into_iter().enumerate() {
            let Entry { chance, first, .. } = self.entries[by];
            let chance = if first { chance } else { (chance + self.turned).fract() };
            self.entries[at].rank = if first { chance * low } else { low + chance * (1.0 - low) };
        }
        self.unranked = false;
    }

    fn index(&mut self) {
        self.first.fill(NONE);
        self.next.clear();
        self.next.resize(self.entries.len(), NONE);
        self.bytes = 0;
        for (at, entry) in self.entries.iter().enumerate().rev() {
            let unit = entry.unit as usize;
            if self.first.len() <= unit {
                self.first.resize(unit + 1, NONE);
            }
            // What is there twice takes its room once.
            if self.first[unit] == NONE {
                self.bytes += u64::from(entry.bytes);
            }
            self.next[at] = std::mem::replace(&mut self.first[unit], at as u32);
        }
        self.rank();
    }

    /// Places.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that the program goes through.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What is at a place.
    pub fn get(&self, place: usize) -> &Entry {
        &self.entries[place]
    }

    /// What is at a place, to be changed.
    pub fn get_mut(&mut self, place: usize) -> &mut Entry {
        &mut self.entries[place]
    }

    /// How much of a unit is used, as it was seen.
    pub fn size(&mut self, place: usize, bytes: u32) {
        let entry = &mut self.entries[place];
        self.bytes = self.bytes + u64::from(bytes) - u64::from(entry.bytes).min(self.bytes);
        entry.bytes = bytes;
    }

    /// The places of a unit.
    pub fn places(&self, unit: Id) -> impl Iterator<Item = usize> + '_ {
        let place = |at: u32| (at != NONE).then_some(at as usize);
        let first = self.first.get(unit as usize).and_then(|at| place(*at));
        std::iter::successors(first, move |at| place(self.next[*at]))
    }

    /// Something turned up behind this place.
    pub fn turned_up(&mut self, place: usize, unit: Id) {
        if !self.fresh.iter().any(|(_, fresh)| *fresh == unit) {
            self.fresh.push((place as u32, unit));
        }
    }

    /// A place was passed: was its unit touched?
    pub fn passed(&mut self, place: usize, touched: bool) {
        let entry = &mut self.entries[place];
        let before = entry.missed;
        entry.missed = if touched { 0 } else { (before + 1).min(MISSES) };
        self.stale += usize::from(entry.missed == MISSES && before < MISSES);
        self.stale -= usize::from(touched && before == MISSES);
    }

    /// Notes that a unit was wanted just after it was sent out; whether it was so before.
    pub fn is_early(&mut self, place: usize) -> bool {
        std::mem::replace(&mut self.entries[place].early, true)
    }

    /// Whatever is kept, a unit is part of it from the next lap on: it is used in more places than are known, or sending it out costs
    /// a write. Where too many are so, that says nothing.
    pub fn keep_first(&mut self, place: usize) {
        let place = self.first[self.entries[place].unit as usize] as usize;
        if !self.entries[place].first && self.firsts < (self.entries.len() as f64 * MOST_FIRST) as usize {
            self.entries[place].first = true;
            self.firsts += 1;
            self.unranked = true;
        }
    }

    /// From the next lap on others are kept, but for those that are kept first: such a part of them takes the place of as many. Not any
    /// more once each was left out.
    pub fn turn(&mut self, part: f32) {
        if self.turned < 1.0 && part > 0.0 {
            self.turned += part;
            self.unranked = true;
        }
    }

    /// Takes up what changed; where each place has gone, and the number after all, or none where nothing changed.
    pub fn renew(&mut self, bytes: u32) -> Option<Vec<usize>> {
        if self.unranked {
            self.rank();
        }
        // One here and there is not worth it.
        if self.fresh.is_empty() && self.stale <= self.entries.len() / 200 {
            return None;
        }
        let mut fresh = std::mem::take(&mut self.fresh);
        fresh.sort_by_key(|(place, _)| *place);
        let mut fresh = fresh.into_iter().peekable();
        let (old, mut moved) = (std::mem::take(&mut self.entries), Vec::new());
        let mut entries = Vec::with_capacity(old.len() + fresh.len());
        for (place, entry) in old.into_iter().enumerate() {
            moved.push(entries.len());
            if entry.missed < MISSES {
                entries.push(entry);
            }
            while let Some((_, unit)) = fresh.next_if(|(at, _)| *at as usize == place) {
                entries.push(self.entry(unit, bytes));
            }
        }
        moved.push(entries.len());
        self.entries = entries;
        self.stale = 0;
        self.index();
        Some(moved)
    }

    /// The units in their order.
    pub fn order(&self) -> Vec<Id> {
        self.entries.iter().map(|entry| entry.unit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_parts_are_spread_and_nest() {
        let cycle = Cycle::new(&(0..3000).collect::<Vec<_>>(), 1);
        for part in [0.3f32, 0.6, 0.9] {
            let kept: Vec<usize> = (0..3000).filter(|at| cycle.get(*at).rank < part).collect();
            assert!((kept.len() as f32 / 3000.0 - part).abs() < 0.01);
            let widest = kept.windows(2).map(|two| two[1] - two[0]).max().unwrap();
            assert!((widest as f32) < 3.0 * TOGETHER as f32 / part, "{part}: {widest}");
        }
    }

    #[test]
    fn turned_round_each_is_left_out_once() {
        let mut cycle = Cycle::new(&(0..1000).collect::<Vec<_>>(), 1);
        let mut kept = vec![0; 1000];
        for _ in 0..5 {
            (0..1000).for_each(|at| kept[at] += u32::from(cycle.get(at).rank < 0.8));
            cycle.turn(0.2);
            assert!(cycle.renew(1).is_none());
        }
        let rank = cycle.get(7).rank;
        (0..9).for_each(|_| cycle.turn(0.2));
        assert!(cycle.renew(1).is_none());
        assert_eq!(cycle.get(7).rank, rank, "once round is enough");
        let once = kept.iter().filter(|kept| **kept == 4).count();
        assert!(once > 990, "{once}");
    }

    #[test]
    fn what_is_kept_first_is_so_from_the_next_lap_on() {
        let mut cycle = Cycle::new(&(0..1000).collect::<Vec<_>>(), 1);
        (0..1000).step_by(5).for_each(|at| cycle.keep_first(at));
        assert!(cycle.renew(1).is_none());
        let kept = |part: f32| (0..1000).filter(|at| cycle.get(*at).rank < part).collect::<Vec<_>>();
        for part in [0.1f32, 0.5, 0.9] {
            let kept = kept(part);
            let first = kept.iter().filter(|at| *at % 5 == 0).count();
            assert!((kept.len() as f32 / 1000.0 - part).abs() < 0.01, "{part}: {}", kept.len());
            assert_eq!(first, kept.len().min(200), "{part}");
        }
        // Where most are so, none is better than another.
        (0..1000).for_each(|at| cycle.keep_first(at));
        assert_eq!(cycle.firsts, 400);
    }

    #[test]
    fn it_follows_what_the_program_does() {
        let mut cycle = Cycle::new(&[5, 6, 7, 5], 10);
        assert_eq!((cycle.places(5).collect::<Vec<_>>(), cycle.bytes()), (vec![0, 3], 30));
        assert_eq!(cycle.places(4).count() + cycle.places(400).count(), 0);
        assert!(cycle.renew(10).is_none());
        cycle.turned_up(1, 9);
        cycle.turned_up(2, 9);
        (0..MISSES).for_each(|_| cycle.passed(0, false));
        assert_eq!(cycle.renew(10), Some(vec![0, 0, 2, 3, 4]));
        assert_eq!(cycle.order(), [6, 9, 7, 5]);
        assert_eq!((cycle.places(5).collect::<Vec<_>>(), cycle.bytes()), (vec![3], 40));
    }
}
