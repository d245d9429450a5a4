//! What a language model under pressure says about its tiers: a row for each, over all its visits, the bound that the tier's disk
//! sets, and why the row is as it is in one sentence.

use crate::curve::{Memory, Unit, memory};
use crate::findings::times;
use crate::load::{READAHEAD_ORDER, best_watched, by_tier, cpu, disk, unmeasured};
use crate::model::{RunView, StepView};
use basics::decoding::Generated;
use basics::job::Engine;
use basics::pressure::Load;
use basics::stats::median;
use basics::units::significant;
use basics::{Bytes, FailKind, Known, Nanos, Why};
use observe::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A model that reads less of itself than this for each token fits: what is left is chance and the runner's own pages.
const FITS: f64 = 0.01;
/// A runner of mapped weights that holds more than this part of them in memory of its own has copied them there.
const COPIED: f64 = 0.5;
/// Where somebody waits for a page or a disk for more of the time than this, per cent, it is not the processors alone.
const WAITED: f64 = 30.0;
/// Busy for more of the time than this, the processors are what a token waits for.
const BUSY: f64 = 85.0;

/// A tier under a language model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TokenRow {
    /// The tier as it was asked for.
    pub tier: String,
    /// The model.
    pub model: String,
    /// From the start of loading to the last token, s; the median of the visits, as all that follows.
    pub total_s: Known<f64>,
    /// Until it could take a prompt, s.
    pub load_s: Known<f64>,
    /// Tokens a second after the first.
    pub tps: Known<f64>,
    /// From the prompt to the first token, s.
    pub ttft_s: Known<f64>,
    /// Tokens of the prompt that were computed in a second.
    pub prompt_tps: Known<f64>,
    /// Share of all processors' time that was used, per cent.
    pub cpu_percent: Known<f64>,
    /// Share of all processors' time that was idle with I/O under way, per cent.
    pub iowait_percent: Known<f64>,
    /// Major faults a second of the whole machine.
    pub faults_per_s: Known<f64>,
    /// Bytes that were read for each token: from swap, or from the file.
    pub read_per_token: Known<f64>,
    /// Bytes that each token touches.
    pub touched: Option<Bytes>,
    /// Tokens a second if what cannot be kept were read at the rate of plain sequential reading and nothing else took time.
    pub bound_tps: Known<f64>,
    /// `tps` of `bound_tps`.
    pub share_of_bound: Known<f64>,
    /// Plain sequential reading of the tier's disks, MB/s.
    pub disk_mbps: Known<f64>,
    /// Least and most of `tps`, where there was more than one visit.
    pub range_tps: Option<(f64, f64)>,
    /// Visits that came to their end.
    pub visits: usize,
    /// Why it is so.
    pub why: String,
    /// What other amounts of memory would bring, where that was asked for.
    pub memory: Option<Memory>,
}

/// What one visit gives, as far as it is known.
pub(crate) struct Visit {
    total: f64,
    load: f64,
    pub tps: f64,
    ttft: f64,
    prompt: Option<f64>,
    /// Shares of all processors' time, per cent, in use and waiting for I/O, from the load's begin on: what the first article
    /// tabulates.
    cpu: Option<(f64, f64)>,
    /// Share of all processors' time, per cent, in use while tokens were made.
    busy_machine: Option<f64>,
    /// Share of its threads' time, per cent, that they spent on the weights.
    busy: Option<f64>,
    /// Share of the time, per cent, in which somebody waited for memory or a disk.
    waited: Option<f64>,
    faults: Option<f64>,
    /// Bytes for each token.
    pub read: Option<f64>,
    /// Of what was read, the share that compressed memory answered.
    zswap: Option<f64>,
}

/// The rows of a run, in the order of its tiers; empty where no model made tokens.
pub fn token_rows(run: &RunView<'_>) -> Vec<TokenRow> {
    let decoded = by_tier(run, Engine::Decode).map(|(tier, steps)| {
        let model = run.parameters.get("model").map_or("", String::as_str);
        row(model, tier, &steps)
    });
    let served = by_tier(run, Engine::Served).flat_map(|(tier, steps)| {
        // Each step is named by its model.
        let mut models: Vec<&str> = Vec::new();
        for step in &steps {
            if !models.contains(&step.name) {
                models.push(step.name);
            }
        }
        let of = move |model: &str| {
            let steps: Vec<_> = steps.iter().filter(|step| step.name == model).copied().collect();
            row(model, tier, &steps)
        };
        models.into_iter().map(of).collect::<Vec<_>>()
    });
    decoded.chain(served).collect()
}

