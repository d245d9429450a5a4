//! What was applied below a root, one JSON file each in a folder of tiermark's own there, until it is reverted: what every file said
//! before and after. While an application or its taking back is under way its state says so, and whoever comes next takes it back.

use super::content::{Content, draft_of, put, remove};
use super::merge;
use super::plan::{Edit, Live, Settings};
use crate::error::ChangeError;
use crate::journal::sync_dir;
use machine::Root;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where it lies below the root.
pub(super) const FOLDER: &str = "/var/lib/tiermark/applied";

/// Writing takes no longer, so who waits longer is told.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Files are being written.
    Applying,
    /// All are.
    Applied,
    /// They are being written back.
    Reverting,
}

/// What was applied together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its name: a number.
    pub id: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The boot in which it was applied, where it can be told.
    pub boot_id: Option<String>,
    pub(super) state: State,
    /// Which of those that ever had this name.
    pub(super) token: u64,
    /// What for.
    pub settings: Vec<Settings>,
    /// Files.
    pub edits: Vec<Edit>,
    /// Kernel settings that were set at once.
    pub live: Vec<Live>,
    /// Folders that were made for it.
    pub(super) folders: Vec<PathBuf>,
    /// Commands that had to follow.
    pub then: Vec<String>,
}

/// The ledger of a root.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    root: Root,
}

impl Ledger {
    pub fn at(root: &Root) -> Self {
        Ledger { root: root.clone() }
    }

    pub fn folder(&self) -> PathBuf {
        self.outside(Path::new(FOLDER))
    }

    fn outside(&self, path: &Path) -> PathBuf {
        self.root.outside(path)
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder().join(format!("{id}.json"))
    }

