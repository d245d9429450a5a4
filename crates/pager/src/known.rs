//! A cycle that was followed once, kept so that it is recognised when the program comes back to it: by a few dozen visits, where
//! learning it again would take a lap.

use crate::units::Id;
use std::collections::{HashMap, VecDeque};

/// Visits by which it is judged, and those of them that must be as expected.
const JUDGED: usize = 48;
const ENOUGH: usize = 40;
/// A visit is as expected so many places from where the last one was; threads are a few MB apart.
const NEAR: i64 = 32;

/// An order of units.
#[derive(Debug, Default)]
pub struct Known {
    order: Vec<Id>,
    /// By unit: its first place.
    places: HashMap<Id, i64>,
    /// What a lap took before it was helped, in ns.
    lap: u64,
    /// Where the last visits were, as far as they went on from each other.
    last: Option<i64>,
    outcomes: VecDeque<Option<i64>>,
}

impl Known {
    /// This order, a lap of which took so long.
    pub fn of(order: Vec<Id>, lap: u64) -> Self {
        let places = order.iter().enumerate().rev().map(|(at, unit)| (*unit, at as i64)).collect();
        Known { order, places, lap, ..Known::default() }
    }

    /// A unit is visited.
    pub fn visit(&mut self, unit: Id) {
        let place = self.places.get(&unit).copied();
        let len = self.order.len().max(1) as i64;
        // Round the end it goes on at the beginning.
        let ahead = |from: i64, to: i64| (to - from + len / 2).rem_euclid(len) - len / 2;
        let step = place.zip(self.last).map(|(place, last)| ahead(last, place)).filter(|step| step.abs() <= NEAR);
        self.outcomes.push_back(step);
        if self.outcomes.len() > JUDGED {
            self.outcomes.pop_front();
        }
        self.last = place.or(self.last);
    }

    /// The order from the next unit on, and what a lap took, once the program is seen to go along it.
    pub fn returned(&self) -> Option<(Vec<Id>, u64)> {
        let steps = self.outcomes.iter().flatten();
        let (good, forth) = (steps.clone().count(), steps.sum::<i64>());
        // Not to and fro within it, or the other way.
        if good < ENOUGH || forth < ENOUGH as i64 / 2 {
            return None;
        }
        let mut order = self.order.clone();
        order.rotate_left(self.last? as usize);
        Some((order, self.lap))
    }

    /// What was visited of late says nothing of what comes.
    pub fn doubt(&mut self) {
        self.outcomes.clear();
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_known_again_forwards_alone() {
        let order: Vec<Id> = (0..1000).map(|i| i * 37 % 1000).collect();
        let mut known = Known::of(order.clone(), 7);
        (0..200).for_each(|i| known.visit(i * 61 % 1000));
        assert!(known.returned().is_none(), "chance");
        known.doubt();
        order.iter().rev().take(200).for_each(|unit| known.visit(*unit));
        assert!(known.returned().is_none(), "the other way");
        known.doubt();
        order.iter().cycle().skip(970).take(60).for_each(|unit| known.visit(*unit));
        let (from_here, lap) = known.returned().unwrap();
        assert_eq!((from_here[0], from_here.len(), lap), (order[29], 1000, 7));
        assert!(Known::default().returned().is_none());
    }

    #[test]
    fn threads_in_disorder_and_some_that_are_elsewhere_do_not_matter() {
        let mut known = Known::of((0..1000).collect(), 1);
        for block in 20..40 {
            [3, 0, 2, 1].iter().for_each(|at| known.visit(4 * block + at));
            (block % 8 == 0).then(|| known.visit(5000));
        }
        assert!(known.returned().is_some());
    }
}
