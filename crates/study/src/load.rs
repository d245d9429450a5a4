//! What a process under pressure says about the tiers it was swapped to: a row for each, over all its visits, and why the row
//! is as it is in one sentence.

use crate::curve::{Memory, Unit, memory};
use crate::findings::times;
use crate::model::{RunView, State, StepView};
use basics::curve::Watched;
use basics::job::{Engine, Order};
use basics::pressure::Load;
use basics::stats::median;
use basics::units::significant;
use basics::{Bytes, FailKind, Known, Latencies, Why};
use observe::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fewer major faults a second than this do not matter: memory fits.
const FEW: f64 = 10.0;
/// Readahead by address takes at most 2 to the power of this many pages, whatever vm.page-cluster is
/// (`SWAP_RA_ORDER_CEILING` in mm/swap_state.c, 64-bit).
pub(crate) const READAHEAD_ORDER: u32 = 5;
/// A compressed cache that answers so much of what is read answers for the tier.
const MOSTLY: f64 = 0.9;

/// A tier under a workload that touches memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LoadRow {
    /// The tier as it was asked for.
    pub tier: String,
    /// Passes over all of the memory in a second; the median of the visits, as all that follows.
    pub passes_per_s: Known<f64>,
    /// 10^6 bytes of memory touched in a second.
    pub mbps: Known<f64>,
    /// What plain sequential reading of the same disks gives, all of them together.
    pub disk_mbps: Known<f64>,
    /// Touches a second that met a major fault.
    pub faults_per_s: Known<f64>,
    /// What such a touch took, µs: median and 99th percentile, over all visits.
    pub fault_us: Known<(f64, f64)>,
    /// 10^6 bytes a second that came from swap and went there.
    pub swap_mbps: Known<(f64, f64)>,
    /// Share of all processors' time that was used, per cent.
    pub cpu_percent: Known<f64>,
    /// Share of all processors' time that was idle with I/O under way, per cent.
    pub iowait_percent: Known<f64>,
    /// Share of the time in which all that wanted to run waited for memory, per cent.
    pub stalled_percent: Known<f64>,
    /// Least and most of `mbps`, where there was more than one visit.
    pub range_mbps: Option<(f64, f64)>,
    /// Visits that came to their end.
    pub visits: usize,
    /// Why it is so.
    pub why: String,
    /// What other amounts of memory would bring, where that was asked for.
    pub memory: Option<Memory>,
}

/// The rows of a run, in the order of its tiers; empty where it was no workload.
pub fn load_rows(run: &RunView<'_>) -> Vec<LoadRow> {
    by_tier(run, Engine::Touch).map(|(tier, steps)| row(tier, &steps)).collect()
}

