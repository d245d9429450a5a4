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

/// Shows the tiers of the live machine or of a tree, or captures them.
pub fn tiers(context: &Context, args: &TiersArgs) -> Result<ExitCode> {
    let live = args.root == Path::new("/");
    if !live && !args.root.join("proc").is_dir() && !args.root.join("sys").is_dir() {
        let name = args.root.display();
        let message = if args.root.is_file() {
            format!("{name} is a file; unpack what --capture wrote first: mkdir machine && tar -xf {name} -C machine")
        } else {
            format!("{name} holds neither proc nor sys: it is no captured machine")
        };
        return Err(Missing(message).into());
    }
    let root = if live { Root::live() } else { Root::at(&args.root) };
    if let Some(path) = &args.capture {
        let file = File::options().write(true).create_new(true).open(path);
        let mut file = file.map_err(|error| Missing(format!("{} cannot be made: {error}", path.display())))?;
        let summary = machine::capture(&root, &mut file)?;
        out::print(&format!("{}: {summary}", path.display()))?;
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
