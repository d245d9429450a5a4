//! The rate of a step over time, made fit for statistics: a gap parts the series, a stump at the end is left out, and
//! neighbours are joined until counting whole operations no longer looks like noise.

use crate::model::StepView;
use basics::{Interval, Nanos};

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

/// The step's intervals as pieces in order of time; a last piece much shorter than the others is dropped.
///
/// The engine reports an interval without operations as one, so time that no interval covers is time whose account was
/// lost ([`missing`]): nothing is said about it, and no piece reaches across it. An interval of no width, or one that
/// begins before the last one ended, comes from no engine and is left out.
pub(crate) fn pieces(step: &StepView<'_>, way: Way) -> Vec<Piece> {
    let nominal = step.job.interval.0.max(1);
    let mut out: Vec<Piece> = Vec::with_capacity(step.intervals.len());
    for interval in in_order(step) {
        let operations = match way {
            Way::Read => interval.read.operations(),
            Way::Write => interval.write.operations(),
            Way::Both => interval.read.operations() + interval.write.operations(),
        };
        out.push(Piece { start: interval.start, end: interval.end, operations, position: interval.position });
    }
    if out.len() > 1 && out.last().is_some_and(|last| last.width() < STUMP * nominal as f64 / 1e9) {
        out.pop();
    }
    out
}

/// Intervals that the record has lost: the time before the last one that none covers, over their nominal width.
pub(crate) fn missing(step: &StepView<'_>) -> u64 {
    let nominal = step.job.interval.0.max(1);
    let mut until = Nanos(0);
    in_order(step).fold(0u64, |sum, interval| {
        let gap = (interval.start - until).0;
        until = interval.end;
        // Rounded to whole intervals: each is cut a little early or late.
        sum.saturating_add(gap.saturating_add(nominal / 2) / nominal)
    })
}

/// The intervals that follow each other in time.
pub(crate) fn in_order<'s>(step: &'s StepView<'_>) -> impl Iterator<Item = &'s Interval> {
    let mut until = Nanos(0);
    step.intervals.iter().copied().filter(move |interval| {
        let follows = interval.start >= until && interval.end > interval.start;
        if follows {
            until = interval.end;
        }
        follows
    })
}

/// Joins neighbours until a piece holds at least [`ENOUGH`] operations in the median, so that the spread of the rates is
/// the device's and not that of counting to two. At least four pieces stay; none is joined across a gap.
pub(crate) fn joined(mut pieces: Vec<Piece>) -> Vec<Piece> {
    loop {
        let counts: Vec<f64> = pieces.iter().map(|p| p.operations as f64).collect();
        let enough = basics::stats::median(&counts).is_none_or(|median| median >= ENOUGH);
        if enough || pieces.len() < 8 {
            return pieces;
        }
        let stretches = pieces.chunk_by(|one, next| one.end == next.start);
        let pairs = stretches.flat_map(|stretch| stretch.chunks_exact(2)).map(|pair| Piece {
            start: pair[0].start,
            end: pair[1].end,
            operations: pair[0].operations + pair[1].operations,
            position: pair[1].position,
        });
        let wider: Vec<Piece> = pairs.collect();
        if wider.len() < 4 {
            return pieces;
        }
        pieces = wider;
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
