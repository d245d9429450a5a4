//! What is done to the program's memory: what it used goes out, what comes next is asked for, and what is there and should not be leaves.

use super::{Follow, SETTLED, SLIP};
use crate::units::UNIT;
use crate::world::World;

/// Threads that were not seen for so long do not hold up what goes out, in ns.
const QUIET: u64 = 300_000_000;
/// Units looked at in one go.
const AT_ONCE: usize = 256;
/// Looked at once more so many units before they are used.
const NEAR: i64 = 24;
/// Of laps, one in so many in which a kept unit is looked at where nobody takes any.
const SELDOM: u64 = 8;
/// Of laps, one in so many in which it is asked whether a unit was written to.
const WRITES: u64 = 4;
/// Kept units sent out at once when the kept part becomes smaller.
const SWEEP: usize = 16;

impl Follow {
    /// Whether it is a place's turn: in one lap of so many, and each lap others'.
    fn is_turn(&self, index: usize, laps: u64) -> bool {
        (index as u64 + self.tally.laps).is_multiple_of(laps)
    }

    fn slowest(&mut self, world: &mut impl World, now: u64) -> i64 {
        let (front, oldest) = (self.front, self.front - self.back());
        // A model runner takes other threads for each token: what a former one left behind it would stay in memory for its sake.
        self.threads.retain(|thread, (place, seen)| {
            now.saturating_sub(*seen) < QUIET
                && *place >= oldest
                && (*place >= front - SLIP || world.is_at_work(*thread))
        });
        self.threads.values().map(|(place, _)| *place).min().unwrap_or(front).min(front)
    }

    pub(super) fn send_out(&mut self, world: &mut impl World, now: u64) {
        self.slow_now = self.slowest(world, now);
        let until = self.slow_now - self.lag.units() as i64;
        let calm = self.keep.is_calm();
        for _ in 0..AT_ONCE {
            if self.behind >= until {
                break;
            }
            let place = self.behind;
            self.behind += 1;
            let index = self.index(place);
            let entry = *self.cycle.get(index);
            if self.part >= 1.0 || entry.rank < self.part {
                continue;
            }
            // It comes again soon: what was asked for it would be lost.
            let soon = self.cycle.places(entry.unit).any(|other| {
                other != index && {
                    let d = (other as i64 - until.rem_euclid(self.len())).rem_euclid(self.len());
                    d <= self.asked - until
                }
            });
            if soon {
                continue;
            }
            let look = world.look(entry.unit);
            // Of one that was mapped whole nobody can say.
            if entry.mapped == 0 || entry.brought != entry.mapped {
                self.cycle.passed(index, look.present & !entry.mapped > 0);
            }
            // A write takes the disk's time, and the next lap it is read: twice what another unit costs.
            let changed = look.present & entry.brought;
            if changed > 0 && self.is_turn(index, WRITES) && world.is_written(entry.unit, changed) {
                self.cycle.keep_first(index);
            }
            let entry = self.cycle.get_mut(index);
            entry.home = false;
            // Brought in, passed, and nobody has touched them: they only fill the swap cache. Where the kernel takes more than it is
            // given, it may have had them before they were looked at.
            let brought = std::mem::take(&mut entry.brought);
            entry.mapped = 0;
            let unused = if calm { look.absent & brought } else { 0 };
            entry.skip |= unused;
            world.release(entry.unit, unused);
            if look.present > 0 {
                world.behind(entry.unit);
                self.tally.sent += u64::from(look.bytes(look.present));
            }
        }
    }

