//! What can go wrong between here and a runner: one sentence that says whom it was asked, what came of it, and the way out.
//! What a runner itself says is repeated in quotation marks, cut, and with nothing in it that a terminal would obey.

use crate::start::Runner;
use basics::Nanos;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Whom it was asked, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which runner.
    pub runner: Runner,
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it was asked to do: `load "m"`.
    pub what: String,
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}, asked to {},", self.runner, self.addr, self.what)
    }
}

/// Why a runner did not do what it was told.
#[derive(Debug, Error)]
pub enum LlmError {
    /// No such program.
    #[error("there is no program {:?} in {searched}: install {runner} ({}), or say where its program is", .runner.program(), .runner.source())]
    NotFound {
        /// Which runner.
        runner: Runner,
        /// The folders that were looked in, as `PATH` has them.
        searched: String,
    },
    /// A path that cannot be put into a command as text.
    #[error("the path {0:?} is not UTF-8, and a runner's command has to be: rename it")]
    Path(PathBuf),
    /// Not an address of this machine alone.
    #[error("{0} is not on loopback: only a runner on this machine, at 127.0.0.1 or ::1, can be measured")]
    NotLoopback(SocketAddr),
    /// A model's file, or where it should go.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A made-up model that cannot be.
    #[error("in a model of random weights, {key} {why}")]
    MadeUp {
        /// The number.
        key: &'static str,
        /// What it must be.
        why: String,
    },
    /// Whoever waits asked to stop.
    #[error("interrupted")]
    Cancelled,
    /// The process is gone before it ever answered.
    #[error("{runner} ended before it answered at {addr}: what it printed says why")]
    Gone {
        /// Which runner.
        runner: Runner,
        /// Where it should have listened.
        addr: SocketAddr,
    },
    /// It did not get ready.
    #[error("{runner} was not ready at {addr} after {waited}: {last}; allow it more time, or see what it printed")]
    NotReady {
        /// Which runner.
        runner: Runner,
        /// Where it should listen.
        addr: SocketAddr,
        /// How long it was waited for.
        waited: Nanos,
        /// What came of the last try.
        last: String,
    },
    /// Nobody there.
    #[error("{asked} cannot be reached: {source}; see whether it runs and what it printed")]
    Unreachable {
        /// Whom.
        asked: Asked,
        /// What the system said.
        source: io::Error,
    },
    /// No answer, or no more of it, in the time allowed.
    #[error("{asked} said nothing for {waited}: it hangs, or its model's tier is slower than that; allow more time")]
    Silent {
        /// Whom.
        asked: Asked,
        /// How long it was waited for.
        waited: Nanos,
    },
    /// The connection ended inside the answer.
    #[error(
        "{asked} broke off after {tokens} tokens: {why}; see what it printed, and whether the kernel ended it for want of memory"
    )]
    Broke {
        /// Whom.
        asked: Asked,
        /// Tokens that had come.
        tokens: usize,
        /// How it ended.
        why: String,
    },
    /// Not the answer of such a runner.
    #[error(
        "{asked} answered what no such runner answers: {what}; see whether another program, or another version, has that port"
    )]
    Garbage {
        /// Whom.
        asked: Asked,
        /// What came.
        what: String,
    },
    /// It says that it cannot.
    #[error("{asked} refused: {said}")]
    Refused {
        /// Whom.
        asked: Asked,
        /// In its words.
        said: String,
    },
}

/// Characters of a runner's words that a sentence repeats at most.
const MOST_SAID: usize = 300;

/// The text in quotation marks, escaped, and cut where it is long.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::from("\"");
    for c in text.trim().chars() {
        let next: String = if c == '\'' { c.into() } else { c.escape_debug().collect() };
        if shown.len() + next.len() > MOST_SAID {
            return shown + "…\"";
        }
        shown += &next;
    }
    shown + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_repeats_little_and_nothing_that_a_terminal_obeys() {
        let told = excerpt(&"\u{1b}[2J".repeat(5000));
        assert!(told.len() < 310 && !told.contains('\u{1b}') && told.ends_with("…\""), "{told}");
        let missing = LlmError::NotFound { runner: Runner::LlamaServer, searched: "/bin".to_owned() };
        let sentence = "there is no program \"llama-server\" in /bin: install llama-server \
                        (https://github.com/ggml-org/llama.cpp), or say where its program is";
        assert_eq!(missing.to_string(), sentence);
    }
}
