//! The answer, the findings and the tables as Markdown, for a forum or a blog: what of the HTML report can stand in a post.

use crate::html::Entry;
use crate::html::check::overview;
use crate::html::page::headline;
use crate::view::origin;
use crate::words;
use crate::workload;
use basics::units::significant;
use basics::{Bytes, Nanos};
use record::Record;
use std::fmt::Write;
use study::{Axis, Finding, RunView, SideSummary, Sweep};

/// The report of one run or of several side by side.
pub fn report(records: &[&Record]) -> String {
    let entries: Vec<Entry<'_>> = records.iter().map(|record| Entry::new(record)).collect();
    let mut out = format!("# {}\n", plain(&headline(&entries)));
    for entry in &entries {
        let run = &entry.record.run;
        let cautions = origin(&run.origin).caution().into_iter().chain(words::scaled(run));
        let caution: String = cautions.map(|caution| format!("; {caution}")).collect();
        // What was computed or quoted says nothing of this machine.
        let is_own = run.origin == record::Origin::Measured;
        let whose = if is_own { words::machine(&run.machine) + ", " } else { String::new() };
        let _ = write!(
            out,
            "\n- run {}: {}`{}`{}",
            run.id,
            plain(&whose),
            run.command.replace('`', "'").replace(['\n', '\r'], " "),
            plain(&caution)
        );
    }
    out.push('\n');
    let views: Vec<RunView<'_>> = entries.iter().map(|entry| entry.view.clone()).collect();
    let beside = if entries.len() > 1 { study::beside(&views) } else { Vec::new() };
    let all: Vec<&Finding> = beside.iter().chain(entries.iter().flat_map(|entry| &entry.findings)).collect();
    if !all.is_empty() {
        out.push_str("\n## Findings\n\n");
        for (number, finding) in all.iter().enumerate() {
            let advice = finding.advice.as_ref().map(|advice| format!(" → {}", plain(advice))).unwrap_or_default();
            let _ = writeln!(out, "{}. {}{advice}", number + 1, plain(&finding.text));
        }
    }
    for entry in &entries {
        out.push_str(&figures(entry));
    }
    out.push_str(&curves(&entries));
    out.push_str("\nMB/s are 10⁶ bytes a second, KiB are 2¹⁰ bytes. Made by tiermark.\n");
    out
}

/// What stands in a cell or a line as it is.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '\\' | '#' | '[' | ']') {
            out.push('\\');
        }
        match c {
            '<' => out.push_str("&lt;"),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A table; the first column to the left, figures to the right.
fn table(heads: &[String], rows: &[Vec<String>]) -> String {
    let line =
        |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| plain(cell)).collect::<Vec<_>>().join(" | "));
    let rule: Vec<&str> = heads.iter().enumerate().map(|(i, _)| if i == 0 { "---" } else { "---:" }).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}| {} |\n{rows}", line(heads), rule.join(" | "))
}

fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// The figures of one run: tiers of a check, what others printed, a method's own lines, or every step.
fn figures(entry: &Entry<'_>) -> String {
    let record = entry.record;
    let run = &record.run;
    let mut out = format!("\n## {} of {}, run {}\n\n", plain(&run.plan.method), plain(&run.target), run.id);
    if let Some(study) = &entry.study {
        let overview = overview(record, study, &|_| 0);
        let names = [
            "tier",
            "read MB/s",
            "write MB/s",
            &format!("{} 70/30 QD4 IOPS", overview.swap),
            &format!("{} read p50", overview.page),
            "p99",
            "share of ceiling",
        ];
        let row = |row: crate::html::check::OverviewRow| {
            let cells = [row.read, row.write, row.iops, row.p50, row.p99, row.share];
            std::iter::once(row.name).chain(cells.into_iter().map(|cell| cell.text)).collect()
        };
        return out + &table(&heads(&names), &overview.rows.into_iter().map(row).collect::<Vec<_>>());
    }
    if let Some(quoted) = &run.quoted {
        let rows = words::quoted(quoted).into_iter().map(|(name, value)| vec![name, value]);
        return out + &table(&heads(&["figure", "as printed"]), &rows.collect::<Vec<_>>());
    }
    // Curves stand in tables of their own below.
    let drawn: Vec<u32> =
        drawn(entry).iter().flat_map(|sweep| sweep.points.iter().map(|point| point.step.index)).collect();
    if let Some(figures) = study::published::figures(&entry.view).filter(|_| drawn.is_empty()) {
        let _ = writeln!(out, "```text\n{}\n```\n", figures.lines().join("\n"));
    }
    for told in workload::rows(&entry.view) {
        out.push_str(&table(&heads(told.heads), &told.rows));
        out.push('\n');
        for (tier, why) in told.whys {
            let _ = writeln!(out, "- {}: {}", plain(&tier), plain(&why));
        }
        out.push('\n');
    }
    let mut rows = Vec::new();
    let others = record.steps.iter().zip(&entry.steps);
    let others = others.filter(|(step, _)| !drawn.contains(&step.index) && !workload::is_told(step.job.engine));
    for (step, summary) in others {
        let sides = [("read", &summary.read), ("write", &summary.write)];
        for (way, side) in sides.into_iter().filter_map(|(way, side)| Some((way, side.as_ref()?))) {
            let partial = if words::partial(step) { ", partial" } else { "" };
            let mut row = vec![format!("{}{partial}", step.name), way.to_owned(), significant(side.iops)];
            row.push(side.ci95_percent.get().map_or_else(dash, |percent| words::noise(*percent)));
            row.push(significant(side.mbps));
            row.extend(latencies(side, &[50.0, 99.0]));
            row.push(side.lat.max.get().map_or_else(dash, ToString::to_string));
            rows.push(row);
        }
    }
    if !rows.is_empty() {
        let names = ["step", "way", "IOPS", "95 %", "MB/s", "mean", "p50", "p99", "max"];
        out.push_str(&table(&heads(&names), &rows));
        out.push('\n');
    }
    if !run.plan.left_out.is_empty() {
        out.push_str("Not measured:\n\n");
        for what in words::left_out(&run.plan) {
            let _ = writeln!(out, "- {}", plain(&what));
        }
    }
    out
}

