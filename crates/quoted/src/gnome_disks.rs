//! The three figures that gnome-disks draws under its chart, and that nobody can copy as text: written down by hand as TOML,
//! `read_MBps = 34.8`, in a paragraph or a `[[device]]` of their own.

use crate::error::{At, in_a_line};
use crate::figures::GnomeDisks;
use crate::{Block, Figures, Format, Line, QuoteError, Text};

/// The keys that make a paragraph one of these.
const KEYS: [&str; 3] = ["read_MBps", "write_MBps", "access_ms"];

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks = Vec::new();
    let starts = |line: &Line<'_>| line.text.trim_start().starts_with('[');
    for paragraph in text.lines.split(|line| line.text.trim().is_empty()) {
        let mut rest = paragraph;
        while let [first, others @ ..] = rest {
            let length = 1 + others.iter().position(starts).unwrap_or(others.len());
            let lines;
            (lines, rest) = rest.split_at(length);
            if lines.iter().any(|line| figure(line).is_some()) {
                blocks.push(block(first, lines)?);
            }
        }
    }
    Ok(blocks)
}

/// The value of a line with one of the three keys.
fn figure<'a>(line: &Line<'a>) -> Option<(&'static str, &'a str)> {
    let (key, value) = line.text.split_once('=')?;
    let key = KEYS.into_iter().find(|known| *known == key.trim())?;
    Some((key, value.split('#').next().unwrap_or_default().trim()))
}

fn block(first: &Line<'_>, lines: &[Line<'_>]) -> Result<Block, QuoteError> {
    let format = Format::GnomeDisks;
    for line in lines {
        if let Some((key, value)) = figure(line) {
            At { format, line: line.number }.number(value, key)?;
        }
    }
    let header = first.text.trim_start().starts_with('[');
    let body = if header { &lines[1..] } else { lines };
    let toml: String = body.iter().flat_map(|line| [line.text, "\n"]).collect();
    let figures: GnomeDisks = toml::from_str(&toml).map_err(|error| {
        let before = error.span().and_then(|span| toml.get(..span.start)).unwrap_or_default();
        let line = body.first().map_or(first.number, |line| line.number) + before.matches('\n').count();
        let said = in_a_line(error.message());
        At { format, line }.wrong(format!("is not as that is written by hand ({said}); write one `key = value` a line"))
    })?;
    let numbers = [figures.read_mbps, figures.write_mbps, figures.access_ms, figures.drops_below_mbps];
    // TOML knows infinity and signs, and keys in quotation marks.
    if let Some(number) = numbers.into_iter().flatten().find(|number| !(number.is_finite() && *number >= 0.0)) {
        return Err(
            At { format, line: first.number }.wrong(format!("one of its figures is {number}, which none can be"))
        );
    }
    let what = figures.title.clone().or_else(|| figures.name.clone()).unwrap_or_default();
    Ok(Block { format, line: first.number, what, figures: Figures::GnomeDisks(figures) })
}
