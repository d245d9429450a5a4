//! Reuse distances of sampled touches, gathered as they come: a stack of units by their last touch, in a tree of sums, and a
//! histogram of how deep each touched unit lay. Its size depends on the number of sampled units alone.

use basics::{Bytes, Nanos};
use std::collections::HashMap;

/// Sizes of memory that are told apart, at most.
const STEPS: usize = 4096;
/// Slots of the tree at first.
const SLOTS: usize = 1024;

/// Prefix sums that change (Fenwick 1994): bytes of the units that were touched last at each slot of time.
#[derive(Debug, Clone, Default)]
struct Sums {
    nodes: Vec<u64>,
    whole: u64,
}

impl Sums {
    fn new(slots: usize) -> Self {
        Sums { nodes: vec![0; slots + 1], whole: 0 }
    }

    fn slots(&self) -> usize {
        self.nodes.len() - 1
    }

    fn walk(&mut self, slot: usize, change: impl Fn(u64) -> u64) {
        let mut node = slot + 1;
        while node < self.nodes.len() {
            self.nodes[node] = change(self.nodes[node]);
            node += node & node.wrapping_neg();
        }
    }

    fn add(&mut self, slot: usize, bytes: u64) {
        self.whole += bytes;
        self.walk(slot, |sum| sum + bytes);
    }

    fn take(&mut self, slot: usize, bytes: u64) {
        self.whole -= bytes;
        self.walk(slot, |sum| sum - bytes);
    }

    /// Of the slots after this one.
    fn after(&self, slot: usize) -> u64 {
        let (mut node, mut before) = (slot + 1, 0);
        while node > 0 {
            before += self.nodes[node];
            node &= node - 1;
        }
        self.whole - before
    }
}

/// Where a unit lies in the stack.
#[derive(Debug, Clone, Copy)]
struct Place {
    slot: usize,
    /// 0 until its first touch.
    bytes: u64,
    /// Touched since counting began.
    counted: bool,
}

/// The reuse distances of a workload, from touches of a sample of its units.
#[derive(Debug, Clone)]
pub struct Reuse {
    step: u64,
    /// Units in all for each sampled one.
    scale: f64,
    places: HashMap<u64, Place>,
    sums: Sums,
    next: usize,
    /// Bytes touched at a depth within each step, scaled.
    deep: Vec<f64>,
    /// When so much had been touched that memory of this many steps was full.
    full: Vec<Nanos>,
    touches: u64,
    /// Sampled bytes that were touched since counting began.
    counted: u64,
}

impl Reuse {
    /// Tells sizes of memory apart that differ by `step`, up to 4096 of them. `ratio` is the part of all units that is sampled, as
    /// counted: what chance makes of the part that was wanted would move the curve by as much.
    pub fn new(step: Bytes, ratio: f64) -> Self {
        Reuse {
            step: step.0.max(1),
            scale: scale(ratio),
            places: HashMap::new(),
            sums: Sums::new(SLOTS),
            next: 0,
            deep: Vec::new(),
            full: vec![Nanos(0)],
            touches: 0,
            counted: 0,
        }
    }

    /// From now on this unit is watched: its next touch is known to come after all that is touched from here on.
    pub fn enter(&mut self, key: u64) {
        let slot = self.slot();
        if let Some(Place { slot, bytes, .. }) = self.places.insert(key, Place { slot, bytes: 0, counted: false }) {
            self.sums.take(slot, bytes);
        }
    }

    /// Counts from here on, as if all memory were empty now; the order in which units were touched before stays known.
    pub fn begin(&mut self, at: Nanos) {
        self.deep.clear();
        (self.touches, self.counted) = (0, 0);
        self.full = vec![at];
        self.places.values_mut().for_each(|place| place.counted = false);
    }

    /// A unit of so many bytes was touched, `at` so long after watching began. One that was never watched before is new to
    /// the workload, and no memory would have had it.
    pub fn touch(&mut self, at: Nanos, key: u64, bytes: Bytes) {
        self.touches += 1;
        let slot = self.slot();
        let before = self.places.insert(key, Place { slot, bytes: bytes.0, counted: true });
        if !before.is_some_and(|place| place.counted) {
            self.counted += bytes.0;
        }
        if let Some(place) = before {
            let between = self.sums.after(place.slot);
            if place.bytes > 0 {
                self.sums.take(place.slot, place.bytes);
            }
            // Itself among them. Sampled units stand for the others in between; a sampled one is there for sure.
            let depth = self.scale * between as f64 + bytes.0 as f64;
            let step = ((depth / self.step as f64).ceil() as usize).saturating_sub(1).min(STEPS - 1);
            if self.deep.len() <= step {
                self.deep.resize(step + 1, 0.0);
            }
            self.deep[step] += self.scale * bytes.0 as f64;
        }
        self.sums.add(slot, bytes.0);
        let seen = (self.footprint().0 / self.step).min(STEPS as u64) as usize;
        while self.full.len() <= seen {
            self.full.push(at);
        }
    }

    /// Only units whose key is below `below` are sampled from now on, a part of `ratio` of all.
    pub fn thin(&mut self, below: u64, ratio: f64) {
        self.scale = scale(ratio);
        let gone: Vec<(u64, Place)> =
            self.places.iter().filter(|(key, _)| **key >= below).map(|(key, place)| (*key, *place)).collect();
        for (key, place) in gone {
            self.places.remove(&key);
            if place.bytes > 0 {
                self.sums.take(place.slot, place.bytes);
            }
            self.counted -= if place.counted { place.bytes } else { 0 };
        }
    }

    /// What has been touched since counting began, estimated from the sample.
    pub fn footprint(&self) -> Bytes {
        Bytes((self.scale * self.counted as f64) as u64)
    }

    /// Sampled touches so far.
    pub fn touches(&self) -> u64 {
        self.touches
    }

    /// Bytes a second that memory of each size, kept by a least-recently-used policy, would have missed since it was full, by
    /// `end`; sizes for which that was for less than a part of `least` of the time are left out.
    pub(super) fn missed(&self, end: Nanos, least: f64) -> Vec<(Bytes, f64)> {
        let least = Nanos::from_secs(least * (end - self.full[0]).secs());
        let mut deeper: f64 = self.deep.iter().sum();
        let mut points = Vec::new();
        for (steps, full) in self.full.iter().enumerate() {
            if steps > 0 {
                deeper -= self.deep.get(steps - 1).copied().unwrap_or(0.0);
            }
            let time = end - *full;
            if time < least || time == Nanos(0) {
                break;
            }
            points.push((Bytes(steps as u64 * self.step), deeper.max(0.0) / time.secs()));
        }
        points
    }

    /// The next moment; when there is none left, the past is pressed together.
    fn slot(&mut self) -> usize {
        if self.next == self.sums.slots() {
            let mut places: Vec<(u64, Place)> = self.places.iter().map(|(key, place)| (*key, *place)).collect();
            places.sort_by_key(|(_, place)| place.slot);
            self.sums = Sums::new((4 * places.len()).next_power_of_two().max(SLOTS));
            for (slot, (key, place)) in places.into_iter().enumerate() {
                self.sums.add(slot, place.bytes);
                self.places.insert(key, Place { slot, ..place });
            }
            self.next = self.places.len();
        }
        self.next += 1;
        self.next - 1
    }
}

fn scale(ratio: f64) -> f64 {
    if ratio > 0.0 { ratio.recip() } else { 1.0 }
}