    /// All, the oldest first.
    pub fn all(&self) -> Result<Vec<Applied>, ChangeError> {
        let folder = self.folder();
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| ChangeError::Apply { action: "read", path, source }
        };
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fail(&folder)(error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(fail(&folder))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = fs::read_to_string(&path).map_err(fail(&path))?;
                let applied: Applied = serde_json::from_str(&text).map_err(|error| fail(&path)(error.into()))?;
                all.push(applied);
            }
        }
        all.sort_by_key(|applied| applied.id.parse::<u64>().unwrap_or(u64::MAX));
        Ok(all)
    }

    /// One of them; none where there is none.
    pub fn get(&self, id: &str) -> Result<Option<Applied>, ChangeError> {
        Ok(self.all()?.into_iter().find(|applied| applied.id == id))
    }

    /// Whether anything of this name is left, even a draft.
    pub fn knows(&self, id: &str) -> bool {
        self.file(id).exists() || draft_of(&self.file(id)).exists()
    }

    /// A name that none has.
    pub fn next(&self) -> Result<String, ChangeError> {
        let highest = self.all()?.iter().filter_map(|applied| applied.id.parse::<u64>().ok()).max().unwrap_or(0);
        Ok((highest + 1).to_string())
    }

    /// Makes the folder, for who writes first.
    pub fn prepare(&self, step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
        let folder = self.folder();
        fs::create_dir_all(&folder)
            .map_err(|source| ChangeError::in_dir("make the folder for what is applied", &folder, source))?;
        step("ledger made");
        Ok(())
    }

    /// Writes one down, durably.
    pub fn write(&self, applied: &Applied, step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
        let path = self.file(&applied.id);
        let fail = |source| ChangeError::Apply { action: "write", path: path.clone(), source };
        let text = serde_json::to_string_pretty(applied).map_err(|error| fail(error.into()))?;
        put(&path, &Content::new_file(text), step).map_err(fail)?;
        step("ledger written");
        Ok(())
    }

    /// What each file would say if all of it were taken back, the latest first, those left out that say it already.
    pub fn taken_back(&self, applied: &Applied) -> Result<Vec<(PathBuf, Content)>, ChangeError> {
        let (mut files, mut conflicts) = (Vec::new(), Vec::new());
        for edit in applied.edits.iter().rev() {
            let path = self.outside(&edit.path);
            let now = Content::read(&path).map_err(|source| ChangeError::Undo {
                action: "read",
                path: path.clone(),
                source,
            })?;
            match merge::taken_back(&edit.before, &edit.wanted, &now) {
                Some(content) if content == now => {}
                Some(content) => files.push((path, content)),
                None => conflicts.push(edit.path.display().to_string()),
            }
        }
        if conflicts.is_empty() {
            return Ok(files);
        }
        let (id, ledger) = (applied.id.clone(), self.file(&applied.id));
        Err(ChangeError::Conflict { id, paths: conflicts.join(", "), ledger })
    }

    /// Takes it back and forgets it.
    pub fn take_back(&self, applied: &Applied, step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
        let files = self.taken_back(applied)?;
        for edit in &applied.edits {
            let draft = draft_of(&self.outside(&edit.path));
            remove(&draft).map_err(|source| ChangeError::Undo { action: "remove", path: draft.clone(), source })?;
        }
        for (path, content) in files {
            put(&path, &content, step).map_err(|source| ChangeError::Undo { action: "write", path, source })?;
        }
        if self.root.is_live() && applied.boot_id == boot_id(&self.root) {
            for live in applied.live.iter().rev() {
                // What somebody set since, or what is gone with its device, is left.
                if crate::value::read(&live.path).is_ok_and(|now| crate::value::same(&now, &live.wanted)) {
                    let fail = |source| ChangeError::Undo { action: "write", path: live.path.clone(), source };
                    crate::value::write(&live.path, &live.before).map_err(fail)?;
                    step("setting set back");
                }
            }
        }
        self.forget(applied, step)
    }

    /// Removes what was kept for the way back, and the folders that are empty without it.
    fn forget(&self, applied: &Applied, step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
        for way_back in applied.edits.iter().filter_map(|edit| edit.way_back.as_deref()) {
            // Another application may have the same.
            let others = self.all()?;
            let wanted = |other: &Applied| {
                other.id != applied.id && other.edits.iter().any(|edit| edit.way_back.as_deref() == Some(way_back))
            };
            if !others.iter().any(wanted) {
                let path = self.outside(way_back);
                for path in [&draft_of(&path), &path] {
                    remove(path).map_err(|source| ChangeError::Undo {
                        action: "remove",
                        path: path.clone(),
                        source,
                    })?;
                }
                step("way back removed");
            }
        }
        self.drop_entry(&applied.id, &applied.folders, step)
    }

    /// Removes an entry, and folders where nothing is left in them.
    pub fn drop_entry(&self, id: &str, folders: &[PathBuf], step: &dyn Fn(&'static str)) -> Result<(), ChangeError> {
        let path = self.file(id);
        for path in [&draft_of(&path), &path] {
            remove(path).map_err(|source| ChangeError::Undo { action: "remove", path: path.clone(), source })?;
        }
        step("ledger entry removed");
        for folder in folders.iter().rev() {
            remove_empty(&self.outside(folder));
            step("folder removed");
        }
        Ok(())
    }
}

/// One process at a time for all below a root; freed when dropped, or when its process dies.
pub(super) fn lock(base: &Path) -> Result<File, ChangeError> {
    let fail = |source| ChangeError::Apply { action: "lock", path: base.to_owned(), source };
    let lock = File::open(base).map_err(fail)?;
    let until = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(20))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(ChangeError::Lacks {
                    what: format!("another tiermark is changing settings below {} just now", base.display()),
                    remedy: "wait until it has ended",
                });
            }
            Err(error) => return Err(fail(error.into())),
        }
    }
}

/// What is not empty stays.
fn remove_empty(folder: &Path) {
    if fs::remove_dir(folder).is_ok()
        && let Some(above) = folder.parent()
    {
        // Worth no more than the removal itself.
        let _ = sync_dir(above);
    }
}

/// The boot that the machine below the root is in.
pub(super) fn boot_id(root: &Root) -> Option<String> {
    root.text("/proc/sys/kernel/random/boot_id").into_option()
}
