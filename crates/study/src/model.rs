//! What a study says. Every figure can be traced to a step of a record; every threshold names its source.

use basics::little::Audit;
use basics::plan::{LeftOut, Rounds};
use basics::pressure::Load;
use basics::{Bytes, Each, EngineUse, FailKind, Interval, Job, Known, Nanos, NotRun, Scale, Side};
use machine::Machine;
use observe::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How far a step or a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its process lives.
    Running,
    /// To its end: only this has figures that may be judged.
    Done,
    /// Broken off.
    Interrupted,
    /// Ended by an error.
    Failed,
    /// Planned, and its turn did not come.
    NotRun,
}

/// Where the figures of a run come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin<'a> {
    /// Measured, on the machine that the run describes.
    Measured,
    /// Computed in virtual time from this profile.
    Simulated(&'a str),
    /// Somebody else's, from this source.
    Quoted(&'a str),
}

impl Origin<'_> {
    /// What a reader must know before the figures, as a sentence; nothing where they were measured.
    pub fn caution(&self) -> Option<String> {
        match self {
            Origin::Measured => None,
            Origin::Simulated(profile) => Some(format!("simulated from the profile {profile}, not measured")),
            Origin::Quoted(source) => Some(format!("figures of {source}, not measured here")),
        }
    }
    /// In a word or two.
    fn word(&self) -> &'static str {
        match self {
            Origin::Measured => "measured",
            Origin::Simulated(_) => "simulated",
            Origin::Quoted(_) => "quoted",
        }
    }
}

impl std::fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Measured => f.write_str(self.word()),
            Origin::Simulated(from) | Origin::Quoted(from) => write!(f, "{}: {from}", self.word()),
        }
    }
}

/// A recorded step as a study reads it; borrowed from wherever it is kept.
#[derive(Debug, Clone)]
pub struct StepView<'a> {
    /// Index in the record.
    pub index: u32,
    /// Name in the plan.
    pub name: &'a str,
    /// The tier that it says something about.
    pub tier: Option<&'a str>,
    /// Where it ran, as text.
    pub target: &'a str,
    /// What was asked.
    pub job: &'a Job,
    /// Bytes of the target that were used.
    pub region: Option<Bytes>,
    /// What ran.
    pub engine: Option<&'a EngineUse>,
    /// How far it came; the figures of one that did not come to its end are of a part of the work.
    pub state: State,
    /// Measured time.
    pub elapsed: Nanos,
    /// Reads.
    pub read: &'a Side,
    /// Writes.
    pub write: &'a Side,
    /// CPU time of the measuring threads: user, system.
    pub cpu: Option<(Nanos, Nanos)>,
    /// What kind of failure ended it and the sentence about it, when it failed.
    pub failed: Option<(FailKind, &'a str)>,
    /// Why it was not run.
    pub not_run: Option<NotRun>,
    /// Each operation by itself, where the job wants that.
    pub each: &'a [Each],
    /// Of a process under pressure: its major faults, its swap.
    pub load: Option<&'a Load>,
    /// What was noted while it ran.
    pub notes: &'a [String],
    /// Its series in order of time.
    pub intervals: Vec<&'a Interval>,
    /// What the machine did while it was measured, warm-up left out, in order of time.
    pub samples: Vec<&'a Sample>,
    /// What it did before: while what is measured was made ready, a model loaded, a disk warmed up.
    pub before: Vec<&'a Sample>,
}

impl StepView<'_> {
    /// True when it came to its end and did something: its figures are those of what was asked.
    pub fn is_whole(&self) -> bool {
        self.state == State::Done && self.did_something()
    }
    /// True when some operation was completed, whatever became of the step.
    pub fn did_something(&self) -> bool {
        self.read.operations() + self.write.operations() > 0
    }
}

