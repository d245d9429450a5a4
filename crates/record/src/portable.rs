//! One run as one file, to send to another machine: gzip of JSON lines. Chosen over a small SQLite file because it can be
//! written to a pipe, read with `zcat`, checked line by line in bounded memory, and does not depend on the schema.
//!
//! The first line is `{"tiermark_run": 1}`, the format's version; then come one `run`, its `step`s, `interval`s and
//! `sample`s, each a line `{"KIND": {…}}` in the form of the types of those names, with durations in nanoseconds and
//! histograms as Base64 of HdrHistogram V2 deflate; the last line is `{"end": {"lines": N}}`, where N counts all lines
//! between. A reader of version 1 refuses a later version and ignores keys that it does not know.

use crate::blob::{RawInterval, RawSide};
use crate::error::RecordError;
use crate::load::raw_interval;
use crate::model::{Fill, Run, RunId, State, StepRecord};
use crate::spool::Entry;
use crate::store::{Series, Store, free_id, from_json, insert_run, insert_step, nanos};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use basics::pressure::Load;
use basics::{Bytes, Each, EngineUse, Job, Latencies, Nanos, Predicted, Side};
use flate2::Compression;
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::GzEncoder;
use observe::{Cost, Sample};
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;

/// The version that is written, and the latest that is read.
const FORMAT: u64 = 1;
/// No line of ours is longer; the longest holds a plan and a machine.
const LONGEST_LINE: u64 = 8 << 20;
/// No file of ours is longer, packed.
const LONGEST_FILE: u64 = 1 << 30;
/// No run of ours is longer, unpacked: a day of intervals.
const LONGEST_RUN: u64 = 4 << 30;
/// The counts of a histogram of ours, unpacked, take at most as many bytes: nine for each of its 32,768 buckets.
const LONGEST_COUNTS: u32 = 9 << 15;

#[derive(Serialize, Deserialize)]
struct Head {
    tiermark_run: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Run(Box<Run>),
    Step(Box<StepLine>),
    Interval(Box<IntervalLine>),
    Sample(Box<SampleLine>),
    End { lines: u64 },
}

#[derive(Serialize, Deserialize)]
struct StepLine {
    index: u32,
    name: String,
    tier: Option<String>,
    target: String,
    job: Job,
    state: State,
    engine: Option<EngineUse>,
    ended_by: String,
    #[serde(default)]
    region: Option<Bytes>,
    #[serde(default)]
    filled: Option<Fill>,
    started: Nanos,
    #[serde(default)]
    measured_from: Option<Nanos>,
    elapsed: Nanos,
    read: SideLine,
    write: SideLine,
    #[serde(default)]
    cpu_user: Option<Nanos>,
    #[serde(default)]
    cpu_system: Option<Nanos>,
    #[serde(default)]
    observing: Option<Cost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    predicted: Option<Predicted>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    each: Vec<Each>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load: Option<Box<Load>>,
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct IntervalLine {
    step: u32,
    start: Nanos,
    end: Nanos,
    position: u64,
    read: SideLine,
    write: SideLine,
}

#[derive(Serialize, Deserialize)]
struct SampleLine {
    step: u32,
    sample: Sample,
}

#[derive(Serialize, Deserialize)]
struct SideLine {
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<Base64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service: Option<Base64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    untimed: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

struct Base64(Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text).map(Base64).map_err(serde::de::Error::custom)
    }
}

impl From<RawSide> for SideLine {
    fn from(side: RawSide) -> Self {
        SideLine {
            bytes: side.bytes,
            latency: side.latency.map(Base64),
            service: side.service.map(Base64),
            untimed: side.untimed,
        }
    }
}

impl SideLine {
    fn raw(self) -> Result<RawSide, String> {
        let checked = |histogram: Option<Base64>| histogram.map(|bytes| check(&bytes.0).map(|()| bytes.0)).transpose();
        let (latency, service) = (checked(self.latency)?, checked(self.service)?);
        Ok(RawSide { bytes: self.bytes, latency, service, untimed: self.untimed })
    }

    fn side(self) -> Result<Side, String> {
        self.raw()?.side().map_err(|e| e.to_string())
    }
}

/// Whether this is a histogram that can be read back, without first taking the memory that it asks for.
fn check(bytes: &[u8]) -> Result<(), String> {
    // V2 deflate: cookie, length, then in the deflated part cookie, length of the counts, ….
    let mut head = [0; 8];
    let deflated = bytes.get(8..).unwrap_or_default();
    ZlibDecoder::new(deflated).read_exact(&mut head).map_err(|e| format!("a histogram is damaged ({e})"))?;
    let counts = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    if counts > LONGEST_COUNTS {
        return Err(format!("a histogram says that it is {counts} bytes long"));
    }
    Latencies::from_bytes(bytes).map(drop).map_err(|e| e.to_string())
}

