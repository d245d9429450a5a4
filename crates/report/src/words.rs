//! Figures and facts as words, the same in every output: numbers at three significant digits, durations in the unit that
//! fits, points in time in a zone, a job and a target's hop in a line.

use basics::job::{Block, Direction, Engine, Order, Pacing, Sync};
use basics::plan::Target;
use basics::units::significant;
use basics::{Bytes, Job, Known, Nanos, NotRun};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use machine::{Hop, Machine};
use record::{Record, Run, State, StepRecord};
use std::fmt::Display;
use study::StepSummary;

/// `2026-11-21 10:04` in the zone given; the bare number of nanoseconds when that is no date.
pub fn minute(unix: Nanos, zone: &TimeZone) -> String {
    timestamp(unix)
        .map_or_else(|| unix.0.to_string(), |at| at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string())
}

/// `2026-11-21T10:04:31Z`, for other programs.
pub fn rfc3339(unix: Nanos) -> Option<String> {
    Some(timestamp(unix)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn timestamp(unix: Nanos) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(unix.0)).ok()
}

/// Quoted figures as text, in their order: as they were printed, at six significant digits.
pub fn quoted(figures: &quoted::Figures) -> Vec<(String, String)> {
    let text = |figure: quoted::figures::Figure| {
        let value = crate::json::number(figure.value).to_string();
        let value = value.strip_suffix(".0").unwrap_or(&value).to_owned();
        (figure.name, value)
    };
    figures.list().into_iter().map(text).collect()
}

/// How long a run took, when it has ended.
pub fn lasted(run: &Run) -> Option<Nanos> {
    run.ended.map(|ended| ended - run.started)
}

/// `running`, `done`, `interrupted`, `failed`, `not run`: the word that lists and JSON use.
pub fn state(state: &State) -> &'static str {
    match state {
        State::Running => "running",
        State::Done => "done",
        State::Interrupted => "interrupted",
        State::Failed(_) => "failed",
        State::NotRun(_) => "not run",
    }
}

/// A duration in words that a person uses: `58 s`, `4 min 10 s`, `2 h 5 min`.
pub fn duration(nanos: Nanos) -> String {
    let secs = nanos.0 / 1_000_000_000;
    match secs {
        0..10 => nanos.to_string(),
        10..120 => format!("{secs} s"),
        120..3600 if secs.is_multiple_of(60) => format!("{} min", secs / 60),
        120..3600 => format!("{} min {} s", secs / 60, secs % 60),
        _ => format!("{} h {} min", secs / 3600, secs % 3600 / 60),
    }
}

/// A number with its unit, or the reason why there is none.
pub fn known<T, D: Display>(value: &Known<T>, show: impl FnOnce(&T) -> D) -> String {
    match value {
        Known::Is(value) => show(value).to_string(),
        Known::Unknown(why) => why.to_string(),
    }
}

/// `430–450`, or `500` when both ends are the same.
pub fn range((low, high): (f64, f64)) -> String {
    if significant(low) == significant(high) {
        significant(high)
    } else {
        format!("{}–{}", significant(low), significant(high))
    }
}

/// A size with the decimal unit in which disks are sold: `240 GB`.
pub fn disk_size(size: Bytes) -> String {
    for (factor, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")] {
        if size.0 as f64 >= factor {
            return format!("{} {unit}", significant(size.0 as f64 / factor));
        }
    }
    format!("{} B", size.0)
}

