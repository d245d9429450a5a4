//! A process of our own that must be gone afterwards, such as an emulator or a server. It is asked to end, and killed when
//! it does not, when its owner is dropped and by the next start after a kill. What it made itself it undoes itself, or
//! leaves to the journal.

use crate::error::ChangeError;
use crate::journal::{Journal, Standing};
use crate::kind::{Change, Present, Reversible};
use crate::swap_area;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::process::{Identity, Life};

/// How long it may take to end by itself: an emulated disk writes back what it holds.
const ASKED: Duration = Duration::from_secs(15);
/// How long the kernel may take to end it.
const KILLED: Duration = Duration::from_secs(2);

/// Before: no such process. Wanted: this one, which no other is taken for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HelperChange {
    /// What it is, for people.
    what: String,
    process: Identity,
    /// The block device that it serves: while swap is on it, all that lies there would go with the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serves: Option<PathBuf>,
}

impl HelperChange {
    /// Asks it to end and waits, then kills it.
    fn finish(&self, asked: Duration) -> io::Result<()> {
        for (signal, patience) in [(Signal::TERM, asked), (Signal::KILL, KILLED)] {
            if !self.process.signal(signal)? || self.gone_within(patience)? {
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "it does not end, even killed: it waits in the kernel, for a device perhaps",
        ))
    }

    fn gone_within(&self, patience: Duration) -> io::Result<bool> {
        let began = Instant::now();
        while self.process.life()? != Life::Gone {
            if began.elapsed() >= patience {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }

    fn proc(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.process.pid))
    }
}

impl Reversible for HelperChange {
    fn target(&self) -> String {
        format!("process {} ({})", self.process.pid, self.what)
    }

    fn present(&self) -> Result<Present, ChangeError> {
        match self.process.life() {
            Ok(Life::Gone) => Ok(Present::Before),
            Ok(Life::Alive) => Ok(match self.serves.as_deref().filter(|device| swap_area::is_on(device)) {
                Some(device) => Present::Away(format!("serves {}, on which swap is on", device.display())),
                None => Present::Wanted,
            }),
            Ok(Life::Unknowable) => {
                Ok(Present::Away("belongs to another PID namespace or may not be looked at by this user".to_owned()))
            }
            Err(source) => Err(ChangeError::Undo { action: "look at", path: self.proc(), source }),
        }
    }

    fn undo(&self) -> Result<(), ChangeError> {
        self.finish(ASKED).map_err(|source| ChangeError::Undo { action: "end the process", path: self.proc(), source })
    }

    fn undone(&self) -> &'static str {
        "was ended"
    }

    fn of_this_boot(&self) -> bool {
        true
    }

    fn waits_for_a_process(&self) -> bool {
        true
    }
}

/// A process that is ended when this is dropped. Whoever started it still has to wait for it (`Child::wait`).
#[derive(Debug)]
pub struct Helper {
    journal: Journal,
    standing: Option<Standing>,
}

impl Helper {
    /// Takes the process `child_pid`, just started by this one for `run`, into the journal; `what` says what it is, for people.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] when there is no such process, [`ChangeError::Journal`]; it goes on running then.
    pub fn of(journal: &Journal, run: &str, child_pid: u32, what: &str) -> Result<Self, ChangeError> {
        let process = Identity::of(child_pid).map_err(|source| ChangeError::Apply {
            action: "look at the process",
            path: PathBuf::from(format!("/proc/{child_pid}")),
            source,
        })?;
        let id = format!("{run}-helper-{child_pid}-{}", process.start_ticks);
        let change = HelperChange { what: what.to_owned(), process, serves: None };
        let standing = journal.begin(run, id, Change::Helper(change))?;
        Ok(Helper { journal: journal.clone(), standing: Some(standing) })
    }

    /// Notes which block device it serves: it is not ended while swap is on that.
    ///
    /// # Errors
    /// [`ChangeError::Journal`].
    pub fn serves(&mut self, device: &Path) -> Result<(), ChangeError> {
        let Some(standing) = &mut self.standing else { return Ok(()) };
        let Change::Helper(change) = &standing.change else { return Ok(()) };
        let change = HelperChange { serves: Some(device.to_owned()), ..change.clone() };
        self.journal.rewrite(standing, Change::Helper(change))
    }

