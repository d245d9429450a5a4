//! The database: opened, a run begun, its steps committed, ended; runs found by name. What is read out of it whole is in
//! [`crate::load`], what dead processes left in it in [`crate::recover`].

use crate::blob::{RawInterval, RawSide};
use crate::error::RecordError;
use crate::model::{Origin, Run, RunId, State, StepRecord};
use crate::place;
use crate::schema::{self, Kind};
use crate::spool::{Entry, Owner, Spool, now, remove_spool};
use basics::Nanos;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::process::Identity;

/// How long another tiermark may hold the database.
const PATIENCE: Duration = Duration::from_secs(10);

/// The runs of one database file.
#[derive(Debug)]
pub struct Store {
    pub(crate) db: Connection,
    path: PathBuf,
    notes: Vec<String>,
    /// The run begun last, when by the clock on the wall, and by one that nobody sets: a board without a clock of its own has
    /// it set while it measures, by decades.
    begun: Option<(RunId, Nanos, Instant)>,
}

/// A line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// Its name.
    pub id: RunId,
    /// How far it came.
    pub state: State,
    /// Where its figures come from.
    pub origin: Origin,
    /// The plan's method.
    pub method: String,
    /// Targets in a few words.
    pub target: String,
    /// The tiers that its steps say something about, each once, in the plan's order.
    pub tiers: Vec<String>,
    /// Unix time of its start.
    pub started: Nanos,
    /// Unix time of its end, once known.
    pub ended: Option<Nanos>,
    /// Steps that were run so far.
    pub steps: u32,
}

