//! What can go wrong with the database, its spool or a portable file: each a sentence that says what, where, why and the
//! way out.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Neither `XDG_DATA_HOME` nor `HOME` says where data belongs.
    #[error(
        "no place for the database: neither XDG_DATA_HOME nor HOME is set to a full path; name a file with --db FILE"
    )]
    NoHome,
    /// The file is no SQLite database.
    #[error("{path} is not a tiermark database (it is no SQLite file); name another file with --db FILE")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// An SQLite database of some other program.
    #[error("{path} is another program's database; nothing was changed in it; name another file with --db FILE")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later tiermark.
    #[error(
        "{path} was written by a newer tiermark (its schema is version {found}, this program knows {known}); \
         update tiermark, or name another file with --db FILE"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// Written by an earlier tiermark, and in a place where it cannot be brought up to date.
    #[error(
        "{path} was written by an older tiermark (its schema is version {found}, this program needs {known}) and cannot \
         be brought up to date because it may not be written; copy it elsewhere and name the copy with --db FILE"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// What this program needs.
        known: i64,
    },
    /// The file or its folder cannot be read or made.
    #[error("cannot {action} {path}: {source}; give the rights to it, or name another file with --db FILE")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no database yet.
    #[error(
        "there is no database at {path}, so no run is recorded there yet; `tiermark check` makes one, or name another with --db FILE"
    )]
    NoDatabase {
        /// Where one was looked for.
        path: PathBuf,
    },
    /// It may be read and not written.
    #[error(
        "{path} may not be written (by this user, or because its file system is read-only); give the rights to it and its folder, or name another file with --db FILE"
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// No room for it.
    #[error(
        "the file system that holds {path} is full; free some space there, or name a file elsewhere with --db FILE"
    )]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another tiermark has held it for long.
    #[error(
        "{path} is in use by another tiermark that did not let go within 10 s; try again, or name another file with --db FILE"
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Its content is damaged.
    #[error(
        "{path} is damaged ({why}); keep it for rescue (`sqlite3 {path} .recover`) and name another file with --db FILE"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Anything else that SQLite says.
    #[error("the database {path} failed: {why}; if it happens again, name another file with --db FILE")]
    Failed {
        /// The file.
        path: PathBuf,
        /// In SQLite's words.
        why: String,
    },
    /// Something to be kept is not text.
    #[error("the run cannot be recorded: {why}; nothing was begun; use a path whose name is UTF-8")]
    NotText {
        /// In the serialiser's words.
        why: String,
    },
    /// There is none yet.
    #[error("no run is recorded in {path} yet; `tiermark check` makes one")]
    NoRunYet {
        /// The file.
        path: PathBuf,
    },
    /// No run has that name.
    #[error("no run is called {asked:?}; `tiermark runs` lists them")]
    NoSuchRun {
        /// What was asked for.
        asked: String,
    },
    /// Several runs have names that begin so.
    #[error("{asked:?} could be any of {}; write more of the name", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        asked: String,
        /// Some of the runs that match.
        candidates: Vec<String>,
    },
    /// Not the beginning of a run's name.
    #[error(
        "{asked:?} is no run: write `last`, or at least four of a run's eight hexadecimal digits (`tiermark runs` lists them)"
    )]
    NotARun {
        /// What was asked for.
        asked: String,
    },
    /// The run has not ended.
    #[error("run {run} is still being measured; try again when it has ended")]
    StillRunning {
        /// Its name.
        run: String,
    },
    /// A portable file that cannot be read.
    #[error("this is not a run that `tiermark export` wrote, or it is damaged: {why}; export it again")]
    NotPortable {
        /// What is wrong, with the line where that is known.
        why: String,
    },
    /// A portable file of a later tiermark.
    #[error("this run was exported by a newer tiermark (format {found}, this program knows {known}); update tiermark")]
    NewerPortable {
        /// Its format.
        found: u64,
        /// The newest that this program knows.
        known: u64,
    },
    /// The portable file could not be written or read at all.
    #[error("cannot {action} the portable file: {source}")]
    Portable {
        /// `write` or `read`.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl RecordError {
    /// Puts SQLite's own failure into a sentence about the file at `path`.
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let path = path.to_owned();
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                Code::NotADatabase => RecordError::NotADatabase { path },
                Code::DiskFull => RecordError::Full { path },
                // What it keeps beside the database finds no room either, and that it calls an error of the disk.
                Code::SystemIoFailure if is_full(&path) => RecordError::Full { path },
                Code::DatabaseBusy | Code::DatabaseLocked => RecordError::Busy { path },
                Code::ReadOnly | Code::PermissionDenied => RecordError::ReadOnly { path },
                Code::DatabaseCorrupt => RecordError::Damaged { path, why: error.to_string() },
                _ => RecordError::Failed { path, why: error.to_string() },
            },
            rusqlite::Error::ToSqlConversionFailure(inner) if inner.is::<serde_json::Error>() => {
                RecordError::NotText { why: inner.to_string() }
            }
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => RecordError::Damaged { path, why: error.to_string() },
            _ => RecordError::Failed { path, why: error.to_string() },
        }
    }
}

/// Whether the file system that holds it has no room left for this user.
fn is_full(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    rustix::fs::statvfs(folder).is_ok_and(|left| left.f_bavail == 0)
}
