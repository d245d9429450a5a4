//! Memory under pressure, as data: how much of it is taken away, what the rest may be swapped to, and what was seen of
//! both. A plan states the first two, a record keeps the third.

use crate::curve::Watched;
use crate::decoding::{Decoding, Generated, Serving};
use crate::desktop::{Browsed, Browsing, Building, Built};
use crate::latency::Latencies;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A process of its own whose memory is short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressed {
    /// What it uses, in all.
    pub size: Bytes,
    /// What is taken away.
    pub pressure: Pressure,
    /// Where its pages go.
    pub swap: Swap,
    /// What it does with its memory.
    #[serde(default)]
    pub work: Work,
    /// It is watched for its memory curve meanwhile, for these limits, or for some of our choice where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<Vec<Bytes>>,
    /// The pager keeps its next pages ahead of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pager: bool,
}

/// What a process under pressure does with its memory.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Its pages are touched as the job says.
    #[default]
    Touch,
    /// They are the weights of a model that makes tokens.
    Decode(Box<Decoding>),
    /// A program that runs language models has one of them make tokens.
    Serve(Box<Serving>),
    /// A browser opens pages and goes from one to the other.
    Browse(Box<Browsing>),
    /// A compiler compiles.
    Build(Box<Building>),
}

/// Memory taken away on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pressure {
    /// The most that the process may have: the limit of a memory cgroup made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// Ballast: so much is locked in RAM by another process, in the same cgroup where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Bytes>,
    /// The run ends once everything that wants to run has waited for memory for so many per cent of ten seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<u8>,
}

impl Pressure {
    /// In the words of a plan.
    pub fn describe(&self) -> String {
        match (self.memory, self.lock) {
            (None, None) => "no pressure".to_owned(),
            (Some(memory), None) => format!("at most {memory} of RAM"),
            (None, Some(lock)) => format!("{lock} locked away"),
            (Some(memory), Some(lock)) => format!("at most {memory} of RAM, {lock} of it locked away"),
        }
    }
    /// What is left for the process, where that is known.
    pub fn left(&self) -> Option<Bytes> {
        self.memory.map(|memory| Bytes(memory.0.saturating_sub(self.lock.map_or(0, |lock| lock.0))))
    }
}

/// What memory is swapped to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Swap {
    /// Areas of equal priority, above those that the machine has; none: the process may not swap at all.
    pub areas: Vec<Area>,
    /// A compressed cache in RAM in front of them; none: it is off meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zswap: Option<Zswap>,
    /// `vm.page-cluster`: 2 to the power of this many pages are read at a time; as it is when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cluster: Option<u32>,
    /// `vm.swappiness`, or the cgroup's own; as it is when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swappiness: Option<u8>,
}

/// One swap area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// A file made for the run in a directory, and removed.
    File {
        /// The directory.
        dir: PathBuf,
        /// Its length.
        size: Bytes,
    },
    /// All areas that this machine has, as they stand.
    Own,
    /// A block device or partition that is given for this.
    Device {
        /// Its node.
        path: PathBuf,
        /// What the user gave to `--destroy`, if anything: what holds no swap area yet is made one only with it.
        destroy: Option<String>,
    },
    /// An emulated disk, started for the run and stopped.
    Emulated {
        /// The profile's name.
        name: String,
        /// The whole profile as TOML.
        toml: String,
        /// What it holds.
        size: Bytes,
        /// A file system beside the swap area, for what the process keeps in files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        files: Option<Files>,
    },
    /// Compressed memory, added for the run and removed.
    Zram {
        /// One of the kernel's; its own choice when not given.
        algorithm: Option<String>,
        /// What it holds, before compression.
        size: Bytes,
        /// A disk behind it, to which goes what does not compress and what lay idle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        behind: Option<Box<Area>>,
    },
}

/// A file system on the same disk as a swap area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// `ext4`, `btrfs`.
    pub fs: String,
    /// Options of the mount that are the file system's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<String>,
    /// Its size.
    pub size: Bytes,
}