    /// Ends it now, with up to 15 s for its own clearing up, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Undo`] when even a kill does not end it; the next start tries again.
    pub fn end(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let Some(standing) = self.standing.take()
            && let Err(error) = self.journal.end(&standing)
        {
            tracing::warn!("{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Waits for the first byte that it says.
    fn ready(child: &mut Child) {
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
    }

    #[test]
    fn it_ends_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let start = || Command::new("sleep").arg("60").spawn().unwrap();
        let (mut one, mut two) = (start(), start());
        let helper = Helper::of(&journal, "r", one.id(), "a sleeper").unwrap();
        drop(Helper::of(&journal, "r", two.id(), "a sleeper").unwrap());
        assert_eq!(two.wait().unwrap().signal(), Some(15));
        assert_eq!(journal.recover().unwrap(), [], "its owner lives");
        helper.end().unwrap();
        assert_eq!(one.wait().unwrap().signal(), Some(15));
        assert!(Helper::of(&journal, "r", one.id(), "a sleeper").unwrap_err().to_string().contains("cannot look at"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn one_that_does_not_listen_is_killed() {
        let mut deaf = shell("trap '' TERM; echo; while :; do sleep 1; done");
        ready(&mut deaf);
        let change = HelperChange { what: "deaf".into(), process: Identity::of(deaf.id()).unwrap(), serves: None };
        assert_eq!(change.present().unwrap(), Present::Wanted);
        change.finish(Duration::from_millis(50)).unwrap();
        assert_eq!(deaf.wait().unwrap().signal(), Some(9));
        assert_eq!(change.present().unwrap(), Present::Before);
        change.undo().unwrap();
    }

    /// Makes all entries of the journal look as if their process had died.
    fn orphan(journal: &Journal) {
        for entry in std::fs::read_dir(journal.dir()).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let owner = text.rfind("\"start_ticks\": ").unwrap() + "\"start_ticks\": ".len();
            std::fs::write(&path, [&text[..owner], "9", &text[owner..]].concat()).unwrap();
        }
    }

    #[test]
    fn one_that_waits_for_the_journal_is_let_in() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let mark = dir.path().join("in its own time");
        let on_term = format!("flock {} touch '{}'; exit", journal.dir().display(), mark.display());
        let mut child = shell(&format!("trap \"{on_term}\" TERM; echo; while :; do sleep 0.05; done"));
        ready(&mut child);
        std::mem::forget(Helper::of(&journal, "r", child.id(), "an emulator").unwrap());
        orphan(&journal);
        let [told] = journal.recover().unwrap().try_into().unwrap();
        let sentence = format!("process {} (an emulator) was ended, left over from run r", child.id());
        assert_eq!((told.to_string(), told.undone), (sentence, true));
        assert!(mark.exists() && child.wait().unwrap().success(), "it was killed, not ended");
    }

    #[test]
    fn what_a_killed_helper_leaves_is_undone_too() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        std::mem::forget(Helper::of(&journal, "r", child.id(), "an emulator").unwrap());
        let file = crate::TestFile::create(&journal, "r", dir.path(), basics::Bytes(1)).unwrap();
        let left = file.path().to_owned();
        std::mem::forget(file);
        orphan(&journal);
        // The file is the helper's, which lives for now.
        for entry in std::fs::read_dir(journal.dir()).unwrap() {
            let path = entry.unwrap().path();
            let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            if json["change"]["kind"] == "test-file" {
                json["owner"] = serde_json::to_value(Identity::of(child.id()).unwrap()).unwrap();
                std::fs::write(&path, json.to_string()).unwrap();
            }
        }
        let told = journal.recover().unwrap();
        assert!(told.len() == 2 && told.iter().all(|told| told.undone), "{told:?}");
        assert!(!left.exists() && child.wait().unwrap().signal() == Some(15));
        assert_eq!(std::fs::read_dir(journal.dir()).unwrap().count(), 0);
    }
}
