//! What was looked at of a Redis server that serves somebody, as facts: what it makes of a workload is for whoever reads them.

use crate::units::{Bytes, Nanos};

/// A server that runs, as it was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Looked {
    /// What it says that it is: `redis 7.0.15`.
    pub version: String,
    /// Keys in the database that was looked at.
    pub keys: u64,
    /// What its data take (`used_memory`).
    pub memory: Bytes,
    /// Calls of each command, by its name in lower case: since it started, and while it was looked at.
    pub commands: Vec<(String, u64, u64)>,
    /// How long it was looked at.
    pub time: Nanos,
    /// Keys that went because their time was over: since it started, and while it was looked at.
    pub expired: (u64, u64),
    /// Keys that went for want of room, since it started.
    pub evicted: u64,
    /// Reads that found their key, and those that did not, since it started.
    pub hits: (u64, u64),
    /// Some of its keys.
    pub sample: Vec<LookedKey>,
    /// Bytes of values, and what they were compressed to; nothing where none was read.
    pub compressed: Option<(Bytes, Bytes)>,
    /// How often each key was used while every command was listened to, in any order; empty where nobody listened.
    pub uses: Vec<u64>,
    /// What could not be looked at, each a sentence.
    pub lacks: Vec<String>,
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LookedKey {
    /// `string`, `hash`, ….
    pub kind: String,
    /// Length of a string.
    pub length: Option<Bytes>,
    /// How long it will still be there; none where it stays.
    pub left: Option<Nanos>,
}
