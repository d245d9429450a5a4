//! Settings that shall hold also after the next start: put into the files of the distribution's own places, on the machine that runs or
//! below the root of another, and taken back from there weeks later. What was applied stands in a ledger below the same root; while
//! it is being written the journal knows of it too, so that a kill at any moment leaves the files as they were.

mod bootable;
mod content;
mod layout;
mod ledger;
mod merge;
mod plan;
mod status;
mod text;

pub use content::Content;
pub use ledger::Applied;
pub use plan::{Edit, Live, Planned, Settings};
pub use status::{Held, Status, Took};
pub use text::with_parameter;

use crate::claim::Claim;
use crate::error::ChangeError;
use crate::journal::{Journal, Standing, random};
use crate::kind::{Change, Present, Reversible};
use ledger::{Ledger, State};
use machine::Root;
use plan::Planner;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The settings of the machine below a root.
#[derive(Debug, Clone)]
pub struct Lasting {
    base: PathBuf,
}

impl Lasting {
    /// Of the machine below this folder; `/` is the one that runs.
    pub fn at(base: &Path) -> Self {
        Lasting { base: base.to_owned() }
    }

    /// Links are looked up anew each time: files change here.
    fn root(&self) -> Root {
        Root::at(&self.base)
    }

    /// What would be done for these, and why some cannot be.
    pub fn plan(&self, all: &[Settings]) -> (Planned, Vec<(String, ChangeError)>) {
        let root = self.root();
        let mut planner = Planner::new(&root);
        let mut refused = Vec::new();
        for settings in all {
            if let Err(error) = planner.add(settings) {
                refused.push((settings.rule.clone(), error));
            }
        }
        (planner.done(), refused)
    }

    /// Does it: all of it, or nothing.
    ///
    /// # Errors
    /// [`ChangeError::Taken`] while another process has settings or swap of its own; what could not be written, after all that was has been
    /// taken back.
    pub fn apply(&self, journal: &Journal, planned: Planned) -> Result<Applied, ChangeError> {
        let root = self.root();
        let ledger = Ledger::at(&root);
        let step = |what| journal.step(what);
        // What stands in the kernel now is not to be what a run has put there for its time.
        let _claim = Claim::below(&self.base)?;
        let _lock = ledger::lock(&self.base)?;
        self.finish_open(&ledger, journal)?;
        let id = ledger.next()?;
        let token = random();
        let folders = folders(&root, &planned.edits, &ledger)?;
        let standing = self.begin(journal, &id, token, folders.clone())?;
        let applied = Applied {
            token,
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            boot_id: ledger::boot_id(&root),
            state: State::Applying,
            folders,
            settings: planned.settings,
            edits: planned.edits,
            live: planned.live,
            then: planned.then,
            id,
        };
        let apply = || -> Result<Applied, ChangeError> {
            ledger.prepare(&step)?;
            ledger.write(&applied, &step)?;
            write_all(&root, &applied, &step)?;
            let done = Applied { state: State::Applied, ..applied.clone() };
            ledger.write(&done, &step)?;
            Ok(done)
        };
        match apply() {
            Ok(done) => {
                journal.forget(&standing)?;
                Ok(done)
            }
            Err(error) => {
                journal.end(&standing)?;
                Err(error)
            }
        }
    }

    /// Takes one back.
    ///
    /// # Errors
    /// [`ChangeError::Conflict`] where somebody changed the same lines since: nothing is written then. [`ChangeError::NoSuch`].
    pub fn revert(&self, journal: &Journal, id: &str) -> Result<Applied, ChangeError> {
        let root = self.root();
        let ledger = Ledger::at(&root);
        let _claim = Claim::below(&self.base)?;
        let _lock = ledger::lock(&self.base)?;
        self.finish_open(&ledger, journal)?;
        let step = |what| journal.step(what);
        let Some(applied) = ledger.get(id)? else {
            let known: Vec<String> = ledger.all()?.into_iter().map(|applied| applied.id).collect();
            let known = if known.is_empty() { "nothing is applied".to_owned() } else { known.join(", ") };
            return Err(ChangeError::NoSuch { id: id.to_owned(), known });
        };
        // Nothing is written where not all of it can be.
        ledger.taken_back(&applied)?;
        let standing = self.begin(journal, id, applied.token, applied.folders.clone())?;
        ledger.write(&Applied { state: State::Reverting, ..applied.clone() }, &step)?;
        ledger.take_back(&applied, &step)?;
        journal.forget(&standing)?;
        Ok(applied)
    }

    /// All that is applied, the oldest first.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] when the ledger cannot be read.
    pub fn applied(&self) -> Result<Vec<Applied>, ChangeError> {
        Ledger::at(&self.root()).all()
    }

