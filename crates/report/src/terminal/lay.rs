//! Lays text out: paragraphs with a hanging indent, borderless tables, bars, paint. Tables are `comfy-table`'s; they are
//! made to fit by shortening names before, so that no figure is ever broken over two lines.

use super::Style;
use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, TableStyle};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

/// What a word means, for readers with a colour terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Faint,
    Strong,
    Good,
    Fair,
    Bad,
}

impl Tone {
    /// The tone of a verdict on fitness or of a comparison.
    pub fn of_verdict(verdict: &str) -> Tone {
        match verdict {
            "yes" | "better" => Tone::Good,
            "slow" | "small" | "everysec" => Tone::Fair,
            "no" | "worse" => Tone::Bad,
            _ => Tone::Faint,
        }
    }
}

impl Style {
    /// The text in a colour, when there are colours.
    pub(super) fn paint(&self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Faint => "2",
            Tone::Strong => "1",
            Tone::Good => "32",
            Tone::Fair => "33",
            Tone::Bad => "31",
        };
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// A mark in Unicode, or its stand-in.
    pub(super) fn mark<'a>(&self, unicode: &'a str, ascii: &'a str) -> &'a str {
        if self.unicode { unicode } else { ascii }
    }

    /// The en dash of a range and of a figure that does not apply.
    pub(super) fn dash(&self) -> &'static str {
        self.mark("–", "-")
    }

    /// `text` in ASCII where this style asks for it; units stay.
    pub(super) fn plain(&self, text: &str) -> String {
        if self.unicode {
            return text.to_owned();
        }
        text.chars()
            .map(|c| match c {
                '–' | '—' | '−' => "-".to_owned(),
                '→' => "->".to_owned(),
                '◂' => "<".to_owned(),
                '≈' => "~".to_owned(),
                '×' => "x".to_owned(),
                '…' => "...".to_owned(),
                c => c.to_string(),
            })
            .collect()
    }

    /// [`shorten`]; the ellipsis is one column in ASCII too.
    fn shorten(&self, text: &str, columns: usize) -> String {
        let short = shorten(text, columns);
        if self.unicode { short } else { short.replace('…', "~") }
    }

    /// A bar of `cells` columns filled to `share` (0 to 1, more is full) in eighths.
    pub(super) fn bar(&self, share: f64, cells: usize) -> String {
        let share = share.clamp(0.0, 1.0);
        if !self.unicode {
            let full = (share * cells as f64).round() as usize;
            return format!("{}{}", "#".repeat(full), ".".repeat(cells - full));
        }
        const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        let eighths = (share * cells as f64 * 8.0).round() as usize;
        let mut out = "█".repeat(eighths / 8);
        if let Some(part) = (eighths % 8).checked_sub(1).and_then(|i| EIGHTHS.get(i)) {
            out.push(*part);
        }
        pad(&out, cells)
    }

    /// `left` and `right` on one line, or on two when they do not fit.
    pub(super) fn both_ends(&self, left: &str, right: &str) -> String {
        let taken = width(left) + width(right);
        if taken + 2 <= self.width {
            format!("{left}{}{right}\n", " ".repeat(self.width - taken))
        } else {
            format!("{}{right}\n", self.paragraph("", left, Tone::Plain))
        }
    }

    /// A paragraph that starts with `lead` and whose further lines are indented as deep as the lead is wide.
    pub(super) fn paragraph(&self, lead: &str, text: &str, tone: Tone) -> String {
        let indent = " ".repeat(width(lead));
        let options = textwrap::Options::new(self.width.max(40))
            .initial_indent(lead)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_separator(textwrap::WordSeparator::AsciiSpace)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        let text = glued(&self.plain(text));
        let mut out = String::new();
        for line in textwrap::wrap(&text, options) {
            let line = line.replace('\u{a0}', " ");
            let (head, tail) = line.split_at(line.len() - line.trim_start().len());
            let (head, tail) = if line.starts_with(lead) { line.split_at(lead.len()) } else { (head, tail) };
            out.push_str(head);
            out.push_str(&self.paint(tail, tone));
            out.push('\n');
        }
        out
    }
}

/// Keeps a number and its unit on one line (`430 MB/s`, `±6 %`).
fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        out.push_str(word);
        if let Some(next) = words.peek() {
            let number = word.ends_with(|c: char| c.is_ascii_digit());
            let unit =
                ["%", "MB/s", "GB", "MB", "KiB", "MiB", "GiB", "µs", "ms", "ns", "s", "°C", "IOPS", "times", "W"]
                    .iter()
                    .any(|unit| next.trim_end_matches(['.', ',', ';', ')', ':']) == *unit);
            out.push(if number && unit { '\u{a0}' } else { ' ' });
        }
    }
    out
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// `text` filled with blanks to `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` filled with blanks in front to `columns`.
pub fn pad_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// `text` cut to `columns`, with an ellipsis where something is missing.
pub fn shorten(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if width(&out) + width(c.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        out.push(c);
    }
    let cut = out.trim_end_matches([' ', ',', '(', '-']).len();
    out.truncate(cut);
    out.push('…');
    out
}

/// How a column's cells stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table without borders, its heads faint, indented by two.
pub struct Grid {
    style: Style,
    indent: usize,
    gap: usize,
    heads: Vec<(String, Align)>,
    rows: Vec<Vec<(String, Tone)>>,
    /// Rows that are one text over all columns, by the row's number.
    headings: BTreeMap<usize, String>,
}

