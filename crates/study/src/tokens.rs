//! What a language model under pressure says about its tiers: a row for each, over all its visits, the bound that the tier's disk
//! sets, and why the row is as it is in one sentence.

use crate::findings::times;
use crate::load::{by_tier, cpu, disk, unmeasured};
use crate::model::{RunView, StepView};
use basics::decoding::Generated;
use basics::job::Engine;
use basics::pressure::Load;
use basics::stats::median;
use basics::units::significant;
use basics::{Bytes, FailKind, Known, Why};
use serde::{Deserialize, Serialize};

/// A model that reads less of itself than this for each token fits: what is left is chance and the runner's own pages.
const FITS: f64 = 0.01;
/// A runner of mapped weights that holds more than this part of them in memory of its own has copied them there.
const COPIED: f64 = 0.5;
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
}

/// What one visit gives, as far as it is known.
pub(crate) struct Visit {
    total: f64,
    load: f64,
    pub tps: f64,
    ttft: f64,
    cpu: Option<(f64, f64)>,
    /// Share of its threads' time, per cent, that they spent on the weights.
    busy: Option<f64>,
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
    let ((best, most), (worst, least)) = (measured.first()?, measured.last()?);
    let first = format!("On {} {} makes {} tokens a second", best.tier, best.model, significant(*most));
    Some(if measured.len() > 1 && *least > 0.0 {
        format!("{first}, on {} {}: {} times less.", worst.tier, significant(*least), times(most / least))
    } else {
        format!("{first}.")
    })
}

impl Visit {
    pub(crate) fn of(step: &StepView<'_>, load: &Load, generated: &Generated) -> Option<Self> {
        let (first, last) = generated.tokens.first().zip(generated.tokens.last())?;
        let tps = generated.tps()?;
        // From the first token on: what a prompt reads, and writes, is another matter.
        let begun = step.samples.first()?.at;
        let after = || step.samples.iter().filter(|sample| sample.at >= begun + *first);
        let ends = after().next().zip(after().next_back()).filter(|(a, b)| b.at > a.at);
        let seconds = ends.map(|(a, b)| (b.at - a.at).secs());
        let moved = |key: &str| {
            let (a, b) = ends?;
            Some(b.vm.get(key)?.saturating_sub(*a.vm.get(key)?) as f64)
        };
        let page = load.page.0 as f64;
        // The kernel counts all that the machine swaps: where nothing of ours ever lay in swap it was not ours.
        let swapped = generated.lay.is_empty() || generated.lay.iter().any(|lay| lay.swap.0 > 0);
        let read = match generated.mapped {
            false if !swapped => Some(0.0),
            false => moved("pswpin").map(|pages| pages * page + moved("zswpin").unwrap_or(0.0) * page),
            true => ends.map(|(a, b)| {
                let disks = load.areas.iter().filter_map(|area| area.disk.as_deref());
                disks.map(|disk| moved_from(a, b, disk)).sum()
            }),
        };
        let zswap = moved("zswpin").zip(moved("pswpin")).filter(|(cached, disk)| cached + disk > 0.0);
        Some(Visit {
            total: (generated.load + *last).secs(),
            load: generated.load.secs(),
            tps,
            ttft: first.secs(),
            cpu: ends.and_then(|(a, b)| cpu(a, b)),
            busy: generated.busy.map(|busy| 100.0 * busy.secs() / last.secs() / f64::from(generated.threads.max(1))),
            faults: moved("pgmajfault").zip(seconds).map(|(faults, seconds)| faults / seconds),
            read: read.zip(seconds).map(|(bytes, seconds)| bytes / seconds / tps),
            zswap: zswap.map(|(cached, disk)| cached / (cached + disk)),
        })
    }
}

/// Bytes that a disk gave between two looks.
fn moved_from(a: &observe::Sample, b: &observe::Sample, disk: &str) -> f64 {
    let of = |sample: &observe::Sample| sample.disks.get(disk).map_or(0, |disk| disk.read_bytes);
    of(b).saturating_sub(of(a)) as f64
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
    };
    let busy = middle(&|visit| visit.busy.or(Some(visit.cpu?.0))).get().copied();
    row.why = why(&row, steps, busy, middle(&|visit| visit.zswap).get().copied());
    row
}

/// Bytes of what a token touches that memory has no room for; none where nothing says how much room there is.
fn lacking(load: &Load, generated: &Generated) -> Option<f64> {
    let kept = load.left?.0.saturating_sub(generated.besides.map_or(0, |bytes| bytes.0));
    Some(generated.touched?.0 as f64 - kept as f64)
}

/// Why the row is as it is.
fn why(row: &TokenRow, steps: &[&StepView<'_>], busy: Option<f64>, zswap: Option<f64>) -> String {
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
    if let Some(busy) = busy.filter(|_| !compressed(load)) {
        return format!("the processors are the limit, {busy} % busy; {bytes} are read for each token beside");
    }
    let of_disk = row.disk_mbps.get().zip(row.tps.get()).map(|(disk, tps)| 100.0 * read * tps / 1e6 / disk);
    let rate = of_disk.map_or_else(String::new, |share| format!(" at {} % of the disk's rate", significant(share)));
    let own = generated.lay.iter().map(|lay| lay.anonymous.0 + lay.swap.0).max().unwrap_or(0);
    if generated.mapped && touched.is_some_and(|touched| own as f64 > touched * COPIED) {
        return format!(
            "the runner repacks: beside the mapped file it holds {} of its own, which go through swap{rate}; every token reads {bytes}",
            Bytes(own)
        );
    }
    if generated.mapped {
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
    let ends = cluster.map(|pages| format!(" because readahead ends at {}", Bytes(load.page.0 << pages.min(5))));
    let thrash = if share.is_some_and(|share| share > 0.9) { "thrash: " } else { "" };
    format!("{thrash}anonymous weights go through swap{rate}{}: every token reads {bytes}", ends.unwrap_or_default())
}

fn compressed(load: &Load) -> bool {
    load.areas.iter().any(|area| area.compressed.is_some())
}
