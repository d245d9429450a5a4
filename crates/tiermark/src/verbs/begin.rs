//! `tiermark` alone: what is here, what can be asked, and three commands that fit this machine.

use super::advise::advice;
use crate::cli::GoalArgs;
use crate::context::Context;
use crate::out;
use advise::{Around, begin as suggestions};
use anyhow::Result;
use machine::Root;
use std::process::ExitCode;

/// The programs that suggestions look for.
const PROGRAMS: [&str; 4] = ["ollama", "llama-server", "redis-server", "chromium"];

/// Shows the first screen.
pub fn begin(context: &Context) -> Result<ExitCode> {
    let machine = machine::read(&Root::live());
    let runs = if context.has_database() { context.open_for_reading()?.runs()?.len() } else { 0 };
    let around = Around {
        runs,
        // What cannot be said of this machine is no reason to say nothing.
        recommended: advice(context, &GoalArgs::of_anything()).map_or(0, |advice| advice.all.len()),
        programs: PROGRAMS.iter().filter(|program| is_here(program)).map(|program| (*program).to_owned()).collect(),
    };
    let said = suggestions(&machine, &around, 3);
    if context.json {
        out::print_json(&report::json::begin(&machine, &said))?;
    } else {
        out::show(&report::terminal::begin(&machine, &said, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn is_here(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
