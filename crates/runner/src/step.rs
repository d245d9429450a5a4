//! One step: fill what must be filled, open the target, let the engine and the observer run, and write the account.

mod lose;

use crate::pressed::Heard;
use crate::ready::{Opened, Ready, Targets};
use crate::redis::{self, Cell};
use crate::{RunError, Runner, SharedSpool, errno, lock, model, now, through};
use basics::job::{Block, Direction, Stop};
use basics::plan::{Act, CHUNK, Step, Target};
use basics::pressure::{Load, Pressed};
use basics::redis::Server;
use basics::{Bytes, EngineUse, Interval, Job, Nanos, Side};
use engine::{Control, Ended, Outcome};
use machine::{Machine, Root};
use observe::Observer;
use record::{Fill, State, StepRecord};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the observer looks.
const OBSERVE_EVERY: Nanos = Nanos::from_millis(100);

/// How often a rest looks whether it is interrupted.
const LOOK: Duration = Duration::from_millis(20);

/// What one step needs of its run.
pub struct Running<'a, 'b> {
    pub runner: &'a mut Runner<'b>,
    pub machine: &'a Machine,
    pub spool: &'a SharedSpool,
    pub index: usize,
}

/// The account of a step, and why it failed, if it did.
pub struct Done {
    pub account: StepRecord,
    pub error: Option<RunError>,
}

impl Running<'_, '_> {
    /// Runs the step; whatever happens there is an account of it.
    pub fn run(mut self, step: &Step, targets: &mut Targets<'_>) -> Done {
        let mut account = blank(self.index, step, targets.describe(step.target), State::Done);
        let mut error = self.attempt(step, targets, &mut account).err();
        if let Some(RunError::Interrupted) = error {
            error = None;
            account.state = State::Interrupted;
            account.ended_by = "interrupted".to_owned();
        }
        if let Some(error) = &error {
            account.state = State::Failed(error.failure());
            if account.ended_by.is_empty() {
                account.ended_by = "error".to_owned();
            }
        }
        Done { account, error }
    }

    fn attempt(&mut self, step: &Step, targets: &mut Targets<'_>, account: &mut StepRecord) -> Result<(), RunError> {
        if let Target::Pressed(spec) = targets.spec(step.target).clone() {
            return self.press(&spec, step, targets, account);
        }
        if let Target::Redis(server) = targets.spec(step.target).clone() {
            return self.serve(&server, step, targets, account);
        }
        if !self.fill(step, targets, account)? {
            account.state = State::Interrupted;
            account.ended_by = "interrupted".to_owned();
            return Ok(());
        }
        if !self.acts(&step.before, step, targets)? {
            account.state = State::Interrupted;
            account.ended_by = "interrupted".to_owned();
            return Ok(());
        }
        let Ready { opened, notes } = targets.open(step.target, &step.job)?;
        account.notes = notes;
        let buffered = self.buffered(&opened, step, targets);
        account.notes.extend(buffered.as_ref().map(|why| format!("the direct writes were buffered ones: {why}")));
        // In virtual time there is nothing to observe.
        let disks = (!opened.is_model()).then(|| self.disks(step, targets));
        let cancel = self.runner.interrupted;
        let run = |sink: &mut dyn FnMut(Heard<'_>)| {
            opened.run(&step.job, &Control::new(cancel), &mut |interval: &Interval| sink(Heard::Interval(interval)))
        };
        let (mut outcome, predicted) = self.watched(step, disks, account, run)?;
        outcome.engine.dropped.extend(buffered.map(|why| (EngineUse::DIRECT_WRITES.to_owned(), why)));
        account.region = opened.region(&step.job);
        let is_model = opened.is_model();
        targets.wrote(step.target, &step.job, Bytes(outcome.write.bytes));
        account.predicted = predicted;
        account.notes.extend(predicted.map(model::in_words));
        let result = write_account(outcome, account);
        if is_model {
            (account.cpu_user, account.cpu_system) = (None, None);
        }
        drop(opened);
        result
    }

