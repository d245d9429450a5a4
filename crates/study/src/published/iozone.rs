//! iozone's matrix: KiB a second for each record size and pass, the fsync at the end of a pass in its time.

use crate::model::{RunView, StepView};
use basics::job::Block;
use serde::Serialize;
use std::collections::BTreeMap;

/// All rows, by rising record size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Iozone {
    /// One for each record size.
    pub rows: Vec<Row>,
}

/// A record size; KiB/s.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Record size, KiB.
    #[serde(rename = "record_KiB")]
    pub record_kib: f64,
    /// The file made anew, its allocation inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<f64>,
    /// Over what is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<f64>,
    /// In order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<f64>,
    /// In order once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<f64>,
    /// In random order, each record once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_read: Option<f64>,
    /// In the same random order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random_write: Option<f64>,
}

pub(super) fn figures(run: &RunView<'_>) -> Iozone {
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for step in run.steps.iter().filter(|step| step.is_whole()) {
        let Block::Fixed(record) = step.job.block else { continue };
        let row =
            rows.entry(record.0).or_insert_with(|| Row { record_kib: record.0 as f64 / 1024.0, ..Row::default() });
        let pass = step.name.rsplit_once('-').map_or(step.name, |(pass, _)| pass);
        let cell = match pass {
            "write" => &mut row.write,
            "rewrite" => &mut row.rewrite,
            "read" => &mut row.read,
            "reread" => &mut row.reread,
            "random-read" => &mut row.random_read,
            "random-write" => &mut row.random_write,
            _ => continue,
        };
        *cell = Some(rate(step));
    }
    Iozone { rows: rows.into_values().collect() }
}

fn rate(step: &StepView<'_>) -> f64 {
    (step.read.bytes + step.write.bytes) as f64 / 1024.0 / step.elapsed.secs()
}

impl Iozone {
    pub(super) fn lines(&self) -> Vec<String> {
        let head = ["KiB/s, record", "write", "rewrite", "read", "reread", "random read", "random write"];
        let line = |cells: [String; 7]| {
            let [first, rest @ ..] = cells;
            rest.iter().fold(format!("{first:>14}"), |line, cell| format!("{line}{cell:>13}"))
        };
        let cell = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"));
        let rows = self.rows.iter().map(|row| {
            let record = format!("{} KiB", row.record_kib);
            let rest = [row.write, row.rewrite, row.read, row.reread, row.random_read, row.random_write].map(cell);
            let [a, b, c, d, e, f] = rest;
            line([record, a, b, c, d, e, f])
        });
        [line(head.map(str::to_owned))].into_iter().chain(rows).collect()
    }
}
