//! A run as `fio --output-format=json` of version 3 would print it, for the scripts that read that: a job for each step that was
//! begun, its threads reported together. What is not known is as fio leaves it where it measures nothing: zero.

use crate::view::view;
use crate::words;
use basics::job::{Block, Direction, Order, Pacing, Sync};
use basics::{FailKind, Job, Latencies, Nanos, Side};
use record::{Record, State, StepRecord};
use serde_json::{Map, Value, json};
use study::{Spread, StepView};

/// The percentiles that fio prints when nobody asks for others.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// The upper ends of fio's classes of latency, in each of its units.
const CLASSES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];

/// The document.
pub fn run(record: &Record) -> Value {
    let view = view(record);
    let begun = |step: &StepRecord| !matches!(step.state, State::NotRun(_));
    let steps = record.steps.iter().zip(&view.steps).filter(|(step, _)| begun(step));
    let at = record.run.ended.unwrap_or(record.run.started);
    json!({
        // Scripts look for the major version, by which fio's units differ.
        "fio version": format!("fio-3.33-by-tiermark-{}", record.run.version),
        "timestamp": at.0 / 1_000_000_000,
        "timestamp_ms": at.0 / 1_000_000,
        "time": words::rfc3339(at),
        "global options": record.run.plan.scale.map_or(json!({}), |scale| json!({"scale": scale.to_string()})),
        "jobs": steps.map(|(step, view)| job(step, view)).collect::<Vec<_>>(),
        "disk_util": [],
    })
}

fn job(step: &StepRecord, view: &StepView<'_>) -> Value {
    let (job, elapsed) = (&step.job, step.elapsed);
    let summary = study::summarise(view);
    let iops = |side: Option<&study::SideSummary>| side.map_or(0.0, |side| side.iops);
    // fio adds up the time of a group's processes, and holds their CPU time against the sum.
    let all = elapsed.secs() * f64::from(job.threads);
    let share = |cpu: Option<Nanos>| cpu.filter(|_| all > 0.0).map_or(0.0, |cpu| 100.0 * cpu.secs() / all);
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("jobname", json!(step.name));
    put("groupid", json!(step.index));
    put("error", json!(errno(&step.state)));
    put("eta", json!(0));
    put("elapsed", json!(elapsed.secs().ceil() as u64));
    put("job options", options(step));
    put("read", side(&step.read, iops(summary.read.as_ref()), elapsed, study::spread(view, |interval| &interval.read)));
    put(
        "write",
        side(&step.write, iops(summary.write.as_ref()), elapsed, study::spread(view, |interval| &interval.write)),
    );
    put("trim", side(&Side::default(), 0.0, elapsed, None));
    put("sync", json!({"total_ios": 0, "lat_ns": latency(&Latencies::lazy(), false)}));
    put("job_runtime", json!((all * 1e3).round() as u64));
    put("usr_cpu", json!(share(step.cpu_user)));
    put("sys_cpu", json!(share(step.cpu_system)));
    for key in ["ctx", "majf", "minf"] {
        put(key, json!(0));
    }
    let latencies: Vec<&Latencies> =
        [&step.read, &step.write].into_iter().filter(|side| side.is_each_timed()).map(|side| &side.latency).collect();
    for (key, value) in classes(&latencies) {
        put(key, value);
    }
    put("latency_depth", json!(job.depth));
    put("latency_target", json!(0));
    put("latency_percentile", json!(100.0));
    put("latency_window", json!(0));
    Value::Object(out)
}

/// One direction. Without an operation it is all zero, as fio's is.
fn side(side: &Side, iops: f64, elapsed: Nanos, spread: Option<(Spread, Spread)>) -> Value {
    let used = side.operations() > 0;
    let bytes = if used { side.bytes } else { 0 };
    let rate = if used && elapsed.0 > 0 { (bytes as f64 / elapsed.secs()).round() as u64 } else { 0 };
    let (per_second, moved) = spread.filter(|_| used).unwrap_or_default();
    // fio's clat is of the operation alone, its lat of all that its user waits for.
    let complete = side.service.as_ref().unwrap_or(&side.latency);
    let percentiles = side.is_each_timed();
    json!({
        "io_bytes": bytes, "io_kbytes": bytes >> 10, "bw_bytes": rate, "bw": rate >> 10, "iops": iops,
        "runtime": if used { elapsed.0 / 1_000_000 } else { 0 },
        "total_ios": side.operations(), "short_ios": 0, "drop_ios": 0,
        "slat_ns": latency(&Latencies::lazy(), false),
        "clat_ns": latency(complete, percentiles),
        "lat_ns": latency(&side.latency, percentiles),
        "bw_min": moved.min as u64 >> 10, "bw_max": moved.max as u64 >> 10, "bw_agg": if used { 100.0 } else { 0.0 },
        "bw_mean": moved.mean / 1024.0, "bw_dev": moved.stdev / 1024.0, "bw_samples": moved.samples,
        "iops_min": per_second.min as u64, "iops_max": per_second.max as u64, "iops_mean": per_second.mean,
        "iops_stddev": per_second.stdev, "iops_samples": per_second.samples,
    })
}

