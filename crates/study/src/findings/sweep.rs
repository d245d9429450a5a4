//! What curves say: where a device is saturated, in what it works, where its rate dips and its latency jumps, and whether
//! they can be read at all. One finding of each kind for each curve, and each said once where a sweep was repeated.

use super::{Draft, Scene, at, finding, mbps, times};
use crate::knee::{ALL, knee};
use crate::sweeps::{Axis, Point, Sweep, sweeps};
use basics::units::significant;
use basics::{Bytes, Nanos};
use std::collections::BTreeSet;

/// Operations shorter than the granule take as long as one of it, within what means of one device differ by.
const AS_LONG: f64 = 0.98;
/// One of two granules takes this much longer than one. Where time grows with every byte, the step from half a granule to
/// one would then be seen as well.
const LONGER: f64 = 1.1;
/// A rate that falls by less than this is none that fell.
const DIPS: f64 = 0.9;
/// A p99 jumps when it grows by this factor more than the mean does from one depth to the next.
const JUMPS: f64 = 2.0;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut said = BTreeSet::new();
    let mut out = Vec::new();
    for sweep in sweeps(scene.run) {
        let Some(first) = sweep.points.first() else { continue };
        let curve = Curve { tier: first.step.tier, name: first.step.tier.unwrap_or(first.step.target), sweep };
        let found = match curve.erratic() {
            Some(erratic) => vec![erratic],
            None => [curve.granule(), curve.enough(), curve.knee(), curve.dip(), curve.jump()]
                .into_iter()
                .flatten()
                .collect(),
        };
        out.extend(
            found
                .into_iter()
                .filter(|found| said.insert((found.id.clone(), curve.name.to_owned(), curve.sweep.title()))),
        );
    }
    out.extend(scene.subjects.iter().filter_map(transit));
    out.into_iter().map(Draft::from).collect()
}

/// A sweep of a tier.
struct Curve<'r, 'a> {
    tier: Option<&'a str>,
    name: &'a str,
    sweep: Sweep<'r, 'a>,
}

fn mean(point: &Point<'_, '_>) -> Option<f64> {
    Some(point.side.lat.mean.get()?.us())
}

fn p99(point: &Point<'_, '_>) -> Option<Nanos> {
    point.side.lat.percentile(99.0)
}

impl Curve<'_, '_> {
    fn found(&self, id: &str, weight: u8, text: &str, evidence: Vec<String>) -> crate::Finding {
        finding(id, weight, self.tier, format!("{}, {}: {text}.", self.name, self.sweep.title()), evidence)
    }

    /// A rate in the unit that the curve is spoken of.
    fn rate(&self, point: &Point<'_, '_>) -> String {
        let long = self.sweep.axis == Axis::Size || point.step.job.block.largest().0 >= 64 << 10;
        if long { mbps(point.side.mbps) } else { format!("{} IOPS", significant(point.side.iops)) }
    }

    /// A point in the words of its axis.
    fn place(&self, point: &Point<'_, '_>) -> String {
        match self.sweep.axis {
            Axis::Size => Bytes(point.at).to_string(),
            Axis::Depth => format!("depth {}", point.at),
            Axis::Reads => format!("{} % reads", point.at),
        }
    }

    fn evidence(&self, points: &[&Point<'_, '_>]) -> Vec<String> {
        points
            .iter()
            .map(|point| at(point.step, format_args!("{} at {}", self.rate(point), self.place(point))))
            .collect()
    }

    fn erratic(&self) -> Option<crate::Finding> {
        let why = self.sweep.erratic()?;
        let text = format!("too erratic to be drawn or judged: {why}");
        Some(self.found("erratic", 55, &text, self.evidence(&self.sweep.points.iter().collect::<Vec<_>>())))
    }

