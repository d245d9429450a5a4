//! What stands beside latency and bandwidth: the cost of a flush, places of another speed, what reads and writes do to each
//! other. Each is found only where it rises above the noise of the figures that it comes from.

use super::point::Point;
use super::replay::{self, Work, replay};
use basics::stats::median;
use profile::Profile;
use profile::format::{Confidence, Mixed, Zone};
use std::collections::BTreeMap;

/// What a flush costs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flushes {
    pub us: f64,
    pub ci: Confidence,
    /// For each 10^6 bytes, with its interval.
    pub dirty: Option<(f64, Confidence)>,
    pub from: String,
    /// Nothing above the noise: at most so much, µs.
    pub none_above: Option<f64>,
}

/// The cost of flushes: the time of a cycle less that of its writes, at one or two amounts of written bytes.
pub(super) fn flushes(profile: &Profile, points: &[Point]) -> Option<Flushes> {
    let mut found: Vec<(f64, f64, f64, &str)> = Vec::new();
    // How far single writes differ, µs. A slow one that came by chance in one step could have come in any other, so what is
    // known of a mean is not what its own step happened to show; a sync after each write is the same for all of a step.
    let singly = |p: &&Point| p.reads == 0.0 && p.depth == 1 && !p.end_sync && p.sync_every.is_none_or(|n| n == 1);
    let differ =
        points.iter().filter(singly).filter_map(|p| Some(p.write.latency.stdev()?.us() * p.little)).fold(0.0, f64::max);
    let part_of = |operations: u64| 1.0 / (operations.max(1) as f64).sqrt();
    for point in points.iter().filter(|p| p.reads == 0.0 && p.depth == 1) {
        let Some(every) = point.sync_every else { continue };
        let work = Work { reads: 0.0, sequential: point.sequential, size: point.size, depth: 1, streams: 1 };
        let write = 1e6 / replay(profile, work, 7)?.iops;
        let cycle = f64::from(every) * 1e6 / point.iops();
        let writes = f64::from(every) * write;
        // Of few cycles the last is cut, which the series takes for noise.
        let cut = 0.02 + 0.5 * f64::from(every) / point.write.operations() as f64;
        let noise = point.series_noise.unwrap_or(point.noise).clamp(0.01, cut.max(0.01));
        // The writes are known as well as the profile says, and to 2 % at best.
        let name = if point.sequential { "write.sequential.latency_us" } else { "write.latency_us" };
        let known = profile.confidence.get(name).map_or(0.0, |ci| (ci.high - ci.low) / (ci.high + ci.low).max(1e-9));
        let alone = points.iter().filter(|p| p.is_pure(false) && p.depth == 1 && p.sequential == point.sequential);
        let alone = alone.map(|p| p.write.operations()).max().unwrap_or(0);
        // Chance is in the mean of these writes, of those without a sync, and of those of the model.
        let means = [point.write.operations(), alone, replay::OPERATIONS].map(part_of);
        let chance = 2.0 * differ * means[0].hypot(means[1]).hypot(means[2]);
        let error = (cycle * noise).hypot(f64::from(every) * (write * known.max(0.02)).hypot(chance));
        found.push((f64::from(every) * point.size as f64, cycle - writes, error, &point.label));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (*found.first()?, *found.last()?);
    let command = profile.link.and_then(|link| link.command_us).unwrap_or(0.0);
    let labels: Vec<&str> = found.iter().map(|f| f.3).collect();
    let (bytes, us, error, _) = first;
    if us < 2.5 * error && last.1 < 2.5 * last.2 {
        let most = (us + error).max(last.1 + last.2).max(0.0);
        let ci = Confidence { low: 0.0, high: most };
        return Some(Flushes { us: 0.0, ci, dirty: None, from: labels.join(", "), none_above: Some(most) });
    }
    let slope = (last.1 - us) / (last.0 - bytes);
    let slope_error = error.hypot(last.2) / (last.0 - bytes);
    let dirty = (last.0 > 4.0 * bytes && slope > 2.5 * slope_error).then(|| {
        let ci = Confidence { low: (slope - slope_error) * 1e6, high: (slope + slope_error) * 1e6 };
        (slope * 1e6, ci)
    });
    let per_byte = if dirty.is_some() { slope } else { 0.0 };
    let alone = (us - per_byte * bytes - command).max(0.0);
    // The link's part of it is known apart.
    if dirty.is_none() && alone < 2.5 * error {
        let ci = Confidence { low: 0.0, high: alone + error };
        return Some(Flushes { us: 0.0, ci, dirty, from: labels.join(", "), none_above: Some(alone + error) });
    }
    let ci = Confidence { low: (alone - error).max(0.0), high: alone + error };
    Some(Flushes { us: alone, ci, dirty, from: labels.join(", "), none_above: None })
}

/// Places of another speed.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Zones {
    pub zones: Vec<(Zone, Confidence)>,
    /// Width of a slice as a part of the device.
    pub slice: f64,
    /// End of the last slice.
    pub size: u64,
    pub from: String,
}

