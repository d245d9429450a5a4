//! `tiermark export`: one run as one portable file.

use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes the run; an existing file is never replaced.
pub fn export(context: &Context, run: &str, path: Option<&Path>) -> Result<ExitCode> {
    let store = context.open_for_reading()?;
    let id = store.find(run)?;
    let path = path.map_or_else(|| PathBuf::from(format!("{id}.tiermark")), Path::to_owned);
    if path == Path::new("-") {
        store.export(&id, std::io::stdout().lock())?;
        return Ok(ExitCode::SUCCESS);
    }
    let file = File::options().write(true).create_new(true).open(&path);
    let file = file.map_err(|error| Missing(format!("{} cannot be made: {error}", path.display())))?;
    store.export(&id, file)?;
    out::print(&path.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
