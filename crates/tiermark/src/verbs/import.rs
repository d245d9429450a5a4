//! `tiermark import`: a run that `export` wrote, here or elsewhere, or figures that other programs printed.

use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::ExitCode;

/// The first bytes of what gzip packed, as every export is.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// No text with figures is longer; a log of fio with a line for each operation of an hour is.
const LONGEST_TEXT: u64 = 256 << 20;

/// Takes the runs over, names them, and says which of their figures contradict each other.
pub fn import(context: &Context, path: &Path) -> Result<ExitCode> {
    let (mut store, _) = context.open()?;
    let told = |error: std::io::Error| Missing(format!("{} cannot be read: {error}", path.display()));
    let mut from: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let file = File::open(path).map_err(told)?;
        if file.metadata().map_err(told)?.is_dir() {
            let what = "is a directory; give a file that `export` wrote, or text with figures";
            return Err(Missing(format!("{} {what}", path.display())).into());
        }
        Box::new(file)
    };
    let mut start = Vec::new();
    (&mut from).take(GZIP.len() as u64).read_to_end(&mut start).map_err(told)?;
    let packed = start == GZIP;
    let mut from = Cursor::new(start).chain(from);
    let ids = if packed {
        vec![store.import(from)?]
    } else {
        let mut bytes = Vec::new();
        (&mut from).take(LONGEST_TEXT + 1).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() as u64 > LONGEST_TEXT {
            let what = format!("is longer than {} MiB; cut the figures out of it", LONGEST_TEXT >> 20);
            return Err(Missing(format!("{} {what}", path.display())).into());
        }
        // The figures are ASCII, whatever the words around them are written in.
        let blocks = quoted::read_named(&String::from_utf8_lossy(&bytes), &path.to_string_lossy())?;
        store.quote(blocks, &context.command, env!("CARGO_PKG_VERSION"))?
    };
    let records = ids.iter().map(|id| store.load(id)).collect::<Result<Vec<_>, _>>()?;
    if context.json {
        out::print_json(&report::json::imported(&records))?;
    } else {
        for record in &records {
            out::print(&record.run.id)?;
            study::little::marks(&report::view(record)).iter().for_each(|mark| out::say(mark));
        }
    }
    Ok(ExitCode::SUCCESS)
}