/// Fewest slices that say something about places.
const FEWEST_SLICES: usize = 8;
/// Of a slice's median, in quartile distances over the root of the number: beyond five standard errors.
const SURE: f64 = 5.0;
/// Other speeds than this are places.
const OTHER: f64 = 0.15;

/// By offset and length: the time of an operation in µs, its noise as a part of it, and the step.
type Slices<'a> = BTreeMap<(u64, u64), (f64, f64, &'a str)>;

/// Slices of the device that were read alike, held against each other; nothing when there are too few.
pub(super) fn zones(points: &[Point], command: f64) -> Option<Zones> {
    let mut groups: BTreeMap<(u64, bool, u32), Slices<'_>> = BTreeMap::new();
    for point in points.iter().filter(|p| p.is_pure(true)) {
        let Some(region) = point.region else { continue };
        // Medians: one slow operation in a slice is no slow place.
        let at = |percent: f64| point.read.latency.percentile(percent).map_or(0.0, |nanos| nanos.us());
        let spread = (at(75.0) - at(25.0)) / at(50.0).max(1e-9) / (point.read.latency.count() as f64).sqrt();
        let group = groups.entry((point.size, point.sequential, point.depth)).or_default();
        group.insert(region, (at(50.0) - command, spread, &point.label));
    }
    let even = |slices: &Slices<'_>| {
        slices.keys().zip(slices.keys().skip(1)).all(|(a, b)| a.0 + a.1 <= b.0 + 1 && b.0 < a.0 + 2 * a.1)
    };
    let slices = groups
        .into_values()
        .filter(|slices| slices.len() >= FEWEST_SLICES && even(slices))
        .max_by_key(BTreeMap::len)?;
    let times: Vec<f64> = slices.values().map(|slice| slice.0).collect();
    let usual = median(&times)?;
    let size = slices.keys().map(|(offset, len)| offset + len).max()?;
    let part = |bytes: u64| bytes as f64 / size as f64;
    let slice = slices.keys().map(|(_, len)| part(*len)).fold(0.0, f64::max);
    let spreads: Vec<f64> = slices.values().map(|slice| slice.1).collect();
    let typical = median(&spreads)?;
    let all: Vec<((u64, u64), f64, bool)> = slices
        .iter()
        .map(|(region, (us, noise, _))| {
            let ratio = us / usual;
            (*region, ratio, ratio.ln().abs() > OTHER.max(SURE * noise.max(typical)))
        })
        .collect();
    let mut zones = Vec::new();
    for run in all.chunk_by(|a, b| a.2 && b.2 && (a.1 > 1.0) == (b.1 > 1.0)).filter(|run| run[0].2) {
        let ratios: Vec<f64> = run.iter().map(|(_, ratio, _)| *ratio).collect();
        // A slice that lies only in part in the place is between the two: the far end of the run is the place's own.
        let Some(factor) = basics::stats::quantile(&ratios, if run[0].1 > 1.0 { 0.75 } else { 0.25 }) else { continue };
        let share = |ratio: f64| ((ratio - 1.0) / (factor - 1.0)).clamp(0.0, 1.0);
        let (first, last) = (&run[0], &run[run.len() - 1]);
        let (begin, end) = (part(first.0.0), part(last.0.0 + last.0.1));
        let from = if run.len() > 1 && begin > 0.0 { begin + slice * (1.0 - share(first.1)) } else { begin };
        let to = if run.len() > 1 && end < 1.0 { end - slice * (1.0 - share(last.1)) } else { end };
        let spread = ratios.iter().map(|ratio| (ratio / factor - 1.0).abs()).fold(0.03, f64::max);
        let ci = Confidence { low: factor * (1.0 - spread), high: factor * (1.0 + spread) };
        zones.push((
            Zone { from: super::digits(from), to: super::digits(to.min(1.0)), factor: super::digits(factor) },
            ci,
        ));
    }
    let label = slices.values().next().map_or("", |slice| slice.2);
    Some(Zones { zones, slice, size, from: format!("{} slices from {label}", slices.len()) })
}

