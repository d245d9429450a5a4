//! fio's JSON: one block for each job in it. Text may stand before and behind it. fio 3 states nanoseconds and bytes a second,
//! fio 2 microseconds and 2^10 bytes a second; both are read.

use crate::error::{At, excerpt, in_a_line};
use crate::figures::{Fio, FioSide, Spread, percentile_name};
use crate::{Block, Figures, Format, QuoteError, Text};
use basics::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What fio prints first, and no other program does.
const MARK: &str = "\"fio version\"";

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, serde_json::Value>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, serde_json::Value>,
    read: Side,
    write: Side,
    #[serde(default)]
    trim: Option<Side>,
}

#[derive(Deserialize)]
struct Side {
    iops: f64,
    /// 2^10 bytes a second.
    bw: f64,
    bw_bytes: Option<f64>,
    io_bytes: Option<u64>,
    /// ms.
    runtime: Option<f64>,
    slat_ns: Option<Latency>,
    clat_ns: Option<Latency>,
    lat_ns: Option<Latency>,
    slat: Option<Latency>,
    clat: Option<Latency>,
    lat: Option<Latency>,
}

#[derive(Deserialize)]
struct Latency {
    min: f64,
    max: f64,
    mean: f64,
    stddev: f64,
    /// fio 3 states it.
    #[serde(rename = "N")]
    count: Option<u64>,
    #[serde(default)]
    percentile: BTreeMap<String, f64>,
}

impl Latency {
    /// Every time of it.
    fn all(&self) -> impl Iterator<Item = f64> {
        [self.min, self.max, self.mean, self.stddev].into_iter().chain(self.percentile.values().copied())
    }
}

pub fn read(text: &Text<'_>) -> Result<Vec<Block>, QuoteError> {
    let mut blocks = Vec::new();
    let mut until = 0;
    let opening = text.whole.len() - text.whole.trim_start().len();
    for line in &text.lines {
        let indent = line.text.len() - line.text.trim_start().len();
        let start = line.start + indent;
        if start < until || !text.whole[start..].starts_with('{') {
            continue;
        }
        // Tools that sort keys put others first; then it is the whole text.
        let marked = text.whole[start + 1..].trim_start().starts_with(MARK);
        if !(marked || start == opening && text.whole.contains(MARK)) {
            continue;
        }
        let mut documents = serde_json::Deserializer::from_str(&text.whole[start..]).into_iter::<Document>();
        match documents.next() {
            Some(Ok(document)) => blocks.extend(of_document(line.number, &document)?),
            Some(Err(error)) => {
                let at = At { format: Format::FioJson, line: line.number + error.line().saturating_sub(1) };
                return Err(if error.is_eof() {
                    at.cut("its end")
                } else {
                    at.wrong(format!(
                        "is not as fio writes it ({}); take the file that fio's --output names",
                        in_a_line(&error.to_string())
                    ))
                });
            }
            None => {}
        }
        until = start + documents.byte_offset();
    }
    Ok(blocks)
}

fn of_document(line: usize, document: &Document) -> Result<Vec<Block>, QuoteError> {
    let at = At { format: Format::FioJson, line };
    let mut blocks = Vec::new();
    for job in &document.jobs {
        let option = |name: &str| {
            let value = job.options.get(name).or_else(|| document.global.get(name))?;
            value.as_str().map(str::to_owned).or_else(|| value.as_number().map(ToString::to_string))
        };
        let number = |name: &str| option(name)?.parse().ok();
        let side = |name, side: Option<&Side>| side.map_or(Ok(None), |side| of_side(at, &job.jobname, name, side));
        let figures = Fio {
            job: job.jobname.clone(),
            rw: option("rw").or_else(|| option("readwrite")),
            block_b: option("bs").or_else(|| option("blocksize")).and_then(|bs| Some(bs.parse::<Bytes>().ok()?.0)),
            depth: number("iodepth"),
            jobs: number("numjobs"),
            direct: option("direct").map(|direct| direct != "0"),
            read: side("read", Some(&job.read))?,
            write: side("write", Some(&job.write))?,
            trim: side("trim", job.trim.as_ref())?,
        };
        if figures.read.is_some() || figures.write.is_some() || figures.trim.is_some() {
            let what = job.jobname.clone();
            blocks.push(Block { format: Format::FioJson, line, what, figures: Figures::FioJson(figures) });
        }
    }
    if blocks.is_empty() {
        return Err(at.wrong("none of its jobs read or wrote anything; look for the error that fio told"));
    }
    Ok(blocks)
}

/// Nothing for a direction in which nothing was done.
fn of_side(at: At, job: &str, name: &str, side: &Side) -> Result<Option<FioSide>, QuoteError> {
    let numbers = [Some(side.iops), Some(side.bw), side.bw_bytes, side.runtime];
    if numbers.iter().flatten().any(|number| !number.is_finite() || *number < 0.0) {
        return Err(at.wrong(format!("states a rate or a time below zero for the {name}s of job {}", excerpt(job))));
    }
    if side.iops == 0.0 && side.bw == 0.0 {
        return Ok(None);
    }
    let latencies = [&side.slat_ns, &side.clat_ns, &side.lat_ns, &side.slat, &side.clat, &side.lat];
    if latencies.into_iter().flatten().flat_map(Latency::all).any(|time| !time.is_finite() || time < 0.0) {
        return Err(at.wrong(format!("states a latency below zero for the {name}s of job {}", excerpt(job))));
    }
    let latency = |ns: &Option<Latency>, us: &Option<Latency>| {
        ns.as_ref().and_then(|latency| spread(latency, 1e3)).or_else(|| us.as_ref().and_then(|us| spread(us, 1.0)))
    };
    Ok(Some(FioSide {
        iops: side.iops,
        mbps: side.bw_bytes.unwrap_or(side.bw * 1024.0) / 1e6,
        // fio 2 counts in 2^10 bytes under the same name.
        bytes: side.io_bytes.map(|bytes| if side.bw_bytes.is_some() { bytes } else { bytes.saturating_mul(1024) }),
        runtime_s: side.runtime.map(|ms| ms / 1e3),
        slat_us: latency(&side.slat_ns, &side.slat),
        clat_us: latency(&side.clat_ns, &side.clat),
        lat_us: latency(&side.lat_ns, &side.lat),
    }))
}

/// Nothing where nothing was timed: fio writes zeros then.
fn spread(latency: &Latency, per_us: f64) -> Option<Spread> {
    if latency.count == Some(0) || (latency.max == 0.0 && latency.mean == 0.0) {
        return None;
    }
    let percentiles = latency.percentile.iter().filter_map(|(percent, value)| {
        // fio 2 fills its list up with "0.00": 0.
        let percent: f64 = percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent) && *percent > 0.0)?;
        Some((percentile_name(percent), value / per_us))
    });
    Some(Spread {
        min: Some(latency.min / per_us),
        max: Some(latency.max / per_us),
        mean: Some(latency.mean / per_us),
        stddev: Some(latency.stddev / per_us),
        percentiles: percentiles.collect(),
    })
}
