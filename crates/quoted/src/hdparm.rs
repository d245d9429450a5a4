//! The lines of `hdparm -tT`: `Timing O_DIRECT disk reads: 1232 MB in 3.00 seconds = 410.22 MB/sec`. A line with a device's
//! name, or a figure that is there already, begins the next block.

use crate::error::{At, excerpt, rate};
use crate::figures::Hdparm;
use crate::{Block, Figures, Format, QuoteError, Text};

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut device: Option<(usize, &str)> = None;
    let mut open: Option<(usize, String, Hdparm)> = None;
    let close = |open: &mut Option<(usize, String, Hdparm)>, blocks: &mut Vec<Block>| {
        if let Some((line, what, figures)) = open.take() {
            blocks.push(Block { format: Format::Hdparm, line, what, figures: Figures::Hdparm(figures) });
        }
    };
    for line in &text.lines {
        let words = line.text.trim();
        if let Some((name, _)) = words.split_once(':').filter(|(name, _)| name.starts_with("/dev/")) {
            if !name.contains(char::is_whitespace) {
                close(&mut open, &mut blocks);
                device = Some((line.number, name));
            }
            continue;
        }
        let Some(timing) = words.strip_prefix("Timing ") else { continue };
        let cached = timing.contains("cached reads");
        if !cached && !timing.contains("disk reads") {
            continue;
        }
        let value = mibps(At { format: Format::Hdparm, line: line.number }, timing)?;
        if open.as_ref().is_some_and(
            |(_, _, figures)| {
                if cached { figures.cached_mibps.is_some() } else { figures.disk_mibps.is_some() }
            },
        ) {
            close(&mut open, &mut blocks);
        }
        let (_, _, figures) = open.get_or_insert_with(|| {
            let (at, name) = device.take().unwrap_or((line.number, ""));
            (at, name.to_owned(), Hdparm::default())
        });
        figures.direct = timing.starts_with("O_DIRECT");
        *(if cached { &mut figures.cached_mibps } else { &mut figures.disk_mibps }) = Some(value);
    }
    close(&mut open, &mut blocks);
    Ok(blocks)
}

/// The rate at the line's end. hdparm computes in 2^20 bytes and, below one of them a second, in 2^10.
fn mibps(at: At, timing: &str) -> Result<f64, QuoteError> {
    // With `--offset` there is one more colon-free pair of brackets before this one.
    let Some((_, rest)) = timing.split_once("reads").and_then(|(_, rest)| rest.split_once(':')) else {
        return Err(at.cut("what follows the colon"));
    };
    let Some((amount, result)) = rest.split_once('=') else { return Err(at.cut("the rate after `=`")) };
    let mut words = amount.split_whitespace();
    at.number(words.next().unwrap_or_default(), "the amount")?;
    let rest: Vec<&str> = words.collect();
    let &["MB" | "kB", "in", seconds, "seconds"] = rest.as_slice() else {
        return Err(at.wrong("it does not say `N MB in S seconds`; copy the line as it was printed"));
    };
    at.number(seconds, "the time")?;
    let result = result.trim();
    let Some((value, unit)) = result.split_once(char::is_whitespace) else {
        return Err(at.cut("the unit of the rate"));
    };
    let value = at.number(value, "the rate")?;
    let factor = match unit.trim() {
        unit @ ("MB/sec" | "kB/sec") => rate(unit, 1024.0),
        _ => None,
    };
    let factor = factor.ok_or_else(|| at.wrong(format!("its rate is in {}, not in MB/sec", excerpt(unit))))?;
    Ok(value * (factor / 1_048_576.0))
}
