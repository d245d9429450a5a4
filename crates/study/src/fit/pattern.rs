//! What one operation alone takes, by size: a base latency with its distribution, and a transfer at a rate; where sizes do
//! not lie on a line, a table.

use super::point::Point;
use basics::{Bytes, Latencies};
use profile::distribution::Latency;
use profile::format::{Confidence, Pattern};
use std::collections::BTreeMap;

/// One size.
#[derive(Debug, Clone)]
struct Single {
    size: f64,
    /// Mean latency, µs, and its 95 % half width.
    us: f64,
    error: f64,
    latencies: Latencies,
    little: f64,
    label: String,
}

/// A fitted pattern with how well it is known.
#[derive(Debug, Clone)]
pub(super) struct Alone {
    pub pattern: Pattern,
    /// The one size that was measured, where it was only one.
    only: Option<Single>,
    pub latency: Option<Confidence>,
    pub bandwidth: Option<Confidence>,
    /// Relative, of the table.
    pub table: Option<Confidence>,
    /// Steps that it comes from.
    pub latency_from: String,
    pub bandwidth_from: String,
    /// What could not be seen: the field below the direction, and why.
    pub unseen: Vec<(&'static str, String)>,
}

/// Least relative error of any mean: devices are not the same from one minute to the next.
const LEAST_ERROR: f64 = 0.01;
/// Sizes off the line by more than this are given as a table.
const BENT: f64 = 0.06;

/// The pattern of a direction and order from depth 1; from the least depth there is, with a wide interval, when there is no
/// such step and `or_deeper`.
pub(super) fn alone(points: &[Point], read: bool, sequential: bool, or_deeper: bool) -> Option<Alone> {
    let plain = |p: &&Point| p.sync_every.is_none() && !p.end_sync && p.sequential == sequential;
    let has = |p: &&Point| p.side(read).latency.count() > 0;
    let mut by_size: BTreeMap<u64, Single> = BTreeMap::new();
    for point in points.iter().filter(plain).filter(has).filter(|p| p.depth == 1) {
        let single = single(point, read)?;
        match by_size.entry(point.size) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(single);
            }
            // The better known one stands.
            std::collections::btree_map::Entry::Occupied(mut old) => {
                if single.error / single.us < old.get().error / old.get().us {
                    old.insert(single);
                }
            }
        }
    }
    let singles: Vec<Single> = by_size.into_values().collect();
    match singles.as_slice() {
        [] if or_deeper => {
            let least = points.iter().filter(plain).filter(has).min_by_key(|p| p.depth)?;
            deeper(least, read)
        }
        [] => None,
        [one] => Some(of_one(one)),
        many => Some(of_many(many)),
    }
}

fn single(point: &Point, read: bool) -> Option<Single> {
    let side = point.side(read);
    let us = point.mean_us(read)?;
    let stdev = side.latency.stdev()?.us() * point.little;
    let chance = 1.96 * stdev / (side.latency.count() as f64).sqrt();
    let error = chance.max(LEAST_ERROR * us);
    let latencies = side.latency.clone();
    Some(Single { size: point.size as f64, us, error, latencies, little: point.little, label: point.label.clone() })
}

fn around(value: f64, error: f64) -> Confidence {
    Confidence { low: (value - error).max(0.0), high: value + error }
}

fn of_one(one: &Single) -> Alone {
    let why = format!("only {} was measured at depth 1", Bytes(one.size as u64));
    Alone {
        pattern: Pattern { latency_us: Some(distribution(one, 0.0, one.us)), ..Pattern::default() },
        only: Some(one.clone()),
        latency: Some(around(one.us, one.error)),
        bandwidth: None,
        table: None,
        latency_from: one.label.clone(),
        bandwidth_from: String::new(),
        unseen: vec![("bandwidth_MBps", why)],
    }
}

/// No figure at depth 1: waiting may be in the latency, at most for all of the others.
fn deeper(point: &Point, read: bool) -> Option<Alone> {
    let one = single(point, read)?;
    let why = format!("nothing was measured at depth 1; in {} waiting for others may be part of it", point.label);
    let alone = Alone { only: None, ..of_one(&one) };
    let low = one.us / f64::from(point.depth);
    Some(Alone { latency: Some(Confidence { low, high: one.us }), unseen: vec![("latency_us", why)], ..alone })
}

impl Alone {
    /// With bytes at the rate of another pattern, where only one size of this one was measured: a medium has one rate, as far
    /// as nothing else is known. The latency of that size stays.
    pub fn with_rate_of(&self, other: &Alone) -> Option<Alone> {
        let (one, rate) = (self.only.as_ref()?, other.pattern.bandwidth_mbps?);
        let transfer = one.size / rate;
        // A transfer as long as the shortest operations is not theirs.
        if transfer >= one.latencies.percentile(1.0)?.us() * one.little {
            return None;
        }
        let base = one.us - transfer;
        let pattern = Pattern {
            latency_us: Some(distribution(one, transfer, base)),
            bandwidth_mbps: Some(rate),
            ..Pattern::default()
        };
        let why = format!("only {} was measured at depth 1: taken as in sequence", Bytes(one.size as u64));
        Some(Alone {
            pattern,
            latency: self
                .latency
                .map(|all| Confidence { low: (all.low - transfer).max(0.0), high: all.high - transfer }),
            bandwidth: other.bandwidth,
            bandwidth_from: other.bandwidth_from.clone(),
            unseen: vec![("bandwidth_MBps", why)],
            ..self.clone()
        })
    }
}

