//! A folder of tiermark's own for what another program keeps while it runs, such as a model runner's copy of a model: made under
//! a name that nobody else uses, removed with all that is in it on every way out and by the next start after a kill.

use crate::error::ChangeError;
use crate::journal::{Journal, Standing, random, sync_dir};
use crate::kind::{Change, Present, Reversible};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Before: nothing of that name. Wanted: a directory of this user. Its name holds 64 random bits, drawn for this entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderChange {
    /// Full path, without symbolic links.
    target: PathBuf,
    /// Who made it.
    uid: u32,
    /// Device number of the directory that it is in: tells whether the same file system is mounted there. None in entries of older
    /// versions.
    #[serde(default)]
    device: Option<u64>,
}

impl FolderChange {
    fn trouble(&self, action: &'static str) -> impl Fn(io::Error) -> ChangeError {
        let path = self.target.clone();
        move |source| ChangeError::Undo { action, path: path.clone(), source }
    }
}

impl Reversible for FolderChange {
    fn target(&self) -> String {
        self.target.display().to_string()
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let about = match std::fs::symlink_metadata(&self.target) {
            Ok(about) => about,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let above = self.target.parent().and_then(|above| std::fs::metadata(above).ok());
                return Ok(match (above, self.device) {
                    (_, None) => Present::Before,
                    (Some(above), Some(device)) if above.dev() == device => Present::Before,
                    _ => Present::Away("is on a file system that is not mounted there now".to_owned()),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Present::Away("cannot be looked at with the rights of this user".to_owned()));
            }
            Err(source) => return Err(self.trouble("look at")(source)),
        };
        Ok(if !about.is_dir() {
            Present::Neither("became something other than a folder".to_owned())
        } else if about.uid() != self.uid {
            Present::Neither("came to belong to another user".to_owned())
        } else {
            Present::Wanted
        })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = self.trouble("remove");
        match std::fs::remove_dir_all(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        self.target.parent().map_or(Ok(()), sync_dir).map_err(fail)
    }

    fn undone(&self) -> &'static str {
        "was removed with what was in it"
    }
}

/// A folder that is removed, with all that is in it, when this is dropped.
#[derive(Debug)]
pub struct Folder {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
}

impl Folder {
    /// Makes one in `dir` for `run`, for this user alone.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] when it cannot be made, [`ChangeError::Journal`].
    pub fn make(journal: &Journal, run: &str, dir: &Path) -> Result<Self, ChangeError> {
        let fail = |source| ChangeError::Apply { action: "make a folder in", path: dir.to_owned(), source };
        let dir = std::fs::canonicalize(dir).map_err(fail)?;
        let number = random();
        let path = dir.join(format!("tiermark-{run}-{number:016x}"));
        let device = Some(std::fs::metadata(&dir).map_err(fail)?.dev());
        let change = FolderChange { target: path.clone(), uid: rustix::process::geteuid().as_raw(), device };
        let standing = journal.begin(run, format!("{run}-folder-{number:016x}"), Change::Folder(change))?;
        let folder = Folder { journal: journal.clone(), standing: Some(standing), path };
        std::fs::DirBuilder::new().mode(0o700).create(&folder.path).map_err(fail)?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Undo`]; the next start tries again.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for Folder {
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

    #[test]
    fn it_goes_with_what_is_in_it_and_after_a_kill_too() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let folder = Folder::make(&journal, "r", dir.path()).unwrap();
        let path = folder.path().to_owned();
        std::fs::write(path.join("blob"), "x").unwrap();
        folder.remove().unwrap();
        assert!(!path.exists());
        assert!(Folder::make(&journal, "r", &dir.path().join("none")).is_err());

        // What stands there under that name, and is no folder, is somebody else's.
        let folder = Folder::make(&journal, "r", dir.path()).unwrap();
        let device = Some(std::fs::metadata(folder.path()).unwrap().dev());
        let uid = rustix::process::geteuid().as_raw();
        let change = FolderChange { target: folder.path().to_owned(), uid, device };
        assert_eq!(change.present().unwrap(), Present::Wanted);
        std::fs::remove_dir(folder.path()).unwrap();
        assert_eq!(change.present().unwrap(), Present::Before);
        std::fs::write(folder.path(), "mine").unwrap();
        assert!(matches!(change.present().unwrap(), Present::Neither(_)));
        let path = folder.path().to_owned();
        drop(folder);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    }
}
