//! The exit status, as DESIGN says: 0 done, 1 done and something failed, 2 bad usage, 3 refused for safety, 4 something
//! needed is missing, 130 interrupted.

use crate::out;
use change::ChangeError;
use methods::MethodError;
use mover::MoveError;
use profile::ProfileError;
use quoted::QuoteError;
use record::RecordError;
use redisd::RedisError;
use runner::{Finished, Kind, RunError};
use slowdisk::SlowdiskError;
use std::process::ExitCode;

/// Done, and something failed or a requirement was not met.
const UNMET: u8 = 1;
const USAGE: u8 = 2;
const REFUSED: u8 = 3;
const MISSING: u8 = 4;
/// 128 + SIGINT, as shells count.
const INTERRUPTED: u8 = 130;

/// Prints the error as one sentence and gives its status.
pub fn report(error: &anyhow::Error) -> ExitCode {
    out::say(&sentence(error));
    ExitCode::from(status(error))
}

/// An error and its causes, each said once: most of our sentences hold their cause already.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut said = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

fn status(error: &anyhow::Error) -> u8 {
    if let Some(error) = error.downcast_ref::<RunError>() {
        return of_kind(error.kind());
    }
    match error.downcast_ref::<MethodError>() {
        Some(MethodError::Missing { .. } | MethodError::Unusable { .. }) => return MISSING,
        Some(_) => return USAGE,
        None => {}
    }
    match error.downcast_ref::<RedisError>() {
        Some(RedisError::Url { .. }) => return USAGE,
        Some(_) => return MISSING,
        None => {}
    }
    match error.downcast_ref::<RecordError>() {
        Some(RecordError::NotARun { .. } | RecordError::Ambiguous { .. }) => return USAGE,
        Some(_) => return MISSING,
        None => {}
    }
    match error.downcast_ref::<SlowdiskError>() {
        Some(SlowdiskError::Refused(_)) => return REFUSED,
        Some(SlowdiskError::Usage(_) | SlowdiskError::Fault { .. } | SlowdiskError::Unknown(_)) => return USAGE,
        Some(SlowdiskError::Profile(_)) => return USAGE,
        Some(SlowdiskError::Told(_)) => return UNMET,
        Some(_) => return MISSING,
        None => {}
    }
    // Text that is nobody's is a file that is not what is needed; text that only looks like somebody's is used wrongly.
    match error.downcast_ref::<QuoteError>() {
        Some(QuoteError::Nothing) => return MISSING,
        Some(QuoteError::Broken { .. }) => return USAGE,
        None => {}
    }
    if let Some(error) = error.downcast_ref::<exposition::ExpositionError>() {
        return if error.is_usage() { USAGE } else { MISSING };
    }
    if let Some(error) = error.downcast_ref::<MoveError>() {
        return match error {
            MoveError::Usage(_) => USAGE,
            MoveError::Refused(_) | MoveError::Holds(_) => REFUSED,
            MoveError::Interrupted => INTERRUPTED,
            MoveError::Differs(_) | MoveError::Tool { .. } => UNMET,
            MoveError::Change(_) | MoveError::Io { .. } | MoveError::Missing(_) => MISSING,
        };
    }
    if error.is::<BrokenOff>() {
        return INTERRUPTED;
    }
    if error.is::<Usage>()
        || error.is::<workloads::WorkloadError>()
        || error.is::<ProfileError>()
        || error.is::<study::fit::FitError>()
    {
        return USAGE;
    }
    match error.downcast_ref::<ChangeError>() {
        Some(ChangeError::Conflict { .. }) => return UNMET,
        Some(ChangeError::NoSuch { .. }) => return USAGE,
        Some(ChangeError::Taken) => return REFUSED,
        _ => {}
    }
    let missing = error.is::<ChangeError>() || error.is::<Missing>() || error.is::<std::io::Error>();
    if missing { MISSING } else { UNMET }
}

fn of_kind(kind: Kind) -> u8 {
    match kind {
        Kind::Usage => USAGE,
        Kind::Refused => REFUSED,
        Kind::Missing => MISSING,
        Kind::Failed => UNMET,
    }
}

/// The status of a run that came to an end of some kind; its errors have been printed already.
pub fn of_run(finished: &Finished) -> ExitCode {
    let code = match (&finished.state, finished.errors.first()) {
        (record::State::Interrupted, _) => INTERRUPTED,
        (record::State::Failed(_), Some(error)) => of_kind(error.kind()),
        (record::State::Failed(_), None) | (_, Some(_)) => UNMET,
        (_, None) => 0,
    };
    ExitCode::from(code)
}

/// The status of what was told to end.
pub fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// The status of what is done, and a part of it failed.
pub fn partly() -> ExitCode {
    ExitCode::from(UNMET)
}

/// A run was told to end before it gave what it was made for; nothing follows it.
#[derive(Debug)]
pub struct BrokenOff(pub String);

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "interrupted in run {}; what was measured is kept", self.0)
    }
}

impl std::error::Error for BrokenOff {}

/// Something that the command line itself needs and does not find; the sentence says what and the way out.
#[derive(Debug)]
pub struct Missing(pub String);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// Something that is asked of what cannot give it; the sentence says what does.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let source = std::io::Error::from_raw_os_error(13);
        let holding = RunError::Open { path: "/x".into(), source, hint: "" };
        let said = sentence(&holding.into());
        assert_eq!(said.matches("os error 13").count(), 1, "{said}");
        let silent =
            anyhow::Error::new(std::io::Error::from_raw_os_error(28)).context("standard output cannot be written");
        assert!(sentence(&silent).starts_with("standard output cannot be written: No space left"));
    }
}
