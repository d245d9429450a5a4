//! What a Redis server under load says about the ways to keep its data and the media they are kept on: a cell for each way, medium
//! and length of values, over all its visits, what it costs against keeping nothing, and who was the limit.

mod cached;
mod learned;
mod loss;
mod published;
mod spikes;

pub use cached::{PREFIX as VECTORS, VectorRow, vector_rows, vectors_headline};
pub use learned::{Learned, learned};
pub use loss::Loss;
pub use published::{PublishedRedis, published_redis};
pub use spikes::{Explained, Late, LateRequests, Reason};

use crate::load::unmeasured;
use crate::model::{RunView, StepView};
use basics::job::{Block, Engine, Pacing};
use basics::redis::{Mode, Served};
use basics::redis_commands::Command;
use basics::stats::median;
use basics::units::significant;
use basics::{Bytes, Known, Latencies, Nanos, Why};

/// Beyond a percentile there must be so many requests for it to be told.
const BEYOND: f64 = 10.0;
/// A thread that is busy for so much of the time, and busier than the other side's, is the limit.
const BUSY: f64 = 0.7;
/// Clients that make so much of what they can against a server that does nothing are the limit.
const NEAR: f64 = 0.85;
/// Of the pace that was asked for, kept.
const KEPT: f64 = 0.95;
/// A main thread that is busy for less waits for something else.
const IDLE: f64 = 0.3;

/// Percentiles of latency, µs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 95th.
    pub p95: f64,
    /// 99th.
    pub p99: f64,
    /// 99.9th; none where too few requests lie beyond it.
    pub p999: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// One way to keep data on one medium, with values of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct RedisCell {
    /// The way, by its name.
    pub mode: String,
    /// The medium.
    pub medium: String,
    /// Length of a value, in the mean.
    pub payload: Bytes,
    /// Which lengths there were and how many of each, where they differed.
    pub mix: Option<String>,
    /// Requests a second; the median of the visits, as all that follows.
    pub ops_per_s: Known<f64>,
    /// Least and most, where there was more than one visit.
    pub range_ops: Option<(f64, f64)>,
    /// From the time that was meant, or of sending where nothing was.
    pub lat: Known<Percentiles>,
    /// From sending, at a rate.
    pub service: Option<Percentiles>,
    /// How much slower than keeping nothing, per cent of its rate, on the same medium with the same values.
    pub cost_percent: Known<f64>,
    /// Whether the clients were the limit and not the server.
    pub client_bound: Option<bool>,
    /// Requests a second that they made of a server that does nothing, where that was tried.
    pub client_limit: Known<f64>,
    /// Busy share of the server's main thread.
    pub server_busy: Known<f64>,
    /// Busy share of the clients' threads.
    pub client_busy: Known<f64>,
    /// Bytes that the disk was told to write for each byte of a value that was set.
    pub written_per_byte: Known<f64>,
    /// The most memory, what was copied for a child included.
    pub peak: Known<Bytes>,
    /// How long after the moment that was meant requests were sent, where each was kept.
    pub lag: Option<Percentiles>,
    /// What its slowest requests were slow for; none where that was not looked at.
    pub late: Option<Late>,
    /// Each command of a mix by itself.
    pub commands: Vec<CommandCell>,
    /// What was gone after the server was lost, where it was.
    pub lost: Option<Loss>,
    /// Visits that came to their end.
    pub visits: usize,
    /// Why it is so.
    pub why: String,
}

/// A command of a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandCell {
    /// Its name.
    pub command: &'static str,
    /// So many a second; the median of the visits, as the rest.
    pub ops_per_s: f64,
    /// As the cell's.
    pub lat: Percentiles,
}

impl RedisCell {
    /// The lengths of its values, in words.
    pub fn values(&self) -> String {
        self.mix.clone().unwrap_or_else(|| self.payload.to_string())
    }
}

/// Cells with values of the same lengths, in their order.
pub fn by_values(cells: &[RedisCell]) -> Vec<(String, Vec<&RedisCell>)> {
    let mut groups: Vec<(String, Vec<&RedisCell>)> = Vec::new();
    for cell in cells {
        let values = cell.values();
        match groups.iter_mut().find(|(of, _)| *of == values) {
            Some((_, group)) => group.push(cell),
            None => groups.push((values, vec![cell])),
        }
    }
    groups
}

/// What one visit gives.
struct Visit<'a> {
    ops: f64,
    elapsed: Nanos,
    /// The median of all latencies.
    p50: Nanos,
    lat: Option<Percentiles>,
    service: Option<Percentiles>,
    server: Option<f64>,
    client: Option<f64>,
    served: &'a Served,
    /// The longest value.
    largest: Bytes,
}

