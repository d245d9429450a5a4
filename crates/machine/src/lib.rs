//! Reads a machine's tiers, hops and ceilings, and the kernel's and distribution's facts, below a root path: `/` for the
//! live machine, any folder for a captured or hand-made tree. It writes nothing and judges nothing beyond what the
//! files say; what a measured number means against a ceiling is left to `study`.
#![forbid(unsafe_code)]

mod below;
mod block;
mod capture;
pub mod ceiling;
mod facts;
mod filesystems;
mod heat;
mod hops;
mod layers;
pub mod model;
mod mounts;
mod read;
mod root;
mod scrub;
mod setup;
mod swap;
mod unpack;
mod warnings;

pub use below::{disks_below, tier_of_path};
pub use capture::{CaptureError, CaptureSummary, capture};
pub use model::*;
pub use mounts::mount_at;
pub use read::{read, read_with};
pub use root::Root;
pub use setup::{FstabLine, Setup, setup};
pub use unpack::{UnpackError, unpack};