/// The machine in one line: model, RAM, kernel with its page size, temperature, throttling. Facts that nothing reports
/// are left out, since this line is a name, not a table.
pub fn machine(machine: &Machine) -> String {
    let mut parts = vec![known(&machine.model, |model| model.clone())];
    if machine.model.is_unknown() {
        "Machine of unknown model".clone_into(&mut parts[0]);
    }
    if let Known::Is(ram) = &machine.ram {
        parts.push(ram.to_string());
    }
    if let Known::Is(kernel) = &machine.kernel {
        let page = machine.page_size.get().map(|page| format!(" ({page} pages)")).unwrap_or_default();
        parts.push(format!("kernel {kernel}{page}"));
    }
    if let Known::Is(temperature) = &machine.temperature_c {
        parts.push(format!("{temperature:.0} °C"));
    }
    match &machine.throttled {
        Known::Is(what) if what.is_empty() => parts.push("not throttled".to_owned()),
        Known::Is(what) => parts.push(what.join(", ")),
        Known::Unknown(_) => {}
    }
    parts.join(", ")
}

/// `5 Gbit/s → 625 → 8b/10b → 500 → 430–450 MB/s`, as far as the hop is known; empty when nothing is.
pub fn bus_mathematics(hop: &Hop, arrow: &str) -> String {
    let mut parts = Vec::new();
    if let Some(gbps) = hop.signal_gbps {
        parts.push(format!("{} Gbit/s", significant(gbps)));
    }
    if let Some(raw) = hop.raw_mbps {
        parts.push(significant(raw));
    }
    if let Some(encoded) = hop.encoded_mbps {
        parts.push(significant(encoded));
    }
    if let Some(practical) = hop.practical_mbps {
        parts.push(range(practical));
    }
    if parts.is_empty() { String::new() } else { format!("{} MB/s", parts.join(&format!(" {arrow} "))) }
}

/// fio's word for a job's direction and order.
pub fn rw(job: &Job) -> &'static str {
    match (job.direction, matches!(job.order, Order::Sequential)) {
        (Direction::Read, true) => "read",
        (Direction::Write, true) => "write",
        (Direction::Mixed { .. }, true) => "rw",
        (Direction::Read, false) => "randread",
        (Direction::Write, false) => "randwrite",
        (Direction::Mixed { .. }, false) => "randrw",
    }
}

/// A step's job in a line: `16 KiB random 70/30, depth 4, direct`, as it ran where that is known. Memory and the null
/// target know no O_DIRECT.
pub fn job(step: &StepRecord) -> String {
    let way = (!matches!(step.target.as_str(), "memory" | "null")).then(|| way(step));
    let refused = step.engine.as_ref().is_some_and(|engine| engine.huge_pages_refused().is_some());
    in_a_line(&step.job, way, step.job.wants_huge_pages() && !refused)
}

/// A job that has not run, in a line.
pub fn asked(job: &Job, target: &Target) -> String {
    let way = match (target, job.engine) {
        (Target::Memory { .. } | Target::Null { .. } | Target::Pressed(_) | Target::Redis(_), _) => None,
        (_, Engine::Mmap) => Some("mapped"),
        _ if job.direct => Some("direct"),
        _ => Some("buffered"),
    };
    in_a_line(job, way, job.wants_huge_pages())
}

fn in_a_line(job: &Job, way: Option<&str>, huge_pages: bool) -> String {
    let mut parts = Vec::new();
    let block = match &job.block {
        Block::Fixed(size) => size.to_string(),
        Block::Split(sizes) => {
            sizes.iter().map(|(size, weight)| format!("{size}:{weight}")).collect::<Vec<_>>().join("/")
        }
    };
    let order = match job.order {
        Order::Sequential => "sequential".to_owned(),
        Order::Permuted | Order::Uniform => "random".to_owned(),
        Order::Strided { places, .. } => format!("at {places} places"),
        Order::Zipf { theta } => format!("zipf {theta}"),
    };
    let direction = match job.direction {
        Direction::Read => "read".to_owned(),
        Direction::Write => "write".to_owned(),
        Direction::Mixed { read_percent } => format!("{read_percent}/{}", 100u8.saturating_sub(read_percent)),
    };
    parts.push(format!("{block} {order} {direction}"));
    parts.push(format!("depth {}", job.depth));
    if job.threads > 1 {
        parts.push(format!("{} threads", job.threads));
    }
    parts.extend(way.map(str::to_owned));
    if huge_pages {
        parts.push("huge pages".to_owned());
    }
    match job.sync {
        Sync::None => {}
        Sync::Dsync => parts.push("O_DSYNC".to_owned()),
        Sync::OSync => parts.push("O_SYNC".to_owned()),
        Sync::Fsync { every } => parts.push(every_so_many("fsync", every)),
        Sync::Fdatasync { every } => parts.push(every_so_many("fdatasync", every)),
    }
    if job.end_fsync {
        parts.push("fsync at the end".to_owned());
    }
    match job.pacing {
        Pacing::Closed => {}
        Pacing::Fixed { iops } => parts.push(format!("open loop, {}/s", significant(iops))),
        Pacing::Poisson { iops } => parts.push(format!("open loop, Poisson {}/s", significant(iops))),
    }
    parts.join(", ")
}