/// A recorded run as a study reads it.
#[derive(Debug, Clone)]
pub struct RunView<'a> {
    /// Its name in the record.
    pub id: &'a str,
    /// How far it came.
    pub state: State,
    /// Where its figures come from.
    pub origin: Origin<'a>,
    /// The machine before the first step.
    pub machine: &'a Machine,
    /// The harness's own cost for an operation, ns.
    pub harness_ns_per_op: Option<f64>,
    /// The method that it is a run of.
    pub method: &'a str,
    /// To the letter of the published procedure.
    pub as_published: bool,
    /// What its durations were shortened to.
    pub scale: Option<Scale>,
    /// Its steps that are repeated until they show nothing new.
    pub rounds: Option<&'a Rounds>,
    /// The method's parameters, as resolved.
    pub parameters: &'a BTreeMap<String, String>,
    /// Steps in order.
    pub steps: Vec<StepView<'a>>,
    /// What another program printed, in place of steps.
    pub quoted: Option<&'a quoted::Figures>,
    /// What the plan left out, and why.
    pub left_out: &'a [LeftOut],
}

/// Latency, summed up. Percentiles to 99 are always there when operations were timed one by one; a further one is absent
/// when fewer than ten operations lie beyond it. Loads of RAM are timed in batches: they have a mean only.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Arithmetic mean.
    pub mean: Known<Nanos>,
    /// Percentiles in ascending order: 50, 90, 95, 99, 99.9, 99.99, 99.999, 99.9999, those that the data carry.
    pub percentiles: Vec<(f64, Nanos)>,
    /// Largest.
    pub max: Known<Nanos>,
}

/// One direction of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SideSummary {
    /// Operations a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    pub mbps: f64,
    /// Operations.
    pub ops: u64,
    /// From submission, or from the intended time in an open loop.
    pub lat: LatencySummary,
    /// Open loop: from submission.
    pub service: Option<LatencySummary>,
    /// Half width of the 95 % confidence interval of `iops`, per cent of it.
    pub ci95_percent: Known<f64>,
    /// Coefficient of variation of the rate over the intervals (0.1 is 10 %).
    pub variation: Known<f64>,
}

/// CPU time of the measuring threads for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuPerOp {
    /// All of it, µs.
    pub total_us: f64,
    /// In user mode and in the kernel, µs. Kernels tell the two apart by looking at each tick of the timer, so after a
    /// few ticks the split is not known.
    pub split_us: Option<(f64, f64)>,
}

/// One step, summed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// Index in the record.
    pub index: u32,
    /// Name in the plan.
    pub name: String,
    /// Tier.
    pub tier: Option<String>,
    /// Absent when it read nothing, or its time is not known.
    pub read: Option<SideSummary>,
    /// Absent when it wrote nothing, or its time is not known.
    pub write: Option<SideSummary>,
    /// What an operation cost the measuring threads; absent when that is not known.
    pub cpu: Option<CpuPerOp>,
    /// Intervals of the series that the record has lost: what was done in them is in the totals, not in the spread.
    pub missing_intervals: u64,
    /// Read through the page cache: the bytes that the disks moved over those that were read (1 is all of them).
    pub read_from_disks: Option<f64>,
    /// Of content that compresses, moved past the page cache or synced: the bytes that the disks moved over those of the
    /// job, where they were less than half.
    pub compressed_to: Option<f64>,
    /// Whether its rate and its latency agree with its depth.
    pub in_flight: Audit,
}

/// A fact with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable kebab-case name.
    pub id: String,
    /// 0 (a remark) to 100 (fix this first).
    pub weight: u8,
    /// The tier, when it is about one.
    pub tier: Option<String>,
    /// What, how much, compared with what, so what.
    pub text: String,
    /// What to do, in words, when something can be done.
    pub advice: Option<String>,
    /// What it would bring, in words with figures, when that is known.
    pub gain: Option<String>,
    /// Where the numbers stand: `step 3 read p99`, `/sys/…: value`, `published pi5-optane: …`.
    pub evidence: Vec<String>,
}

/// Fitness of a tier for a use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fitness {
    /// `llm-swap`, `redis-aof`, `database`, `desktop-root`, `bulk-files`.
    pub purpose: String,
    /// `yes`, `slow`, `small`, `everysec`, `no`, or `unknown`.
    pub verdict: String,
    /// The figure that decided and the threshold it was held against, in words, with the threshold's source.
    pub why: String,
}

