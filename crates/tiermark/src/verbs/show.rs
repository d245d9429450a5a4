//! `tiermark show`: one run.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use std::process::ExitCode;

/// Shows the steps of a run; of a check also what they mean.
pub fn show(context: &Context, run: &str) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let record = store.load(&store.find(run)?)?;
    if context.json {
        out::print_json(&report::json::run(&record))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = report::terminal::run(&record, &context.style);
    if record.run.plan.method == "check" {
        let study = study::explain(&report::view(&record));
        text = format!("{}\n\n{text}", report::terminal::check(&record, &study, None, &context.style));
    }
    out::show(&text, &context.style)?;
    Ok(ExitCode::SUCCESS)
}
