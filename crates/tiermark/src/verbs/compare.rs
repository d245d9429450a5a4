//! `tiermark compare`: same, better or worse.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use std::process::ExitCode;

/// Holds each of the later runs against the first.
pub fn compare(context: &Context, runs: &[String]) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let records = runs.iter().map(|run| store.load(&store.find(run)?)).collect::<Result<Vec<_>, _>>()?;
    let records: Vec<_> = records.iter().collect();
    if context.json {
        out::print_json(&report::json::compare(&records))?;
    } else {
        out::show(&report::terminal::compare(&records, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}