impl Grid {
    /// A table with these column heads; a head may have several lines.
    pub fn new(style: &Style, heads: &[(&str, Align)]) -> Self {
        Grid {
            style: style.clone(),
            indent: 2,
            gap: 2,
            heads: heads.iter().map(|(head, align)| (style.plain(head), *align)).collect(),
            rows: Vec::new(),
            headings: BTreeMap::new(),
        }
    }
    /// Adds a row that is one text over all columns.
    pub fn heading(&mut self, text: &str) {
        let room = self.style.width.saturating_sub(self.indent);
        self.headings.insert(self.rows.len(), self.style.shorten(&self.style.plain(text), room));
        self.rows.push(Vec::new());
    }
    /// Blanks before the first column.
    pub fn indent(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }
    /// Adds a row; it has as many cells as there are heads.
    pub fn row(&mut self, cells: Vec<(String, Tone)>) {
        self.rows.push(cells.into_iter().map(|(text, tone)| (self.style.plain(&text), tone)).collect());
    }
    /// Columns taken by all but the named column.
    fn others(&self, shrinkable: usize) -> usize {
        let widths = self.widths();
        let all: usize = widths.iter().sum::<usize>() + self.gap * widths.len().saturating_sub(1) + self.indent;
        all - widths.get(shrinkable).copied().unwrap_or(0)
    }
    fn widths(&self) -> Vec<usize> {
        (0..self.heads.len())
            .map(|column| {
                let head = self.heads[column].0.lines().map(width).max().unwrap_or(0);
                self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| width(text)).fold(head, usize::max)
            })
            .collect()
    }
    /// Shortens the cells of columns, in this order, each down to its least width, until the table fits.
    pub fn fit(&mut self, shrinkable: &[(usize, usize)]) {
        for (column, least) in shrinkable {
            let room = self.style.width.saturating_sub(self.others(*column)).max(*least);
            for row in &mut self.rows {
                if let Some((text, _)) = row.get_mut(*column) {
                    *text = self.style.shorten(text, room);
                }
            }
        }
    }
    /// True while the table is wider than its style allows.
    pub fn overflows(&self) -> bool {
        self.others(usize::MAX) > self.style.width
    }
    /// Other texts for a column, row by row.
    pub fn replace<'a>(&mut self, column: usize, texts: impl Iterator<Item = &'a str>) {
        for (row, new) in self.rows.iter_mut().zip(texts) {
            if let Some((text, _)) = row.get_mut(column) {
                new.clone_into(text);
            }
        }
    }
    /// The table as lines.
    pub fn render(&self) -> String {
        let mut table = Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        if self.style.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.set_header(self.heads.iter().map(|(head, _)| paint_cell(Cell::new(head), Tone::Faint)));
        for row in &self.rows {
            table.add_row(row.iter().map(|(text, tone)| paint_cell(Cell::new(text.replace('\n', " ")), *tone)));
        }
        for (index, (_, align)) in self.heads.iter().enumerate() {
            if let Some(column) = table.column_mut(index) {
                let before = if index == 0 { self.indent } else { self.gap };
                column.set_padding((u16::try_from(before).unwrap_or(2), 0));
                column.set_cell_alignment(match align {
                    Align::Left => CellAlignment::Left,
                    Align::Right => CellAlignment::Right,
                });
            }
        }
        // No cell has a line break, so that a row is a line below the lines of the head.
        let head = self.heads.iter().map(|(head, _)| head.lines().count()).max().unwrap_or(0);
        let mut out = String::new();
        for (number, line) in table.lines().enumerate() {
            match number.checked_sub(head).and_then(|row| self.headings.get(&row)) {
                Some(text) => {
                    out.push_str(&" ".repeat(self.indent));
                    out.push_str(&self.style.paint(text, Tone::Strong));
                }
                None => out.push_str(line.trim_end()),
            }
            out.push('\n');
        }
        out
    }
}

fn paint_cell(cell: Cell, tone: Tone) -> Cell {
    match tone {
        Tone::Plain => cell,
        Tone::Faint => cell.add_attribute(Attribute::Dim),
        Tone::Strong => cell.add_attribute(Attribute::Bold),
        Tone::Good => cell.fg(Color::DarkGreen),
        Tone::Fair => cell.fg(Color::DarkYellow),
        Tone::Bad => cell.fg(Color::DarkRed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_count_eighths() {
        let style = Style::default();
        assert_eq!(style.bar(0.97, 8), "███████▊");
        assert_eq!(style.bar(0.5, 8), "████    ");
        assert_eq!(style.bar(7.0, 8), "████████");
        assert_eq!(Style { unicode: false, ..style }.bar(0.5, 8), "####....");
    }

    #[test]
    fn a_number_keeps_its_unit() {
        let style = Style { width: 40, ..Style::default() };
        let text = style.paragraph("  1  ", "What it reads is as much as 430 MB/s and more than enough.", Tone::Plain);
        assert_eq!(text, "  1  What it reads is as much as\n     430 MB/s and more than enough.\n");
    }

    #[test]
    fn shortened_names_say_so() {
        assert_eq!(shorten("INTEL MEMPEK1W016GA", 12), "INTEL MEMPE…");
        assert_eq!(shorten("Optane", 12), "Optane");
    }
}