fn dash() -> String {
    "–".to_owned()
}

/// Mean and percentiles.
fn latencies(side: &SideSummary, percents: &[f64]) -> Vec<String> {
    let mean = side.lat.mean.get().map_or_else(dash, ToString::to_string);
    let each = percents
        .iter()
        .map(|percent| side.lat.percentile(*percent).map_or_else(dash, |value: Nanos| value.to_string()));
    std::iter::once(mean).chain(each).collect()
}

/// The curves that are worth a table.
fn drawn<'r>(entry: &'r Entry<'_>) -> Vec<Sweep<'r, 'r>> {
    study::sweeps(&entry.view).into_iter().filter(|sweep| sweep.erratic().is_none()).collect()
}

/// A table for each curve; runs that have the same one stand beside each other in it.
fn curves(entries: &[Entry<'_>]) -> String {
    let mut out = String::new();
    let all: Vec<(&Entry<'_>, Sweep<'_, '_>)> =
        entries.iter().flat_map(|entry| drawn(entry).into_iter().map(move |sweep| (entry, sweep))).collect();
    let mut done: Vec<String> = Vec::new();
    for (_, sweep) in &all {
        let title = sweep.title();
        if done.contains(&title) {
            continue;
        }
        let same: Vec<_> = all.iter().filter(|(_, other)| other.axis == sweep.axis && other.title() == title).collect();
        let mut places: Vec<u64> =
            same.iter().flat_map(|(_, sweep)| sweep.points.iter().map(|point| point.at)).collect();
        places.sort_unstable();
        places.dedup();
        let figures = ["MB/s", "IOPS", "mean", "median", "p99", "p99.999"];
        let mut names = vec![sweep.axis.word().to_owned()];
        for (entry, _) in &same {
            let run = &entry.record.run;
            let twice = same.iter().filter(|(other, _)| other.record.run.target == run.target).count() > 1;
            let name = words::of_run(&run.target, &run.id.to_string(), twice);
            let of = if same.len() > 1 { format!("{name} ") } else { String::new() };
            names.extend(figures.map(|figure| format!("{of}{figure}")));
        }
        let row = |at: &u64| {
            let mut row = vec![match sweep.axis {
                Axis::Size => Bytes(*at).to_string(),
                Axis::Depth => at.to_string(),
                Axis::Reads => format!("{at} %"),
            }];
            for (_, sweep) in &same {
                match sweep.points.iter().find(|point| point.at == *at) {
                    Some(point) => {
                        row.extend([significant(point.side.mbps), significant(point.side.iops)]);
                        row.extend(latencies(&point.side, &[50.0, 99.0, 99.999]));
                    }
                    None => row.extend(figures.map(|_| dash())),
                }
            }
            row
        };
        let _ = write!(out, "\n## {}\n\n{}", plain(&title), table(&names, &places.iter().map(row).collect::<Vec<_>>()));
        done.push(title);
    }
    out
}
