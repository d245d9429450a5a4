//! `tiermark compare`: same, better or worse.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use std::process::ExitCode;

/// Holds each of the later runs, or groups of repeated runs (`a,b,c`), against the first.
pub fn compare(context: &Context, runs: &[String]) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let load = |run: &str| store.load(&store.find(run)?);
    let groups = runs.iter().map(|group| group.split(',').map(load).collect::<Result<Vec<_>, _>>());
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    let groups: Vec<Vec<_>> = groups.iter().map(|group| group.iter().collect()).collect();
    if context.json {
        out::print_json(&report::json::compare(&groups))?;
    } else {
        out::show(&report::terminal::compare(&groups, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}