impl From<&StepRecord> for StepLine {
    fn from(step: &StepRecord) -> Self {
        StepLine {
            index: step.index,
            name: step.name.clone(),
            tier: step.tier.clone(),
            target: step.target.clone(),
            job: step.job.clone(),
            state: step.state.clone(),
            engine: step.engine.clone(),
            ended_by: step.ended_by.clone(),
            region: step.region,
            filled: step.filled,
            started: step.started,
            measured_from: step.measured_from,
            elapsed: step.elapsed,
            read: RawSide::of(&step.read).into(),
            write: RawSide::of(&step.write).into(),
            cpu_user: step.cpu_user,
            cpu_system: step.cpu_system,
            observing: step.observing,
            predicted: step.predicted,
            each: step.each.clone(),
            load: step.load.clone(),
            notes: step.notes.clone(),
        }
    }
}

impl StepLine {
    fn step(self) -> Result<StepRecord, String> {
        Ok(StepRecord {
            index: self.index,
            name: self.name,
            tier: self.tier,
            target: self.target,
            job: self.job,
            state: self.state,
            engine: self.engine,
            ended_by: self.ended_by,
            region: self.region,
            filled: self.filled,
            started: self.started,
            measured_from: self.measured_from,
            elapsed: self.elapsed,
            read: self.read.side()?,
            write: self.write.side()?,
            cpu_user: self.cpu_user,
            cpu_system: self.cpu_system,
            observing: self.observing,
            predicted: self.predicted,
            each: self.each,
            load: self.load,
            notes: self.notes,
        })
    }
}

impl Store {
    /// Writes a run as a portable file.
    ///
    /// # Errors
    /// [`RecordError::StillRunning`]; [`RecordError::Portable`] when it cannot be written; those of the database.
    pub fn export(&self, run: &RunId, to: impl Write) -> Result<(), RecordError> {
        let number = self.number(run)?;
        let head = self.head(number)?;
        if head.state == State::Running {
            return Err(RecordError::StillRunning { run: run.clone() });
        }
        let failed = |source| RecordError::Portable { action: "write", source };
        let mut out = GzEncoder::new(to, Compression::default());
        let mut lines = 0;
        write_line(&mut out, &Head { tiermark_run: FORMAT }).map_err(failed)?;
        self.lines(number, head, &mut |line| {
            lines += 1;
            write_line(&mut out, line).map_err(failed)
        })?;
        write_line(&mut out, &Line::End { lines }).map_err(failed)?;
        out.finish().and_then(|mut to| to.flush()).map_err(failed)
    }

    /// Gives a run line by line, so that memory does not grow with its length.
    fn lines(
        &self,
        number: i64,
        head: Run,
        each: &mut dyn FnMut(&Line) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        each(&Line::Run(Box::new(head)))?;
        for step in &self.steps(number)? {
            each(&Line::Step(Box::new(step.into())))?;
        }
        each_row(&self.db, "SELECT * FROM interval WHERE run = ? ORDER BY step, number", number, &mut |row| {
            let RawInterval { start, end, position, read, write } = raw_interval(row).map_err(self.fail())?;
            let step = row.get(1).map_err(self.fail())?;
            let (read, write) = (read.into(), write.into());
            each(&Line::Interval(Box::new(IntervalLine { step, start, end, position, read, write })))
        })
        .map_err(self.fail())??;
        each_row(&self.db, "SELECT * FROM sample WHERE run = ? ORDER BY step, number", number, &mut |row| {
            let step = row.get(1).map_err(self.fail())?;
            let sample = from_json(row, 3).map_err(self.fail())?;
            each(&Line::Sample(Box::new(SampleLine { step, sample })))
        })
        .map_err(self.fail())?
    }

    /// Hash of all that a run holds but its name.
    fn digest(&self, number: i64) -> Result<[u8; 32], RecordError> {
        let mut hasher = Sha256::new();
        let head = Run { id: RunId::new(), ..self.head(number)? };
        self.lines(number, head, &mut |line| {
            let json = serde_json::to_vec(line);
            let compare = |error: serde_json::Error| RecordError::Portable { action: "compare", source: error.into() };
            hasher.update(json.map_err(compare)?);
            Ok(())
        })?;
        Ok(hasher.finalize().into())
    }