    /// The size below which nothing gets faster.
    fn granule(&self) -> Option<crate::Finding> {
        let points = &self.sweep.points;
        if self.sweep.axis != Axis::Size || points.windows(2).any(|pair| pair[0].at >= pair[1].at) {
            return None;
        }
        let means: Vec<f64> = points.iter().map(mean).collect::<Option<_>>()?;
        let is_granule = |i: &usize| {
            means[..*i].iter().all(|below| *below >= AS_LONG * means[*i]) && means[i + 1] >= LONGER * means[*i]
        };
        let i = (1..means.len() - 1).rev().find(is_granule)?;
        let (granule, first) = (&points[i], &points[0]);
        let text = format!(
            "nothing gets faster below {}, {} takes {} and {} takes {}: the device works in pieces of {}",
            Bytes(granule.at),
            Bytes(first.at),
            first.side.lat.mean.get()?,
            Bytes(granule.at),
            granule.side.lat.mean.get()?,
            Bytes(granule.at)
        );
        Some(self.found("granule", 40, &text, self.evidence(&[first, granule, &points[i + 1]])))
    }

    /// The size from which longer operations bring no more bytes.
    fn enough(&self) -> Option<crate::Finding> {
        let points = &self.sweep.points;
        let most = points.iter().max_by(|a, b| a.side.mbps.total_cmp(&b.side.mbps))?;
        let enough = points.iter().find(|point| point.side.mbps >= ALL * most.side.mbps)?;
        let longest = points.last()?;
        if self.sweep.axis != Axis::Size || enough.at >= longest.at {
            return None;
        }
        let (rate, all) = (mbps(enough.side.mbps), mbps(longest.side.mbps));
        let text = format!("operations of {} bring {rate}, and the longest ones {all}", Bytes(enough.at));
        Some(self.found("saturation-size", 30, &text, self.evidence(&[enough, longest])))
    }

    /// The depth that saturates, and what queueing beyond it costs.
    fn knee(&self) -> Option<crate::Finding> {
        if self.sweep.axis != Axis::Depth {
            return None;
        }
        let points = &self.sweep.points;
        let figures = points.iter().map(|point| Some((u32::try_from(point.at).ok()?, point.side.iops, mean(point)?)));
        let knee = knee(&figures.collect::<Option<Vec<_>>>()?)?;
        let (at, last) = (points.iter().find(|point| point.at == u64::from(knee.depth))?, points.last()?);
        let text = format!(
            "saturated from depth {} on, at {}; at depth {} an operation waits {} times as long for no more",
            knee.depth,
            self.rate(at),
            last.at,
            times(knee.beyond)
        );
        Some(self.found("saturation-depth", 35, &text, self.evidence(&[at, last])))
    }

    /// A rate that falls at a depth and recovers at a greater one.
    fn dip(&self) -> Option<crate::Finding> {
        if self.sweep.axis != Axis::Depth {
            return None;
        }
        let points = &self.sweep.points;
        let mut best = points.first()?;
        for (i, low) in points.iter().enumerate() {
            let again = points[i..].iter().find(|point| point.side.iops >= ALL * best.side.iops);
            if low.side.iops < DIPS * best.side.iops
                && !overlap(low, best)
                && let Some(again) = again
            {
                let threads = low.step.job.threads;
                let with =
                    if threads > best.step.job.threads { format!(" with {threads} threads") } else { String::new() };
                let text = format!(
                    "the rate falls from {} at depth {} to {} at depth {}{with}, and has recovered at depth {}",
                    self.rate(best),
                    best.at,
                    self.rate(low),
                    low.at,
                    again.at
                );
                return Some(self.found("dip", 45, &text, self.evidence(&[best, low, again])));
            }
            if low.side.iops > best.side.iops {
                best = low;
            }
        }
        None
    }

