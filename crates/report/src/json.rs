//! The documents that `--json` prints, for other programs: units in the names, a key absent when its value is unknown,
//! `schema` with its version. docs/json.md describes every key; a key never changes its meaning within a version.

mod advise;
mod cells;
mod desktop;
mod desktop_check;
mod learned;
mod moving;
mod proof;
mod rows;
mod settings;
mod vectors;

pub use advise::{advice, rules};

use crate::costs::costs;
use crate::view::{comparisons, origin, summaries, view};
use crate::words;
use basics::cost::Cost;
use basics::job::{Block, Entropy, Order, Pacing, Sync};
use basics::little::{Audit, Verdict};
use basics::{FailKind, Job, Known, Nanos, Plan};
pub use desktop_check::desktop_check;
pub use learned::learned;
use machine::{Ceiling, Hop, Machine, TierKind};
use methods::Method;
pub use moving::{move_planned, moved, moved_back};
pub use proof::{proof, proofs};
use record::{Failure, Record, RunHead, State, StepRecord};
pub use rows::predictions;
use serde_json::{Map, Value, json};
pub use settings::{applied, reverted, status};
use std::path::Path;
use study::{CheckStudy, Comparison, Finding, Fitness, LatencySummary, SideSummary, StepSummary, TierStudy};

/// What somebody who typed nothing may ask first.
pub fn begin(machine: &Machine, suggestions: &[::advise::Suggestion]) -> Value {
    let all: Vec<Value> = suggestions.iter().map(|said| json!({"command": said.command, "why": said.why})).collect();
    json!({"schema": "tiermark.begin/1", "machine": words::machine(machine), "suggestions": all})
}

/// A file that was made for what was asked for.
pub fn made(path: &Path) -> Value {
    json!({"schema": "tiermark.made/1", "path": path.display().to_string()})
}

/// A look at the machine, one line of `watch --json`.
pub fn watch(flow: &study::flow::Flow, memory: &observe::Memory, events: &[study::flow::Event]) -> Value {
    let bytes = |bytes: Option<basics::Bytes>| bytes.map(|bytes| bytes.0);
    let compressed = |held: &observe::Compressed| json!({ "held_B": held.held.0, "ram_B": held.ram.0 });
    let zram = memory.zram.iter().map(|(name, held)| (name.clone(), compressed(held)));
    let known = [
        ("total_B", bytes(memory.total)),
        ("available_B", bytes(memory.available)),
        ("dirty_B", bytes(memory.dirty)),
        ("swap_total_B", bytes(memory.swap_total)),
        ("swap_used_B", bytes(memory.swap_used)),
    ];
    let mut taken: Map<String, Value> =
        known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
    taken.extend(memory.zswap.as_ref().map(|held| ("zswap".to_owned(), compressed(held))));
    taken.insert("zram".to_owned(), Value::Object(zram.collect()));
    let mut document = Object::default().with("schema", "tiermark.watch/1").0;
    if let Ok(Value::Object(flow)) = serde_json::to_value(flow) {
        document.extend(flow);
    }
    document.insert("memory".to_owned(), Value::Object(taken));
    document.insert("events".to_owned(), json!(events));
    Value::Object(document)
}

/// An object whose unknown values are left out.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }
    fn maybe(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
    fn known<T>(self, key: &str, value: &Known<T>, show: impl FnOnce(&T) -> Value) -> Self {
        self.maybe(key, value.get().map(show))
    }
    fn build(self) -> Value {
        Value::Object(self.0)
    }
}

/// At six significant digits: more is noise, and `0.1` shall not read `0.10000000000000001`.
pub(crate) fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value == 0.0 {
        return json!(0.0);
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    let rounded = if scale.is_finite() && scale > 0.0 { (value * scale).round() / scale } else { value };
    json!(rounded)
}

fn us(nanos: Nanos) -> Value {
    number(nanos.us())
}