/// The answer in one sentence: the fastest tier and the slowest, and how far they are apart.
pub fn token_headline(rows: &[TokenRow]) -> Option<String> {
    let mut measured: Vec<(&TokenRow, f64)> = rows.iter().filter_map(|row| Some((row, *row.tps.get()?))).collect();
    measured.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (best, most) = measured.first()?;
    // Beside it the slowest tier of the same model: another model is another matter.
    let same = || measured.iter().filter(|(row, _)| row.model == best.model);
    let (worst, least) = same().next_back()?;
    let first = format!("On {} {} makes {} tokens a second", best.tier, best.model, significant(*most));
    Some(if same().count() > 1 && *least > 0.0 {
        format!("{first}, on {} {}: {} times less.", worst.tier, significant(*least), times(most / least))
    } else {
        format!("{first}.")
    })
}

impl Visit {
    pub(crate) fn of(step: &StepView<'_>, load: &Load, generated: &Generated) -> Option<Self> {
        let (first, last) = generated.tokens.first().zip(generated.tokens.last())?;
        let tps = generated.tps()?;
        // From the first token on: what a prompt reads, and writes, is another matter. Where that was too short to be looked at
        // twice, all of it.
        let begun = step.samples.first().map_or(Nanos(0), |sample| sample.at);
        let after = || step.samples.iter().filter(|sample| sample.at >= begun + *first);
        let whole = || step.samples.first().zip(step.samples.last());
        let later = |pair: &(&&Sample, &&Sample)| pair.1.at > pair.0.at;
        let ends = after().next().zip(after().next_back()).filter(later).or_else(|| whole().filter(later));
        let loading = step.before.iter().find(|sample| sample.at + generated.load >= begun);
        let whole_run = loading.or(step.samples.first()).zip(step.samples.last()).filter(later);
        let seconds = ends.map(|(a, b)| (b.at - a.at).secs());
        let moved = |key: &str| {
            let (a, b) = ends?;
            Some(b.vm.get(key)?.saturating_sub(*a.vm.get(key)?) as f64)
        };
        let read = match ends {
            Some((a, b)) => weights_read(load, generated, a, b),
            None => never_swapped(generated).then_some(0.0),
        };
        let zswap = moved("zswpin").zip(moved("pswpin")).filter(|(cached, disk)| cached + disk > 0.0);
        Some(Visit {
            total: (generated.load + *last).secs(),
            load: generated.load.secs(),
            tps,
            ttft: first.secs(),
            prompt: generated
                .prompt_time
                .filter(|time| time.0 > 0 && generated.prompt > 0)
                .map(|time| f64::from(generated.prompt) / time.secs()),
            cpu: whole_run.and_then(|(a, b)| cpu(a, b)),
            busy_machine: ends.and_then(|(a, b)| Some(cpu(a, b)?.0)),
            // Until the end: a token that was not made in time was worked on as well.
            busy: generated
                .busy
                .map(|busy| 100.0 * busy.secs() / step.elapsed.max(*last).secs() / f64::from(generated.threads.max(1))),
            waited: ends.zip(seconds).and_then(|((a, b), seconds)| {
                let some = |name: &str| {
                    let of = |sample: &Sample| sample.pressure_us.get(name).map(|(some, _)| *some);
                    Some(of(b)?.saturating_sub(of(a)?) as f64 / 1e4 / seconds)
                };
                some("memory").zip(some("io")).map(|(memory, io)| memory.max(io))
            }),
            faults: moved("pgmajfault").zip(seconds).map(|(faults, seconds)| faults / seconds),
            read: read.and_then(|bytes| if bytes > 0.0 { Some(bytes / seconds? / tps) } else { Some(0.0) }),
            zswap: zswap.map(|(cached, disk)| cached / (cached + disk)),
        })
    }
}

/// The weights are its own and nothing of it ever lay in swap, as far as somebody looked.
fn never_swapped(generated: &Generated) -> bool {
    !generated.mapped && !generated.lay.is_empty() && generated.lay.iter().all(|lay| lay.swap.0 == 0)
}

