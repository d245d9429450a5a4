//! A plan: ordered steps on named targets, fully resolved, printable, hashed, carrying its seed. It is what a method
//! expands to, what `--dry-run` prints and what the runner executes; no step depends on anything that is not in it. A
//! step whose length depends on what is measured (a stop rule, a target filled by time) states its bounds here, and so do
//! rounds that are repeated until they show nothing new.

use crate::job::{Entropy, Job};
use crate::known::Why;
use crate::pressure::Pressed;
use crate::redis::Server;
use crate::scale::{NothingToScale, Scale};
use crate::units::{Bytes, MIB, Nanos};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;

/// Where the operations of a step go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// Anonymous memory of this process.
    Memory {
        /// How much is touched.
        size: Bytes,
    },
    /// Nothing at all: what remains is the harness's own cost. It can stall on purpose, to test what a stall does.
    Null {
        /// Time that each operation takes.
        service: Nanos,
        /// Every `.0`, all operations wait for `.1`.
        stall: Option<(Nanos, Nanos)>,
    },
    /// An existing file; read only.
    File {
        /// The file.
        path: PathBuf,
    },
    /// A file of tiermark's own in a directory, made for the run and removed on every way out of it.
    TestFile {
        /// The directory.
        dir: PathBuf,
        /// Its full length.
        size: Bytes,
        /// What it is filled with.
        entropy: Entropy,
        /// False: really written, whole, before the first step. True: the first step on it writes it, and the later
        /// steps use as much as that step got done (a slow card is not filled for minutes).
        first_step_fills: bool,
    },
    /// A whole block device or partition.
    Device {
        /// Its node.
        path: PathBuf,
        /// What the user gave to `--destroy`, if anything; a write needs it to be this very device.
        destroy: Option<String>,
    },
    /// A device model, in virtual time.
    Profile {
        /// The profile's name.
        name: String,
        /// The whole profile as TOML, so that the plan says what was simulated whatever becomes of its file.
        toml: String,
    },
    /// Memory of a process of its own, under pressure: what lies beyond its limit is swapped.
    Pressed(Pressed),
    /// A Redis server, started for each step.
    Redis(Box<Server>),
}

/// A test file is filled by whole chunks, so that every byte that is read later was really written.
pub const CHUNK: u64 = MIB;

impl Target {
    /// The target in a few words, for tables and records.
    pub fn describe(&self) -> String {
        match self {
            Target::Memory { .. } => "memory".to_owned(),
            Target::Null { .. } => "null".to_owned(),
            Target::File { path } | Target::Device { path, .. } => path.display().to_string(),
            Target::TestFile { dir, .. } => dir.display().to_string(),
            Target::Profile { name, .. } => format!("profile:{name}"),
            Target::Pressed(pressed) => pressed.swap.describe(),
            Target::Redis(server) => server.describe(),
        }
    }
}

/// What is done before or after a step's job, outside its measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Act {
    /// `sync`: all file systems write what they hold back.
    Sync,
    /// Nothing for so long.
    Rest(Nanos),
    /// `fsync` of the target.
    Fsync,
    /// What the kernel holds of a device is written out and dropped (`BLKFLSBUF`); of a file, by `fadvise`.
    Drop,
    /// The test file is removed and made anew, empty: its space is allocated by the step.
    Renew,
}

impl Act {
    /// In the words of a plan.
    pub fn describe(self) -> String {
        match self {
            Act::Sync => "sync".to_owned(),
            Act::Rest(time) => format!("rest {time}"),
            Act::Fsync => "fsync the target".to_owned(),
            Act::Drop => "drop what is cached of it".to_owned(),
            Act::Renew => "make the file anew".to_owned(),
        }
    }
}

/// One measured piece of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// What the step is called in records and reports; methods document their names (`seq-read`, `swap-sim`, …).
    pub name: String,
    /// The tier it says something about, by the tier's name.
    pub tier: Option<String>,
    /// Index into [`Plan::targets`].
    pub target: usize,
    /// What is done there.
    pub job: Job,
    /// True: when this step fails, the run goes on with the next target (a missing disk does not end a check).
    pub may_fail: bool,
    /// Done first, in order.
    #[serde(default)]
    pub before: Vec<Act>,
}

/// Something that a method would have measured and could not, so that a reader sees the reason instead of a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The tier that it would have been about.
    pub tier: String,
    /// The step's name; empty: every step on that tier.
    pub step: String,
    /// In a word or two ("no room", "root only", "read-only", "not mounted").
    pub why: Why,
}