/// A factor below this is within what the model and the measurement differ by.
const COUPLED: f64 = 0.12;

/// What reads and writes do to each other beyond sharing channels and link; nothing when nothing is seen.
pub(super) fn mixed(profile: &Profile, points: &[Point]) -> Option<(Mixed, Confidence, Confidence, String)> {
    let is_mixed =
        |p: &&Point| (0.05..=0.95).contains(&p.reads) && p.depth > 1 && p.sync_every.is_none() && !p.end_sync;
    let point = points.iter().filter(is_mixed).max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let work = point.work();
    let wanted = [point.mean_us(true)?, point.mean_us(false)?];
    let mut factors = [1.0f64; 2];
    let with = |factors: [f64; 2]| Profile {
        mixed: Some(Mixed { read_factor: factors[0], write_factor: factors[1] }),
        ..profile.clone()
    };
    let off = |factors: [f64; 2]| -> Option<[f64; 2]> {
        let found = replay(&with(factors), work, 11)?.mean_us;
        Some([wanted[0] / found[0].max(1e-9), wanted[1] / found[1].max(1e-9)])
    };
    let first = off(factors)?;
    // What chance does to the two means, here and in the model.
    let chance = |read: bool| {
        let latency = &point.side(read).latency;
        let (mean, stdev) = (latency.mean().map_or(1.0, |m| m.us()), latency.stdev().map_or(0.0, |s| s.us()));
        2.0 * stdev / mean.max(1e-9) * (1.0 / (latency.count() as f64).sqrt() + 1.0 / 2000f64.sqrt())
    };
    let quiet = |(ratio, read): (&f64, bool)| ratio.ln().abs() < COUPLED.max(2.0 * point.noise).max(2.0 * chance(read));
    if first.iter().zip([true, false]).all(quiet) {
        return None;
    }
    for _ in 0..12 {
        let step = off(factors)?;
        for (factor, ratio) in factors.iter_mut().zip(step) {
            *factor = (*factor * ratio.powf(0.8)).clamp(0.05, 50.0);
        }
    }
    let rest = off(factors)?.iter().map(|ratio| ratio.ln().abs()).fold(0.0, f64::max);
    // What no factor explains is something else.
    if rest > 0.1 || factors.iter().all(|factor| factor.ln().abs() < COUPLED) {
        return None;
    }
    let error = rest.max(point.noise).max(0.05);
    let ci = |factor: f64| Confidence { low: factor * (1.0 - error), high: factor * (1.0 + error) };
    let mixed = Mixed { read_factor: super::digits(factors[0]), write_factor: super::digits(factors[1]) };
    Some((mixed, ci(factors[0]), ci(factors[1]), point.label.clone()))
}
