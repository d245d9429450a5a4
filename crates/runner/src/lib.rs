//! Executes a plan: makes each target ready, runs each job through the engine with the observer beside it, and keeps
//! everything in the record as it happens. It knows no method by name and draws no conclusion; what is shown while it
//! runs is the business of a [`Progress`].
#![forbid(unsafe_code)]

mod emulated;
mod errno;
mod error;
mod judge;
mod model;
mod pressed;
mod progress;
mod ready;
mod redis;
mod step;
mod through;
pub mod trial;

pub use error::{Kind, RunError};
pub use pressed::{Errand, Hold, Task, run_errand};
pub use progress::{Progress, Silent};

use basics::plan::{Step, Target};
use basics::{Nanos, NotRun, Plan};
use change::{Claim, Journal};
use judge::Judge;
use machine::Machine;
use ready::Targets;
use record::{Origin, Run, RunId, Spool, State, StepRecord, Store};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// What the runner works with.
pub struct Runner<'a> {
    /// Where the account is kept.
    pub store: &'a mut Store,
    /// Where changes are written down before they happen.
    pub journal: &'a Journal,
    /// Set by a signal: the run ends at the next operation, everything is undone, the partial record is kept.
    pub interrupted: &'a AtomicBool,
    /// Who shows what happens.
    pub progress: &'a mut dyn Progress,
    /// This program, which starts itself for what must be a process of its own.
    pub program: &'a Path,
}

/// How a run ended.
#[derive(Debug)]
pub struct Finished {
    /// Its name in the store.
    pub id: RunId,
    /// How far it came.
    pub state: State,
    /// What went wrong on the way, in order; a failed step that the plan tolerates is here and the run is still done.
    pub errors: Vec<RunError>,
}