/// Steps that are done over and over until what they show holds still (`study` says when it does), at most so often. The plan
/// holds the steps of all rounds, one round after the other; those that are not needed are not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rounds {
    /// The step that the first round begins with.
    pub first: usize,
    /// Steps in a round.
    pub steps: usize,
    /// Rounds in any case: before them it is not asked whether they hold still.
    pub least: usize,
    /// Rounds at most.
    pub most: usize,
    /// What must hold still: places in a round, from 0.
    pub tracked: Vec<usize>,
}

impl Rounds {
    /// The steps of a round, from 0.
    pub fn steps_of(&self, round: usize) -> Range<usize> {
        let first = self.first + round * self.steps;
        first..first + self.steps
    }
    /// Whether a step is of one of them.
    pub fn holds(&self, step: usize) -> bool {
        (self.first..self.end()).contains(&step)
    }
    /// The step behind the last round.
    pub fn end(&self) -> usize {
        self.first + self.most * self.steps
    }
    /// Whether a step is of a round that may turn out not to be needed.
    pub fn may_be_left(&self, step: usize) -> bool {
        (self.first + self.least * self.steps..self.end()).contains(&step)
    }
    /// The name of a step that is done once in each round, from 1.
    pub fn name(point: &str, round: usize) -> String {
        format!("{point}-r{round}")
    }
    /// Such a name without its round.
    pub fn point(name: &str) -> &str {
        match name.rsplit_once("-r") {
            Some((point, round)) if round.parse::<usize>().is_ok() => point,
            _ => name,
        }
    }
}

/// Ordered steps and the targets they run against.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The method that made it.
    pub method: String,
    /// The method's parameters as resolved, for the record and for doing it again.
    pub parameters: BTreeMap<String, String>,
    /// True when it reproduces a published procedure to the letter.
    pub as_published: bool,
    /// Seed of every random choice; the job of each step carries its own, which [`step_seed`] derives from this one.
    pub seed: u64,
    /// What the steps run against, made ready in this order when first used.
    pub targets: Vec<Target>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What could not be planned, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Steps that are repeated until they show nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Rounds>,
    /// What all durations were shortened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
}

/// Intervals of a series are not shortened below this.
const SHORTEST_INTERVAL: Nanos = Nanos::from_millis(100);

