//! How a run was measured: its facts, its steps with their figures, its engines, and the machine.

use super::Entry;
use crate::terminal::engine_words;
use crate::words;
use basics::Nanos;
use basics::units::significant;
use machine::Machine;
use record::{Record, State, StepRecord};
use serde::Serialize;
use study::{CheckStudy, StepSummary};

#[derive(Serialize)]
pub struct RunText {
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

pub fn run_text(entry: &Entry<'_>) -> RunText {
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
    let steps = record.steps.iter().zip(&entry.steps).filter(|(step, _)| !words::is_needless(step));
    let steps = steps.map(|(step, summary)| step_text(step, summary));
    RunText {
        id: run.id.clone(),
        command: run.command.clone(),
        facts,
        notes: run.notes.clone(),
        left_out: left_out.chain(words::needless(record)).collect(),
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
