//! The last line of dd, as GNU's, BusyBox's and the BSDs' print it: bytes, seconds and a rate.

use crate::error::{At, excerpt, rate};
use crate::figures::Dd;
use crate::{Block, Figures, Format, Line, QuoteError, Text};

/// Lines before its figures in which the command may stand: prompt, two counts of records.
const COMMAND_WITHIN: usize = 4;

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks = Vec::new();
    for (index, line) in text.lines.iter().enumerate() {
        let at = At { format: Format::Dd, line: line.number };
        if let Some(figures) = figures(at, line.text)? {
            let what = command(&text.lines[index.saturating_sub(COMMAND_WITHIN)..index]);
            blocks.push(Block { format: Format::Dd, line: line.number, what, figures: Figures::Dd(figures) });
        }
    }
    Ok(blocks)
}

/// `dd if=… of=…`, without the prompt.
fn command(lines: &[Line<'_>]) -> String {
    let command = |line: &Line<'_>| {
        let start = line.text.find("dd if=").or_else(|| line.text.find("dd of="))?;
        let free = line.text[..start].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '/');
        free.then(|| line.text[start..].trim().to_owned())
    };
    lines.iter().rev().find_map(command).unwrap_or_default()
}

/// Nothing when the line is not dd's.
fn figures(at: At, text: &str) -> Result<Option<Dd>, QuoteError> {
    let text = text.trim();
    let Some((bytes, rest)) = text.split_once(char::is_whitespace) else { return Ok(None) };
    let rest = rest.trim_start();
    // Other languages have other words for the rest: `bytes` or `Bytes`, then what was copied in brackets, is dd.
    let word = rest.split_whitespace().next().unwrap_or_default();
    let after = rest[word.len()..].trim_start();
    let like_dd = ["byte", "bytes", "octet", "octets"].contains(&word.to_lowercase().as_str())
        && (after.starts_with('(') || ["copied", "transferred"].iter().any(|word| after.starts_with(word)));
    if !like_dd || !bytes.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let bytes = at.count(bytes, "the number of bytes")?;
    if let Some(rest) = after.strip_prefix("transferred in ") {
        let Some((seconds, rest)) = rest.split_once(" sec") else { return Err(at.cut("the time")) };
        let seconds = at.number(seconds, "the time")?;
        if let Some((_, rate)) = rest.split_once('(') {
            let Some(rate) = rate.strip_suffix("bytes/sec)") else { return Err(at.cut("the unit of the rate")) };
            return Ok(Some(Dd { bytes, seconds, mbps: at.number(rate, "the rate")? / 1e6 }));
        }
        return Err(at.cut("the rate"));
    }
    let Some((sizes, copied)) = after.rsplit_once("copied,") else {
        let whole = after.contains(')');
        return Err(if whole {
            at.wrong("it does not say `copied`, so it is cut off or of another language; print it again with LC_ALL=C")
        } else {
            at.cut("the time")
        });
    };
    // "1,1 GB": the figures behind it would have a comma as well, or be guessed.
    let size = sizes.trim_start_matches('(').split_whitespace().next().unwrap_or_default();
    if size.starts_with(|c: char| c.is_ascii_digit()) {
        at.number(size.trim_end_matches(|c: char| !c.is_ascii_digit()), "the size")?;
    }
    let mut parts = copied.split_whitespace();
    let time = parts.next().unwrap_or_default();
    let unit = parts.next().ok_or_else(|| at.cut("the unit of the time"))?;
    let seconds = at.number(time, "the time")?;
    // BusyBox says "seconds" and counts in 2^10.
    let kilo = match unit {
        "s," => 1000.0,
        "seconds," => 1024.0,
        "s" | "seconds" => return Err(at.cut("the rate")),
        _ => return Err(at.wrong(format!("its time is in {}, not in s", excerpt(unit)))),
    };
    let rate_text: String = parts.collect();
    let bytes_a_second = at.with_unit(&rate_text, "the rate", |unit| rate(unit, kilo))?;
    Ok(Some(Dd { bytes, seconds, mbps: bytes_a_second / 1e6 }))
}
