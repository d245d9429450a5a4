//! From recorded steps to a profile: what a device is like, how well each field is known, and what could not be seen.
//! Steps are chosen by the shape of their jobs (direction, order, size, depth, sync, length), never by their names, so that
//! any runs will do. What the model is and what its fields mean stands in the crate `profile`.

mod change;
mod extras;
mod figures;
mod limits;
mod pattern;
mod point;
mod quotes;
pub(crate) mod replay;

use crate::capacity::{Capacity, capacity};
use crate::model::RunView;
use basics::{Bytes, Nanos};
use change::{Drop, Pauses};
pub use figures::of_figures;
use pattern::Alone;
use point::Point;
use profile::Profile;
use profile::distribution::{Latency, Law};
use profile::format::{Alternative, Cache, Confidence, Direction, Flush, Slowdown, Stall};
pub use quotes::of_quoted;
use std::collections::BTreeMap;
use thiserror::Error;

/// A fitted profile and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// With `confidence` and `unseen`.
    pub profile: Profile,
    /// The steps that a field comes from, by its dotted name.
    pub sources: BTreeMap<String, String>,
}

/// Why there is nothing to fit.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum FitError {
    /// No step says anything about a device.
    #[error(
        "no step of these runs says what a device is like: it takes steps that came to their end, past the page cache, in \
         a closed loop, each with one block size; `tiermark profile --on TARGET` runs a set of them"
    )]
    Nothing,
    /// Figures that somebody else's program printed, and that say too little.
    #[error("no profile comes out of these figures: {0}")]
    Unfit(String),
    /// What came out is no profile.
    #[error("no sensible profile comes out of these figures: {0}")]
    Nonsense(String),
}

/// Five significant digits.
fn digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value }
}

