//! A language model under pressure: one table with a row for each tier, in the columns of the first article and a few more, and
//! below it why each is as it is.

use super::lay::{Align, Grid, Tone};
use super::{Style, memory};
use crate::view::view;
use crate::words;
use crate::workload::called;
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
    rows.iter().for_each(|row| grid.row(cells(row, &called(row, &rows), style)));
    grid.fit(&[(0, 12)]);
    let headline = study::token_headline(&rows);
    let mut out = headline.map_or_else(String::new, |text| style.paragraph("", &text, Tone::Strong) + "\n");
    out += &grid.render();
    out.push('\n');
    for row in &rows {
        out.push_str(&style.paragraph(&format!("  {}  ", called(row, &rows)), &row.why, Tone::Plain));
    }
    for (row, memory) in rows.iter().filter_map(|row| Some((row, row.memory.as_ref()?))) {
        out.push_str(&memory::section(&called(row, &rows), memory, "tokens", style));
    }
    if record.run.plan.as_published {
        out.push('\n');
        out.push_str(&article(&rows, style));
    }
    for note in words::notes_of_steps(record) {
        out.push_str(&style.paragraph("  note  ", &note, Tone::Faint));
    }
    Some(out)
}

/// The table of the first article: for each model four figures, a column for each tier, and how many times faster the last
/// is than the first.
fn article(rows: &[TokenRow], style: &Style) -> String {
    let mut tiers: Vec<&str> = Vec::new();
    let mut models: Vec<&str> = Vec::new();
    for row in rows {
        tiers.extend((!tiers.contains(&row.tier.as_str())).then_some(row.tier.as_str()));
        models.extend((!models.contains(&row.model.as_str())).then_some(row.model.as_str()));
    }
    let named = |text: &str| format!("{text}\n");
    let mut heads = vec![(named("Model"), Align::Left), (named("Metric"), Align::Left)];
    heads.extend(tiers.iter().map(|tier| (named(tier), Align::Right)));
    heads.push((named("Speedup"), Align::Right));
    let heads: Vec<(&str, Align)> = heads.iter().map(|(text, align)| (text.as_str(), *align)).collect();
    let mut grid = Grid::new(style, &heads);
    type Pick = fn(&TokenRow) -> &Known<f64>;
    let metrics: [(&str, Pick); 4] = [
        ("Total Time (s)", |row| &row.total_s),
        ("Tokens/sec", |row| &row.tps),
        ("Avg CPU (%)", |row| &row.cpu_percent),
        ("Avg I/O wait (%)", |row| &row.iowait_percent),
    ];
    for model in models {
        for (index, (name, pick)) in metrics.iter().enumerate() {
            let value = |tier: &str| {
                let row = rows.iter().find(|row| row.model == model && row.tier == tier)?;
                pick(row).get().copied()
            };
            let values: Vec<Option<f64>> = tiers.iter().map(|tier| value(tier)).collect();
            let text = |value: &Option<f64>| value.map_or_else(|| style.dash().to_owned(), significant);
            let speedup = match (index, values.first().copied().flatten(), values.last().copied().flatten()) {
                (0, Some(first), Some(last)) if values.len() > 1 => format!("{}x", significant(first / last)),
                (1, Some(first), Some(last)) if values.len() > 1 => format!("{}x", significant(last / first)),
                _ => String::new(),
            };
            let model = if index == 0 { model.to_owned() } else { String::new() };
            let mut cells = vec![(model, Tone::Strong), ((*name).to_owned(), Tone::Plain)];
            cells.extend(values.iter().map(|value| (text(value), Tone::Plain)));
            cells.push((speedup, Tone::Plain));
            grid.row(cells);
        }
    }
    grid.fit(&[(0, 12)]);
    grid.render()
}

fn cells(row: &TokenRow, called: &str, style: &Style) -> Vec<(String, Tone)> {
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
    let mut cells = vec![(called.to_owned(), Tone::Strong), (first, Tone::Plain)];
    cells.extend(rest.into_iter().map(|text| (text, Tone::Plain)));
    cells
}
