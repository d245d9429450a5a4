//! Why a run could not start, go on or be kept; each a sentence, and each of a kind that becomes an exit status.

use basics::FailKind;
use change::ChangeError;
use record::Failure;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request makes no sense.
    Usage,
    /// Refused so that nothing of value is lost.
    Refused,
    /// Something needed is missing: a path, a right, room, a device that went away.
    Missing,
    /// It went wrong.
    Failed,
}

/// Why a run could not start, go on or be kept.
#[derive(Debug, Error)]
pub enum RunError {
    /// Writing there is refused.
    #[error(transparent)]
    Refused(#[from] change::Refused),
    /// A change of the machine failed.
    #[error(transparent)]
    Change(#[from] change::ChangeError),
    /// The record cannot be kept.
    #[error(transparent)]
    Record(#[from] record::RecordError),
    /// The job cannot be run.
    #[error(transparent)]
    Engine(#[from] engine::EngineError),
    /// A target cannot be opened.
    #[error("{} cannot be opened: {source}{hint}", path.display())]
    Open {
        /// The target.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
        /// The way out, as "; …", where there is one.
        hint: &'static str,
    },
    /// The steps before left too little to work on.
    #[error("{}: only {usable} of the test file were written, too little for this step", path.display())]
    TooLittle {
        /// The directory.
        path: PathBuf,
        /// What there is.
        usable: basics::Bytes,
    },
    /// An operation failed in mid-run.
    #[error("{what} at {offset} of {target} failed: {reason}; what was measured until then is kept")]
    Operation {
        /// `reading`, `writing`, `syncing`.
        what: &'static str,
        /// Where.
        offset: basics::Bytes,
        /// On what.
        target: String,
        /// The error number in words.
        reason: String,
        /// The error number.
        errno: i32,
    },
    /// More memory was wanted than there is with all swap.
    #[error("of {size} the process had {} when the kernel ended it ({pressure}, {swap})", had(*filled))]
    DoesNotFit {
        /// What was wanted.
        size: basics::Bytes,
        /// What was taken away.
        pressure: String,
        /// What there was to swap to.
        swap: String,
        /// What it had when it was ended.
        filled: basics::Bytes,
    },
    /// By a signal.
    #[error("interrupted")]
    Interrupted,
    /// Ended before its time, before the machine froze.
    #[error("{why}; what was measured until then is kept")]
    Watchdog {
        /// A sentence without its full stop.
        why: String,
    },
    /// A process under pressure, or what it needs, could not be had.
    #[error("{what}")]
    Load {
        /// A sentence.
        what: String,
    },
    /// What was read is not what was written there.
    #[error("what is read at {offset} of {target} is not what was written there, but {}", otherwise(*holds))]
    Astray {
        /// Where.
        offset: basics::Bytes,
        /// Where that was written, if it says so.
        holds: Option<basics::Bytes>,
        /// On what.
        target: String,
    },
}

/// What was filled is told in large steps, and of less than the first nothing is known.
fn had(filled: basics::Bytes) -> String {
    if filled.0 == 0 { "not told how much it had".to_owned() } else { format!("some {filled}") }
}

fn otherwise(holds: Option<basics::Bytes>) -> String {
    holds.map_or_else(
        || "nothing that was".to_owned(),
        |place| format!("what was written at {place}: one place is kept for both"),
    )
}

impl RunError {
    /// What kind of failure it is, for the record.
    pub fn fail_kind(&self) -> FailKind {
        match self {
            RunError::Astray { offset, holds, .. } => FailKind::Astray { at: *offset, holds: *holds },
            RunError::Operation { errno, .. } => FailKind::of(&io::Error::from_raw_os_error(*errno)),
            RunError::Open { source, .. }
            | RunError::Engine(engine::EngineError::System { source, .. })
            | RunError::Refused(
                change::Refused::Unavailable { source, .. } | change::Refused::Unknown { source, .. },
            )
            | RunError::Change(
                ChangeError::Apply { source, .. }
                | ChangeError::Journal { source, .. }
                | ChangeError::Undo { source, .. },
            )
            | RunError::Record(record::RecordError::Io { source, .. }) => FailKind::of(source),
            RunError::DoesNotFit { .. }
            | RunError::Change(ChangeError::NoRoom { .. })
            | RunError::Record(record::RecordError::Full { .. }) => FailKind::NoRoom,
            RunError::Change(ChangeError::NotPermitted { .. }) => FailKind::NoPermission,
            RunError::Change(ChangeError::ReadOnly { .. }) => FailKind::ReadOnly,
            RunError::Change(ChangeError::NotADirectory { .. } | ChangeError::NoPlace { .. }) => FailKind::Gone,
            RunError::Refused(_)
            | RunError::Change(_)
            | RunError::Record(_)
            | RunError::Engine(_)
            | RunError::Load { .. }
            | RunError::Watchdog { .. }
            | RunError::Interrupted
            | RunError::TooLittle { .. } => FailKind::Other,
        }
    }

    /// True for what is the answer to what was asked, and no failure of the run.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, RunError::DoesNotFit { .. })
    }

    /// As the record keeps it.
    pub(crate) fn failure(&self) -> Failure {
        Failure { kind: self.fail_kind(), why: self.to_string() }
    }

    /// The kind, for the exit status.
    pub fn kind(&self) -> Kind {
        match self {
            RunError::Refused(refused) if refused.is_unavailable() => Kind::Missing,
            RunError::Refused(_) | RunError::Change(ChangeError::Taken) => Kind::Refused,
            RunError::Engine(
                engine::EngineError::Job(_) | engine::EngineError::Geometry(_) | engine::EngineError::Profile(_),
            ) => Kind::Usage,
            RunError::Engine(engine::EngineError::Unavailable { .. })
            | RunError::Open { .. }
            | RunError::Change(_)
            | RunError::Record(_) => Kind::Missing,
            RunError::Engine(engine::EngineError::System { .. })
            | RunError::TooLittle { .. }
            | RunError::DoesNotFit { .. }
            | RunError::Watchdog { .. }
            | RunError::Interrupted
            | RunError::Load { .. }
            | RunError::Operation { .. }
            | RunError::Astray { .. } => Kind::Failed,
        }
    }
}
