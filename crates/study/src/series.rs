//! The rate of a step over time, made fit for statistics: gaps are zeros, a stump at the end is left out, and neighbours
//! are joined until counting whole operations no longer looks like noise.

use crate::model::StepView;
use basics::Nanos;

/// Share of the nominal width below which the last interval is a stump that says nothing about the rate.
const STUMP: f64 = 0.5;
/// Operations that a joined interval holds in the median: one more or less is then 5 % at most.
const ENOUGH: f64 = 20.0;

/// Reads, writes, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
    Both,
}

/// A piece of time and what was done in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Piece {
    pub start: Nanos,
    pub end: Nanos,
    pub operations: u64,
    pub position: u64,
}

impl Piece {
    pub fn width(&self) -> f64 {
        (self.end - self.start).secs()
    }
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        if self.width() > 0.0 { self.operations as f64 / self.width() } else { 0.0 }
    }
}

/// The step's intervals as pieces that follow each other without a gap. Time that no interval covers (the engine had
/// nothing to report) becomes pieces without operations; a last piece much shorter than the others is dropped.
pub(crate) fn pieces(step: &StepView<'_>, way: Way) -> Vec<Piece> {
    let nominal = step.job.interval.0.max(1);
    let mut out: Vec<Piece> = Vec::with_capacity(step.intervals.len());
    let mut until = Nanos(0);
    for interval in &step.intervals {
        while interval.start.0.saturating_sub(until.0) >= nominal {
            let end = Nanos(until.0 + nominal);
            out.push(Piece { start: until, end, operations: 0, position: interval.position });
            until = end;
        }
        let operations = match way {
            Way::Read => interval.read.operations(),
            Way::Write => interval.write.operations(),
            Way::Both => interval.read.operations() + interval.write.operations(),
        };
        out.push(Piece { start: interval.start, end: interval.end, operations, position: interval.position });
        until = interval.end;
    }
    if out.len() > 1 && out.last().is_some_and(|last| last.width() < STUMP * nominal as f64 / 1e9) {
        out.pop();
    }
    out
}

/// Joins neighbours until a piece holds at least [`ENOUGH`] operations in the median, so that the spread of the rates is
/// the device's and not that of counting to two. At least four pieces stay.
pub(crate) fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    loop {
        let counts: Vec<f64> = pieces.iter().map(|p| p.operations as f64).collect();
        let enough = basics::stats::median(&counts).is_none_or(|median| median >= ENOUGH);
        if enough || pieces.len() < 8 {
            return pieces;
        }
        pieces = pieces
            .chunks_exact(2)
            .map(|pair| Piece {
                start: pair[0].start,
                end: pair[1].end,
                operations: pair[0].operations + pair[1].operations,
                position: pair[1].position,
            })
            .collect();
    }
}

/// The rates of pieces, operations a second.
pub(crate) fn rates(pieces: &[Piece]) -> Vec<f64> {
    pieces.iter().map(Piece::rate).collect()
}

/// One direction of a step as a whole; nothing for both at once.
pub(crate) fn side<'a>(step: &StepView<'a>, way: Way) -> Option<&'a basics::Side> {
    match way {
        Way::Read => Some(step.read),
        Way::Write => Some(step.write),
        Way::Both => None,
    }
}
