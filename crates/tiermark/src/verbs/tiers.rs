//! `tiermark tiers`: what is here and what the way to it lets through; or a capture of it for others.

use crate::cli::TiersArgs;
use crate::context::Context;
use crate::exit::Missing;
use crate::out;
use anyhow::Result;
use machine::Root;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use tempfile::TempDir;

/// Shows the tiers of the live machine or of a tree, or captures them.
pub fn tiers(context: &Context, args: &TiersArgs) -> Result<ExitCode> {
    // Kept until the machine is read; then it goes.
    let unpacked = if args.root.is_file() { Some(unpacked(&args.root)?) } else { None };
    let folder = unpacked.as_ref().map_or(args.root.as_path(), TempDir::path);
    let live = folder == Path::new("/");
    if !live && !folder.join("proc").is_dir() && !folder.join("sys").is_dir() {
        let message = format!("{} holds neither proc nor sys: it is no captured machine", args.root.display());
        return Err(Missing(message).into());
    }
    let root = if live { Root::live() } else { Root::at(folder) };
    if let Some(path) = &args.capture {
        let mut file = out::make(path)?;
        let captured = machine::capture(&root, &mut file);
        if captured.is_err() {
            let _ = std::fs::remove_file(path);
        }
        let summary = captured?;
        out::made(path, Some(&summary.to_string()), context.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let machine = machine::read(&root);
    if context.json {
        out::print_json(&report::json::tiers(&machine))?;
    } else {
        out::show(&report::terminal::tiers(&machine, &context.style), &context.style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The tree in a file that --capture wrote, in a folder of its own.
fn unpacked(file: &Path) -> Result<TempDir> {
    let told = |why: String| Missing(format!("{}: {why}", file.display()));
    let opened = File::open(file).map_err(|error| told(format!("it cannot be read: {error}")))?;
    let folder =
        TempDir::new().map_err(|error| told(format!("there is no temporary folder to unpack it in: {error}")))?;
    machine::unpack(opened, folder.path()).map_err(|error| told(error.to_string()))?;
    Ok(folder)
}
