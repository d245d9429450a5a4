//! A Redis server under load: a table for each length of values, a row for each way to keep them on each medium, and below it why.

use super::lay::{Align, Grid, Tone};
use super::{Style, redis_loss};
use crate::view::view;
use crate::words;
use basics::Known;
use basics::units::{grouped, significant};
use record::Record;
use study::{CommandCell, Percentiles, PublishedRedis, RedisCell};

/// The tables of a run; nothing when no Redis server was loaded.
pub(super) fn table(record: &Record, style: &Style) -> Option<String> {
    let cells = study::redis_cells(&view(record));
    if cells.is_empty() {
        return None;
    }
    let headline = study::redis_headline(&cells);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong));
    for (values, of_it) in study::by_values(&cells) {
        out.push('\n');
        // Those of the article beside those that were measured as it did.
        let quoted = of_it.first().filter(|cell| record.run.plan.as_published && cell.mix.is_none());
        let quoted = quoted.map_or_else(Vec::new, |cell| study::published_redis(cell.payload));
        let was_lost = of_it.iter().any(|cell| cell.lost.is_some());
        out.push_str(&if was_lost {
            redis_loss::one(&values, &of_it, style)
        } else {
            one(&values, &of_it, &quoted, style)
        });
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

fn one(values: &str, cells: &[&RedisCell], quoted: &[PublishedRedis], style: &Style) -> String {
    let title = format!("values of\n{values}");
    let heads = [
        (title.as_str(), Align::Left),
        ("on\n", Align::Left),
        ("requests\n/s", Align::Right),
        ("cost\n%", Align::Right),
        ("p50\nms", Align::Right),
        ("p95\nms", Align::Right),
        ("p99\nms", Align::Right),
        ("p99.9\nms", Align::Right),
        ("written\nB/B", Align::Right),
        ("RAM\nMiB", Align::Right),
    ];
    let mut grid = Grid::new(style, &heads);
    for cell in cells {
        grid.row(row(cell, style));
        cell.commands.iter().for_each(|one| grid.row(command(one, style)));
    }
    quoted.iter().for_each(|row| grid.row(published(row, style)));
    grid.fit(&[(1, 12)]);
    let mut out = grid.render();
    if !quoted.is_empty() {
        out.push_str(&style.paragraph("  * ", "as the third article printed it, of its own machines", Tone::Faint));
    }
    out.push('\n');
    for cell in cells {
        out.push_str(&style.paragraph(&format!("  {} on {}  ", cell.mode, cell.medium), &cell.why, Tone::Plain));
    }
    out
}

/// A command of the mix of the cell above.
fn command(one: &CommandCell, style: &Style) -> Vec<(String, Tone)> {
    let ms = |us: f64| significant(us / 1000.0);
    let dash = || style.dash().to_owned();
    let cells = [
        format!("  {}", one.command),
        String::new(),
        grouped(one.ops_per_s.round() as i64),
        dash(),
        ms(one.lat.p50),
        ms(one.lat.p95),
        ms(one.lat.p99),
        one.lat.p999.map_or_else(dash, ms),
        dash(),
        dash(),
    ];
    cells.into_iter().map(|text| (text, Tone::Plain)).collect()
}

/// A row of the third article, whose machines are others.
fn published(row: &PublishedRedis, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let (least, most) = row.p95_ms;
    let p95 = if least < most { format!("{}–{}", significant(least), significant(most)) } else { significant(least) };
    let cells = [
        row.mode.to_owned(),
        format!("* {}", row.on),
        grouped(row.ops_per_s.round() as i64),
        row.cost_percent.map_or_else(dash, significant),
        dash(),
        p95,
        dash(),
        dash(),
        dash(),
        dash(),
    ];
    cells.into_iter().map(|text| (text, Tone::Faint)).collect()
}

fn row(cell: &RedisCell, style: &Style) -> Vec<(String, Tone)> {
    let dash = || style.dash().to_owned();
    let one = |value: &Known<f64>| value.get().map_or_else(dash, |value| significant(*value));
    let ms = |pick: fn(&Percentiles) -> Option<f64>| {
        cell.lat.get().and_then(pick).map_or_else(dash, |us| significant(us / 1000.0))
    };
    // The reason once, where the first figure would stand.
    let rate = match &cell.ops_per_s {
        Known::Is(value) => grouped(value.round() as i64),
        Known::Unknown(why) => why.to_string(),
    };
    // A way that seems faster than nothing differs by chance.
    let cost = match (cell.mode.as_str(), cell.cost_percent.get()) {
        ("memory-only", _) | (_, None) => dash(),
        (_, Some(cost)) => significant(cost.max(0.0)),
    };
    let peak = cell.peak.get().map_or_else(dash, |bytes| significant(bytes.0 as f64 / f64::from(1 << 20)));
    let rest = [
        cell.medium.clone(),
        rate,
        cost,
        ms(|lat| Some(lat.p50)),
        ms(|lat| Some(lat.p95)),
        ms(|lat| Some(lat.p99)),
        ms(|lat| lat.p999),
        one(&cell.written_per_byte),
        peak,
    ];
    let mut cells = vec![(cell.mode.clone(), Tone::Strong)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
