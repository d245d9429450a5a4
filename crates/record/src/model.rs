//! What a record holds.

use basics::pressure::Load;
use basics::{Bytes, Each, EngineUse, FailKind, Interval, Job, Nanos, NotRun, Plan, Predicted, Side};
use machine::Machine;
use observe::{Cost, Sample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A run's name: eight hexadecimal digits; any unambiguous beginning of at least four is accepted from users.
pub type RunId = String;

/// Draws a name. Should the database have one of that name already, [`crate::Store::begin`] draws another.
pub fn new_id() -> RunId {
    // SipHash keyed by the kernel's random numbers, as the standard library seeds it for every map.
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!("{:08x}", RandomState::new().build_hasher().finish() as u32)
}

/// How far a run came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its process lives.
    Running,
    /// Every step ended as planned.
    Done,
    /// By Ctrl-C, a signal, or the death of its process.
    Interrupted,
    /// For the stated reason.
    Failed(Failure),
    /// A step only: it was planned, and its turn did not come.
    NotRun(NotRun),
}

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What a program may judge by.
    pub kind: FailKind,
    /// A sentence for people.
    pub why: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// How a target was filled before a step, which is no part of its measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// Bytes written.
    pub bytes: Bytes,
    /// Time that it took, the fsync at its end included.
    pub time: Nanos,
}

/// Where the figures come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured on this machine by this program.
    Measured,
    /// Computed in virtual time from the named profile.
    Simulated(String),
    /// Somebody else's figures, printed in the named format.
    Quoted(String),
}

/// What stands at the head of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// How far it came.
    pub state: State,
    /// Where its figures come from.
    pub origin: Origin,
    /// Unix time of its start, nanoseconds.
    pub started: Nanos,
    /// Unix time of its end, once known.
    pub ended: Option<Nanos>,
    /// tiermark's version.
    pub version: String,
    /// The command as typed.
    pub command: String,
    /// Targets in a few words, for lists.
    pub target: String,
    /// What was to be done.
    pub plan: Plan,
    /// The machine before the first step.
    pub machine: Machine,
    /// The harness's own cost for an operation against the null target, in nanoseconds.
    pub harness_ns_per_op: Option<f64>,
    /// What a reader must know, each a sentence.
    pub notes: Vec<String>,
    /// What another program printed: such a run has these figures and no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<quoted::Figures>,
}

impl Run {
    /// A run of figures that another program printed. Neither the machine nor the time of the measurement is known; it
    /// stands under the time at which it was taken over.
    pub fn quoted(block: quoted::Block, taken: Nanos, command: &str, version: &str) -> Self {
        let format = block.format.name();
        let plan = Plan {
            method: format.to_owned(),
            parameters: BTreeMap::new(),
            as_published: false,
            seed: 0,
            targets: Vec::new(),
            steps: Vec::new(),
            left_out: Vec::new(),
            ..Plan::default()
        };
        Run {
            id: new_id(),
            state: State::Done,
            origin: Origin::Quoted(format.to_owned()),
            started: taken,
            ended: None,
            version: version.to_owned(),
            command: command.to_owned(),
            target: if block.what.is_empty() { "unnamed".to_owned() } else { block.what },
            plan,
            machine: Machine::default(),
            harness_ns_per_op: None,
            notes: Vec::new(),
            quoted: Some(block.figures),
        }
    }
}

/// The account of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// Position in the run, from 0.
    pub index: u32,
    /// The step's name in the plan.
    pub name: String,
    /// The tier that it says something about.
    pub tier: Option<String>,
    /// Where it ran, as text (a path, `memory`, `null`).
    pub target: String,
    /// What was asked, with its seed; how much of the target that came to is `region`.
    pub job: Job,
    /// How far it came.
    pub state: State,
    /// What ran.
    pub engine: Option<EngineUse>,
    /// Why it ended, in a word or two (`time`, `bytes`, `confidence`, `interrupted`, an error).
    pub ended_by: String,
    /// Bytes of the target that were used, from the job's offset on. Unknown when nothing was measured.
    pub region: Option<Bytes>,
    /// How the target was filled for this step, if it was.
    pub filled: Option<Fill>,
    /// Unix time of its start.
    pub started: Nanos,
    /// When the measurement began, on the samples' clock: the origin of the intervals. What the samples show before it
    /// is preparation and warm-up. Unknown when nothing was observed or measured.
    pub measured_from: Option<Nanos>,
    /// Measured time, warm-up left out.
    pub elapsed: Nanos,
    /// Reads.
    pub read: Side,
    /// Writes.
    pub write: Side,
    /// CPU time of the measuring threads: user. Unknown when the step was cut short by the death of its process.
    pub cpu_user: Option<Nanos>,
    /// CPU time of the measuring threads: system. Unknown as above.
    pub cpu_system: Option<Nanos>,
    /// What observing cost. Unknown as above, and when nothing was observed.
    pub observing: Option<Cost>,
    /// In virtual time on a profile that states its confidence: between what the figures lie.
    pub predicted: Option<Predicted>,
    /// Each operation by itself, where the job wants that.
    pub each: Vec<Each>,
    /// Of a process under pressure: its major faults, its swap.
    pub load: Option<Box<Load>>,
    /// What was really measured: cache in the way, O_DIRECT refused, compression, a fallback; each a sentence.
    pub notes: Vec<String>,
}

/// A run with everything in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Head.
    pub run: Run,
    /// Steps in order.
    pub steps: Vec<StepRecord>,
    /// Series, by step index and time.
    pub intervals: Vec<(u32, Interval)>,
    /// What the machine did, by step index and time.
    pub samples: Vec<(u32, Sample)>,
}
