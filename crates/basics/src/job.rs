//! A job: one steady I/O pattern, as data. It says what is asked; what really ran (engine, dropped features, reached
//! depth) stands in the record. Defaults are those of [`Job::default`], stated beside each field.

use crate::units::{Bytes, MIB, Nanos, significant};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Reads, writes, or a mix of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Only reads.
    Read,
    /// Only writes.
    Write,
    /// Each operation is a read with this probability in per cent (0 to 100), else a write.
    Mixed {
        /// Share of reads in per cent.
        read_percent: u8,
    },
}

impl Direction {
    /// True when some operations read.
    pub fn reads(self) -> bool {
        !matches!(self, Direction::Write | Direction::Mixed { read_percent: 0 })
    }
    /// True when some operations write.
    pub fn writes(self) -> bool {
        !matches!(self, Direction::Read | Direction::Mixed { read_percent: 100.. })
    }
}

/// In which order the blocks of a region are visited.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// From the region's start to its end, and again.
    Sequential,
    /// Each block exactly once a pass, in a seeded permutation (no bitmap; three keyed rounds).
    Permuted,
    /// So many places at equal distances over the region, in rising order, each at a multiple of `align`.
    Strided {
        /// How many.
        places: u32,
        /// Offsets are multiples of this.
        align: Bytes,
    },
    /// Each operation picks a block independently with equal chances; blocks may repeat.
    Uniform,
    /// As `Uniform` with a Zipf law of this exponent (above 0), the favourites scattered over the region.
    Zipf {
        /// Exponent; 1.2 is a common choice.
        theta: f64,
    },
}

/// How long one operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Block {
    /// All the same.
    Fixed(Bytes),
    /// Each operation picks a size by its weight; offsets are multiples of the smallest. Of a key-value server they count keys, whatever
    /// the length of a value.
    Split(Vec<(Bytes, u32)>),
}

impl Block {
    /// The longest operation; buffers are made for it.
    pub fn largest(&self) -> Bytes {
        match self {
            Block::Fixed(size) => *size,
            Block::Split(parts) => parts.iter().map(|(size, _)| *size).max().unwrap_or_default(),
        }
    }
    /// The shortest operation; offsets are its multiples.
    pub fn smallest(&self) -> Bytes {
        match self {
            Block::Fixed(size) => *size,
            Block::Split(parts) => parts.iter().map(|(size, _)| *size).min().unwrap_or_default(),
        }
    }
    /// The mean, by weight.
    pub fn mean(&self) -> Bytes {
        match self {
            Block::Fixed(size) => *size,
            Block::Split(parts) => {
                let sum: u128 = parts.iter().map(|(size, weight)| u128::from(size.0) * u128::from(*weight)).sum();
                let weights: u128 = parts.iter().map(|(_, weight)| u128::from(*weight)).sum();
                Bytes((sum / weights.max(1)) as u64)
            }
        }
    }
}

impl fmt::Display for Block {
    /// `4 KiB`; of several each with its share: `64 B 70 %, 512 B 30 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Block::Fixed(size) => write!(f, "{size}"),
            Block::Split(parts) => {
                let all: u64 = parts.iter().map(|(_, weight)| u64::from(*weight)).sum();
                let share = |weight: u32| significant(100.0 * f64::from(weight) / all.max(1) as f64);
                let each = parts.iter().map(|(size, weight)| format!("{size} {} %", share(*weight)));
                f.write_str(&each.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// What makes a write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sync {
    /// Nothing.
    None,
    /// Every write is opened `O_DSYNC`.
    Dsync,
    /// Every write is opened `O_SYNC`.
    OSync,
    /// `fsync` after every `every` writes of a thread; its time is counted into the last of them.
    Fsync {
        /// Writes between two.
        every: u32,
    },
    /// As `Fsync`, with `fdatasync`.
    Fdatasync {
        /// Writes between two.
        every: u32,
    },
}

/// When an operation is due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Closed loop: the next as soon as one is done.
    Closed,
    /// Open loop at a fixed interval, over all threads.
    Fixed {
        /// Operations a second.
        iops: f64,
    },
    /// Open loop with exponential gaps, over all threads.
    Poisson {
        /// Operations a second, on average.
        iops: f64,
    },
}

/// What the written bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entropy {
    /// All zero: flatters compression, zram and thin provisioning.
    Zeros,
    /// Half of each 4 KiB random, half constant: compresses about 2:1.
    Compressible,
    /// Random; nothing compresses or repeats.
    Incompressible,
    /// Random, but the same 4 KiB block over and over: deduplicates.
    Deduplicable,
    /// Eight random bytes at the start of each 4 KiB, the rest zeros: what iozone writes unless told otherwise. Nearly as
    /// compressible as zeros.
    Stamps,
    /// Each sector of 512 B says where it was written, under the job's seed. Reads of such a job are held against that: it
    /// ends at the first sector that says something else.
    Tagged,
}

