//! Reads a machine's tiers, hops and ceilings, and the kernel's and distribution's facts, below a root path: `/` for the
//! live machine, any folder for a captured or hand-made tree. It writes nothing and judges nothing beyond what the
//! files say; what a measured number means against a ceiling is left to `study`.
#![forbid(unsafe_code)]

mod block;
mod facts;
mod heat;
mod hops;
pub mod model;
mod mounts;
mod read;
mod root;
mod swap;

pub use model::*;
pub use read::{disks_below, read, tier_of_path};
pub use root::Root;