/// The cells of a run, in the order of its plan; empty where no Redis server was loaded.
pub fn redis_cells(run: &RunView<'_>) -> Vec<RedisCell> {
    let mut keys: Vec<Key<'_>> = Vec::new();
    // A cache of vectors has a table of its own.
    let is_cell = |step: &&StepView<'_>| step.job.engine == Engine::Resp && !step.name.starts_with(VECTORS);
    for step in run.steps.iter().filter(is_cell) {
        let key = key(step);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let processors = run.machine.cpu.count.get().map_or(1.0, |count| f64::from(*count));
    let mut cells: Vec<RedisCell> = keys
        .into_iter()
        .map(|wanted| {
            let steps: Vec<_> =
                run.steps.iter().filter(|step| step.job.engine == Engine::Resp && key(step) == wanted).collect();
            cell(wanted, &steps, processors)
        })
        .collect();
    let base: Vec<_> = cells
        .iter()
        .filter(|cell| cell.mode == Mode::MemoryOnly.name())
        .filter_map(|cell| Some((cell.medium.clone(), cell.values(), *cell.ops_per_s.get()?)))
        .collect();
    for cell in &mut cells {
        let of = base.iter().find(|(medium, values, _)| *medium == cell.medium && *values == cell.values());
        cell.cost_percent = match (of, cell.ops_per_s.get()) {
            (Some((.., most)), Some(ops)) if *most > 0.0 => Known::Is(100.0 * (1.0 - ops / most)),
            _ => Known::not_measured("memory-only was not measured beside it".to_owned()),
        };
    }
    cells
}

/// The slowest requests of a visit, at most so many, each with its reason; none of a step that asked no server, or where nobody
/// looked.
pub fn late_requests<'a>(step: &StepView<'a>, most: usize) -> Option<LateRequests<'a>> {
    let visit = Visit::of(step, 1.0)?;
    let spikes = visit.served.spikes.as_deref()?;
    Some(spikes::requests(
        &spikes::Seen { spikes, p50: visit.p50, elapsed: visit.elapsed, largest: visit.largest },
        most,
    ))
}

/// The answer in a sentence: what each way to keep the shortest values costs on each medium.
pub fn redis_headline(cells: &[RedisCell]) -> Option<String> {
    if let Some(lost) = loss::headline(cells) {
        return Some(lost);
    }
    let values = cells.iter().min_by_key(|cell| cell.payload)?.values();
    let of_it = || cells.iter().filter(|cell| cell.values() == values);
    let mut said = Vec::new();
    for mode in Mode::ALL.iter().filter(|mode| **mode != Mode::MemoryOnly) {
        let costs: Vec<String> = of_it()
            .filter(|cell| cell.mode == mode.name())
            .filter_map(|cell| Some(format!("{} % on {}", significant(cell.cost_percent.get()?.max(0.0)), cell.medium)))
            .collect();
        if !costs.is_empty() {
            said.push(format!("{mode} {}", costs.join(" and ")));
        }
    }
    if said.is_empty() {
        let cell = of_it().next()?;
        let rate = significant(*cell.ops_per_s.get()?);
        let done = if cell.mode == Mode::AsItRuns.name() { "asked for" } else { "read and set" };
        return Some(format!("Values of {values} are {done} {rate} times a second on {}.", cell.medium));
    }
    Some(format!("Against keeping nothing, values of {values} cost: {}.", said.join("; ")))
}

/// What the visits to a cell have in common: way, medium, lengths.
type Key<'a> = (&'a str, &'a str, &'a Block);

fn key<'a>(step: &StepView<'a>) -> Key<'a> {
    (step.name, step.tier.unwrap_or_default(), &step.job.block)
}

