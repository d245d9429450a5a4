//! tiermark's command line: what was typed becomes a plan or a question, which the rooms below answer. No logic here.
#![forbid(unsafe_code)]

mod cli;
mod context;
mod exit;
mod meanwhile;
mod out;
mod progress;
mod remaining;
mod screen;
mod verbs;

use std::process::ExitCode;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    // What the rooms below have to say beside their results; TIERMARK_LOG=debug says more.
    let level = std::env::var("TIERMARK_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::WARN);
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).without_time().init();
    match cli::parse().and_then(verbs::dispatch) {
        Ok(code) => code,
        Err(error) => exit::report(&error),
    }
}
