//! What can go wrong with an emulated disk: each a sentence that says what, where, why and the way out.

use change::ChangeError;
use profile::ProfileError;
use std::io;
use std::path::PathBuf;

/// An emulated disk that could not be made, asked or ended.
#[derive(Debug, thiserror::Error)]
pub enum SlowdiskError {
    /// The machine lacks something; the sentence says what and the way out.
    #[error("{0}")]
    Needs(String),
    /// The size, the name or the sector makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A fault's specification makes no sense.
    #[error("{spec:?} is no fault: {why}; write for example eio:on=write,p=0.01,range=1MiB-2MiB,seed=7")]
    Fault {
        /// What was given.
        spec: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing of that name runs.
    #[error("no emulated disk is called {0:?}; `tiermark emulate list` shows those that run")]
    Unknown(String),
    /// Refused for safety.
    #[error("{0}")]
    Refused(String),
    /// The profile does not do.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A mount, a loop device or a file could not be made or undone.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A file, a socket or a thread.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The other side of the socket said so.
    #[error("{0}")]
    Told(String),
}

/// For `map_err`.
pub(crate) fn io_at(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SlowdiskError {
    let path = path.into();
    move |source| SlowdiskError::Io { action, path, source }
}
