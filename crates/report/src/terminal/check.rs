//! The report of a `check`: the answer first (the table), the reason second (the findings), then what each tier is good
//! for and where the evidence lies.

use super::Style;
use super::lay::{Align, Grid, Tone, pad, pad_left, width};
use crate::view::origin;
use crate::words;
use basics::plan::Target;
use basics::units::significant;
use basics::{Known, Nanos, Why};
use machine::{Tier, TierKind};
use record::{Record, State};
use std::fmt::Write;
use std::path::Path;
use study::{CheckStudy, Finding, LatencySummary, TierStudy};

/// Findings shown; the HTML report has them all.
const FINDINGS: usize = 8;

/// The whole report. `report` is where the HTML report lies, as it shall be shown.
pub fn check(record: &Record, study: &CheckStudy, report: Option<&Path>, style: &Style) -> String {
    let run = &record.run;
    let mut out = head(record, style);
    out.push('\n');
    if !study.headline.is_empty() {
        out.push_str(&style.paragraph("  ", &study.headline, Tone::Strong));
        out.push('\n');
    }
    if study.tiers.is_empty() {
        out.push_str(&style.paragraph("  ", "No tier was found that could be measured.", Tone::Plain));
    } else {
        out.push_str(&tiers(record, study, style));
    }
    out.push_str(&findings(&study.each_finding(), style));
    out.push_str(&good_for(study, style));
    if !run.notes.is_empty() {
        out.push('\n');
        for note in &run.notes {
            out.push_str(&style.paragraph("  note  ", note, Tone::Faint));
        }
    }
    out.push('\n');
    out.push_str(&last_line(&run.id, report, style));
    out
}

/// The machine, the time, and how the run ended when it did not end well.
fn head(record: &Record, style: &Style) -> String {
    let run = &record.run;
    let mut when = words::minute(run.started, &style.zone);
    if let Some(lasted) = words::lasted(run) {
        let _ = write!(when, ", {}", words::duration(lasted));
    }
    let mut out = style.both_ends(&style.plain(&words::machine(&run.machine)), &when);
    if let Some(caution) = origin(&run.origin).caution() {
        out.push_str(&style.paragraph("", &caution, Tone::Fair));
    }
    let ending = match &run.state {
        State::Done => return out,
        State::Running => "still running; these are the steps that ended".to_owned(),
        State::Interrupted | State::NotRun(_) => "interrupted; these are the steps that ended before".to_owned(),
        State::Failed(why) => format!("failed: {why}"),
    };
    out.push_str(&style.paragraph("", &ending, Tone::Bad));
    out
}

fn last_line(id: &str, report: Option<&Path>, style: &Style) -> String {
    let run = format!("run {id}  (tiermark show {id})");
    let Some(report) = report else { return format!("  {run}\n") };
    let report = report.display();
    let one = format!("  report  {report}      {run}");
    if width(&one) <= style.width { format!("{one}\n") } else { format!("  report  {report}\n  {run}\n") }
}

/// What was not measured, in a word: a dash where nothing could be, else the reason.
fn missing(why: &Why, style: &Style) -> (String, Tone) {
    let text = match why {
        Why::NotReported => style.dash().to_owned(),
        Why::NotMeasured(reason) if reason == "no ceiling known" => style.dash().to_owned(),
        other => super::lay::shorten(&other.to_string(), 14),
    };
    (text, Tone::Faint)
}

fn figure(value: &Known<f64>, style: &Style) -> (String, Tone) {
    match value {
        Known::Is(value) => (significant(*value), Tone::Plain),
        Known::Unknown(why) => missing(why, style),
    }
}

