//! `tiermark compare`: same, better or worse.

use crate::context::Context;
use crate::out;
use anyhow::Result;
use record::{Record, Store};
use std::process::ExitCode;

/// Holds each of the later runs against the first; a list with commas is one thing measured several times.
pub fn compare(context: &Context, runs: &[String]) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let groups = runs.iter().map(|list| load(&store, list)).collect::<Result<Vec<_>>>()?;
    let Some((before, others)) = groups.split_first() else { return Ok(ExitCode::SUCCESS) };
    let mut documents = Vec::new();
    let mut texts = Vec::new();
    for after in others {
        let comparison = study::compare(&views(before), &views(after));
        documents.push(report::json::compare(&heads(before), &heads(after), &comparison));
        texts.push(report::terminal::compare(&heads(before), &heads(after), &comparison, &context.style));
    }
    match (context.json, documents.len()) {
        (true, 1) => out::print_json(&documents.remove(0))?,
        (true, _) => {
            let document = serde_json::json!({ "schema": "tiermark.comparisons/1", "comparisons": documents });
            out::print_json(&document)?;
        }
        (false, _) => out::print(&texts.join("\n"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn views(records: &[Record]) -> Vec<study::RunView<'_>> {
    records.iter().map(report::view).collect()
}

fn heads(records: &[Record]) -> Vec<&record::Run> {
    records.iter().map(|record| &record.run).collect()
}

fn load(store: &Store, list: &str) -> Result<Vec<Record>> {
    list.split(',').map(|run| Ok(store.load(&store.find(run)?)?)).collect()
}
