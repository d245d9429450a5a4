//! A Redis server that was lost in the middle of its load: what a way to keep data costs beside what it loses.

use super::Style;
use super::lay::{Align, Grid, Tone};
use basics::Known;
use basics::units::{grouped, significant};
use study::RedisCell;

/// A row for each way on each medium.
pub(super) fn one(values: &str, cells: &[&RedisCell], style: &Style) -> String {
    let title = format!("values of\n{values}");
    let heads = [
        (title.as_str(), Align::Left),
        ("on\n", Align::Left),
        ("requests\n/s", Align::Right),
        ("p99\nms", Align::Right),
        ("worst\nloss", Align::Left),
        ("writes\ngone", Align::Right),
        ("of\n", Align::Right),
        ("oldest\ns", Align::Right),
        ("seeds\nlosing", Align::Right),
        ("no\nstart", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    cells.iter().for_each(|cell| grid.row(row(cell, style)));
    grid.fit(&[(1, 12)]);
    let mut out = grid.render();
    out.push('\n');
    for cell in cells.iter().filter(|cell| !cell.why.is_empty()) {
        out.push_str(&style.paragraph(&format!("  {} on {}  ", cell.mode, cell.medium), &cell.why, Tone::Plain));
    }
    out
}

fn row(cell: &RedisCell, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let count = |n: u64| grouped(n as i64);
    let lost = cell.lost.as_ref();
    // The reason once, where the first figure would stand.
    let rate = match &cell.ops_per_s {
        Known::Is(value) => grouped(value.round() as i64),
        Known::Unknown(why) => why.to_string(),
    };
    let rest = [
        cell.medium.clone(),
        rate,
        cell.lat.get().map_or_else(dash, |lat| significant(lat.p99 / 1000.0)),
        lost.map_or_else(dash, |lost| lost.in_a_word().to_owned()),
        lost.map_or_else(dash, |lost| count(lost.acknowledged)),
        lost.map_or_else(dash, |lost| count(lost.of)),
        lost.and_then(|lost| lost.oldest).map_or_else(dash, |time| significant(time.secs())),
        lost.map_or_else(dash, |lost| format!("{}/{}", lost.losing, lost.seeds)),
        lost.map_or_else(dash, |lost| lost.did_not_start.to_string()),
    ];
    let mut cells = vec![(cell.mode.clone(), Tone::Strong)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
