//! A server that is lost in the middle of its load: killed, or with its disk cut off from power, at a moment that a seed chooses. Then
//! it is started again, and every write that it had acknowledged is looked for.

use super::own::{last_line, launch};
use super::{Cell, Site, failed};
use crate::RunError;
use crate::emulated::Faults;
use crate::pressed::Heard;
use basics::plan::step_seed;
use basics::redis::{Lose, Lost, Served};
use basics::{Bytes, Each, Job, Nanos};
use engine::{Ended, Outcome};
use redisd::Knife;
use rustix::process::{Pid, Signal, kill_process_group};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Parts of the load's time between which the moment lies, per cent: a server that has hardly begun has nothing to lose.
const WITHIN: (u64, u64) = (25, 95);
/// How often the thread that makes the log durable is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Keys that are asked for at a time.
const ASKED: usize = 1000;

/// How and when a server is lost.
#[derive(Debug)]
pub(crate) struct Cut {
    how: Lose,
    /// After the first request.
    moment: Duration,
    /// What a power cut leaves of what was not durable.
    seed: u64,
    /// The disk whose power goes.
    disk: Option<Faults>,
    /// The way to a replica, on which then nothing arrives any more: all of it may still have waited in this machine's queues.
    way: Option<Knife>,
}

/// When it was lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    /// After the first request.
    at: Nanos,
    longest_fsync: Option<Nanos>,
}

impl Cut {
    /// Of a job, whose seed chooses the moment.
    pub fn new(how: Lose, job: &Job, disk: Option<Faults>, way: Option<Knife>) -> Result<Self, RunError> {
        if how == Lose::Power && disk.is_none() {
            return Err(failed("only an emulated disk can be cut off from power; give a profile with --on"));
        }
        let time = job.stop.time.unwrap_or_default();
        Ok(Cut { how, moment: moment(time, job.seed), seed: step_seed(job.seed, 2), disk, way })
    }

    /// Waits for the moment, which is counted from what is told first, and strikes; before it where the load is over by then.
    fn strike(
        &self,
        server: Pid,
        begun: &Receiver<Instant>,
        called_off: &[&AtomicBool],
        struck: &AtomicBool,
    ) -> Result<Instant, RunError> {
        if let Ok(origin) = begun.recv() {
            let _ = begun.recv_timeout((origin + self.moment).saturating_duration_since(Instant::now()));
        }
        if called_off.iter().any(|why| why.load(Relaxed)) {
            return Err(RunError::Interrupted);
        }
        struck.store(true, Relaxed);
        let at = Instant::now();
        // With the child that saves for it: it would go on, and nothing of a machine without power does.
        kill_process_group(server, Signal::KILL)
            .map_err(|errno| failed(format!("the server cannot be killed: {errno}")))?;
        if let Some(way) = self.way.as_ref().filter(|_| self.how == Lose::Power) {
            way.cut();
        }
        if let Some(disk) = &self.disk {
            disk.put(&[&format!("power-cut:seed={}", self.seed)])?;
        }
        Ok(at)
    }
}

/// Uniform within [`WITHIN`].
fn moment(time: Nanos, seed: u64) -> Duration {
    let (from, to) = (time.0 / 100 * WITHIN.0, time.0 / 100 * WITHIN.1);
    let chance = step_seed(seed, 1);
    Duration::from_nanos(from + ((u128::from(chance) * u128::from(to - from)) >> 64) as u64)
}

