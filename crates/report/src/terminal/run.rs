//! The steps of any run: what was asked, what ran and why, the figures of each direction with their confidence, service
//! time beside intended time in an open loop, the cost to the CPU, and everything that was noted.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::view::{origin, summaries, view};
use crate::words;
use basics::units::significant;
use basics::{EngineUse, Known};
use record::{Record, State, StepRecord};
use study::{LatencySummary, SideSummary, StepSummary};

/// The whole account.
pub fn run(record: &Record, style: &Style) -> String {
    let run = &record.run;
    let mut when = format!("{}, {}", words::minute(run.started, &style.zone), words::state(&run.state));
    if let Some(lasted) = words::lasted(run) {
        when.push_str(&format!(" after {}", words::duration(lasted)));
    }
    let mut out = style.both_ends(&format!("run {}  {} on {}", run.id, run.plan.method, run.target), &when);
    // Whose machine quoted figures are of is not known.
    if run.quoted.is_none() {
        out.push_str(&style.paragraph("", &words::machine(&run.machine), Tone::Faint));
    }
    if let Some(caution) = origin(&run.origin).caution() {
        out.push_str(&style.paragraph("", &caution, Tone::Fair));
    }
    if let Some(scaled) = words::scaled(run) {
        out.push_str(&style.paragraph("", &scaled, Tone::Fair));
    }
    // Mostly the step that failed says it below, in the same words.
    if let State::Failed(why) = &run.state
        && record.steps.iter().all(|step| step.state != run.state)
    {
        out.push_str(&style.paragraph("", &format!("failed: {why}"), Tone::Bad));
    }
    if let Some(figures) = study::published::figures(&view(record)) {
        out.push('\n');
        for line in figures.lines() {
            out.push_str(&style.paragraph(" ", &line, Tone::Plain));
        }
    }
    if let Some(quoted) = &run.quoted {
        out.push('\n');
        out.push_str(&self::quoted(quoted, style));
    }
    // A check's stand above its table, and remarks beside the steps that they are of.
    let findings = if run.plan.method == "check" { Vec::new() } else { study::findings(&view(record)) };
    out.push_str(&super::findings(&findings.iter().filter(|finding| !finding.is_remark()).collect::<Vec<_>>(), style));
    if let Some(table) = workload(record, style) {
        // Its rows say what its steps would, and JSON and HTML have both.
        out.push('\n');
        out.push_str(&table);
        out.push('\n');
        out.push_str(&foot(record, style));
        return out;
    }
    for (step, summary) in record.steps.iter().zip(summaries(record)).filter(|(step, _)| !words::is_needless(step)) {
        out.push('\n');
        out.push_str(&self::step(step, &summary, style));
    }
    if let Some(needless) = words::needless(record) {
        out.push_str(&style.paragraph("  not run  ", &needless, Tone::Faint));
    }
    for left_out in &run.plan.left_out {
        let what = if left_out.step.is_empty() { "every step" } else { &left_out.step };
        let text = format!("{} {what}: {}", left_out.tier, left_out.why);
        out.push_str(&style.paragraph("  not measured  ", &text, Tone::Faint));
    }
    out.push('\n');
    out.push_str(&foot(record, style));
    out
}

/// What another program printed, figure by figure.
fn quoted(figures: &quoted::Figures, style: &Style) -> String {
    let mut grid = Grid::new(style, &[("figure", Align::Left), ("as printed", Align::Right)]);
    for (name, value) in words::quoted(figures) {
        grid.row(vec![(name, Tone::Plain), (value, Tone::Strong)]);
    }
    let asked: Vec<String> = figures.asked().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let asked = if asked.is_empty() { String::new() } else { style.paragraph("  ", &asked.join("; "), Tone::Faint) };
    format!("{}{asked}", grid.render())
}

fn foot(record: &Record, style: &Style) -> String {
    let run = &record.run;
    let mut out = String::new();
    for note in &run.notes {
        out.push_str(&style.paragraph("  note  ", note, Tone::Plain));
    }
    if run.quoted.is_some() {
        let taken = format!("{}  (tiermark {})", run.command, run.version);
        out.push_str(&style.paragraph("  ", &taken, Tone::Faint));
        return out;
    }
    let mut cost = run.harness_ns_per_op.map_or_else(
        || "harness not calibrated".to_owned(),
        |ns| format!("harness {} ns per operation on the null target", significant(ns)),
    );
    let costs = || record.steps.iter().filter_map(|step| step.observing);
    let samples: u64 = costs().map(|cost| cost.samples).sum();
    if samples > 0 {
        let cpu = basics::Nanos(costs().map(|cost| cost.cpu.0).sum());
        cost.push_str(&format!("; {samples} observations took {cpu} of CPU"));
    }
    out.push_str(&style.paragraph("  ", &cost, Tone::Faint));
    let again =
        format!("{}  (tiermark {}, plan {}, seed {})", run.command, run.version, run.plan.hash(), run.plan.seed);
    out.push_str(&style.paragraph("  ", &again, Tone::Faint));
    out
}

