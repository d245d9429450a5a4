//! What every verb needs: where the data are, the opened store and journal with recovery done, and how to print.

use crate::cli::{Cli, When};
use crate::exit::{self, Missing};
use crate::out;
use anyhow::Result;
use change::{ChangeError, Journal};
use record::{RecordError, Store};
use report::terminal::Style;
use std::cell::Cell;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where things are and how to print them.
pub struct Context {
    /// The database; none is known without a home and without `--db`.
    db: Option<PathBuf>,
    /// It was named by the user.
    db_named: bool,
    /// JSON instead of text.
    pub json: bool,
    /// What the machine does is shown while it is measured.
    live: bool,
    /// For text.
    pub style: Style,
    /// As typed, for the record.
    pub command: String,
    /// What earlier runs left behind was looked at: once a process is enough.
    recovered: Cell<bool>,
}

/// Whether what waits to be undone, because it is out of reach now, is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tell {
    /// By what changes something itself.
    All,
    /// By what only looks: what was done, not what still waits.
    Done,
}

/// Widest that a table is drawn, and the width when the output is no terminal.
const WIDEST: usize = 100;

impl Context {
    /// From the command line and the environment.
    pub fn new(cli: &Cli) -> Self {
        // Who needs it is told that it is missing; many verbs store nothing.
        let db = cli.db.clone().or_else(|| record::default_path().ok());
        let terminal = std::io::stdout().is_terminal();
        let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let columns =
            if terminal { rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| size.ws_col) } else { Ok(0) };
        let width = match columns {
            Ok(columns @ 1..) => usize::from(columns).clamp(60, WIDEST),
            _ => WIDEST,
        };
        let words: Vec<String> = std::env::args_os().map(|word| redisd::hidden(&word.to_string_lossy())).collect();
        let command = words.join(" ");
        Context {
            db,
            db_named: cli.db.is_some(),
            json: cli.json,
            live: cli.live,
            style: Style { width, color, zone: jiff::tz::TimeZone::system(), ..Style::default() },
            command,
            recovered: Cell::new(false),
        }
    }

    /// When progress is shown, `asked` being what the verb was told.
    pub fn progress(&self, asked: When) -> When {
        if self.live { When::Live } else { asked }
    }

    /// The database.
    fn db(&self) -> Result<&Path> {
        Ok(self.db.as_deref().ok_or(RecordError::NoHome)?)
    }

    /// Whether anything was ever stored where runs are stored.
    pub fn has_database(&self) -> bool {
        self.db_named || self.db.as_deref().is_some_and(Path::exists)
    }

    /// Undoes what earlier runs left behind, then opens the store.
    pub fn open(&self) -> Result<(Store, Journal)> {
        self.open_telling(Tell::All)
    }

    fn open_telling(&self, tell: Tell) -> Result<(Store, Journal)> {
        let journal = Journal::open(&self.journal_folder()?)?;
        if !self.recovered.replace(true) {
            self.recover_journal(&journal, tell)?;
        }
        let mut store = Store::open(self.db()?)?;
        for run in store.recover()? {
            out::say(&format!("run {run} of an earlier process was interrupted; what it had measured is kept"));
        }
        Ok((store, journal))
    }

    /// Opens the store for verbs that only look; recovery is done where it can be. A database that was named must exist.
    pub fn open_for_reading(&self) -> Result<Store> {
        let db = self.db()?;
        if self.db_named && !db.exists() {
            return Err(Missing(format!("there is no database {}; --db names one that exists", db.display())).into());
        }
        match self.open_telling(Tell::Done) {
            Ok((store, _)) => Ok(store),
            // Who only looks needs neither the journal nor the right to write; what else is wrong shows in the reading.
            Err(error) if db.exists() => {
                let store = Store::open_for_reading(db)?;
                out::say(&format!("the database is only read: {}", exit::sentence(&error)));
                Ok(store)
            }
            // Nothing is to be undone or changed, so what is missing is the database, not the journal beside it.
            Err(error) if error.is::<ChangeError>() => Err(RecordError::NoDatabase { path: db.to_owned() }.into()),
            Err(error) => Err(error),
        }
    }

    /// For verbs that need no store: cleans up after dead runs if there is anything to clean.
    pub fn tidy(&self) {
        let known = self.journal_folder().is_ok_and(|folder| folder.exists());
        if (known || self.db.as_deref().is_some_and(Path::exists))
            && let Err(error) = self.open_telling(Tell::Done)
        {
            out::say(&exit::sentence(&error));
        }
    }

    fn recover_journal(&self, journal: &Journal, tell: Tell) -> Result<()> {
        for recovered in journal.recover()?.iter().filter(|recovered| tell == Tell::All || !recovered.waits) {
            out::say(&recovered.to_string());
        }
        Ok(())
    }

    /// The journal lies beside the default database even when `--db` names another, so that any later command finds
    /// what a killed one left; only without a home does it lie beside the named one.
    pub fn journal_folder(&self) -> Result<PathBuf> {
        let default = record::default_path().ok();
        let beside = match &default {
            Some(default) => default,
            None => self.db()?,
        };
        let folder = beside.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(folder.join("journal"))
    }

    /// Where a report of this name goes by default.
    pub fn report_path(&self, name: &str) -> Result<PathBuf> {
        let folder = self.db()?.parent().unwrap_or(Path::new(".")).join("reports");
        std::fs::create_dir_all(&folder)
            .map_err(|error| Missing(format!("{} cannot be made: {error}; give --out FILE", folder.display())))?;
        Ok(folder.join(name))
    }
}

const SIGNALS: [i32; 3] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP];

/// Set by SIGINT, SIGTERM or SIGHUP; a second one ends the process at once (the next start cleans up).
pub fn interrupted() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
    }
    register(flag)
}

/// The same for a process in the background, where nobody is impatient: told to end twice, as by the end of who started it
/// and by who cleans up after that, it still takes everything away itself.
pub fn told_to_end() -> Result<Arc<AtomicBool>> {
    register(Arc::new(AtomicBool::new(false)))
}

fn register(flag: Arc<AtomicBool>) -> Result<Arc<AtomicBool>> {
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