impl Store {
    /// Opens the database for reading and writing, and makes it and its folders when they are not there.
    ///
    /// # Errors
    /// One sentence each when it is no tiermark database, a newer one, damaged, not accessible, or the disk is full.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let io = |action, path: &Path, source| RecordError::Io { action, path: path.to_owned(), source };
        if let Some(dir) = path.parent().filter(|dir| *dir != Path::new("")) {
            std::fs::create_dir_all(dir).map_err(|source| io("make the folder", dir, source))?;
        }
        // Who comes second waits until the first has made the schema and switched to WAL: neither can be done by two at once,
        // and what is half made looks foreign. The lock is on the folder, because closing any descriptor of the database
        // would drop SQLite's own locks in this process.
        let folder = path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let _lock = std::fs::File::open(folder).and_then(|dir| dir.lock().map(|()| dir)).ok();
        if path.is_dir() {
            return Err(io("open the database", path, std::io::ErrorKind::IsADirectory.into()));
        }
        // SQLite says "unable to open" whatever the reason; the file system knows the reason.
        let file = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        match file {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => {
                return Err(RecordError::ReadOnly { path: path.to_owned() });
            }
            Err(source) => return Err(io("open the database", path, source)),
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags).map_err(|e| RecordError::sqlite(path, e))?;
        let mut store = Store { db, path: path.to_owned(), notes: Vec::new(), begun: None };
        store.prepare()?;
        Ok(store)
    }

    /// Opens an existing database for reading; nothing is written, so a read-only place is fine.
    ///
    /// # Errors
    /// As [`Store::open`], and [`RecordError::NoDatabase`] when there is none.
    pub fn open_for_reading(path: &Path) -> Result<Self, RecordError> {
        match std::fs::File::open(path) {
            Ok(_) if path.is_dir() => {
                let source = std::io::ErrorKind::IsADirectory.into();
                return Err(RecordError::Io { action: "read the database", path: path.to_owned(), source });
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(RecordError::NoDatabase { path: path.to_owned() });
            }
            Err(source) => return Err(RecordError::Io { action: "read the database", path: path.to_owned(), source }),
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = |uri: &Path, flags| -> rusqlite::Result<(Connection, Kind)> {
            let db = Connection::open_with_flags(uri, flags)?;
            db.busy_timeout(PATIENCE)?;
            let kind = schema::kind(&db)?;
            Ok((db, kind))
        };
        let mut notes = Vec::new();
        // A database in WAL mode wants its shared memory file beside it, which a read-only place does not allow; then
        // it is read as it stands, and nobody can be writing to it there.
        let (db, kind) = open(path, flags)
            .or_else(|first| match first.sqlite_error_code() {
                Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly) => {
                    if std::fs::metadata(suffixed(path, "-wal")).is_ok_and(|wal| wal.len() > 0) {
                        notes.push(format!(
                            "{} lies in a place that may not be written, so its latest changes (in its -wal file) \
                             are not shown",
                            path.display()
                        ));
                    }
                    open(&immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
                }
                _ => Err(first),
            })
            .map_err(|e| RecordError::sqlite(path, e))?;
        let path = path.to_owned();
        match kind {
            Kind::Empty => Err(RecordError::NoDatabase { path }),
            Kind::Foreign => Err(RecordError::Foreign { path }),
            Kind::Ours(schema::VERSION) => Ok(Store { db, path, notes, begun: None }),
            Kind::Ours(found) if found > schema::VERSION => {
                Err(RecordError::Newer { path, found, known: schema::VERSION })
            }
            // An older one is brought up to date where that is allowed.
            Kind::Ours(found) => match Self::open(&path) {
                Err(RecordError::ReadOnly { .. }) => Err(RecordError::Older { path, found, known: schema::VERSION }),
                opened => opened,
            },
        }
    }

    /// Settles what an open connection needs, and brings the schema up to date.
    fn prepare(&mut self) -> Result<(), RecordError> {
        let path = self.path.clone();
        let fail = |error| RecordError::sqlite(&path, error);
        self.db.busy_timeout(PATIENCE).map_err(fail)?;
        let kind = schema::kind(&self.db).map_err(fail)?;
        match kind {
            Kind::Foreign => return Err(RecordError::Foreign { path }),
            Kind::Ours(found) if found > schema::VERSION => {
                return Err(RecordError::Newer { path, found, known: schema::VERSION });
            }
            _ => {}
        }
        // FULL, not NORMAL: a committed step survives a power cut, and the flush happens between two steps, where
        // nothing is being measured. A file system without shared mappings refuses WAL; the rollback journal is safe too.
        self.db.pragma_update(None, "journal_mode", "WAL").map_err(fail)?;
        self.db.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
        self.db.pragma_update(None, "foreign_keys", true).map_err(fail)?;
        if kind != Kind::Ours(schema::VERSION) {
            let transaction = immediate(&mut self.db).map_err(fail)?;
            // Another process may have been quicker.
            let from = match schema::kind(&transaction).map_err(fail)? {
                Kind::Ours(version) => version,
                _ => 0,
            };
            if from < schema::VERSION {
                schema::migrate(&transaction, from).map_err(fail)?;
            }
            transaction.commit().map_err(fail)?;
        }
        Ok(())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a reader of this database should know, each a sentence.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Puts SQLite's failure into a sentence about this file.
    pub(crate) fn fail(&self) -> impl Fn(rusqlite::Error) -> RecordError + use<> {
        let path = self.path.clone();
        move |error| RecordError::sqlite(&path, error)
    }

    /// Puts a run at the head of the list, in state *running*, owned by this process. It is called `run.id` when that is
    /// a name that no other run here has ([`crate::new_id`] draws one), else a name is drawn; the name is given back.
    ///
    /// # Errors
    /// [`RecordError::NotText`] when the plan names a path that is not UTF-8; those of the database; [`RecordError::Io`]
    /// when `/proc` does not tell who this process is.
    pub fn begin(&mut self, run: &Run) -> Result<RunId, RecordError> {
        let fail = self.fail();
        let owner = this_process()?;
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        let id = free_id(&transaction, &run.id).map_err(&fail)?;
        let run = Run { id, state: State::Running, ended: None, ..run.clone() };
        let number = insert_run(&transaction, &run).map_err(&fail)?;
        transaction
            .execute("INSERT INTO owner (run, process) VALUES (?, ?)", params![number, json(&owner).map_err(&fail)?])
            .map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        self.begun = Some((run.id.clone(), run.started, Instant::now()));
        Ok(run.id)
    }

    /// Takes in figures that another program printed, a run for each block, all of them or none. Gives their names.
    ///
    /// # Errors
    /// Those of the database.
    pub fn quote(
        &mut self,
        blocks: Vec<quoted::Block>,
        command: &str,
        version: &str,
    ) -> Result<Vec<RunId>, RecordError> {
        let fail = self.fail();
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        let mut ids = Vec::new();
        for block in blocks {
            let mut run = Run::quoted(block, now(), command, version);
            run.id = free_id(&transaction, &run.id).map_err(&fail)?;
            insert_run(&transaction, &run).map_err(&fail)?;
            ids.push(run.id);
        }
        transaction.commit().map_err(&fail)?;
        Ok(ids)
    }

    /// Makes the run's spool in memory-backed storage. Its path stands in the database before the file exists.
    ///
    /// # Errors
    /// Those of the database; [`RecordError::Io`] when the file cannot be made, or `/proc` does not tell who this process is.
    pub fn spool(&mut self, run: &RunId) -> Result<Spool, RecordError> {
        let place = place::for_spool(&self.path);
        let random: String =
            self.db.query_row("SELECT lower(hex(randomblob(4)))", [], |row| row.get(0)).map_err(self.fail())?;
        let path = place.dir.join(format!("tiermark-{run}-{random}.spool"));
        let path = std::path::absolute(&path).unwrap_or(path);
        let number = self.number(run)?;
        self.db
            .execute("UPDATE owner SET spool = ? WHERE run = ?", params![path.to_string_lossy(), number])
            .map_err(self.fail())?;
        let database = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let owner = Owner { process: this_process()?, database };
        let spool = Spool::create(run, path, &owner, place.limit, place.in_memory)?;
        if !spool.in_memory() {
            self.note(
                run,
                "no memory-backed place for the intervals was found ($XDG_RUNTIME_DIR, /dev/shm, /run), so they were \
                 written beside the database while measuring",
            )?;
        }
        Ok(spool)
    }

    /// Commits a step with everything that was spooled since the last commit, in one transaction, and empties the spool.
    ///
    /// # Errors
    /// Those of the database; the spool keeps its content then.
    pub fn commit_step(&mut self, spool: &mut Spool, step: &StepRecord) -> Result<(), RecordError> {
        let fail = self.fail();
        let spool_fail = |path: &Path| {
            let path = path.to_owned();
            move |source| RecordError::Io { action: "read the spool", path, source }
        };
        let number = self.number(spool.run())?;
        let mut step = step.clone();
        spool.flush();
        if spool.together() > 1 {
            step.notes.push(format!(
                "up to {} intervals were joined to one, and of as many samples one was kept, so that the spool stayed small",
                spool.together()
            ));
        }
        if spool.dropped() > 0 {
            step.notes.push(format!(
                "{} intervals or samples are missing from the series, because the spool had no room for them",
                spool.dropped()
            ));
        }
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        insert_step(&transaction, number, &step).map_err(&fail)?;
        let path = spool.path().to_owned();
        let mut series = Series::new(number);
        for (step, entry) in spool.entries().map_err(spool_fail(&path))? {
            series.insert(&transaction, step, &entry).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)?;
        spool.clear().map_err(spool_fail(&path))
    }

    /// Keeps the accounts of steps that were not run, all of them or none.
    ///
    /// # Errors
    /// Those of the database.
    pub fn skip(&mut self, run: &RunId, steps: &[StepRecord]) -> Result<(), RecordError> {
        let number = self.number(run)?;
        let fail = self.fail();
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        for step in steps {
            insert_step(&transaction, number, step).map_err(&fail)?;
        }
        transaction.commit().map_err(&fail)
    }

    /// Adds a sentence that a reader of the run must know.
    ///
    /// # Errors
    /// Those of the database.
    pub fn note(&mut self, run: &RunId, note: &str) -> Result<(), RecordError> {
        let number = self.number(run)?;
        let fail = self.fail();
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        add_notes(&transaction, number, &[note.to_owned()]).map_err(&fail)?;
        transaction.commit().map_err(&fail)
    }

    /// Ends a run: its state, its end, and what a reader must know of it. Removes its spool.
    ///
    /// # Errors
    /// Those of the database.
    pub fn finish(&mut self, run: &RunId, state: &State, notes: &[String]) -> Result<(), RecordError> {
        let number = self.number(run)?;
        let fail = self.fail();
        let transaction = immediate(&mut self.db).map_err(&fail)?;
        let begun = self.begun.take_if(|(id, ..)| id == run);
        let ended = begun.map_or_else(now, |(_, started, since)| started + since.elapsed().into());
        end(&transaction, number, state, Some(ended), notes).map_err(&fail)?;
        transaction.commit().map_err(&fail)?;
        self.disown(number)
    }

    /// Removes the spool, then forgets where it was: in this order, so that no crash leaves a file that nobody knows.
    pub(crate) fn disown(&mut self, number: i64) -> Result<(), RecordError> {
        let spool: Option<Option<String>> = self
            .db
            .query_row("SELECT spool FROM owner WHERE run = ?", [number], |row| row.get(0))
            .optional()
            .map_err(self.fail())?;
        if let Some(path) = spool.flatten().map(PathBuf::from) {
            remove_spool(&path).map_err(|source| RecordError::Io { action: "remove the spool", path, source })?;
        }
        self.db.execute("DELETE FROM owner WHERE run = ?", [number]).map_err(self.fail())?;
        Ok(())
    }

    /// Every run, the newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub fn runs(&self) -> Result<Vec<RunHead>, RecordError> {
        let sql = "SELECT id, state, origin, method, target, tiers, started_ns, ended_ns,
                          (SELECT count(*) FROM step WHERE step.run = run.number AND step.state NOT LIKE '%not-run%')
                   FROM run ORDER BY number DESC";
        let head = |row: &Row<'_>| {
            Ok(RunHead {
                id: row.get(0)?,
                state: from_json(row, 1)?,
                origin: from_json(row, 2)?,
                method: row.get(3)?,
                target: row.get(4)?,
                tiers: from_json(row, 5)?,
                started: nanos(row, 6)?,
                ended: maybe_nanos(row, 7)?,
                steps: row.get(8)?,
            })
        };
        let mut statement = self.db.prepare(sql).map_err(self.fail())?;
        let rows = statement.query_map([], head).map_err(self.fail())?;
        rows.collect::<Result<_, _>>().map_err(self.fail())
    }

    /// The run that is meant by `asked`: `last`, or an unambiguous beginning of its name of at least four digits.
    ///
    /// # Errors
    /// [`RecordError::NotARun`], [`RecordError::NoRunYet`], [`RecordError::NoSuchRun`], [`RecordError::Ambiguous`]; those of the database.
    pub fn find(&self, asked: &str) -> Result<RunId, RecordError> {
        let prefix = asked.to_ascii_lowercase();
        let (sql, bound) = if prefix == "last" {
            ("SELECT id FROM run WHERE ?1 = 'last' ORDER BY number DESC LIMIT 1", prefix)
        } else if (4..=8).contains(&prefix.len()) && is_hex(&prefix) {
            ("SELECT id FROM run WHERE substr(id, 1, length(?1)) = ?1 ORDER BY number DESC LIMIT 5", prefix)
        } else {
            return Err(RecordError::NotARun { asked: asked.to_owned() });
        };
        let mut statement = self.db.prepare(sql).map_err(self.fail())?;
        let rows = statement.query_map([bound], |row| row.get(0)).map_err(self.fail())?;
        let mut found: Vec<RunId> = rows.collect::<Result<_, _>>().map_err(self.fail())?;
        match (found.pop(), found.is_empty()) {
            (Some(only), true) => Ok(only),
            (None, _) if asked.eq_ignore_ascii_case("last") => Err(RecordError::NoRunYet { path: self.path.clone() }),
            (None, _) => Err(RecordError::NoSuchRun { asked: asked.to_owned() }),
            (Some(one_more), false) => {
                found.push(one_more);
                Err(RecordError::Ambiguous { asked: asked.to_owned(), candidates: found })
            }
        }
    }

    /// Forgets a run and everything in it.
    ///
    /// # Errors
    /// [`RecordError::StillRunning`], [`RecordError::NoSuchRun`]; those of the database.
    pub fn remove(&mut self, run: &RunId) -> Result<(), RecordError> {
        let number = self.number(run)?;
        let sql = "DELETE FROM run WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM owner WHERE run = ?1)";
        match self.db.execute(sql, [number]).map_err(self.fail())? {
            0 => Err(RecordError::StillRunning { run: run.clone() }),
            _ => Ok(()),
        }
    }

    /// The run's number within this file.
    pub(crate) fn number(&self, run: &RunId) -> Result<i64, RecordError> {
        self.db
            .query_row("SELECT number FROM run WHERE id = ?", [run], |row| row.get(0))
            .optional()
            .map_err(self.fail())?
            .ok_or_else(|| RecordError::NoSuchRun { asked: run.clone() })
    }
}

