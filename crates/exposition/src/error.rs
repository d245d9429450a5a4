//! What keeps the page from being served, each in one sentence with the way out.

use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ExpositionError {
    /// No address.
    #[error("--metrics {given}: give an address and a port, as 127.0.0.1:9121")]
    Address {
        /// What was typed.
        given: String,
    },
    /// Others could read it.
    #[error("--metrics {at}: the page is served on loopback alone, so that no other machine reads it; take 127.0.0.1:{}", .at.port())]
    NotLoopback {
        /// What was typed.
        at: SocketAddr,
    },
    /// The port is taken, or may not be.
    #[error("--metrics {at}: cannot listen there: {why}; take another port, or 0 for any that is free")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// The system gives no thread.
    #[error("--metrics {at}: the page cannot be served: {why}; free memory or raise the process limit")]
    Serve {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        why: String,
    },
}

impl ExpositionError {
    /// Whether another command line would do.
    pub fn is_usage(&self) -> bool {
        matches!(self, ExpositionError::Address { .. } | ExpositionError::NotLoopback { .. })
    }
}