/// `tiers --json`: what the machine offers, without a measurement.
pub fn tiers(machine: &Machine) -> Value {
    Object::default()
        .with("schema", "tiermark.tiers/1")
        .with(
            "machine",
            Object::default()
                .known("model", &machine.model, |v| json!(v))
                .known("kernel", &machine.kernel, |v| json!(v))
                .known("page_size_B", &machine.page_size, |v| json!(v.0))
                .known("ram_B", &machine.ram, |v| json!(v.0))
                .build(),
        )
        .with("tiers", machine.tiers.iter().map(tier).collect::<Vec<_>>())
        .with("notices", warnings(&machine.notices))
        .build()
}

fn tier(tier: &machine::Tier) -> Value {
    Object::default()
        .with("name", tier.name.as_str())
        .with("kind", kind(tier.kind))
        .maybe("path", tier.path.as_ref().map(|path| path.display().to_string()))
        .known("size_B", &tier.size, |v| json!(v.0))
        .with("hops", tier.hops.iter().map(hop).collect::<Vec<_>>())
        .known("ceiling", &tier.ceiling, ceiling)
        .with("warnings", tier.warnings.iter().map(|warning| warning.text.as_str()).collect::<Vec<_>>())
        .with("warning_details", warnings(&tier.warnings))
        .build()
}

fn warnings(warnings: &[machine::Warning]) -> Vec<Value> {
    let one =
        |warning: &machine::Warning| json!({"id": warning.id, "text": warning.text, "evidence": warning.evidence});
    warnings.iter().map(one).collect()
}

/// The kind's stable kebab-case name.
fn kind(kind: TierKind) -> Value {
    json!(kind)
}

fn hop(hop: &Hop) -> Value {
    Object::default()
        .with("name", hop.name.as_str())
        .with("kind", hop.kind.as_str())
        .maybe("signal_Gbps", hop.signal_gbps.map(number))
        .maybe("encoding", hop.encoding.as_deref())
        .maybe("raw_MBps", hop.raw_mbps.map(number))
        .maybe("encoded_MBps", hop.encoded_mbps.map(number))
        .maybe("practical_MBps", hop.practical_mbps.map(pair))
        .maybe("transit_us", hop.transit_us.map(number))
        .maybe("detail", hop.detail.as_deref())
        .maybe("could_be", hop.could_be.as_deref())
        .maybe("source", hop.source.as_deref())
        .build()
}

fn ceiling(ceiling: &Ceiling) -> Value {
    json!({
        "encoded_MBps": number(ceiling.encoded_mbps),
        "practical_MBps": pair(ceiling.practical_mbps),
        "hop": ceiling.hop,
    })
}

fn pair((low, high): (f64, f64)) -> Value {
    json!([number(low), number(high)])
}

/// `run … --json` and `show RUN --json`: a run and its steps.
pub fn run(record: &Record) -> Value {
    run_of(record, &summaries(record))
}

/// The same with the steps summed up before.
pub(crate) fn run_of(record: &Record, summaries: &[StepSummary]) -> Value {
    let steps: Vec<Value> =
        record.steps.iter().zip(summaries).map(|(step, summary)| self::step(step, summary)).collect();
    let findings = findings(&study::findings(&view(record)));
    let mut rows: Vec<Value> = study::load_rows(&view(record)).iter().map(rows::load_row).collect();
    rows.extend(study::token_rows(&view(record)).iter().map(rows::token_row));
    rows.extend(study::desktop_rows(&view(record)).iter().map(desktop::row));
    rows.extend(study::build_rows(&view(record)).iter().map(desktop::built));
    let verdicts: Vec<Value> = study::desktop_verdicts(&view(record)).iter().map(desktop::verdict).collect();
    let cells: Vec<Value> = study::redis_cells(&view(record)).iter().map(cells::cell).collect();
    let vectors: Vec<Value> = study::vector_rows(&view(record)).iter().map(vectors::row).collect();
    let document = head("tiermark.run/1", record).with("findings", findings);
    let document = document.maybe("vectors", (!vectors.is_empty()).then_some(vectors));
    let document = document.maybe("cells", (!cells.is_empty()).then_some(cells));
    let document = document.maybe("verdicts", (!verdicts.is_empty()).then_some(verdicts));
    document.maybe("rows", (!rows.is_empty()).then_some(rows)).with("steps", steps).build()
}

