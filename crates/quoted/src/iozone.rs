//! The table of iozone: a row for each record size, rates in 2^10 bytes a second. Which columns stand over which figures is
//! told by the header's words and, where tests were left out, by their places on the line.

use crate::error::{At, excerpt};
use crate::figures::{Iozone, IozoneRow};
use crate::{Block, Figures, Format, Line, QuoteError, Text};

/// Names of the columns in iozone's order, after the file's and the record's length. The header calls three of them `read`
/// and two `rewrite`; the line above it tells them apart.
pub const COLUMNS: [&str; 13] = [
    "write",
    "rewrite",
    "read",
    "reread",
    "random_read",
    "random_write",
    "backward_read",
    "record_rewrite",
    "stride_read",
    "fwrite",
    "frewrite",
    "fread",
    "freread",
];
/// What the header says for each of them.
const WORDS: [&str; 13] = [
    "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read", "fwrite", "frewrite", "fread",
    "freread",
];
/// Furthest that the end of a figure lies from the end of its column's word.
const BESIDE: usize = 1;

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks = Vec::new();
    let mut index = 0;
    while index < text.lines.len() {
        let line = text.lines[index];
        index += 1;
        if let Some(unit) = line.text.trim().strip_prefix("Output is in ") {
            let unit = unit.trim();
            if !unit.to_lowercase().starts_with("kbytes/sec") {
                let at = At { format: Format::Iozone, line: line.number };
                return Err(at.wrong(format!("its output is in {unit}; run iozone without -O and -N, for kBytes/sec")));
            }
        }
        let Some(ends) = header(line)? else { continue };
        let mut rows = Vec::new();
        while let Some(row) = text.lines.get(index).filter(|row| is_row(row.text)) {
            rows.push(*row);
            index += 1;
        }
        if index == text.lines.len() && !text.whole.ends_with('\n') {
            whole_to_its_end(&ends, &rows)?;
        }
        blocks.extend(blocks_of(line, &ends, &rows)?);
    }
    Ok(blocks)
}

/// Where the columns of a header end.
fn header(line: Line<'_>) -> Result<Option<Vec<usize>>, QuoteError> {
    let words = words(line.text);
    let [(first, _), (second, _), columns @ ..] = words.as_slice() else { return Ok(None) };
    if !first.eq_ignore_ascii_case("kb") || *second != "reclen" {
        return Ok(None);
    }
    let at = At { format: Format::Iozone, line: line.number };
    if columns.is_empty() {
        return Err(at.cut("what follows `reclen`"));
    }
    if let Some(((other, _), _)) = columns.iter().zip(WORDS).find(|((word, _), known)| word != known) {
        return Err(at.wrong(format!(
            "its column {} is not where iozone has it; copy the header as it was printed",
            excerpt(other)
        )));
    }
    if columns.len() > WORDS.len() {
        return Err(at.wrong("it has more columns than iozone"));
    }
    Ok(Some(columns.iter().map(|(_, end)| *end).collect()))
}

fn is_row(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// Words and the place, in characters, behind each.
fn words(text: &str) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut start: Option<usize> = None;
    let mut place = 0;
    for (byte, c) in text.char_indices() {
        if c.is_whitespace() {
            words.extend(start.take().map(|start| (&text[start..byte], place)));
        } else if start.is_none() {
            start = Some(byte);
        }
        place += 1;
    }
    words.extend(start.map(|start| (&text[start..], place)));
    words
}

/// Columns are printed right-aligned. Where the text ends with a figure that ends before the one above it while all others
/// stand in line, digits are missing; the first row has only the header above it.
fn whole_to_its_end(ends: &[usize], rows: &[Line<'_>]) -> Result<(), QuoteError> {
    let places = |row: &Line<'_>| words(row.text).iter().map(|(_, end)| *end).collect::<Vec<_>>();
    let (last, cut) = match rows {
        [] => return Ok(()),
        [row] => {
            let found = places(row);
            (row, found.len() != ends.len() + 2 || found.last() < ends.last())
        }
        [.., above, row] => match (places(above).as_slice(), places(row).as_slice()) {
            ([first @ .., end_above], [same @ .., end]) => (row, first == same && end < end_above),
            _ => return Ok(()),
        },
    };
    if cut {
        let at = At { format: Format::Iozone, line: last.number };
        return Err(
            at.wrong("the text ends with it, perhaps within a figure; if it is whole, end it with a line break")
        );
    }
    Ok(())
}

/// One for each length of the file.
fn blocks_of(header: Line<'_>, ends: &[usize], rows: &[Line<'_>]) -> Result<Vec<Block>, QuoteError> {
    let mut tables: Vec<(usize, Iozone)> = Vec::new();
    let mut columns: Option<(usize, Vec<usize>)> = None;
    for row in rows {
        let at = At { format: Format::Iozone, line: row.number };
        let words = words(row.text);
        let [(file, _), (record, _), figures @ ..] = words.as_slice() else {
            return Err(at.cut("the record's length"));
        };
        let file_kib = at.count(file, "the file's length")?;
        let record_kib = at.count(record, "the record's length")?;
        let rates = figures.iter().map(|(figure, _)| at.count(figure, "a rate")).collect::<Result<Vec<_>, _>>()?;
        let places: Vec<usize> = figures.iter().map(|(_, end)| *end).collect();
        let found = columns_of(at, ends, &places)?;
        match &columns {
            Some((_, first)) if *first != found => {
                return Err(at.wrong(format!(
                    "it has {} figures where the row above has {}: it was cut off; copy the whole table",
                    found.len(),
                    first.len()
                )));
            }
            Some(_) => {}
            None => columns = Some((row.number, found.clone())),
        }
        let rates = found.iter().zip(rates).map(|(column, rate)| (COLUMNS[*column].to_owned(), rate)).collect();
        let row_of = IozoneRow { record_kib, rates };
        match tables.last_mut() {
            Some((_, table)) if table.file_kib == file_kib => table.rows.push(row_of),
            _ => tables.push((row.number, Iozone { file_kib, rows: vec![row_of] })),
        }
    }
    if tables.is_empty() {
        return Err(At { format: Format::Iozone, line: header.number }.cut("the first row"));
    }
    let block =
        |(line, table)| Block { format: Format::Iozone, line, what: String::new(), figures: Figures::Iozone(table) };
    Ok(tables.into_iter().map(block).collect())
}

/// Which column each figure of a row belongs to.
fn columns_of(at: At, ends: &[usize], places: &[usize]) -> Result<Vec<usize>, QuoteError> {
    if places.is_empty() {
        return Err(at.cut("the first rate"));
    }
    if places.len() == ends.len() {
        return Ok((0..ends.len()).collect());
    }
    if places.len() > ends.len() {
        return Err(at.wrong(format!("it has {} figures under {} columns", places.len(), ends.len())));
    }
    let mut columns: Vec<usize> = Vec::new();
    for place in places {
        let from = columns.last().map_or(0, |last| last + 1);
        let near = (from..ends.len()).find(|column| ends[*column].abs_diff(*place) <= BESIDE);
        columns.push(near.ok_or_else(|| {
            at.wrong(format!(
                "it has {} figures under {} columns, and their places do not tell which: keep the spaces as they were \
                 printed, or take the words of the tests that were not run out of the header",
                places.len(),
                ends.len()
            ))
        })?);
    }
    Ok(columns)
}
