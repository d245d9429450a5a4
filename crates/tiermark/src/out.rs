//! Standard output that may go away: `tiermark runs | head` is no error.

use anyhow::Result;
use std::io::{self, ErrorKind, Write};

/// Prints `text` and ends the line. A reader that has gone is fine; a full disk behind a redirection is not.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let result = out.write_all(text.trim_end_matches('\n').as_bytes()).and_then(|()| out.write_all(b"\n"));
    match result.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("standard output cannot be written")),
        Ok(()) => Ok(()),
    }
}

/// Prints a JSON document.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Says something beside the result, on standard error.
pub fn say(text: &str) {
    // Nothing is left to do when standard error is gone too.
    let _ = writeln!(io::stderr().lock(), "tiermark: {text}");
}
