//! The words that every other room speaks: units, jobs, plans, latency histograms and the statistics behind a
//! confidence interval. Nothing here touches the world: no file, no clock, no thread. What a number *means* is left to
//! `study`; how it is measured is left to `engine`.
#![forbid(unsafe_code)]

pub mod cost;
pub mod curve;
pub mod decoding;
pub mod desktop;
pub mod job;
pub mod known;
pub mod latency;
pub mod learned;
pub mod little;
pub mod outcome;
pub mod plan;
pub mod pressure;
pub mod redis;
pub mod redis_commands;
pub mod scale;
pub mod sensors;
pub mod spikes;
pub mod stats;
pub mod units;
pub mod vectors;

pub use job::Job;
pub use known::{Known, Why};
pub use latency::Latencies;
pub use outcome::{Each, EngineUse, Expected, FailKind, Interval, NotRun, Predicted, Side};
pub use plan::Plan;
pub use scale::{NotAScale, NothingToScale, Scale};
pub use units::{Bytes, Nanos};
