//! Standard output that may go away: `tiermark runs | head` is no error. And the last step before a person's terminal:
//! a directory's name, a note, an imported record may hold what a terminal would obey, so it is made visible here.

use crate::exit::Missing;
use anyhow::Result;
use report::Style;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Prints a line or several for people, without colours.
pub fn print(text: &str) -> Result<()> {
    print_as_it_is(&visible(text, Keep::Lines))
}

/// Prints what `report` set in this style for people.
pub fn show(text: &str, style: &Style) -> Result<()> {
    print_as_it_is(&visible(text, if style.color { Keep::LinesAndColors } else { Keep::Lines }))
}

/// Prints `text`, which is meant for programs, and ends the line. A reader that has gone is fine; a full disk behind a
/// redirection is not.
pub fn print_as_it_is(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let result = out.write_all(text.trim_end_matches('\n').as_bytes()).and_then(|()| out.write_all(b"\n"));
    match result.and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("standard output cannot be written")),
        Ok(()) => Ok(()),
    }
}

/// A file for what was asked for; one that is there is never replaced.
pub fn make(path: &Path) -> Result<File> {
    Ok(File::options().write(true).create_new(true).open(path).map_err(|error| unmade(path, &error))?)
}

/// Tells which file was made: for people, with what else there is to say of it.
pub fn made(path: &Path, more: Option<&str>, json: bool) -> Result<()> {
    if json {
        return print_json(&report::json::made(path));
    }
    print(&more.map_or_else(|| path.display().to_string(), |more| format!("{}: {more}", path.display())))
}

/// Why there is no file of this name with what was asked for.
pub fn unmade(path: &Path, error: &io::Error) -> Missing {
    let path = path.display();
    Missing(match error.kind() {
        ErrorKind::AlreadyExists => format!("{path} exists, and nothing that exists is written over; name another"),
        _ => format!("{path} cannot be made: {error}; name another place"),
    })
}

/// Prints a JSON document.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print_as_it_is(&serde_json::to_string_pretty(value)?)
}

/// Prints a JSON document on one line, for a program that reads lines.
pub fn print_line(value: &serde_json::Value) -> Result<()> {
    print(&value.to_string())
}

/// Draws the one line on standard error that changes; empty: takes it away.
pub fn live(text: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
}

/// Shows several lines beside the result, on standard error.
pub fn beside(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text.trim_end_matches('\n'), Keep::Lines));
}

/// Says something beside the result, on standard error: one line.
pub fn say(text: &str) {
    // Nothing is left to do when standard error is gone too.
    let _ = writeln!(io::stderr().lock(), "tiermark: {}", visible(text, Keep::Nothing));
}

/// Which control characters a text may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// None: the text is one line.
    Nothing,
    /// Line ends.
    Lines,
    /// Line ends, and ANSI's `ESC [ … m`, which changes how a text looks and nothing else.
    LinesAndColors,
}

/// `text` with every character that a terminal would obey written as an escape (`\u{1b}`): controls, and the marks that
/// turn the direction of writing.
pub fn visible(text: &str, keep: Keep) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let color = if keep == Keep::LinesAndColors { color_length(rest) } else { 0 };
        let length = if color > 0 { color } else { c.len_utf8() };
        let (piece, tail) = rest.split_at(length);
        if color > 0 || !obeyed(c) || (c == '\n' && keep != Keep::Nothing) {
            out.push_str(piece);
        } else {
            out.extend(c.escape_default());
        }
        rest = tail;
    }
    Cow::Owned(out)
}

/// Bytes of the `ESC [ … m` that `text` begins with; 0 when it does not.
fn color_length(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(parameters.len());
    if parameters[end..].starts_with('m') { 2 + end + 1 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        let name = "a\x1b]0;title\x07b\x1b[2Jc\u{9b}31md\u{202e}e\r\nf\x1b[31mred\x1b[0m µs";
        assert_eq!(
            visible(name, Keep::Nothing),
            "a\\u{1b}]0;title\\u{7}b\\u{1b}[2Jc\\u{9b}31md\\u{202e}e\\r\\nf\\u{1b}[31mred\\u{1b}[0m µs"
        );
        assert!(visible(name, Keep::Lines).contains("\\r\nf\\u{1b}[31mred"));
        let colored = visible(name, Keep::LinesAndColors);
        assert!(colored.contains("\nf\x1b[31mred\x1b[0m µs") && colored.contains("\\u{1b}[2J"), "{colored}");
        assert_eq!(visible("\x1b[1", Keep::LinesAndColors), "\\u{1b}[1");
        assert!(matches!(visible("plain – µs", Keep::Nothing), Cow::Borrowed(_)));
    }
}
