//! The sampled units of a process's memory: chosen by a hash of their address, one to one, so that a smaller sample is part
//! of a larger one.

use super::SHORTEST;
use super::maps::Maps;
use basics::Nanos;
use std::collections::HashMap;
use std::io;
use sys::peer::{Lies, Peer, Range};

/// Part of all units that is sampled at most. Pages that go out and come back count for the kernel as dear, and it keeps
/// them: a sixteenth of a process's pages, sent out again and again, changed what became of the others by a tenth.
const LARGEST: f64 = 1.0 / 32.0;
/// With fewer units nothing can be said.
const FEWEST: usize = 64;
/// A unit that would not go out so often is left alone: it is locked, or others have it too. Each try comes after twice the
/// time of the one before, since a page that has just come is on nobody's list for a while.
const TRIES: u32 = 5;
/// Bytes looked at in one go.
const PIECE: u64 = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// In memory, for all we know, and due to go out then.
    In { until: Nanos },
    /// Not in the page table; sent there by us, or by the kernel.
    Out { since: Nanos, ours: bool },
    /// It would not go.
    Held,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub range: Range,
    pub key: u64,
    pub state: State,
    /// After its next touch.
    pub wait: Nanos,
    /// It has been out, so that its touches are seen.
    pub entered: bool,
    tries: u32,
}

impl Unit {
    fn new(range: Range, key: u64) -> Self {
        Unit { range, key, state: State::In { until: Nanos(0) }, wait: SHORTEST, entered: false, tries: 0 }
    }

    /// It did not go out. True when that was once too often, and it is held.
    pub fn refused(&mut self, now: Nanos) -> bool {
        self.tries += 1;
        let held = self.tries > TRIES;
        self.state = if held { State::Held } else { State::In { until: now + Nanos(SHORTEST.0 << self.tries) } };
        held
    }

    /// It was touched where it was known to be out.
    pub fn back(&mut self, until: Nanos) {
        self.tries = 0;
        self.state = State::In { until };
    }
}

/// The sample.
#[derive(Debug, Default)]
pub(super) struct Units {
    pub all: Vec<Unit>,
    by_address: HashMap<u64, usize>,
    /// Sampled are those whose key is below.
    pub below: u64,
    /// Part of all units that this is, as counted.
    pub ratio: f64,
}

/// The last rounds of `splitmix64`: a permutation of all numbers.
fn key_of(range: Range, page: u64) -> u64 {
    let mut key = range.at / page;
    key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

impl Units {
    /// So many at most of what the process has in memory or in swap.
    pub fn choose(&mut self, peer: &Peer, maps: &Maps, most: usize) -> io::Result<()> {
        let mut count = 0u64;
        self.below = u64::MAX;
        each_used(peer, maps, &mut |_| count += 1)?;
        let ratio =
            (most as f64 / count.max(1) as f64).min(LARGEST).max((FEWEST as f64 / count.max(1) as f64).min(1.0));
        self.below = (ratio * 2f64.powi(64)) as u64;
        let mut chosen = Vec::new();
        each_used(peer, maps, &mut |range| chosen.extend(self.sampled(range, peer.page()).then_some(range)))?;
        for range in chosen {
            self.get_or_add(range, peer.page());
        }
        self.ratio = if count > 0 { self.len() as f64 / count as f64 } else { 1.0 };
        Ok(())
    }

    pub fn sampled(&self, range: Range, page: u64) -> bool {
        key_of(range, page) < self.below
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, address: u64) -> Option<&Unit> {
        self.by_address.get(&address).map(|at| &self.all[*at])
    }

    pub fn get_or_add(&mut self, range: Range, page: u64) -> usize {
        *self.by_address.entry(range.at).or_insert_with(|| {
            self.all.push(Unit::new(range, key_of(range, page)));
            self.all.len() - 1
        })
    }

    /// In memory for long enough: since when they are due, and which.
    pub fn due(&self, now: Nanos) -> Vec<(Nanos, usize)> {
        let due = |(at, unit): (usize, &Unit)| match unit.state {
            State::In { until } if until <= now => Some((until, at)),
            _ => None,
        };
        self.all.iter().enumerate().filter_map(due).collect()
    }

    /// Never out so far, and not given up.
    pub fn waiting(&self) -> usize {
        self.all.iter().filter(|unit| !unit.entered && unit.state != State::Held).count()
    }

    /// Bytes that will not go out, estimated from the sample.
    pub fn held(&self) -> u64 {
        let held = self.all.iter().filter(|unit| unit.state == State::Held);
        (held.map(|unit| unit.range.len).sum::<u64>() as f64 / self.ratio) as u64
    }

    /// Lets half of them go; false when there would be too few.
    pub fn thin(&mut self) -> bool {
        if self.len() < 2 * FEWEST {
            return false;
        }
        self.below /= 2;
        let (below, before) = (self.below, self.len());
        self.all.retain(|unit| unit.key < below);
        self.ratio *= self.len() as f64 / before as f64;
        self.by_address = self.all.iter().enumerate().map(|(at, unit)| (unit.range.at, at)).collect();
        true
    }
}

/// All units of which a page is in memory or in swap.
fn each_used(peer: &Peer, maps: &Maps, each: &mut impl FnMut(Range)) -> io::Result<()> {
    let mut lies = Vec::new();
    for map in maps.all() {
        let mut at = map.from;
        while at < map.to {
            let piece = Range { at, len: PIECE.min(map.to - at) };
            peer.look(piece, &mut lies)?;
            let mut last = None;
            for (nth, lies) in lies.iter().enumerate() {
                if *lies == Lies::Nowhere {
                    continue;
                }
                let unit = map.unit(at + nth as u64 * peer.page(), peer.page());
                if last != Some(unit.at) {
                    each(unit);
                }
                last = Some(unit.at);
            }
            at += piece.len;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(count: u64) -> Units {
        let mut units = Units { below: u64::MAX, ..Units::default() };
        for page in 0..count {
            units.get_or_add(Range { at: page << 12, len: 4096 }, 4096);
        }
        units
    }

    #[test]
    fn a_thinner_sample_is_part_of_the_one_before() {
        let mut units = units(8192);
        assert_eq!((units.len(), units.get_or_add(Range { at: 7 << 12, len: 4096 }, 4096)), (8192, 7));
        for expected in [4096, 2048, 1024] {
            assert!(units.thin());
            assert!(units.len().abs_diff(expected) < expected / 10, "{}", units.len());
            assert!(units.all.iter().all(|unit| units.get(unit.range.at).is_some_and(|same| same.key == unit.key)));
        }
        while units.thin() {}
        assert!(units.len() >= FEWEST / 2);
    }

    #[test]
    fn a_unit_that_will_not_go_is_left_alone_in_the_end() {
        let mut unit = units(1).all[0];
        let mut now = Nanos(0);
        let mut tries = 0;
        while !unit.refused(now) {
            let State::In { until } = unit.state else { panic!("{unit:?}") };
            assert!(until > now);
            (now, tries) = (until, tries + 1);
        }
        assert_eq!((unit.state, tries), (State::Held, TRIES));
        assert!(now > Nanos::from_millis(1000));
    }
}