    /// Observes the machine while `run` goes on, on these disks if at all, and keeps its intervals.
    fn watched<T>(
        &mut self,
        step: &Step,
        disks: Option<Vec<String>>,
        account: &mut StepRecord,
        run: impl FnOnce(&mut dyn FnMut(Heard<'_>)) -> T,
    ) -> T {
        account.started = now();
        let (index, spool) = (self.index as u32, Arc::clone(self.spool));
        // Straight into the spool, so that none is lost however long a warm-up or an interval is. What the spool has no
        // room for it counts, and says so in the step's notes.
        let observer = disks.map(|disks| {
            Observer::start(Path::new("/"), disks, OBSERVE_EVERY, move |sample| {
                lock(&spool).sample(index, &sample);
            })
        });
        let outcome = run(&mut |heard| {
            let interval = match heard {
                Heard::Interval(interval) => interval,
                Heard::Filling(done) => {
                    let whole = step.job.size.unwrap_or(done);
                    return self.runner.progress.filling(self.index, step, done, whole);
                }
            };
            let mut spool = lock(self.spool);
            if let Some(Ok(observer)) = &observer {
                // An interval is told at its end or a little later, so the earliest origin is the nearest to the truth.
                let origin = observer.elapsed() - interval.end;
                if account.measured_from.is_none_or(|from| origin < from) {
                    account.measured_from = Some(origin);
                    spool.measured_from(index, origin);
                }
            }
            spool.interval(index, interval);
            drop(spool);
            self.runner.progress.measuring(self.index, step, interval.end, interval);
        });
        match observer {
            None => {}
            Some(Ok(observer)) => account.observing = Some(observer.stop()),
            Some(Err(error)) => account.notes.push(format!("nothing was observed meanwhile: {error}")),
        }
        outcome
    }

    /// The job in a process of its own, whose memory is short.
    fn press(
        &mut self,
        spec: &Pressed,
        step: &Step,
        targets: &mut Targets<'_>,
        account: &mut StepRecord,
    ) -> Result<(), RunError> {
        let cancel = self.runner.interrupted;
        let pressing = targets.press(step.target, spec, (self.machine, self.runner.program, cancel))?;
        account.notes = pressing.notes().to_vec();
        let run = |sink: &mut dyn FnMut(Heard<'_>)| pressing.run(&step.job, cancel, sink);
        match self.watched(step, Some(pressing.disks()), account, run) {
            Ok(seen) => {
                account.region = Some(pressing.size());
                account.filled = seen.load.filled.map(|(bytes, time)| Fill { bytes, time });
                account.load = Some(Box::new(seen.load));
                write_account(seen.outcome, account)?;
                seen.ended_early.map_or(Ok(()), |why| {
                    account.ended_by = "watchdog".to_owned();
                    Err(RunError::Watchdog { why })
                })
            }
            Err((error, load)) => {
                account.load = Some(load);
                account.ended_by = if error.is_an_answer() { "out of memory" } else { "error" }.to_owned();
                Err(error)
            }
        }
    }

    /// Requests to a Redis server of the step's own.
    fn serve(
        &mut self,
        server: &Server,
        step: &Step,
        targets: &mut Targets<'_>,
        account: &mut StepRecord,
    ) -> Result<(), RunError> {
        let (cancel, program) = (self.runner.interrupted, self.runner.program);
        let (dir, own) = targets.medium(&server.medium, program)?;
        let below = |dir: &Path| {
            let tier = machine::tier_of_path(self.machine, &Root::live(), dir);
            tier.map(|tier| machine::disks_below(self.machine, &tier)).unwrap_or_default()
        };
        let mut cell = Cell::start(server, &dir, targets.site(program))?;
        let disks = match (own, cell.found()) {
            (Some(own), _) => vec![own],
            (None, Some((theirs, notes))) => {
                account.notes.extend_from_slice(notes);
                below(theirs)
            }
            (None, None) => below(&dir),
        };
        if server.cache.is_none() {
            cell.find_limit(&step.job, targets.limits(), cancel);
        }
        let done = match server.lose {
            _ if server.cache.is_some() => self.load_cache(&mut cell, (server, step), disks, targets, account),
            Some(how) => self.lose(how, &mut cell, (server, step), disks, targets, account),
            None => {
                let trouble = targets.media().begin_trouble(&server.medium);
                trouble.and_then(|()| self.load_it(&mut cell, server, step, disks, account, cancel))
            }
        };
        // Whatever came of it, it is ended.
        let mut troubles = cell.end();
        if !cancel.load(Ordering::Relaxed) {
            troubles.extend(targets.media().end_trouble(&server.medium).err());
        }
        done.and(troubles.pop().map_or(Ok(()), Err))
    }

    fn load_it(
        &mut self,
        cell: &mut Cell<'_>,
        server: &Server,
        step: &Step,
        disks: Vec<String>,
        account: &mut StepRecord,
        cancel: &AtomicBool,
    ) -> Result<(), RunError> {
        let whole = Bytes(server.keys * step.job.block.mean().0);
        let begun = Instant::now();
        let progress = &mut self.runner.progress;
        progress.serving(self.index, step, cell.address(), &disks);
        let filled = cell.fill(&step.job, cancel, |done| progress.filling(self.index, step, done, whole))?;
        account.filled = Some(Fill { bytes: filled, time: begun.elapsed().into() });
        let disk = disks.first().cloned();
        let before = cell.before(disk.as_deref())?;
        // Before the load, so that nothing is measured that cannot be kept.
        let log = server.log.as_deref().map(redis::new_log).transpose()?;
        let mut outcome = self.watched(step, Some(disks), account, |sink| cell.run(&step.job, cancel, sink))?;
        let mut served = cell.account(&before, &step.job, &outcome, disk.as_deref())?;
        if let Some(log) = log {
            served.lag = Some(redis::write_log(log, std::mem::take(&mut outcome.each))?);
        }
        account.region = Some(whole);
        account.load = Some(Box::new(Load { redis: Some(Box::new(served)), ..Load::default() }));
        write_account(outcome, account)
    }

    /// A server that is a cache of vectors.
    fn load_cache(
        &mut self,
        cell: &mut Cell<'_>,
        (server, step): (&Server, &Step),
        disks: Vec<String>,
        targets: &mut Targets<'_>,
        account: &mut StepRecord,
    ) -> Result<(), RunError> {
        let Some(cache) = server.cache.as_deref() else { return Ok(()) };
        let (cancel, program, job) = (self.runner.interrupted, self.runner.program, &step.job);
        self.runner.progress.serving(self.index, step, cell.address(), &disks);
        let mut stored = cell.store(cache, job, targets, program, cancel)?;
        let done = (|| {
            let disk = disks.first().cloned();
            let before = cell.before(disk.as_deref())?;
            let run = |sink: &mut dyn FnMut(Heard<'_>)| cell.run_cached(cache, &mut stored, job, cancel, sink);
            let outcome = self.watched(step, Some(disks), account, run)?;
            let mut served = cell.account(&before, job, &outcome, disk.as_deref())?;
            served.cached = Some(Box::new(stored.cached()));
            account.load = Some(Box::new(Load { redis: Some(Box::new(served)), ..Load::default() }));
            let written = write_account(outcome, account);
            // Its clients are threads of an application, and nobody looked what they took.
            (account.cpu_user, account.cpu_system) = (None, None);
            written
        })();
        done.and(stored.end().pop().map_or(Ok(()), Err))
    }

    /// What is done before the job; false when interrupted.
    fn acts(&mut self, acts: &[Act], step: &Step, targets: &mut Targets<'_>) -> Result<bool, RunError> {
        for act in acts {
            match act {
                _ if targets.is_model(step.target) => targets.act(step.target, *act)?,
                Act::Sync => rustix::fs::sync(),
                Act::Rest(time) => {
                    let until = Instant::now() + Duration::from_nanos(time.0);
                    while Instant::now() < until {
                        if self.runner.interrupted.load(Ordering::Relaxed) {
                            return Ok(false);
                        }
                        std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
                    }
                }
                Act::Fsync | Act::Drop | Act::Renew => targets.act(step.target, *act)?,
            }
        }
        Ok(true)
    }

    /// Writes a test file where the step needs one that is whole; false when interrupted.
    fn fill(&mut self, step: &Step, targets: &mut Targets<'_>, account: &mut StepRecord) -> Result<bool, RunError> {
        let Some((path, size, entropy)) = targets.unfilled(step.target)? else {
            return Ok(true);
        };
        let job = Job {
            direction: Direction::Write,
            block: Block::Fixed(Bytes(CHUNK)),
            depth: 4,
            entropy,
            size: Some(size),
            stop: Stop { bytes: Some(size), ..Stop::default() },
            end_fsync: true,
            ..Job::default()
        };
        let Ready { opened, .. } = targets.open_to_fill(step.target, &job)?;
        let control = Control::new(self.runner.interrupted);
        let mut done = 0;
        let (outcome, _) = opened.run(&job, &control, &mut |interval: &Interval| {
            done += interval.write.bytes;
            self.runner.progress.filling(self.index, step, Bytes(done), size);
        })?;
        account.filled = Some(Fill { bytes: Bytes(outcome.write.bytes), time: outcome.elapsed });
        match outcome.ended {
            Ended::Cancelled => Ok(false),
            Ended::Failed { what, offset, errno } => Err(operation(what, offset, &path.display().to_string(), errno)),
            _ => {
                targets.wrote(step.target, &job, size);
                Ok(true)
            }
        }
    }

    /// Why what the step writes past the page cache goes through it, where it does.
    fn buffered(&self, opened: &Opened, step: &Step, targets: &Targets<'_>) -> Option<String> {
        match opened {
            Opened::File { fd, direct: true, .. } if step.job.direction.writes() => {
                through::direct_writes(fd, targets.path(step.target)?, self.machine)
            }
            _ => None,
        }
    }

    fn disks(&self, step: &Step, targets: &Targets<'_>) -> Vec<String> {
        let tier = step.tier.clone().or_else(|| {
            targets.path(step.target).and_then(|path| machine::tier_of_path(self.machine, &Root::live(), path))
        });
        tier.map(|tier| machine::disks_below(self.machine, &tier)).unwrap_or_default()
    }
}

/// The account of a step before anything was done.
pub fn blank(index: usize, step: &Step, target: String, state: State) -> StepRecord {
    StepRecord {
        index: index as u32,
        name: step.name.clone(),
        tier: step.tier.clone(),
        target,
        job: step.job.clone(),
        state,
        engine: None,
        ended_by: String::new(),
        region: None,
        filled: None,
        started: now(),
        measured_from: None,
        elapsed: Nanos(0),
        read: Side::default(),
        write: Side::default(),
        cpu_user: None,
        cpu_system: None,
        observing: None,
        predicted: None,
        each: Vec::new(),
        load: None,
        notes: Vec::new(),
    }
}

/// Takes over what the engine gave; an operation that failed is an error, after everything before it is kept.
fn write_account(outcome: Outcome, account: &mut StepRecord) -> Result<(), RunError> {
    account.engine = Some(outcome.engine);
    account.elapsed = outcome.elapsed;
    account.read = outcome.read;
    account.write = outcome.write;
    account.cpu_user = Some(outcome.cpu_user);
    account.cpu_system = Some(outcome.cpu_system);
    account.each = outcome.each;
    account.notes.extend(outcome.notes);
    account.ended_by = match &outcome.ended {
        Ended::Time => "time",
        Ended::Bytes => "bytes",
        Ended::Operations => "operations",
        Ended::Confidence => "confidence",
        Ended::Cancelled => "interrupted",
        Ended::Failed { .. } => "error",
        Ended::Refused { .. } => "refused",
        Ended::Astray { .. } => "wrong data",
    }
    .to_owned();
    match outcome.ended {
        Ended::Cancelled => account.state = State::Interrupted,
        Ended::Failed { what, offset, errno } => return Err(operation(what, offset, &account.target, errno)),
        Ended::Refused { said } => return Err(RunError::Load { what: format!("the server answers: {said}") }),
        Ended::Astray { offset, holds } => {
            return Err(RunError::Astray { offset, holds, target: account.target.clone() });
        }
        _ => {}
    }
    Ok(())
}

fn operation(what: &'static str, offset: Bytes, target: &str, errno: i32) -> RunError {
    let what = match what {
        "read" => "reading",
        "write" => "writing",
        _ => "syncing",
    };
    RunError::Operation { what, offset, target: target.to_owned(), reason: errno::in_words(errno), errno }
}
