//! A Redis server under load, as data: how it is started, where its files lie, what is asked of it, and what was seen of it meanwhile.

use crate::latency::Latencies;
use crate::redis_commands::{Command, CommandMix};
use crate::spikes::Spikes;
use crate::units::{Bytes, Nanos, grouped};
use crate::vectors::{Cache, Cached, Cold};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What a server keeps on a disk, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing.
    MemoryOnly,
    /// Snapshots by the default schedule, and one forced in the middle.
    Rdb,
    /// Snapshots that are ordered from outside, at equal distances.
    Checkpoint,
    /// Every write to a log, which a thread makes durable once a second.
    AofEverysec,
    /// Every write to a log that is durable before it is answered.
    AofAlways,
    /// As everysec, and the log is rewritten in the middle.
    AofRewrite,
    /// Nothing here; each write is sent to a second server that is some way off.
    Replica,
    /// Whatever a server keeps that runs already.
    AsItRuns,
}

impl Mode {
    /// All that a server can be started with, in the order of tables.
    pub const ALL: [Mode; 7] = [
        Mode::MemoryOnly,
        Mode::Rdb,
        Mode::Checkpoint,
        Mode::AofEverysec,
        Mode::AofAlways,
        Mode::AofRewrite,
        Mode::Replica,
    ];
    /// Those of the third article.
    pub const PUBLISHED: [Mode; 4] = [Mode::MemoryOnly, Mode::Rdb, Mode::AofEverysec, Mode::AofAlways];

    /// On the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Mode::MemoryOnly => "memory-only",
            Mode::Rdb => "rdb",
            Mode::Checkpoint => "checkpoint",
            Mode::AofEverysec => "aof-everysec",
            Mode::AofAlways => "aof-always",
            Mode::AofRewrite => "aof-rewrite",
            Mode::Replica => "replica",
            Mode::AsItRuns => "as-it-runs",
        }
    }

    /// The server's settings that make it, names and values of redis.conf.
    pub fn settings(self) -> &'static [(&'static str, &'static str)] {
        // Those of redis.conf as it comes (Redis 7): after an hour if one key changed, 5 min 100, 1 min 10,000.
        const SCHEDULE: (&str, &str) = ("save", "3600 1 300 100 60 10000");
        const NEVER: (&str, &str) = ("save", "");
        match self {
            Mode::MemoryOnly | Mode::Checkpoint | Mode::Replica => &[NEVER, ("appendonly", "no")],
            Mode::Rdb => &[SCHEDULE, ("appendonly", "no")],
            Mode::AofEverysec | Mode::AofRewrite => &[NEVER, ("appendonly", "yes"), ("appendfsync", "everysec")],
            Mode::AofAlways => &[NEVER, ("appendonly", "yes"), ("appendfsync", "always")],
            Mode::AsItRuns => &[],
        }
    }

    /// The command that is given in the middle of the run.
    pub fn midway(self) -> Option<&'static str> {
        match self {
            Mode::Rdb => Some("BGSAVE"),
            Mode::AofRewrite => Some("BGREWRITEAOF"),
            Mode::MemoryOnly
            | Mode::Checkpoint
            | Mode::AofEverysec
            | Mode::AofAlways
            | Mode::Replica
            | Mode::AsItRuns => None,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Mode::ALL.map(Mode::name).join(", ");
        Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| format!("{text:?} is none of {}", names()))
    }
}

/// Where a server's files lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A folder of its own in this directory.
    Directory(PathBuf),
    /// A file system (ext4) on an emulated disk, made for the run.
    Emulated {
        /// The profile's name.
        name: String,
        /// The whole profile as TOML.
        toml: String,
        /// What it holds.
        size: Bytes,
        /// What goes wrong with it under load, as `emulate --fault` takes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fault: Option<String>,
    },
    /// Wherever a server has them that runs already, and that is none of ours.
    Running {
        /// `redis://host:port/db` or `unix:///path`, without user and password.
        url: String,
        /// The same with them; it stays in this process.
        #[serde(skip)]
        secret: Secret,
        /// Keys of tiermark's own are set there, and are gone afterwards; else nothing is set, and what is there is read.
        writes: bool,
    },
}

/// What is told to nobody and written nowhere.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Medium {
    /// As it was written: the name of its rows.
    pub fn name(&self) -> String {
        match self {
            Medium::Directory(dir) => dir.display().to_string(),
            Medium::Emulated { name, fault: None, .. } => name.clone(),
            Medium::Emulated { name, fault: Some(fault), .. } => format!("{name}+{fault}"),
            Medium::Running { url, .. } => url.clone(),
        }
    }
}

/// How a server is lost in the middle of its load, to see what is gone afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lose {
    /// It is killed (SIGKILL); the machine goes on.
    Kill,
    /// The same, and its disk is without power at once.
    Power,
}

impl Lose {
    /// What happened to the server.
    pub fn happened(self) -> &'static str {
        match self {
            Lose::Kill => "killed",
            Lose::Power => "cut off from power",
        }
    }
}

