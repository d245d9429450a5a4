//! The table of compsize: what files take on the disk and what they hold, for each kind of compression. Its letters stand for
//! powers of 2^10.

use crate::error::At;
use crate::figures::{Compsize, CompsizeRow};
use crate::{Block, Figures, Format, QuoteError, Text};

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks = Vec::new();
    for (index, line) in text.lines.iter().enumerate() {
        let head: Vec<&str> = line.text.split_whitespace().collect();
        if !head.starts_with(&["Type", "Perc", "Disk", "Usage"]) {
            continue;
        }
        let mut types = Vec::new();
        for row in &text.lines[index + 1..] {
            let at = At { format: Format::Compsize, line: row.number };
            let cells: Vec<&str> = row.text.split_whitespace().collect();
            let Some(percent) = cells.get(1).and_then(|percent| percent.strip_suffix('%')) else { break };
            let &[name, _, disk, uncompressed, referenced] = cells.as_slice() else {
                return Err(at.wrong(format!("it has {} cells, not 5; copy the line as it was printed", cells.len())));
            };
            types.push(CompsizeRow {
                kind: name.to_lowercase(),
                percent: at.number(percent, "the percentage")?,
                disk_b: bytes(at, disk, "the disk usage")?,
                uncompressed_b: bytes(at, uncompressed, "the uncompressed size")?,
                referenced_b: bytes(at, referenced, "the referenced size")?,
            });
        }
        if types.is_empty() {
            return Err(At { format: Format::Compsize, line: line.number }.cut("the first row"));
        }
        // With `-b` bytes have no letter, so a cut could not be told from the whole but by the end of the line.
        let last = line.number + types.len();
        if last == text.lines.len() && !text.whole.ends_with('\n') {
            let at = At { format: Format::Compsize, line: last };
            let ends = text.lines[last - 1].text.ends_with(|c: char| c.is_ascii_alphabetic());
            if !ends {
                return Err(at.wrong("the text ends within it; if it is whole, end it with a line break"));
            }
        }
        let figures = Figures::Compsize(Compsize { types });
        blocks.push(Block { format: Format::Compsize, line: line.number, what: String::new(), figures });
    }
    Ok(blocks)
}

fn bytes(at: At, text: &str, what: &str) -> Result<u64, QuoteError> {
    let factor = |unit: &str| match unit {
        "" | "B" => Some(1.0),
        "K" => Some(1024.0),
        "M" => Some(1_048_576.0),
        "G" => Some(1_073_741_824.0),
        "T" => Some(1_099_511_627_776.0),
        "P" => Some(1_125_899_906_842_624.0),
        _ => None,
    };
    Ok(at.with_unit(text, what, factor)?.round() as u64)
}
