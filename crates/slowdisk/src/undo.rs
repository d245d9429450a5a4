//! What a power cut takes back: of each block of 4 KiB that was written since the last flush, what stood there before. A
//! real device's cache is of some size, and so is this: beyond it the oldest blocks count as written back. A cut undoes all
//! but a seeded random choice of the sectors of 512 B, so that writes are reordered and torn as a real disk may do it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::{HashMap, VecDeque};

/// What is remembered as one.
pub(crate) const BLOCK: u64 = 4096;
/// What a disk writes wholly or not at all.
pub(crate) const SECTOR: usize = 512;
/// What a block costs in memory beside its bytes, about.
const OVERHEAD: u64 = 128;

/// What was in a block; nothing: a hole.
type Before = Option<Box<[u8]>>;

/// What was written since the last flush.
#[derive(Debug)]
pub(crate) struct Undo {
    blocks: HashMap<u64, Before>,
    /// The blocks in the order in which they were first written.
    order: VecDeque<u64>,
    most: usize,
    /// Memory for blocks that is free. It is kept: given back by one thread, it would be of no use to the next one's arena.
    spare: Vec<Box<[u8]>>,
}

impl Undo {
    /// One that takes at most about `bytes` of memory.
    pub fn new(bytes: u64) -> Self {
        let most = (bytes / (BLOCK + OVERHEAD)) as usize;
        Undo { blocks: HashMap::new(), order: VecDeque::new(), most, spare: Vec::new() }
    }

    /// Blocks that a write of this range touches and that are not yet remembered.
    pub fn missing(&self, offset: u64, len: u64) -> impl Iterator<Item = u64> + use<> {
        let blocks = offset / BLOCK..(offset + len).div_ceil(BLOCK);
        let missing: Vec<u64> = blocks.filter(|block| !self.blocks.contains_key(block)).collect();
        missing.into_iter()
    }

    /// Room for what stands in a block, for [`Undo::remember`]; what it holds has no meaning.
    pub fn room(&mut self) -> Box<[u8]> {
        self.make_way();
        self.spare.pop().unwrap_or_else(|| vec![0; BLOCK as usize].into())
    }

    /// When it is full, the oldest block counts as written back.
    fn make_way(&mut self) {
        while self.order.len() >= self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.spare.extend(self.blocks.remove(&oldest).flatten());
        }
    }

    /// Remembers what stands in a block that is about to be written.
    pub fn remember(&mut self, block: u64, before: Before) {
        if self.most == 0 {
            self.spare.extend(before);
            return;
        }
        self.make_way();
        if self.blocks.insert(block, before).is_none() {
            self.order.push_back(block);
        }
    }

    /// All that was written is durable from now on.
    pub fn forget(&mut self) {
        self.spare.extend(self.blocks.drain().filter_map(|(_, before)| before));
        self.order.clear();
    }

    /// Bytes that a power cut could take back.
    pub fn pending(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK
    }

    /// Cuts the power: the places and former contents of the sectors that did not make it.
    pub fn cut(&mut self, seed: u64) -> Vec<(u64, Box<[u8]>)> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut lost = Vec::new();
        // In the order of writing, so that equal writes and seeds lose equal sectors.
        for block in std::mem::take(&mut self.order) {
            let Some(before) = self.blocks.remove(&block) else { continue };
            let fate = rng.next_u64();
            for sector in 0..BLOCK as usize / SECTOR {
                if fate >> sector & 1 == 1 {
                    continue;
                }
                let at = sector * SECTOR;
                let bytes = before.as_ref().map_or_else(|| vec![0; SECTOR].into(), |b| b[at..at + SECTOR].into());
                lost.push((block * BLOCK + at as u64, bytes));
            }
            self.spare.extend(before);
        }
        self.blocks.clear();
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(undo: &mut Undo, offset: u64, len: u64) {
        for block in undo.missing(offset, len) {
            let mut room = undo.room();
            room.fill(block as u8);
            undo.remember(block, Some(room));
        }
    }

    #[test]
    fn what_was_flushed_stays() {
        let mut undo = Undo::new(1 << 20);
        remember(&mut undo, 0, 100 << 10);
        assert_eq!(undo.pending(), 100 << 10);
        undo.forget();
        assert!(undo.cut(1).is_empty());
    }

    #[test]
    fn a_cut_takes_back_about_half_and_the_same_half_for_a_seed() {
        let cut = |seed| {
            let mut undo = Undo::new(1 << 24);
            remember(&mut undo, 4096, 4 << 20);
            remember(&mut undo, 1 << 20, 4096);
            undo.cut(seed)
        };
        let lost = cut(7);
        assert!((3500..4700).contains(&lost.len()), "{} of 8192 sectors", lost.len());
        assert_eq!(lost, cut(7));
        assert_ne!(lost, cut(8));
        assert!(lost.iter().all(|(at, bytes)| bytes.len() == SECTOR && bytes[0] == (at / BLOCK) as u8));
        assert!(lost.iter().any(|(at, _)| at % BLOCK != 0), "sectors, not blocks, are torn");
    }

    #[test]
    fn beyond_its_size_the_oldest_are_written_back() {
        let mut undo = Undo::new(10 * (BLOCK + OVERHEAD));
        remember(&mut undo, 0, 30 * BLOCK);
        assert_eq!(undo.pending(), 10 * BLOCK);
        let lost = undo.cut(1);
        assert!(lost.iter().all(|(at, _)| *at >= 20 * BLOCK) && !lost.is_empty());
        remember(&mut undo, 0, 30 * BLOCK);
        undo.forget();
        remember(&mut undo, 0, 5 * BLOCK);
        assert_eq!((undo.blocks.len(), undo.spare.len()), (5, 5), "the memory of ten blocks is used again and again");
        let mut none = Undo::new(0);
        remember(&mut none, 0, BLOCK);
        assert_eq!(none.pending(), 0);
    }
}