/// What is read, untimed, before each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lead {
    /// A page where the operation begins, so that it does not pay for the way there.
    Page(Bytes),
    /// The page, then all that the operation is going to write: it writes what is there, and no byte changes.
    Same(Bytes),
}

/// The figure whose confidence interval a stop rule watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations a second over all directions.
    Iops,
    /// Mean latency over all directions.
    MeanLatency,
}

/// Stop once the figure is known well enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Which figure.
    pub figure: Figure,
    /// Half width of its 95 % confidence interval in per cent of the figure.
    pub percent: f64,
    /// Not before this much measured time.
    pub at_least: Nanos,
}

/// When a job ends: at whichever comes first. One of `time`, `bytes`, `operations` must be set, so that it does end.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Stop {
    /// Measured time, warm-up not included.
    pub time: Option<Nanos>,
    /// Bytes moved by all threads.
    pub bytes: Option<Bytes>,
    /// Operations of all threads.
    pub operations: Option<u64>,
    /// Known well enough.
    pub until: Option<Until>,
}

/// Which way the operations take into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// What a short probe of the target finds right.
    Auto,
    /// `preadv2` and `pwritev2`, one at a time for each thread.
    Psync,
    /// A ring for each thread.
    IoUring,
    /// Touching the pages of a shared mapping.
    Mmap,
    /// RAM: bandwidth when sequential, dependent loads when random.
    Memory,
    /// Each page of memory touched by itself, major faults apart; of what may not fit into RAM.
    Touch,
    /// The weights of a language model multiplied, one operation a token.
    Decode,
    /// Another program's work, one operation a token: a real language model.
    Served,
    /// A browser's: one operation a tab gone to.
    Browsed,
    /// A compiler's: one operation a file compiled.
    Built,
    /// GET and SET of a key-value server, over connections of our own.
    Resp,
    /// No operation was real: a device model in virtual time. Only what ran can be this, not what is asked for.
    Virtual,
}

impl Engine {
    /// True where the operations are not those of a file or a disk but of a program at work.
    pub fn is_workload(self) -> bool {
        matches!(self, Engine::Touch | Engine::Decode | Engine::Served | Engine::Browsed | Engine::Built | Engine::Resp)
    }
    /// The name in records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Psync => "psync",
            Engine::IoUring => "io_uring",
            Engine::Mmap => "mmap",
            Engine::Memory => "memory",
            Engine::Touch => "touch",
            Engine::Decode => "decode",
            Engine::Served => "served",
            Engine::Browsed => "browsed",
            Engine::Built => "built",
            Engine::Resp => "resp",
            Engine::Virtual => "virtual",
        }
    }
}