fn this_process() -> Result<Identity, RecordError> {
    let action = "tell this process apart from others in";
    Identity::of_this_process().map_err(|source| RecordError::Io { action, path: "/proc".into(), source })
}

/// Whether this is a whole name as runs have.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 8 && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A transaction that owns the right to write from its beginning, so that what it reads is still so when it writes.
pub(crate) fn immediate(db: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    db.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// `wanted`, when it is a name and no run of this file has it, else one that is both.
pub(crate) fn free_id(transaction: &Connection, wanted: &str) -> rusqlite::Result<RunId> {
    let mut id = wanted.to_owned();
    loop {
        let taken = "SELECT EXISTS (SELECT 1 FROM run WHERE id = ?)";
        if is_id(&id) && !transaction.query_row(taken, [&id], |row| row.get::<_, bool>(0))? {
            return Ok(id);
        }
        id = transaction.query_row("SELECT lower(hex(randomblob(4)))", [], |row| row.get(0))?;
    }
}

pub(crate) fn insert_run(transaction: &Connection, run: &Run) -> rusqlite::Result<i64> {
    let mut tiers: Vec<&str> = Vec::new();
    for tier in run.plan.steps.iter().filter_map(|step| step.tier.as_deref()) {
        if !tiers.contains(&tier) {
            tiers.push(tier);
        }
    }
    transaction.execute(
        "INSERT INTO run (id, state, origin, started_ns, ended_ns, version, command, target, method, tiers, plan,
                          machine, harness_ns_per_op, notes, quoted)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run.id,
            json(&run.state)?,
            json(&run.origin)?,
            run.started.0 as i64,
            run.ended.map(|ended| ended.0 as i64),
            run.version,
            run.command,
            run.target,
            run.plan.method,
            json(&tiers)?,
            json(&run.plan)?,
            json(&run.machine)?,
            run.harness_ns_per_op,
            json(&run.notes)?,
            run.quoted.as_ref().map(json).transpose()?,
        ],
    )?;
    Ok(transaction.last_insert_rowid())
}

