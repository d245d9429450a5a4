//! A language model's tiers as bars: tokens a second on each, with the figures behind it and the reason in words. How they came
//! one after the other is drawn from what [`super::timeline`] gives.

use super::Entry;
use basics::Known;
use basics::units::significant;
use serde::Serialize;
use study::TokenRow;

#[derive(Serialize)]
pub struct Model {
    /// The run, where there are several.
    heading: Option<String>,
    /// Its name, where one is known.
    name: String,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    tier: String,
    color: usize,
    /// Of the fastest row, in per cent; unknown where nothing was measured.
    percent: Option<f64>,
    /// Tokens a second, or why there are none.
    tps: String,
    /// The least and the most of several visits.
    range: Option<String>,
    total: String,
    load: String,
    first: String,
    read: String,
    bound: String,
    share: String,
    cpu: String,
    iowait: String,
    why: String,
}

/// The models that made tokens in a run: several on one page each have their own fastest tier.
pub fn models(entry: &Entry<'_>, heading: Option<&str>, color: &dyn Fn(&str) -> usize) -> Vec<Model> {
    let rows = study::token_rows(&entry.view);
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        names.extend((!names.contains(&row.model.as_str())).then_some(row.model.as_str()));
    }
    let of = |name: &str| {
        let rows: Vec<&TokenRow> = rows.iter().filter(|row| row.model == name).collect();
        let best = rows.iter().filter_map(|row| row.tps.get().copied()).fold(0.0, f64::max);
        let rows = rows.into_iter().map(|of| row(of, best, color(&of.tier))).collect();
        Model { heading: heading.map(str::to_owned), name: name.to_owned(), rows }
    };
    names.into_iter().map(of).collect()
}

fn row(row: &TokenRow, best: f64, color: usize) -> Row {
    let scaled =
        |value: &Known<f64>, by: f64| value.get().map_or_else(|| "–".to_owned(), |value| significant(value * by));
    let one = |value: &Known<f64>| scaled(value, 1.0);
    Row {
        tier: row.tier.clone(),
        color,
        percent: row.tps.get().filter(|_| best > 0.0).map(|tps| 100.0 * tps / best),
        tps: row.tps.get().map_or_else(|| row.tps.to_string(), |tps| significant(*tps)),
        range: row.range_tps.map(|(least, most)| format!("{}–{}", significant(least), significant(most))),
        total: one(&row.total_s),
        load: one(&row.load_s),
        first: one(&row.ttft_s),
        read: scaled(&row.read_per_token, 1e-6),
        bound: one(&row.bound_tps),
        share: scaled(&row.share_of_bound, 100.0),
        cpu: one(&row.cpu_percent),
        iowait: one(&row.iowait_percent),
        why: row.why.clone(),
    }
}