impl Cell<'_> {
    /// Has it loaded until it is lost.
    pub fn run_until_lost(
        &mut self,
        job: &Job,
        cut: &Cut,
        interrupted: &AtomicBool,
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(Outcome, Gone), RunError> {
        let server = Pid::from_child(&self.own().ok_or_else(not_ours)?.child);
        let (struck, went) = (&AtomicBool::new(false), &AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (begins, begun) = channel();
            let striker = scope.spawn(move || cut.strike(server, &begun, &[interrupted, went], struck));
            let watcher = scope.spawn(move || longest_fsync(server, struck));
            let mut origin: Option<Instant> = None;
            let mut heard = |heard: Heard<'_>| {
                if let Heard::Interval(interval) = &heard
                    && let Some(began) = Instant::now().checked_sub(Duration::from_nanos(interval.end.0))
                {
                    if origin.is_none() {
                        let _ = begins.send(began);
                    }
                    // An interval is told at its end or a little later.
                    origin = Some(origin.map_or(began, |origin| origin.min(began)));
                }
                sink(heard);
            };
            let outcome = self.run(job, interrupted, &mut heard);
            let over = Instant::now();
            // By itself, before its time: nothing is left to be taken away.
            let failed_early = match &outcome {
                Ok(outcome) if struck.load(Relaxed) => matches!(outcome.ended, Ended::Refused { .. }),
                Ok(outcome) => matches!(outcome.ended, Ended::Failed { .. } | Ended::Refused { .. }),
                Err(_) => true,
            };
            went.store(failed_early, Relaxed);
            drop(begins);
            let at = striker.join().map_err(|_| failed("the thread that ends the server panicked"))?;
            struck.store(true, Relaxed);
            let longest_fsync = watcher.join().ok().flatten();
            let outcome = outcome?;
            if let (true, ended @ Ended::Failed { .. }) = (failed_early, &outcome.ended) {
                return Err(self.trouble("under load", ended));
            }
            let at = match at {
                Err(RunError::Interrupted) => over,
                at => at?,
            };
            let ended = over.checked_sub(Duration::from_nanos(outcome.elapsed.0)).unwrap_or(over);
            let origin = origin.map_or(ended, |origin| origin.min(ended));
            Ok((outcome, Gone { at: at.saturating_duration_since(origin).into(), longest_fsync }))
        })
    }

    /// Nothing of the server is there any more.
    pub fn bury(&mut self) -> Result<(), RunError> {
        let own = self.own_mut().ok_or_else(not_ours)?;
        own.child.wait().map_err(failed)?;
        own.helper.take().map_or(Ok(()), |helper| Ok(helper.end()?))
    }

    /// Starts it again with what its folder holds, or has its replica take over; the reason, where neither can be.
    pub fn again(&mut self, site: Site<'_>) -> Option<String> {
        match self.take_over() {
            Ok(true) => return None,
            Ok(false) => {}
            Err(error) => return Some(format!("its replica does not take over: {error}")),
        }
        let server = self.server;
        let Some(own) = self.own_mut() else { return Some(not_ours().to_string()) };
        // Its last words are those of this start.
        let _ = std::fs::remove_file(own.dir.join(super::LOG));
        match launch(server, &own.dir, site) {
            Ok((address, control, helper, child)) => {
                (own.helper, own.child) = (Some(helper), child);
                (self.address, self.control) = (address, control);
                None
            }
            Err(error) => Some(last_line(&own.dir).unwrap_or_else(|| error.to_string())),
        }
    }

    /// Looks for every write that was acknowledged.
    pub fn look_for(
        &mut self,
        each: &[Each],
        unit: Bytes,
        cut: &Cut,
        gone: Gone,
        did_not_start: Option<String>,
        interrupted: &AtomicBool,
    ) -> Result<Lost, RunError> {
        let nothing = match &did_not_start {
            Some(_) => true,
            None => self.control.info().map_err(failed)?.get("db0").is_none(),
        };
        let (mut missing, unit) = (Missing::default(), unit.0.max(1));
        for some in each.chunks(ASKED) {
            if interrupted.load(Relaxed) {
                return Err(RunError::Interrupted);
            }
            if nothing {
                some.iter().for_each(|one| missing.add(one));
                continue;
            }
            let keys: Vec<String> = some.iter().map(|one| engine::key_name(one.offset.0 / unit)).collect();
            let lengths = self.control.lengths(&keys).map_err(failed)?;
            let found = some.iter().zip(&lengths);
            found.filter(|(one, length)| one.len.0 != **length).for_each(|(one, _)| missing.add(one));
        }
        Ok(Lost {
            how: cut.how,
            at: gone.at,
            of: each.len() as u64,
            acknowledged: missing.count,
            oldest: missing.first.map(|acknowledged| Nanos(gone.at.0.saturating_sub(acknowledged.0))),
            did_not_start,
            longest_fsync: gone.longest_fsync,
        })
    }

    /// What was seen of it, as far as that is known of a server that is gone.
    pub fn account_of_lost(&self, version: String, outcome: &Outcome, lost: Lost) -> Served {
        Served {
            mode: Some(self.server.mode),
            medium: self.server.medium.name(),
            version,
            keys: lost.of,
            logical: Bytes(outcome.write.bytes),
            lost: Some(lost),
            replica: self.server.delay,
            ..Served::default()
        }
    }
}

