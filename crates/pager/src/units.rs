//! Pieces of a process's address space, numbered as they are met, so that all that is known of one is an index away.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a unit: what the kernel reads in one go of a file (`max_sectors_kb` cuts more), and enough to keep a disk busy.
pub const UNIT: u64 = 256 << 10;
/// Units at most: 32 GiB of memory that faults.
const MOST: usize = 128 << 10;

/// The number of a unit.
pub type Id = u32;

/// Some of them, marked by one thread for another: a bit for each.
#[derive(Debug)]
pub struct Marked(Vec<AtomicU64>);

impl Default for Marked {
    fn default() -> Self {
        Marked((0..MOST.div_ceil(u64::BITS as usize)).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Marked {
    fn bit(&self, unit: Id) -> (&AtomicU64, u64) {
        let bits = u64::BITS as usize;
        (&self.0[unit as usize / bits], 1 << (unit as usize % bits))
    }

    /// From now on it is, or is not.
    pub fn set(&self, unit: Id, is_marked: bool) {
        let (word, bit) = self.bit(unit);
        if is_marked {
            word.fetch_or(bit, Ordering::Relaxed)
        } else {
            word.fetch_and(!bit, Ordering::Relaxed)
        };
    }

    /// Whether it is.
    pub fn has(&self, unit: Id) -> bool {
        let (word, bit) = self.bit(unit);
        word.load(Ordering::Relaxed) & bit != 0
    }
}

/// All units that were met.
#[derive(Debug, Default)]
pub struct Units {
    ids: HashMap<u64, Id>,
    places: Vec<u64>,
}

impl Units {
    /// The unit in which this address lies; none when there are too many.
    pub fn at(&mut self, address: u64) -> Option<Id> {
        let place = address / UNIT;
        if let Some(id) = self.ids.get(&place) {
            return Some(*id);
        }
        if self.places.len() == MOST {
            return None;
        }
        let id = self.places.len() as Id;
        self.ids.insert(place, id);
        self.places.push(place);
        Some(id)
    }

    /// The unit of this address, if it was met before.
    pub fn known(&self, address: u64) -> Option<Id> {
        self.ids.get(&(address / UNIT)).copied()
    }

    /// Where a unit begins.
    pub fn address(&self, id: Id) -> u64 {
        self.places.get(id as usize).map_or(0, |place| place * UNIT)
    }
}
