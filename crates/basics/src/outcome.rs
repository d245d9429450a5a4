//! What a job gives: operations by direction, whole and by interval, and which engine really ran. Made by the engine
//! (or by a device model in virtual time), kept by the record, read by `study`.

use crate::job::Engine;
use crate::latency::Latencies;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// One direction of an interval or of a whole step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

/// One operation, kept by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Each {
    /// Where it began.
    pub offset: Bytes,
    /// How long it was.
    pub len: Bytes,
    /// A read, or a write.
    pub read: bool,
    /// When it was sent, or at a rate when it was meant to be, since the measurement began.
    pub at: Nanos,
    /// From then to completion.
    pub latency: Nanos,
    /// At a rate: how long after that it was sent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub waited: Nanos,
}

/// One of the slowest requests of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slow {
    /// Which thread sent it.
    pub thread: u32,
    /// A read, or a write.
    pub read: bool,
    /// When it was sent, or at a rate when it was meant to be, since the measurement began.
    pub at: Nanos,
    /// At a rate: how long after that it was sent.
    pub waited: Nanos,
    /// From `at` to its answer.
    pub latency: Nanos,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(time: &Nanos) -> bool {
    time.0 == 0
}

/// One interval of a series, all threads together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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

/// What kind of failure ended a step, told by whoever saw the error number; the sentence about it stands beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailKind {
    /// The disk, the quota or the memory is full.
    NoRoom,
    /// This user may not.
    NoPermission,
    /// Mounted read-only, or write protected.
    ReadOnly,
    /// The device or the path is not there (any more).
    Gone,
    /// The device reports an error.
    Io,
    /// What was read is not what was written there.
    Astray {
        /// The first sector of which that is so.
        at: Bytes,
        /// For where its content was written, if it says so: the device keeps both places in one.
        holds: Option<Bytes>,
    },
    /// Anything else.
    Other,
}

impl FailKind {
    /// The kind of an error of the system.
    pub fn of(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Is;
        match error.kind() {
            Is::StorageFull | Is::QuotaExceeded | Is::FileTooLarge | Is::OutOfMemory => FailKind::NoRoom,
            Is::PermissionDenied => FailKind::NoPermission,
            Is::ReadOnlyFilesystem => FailKind::ReadOnly,
            Is::NotFound | Is::NotADirectory => FailKind::Gone,
            // The numbers are those of every Linux architecture: EIO; ENXIO, ENODEV, ENOMEDIUM.
            _ => match error.raw_os_error() {
                Some(5) => FailKind::Io,
                Some(6 | 19 | 123) => FailKind::Gone,
                _ => FailKind::Other,
            },
        }
    }
    /// In the word or two that fit a table's cell.
    pub fn word(self) -> &'static str {
        match self {
            FailKind::NoRoom => "no room",
            FailKind::NoPermission => "root only",
            FailKind::ReadOnly => "read-only",
            FailKind::Gone => "gone",
            FailKind::Io => "I/O error",
            FailKind::Astray { .. } => "wrong data",
            FailKind::Other => "failed",
        }
    }
}

/// Why a planned step was not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRun {
    /// An earlier step on the same target failed.
    TargetFailed,
    /// The run was interrupted before.
    Interrupted,
    /// The run ended before, by a step that had to succeed.
    RunFailed,
    /// Enough was known: the rounds before it held still.
    Enough,
}

impl NotRun {
    /// In the word or two that fit a table's cell.
    pub fn word(self) -> &'static str {
        match self {
            NotRun::TargetFailed => "target failed",
            NotRun::Interrupted => "interrupted",
            NotRun::RunFailed => "run failed",
            NotRun::Enough => "not needed",
        }
    }
}

impl std::fmt::Display for NotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NotRun::TargetFailed => "an earlier step on the same target failed",
            NotRun::Interrupted => "the run was interrupted before",
            NotRun::RunFailed => "the run ended before, by a step that failed",
            NotRun::Enough => "what it would have shown was known by then",
        })
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

impl EngineUse {
    /// The name under which opening past the page cache is dropped.
    pub const DIRECT: &str = "O_DIRECT";
    /// The name under which writes past the page cache are dropped that the file system took through it after all.
    pub const DIRECT_WRITES: &str = "direct writes";
    /// The name under which buffers in huge pages are dropped.
    pub const HUGE_PAGES: &str = "huge pages";

    /// Why the bytes went through the page cache although the job asked for the way past it.
    pub fn direct_refused(&self) -> Option<&str> {
        self.without(Self::DIRECT)
    }

    /// Why the file was open for the way past the page cache, and what was written to it went through the cache.
    pub fn direct_writes_refused(&self) -> Option<&str> {
        self.without(Self::DIRECT_WRITES)
    }

    /// Why buffers lie in usual pages although the job asked for huge ones.
    pub fn huge_pages_refused(&self) -> Option<&str> {
        self.without(Self::HUGE_PAGES)
    }

    fn without(&self, feature: &str) -> Option<&str> {
        self.dropped.iter().find(|(dropped, _)| dropped == feature).map(|(_, why)| why.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_number_is_of_a_kind() {
        let kind = |errno| FailKind::of(&std::io::Error::from_raw_os_error(errno)).word();
        let errors = [28, 122, 1, 13, 30, 2, 19, 5, 22].map(kind);
        let words =
            ["no room", "no room", "root only", "root only", "read-only", "gone", "gone", "I/O error", "failed"];
        assert_eq!(errors, words);
    }
}

/// Between what a direction's figures lie if a profile is as uncertain as it says.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Operations a second, from and to.
    pub iops: (f64, f64),
    /// Mean latency in µs, from and to.
    pub lat_mean_us: (f64, f64),
}

/// What a fitted profile says of a step, over the whole of its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Predicted {
    /// Reads, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Expected>,
    /// Writes, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Expected>,
}