fn head(schema: &str, record: &Record) -> Object {
    let run = &record.run;
    Object::default()
        .with("schema", schema)
        .with("run", run.id.as_str())
        .with("state", words::state(&run.state))
        .maybe("why", failure(&run.state))
        .with("origin", origin(&run.origin).to_string())
        .with("method", method(record))
        .with("parameters", json!(run.plan.parameters))
        .with("as_published", run.plan.as_published)
        .maybe("scale", run.plan.scale.map(|scale| scale.to_string()))
        .with("target", run.target.as_str())
        .with("command", run.command.as_str())
        .with("version", run.version.as_str())
        .with("plan_hash", run.plan.hash())
        .with("seed", run.plan.seed)
        .maybe("started", words::rfc3339(run.started))
        .maybe("elapsed_s", words::lasted(run).map(|lasted| number(lasted.secs())))
        .maybe("harness_ns_per_op", run.harness_ns_per_op.map(number))
        .with("notes", run.notes.clone())
}

/// The method with the figures that its readers know, where it has any of its own.
fn method(record: &Record) -> Value {
    let plan = &record.run.plan;
    let figures = study::published::figures(&view(record)).map(|figures| rounded(json!(figures)));
    let figures = figures.or_else(|| record.run.quoted.as_ref().map(fields));
    Object::default()
        .with("name", plan.method.as_str())
        .with("as_published", plan.as_published)
        .maybe("figures", figures)
        .build()
}

/// What another program printed, under the names of its type, without the name of its format.
fn fields(figures: &quoted::Figures) -> Value {
    json!(figures).get_mut("figures").map(Value::take).unwrap_or_default()
}

/// All numbers that are no integers at six significant digits.
fn rounded(value: Value) -> Value {
    match value {
        Value::Number(it) if it.is_f64() => it.as_f64().map_or(Value::Null, number),
        Value::Array(all) => all.into_iter().map(rounded).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, rounded(value))).collect(),
        other => other,
    }
}

/// Operations that were kept one by one.
fn operations(each: &[basics::Each]) -> Option<Vec<Value>> {
    let one = |each: &basics::Each| {
        json!({"rw": if each.read { "read" } else { "write" }, "offset_B": each.offset.0, "len_B": each.len.0,
            "at_s": number(each.at.secs()), "lat_us": us(each.latency)})
    };
    (!each.is_empty()).then(|| each.iter().map(one).collect())
}

fn failure(state: &State) -> Option<String> {
    match state {
        State::Failed(failure) => Some(failure.why.clone()),
        State::NotRun(why) => Some(why.to_string()),
        State::Running | State::Done | State::Interrupted => None,
    }
}

/// The stable kebab-case name of what kept a step from its figures.
fn why_kind(state: &State) -> Option<Value> {
    match state {
        State::Failed(Failure { kind: FailKind::Astray { .. }, .. }) => Some(json!("astray")),
        State::Failed(failure) => Some(json!(failure.kind)),
        State::NotRun(why) => Some(json!(why)),
        State::Running | State::Done | State::Interrupted => None,
    }
}

/// Where something else was read than what was written there.
fn astray(state: &State) -> Option<Value> {
    let State::Failed(Failure { kind: FailKind::Astray { at, holds }, .. }) = state else { return None };
    Some(Object::default().with("at_B", at.0).maybe("holds_B", holds.map(|place| place.0)).build())
}

