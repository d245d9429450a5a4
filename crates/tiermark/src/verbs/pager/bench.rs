//! `tiermark pager bench`: the pager against the plain kernel, on one emulated disk, turn by turn. The turns are runs like any other,
//! kept and shown like any other; here they are held against each other, and against what the disk would allow.

use crate::cli::{Cli, PagerBenchArgs, Verb, When};
use crate::context::Context;
use crate::exit::{self, Missing};
use crate::out;
use crate::verbs::load::{self, helped};
use crate::verbs::run::execute;
use anyhow::{Result, anyhow};
use basics::pressure::Load;
use basics::stats::median;
use basics::{Interval, Nanos};
use clap::Parser;
use machine::Root;
use record::{State, StepRecord};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

const SCHEMA: &str = "tiermark.pager-bench/1";
/// As typed: what is measured, in full and in short. The scan has four fifths of its memory; decoding six sevenths of the 696 MiB that a
/// token takes, as a model of 800 MB has in 650 MiB.
const WORK: [(&str, &str); 2] = [
    ("scan", "load swap --pattern cyclic --content random --size 1000M --memory 800M --runtime 25s"),
    (
        "decode",
        "load decode --shape layers=12,embd=2048,quant=Q8_0 --context 64 --memory 600M --tokens 40 --runtime 60s",
    ),
];
const QUICK: (&str, &str) =
    ("scan", "load swap --pattern cyclic --content random --size 400M --memory 320M --runtime 10s");

/// One turn.
#[derive(Debug, Clone)]
struct Turn {
    paged: bool,
    /// Passes or tokens a second: learning included, and in the second half of the time.
    whole: f64,
    settled: f64,
    /// Bytes a second of the disk alone.
    disk: Option<f64>,
    left: Option<f64>,
    lap: Option<f64>,
    kept: Option<f64>,
    cpu_ms_per_mb: Option<f64>,
}

