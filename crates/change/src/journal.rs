//! The journal: one small JSON file for each change that stands, written and flushed before the change is made and
//! removed after it is undone. Whatever kills a process, the next start finds here what it must put back.

use crate::error::ChangeError;
use crate::kind::{Change, Present};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sys::process::{Identity, Life};

/// No entry is larger; a larger file is none of ours.
const LARGEST_ENTRY: u64 = 1 << 20;
/// How often recovery goes through the entries at most, when it has to end processes that have entries too.
const PASSES: usize = 4;

/// A folder of entries.
#[derive(Clone)]
pub struct Journal {
    dir: PathBuf,
    owner: Identity,
    watch: Arc<Watch>,
}

/// Told of each step of a change, right after it was done.
pub type Watch = dyn Fn(&'static str) + Send + Sync;

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("dir", &self.dir).field("owner", &self.owner).finish_non_exhaustive()
    }
}

/// What stands in an entry's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its name: the file is called `ID.json`.
    id: String,
    /// Above that of every change that stood when this one was made: what is made last is undone first. No clock, which
    /// may be set back or start again with the machine.
    #[serde(default)]
    number: u64,
    /// The run that made the change.
    run: String,
    /// What was changed: kind, target, before, wanted.
    change: Change,
    /// The process that made it: number, start time, PID namespace, boot.
    owner: Identity,
}

/// A change that stands; giving it back to the journal ends it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub change: Change,
    path: PathBuf,
}

