//! Recommendations, and the rules that make them, as JSON.

use super::{Object, number};
use advise::{ConfFile, Evidence, Goals, Origin, Recommendation, Rule};
use change::Wanted;
use serde_json::Value;

/// `advise --json`.
pub fn advice(goals: &Goals, all: &[Recommendation], files: &[ConfFile], measure: Option<&str>) -> Value {
    let goals = Object::default()
        .with("for", goals.job.name())
        .maybe("p95_us", goals.p95.map(|p95| number(p95.us())))
        .maybe("loss_s", goals.loss.map(|loss| number(loss.secs())))
        .maybe("memory_B", goals.memory.map(|memory| memory.0))
        .maybe("payload_B", goals.job.is_redis().then_some(goals.payload.0))
        .maybe("on", goals.on.as_deref());
    let file = |file: &ConfFile| {
        Object::default().with("name", file.name).with("belongs", file.belongs).with("text", file.text.as_str()).build()
    };
    Object::default()
        .with("schema", "tiermark.advice/1")
        .with("goals", goals.build())
        .with("recommendations", all.iter().map(recommendation).collect::<Value>())
        .with("files", files.iter().map(file).collect::<Value>())
        .maybe("measure", measure)
        .build()
}

fn recommendation(said: &Recommendation) -> Value {
    let gain = said.gain.as_ref().map(|gain| {
        Object::default()
            .with("of", gain.of.as_str())
            .with("percent", number(gain.percent))
            .with("low", number(gain.low))
            .with("high", number(gain.high))
            .with("from", gain.from.to_string())
            .build()
    });
    Object::default()
        .with("rule", said.rule)
        .with("title", said.title.as_str())
        .with("why", said.why.as_str())
        .with("evidence", said.evidence.iter().map(evidence).collect::<Value>())
        .maybe("gain", gain)
        .maybe("risk", said.risk.as_deref())
        .with("changes", said.changes.iter().map(change).collect::<Value>())
        .build()
}

fn evidence(evidence: &Evidence) -> Value {
    let (kind, from) = match &evidence.from {
        Origin::Run(run) => ("run", run),
        Origin::Published(source) => ("published", source),
        Origin::Machine(path) => ("machine", path),
        Origin::Proof(number) => ("proof", number),
        Origin::Predicted(what) => ("predicted", what),
    };
    Object::default().with("text", evidence.text.as_str()).with(kind, from.as_str()).build()
}

pub(super) fn change(change: &Wanted) -> Value {
    let switch = |on: bool| Some(if on { "enabled" } else { "disabled" }.to_owned());
    let (kind, name, value) = match change {
        Wanted::Redis { name, value } => ("redis.conf", name.clone(), Some(value.clone())),
        Wanted::Sysctl { name, value } => ("sysctl", name.clone(), Some(value.clone())),
        Wanted::Sysfs { path, value } => ("sysfs", path.display().to_string(), Some(value.clone())),
        Wanted::Queue { disk, name, value } => ("queue", format!("{disk}/{name}"), Some(value.clone())),
        Wanted::Boot { name, value } => ("boot", name.clone(), value.clone()),
        Wanted::Firmware { name, value } => ("config.txt", name.clone(), Some(value.clone())),
        Wanted::Mount { at, .. } => ("mount", at.display().to_string(), Some(change.line())),
        Wanted::Unit { name, enabled } => ("unit", name.clone(), switch(*enabled)),
        Wanted::Tool { tool, section, name, value } => {
            ("drop-in", format!("{}/[{section}] {name}", tool.folder()), Some(value.clone()))
        }
        Wanted::Variable { path, name, value } => {
            ("variable", format!("{} {name}", path.display()), Some(value.clone()))
        }
    };
    Object::default().with("kind", kind).with("name", name).maybe("value", value).build()
}

/// `rules --json`.
pub fn rules(all: &[&Rule]) -> Value {
    let rule = |rule: &&Rule| {
        Object::default()
            .with("name", rule.name)
            .with("title", rule.title)
            .with("for", rule.jobs.iter().map(|job| job.name()).collect::<Vec<_>>())
            .with("condition", rule.condition)
            .with("source", rule.source)
            .build()
    };
    Object::default().with("schema", "tiermark.rules/1").with("rules", all.iter().map(rule).collect::<Value>()).build()
}