/// Measures.
pub fn bench(context: &Context, args: &PagerBenchArgs) -> Result<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        let needs = "swap and memory cgroups are set up by root alone; try again with sudo";
        return Err(Missing(needs.to_owned()).into());
    }
    let pairs = args.pairs.unwrap_or(if args.quick { 1 } else { 5 });
    let work: &[(&str, &str)] = if args.quick { &[QUICK] } else { &WORK };
    let mut all = Vec::new();
    for (name, words) in work {
        let mut turns = Vec::new();
        for pair in 0..pairs {
            // Who begins changes, so that neither has the warmer machine.
            for paged in if pair % 2 == 0 { [false, true] } else { [true, false] } {
                match turn(context, args, words, paged)? {
                    Ok(turn) => turns.push(turn),
                    Err(interrupted) => return Ok(interrupted),
                }
            }
        }
        all.push(compared(name, words, &turns));
    }
    if context.json {
        out::print_json(&json!({ "schema": SCHEMA, "on": args.on, "pairs": pairs, "work": all }))?;
    } else {
        out::print(&text(args, pairs, &all)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One turn, or the status of one that was interrupted.
fn turn(context: &Context, args: &PagerBenchArgs, words: &str, paged: bool) -> Result<Result<Turn, ExitCode>> {
    let progress = if args.progress == When::Never || context.json { "never" } else { "auto" };
    let words = format!("tiermark {words} --progress {progress} --swap");
    let typed = words.split(' ').chain([args.on.as_str()]);
    let Some(Verb::Load(verb)) = Cli::try_parse_from(typed)?.verb else { return Err(anyhow!("no workload: {words}")) };
    let machine = machine::read(&Root::live());
    let mut plan = load::plan(&verb, &machine)?;
    if paged {
        helped(&mut plan);
    }
    let finished = execute(context, machine, plan, args.progress)?;
    if finished.state == State::Interrupted {
        return Ok(Err(exit::of_run(&finished)));
    }
    let record = context.open_for_reading()?.load(&finished.id)?;
    let step = record.steps.first().ok_or_else(|| anyhow!("nothing was measured"))?;
    let load = step.load.as_ref().ok_or_else(|| anyhow!("a turn failed: {}", step.ended_by))?;
    if let Some(trouble) = load.paged.as_ref().and_then(|paged| paged.trouble.clone()) {
        return Err(Missing(trouble).into());
    }
    let (whole, settled) =
        rates((step, &record.intervals), load).ok_or_else(|| anyhow!("a turn was too short to say anything"))?;
    let disk = load.areas.first().and_then(|area| area.sequential);
    let per = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let paged_so = load.paged.as_ref().filter(|paged| paged.laps > 0);
    Ok(Ok(Turn {
        paged,
        whole,
        settled,
        disk: disk.map(|(bytes, time)| bytes.0 as f64 / time.secs()),
        left: load.left.map(|left| left.0 as f64),
        lap: paged_so.map(|paged| paged.cycle.0 as f64),
        kept: paged_so.map(|paged| paged.kept.0 as f64),
        cpu_ms_per_mb: paged_so.and_then(|paged| per(paged.cpu.0, paged.ahead.0)),
    }))
}

/// Passes or tokens a second, over all of the time and in its second half.
fn rates((step, intervals): (&StepRecord, &[(u32, Interval)]), load: &Load) -> Option<(f64, f64)> {
    if let Some(generated) = &load.generated {
        let tokens = &generated.tokens;
        let rate = |from: usize| {
            let (first, last) = (tokens.get(from)?, tokens.last()?);
            (last > first).then(|| (tokens.len() - 1 - from) as f64 / (*last - *first).secs())
        };
        return rate(0).zip(rate(tokens.len() / 2));
    }
    let size = step.region?.0 as f64;
    let end = intervals.last()?.1.end;
    let rate = |from: Nanos| {
        let after = intervals.iter().filter(|(_, interval)| interval.start >= from);
        let bytes: u64 = after.map(|(_, interval)| interval.read.bytes).sum();
        (end > from && bytes > 0).then(|| bytes as f64 / size / (end - from).secs())
    };
    rate(Nanos(0)).zip(rate(Nanos(end.0 / 2)))
}

fn compared(name: &str, words: &str, turns: &[Turn]) -> Value {
    let of = |paged: bool, figure: &dyn Fn(&Turn) -> Option<f64>| {
        let all: Vec<f64> = turns.iter().filter(|turn| turn.paged == paged).filter_map(figure).collect();
        median(&all)
    };
    let kernel = of(false, &|turn| Some(turn.whole));
    let whole = of(true, &|turn| Some(turn.whole));
    let settled = of(true, &|turn| Some(turn.settled));
    let bound = |part: &dyn Fn(&Turn) -> Option<f64>| {
        of(true, &|turn| {
            let missing = turn.lap? - part(turn)?;
            (missing > 0.0).then_some(turn.disk? / missing)
        })
    };
    let for_kept = bound(&|turn| turn.kept);
    let optimum = bound(&|turn| turn.left);
    let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b.filter(|b| *b > 0.0)?);
    json!({
        "name": name,
        "command": words,
        "kernel_per_s": kernel,
        "pager_per_s": whole,
        "pager_settled_per_s": settled,
        "speedup": ratio(settled, kernel),
        "speedup_with_learning": ratio(whole, kernel),
        "bound_per_s": for_kept,
        "share_of_bound": ratio(settled, for_kept),
        "optimum_per_s": optimum,
        "share_of_optimum": ratio(settled, optimum),
        "cpu_ms_per_MB": of(true, &|turn| turn.cpu_ms_per_mb),
    })
}

fn text(args: &PagerBenchArgs, pairs: u32, all: &[Value]) -> Result<String> {
    let mut text = format!("The pager against the plain kernel on {}, medians of {pairs} pairs of turns\n\n", args.on);
    for work in all {
        let number = |key: &str| work[key].as_f64().map_or_else(|| "unknown".to_owned(), |value| format!("{value:.3}"));
        let share = |key: &str| {
            work[key].as_f64().map_or_else(|| "unknown".to_owned(), |value| format!("{:.0} %", 100.0 * value))
        };
        writeln!(
            text,
            "{}: tiermark {} --swap {}",
            work["name"].as_str().unwrap_or(""),
            work["command"].as_str().unwrap_or(""),
            args.on
        )?;
        writeln!(
            text,
            "  kernel {} /s, pager {} /s, settled {} /s",
            number("kernel_per_s"),
            number("pager_per_s"),
            number("pager_settled_per_s")
        )?;
        writeln!(
            text,
            "  {} times as fast settled, {} times with its learning",
            number("speedup"),
            number("speedup_with_learning")
        )?;
        writeln!(
            text,
            "  {} of what the disk allows for what it keeps, {} if all that fits were kept; {} ms of CPU per MB\n",
            share("share_of_bound"),
            share("share_of_optimum"),
            number("cpu_ms_per_MB"),
        )?;
    }
    Ok(text)
}
