//! The account of a run, and where it is kept: one SQLite file, append-only, crash-safe. A record is raw: histograms,
//! series, facts. Rates, percentiles and verdicts are derived by `study`, never stored as truth.
#![forbid(unsafe_code)]

mod blob;
pub mod error;
mod load;
pub mod model;
mod place;
pub mod portable;
mod proof;
mod recover;
mod schema;
pub mod spool;
pub mod store;
mod thin;

pub use error::RecordError;
pub use load::LONGEST_SERIES;
pub use model::*;
pub use place::default_path;
pub use proof::{Proof, Turn};
pub use spool::Spool;
pub use store::{RunHead, Store};
