//! The words, tables and links of the page, ready for the template: every sentence is made here or in `study`, the
//! template only places them.

use super::Entry;
use super::check::{Matrix, Overview, Rung, matrix, overview, rung};
use super::finding::{FindingText, finding_text};
use super::load::{Workload, workload};
use super::pipe::{self, Pipe};
use super::redis::{Served, served};
use super::run::{RunText, run_text};
use super::sweeps;
use super::tokens::{Model, models};
use crate::words;
use crate::workload::Rows;
use basics::units::significant;
use machine::{Tier, TierKind};
use record::{Origin, Record, State, StepRecord};
use serde::Serialize;

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
    /// One for each run that is a workload.
    workloads: Vec<Workload>,
    /// One for each language model that made tokens in a run.
    models: Vec<Model>,
    /// One for each run that loaded a Redis server.
    served: Vec<Served>,
    /// One for each run of a cache of vectors, with the run's name where there are several.
    vectors: Vec<(Option<String>, Rows)>,
    /// One for each run of a browser or a compilation.
    desktops: Vec<(Option<String>, Rows)>,
    /// False: of no request is it known why it was slow.
    has_late: bool,
    /// False: no token was made, so there is no timeline of them.
    pub has_tokens: bool,
    pipes: Vec<Pipe>,
    findings: Vec<FindingText>,
    /// One for each run of `check` that can be judged.
    good_for: Vec<Matrix>,
    runs: Vec<RunText>,
    /// False: nothing was measured, so there is nothing to draw.
    pub has_charts: bool,
    /// Curves that are left out, and why; of runs that have some.
    not_drawn: Vec<String>,
    #[serde(skip)]
    colors: Vec<(String, String, usize)>,
}

impl Page {
    /// The colour of a tier or target of a run; the first for one that is unknown.
    pub fn color(&self, run: &str, subject: &str) -> usize {
        color(&self.colors, run, subject)
    }
    /// Its name, with the run's where another run has one of the same name.
    pub fn label(&self, run: &str, subject: &str) -> String {
        label(&self.colors, run, subject)
    }
}

fn label(colors: &[(String, String, usize)], run: &str, subject: &str) -> String {
    words::of_run(subject, run, colors.iter().any(|(other, name, _)| name == subject && other != run))
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
        workloads: Vec::new(),
        models: Vec::new(),
        served: Vec::new(),
        vectors: Vec::new(),
        desktops: Vec::new(),
        has_late: entries.iter().any(|entry| entry.view.steps.iter().any(|step| !super::redis::late(step).is_null())),
        has_tokens: records.iter().any(|record| record.steps.iter().any(made_tokens)),
        pipes: Vec::new(),
        findings: Vec::new(),
        good_for: Vec::new(),
        runs: Vec::new(),
        has_charts: records.iter().any(|record| record.steps.iter().any(measured)),
        not_drawn: sweeps::not_drawn(entries),
        colors: Vec::new(),
    };
    if entries.len() > 1 {
        let views: Vec<study::RunView<'_>> = entries.iter().map(|entry| entry.view.clone()).collect();
        let text = |finding| finding_text(finding, "", None, &|_| 0);
        page.findings.extend(study::beside(&views).iter().map(text));
    }
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
        let label = |tier: &str| label(&colors, &record.run.id, tier);
        page.runs.push(run_text(entry));
        page.pipes.extend(pipes(entry, &color_of, &label));
        let text = |finding| finding_text(finding, &record.run.id, of_run.clone(), &color_of);
        page.findings.extend(entry.findings.iter().map(text));
        page.workloads.extend(workload(entry, of_run.clone(), &color_of));
        page.served.extend(served(entry, of_run.as_deref(), &color_of));
        let vectors = crate::workload::vectors(&entry.view);
        page.vectors.extend((!vectors.rows.is_empty()).then(|| (of_run.clone(), vectors)));
        for table in [crate::workload::browsed(&entry.view), crate::workload::built(&entry.view)] {
            page.desktops.extend((!table.rows.is_empty()).then(|| (of_run.clone(), table)));
        }
        page.models.extend(models(entry, of_run.as_deref(), &color_of));
        let Some(study) = &entry.study else { continue };
        page.ladder.extend(study.tiers.iter().filter_map(|tier| rung(tier, label(&tier.name), color_of(&tier.name))));
        let heading = of_run.as_ref().map(|run| match study.headline.as_str() {
            "" => format!("{run}, {}", words::machine(&record.run.machine)),
            headline => format!("{run}: {headline}"),
        });
        page.overviews.push(Overview { heading, ..overview(record, study, &color_of) });
        page.good_for.extend(matrix(study, of_run, &color_of));
    }
    page.colors = colors;
    page
}

