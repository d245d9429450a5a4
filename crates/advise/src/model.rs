//! A rule, and what it says: a sentence, its evidence, and the changes that follow, as data.

use crate::goals::Job;
use crate::situation::Situation;
use change::Wanted;

/// One rule. What it needs to know of a machine stands in [`Situation`].
#[derive(Debug)]
pub struct Rule {
    /// Stable kebab-case name.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// When it speaks.
    pub condition: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whom it concerns.
    pub jobs: &'static [Job],
    /// What it says here, its own name left out.
    pub judge: fn(&Situation<'_>) -> Option<Recommendation>,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recommendation {
    /// Whose it is.
    pub rule: &'static str,
    /// What to do, a few words.
    pub title: String,
    /// Why, a sentence or two.
    pub why: String,
    /// What that stands on.
    pub evidence: Vec<Evidence>,
    /// What it brings, where a number says so.
    pub gain: Option<Gain>,
    /// What it costs or may break.
    pub risk: Option<String>,
    /// What would be written; nothing where something is to be bought, moved or decided.
    pub changes: Vec<Wanted>,
}

/// A number or a sentence that a recommendation stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What.
    pub text: String,
    /// Whence.
    pub from: Origin,
}

/// Where evidence comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A run on this machine, by its name.
    Run(String),
    /// Something published.
    Published(String),
    /// A file of this machine.
    Machine(String),
    /// A proof on this machine, by its number.
    Proof(String),
    /// Computed by `predict`, not measured, from these.
    Predicted(String),
}

/// What something brings.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// More of what, and against what.
    pub of: String,
    /// So much, per cent.
    pub percent: f64,
    /// At least.
    pub low: f64,
    /// At most.
    pub high: f64,
    /// Where the figures come from.
    pub from: Origin,
}

impl Evidence {
    /// Something published.
    pub(crate) fn published(source: &str, text: impl Into<String>) -> Self {
        Evidence { text: text.into(), from: Origin::Published(source.to_owned()) }
    }

    /// A file of this machine with what it says.
    pub(crate) fn machine(path: &str, text: impl Into<String>) -> Self {
        Evidence { text: text.into(), from: Origin::Machine(path.to_owned()) }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Run(run) => write!(f, "run {run}"),
            Origin::Published(source) => f.write_str(source),
            Origin::Machine(path) => f.write_str(path),
            Origin::Predicted(what) => write!(f, "predicted from {what}"),
            Origin::Proof(number) => write!(f, "proof {number}"),
        }
    }
}
