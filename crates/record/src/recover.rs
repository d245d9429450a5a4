//! What a dead process left behind: its run still *running*, its spool in memory-backed storage. Whoever opens the
//! database next takes both over, once: inside one transaction that first looks whether there is still something to do.

use crate::error::RecordError;
use crate::model::{Run, RunId, State, StepRecord};
use crate::place;
use crate::spool::{Entry, Orphan, remove_spool};
use crate::store::{Series, Store, end, immediate, insert_step};
use basics::{Interval, Nanos, NotRun};
use rusqlite::{Transaction, params};
use std::path::{Path, PathBuf};
use sys::process::{Identity, Life};

/// A run whose process is gone.
struct Dead {
    number: i64,
    id: RunId,
    state: State,
    spool: Option<PathBuf>,
}

impl Store {
    /// Marks the runs of dead processes *interrupted*, keeps what they had spooled, and removes their spools. Runs of
    /// living processes, and of processes of other containers, are left alone. Gives the names of the interrupted runs.
    ///
    /// Spools whose process and whose database are both gone are removed too: there is no run to which they belong.
    ///
    /// # Errors
    /// Those of the database; [`RecordError::Io`] when `/proc` does not tell who lives.
    pub fn recover(&mut self) -> Result<Vec<RunId>, RecordError> {
        let mut recovered = Vec::new();
        for number in self.owned()? {
            if let Some(id) = self.take_over(number)? {
                recovered.push(id);
            }
        }
        place::in_memory().for_each(|dir| sweep(&dir));
        Ok(recovered)
    }

    /// Runs that have an owner, alive or not.
    fn owned(&self) -> Result<Vec<i64>, RecordError> {
        let mut statement = self.db.prepare("SELECT run FROM owner ORDER BY run").map_err(self.fail())?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(self.fail())?;
        rows.collect::<Result<_, _>>().map_err(self.fail())
    }

    /// Takes one run over, if its owner is gone; gives its name if it was still running.
    fn take_over(&mut self, number: i64) -> Result<Option<RunId>, RecordError> {
        let fail = self.fail();
        // One that cannot be read must not keep every later command from working: it is marked all the same.
        let head = self.head(number).ok();
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        let Some(dead) = dead(&transaction, number).map_err(&fail)?.transpose()? else {
            return Ok(None);
        };
        let was_running = dead.state == State::Running;
        if was_running {
            interrupt(&transaction, &dead, head.as_ref()).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        match self.disown(number) {
            // Another user's spool: it stays on the list for whoever may remove it.
            Ok(()) | Err(RecordError::Io { .. }) => Ok(was_running.then_some(dead.id)),
            Err(error) => Err(error),
        }
    }
}

/// Removes what nobody else will find. What cannot be read or removed is another user's, who will.
fn sweep(dir: &Path) {
    for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let run = name.strip_prefix("tiermark-").filter(|_| name.ends_with(".spool")).and_then(|rest| rest.get(..8));
        let orphan = run.and_then(|run| Orphan::open(&path, &run.to_owned()));
        let owner = orphan.and_then(|mut orphan| orphan.owner().ok().flatten());
        let forsaken = owner.is_some_and(|owner| {
            let database = std::fs::symlink_metadata(&owner.database);
            database.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
                && owner.process.life().is_ok_and(|life| life == Life::Gone)
        });
        if forsaken {
            let _ = remove_spool(&path);
        }
    }
}

/// The run, when it has an owner and that is gone.
fn dead(transaction: &Transaction<'_>, number: i64) -> rusqlite::Result<Option<Result<Dead, RecordError>>> {
    let sql = "SELECT process, spool, id, state FROM owner JOIN run ON number = run WHERE run = ?";
    let mut statement = transaction.prepare(sql)?;
    let mut rows = statement.query([number])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let owner: Identity = crate::store::from_json(row, 0)?;
    match owner.life() {
        Ok(Life::Gone) => {}
        Ok(Life::Alive | Life::Unknowable) => return Ok(None),
        Err(source) => {
            let action = "tell who lives from";
            return Ok(Some(Err(RecordError::Io { action, path: "/proc".into(), source })));
        }
    }
    let spool = row.get::<_, Option<String>>(1)?.map(PathBuf::from);
    Ok(Some(Ok(Dead { number, id: row.get(2)?, state: crate::store::from_json(row, 3)?, spool })))
}

