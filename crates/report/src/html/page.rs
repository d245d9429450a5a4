//! The words, tables and links of the page, ready for the template: every sentence is made here or in `study`, the
//! template only places them.

use super::Entry;
use super::pipe::{self, Pipe};
use crate::terminal::{Style, bus, engine_words, purpose, purposes};
use crate::words;
use basics::units::significant;
use basics::{Known, Nanos, Why};
use machine::{Machine, Tier, TierKind};
use record::{Origin, Record, State, StepRecord};
use serde::Serialize;
use study::{CheckStudy, Finding, LatencySummary, StepSummary, TierStudy};

/// Colours that a colour-blind reader can tell apart; further tiers share them and differ by their mark.
const COLORS: usize = 6;

/// Everything that the template shows.
#[derive(Serialize)]
pub struct Page {
    title: String,
    headline: String,
    machine: String,
    when: String,
    /// What went wrong with a run, each a sentence.
    alarms: Vec<String>,
    /// One for each run of `check`.
    overviews: Vec<Overview>,
    pub ladder: Vec<Rung>,
    pipes: Vec<Pipe>,
    findings: Vec<FindingText>,
    /// One for each run of `check` that can be judged.
    good_for: Vec<Matrix>,
    runs: Vec<RunText>,
    /// False: nothing was measured, so there is nothing to draw.
    pub has_charts: bool,
    #[serde(skip)]
    colors: Vec<(String, String, usize)>,
}

#[derive(Serialize)]
struct Overview {
    /// Which run and what it found, where the page is of several.
    heading: Option<String>,
    page: String,
    swap: String,
    rows: Vec<OverviewRow>,
}

#[derive(Serialize)]
struct OverviewRow {
    name: String,
    model: String,
    color: usize,
    bus: String,
    read: Cell,
    write: Cell,
    iops: Cell,
    p50: Cell,
    p99: Cell,
    share: Cell,
    /// For the bar, 0 to 100.
    percent: Option<f64>,
}

/// A figure, or why there is none.
#[derive(Serialize)]
struct Cell {
    text: String,
    missing: bool,
}

/// A measured tier on the ladder.
#[derive(Serialize)]
pub struct Rung {
    name: String,
    color: usize,
    mbps: f64,
    page_us: Option<f64>,
    swap_us: Option<f64>,
}

#[derive(Serialize)]
struct FindingText {
    /// The run in words, where the page is of several.
    of_run: Option<String>,
    tier: Option<String>,
    color: Option<usize>,
    text: String,
    advice: Option<String>,
    gain: Option<String>,
    /// The run that the steps are of.
    run: String,
    evidence: Vec<Evidence>,
    /// What would bury the next finding if it stood open.
    more: Vec<Evidence>,
}

#[derive(Serialize)]
struct Evidence {
    text: String,
    /// The step that the sentence points at.
    step: Option<u32>,
}

#[derive(Serialize)]
struct Matrix {
    /// Which run, where the page is of several.
    heading: Option<String>,
    purposes: Vec<String>,
    rows: Vec<MatrixRow>,
}

#[derive(Serialize)]
struct MatrixRow {
    tier: String,
    color: usize,
    cells: Vec<MatrixCell>,
}

#[derive(Serialize)]
struct MatrixCell {
    purpose: String,
    verdict: String,
    why: String,
}

#[derive(Serialize)]
struct RunText {
    id: String,
    command: String,
    facts: Vec<(String, String)>,
    notes: Vec<String>,
    left_out: Vec<String>,
    machine: Vec<(String, String)>,
    /// Which engine ran in which steps, and why.
    engines: Vec<(String, String)>,
    resembles: Vec<Likeness>,
    steps: Vec<StepText>,
    /// What another program printed, in place of steps.
    quoted: Vec<(String, String)>,
}

#[derive(Serialize)]
struct Likeness {
    tier: String,
    name: String,
    source: String,
    distance: String,
    rows: Vec<(String, String, String)>,
}

#[derive(Serialize)]
struct StepText {
    index: u32,
    name: String,
    tier: String,
    job: String,
    engine: &'static str,
    ended: String,
    sides: Vec<SideText>,
    cpu: Option<String>,
    notes: Vec<String>,
    failed: Option<String>,
}