/// Bytes of a model that were read between two looks: of mapped weights what the tier's disks gave, or all disks where the one
/// below the file is not known; else what came out of swap, zswap included. None where that was not seen.
pub fn weights_read(load: &Load, generated: &Generated, a: &Sample, b: &Sample) -> Option<f64> {
    let moved = |key: &str| Some(b.vm.get(key)?.saturating_sub(*a.vm.get(key)?) as f64);
    if never_swapped(generated) {
        // The kernel counts all that the machine swaps; none of it was ours.
        return Some(0.0);
    }
    if !generated.mapped {
        // What zswap answers is not counted as swapped in, and is not counted at all where there is no zswap.
        return Some((moved("pswpin")? + moved("zswpin").unwrap_or(0.0)) * load.page.0 as f64);
    }
    if elsewhere(load, generated) {
        return moved("pgpgin").map(|kib| kib * 1024.0);
    }
    let disks: BTreeSet<&str> = load.areas.iter().filter_map(|area| area.disk.as_deref()).collect();
    let given = |disk: &&str| {
        let of = |sample: &Sample| sample.disks.get(*disk).map(|disk| disk.read_bytes);
        Some(of(b)?.saturating_sub(of(a)?) as f64)
    };
    let each: Option<Vec<f64>> = disks.iter().map(given).collect();
    each.filter(|each| !each.is_empty()).map(|each| each.iter().sum())
}

/// The weights are mapped from a file that lies on none of the tier's disks: areas that are swapped to do not hold it.
fn elsewhere(load: &Load, generated: &Generated) -> bool {
    generated.mapped && load.areas.iter().all(|area| area.used.is_some())
}