fn of_many(many: &[Single]) -> Alone {
    let (first, last) = (&many[0], &many[many.len() - 1]);
    // Least squares with the weights of the errors: µs = a + b · bytes.
    let sum = |f: &dyn Fn(&Single) -> f64| many.iter().map(|s| f(s) / s.error.powi(2)).sum::<f64>();
    let (w, x, y) = (sum(&|_| 1.0), sum(&|s| s.size), sum(&|s| s.us));
    let (xx, xy) = (sum(&|s| s.size * s.size), sum(&|s| s.size * s.us));
    let determinant = w * xx - x * x;
    let slope = ((w * xy - x * y) / determinant).max(0.0);
    let base = (y - slope * x) / w;
    let off = |s: &Single| ((base + slope * s.size) / s.us - 1.0).abs();
    let labels = |all: &[Single]| all.iter().map(|s| s.label.as_str()).collect::<Vec<_>>().join(", ");
    let bent = many.len() > 2 && many.iter().any(|s| off(s) > BENT.max(2.0 * s.error / s.us));
    if bent {
        let rest: f64 = many.iter().map(|s| s.error / s.us).fold(0.02, f64::max);
        let table = many.iter().map(|s| (format!("{}B", s.size as u64), (s.us - first.us).max(0.0)));
        return Alone {
            pattern: Pattern {
                latency_us: Some(distribution(first, 0.0, first.us)),
                bandwidth_mbps: None,
                size_us: table.collect(),
            },
            only: None,
            latency: Some(around(first.us, first.error)),
            bandwidth: None,
            table: Some(Confidence { low: 1.0 - rest, high: 1.0 + rest }),
            latency_from: first.label.clone(),
            bandwidth_from: labels(many),
            unseen: Vec::new(),
        };
    }
    // Both are known as well as the errors say, or as the points lie off the line if that is worse.
    let chi = many.iter().map(|s| ((base + slope * s.size - s.us) / s.error).powi(2)).sum::<f64>();
    let worse = (chi / (many.len() as f64 - 1.0).max(1.0)).sqrt().max(1.0);
    let slope_error = worse * (w / determinant).sqrt();
    let base_error = worse * (xx / determinant).sqrt();
    // A base that is lost in the transfer of the smallest size is none.
    let base = base.max(0.0);
    let transfers = slope * last.size > last.error.max(0.01 * last.us);
    let latency = if base > 0.0 { distribution(first, slope * first.size, base) } else { Latency::Constant(0.0) };
    let rate = Confidence { low: 1.0 / (slope + slope_error), high: 1.0 / (slope - slope_error).max(slope / 100.0) };
    let unseen = (!transfers).then(|| {
        let why = format!("{} took no longer than {}", Bytes(last.size as u64), Bytes(first.size as u64));
        ("bandwidth_MBps", why)
    });
    Alone {
        pattern: Pattern {
            latency_us: Some(latency),
            bandwidth_mbps: transfers.then(|| 1.0 / slope),
            size_us: BTreeMap::new(),
        },
        only: None,
        latency: Some(around(base, base_error)),
        bandwidth: transfers.then_some(rate),
        table: None,
        latency_from: labels(many),
        bandwidth_from: labels(many),
        unseen: unseen.into_iter().collect(),
    }
}

/// Percentiles that a distribution is kept as, those that the operations carry.
const PERCENTILES: [f64; 23] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 85.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9,
    99.95, 99.99, 99.999, 99.9999,
];
/// A distribution narrower than this, from the 1st to the 99th percentile, is a constant.
const NARROW: f64 = 0.01;

/// The distribution of the latencies less `transfer`, with the mean `mean`.
fn distribution(one: &Single, transfer: f64, mean: f64) -> Latency {
    let at = |percent: f64| one.latencies.percentile(percent).map_or(0.0, |nanos| nanos.us());
    let count = one.latencies.count() as f64;
    let tail = one.latencies.max().map_or(0.0, |nanos| nanos.us());
    if at(99.0) - at(1.0) < NARROW * at(50.0) && tail < 1.2 * at(50.0) {
        return Latency::Constant(mean);
    }
    let carried = |percent: &f64| count * percent.min(100.0 - percent) / 100.0 >= 5.0;
    let least = one.latencies.min().map_or(0.0, |nanos| nanos.us());
    let inner = PERCENTILES.into_iter().filter(carried).map(|percent| (percent, at(percent)));
    let all = std::iter::once((0.0, least)).chain(inner).chain([(100.0, tail)]);
    let mut rising: Vec<(f64, f64)> = Vec::new();
    for (percent, us) in all {
        let us = (us * one.little - transfer).max(1e-3);
        let before = rising.last().map_or(0.0, |(_, before)| *before);
        rising.push((percent, us.max(before)));
    }
    let drawn = Latency::Quantiles(rising);
    // Between two quantiles the true curve is not quite this one: the mean is the fit's.
    let factor = mean / drawn.mean_us().max(1e-9);
    drawn.scaled(factor)
}

/// Five digits are more than any device repeats, and a file that people read.
pub(super) fn rounded(latency: &Latency) -> Latency {
    match latency {
        Latency::Quantiles(all) => Latency::Quantiles(all.iter().map(|(p, us)| (*p, super::digits(*us))).collect()),
        Latency::Constant(us) => Latency::Constant(super::digits(*us)),
        other @ Latency::LogNormal(_) => other.clone(),
    }
}