pub(crate) fn insert_step(transaction: &Connection, run: i64, step: &StepRecord) -> rusqlite::Result<()> {
    let (read, write) = (RawSide::of(&step.read), RawSide::of(&step.write));
    transaction.execute(
        "INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            run,
            step.index,
            step.name,
            step.tier,
            step.target,
            json(&step.job)?,
            json(&step.state)?,
            step.engine.as_ref().map(json).transpose()?,
            step.ended_by,
            step.region.map(|bytes| bytes.0 as i64),
            step.filled.as_ref().map(json).transpose()?,
            step.started.0 as i64,
            step.measured_from.map(|time| time.0 as i64),
            step.elapsed.0 as i64,
            read.bytes as i64,
            read.latency,
            read.service,
            read.untimed as i64,
            write.bytes as i64,
            write.latency,
            write.service,
            write.untimed as i64,
            step.cpu_user.map(|time| time.0 as i64),
            step.cpu_system.map(|time| time.0 as i64),
            step.observing.as_ref().map(json).transpose()?,
            step.predicted.as_ref().map(json).transpose()?,
            json(&step.notes)?,
            (!step.each.is_empty()).then(|| json(&step.each)).transpose()?,
            step.load.as_ref().map(json).transpose()?,
        ],
    )?;
    Ok(())
}

