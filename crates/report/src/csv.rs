//! A run as a table for spreadsheets and scripts: a line for each direction of each step, units in the heads of the
//! columns, nothing where a figure is not known.

use crate::view::summaries;
use crate::words;
use basics::Nanos;
use basics::job::Block;
use record::{Record, Run, StepRecord};
use study::SideSummary;
use thiserror::Error;

/// The table could not be written.
#[derive(Debug, Error)]
#[error("the table cannot be written: {0}")]
pub struct CsvError(String);

/// Columns; those of latencies are µs.
const PERCENTILES: [f64; 8] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 99.9999];

/// The table, with its heads.
///
/// # Errors
/// None that memory does not bring about.
pub fn run(record: &Record) -> Result<String, CsvError> {
    let wrong = |error: String| CsvError(error);
    let mut out = csv::Writer::from_writer(Vec::new());
    let heads = [
        "run",
        "step",
        "name",
        "tier",
        "target",
        "state",
        "rw",
        "direction",
        "bs_B",
        "depth",
        "threads",
        "engine",
        "elapsed_s",
        "ops",
        "iops",
        "MBps",
        "ci95_percent",
        "lat_mean_us",
    ];
    let points = PERCENTILES.iter().map(|percent| format!("lat_p{percent}_us"));
    let heads = heads.into_iter().map(str::to_owned).chain(points);
    let heads = heads.chain(["lat_max_us", "scale"].map(str::to_owned));
    out.write_record(heads).map_err(|error| wrong(error.to_string()))?;
    for (step, summary) in record.steps.iter().zip(summaries(record)) {
        for (direction, side) in [("read", summary.read), ("write", summary.write)] {
            if let Some(side) = side {
                let line = line(&record.run, step, direction, &side);
                out.write_record(line).map_err(|error| wrong(error.to_string()))?;
            }
        }
    }
    let bytes = out.into_inner().map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
}

fn line(run: &Run, step: &StepRecord, direction: &str, side: &SideSummary) -> Vec<String> {
    let us = |time: Option<Nanos>| time.map_or(String::new(), |time| time.us().to_string());
    let bs = match &step.job.block {
        Block::Fixed(size) => size.0.to_string(),
        Block::Split(_) => String::new(),
    };
    let state = words::state(&step.state).to_string();
    let mut line = vec![
        run.id.clone(),
        step.index.to_string(),
        step.name.clone(),
        step.tier.clone().unwrap_or_default(),
        step.target.clone(),
        state,
        words::rw(&step.job).to_owned(),
        direction.to_owned(),
        bs,
        step.job.depth.to_string(),
        step.job.threads.to_string(),
        step.engine.as_ref().map_or(String::new(), |engine| engine.used.name().to_owned()),
        step.elapsed.secs().to_string(),
        side.ops.to_string(),
        side.iops.to_string(),
        side.mbps.to_string(),
        side.ci95_percent.get().map_or(String::new(), f64::to_string),
        us(side.lat.mean.get().copied()),
    ];
    line.extend(PERCENTILES.iter().map(|percent| us(side.lat.percentile(*percent))));
    line.push(us(side.lat.max.get().copied()));
    line.push(run.plan.scale.map_or(String::new(), |scale| scale.to_string()));
    line
}