/// The figures that `check` is about, for one tier. What was not measured says why.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TierFigures {
    /// Sequential read, 1 MiB, 10^6 B/s.
    pub seq_read_mbps: Known<f64>,
    /// Sequential write, 1 MiB, with an fsync at the end, 10^6 B/s.
    pub seq_write_mbps: Known<f64>,
    /// Random 70/30, page size, depth 4: reads.
    pub swap_sim_read: Known<SideSummary>,
    /// Random 70/30, page size, depth 4: writes.
    pub swap_sim_write: Known<SideSummary>,
    /// Random read, page size, depth 1; of RAM a dependent load.
    pub page_read_qd1: Known<LatencySummary>,
    /// Mean of a random 4 KiB read at depth 1, µs.
    pub rand_read_4k_qd1_us: Known<f64>,
    /// Random 4 KiB reads at depth 32, operations a second.
    pub rand_read_4k_qd32_iops: Known<f64>,
    /// 4 KiB write + fsync.
    pub fsync: Known<LatencySummary>,
    /// RAM only: dependent load, ns.
    pub load_ns: Known<f64>,
}

/// Likeness to a published device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Likeness {
    /// Name of the published device.
    pub name: String,
    /// Source's title.
    pub source: String,
    /// Root mean square of the natural logarithms of the ratios over the figures that both have; 0.1 is about 10 %.
    pub distance: f64,
    /// Figure by figure: name with unit, here, there.
    pub table: Vec<(String, f64, f64)>,
}

/// One tier, explained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierStudy {
    /// Its name in the machine.
    pub name: String,
    /// Where it was measured: a directory or a device.
    pub place: String,
    /// Figures.
    pub figures: TierFigures,
    /// Share of the practical ceiling's upper end that the best sequential figure reaches (1 is all of it).
    pub ceiling_share: Known<f64>,
    /// The hop that sets the ceiling, when it does.
    pub ceiling_hop: Option<String>,
    /// The most alike first.
    pub resembles: Vec<Likeness>,
    /// About this tier, most important first.
    pub findings: Vec<Finding>,
    /// Use by use.
    pub good_for: Vec<Fitness>,
}

/// What `check` found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckStudy {
    /// In one sentence.
    pub headline: String,
    /// Tier by tier, fastest first.
    pub tiers: Vec<TierStudy>,
    /// Of the whole machine and the most important of the tiers, most important first.
    pub findings: Vec<Finding>,
}

/// What a difference amounts to once the noise is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// No difference seen, and one worth speaking of would have been.
    Same,
    /// Better by more than the noise.
    Better,
    /// Worse by more than the noise.
    Worse,
    /// Too much noise, or too little data, to tell.
    Unclear,
}

/// One figure of one step, before and after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureComparison {
    /// Name of the step.
    pub step: String,
    /// Tier.
    pub tier: Option<String>,
    /// What is compared, with its unit: `read MB/s`, `write IOPS`, `read p99 µs`.
    pub figure: String,
    /// False when less is better (latencies).
    pub more_is_better: bool,
    /// Of the first: a rate over the whole measured time, a percentile of all operations; the median of the repeats.
    pub before: f64,
    /// The same of the second.
    pub after: f64,
    /// `after` over `before`.
    pub ratio: f64,
    /// Its 95 % confidence interval; unknown when a step was too short for one.
    pub ratio_ci95: Known<(f64, f64)>,
    /// What it amounts to.
    pub verdict: Verdict,
    /// In words: `1.8 times, 95 % sure of 1.7 to 1.9`, `no difference seen (±6 %)`.
    pub text: String,
}

/// Two runs, or two groups of repeated runs, side by side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// In one sentence.
    pub headline: String,
    /// Figure by figure, in the order of the first run's steps.
    pub figures: Vec<FigureComparison>,
    /// Steps that stand on one side only, or whose work differs, each with the reason.
    pub unmatched: Vec<String>,
    /// What else differs (kernel, governor, page size), each a sentence: the figures may differ for it.
    pub notes: Vec<String>,
}
