//! What the outputs say, on hand-made records: the Raspberry Pi 5 that REPORT.md draws, gaps, a broken run.
#![forbid(unsafe_code)]

#[path = "../support/mod.rs"]
mod support;

mod exports;
mod html;
mod json;
mod markdown;
mod redis;
mod terminal;
