//! Real work whose memory is short, as plans: what is touched and how, what is taken away, what the rest is swapped to. A plan
//! has one target for each tier that is tried, and its steps visit them in turns, so that what changes meanwhile meets all.
#![forbid(unsafe_code)]

pub mod build;
pub mod decode;
pub mod desktop;
pub mod llm;
pub mod probe;
pub mod redis;
pub mod swap;
mod tier;
pub mod vectors;

pub use tier::{Tier, TierError, ladder};

use basics::Bytes;
use thiserror::Error;

/// A workload that cannot be planned. Each sentence says what, and the way out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// A tier is not understood.
    #[error(transparent)]
    Tier(#[from] TierError),
    /// A size makes no sense.
    #[error("{0}")]
    Size(String),
}

/// What a workload that uses `size` needs of swap: a little more than twice as much. A page that was swapped out and came back
/// keeps its place there, so that it need not be written again; once half of all places are taken the kernel gives them up
/// (`vm_swap_full` in mm/swap.h), and from then on writes as much as it reads.
fn room(size: Bytes) -> Bytes {
    const PIECE: u64 = 16 << 20;
    Bytes((size.0 * 2 + size.0 / 8).next_multiple_of(PIECE))
}