/// Puts intervals and samples of a run in, numbered from 0 in each step.
pub(crate) struct Series {
    run: i64,
    step: u32,
    intervals: i64,
    samples: i64,
}

impl Series {
    pub fn new(run: i64) -> Self {
        Series { run, step: 0, intervals: 0, samples: 0 }
    }

    pub fn insert(&mut self, transaction: &Connection, step: u32, entry: &Entry) -> rusqlite::Result<()> {
        if step != self.step {
            *self = Series { step, ..Series::new(self.run) };
        }
        match entry {
            Entry::Begin(_) | Entry::Measured(_) => {}
            Entry::Interval(interval) => {
                self.interval(transaction, interval)?;
                self.intervals += 1;
            }
            Entry::Sample(sample) => {
                transaction.prepare_cached("INSERT INTO sample VALUES (?, ?, ?, ?)")?.execute(params![
                    self.run,
                    step,
                    self.samples,
                    sample
                ])?;
                self.samples += 1;
            }
        }
        Ok(())
    }

    fn interval(&self, transaction: &Connection, interval: &RawInterval) -> rusqlite::Result<()> {
        transaction.prepare_cached("INSERT INTO interval VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                self.run,
                self.step,
                self.intervals,
                interval.start.0 as i64,
                interval.end.0 as i64,
                interval.position as i64,
                interval.read.bytes as i64,
                interval.read.latency,
                interval.read.service,
                interval.read.untimed as i64,
                interval.write.bytes as i64,
                interval.write.latency,
                interval.write.service,
                interval.write.untimed as i64,
            ],
        )?;
        Ok(())
    }
}