fn step(step: &StepRecord, summary: &StepSummary) -> Value {
    let engine = step.engine.as_ref();
    let cpu = summary.cpu.map(|cpu| {
        let (user, system) = cpu.split_us.unzip();
        Object::default()
            .with("total_us_per_op", number(cpu.total_us))
            .maybe("user_us_per_op", user.map(number))
            .maybe("sys_us_per_op", system.map(number))
            .build()
    });
    Object::default()
        .with("name", step.name.as_str())
        .maybe("tier", step.tier.as_deref())
        .with("target", step.target.as_str())
        .with("state", words::state(&step.state))
        .maybe("why", failure(&step.state))
        .maybe("why_kind", why_kind(&step.state))
        .maybe("astray", astray(&step.state))
        .with("ended_by", step.ended_by.as_str())
        .maybe("region_B", step.region.map(|region| region.0))
        .maybe("filled_B", step.filled.map(|fill| fill.bytes.0))
        .maybe("fill_s", step.filled.map(|fill| number(fill.time.secs())))
        .maybe("engine", engine.map(|engine| engine.used.name()))
        .maybe("engine_asked", engine.map(|engine| engine.asked.name()))
        .maybe("engine_why", engine.map(|engine| engine.why.as_str()).filter(|why| !why.is_empty()))
        .maybe(
            "engine_dropped",
            engine.map(|engine| {
                engine.dropped.iter().map(|(what, why)| json!({"feature": what, "why": why})).collect::<Vec<_>>()
            }),
        )
        .with("job", job(&step.job))
        .maybe("read", summary.read.as_ref().map(|of| predicted(side(of), step.predicted.and_then(|p| p.read))))
        .maybe("write", summary.write.as_ref().map(|of| predicted(side(of), step.predicted.and_then(|p| p.write))))
        .maybe("operations", operations(&step.each))
        .with("elapsed_s", number(step.elapsed.secs()))
        .with("in_flight", in_flight(&summary.in_flight))
        .with("missing_intervals", summary.missing_intervals)
        .maybe("cpu", cpu)
        .maybe("observing", step.observing.map(observing))
        .with("notes", step.notes.clone())
        .build()
}

/// What rate and latency of a step sum to by Little's law.
fn in_flight(audit: &Audit) -> Value {
    match audit.verdict {
        Verdict::Unsaid(why) => json!({"verdict": "unsaid", "why": why.to_string()}),
        Verdict::Consistent | Verdict::Off(_) => Object::default()
            .with("verdict", if audit.is_off() { "off" } else { "consistent" })
            .with("sum", number(audit.sum))
            .with("asked", number(audit.depth))
            .maybe("why", audit.mark())
            .build(),
    }
}

/// A direction with what its profile's uncertainty makes of it, where it is simulated from one that states any.
fn predicted(mut side: Value, expected: Option<basics::Expected>) -> Value {
    if let (Some(object), Some(expected)) = (side.as_object_mut(), expected) {
        let span = json!({"iops": pair(expected.iops), "lat_mean_us": pair(expected.lat_mean_us)});
        object.insert("predicted".to_owned(), span);
    }
    side
}

/// What observing the machine beside the step cost.
fn observing(cost: observe::Cost) -> Value {
    json!({"samples": cost.samples, "cpu_us": us(cost.cpu), "dropped": cost.dropped})
}