fn cell((mode, medium, block): Key<'_>, steps: &[&StepView<'_>], processors: f64) -> RedisCell {
    let visits: Vec<Visit<'_>> =
        steps.iter().filter(|step| step.is_whole()).filter_map(|step| Visit::of(step, processors)).collect();
    let lack = || Why::NotMeasured(unmeasured(steps).to_owned());
    let middle = |pick: &dyn Fn(&Visit<'_>) -> Option<f64>| {
        let all: Vec<f64> = visits.iter().filter_map(pick).collect();
        median(&all).map_or_else(|| Known::Unknown(lack()), Known::Is)
    };
    let ops = visits.iter().map(|visit| visit.ops);
    let range = (ops.clone().fold(f64::INFINITY, f64::min), ops.fold(0.0, f64::max));
    let (server_busy, client_busy) = (middle(&|visit| visit.server), middle(&|visit| visit.client));
    // Who keeps a pace looks at the clock, and is busy with that.
    let pace = steps.first().and_then(|step| match step.job.pacing {
        Pacing::Fixed { iops } | Pacing::Poisson { iops } => Some(iops),
        Pacing::Closed => None,
    });
    let keeps_pace = pace.is_some_and(|pace| visits.iter().all(|visit| visit.ops > KEPT * pace));
    let client_bound =
        server_busy.get().zip(client_busy.get()).map(|(server, client)| client > server && *client > BUSY);
    let (ops_per_s, client_limit) = (middle(&|visit| Some(visit.ops)), middle(&|visit| visit.served.client_limit));
    // At a rate they do what they are told; and a server that is busy all the time is a limit itself.
    let near = server_busy.get().is_some_and(|server| *server < BUSY)
        && visits.iter().all(|visit| visit.service.is_none())
        && ops_per_s.get().zip(client_limit.get()).is_some_and(|(ops, limit)| *ops > NEAR * limit);
    // Values that were there already are as long as they were found.
    let found = visits.last().filter(|_| mode == Mode::AsItRuns.name()).map(|visit| visit.served.payload);
    let payload = found.unwrap_or_else(|| block.mean());
    let mut cell = RedisCell {
        mode: mode.to_owned(),
        medium: medium.to_owned(),
        payload,
        mix: matches!(block, Block::Split(_)).then(|| block.to_string()),
        ops_per_s,
        range_ops: (visits.len() > 1).then_some(range),
        lat: of_all(&visits, |visit| visit.lat).map_or_else(|| Known::Unknown(lack()), Known::Is),
        service: of_all(&visits, |visit| visit.service),
        cost_percent: Known::Unknown(lack()),
        client_bound: client_bound.map(|busy| (busy && !keeps_pace) || near),
        client_limit,
        server_busy,
        client_busy,
        written_per_byte: middle(&|visit| {
            let logical = visit.served.logical.0 as f64;
            Some(visit.served.written?.0 as f64 / logical).filter(|_| logical > 0.0)
        }),
        // Nothing of a server that was gone before anybody looked.
        peak: middle(&|visit| Some(visit.served.peak.0 as f64).filter(|peak| *peak > 0.0))
            .map(|bytes| Bytes(bytes as u64)),
        lag: visits.iter().find_map(|visit| percentiles(visit.served.lag.as_ref()?)),
        late: late(&visits),
        commands: commands(&visits),
        lost: loss::of(steps),
        visits: visits.len(),
        why: String::new(),
    };
    cell.why = why(&cell, steps, visits.last().map(|visit| visit.served));
    cell
}

impl<'a> Visit<'a> {
    fn of(step: &StepView<'a>, processors: f64) -> Option<Self> {
        let served = step.load?.redis.as_deref()?;
        let seconds = step.elapsed.secs();
        let operations = (step.read.operations() + step.write.operations()) as f64;
        if seconds <= 0.0 || operations == 0.0 {
            return None;
        }
        let mut lat = step.read.latency.clone();
        lat.merge(&step.write.latency);
        let service = step.read.service.iter().chain(&step.write.service).fold(None, |all: Option<Latencies>, one| {
            let mut all = all.unwrap_or_default();
            all.merge(one);
            Some(all)
        });
        // Threads that share processors cannot be busier than those, and one of them is the server's.
        let threads = f64::from(step.job.threads.max(1));
        let room = (processors - 1.0).max(1.0);
        Some(Visit {
            ops: operations / seconds,
            elapsed: step.elapsed,
            p50: lat.percentile(50.0).unwrap_or_default(),
            lat: percentiles(&lat),
            service: service.as_ref().and_then(percentiles),
            server: served.main_cpu.map(|cpu| cpu.secs() / seconds),
            client: step.cpu.map(|(user, system)| (user + system).secs() / seconds / threads.min(room)),
            served,
            largest: step.job.block.largest(),
        })
    }
}

