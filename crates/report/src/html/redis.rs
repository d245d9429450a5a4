//! A Redis server under load: for each length of values a table of the ways to keep them on each medium, with what each costs as a
//! bar, and why it is so. Its slowest requests are drawn from what [`late`] gives.

use super::Entry;
use super::charts::short;
use basics::Known;
use basics::units::{grouped, significant};
use serde::Serialize;
use serde_json::{Value, json};
use study::{Percentiles, RedisCell, StepView};

/// As many requests and stalls of a visit as a drawing has room for.
const MOST: usize = 400;

#[derive(Serialize)]
pub struct Served {
    /// The run, where there are several.
    heading: Option<String>,
    tables: Vec<Table>,
}

#[derive(Serialize)]
struct Table {
    payload: String,
    /// True where the server was taken away in the middle.
    was_lost: bool,
    rows: Vec<Row>,
    published: Vec<Published>,
}

#[derive(Serialize)]
struct Row {
    mode: String,
    medium: String,
    color: usize,
    /// Of the fastest row, in per cent; unknown where nothing was measured.
    percent: Option<f64>,
    /// Requests a second, or why there are none.
    rate: String,
    range: Option<String>,
    cost: String,
    p50: String,
    p95: String,
    p99: String,
    p999: String,
    written: String,
    ram: String,
    lost: String,
    why: String,
}

#[derive(Serialize)]
struct Published {
    mode: &'static str,
    on: String,
    rate: String,
    cost: String,
    p95: String,
}

/// The cells of a run that loaded a server.
pub fn served(entry: &Entry<'_>, heading: Option<&str>, color: &dyn Fn(&str) -> usize) -> Option<Served> {
    let cells = study::redis_cells(&entry.view);
    let table = |(values, of_it): (String, Vec<&RedisCell>)| {
        let best = of_it.iter().filter_map(|cell| cell.ops_per_s.get().copied()).fold(0.0, f64::max);
        let quotes = of_it.first().filter(|cell| entry.record.run.plan.as_published && cell.mix.is_none());
        let published = quotes.map_or_else(Vec::new, |cell| study::published_redis(cell.payload));
        Table {
            payload: values,
            was_lost: of_it.iter().any(|cell| cell.lost.is_some()),
            rows: of_it.iter().map(|cell| row(cell, best, color(&cell.medium))).collect(),
            published: published.into_iter().map(quoted).collect(),
        }
    };
    let tables: Vec<Table> = study::by_values(&cells).into_iter().map(table).collect();
    (!tables.is_empty()).then(|| Served { heading: heading.map(str::to_owned), tables })
}

fn dash() -> String {
    "–".to_owned()
}

fn quoted(row: study::PublishedRedis) -> Published {
    let (least, most) = row.p95_ms;
    Published {
        mode: row.mode,
        on: row.on,
        rate: grouped(row.ops_per_s.round() as i64),
        cost: row.cost_percent.map_or_else(dash, significant),
        p95: if least < most { format!("{}–{}", significant(least), significant(most)) } else { significant(least) },
    }
}

fn row(cell: &RedisCell, best: f64, color: usize) -> Row {
    let one = |value: &Known<f64>| value.get().map_or_else(dash, |value| significant(*value));
    let ms = |pick: fn(&Percentiles) -> Option<f64>| {
        cell.lat.get().and_then(pick).map_or_else(dash, |us| significant(us / 1e3))
    };
    let ops = cell.ops_per_s.get();
    let rounded = |ops: f64| grouped(ops.round() as i64);
    Row {
        mode: cell.mode.clone(),
        medium: cell.medium.clone(),
        color,
        percent: ops.filter(|_| best > 0.0).map(|ops| 100.0 * ops / best),
        rate: ops.map_or_else(|| cell.ops_per_s.to_string(), |ops| rounded(*ops)),
        range: cell.range_ops.map(|(least, most)| format!("{}–{}", rounded(least), rounded(most))),
        cost: match cell.cost_percent.get() {
            Some(cost) if cell.mode != "memory-only" => significant(cost.max(0.0)),
            _ => dash(),
        },
        p50: ms(|lat| Some(lat.p50)),
        p95: ms(|lat| Some(lat.p95)),
        p99: ms(|lat| Some(lat.p99)),
        p999: ms(|lat| lat.p999),
        written: one(&cell.written_per_byte),
        ram: cell.peak.get().map_or_else(dash, |bytes| significant(bytes.0 as f64 / f64::from(1 << 20))),
        lost: cell.lost.as_ref().map_or_else(dash, |lost| {
            let oldest = lost.oldest.map_or_else(String::new, |time| format!(", the oldest {time} before"));
            format!("{} of {}{oldest}", grouped(lost.acknowledged as i64), grouped(lost.of as i64))
        }),
        why: cell.why.clone(),
    }
}

/// The slowest requests of a step and what its server met, for the page's script; null of any other.
pub fn late(step: &StepView<'_>) -> Value {
    let Some(late) = study::late_requests(step, MOST).filter(|late| !late.requests.is_empty()) else {
        return Value::Null;
    };
    let requests = late.requests.iter().map(|(slow, reason)| {
        json!([short(slow.at.secs()), short(slow.latency.secs() * 1e3), reason.map_or("not explained", |r| r.label())])
    });
    let stalls = late
        .stalls
        .iter()
        .map(|(reason, stall)| json!([short(stall.from.secs()), short(stall.until.secs()), reason.label(), stall.who]));
    json!({
        "way": step.name,
        "medium": step.tier,
        "payload": step.job.block.to_string(),
        "requests": requests.collect::<Vec<_>>(),
        "stalls": stalls.collect::<Vec<_>>(),
        "until": short(step.elapsed.secs()),
    })
}
