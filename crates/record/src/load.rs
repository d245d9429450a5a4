//! A run read out of the database, with everything in it.

use crate::blob::{RawInterval, RawSide};
use crate::error::RecordError;
use crate::model::{Record, Run, RunId, StepRecord};
use crate::store::{Store, from_json, maybe_json, maybe_nanos, nanos};
use basics::latency::CorruptHistogram;
use basics::{Bytes, Interval, Side};
use observe::Sample;
use rusqlite::Row;

/// Intervals, and samples, of a run that are held in memory at most, and two more for each step: 100 ms each, more than
/// three minutes go whole.
pub const LONGEST_SERIES: usize = 2000;

impl Store {
    /// A run with its steps and series. A series of more than [`LONGEST_SERIES`] intervals is thinned: neighbours of a
    /// step are joined while they are read, so that a run of hours can be looked at on the board that was measured
    /// (some 10 KB for each interval). An export holds them all.
    ///
    /// # Errors
    /// [`RecordError::NoSuchRun`]; those of the database.
    pub fn load(&self, run: &RunId) -> Result<Record, RecordError> {
        let number = self.number(run)?;
        Ok(Record {
            run: self.head(number)?,
            steps: self.steps(number)?,
            intervals: self.intervals(number)?,
            samples: self.samples(number)?,
        })
    }

    /// How many neighbours become one, so that no more than the longest series is left.
    fn thinning(&self, number: i64, sql: &str) -> Result<usize, RecordError> {
        let rows: i64 = self.db.query_row(sql, [number], |row| row.get(0)).map_err(self.fail())?;
        Ok((rows as usize).div_ceil(LONGEST_SERIES).max(1))
    }

    fn intervals(&self, number: i64) -> Result<Vec<(u32, Interval)>, RecordError> {
        let together = self.thinning(number, "SELECT count(*) FROM interval WHERE run = ?")?;
        let mut joined: Vec<(u32, Interval)> = Vec::new();
        let mut parts = 0;
        self.rows(number, "interval", &mut |row| {
            let (step, next): (u32, Interval) = (row.get(1)?, interval(row)?);
            match joined.last_mut() {
                Some((last, interval)) if *last == step && parts < together => {
                    interval.join(&next);
                    parts += 1;
                }
                _ => {
                    joined.push((step, next));
                    parts = 1;
                }
            }
            Ok(())
        })?;
        Ok(joined)
    }

    fn samples(&self, number: i64) -> Result<Vec<(u32, Sample)>, RecordError> {
        let together = self.thinning(number, "SELECT count(*) FROM sample WHERE run = ?")?;
        let mut kept: Vec<(u32, Sample)> = Vec::new();
        // The last that was read and left out, until it is known whether its step goes on.
        let mut pending: Option<(u32, Sample)> = None;
        let mut since = 0;
        self.rows(number, "sample", &mut |row| {
            let next: (u32, Sample) = (row.get(1)?, sample(row)?);
            let new_step = kept.last().is_none_or(|(step, _)| *step != next.0);
            if new_step {
                kept.extend(pending.take());
            }
            // Counters go on from one to the next, so those in between can be left out; what a step did is its last less
            // its first, so these stay.
            since = if new_step { 0 } else { since + 1 };
            if since % together == 0 {
                pending = None;
                kept.push(next);
            } else {
                pending = Some(next);
            }
            Ok(())
        })?;
        kept.extend(pending);
        Ok(kept)
    }

