//! How a process under the pager's care stands, for whoever looks.

use super::{Mode, Session};
use crate::streams::Streams;
use serde::Serialize;
use sys::faults::Faults;

/// How it stands.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Standing {
    /// The process.
    pub pid: u32,
    /// What the kernel calls it; fifteen letters of its name.
    pub name: String,
    /// What is done.
    pub mode: Mode,
    /// Bytes that it goes through in a lap, and those of them that are kept.
    pub cycle_bytes: u64,
    /// Of them, those that are meant to stay.
    pub kept_bytes: u64,
    /// Room for the cycle.
    pub room_bytes: u64,
    /// Where it is, 0 to 1.
    pub cursor: f64,
    /// Units asked for ahead of it.
    pub ahead_units: i64,
    /// Bytes asked for ahead of it at most.
    pub window_bytes: u64,
    /// Seconds of the last lap.
    pub lap_s: f64,
    /// Seconds of the lap before it was helped.
    pub lap_before_s: f64,
    /// Laps that were followed.
    pub laps: u64,
    /// Bytes brought in ahead, while the order was learned and since then.
    pub ahead_bytes: u64,
    /// The same a second, over the last second.
    pub ahead_bytes_per_s: f64,
    /// The most that this was in any second: the disk's sequential rate, as far as it was seen here.
    pub fastest_bytes_per_s: f64,
    /// Of the speed that this rate allows for what is not kept, the part that the last lap had; 0 while nothing is known.
    pub share_of_bound: f64,
    /// Bytes sent out behind.
    pub behind_bytes: u64,
    /// Major faults where they were expected, and elsewhere.
    pub faults_expected: u64,
    /// Major faults that were not.
    pub faults_unexpected: u64,
    /// Major faults of as many laps as were followed, at what a lap had before it was helped, less those that were left.
    pub faults_avoided: u64,
    /// Kept bytes that the kernel took all the same.
    pub lost_bytes: u64,
    /// Faults that were not told because nobody read in time.
    pub untold: u64,
    /// Calls that the kernel refused.
    pub refused: u64,
}

impl Session {
    /// How it stands.
    pub fn standing(&self) -> Standing {
        let tally = self.tally();
        let follow = self.follow.as_ref();
        let (cursor, ahead_units) = follow.map_or((0.0, 0), Streams::cursor);
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        Standing {
            pid: self.pid,
            name: name.trim_end().to_owned(),
            mode: self.mode,
            cycle_bytes: follow.map_or(0, Streams::bytes),
            kept_bytes: follow.map_or(0, Streams::kept),
            room_bytes: follow.map_or(0, Streams::space),
            cursor,
            ahead_units,
            window_bytes: follow.map_or(0, Streams::window),
            lap_s: tally.lap as f64 / 1e9,
            lap_before_s: self.lap_before as f64 / 1e9,
            laps: tally.laps,
            ahead_bytes: self.guessed + tally.asked,
            ahead_bytes_per_s: self.bringing,
            fastest_bytes_per_s: self.fastest,
            share_of_bound: follow.map_or(0.0, |follow| share_of_bound(follow, self.fastest)),
            behind_bytes: tally.sent,
            faults_expected: tally.expected,
            faults_unexpected: tally.unexpected,
            faults_avoided: self.avoided + follow.map_or(0, |follow| self.avoids(&follow.tally())),
            lost_bytes: tally.lost,
            untold: self.untold + self.faults.as_ref().map_or(0, Faults::lost),
            refused: self.memory.refused(),
        }
    }
}

/// A lap takes at least as long as the disk needs for what is not kept.
fn share_of_bound(follow: &Streams, rate: f64) -> f64 {
    let (missing, lap) = (follow.bytes().saturating_sub(follow.kept()) as f64, follow.tally().lap as f64 / 1e9);
    if rate > 0.0 && lap > 0.0 { missing / rate / lap } else { 0.0 }
}