    /// Takes in a run that [`Store::export`] wrote. If the very same run is here already, nothing changes; if another run
    /// bears its name, it gets a new one. Gives the name under which it is here.
    ///
    /// The whole file is read and checked before the database is touched, so that a slow sender keeps nobody from
    /// writing there; meanwhile it lies in a nameless file beside the database.
    ///
    /// # Errors
    /// [`RecordError::NotPortable`] and [`RecordError::NewerPortable`]; nothing is taken in then. [`RecordError::Io`] or
    /// [`RecordError::Full`] when there is no room for the nameless file. Those of the database.
    pub fn import(&mut self, from: impl Read) -> Result<RunId, RecordError> {
        let mut received = self.receive(from)?;
        let mut lines = Lines::new(&received)?;
        while !matches!(lines.next()?, Line::End { .. }) {}
        lines.at_end()?;
        received.rewind().map_err(|source| self.received("read what is imported beside", source))?;
        let from = &received;
        let fail = self.fail();
        // Not a `Transaction`, which would borrow the connection: what was put in is read back before it is decided
        // whether it stays.
        self.db.execute_batch("BEGIN IMMEDIATE").map_err(&fail)?;
        let taken = self.take_in(from);
        let committed = match taken {
            Ok((_, true)) => self.db.execute_batch("COMMIT").map_err(&fail),
            _ => Ok(()),
        };
        if !self.db.is_autocommit() {
            // Nothing was written that a failing rollback could leave: closing the file rolls back as well.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        let (id, _) = taken?;
        committed.map(|()| id)
    }

    /// All that comes, in a file without a name.
    fn receive(&self, mut from: impl Read) -> Result<File, RecordError> {
        let dir = self.path().parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let mut to = tempfile::tempfile_in(dir)
            .map_err(|source| self.received("make a file for what is imported beside", source))?;
        let mut part = vec![0; 64 << 10];
        let mut length = 0;
        loop {
            let read = match from.read(&mut part) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(RecordError::Portable { action: "read", source }),
            };
            length += read as u64;
            if length > LONGEST_FILE {
                return Err(RecordError::NotPortable { why: "it is longer than any of ours".to_owned() });
            }
            to.write_all(&part[..read]).map_err(|source| self.received("keep what is imported beside", source))?;
        }
        to.rewind().map_err(|source| self.received("read what is imported beside", source))?;
        Ok(to)
    }

    /// A failure of the file without a name.
    fn received(&self, action: &'static str, source: io::Error) -> RecordError {
        let path = self.path().to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => RecordError::Full { path },
            _ => RecordError::Io { action, path, source },
        }
    }

    /// Puts the run in; gives its name, and whether it is to stay.
    fn take_in(&mut self, from: impl Read) -> Result<(RunId, bool), RecordError> {
        let mut lines = Lines::new(from)?;
        let fail = self.fail();
        let run = match lines.next()? {
            Line::Run(run) if run.state != State::Running => *run,
            _ => return Err(lines.wrong("the second line is not a run that has ended")),
        };
        let id = free_id(&self.db, &run.id).map_err(&fail)?;
        let number = insert_run(&self.db, &Run { id: id.clone(), ..run.clone() }).map_err(&fail)?;
        let (mut intervals, mut samples) = (Series::new(number), Series::new(number));
        let mut follows = Follows::new(number);
        loop {
            let inserted = match lines.next()? {
                Line::Run(_) => return Err(lines.wrong("there is a second run")),
                Line::Step(step) => {
                    let step = step.step().map_err(|why| lines.wrong(&why))?;
                    step.job.check().map_err(|error| lines.wrong(&error.to_string()))?;
                    insert_step(&self.db, number, &step)
                }
                Line::Interval(line) => {
                    let line = *line;
                    follows.check(&self.db, &line).map_err(&fail)?.map_err(|why| lines.wrong(why))?;
                    let raw = |side: SideLine| side.raw();
                    let (read, write) = raw(line.read)
                        .and_then(|read| Ok((read, raw(line.write)?)))
                        .map_err(|why| lines.wrong(&why))?;
                    let (start, end, position) = (line.start, line.end, line.position);
                    let entry = Entry::Interval(RawInterval { start, end, position, read, write });
                    intervals.insert(&self.db, line.step, &entry)
                }
                Line::Sample(line) => {
                    let entry = Entry::Sample(crate::store::json(&line.sample).map_err(&fail)?);
                    samples.insert(&self.db, line.step, &entry)
                }
                Line::End { .. } => break,
            };
            inserted.map_err(|error| match error.sqlite_error_code() {
                Some(rusqlite::ErrorCode::ConstraintViolation) => lines.wrong("it is there twice, or out of order"),
                _ => fail(error),
            })?;
        }
        lines.at_end()?;
        if id != run.id
            && let Ok(namesake) = self.number(&run.id)
            && self.digest(namesake)? == self.digest(number)?
        {
            return Ok((run.id, false));
        }
        Ok((id, true))
    }
}