/// A job under the names that `run job --set` takes, with units.
fn job(job: &Job) -> Value {
    let (pacing, rate) = match job.pacing {
        Pacing::Closed => ("closed", None),
        Pacing::Fixed { iops } => ("fixed", Some(iops)),
        Pacing::Poisson { iops } => ("poisson", Some(iops)),
    };
    let (sync, every) = match job.sync {
        Sync::None => ("none", None),
        Sync::Dsync => ("dsync", None),
        Sync::OSync => ("sync", None),
        Sync::Fsync { every } => ("fsync", Some(every)),
        Sync::Fdatasync { every } => ("fdatasync", Some(every)),
    };
    let (order, theta) = match job.order {
        Order::Sequential => ("sequential", None),
        Order::Permuted => ("permuted", None),
        Order::Strided { .. } => ("strided", None),
        Order::Uniform => ("uniform", None),
        Order::Zipf { theta } => ("zipf", Some(theta)),
    };
    let read_percent = match job.direction {
        basics::job::Direction::Mixed { read_percent } => Some(read_percent),
        _ => None,
    };
    let mut object = Object::default()
        .with("rw", words::rw(job))
        .maybe("read_percent", read_percent)
        .with("order", order)
        .maybe("zipf_theta", theta.map(number));
    object = match &job.block {
        Block::Fixed(size) => object.with("bs_B", size.0),
        Block::Split(sizes) => object.with(
            "bs_split",
            sizes.iter().map(|(size, weight)| json!({"bs_B": size.0, "weight": weight})).collect::<Vec<_>>(),
        ),
    };
    object
        .with("depth", job.depth)
        .with("threads", job.threads)
        .with("separate_regions", job.separate_regions)
        .with("offset_B", job.offset.0)
        .maybe("size_B", job.size.map(|size| size.0))
        .with("direct", job.direct)
        .with("huge_pages", job.huge_pages)
        .with("invalidate", job.invalidate)
        .with("sync", sync)
        .maybe("sync_every", every)
        .with("end_fsync", job.end_fsync)
        .with("pacing", pacing)
        .maybe("rate_iops", rate.map(number))
        .with(
            "entropy",
            match job.entropy {
                Entropy::Zeros => "zeros",
                Entropy::Compressible => "compressible",
                Entropy::Incompressible => "incompressible",
                Entropy::Deduplicable => "deduplicable",
                Entropy::Stamps => "stamps",
                Entropy::Tagged => "tagged",
            },
        )
        .maybe("runtime_s", job.stop.time.map(|time| number(time.secs())))
        .maybe("bytes_B", job.stop.bytes.map(|bytes| bytes.0))
        .maybe("operations", job.stop.operations)
        .maybe("until_percent", job.stop.until.map(|until| number(until.percent)))
        .maybe("until_figure", job.stop.until.map(|until| json!(until.figure)))
        .maybe("until_at_least_s", job.stop.until.map(|until| number(until.at_least.secs())))
        .with("interval_s", number(job.interval.secs()))
        .with("warmup_s", number(job.warmup.secs()))
        .with("engine", job.engine.name())
        .with("seed", job.seed)
        .build()
}

fn side(side: &SideSummary) -> Value {
    Object::default()
        .with("iops", number(side.iops))
        .with("MBps", number(side.mbps))
        .with("ops", side.ops)
        .with("lat_us", latency(&side.lat))
        .maybe("service_us", side.service.as_ref().map(latency))
        .known("ci95_percent", &side.ci95_percent, |v| number(*v))
        .build()
}

fn latency(latency: &LatencySummary) -> Value {
    let mut object = Object::default().known("mean", &latency.mean, |v| us(*v));
    for (percent, value) in &latency.percentiles {
        object = object.with(&format!("p{percent}"), us(*value));
    }
    object.known("max", &latency.max, |v| us(*v)).build()
}

/// `check --json`: the figures and what they mean. `report` is where the HTML report lies, if one was written.
pub fn check(record: &Record, study: &CheckStudy, report: Option<&Path>) -> Value {
    let run = &record.run;
    Object::default()
        .with("schema", "tiermark.check/1")
        .with("run", run.id.as_str())
        .with("state", words::state(&run.state))
        .maybe("why", failure(&run.state))
        .with("origin", origin(&run.origin).to_string())
        .maybe("report", report.map(|path| path.display().to_string()))
        .maybe("elapsed_s", words::lasted(run).map(|lasted| number(lasted.secs())))
        .with("headline", study.headline.as_str())
        .with("tiers", study.tiers.iter().map(|tier| tier_study(record, tier)).collect::<Vec<_>>())
        .with("findings", findings(&study.findings))
        .build()
}

