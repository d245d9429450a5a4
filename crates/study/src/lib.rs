//! What a record means: percentiles, confidence, share of the ceiling, likeness to published devices, findings, what a
//! tier is good for. Pure: numbers in, meaning out; it reads no file and no clock.
#![forbid(unsafe_code)]

pub mod model;

pub use model::*;
