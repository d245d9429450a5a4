//! A file with a line for each request of a visit.

use crate::RunError;
use basics::{Each, Latencies};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file for all requests, which must not be there yet.
pub(crate) fn new_log(path: &Path) -> Result<(PathBuf, File), RunError> {
    let file = File::options().write(true).create_new(true).open(path);
    let hint = "an existing file is never replaced; take another name";
    let failed = |source| RunError::Open { path: path.to_owned(), source, hint };
    file.map(|file| (path.to_owned(), file)).map_err(failed)
}

/// Writes each request, in the order of their moments, and gives how long after theirs they were sent.
pub(crate) fn write_log((path, file): (PathBuf, File), mut each: Vec<Each>) -> Result<Latencies, RunError> {
    each.sort_by_key(|one| one.at);
    let mut lag = Latencies::new();
    let mut out = BufWriter::new(file);
    let mut lines = || -> std::io::Result<()> {
        writeln!(out, "intended_ns,waited_ns,latency_ns,command")?;
        for one in &each {
            lag.record(one.waited);
            let command = if one.read { "GET" } else { "SET" };
            writeln!(out, "{},{},{},{command}", one.at.0, one.waited.0, one.latency.0)?;
        }
        out.flush()
    };
    lines().map_err(|source| RunError::Open { path, source, hint: "" })?;
    Ok(lag)
}