/// Fits a profile to the steps of one or several runs of one device.
///
/// # Errors
/// When no step says anything about a device.
pub fn fit(name: &str, runs: &[RunView<'_>]) -> Result<Fitted, FitError> {
    fitted(name, runs, None)
}

/// `spread` stands for the spread of latencies where steps show none: standard deviations of the logarithm, of reads and
/// of writes.
fn fitted(name: &str, runs: &[RunView<'_>], spread: Option<[f64; 2]>) -> Result<Fitted, FitError> {
    let mut fit = Fit { profile: Profile { name: name.to_owned(), ..Profile::default() }, sources: BTreeMap::new() };
    let points = fit.clean_points(runs);
    if points.is_empty() {
        return Err(FitError::Nothing);
    }
    fit.inconsistencies(&points);
    fit.alone(&points);
    fit.size(runs);
    if fit.profile.read.is_none() && fit.profile.write.is_none() {
        return Err(FitError::Nothing);
    }
    if let Some(sigmas) = spread {
        fit.spread(sigmas);
    }
    fit.limits(&points);
    fit.zones(&points);
    fit.mixed(&points);
    fit.flush(&points);
    fit.never_fitted();
    let Fit { mut profile, sources } = fit;
    profile.source = source(runs, points.len());
    for confidence in profile.confidence.values_mut() {
        *confidence = Confidence { low: digits(confidence.low), high: digits(confidence.high) };
    }
    for direction in [&mut profile.read, &mut profile.write].into_iter().flatten() {
        for pattern in std::iter::once(&mut direction.random).chain(direction.sequential.as_mut()) {
            pattern.latency_us = pattern.latency_us.as_ref().map(pattern::rounded);
            pattern.bandwidth_mbps = pattern.bandwidth_mbps.map(digits);
            pattern.size_us.values_mut().for_each(|us| *us = digits(*us));
        }
    }
    profile.check().map_err(|error| FitError::Nonsense(error.to_string()))?;
    Ok(Fitted { profile, sources })
}

fn source(runs: &[RunView<'_>], steps: usize) -> String {
    let mut origins: Vec<String> = runs.iter().map(|run| run.origin.to_string()).collect();
    origins.dedup();
    format!(
        "fitted to {steps} steps of {} ({})",
        if runs.len() == 1 { "a run".to_owned() } else { format!("{} runs", runs.len()) },
        origins.join("; ")
    )
}

/// The profile in the making.
struct Fit {
    profile: Profile,
    sources: BTreeMap<String, String>,
}

/// A read drop and a write drop within this of each other are one thing.
const SAME_TIME: f64 = 0.15;
/// Fewest operations that stay of a step when what disturbs is left out.
const FEWEST: u64 = 20;
/// A rate so near to that at which a cache empties, as a part of it, is no other.
const AT_DRAIN: f64 = 0.1;

impl Fit {
    fn set(&mut self, field: &str, confidence: Option<Confidence>, from: &str) {
        if let Some(confidence) = confidence {
            self.profile.confidence.insert(field.to_owned(), confidence);
        }
        self.sources.insert(field.to_owned(), from.to_owned());
    }
    fn unseen(&mut self, field: &str, why: &str) {
        self.profile.unseen.push(format!("{field}: {why}"));
    }

    /// Every usable step, without the moments in which it stalled or its cache was full; what that was goes into the profile.
    fn clean_points(&mut self, runs: &[RunView<'_>]) -> Vec<Point> {
        let steps: Vec<_> = runs
            .iter()
            .enumerate()
            .flat_map(|(run, view)| view.steps.iter().map(move |step| (run, view, step)))
            .collect();
        let usable: Vec<_> = steps
            .into_iter()
            .filter_map(|(run, view, step)| Some((Point::new(run, runs.len(), &view.origin, step)?, step)))
            .collect();
        let points: Vec<Point> = usable.iter().map(|(point, _)| point.clone()).collect();
        let pauses = self.stalls(&points);
        let spans: Vec<Vec<(f64, f64)>> = points
            .iter()
            .map(|point| pauses.as_ref().map_or_else(Vec::new, |pauses| change::paused(point, pauses)))
            .collect();
        let clear =
            |spans: &[(f64, f64)], start: f64, end: f64| spans.iter().all(|(from, to)| end <= *from || start >= *to);
        // What passes over a slow place drops there.
        let placed = extras::zones(&points, 0.0).is_some_and(|found| !found.zones.is_empty());
        if placed {
            self.unseen("cache", "places of another speed hide in sequence where it is full");
        }
        let drops: Vec<Option<Drop>> = points
            .iter()
            .zip(&spans)
            .map(|(point, spans)| {
                let series: Vec<_> = point.series.iter().filter(|m| clear(spans, m.start, m.end)).copied().collect();
                // Only what keeps one direction and one pattern tells a drop of the device from one of the work.
                {
                    let steady = point.sync_every.is_none() && !point.end_sync && point.region.is_none();
                    (steady && !(placed && point.sequential)).then(|| change::drop_of(&series))?
                }
            })
            .collect();
        self.drops(&points, &drops);
        let cache = self.profile.cache;
        let mut out = Vec::new();
        for (((point, step), spans), drop) in usable.into_iter().zip(&spans).zip(&drops) {
            let writes = point.reads == 0.0;
            let mut written = 0.0;
            // Writes as fast as a full cache empties, from the beginning: it was full, and says nothing of the medium.
            let full = |drain: f64| {
                let moments = point.series.iter().filter(|m| clear(spans, m.start, m.end));
                let (bytes, time) = moments.fold((0.0, 0.0), |(b, t), m| (b + m.bytes as f64, t + m.width()));
                ((1.0 - point.reads) * bytes / 1e6 / time / drain - 1.0).abs() < AT_DRAIN
            };
            if drop.is_none() && cache.is_some_and(|cache| full(cache.drain_mbps)) {
                continue;
            }
            // After a full cache, or in the heat, everything is another device's.
            let until = drop.map_or(f64::INFINITY, |drop| 0.97 * drop.at);
            let room =
                cache.filter(|_| writes && drop.is_none()).map_or(f64::INFINITY, |cache| 0.9 * cache.size.0 as f64);
            let mut good: BTreeMap<u64, bool> = BTreeMap::new();
            for moment in &point.series {
                written += moment.bytes as f64;
                good.insert(
                    moment.start.to_bits(),
                    clear(spans, moment.start, moment.end) && moment.end <= until && written <= room,
                );
            }
            let kept: u64 = point.series.iter().filter(|m| good[&m.start.to_bits()]).map(|m| m.operations).sum();
            let disturbed = good.values().any(|good| !good);
            if disturbed && kept < FEWEST {
                continue;
            }
            out.push(point.cleaned(step, |moment| good.get(&moment.start.to_bits()).copied().unwrap_or(true)));
        }
        out
    }

    fn stalls(&mut self, points: &[Point]) -> Option<Pauses> {
        let found = change::pauses(points);
        let Some(pauses) = &found else {
            self.unseen("stall", &change::none_seen(points));
            return found;
        };
        self.profile.stalls = vec![Stall {
            period_ms: digits(pauses.period * 1e3),
            length_ms: digits(pauses.length * 1e3),
            spread: digits(pauses.spread),
        }];
        let ms = |(low, high): (f64, f64)| Some(Confidence { low: low * 1e3, high: high * 1e3 });
        let from = format!("{} and others, {} seen", pauses.label, pauses.seen);
        self.set("stall.period_ms", ms(pauses.period_ci), &from);
        self.set("stall.length_ms", ms(pauses.length_ci), &from);
        found
    }

    /// A lasting drop of writes is a full cache; one that reads show at the same time is heat.
    fn drops(&mut self, points: &[Point], drops: &[Option<Drop>]) {
        let of = |reads: f64| {
            let all = points.iter().zip(drops).filter(move |(point, _)| point.reads == reads);
            all.filter_map(|(point, drop)| Some((point, (*drop)?))).max_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds))
        };
        let longest = |reads: f64| points.iter().filter(|p| p.reads == reads).map(|p| p.seconds).fold(0.0, f64::max);
        let (read, write) = (of(1.0), of(0.0));
        let same = |a: f64, b: f64| (a / b - 1.0).abs() < SAME_TIME;
        let many = drops.iter().flatten().count();
        match (read, write) {
            (Some((point, slow)), other)
                if other.is_some_and(|(_, w)| same(slow.at, w.at)) || (many > 1 && other.is_none()) =>
            {
                let factor = digits(slow.before / slow.after);
                self.profile.slowdown = Some(Slowdown { after_s: digits(slow.at), factor, recovers_s: None });
                let near =
                    |value: f64, part: f64| Some(Confidence { low: value * (1.0 - part), high: value * (1.0 + part) });
                let part = (2.0 * slow.noise).max(0.02);
                self.set("slowdown.after_s", near(slow.at, part), &point.label);
                self.set("slowdown.factor", near(factor, part), &point.label);
                self.unseen("slowdown.recovers_s", "no step waits for it");
                return;
            }
            (Some((point, slow)), _) => {
                let why = format!(
                    "{} fell to {:.0} % after {:.1} s, in one step only: heat or another place",
                    point.label,
                    100.0 * slow.after / slow.before,
                    slow.at
                );
                self.unseen("slowdown", &why);
            }
            (None, _) => {
                let seconds = longest(1.0);
                if seconds > 0.0 {
                    self.unseen("slowdown", &format!("none within {seconds:.0} s of reads"));
                }
            }
        }
        // No step can have written more than what the cache holds and what it drains meanwhile.
        let agrees = |(_, drop): &(&Point, Drop)| {
            let most = |seconds: f64| (drop.before - drop.after) * drop.at + drop.after * seconds;
            let plain = |p: &&Point| p.reads == 0.0 && p.sync_every.is_none();
            !points.iter().filter(plain).any(|p| p.write.bytes as f64 > 1.2 * most(p.seconds))
        };
        let Some((point, drop)) = write.filter(agrees) else {
            let most = points.iter().filter(|p| p.reads == 0.0).map(|p| p.write.bytes).max();
            if let Some(most) = most {
                self.unseen("cache", &format!("none that is full after {}", Bytes(most)));
            }
            return;
        };
        let size = (drop.before - drop.after) * drop.at;
        self.profile.cache =
            Some(Cache { size: Bytes(size as u64), drain_mbps: digits(drop.after / 1e6), idle_drain_mbps: None });
        let part = (2.0 * drop.noise).max(0.02);
        let near = |value: f64| Some(Confidence { low: value * (1.0 - part), high: value * (1.0 + part) });
        self.set("cache.size", near(size), &point.label);
        self.set("cache.drain_MBps", near(drop.after / 1e6), &point.label);
        self.unseen("cache.idle_drain_MBps", "no step waits for it");
        if longest(1.0) < drop.at {
            self.unseen("slowdown", &format!("no read lasted for the {:.0} s after which writes became slow", drop.at));
        }
    }

    fn inconsistencies(&mut self, points: &[Point]) {
        for point in points.iter().filter(|point| (point.little - 1.0).abs() > 1e-9) {
            let depth = f64::from(point.depth);
            self.profile.inconsistent.push(format!(
                "{}: IOPS × mean latency sums to {:.2}, not to the depth of {}: latencies are taken {:.2} times as long",
                point.label,
                depth / point.little,
                point.depth,
                point.little
            ));
        }
    }

    /// What one operation alone takes, by direction and order.
    fn alone(&mut self, points: &[Point]) {
        for (read, name) in [(true, "read"), (false, "write")] {
            let random = pattern::alone(points, read, false, true);
            let sequential = pattern::alone(points, read, true, random.is_none());
            let (random, sequential) = match (random, sequential) {
                (None, None) => {
                    self.unseen(name, "no step did that");
                    continue;
                }
                // One is known: the other is taken to be like it.
                (None, Some(only)) => {
                    self.unseen(name, "at random places nothing was measured: taken as in sequence");
                    (only, None)
                }
                (Some(random), None) => {
                    self.unseen(&format!("{name}.sequential"), "not measured: taken as at random places");
                    (random, None)
                }
                (Some(random), Some(sequential)) => (random, Some(sequential)),
            };
            let sequential = sequential.filter(|alone| self.is_one_stream(points, read, name, alone));
            let random = sequential.as_ref().and_then(|alone| random.with_rate_of(alone)).unwrap_or(random);
            self.note_pattern(name, &random);
            if let Some(sequential) = &sequential {
                self.note_pattern(&format!("{name}.sequential"), sequential);
            }
            let direction = Direction { random: random.pattern, sequential: sequential.map(|alone| alone.pattern) };
            *(if read { &mut self.profile.read } else { &mut self.profile.write }) = Some(direction);
        }
    }

    /// The model serves a stream in order. A device that works on several pieces of one at once is better described by its
    /// random operations.
    fn is_one_stream(&mut self, points: &[Point], read: bool, name: &str, alone: &Alone) -> bool {
        let deep = points.iter().filter(|p| p.is_pure(read) && p.sequential && p.depth > p.streams);
        let each = |p: &Point| p.iops() * time_of(&alone.pattern, p.size) / 1e6 / f64::from(p.streams);
        let most = deep.map(each).fold(0.0, f64::max);
        // Link and medium together can be at work on two.
        if most > 2.2 {
            let why = format!(
                "{most:.1} operations of a stream were under way at once, which a stream of its own cannot be: taken as at random places"
            );
            self.unseen(&format!("{name}.sequential"), &why);
            return false;
        }
        true
    }

    fn note_pattern(&mut self, name: &str, alone: &Alone) {
        self.set(&format!("{name}.latency_us"), alone.latency, &alone.latency_from);
        if alone.bandwidth.is_some() {
            self.set(&format!("{name}.bandwidth_MBps"), alone.bandwidth, &alone.bandwidth_from);
        }
        if alone.table.is_some() {
            self.set(&format!("{name}.size_us"), alone.table, &alone.bandwidth_from);
        }
        for (field, why) in &alone.unseen {
            self.unseen(&format!("{name}.{field}"), why);
        }
    }

    /// Channels and link.
    fn limits(&mut self, points: &[Point]) {
        let medium = Profile { stalls: Vec::new(), cache: None, slowdown: None, ..self.profile.clone() };
        let found = limits::limits(&medium, points);
        self.unseen("link.queue", "looks like channels");
        if found.from.is_empty() {
            self.unseen("channels", "nothing was measured at a depth above 1");
            self.unseen("link", "nothing was measured at a depth above 1");
            return;
        }
        if found.unlimited {
            self.unseen(
                "channels",
                &format!(
                    "at least {:.0}: the deepest queue that was tried did not fill them",
                    found.reached.floor().max(1.0)
                ),
            );
            self.unseen("link", "nothing that was tried filled it");
            return;
        }
        let every: Vec<&Alternative> = std::iter::once(&found.chosen).chain(&found.others).collect();
        // What a structure without channels says of their number: as many as come.
        let many = |a: &Alternative| a.channels.map_or(65_536.0, f64::from);
        let command = |a: &Alternative| a.link.and_then(|link| link.command_us).unwrap_or(0.0);
        let per_byte = |a: &Alternative| a.link.and_then(|link| link.bandwidth_mbps).map_or(0.0, |rate| 1.0 / rate);
        let span = |f: &dyn Fn(&Alternative) -> f64| {
            let all = || every.iter().map(|a| f(a));
            (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max))
        };
        let off = found.off.max(0.03);
        self.restructure(&found.chosen);
        if found.chosen.channels.is_some() {
            let (low, high) = span(&many);
            self.set("channels", Some(Confidence { low, high }), &found.from);
        }
        if let Some(link) = found.chosen.link {
            if link.command_us.is_some() {
                let (low, high) = span(&command);
                self.set(
                    "link.command_us",
                    Some(Confidence { low: low * (1.0 - off), high: high * (1.0 + off) }),
                    &found.from,
                );
            }
            if link.bandwidth_mbps.is_some() {
                let (least, most) = span(&per_byte);
                // No cost for a byte is no limit; a number stands for it.
                let high = if least > 0.0 { (1.0 + off) / least } else { 1e6 };
                self.set(
                    "link.bandwidth_MBps",
                    Some(Confidence { low: (1.0 - off).max(0.0) / most, high }),
                    &found.from,
                );
            }
        }
        if !found.others.is_empty() {
            let words: Vec<String> = every.iter().map(|a| in_words(a)).collect();
            self.unseen("channels and link", &format!("which of these it is: {}", words.join("; ")));
        }
        self.profile.alternatives = found.others;
    }

    /// Moves to the link what is the link's; the intervals of the medium move with it.
    fn restructure(&mut self, chosen: &Alternative) {
        let before = self.profile.clone();
        self.profile = Profile { alternatives: Vec::new(), ..before.restructured(chosen) };
        let sides =
            [("read", before.read, self.profile.read.clone()), ("write", before.write, self.profile.write.clone())];
        for (name, old, new) in sides {
            let (Some(old), Some(new)) = (old, new) else { continue };
            let sequential = old.sequential.as_ref().zip(new.sequential.as_ref());
            for (field, old, new) in [(name.to_owned(), &old.random, &new.random)]
                .into_iter()
                .chain(sequential.map(|(old, new)| (format!("{name}.sequential"), old, new)))
            {
                let mean = |latency: &Option<Latency>| latency.as_ref().map_or(0.0, Latency::mean_us);
                let shift = mean(&old.latency_us) - mean(&new.latency_us);
                if let Some(ci) = self.profile.confidence.get_mut(&format!("{field}.latency_us")) {
                    *ci = Confidence { low: (ci.low - shift).max(0.0), high: (ci.high - shift).max(0.0) };
                }
                if old.bandwidth_mbps.is_some() && new.bandwidth_mbps.is_none() {
                    let key = format!("{field}.bandwidth_MBps");
                    self.profile.confidence.remove(&key);
                    self.sources.remove(&key);
                }
            }
        }
    }

    fn zones(&mut self, points: &[Point]) {
        let command = self.profile.link.and_then(|link| link.command_us).unwrap_or(0.0);
        let Some(found) = extras::zones(points, command) else {
            self.unseen("zone", "no even slices of the device were read");
            return;
        };
        if self.profile.size.is_none() {
            self.profile.size = Some(Bytes(found.size));
        }
        if found.zones.is_empty() {
            self.unseen("zone", &format!("none as wide as {:.1} % of the device", 100.0 * found.slice));
        }
        for (index, (zone, factor)) in found.zones.into_iter().enumerate() {
            let near =
                |at: f64| Some(Confidence { low: (at - found.slice).max(0.0), high: (at + found.slice).min(1.0) });
            self.set(&format!("zone.{index}.from"), near(zone.from), &found.from);
            self.set(&format!("zone.{index}.to"), near(zone.to), &found.from);
            self.set(&format!("zone.{index}.factor"), Some(factor), &found.from);
            self.profile.zones.push(zone);
        }
    }

    fn mixed(&mut self, points: &[Point]) {
        let plain =
            Profile { stalls: Vec::new(), cache: None, slowdown: None, zones: Vec::new(), ..self.profile.clone() };
        if plain.read.is_none() || plain.write.is_none() {
            return;
        }
        match extras::mixed(&plain, points) {
            Some((mixed, read, write, from)) => {
                self.profile.mixed = Some(mixed);
                self.set("mixed.read_factor", Some(read), &from);
                self.set("mixed.write_factor", Some(write), &from);
            }
            None => self.unseen("mixed", "nothing beyond sharing channels and link"),
        }
    }

    fn flush(&mut self, points: &[Point]) {
        let plain =
            Profile { stalls: Vec::new(), cache: None, slowdown: None, zones: Vec::new(), ..self.profile.clone() };
        if plain.write.is_none() {
            return;
        }
        let Some(found) = extras::flushes(&plain, points) else {
            self.unseen("flush", "no step wrote and synced at depth 1");
            return;
        };
        if let Some(most) = found.none_above {
            self.unseen("flush", &format!("none that costs more than {}", Nanos((most * 1e3) as u64)));
            return;
        }
        self.set("flush.latency_us", Some(found.ci), &found.from);
        let dirty = found.dirty.map(|(us, ci)| {
            self.set("flush.dirty_us_per_MB", Some(ci), &found.from);
            digits(us)
        });
        let latency = Some(Latency::Constant(digits(found.us)));
        self.profile.flush = Some(Flush { latency_us: latency, dirty_us_per_mb: dirty, at_most: None });
        self.unseen("flush.at_most", "no step wrote that much between two syncs");
    }

    /// Gives constant latencies a spread.
    fn spread(&mut self, sigmas: [f64; 2]) {
        for (side, sigma) in [&mut self.profile.read, &mut self.profile.write].into_iter().zip(sigmas) {
            let Some(side) = side else { continue };
            for pattern in std::iter::once(&mut side.random).chain(side.sequential.as_mut()) {
                if let Some(Latency::Constant(mean)) = pattern.latency_us
                    && mean > 0.0
                {
                    pattern.latency_us = Some(Latency::LogNormal(Law { mean, sigma, tail: None }));
                }
            }
        }
    }

    /// Fields of the model that no step shows, whatever it was.
    fn never_fitted(&mut self) {
        for (field, why) in [
            ("cache.idle_drain_MBps", "no step waits for a cache to empty"),
            ("slowdown.recovers_s", "no step waits for a device to cool"),
            ("flush.at_most", "no step writes more and more between two syncs"),
            ("largest", "looks like a rate"),
        ] {
            if !self.profile.unseen.iter().any(|said| said.starts_with(&format!("{field}:"))) {
                self.unseen(field, why);
            }
        }
    }

    /// What the machine says of the tier's size, where all steps are on one, and what it really holds.
    fn size(&mut self, runs: &[RunView<'_>]) {
        let (capacity, step) = capacity(runs.iter().flat_map(|run| &run.steps));
        let from = step.map_or_else(String::new, |step| format!("step {} {}", step.index, step.name));
        match capacity {
            Capacity::All => {}
            Capacity::Unknown => {
                self.unseen("real_size", "nothing was written all over it and read back, as `fake-capacity` does");
            }
            Capacity::Wraps(size) => {
                self.profile.real_size = Some(size);
                self.set("real_size", None, &from);
            }
            Capacity::Loses(at) => {
                self.unseen("real_size", &format!("less than {at}: what was written there was lost ({from})"));
            }
        }
        let tiers = runs.iter().flat_map(|run| run.steps.iter().map(move |step| (run, step.tier)));
        let mut sizes: Vec<Option<Bytes>> = tiers
            .map(|(run, tier)| run.machine.tiers.iter().find(|t| Some(t.name.as_str()) == tier)?.size.get().copied())
            .collect();
        sizes.dedup();
        if let [Some(size)] = sizes.as_slice() {
            self.profile.size = Some(*size);
        }
    }
}

/// Mean time of an operation of this size on the medium, µs.
fn time_of(pattern: &profile::format::Pattern, size: u64) -> f64 {
    let base = pattern.latency_us.as_ref().map_or(0.0, Latency::mean_us);
    let table = pattern.size_us.iter().filter_map(|(s, us)| Some((s.parse::<Bytes>().ok()?.0, *us)));
    let table = table.min_by_key(|(s, _)| s.abs_diff(size)).map_or(0.0, |(_, us)| us);
    base + pattern.bandwidth_mbps.map_or(0.0, |rate| size as f64 / rate) + table
}

fn in_words(alternative: &Alternative) -> String {
    let link = alternative.link.unwrap_or_default();
    let parts = [
        alternative.channels.map(|n| format!("{n} channels")),
        link.command_us.map(|us| format!("{us} µs a command")),
        link.bandwidth_mbps.map(|rate| format!("a link of {rate} MB/s")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "no limit".to_owned() } else { parts.join(" and ") }
}
