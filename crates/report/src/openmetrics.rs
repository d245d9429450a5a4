//! A run as OpenMetrics text 1.0, for what collects metrics: a sample for each direction of each step, stamped with the
//! time at which the step began. Written here and not by a client library, whose families keep no order: the same run
//! gives the same bytes. A load of Redis is told from second to second as well.

mod series;

use crate::view::summaries;
use exposition::text::{Format, write};
use record::{Record, StepRecord};
use std::fmt::Write;
use study::SideSummary;

/// What a metric says of a direction.
type Value = fn(&SideSummary) -> Option<f64>;

const GAUGES: &[(&str, &str, &str, Value)] = &[
    ("tiermark_iops", "", "Operations a second.", |side| Some(side.iops)),
    ("tiermark_throughput_bytes_per_second", "", "Bytes a second.", |side| Some(side.mbps * 1e6)),
];

/// The text, to its `# EOF`.
pub fn run(record: &Record) -> String {
    let summaries = summaries(record);
    let sides: Vec<(String, f64, &SideSummary)> = record
        .steps
        .iter()
        .zip(&summaries)
        .flat_map(|(step, summary)| {
            let sides = [("read", summary.read.as_ref()), ("write", summary.write.as_ref())];
            let at = step.started.secs();
            sides.into_iter().filter_map(move |(direction, side)| Some((labels(record, step, direction), at, side?)))
        })
        .collect();
    let mut out = String::new();
    // Writing to a String does not fail.
    for (name, _, help, value) in GAUGES {
        let _ = writeln!(out, "# TYPE {name} gauge\n# HELP {name} {help}");
        for (labels, at, side) in &sides {
            if let Some(value) = value(side) {
                let _ = writeln!(out, "{name}{{{labels}}} {value} {at:.3}");
            }
        }
    }
    let name = "tiermark_latency_seconds";
    let _ = writeln!(out, "# TYPE {name} summary\n# UNIT {name} seconds\n# HELP {name} Latency of an operation.");
    for (labels, at, side) in &sides {
        for (percent, latency) in &side.lat.percentiles {
            // 99.99 / 100 is not 0.9999 in binary; at eight digits it is.
            let quantile = (percent * 1e6).round() / 1e8;
            let _ = writeln!(out, "{name}{{{labels},quantile=\"{quantile}\"}} {} {at:.3}", latency.secs());
        }
        let _ = writeln!(out, "{name}_count{{{labels}}} {} {at:.3}", side.ops);
        if let Some(mean) = side.lat.mean.get() {
            let _ = writeln!(out, "{name}_sum{{{labels}}} {} {at:.3}", mean.secs() * side.ops as f64);
        }
    }
    // With the `# EOF` that ends it all.
    out.push_str(&write(series::families(record), Format::OpenMetrics));
    out
}

fn labels(record: &Record, step: &StepRecord, direction: &str) -> String {
    let index = step.index.to_string();
    let all = [
        ("run", record.run.id.as_str()),
        ("step", index.as_str()),
        ("name", step.name.as_str()),
        ("tier", step.tier.as_deref().unwrap_or_default()),
        ("target", step.target.as_str()),
        ("direction", direction),
    ];
    let scale = record.run.plan.scale.map(|scale| scale.to_string());
    let all = all.into_iter().chain(scale.as_deref().map(|scale| ("scale", scale)));
    all.map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
