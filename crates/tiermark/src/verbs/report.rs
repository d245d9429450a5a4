//! `tiermark report`: the HTML file of one or more runs.

use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// Writes the report and names it.
pub fn report(context: &Context, runs: &[String], path: Option<&Path>) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let records = runs.iter().map(|run| store.load(&store.find(run)?)).collect::<Result<Vec<_>, _>>()?;
    let path = match (path, records.first()) {
        (None, Some(first)) => context.report_path(&report::file_name(first))?,
        (given, _) => given.unwrap_or(Path::new("report.html")).to_owned(),
    };
    let text = report::html::report(&records.iter().collect::<Vec<_>>());
    write(&path, &text)?;
    out::print(&path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a report beside its place and renames it, so that a full disk leaves no half of one.
pub fn write(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("html.part");
    let result = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    result.map_err(|error| {
        // Best effort: the part may not exist at all.
        let _ = std::fs::remove_file(&beside);
        Missing(format!("the report cannot be written to {}: {error}; give --out FILE", path.display())).into()
    })
}
