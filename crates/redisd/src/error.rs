//! What can go wrong between here and a server, each in one sentence with the way out.

use crate::start::Address;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a server did not do what it was told.
#[derive(Debug, Error)]
pub enum RedisError {
    /// No such program.
    #[error(
        "there is no redis-server or valkey-server in {searched}: install it (Debian: redis-server), or say where it is with --server"
    )]
    NotFound {
        /// The folders that were looked in, as `PATH` has them.
        searched: String,
    },
    /// A file that it needs.
    #[error("cannot {action} {}: {source}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not there, or went away.
    #[error("the server at {at} cannot be asked to {what}: {why}")]
    Asked {
        /// Where.
        at: Address,
        /// What.
        what: String,
        /// The reason.
        why: String,
    },
    /// A URL that is none of a server.
    #[error("{url}: {why}")]
    Url {
        /// As it was typed, without a password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server at a URL is not there, or does not do it.
    #[error("the server at {url} cannot be looked at: {why}")]
    AtUrl {
        /// As it was typed, without a password.
        url: String,
        /// The reason.
        why: String,
    },
    /// It ended before it answered.
    #[error(
        "the server ended before it answered{}",
        .wrote.as_ref().map_or_else(String::new, |line| format!("; it wrote: {line}"))
    )]
    Ended {
        /// Its last line, where it wrote one.
        wrote: Option<String>,
    },
    /// It did not answer in time.
    #[error("the server at {at} did not become ready in {seconds} s: {why}")]
    NotReady {
        /// Where.
        at: Address,
        /// So long.
        seconds: u64,
        /// What it said last.
        why: String,
    },
}
