//! What lies in memory beside a cycle. An order is learned by faults, and what was in memory all the while met none: of a model whose
//! limit was lowered a moment ago that may be half. It would stay for good, where the kept part should be spread along all of the cycle.
//! So each such unit is sent out once, some a lap: what is used turns up at its place, and what is not leaves its room to others.

use crate::follow::Follow;
use crate::memory::Memory;
use crate::units::{Id, UNIT};
use crate::world::World;
use std::collections::HashSet;

/// So many times the units that the order has of a mapping may be there beside them for it to be taken to consist of such.
const SAME: usize = 4;
/// Of the cycle, less than this part, one in so many, is not worth it.
const WORTH: usize = 16;
/// Of the cycle, this part, one in so many, is tried in a lap.
const A_LAP: u64 = 32;

/// What was not tried yet.
#[derive(Debug, Default)]
pub struct Beside {
    units: Vec<Id>,
    laps: u64,
}

impl Beside {
    /// What is there beside this order.
    pub fn of(order: &HashSet<Id>, memory: &mut Memory) -> Self {
        let mut units = Vec::new();
        for (known, others) in memory.beside(order, false) {
            if known == 0 {
                continue;
            }
            // A unit gets a number once it is known to be there: of a mapping of which little is used there may be very many.
            let there: Vec<_> = others.into_iter().filter(|range| memory.is_there(*range)).collect();
            if there.len() <= SAME * known {
                units.extend(there.into_iter().filter_map(|range| memory.units.at(range.at)));
            }
        }
        // Two mappings may share one.
        units.dedup();
        if units.len() < order.len() / WORTH {
            units.clear();
        }
        // Those at the lowest addresses first.
        units.reverse();
        Beside { units, laps: 0 }
    }

    /// Units that were not tried yet.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// Once in each lap, sends some of them out.
    pub fn try_some(&mut self, follow: &mut Follow, memory: &mut Memory) {
        let laps = follow.tally().laps;
        if self.units.is_empty() || laps == self.laps || follow.fits() {
            return;
        }
        self.laps = laps;
        let some = (follow.bytes() / UNIT / A_LAP + 1) as usize;
        let from = self.units.len().saturating_sub(some);
        for unit in self.units.drain(from..).rev() {
            if !follow.knows(unit) {
                follow.tries(unit);
                memory.behind(unit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_fault_told_of_is_found() {
        let mut memory = match Memory::of(std::process::id()) {
            Ok(memory) => memory,
            Err(error) => return println!("SKIP what_no_fault_told_of_is_found: {error}"),
        };
        let written = std::hint::black_box(vec![1u8; 40 * UNIT as usize]);
        memory.renew(u64::MAX);
        let first = (written.as_ptr() as u64).next_multiple_of(UNIT);
        let units: Vec<Id> = (0..39).filter_map(|nth| memory.units.at(first + nth * UNIT)).collect();
        let order = |known: usize| units.iter().copied().take(known).collect::<HashSet<Id>>();
        let all: Vec<_> = memory.beside(&order(30), false).into_iter().flat_map(|(_, others)| others).collect();
        let cut = |range: &sys::peer::Range| range.len <= UNIT && range.at / UNIT == (range.at + range.len - 1) / UNIT;
        assert!(
            all.iter().all(cut) && all.iter().any(|range| range.len < UNIT),
            "what lies next to it is not its: {all:?}"
        );
        let beside = Beside::of(&order(30), &mut memory);
        assert!(units[30..].iter().all(|unit| beside.units.contains(unit)), "{beside:?}");
        assert!(units[..30].iter().all(|unit| !beside.units.contains(unit)), "{beside:?}");
        assert_eq!(Beside::of(&order(2), &mut memory).len(), 0, "of so much more nobody knows what it is");
    }
}
