//! A workload's tiers as bars: what of its memory each lets through, with the figures behind it and the reason in words.

use super::Entry;
use basics::Known;
use basics::units::significant;
use serde::Serialize;

#[derive(Serialize)]
pub struct Workload {
    /// The run, where there are several.
    heading: Option<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    tier: String,
    color: usize,
    /// Of the fastest row, in per cent; unknown where nothing was measured.
    percent: Option<f64>,
    mbps: String,
    disk: String,
    passes: String,
    faults: String,
    fault: String,
    cpu: String,
    iowait: String,
    why: String,
}

/// The rows of a run that is a workload.
pub fn workload(entry: &Entry<'_>, heading: Option<String>, color: &dyn Fn(&str) -> usize) -> Option<Workload> {
    let rows = study::load_rows(&entry.view);
    let best = rows.iter().filter_map(|row| row.mbps.get().copied()).fold(0.0, f64::max);
    let one = |value: &Known<f64>| value.get().map_or_else(|| "–".to_owned(), |value| significant(*value));
    let row = |row: &study::LoadRow| Row {
        tier: row.tier.clone(),
        color: color(&row.tier),
        percent: row.mbps.get().map(|mbps| 100.0 * mbps / best),
        mbps: one(&row.mbps),
        disk: one(&row.disk_mbps),
        passes: one(&row.passes_per_s),
        faults: one(&row.faults_per_s),
        fault: row.fault_us.get().map_or_else(
            || "–".to_owned(),
            |(median, p99)| format!("{} / {}", significant(*median), significant(*p99)),
        ),
        cpu: one(&row.cpu_percent),
        iowait: one(&row.iowait_percent),
        why: row.why.clone(),
    };
    (!rows.is_empty()).then(|| Workload { heading, rows: rows.iter().map(row).collect() })
}