/// One steady I/O pattern. A stored job that lacks a field, being older than the field, has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    /// Reads, writes or a mix (reads).
    pub direction: Direction,
    /// Order of the offsets (sequential).
    pub order: Order,
    /// Length of an operation (4 KiB).
    pub block: Block,
    /// Operations in flight for each thread (1).
    pub depth: u32,
    /// Threads (1).
    pub threads: u32,
    /// Each thread in its own equal part of the region (true), or all in the whole of it.
    pub separate_regions: bool,
    /// Start of the region in the target (0).
    pub offset: Bytes,
    /// Length of the region (to the target's end).
    pub size: Option<Bytes>,
    /// Past the page cache, with O_DIRECT (true).
    pub direct: bool,
    /// Buffers in huge pages (false). A disk's controller is given a buffer as the pieces that its pages form in RAM, and
    /// of usual pages that is chance: up to 256 pieces of a MiB, and two requests where the controller takes fewer.
    pub huge_pages: bool,
    /// When not direct: drop the target's cached pages before the start (false: what is cached is part of what is asked).
    pub invalidate: bool,
    /// Durability of writes (none).
    pub sync: Sync,
    /// One `fsync` at the very end, inside the measured time (false). Of reads as well, as iozone does it: there is nothing to
    /// write then, but a device may be told to empty its cache.
    pub end_fsync: bool,
    /// What is read before each operation, outside its time (nothing). Plain calls only.
    pub lead: Option<Lead>,
    /// After each read one byte in so many is changed where it was read to, inside its time (none): to look at it alone is 4 % of
    /// hdparm's cached reads quicker. Plain calls only.
    pub touch: Option<Bytes>,
    /// Keep every operation by itself, at most [`MOST_EACH`] (false). Plain calls of one thread only, and requests to a key-value
    /// server, at most [`MOST_EACH_REQUEST`]; at a rate they count from the time that was meant.
    pub each: bool,
    /// When operations are due (closed loop).
    pub pacing: Pacing,
    /// What is written (incompressible).
    pub entropy: Entropy,
    /// When it ends (after 5 s).
    pub stop: Stop,
    /// Run but not counted before the measurement (0).
    pub warmup: Nanos,
    /// Way into the kernel (auto).
    pub engine: Engine,
    /// Width of an interval of the series (100 ms).
    pub interval: Nanos,
    /// Seed of every random choice.
    pub seed: u64,
}

impl Default for Job {
    fn default() -> Self {
        Job {
            direction: Direction::Read,
            order: Order::Sequential,
            block: Block::Fixed(Bytes(4096)),
            depth: 1,
            threads: 1,
            separate_regions: true,
            offset: Bytes(0),
            size: None,
            direct: true,
            huge_pages: false,
            invalidate: false,
            sync: Sync::None,
            end_fsync: false,
            lead: None,
            touch: None,
            each: false,
            pacing: Pacing::Closed,
            entropy: Entropy::Incompressible,
            stop: Stop { time: Some(Nanos::from_millis(5000)), ..Stop::default() },
            warmup: Nanos(0),
            engine: Engine::Auto,
            interval: Nanos::from_millis(100),
            seed: 42,
        }
    }
}

/// A job that cannot be run as written. Each message names the field and the way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// A field is out of its range.
    #[error("{field} must be {range}, not {value}")]
    Range {
        /// Which field.
        field: &'static str,
        /// What it may be.
        range: &'static str,
        /// What it was.
        value: String,
    },
    /// Durability is asked of a job that writes nothing.
    #[error("sync, fsync and fdatasync make writes durable, and this job only reads: leave them out, or write")]
    NothingToSync,
    /// Nothing would end the job.
    #[error("nothing ends this job: set runtime, bytes or operations")]
    Endless,
}

/// Deepest queue of one thread that is accepted.
pub const DEEPEST: u32 = 4096;
/// Most operations that are kept one by one.
pub const MOST_EACH: u64 = 4096;
/// The same of a key-value server, where they go to a file and not into the record.
pub const MOST_EACH_REQUEST: u64 = 4 << 20;
/// Most threads that are accepted.
pub const MOST_THREADS: u32 = 256;

/// Blocks up to this length lie in one page of any kernel.
const PAGE: Bytes = Bytes(4096);