fn measured(step: &StepRecord) -> bool {
    step.read.operations() + step.write.operations() > 0
}

fn made_tokens(step: &StepRecord) -> bool {
    let generated = step.load.as_ref().and_then(|load| load.generated.as_ref());
    generated.is_some_and(|generated| !generated.tokens.is_empty())
}

fn title(records: &[&Record]) -> String {
    let names: Vec<String> = records.iter().map(|r| format!("{} {}", r.run.plan.method, r.run.id)).collect();
    format!("tiermark: {}", names.join(", "))
}

pub(crate) fn headline(entries: &[Entry<'_>]) -> String {
    if let Some(study) =
        entries.iter().filter_map(|entry| entry.study.as_ref()).find(|study| !study.headline.is_empty())
    {
        return study.headline.clone();
    }
    let Some(first) = entries.first() else { return "No run was given.".to_owned() };
    let method = |entry: &Entry<'_>| entry.record.run.plan.method.clone();
    if entries.len() > 1 && entries.iter().all(|entry| method(entry) == method(first)) {
        let targets: Vec<&str> = entries.iter().map(|entry| entry.record.run.target.as_str()).collect();
        return format!("{} of {}, side by side.", method(first), basics::units::listed(&targets));
    }
    let touched = study::load_headline(&study::load_rows(&first.view));
    let vectors = || study::vectors_headline(&study::vector_rows(&first.view));
    let desktop =
        || study::desktop_headline(&first.view).or_else(|| study::build_headline(&study::build_rows(&first.view)));
    let served = || desktop().or_else(vectors).or_else(|| study::redis_headline(&study::redis_cells(&first.view)));
    if let Some(headline) = touched.or_else(|| study::token_headline(&study::token_rows(&first.view))).or_else(served) {
        return headline;
    }
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
        out.extend(words::scaled(&record.run).map(|scaled| format!("Of run {id} {scaled}.")));
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
    let measured = |record: &&Record| {
        let of = |step: &StepRecord| step.tier.clone().unwrap_or_else(|| step.target.clone());
        record.steps.iter().map(of).map(|name| (record.run.id.clone(), name)).collect::<Vec<_>>()
    };
    let named = |record: &&Record| {
        let tiers = record.run.machine.tiers.iter();
        tiers.map(|tier| (record.run.id.clone(), tier.name.clone())).collect::<Vec<_>>()
    };
    // Measured ones first, of all runs: they must not lose their colour to a tier that only stands in a machine.
    for (id, subject) in records.iter().flat_map(measured).chain(records.iter().flat_map(named)) {
        if out.iter().any(|(r, s, _)| *r == id && *s == subject) {
            continue;
        }
        let machine = records.iter().find(|record| record.run.id == id).map(|record| &record.run.machine);
        let wanted = machine.and_then(|machine| machine.tiers.iter().find(|tier| tier.name == subject));
        let free = |color: &usize| !out.iter().any(|(_, _, used)| used == color);
        let color = Some(wanted.map_or(0, preferred)).filter(free).or_else(|| (0..COLORS).find(free));
        let color = color.unwrap_or(out.len());
        out.push((id, subject, color));
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