/// By which way the bytes went, as far as the engine told.
fn way(step: &StepRecord) -> &'static str {
    let engine = step.engine.as_ref();
    let refused = engine.is_some_and(|engine| engine.direct_refused().is_some());
    let by_file_system = engine.is_some_and(|engine| engine.direct_writes_refused().is_some());
    match engine.map(|engine| engine.used) {
        Some(Engine::Mmap) => "mapped",
        Some(Engine::Touch) => "swapped",
        Some(Engine::Decode | Engine::Served) => "decoding",
        Some(Engine::Browsed) => "browsing",
        Some(Engine::Built) => "compiling",
        Some(Engine::Resp) => "GET and SET",
        _ if step.job.direct && refused => "buffered (O_DIRECT refused)",
        _ if step.job.direct && by_file_system => "direct, its writes buffered by the file system",
        _ if step.job.direct => "direct",
        _ => "buffered",
    }
}

fn every_so_many(what: &str, every: u32) -> String {
    if every == 1 { format!("{what} after each") } else { format!("{what} after every {every}") }
}

/// What a reader must know of a run whose durations were shortened, before its figures.
pub fn scaled(run: &Run) -> Option<String> {
    run.plan.scale.map(|scale| format!("all durations are {scale} of what {} takes", run.plan.method))
}

/// How many steps were not run because enough was known.
pub fn needless(record: &Record) -> Option<String> {
    let count = record.steps.iter().filter(|step| is_needless(step)).count();
    (count > 0).then(|| format!("{count} steps: {}", NotRun::Enough))
}

/// Whether a step was not run because enough was known: there may be a thousand, and they say nothing one by one.
pub fn is_needless(step: &StepRecord) -> bool {
    step.state == State::NotRun(NotRun::Enough)
}

/// True when a step has figures and did not come to its end: they are of a part of the work.
pub fn partial(step: &StepRecord) -> bool {
    step.state != State::Done && step.read.operations() + step.write.operations() > 0
}

/// How long a step was measured and what ended it: `2.00 s, ended by time`, `interrupted after 800 ms`.
pub fn ended(step: &StepRecord) -> String {
    let cut = if step.ended_by == "process ended" { "cut off with its process" } else { "interrupted" };
    let mut ended = match &step.state {
        State::Interrupted if step.elapsed.0 == 0 => cut.to_owned(),
        State::Interrupted => format!("{cut} after {}", step.elapsed),
        State::Done if !step.ended_by.is_empty() => format!("{}, ended by {}", step.elapsed, step.ended_by),
        State::Done | State::Failed(_) | State::Running | State::NotRun(_) => state(&step.state).to_owned(),
    };
    if partial(step) {
        ended.push_str(", partial figures");
    }
    ended
}

/// The half width of a rate's 95 % interval: `±3.10 %`, or that there is no rate to speak of.
pub fn noise(percent: f64) -> String {
    if percent > 100.0 { "unstable".to_owned() } else { format!("±{} %", significant(percent)) }
}