impl Runner<'_> {
    /// Runs `plan` to its end.
    ///
    /// # Errors
    /// When it may not or cannot start, or when the record cannot be kept. What fails on the way is in [`Finished`].
    pub fn run(&mut self, plan: Plan, machine: Machine, command: &str) -> Result<Finished, RunError> {
        let allowed = checked(&plan)?;
        // From the first target to the last: between two of them nobody else comes in.
        let presses = plan.targets.iter().any(|target| matches!(target, Target::Pressed(_)));
        let _claim = if presses { Some(Claim::take()?) } else { None };
        let origin = origin(&plan);
        let mut notes = Vec::new();
        let harness = if origin == Origin::Measured {
            let cost = engine::calibrate();
            notes.extend(cost.as_ref().err().map(|error| format!("the harness's own cost is not known: {error}")));
            cost.ok()
        } else {
            None
        };
        let run = Run {
            id: record::new_id(),
            state: State::Running,
            origin,
            started: now(),
            ended: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            target: plan.places(),
            plan: plan.clone(),
            machine,
            harness_ns_per_op: harness,
            notes,
            quoted: None,
        };
        let id = self.store.begin(&run)?;
        let spool: SharedSpool = match self.store.spool(&id) {
            Ok(spool) => Arc::new(Mutex::new(spool)),
            Err(error) => {
                let error = RunError::from(error);
                // Should the store fail here too, the next start finds a run without a process and says so.
                let _ = self.not_run(&id, &plan, 0..plan.steps.len(), NotRun::RunFailed);
                let _ = self.store.finish(&id, &State::Failed(error.failure()), &[]);
                return Err(error);
            }
        };
        self.progress.begin(&plan);
        let mut targets = Targets::new(allowed, &id, plan.seed, self.journal);
        let mut leftovers = Vec::new();
        let outcome = self.steps(&id, &run.machine, &plan, &spool, &mut targets, &mut leftovers);
        // Files go before the run is called finished: a reader of "done" may rely on it.
        leftovers.extend(targets.close());
        for leftover in &leftovers {
            self.progress.note(&leftover.to_string());
        }
        let (state, mut errors) = match outcome {
            Ok(outcome) => outcome,
            // The store could not take a step. Ending the run would drop what its spool still holds; left as it is, the
            // next start takes both over.
            Err(error) => {
                self.progress.end();
                return Err(error);
            }
        };
        self.store.finish(&id, &state, &leftovers.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        errors.extend(leftovers);
        self.progress.end();
        Ok(Finished { id, state, errors })
    }

    /// All steps in order. An error here is one that ends the run without being part of a step.
    fn steps(
        &mut self,
        id: &RunId,
        machine: &Machine,
        plan: &Plan,
        spool: &SharedSpool,
        targets: &mut Targets<'_>,
        leftovers: &mut Vec<RunError>,
    ) -> Result<(State, Vec<RunError>), RunError> {
        let mut errors = Vec::new();
        let mut dead = vec![false; plan.targets.len()];
        let mut succeeded = 0usize;
        let mut judge = plan.rounds.as_ref().map(Judge::new);
        let all = plan.steps.len();
        let mut next = 0;
        while let Some(step) = plan.steps.get(next) {
            let index = next;
            next += 1;
            if self.interrupted.load(Ordering::Relaxed) {
                self.not_run(id, plan, index..all, NotRun::Interrupted)?;
                return Ok((State::Interrupted, errors));
            }
            if dead[step.target] {
                self.store.skip(id, &[skipped(plan, index, step, NotRun::TargetFailed)])?;
                continue;
            }
            let mut record = step::Running { runner: self, machine, spool, index }.run(step, targets);
            let error = record.error.take();
            self.store.commit_step(&mut lock(spool), &record.account)?;
            self.progress.finished(index, &record.account);
            leftovers.extend(targets.release(plan, index));
            match (&record.account.state, error) {
                (State::Interrupted, _) => {
                    self.not_run(id, plan, next..all, NotRun::Interrupted)?;
                    return Ok((State::Interrupted, errors));
                }
                (_, Some(error)) if error.is_an_answer() => succeeded += 1,
                (_, Some(error)) => {
                    self.progress.note(&error.to_string());
                    if !step.may_fail {
                        let state = State::Failed(error.failure());
                        self.not_run(id, plan, next..all, NotRun::RunFailed)?;
                        errors.push(error);
                        return Ok((state, errors));
                    }
                    errors.push(error);
                    dead[step.target] = true;
                }
                (_, None) => {
                    succeeded += 1;
                    if let Some(needed) = judge.as_mut().and_then(|judge| judge.hears(index, &record.account)) {
                        self.not_run(id, plan, next..needed, NotRun::Enough)?;
                        next = needed;
                    }
                }
            }
        }
        let state = match errors.first() {
            Some(error) if succeeded == 0 => State::Failed(error.failure()),
            _ => State::Done,
        };
        Ok((state, errors))
    }

    /// Accounts for steps whose turn does not come.
    fn not_run(&mut self, id: &RunId, plan: &Plan, which: Range<usize>, why: NotRun) -> Result<(), RunError> {
        let rest = plan.steps.iter().enumerate().take(which.end).skip(which.start);
        let accounts: Vec<StepRecord> = rest.map(|(index, step)| skipped(plan, index, step, why)).collect();
        Ok(self.store.skip(id, &accounts)?)
    }
}

/// The spool of a run; the observer writes to it from its own thread.
type SharedSpool = Arc<Mutex<Spool>>;

/// A spool is whole between its entries, so one whose other user panicked is as good as ever.
fn lock(spool: &Mutex<Spool>) -> MutexGuard<'_, Spool> {
    spool.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The account of a step that was not run.
fn skipped(plan: &Plan, index: usize, step: &Step, why: NotRun) -> StepRecord {
    let target = plan.targets.get(step.target).map_or_else(String::new, basics::plan::Target::describe);
    step::blank(index, step, target, State::NotRun(why))
}

/// Simulated as soon as a part of it is.
fn origin(plan: &Plan) -> Origin {
    let mut profiles = plan.targets.iter().filter_map(|target| match target {
        Target::Profile { name, .. } => Some(name.clone()),
        _ => None,
    });
    profiles.next().map_or(Origin::Measured, Origin::Simulated)
}

/// Whether a plan may begin: its jobs make sense and nothing of value would be written. [`Runner::run`] asks the same.
///
/// # Errors
/// [`Kind::Usage`] for a job that makes no sense, [`Kind::Refused`] for what must not be written.
pub fn may_begin(plan: &Plan) -> Result<(), RunError> {
    checked(plan).map(drop)
}

fn checked(plan: &Plan) -> Result<ready::Allowed, RunError> {
    for step in &plan.steps {
        step.job.check().map_err(engine::EngineError::from)?;
    }
    ready::allowed(plan)
}

/// Unix time.
fn now() -> Nanos {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(Nanos(0), Nanos::from)
}
