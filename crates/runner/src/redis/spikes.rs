//! What a visit's slowest requests met: the kernel's account of the server's main thread, and the server's own, on one clock.

use super::Cell;
use basics::outcome::Slow;
use basics::spikes::{Cause, LongCommand, Spikes, Stall};
use basics::{Latencies, Nanos};
use engine::Outcome;
use observe::stalls::{Seen, Stood, Watch};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::tracepoints::monotonic;

/// Of each thread of the load: ten million requests have 10,000 beyond p99.9.
pub(super) const SLOWEST: usize = 4096;
/// Looked at are those beyond the first of these that so many lie beyond.
const PERCENTS: [f64; 4] = [99.9, 99.0, 95.0, 90.0];
const ENOUGH: f64 = 10.0;
/// How many are written down.
const KEPT: usize = 2000;
/// The engine names its threads so, with their numbers.
const THREADS: &str = "job";

/// Begins to look; where that cannot be, the sentence that says why.
pub(super) fn begin(server: Option<u32>) -> Result<Watch, String> {
    let server = server.ok_or("what the slowest requests waited for is seen of a server on this machine alone")?;
    Watch::begin(server, THREADS).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => "what the slowest requests waited for is seen by root alone".to_owned(),
        _ => format!("what the slowest requests waited for is not seen here: {error}"),
    })
}

impl Cell<'_> {
    /// The slowest requests, with what was seen meanwhile.
    pub(super) fn spikes(&mut self, watched: Result<Seen, String>, outcome: &mut Outcome) -> Spikes {
        let (unix, now) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), monotonic());
        let unix_of = |at: u64| (unix.as_nanos() as u64).saturating_sub(now.saturating_sub(at));
        let began = outcome.began;
        let since = |at: u64| Nanos(at.saturating_sub(began));
        let (seen, mut lacks) = match watched {
            Ok(seen) => (seen, Vec::new()),
            Err(why) => (Seen::default(), vec![why]),
        };
        lacks.extend(seen.lacks.iter().cloned());
        let forks = self.forks(unix_of, &seen.stood);
        let stall = |stood: &Stood| {
            let length =
                if stood.cause == Cause::Fork { forks.iter().find(|fork| fork.0 == stood.until)?.1 } else { 0 };
            let (from, until) = (since(stood.from - length), since(stood.until));
            let idle = stood.idle.map(since);
            (until > from).then(|| Stall {
                thread: stood.thread,
                cause: stood.cause,
                from,
                until,
                idle,
                who: stood.who.clone(),
            })
        };
        let commands = self.control.slow_commands().unwrap_or_else(|error| {
            lacks.push(format!("the server tells no long commands: {error}"));
            Vec::new()
        });
        let commands =
            commands.into_iter().map(|(second, took, text)| LongCommand { second, took: Nanos(took * 1000), text });
        let (slowest, beyond) = slowest(outcome);
        Spikes {
            slowest,
            beyond: Some(beyond),
            stalls: seen.stood.iter().filter_map(stall).collect(),
            commands: commands.collect(),
            began_unix: unix_of(began),
            lacks,
            lost: seen.lost,
        }
    }

    /// How long each fork took: the kernel tells its end, the server its length, with the second.
    fn forks(&mut self, unix_of: impl Fn(u64) -> u64, stood: &[Stood]) -> Vec<(u64, u64)> {
        let ends: Vec<u64> = stood.iter().filter(|stood| stood.cause == Cause::Fork).map(|stood| stood.until).collect();
        let latest = self.control.info().ok().and_then(|info| info.number("latest_fork_usec"));
        let told = self.control.latency_history("fork").unwrap_or_default();
        let length = |(nth, end): (usize, &u64)| {
            let second = unix_of(*end) / 1_000_000_000;
            let of_second = told.iter().find(|(told, _)| told.abs_diff(second) <= 1).map(|(_, ms)| ms * 1_000_000);
            let latest = latest.filter(|_| nth + 1 == ends.len()).map(|us| us * 1000);
            Some((*end, latest.or(of_second)?))
        };
        ends.iter().enumerate().filter_map(length).collect()
    }
}

/// Those beyond a percentile that some requests lie beyond, the slowest first of all.
fn slowest(outcome: &mut Outcome) -> (Vec<Slow>, f64) {
    let mut all = Latencies::lazy();
    all.merge(&outcome.read.latency);
    all.merge(&outcome.write.latency);
    let enough = |percent: &&f64| all.count() as f64 * (1.0 - **percent / 100.0) >= ENOUGH;
    let percent = PERCENTS.iter().find(enough).copied().unwrap_or(PERCENTS[PERCENTS.len() - 1]);
    let bar = all.percentile(percent).unwrap_or_default();
    let mut slowest = std::mem::take(&mut outcome.slowest);
    slowest.retain(|slow| slow.latency > bar);
    slowest.sort_by_key(|slow| std::cmp::Reverse(slow.latency));
    slowest.truncate(KEPT);
    (slowest, percent)
}