/// What was gone when the server was there again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lost {
    /// How.
    pub how: Lose,
    /// When, after the first request.
    pub at: Nanos,
    /// Writes that had been acknowledged by then, each of a key of its own.
    pub of: u64,
    /// Those of them that are gone.
    pub acknowledged: u64,
    /// How long before the cut the oldest of these was acknowledged.
    #[serde(default)]
    pub oldest: Option<Nanos>,
    /// Why the server did not start again, in its last words, where it did not: then all is gone.
    #[serde(default)]
    pub did_not_start: Option<String>,
    /// The longest that the server's log took to be made durable by its thread for that, up to the cut.
    #[serde(default)]
    pub longest_fsync: Option<Nanos>,
}

/// How clients reach it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// TCP on loopback.
    #[default]
    Tcp,
    /// A Unix socket.
    Unix,
}

/// A server and what its clients are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its program; nothing where it runs already.
    pub program: PathBuf,
    /// What it keeps.
    pub mode: Mode,
    /// Where.
    pub medium: Medium,
    /// Settings of redis.conf beside those of the mode.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// How it is reached.
    #[serde(default)]
    pub link: Link,
    /// Clients, over all threads.
    pub connections: u32,
    /// Requests on the way on each.
    pub pipeline: u32,
    /// Different keys, all set before the measurement.
    pub keys: u64,
    /// A key is gone so long after it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Nanos>,
    /// A file that is made, with a line for each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// It is lost in the middle of the load, which then sets each key once, and no key is set before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lose: Option<Lose>,
    /// What is asked, where it is more than GETs and SETs.
    #[serde(default, skip_serializing_if = "CommandMix::is_empty")]
    pub commands: CommandMix,
    /// How far off its replica is, each way, where its mode has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Nanos>,
    /// Between two snapshots, where its mode is that they are ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Nanos>,
    /// It is a cache of vectors, and its clients ask as those of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Box<Cache>>,
}

impl Server {
    /// What clients must say before they may ask for anything.
    pub fn password(&self) -> Option<&str> {
        self.settings.get("requirepass").map(String::as_str).filter(|password| !password.is_empty())
    }

    /// Where its files lie, or all of which it is a cache.
    pub fn place(&self) -> String {
        match self.cache.as_ref().map(|cache| cache.cold) {
            Some(Cold::Remote(delay)) => format!("a server {delay} away"),
            _ => self.medium.name(),
        }
    }

    /// In a few words.
    pub fn describe(&self) -> String {
        if let Some(cache) = &self.cache {
            let (hot, all) = (grouped(cache.hot as i64), grouped(cache.source.count() as i64));
            return format!("redis as a cache of {hot} of {all} vectors ({}), all on {}", cache.format, self.place());
        }
        if let Medium::Running { url, writes, .. } = &self.medium {
            let keys = if *writes { "keys of its own" } else { "the keys that are there" };
            return format!("the server at {url}, {keys}");
        }
        let lost = self.lose.map_or_else(String::new, |lose| format!(", {}", lose.happened()));
        format!("redis {} on {}{lost}", self.mode, self.medium.name())
    }
}

/// What was seen of a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Served {
    /// What it is and keeps.
    pub mode: Option<Mode>,
    /// Name of where its files lay.
    pub medium: String,
    /// Length of the values.
    pub payload: Bytes,
    /// What it says that it is: `redis 7.0.15`.
    pub version: String,
    /// Keys that were set before.
    pub keys: u64,
    /// The most that it had in RAM.
    pub peak: Bytes,
    /// CPU time of its main thread while it was measured.
    pub main_cpu: Option<Nanos>,
    /// CPU time of all of it, its children among them.
    pub cpu: Option<Nanos>,
    /// Forks while it was measured, and how long the last one took.
    pub forks: u64,
    /// As it says (`latest_fork_usec`).
    pub last_fork: Option<Nanos>,
    /// How often a write waited for the sync of the one before (`aof_delayed_fsync`).
    pub delayed_fsyncs: u64,
    /// Memory that was copied because a child still held it, at most (`rdb_last_cow_size`, `aof_last_cow_size`).
    pub copied: Bytes,
    /// GETs that found their key, and those that did not.
    pub hits: u64,
    /// The latter.
    pub misses: u64,
    /// What its disk was told to write meanwhile, until what it held back was written too.
    pub written: Option<Bytes>,
    /// What was written on purpose: the values that were set.
    pub logical: Bytes,
    /// How long after the moment that was meant requests were sent, where each was kept.
    pub lag: Option<Latencies>,
    /// The slowest requests, and what the server met meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spikes: Option<Box<Spikes>>,
    /// What was gone after the server was lost, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Each command of a mix by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<(Command, Latencies)>,
    /// Requests a second that the same clients made of a server that does nothing, where that was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_limit: Option<f64>,
    /// How far off its replica was, each way, where it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<Nanos>,
    /// What was seen of it as a cache of vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<Box<Cached>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_its_name() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
        }
        assert!("as-it-runs".parse::<Mode>().is_err(), "no server is started so");
        assert!("fsync".parse::<Mode>().unwrap_err().contains("memory-only, rdb"));
    }

    #[test]
    fn a_password_stays_here() {
        let (url, secret) = ("redis://host".to_owned(), Secret("redis://:hush@host".to_owned()));
        let medium = Medium::Running { url, secret, writes: false };
        let (json, debug) = (serde_json::to_string(&medium).unwrap(), format!("{medium:?}"));
        assert!(!json.contains("hush") && !debug.contains("hush"), "{json} {debug}");
        assert_eq!(serde_json::from_str::<Medium>(&json).unwrap().name(), "redis://host");
    }
}