fn tiers(record: &Record, study: &CheckStudy, style: &Style) -> String {
    let machine = &record.run.machine;
    let narrow = style.width < 100;
    let latency_head = format!("read p50 / p99\n{}, QD1", words::block_of(record, "page-read-qd1"));
    let swap_head = format!("{} 70/30\nQD4 IOPS", words::block_of(record, "swap-sim").replace(" KiB", "K"));
    let share_head = if narrow { "of its\nceiling" } else { "share of its\nceiling, MB/s" };
    let mut grid = Grid::new(
        style,
        &[
            ("tier", Align::Left),
            ("bus", Align::Left),
            ("seq.\nread", Align::Right),
            ("MB/s\nwrite", Align::Right),
            (&swap_head, Align::Right),
            (&latency_head, Align::Right),
            (share_head, Align::Left),
        ],
    );
    let names = study.tiers.iter().map(|tier| width(&tier.name)).max().unwrap_or(0);
    let latencies = latency_cells(&study.tiers, style);
    let mut could_be = Vec::new();
    for (tier, latency) in study.tiers.iter().zip(latencies) {
        let facts = machine.tiers.iter().find(|known| known.name == tier.name);
        let (bus, better) = bus(tier, facts, style);
        could_be.extend(better.map(|better| format!("{} could be {better}", tier.name)));
        let model = facts.map(model).unwrap_or_default();
        grid.row(vec![
            (format!("{}  {model}", pad(&tier.name, names)).trim_end().to_owned(), Tone::Strong),
            (bus, Tone::Plain),
            figure(&tier.figures.seq_read_mbps, style),
            figure(&tier.figures.seq_write_mbps, style),
            swap_iops(tier, style),
            latency,
            share(tier, facts, narrow, style),
        ]);
    }
    grid.fit(&[(0, names + 6), (1, 14)]);
    if grid.overflows() {
        // A model of two letters helps nobody.
        grid.replace(0, study.tiers.iter().map(|tier| tier.name.as_str()));
        grid.fit(&[(1, 8)]);
    }
    let mut out = grid.render();
    if !could_be.is_empty() {
        let lead = format!("  {} ", style.mark("◂", "<"));
        out.push_str(&style.paragraph(&lead, &could_be.join("; "), Tone::Faint));
    }
    let places: Vec<String> = study.tiers.iter().filter_map(|tier| place(record, tier)).collect();
    if !places.is_empty() {
        out.push_str(&style.paragraph("  ", &format!("measured in {}", places.join(", ")), Tone::Faint));
    }
    out
}

/// Where the tier's test file was: `/var/tmp (sda)`. A row that is a directory's own says so by its name.
fn place(record: &Record, tier: &TierStudy) -> Option<String> {
    let plan = &record.run.plan;
    let steps = plan.steps.iter().filter(|step| step.tier.as_deref() == Some(&tier.name));
    let dir = steps.filter_map(|step| plan.targets.get(step.target)).find_map(|target| match target {
        Target::TestFile { dir, .. } => Some(dir.display().to_string()),
        _ => None,
    })?;
    Some(if dir == tier.name { dir } else { format!("{dir} ({})", tier.name) })
}

/// The model without what the kind already says; for zram its compression.
pub(crate) fn model(tier: &Tier) -> String {
    if let Some(compression) = tier.block.as_ref().and_then(|block| block.compression.clone()) {
        return compression;
    }
    tier.model.get().cloned().unwrap_or_default()
}

/// The hop that sets the ceiling, marked when a better link was possible there, and that better link.
pub(crate) fn bus<'a>(tier: &TierStudy, facts: Option<&'a Tier>, style: &Style) -> (String, Option<&'a str>) {
    let hop = facts.and_then(|facts| {
        let named = tier.ceiling_hop.as_ref().and_then(|name| facts.hops.iter().find(|hop| hop.name == *name));
        named.or_else(|| facts.hops.first())
    });
    match (facts.map(|facts| facts.kind), hop) {
        (Some(TierKind::Zram), _) => ("RAM".to_owned(), None),
        (Some(TierKind::Ram), _) | (_, None) => (style.dash().to_owned(), None),
        (_, Some(hop)) => match hop.could_be.as_deref() {
            Some(better) => (format!("{} ◂", hop.name), Some(better)),
            None => (hop.name.clone(), None),
        },
    }
}

fn swap_iops(tier: &TierStudy, style: &Style) -> (String, Tone) {
    match (&tier.figures.swap_sim_read, &tier.figures.swap_sim_write) {
        (Known::Is(read), Known::Is(write)) => (significant(read.iops + write.iops), Tone::Plain),
        (Known::Unknown(why), _) | (_, Known::Unknown(why)) => missing(why, style),
    }
}

fn share(tier: &TierStudy, facts: Option<&Tier>, narrow: bool, style: &Style) -> (String, Tone) {
    let share = match &tier.ceiling_share {
        Known::Is(share) => *share,
        Known::Unknown(why) => return missing(why, style),
    };
    let ceiling = facts.and_then(|facts| facts.ceiling.get()).map(|ceiling| ceiling.practical_mbps.1);
    let percent = pad_left(&significant((share * 100.0).round()), 3);
    let text = match ceiling {
        Some(ceiling) if !narrow => format!("{} {percent} % of {}", style.bar(share, 5), significant(ceiling)),
        _ => format!("{percent} %"),
    };
    (text, Tone::Plain)
}

