//! What only the page of a `check` has: the table of tiers, the rungs of the ladder, and the matrix of what a tier is good for.

use crate::terminal::{Style, bus, purpose, purposes};
use crate::words;
use basics::units::significant;
use basics::{Known, Why};
use record::Record;
use serde::Serialize;
use study::{CheckStudy, LatencySummary, TierStudy};

#[derive(Serialize)]
pub struct Overview {
    /// Which run and what it found, where the page is of several.
    pub heading: Option<String>,
    pub page: String,
    pub swap: String,
    pub rows: Vec<OverviewRow>,
}

#[derive(Serialize)]
pub struct OverviewRow {
    pub name: String,
    pub model: String,
    pub color: usize,
    pub bus: String,
    pub read: Cell,
    pub write: Cell,
    pub iops: Cell,
    pub p50: Cell,
    pub p99: Cell,
    pub share: Cell,
    /// For the bar, 0 to 100.
    pub percent: Option<f64>,
}

/// A figure, or why there is none.
#[derive(Serialize)]
pub struct Cell {
    pub text: String,
    missing: bool,
}

/// A measured tier on the ladder.
#[derive(Serialize)]
pub struct Rung {
    name: String,
    color: usize,
    mbps: f64,
    page_us: Option<f64>,
    swap_us: Option<f64>,
}

#[derive(Serialize)]
pub struct Matrix {
    /// Which run, where the page is of several.
    heading: Option<String>,
    purposes: Vec<String>,
    rows: Vec<MatrixRow>,
}

#[derive(Serialize)]
struct MatrixRow {
    tier: String,
    color: usize,
    cells: Vec<MatrixCell>,
}

#[derive(Serialize)]
struct MatrixCell {
    purpose: String,
    verdict: String,
    why: String,
}

fn missing(why: &Why) -> Cell {
    let text = if *why == Why::NotReported { "–".to_owned() } else { why.to_string() };
    Cell { text, missing: true }
}

fn cell<T>(value: &Known<T>, show: impl FnOnce(&T) -> String) -> Cell {
    match value {
        Known::Is(value) => Cell { text: show(value), missing: false },
        Known::Unknown(why) => missing(why),
    }
}

fn percentile(latency: &Known<LatencySummary>, percent: f64) -> Cell {
    match latency {
        Known::Is(latency) => match (latency.percentile(percent), latency.mean.get()) {
            (Some(value), _) => Cell { text: value.to_string(), missing: false },
            // Timed in batches: one mean stands for all percentiles.
            (None, Some(mean)) if percent == 50.0 => Cell { text: format!("mean {mean}"), missing: false },
            (None, Some(_)) => Cell { text: "timed in batches".to_owned(), missing: true },
            (None, None) => Cell { text: "too short".to_owned(), missing: true },
        },
        Known::Unknown(why) => missing(why),
    }
}

pub fn overview(record: &Record, study: &CheckStudy, color_of: &dyn Fn(&str) -> usize) -> Overview {
    let rows = study
        .tiers
        .iter()
        .map(|tier| {
            let facts = record.run.machine.tiers.iter().find(|known| known.name == tier.name);
            let figures = &tier.figures;
            let iops = match (&figures.swap_sim_read, &figures.swap_sim_write) {
                (Known::Is(read), Known::Is(write)) => {
                    Cell { text: significant(read.iops + write.iops), missing: false }
                }
                (Known::Unknown(why), _) | (_, Known::Unknown(why)) => missing(why),
            };
            let ceiling = facts.and_then(|facts| facts.ceiling.get());
            let of =
                ceiling.map(|ceiling| format!(" of {}", significant(ceiling.practical_mbps.1))).unwrap_or_default();
            OverviewRow {
                name: tier.name.clone(),
                model: facts.map(crate::terminal::model).unwrap_or_default(),
                color: color_of(&tier.name),
                bus: bus(tier, facts, &Style::default()).0,
                read: cell(&figures.seq_read_mbps, |v| significant(*v)),
                write: cell(&figures.seq_write_mbps, |v| significant(*v)),
                iops,
                p50: percentile(&figures.page_read_qd1, 50.0),
                p99: percentile(&figures.page_read_qd1, 99.0),
                share: cell(&tier.ceiling_share, |share| format!("{} %{of}", significant((share * 100.0).round()))),
                percent: tier.ceiling_share.get().map(|share| (share * 100.0).clamp(0.0, 100.0)),
            }
        })
        .collect();
    Overview {
        heading: None,
        page: words::block_of(record, "page-read-qd1"),
        swap: words::block_of(record, "swap-sim"),
        rows,
    }
}

pub fn rung(tier: &TierStudy, name: String, color: usize) -> Option<Rung> {
    let figures = &tier.figures;
    // A cache line from RAM is the only latency that RAM has here: nothing lies between it and a page.
    let load = figures.load_ns.get().map(|ns| ns / 1e3);
    let page = figures.page_read_qd1.get().and_then(|page| page.mean.get()).map(|mean| mean.us());
    let swap = figures.swap_sim_read.get().and_then(|side| side.lat.mean.get()).map(|mean| mean.us());
    Some(Rung { name, color, mbps: *figures.seq_read_mbps.get()?, page_us: page.or(load), swap_us: swap.or(load) })
}

/// `heading` says of which run, where the page is of several.
pub fn matrix(study: &CheckStudy, heading: Option<String>, color_of: &dyn Fn(&str) -> usize) -> Option<Matrix> {
    let purposes = purposes(study);
    if purposes.is_empty() {
        return None;
    }
    let rows = study
        .tiers
        .iter()
        .filter(|tier| !tier.good_for.is_empty())
        .map(|tier| MatrixRow {
            tier: tier.name.clone(),
            color: color_of(&tier.name),
            cells: purposes
                .iter()
                .map(|wanted| {
                    let found = tier.good_for.iter().find(|fitness| fitness.purpose == *wanted);
                    MatrixCell {
                        purpose: purpose(wanted),
                        verdict: found.map_or_else(|| "unknown".to_owned(), |fitness| fitness.verdict.clone()),
                        why: found.map(|fitness| fitness.why.clone()).unwrap_or_default(),
                    }
                })
                .collect(),
        })
        .collect();
    Some(Matrix { heading, purposes: purposes.iter().map(|name| purpose(name)).collect(), rows })
}
