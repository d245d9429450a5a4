//! A workload under pressure: one table with a row for each tier that it was swapped to, and below it why each is as it is.

use super::lay::{Align, Grid, Tone};
use super::{Style, memory};
use crate::view::view;
use crate::words;
use basics::Known;
use basics::units::significant;
use record::Record;
use study::LoadRow;

/// The table of a run; nothing when it was no workload.
pub(super) fn table(record: &Record, style: &Style) -> Option<String> {
    let rows = study::load_rows(&view(record));
    if rows.is_empty() {
        return None;
    }
    let heads = [
        ("swap\n", Align::Left),
        ("passes\n/s", Align::Right),
        ("memory\nMB/s", Align::Right),
        ("disk alone\nMB/s", Align::Right),
        ("major\nfaults/s", Align::Right),
        ("a fault\np50/p99 µs", Align::Right),
        ("swap in/out\nMB/s", Align::Right),
        ("CPU\n%", Align::Right),
        ("iowait\n%", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    rows.iter().for_each(|row| grid.row(cells(row, style)));
    grid.fit(&[(0, 12)]);
    let headline = study::load_headline(&rows);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong) + "\n");
    out += &grid.render();
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {}  ", row.tier), &row.why, Tone::Plain));
    }
    for (row, memory) in rows.iter().filter_map(|row| Some((row, row.memory.as_ref()?))) {
        out.push_str(&memory::section(&row.tier, memory, "passes", style));
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn cells(row: &LoadRow, style: &Style) -> Vec<(String, Tone)> {
    let one = |value: &Known<f64>| value.get().map_or_else(|| style.dash().to_owned(), |value| significant(*value));
    let two = |value: &Known<(f64, f64)>| match value.get() {
        Some((a, b)) => format!("{} / {}", significant(*a), significant(*b)),
        None => style.dash().to_owned(),
    };
    // The reason once, where the first figure would stand.
    let first = match &row.passes_per_s {
        Known::Is(value) => significant(*value),
        Known::Unknown(why) => why.to_string(),
    };
    let rest = [
        one(&row.mbps),
        one(&row.disk_mbps),
        one(&row.faults_per_s),
        two(&row.fault_us),
        two(&row.swap_mbps),
        one(&row.cpu_percent),
        one(&row.iowait_percent),
    ];
    let mut cells = vec![(row.tier.clone(), Tone::Strong), (first, Tone::Plain)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