/// A latency as number and unit.
fn split(nanos: Nanos) -> (String, &'static str) {
    let ns = nanos.0 as f64;
    match nanos.0 {
        0..1_000 => (significant(ns), "ns"),
        1_000..1_000_000 => (significant(ns / 1e3), "µs"),
        1_000_000..1_000_000_000 => (significant(ns / 1e6), "ms"),
        _ => (significant(ns / 1e9), "s"),
    }
}

/// p50 and p99 of a page read, so that the slashes and the units stand below each other; of a load of RAM its mean.
fn latency_cells(tiers: &[TierStudy], style: &Style) -> Vec<(String, Tone)> {
    let parts: Vec<Result<(String, String, &str), Why>> =
        tiers.iter().map(|tier| latency_parts(&tier.figures.page_read_qd1)).collect();
    let longest = parts.iter().flatten().map(|(_, right, _)| width(right)).max().unwrap_or(0);
    parts
        .into_iter()
        .map(|part| match part {
            Ok((left, right, unit)) => (format!("{left} {} {}", pad_left(&right, longest), pad(unit, 2)), Tone::Plain),
            Err(why) => missing(&why, style),
        })
        .collect()
}

fn latency_parts(latency: &Known<LatencySummary>) -> Result<(String, String, &'static str), Why> {
    let latency = match latency {
        Known::Is(latency) => latency,
        Known::Unknown(why) => return Err(why.clone()),
    };
    let (Some(p50), Some(p99)) = (latency.percentile(50.0), latency.percentile(99.0)) else {
        let mean = latency.mean.get().map(|mean| split(*mean)).ok_or_else(|| Why::NotMeasured("too short".to_owned()));
        return mean.map(|(mean, unit)| ("mean".to_owned(), mean, unit));
    };
    let ((left, left_unit), (right, unit)) = (split(p50), split(p99));
    let left = if left_unit == unit { format!("{left} /") } else { format!("{left} {left_unit} /") };
    Ok((left, right, unit))
}

/// What there is to say, most important first, with what to do.
pub(crate) fn findings(all: &[&Finding], style: &Style) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    out.push('\n');
    for (number, finding) in all.iter().take(FINDINGS).enumerate() {
        out.push_str(&style.paragraph(&format!("  {:<2} ", number + 1), &finding.text, Tone::Plain));
        let advice = match (&finding.advice, &finding.gain) {
            (Some(advice), Some(gain)) => format!("{} ({gain})", advice.trim_end_matches('.')),
            (Some(text), None) | (None, Some(text)) => text.clone(),
            (None, None) => continue,
        };
        out.push_str(&style.paragraph(&format!("     {} ", style.mark("→", "->")), &advice, Tone::Good));
    }
    if all.len() > FINDINGS {
        let more = format!("and {} more in the report", all.len() - FINDINGS);
        out.push_str(&style.paragraph("     ", &more, Tone::Faint));
    }
    out
}

/// `redis-aof` as people write it.
pub(crate) fn purpose(name: &str) -> String {
    match name {
        "llm-swap" => "LLM swap".to_owned(),
        "redis-aof" => "Redis AOF".to_owned(),
        other => other.replace('-', " "),
    }
}

/// Every purpose that is judged for some tier, in the order in which they first appear.
pub(crate) fn purposes(study: &CheckStudy) -> Vec<&str> {
    let mut purposes: Vec<&str> = Vec::new();
    for fitness in study.tiers.iter().flat_map(|tier| &tier.good_for) {
        if !purposes.contains(&fitness.purpose.as_str()) {
            purposes.push(&fitness.purpose);
        }
    }
    purposes
}

fn good_for(study: &CheckStudy, style: &Style) -> String {
    let purposes = purposes(study);
    if purposes.is_empty() {
        return String::new();
    }
    let names: Vec<String> = purposes.iter().map(|name| purpose(name)).collect();
    let mut heads = vec![("good for", Align::Left)];
    heads.extend(names.iter().map(|name| (name.as_str(), Align::Left)));
    let mut grid = Grid::new(style, &heads);
    for tier in study.tiers.iter().filter(|tier| !tier.good_for.is_empty()) {
        let mut row = vec![(tier.name.clone(), Tone::Strong)];
        for purpose in &purposes {
            let verdict = tier.good_for.iter().find(|fitness| fitness.purpose == *purpose);
            row.push(verdict.map_or_else(
                || (style.dash().to_owned(), Tone::Faint),
                |fitness| (fitness.verdict.clone(), Tone::of_verdict(&fitness.verdict)),
            ));
        }
        grid.row(row);
    }
    format!("\n{}", grid.render())
}