    pub(super) fn ask(&mut self, world: &mut impl World) {
        // What is behind and not sent out yet is not ahead, too.
        let end = self.behind.max(self.front - self.len() / 2) + self.len() - 1;
        let (calm, maps, going) = (self.keep.is_calm(), self.maps(), world.going() / self.parts);
        for _ in 0..AT_ONCE {
            if self.outstanding >= self.window.bytes() || self.asked >= end {
                break;
            }
            if self.left.is_some_and(|left| left < UNIT as i64) {
                if 4 * self.outstanding >= self.window.usual() {
                    break;
                }
                // It must not run dry, and so the kernel has to make room after all: too much is kept, unless what makes it only waits for
                // a disk that has to write.
                if going < UNIT {
                    self.keep.over(UNIT);
                }
            }
            let index = self.index(self.asked);
            self.asked += 1;
            let entry = *self.cycle.get(index);
            let kept = entry.rank < self.part;
            // While something is left nobody takes it: a look in some laps is enough.
            if kept && entry.home && self.left.is_some_and(|left| left > 0) && !self.is_turn(index, SELDOM) {
                continue;
            }
            let look = world.look(entry.unit);
            // Brought in a lap ago, and still nobody has touched it: in the swap cache, not in the page table.
            let mut skip = entry.skip & !look.present;
            let unused = kept && look.present == 0 && look.absent & !skip == 0;
            if calm && (entry.wanted || unused) {
                self.cycle.passed(index, look.present > 0);
                let unused = look.absent & entry.brought & !skip;
                world.release(entry.unit, unused);
                skip |= unused;
            }
            let absent = look.absent & !skip;
            let used = look.bytes(look.present | absent);
            if used != entry.bytes {
                self.cycle.size(index, used);
            }
            // When a part of what the kernel mapped as one goes, all of it leaves the page table, and most is still there: a window full of
            // that would keep no disk busy.
            let cached = match absent > 0 && (entry.home || self.tally.laps < SETTLED) {
                true => world.cached(entry.unit, absent),
                false => 0,
            };
            let missing = absent & !cached;
            let bytes = look.bytes(missing);
            if entry.home && kept {
                self.keep.lost(u64::from(bytes));
                self.tally.lost += u64::from(bytes);
            }
            let all_but_one = self.is_turn(index, 2);
            let entry = self.cycle.get_mut(index);
            (entry.skip, entry.brought) = (skip, missing);
            entry.home = missing == 0;
            entry.wanted = kept && missing > 0;
            if missing > 0 {
                world.ahead(entry.unit, missing);
                // All but one of every other unit: where the program is, and what it uses, is known by its faults alone.
                if maps && !kept {
                    entry.mapped = if all_but_one { missing & (missing - 1) } else { missing };
                    world.map(entry.unit, entry.mapped);
                }
                entry.asked = bytes;
                self.left = self.left.map(|left| left - i64::from(bytes));
                self.outstanding += u64::from(bytes);
                self.tally.asked += u64::from(bytes);
            }
        }
    }

    /// What was in memory when it was looked at may be gone when it is its turn: what has not been used for longest is what the
    /// kernel takes first.
    pub(super) fn ask_again(&mut self, world: &mut impl World) {
        let until = (self.front + NEAR).min(self.asked);
        // While something is left nothing is taken.
        if self.left.is_some_and(|left| left > 0) {
            self.near = self.near.max(until);
        }
        while self.near < until {
            let index = self.index(self.near);
            self.near += 1;
            let entry = *self.cycle.get(index);
            if !entry.home {
                continue;
            }
            let look = world.look(entry.unit);
            let absent = look.absent & !entry.skip;
            let missing = if absent > 0 { absent & !world.cached(entry.unit, absent) } else { 0 };
            if missing > 0 {
                let bytes = u64::from(look.bytes(missing));
                if entry.rank < self.part {
                    self.keep.lost(bytes);
                    self.tally.lost += bytes;
                }
                world.ahead(entry.unit, missing);
                self.tally.asked += bytes;
                self.cycle.get_mut(index).home = false;
            }
        }
    }

    /// Sends out what is not kept, wherever it is.
    pub(super) fn sweep(&mut self, world: &mut impl World) {
        let n = self.len();
        // What was just used is not to wait for it.
        if world.going() / self.parts > self.window.usual() {
            return;
        }
        for _ in 0..SWEEP {
            if self.sweep.1 == 0 || self.part >= 1.0 {
                break;
            }
            let index = self.sweep.0 % self.cycle.len();
            self.sweep = (index + 1, self.sweep.1 - 1);
            // Neither what is on its way in, nor what may still be in use.
            let forth = (index as i64 - self.behind.rem_euclid(n)).rem_euclid(n);
            if forth > self.asked - self.behind {
                self.leave(world, index);
            }
        }
    }

    /// Sends out a unit that is not kept, whether it was used or not.
    pub(super) fn leave(&mut self, world: &mut impl World, index: usize) {
        let entry = self.cycle.get_mut(index);
        if entry.rank < self.part {
            return;
        }
        let look = world.look(entry.unit);
        (entry.home, entry.mapped) = (false, 0);
        world.release(entry.unit, look.absent & std::mem::take(&mut entry.brought));
        if look.present > 0 {
            world.behind(entry.unit);
        }
    }
}
