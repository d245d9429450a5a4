//! A run as a table for spreadsheets and scripts: a line for each direction of each step, units in the heads of the
//! columns, nothing where a figure is not known. A run of a workload has its figures of each visit as further columns.

use crate::view::view;
use crate::words;
use crate::workload;
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
    let view = view(record);
    let visits: Vec<Option<Vec<String>>> = view.steps.iter().map(|step| workload::visit(&view, step)).collect();
    let more: &[&str] = if visits.iter().any(Option::is_some) { &workload::VISIT } else { &[] };
    let heads = heads.chain(more.iter().map(|head| (*head).to_owned()));
    out.write_record(heads).map_err(|error| wrong(error.to_string()))?;
    for ((step, of_view), visit) in record.steps.iter().zip(&view.steps).zip(visits) {
        let summary = study::summarise(of_view);
        let mut sides = vec![("read", summary.read), ("write", summary.write)];
        sides.retain(|(_, side)| side.is_some());
        // A tier on which a workload did nothing, because it did not fit there, is worth its line for the reason.
        if sides.is_empty() && visit.is_some() {
            sides.push(("", None));
        }
        for (direction, side) in sides {
            let mut line = line(&record.run, step, direction, side.as_ref());
            line.extend(visit.clone().unwrap_or_else(|| vec![String::new(); more.len()]));
            out.write_record(line).map_err(|error| wrong(error.to_string()))?;
        }
    }
    let bytes = out.into_inner().map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))
}

fn line(run: &Run, step: &StepRecord, direction: &str, side: Option<&SideSummary>) -> Vec<String> {
    let us = |time: Option<Nanos>| time.map_or(String::new(), |time| time.us().to_string());
    let bs = match &step.job.block {
        Block::Fixed(size) => size.0.to_string(),
        Block::Split(_) => String::new(),
    };
    let of = |figure: &dyn Fn(&SideSummary) -> String| side.map_or(String::new(), figure);
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
        of(&|side| side.ops.to_string()),
        of(&|side| side.iops.to_string()),
        of(&|side| side.mbps.to_string()),
        of(&|side| side.ci95_percent.get().map_or(String::new(), f64::to_string)),
        of(&|side| us(side.lat.mean.get().copied())),
    ];
    line.extend(PERCENTILES.iter().map(|percent| of(&|side| us(side.lat.percentile(*percent)))));
    line.push(of(&|side| us(side.lat.max.get().copied())));
    line.push(run.plan.scale.map_or(String::new(), |scale| scale.to_string()));
    line
}