/// Marks a run as ended.
pub(crate) fn end(
    transaction: &Transaction<'_>,
    run: i64,
    state: &State,
    ended: Option<Nanos>,
    notes: &[String],
) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE run SET state = ?, ended_ns = ? WHERE number = ?",
        params![json(state)?, ended.map(|ended| ended.0 as i64), run],
    )?;
    add_notes(transaction, run, notes)
}

fn add_notes(transaction: &Transaction<'_>, run: i64, more: &[String]) -> rusqlite::Result<()> {
    let mut notes: Vec<String> =
        transaction.query_row("SELECT notes FROM run WHERE number = ?", [run], |row| from_json(row, 0))?;
    notes.extend_from_slice(more);
    transaction.execute("UPDATE run SET notes = ? WHERE number = ?", params![json(&notes)?, run])?;
    Ok(())
}

/// JSON of a type of ours. Fails for a path that is not UTF-8, which JSON cannot hold.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// A column that holds JSON.
pub(crate) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text)
        .map_err(|e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(e)))
}

/// A column that holds JSON, or NULL.
pub(crate) fn maybe_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => from_json(row, column).map(Some),
    }
}

/// A column that holds nanoseconds.
pub(crate) fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    Ok(Nanos(row.get::<_, i64>(column)? as u64))
}

/// A column that holds nanoseconds, or NULL where they are not known.
pub(crate) fn maybe_nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Nanos>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|ns| Nanos(ns as u64)))
}

/// `path` with something appended to its last part.
fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// As a URI that tells SQLite that nobody changes the file (sqlite.org/uri.html).
fn immutable_uri(path: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for &byte in full.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(byte as char),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte as char),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    uri.into()
}