    /// A p99 that leaves its mean behind from one depth to the next.
    fn jump(&self) -> Option<crate::Finding> {
        if self.sweep.axis != Axis::Depth {
            return None;
        }
        let (before, after) = self.sweep.points.windows(2).find_map(|pair| {
            let [before, after] = pair else { return None };
            let grown = p99(after)?.us() / p99(before)?.us();
            let mean = mean(after)? / mean(before)?;
            (grown >= JUMPS * mean.max(1.0)).then_some((before, after))
        })?;
        let (low, high) = (p99(before)?, p99(after)?);
        let text = format!(
            "p99 jumps at depth {}, from {low} to {high}, while the mean goes from {} to {}",
            after.at,
            before.side.lat.mean.get()?,
            after.side.lat.mean.get()?
        );
        let evidence = [(before, low), (after, high)]
            .map(|(point, p99)| at(point.step, format_args!("p99 {p99} at depth {}", point.at)));
        Some(self.found("latency-jump", 40, &text, evidence.to_vec()))
    }
}

/// True when the intervals of two rates touch.
fn overlap(low: &Point<'_, '_>, high: &Point<'_, '_>) -> bool {
    let half = |point: &Point<'_, '_>| point.side.iops * point.side.ci95_percent.get().unwrap_or(&0.0) / 100.0;
    low.side.iops + half(low) >= high.side.iops - half(high)
}

