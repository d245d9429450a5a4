//! tiermark's command line: what was typed becomes a plan or a question, which the rooms below answer. No logic here.
#![forbid(unsafe_code)]

mod cli;
mod context;
mod exit;
mod out;
mod progress;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::parse().and_then(verbs::dispatch) {
        Ok(code) => code,
        Err(error) => exit::report(&error),
    }
}
