//! What a job gives: operations by direction, whole and by interval, and which engine really ran. Made by the engine
//! (or by a device model in virtual time), kept by the record, read by `study`.

use crate::job::Engine;
use crate::latency::Latencies;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// One direction of an interval or of a whole step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Side {
    /// Bytes moved.
    pub bytes: u64,
    /// From submission (closed loop) or from the intended time (open loop) to completion.
    pub latency: Latencies,
    /// Operations beyond those that `latency` counts: what is too short for a clock, a load of RAM, is timed in batches,
    /// and each latency then is the mean of a batch.
    pub untimed: u64,
    /// Open loop only: from submission to completion.
    pub service: Option<Latencies>,
}

impl Side {
    /// Operations completed.
    pub fn operations(&self) -> u64 {
        self.latency.count() + self.untimed
    }
    /// Whether each latency is that of one operation. Means of batches have a mean, but no percentiles of operations.
    pub fn is_each_timed(&self) -> bool {
        self.untimed == 0
    }
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Side) {
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        self.untimed += other.untimed;
        if let Some(service) = &other.service {
            self.service.get_or_insert_with(Latencies::new).merge(service);
        }
    }
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes = 0;
        self.latency.clear();
        self.untimed = 0;
        if let Some(service) = &mut self.service {
            service.clear();
        }
    }
}

/// One interval of a series, all threads together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interval {
    /// Since the measurement began.
    pub start: Nanos,
    /// Since the measurement began.
    pub end: Nanos,
    /// Reads.
    pub read: Side,
    /// Writes.
    pub write: Side,
    /// Offset of the last operation of the first thread, for the curve over the position.
    pub position: u64,
}

impl Interval {
    /// Takes in the interval that follows this one, without taking more memory for it than it needs.
    pub fn join(&mut self, next: &Interval) {
        self.end = next.end;
        self.position = next.position;
        self.read.merge(&next.read);
        self.write.merge(&next.write);
        for side in [&mut self.read, &mut self.write] {
            side.latency.pack();
            side.service.iter_mut().for_each(Latencies::pack);
        }
    }
}

/// Which engine ran and what was left out of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUse {
    /// What the job asked for.
    pub asked: Engine,
    /// What did the work (never `Auto`).
    pub used: Engine,
    /// Why, when it was chosen by a probe or fell back; else empty.
    pub why: String,
    /// Features that the kernel, the file system or the rights refused, each with the reason.
    pub dropped: Vec<(String, String)>,
}