fn latency(latencies: &Latencies, percentiles: bool) -> Value {
    let ns = |value: Option<Nanos>| value.unwrap_or_default().0;
    let mut out = json!({
        "min": ns(latencies.min()), "max": ns(latencies.max()), "N": latencies.count(),
        "mean": ns(latencies.mean()) as f64, "stddev": ns(latencies.stdev()) as f64,
    });
    if percentiles && !latencies.is_empty() {
        let points =
            PERCENTILES.into_iter().map(|percent| (format!("{percent:.6}"), json!(ns(latencies.percentile(percent)))));
        out["percentile"] = Value::Object(points.collect());
    }
    out
}

/// Per cent of the operations in each of fio's classes.
fn classes(latencies: &[&Latencies]) -> [(&'static str, Value); 3] {
    let units = [("latency_ns", 1u64), ("latency_us", 1_000), ("latency_ms", 1_000_000)];
    let mut bounds: Vec<Nanos> = Vec::new();
    for (_, unit) in units {
        // The last class of a unit ends where the first of the next begins, which is empty up to two of it.
        bounds.extend(CLASSES.map(|end| Nanos(end * unit)));
    }
    bounds.push(Nanos(2_000_000_000));
    let shares = study::shares(latencies, &bounds);
    let percent = |index: usize| json!(shares.get(index).map_or(0.0, |share| share * 100.0));
    let mut first = 0;
    units.map(|(key, _)| {
        let mut of: Map<String, Value> =
            CLASSES.iter().enumerate().map(|(index, end)| (end.to_string(), percent(first + index))).collect();
        first += CLASSES.len();
        if key == "latency_ms" {
            of.insert("2000".to_owned(), percent(first));
            of.insert(">=2000".to_owned(), percent(first + 1));
        }
        (key, Value::Object(of))
    })
}

/// The error number that fio would give a job that ended so.
fn errno(state: &State) -> i32 {
    let State::Failed(failure) = state else { return 0 };
    match failure.kind {
        FailKind::NoRoom => 28,
        FailKind::NoPermission => 13,
        FailKind::ReadOnly => 30,
        FailKind::Gone => 19,
        // EILSEQ is what fio's verification gives.
        FailKind::Astray { .. } => 84,
        FailKind::Io | FailKind::Other => 5,
    }
}

/// The job as fio's keys would ask for it, a process for each thread.
fn options(step: &StepRecord) -> Value {
    let job: &Job = &step.job;
    let mut out = Map::new();
    let mut put = |key: &str, value: String| out.insert(key.to_owned(), Value::String(value));
    put("name", step.name.clone());
    put("filename", step.target.clone());
    put("rw", words::rw(job).to_owned());
    match &job.block {
        Block::Fixed(size) => put("bs", size.0.to_string()),
        Block::Split(parts) => {
            // fio's weights are per cent, ours any numbers.
            let all: u64 = parts.iter().map(|(_, weight)| u64::from(*weight)).sum();
            let part = |(size, weight): &(basics::Bytes, u32)| {
                format!("{}/{}", size.0, (100.0 * f64::from(*weight) / all.max(1) as f64).round())
            };
            put("bssplit", parts.iter().map(part).collect::<Vec<_>>().join(":"))
        }
    };
    put("iodepth", job.depth.to_string());
    put("numjobs", job.threads.to_string());
    put("direct", u8::from(job.direct).to_string());
    put("offset", job.offset.0.to_string());
    put("randseed", job.seed.to_string());
    put("thread", "1".to_owned());
    put("group_reporting", "1".to_owned());
    if let Some(engine) = &step.engine {
        put("ioengine", engine.used.name().to_owned());
    }
    if let Direction::Mixed { read_percent } = job.direction {
        put("rwmixread", read_percent.to_string());
    }
    if let Some(size) = job.size {
        let each = if job.separate_regions { size.0 / u64::from(job.threads.max(1)) } else { size.0 };
        put("size", each.to_string());
    }
    let us = |time: Nanos| format!("{}us", time.0 / 1000);
    if let Some(time) = job.stop.time {
        put("runtime", us(time));
        if job.stop.bytes.is_none() {
            put("time_based", "1".to_owned());
        }
    }
    if job.warmup.0 > 0 {
        put("ramp_time", us(job.warmup));
    }
    match job.order {
        Order::Uniform => drop(put("norandommap", "1".to_owned())),
        Order::Zipf { theta } => drop(put("random_distribution", format!("zipf:{theta}"))),
        Order::Sequential | Order::Permuted | Order::Strided { .. } => {}
    }
    match job.sync {
        Sync::None => {}
        Sync::Dsync => drop(put("sync", "dsync".to_owned())),
        Sync::OSync => drop(put("sync", "sync".to_owned())),
        Sync::Fsync { every } => drop(put("fsync", every.to_string())),
        Sync::Fdatasync { every } => drop(put("fdatasync", every.to_string())),
    }
    if job.wants_huge_pages() {
        put("mem", "mmaphuge".to_owned());
    }
    if job.end_fsync {
        put("end_fsync", "1".to_owned());
    }
    if let Pacing::Fixed { iops } | Pacing::Poisson { iops } = job.pacing {
        put("rate_iops", (iops / f64::from(job.threads.max(1))).round().to_string());
        if matches!(job.pacing, Pacing::Poisson { .. }) {
            put("rate_process", "poisson".to_owned());
        }
    }
    Value::Object(out)
}