    /// The same with what became of each since.
    ///
    /// # Errors
    /// As [`Lasting::applied`].
    pub fn status(&self) -> Result<Vec<Status>, ChangeError> {
        let root = self.root();
        Ok(self.applied()?.into_iter().map(|applied| status::of(&root, applied)).collect())
    }

    /// Takes back what a process did not finish on a root that another journal knows of: an image that was carried here.
    /// Whoever holds the lock may finish it.
    fn finish_open(&self, ledger: &Ledger, journal: &Journal) -> Result<(), ChangeError> {
        for applied in ledger.all()?.iter().filter(|applied| applied.state != State::Applied) {
            ledger.take_back(applied, &|what| journal.step(what))?;
        }
        Ok(())
    }

    fn begin(&self, journal: &Journal, id: &str, token: u64, folders: Vec<PathBuf>) -> Result<Standing, ChangeError> {
        let fail = |source| ChangeError::Apply { action: "find", path: self.base.clone(), source };
        let root = fs::canonicalize(&self.base).map_err(fail)?;
        let device = fs::metadata(&root).map_err(fail)?.dev();
        let change = LastingChange { root, id: id.to_owned(), token, device, folders };
        journal.begin(id, format!("lasting-{id}-{token:016x}"), Change::Lasting(change))
    }
}

/// Folders that go when the last change that needs them goes, the outer ones first: those that are not there, and those that an
/// earlier one made.
fn folders(root: &Root, edits: &[Edit], ledger: &Ledger) -> Result<Vec<PathBuf>, ChangeError> {
    let made: BTreeSet<PathBuf> = ledger.all()?.into_iter().flat_map(|applied| applied.folders).collect();
    let files = edits.iter().filter(|edit| edit.wanted != Content::Absent).map(|edit| edit.path.as_path());
    let above = files.flat_map(|file| file.ancestors().skip(1)).chain(Path::new(ledger::FOLDER).ancestors());
    let ours = above.filter(|folder| made.contains(*folder) || !root.outside(folder).exists());
    let all: BTreeSet<PathBuf> = ours.map(Path::to_owned).collect();
    Ok(all.into_iter().collect())
}

fn write_all(root: &Root, applied: &Applied, step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
    let fail = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ChangeError::as_root(action, path, source)
    };
    for folder in applied.folders.iter().map(|folder| root.outside(folder)).filter(|folder| !folder.exists()) {
        fs::create_dir(&folder).map_err(fail("make the folder", &folder))?;
        step("folder made");
    }
    for edit in &applied.edits {
        if let Some(way_back) = &edit.way_back
            && !root.outside(way_back).exists()
        {
            content::put(&root.outside(way_back), &edit.before, step).map_err(fail("write", way_back))?;
            step("way back written");
        }
        content::put(&root.outside(&edit.path), &edit.wanted, step).map_err(fail("write", &edit.path))?;
        step("file written");
    }
    for live in &applied.live {
        crate::value::write(&live.path, &live.wanted).map_err(fail("write", &live.path))?;
        step("setting written");
    }
    Ok(())
}

/// Settings that are being written below a root: before, no entry of the ledger; wanted, one that is not finished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastingChange {
    root: PathBuf,
    id: String,
    /// Which of those that ever had this name.
    token: u64,
    /// Device number of the root: tells whether the same image is mounted there.
    device: u64,
    /// Folders that go with it.
    folders: Vec<PathBuf>,
}

impl LastingChange {
    fn ledger(&self) -> Ledger {
        Ledger::at(&Root::at(&self.root))
    }

    /// Whether one that was made for it is there and empty.
    fn has_folders(&self) -> bool {
        let root = Root::at(&self.root);
        let is_empty = |folder: PathBuf| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
        self.folders.iter().any(|folder| is_empty(root.outside(folder)))
    }
}

impl Reversible for LastingChange {
    fn target(&self) -> String {
        format!("the settings {} below {}", self.id, self.root.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let ledger = self.ledger();
        match ledger.get(&self.id)? {
            // Undone by whoever came first, and the name is another's now.
            Some(applied) if applied.token != self.token => Ok(Present::Before),
            Some(applied) if applied.state == State::Applied => Ok(Present::Done),
            Some(_) => Ok(Present::Wanted),
            None if ledger.knows(&self.id) => Ok(Present::Wanted),
            None => Ok(match fs::metadata(&self.root) {
                Ok(about) if about.dev() == self.device && self.has_folders() => Present::Wanted,
                Ok(about) if about.dev() == self.device => Present::Before,
                _ => Present::Away("is on a file system that is not mounted there now".to_owned()),
            }),
        }
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let ledger = self.ledger();
        match ledger.get(&self.id)? {
            Some(applied) if applied.token != self.token => Ok(()),
            Some(applied) => ledger.take_back(&applied, &|_| {}),
            None => ledger.drop_entry(&self.id, &self.folders, &|_| {}),
        }
    }

    fn undone(&self) -> &'static str {
        "are as they were before"
    }
}
