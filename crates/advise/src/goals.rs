//! What the machine is for, and what its user wants of it.

use basics::redis::Mode;
use basics::units::MIB;
use basics::{Bytes, Nanos};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What a machine is for. The last three are the third article's patterns of Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Nobody said.
    Any,
    /// A person sits before it.
    Desktop,
    /// A language model runs on it.
    Llm,
    /// Files and services, nobody before it.
    Server,
    /// It compiles.
    Build,
    /// Answers that can be computed again: fast, small, gone after a while.
    RedisCache,
    /// Sessions and features that must still be there after a power cut.
    RedisStore,
    /// Embeddings, more of them than fit into memory.
    RedisVectors,
}

impl Job {
    /// All, in the order of help texts.
    pub const ALL: [Job; 8] = [
        Job::Any,
        Job::Desktop,
        Job::Llm,
        Job::Server,
        Job::Build,
        Job::RedisCache,
        Job::RedisStore,
        Job::RedisVectors,
    ];
    /// Those with a Redis server.
    pub const REDIS: [Job; 3] = [Job::RedisCache, Job::RedisStore, Job::RedisVectors];
    /// Those without.
    pub const GENERAL: [Job; 5] = [Job::Any, Job::Desktop, Job::Llm, Job::Server, Job::Build];

    /// Whether a Redis server does it.
    pub fn is_redis(self) -> bool {
        Job::REDIS.contains(&self)
    }

    /// On the command line.
    pub fn name(self) -> &'static str {
        match self {
            Job::Any => "any",
            Job::Desktop => "desktop",
            Job::Llm => "llm",
            Job::Server => "server",
            Job::Build => "build",
            Job::RedisCache => "redis-cache",
            Job::RedisStore => "redis-store",
            Job::RedisVectors => "redis-vectors",
        }
    }

    /// Acknowledged writes of the last so long that may be gone, when nobody says: none where they may all be.
    fn loss(self) -> Option<Nanos> {
        // What `everysec` promises: the thread's second, and the second for which a write waits for it.
        (self == Job::RedisStore).then(|| Nanos::from_millis(2000))
    }

    /// Length of a value, when nobody says: the article's.
    fn payload(self) -> Bytes {
        match self {
            Job::RedisCache => Bytes(64),
            _ => Bytes(512),
        }
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Job {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Job::ALL.map(Job::name).join(", ");
        Job::ALL.into_iter().find(|job| job.name() == text).ok_or_else(|| format!("{text:?} is none of {}", names()))
    }
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Goals {
    /// Of what.
    pub job: Job,
    /// 19 of 20 requests are to be answered within it.
    pub p95: Option<Nanos>,
    /// Acknowledged writes of the last so long may be gone after a power cut; none: all may.
    pub loss: Option<Nanos>,
    /// What the server may take in all.
    pub memory: Option<Bytes>,
    /// Length of a value.
    pub payload: Bytes,
    /// Where its files lie, as it was typed: a directory, or a profile's name.
    pub on: Option<String>,
    /// The same as a full path without links, where it is one.
    pub dir: Option<PathBuf>,
}

impl Goals {
    /// Those of a job when nobody says more.
    pub fn of(job: Job) -> Goals {
        // The article's first pattern: p95 below 10 ms.
        let p95 = job.is_redis().then(|| Nanos::from_millis(10));
        Goals { job, p95, loss: job.loss(), memory: None, payload: job.payload(), on: None, dir: None }
    }

    /// In words.
    pub fn in_words(&self) -> String {
        match self.job {
            Job::Any => return "what helps whatever it is for; --for says more".to_owned(),
            Job::Desktop => return "nothing freezes, nothing waits long".to_owned(),
            Job::Llm => return "as many tokens a second as memory and disks allow".to_owned(),
            Job::Server => return "even service, nothing lost, long-lived media".to_owned(),
            Job::Build => return "all processors busy all the time".to_owned(),
            _ => {}
        }
        let p95 = self.p95.map(|p95| format!("p95 below {p95}"));
        let loss = match self.loss {
            None => "all may be lost".to_owned(),
            Some(Nanos(0)) => "no acknowledged write lost".to_owned(),
            Some(loss) => format!("at most the last {loss} lost"),
        };
        let memory = self.memory.map(|memory| format!("{memory} of memory"));
        let on = self.on.as_ref().map(|on| format!("files on {on}"));
        let said: Vec<String> = [p95, Some(loss), memory, on].into_iter().flatten().collect();
        format!("values of {}, {}", self.payload, said.join(", "))
    }
}

/// What a mode may lose on a disk that keeps its word, at worst; none: all.
///
/// Redis's documentation of persistence: everysec loses a second, and up to two when the disk is busy (the log is written
/// although a sync is pending once it has waited for 2 s, `AOF_WRITE_LOG_ERROR_RATE` and `aof_flush_postponed_start` in
/// aof.c); a snapshot is made after 60 s at the earliest by the default schedule, and after an hour where one key changed.
pub(crate) fn worst_loss(mode: Mode) -> Option<Nanos> {
    match mode {
        // What is on its way to a replica has no bound, and of a server that was found nothing is promised.
        Mode::MemoryOnly | Mode::Replica | Mode::AsItRuns => None,
        Mode::Rdb | Mode::Checkpoint => Some(Nanos::from_millis(3_600_000)),
        Mode::AofEverysec | Mode::AofRewrite => Some(Nanos::from_millis(2000)),
        Mode::AofAlways => Some(Nanos(0)),
    }
}

/// As redis.conf writes a size.
pub(crate) fn redis_size(bytes: Bytes) -> String {
    format!("{}mb", bytes.0 / MIB)
}
