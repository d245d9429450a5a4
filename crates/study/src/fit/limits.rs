//! What limits many operations at once: channels of the medium, or the link by its cost for a command or by its rate.
//! Several structures are tried on the device model; the simplest that explains the figures is chosen, and what explains
//! them as well is kept beside it, because a figure at another depth or size may tell them apart.

use super::point::Point;
use super::replay::{Work, replay};
use basics::stats::median;
use profile::Profile;
use profile::format::{Alternative, Link};

/// A structure: how many channels, what the link takes for an operation and for a byte, µs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Structure {
    channels: Option<u32>,
    command: f64,
    per_byte: f64,
}

/// Numbers within this of each other are one: no figure could tell them apart.
const SAME: f64 = 0.03;

impl Structure {
    /// The same limits, with numbers that nearly are the same.
    fn is_like(&self, other: &Structure) -> bool {
        let near = |a: f64, b: f64| (a == 0.0) == (b == 0.0) && (a == b || (a / b).ln().abs() <= SAME);
        let count = |structure: &Structure| structure.channels.map_or(0.0, f64::from);
        near(count(self), count(other)) && near(self.command, other.command) && near(self.per_byte, other.per_byte)
    }
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    pub chosen: Alternative,
    pub others: Vec<Alternative>,
    /// Steps that it comes from.
    pub from: String,
    /// Most operations that were seen at work together.
    pub reached: f64,
    /// Nothing limited anything.
    pub unlimited: bool,
    /// Largest deviation of the chosen structure from a figure, as a part of it.
    pub off: f64,
}

/// A figure is limited when it stays below what no limit would give by more than this.
const LIMITED: f64 = 0.06;
/// Structures within this are as good as each other.
const ALIKE: f64 = 0.05;
/// Deviation that no structure needs to stay below.
const CLOSE: f64 = 0.03;
/// Other structures that are kept.
const MOST_OTHERS: usize = 8;
/// Most channels that are believed in.
const MOST_CHANNELS: f64 = 4096.0;

/// A saturated or at least deeper figure.
struct Deep {
    work: Work,
    iops: f64,
    /// What one operation alone takes, µs.
    alone: f64,
    noise: f64,
    limited: bool,
}

/// The structure behind the figures at depths above 1. `medium` is the device with neither channels nor a link.
pub(super) fn limits(medium: &Profile, points: &[Point]) -> Limits {
    let usable = |p: &&Point| p.depth > 1 && p.sync_every.is_none() && !p.end_sync;
    let mut labels: Vec<&str> = Vec::new();
    let mut deep: Vec<Deep> = Vec::new();
    for point in points.iter().filter(usable) {
        let work = point.work();
        let Some(free) = replay(medium, work, SEED) else { continue };
        let Some(one) = replay(medium, Work { depth: 1, streams: 1, ..work }, SEED) else { continue };
        let limited = point.iops() < (1.0 - LIMITED - point.noise) * free.iops;
        // A single stream is served in order: more depth changes nothing unless the link works beside the medium.
        labels.push(&point.label);
        deep.push(Deep { work, iops: point.iops(), alone: 1e6 / one.iops, noise: point.noise, limited });
    }
    let together = |d: &Deep| d.iops * d.alone / 1e6;
    let random = || deep.iter().filter(|d| !d.work.sequential);
    let reached = random().map(together).fold(1.0, f64::max);
    let from = labels.join(", ");
    let faster = |d: &Deep| d.work.sequential && together(d) > f64::from(d.work.streams) * (1.0 + LIMITED + d.noise);
    if !deep.iter().any(|d| d.limited || faster(d)) {
        let chosen = Alternative::default();
        return Limits { chosen, others: Vec::new(), from, reached, unlimited: true, off: 0.0 };
    }
    let tried: Vec<(Structure, f64, f64)> = candidates(medium, &deep)
        .into_iter()
        .filter_map(|structure| {
            let (rms, worst) = deviation(medium, &structure, &deep)?;
            Some((structure, rms, worst))
        })
        .collect();
    let best = tried.iter().map(|(_, rms, _)| *rms).fold(f64::INFINITY, f64::min);
    let simple =
        |s: &Structure| u32::from(s.channels.is_some()) + u32::from(s.command > 0.0) + u32::from(s.per_byte > 0.0);
    let good = |rms: f64| rms <= CLOSE.max(1.25 * best);
    let Some((chosen, rms, off)) = tried
        .iter()
        .filter(|(_, rms, _)| good(*rms))
        .min_by(|a, b| simple(&a.0).cmp(&simple(&b.0)).then(a.1.total_cmp(&b.1)))
        .copied()
    else {
        return Limits { from, reached, unlimited: true, ..Limits::default() };
    };
    // As good as the chosen one, in the light of how far off that is itself.
    let alike = ALIKE.max(rms + 0.03);
    let mut others: Vec<&(Structure, f64, f64)> = tried
        .iter()
        .filter(|(s, rms, worst)| {
            *s != chosen && *rms <= alike && *worst <= 2.0 * alike && simple(s) <= simple(&chosen) + 1
        })
        .collect();
    others.sort_by(|a, b| simple(&a.0).cmp(&simple(&b.0)).then(a.1.total_cmp(&b.1)));
    let mut kept: Vec<Structure> = vec![chosen];
    for (structure, ..) in others {
        if kept.len() <= MOST_OTHERS && !kept.iter().any(|one| one.is_like(structure)) {
            kept.push(*structure);
        }
    }
    let others = kept.iter().skip(1).map(alternative).collect();
    Limits { chosen: alternative(&chosen), others, from, reached, unlimited: false, off }
}

const SEED: u64 = 7;