fn row(model: &str, tier: &str, steps: &[&StepView<'_>]) -> TokenRow {
    let whole = || {
        let steps = steps.iter().filter(|step| step.is_whole());
        steps.filter_map(|step| Some((*step, (step.load?, step.load?.generated.as_deref()?))))
    };
    let visits: Vec<Visit> = whole().filter_map(|(step, (load, generated))| Visit::of(step, load, generated)).collect();
    let lack = || {
        let few = whole().next().is_some();
        Why::NotMeasured(if few { "fewer than two tokens" } else { unmeasured(steps) }.to_owned())
    };
    let middle = |pick: &dyn Fn(&Visit) -> Option<f64>| {
        let all: Vec<f64> = visits.iter().filter_map(pick).collect();
        median(&all).map_or_else(|| Known::Unknown(lack()), Known::Is)
    };
    let rates = || visits.iter().map(|visit| visit.tps);
    let range = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let disk_mbps = whole().find_map(|(_, (load, _))| disk(load)).map_or_else(Known::default, Known::Is);
    let touched = whole().find_map(|(_, (_, generated))| generated.touched);
    let tps = middle(&|visit| Some(visit.tps));
    let lacking = whole().find_map(|(_, (load, generated))| lacking(load, generated));
    let bound = match (disk_mbps.get(), lacking) {
        _ if whole().any(|(_, (load, generated))| elsewhere(load, generated)) => {
            Known::Unknown(Why::NotMeasured("the disk of the model's file was not measured".to_owned()))
        }
        (Some(mbps), Some(bytes)) if bytes > 0.0 => Known::Is(mbps * 1e6 / bytes),
        (_, Some(bytes)) if bytes <= 0.0 => Known::Unknown(Why::NotMeasured("all of it can be kept".to_owned())),
        _ => Known::Unknown(lack()),
    };
    let share = tps.get().zip(bound.get()).map(|(tps, bound)| tps / bound);
    let mut row = TokenRow {
        tier: tier.to_owned(),
        model: model.to_owned(),
        total_s: middle(&|visit| Some(visit.total)),
        load_s: middle(&|visit| Some(visit.load)),
        ttft_s: middle(&|visit| Some(visit.ttft)),
        prompt_tps: middle(&|visit| visit.prompt),
        cpu_percent: middle(&|visit| Some(visit.cpu?.0)),
        iowait_percent: middle(&|visit| Some(visit.cpu?.1)),
        faults_per_s: middle(&|visit| visit.faults),
        read_per_token: middle(&|visit| visit.read),
        touched,
        share_of_bound: share.map_or_else(|| Known::Unknown(lack()), Known::Is),
        bound_tps: bound,
        disk_mbps,
        range_tps: (visits.len() > 1).then_some(range),
        visits: visits.len(),
        tps,
        why: String::new(),
        memory: best_watched(steps).map(|(step, watched)| {
            let load = step.load.and_then(|load| Some((load, load.generated.as_deref()?)));
            let visit = load.and_then(|(load, generated)| Visit::of(step, load, generated));
            memory(watched, visit.map_or(0.0, |visit| visit.tps), Unit::Tokens)
        }),
    };
    let busy = middle(&|visit| visit.busy).get().copied();
    // A runner's threads turn round while they wait for each other: busy as they look, one of them may wait for a page.
    let waited = middle(&|visit| visit.waited).get().copied();
    let turning = busy.is_none() && waited.is_none_or(|waited| waited > WAITED);
    let busy = busy.or_else(|| middle(&|visit| visit.busy_machine).get().copied());
    row.why = why(&row, steps, (busy, turning), middle(&|visit| visit.zswap).get().copied());
    row
}

/// Bytes of what a token touches that memory has no room for; none where nothing says how much room there is.
fn lacking(load: &Load, generated: &Generated) -> Option<f64> {
    let kept = load.left?.0.saturating_sub(generated.besides.map_or(0, |bytes| bytes.0));
    Some(generated.touched?.0 as f64 - kept as f64)
}

/// Why the row is as it is.
fn why(row: &TokenRow, steps: &[&StepView<'_>], (busy, turning): (Option<f64>, bool), zswap: Option<f64>) -> String {
    let seen = steps.iter().rev().filter(|step| step.is_whole()).find_map(|step| step.load);
    let Some((load, generated)) = seen.and_then(|load| Some((load, load.generated.as_deref()?))) else {
        let failed = steps.iter().find_map(|step| step.failed);
        return match failed {
            Some((FailKind::NoRoom, sentence)) => format!("does not fit: {sentence}"),
            Some((_, sentence)) => sentence.to_owned(),
            None => unmeasured(steps).to_owned(),
        };
    };
    let Some(read) = row.read_per_token.get().copied() else {
        return "what was read for each token is unknown".to_owned();
    };
    let touched = row.touched.map(|bytes| bytes.0 as f64);
    let share = touched.map(|touched| read / touched);
    let busy = busy.filter(|busy| *busy > BUSY).map(significant);
    if share.map_or(read < 1e6, |share| share < FITS) {
        let rate = touched.zip(row.tps.get().copied()).map(|(bytes, tps)| bytes * tps / 1e9);
        let rate = rate.map_or_else(String::new, |rate| format!(", {} GB of weights a second", significant(rate)));
        return match busy {
            Some(busy) => format!("fits: the tier does not matter; the processors are the limit, {busy} % busy{rate}"),
            None => format!("fits: the tier does not matter{rate}"),
        };
    }
    let bytes = Bytes(read as u64);
    // What unpacks pages is busy too.
    let unpacks = compressed(load) || zswap.is_some_and(|share| share > 0.5);
    if let Some(busy) = busy.filter(|_| !unpacks && !turning) {
        return format!("the processors are the limit, {busy} % busy; {bytes} are read for each token beside");
    }
    let of_disk = row.disk_mbps.get().zip(row.tps.get()).map(|(disk, tps)| 100.0 * read * tps / 1e6 / disk);
    let rate = of_disk.map_or_else(String::new, |share| format!(" at {} % of the disk's rate", significant(share)));
    let own = generated.lay.iter().map(|lay| lay.anonymous.0 + lay.swap.0).max().unwrap_or(0);
    let own = own.saturating_sub(generated.room.0);
    if generated.mapped && touched.is_some_and(|touched| own as f64 > touched * COPIED) {
        return format!(
            "the runner repacks: beside the mapped file it holds {} of its own, which go through swap{rate}; every token reads {bytes}",
            Bytes(own)
        );
    }
    if generated.mapped {
        let rate = if elsewhere(load, generated) { "" } else { rate.as_str() };
        return format!(
            "clean file pages are dropped and read again (nothing is written): every token reads {bytes}{rate}"
        );
    }
    if compressed(load) {
        return format!(
            "compressed memory is taken from what should hold the weights: every token unpacks {bytes} of zram"
        );
    }
    if let Some(share) = zswap.filter(|share| *share > 0.5) {
        return format!(
            "zswap answers {} % of what is read, and has its memory from what should hold the weights: {bytes} for each token",
            significant(100.0 * share)
        );
    }
    let cluster = load.settings.get("/proc/sys/vm/page-cluster").and_then(|pages| pages.parse::<u32>().ok());
    // Near the disk's own rate it is the disk.
    let ends = cluster
        .filter(|_| of_disk.is_some_and(|share| share < 50.0))
        .map(|pages| format!(" because readahead ends at {}", Bytes(load.page.0 << pages.min(READAHEAD_ORDER))));
    let thrash = if share.is_some_and(|share| share > 0.9) { "thrash: " } else { "" };
    format!("{thrash}anonymous weights go through swap{rate}{}: every token reads {bytes}", ends.unwrap_or_default())
}

fn compressed(load: &Load) -> bool {
    load.areas.iter().any(|area| area.compressed.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::decoding::Lay;
    use basics::pressure::{AreaSeen, Compressed};
    use basics::units::MIB;
    use basics::{Interval, Job, Side};
    use observe::Disk;

    /// A model of 100 MiB whose five tokens came a second each, the first after two, with room for 60 MiB of it.
    fn decoded(tier: &str, busy_s: u64) -> Step {
        let mut step = Step::new("decode", tier, Job { engine: Engine::Decode, direct: false, ..Job::default() });
        let second = |n: u64| Nanos(n * 1_000_000_000);
        let lay = Lay { at: second(1), anonymous: Bytes(60 * MIB), file: Bytes(0), swap: Bytes(40 * MIB) };
        let generated = Generated {
            load: second(3),
            tokens: (2..7).map(second).collect(),
            touched: Some(Bytes(100 * MIB)),
            besides: Some(Bytes(0)),
            threads: 2,
            busy: Some(second(busy_s)),
            lay: vec![lay],
            ..Generated::default()
        };
        let sequential = Some((Bytes(400_000_000), second(1)));
        let area = AreaSeen { disk: Some("sda".to_owned()), sequential, ..AreaSeen::default() };
        let mut load = Load { page: Bytes(4096), left: Some(Bytes(60 * MIB)), areas: vec![area], ..Load::default() };
        load.settings.insert("/proc/sys/vm/page-cluster".to_owned(), "3".to_owned());
        load.generated = Some(Box::new(generated));
        step.load = Some(load);
        let mut read = Side { bytes: 500 * MIB, ..Side::default() };
        read.latency.record_n(second(1), 5);
        step.read = read.clone();
        step.elapsed = second(6);
        step.intervals = vec![Interval { end: step.elapsed, read, ..Interval::default() }];
        step
    }

    /// Counters that move by so much a second, from the first token on.
    fn moving(step: &mut Step, counters: &[(&str, u64)]) {
        let at = |seconds: u64| Sample {
            at: Nanos(seconds * 1_000_000_000),
            vm: counters.iter().map(|(key, by)| ((*key).to_owned(), by * seconds.saturating_sub(2))).collect(),
            ..Sample::default()
        };
        step.samples = (0..7).map(at).collect();
    }

    fn row(step: Step) -> TokenRow {
        token_rows(&Run::default().steps([step]).view()).remove(0)
    }

    fn generated(step: &mut Step) -> &mut Generated {
        step.load.as_mut().unwrap().generated.as_mut().unwrap()
    }

    #[test]
    fn what_is_read_for_a_token_is_held_against_the_bound() {
        let mut step = decoded("sda", 1);
        moving(&mut step, &[("pswpin", 25_600), ("zswpin", 0), ("pgmajfault", 3000)]);
        let row = row(step);
        assert_eq!((row.tps, row.ttft_s, row.total_s), (Known::Is(1.0), Known::Is(2.0), Known::Is(9.0)));
        assert_eq!(row.read_per_token, Known::Is(100.0 * MIB as f64));
        let bound = 400e6 / (40.0 * MIB as f64);
        assert_eq!((row.bound_tps, row.share_of_bound), (Known::Is(bound), Known::Is(1.0 / bound)));
        assert_eq!(row.faults_per_s, Known::Is(3000.0));
        let why = "thrash: anonymous weights go through swap at 26.2 % of the disk's rate because readahead ends at 32 KiB: every token reads 100 MiB";
        assert_eq!(row.why, why);
    }

    #[test]
    fn processors_and_waiting_are_those_of_the_whole_run_loading_included() {
        let mut step = decoded("sda", 1);
        let at = |seconds: u64, busy: u64, idle: u64, waiting: u64| Sample {
            at: Nanos(seconds * 1_000_000_000),
            cpu_ticks: Some([busy, 0, 0, idle, waiting, 0, 0, 0]),
            ..Sample::default()
        };
        // Three seconds of loading that waited, five of tokens that were worked on.
        step.before = vec![at(0, 0, 0, 0), at(7, 0, 300, 0)];
        step.samples = vec![at(10, 0, 300, 300), at(15, 500, 300, 300)];
        let row = row(step);
        assert_eq!(row.iowait_percent, Known::Is(37.5), "from 7 s on, when it began to load");
        assert_eq!(row.cpu_percent, Known::Is(62.5));
    }

    #[test]
    fn every_situation_has_its_sentence() {
        let swapping = [("pswpin", 25_600), ("zswpin", 0)];
        let told = |busy: u64, counters: &[(&str, u64)], change: &dyn Fn(&mut Step)| {
            let mut step = decoded("sda", busy);
            moving(&mut step, counters);
            change(&mut step);
            row(step).why
        };
        let fits = told(1, &[("pswpin", 0), ("zswpin", 0)], &|_| {});
        assert!(fits.starts_with("fits: the tier does not matter, 0.105 GB of weights a second"), "{fits}");
        // Others may swap: what of ours was never there was not ours.
        let others = told(1, &swapping, &|step| generated(step).lay[0].swap = Bytes(0));
        assert!(others.starts_with("fits"), "{others}");
        let bound = told(12, &[("pswpin", 2560), ("zswpin", 0)], &|_| {});
        assert_eq!(bound, "the processors are the limit, 100 % busy; 10 MiB are read for each token beside");
        let zram = told(1, &swapping, &|step| {
            step.load.as_mut().unwrap().areas[0].compressed = Some(Compressed::default());
        });
        assert!(zram.starts_with("compressed memory is taken from what should hold the weights"), "{zram}");
        let zswap = told(1, &[("pswpin", 100), ("zswpin", 25_500)], &|_| {});
        assert!(zswap.starts_with("zswap answers 99.6 % of what is read"), "{zswap}");
        let mapped = |own: u64, room: u64| {
            told(1, &[("pgpgin", 102_400)], &|step| {
                step.load.as_mut().unwrap().areas.clear();
                let generated = generated(step);
                generated.mapped = true;
                generated.room = Bytes(room);
                generated.lay[0] = Lay { anonymous: Bytes(own), file: Bytes(60 * MIB), ..Lay::default() };
            })
        };
        assert!(mapped(MIB, 0).starts_with("clean file pages are dropped and read again (nothing is written)"));
        assert!(mapped(80 * MIB, 0).starts_with("the runner repacks: beside the mapped file it holds 80 MiB"));
        assert!(
            mapped(80 * MIB, 70 * MIB).starts_with("clean file pages"),
            "room for keys and values is no copy of weights"
        );
    }

    #[test]
    fn without_two_tokens_there_is_no_rate() {
        let mut step = decoded("sda", 1);
        generated(&mut step).tokens.truncate(1);
        let row = row(step);
        assert!(row.tps.is_unknown() && row.visits == 0, "{row:?}");
        assert_eq!(token_headline(&[row]), None);
    }

    fn looks(disks: &[(&str, u64)], counters: &[(&str, u64)]) -> (Sample, Sample) {
        let at = |times: u64| Sample {
            disks: disks
                .iter()
                .map(|(disk, bytes)| ((*disk).to_owned(), Disk { read_bytes: 5 + bytes * times, ..Disk::default() }))
                .collect(),
            vm: counters.iter().map(|(key, by)| ((*key).to_owned(), 7 + by * times)).collect(),
            ..Sample::default()
        };
        (at(0), at(1))
    }

    /// A disk that nobody looked at gave an unknown number of bytes, not none: the model would have been said to fit.
    #[test]
    fn what_was_read_is_told_from_what_is_not_known() {
        let area = |disk: &str| AreaSeen { disk: Some(disk.to_owned()), ..AreaSeen::default() };
        let load = Load { page: Bytes(4096), areas: vec![area("sda"), area("sda"), area("sdb")], ..Load::default() };
        let read = |mapped: bool, (a, b): (Sample, Sample)| {
            weights_read(&load, &Generated { mapped, ..Generated::default() }, &a, &b)
        };
        assert_eq!(read(true, looks(&[("sda", 300), ("sdb", 20), ("sdc", 9)], &[])), Some(320.0));
        assert_eq!(read(true, looks(&[("sda", 300)], &[("pswpin", 9)])), None);
        assert_eq!(read(false, looks(&[("sda", 300)], &[("pswpin", 2), ("zswpin", 1)])), Some(3.0 * 4096.0));
        assert_eq!(read(false, looks(&[], &[("pswpin", 2)])), Some(2.0 * 4096.0));
        assert_eq!(read(false, looks(&[("sda", 300)], &[])), None);
    }
}
