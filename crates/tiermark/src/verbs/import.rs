//! `tiermark import`: a run that `export` wrote, here or elsewhere.

use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

/// Takes the run over, names it, and says which of its figures contradict each other.
pub fn import(context: &Context, path: &Path) -> Result<ExitCode> {
    let (mut store, _) = context.open()?;
    let id = if path == Path::new("-") {
        store.import(std::io::stdin().lock())?
    } else {
        let told = |error: std::io::Error| Missing(format!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(told)?;
        if file.metadata().map_err(told)?.is_dir() {
            return Err(Missing(format!("{} is a directory; give a file that `export` wrote", path.display())).into());
        }
        store.import(file)?
    };
    let record = store.load(&id)?;
    if context.json {
        out::print_json(&report::json::imported(&record))?;
    } else {
        out::print(&id)?;
        study::little::marks(&report::view(&record)).iter().for_each(|mark| out::say(mark));
    }
    Ok(ExitCode::SUCCESS)
}
