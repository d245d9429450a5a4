//! Why a system could not be moved; each a sentence with what, where and the way out.

use change::{ChangeError, Refused};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a system could not be moved.
#[derive(Debug, Error)]
pub enum MoveError {
    /// Writing there is refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A change of the machine failed.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The kernel said no.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Of which file.
        path: PathBuf,
        /// Its word.
        source: io::Error,
    },
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// Something that it takes is not there.
    #[error("{0}")]
    Missing(String),
    /// The target would be written over.
    #[error("{0}")]
    Holds(String),
    /// A program that makes a file system failed.
    #[error("{program} failed: {said}")]
    Tool {
        /// Which.
        program: &'static str,
        /// Its last line.
        said: String,
    },
    /// It was told to end; the same command goes on.
    #[error("interrupted; the same command goes on where it ended")]
    Interrupted,
    /// What was copied is not what is there.
    #[error("{0}")]
    Differs(String),
}

impl MoveError {
    /// For `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> MoveError {
        let path = path.to_owned();
        move |source| MoveError::Io { action, path, source }
    }

    /// The same for a system call.
    pub(crate) fn errno(action: &'static str, path: &Path) -> impl FnOnce(rustix::io::Errno) -> MoveError {
        let path = path.to_owned();
        move |errno| MoveError::Io { action, path, source: errno.into() }
    }
}
