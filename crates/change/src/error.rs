//! What can go wrong with a change: each a sentence that says what, where, why and the way out.

use basics::Bytes;
use std::io;
use std::path::{Path, PathBuf};

/// A change that could not be made or undone.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A test file without a byte.
    #[error("a test file of 0 B in {} has nothing to measure on; ask for a larger one", dir.display())]
    Empty {
        /// The directory.
        dir: PathBuf,
    },
    /// Less than a tenth of the file system, or less than 16 MiB, would stay free.
    #[error(
        "{} has no room for {needed}: of the {free} that are free, {kept} stay free (a tenth of the file system, and 16 MiB at least); \
         make room, ask for less, or name another directory",
        dir.display()
    )]
    NoRoom {
        /// The directory.
        dir: PathBuf,
        /// What was asked for.
        needed: Bytes,
        /// What is free for this user.
        free: Bytes,
        /// What must stay free.
        kept: Bytes,
    },
    /// The directory does not exist, or is none.
    #[error("{} is not a directory; name an existing one", dir.display())]
    NotADirectory {
        /// What was named.
        dir: PathBuf,
    },
    /// The file system is mounted read-only.
    #[error("{} is on a read-only file system; name a directory that can be written", dir.display())]
    ReadOnly {
        /// The directory.
        dir: PathBuf,
    },
    /// This user may not write there.
    #[error("this user may not write in {}; name another directory{hint}", dir.display())]
    NotPermitted {
        /// The directory.
        dir: PathBuf,
        /// What more could help this user: nothing for root.
        hint: &'static str,
    },
    /// Such as `/proc`.
    #[error("{} is on a file system that has no room of its own, as /proc and /sys have none; name another directory", dir.display())]
    NoPlace {
        /// The directory.
        dir: PathBuf,
    },
    /// The journal cannot be kept, so nothing was changed.
    #[error(
        "cannot {action} the journal of changes {}: {source}; nothing was changed, because without it a change could not be \
         undone after a crash; give the rights to that folder or set XDG_DATA_HOME to another",
        path.display()
    )]
    Journal {
        /// What was tried, as a verb.
        action: &'static str,
        /// The entry or the folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The change itself failed; it has been undone.
    #[error("cannot {action} {}: {source}", path.display())]
    Apply {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not a file below `/proc/sys` or `/sys`.
    #[error("{} is not a kernel setting; name a file below /proc/sys or /sys by its full path", path.display())]
    NotASetting {
        /// What was named.
        path: PathBuf,
    },
    /// The kernel made something else of a value; what was there before has been put back.
    #[error("the kernel did not take {wanted:?} for {}: it made it {said:?}, and what was before has been put back", path.display())]
    NotTaken {
        /// The setting.
        path: PathBuf,
        /// What was written.
        wanted: String,
        /// What was read back.
        said: String,
    },
    /// A choice that this kernel does not have.
    #[error("{} does not offer {wanted:?}, only: {offered}; choose one of these, or load the module that brings it", path.display())]
    NotOffered {
        /// The setting.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
        /// What there is, with blanks between.
        offered: String,
    },
    /// This machine lacks what the change needs.
    #[error("{what}; {remedy}")]
    Lacks {
        /// What is not there.
        what: String,
        /// The way out.
        remedy: &'static str,
    },
    /// Another process has changed settings or swap for as long as it works.
    #[error(
        "another tiermark is at work on this machine with kernel settings or swap of its own, and each would falsify what the other measures; \
         wait until it has ended (`pgrep -a tiermark` names it), or end it by Ctrl-C"
    )]
    Taken,
    /// Somebody else changed it meanwhile; it was left as it is, and its journal entry is gone.
    #[error(
        "cannot undo: {target} {how} meanwhile; it was left as it is; look at it, and set it back or remove it if it is not wanted"
    )]
    Meddled {
        /// What was changed.
        target: String,
        /// What became of it, as the middle of the sentence.
        how: String,
    },
    /// Somebody changed the same lines since.
    #[error(
        "cannot revert {id}: what it wrote into {paths} was changed by somebody since; nothing was overwritten; change it back by hand \
         (what stood there before is in {})",
        ledger.display()
    )]
    Conflict {
        /// What was to be reverted.
        id: String,
        /// Which files.
        paths: String,
        /// Where the earlier text is.
        ledger: PathBuf,
    },
    /// Nothing of that name is applied.
    #[error("nothing that is called {id} is applied ({known}); `tiermark status` lists what is")]
    NoSuch {
        /// What was asked for.
        id: String,
        /// What there is.
        known: String,
    },
    /// What was changed cannot be looked at now; its journal entry is kept, so the next start tries again.
    #[error("cannot undo: {target} {why}; it is tried again at the next start")]
    Away {
        /// What was changed.
        target: String,
        /// Why it is out of reach, as the end of the sentence.
        why: String,
    },
    /// The change stands and cannot be undone now; its journal entry is kept, so the next start tries again.
    #[error("cannot undo: {action} {}: {source}; it is tried again at the next start", path.display())]
    Undo {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl ChangeError {
    /// For something that failed in a directory of the user's choice.
    pub(crate) fn in_dir(action: &'static str, dir: &Path, source: io::Error) -> Self {
        let path = dir.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ChangeError::NotADirectory { dir: path },
            io::ErrorKind::ReadOnlyFilesystem => ChangeError::ReadOnly { dir: path },
            io::ErrorKind::PermissionDenied => {
                let root = rustix::process::geteuid().is_root();
                let hint = if root { "" } else { ", or try again as root" };
                ChangeError::NotPermitted { dir: path, hint }
            }
            _ => ChangeError::Apply { action, path, source },
        }
    }

    /// For something that the kernel lets root do.
    pub(crate) fn as_root(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ChangeError::Lacks {
                what: format!("cannot {action} {}: {source}", path.display()),
                remedy: "it takes root, outside of a container; try again so",
            },
            _ => ChangeError::Apply { action, path, source },
        }
    }
}