fn step(step: &StepRecord, summary: &StepSummary, style: &Style) -> String {
    let name = step.tier.as_ref().map_or_else(|| step.name.clone(), |tier| format!("{}  {tier}", step.name));
    let mut out = style.both_ends(&format!("{:<2} {name}", step.index), &words::ended(step));
    out.push_str(&style.paragraph("   ", &format!("{} on {}", words::job(step), step.target), Tone::Plain));
    if let Some(engine) = &step.engine {
        out.push_str(&style.paragraph("   ", &engine_words(engine), Tone::Faint));
    }
    if let State::Failed(why) = &step.state {
        out.push_str(&style.paragraph("   failed: ", &why.to_string(), Tone::Bad));
    }
    if let State::NotRun(why) = &step.state {
        out.push_str(&style.paragraph("   not run: ", &why.to_string(), Tone::Faint));
    }
    if summary.read.is_some() || summary.write.is_some() {
        out.push_str(&figures(summary, style));
    }
    if let Some(cpu) = &summary.cpu {
        let text = match cpu.split_us {
            Some((user, system)) => format!("{} µs user, {} µs system", significant(user), significant(system)),
            None => format!("{} µs (too short to tell user from system)", significant(cpu.total_us)),
        };
        out.push_str(&style.paragraph("   ", &format!("CPU per operation: {text}"), Tone::Faint));
    }
    for note in words::notes(step, summary) {
        out.push_str(&style.paragraph("   note  ", &note, Tone::Plain));
    }
    out
}

/// `io_uring (auto: …), without registered buffers (…)`.
pub(crate) fn engine_words(engine: &EngineUse) -> String {
    let mut out = engine.used.name().to_owned();
    let asked = engine.asked.name();
    match (asked == out, engine.why.is_empty()) {
        (true, true) => {}
        (true, false) => out.push_str(&format!(" ({})", engine.why)),
        (false, true) => out.push_str(&format!(" (asked: {asked})")),
        (false, false) => out.push_str(&format!(" (asked: {asked}; {})", engine.why)),
    }
    if !engine.dropped.is_empty() {
        let dropped: Vec<String> = engine.dropped.iter().map(|(what, why)| format!("{what} ({why})")).collect();
        out.push_str(&format!(", without {}", dropped.join(", ")));
    }
    out
}

fn figures(summary: &StepSummary, style: &Style) -> String {
    let sides = [("read", &summary.read), ("write", &summary.write)];
    let measured = || sides.iter().filter_map(|(word, side)| side.as_ref().map(|side| (*word, side)));
    // Percentiles that some direction carries; a narrow terminal keeps the ones that are asked for most.
    let mut percents: Vec<f64> = Vec::new();
    for (percent, _) in measured().flat_map(|(_, side)| &side.lat.percentiles) {
        if !percents.contains(percent) {
            percents.push(*percent);
        }
    }
    percents.sort_by(f64::total_cmp);
    let keep: &[f64] = if style.width < 100 { &[50.0, 99.0, 99.9] } else { &[50.0, 95.0, 99.0, 99.9, 99.99] };
    percents.retain(|percent| keep.contains(percent));

    let percent_heads: Vec<String> = percents.iter().map(|percent| format!("p{percent}")).collect();
    let mut heads = vec![("", Align::Left), ("IOPS", Align::Right), ("95 %", Align::Right), ("MB/s", Align::Right)];
    heads.push(("mean", Align::Right));
    heads.extend(percent_heads.iter().map(|head| (head.as_str(), Align::Right)));
    heads.push(("max", Align::Right));
    let mut grid = Grid::new(style, &heads).indent(3);
    for (word, side) in measured() {
        let mut row = vec![(word.to_owned(), Tone::Strong)];
        row.extend(rates(side, style));
        row.extend(latencies(&side.lat, &percents, style));
        grid.row(row);
        if let Some(service) = &side.service {
            let mut row = vec![("  service".to_owned(), Tone::Faint)];
            row.resize(4, (String::new(), Tone::Plain));
            row.extend(latencies(service, &percents, style));
            grid.row(row);
        }
    }
    let mut out = grid.render();
    if measured().any(|(_, side)| side.service.is_some()) {
        let text = "latency counts from the intended time, service time from submission";
        out.push_str(&style.paragraph("   ", text, Tone::Faint));
    }
    out
}

fn rates(side: &SideSummary, style: &Style) -> [(String, Tone); 3] {
    let noise = match &side.ci95_percent {
        Known::Is(percent) => words::noise(*percent),
        Known::Unknown(_) => style.dash().to_owned(),
    };
    [(significant(side.iops), Tone::Plain), (noise, Tone::Faint), (significant(side.mbps), Tone::Plain)]
}

fn latencies(latency: &LatencySummary, percents: &[f64], style: &Style) -> Vec<(String, Tone)> {
    let missing = || style.dash().to_owned();
    let mut row = vec![(latency.mean.get().map_or_else(missing, ToString::to_string), Tone::Plain)];
    for percent in percents {
        row.push((latency.percentile(*percent).map_or_else(missing, |value| value.to_string()), Tone::Plain));
    }
    row.push((latency.max.get().map_or_else(missing, ToString::to_string), Tone::Plain));
    row
}

/// The table of a workload; nothing when it was none.
fn workload(record: &Record, style: &Style) -> Option<String> {
    let tokens = || super::tokens::table(record, style);
    let vectors = || super::vectors::table(record, style);
    super::load::table(record, style)
        .or_else(|| super::desktop::table(record, style))
        .or_else(tokens)
        .or_else(vectors)
        .or_else(|| super::redis::table(record, style))
}
