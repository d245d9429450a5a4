//! Whether a change helped, as far as a store is concerned: which runs stand on which side of it, in which order. What they say is
//! derived by `study` from the runs.

use crate::error::RecordError;
use crate::model::RunId;
use crate::store::Store;
use basics::Nanos;
use serde::{Deserialize, Serialize};

/// The same work with a change and without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// When it began, Unix time.
    pub started: Nanos,
    /// The rules whose settings are on trial; none where they were typed.
    pub rules: Vec<String>,
    /// The number under which they are applied, where they are.
    pub applied: Option<String>,
    /// What differs, each a few words.
    pub differs: Vec<String>,
    /// The work, as it was typed.
    pub with: String,
    /// Whether both sides were measured within one boot, in pairs of a drawn order.
    pub interleaved: bool,
    /// What drew the order.
    pub seed: u64,
    /// In order.
    pub turns: Vec<Turn>,
}

/// One run of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its run.
    pub run: RunId,
    /// With the change.
    pub changed: bool,
    /// Which pair it is of, from 0; none of the first turn, which warms up and counts for nothing.
    pub pair: Option<u32>,
    /// The boot in which it was.
    pub boot: Option<String>,
}

impl Store {
    /// Keeps it: anew, or in the place of what was kept under this number. Its number.
    ///
    /// # Errors
    /// Those of the database.
    pub fn keep_proof(&mut self, number: Option<i64>, proof: &Proof) -> Result<i64, RecordError> {
        let text = crate::store::json(proof).map_err(self.fail())?;
        let sql = "INSERT INTO proof (number, proof) VALUES (?1, ?2) ON CONFLICT (number) DO UPDATE SET proof = ?2";
        self.db.execute(sql, (number, text)).map_err(self.fail())?;
        Ok(number.unwrap_or_else(|| self.db.last_insert_rowid()))
    }

    /// All, the newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub fn proofs(&self) -> Result<Vec<(i64, Proof)>, RecordError> {
        let mut statement =
            self.db.prepare("SELECT number, proof FROM proof ORDER BY number DESC").map_err(self.fail())?;
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, crate::store::from_json(row, 1)?))).map_err(self.fail())?;
        rows.collect::<Result<_, _>>().map_err(self.fail())
    }
}