/// Commands a second at depth 1 against those that the bus would pass.
fn transit(subject: &super::Subject<'_, '_>) -> Option<crate::Finding> {
    let crossed = subject.steps.tier?.hops.iter().filter_map(|hop| Some((hop, hop.transit_us.filter(|us| *us > 0.0)?)));
    let (slowest, us) = crossed.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let alone = subject.steps.all().filter(|step| step.is_whole() && step.job.depth * step.job.threads == 1);
    let timed = alone.filter(|step| step.job.direct && !step.read.latency.is_empty() && step.write.latency.is_empty());
    let (step, mean) =
        timed.filter_map(|step| Some((step, step.read.latency.mean()?))).min_by_key(|(_, mean)| *mean)?;
    let text = format!(
        "{}: {} commands a second at depth 1 ({} each, {} of {}); {} would pass {}, crossing it takes {} µs.",
        subject.name(),
        significant(1e6 / mean.us()),
        mean,
        if step.job.order == basics::job::Order::Sequential { "sequential reads" } else { "random reads" },
        step.job.block.largest(),
        slowest.name,
        significant(1e6 / us),
        significant(us)
    );
    let evidence =
        vec![at(step, format_args!("mean {mean} at depth 1")), format!("{}: {us} µs to cross", slowest.name)];
    Some(finding("commands-at-depth-1", 30, Some(subject.name()), text, evidence))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::said;
    use crate::sweeps::tests::{deep, long};
    use crate::testing::{Run, Step, capped};
    use basics::Nanos;
    use machine::TierKind;

    fn depths(rates: &[(u32, u64)]) -> Run {
        Run::of("ssd-review", &[]).steps(rates.iter().map(|(depth, rate)| deep(*depth, *rate)))
    }

    #[test]
    fn a_saturated_depth_has_its_rate_and_its_price() {
        let knee = said(&depths(&[(1, 1000), (2, 2000), (4, 4000), (8, 4000), (16, 4000)]), "saturation-depth");
        assert_eq!(
            knee[0].text,
            "x, random reads of 4 KiB: saturated from depth 4 on, at 40,000 IOPS; at depth 16 an operation waits 4 times \
             as long for no more."
        );
        assert_eq!(knee[0].evidence[0], "step 2 deep-4: 40,000 IOPS at depth 4");
        assert!(said(&depths(&[(1, 1000), (2, 2000), (4, 4000)]), "saturation-depth").is_empty());
    }

    #[test]
    fn a_granule_is_a_kink_and_not_a_slope() {
        let sizes = |us: [u64; 6]| {
            Run::of("ssd-review", &[]).steps(us.into_iter().enumerate().map(|(i, us)| long(512 << i, us)))
        };
        let found = said(&sizes([200, 200, 200, 200, 250, 350]), "granule");
        assert!(found[0].text.contains("nothing gets faster below 4 KiB, 512 B takes 200 µs"), "{}", found[0].text);
        let worse = said(&sizes([700, 700, 700, 200, 250, 350]), "granule");
        assert!(worse[0].text.contains("512 B takes 700 µs and 4 KiB takes 200 µs"), "{}", worse[0].text);
        assert!(said(&sizes([202, 205, 210, 220, 240, 280]), "granule").is_empty(), "a slope has none");
        assert!(said(&sizes([200; 6]), "granule").is_empty(), "and neither has what is all latency");
    }

    #[test]
    fn a_size_brings_all_there_is() {
        let sizes = |us: [u64; 4]| {
            Run::of("ssd-review", &[]).steps(us.into_iter().enumerate().map(|(i, us)| long(131_072 << i, us)))
        };
        let found = said(&sizes([400, 500, 1000, 2000]), "saturation-size");
        assert!(
            found[0].text.contains("operations of 256 KiB bring 524 MB/s, and the longest ones 524 MB/s"),
            "{}",
            found[0].text
        );
        assert!(said(&sizes([400, 600, 1000, 1600]), "saturation-size").is_empty(), "it grows to the end");
    }

    /// The P3700's reads in the review: a second thread costs, four have recovered.
    #[test]
    fn a_dip_at_two_threads_is_told_with_its_end() {
        let found = said(&depths(&[(1, 1000), (2, 700), (4, 1000), (8, 1300)]), "dip");
        assert!(
            found[0].text.ends_with(
                "falls from 10,000 IOPS at depth 1 to 7,000 IOPS at depth 2 with 2 threads, and has recovered at depth 4."
            ),
            "{}",
            found[0].text
        );
        assert!(said(&depths(&[(1, 1000), (2, 700), (4, 700), (8, 650)]), "dip").is_empty(), "it never recovers");
        assert!(said(&depths(&[(1, 1000), (2, 950), (4, 1000), (8, 1300)]), "dip").is_empty());
    }

    #[test]
    fn a_p99_that_leaves_the_mean_behind_has_jumped() {
        let run = |slow: u64| {
            let mut run = depths(&[(1, 1000), (2, 2000), (3, 3000), (4, 4000)]);
            for step in &mut run.steps[2..] {
                step.read.latency.record_n(Nanos(2_000_000), slow);
            }
            run
        };
        let found = said(&run(1000), "latency-jump");
        assert!(found[0].text.contains("p99 jumps at depth 3, from 100 µs to 2.00 ms"), "{}", found[0].text);
        assert!(said(&run(10), "latency-jump").is_empty());
        // A p99 that grows as the mean does waits in the queue.
        assert!(said(&depths(&[(1, 1000), (4, 1000), (16, 1000)]), "latency-jump").is_empty());
    }

    /// The P3700's writes in the review: left out, with the reason, and nothing else is said of them.
    #[test]
    fn what_goes_by_fits_and_starts_is_not_judged() {
        let run = depths(&[(1, 100), (2, 60), (4, 140), (8, 70), (16, 160), (32, 80), (64, 80)]);
        let found = said(&run, "erratic");
        assert!(
            found[0].text.ends_with("drawn or judged: its rate turns 4 times, each time by a quarter or more."),
            "{}",
            found[0].text
        );
        assert_eq!(found[0].evidence.len(), 7);
        assert!(said(&run, "saturation-depth").is_empty() && said(&run, "dip").is_empty());
    }

    #[test]
    fn the_bus_takes_its_part_of_every_command() {
        let mut usb = capped("sda", TierKind::Usb, "USB 3 5 Gbit/s", 500.0, (430.0, 450.0));
        usb.hops = vec![machine::ceiling::usb_named("USB 3 5 Gbit/s").unwrap()];
        let run = Run::of("job", &[]).tiers([usb]).steps([Step::page_read("sda", Nanos(200_000))]);
        let found = said(&run, "commands-at-depth-1");
        assert_eq!(
            found[0].text,
            "sda: 5,000 commands a second at depth 1 (200 µs each, random reads of 16 KiB); USB 3 5 Gbit/s would pass \
             50,000, crossing it takes 20 µs."
        );
        assert!(
            said(&Run::of("job", &[]).steps([Step::page_read("sdb", Nanos(200_000))]), "commands-at-depth-1")
                .is_empty()
        );
    }
}