fn late(visits: &[Visit<'_>]) -> Option<Late> {
    let seen = visits.iter().filter_map(|visit| {
        let spikes = visit.served.spikes.as_deref()?;
        Some(spikes::Seen { spikes, p50: visit.p50, elapsed: visit.elapsed, largest: visit.largest })
    });
    spikes::late(&seen.collect::<Vec<_>>())
}

fn percentiles(all: &Latencies) -> Option<Percentiles> {
    let at = |percent: f64| all.percentile(percent).map(Nanos::us);
    let enough = all.count() as f64 * 0.001 >= BEYOND;
    Some(Percentiles {
        p50: at(50.0)?,
        p95: at(95.0)?,
        p99: at(99.0)?,
        p999: at(99.9).filter(|_| enough),
        max: all.max()?.us(),
    })
}

/// The median of each, over the visits.
fn of_all(visits: &[Visit<'_>], pick: impl Fn(&Visit<'_>) -> Option<Percentiles>) -> Option<Percentiles> {
    let all: Vec<Percentiles> = visits.iter().filter_map(pick).collect();
    let of = |one: fn(&Percentiles) -> f64| median(&all.iter().map(one).collect::<Vec<_>>());
    let rare: Vec<f64> = all.iter().filter_map(|one| one.p999).collect();
    Some(Percentiles {
        p50: of(|one| one.p50)?,
        p95: of(|one| one.p95)?,
        p99: of(|one| one.p99)?,
        p999: median(&rare),
        max: of(|one| one.max)?,
    })
}

/// Each command that any visit made.
fn commands(visits: &[Visit<'_>]) -> Vec<CommandCell> {
    let of = |command: Command| {
        let seen = |visit: &Visit<'_>| {
            let (_, latencies) = visit.served.commands.iter().find(|(one, _)| *one == command)?;
            Some((latencies.count() as f64 / visit.elapsed.secs(), percentiles(latencies)?))
        };
        let rates: Vec<f64> = visits.iter().filter_map(|visit| Some(seen(visit)?.0)).collect();
        let lat = of_all(visits, |visit| Some(seen(visit)?.1))?;
        Some(CommandCell { command: command.name(), ops_per_s: median(&rates)?, lat })
    };
    Command::ALL.into_iter().filter_map(of).collect()
}

/// Why the cell is as it is.
fn why(cell: &RedisCell, steps: &[&StepView<'_>], served: Option<&Served>) -> String {
    let Some(served) = served else {
        let failed = steps.iter().find_map(|step| step.failed);
        return failed.map_or_else(|| unmeasured(steps).to_owned(), |(_, sentence)| sentence.to_owned());
    };
    let percent = |share: &f64| significant(100.0 * share);
    let mut parts = cell.lost.as_ref().map_or_else(Vec::new, Loss::why);
    match (cell.server_busy.get(), cell.client_busy.get()) {
        (Some(server), Some(client)) if cell.client_bound == Some(true) => {
            let limit = cell.client_limit.get();
            let limit = limit.map_or_else(String::new, |limit| {
                format!(" (a server that does nothing gets {} a second of them)", significant(*limit))
            });
            parts.push(format!(
                "the clients were the limit, {} % busy{limit}; the server's main thread was {} %: what it can do was not seen",
                percent(client),
                percent(server)
            ));
        }
        (Some(server), _) if *server > BUSY => {
            parts.push(format!("the server's main thread is the limit, {} % busy", percent(server)));
        }
        (Some(server), _) if *server < IDLE && cell.mode == Mode::AofAlways.name() => {
            parts.push(format!("each write waits for its disk: the main thread is {} % busy", percent(server)));
        }
        (Some(server), _) => parts.push(format!("the server's main thread is {} % busy", percent(server))),
        (None, _) => {}
    }
    if let Some(delay) = served.replica {
        parts.push(format!(
            "each write is sent to a replica {delay} off, which runs on this machine, too, and takes its share of the processors"
        ));
    }
    if served.forks > 0 {
        let took = served.last_fork.map_or_else(String::new, |time| format!(" ({time})"));
        parts.push(format!("{} forked{took}, {} copied for it", times(served.forks), served.copied));
    }
    if served.delayed_fsyncs > 0 {
        parts.push(format!("{} a write waited for the sync of the one before", times(served.delayed_fsyncs)));
    }
    parts.extend(cell.late.as_ref().and_then(spikes::sentence));
    if let Some(lag) = cell.lag {
        let us = |us: f64| Nanos((us * 1000.0) as u64);
        parts.push(format!(
            "requests were sent {} after the moment meant in the median, {} at p99",
            us(lag.p50),
            us(lag.p99)
        ));
    }
    if served.misses > 0 && served.hits + served.misses > 0 {
        let share = served.misses as f64 / (served.hits + served.misses) as f64;
        parts.push(format!("{} % of the GETs found nothing", percent(&share)));
    }
    parts.join("; ")
}

fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{n} times") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::job::Block;
    use basics::pressure::Load;
    use basics::{Job, Side};

    /// So many requests in a second, each of a millisecond, with the main thread so busy.
    fn visit(mode: Mode, medium: &str, operations: u64, main_ms: u64) -> Step {
        let job = Job { engine: Engine::Resp, block: Block::Fixed(Bytes(64)), depth: 50, ..Job::default() };
        let mut step = Step::new(mode.name(), medium, job);
        let mut write = Side { bytes: 64 * operations, ..Side::default() };
        write.latency.record_n(Nanos::from_millis(1), operations);
        step.write = write;
        step.elapsed = Nanos::from_millis(1000);
        step.cpu = Some((Nanos::from_millis(300), Nanos::from_millis(300)));
        let served = Served {
            main_cpu: Some(Nanos::from_millis(main_ms)),
            written: Some(Bytes(128 * operations)),
            logical: Bytes(64 * operations),
            ..Served::default()
        };
        step.load = Some(Load { redis: Some(Box::new(served)), ..Load::default() });
        step
    }

    fn cells(steps: impl IntoIterator<Item = Step>) -> Vec<RedisCell> {
        redis_cells(&Run::default().steps(steps).view())
    }

    #[test]
    fn a_cell_is_the_median_of_its_visits_and_costs_what_it_is_slower() {
        let steps = [
            visit(Mode::MemoryOnly, "sd", 100_000, 900),
            visit(Mode::AofAlways, "sd", 5_000, 50),
            visit(Mode::MemoryOnly, "sd", 110_000, 900),
            visit(Mode::AofAlways, "sd", 6_000, 50),
            visit(Mode::MemoryOnly, "sd", 60_000, 900),
            visit(Mode::AofAlways, "sd", 4_000, 50),
        ];
        let cells = cells(steps);
        assert_eq!(cells.len(), 2);
        assert_eq!(
            (cells[0].ops_per_s.clone(), cells[0].range_ops),
            (Known::Is(100_000.0), Some((60_000.0, 110_000.0)))
        );
        assert_eq!(cells[1].cost_percent, Known::Is(95.0));
        assert_eq!((cells[0].visits, cells[1].written_per_byte.clone()), (3, Known::Is(2.0)));
        let lat = cells[0].lat.get().unwrap();
        assert!((lat.p99 - 1000.0).abs() < 5.0 && lat.p999.is_some(), "{lat:?}");
        assert!(cells[1].lat.get().unwrap().p999.is_none(), "5,000 requests are too few");
        assert!(cells[0].why.contains("the server's main thread is the limit, 90 % busy"), "{}", cells[0].why);
        assert!(cells[1].why.contains("each write waits for its disk"), "{}", cells[1].why);
        assert_eq!(
            redis_headline(&cells).unwrap(),
            "Against keeping nothing, values of 64 B cost: aof-always 95 % on sd."
        );
    }

    #[test]
    fn who_was_the_limit_is_told() {
        let mut step = visit(Mode::MemoryOnly, "sd", 50_000, 400);
        step.cpu = Some((Nanos::from_millis(500), Nanos::from_millis(480)));
        let cell = cells([step]).remove(0);
        assert_eq!(cell.client_bound, Some(true));
        assert!(cell.why.starts_with("the clients were the limit, 98 % busy"), "{}", cell.why);
        assert_eq!(cells([visit(Mode::MemoryOnly, "sd", 50_000, 950)])[0].client_bound, Some(false));
        // Keeping a pace is no work.
        for (asked, bound) in [(50_000.0, false), (80_000.0, true)] {
            let mut step = visit(Mode::MemoryOnly, "sd", 50_000, 400);
            step.cpu = Some((Nanos::from_millis(500), Nanos::from_millis(480)));
            step.job.pacing = Pacing::Poisson { iops: asked };
            assert_eq!(cells([step])[0].client_bound, Some(bound), "{asked}");
        }
        // Against a server that does nothing they do hardly more.
        let limited = |limit: f64| {
            let mut step = visit(Mode::MemoryOnly, "sd", 50_000, 600);
            step.load.as_mut().unwrap().redis.as_mut().unwrap().client_limit = Some(limit);
            cells([step]).remove(0)
        };
        let near = limited(55_000.0);
        assert_eq!((near.client_bound, &near.client_limit), (Some(true), &Known::Is(55_000.0)));
        assert!(near.why.contains("a server that does nothing gets 55,000 a second of them"), "{}", near.why);
        assert_eq!(limited(80_000.0).client_bound, Some(false));
        let failed = cells([visit(Mode::Rdb, "sd", 0, 0).failed(basics::FailKind::Other, "the server failed")]);
        assert_eq!(failed[0].why, "the server failed");
        assert!(failed[0].ops_per_s.get().is_none() && failed[0].cost_percent.get().is_none());
    }
}
