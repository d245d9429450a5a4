//! `tiermark completions` and `tiermark man`: both made from the definitions that parse the command line.

use crate::cli;
use crate::exit::Missing;
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;

/// Prints the completions for a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "tiermark", &mut text);
    crate::out::print_as_it_is(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for tiermark and for each verb.
pub fn man(folder: &Path) -> Result<ExitCode> {
    clap_mangen::generate_to(cli::command(), folder)
        .map_err(|error| Missing(format!("man pages cannot be written to {}: {error}", folder.display())))?;
    Ok(ExitCode::SUCCESS)
}