/// What a reader of a step's figures must know: what was noted while it ran, and what its record lacks.
pub fn notes(step: &StepRecord, summary: &StepSummary) -> Vec<String> {
    let missing = match summary.missing_intervals {
        0 => None,
        1 => Some(
            "1 interval is missing from the record: its operations are in the totals, not in the series.".to_owned(),
        ),
        n => Some(format!(
            "{n} intervals are missing from the record: their operations are in the totals, not in the series."
        )),
    };
    let mark = summary.in_flight.mark().map(|mark| format!("{mark}."));
    step.notes
        .iter()
        .cloned()
        .chain(missing)
        .chain(summary.cache_note())
        .chain(summary.compression_note())
        .chain(mark)
        .collect()
}

/// What was noted in the steps of a run, each sentence once.
pub fn notes_of_steps(record: &Record) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in record.steps.iter().flat_map(|step| &step.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    notes
}

/// True when latencies of the job count from the intended time.
pub fn open_loop(job: &Job) -> bool {
    !matches!(job.pacing, Pacing::Closed)
}

/// The block size of the steps of this name, `16 KiB` where none ran: that is what `check` plans.
pub fn block_of(record: &Record, step: &str) -> String {
    let found = record.steps.iter().find(|known| known.name == step);
    found.map_or(Bytes(16384), |step| step.job.block.largest()).to_string()
}

/// `2026-11-21-check-7c1e04aa.html`: the day in UTC, the method, the run.
pub fn file_name(record: &Record) -> String {
    let run = &record.run;
    let day = rfc3339(run.started).and_then(|at| at.get(..10).map(str::to_owned)).unwrap_or_default();
    let method: String = run.plan.method.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{day}-{method}-{}.html", run.id)
}

/// The name of a report of several runs, in which each is named: a report of its own, not that of the first.
pub fn file_name_of(records: &[&Record]) -> String {
    let Some((first, others)) = records.split_first() else { return "report.html".to_owned() };
    let name = file_name(first);
    let mut others: Vec<&str> = others.iter().map(|record| record.run.id.as_str()).collect();
    // A name may have 255 bytes; the days of the many are in the report itself.
    let more = others.len().saturating_sub(MOST_NAMED);
    others.truncate(MOST_NAMED);
    let mut name = name.trim_end_matches(".html").to_owned();
    for id in others {
        name.push_str("-with-");
        name.push_str(id);
    }
    if more > 0 {
        name.push_str(&format!("-and-{more}-more"));
    }
    name + ".html"
}

/// Runs beside the first that stand in a report's name.
const MOST_NAMED: usize = 6;

/// What a plan left out, steps of the same reason in one line.
pub fn left_out(plan: &basics::Plan) -> Vec<String> {
    let mut out: Vec<(String, Vec<&str>)> = Vec::new();
    for left in &plan.left_out {
        let (why, what) = (left.why.to_string(), if left.step.is_empty() { "every step" } else { &left.step });
        match out.iter_mut().find(|(other, _)| *other == why) {
            Some((_, all)) => all.push(what),
            None => out.push((why, vec![what])),
        }
    }
    out.into_iter().map(|(why, all)| format!("{}: {why}", basics::units::listed(&all))).collect()
}

/// A tier's name, with its run's where runs stand side by side.
pub fn of_run(tier: &str, run: &str, several: bool) -> String {
    if several { format!("{tier} ({run})") } else { tier.to_owned() }
}

/// A name for a profile of what these runs measured, in the letters that names of profiles have: the tier's or the target's,
/// with `fit-` before it, so that it is not taken for the shipped one it may have been simulated from.
pub fn profile_name(records: &[Record]) -> String {
    let step = records.iter().flat_map(|record| &record.steps).next();
    let from = step.map_or("device", |step| step.tier.as_deref().unwrap_or(&step.target));
    let kebab: String =
        from.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = kebab.split('-').filter(|word| !word.is_empty()).collect();
    let name: String = format!("fit-{}", words.join("-")).chars().take(64).collect();
    name.trim_end_matches('-').to_owned()
}