    pub(crate) fn head(&self, number: i64) -> Result<Run, RecordError> {
        let sql = "SELECT id, state, origin, started_ns, ended_ns, version, command, target, plan, machine,
                          harness_ns_per_op, notes, quoted FROM run WHERE number = ?";
        let run = |row: &Row<'_>| {
            Ok(Run {
                id: row.get(0)?,
                state: from_json(row, 1)?,
                origin: from_json(row, 2)?,
                started: nanos(row, 3)?,
                ended: maybe_nanos(row, 4)?,
                version: row.get(5)?,
                command: row.get(6)?,
                target: row.get(7)?,
                plan: from_json(row, 8)?,
                machine: from_json(row, 9)?,
                harness_ns_per_op: row.get(10)?,
                notes: from_json(row, 11)?,
                quoted: maybe_json(row, 12)?,
            })
        };
        self.db.query_row(sql, [number], run).map_err(self.fail())
    }

    pub(crate) fn steps(&self, number: i64) -> Result<Vec<StepRecord>, RecordError> {
        self.rows(number, "step", &mut step)
    }

    /// What `each` makes of the rows of one run in `table`, in order.
    fn rows<T>(
        &self,
        number: i64,
        table: &str,
        each: &mut dyn FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, RecordError> {
        // The tables are WITHOUT ROWID: their primary key is the order in which they are stored.
        let sql = match table {
            "step" => "SELECT * FROM step WHERE run = ? ORDER BY step",
            "interval" => "SELECT * FROM interval WHERE run = ? ORDER BY step, number",
            _ => "SELECT * FROM sample WHERE run = ? ORDER BY step, number",
        };
        let mut statement = self.db.prepare(sql).map_err(self.fail())?;
        let rows = statement.query_map([number], each).map_err(self.fail())?;
        rows.collect::<Result<_, _>>().map_err(self.fail())
    }
}

fn step(row: &Row<'_>) -> rusqlite::Result<StepRecord> {
    Ok(StepRecord {
        index: row.get(1)?,
        name: row.get(2)?,
        tier: row.get(3)?,
        target: row.get(4)?,
        job: from_json(row, 5)?,
        state: from_json(row, 6)?,
        engine: maybe_json(row, 7)?,
        ended_by: row.get(8)?,
        region: row.get::<_, Option<i64>>(9)?.map(|bytes| Bytes(bytes as u64)),
        filled: maybe_json(row, 10)?,
        started: nanos(row, 11)?,
        measured_from: maybe_nanos(row, 12)?,
        elapsed: nanos(row, 13)?,
        read: side(row, 14)?,
        write: side(row, 18)?,
        cpu_user: maybe_nanos(row, 22)?,
        cpu_system: maybe_nanos(row, 23)?,
        observing: maybe_json(row, 24)?,
        predicted: maybe_json(row, 25)?,
        notes: from_json(row, 26)?,
        each: maybe_json(row, 27)?.unwrap_or_default(),
        load: maybe_json(row, 28)?,
    })
}

fn interval(row: &Row<'_>) -> rusqlite::Result<Interval> {
    raw_interval(row)?.interval().map_err(corrupt(7))
}

/// An interval with its histograms as stored.
pub(crate) fn raw_interval(row: &Row<'_>) -> rusqlite::Result<RawInterval> {
    Ok(RawInterval {
        start: nanos(row, 3)?,
        end: nanos(row, 4)?,
        position: row.get::<_, i64>(5)? as u64,
        read: raw_side(row, 6)?,
        write: raw_side(row, 10)?,
    })
}

fn sample(row: &Row<'_>) -> rusqlite::Result<Sample> {
    from_json(row, 3)
}

/// Four columns: bytes, latency, service, untimed.
fn raw_side(row: &Row<'_>, column: usize) -> rusqlite::Result<RawSide> {
    Ok(RawSide {
        bytes: row.get::<_, i64>(column)? as u64,
        latency: row.get(column + 1)?,
        service: row.get(column + 2)?,
        untimed: row.get::<_, i64>(column + 3)? as u64,
    })
}

fn side(row: &Row<'_>, column: usize) -> rusqlite::Result<Side> {
    raw_side(row, column)?.side().map_err(corrupt(column))
}

fn corrupt(column: usize) -> impl Fn(CorruptHistogram) -> rusqlite::Error {
    move |e| rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, Box::new(e))
}
