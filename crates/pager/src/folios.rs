//! What one fault maps of a file at once, and so hides from who learns an order by faults.

use crate::units::{Id, UNIT};
use std::collections::HashSet;

/// The longest folio: what one entry of a page table's middle level maps.
pub const FOLIO: u64 = 2 << 20;

/// One fault maps all of a large folio of a file (`finish_fault` in mm/memory.c), which may be as long as eight units, and then the
/// others meet none. What lies next to a unit, and is nowhere in the order, is taken to be its folio's: what of it nobody uses costs
/// three laps of reading it. `beside` tells the unit of a file so many behind another, or before it.
pub fn with_folios(order: &[Id], mut beside: impl FnMut(Id, i64) -> Option<Id>) -> Vec<Id> {
    const REST: i64 = (FOLIO / UNIT) as i64 - 1;
    let mut known: HashSet<Id> = order.iter().copied().collect();
    let mut with = Vec::with_capacity(order.len());
    for unit in order {
        let before: Vec<Id> =
            (1..=REST).map_while(|by| beside(*unit, -by).filter(|next| known.insert(*next))).collect();
        with.extend(before.into_iter().rev());
        with.push(*unit);
        with.extend((1..=REST).map_while(|by| beside(*unit, by).filter(|next| known.insert(*next))));
    }
    with
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_fault_mapped_is_part_of_the_order() {
        // Of a file of 40 units without those in the middle; what is in the order already stays where it is.
        let beside =
            |unit: Id, by: i64| unit.checked_add_signed(by as i32).filter(|at| *at < 10 || (20..40).contains(at));
        let all: Vec<Id> = (20..28).chain(0..7).chain(7..10).chain(31..40).collect();
        assert_eq!(with_folios(&[20, 4, 7, 38], beside), all);
        assert_eq!(with_folios(&[3, 1], |_, _| None), [3, 1], "no file");
    }
}
