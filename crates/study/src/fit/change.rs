//! What changes in the course of a step: a drop of the rate that stays (a write cache that is full, heat) and pauses that
//! come back (garbage collection).

use super::point::{Moment, Point};
use basics::stats::{median, quantile, variation};

/// A lasting drop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drop {
    /// When, seconds since the step began.
    pub at: f64,
    /// Bytes a second before.
    pub before: f64,
    /// Bytes a second afterwards.
    pub after: f64,
    /// Standard errors of the two, as parts of them.
    pub noise: f64,
}

/// Pieces that the series is brought to.
const PIECES: usize = 120;
/// Of these, so many on each side of a drop.
const LEAST: usize = 5;
/// A drop below this part of the rate before counts.
const DEEP: f64 = 0.8;

/// The lasting drop of the rate in a series, if there is one.
///
/// The break with the least sum of squares, provided that it explains most of the spread, that the medians of both halves
/// of both sides agree (a slow drift and a wave do not), and that it is deep. Its time comes from the sums on both sides,
/// so that it is sharper than an interval.
pub(super) fn drop_of(series: &[Moment]) -> Option<Drop> {
    let mut width = series.len().div_ceil(PIECES).max(1);
    let mut pieces = joined(series, width);
    // A piece of few operations counts instead of measuring.
    while pieces.len() > 4 * LEAST && median(&pieces.iter().map(|p| p.2).collect::<Vec<_>>())? < 8.0 {
        width *= 2;
        pieces = joined(series, width);
    }
    let n = pieces.len();
    if n < 2 * LEAST {
        return None;
    }
    let rates: Vec<f64> = pieces.iter().map(|(seconds, bytes, _)| bytes / seconds).collect();
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>()
    };
    let split = (LEAST..=n - LEAST).map(|at| (at, squares(&rates[..at]) + squares(&rates[at..])));
    let (at, left) = split.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if left > 0.5 * squares(&rates) {
        return None;
    }
    let middle = |part: &[f64]| median(part).unwrap_or(0.0);
    let (head, tail) = rates.split_at(at);
    let (before, after) = (middle(head), middle(tail));
    let halves = |part: &[f64]| (middle(&part[..part.len() / 2]), middle(&part[part.len() / 2..]));
    let ((h1, h2), (t1, t2)) = (halves(head), halves(tail));
    if before <= 0.0
        || after > DEEP * before
        || h1.min(h2) < (before + after) / 2.0
        || t1.max(t2) > (before + after) / 2.0
    {
        return None;
    }
    // One piece on either side of the break belongs to neither.
    let rate = |part: &[(f64, f64, f64)]| {
        let (seconds, bytes) = part.iter().fold((0.0, 0.0), |(s, b), piece| (s + piece.0, b + piece.1));
        bytes / seconds
    };
    let (fast, slow) = (rate(&pieces[..at - 1]), rate(&pieces[at + 1..]));
    let (seconds, bytes) = pieces.iter().fold((0.0, 0.0), |(s, b), piece| (s + piece.0, b + piece.1));
    let moment = (bytes - slow * seconds) / (fast - slow);
    let error = |part: &[f64]| variation(part).unwrap_or(0.0) / (part.len() as f64).sqrt();
    let noise = error(&head[..at - 1]).hypot(error(&tail[1..]));
    (fast > slow && slow > 0.0 && (fast / slow).ln() > 5.0 * noise && moment > 0.0 && moment < seconds)
        .then_some(Drop { at: moment, before: fast, after: slow, noise })
}

/// Seconds, bytes and operations of `width` moments each; what is left at the end is dropped.
fn joined(series: &[Moment], width: usize) -> Vec<(f64, f64, f64)> {
    let sum = |part: &[Moment]| {
        part.iter()
            .fold((0.0, 0.0, 0.0), |sum, m| (sum.0 + m.width(), sum.1 + m.bytes as f64, sum.2 + m.operations as f64))
    };
    series.chunks_exact(width).map(sum).filter(|piece| piece.0 > 0.0).collect()
}

/// A pause that comes back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pauses {
    pub period: f64,
    /// 95 % interval of the period.
    pub period_ci: (f64, f64),
    pub length: f64,
    pub length_ci: (f64, f64),
    /// Part of the period less the length by which their beginning strays.
    pub spread: f64,
    /// How many were seen, and in which step the most.
    pub seen: usize,
    pub label: String,
}

/// One pause of a step: when it ended and how long it was, seconds.
#[derive(Debug, Clone, Copy)]
struct Event {
    end: f64,
    length: f64,
}

/// A latency so many times the 90th percentile may be a pause.
const LONG: f64 = 8.0;
/// Intervals that a period has at the least: what is shorter cannot be told from chance.
const APART: f64 = 4.0;

/// The least distance, s, at which pauses of a step are told apart.
fn finest(point: &Point) -> Option<f64> {
    point.series.first().map(|moment| APART * moment.width())
}