impl Job {
    /// Whether its buffers are to lie in huge pages: as asked, but for blocks that are in one piece in any case.
    pub fn wants_huge_pages(&self) -> bool {
        self.huge_pages && self.block.largest() > PAGE
    }
    /// Checks what can be checked without a target.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), JobError> {
        let range = |field, range, value: String| Err(JobError::Range { field, range, value });
        let split = |parts: &[(Bytes, u32)]| {
            parts.iter().map(|(size, weight)| format!("{size}/{weight}")).collect::<Vec<_>>().join(":")
        };
        if let Block::Split(parts) = &self.block
            // A key's value has any length.
            && (parts.is_empty()
                || self.engine != Engine::Resp
                    && parts.iter().any(|(size, _)| size.0 % self.block.smallest().0.max(1) != 0))
        {
            return range("bs", "a list of sizes that are multiples of the smallest", split(parts));
        }
        if let Block::Split(parts) = &self.block
            && parts.iter().any(|(_, weight)| *weight == 0)
        {
            return range("bssplit", "sizes with weights of at least 1", split(parts));
        }
        if self.block.smallest().0 == 0 || self.block.largest().0 > 1024 * MIB {
            return range("bs", "from 1 B to 1 GiB", self.block.largest().to_string());
        }
        if !(1..=DEEPEST).contains(&self.depth) {
            return range("depth", "from 1 to 4096", self.depth.to_string());
        }
        if !(1..=MOST_THREADS).contains(&self.threads) {
            return range("threads", "from 1 to 256", self.threads.to_string());
        }
        if let Direction::Mixed { read_percent: read_percent @ 101.. } = self.direction {
            return range("rwmixread", "from 0 to 100", read_percent.to_string());
        }
        if let Order::Zipf { theta } = self.order
            && !(theta > 0.0 && theta <= 10.0)
        {
            return range("zipf", "above 0 and at most 10", theta.to_string());
        }
        if let Pacing::Fixed { iops } | Pacing::Poisson { iops } = self.pacing
            && !(iops > 0.0 && iops <= 1e9)
        {
            return range("rate", "above 0 and at most 1e9 operations a second", iops.to_string());
        }
        if let Order::Strided { places, align } = self.order
            && (places == 0 || align.0 == 0)
        {
            return range("places", "at least 1, at multiples of at least 1 B", format!("{places} at {align}"));
        }
        let is_plain = matches!(self.engine, Engine::Psync | Engine::Auto) && self.depth == 1 && self.threads == 1;
        let is_resp = self.engine == Engine::Resp;
        if (self.lead.is_some() || self.touch.is_some() || self.each && !is_resp) && !is_plain {
            return range(
                "depth",
                "1, in one thread of plain calls, where operations are looked at one by one",
                self.depth.to_string(),
            );
        }
        let most = if is_resp { MOST_EACH_REQUEST } else { MOST_EACH };
        if self.each && self.stop.operations.is_none_or(|operations| operations > most) {
            return range(
                "operations",
                if is_resp {
                    "at most 4,194,304 where each is kept by itself"
                } else {
                    "at most 4096 where each is kept by itself"
                },
                format!("{:?}", self.stop.operations),
            );
        }
        if matches!(self.lead, Some(Lead::Same(_)))
            && (self.direction != Direction::Write || self.entropy == Entropy::Tagged)
        {
            return range("lead", "reads of what is written back, in a job that writes", format!("{:?}", self.lead));
        }
        if let Sync::Fsync { every: 0 } | Sync::Fdatasync { every: 0 } = self.sync {
            return range("fsync", "at least 1", "0".to_owned());
        }
        if !self.direction.writes() && self.sync != Sync::None {
            return Err(JobError::NothingToSync);
        }
        if !(Nanos::from_millis(1)..=Nanos::from_millis(60_000)).contains(&self.interval) {
            return range("interval", "from 1 ms to 1 min", self.interval.to_string());
        }
        if self.size == Some(Bytes(0)) {
            return range("size", "at least one block", "0".to_owned());
        }
        if let Some(until) = self.stop.until
            && !(until.percent > 0.0 && until.percent <= 100.0)
        {
            return range("until", "above 0 and at most 100 per cent", until.percent.to_string());
        }
        if self.stop.time == Some(Nanos(0)) {
            return range("runtime", "above 0", "0".to_owned());
        }
        if self.stop.bytes == Some(Bytes(0)) {
            return range("bytes", "at least 1", "0".to_owned());
        }
        if self.stop.operations == Some(0) {
            return range("operations", "at least 1", "0".to_owned());
        }
        if self.stop.time.is_none() && self.stop.bytes.is_none() && self.stop.operations.is_none() {
            return Err(JobError::Endless);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_named() {
        assert_eq!(Job::default().check(), Ok(()));
        let depth = Job { depth: 0, ..Job::default() };
        assert_eq!(depth.check().unwrap_err().to_string(), "depth must be from 1 to 4096, not 0");
        let endless = Job { stop: Stop::default(), ..Job::default() };
        assert_eq!(endless.check(), Err(JobError::Endless));
        let empty = Job { block: Block::Fixed(Bytes(0)), ..Job::default() };
        assert!(empty.check().is_err());
    }

    /// What a user reads is what a user can type, not how a program holds it.
    #[test]
    fn a_bad_value_is_told_as_it_was_typed() {
        let told = |job: Job| job.check().unwrap_err().to_string();
        let mix = Job { direction: Direction::Mixed { read_percent: 150 }, ..Job::default() };
        assert_eq!(told(mix), "rwmixread must be from 0 to 100, not 150");
        let block = Block::Split(vec![(Bytes(4096), 0), (Bytes(3), 100)]);
        let told = told(Job { block, ..Job::default() });
        assert!(told.ends_with("not 4 KiB/0:3 B/100"), "{told}");
    }

    /// A record that called its reads synced would say what was not.
    #[test]
    fn what_only_reads_is_not_synced() {
        for sync in [Sync::Dsync, Sync::Fsync { every: 1 }, Sync::Fdatasync { every: 8 }] {
            assert_eq!(Job { sync, ..Job::default() }.check(), Err(JobError::NothingToSync));
            let direction = Direction::Mixed { read_percent: 99 };
            assert_eq!(Job { sync, direction, ..Job::default() }.check(), Ok(()));
        }
        assert_eq!(Job { end_fsync: true, ..Job::default() }.check(), Ok(()), "as iozone reads");
    }

    /// A confidence that no figure reaches would never end the job, a mix that no size is of would not be one.
    #[test]
    fn what_would_run_for_ever_or_as_something_else_is_refused() {
        for percent in [f64::NAN, f64::INFINITY, 0.0, -1.0] {
            let until = Some(Until { figure: Figure::Iops, percent, at_least: Nanos(0) });
            let job = Job { stop: Stop { until, ..Job::default().stop }, ..Job::default() };
            assert!(matches!(job.check(), Err(JobError::Range { field: "until", .. })), "{percent}");
        }
        for weights in [(0, 0), (1, 0)] {
            let split = Block::Split(vec![(Bytes(4096), weights.0), (Bytes(65536), weights.1)]);
            let job = Job { block: split, ..Job::default() };
            assert!(matches!(job.check(), Err(JobError::Range { field: "bssplit", .. })), "{weights:?}");
        }
        for stop in [
            Stop { time: Some(Nanos(0)), ..Stop::default() },
            Stop { bytes: Some(Bytes(0)), ..Stop::default() },
            Stop { operations: Some(0), ..Stop::default() },
        ] {
            assert!(Job { stop, ..Job::default() }.check().is_err(), "{stop:?}");
        }
    }

    #[test]
    fn a_mix_of_all_or_nothing_is_one_direction() {
        assert!(!Direction::Mixed { read_percent: 0 }.reads());
        assert!(!Direction::Mixed { read_percent: 100 }.writes());
        assert!(Direction::Mixed { read_percent: 70 }.reads() && Direction::Mixed { read_percent: 70 }.writes());
    }
}
