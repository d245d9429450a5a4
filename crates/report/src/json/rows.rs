//! Workloads under pressure and language models as JSON: a row for each tier, its memory curve, and what is predicted.

use super::{Object, number, pair};
use serde_json::{Value, json};
use study::LoadRow;

/// A tier under a workload.
pub(super) fn load_row(row: &LoadRow) -> Value {
    let swap = |which: fn(&(f64, f64)) -> f64| row.swap_mbps.get().map(which).map(number);
    Object::default()
        .with("tier", row.tier.as_str())
        .known("passes_per_s", &row.passes_per_s, |v| number(*v))
        .known("MBps", &row.mbps, |v| number(*v))
        .maybe("MBps_range", row.range_mbps.map(pair))
        .known("disk_MBps", &row.disk_mbps, |v| number(*v))
        .known("major_faults_per_s", &row.faults_per_s, |v| number(*v))
        .known("fault_us", &row.fault_us, |(p50, p99)| json!({"p50": number(*p50), "p99": number(*p99)}))
        .maybe("swap_in_MBps", swap(|both| both.0))
        .maybe("swap_out_MBps", swap(|both| both.1))
        .known("cpu_percent", &row.cpu_percent, |v| number(*v))
        .known("iowait_percent", &row.iowait_percent, |v| number(*v))
        .known("memory_full_percent", &row.stalled_percent, |v| number(*v))
        .with("visits", row.visits)
        .with("why", row.why.as_str())
        .maybe("curve", row.memory.as_ref().map(|memory| curve(memory, "passes_per_s")))
        .build()
}

/// A tier under a language model.
pub(super) fn token_row(row: &study::TokenRow) -> Value {
    Object::default()
        .with("tier", row.tier.as_str())
        .with("model", row.model.as_str())
        .known("total_s", &row.total_s, |v| number(*v))
        .known("load_s", &row.load_s, |v| number(*v))
        .known("tps", &row.tps, |v| number(*v))
        .maybe("tps_range", row.range_tps.map(pair))
        .known("ttft_s", &row.ttft_s, |v| number(*v))
        .known("prompt_tps", &row.prompt_tps, |v| number(*v))
        .known("cpu_percent", &row.cpu_percent, |v| number(*v))
        .known("iowait_percent", &row.iowait_percent, |v| number(*v))
        .known("major_faults_per_s", &row.faults_per_s, |v| number(*v))
        .known("bytes_per_token", &row.read_per_token, |v| json!(v.round() as u64))
        .maybe("touched_per_token", row.touched.map(|bytes| bytes.0))
        .known("bound_tps", &row.bound_tps, |v| number(*v))
        .known("share_of_bound", &row.share_of_bound, |v| number(*v))
        .known("disk_MBps", &row.disk_mbps, |v| number(*v))
        .with("visits", row.visits)
        .with("why", row.why.as_str())
        .maybe("curve", row.memory.as_ref().map(|memory| curve(memory, "tps")))
        .build()
}

/// What other amounts of memory would bring, `rate` being what speed is called.
fn curve(memory: &study::curve::Memory, rate: &str) -> Value {
    let seen = memory.seen.as_ref();
    let foreseen = memory.foreseen.iter().map(|one| {
        Object::default()
            .with("memory_B", one.memory.0)
            .with("speed", number(one.speed))
            .with(rate, number(one.rate))
            .with("major_faults_per_s", number(one.major_per_s))
            .with("known", one.known)
            .build()
    });
    let points = seen.map(|(curve, _)| {
        // A hundredth of the most is less than is known of it.
        let least = curve.points.first().map_or(0.0, |(_, most)| most / 100.0);
        let mut points: Vec<Value> = Vec::new();
        let mut told = f64::INFINITY;
        for (at, (memory, missed)) in curve.points.iter().enumerate() {
            if told - missed > least || at + 1 == curve.points.len() {
                told = *missed;
                points.push(json!([memory.0, number(*missed)]));
            }
        }
        points
    });
    Object::default()
        .maybe("resident_B", seen.map(|(_, today)| today.resident.0))
        .maybe("known_B", seen.map(|(curve, _)| curve.known.0))
        .maybe("whole_B", seen.map(|(curve, _)| curve.whole.0))
        .maybe("missed_B_per_s", seen.map(|(_, today)| number(today.missed)))
        .maybe("stalled", seen.map(|(_, today)| number(today.stalled)))
        .maybe("overhead", seen.map(|(_, today)| number(today.overhead)))
        .with("watched_s", number(memory.time.secs()))
        .maybe("points", points)
        .with("predictions", foreseen.collect::<Vec<_>>())
        .with("why", memory.why.as_str())
        .build()
}

/// `predict --json`: a row for each model on each tier.
pub fn predictions(rows: &[study::predict::Row], beside: &[String]) -> Value {
    let row = |row: &study::predict::Row| {
        let predicted = &row.predicted;
        Object::default()
            .with("model", row.model.as_str())
            .with("profile", row.profile.as_str())
            .with("pager", row.pager)
            .known("tps", &predicted.tps, |v| number(*v))
            .known("tps_low", &predicted.tps_low, |v| number(*v))
            .known("tps_high", &predicted.tps_high, |v| number(*v))
            .with("why", predicted.why.as_str())
            .build()
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    json!({"schema": "tiermark.predict/1", "rows": rows, "beside": beside})
}