fn events(point: &Point) -> Vec<Event> {
    let mut all = point.read.latency.clone();
    all.merge(&point.write.latency);
    let (Some(p50), Some(p90)) = (all.percentile(50.0), all.percentile(90.0)) else { return Vec::new() };
    let threshold = LONG * p90.secs();
    let mut out: Vec<Event> = Vec::new();
    for moment in point.series.iter().filter(|moment| moment.longest > threshold) {
        let event = Event { end: (moment.start + moment.end) / 2.0, length: moment.longest - p50.secs() };
        match out.last_mut() {
            // Operations in a queue end one after the other after one pause.
            Some(last) if event.end - last.end < event.length.max(1.5 * moment.width()) => {
                last.length = last.length.max(event.length);
            }
            _ => out.push(event),
        }
    }
    out
}

/// The length of pauses such that half of the time that all of them take is in those that are as long or longer.
fn typical(mut lengths: Vec<f64>) -> f64 {
    lengths.sort_by(f64::total_cmp);
    let mut left = lengths.iter().sum::<f64>() / 2.0;
    let reached = lengths.iter().rev().find(|length| {
        left -= **length;
        left <= 0.0
    });
    reached.copied().unwrap_or(0.0)
}

/// The pauses that come back in these steps, if any do.
///
/// Slow operations by chance come at exponential distances, whose standard deviation is their mean; pauses of a period come
/// more regularly than that. How much more is asked for falls with the number seen: at four distances a coefficient of
/// variation of 0.14, at a hundred 0.47 (for exponential distances the chance of that is below one in a thousand).
pub(super) fn pauses(points: &[Point]) -> Option<Pauses> {
    let mut gaps: Vec<f64> = Vec::new();
    let mut lengths: Vec<f64> = Vec::new();
    let (mut most, mut label, mut seen) = (0, String::new(), 0);
    let all: Vec<(&Point, Vec<Event>)> =
        points.iter().filter(|point| point.sync_every.is_none()).map(|point| (point, events(point))).collect();
    // Beside the pauses of a drive stand those of a busy machine: shorter, and at any time.
    let least = 0.5 * typical(all.iter().flat_map(|(_, events)| events).map(|event| event.length).collect());
    for (point, mut found) in all {
        found.retain(|event| event.length > least);
        let own: Vec<f64> = found.windows(2).map(|pair| pair[1].end - pair[0].end).collect();
        if own.is_empty() || median(&own)? < finest(point).unwrap_or(0.0) {
            continue;
        }
        if own.len() > most {
            (most, label) = (own.len(), point.label.clone());
        }
        seen += found.len();
        gaps.extend(own);
        lengths.extend(found.iter().map(|event| event.length));
    }
    let (n, period, length) = (gaps.len() as f64, basics::stats::mean(&gaps)?, median(&lengths)?);
    let regular = 0.55 * (1.0 - 1.5 / n.sqrt());
    let irregular = variation(&gaps)?;
    let steady = quantile(&lengths, 0.75)? - quantile(&lengths, 0.25)? < 0.4 * length;
    // What takes most of the time is how the device is, such as each write to a full cache.
    if irregular > regular || !steady || 2.0 * length > period {
        return None;
    }
    // Distances of uniform stray have a standard deviation of spread × free / √6; the width of an interval adds its own.
    let free = period - length;
    let spread = (irregular * period * 6f64.sqrt() / free).min(1.0);
    let spread = if spread < 0.1 { 0.0 } else { spread };
    // The sum of neighbouring distances telescopes: the stray does not add up.
    let error = (1.96 * irregular * period / n).max(0.01 * period);
    let near = (quantile(&lengths, 0.1)?, quantile(&lengths, 0.9)?);
    Some(Pauses {
        period,
        period_ci: (period - error, period + error),
        length,
        length_ci: (near.0.min(0.98 * length), near.1.max(1.02 * length)),
        spread,
        seen,
        label,
    })
}

/// What it says that none were found: of what each step could have shown, the widest.
pub(super) fn none_seen(points: &[Point]) -> String {
    let shown = points.iter().filter_map(|point| Some((finest(point)?, point.seconds / 4.0)));
    let widest = shown.max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))).filter(|(from, to)| from < to);
    widest.map_or_else(
        || "no step lasted long enough to show one that comes back".to_owned(),
        |(from, to)| format!("none that comes back after {from:.1} to {to:.1} s"),
    )
}

/// The times of a step in which these pauses were, from beginning to end.
pub(super) fn paused(point: &Point, pauses: &Pauses) -> Vec<(f64, f64)> {
    let width = point.series.first().map_or(0.0, Moment::width);
    let is_one = |event: &Event| event.length > 0.5 * pauses.length;
    let span = |event: Event| (event.end - event.length - width, event.end + width);
    events(point).into_iter().filter(is_one).map(span).collect()
}
