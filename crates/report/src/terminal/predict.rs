//! Predictions: a row for each model on each tier, why each is so, and one tier against another.

use super::Style;
use super::lay::{Align, Grid, Tone};
use basics::Known;
use basics::units::significant;
use study::predict::Row;

/// The table.
pub fn predictions(rows: &[Row], beside: &[String], style: &Style) -> String {
    let heads = [
        ("model\n", Align::Left),
        ("on\n", Align::Left),
        ("tokens\n/s", Align::Right),
        ("at least\n", Align::Right),
        ("at most\n", Align::Right),
    ];
    let one = |value: &Known<f64>| value.get().map_or_else(|| style.dash().to_owned(), |value| significant(*value));
    let mut grid = Grid::new(style, &heads);
    let on = |row: &Row| if row.pager { format!("{}, pager", row.profile) } else { row.profile.clone() };
    for row in rows {
        let Row { model, predicted, .. } = row;
        let rest = [&predicted.tps, &predicted.tps_low, &predicted.tps_high].map(|value| (one(value), Tone::Plain));
        let mut cells = vec![(model.clone(), Tone::Strong), (on(row), Tone::Plain)];
        cells.extend(rest);
        grid.row(cells);
    }
    grid.fit(&[(0, 12), (1, 12)]);
    let mut out = grid.render();
    out.push('\n');
    for row in rows {
        let head = format!("  {} on {}  ", row.model, on(row));
        out.push_str(&style.paragraph(&head, &row.predicted.why, Tone::Plain));
    }
    if !beside.is_empty() {
        out.push('\n');
    }
    for sentence in beside {
        out.push_str(&style.paragraph("  ", sentence, Tone::Strong));
    }
    out
}
