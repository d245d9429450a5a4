//! A kernel setting: a file below `/proc/sys` or `/sys` that holds one value. It gets its old value back when its owner is
//! dropped, and by the next start after a kill. The kernel shows many values in another form than they are written in
//! (`Y` for 1, a choice in brackets among the others), so values are compared by what they mean.

use crate::claim::Claim;
use crate::error::ChangeError;
use crate::journal::{Journal, Standing, random};
use crate::kind::{Change, Present, Reversible};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

/// Before: the value that was there. Wanted: ours. All as the kernel shows them, or as they were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ValueChange {
    /// The file.
    target: PathBuf,
    before: String,
    wanted: String,
}

impl Reversible for ValueChange {
    fn target(&self) -> String {
        self.target.display().to_string()
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let now = match read(&self.target) {
            Ok(now) => now,
            // The device or the module that it was a setting of is gone, and the setting with it.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Present::Before);
            }
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error()) => {
                return Ok(Present::Before);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Present::Away("cannot be looked at with the rights of this user".to_owned()));
            }
            Err(source) => return Err(ChangeError::Undo { action: "look at", path: self.target.clone(), source }),
        };
        Ok(if same(&now, &self.before) {
            Present::Before
        } else if same(&now, &self.wanted) {
            Present::Wanted
        } else {
            Present::Neither(format!("was set to {now:?}"))
        })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Undo { action: "write", path: self.target.clone(), source };
        write(&self.target, &self.before).map_err(fail)?;
        let now = read(&self.target).map_err(fail)?;
        if same(&now, &self.before) {
            return Ok(());
        }
        let how = format!("the kernel made {now:?} of {:?}", self.before);
        Err(fail(io::Error::new(io::ErrorKind::InvalidData, how)))
    }

    fn undone(&self) -> &'static str {
        "was set back"
    }

    fn of_this_boot(&self) -> bool {
        true
    }
}

/// What a setting's file says, without the blanks around it; of a choice, the word in brackets.
///
/// # Errors
/// The kernel's.
pub fn read(path: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(path)?;
    Ok(chosen(&text).unwrap_or(text.trim()).to_owned())
}

/// The one word in brackets among others: `lzo-rle [lzo] lz4`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    let mut chosen = text.split_whitespace().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.next().filter(|_| chosen.next().is_none())
}

/// As `echo` does it: in one piece, and with the newline without which an empty value would not be written at all.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    File::options().write(true).truncate(true).open(path)?.write_all(format!("{value}\n").as_bytes())
}

/// Whether what the kernel says means what was written.
pub(crate) fn same(said: &str, written: &str) -> bool {
    let switch = |text: &str| match text {
        "1" | "y" | "Y" | "on" => Some(true),
        "0" | "n" | "N" | "off" => Some(false),
        _ => None,
    };
    let (said, written) = (said.trim(), written.trim());
    said.split_whitespace().eq(written.split_whitespace())
        || matches!((said.parse::<i64>(), written.parse::<i64>()), (Ok(said), Ok(written)) if said == written)
        || (matches!(said, "Y" | "N") && switch(said) == switch(written))
}

/// A setting that is set back when this is dropped.
#[derive(Debug)]
pub struct Value {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
    before: String,
    /// One that has this value already for a run is not to lose it in mid-run, either.
    _claim: Claim,
}

impl Value {
    /// Sets the file at `path`, a full path below `/proc/sys` or `/sys`, to `wanted` for `run`. Where it has that value
    /// already nothing is done, and nothing will be undone.
    ///
    /// # Errors
    /// [`ChangeError::Taken`] while another process has settings or swap of its own, [`ChangeError::NotASetting`] for another
    /// path, [`ChangeError::NotTaken`] when the kernel made something else of the value, [`ChangeError::Lacks`] without root,
    /// [`ChangeError::Apply`] with the kernel's reason, [`ChangeError::Journal`].
    pub fn set(journal: &Journal, run: &str, path: &Path, wanted: &str) -> Result<Self, ChangeError> {
        Self::set_below(Path::new("/"), journal, run, path, wanted)
    }

    /// As [`Value::set`], with `proc/sys` and `sys` below `root`.
    fn set_below(root: &Path, journal: &Journal, run: &str, path: &Path, wanted: &str) -> Result<Self, ChangeError> {
        let apply = |action| move |source: io::Error| ChangeError::as_root(action, path, source);
        let setting = ["proc/sys", "sys"].iter().any(|dir| path.starts_with(root.join(dir)));
        if !setting || path.components().any(|part| part == Component::ParentDir) {
            return Err(ChangeError::NotASetting { path: path.to_owned() });
        }
        let claim = Claim::below(root)?;
        let before = read(path).map_err(apply("read"))?;
        let mut value =
            Value { journal: journal.clone(), standing: None, path: path.to_owned(), before, _claim: claim };
        if same(&value.before, wanted) {
            return Ok(value);
        }
        let change =
            ValueChange { target: path.to_owned(), before: value.before.clone(), wanted: wanted.trim().to_owned() };
        let id = format!("{run}-value-{:016x}", random());
        // From here on a return drops it, and so undoes it.
        value.standing = Some(journal.begin(run, id, Change::Value(change.clone()))?);
        write(path, wanted.trim()).map_err(apply("write"))?;
        journal.step("value written");
        let said = read(path).map_err(apply("read"))?;
        if !same(&said, wanted) {
            // Neither before nor wanted, and yet our doing.
            change.undo()?;
            return Err(ChangeError::NotTaken { path: path.to_owned(), wanted: change.wanted, said });
        }
        Ok(value)
    }