fn not_ours() -> RunError {
    failed("only a server that tiermark started is taken away")
}

/// Acknowledged and not there.
#[derive(Debug, Default)]
struct Missing {
    count: u64,
    /// When the first of them was acknowledged.
    first: Option<Nanos>,
}

impl Missing {
    fn add(&mut self, one: &Each) {
        self.count += 1;
        let acknowledged = one.at + one.latency;
        self.first = Some(self.first.map_or(acknowledged, |first| first.min(acknowledged)));
    }
}

/// The longest time in which the thread that makes the log durable did not wait for work, until it is told that the server is
/// struck. Nothing where there is no such thread, or it never had any.
fn longest_fsync(server: Pid, struck: &AtomicBool) -> Option<Nanos> {
    let tasks = format!("/proc/{}/task", server.as_raw_nonzero());
    // Redis 7 calls it bio_aof_fsync, later ones and Valkey bio_aof.
    let is_it = |task: &Path| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("bio_aof"));
    let task = std::fs::read_dir(tasks).ok()?.flatten().map(|entry| entry.path()).find(|task| is_it(task))?;
    let mut longest = None;
    let mut since: Option<Instant> = None;
    while !struck.load(Relaxed) {
        let Some(busy) = std::fs::read_to_string(task.join("stat")).ok().as_deref().and_then(is_busy) else { break };
        since = since.filter(|_| busy);
        if busy {
            let lasts = since.get_or_insert_with(Instant::now).elapsed() + LOOK;
            longest = longest.max(Some(Nanos::from(lasts)));
        }
        std::thread::sleep(LOOK);
    }
    longest
}

/// Whether a thread does something, its disk's waiting included (proc_pid_stat(5): the state comes after the name).
fn is_busy(stat: &str) -> Option<bool> {
    let state = stat.rsplit_once(") ")?.1.chars().next()?;
    Some(!matches!(state, 'S' | 'I' | 'Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_differ_by_seed_and_lie_within() {
        let time = Nanos::from_millis(1000);
        let mut all: Vec<u128> = (0..200).map(|seed| moment(time, seed).as_millis()).collect();
        assert_eq!(moment(time, 7), moment(time, 7));
        all.sort_unstable();
        assert!(all[0] >= 250 && all[199] <= 950, "{all:?}");
        // Uniform: a quarter in each quarter, give or take.
        assert!((70..130).contains(&all.iter().filter(|at| **at < 600).count()), "{all:?}");
    }

    #[test]
    fn the_oldest_is_the_first_that_was_acknowledged() {
        let each = |at, latency| Each {
            offset: Bytes(0),
            len: Bytes(64),
            read: false,
            at: Nanos(at),
            latency: Nanos(latency),
            waited: Nanos(0),
        };
        let mut missing = Missing::default();
        [each(50, 10), each(20, 35), each(10, 90)].iter().for_each(|one| missing.add(one));
        assert_eq!((missing.count, missing.first), (3, Some(Nanos(55))));
    }

    #[test]
    fn a_thread_that_waits_for_its_disk_is_busy() {
        assert_eq!(is_busy("12 (bio_aof) D 1 12 12"), Some(true));
        assert_eq!(is_busy("12 (bio) aof) S 1 12 12"), Some(false));
        assert_eq!(is_busy("nonsense"), None);
    }
}