fn tier_study(record: &Record, tier: &TierStudy) -> Value {
    let facts = record.run.machine.tiers.iter().find(|known| known.name == tier.name);
    let figures = &tier.figures;
    let (read, write) = (figures.swap_sim_read.get(), figures.swap_sim_write.get());
    let swap_sim = (read.is_some() || write.is_some()).then(|| {
        Object::default()
            .maybe("read_iops", read.map(|side| number(side.iops)))
            .maybe("write_iops", write.map(|side| number(side.iops)))
            .maybe("read_lat_us", read.map(|side| latency(&side.lat)))
            .maybe("write_lat_us", write.map(|side| latency(&side.lat)))
            .build()
    });
    let figure = |v: &f64| number(*v);
    Object::default()
        .with("name", tier.name.as_str())
        .maybe("kind", facts.map(|facts| kind(facts.kind)))
        .maybe("path", facts.and_then(|facts| facts.path.as_ref()).map(|path| path.display().to_string()))
        .with("place", tier.place.as_str())
        .known("seq_read_MBps", &figures.seq_read_mbps, figure)
        .known("seq_write_MBps", &figures.seq_write_mbps, figure)
        .maybe("swap_sim", swap_sim)
        .known("page_read_qd1_us", &figures.page_read_qd1, latency)
        .known("rand_read_4k_qd1_us", &figures.rand_read_4k_qd1_us, figure)
        .known("rand_read_4k_qd32_iops", &figures.rand_read_4k_qd32_iops, figure)
        .known("fsync_us", &figures.fsync, latency)
        .known("load_ns", &figures.load_ns, figure)
        .known("ceiling_share", &tier.ceiling_share, figure)
        .maybe("ceiling_hop", tier.ceiling_hop.as_deref())
        .maybe(
            "resembles",
            tier.resembles.first().map(|like| json!({"name": like.name, "distance": number(like.distance)})),
        )
        .with("findings", findings(&tier.findings))
        .with("good_for", good_for(&tier.good_for))
        .with("fitness", tier.good_for.iter().map(fitness).collect::<Vec<_>>())
        .build()
}

fn findings(findings: &[Finding]) -> Vec<Value> {
    findings
        .iter()
        .map(|finding| {
            Object::default()
                .with("id", finding.id.as_str())
                .with("weight", finding.weight)
                .maybe("tier", finding.tier.as_deref())
                .with("text", finding.text.as_str())
                .maybe("advice", finding.advice.as_deref())
                .maybe("gain", finding.gain.as_deref())
                .with("evidence", finding.evidence.clone())
                .build()
        })
        .collect()
}

/// The purposes that the tier serves without a reservation.
fn good_for(fitness: &[Fitness]) -> Vec<&str> {
    fitness.iter().filter(|fitness| fitness.verdict == "yes").map(|fitness| fitness.purpose.as_str()).collect()
}

fn fitness(fitness: &Fitness) -> Value {
    json!({"purpose": fitness.purpose, "verdict": fitness.verdict, "why": fitness.why})
}

/// `compare --json`: each later run against the first, figure by figure, with the verdict that the noise allows.
pub fn compare(groups: &[Vec<&Record>]) -> Value {
    let comparisons: Vec<Value> =
        comparisons(groups).map(|(after, comparison)| one_comparison(after, &comparison)).collect();
    Object::default()
        .with("schema", "tiermark.compare/1")
        .maybe("before", groups.first().map(|group| names(group)))
        .with("comparisons", comparisons)
        .build()
}

/// The names of repeated runs, as they are typed.
fn names(group: &[&Record]) -> String {
    group.iter().map(|record| record.run.id.as_str()).collect::<Vec<_>>().join(",")
}

fn one_comparison(after: &[&Record], comparison: &Comparison) -> Value {
    let figures: Vec<Value> = comparison
        .figures
        .iter()
        .map(|figure| {
            Object::default()
                .with("step", figure.step.as_str())
                .maybe("tier", figure.tier.as_deref())
                .with("figure", figure.figure.as_str())
                .with("more_is_better", figure.more_is_better)
                .with("before", number(figure.before))
                .with("after", number(figure.after))
                .with("ratio", number(figure.ratio))
                .known("ratio_ci95", &figure.ratio_ci95, |interval| pair(*interval))
                .with("verdict", json!(figure.verdict))
                .with("text", figure.text.as_str())
                .build()
        })
        .collect();
    Object::default()
        .with("after", names(after))
        .with("headline", comparison.headline.as_str())
        .with("figures", figures)
        .with("unmatched", comparison.unmatched.clone())
        .with("notes", comparison.notes.clone())
        .build()
}

