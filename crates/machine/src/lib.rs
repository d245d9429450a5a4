//! Reads a machine's tiers, hops and ceilings, and the kernel's and distribution's facts, below a root path: `/` for the
//! live machine, any folder for a captured or hand-made tree. It writes nothing and judges nothing beyond what the
//! files say; what a measured number means against a ceiling is left to `study`.
#![forbid(unsafe_code)]

pub mod model;

pub use model::*;
