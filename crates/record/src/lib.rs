//! The account of a run, and where it is kept: one SQLite file, append-only, crash-safe. A record is raw: histograms,
//! series, facts. Rates, percentiles and verdicts are derived by `study`, never stored as truth.
#![forbid(unsafe_code)]

pub mod model;

pub use model::*;
