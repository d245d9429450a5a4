//! A browser's and a compilation's tables: a row for each set-up, the verdict of one against the other above, and below why each is as it is.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::view::view;
use crate::words;
use basics::Known;
use basics::units::{grouped, significant};
use record::Record;
use study::{BuildRow, DesktopRow};

/// The table of a run; nothing where neither was run.
pub(super) fn table(record: &Record, style: &Style) -> Option<String> {
    browsed(record, style).or_else(|| built(record, style))
}

fn browsed(record: &Record, style: &Style) -> Option<String> {
    let view = view(record);
    let rows = study::desktop_rows(&view);
    if rows.is_empty() {
        return None;
    }
    let verdicts = study::desktop_verdicts(&view);
    let sentences: Vec<String> = match verdicts.is_empty() {
        true => study::desktop_headline(&view).into_iter().collect(),
        false => verdicts.into_iter().map(|verdict| verdict.sentence).collect(),
    };
    let mut out = String::new();
    for sentence in &sentences {
        out.push_str(&style.paragraph("", sentence, Tone::Strong));
    }
    out.push('\n');
    let heads = [
        ("set-up\n", Align::Left),
        ("wait\ns", Align::Right),
        ("start\ns", Align::Right),
        ("usable s\nmed / max", Align::Right),
        ("to a tab s\np50 / p95", Align::Right),
        ("longest\nfreeze s", Align::Right),
        ("pages\nalive", Align::Right),
        ("swap MB\nin / out", Align::Right),
        ("major\nfaults", Align::Right),
        ("PSI mem.\nsome / full %", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    rows.iter().for_each(|row| grid.row(cells(row, style)));
    grid.fit(&[(0, 12)]);
    out.push_str(&grid.render());
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {}  ", row.setup), &row.why, Tone::Plain));
    }
    let cpu =
        "The processor is this machine's, not a board's: only the disk, its files and the memory are the board's.";
    out.push_str(&style.paragraph("  note  ", cpu, Tone::Faint));
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn cells(row: &DesktopRow, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let one = |value: &Known<f64>| value.get().map_or_else(dash, |value| significant(*value));
    let two = |value: &Known<(f64, f64)>| {
        value.get().map_or_else(dash, |(a, b)| format!("{} / {}", significant(*a), significant(*b)))
    };
    // The reason once, where the first figure would stand.
    let first = match &row.wait_s {
        Known::Is(value) => significant(*value),
        Known::Unknown(why) => why.to_string(),
    };
    let pages = row
        .pages
        .get()
        .map_or_else(dash, |(opened, alive, _)| format!("{} of {}", significant(*alive), significant(*opened)));
    let rest = [
        first,
        one(&row.start_s),
        two(&row.interactive_s),
        two(&row.switch_s),
        one(&row.longest_freeze_s),
        pages,
        two(&row.swap_mb),
        row.major_faults.get().map_or_else(dash, |faults| grouped(faults.round() as i64)),
        two(&row.memory_percent),
    ];
    let mut cells = vec![(row.setup.clone(), Tone::Strong)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}

fn built(record: &Record, style: &Style) -> Option<String> {
    let rows = study::build_rows(&view(record));
    if rows.is_empty() {
        return None;
    }
    let headline = study::build_headline(&rows);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong));
    out.push('\n');
    let heads = [
        ("swap\n", Align::Left),
        ("a build\ns", Align::Right),
        ("files\n/min", Align::Right),
        ("slower in the\nend %", Align::Right),
        ("throttled\nafter min", Align::Right),
        ("frequency\nlost %", Align::Right),
        ("°C begin /\nhighest", Align::Right),
        ("CPU\n%", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    rows.iter().for_each(|row| grid.row(of_build(row, style)));
    grid.fit(&[(0, 12)]);
    out.push_str(&grid.render());
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {}  ", row.tier), &row.why, Tone::Plain));
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn of_build(row: &BuildRow, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let one = |value: &Known<f64>| value.get().map_or_else(dash, |value| significant(*value));
    let heat = row.temperature_c.get();
    let heat = heat.map_or_else(dash, |(begin, top)| format!("{} / {}", significant(*begin), significant(*top)));
    let rest = [
        one(&row.build_s),
        one(&row.per_minute),
        one(&row.slower_percent),
        one(&row.minutes_to_throttling),
        one(&row.frequency_lost_percent),
        heat,
        one(&row.cpu_percent),
    ];
    let mut cells = vec![(row.tier.clone(), Tone::Strong)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