impl Area {
    /// In a few words.
    pub fn describe(&self) -> String {
        match self {
            Area::File { dir, .. } => format!("a file in {}", dir.display()),
            Area::Device { path, .. } => path.display().to_string(),
            Area::Emulated { name, files: None, .. } => format!("emulated {name}"),
            Area::Emulated { name, files: Some(files), .. } => {
                let options = files.options.as_ref().map(|options| format!(" ({options})")).unwrap_or_default();
                format!("emulated {name} with {}{options}", files.fs)
            }
            Area::Zram { algorithm, behind, .. } => {
                let with = algorithm.as_ref().map(|algorithm| format!(" {algorithm}")).unwrap_or_default();
                let behind = behind.as_ref().map(|area| format!(" before {}", area.describe())).unwrap_or_default();
                format!("zram{with}{behind}")
            }
            Area::Own => "this machine's own swap".to_owned(),
        }
    }
    /// What it holds, where the plan says so.
    pub fn size(&self) -> Option<Bytes> {
        match self {
            Area::File { size, .. } | Area::Emulated { size, .. } | Area::Zram { size, .. } => Some(*size),
            Area::Device { .. } | Area::Own => None,
        }
    }
}

/// A compressed cache in RAM in front of swap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Zswap {
    /// One of the kernel's; as it is when not given.
    pub compressor: Option<String>,
    /// The share of RAM that it may take, in per cent; as it is when not given.
    pub max_pool_percent: Option<u8>,
}

impl Swap {
    /// In the words of a plan.
    pub fn describe(&self) -> String {
        let areas = self.areas.iter().map(Area::describe).collect::<Vec<_>>().join(" and ");
        match (&self.zswap, areas.as_str()) {
            (_, "") => "no swap".to_owned(),
            (None, areas) => format!("swap on {areas}"),
            (Some(_), areas) => format!("zswap over {areas}"),
        }
    }
}

/// What was seen of a process under pressure and of what it was swapped to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// The touches that met a major fault (a page that had to be read from somewhere), by what they took.
    pub faults: Latencies,
    /// How much of its memory was taken and filled before the measurement, and how long that took.
    pub filled: Option<(Bytes, Nanos)>,
    /// What it was swapped to.
    pub areas: Vec<AreaSeen>,
    /// The kernel's settings meanwhile, by path below `/proc/sys` or `/sys`.
    pub settings: BTreeMap<String, String>,
    /// What was left for the process of the limit that held it, where one did.
    pub left: Option<Bytes>,
    /// The cgroup that held it, where one did.
    pub cgroup: Option<String>,
    /// The most that the cgroup had.
    pub peak: Option<Bytes>,
    /// What the kernel killed for want of memory.
    pub oom_kills: Option<u64>,
    /// Length of a page.
    pub page: Bytes,
    /// Of a language model: the tokens that it made.
    pub generated: Option<Box<Generated>>,
    /// Its memory curve, where that was asked for.
    pub watched: Option<Box<Watched>>,
    /// What the pager did for it, where it was asked to.
    pub paged: Option<Box<Paged>>,
    /// Of a Redis server.
    pub redis: Option<Box<crate::redis::Served>>,
    /// Of a browser.
    pub browsed: Option<Box<Browsed>>,
    /// Of a compilation.
    pub built: Option<Box<Built>>,
}

/// What the pager did, at its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Paged {
    /// What the process goes through in a lap, and what of it was meant to stay.
    pub cycle: Bytes,
    /// The kept part.
    pub kept: Bytes,
    /// Laps that were followed, and what the last one took.
    pub laps: u64,
    /// The last lap.
    pub lap: Nanos,
    /// The lap before it was helped.
    pub lap_before: Nanos,
    /// Brought in ahead.
    pub ahead: Bytes,
    /// The pager's own CPU time.
    pub cpu: Nanos,
    /// Why it could not, where it could not.
    pub trouble: Option<String>,
}

/// A swap area as it was seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AreaSeen {
    /// Its device or file.
    pub path: String,
    /// In a few words, as the plan has it.
    pub what: String,
    /// The name of its disk in `/proc/diskstats`.
    pub disk: Option<String>,
    /// What it holds.
    pub size: Bytes,
    /// Whether the kernel takes it for a turning disk: one such area ends swap readahead by address everywhere.
    pub rotational: Option<bool>,
    /// What plain sequential reading gave before it was used: bytes, and the time they took.
    pub sequential: Option<(Bytes, Nanos)>,
    /// In use at the end of the measurement.
    pub used: Option<Bytes>,
    /// zram only: compressed with what, and bytes before, after, and taken from RAM.
    pub compressed: Option<Compressed>,
}

/// What compression made of pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Compressed {
    /// With what.
    pub algorithm: String,
    /// Bytes before.
    pub original: Bytes,
    /// Bytes after.
    pub compressed: Bytes,
    /// RAM that it takes, the allocator's own included.
    pub memory: Bytes,
    /// What lies on the disk behind it, and what was read from there and written to it; none where there is no such disk.
    pub behind: Option<[Bytes; 3]>,
}
