//! What the page's script draws, as data: series bounded in length, latencies in µs, rates in MB/s and operations a second.
//! Nothing is judged here; a point that is joined from several intervals keeps their largest latency.

use super::Entry;
use super::page::Page;
use super::redis;
use super::sweeps;
use super::timeline;
use crate::view::measured;
use crate::words;
use basics::units::significant;
use basics::{Interval, Latencies, Nanos, Side};
use observe::Sample;
use profile::Figure;
use record::{Origin, Record, StepRecord};
use serde_json::{Map, Value, json};
use study::{LatencySummary, SideSummary, StepSummary, StepView};

/// Most points of one step's series; longer series are joined.
pub(super) const POINTS: usize = 1200;
/// Operations that must lie beyond a percentile for it to be drawn, as for the percentiles in the tables.
const BEYOND: f64 = 10.0;

/// Everything that is drawn or downloaded.
pub fn data(entries: &[Entry<'_>], page: &Page) -> Value {
    let runs: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let record = entry.record;
            let steps: Vec<Value> = record
                .steps
                .iter()
                .zip(&entry.steps)
                .zip(&entry.view.steps)
                .map(|((step, summary), view)| self::step(record, (step, view), summary, page))
                .collect();
            json!({
                "run": record.run.id,
                "method": record.run.plan.method,
                "throttle_known": record.samples.iter().any(|(_, sample)| sample.throttled.is_some()),
                "steps": steps,
                "sweeps": sweeps::curves(entry, page),
            })
        })
        .collect();
    let raw: Vec<Value> = entries.iter().map(|entry| crate::json::run_of(entry.record, &entry.steps)).collect();
    json!({
        "runs": runs,
        "ladder": page.ladder,
        "published": published(),
        "points": sweeps::published(),
        "raw": raw,
        "file": crate::file_name_of(&entries.iter().map(|entry| entry.record).collect::<Vec<_>>()),
    })
}

fn step(record: &Record, (step, view): (&StepRecord, &StepView<'_>), summary: &StepSummary, page: &Page) -> Value {
    let subject = step.tier.as_deref().unwrap_or(&step.target);
    let mut label = page.label(&record.run.id, subject);
    if words::partial(step) {
        label.push_str(", partial");
    }
    let samples = measured(record, step);
    let series = joined(record.intervals.iter().filter(|(of, _)| *of == step.index).map(|(_, interval)| interval));
    json!({
        "index": step.index,
        "name": step.name,
        "subject": label,
        "color": page.color(&record.run.id, subject),
        "job": words::job(step),
        "rw": words::rw(&step.job),
        "bs": step.job.block.largest().0,
        "depth": step.job.depth * step.job.threads,
        "open_loop": words::open_loop(&step.job),
        "measured": record.run.origin == Origin::Measured,
        "at": (step.started - record.run.started).secs(),
        "elapsed": step.elapsed.secs(),
        "read": side(&step.read, summary.read.as_ref()),
        "write": side(&step.write, summary.write.as_ref()),
        "series": series,
        "stalls": study::stalls(view).iter().map(|stall| [stall.from.secs(), stall.to.secs()]).collect::<Vec<_>>(),
        "machine": machine(&samples, step.measured_from.unwrap_or_default()),
        "tokens": timeline::tokens(step, &samples),
        "late": redis::late(view),
    })
}

fn side(side: &Side, summary: Option<&SideSummary>) -> Value {
    let Some(summary) = summary else { return Value::Null };
    json!({
        "iops": summary.iops,
        "mbps": summary.mbps,
        "ops": summary.ops,
        "ci": summary.ci95_percent.get(),
        "lat": latency(&summary.lat),
        "curve": if side.is_each_timed() { curve(&side.latency) } else { Vec::new() },
        "service": side.service.as_ref().map(curve),
    })
}

pub(super) fn latency(latency: &LatencySummary) -> Value {
    let mut out = Map::new();
    let mut put = |key: String, value: Nanos| out.insert(key, json!(value.us()));
    if let Some(mean) = latency.mean.get() {
        put("mean".to_owned(), *mean);
    }
    for (percent, value) in &latency.percentiles {
        put(format!("p{percent}"), *value);
    }
    if let Some(max) = latency.max.get() {
        put("max".to_owned(), *max);
    }
    Value::Object(out)
}

/// Percentile and latency, evenly spaced in nines, as far as the operations carry.
fn curve(latencies: &Latencies) -> Vec<(f64, f64)> {
    let count = latencies.count() as f64;
    (0..=60)
        .map(|tenth| 1.0 - 10f64.powf(-f64::from(tenth) / 10.0))
        .take_while(|q| (1.0 - q) * count >= BEYOND)
        .filter_map(|q| Some((q * 100.0, latencies.percentile(q * 100.0)?.us())))
        .collect()
}

/// The series of a step in columns; neighbours are joined when there are more than [`POINTS`].
fn joined<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Value {
    let intervals: Vec<&Interval> = intervals.collect();
    let each = intervals.len().div_ceil(POINTS).max(1);
    let mut columns: [Vec<Value>; 9] = Default::default();
    for group in intervals.chunks(each) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let width = (last.end - first.start).secs();
        if width <= 0.0 {
            continue;
        }
        // Most series are short enough, and a histogram is large: copy only what has to be joined.
        let joined = (group.len() > 1).then(|| {
            let (mut read, mut write) = (Side::default(), Side::default());
            for interval in group {
                read.merge(&interval.read);
                write.merge(&interval.write);
            }
            (read, write)
        });
        let (read, write) = joined.as_ref().map_or((&first.read, &first.write), |(read, write)| (read, write));
        columns[0].push(short(first.start.secs()));
        columns[1].push(short(width));
        for (at, side) in [(2, read), (5, write)] {
            columns[at].push(short(side.operations() as f64 / width));
            columns[at + 1].push(short(side.bytes as f64 / 1e6 / width));
            let single = Some(&side.latency).filter(|_| side.is_each_timed());
            columns[at + 2].push(
                single.and_then(|latencies| latencies.percentile(99.0)).map_or(Value::Null, |p99| short(p99.us())),
            );
        }
        let max =
            [read, write].into_iter().filter(|side| side.is_each_timed()).filter_map(|side| side.latency.max()).max();
        columns[8].push(max.map_or(Value::Null, |max| short(max.us())));
    }
    let [t, w, read_iops, read_mbps, read_p99, write_iops, write_mbps, write_p99, max] = columns;
    json!({
        "joined": each, "t": t, "w": w, "max": max,
        "read": {"iops": read_iops, "mbps": read_mbps, "p99": read_p99},
        "write": {"iops": write_iops, "mbps": write_mbps, "p99": write_p99},
    })
}

