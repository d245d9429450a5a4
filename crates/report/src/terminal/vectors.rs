//! A cache of vectors: a row for each way to store them and each place of the others, and below it from which share of hits on it pays.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::view::view;
use crate::words;
use basics::Known;
use basics::units::{grouped, significant};
use record::Record;
use study::VectorRow;

/// The table of a run; nothing where no cache of vectors was asked.
pub(super) fn table(record: &Record, style: &Style) -> Option<String> {
    let rows = study::vector_rows(&view(record));
    if rows.is_empty() {
        return None;
    }
    let headline = study::vectors_headline(&rows);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong));
    out.push('\n');
    let replaced = rows.iter().any(|row| row.back_s.is_some());
    let mut heads = vec![
        ("stored\nas", Align::Left),
        ("others\non", Align::Left),
        ("bytes\n", Align::Right),
        ("in Redis\nB", Align::Right),
        ("recall\n@10 %", Align::Right),
        ("hits\n%", Align::Right),
        ("requests\n/s", Align::Right),
        ("p50\nms", Align::Right),
        ("p95\nms", Align::Right),
        ("hit\nms", Align::Right),
        ("miss\nms", Align::Right),
        ("pays\nfrom %", Align::Right),
    ];
    heads.extend(replaced.then_some(("back\ns", Align::Right)));
    let mut grid = Grid::new(style, &heads);
    rows.iter().for_each(|one| grid.row(row(one, replaced, style)));
    grid.fit(&[(1, 12)]);
    out.push_str(&grid.render());
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {} on {}  ", row.format, row.place), &row.why, Tone::Plain));
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn row(row: &VectorRow, replaced: bool, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let by = |value: &Known<f64>, scale: f64| value.get().map_or_else(dash, |value| significant(value * scale));
    let lat =
        |pick: fn(&(f64, f64, f64)) -> f64| row.lat_us.get().map_or_else(dash, |lat| significant(pick(lat) / 1000.0));
    let rate = match &row.ops_per_s {
        Known::Is(value) => grouped(value.round() as i64),
        Known::Unknown(_) => dash(),
    };
    let rest = [
        row.place.clone(),
        row.bytes.0.to_string(),
        row.per_vector.get().map_or_else(dash, |bytes| grouped(bytes.round() as i64)),
        by(&row.recall, 100.0),
        by(&row.hit_percent, 1.0),
        rate,
        lat(|lat| lat.0),
        lat(|lat| lat.1),
        by(&row.hit_us, 1e-3),
        by(&row.miss_us, 1e-3),
        by(&row.break_even_percent, 1.0),
    ];
    let mut cells = vec![(row.format.to_string(), Tone::Strong)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    if replaced {
        let back = row.back_s.as_ref().and_then(|back| back.get().copied());
        cells.push((back.map_or_else(dash, significant), Tone::Plain));
    }
    cells
}