/// What recovery did about one entry of a dead process, as a sentence ([`fmt::Display`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The run that had made the change.
    pub run: String,
    /// What had been changed.
    pub target: String,
    /// True when everything is as before.
    pub undone: bool,
    /// True when it is out of reach for now (not mounted, no rights) and waits for a later start.
    pub waits: bool,
    sentence: String,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl Journal {
    /// Opens the journal in `dir`, which is made when it is not there. By custom it is the folder `journal` beside the
    /// database.
    ///
    /// # Errors
    /// [`ChangeError::Journal`] when the folder cannot be made or written.
    pub fn open(dir: &Path) -> Result<Self, ChangeError> {
        Self::open_watched(dir, Arc::new(|_| {}))
    }

    /// As [`Journal::open`], and `watch` is told of each step of each change: for progress, and for tests that kill the
    /// process there.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn open_watched(dir: &Path, watch: Arc<Watch>) -> Result<Self, ChangeError> {
        let fail = |action, path: &Path, source| ChangeError::Journal { action, path: path.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(|e| fail("make the folder for", dir, e))?;
        let dir = std::fs::canonicalize(dir).map_err(|e| fail("find", dir, e))?;
        let owner = Identity::of_this_process().map_err(|e| fail("name this process in", &dir, e))?;
        Ok(Journal { dir, owner, watch })
    }

    /// Tells that a step was done.
    pub(crate) fn step(&self, what: &'static str) {
        (self.watch)(what);
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes an entry down, durably. Only then may the change be made.
    pub(crate) fn begin(&self, run: &str, id: String, change: Change) -> Result<Standing, ChangeError> {
        let path = self.dir.join(format!("{id}.json"));
        let fail = |source| ChangeError::Journal { action: "read", path: self.dir.clone(), source };
        // Held until the entry has its name, so that no two get the same number.
        let _lock = self.lock().map_err(fail)?;
        let standing = self.files("json").map_err(fail)?;
        let latest = standing.iter().filter_map(|path| read_entry(path).ok()).map(|entry| entry.number).max();
        let number = latest.map_or(0, |latest| latest.saturating_add(1));
        let entry = Entry { id, number, run: run.to_owned(), change, owner: self.owner.clone() };
        self.write(&entry, &path).map_err(|source| {
            let _ = std::fs::remove_file(&path);
            ChangeError::Journal { action: "write", path: path.clone(), source }
        })?;
        Ok(Standing { change: entry.change, path })
    }

    /// Writes down, durably, what has become known about a change since it was begun. A kill leaves the entry as it was or
    /// as it is to be; so does a failure, and then the change must be undone.
    pub(crate) fn rewrite(&self, standing: &mut Standing, change: Change) -> Result<(), ChangeError> {
        standing.change = change;
        let write = || {
            let entry = Entry { change: standing.change.clone(), ..read_entry(&standing.path)? };
            self.write(&entry, &standing.path)
        };
        write().map_err(|source| ChangeError::Journal { action: "write", path: standing.path.clone(), source })
    }

    /// Gives an entry its name only when all of it is on the disk.
    fn write(&self, entry: &Entry, path: &Path) -> io::Result<()> {
        let draft = self.dir.join(format!("{}.{}.{}.draft", entry.id, self.owner.pid, self.owner.start_ticks));
        let write = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file: File = rustix::fs::open(&draft, flags, Mode::RUSR | Mode::WUSR)?.into();
            self.step("journal entry begun");
            file.write_all(&serde_json::to_vec_pretty(entry)?)?;
            file.sync_all()?;
            self.step("journal entry drafted");
            std::fs::rename(&draft, path)?;
            self.step("journal entry named");
            sync_dir(&self.dir)?;
            self.step("journal entry durable");
            Ok(())
        };
        write().inspect_err(|_| {
            let _ = std::fs::remove_file(&draft);
        })
    }

    /// One process or thread at a time; freed when dropped, or when its process dies.
    fn lock(&self) -> io::Result<File> {
        let lock = File::open(&self.dir)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    }

    /// The journal's files whose names end so, by name.
    fn files(&self, extension: &str) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for found in std::fs::read_dir(&self.dir)? {
            let path = found?.path();
            if path.extension() == Some(OsStr::new(extension)) {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// Undoes a change that this process made and forgets it. What somebody else changed meanwhile is left, told as
    /// [`ChangeError::Meddled`], and forgotten too.
    pub(crate) fn end(&self, standing: &Standing) -> Result<(), ChangeError> {
        let reversible = standing.change.reversible();
        match reversible.present()? {
            Present::Wanted => {
                reversible.undo()?;
                self.step("change undone");
            }
            Present::Before | Present::Done => {}
            Present::Neither(how) => {
                self.retire(&standing.path)?;
                return Err(ChangeError::Meddled { target: reversible.target(), how });
            }
            Present::Away(why) => return Err(ChangeError::Away { target: reversible.target(), why }),
        }
        self.retire(&standing.path)
    }

    /// Forgets a change that was never made.
    pub(crate) fn forget(&self, standing: &Standing) -> Result<(), ChangeError> {
        self.retire(&standing.path)
    }

    fn retire(&self, path: &Path) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Journal { action: "remove an entry of", path: path.to_owned(), source };
        match std::fs::remove_file(path) {
            Ok(()) => {
                self.step("journal entry removed");
                sync_dir(&self.dir).map_err(fail)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(fail(error)),
        }
    }

    /// Undoes what dead processes left behind, the latest change first. What is neither as before nor as they wanted it is left alone; what cannot
    /// be looked at or undone now is kept for the next start. Changes of living processes are not touched.
    ///
    /// # Errors
    /// [`ChangeError::Journal`] when the folder cannot be read; what goes wrong with one entry is told in its sentence.
    pub fn recover(&self) -> Result<Vec<Recovered>, ChangeError> {
        let mut told: Vec<(PathBuf, Recovered)> = Vec::new();
        let mut passes = PASSES;
        'pass: loop {
            passes -= 1;
            for path in self.latest_first()? {
                let (recovered, ended) = self.recover_entry(&path)?;
                // What was out of reach in an earlier pass is told once, as it is now.
                told.retain(|(of, _)| *of != path);
                told.extend(recovered.map(|recovered| (path, recovered)));
                // A helper that had to be killed leaves entries of its own, which lie upon those that are still to come.
                if ended && passes > 0 {
                    continue 'pass;
                }
            }
            return Ok(told.into_iter().map(|(_, recovered)| recovered).collect());
        }
    }

    /// The entries' files, the latest change first: changes may lie upon one another. What cannot be read comes last.
    fn latest_first(&self) -> Result<Vec<PathBuf>, ChangeError> {
        let fail = |source| ChangeError::Journal { action: "read", path: self.dir.clone(), source };
        let _lock = self.lock().map_err(fail)?;
        self.files("draft").map_err(fail)?.iter().for_each(|path| self.drop_draft(path));
        let mut paths = self.files("json").map_err(fail)?;
        paths.sort_by_cached_key(|path| Reverse(read_entry(path).ok().map(|entry| entry.number)));
        Ok(paths)
    }

    /// An entry that its process was writing when it died: the change had not begun, or an earlier form of the entry stands.
    fn drop_draft(&self, path: &Path) {
        let mut parts = path.file_stem().and_then(OsStr::to_str).unwrap_or_default().split('.').skip(1);
        let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
        let (Some(pid), Some(start_ticks)) = (number(), number()) else { return };
        let owner = Identity { pid: u32::try_from(pid).unwrap_or(0), start_ticks, ..self.owner.clone() };
        if owner.life().is_ok_and(|life| life == Life::Gone) {
            // Tried again at the next start.
            let _ = std::fs::remove_file(path);
        }
    }

    /// What was done about one entry, and whether a process was ended for it.
    fn recover_entry(&self, path: &Path) -> Result<(Option<Recovered>, bool), ChangeError> {
        let fail = |source| ChangeError::Journal { action: "read", path: self.dir.clone(), source };
        // One at a time: whoever comes second must see what the first has done.
        let lock = self.lock().map_err(fail)?;
        let entry = match read_entry(path) {
            Ok(entry) => entry,
            // Undone by another process meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, false)),
            Err(error) => {
                let sentence = format!(
                    "the journal entry {} cannot be read ({error}), so what it stands for was left alone; look at it and \
                     delete it",
                    path.display()
                );
                let target = path.display().to_string();
                let recovered = Recovered { run: String::new(), target, undone: false, waits: false, sentence };
                return Ok((Some(recovered), false));
            }
        };
        match entry.owner.life() {
            Ok(Life::Gone) => {}
            Ok(Life::Alive | Life::Unknowable) | Err(_) => return Ok((None, false)),
        }
        let reversible = entry.change.reversible();
        let waits_for_a_process = reversible.waits_for_a_process();
        // That process may want to write an entry before it ends. Two that end it at once do no harm.
        let _lock = (!waits_for_a_process).then_some(lock);
        let target = reversible.target();
        let run = &entry.run;
        let result = self.undo(path, &entry);
        let waits = matches!(result, Ok(Present::Away(_)));
        let ended = waits_for_a_process && matches!(result, Ok(Present::Wanted));
        let (undone, sentence) = match result {
            Ok(Present::Before) => {
                (true, format!("{target} was as it had been before run {run}; nothing had to be undone"))
            }
            Ok(Present::Done) => (true, format!("{target} had all been written when tiermark was killed; they stand")),
            Ok(Present::Wanted) => (true, format!("{target} {}, left over from run {run}", reversible.undone())),
            Ok(Present::Neither(how)) => {
                (false, format!("{target} {how} since run {run} was killed; it was left as it is"))
            }
            Ok(Present::Away(why)) => (
                false,
                format!(
                    "{target}, left over from run {run}, {why}; it will be looked for again, or delete {} to forget it",
                    path.display()
                ),
            ),
            Err(error) => (false, format!("{target}, left over from run {run}: {error}")),
        };
        Ok((Some(Recovered { run: entry.run.clone(), target, undone, waits, sentence }), ended))
    }

    /// Undoes an entry, if that is for us to do, and retires it, if nothing is left to do.
    fn undo(&self, path: &Path, entry: &Entry) -> Result<Present, ChangeError> {
        let reversible = entry.change.reversible();
        let over = reversible.of_this_boot() && entry.owner.boot_id != self.owner.boot_id;
        let present = if over { Present::Before } else { reversible.present()? };
        match present {
            Present::Wanted => {
                reversible.undo()?;
                self.step("change undone");
            }
            Present::Before | Present::Done | Present::Neither(_) => {}
            Present::Away(_) => return Ok(present),
        }
        self.retire(path)?;
        Ok(present)
    }
}

fn read_entry(path: &Path) -> io::Result<Entry> {
    let file = File::open(path)?;
    if file.metadata()?.len() > LARGEST_ENTRY {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is far too large"));
    }
    Ok(serde_json::from_reader(io::BufReader::new(file))?)
}

/// 64 random bits, for a name that nobody else has: SipHash keyed by the kernel's random numbers, as the standard library
/// seeds it for every map.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Makes what happened in a directory (names made, removed, changed) durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_earlier_versions_are_read() {
        let text = include_str!("../tests/fixtures/journal-1.json");
        let entries: Vec<Entry> = serde_json::from_str(text).unwrap();
        // And today's are those, until a version is made that writes others: then a second fixture stands beside it.
        let json: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&entries).unwrap(), json);
        let mut kinds: Vec<&str> =
            json.as_array().unwrap().iter().map(|e| e["change"]["kind"].as_str().unwrap()).collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 9, "a kind is not in the fixture: {kinds:?}");
        assert!(entries.iter().all(|entry| !entry.change.reversible().target().is_empty()));
    }

    #[test]
    fn a_change_that_becomes_better_known_keeps_its_entry() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let text = include_str!("../tests/fixtures/journal-1.json");
        let [first, second] = [6, 7].map(|at| serde_json::from_str::<Vec<Entry>>(text).unwrap().swap_remove(at).change);
        let mut standing = journal.begin("r", "r-1".to_owned(), first).unwrap();
        let before = read_entry(&standing.path).unwrap();
        journal.rewrite(&mut standing, second.clone()).unwrap();
        assert_eq!(read_entry(&standing.path).unwrap(), Entry { change: second.clone(), ..before });
        assert_eq!((standing.change.clone(), journal.files("draft").unwrap().len()), (second, 0));
        journal.forget(&standing).unwrap();
    }
}
