//! `tiermark runs`: what was run.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use std::process::ExitCode;

/// Lists the runs, the newest first.
pub fn runs(context: &Context) -> Result<ExitCode> {
    let runs = context.open_for_reading()?.runs()?;
    if context.json {
        out::print_json(&report::json::runs(&runs))?;
    } else if runs.is_empty() {
        out::print("nothing has been run yet; `tiermark check` is a good start")?;
    } else {
        out::show(&report::terminal::runs(&runs, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}
