//! A language model under pressure: one table with a row for each tier, in the columns of the first article and a few more, and
//! below it why each is as it is.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::view::view;
use crate::words;
use basics::Known;
use basics::units::significant;
use record::Record;
use study::TokenRow;

/// The table of a run; nothing when no model made tokens.
pub(super) fn table(record: &Record, style: &Style) -> Option<String> {
    let rows = study::token_rows(&view(record));
    if rows.is_empty() {
        return None;
    }
    let heads = [
        ("tier\n", Align::Left),
        ("tokens\n/s", Align::Right),
        ("total\ns", Align::Right),
        ("load\ns", Align::Right),
        ("first\ntoken s", Align::Right),
        ("read\nMB/token", Align::Right),
        ("bound\ntokens/s", Align::Right),
        ("of it\n%", Align::Right),
        ("CPU\n%", Align::Right),
        ("iowait\n%", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    rows.iter().for_each(|row| grid.row(cells(row, style)));
    grid.fit(&[(0, 12)]);
    let headline = study::token_headline(&rows);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong) + "\n");
    out += &grid.render();
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {}  ", row.tier), &row.why, Tone::Plain));
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn cells(row: &TokenRow, style: &Style) -> Vec<(String, Tone)> {
    let scaled = |value: &Known<f64>, by: f64| match value.get() {
        Some(value) => significant(value * by),
        None => style.dash().to_owned(),
    };
    let one = |value: &Known<f64>| scaled(value, 1.0);
    // The reason once, where the first figure would stand.
    let first = match &row.tps {
        Known::Is(value) => significant(*value),
        Known::Unknown(why) => why.to_string(),
    };
    let rest = [
        one(&row.total_s),
        one(&row.load_s),
        one(&row.ttft_s),
        scaled(&row.read_per_token, 1e-6),
        one(&row.bound_tps),
        scaled(&row.share_of_bound, 100.0),
        one(&row.cpu_percent),
        one(&row.iowait_percent),
    ];
    let mut cells = vec![(row.tier.clone(), Tone::Strong), (first, Tone::Plain)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