#[derive(Serialize)]
struct SideText {
    way: &'static str,
    iops: String,
    noise: String,
    mbps: String,
    mean: String,
    p50: String,
    p99: String,
    p999: String,
    max: String,
}

impl Page {
    /// The colour of a tier or target of a run; the first for one that is unknown.
    pub fn color(&self, run: &str, subject: &str) -> usize {
        color(&self.colors, run, subject)
    }
}

fn color(colors: &[(String, String, usize)], run: &str, subject: &str) -> usize {
    colors.iter().find(|(r, s, _)| r == run && s == subject).map_or(0, |(_, _, color)| *color)
}

/// Makes the page of one or several runs.
pub fn page(entries: &[Entry<'_>]) -> Page {
    let records: Vec<&Record> = entries.iter().map(|entry| entry.record).collect();
    let colors = colors(&records);
    let mut page = Page {
        title: title(&records),
        headline: headline(entries),
        machine: String::new(),
        when: String::new(),
        alarms: alarms(&records),
        overviews: Vec::new(),
        ladder: Vec::new(),
        pipes: Vec::new(),
        findings: Vec::new(),
        good_for: Vec::new(),
        runs: Vec::new(),
        has_charts: records.iter().any(|record| record.steps.iter().any(measured)),
        colors: Vec::new(),
    };
    if let Some(first) = records.first() {
        // Whose machine quoted figures are of is not known.
        if first.run.quoted.is_none() {
            page.machine = words::machine(&first.run.machine);
        }
        page.when = when(first);
    }
    for entry in entries {
        let record = entry.record;
        let color_of = |tier: &str| color(&colors, &record.run.id, tier);
        // Two runs may have tiers of the same name.
        let of_run = (entries.len() > 1).then(|| format!("Run {}", record.run.id));
        let label = |tier: &str| words::of_run(tier, &record.run.id, entries.len() > 1);
        page.runs.push(run_text(entry));
        page.pipes.extend(pipes(entry, &color_of, &label));
        let Some(study) = &entry.study else { continue };
        page.ladder.extend(study.tiers.iter().filter_map(|tier| rung(tier, label(&tier.name), color_of(&tier.name))));
        let text = |finding| FindingText { of_run: of_run.clone(), ..finding_text(finding, &record.run.id, &color_of) };
        page.findings.extend(study.each_finding().into_iter().map(text));
        let heading = of_run.as_ref().map(|run| match study.headline.as_str() {
            "" => format!("{run}, {}", words::machine(&record.run.machine)),
            headline => format!("{run}: {headline}"),
        });
        page.overviews.push(Overview { heading, ..overview(record, study, &color_of) });
        page.good_for.extend(matrix(study, &color_of).map(|matrix| Matrix { heading: of_run, ..matrix }));
    }
    page.colors = colors;
    page
}

fn measured(step: &StepRecord) -> bool {
    step.read.operations() + step.write.operations() > 0
}

fn title(records: &[&Record]) -> String {
    let names: Vec<String> = records.iter().map(|r| format!("{} {}", r.run.plan.method, r.run.id)).collect();
    format!("tiermark: {}", names.join(", "))
}

fn headline(entries: &[Entry<'_>]) -> String {
    if let Some(study) =
        entries.iter().filter_map(|entry| entry.study.as_ref()).find(|study| !study.headline.is_empty())
    {
        return study.headline.clone();
    }
    let Some(first) = entries.first() else { return "No run was given.".to_owned() };
    let mut whole = first.steps.iter().zip(&first.record.steps).filter(|(_, step)| !words::partial(step));
    let said = whole.find_map(|(summary, step)| {
        let (way, side) = match (&summary.read, &summary.write) {
            (Some(read), _) => ("read", read),
            (None, write) => ("write", write.as_ref()?),
        };
        let p99 = side.lat.percentile(99.0).map(|p99| format!(", p99 {p99}")).unwrap_or_default();
        let subject = step.tier.as_deref().unwrap_or(&step.target);
        let (iops, mbps) = (significant(side.iops), significant(side.mbps));
        Some(format!("{subject}: {iops} {way} operations a second, {mbps} MB/s{p99}."))
    });
    let run = &first.record.run;
    if run.quoted.is_some() {
        return format!("{} of {}, as it was printed.", run.plan.method, run.target);
    }
    said.unwrap_or_else(|| format!("{} on {} measured nothing to its end.", run.plan.method, run.target))
}

fn when(record: &Record) -> String {
    let started = words::minute(record.run.started, &jiff::tz::TimeZone::UTC);
    let took =
        words::lasted(&record.run).map(|lasted| format!(", took {}", words::duration(lasted))).unwrap_or_default();
    format!("{started} UTC{took}, run {}", record.run.id)
}

fn alarms(records: &[&Record]) -> Vec<String> {
    let mut out = Vec::new();
    for record in records {
        let id = &record.run.id;
        match &record.run.state {
            State::Done => {}
            State::Running => out
                .push(format!("Run {id} was still running when this was written; it shows the steps that had ended.")),
            State::Interrupted | State::NotRun(_) => {
                out.push(format!("Run {id} was interrupted; it shows what was measured until then."))
            }
            State::Failed(why) => out.push(format!("Run {id} failed: {why}")),
        }
        match &record.run.origin {
            Origin::Measured => {}
            Origin::Simulated(profile) => {
                out.push(format!("Run {id} is simulated from the profile {profile}; its curves are dashed."))
            }
            Origin::Quoted(source) => {
                out.push(format!("The figures of run {id} are quoted from {source}; they are in the table below."))
            }
        }
    }
    out
}

/// Each tier keeps its kind's colour where it is free, so that reports of several machines resemble each other.
fn colors(records: &[&Record]) -> Vec<(String, String, usize)> {
    let mut out: Vec<(String, String, usize)> = Vec::new();
    for record in records {
        let id = &record.run.id;
        let named = record.run.machine.tiers.iter().map(|tier| tier.name.as_str());
        let measured: Vec<&str> =
            record.steps.iter().map(|step| step.tier.as_deref().unwrap_or(&step.target)).collect();
        // Measured ones first: they must not lose their colour to a tier that only stands in the machine.
        for subject in measured.iter().copied().chain(named) {
            if out.iter().any(|(r, s, _)| r == id && s == subject) {
                continue;
            }
            let wanted = record.run.machine.tiers.iter().find(|tier| tier.name == subject).map_or(0, preferred);
            let free = |color: &usize| !out.iter().any(|(_, _, used)| used == color);
            let color = Some(wanted).filter(free).or_else(|| (0..COLORS).find(free)).unwrap_or(out.len());
            out.push((id.clone(), subject.to_owned(), color));
        }
    }
    out
}

fn preferred(tier: &Tier) -> usize {
    match tier.kind {
        TierKind::Nvme | TierKind::Virtio => 0,
        TierKind::Usb | TierKind::Sata => 1,
        TierKind::Sd | TierKind::Emmc => 2,
        TierKind::Ram => 3,
        TierKind::Zram => 4,
        TierKind::Loop | TierKind::Dm | TierKind::Md | TierKind::FileSystem | TierKind::Block => 5,
    }
}

fn missing(why: &Why) -> Cell {
    let text = if *why == Why::NotReported { "–".to_owned() } else { why.to_string() };
    Cell { text, missing: true }
}

fn cell<T>(value: &Known<T>, show: impl FnOnce(&T) -> String) -> Cell {
    match value {
        Known::Is(value) => Cell { text: show(value), missing: false },
        Known::Unknown(why) => missing(why),
    }
}

fn percentile(latency: &Known<LatencySummary>, percent: f64) -> Cell {
    match latency {
        Known::Is(latency) => match (latency.percentile(percent), latency.mean.get()) {
            (Some(value), _) => Cell { text: value.to_string(), missing: false },
            // Timed in batches: one mean stands for all percentiles.
            (None, Some(mean)) if percent == 50.0 => Cell { text: format!("mean {mean}"), missing: false },
            (None, Some(_)) => Cell { text: "timed in batches".to_owned(), missing: true },
            (None, None) => Cell { text: "too short".to_owned(), missing: true },
        },
        Known::Unknown(why) => missing(why),
    }
}

fn overview(record: &Record, study: &CheckStudy, color_of: &dyn Fn(&str) -> usize) -> Overview {
    let rows = study
        .tiers
        .iter()
        .map(|tier| {
            let facts = record.run.machine.tiers.iter().find(|known| known.name == tier.name);
            let figures = &tier.figures;
            let iops = match (&figures.swap_sim_read, &figures.swap_sim_write) {
                (Known::Is(read), Known::Is(write)) => {
                    Cell { text: significant(read.iops + write.iops), missing: false }
                }
                (Known::Unknown(why), _) | (_, Known::Unknown(why)) => missing(why),
            };
            let ceiling = facts.and_then(|facts| facts.ceiling.get());
            let of =
                ceiling.map(|ceiling| format!(" of {}", significant(ceiling.practical_mbps.1))).unwrap_or_default();
            OverviewRow {
                name: tier.name.clone(),
                model: facts.map(crate::terminal::model).unwrap_or_default(),
                color: color_of(&tier.name),
                bus: bus(tier, facts, &Style::default()).0,
                read: cell(&figures.seq_read_mbps, |v| significant(*v)),
                write: cell(&figures.seq_write_mbps, |v| significant(*v)),
                iops,
                p50: percentile(&figures.page_read_qd1, 50.0),
                p99: percentile(&figures.page_read_qd1, 99.0),
                share: cell(&tier.ceiling_share, |share| format!("{} %{of}", significant((share * 100.0).round()))),
                percent: tier.ceiling_share.get().map(|share| (share * 100.0).clamp(0.0, 100.0)),
            }
        })
        .collect();
    Overview {
        heading: None,
        page: words::block_of(record, "page-read-qd1"),
        swap: words::block_of(record, "swap-sim"),
        rows,
    }
}

fn rung(tier: &TierStudy, name: String, color: usize) -> Option<Rung> {
    let figures = &tier.figures;
    // A cache line from RAM is the only latency that RAM has here: nothing lies between it and a page.
    let load = figures.load_ns.get().map(|ns| ns / 1e3);
    let page = figures.page_read_qd1.get().and_then(|page| page.mean.get()).map(|mean| mean.us());
    let swap = figures.swap_sim_read.get().and_then(|side| side.lat.mean.get()).map(|mean| mean.us());
    Some(Rung { name, color, mbps: *figures.seq_read_mbps.get()?, page_us: page.or(load), swap_us: swap.or(load) })
}

fn pipes(entry: &Entry<'_>, color_of: &dyn Fn(&str) -> usize, label: &dyn Fn(&str) -> String) -> Vec<Pipe> {
    let (record, study) = (entry.record, entry.study.as_ref());
    let best = |name: &str| match study {
        Some(study) => {
            let figures = &study.tiers.iter().find(|tier| tier.name == name)?.figures;
            [&figures.seq_read_mbps, &figures.seq_write_mbps]
                .into_iter()
                .filter_map(|rate| rate.get().copied())
                .reduce(f64::max)
        }
        None => entry
            .steps
            .iter()
            .filter(|step| step.tier.as_deref() == Some(name))
            .map(|step| [&step.read, &step.write].into_iter().flatten().map(|side| side.mbps).sum::<f64>())
            .reduce(f64::max),
    };
    let order = |tier: &&Tier| {
        study.and_then(|study| study.tiers.iter().position(|known| known.name == tier.name)).unwrap_or(usize::MAX)
    };
    let mut tiers: Vec<&Tier> = record.run.machine.tiers.iter().collect();
    tiers.sort_by_key(order);
    tiers
        .into_iter()
        .filter(|tier| study.is_some() || best(&tier.name).is_some())
        .filter_map(|tier| pipe::pipe(tier, label(&tier.name), best(&tier.name), color_of(&tier.name)))
        .collect()
}

/// Pieces of evidence that stand open.
const OPEN: usize = 5;

fn finding_text(finding: &Finding, run: &str, color_of: &dyn Fn(&str) -> usize) -> FindingText {
    let mut evidence: Vec<Evidence> =
        finding.evidence.iter().map(|text| Evidence { step: step_of(text), text: text.clone() }).collect();
    FindingText {
        of_run: None,
        color: finding.tier.as_deref().map(color_of),
        tier: finding.tier.clone(),
        text: finding.text.clone(),
        advice: finding.advice.clone(),
        gain: finding.gain.clone(),
        run: run.to_owned(),
        more: evidence.split_off(evidence.len().min(OPEN)),
        evidence,
    }
}

/// The step that a piece of evidence starts with (`step 3 read p99`).
fn step_of(evidence: &str) -> Option<u32> {
    let rest = evidence.strip_prefix("step ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn matrix(study: &CheckStudy, color_of: &dyn Fn(&str) -> usize) -> Option<Matrix> {
    let purposes = purposes(study);
    if purposes.is_empty() {
        return None;
    }
    let rows = study
        .tiers
        .iter()
        .filter(|tier| !tier.good_for.is_empty())
        .map(|tier| MatrixRow {
            tier: tier.name.clone(),
            color: color_of(&tier.name),
            cells: purposes
                .iter()
                .map(|wanted| {
                    let found = tier.good_for.iter().find(|fitness| fitness.purpose == *wanted);
                    MatrixCell {
                        purpose: purpose(wanted),
                        verdict: found.map_or_else(|| "unknown".to_owned(), |fitness| fitness.verdict.clone()),
                        why: found.map(|fitness| fitness.why.clone()).unwrap_or_default(),
                    }
                })
                .collect(),
        })
        .collect();
    Some(Matrix { heading: None, purposes: purposes.iter().map(|name| purpose(name)).collect(), rows })
}

fn run_text(entry: &Entry<'_>) -> RunText {
    let record = entry.record;
    let run = &record.run;
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    fact("Run", format!("{} ({})", run.id, words::state(&run.state)));
    fact("Program", format!("tiermark {}", run.version));
    fact(
        "Method",
        format!("{}{}", run.plan.method, if run.plan.as_published { ", to the letter as published" } else { "" }),
    );
    fact("Target", run.target.clone());
    fact("Plan", format!("{}, seed {}", run.plan.hash(), run.plan.seed));
    if !run.plan.parameters.is_empty() {
        let set: Vec<String> = run.plan.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        fact("Parameters", set.join(" "));
    }
    fact(
        "Own cost",
        run.harness_ns_per_op.map_or_else(
            || "not calibrated".to_owned(),
            |ns| format!("{} ns an operation against the null target", significant(ns)),
        ),
    );
    let costs = || record.steps.iter().filter_map(|step| step.observing);
    let observed: u64 = costs().map(|cost| cost.samples).sum();
    let cpu = Nanos(costs().map(|cost| cost.cpu.0).sum());
    // Without any account of it the line is absent: unknown is not "off".
    if costs().next().is_some() {
        fact("Observing", if observed == 0 { "off".to_owned() } else { format!("{observed} samples, {cpu} of CPU") });
    }
    let left_out = run.plan.left_out.iter().map(|left_out| {
        let what = if left_out.step.is_empty() { "all steps" } else { &left_out.step };
        format!("{}, {what}: {}", left_out.tier, left_out.why)
    });
    let steps = record.steps.iter().zip(&entry.steps).map(|(step, summary)| step_text(step, summary));
    RunText {
        id: run.id.clone(),
        command: run.command.clone(),
        facts,
        notes: run.notes.clone(),
        left_out: left_out.collect(),
        machine: machine_facts(&run.machine),
        engines: engines(record),
        resembles: entry.study.as_ref().map(resembles).unwrap_or_default(),
        steps: steps.collect(),
        quoted: run.quoted.as_ref().map(words::quoted).unwrap_or_default(),
    }
}

/// Steps that ran alike share a line.
fn engines(record: &Record) -> Vec<(String, String)> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for step in &record.steps {
        let Some(engine) = &step.engine else { continue };
        let words = engine_words(engine);
        let index = step.index.to_string();
        match out.iter_mut().find(|(known, _)| *known == words) {
            Some((_, steps)) => steps.push(index),
            None => out.push((words, vec![index])),
        }
    }
    let steps = |list: Vec<String>| format!("{} {}", if list.len() == 1 { "step" } else { "steps" }, list.join(", "));
    out.into_iter().map(|(words, list)| (steps(list), words)).collect()
}

fn resembles(study: &CheckStudy) -> Vec<Likeness> {
    study
        .tiers
        .iter()
        .filter_map(|tier| {
            let like = tier.resembles.first()?;
            Some(Likeness {
                tier: tier.name.clone(),
                name: like.name.clone(),
                source: like.source.clone(),
                distance: format!("{:.2}", like.distance),
                rows: like
                    .table
                    .iter()
                    .map(|(name, here, there)| (name.clone(), significant(*here), significant(*there)))
                    .collect(),
            })
        })
        .collect()
}

fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut fact = |name: &str, value: String| out.push((name.to_owned(), value));
    fact("Model", machine.model.to_string());
    fact("Kernel", machine.kernel.to_string());
    fact("Distribution", machine.distribution.to_string());
    fact("Page size", machine.page_size.to_string());
    fact("RAM", words::known(&machine.ram, ToString::to_string));
    fact("RAM available", words::known(&machine.ram_available, ToString::to_string));
    fact("Processors", format!("{} × {}", machine.cpu.count, machine.cpu.model));
    fact("Governor", machine.cpu.governor.to_string());
    fact("Temperature", words::known(&machine.temperature_c, |c| format!("{c:.0} °C")));
    fact(
        "Throttled",
        words::known(&machine.throttled, |what| if what.is_empty() { "no".to_owned() } else { what.join(", ") }),
    );
    fact(
        "zswap",
        words::known(&machine.zswap, |zswap| {
            if zswap.enabled {
                format!("on, {}, at most {} % of RAM", zswap.compressor, zswap.max_pool_percent)
            } else {
                "off".to_owned()
            }
        }),
    );
    let swaps: Vec<String> = machine
        .swaps
        .iter()
        .map(|swap| format!("{} ({}, {}, priority {})", swap.path.display(), swap.kind, swap.size, swap.priority))
        .collect();
    fact("Swap", if swaps.is_empty() { "none".to_owned() } else { swaps.join("; ") });
    fact(
        "Swap managed by",
        if machine.swap_managers.is_empty() { "nobody".to_owned() } else { machine.swap_managers.join(", ") },
    );
    let settings: Vec<String> = machine.vm.iter().map(|(name, value)| format!("vm.{name}={value}")).collect();
    if !settings.is_empty() {
        fact("Settings", settings.join(" "));
    }
    for tier in &machine.tiers {
        let Some(block) = &tier.block else { continue };
        let words = format!(
            "scheduler {}, read-ahead {}, write cache {}, sectors {} / {}",
            block.scheduler, block.read_ahead, block.write_cache, block.logical_sector, block.physical_sector
        );
        fact(&tier.name, words);
    }
    out
}

fn step_text(step: &StepRecord, summary: &StepSummary) -> StepText {
    let dash = || "–".to_owned();
    let sides = [("read", &summary.read), ("write", &summary.write)].into_iter().filter_map(|(way, side)| {
        let side = side.as_ref()?;
        let percentile = |percent| side.lat.percentile(percent).map_or_else(dash, |value| value.to_string());
        Some(SideText {
            way,
            iops: significant(side.iops),
            noise: side.ci95_percent.get().map_or_else(dash, |percent| words::noise(*percent)),
            mbps: significant(side.mbps),
            mean: side.lat.mean.get().map_or_else(dash, ToString::to_string),
            p50: percentile(50.0),
            p99: percentile(99.0),
            p999: percentile(99.9),
            max: side.lat.max.get().map_or_else(dash, ToString::to_string),
        })
    });
    StepText {
        index: step.index,
        name: step.name.clone(),
        tier: step.tier.clone().unwrap_or_else(|| step.target.clone()),
        job: words::job(step),
        engine: step.engine.as_ref().map_or("no engine", |engine| engine.used.name()),
        ended: words::ended(step),
        sides: sides.collect(),
        cpu: summary.cpu.map(|cpu| match cpu.split_us {
            Some((user, system)) => format!("{} + {}", significant(user), significant(system)),
            None => significant(cpu.total_us),
        }),
        notes: words::notes(step, summary),
        failed: match &step.state {
            State::Failed(failure) => Some(failure.why.clone()),
            State::Running | State::Done | State::Interrupted | State::NotRun(_) => None,
        },
    }
}
