//! The slowest requests to a server, and what its main thread did meanwhile, as facts: whether one is the cause of the other is for
//! whoever reads them. All times are since the measurement began.

use crate::outcome::Slow;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Why a server's main thread did not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// It forked: its page tables were copied.
    Fork,
    /// It waited for a sync of its own.
    OwnSync,
    /// It waited for the file system while another of its threads synced.
    PendingSync,
    /// It waited for a disk otherwise: a page that had to be read, a journal that was full.
    Disk,
    /// Its own child, which saves or rewrites, had the processor.
    Child,
    /// Another program had the processor.
    Processor,
    /// The load's own threads had the processor, an emulated disk's, or of those of the load the server: all are on the same machine.
    Load,
    /// It was stopped by a signal.
    Stopped,
    /// It was at a command that takes long.
    Command,
    /// The hypervisor had the processor.
    Steal,
}

impl Cause {
    /// All, in the order of tables.
    pub const ALL: [Cause; 10] = [
        Cause::Fork,
        Cause::OwnSync,
        Cause::PendingSync,
        Cause::Disk,
        Cause::Child,
        Cause::Command,
        Cause::Stopped,
        Cause::Processor,
        Cause::Load,
        Cause::Steal,
    ];

    /// In records and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Fork => "fork",
            Cause::OwnSync => "own-sync",
            Cause::PendingSync => "pending-sync",
            Cause::Disk => "disk",
            Cause::Child => "child",
            Cause::Processor => "processor",
            Cause::Load => "load",
            Cause::Stopped => "stopped",
            Cause::Command => "command",
            Cause::Steal => "steal",
        }
    }
}

/// A time in which it, or a thread of the load, did not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Of the load: which thread. None of the server's main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// Why.
    pub cause: Cause,
    /// From then.
    pub from: Nanos,
    /// To then.
    pub until: Nanos,
    /// When it first had nothing to do after it; none where it never had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Nanos>,
    /// Who or what, where that is known: the program that had the processor.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
}

/// A command that took long (`SLOWLOG`): the server tells the second in which it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongCommand {
    /// Seconds since 1970.
    pub second: u64,
    /// How long it took.
    pub took: Nanos,
    /// Its words, shortened.
    pub text: String,
}

/// What was seen of the slowest requests of a visit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spikes {
    /// Those beyond the percentile of [`Spikes::beyond`], or as many as were kept.
    pub slowest: Vec<Slow>,
    /// The highest of 99.9, 99, 95 and 90 that ten requests lie beyond; none in older records, which have 99.9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<f64>,
    /// What the main thread and those of the load met, the longest of it.
    pub stalls: Vec<Stall>,
    /// Commands of all clients.
    pub commands: Vec<LongCommand>,
    /// When the measurement began, ns since 1970.
    pub began_unix: u64,
    /// What could not be looked at, each a sentence.
    pub lacks: Vec<String>,
    /// Events that were not told, because nobody had time to hear them.
    pub lost: u64,
}