/// The steps that one engine made, by their tier, in the order of the tiers.
pub(crate) fn by_tier<'a>(
    run: &'a RunView<'a>,
    engine: Engine,
) -> impl Iterator<Item = (&'a str, Vec<&'a StepView<'a>>)> + 'a {
    let steps = move || run.steps.iter().filter(move |step| step.job.engine == engine);
    let mut tiers: Vec<&str> = Vec::new();
    for tier in steps().filter_map(|step| step.tier) {
        if !tiers.contains(&tier) {
            tiers.push(tier);
        }
    }
    tiers.into_iter().map(move |tier| (tier, steps().filter(|step| step.tier == Some(tier)).collect()))
}

/// The answer in one sentence: the fastest tier and the slowest, and how far they are apart.
pub fn load_headline(rows: &[LoadRow]) -> Option<String> {
    let mut measured: Vec<(&str, f64)> =
        rows.iter().filter_map(|row| Some((row.tier.as_str(), *row.mbps.get()?))).collect();
    measured.sort_by(|a, b| b.1.total_cmp(&a.1));
    let ((best, most), (worst, least)) = (measured.first()?, measured.last()?);
    let first = format!("On {best} a process gets at {} MB/s of its memory", significant(*most));
    Some(if measured.len() > 1 && *least > 0.0 {
        format!("{first}, on {worst} at {}: {} times less.", significant(*least), times(most / least))
    } else {
        format!("{first}.")
    })
}

/// What one visit gives, as far as it is known.
struct Visit {
    passes: f64,
    mbps: f64,
    faults: f64,
    swap: Option<(f64, f64)>,
    cpu: Option<(f64, f64)>,
    stalled: Option<f64>,
}

impl Visit {
    fn of(step: &StepView<'_>, load: &Load) -> Option<Self> {
        let seconds = step.elapsed.secs();
        let bytes = (step.read.bytes + step.write.bytes) as f64;
        let region = step.region.filter(|region| region.0 > 0)?;
        if seconds <= 0.0 || bytes == 0.0 {
            return None;
        }
        let page = load.page.0 as f64;
        let ends = step.samples.first().zip(step.samples.last()).filter(|(a, b)| b.at > a.at);
        let rate = |key: &str| {
            let (first, last) = ends?;
            let moved = last.vm.get(key)?.saturating_sub(*first.vm.get(key)?) as f64;
            Some(moved / (last.at - first.at).secs())
        };
        let swap = rate("pswpin").zip(rate("pswpout")).map(|(i, o)| (i * page / 1e6, o * page / 1e6));
        Some(Visit {
            passes: bytes / region.0 as f64 / seconds,
            mbps: bytes / 1e6 / seconds,
            faults: load.faults.count() as f64 / seconds,
            swap,
            cpu: ends.and_then(|(first, last)| cpu(first, last)),
            stalled: ends.and_then(|(first, last)| {
                let all = |sample: &Sample| sample.pressure_us.get("memory").map(|(_, all)| *all);
                let stalled = all(last)?.saturating_sub(all(first)?) as f64;
                Some(100.0 * stalled / 1e6 / (last.at - first.at).secs())
            }),
        })
    }
}

/// Shares of all processors' time: in use, and idle with I/O under way. A guest's time is in the user's already.
pub(crate) fn cpu(first: &Sample, last: &Sample) -> Option<(f64, f64)> {
    let (before, after) = (first.cpu_ticks?, last.cpu_ticks?);
    let spent: Vec<f64> = after.iter().zip(before).map(|(after, before)| after.saturating_sub(before) as f64).collect();
    let all: f64 = spent.iter().sum();
    let (idle, waiting) = (spent[3], spent[4]);
    (all > 0.0).then(|| (100.0 * (all - idle - waiting) / all, 100.0 * waiting / all))
}

fn row(tier: &str, steps: &[&StepView<'_>]) -> LoadRow {
    let whole = || steps.iter().filter(|step| step.is_whole()).filter_map(|step| Some((*step, step.load?)));
    let visits: Vec<Visit> = whole().filter_map(|(step, load)| Visit::of(step, load)).collect();
    let lack = || Why::NotMeasured(unmeasured(steps).to_owned());
    let middle = |pick: &dyn Fn(&Visit) -> Option<f64>| {
        let all: Vec<f64> = visits.iter().filter_map(pick).collect();
        median(&all).map_or_else(|| Known::Unknown(lack()), Known::Is)
    };
    let both = |pick: &dyn Fn(&Visit) -> Option<(f64, f64)>| {
        let half = |which: fn((f64, f64)) -> f64| middle(&|visit| pick(visit).map(which));
        match (half(|pair| pair.0), half(|pair| pair.1)) {
            (Known::Is(first), Known::Is(second)) => Known::Is((first, second)),
            _ => Known::Unknown(lack()),
        }
    };
    let mut faults = Latencies::lazy();
    whole().for_each(|(_, load)| faults.merge(&load.faults));
    let percentile = |percent| faults.percentile(percent).map(|time| time.us());
    let rates = || visits.iter().map(|visit| visit.mbps);
    let range = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let mut row = LoadRow {
        tier: tier.to_owned(),
        passes_per_s: middle(&|visit| Some(visit.passes)),
        mbps: middle(&|visit| Some(visit.mbps)),
        disk_mbps: steps.iter().find_map(|step| disk(step.load?)).map_or_else(Known::default, Known::Is),
        faults_per_s: middle(&|visit| Some(visit.faults)),
        fault_us: match percentile(50.0).zip(percentile(99.0)) {
            Some(both) => Known::Is(both),
            None => Known::Unknown(Why::NotMeasured("no faults".to_owned())),
        },
        swap_mbps: both(&|visit| visit.swap),
        cpu_percent: middle(&|visit| Some(visit.cpu?.0)),
        iowait_percent: middle(&|visit| Some(visit.cpu?.1)),
        stalled_percent: middle(&|visit| visit.stalled),
        range_mbps: (visits.len() > 1).then_some(range),
        visits: visits.len(),
        why: String::new(),
        memory: None,
    };
    row.why = why(&row, steps);
    row.memory = best_watched(steps).map(|(step, watched)| {
        let rate = step.load.and_then(|load| Visit::of(step, load)).map_or(0.0, |visit| visit.passes);
        memory(watched, rate, Unit::Passes)
    });
    row
}

/// The visit whose memory curve stands on most touches.
pub(crate) fn best_watched<'a>(steps: &[&'a StepView<'a>]) -> Option<(&'a StepView<'a>, &'a Watched)> {
    let all = steps.iter().filter(|step| step.is_whole());
    let all = all.filter_map(|step| Some((*step, step.load?.watched.as_deref()?)));
    all.max_by_key(|(_, watched)| watched.seen.as_ref().map(|(curve, _)| curve.touches))
}

/// In a word or two, why there are no figures.
pub(crate) fn unmeasured(steps: &[&StepView<'_>]) -> &'static str {
    let failed = steps.iter().find_map(|step| step.failed);
    match failed {
        Some((FailKind::NoRoom, _)) => "does not fit",
        Some((kind, _)) => kind.word(),
        None if steps.iter().any(|step| step.state == State::Interrupted) => "interrupted",
        None if steps.iter().any(|step| step.load.is_some()) => "too short",
        None => "not run",
    }
}

/// What the disks below give in sequence, together, MB/s.
pub(crate) fn disk(load: &Load) -> Option<f64> {
    // Two areas on one disk share what it gives.
    let mut by_disk: BTreeMap<&str, f64> = BTreeMap::new();
    for area in &load.areas {
        let (bytes, time) = area.sequential.filter(|(bytes, time)| bytes.0 > 0 && time.0 > 0)?;
        let rate = by_disk.entry(area.disk.as_deref().unwrap_or(&area.path)).or_default();
        *rate = rate.max(bytes.0 as f64 / 1e6 / time.secs());
    }
    (!by_disk.is_empty()).then(|| by_disk.values().sum())
}

/// Why the row is as it is.
fn why(row: &LoadRow, steps: &[&StepView<'_>]) -> String {
    let Some((step, load)) =
        steps.iter().rev().filter(|step| step.is_whole()).find_map(|step| Some((step, step.load?)))
    else {
        let failed = steps.iter().find_map(|step| step.failed);
        return match failed {
            Some((FailKind::NoRoom, sentence)) => format!("does not fit: {sentence}"),
            Some((_, sentence)) => sentence.to_owned(),
            None => unmeasured(steps).to_owned(),
        };
    };
    let faults = row.faults_per_s.get().copied().unwrap_or(0.0);
    if faults < FEW {
        return "fits: the tier does not matter".to_owned();
    }
    if let Some(sentence) = compressed(step, load) {
        return sentence;
    }
    let cluster = load.settings.get("/proc/sys/vm/page-cluster").and_then(|pages| pages.parse::<u32>().ok());
    let at_once = cluster.map(|pages| Bytes(load.page.0 << pages.min(READAHEAD_ORDER)));
    let per_fault = row.mbps.get().zip(row.faults_per_s.get()).map(|(mbps, faults)| mbps * 1e6 / faults);
    let share = row.swap_mbps.get().zip(row.disk_mbps.get()).map(|((read, _), disk)| 100.0 * read / disk);
    match (step.job.order, share, at_once) {
        (Order::Sequential, Some(share), Some(at_once)) => format!(
            "goes through swap at {} % of the disk's rate: readahead ends at {at_once}, and each major fault brings {} on",
            significant(share),
            per_fault.map_or_else(|| "little".to_owned(), |bytes| Bytes(bytes as u64).to_string()),
        ),
        (Order::Sequential, None, Some(at_once)) => format!("goes through swap: readahead ends at {at_once}"),
        _ => {
            let each = row.fault_us.get().map(|(median, _)| format!(" of {} µs", significant(*median)));
            format!(
                "touches wait for single pages: {} faults a second{}",
                significant(faults),
                each.unwrap_or_default()
            )
        }
    }
}

/// Where compression answers: zram, or zswap for most of what is read.
fn compressed(step: &StepView<'_>, load: &Load) -> Option<String> {
    let all = load.areas.iter().filter_map(|area| area.compressed.as_ref());
    let is_zram = load.areas.iter().any(|area| area.compressed.is_some());
    let (mut original, mut memory, mut behind, mut algorithm) = (0, 0, 0, "");
    for one in all {
        original += one.original.0;
        memory += one.memory.0;
        behind += one.behind.map_or(0, |[held, ..]| held.0);
        algorithm = &one.algorithm;
    }
    if original > 0 {
        // What lies on the disk behind is counted as stored, and not as compressed.
        let kept = original.saturating_sub(behind);
        let ratio = kept as f64 / memory.max(1) as f64;
        let held = format!("{} in {} of RAM beside the limit", Bytes(kept), Bytes(memory));
        if behind > kept {
            return Some(format!("the disk behind it holds most: {} there, {held} ({algorithm})", Bytes(behind)));
        }
        let away = if behind > 0 { format!(", {} on the disk behind it", Bytes(behind)) } else { String::new() };
        let held = held + &away;
        return Some(if ratio > 1.05 {
            format!("compression holds it: {held} ({algorithm}, {}:1)", significant(ratio))
        } else {
            format!("compression gains nothing: {held} ({algorithm})")
        });
    }
    if is_zram {
        // Linux 6.12 and later keeps a page of zeros as a mark beside the swap area, and zram needs no room for one either.
        return Some("pages of zeros: none of them is stored".to_owned());
    }
    let (first, last) = step.samples.first().zip(step.samples.last())?;
    let moved = |key: &str| Some(last.vm.get(key)?.saturating_sub(*first.vm.get(key)?) as f64);
    let (cached, read) = (moved("zswpin")?, moved("pswpin")?);
    // What zswap answers is not counted as swapped in (`swap_read_folio` in mm/page_io.c): the two are apart.
    let share = cached / (cached + read).max(1.0);
    (share > MOSTLY)
        .then(|| format!("compression holds it: zswap answers {} % of what is read", significant(100.0 * share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::job::Block;
    use basics::pressure::{AreaSeen, Compressed};
    use basics::units::MIB;
    use basics::{Interval, Job, Nanos, Side};

    /// 2 s in which 200 MiB of 100 MiB were read, in pages of 4 KiB, so many of which met a fault of 100 µs.
    fn touched(tier: &str, faults: u64) -> Step {
        let job = Job { engine: Engine::Touch, block: Block::Fixed(Bytes(4096)), direct: false, ..Job::default() };
        let mut step = Step::new("touch", tier, job);
        let mut load = Load { page: Bytes(4096), ..Load::default() };
        load.faults.record_n(Nanos(100_000), faults);
        load.settings.insert("/proc/sys/vm/page-cluster".to_owned(), "3".to_owned());
        step.load = Some(load);
        step.region = Some(Bytes(100 * MIB));
        let mut read = Side { bytes: 200 * MIB, ..Side::default() };
        read.latency.record_n(Nanos(1000), 51_200);
        step.read = read.clone();
        step.elapsed = Nanos::from_millis(2000);
        step.intervals = vec![Interval { end: step.elapsed, read, ..Interval::default() }];
        step
    }

    /// Counters that moved by so much in 2 s.
    fn moved(step: &mut Step, counters: &[(&str, u64)]) {
        let at = |seconds: u64| Sample {
            at: Nanos(seconds * 1_000_000_000),
            cpu_ticks: Some([100 * seconds, 0, 0, 200 * seconds, 100 * seconds, 0, 0, 0]),
            vm: counters.iter().map(|(key, by)| ((*key).to_owned(), 7 + by * seconds / 2)).collect(),
            ..Sample::default()
        };
        step.samples = vec![at(0), at(2)];
    }

    fn area(what: &str, disk: &str, mbps: u64) -> AreaSeen {
        let sequential = Some((Bytes(mbps * 1_000_000), Nanos(1_000_000_000)));
        AreaSeen { what: what.to_owned(), disk: Some(disk.to_owned()), sequential, ..AreaSeen::default() }
    }

    fn rows(steps: impl IntoIterator<Item = Step>) -> Vec<LoadRow> {
        load_rows(&Run::default().steps(steps).view())
    }

    #[test]
    fn a_row_has_its_rates_and_its_reason() {
        let mut step = touched("sda", 6400);
        step.load.as_mut().unwrap().areas = vec![area("a", "sda", 400), area("b", "sda", 380), area("c", "sdb", 100)];
        moved(&mut step, &[("pswpin", 51_200), ("pswpout", 0)]);
        let row = &rows([step])[0];
        assert_eq!(row.passes_per_s, Known::Is(1.0));
        assert_eq!(row.disk_mbps, Known::Is(500.0), "two areas on one disk share what it gives");
        assert_eq!(row.faults_per_s, Known::Is(3200.0));
        assert_eq!((row.cpu_percent.clone(), row.iowait_percent.clone()), (Known::Is(25.0), Known::Is(25.0)));
        let (read, written) = row.swap_mbps.get().copied().unwrap();
        assert!((read - 104.8576).abs() < 1e-6 && written == 0.0, "{read} {written}");
        let (median, p99) = row.fault_us.get().copied().unwrap();
        assert!((median - 100.0).abs() < 0.2 && (p99 - 100.0).abs() < 0.2);
        for part in ["21.0 % of the disk's rate", "readahead ends at 32 KiB", "brings 32 KiB on"] {
            assert!(row.why.contains(part), "{part}: {}", row.why);
        }
    }

    #[test]
    fn the_reason_is_the_right_one() {
        let why = |step: Step| rows([step])[0].why.clone();
        assert!(why(touched("sda", 3)).starts_with("fits"));
        let killed = rows([touched("none", 0).failed(FailKind::NoRoom, "the kernel ended it")]);
        assert_eq!(killed[0].why, "does not fit: the kernel ended it");
        assert_eq!(killed[0].passes_per_s, Known::Unknown(Why::NotMeasured("does not fit".to_owned())));
        let zram = |original: u64, memory: u64| {
            let mut step = touched("zram", 6400);
            let compressed = Some(Compressed {
                algorithm: "lz4".to_owned(),
                original: Bytes(original * MIB),
                compressed: Bytes(memory * MIB),
                memory: Bytes(memory * MIB),
                behind: None,
            });
            step.load.as_mut().unwrap().areas = vec![AreaSeen { compressed, ..AreaSeen::default() }];
            why(step)
        };
        assert!(zram(60, 30).contains("compression holds it: 60 MiB in 30 MiB") && zram(60, 30).contains("lz4, 2"));
        assert!(zram(60, 60).starts_with("compression gains nothing"));
        assert!(zram(0, 0).starts_with("pages of zeros"));
        let backed = |behind: u64| {
            let mut step = touched("zram+/var/tmp", 6400);
            let held = [Bytes(behind * MIB), Bytes(0), Bytes(behind * MIB)];
            let [original, memory] = [Bytes(60 * MIB), Bytes(10 * MIB)];
            let compressed = Some(Compressed { original, memory, behind: Some(held), ..Compressed::default() });
            step.load.as_mut().unwrap().areas = vec![AreaSeen { compressed, ..AreaSeen::default() }];
            why(step)
        };
        assert!(backed(50).starts_with("the disk behind it holds most: 50 MiB there, 10 MiB in 10 MiB of RAM"));
        assert!(backed(20).contains("40 MiB in 10 MiB of RAM beside the limit, 20 MiB on the disk behind it"));
        let zswap = |cached: u64, read: u64| {
            let mut step = touched("zswap+sda", 6400);
            moved(&mut step, &[("pswpin", read), ("pswpout", 0), ("zswpin", cached)]);
            why(step)
        };
        assert!(zswap(9_900, 100).contains("zswap answers 99 %"), "{}", zswap(9_900, 100));
        // Bug: what zswap answered was taken for a part of what was swapped in.
        assert!(!zswap(10_000, 9_000).contains("zswap answers"), "{}", zswap(10_000, 9_000));
        let mut random = touched("sda", 6400);
        random.job.order = Order::Uniform;
        assert!(why(random).contains("3,200 faults a second of 100 µs"), "single pages");
    }

    #[test]
    fn visits_are_summed_up_by_their_median() {
        let visit = |milliseconds: u64| {
            let mut step = touched("sda", 100);
            step.elapsed = Nanos::from_millis(milliseconds);
            step
        };
        let row = &rows([visit(2000), visit(1000), visit(8000)])[0];
        assert_eq!((row.visits, row.passes_per_s.clone()), (3, Known::Is(1.0)));
        let (least, most) = row.range_mbps.unwrap();
        assert!((most / least - 8.0).abs() < 1e-9);
        assert!(load_headline(&[]).is_none());
        assert_eq!(load_headline(&rows([visit(1000)])).unwrap(), "On sda a process gets at 210 MB/s of its memory.");
    }
}
