//! The tables, and how an older file's become today's. A schema that was ever released is never edited: a change is one
//! more entry of [`MIGRATIONS`], and `tests/fixtures` keeps a file of each version that must still open.

use rusqlite::{Connection, Transaction};

/// `PRAGMA application_id`: "TMRK". Tells tiermark's files from other programs'.
pub const APPLICATION_ID: i32 = 0x544D_524B;

/// The n-th entry turns version n into version n + 1; an empty file is version 0.
const MIGRATIONS: [&str; 5] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5];

/// Operations that are kept one by one, as a JSON array of `Each`.
const VERSION_2: &str = "ALTER TABLE step ADD COLUMN operations TEXT";

/// Figures that another program printed, as JSON of `quoted::Figures`; NULL in a run of ours.
const VERSION_3: &str = "ALTER TABLE run ADD COLUMN quoted TEXT";

/// What was seen of a process under pressure and of its swap, as JSON of `pressure::Load`; NULL for every other step.
const VERSION_4: &str = "ALTER TABLE step ADD COLUMN load TEXT";

/// Whether changes helped, as JSON of [`crate::Proof`]: which runs stand on which side.
const VERSION_5: &str = "CREATE TABLE proof (number INTEGER PRIMARY KEY, proof TEXT NOT NULL) STRICT";

/// The version that this program reads and writes.
pub const VERSION: i64 = MIGRATIONS.len() as i64;

/// Integers that count nanoseconds or bytes are unsigned 64-bit values kept in SQLite's signed ones; histograms are
/// HdrHistogram V2 deflate, NULL when empty; `plan`, `machine`, `job`, … are the JSON of the types of the same name.
const VERSION_1: &str = "
CREATE TABLE run (
    number      INTEGER PRIMARY KEY,  -- in the order in which they came into this file
    id          TEXT NOT NULL UNIQUE,
    state       TEXT NOT NULL,        -- JSON of State
    origin      TEXT NOT NULL,        -- JSON of Origin
    started_ns  INTEGER NOT NULL,     -- Unix time
    ended_ns    INTEGER,
    version     TEXT NOT NULL,
    command     TEXT NOT NULL,
    target      TEXT NOT NULL,
    method      TEXT NOT NULL,        -- out of the plan, for lists
    tiers       TEXT NOT NULL,        -- out of the plan, for lists: JSON array of names
    plan        TEXT NOT NULL,
    machine     TEXT NOT NULL,
    harness_ns_per_op REAL,
    notes       TEXT NOT NULL         -- JSON array of sentences
) STRICT;

-- One row while a run's process may still hold a spool: until it has ended and its spool is gone.
CREATE TABLE owner (
    run         INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    process     TEXT NOT NULL,        -- JSON of sys::process::Identity
    spool       TEXT                  -- path; written here before the file exists
) STRICT;

CREATE TABLE step (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    step        INTEGER NOT NULL,     -- from 0
    name        TEXT NOT NULL,
    tier        TEXT,
    target      TEXT NOT NULL,
    job         TEXT NOT NULL,
    state       TEXT NOT NULL,
    engine      TEXT,
    ended_by    TEXT NOT NULL,
    region_bytes INTEGER,
    filled      TEXT,                 -- JSON of Fill
    started_ns  INTEGER NOT NULL,     -- Unix time
    measured_from_ns INTEGER,         -- on the clock of the samples: where the intervals begin
    elapsed_ns  INTEGER NOT NULL,
    read_bytes  INTEGER NOT NULL,
    read_latency   BLOB,
    read_service   BLOB,
    read_untimed INTEGER NOT NULL,
    write_bytes INTEGER NOT NULL,
    write_latency  BLOB,
    write_service  BLOB,
    write_untimed INTEGER NOT NULL,
    cpu_user_ns    INTEGER,
    cpu_system_ns  INTEGER,
    observing   TEXT,
    predicted   TEXT,                 -- JSON of Predicted
    notes       TEXT NOT NULL,
    PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE interval (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    step        INTEGER NOT NULL,
    number      INTEGER NOT NULL,     -- from 0 in each step
    start_ns    INTEGER NOT NULL,     -- since the measurement began
    end_ns      INTEGER NOT NULL,
    position    INTEGER NOT NULL,
    read_bytes  INTEGER NOT NULL,
    read_latency   BLOB,
    read_service   BLOB,
    read_untimed INTEGER NOT NULL,
    write_bytes INTEGER NOT NULL,
    write_latency  BLOB,
    write_service  BLOB,
    write_untimed INTEGER NOT NULL,
    PRIMARY KEY (run, step, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE sample (
    run         INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    step        INTEGER NOT NULL,
    number      INTEGER NOT NULL,     -- from 0 in each step
    sample      TEXT NOT NULL,
    PRIMARY KEY (run, step, number)
) STRICT, WITHOUT ROWID;
";

/// What a file is, by its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing in it yet.
    Empty,
    /// Another program's.
    Foreign,
    /// Of this schema version, which may be newer than [`VERSION`].
    Ours(i64),
}

/// Reads what a file is. Also the first read of the file, so it finds out whether it is a database at all.
///
/// # Errors
/// Those of SQLite.
pub fn kind(db: &Connection) -> rusqlite::Result<Kind> {
    let application: i32 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, version, tables) {
        (APPLICATION_ID, version, _) => Kind::Ours(version),
        (0, 0, 0) => Kind::Empty,
        _ => Kind::Foreign,
    })
}

/// Brings a file from `from` to [`VERSION`] within `transaction`: all of it or nothing.
///
/// # Errors
/// Those of SQLite.
pub fn migrate(transaction: &Transaction<'_>, from: i64) -> rusqlite::Result<()> {
    apply(transaction, from, &MIGRATIONS)
}

fn apply(transaction: &Transaction<'_>, from: i64, migrations: &[&str]) -> rusqlite::Result<()> {
    for sql in migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(migrations.len()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrated(db: &mut Connection, from: i64, migrations: &[&str]) -> rusqlite::Result<()> {
        let transaction = db.transaction()?;
        apply(&transaction, from, migrations)?;
        transaction.commit()
    }

    /// Today's and one more.
    fn and(sql: &str) -> Vec<&str> {
        MIGRATIONS.into_iter().chain([sql]).collect()
    }

    #[test]
    fn a_later_version_starts_where_the_file_stands() {
        let mut db = Connection::open_in_memory().unwrap();
        migrated(&mut db, 0, &MIGRATIONS).unwrap();
        assert_eq!(kind(&db).unwrap(), Kind::Ours(VERSION));
        migrated(&mut db, VERSION, &and("ALTER TABLE run ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")).unwrap();
        assert_eq!(kind(&db).unwrap(), Kind::Ours(VERSION + 1));
        db.query_row("SELECT count(colour) FROM run", [], |row| row.get::<_, i64>(0)).unwrap();
    }

    #[test]
    fn a_migration_that_fails_leaves_the_file_as_it_was() {
        let mut db = Connection::open_in_memory().unwrap();
        migrated(&mut db, 0, &MIGRATIONS).unwrap();
        let broken = and("ALTER TABLE run ADD COLUMN colour TEXT; ALTER TABLE nowhere ADD COLUMN x");
        migrated(&mut db, VERSION, &broken).unwrap_err();
        assert_eq!(kind(&db).unwrap(), Kind::Ours(VERSION));
        db.query_row("SELECT colour FROM run", [], |row| row.get::<_, String>(0)).unwrap_err();
    }
}