/// Whether the intervals of a step follow each other within its time, as those of an engine do: study counts the gaps
/// between them.
struct Follows {
    run: i64,
    /// The step whose intervals come now.
    step: Option<u32>,
    /// Where its last one ended, and where the last possible one does.
    until: Nanos,
    most: Nanos,
}

impl Follows {
    fn new(run: i64) -> Self {
        Follows { run, step: None, until: Nanos(0), most: Nanos(0) }
    }

    /// The outer failure is the database's.
    fn check(&mut self, db: &Connection, next: &IntervalLine) -> rusqlite::Result<Result<(), &'static str>> {
        if self.step != Some(next.step) {
            let sql = "SELECT elapsed_ns, job FROM step WHERE run = ? AND step = ?";
            let times = |row: &rusqlite::Row<'_>| Ok((nanos(row, 0)?, from_json::<Job>(row, 1)?.interval));
            let Some((elapsed, width)) = db.query_row(sql, (self.run, next.step), times).optional()? else {
                return Ok(Err("it is an interval of a step that is not there"));
            };
            // The last one may be cut a little later than its step.
            let most = Nanos(elapsed.0.saturating_add(width.0));
            *self = Follows { run: self.run, step: Some(next.step), until: Nanos(0), most };
        }
        if next.start < self.until {
            return Ok(Err("it is an interval that begins before the last one has ended"));
        }
        if next.end < next.start {
            return Ok(Err("it is an interval that ends before it begins"));
        }
        if next.end > self.most {
            return Ok(Err("it is an interval that ends after its step"));
        }
        self.until = next.end;
        Ok(Ok(()))
    }
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

type EachRow<'a> = &'a mut dyn FnMut(&rusqlite::Row<'_>) -> Result<(), RecordError>;

/// Calls `each` with the rows of a query until it fails. The outer failure is the database's, the inner one its own.
fn each_row(db: &Connection, sql: &str, number: i64, each: EachRow<'_>) -> rusqlite::Result<Result<(), RecordError>> {
    let mut statement = db.prepare(sql)?;
    let mut rows = statement.query([number])?;
    while let Some(row) = rows.next()? {
        if let Err(error) = each(row) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Reads a portable file line by line and counts.
struct Lines<R: Read> {
    reader: BufReader<io::Take<GzDecoder<R>>>,
    number: u64,
    text: Vec<u8>,
}

impl<R: Read> Lines<R> {
    fn new(from: R) -> Result<Self, RecordError> {
        let reader = BufReader::new(GzDecoder::new(from).take(LONGEST_RUN));
        let mut lines = Lines { reader, number: 0, text: Vec::new() };
        lines.read()?;
        match serde_json::from_slice(&lines.text) {
            Ok(Head { tiermark_run: FORMAT }) => Ok(lines),
            Ok(Head { tiermark_run: found }) if found > FORMAT => {
                Err(RecordError::NewerPortable { found, known: FORMAT })
            }
            _ => Err(lines.wrong("it does not begin with tiermark's mark")),
        }
    }

    /// Reads one line into `text`.
    fn read(&mut self) -> Result<(), RecordError> {
        self.number += 1;
        self.text.clear();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut self.text);
        match read {
            Ok(_) if self.text.ends_with(b"\n") => Ok(()),
            Ok(length) if length as u64 == LONGEST_LINE => Err(self.wrong("it is longer than any of ours")),
            Ok(_) => Err(self.wrong("the file ends before its end")),
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => {
                Err(self.wrong("it is not packed with gzip, or damaged"))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.wrong("the file ends before its end"))
            }
            Err(source) => Err(RecordError::Portable { action: "read", source }),
        }
    }

    fn next(&mut self) -> Result<Line, RecordError> {
        self.read()?;
        match serde_json::from_slice(&self.text) {
            Ok(Line::End { lines }) if lines != self.number - 2 => Err(self.wrong("lines are missing before it")),
            Ok(line) => Ok(line),
            Err(error) => Err(self.wrong(&error.to_string())),
        }
    }

    /// After the last line: reads to the end of the packed data, so that its checksum is looked at.
    fn at_end(&mut self) -> Result<(), RecordError> {
        let mut more = [0; 1];
        match self.reader.read(&mut more) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.wrong("there is more after the end")),
            Err(error) => Err(self.wrong(&format!("its checksum is wrong ({error})"))),
        }
    }

    fn wrong(&self, why: &str) -> RecordError {
        RecordError::NotPortable { why: format!("line {}: {why}", self.number) }
    }
}