/// `runs --json`: the list of runs.
pub fn runs(heads: &[RunHead]) -> Value {
    let runs: Vec<Value> = heads
        .iter()
        .map(|head| {
            Object::default()
                .with("run", head.id.as_str())
                .with("state", words::state(&head.state))
                .maybe("why", failure(&head.state))
                .with("origin", origin(&head.origin).to_string())
                .with("method", head.method.as_str())
                .with("target", head.target.as_str())
                .maybe("started", words::rfc3339(head.started))
                .maybe("ended", head.ended.and_then(words::rfc3339))
                .with("steps", head.steps)
                .build()
        })
        .collect();
    json!({"schema": "tiermark.runs/1", "runs": runs})
}

/// `profiles --json`: each profile's fields under the names that its TOML has.
///
/// # Errors
/// When a profile holds a number that JSON cannot.
pub fn profiles(all: &[profile::Profile]) -> Result<Value, serde_json::Error> {
    let mut list = Vec::new();
    for profile in all {
        let mut fields = serde_json::to_value(profile)?;
        let named: Vec<Value> = ["name", "title", "source"]
            .into_iter()
            .map(|key| fields.as_object_mut().and_then(|fields| fields.remove(key)).unwrap_or_default())
            .collect();
        list.push(json!({"name": named[0], "title": named[1], "source": named[2], "fields": fields}));
    }
    Ok(json!({"schema": "tiermark.profiles/1", "profiles": list}))
}

/// `methods --json`: what can be run. `source` is null for a method that was not published.
pub fn methods(methods: &[&dyn Method]) -> Value {
    let parameter = |p: &methods::Parameter| json!({"key": p.key, "aliases": p.aliases, "default": p.default.text(), "help": p.help});
    let one = |method: &&dyn Method| {
        json!({
            "name": method.name(),
            "summary": method.summary(),
            "cost": method.cost(),
            "source": method.source(),
            "parameters": method.parameters().iter().map(parameter).collect::<Vec<_>>(),
        })
    };
    json!({"schema": "tiermark.methods/1", "methods": methods.iter().map(one).collect::<Vec<_>>()})
}

/// `run … --dry-run --json`: the plan as it is stored, and what it costs.
pub fn plan(plan: &Plan, machine: &Machine) -> Value {
    let costs = costs(plan, machine);
    let step = |(step, of): (&basics::plan::Step, &Cost)| {
        let target = &plan.targets[step.target];
        Object::default()
            .with("name", step.name.as_str())
            .with("target", target.describe())
            .with("cost", cost(of))
            .build()
    };
    json!({
        "schema": "tiermark.plan/1",
        "hash": plan.hash(),
        "plan": plan,
        "steps": plan.steps.iter().zip(&costs).map(step).collect::<Vec<_>>(),
        "cost": cost(&Cost::sum(&costs)),
    })
}

/// What a step or a plan costs; without an upper end the device decides.
fn cost(cost: &Cost) -> Value {
    Object::default()
        .with("least_s", number(cost.time.least.secs()))
        .maybe("most_s", cost.time.most.map(|most| number(most.secs())))
        .with("laid_out_B", cost.laid_out.0)
        .with("least_written_B", cost.written.least.0)
        .maybe("most_written_B", cost.written.most.map(|most| most.0))
        .build()
}

/// `import --json`: the names under which the runs are kept here, whose figures they are, and which contradict each other.
pub fn imported(records: &[Record]) -> Value {
    let one = |record: &Record| {
        let quoted = record.run.quoted.as_ref();
        Object::default()
            .with("run", record.run.id.as_str())
            .with("source_format", quoted.map_or("tiermark", |figures| figures.format().name()))
            .with("target", record.run.target.as_str())
            .maybe("figures", quoted.map(fields))
            .with("inconsistent", study::little::marks(&crate::view(record)))
            .build()
    };
    json!({"schema": "tiermark.import/1", "runs": records.iter().map(one).collect::<Vec<_>>()})
}

/// `profile … --json`: one profile, every field under the name that its TOML has.
///
/// # Errors
/// When the profile holds a number that JSON cannot.
pub fn profile(profile: &profile::Profile) -> Result<Value, serde_json::Error> {
    let mut fields = serde_json::to_value(profile)?;
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("schema".to_owned(), json!("tiermark.profile/1"));
    }
    Ok(fields)
}
