//! Where the program is when it is not where it was expected: far ahead, elsewhere, or led on by what it uses everywhere.

use super::{Follow, JUMPS, SLIP};
use crate::world::World;
use std::ops::Range;

/// Units that are not kept, of which none is met in passing.
const STRIDE: f32 = 16.0;
/// Units in a row elsewhere that say that the program has gone there.
pub(super) const JUMP: u32 = 6;
/// Threads of which that is counted at a time.
const THREADS: usize = 64;
/// So many looks tell whether all that was passed over is in memory, and such a part of them.
const LOOKS: usize = 64;
const THERE: f64 = 0.9;

impl Follow {
    pub(super) fn reach(&self) -> i64 {
        (self.asked - self.front + SLIP).max(self.stride()).min(self.len() / 2)
    }

    /// Units that it may be ahead of where it was seen last: between those that are brought in and met with a fault, it passes those
    /// that are kept. One fault further ahead may be of something that is used wherever the program is.
    pub(super) fn stride(&self) -> i64 {
        ((STRIDE / (1.0 - self.part)) as i64).max(SLIP)
    }

    pub(super) fn back(&self) -> i64 {
        (self.lag.units() as i64 + 512).min(self.len() / 3)
    }

    /// Whether what this thread met far from the front goes on there: unit by unit. Each for itself: of two that have gone elsewhere
    /// together, each comes in between the other's.
    pub(super) fn goes_on_at(&mut self, place: i64, thread: u32) -> bool {
        let count = match self.elsewhere.get(&thread) {
            // Of a unit that is used wherever the program is, every page may tell.
            Some((before, count)) if place == *before => *count,
            Some((before, count)) if (1..=self.stride()).contains(&(place - before)) => count + 1,
            _ => 1,
        };
        if count >= JUMP {
            self.elsewhere.clear();
            return true;
        }
        // Threads end without a word.
        if self.elsewhere.len() >= THREADS {
            self.elsewhere.clear();
        }
        self.elsewhere.insert(thread, (place, count));
        false
    }

    /// The program was found elsewhere.
    pub(super) fn jump(&mut self, world: &mut impl World, now: u64) {
        let Some(place) = self.jumped.take().filter(|place| *place > self.front || self.front - place > self.back())
        else {
            // It was caught up with.
            return;
        };
        if place > self.front && self.is_there(world, self.asked.max(self.front)..place) {
            // It went through what is in memory, and met no fault there.
            self.advance(place, now);
            return;
        }
        self.jumps += 1;
        // What was brought in for where it does not come now takes the place of what is next.
        let (n, ahead) = (self.len(), self.asked - self.front);
        for at in self.front..self.asked {
            let index = self.index(at);
            let asked = std::mem::take(&mut self.cycle.get_mut(index).asked);
            if asked > 0 && (at - place).rem_euclid(n) > ahead {
                self.leave(world, index);
            }
        }
        // What it passes by again and again is no part of the cycle, or comes elsewhere in it. The lap goes on: one that jumps once in
        // each would not end, and what is wrong with the order not be put right.
        for at in self.front..place - self.stride() {
            self.cycle.passed(self.index(at), false);
        }
        if place < self.lap_began.0 || self.jumps >= JUMPS {
            self.lap_began = (place, now);
        }
        (self.front, self.asked, self.behind, self.outstanding) = (place, place + 1, place, 0);
        self.near = place + 1;
        self.threads.clear();
    }

    /// Whether next to all of these places are in memory, by a few of them.
    fn is_there(&self, world: &mut impl World, places: Range<i64>) -> bool {
        let step = (places.end - places.start).max(0) as usize / LOOKS + 1;
        let (mut all, mut there) = (0, 0);
        for place in places.step_by(step) {
            let entry = self.cycle.get(self.index(place));
            all += 1;
            there += usize::from(world.look(entry.unit).absent & !entry.skip == 0);
        }
        there as f64 >= THERE * all as f64
    }
}