/// The seed of a plan's step with this index. The first step has the plan's own; each further one has splitmix64's number
/// of it, so that no two steps visit a region in the same order: the second would find in a device's cache what the first
/// had just read.
pub fn step_seed(seed: u64, step: usize) -> u64 {
    if step == 0 {
        return seed;
    }
    // Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
    let mut z = seed.wrapping_add((step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Plan {
    /// Where it runs, in a few words: each place once. Of Redis servers their media, as the steps say how each keeps its data.
    pub fn places(&self) -> String {
        let mut places: Vec<String> = Vec::new();
        for target in &self.targets {
            let place = match target {
                Target::Redis(server) => server.place(),
                target => target.describe(),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places.join(", ")
    }

    /// First twelve hexadecimal digits of the SHA-256 of the plan's JSON: equal for equal plans. A plan with a path that
    /// is not UTF-8 has no JSON; there it is the SHA-256 of the debug form, which escapes such bytes one by one.
    pub fn hash(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_else(|_| format!("{self:?}").into_bytes());
        let mut out = String::with_capacity(12);
        for byte in Sha256::digest(&json).iter().take(6) {
            let _ = write!(out, "{byte:02x}");
        }
        out
    }
    /// The same with all durations shortened: of measured times, warm-ups and rests. Lengths in bytes or operations and
    /// rates of operations stay as they are.
    ///
    /// # Errors
    /// When there is no duration in it.
    pub fn scaled(mut self, scale: Scale) -> Result<Self, NothingToScale> {
        let timed = |step: &Step| step.job.stop.time.is_some() || step.job.warmup.0 > 0;
        if !self.steps.iter().any(timed) {
            return Err(NothingToScale);
        }
        let shorten = |time: &mut Nanos| time.0 = scale.of(time.0);
        for step in &mut self.steps {
            let job = &mut step.job;
            shorten(&mut job.warmup);
            job.stop.time.iter_mut().for_each(shorten);
            job.stop.until.iter_mut().for_each(|until| shorten(&mut until.at_least));
            // A series keeps its resolution as far as that makes sense.
            job.interval = Nanos(scale.of(job.interval.0)).max(job.interval.min(SHORTEST_INTERVAL));
            for act in step.before.iter_mut() {
                if let Act::Rest(time) = act {
                    shorten(time);
                }
            }
        }
        self.scale = Some(scale);
        Ok(self)
    }
    /// The longest that the measured parts can take, if every step has a time limit; fill and clean-up not included.
    pub fn longest(&self) -> Option<Nanos> {
        self.steps.iter().try_fold(Nanos(0), |sum, step| Some(sum + step.job.warmup + step.job.stop.time?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Figure, Stop, Until};

    #[test]
    fn the_hash_tells_plans_apart() {
        let mut plan = Plan {
            method: "job".into(),
            parameters: BTreeMap::new(),
            as_published: false,
            seed: 1,
            targets: vec![Target::Memory { size: Bytes(1) }],
            steps: vec![Step {
                name: "a".into(),
                tier: None,
                target: 0,
                job: Job::default(),
                may_fail: false,
                before: vec![],
            }],
            left_out: vec![LeftOut { tier: "sda".into(), step: String::new(), why: Why::NoPermission }],
            ..Plan::default()
        };
        let first = plan.hash();
        assert_eq!(first, plan.clone().hash());
        assert_eq!(plan.longest(), Some(Nanos::from_millis(5000)));
        plan.seed = 2;
        assert_ne!(first, plan.hash());
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn durations_are_shortened_and_nothing_else() {
        let stop = |time| Stop { time, bytes: Some(Bytes(1 << 20)), ..Stop::default() };
        let until = Until { figure: Figure::Iops, percent: 2.0, at_least: Nanos::from_millis(6000) };
        let minute = Stop { until: Some(until), ..stop(Some(Nanos::from_secs(60.0))) };
        let (warmup, interval) = (Nanos::from_millis(600), Nanos::from_millis(12_000));
        let job = Job { stop: minute, warmup, interval, ..Job::default() };
        let before = vec![Act::Sync, Act::Rest(Nanos::from_secs(30.0))];
        let (name, tier) = ("a".to_owned(), None);
        let step = Step { name, tier, target: 0, job, may_fail: false, before };
        let whole = Plan { steps: vec![step.clone()], ..Plan::default() };
        let scale: Scale = "1/60".parse().unwrap();
        let short = whole.clone().scaled(scale).unwrap();
        let job = &short.steps[0].job;
        assert_eq!((job.stop.time, job.warmup), (Some(Nanos::from_millis(1000)), Nanos::from_millis(10)));
        assert_eq!(
            (job.stop.until.unwrap().at_least, job.interval),
            (Nanos::from_millis(100), Nanos::from_millis(200))
        );
        assert_eq!(short.steps[0].before, [Act::Sync, Act::Rest(Nanos::from_millis(500))]);
        assert_eq!((job.stop.bytes, short.scale), (Some(Bytes(1 << 20)), Some(scale)));
        assert_ne!(short.hash(), whole.hash());
        let untimed = Job { stop: stop(None), ..Job::default() };
        let bytes = Plan { steps: vec![Step { job: untimed, ..step }], ..Plan::default() };
        assert_eq!(bytes.scaled(scale), Err(NothingToScale));
    }

    #[test]
    fn rounds_are_steps_in_a_row() {
        let rounds = Rounds { first: 1, steps: 3, least: 2, most: 4, tracked: vec![2] };
        assert_eq!((rounds.steps_of(0), rounds.steps_of(3), rounds.end()), (1..4, 10..13, 13));
        assert_eq!([0, 6, 7, 12, 13].map(|step| rounds.may_be_left(step)), [false, false, true, true, false]);
        assert_eq!(Rounds::name("65-64KiB", 3), "65-64KiB-r3");
        assert_eq!(["65-64KiB-r3", "depth-read", "read"].map(Rounds::point), ["65-64KiB", "depth-read", "read"]);
    }

    #[test]
    fn each_step_has_a_seed_of_its_own() {
        assert_eq!(step_seed(42, 0), 42);
        // The published test vector of splitmix64: the first output for the state 1234567.
        assert_eq!(step_seed(1_234_567, 1), 6_457_827_717_110_365_317);
        let seeds: std::collections::BTreeSet<u64> = (0..1000).map(|step| step_seed(42, step)).collect();
        assert_eq!(seeds.len(), 1000);
    }

    #[test]
    fn paths_that_are_no_text_are_told_apart() {
        use std::os::unix::ffi::OsStringExt;
        let hash = |byte: u8| {
            let path = std::ffi::OsString::from_vec(vec![b'/', byte]).into();
            let (method, targets) = ("job".into(), vec![Target::File { path }]);
            let (parameters, steps, left_out) = (BTreeMap::new(), vec![], vec![]);
            Plan { method, parameters, seed: 1, targets, steps, left_out, ..Plan::default() }.hash()
        };
        assert_eq!(hash(0xFF), hash(0xFF));
        assert_ne!(hash(0xFF), hash(0xFE));
    }
}