fn alternative(structure: &Structure) -> Alternative {
    let some = |value: f64| (value > 0.0).then_some(super::digits(value));
    let link = Link {
        bandwidth_mbps: some(structure.per_byte).map(|per| super::digits(1.0 / per)),
        command_us: some(structure.command),
        queue: None,
    };
    Alternative { channels: structure.channels, link: (link != Link::default()).then_some(link) }
}

/// Root mean square and largest deviation (of the logarithm of the rate) from all figures.
fn deviation(medium: &Profile, structure: &Structure, deep: &[Deep]) -> Option<(f64, f64)> {
    let profile = medium.restructured(&alternative(structure));
    let (mut squares, mut worst) = (0.0, 0.0f64);
    for figure in deep {
        let off = (replay(&profile, figure.work, SEED)?.iops / figure.iops).ln();
        // What is within the figure's own noise is no deviation.
        let off = (off.abs() - figure.noise).max(0.3 * off.abs());
        squares += off * off;
        worst = worst.max(off);
    }
    Some(((squares / deep.len() as f64).sqrt(), worst))
}

fn candidates(medium: &Profile, deep: &[Deep]) -> Vec<Structure> {
    let none = Structure { channels: None, command: 0.0, per_byte: 0.0 };
    let limited: Vec<&Deep> = deep.iter().filter(|d| d.limited && !d.work.sequential).collect();
    let size = |d: &Deep| d.work.size as f64;
    // Channels: as many as were at work; around the least, the middle and the most.
    let counts: Vec<f64> = limited.iter().map(|d| d.iops * d.alone / 1e6).collect();
    let mut channels: Vec<u32> = Vec::new();
    let least = counts.iter().copied().fold(f64::INFINITY, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    for count in [Some(least), median(&counts), Some(most)].into_iter().flatten().filter(|c| c.is_finite() && *c > 0.0)
    {
        let near = [count * 0.97, count.floor(), count.round(), count.ceil(), count * 1.03];
        channels.extend(near.into_iter().map(|c| c.round().clamp(1.0, MOST_CHANNELS) as u32));
    }
    channels.sort_unstable();
    channels.dedup();
    // The link: its share of one operation alone cannot be more than all of it.
    let cost = |d: &Deep| 1e6 / d.iops;
    let costs: Vec<f64> = limited.iter().map(|d| cost(d)).collect();
    let by_byte: Vec<f64> = limited.iter().map(|d| cost(d) / size(d)).collect();
    // Of one size, the most saturated.
    let smallest = limited.iter().min_by(|a, b| a.work.size.cmp(&b.work.size).then(cost(a).total_cmp(&cost(b))));
    // A stream may show the link or only how fast one stream is.
    let largest = |streams: bool| {
        let all = deep.iter().filter(|d| if d.work.sequential { streams } else { d.limited });
        all.max_by(|a, b| a.work.size.cmp(&b.work.size).then(cost(b).total_cmp(&cost(a))))
    };
    let ends = [largest(false), largest(true)];
    let (most_command, most_per_byte) = room(medium);
    let mut links: Vec<(f64, f64)> = Vec::new();
    for command in [median(&costs), costs.iter().copied().reduce(f64::min)].into_iter().flatten() {
        links.push((command, 0.0));
    }
    let own = ends.into_iter().flatten().map(|d| cost(d) / size(d));
    let usual = [median(&by_byte), by_byte.iter().copied().reduce(f64::min)].into_iter().flatten();
    links.extend(usual.chain(own).map(|per_byte| (0.0, per_byte)));
    // Each limited figure's own, and both from the two ends.
    for large in ends.into_iter().flatten() {
        if let Some(small) = smallest.filter(|small| large.work.size >= 2 * small.work.size) {
            let per_byte = ((cost(large) - cost(small)) / (size(large) - size(small))).max(0.0);
            links.push(((cost(small) - per_byte * size(small)).max(0.0), per_byte));
        }
    }
    links.retain(|(command, per_byte)| *command <= most_command && *per_byte <= most_per_byte);
    links.dedup();
    let mut out = vec![none];
    out.extend(channels.iter().map(|n| Structure { channels: Some(*n), ..none }));
    for (command, per_byte) in links {
        let link = Structure { channels: None, command, per_byte };
        out.push(link);
        out.extend(channels.iter().map(|n| Structure { channels: Some(*n), ..link }));
    }
    out
}

/// The most that the link may take of an operation alone: µs for a command, µs for a byte.
fn room(medium: &Profile) -> (f64, f64) {
    let sides = [&medium.read, &medium.write].into_iter().flatten();
    let patterns = || sides.clone().flat_map(|side| [Some(&side.random), side.sequential.as_ref()]).flatten();
    let latency = patterns().filter_map(|p| p.latency_us.as_ref()).map(profile::distribution::Latency::mean_us);
    // A little beyond: both are measured.
    let command = latency.fold(f64::INFINITY, f64::min) * 1.1;
    let per_byte =
        patterns().map(|p| p.bandwidth_mbps.map_or(0.0, |rate| 1.0 / rate)).fold(f64::INFINITY, f64::min) * 1.05;
    (command, per_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_alike_when_their_limits_are_the_same_and_their_numbers_nearly() {
        let one = Structure { channels: Some(64), command: 10.0, per_byte: 0.0 };
        assert!(one.is_like(&Structure { channels: Some(65), command: 10.2, ..one }));
        assert!(!one.is_like(&Structure { channels: Some(68), ..one }), "6 %");
        assert!(!one.is_like(&Structure { command: 0.0, ..one }) && !one.is_like(&Structure { channels: None, ..one }));
        assert!(!one.is_like(&Structure { per_byte: 1e-4, ..one }));
        let few = Structure { channels: Some(1), ..one };
        assert!(!few.is_like(&Structure { channels: Some(2), ..few }));
    }
}