/// Four significant digits: a drawing needs no more, and the file stays small.
pub(super) fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(0);
    }
    let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
    json!((value * scale).round() / scale)
}

/// On the intervals' clock, which began at `from` of the samples': temperature as it stood; CPU and iowait as shares of the time between two samples.
fn machine(samples: &[&Sample], from: Nanos) -> Value {
    let each = samples.len().div_ceil(POINTS).max(1);
    let kept: Vec<&&Sample> = samples.iter().step_by(each).collect();
    let mut columns: [Vec<Value>; 6] = Default::default();
    for (i, sample) in kept.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| kept.get(i));
        let shares = before.and_then(|before| cpu_shares(before, sample));
        let faults = before.and_then(|before| rate(before, sample, "pgmajfault"));
        columns[0].push(short((sample.at - from).secs()));
        columns[1].push(sample.temperature_c.map_or(Value::Null, short));
        columns[2].push(shares.map_or(Value::Null, |(busy, _)| short(busy)));
        columns[3].push(shares.map_or(Value::Null, |(_, iowait)| short(iowait)));
        columns[4].push(faults.map_or(Value::Null, short));
        // Bits 0 to 3 of the firmware's word say what holds now (under-voltage, frequency capped, throttled, soft limit).
        columns[5].push(json!(sample.throttled.is_some_and(|bits| bits & 0xf != 0)));
    }
    let [t, temperature, cpu, iowait, faults, throttled] = columns;
    json!({"t": t, "temperature": temperature, "cpu": cpu, "iowait": iowait, "faults": faults, "throttled": throttled})
}

/// Busy and iowait shares in per cent.
fn cpu_shares(before: &Sample, after: &Sample) -> Option<(f64, f64)> {
    let (a, b) = (before.cpu_ticks?, after.cpu_ticks?);
    let spent: Vec<f64> = a.iter().zip(b).map(|(a, b)| b.saturating_sub(*a) as f64).collect();
    let all: f64 = spent.iter().sum();
    let (idle, iowait) = (*spent.get(3)?, *spent.get(4)?);
    (all > 0.0).then(|| (100.0 * (all - idle - iowait) / all, 100.0 * iowait / all))
}

pub(super) fn rate(before: &Sample, after: &Sample, counter: &str) -> Option<f64> {
    let width = (after.at - before.at).secs();
    let grown = after.vm.get(counter)?.saturating_sub(*before.vm.get(counter)?);
    (width > 0.0).then(|| grown as f64 / width)
}

/// Published devices by the figures that the ladder has.
fn published() -> Vec<Value> {
    let value = |device: &profile::PublishedDevice, figure| device.figure(figure).map(|published| published.value);
    profile::published()
        .iter()
        .filter_map(|device| {
            let rate = value(device, Figure::SeqRead)?;
            let page = value(device, Figure::PageReadMean).or_else(|| value(device, Figure::RandRead4kMean));
            let swap = value(device, Figure::SwapReadMean);
            (page.is_some() || swap.is_some()).then(|| {
                json!({
                    "name": device.title,
                    "source": device.source,
                    "mbps": rate,
                    "page_us": page,
                    "swap_us": swap,
                    "notes": device.notes,
                    "text": format!("{} MB/s", significant(rate)),
                })
            })
        })
        .collect()
}