/// Marks the run, and makes a step of what its spool holds.
fn interrupt(transaction: &Transaction<'_>, dead: &Dead, head: Option<&Run>) -> rusqlite::Result<()> {
    let mut notes = vec![
        "its process ended and could not say so here (it was killed, the database was full, or the machine went down)"
            .to_owned(),
    ];
    let mut ended = None;
    let committed = |step: u32| {
        let sql = "SELECT EXISTS (SELECT 1 FROM step WHERE run = ? AND step = ?)";
        transaction.query_row(sql, params![dead.number, step], |row| row.get::<_, bool>(0))
    };
    if let Some(mut spool) = dead.spool.as_deref().and_then(|path| Orphan::open(path, &dead.id)) {
        let mut step: Option<StepRecord> = None;
        let mut series = Series::new(dead.number);
        for (index, entry) in spool.entries().map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))? {
            // Killed after the commit and before the spool was emptied: all of it is there already.
            if committed(index)? {
                continue;
            }
            series.insert(transaction, index, &entry)?;
            match (entry, &mut step) {
                (Entry::Begin(started), _) => step = head.and_then(|run| unfinished(run, index, started)),
                (Entry::Measured(at), Some(step)) => step.measured_from = Some(at),
                (Entry::Interval(raw), Some(step)) => {
                    if let Ok(interval) = raw.interval() {
                        add(step, &interval);
                        ended = Some(step.started + step.elapsed);
                    }
                }
                _ => {}
            }
        }
        if let Some(step) = step {
            insert_step(transaction, dead.number, &step)?;
        }
    } else {
        notes.push("the step that was being measured is lost with its spool".to_owned());
    }
    if let Some(run) = head {
        for index in 0..run.plan.steps.len() as u32 {
            if !committed(index)?
                && let Some(step) = unfinished(run, index, Nanos(0))
            {
                let step = StepRecord {
                    state: State::NotRun(NotRun::Interrupted),
                    ended_by: String::new(),
                    notes: Vec::new(),
                    ..step
                };
                insert_step(transaction, dead.number, &step)?;
            }
        }
    }
    end(transaction, dead.number, &State::Interrupted, ended, &notes)
}

/// A step that nobody could finish: what the plan says of it. Nothing when the plan does not list it.
fn unfinished(run: &Run, index: u32, started: Nanos) -> Option<StepRecord> {
    let step = run.plan.steps.get(index as usize)?;
    Some(StepRecord {
        index,
        name: step.name.clone(),
        tier: step.tier.clone(),
        target: run.plan.targets.get(step.target).map_or_else(String::new, |target| target.describe()),
        job: step.job.clone(),
        state: State::Interrupted,
        engine: None,
        ended_by: "process ended".to_owned(),
        region: None,
        filled: None,
        started,
        measured_from: None,
        elapsed: Nanos(0),
        read: basics::Side::default(),
        write: basics::Side::default(),
        cpu_user: None,
        cpu_system: None,
        observing: None,
        predicted: None,
        each: Vec::new(),
        load: None,
        notes: vec![
            "put together from the intervals that its process left: its engine, CPU time and the cost of observing \
             are unknown, the interval in progress is missing"
                .to_owned(),
        ],
    })
}

fn add(step: &mut StepRecord, interval: &Interval) {
    step.elapsed = step.elapsed.max(interval.end);
    step.read.merge(&interval.read);
    step.write.merge(&interval.write);
}
