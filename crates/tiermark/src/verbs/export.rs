//! `tiermark export`: one run as one file, whole and portable or in the form of other programs.

use crate::cli::Format;
use crate::context::Context;
use crate::exit::Usage;
use crate::out;
use anyhow::Result;
use record::{Record, RunId, Store};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the run; an existing file is never replaced.
pub fn export(context: &Context, run: &str, format: Format, path: Option<&Path>) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let id = store.find(run)?;
    let text = text(&store, &id, format)?;
    let path = path.map_or_else(|| PathBuf::from(format!("{id}.{}", ending(format))), Path::to_owned);
    if path == Path::new("-") {
        match text {
            Some(text) => out::print_as_it_is(&text)?,
            None => store.export(&id, std::io::stdout().lock())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut file = out::make(&path)?;
    let written = match text {
        Some(text) => file.write_all(text.as_bytes()).map_err(|error| out::unmade(&path, &error).into()),
        None => store.export(&id, file).map_err(|error| anyhow::Error::from(error).context(path.display().to_string())),
    };
    if written.is_err() {
        // A part of it looks like the whole to whoever finds it, and is in the way of the next try.
        let _ = std::fs::remove_file(&path);
    }
    written?;
    out::made(&path, None, context.json)?;
    Ok(ExitCode::SUCCESS)
}

fn ending(format: Format) -> &'static str {
    match format {
        Format::Portable => "tiermark",
        Format::Json => "json",
        Format::FioJson => "fio.json",
        Format::Csv => "csv",
        // What node_exporter looks for in its folder.
        Format::Openmetrics => "prom",
    }
}

/// The run in the form of other programs; nothing for the portable file, which the store writes.
fn text(store: &Store, id: &RunId, format: Format) -> Result<Option<String>> {
    let pretty = |document| serde_json::to_string_pretty(&document).map(|text| text + "\n");
    let measured = || store.load(id).map_err(anyhow::Error::from).and_then(with_steps);
    Ok(Some(match format {
        Format::Portable => return Ok(None),
        Format::Json => pretty(report::json::run(&store.load(id)?))?,
        Format::FioJson => pretty(report::fio_json::run(&measured()?))?,
        Format::Csv => report::csv::run(&measured()?)?,
        Format::Openmetrics => report::openmetrics::run(&measured()?),
    }))
}

/// The record, if it has steps: of those these forms consist, and without any they would be empty and look whole.
fn with_steps(record: Record) -> Result<Record> {
    let Some(quoted) = &record.run.quoted else { return Ok(record) };
    let text = format!(
        "run {} holds figures that were imported ({}) and no operations of its own, of which this form consists; --format \
         json gives the figures, and without --format the run goes out whole",
        record.run.id,
        quoted.format().words()
    );
    Err(Usage(text).into())
}
