//! A language model's tiers as bars: tokens a second on each, with what was read for a token, the bound, and the reason in words.

use super::Entry;
use basics::Known;
use basics::units::significant;
use serde::Serialize;

#[derive(Serialize)]
pub struct Tokens {
    /// The run, where there are several.
    heading: Option<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    model: String,
    tier: String,
    color: usize,
    /// Of the fastest row, in per cent; unknown where nothing was measured.
    percent: Option<f64>,
    tps: String,
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

/// The rows of a run in which a model made tokens.
pub fn tokens(entry: &Entry<'_>, heading: Option<String>, color: &dyn Fn(&str) -> usize) -> Option<Tokens> {
    let rows = study::token_rows(&entry.view);
    let best = rows.iter().filter_map(|row| row.tps.get().copied()).fold(0.0, f64::max);
    let scaled = |value: &Known<f64>, by: f64| match value.get() {
        Some(value) => significant(value * by),
        None => "–".to_owned(),
    };
    let one = |value: &Known<f64>| scaled(value, 1.0);
    let row = |row: &study::TokenRow| Row {
        model: row.model.clone(),
        tier: row.tier.clone(),
        color: color(&row.tier),
        percent: row.tps.get().filter(|_| best > 0.0).map(|tps| 100.0 * tps / best),
        tps: one(&row.tps),
        total: one(&row.total_s),
        load: one(&row.load_s),
        first: one(&row.ttft_s),
        read: scaled(&row.read_per_token, 1e-6),
        bound: one(&row.bound_tps),
        share: scaled(&row.share_of_bound, 100.0),
        cpu: one(&row.cpu_percent),
        iowait: one(&row.iowait_percent),
        why: row.why.clone(),
    };
    (!rows.is_empty()).then(|| Tokens { heading, rows: rows.iter().map(row).collect() })
}