    /// The setting.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it was before; of a choice, the word that was chosen.
    pub fn before(&self) -> &str {
        &self.before
    }

    /// Sets it back now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Meddled`] when somebody else set it meanwhile, which is left then; [`ChangeError::Undo`]: the next
    /// start tries again.
    pub fn restore(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for Value {
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

    /// A root with one setting in it.
    fn root(text: &str) -> (tempfile::TempDir, Journal, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/x")).unwrap();
        let path = dir.path().join("sys/x/setting");
        std::fs::write(&path, text).unwrap();
        (dir, journal, path)
    }

    fn entries(journal: &Journal) -> usize {
        std::fs::read_dir(journal.dir()).unwrap().count()
    }

    #[test]
    fn the_kernels_forms_mean_the_same() {
        for (said, written) in [("60", " 60\n"), ("Y", "1"), ("Y", "y"), ("N", "0"), ("N", "off"), ("0", "00")] {
            assert!(same(said, written), "{said} {written}");
        }
        assert!(same("4096\t87380\t6291456", "4096 87380 6291456"));
        for (said, written) in [("Y", "0"), ("1", "Y"), ("61", "60"), ("lzo", "lz4"), ("", "0"), ("on", "1")] {
            assert!(!same(said, written), "{said} {written}");
        }
        assert_eq!(chosen("lzo-rle [lzo] lz4 \n"), Some("lzo"));
        assert_eq!(chosen("|/bin/core [a] [b]"), None);
        assert_eq!(chosen("[none]"), Some("none"));
    }

    #[test]
    fn it_is_set_and_set_back() {
        let (dir, journal, path) = root("never [madvise] always\n");
        let value = Value::set_below(dir.path(), &journal, "r", &path, "always").unwrap();
        assert_eq!((value.before(), entries(&journal)), ("madvise", 1));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "always\n");
        let second = Value::set_below(dir.path(), &journal, "r", &path, "never").unwrap();
        assert_eq!(entries(&journal), 2, "one upon the other");
        drop(second);
        value.restore().unwrap();
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), entries(&journal)), ("madvise\n", 0));
        let same = Value::set_below(dir.path(), &journal, "r", &path, "madvise").unwrap();
        assert_eq!(entries(&journal), 0, "nothing to undo");
        drop(same);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "madvise\n");
    }

    #[test]
    fn what_somebody_else_set_is_left() {
        let (dir, journal, path) = root("60");
        let value = Value::set_below(dir.path(), &journal, "r", &path, "100").unwrap();
        std::fs::write(&path, "80\n").unwrap();
        let error = value.restore().unwrap_err().to_string();
        assert!(error.contains("was set to \"80\" meanwhile"), "{error}");
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), entries(&journal)), ("80\n", 0));
        let change = |target: PathBuf| ValueChange { target, before: "60".into(), wanted: "100".into() };
        assert_eq!(change(path.clone()).present().unwrap(), Present::Neither("was set to \"80\"".into()));
        std::fs::write(&path, "60\n").unwrap();
        assert_eq!(change(path.clone()).present().unwrap(), Present::Before);
        std::fs::write(&path, "100").unwrap();
        assert_eq!(change(path.clone()).present().unwrap(), Present::Wanted);
        assert_eq!(change(path.join("gone")).present().unwrap(), Present::Before);
    }

    #[test]
    fn an_entry_of_an_earlier_boot_is_forgotten() {
        let (dir, journal, path) = root("60");
        std::mem::forget(Value::set_below(dir.path(), &journal, "r", &path, "100").unwrap());
        let entry = std::fs::read_dir(journal.dir()).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(&entry).unwrap();
        std::fs::write(entry, text.replace("\"boot_id\": \"", "\"boot_id\": \"x")).unwrap();
        let [told] = journal.recover().unwrap().try_into().unwrap();
        assert!(told.undone && told.to_string().contains("nothing had to be undone"), "{told}");
        assert_eq!((std::fs::read_to_string(&path).unwrap().as_str(), entries(&journal)), ("100\n", 0));
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        let (dir, journal, path) = root("60");
        for wrong in ["/etc/passwd", "/sys/../etc/passwd", "sys/x", "/system/x"] {
            let error = Value::set(&journal, "r", Path::new(wrong), "1").unwrap_err();
            assert!(matches!(error, ChangeError::NotASetting { .. }), "{error}");
        }
        let missing = Value::set_below(dir.path(), &journal, "r", &path.with_file_name("missing"), "1").unwrap_err();
        assert!(missing.to_string().contains("cannot read"), "{missing}");
        assert_eq!(entries(&journal), 0);
    }
}
