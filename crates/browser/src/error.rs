//! What can go wrong, as sentences.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A browser that cannot be used.
#[derive(Debug, Error)]
pub enum BrowserError {
    /// None is there.
    #[error("no Chromium is found in {searched}; install chromium, or give --browser FILE")]
    NotFound {
        /// What was searched.
        searched: String,
    },
    /// Its files cannot be looked at.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The pages cannot be served.
    #[error("pages cannot be served on loopback: {0}")]
    Serve(String),
    /// It has ended, or closed its pipe.
    #[error("the browser has ended")]
    Gone,
}
