//! The folder of an emulated disk (its socket, what it tells of itself, a mount point) and the FUSE file system that is
//! mounted there or elsewhere. The file system's own server mounts it; this only makes sure that it goes, with its folder,
//! when its owner is dropped, and by the next start after a kill.

use crate::error::ChangeError;
use crate::guard;
use crate::journal::{Journal, Standing};
use crate::kind::{Change, Present, Reversible};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The mount point inside the folder.
const INSIDE: &str = "mnt";
/// Longest that unmounting may take: a loop device over it may still be on its way out.
const SETTLE: Duration = Duration::from_secs(2);

/// Before: neither folder nor mount. Wanted: a folder of a name that holds 64 random bits, and a file system of that
/// source, which is ours alone, at the mount point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MountChange {
    /// The folder.
    target: PathBuf,
    /// Where the file system is mounted.
    at: PathBuf,
    /// The mount's source, as the kernel's table shows it.
    source: String,
    /// Files that may stand in the folder.
    files: Vec<String>,
}

impl MountChange {
    /// The number of the FUSE connection, when the file system is mounted: the minor of its device.
    fn connection(&self) -> Result<Option<u64>, ChangeError> {
        let fail = |source| ChangeError::Undo { action: "look for the mount of", path: self.at.clone(), source };
        let table = std::fs::read_to_string("/proc/self/mountinfo").map_err(fail)?;
        Ok(find(&table, &self.source))
    }

    /// Who uses a loop device over its file, and the way out.
    fn user(&self) -> Option<String> {
        let over = |name: &OsStr| {
            let file = Path::new("/sys/block").join(name).join("loop/backing_file");
            std::fs::read_to_string(file).is_ok_and(|backing| Path::new(backing.trim_end()).starts_with(&self.at))
        };
        let devices = std::fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.file_name());
        devices.filter(|name| over(name)).find_map(|name| {
            let device = Path::new("/dev").join(name);
            let (user, remedy) = guard::user_of(Path::new("/"), &device).ok()??;
            Some(format!("{} on it is in use: {user}; {remedy}", device.display()))
        })
    }

    fn unmount(&self) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match rustix::mount::unmount(&self.at, UnmountFlags::NOFOLLOW) {
                Ok(()) | Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
                Err(Errno::BUSY) if began.elapsed() < SETTLE => std::thread::sleep(Duration::from_millis(10)),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn clear(&self) -> io::Result<()> {
        let gone = |result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        for file in &self.files {
            gone(std::fs::remove_file(self.target.join(file)))?;
        }
        gone(std::fs::remove_dir(self.target.join(INSIDE)))?;
        gone(std::fs::remove_dir(&self.target))
    }
}

/// The minor number of the FUSE file system of this source in a mount table (proc(5), mountinfo).
fn find(table: &str, source: &str) -> Option<u64> {
    table.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = file_system.split(' ');
        let ours = words.next()?.starts_with("fuse") && words.next()? == source;
        let number = mount.split(' ').nth(2)?;
        if ours { number.split_once(':')?.1.parse().ok() } else { None }
    })
}

impl Reversible for MountChange {
    fn target(&self) -> String {
        format!("{} (an emulated disk)", self.target.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let there = self.connection()?.is_some() || self.target.symlink_metadata().is_ok();
        Ok(if there { Present::Wanted } else { Present::Before })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        if let Some(connection) = self.connection()? {
            // A server that hangs would hold requests, and with them the mount, for ever. One that is dead has been aborted
            // by the kernel; where fusectl is not mounted there is no file to write.
            let abort = format!("/sys/fs/fuse/connections/{connection}/abort");
            let _ = std::fs::write(abort, "1");
            let fail = |source: io::Error| {
                let busy = source.kind() == io::ErrorKind::ResourceBusy;
                let source = self
                    .user()
                    .filter(|_| busy)
                    .map_or(source, |user| io::Error::new(io::ErrorKind::ResourceBusy, user));
                ChangeError::Undo { action: "unmount", path: self.at.clone(), source }
            };
            self.unmount().map_err(fail)?;
        }
        self.clear().map_err(|source| ChangeError::Undo { action: "remove", path: self.target.clone(), source })
    }

    fn undone(&self) -> &'static str {
        "was unmounted and removed"
    }
}

/// A folder with a mount, both of which go when this is dropped.
#[derive(Debug)]
pub struct FuseMount {
    journal: Journal,
    standing: Option<Standing>,
    folder: PathBuf,
    at: PathBuf,
    source: String,
}

impl FuseMount {
    /// Makes the folder `within/ID` for a file system whose source will be `tiermark-ID`; `id` must hold enough chance to be
    /// nobody else's. Files called as in `files` may be made in the folder. The file system goes to `at`, an existing
    /// directory, or inside the folder.
    ///
    /// # Errors
    /// [`ChangeError::Journal`]; one sentence when the folder cannot be made or `at` is no directory.
    pub fn prepare(
        journal: &Journal,
        id: &str,
        within: &Path,
        at: Option<&Path>,
        files: &[&str],
    ) -> Result<Self, ChangeError> {
        let within = std::fs::canonicalize(within).map_err(|e| ChangeError::in_dir("find", within, e))?;
        let folder = within.join(id);
        let at = match at {
            None => folder.join(INSIDE),
            Some(dir) => {
                let full = std::fs::canonicalize(dir).map_err(|e| ChangeError::in_dir("find", dir, e))?;
                if !full.is_dir() {
                    return Err(ChangeError::NotADirectory { dir: dir.to_owned() });
                }
                full
            }
        };
        let source = format!("tiermark-{id}");
        let change = Change::FuseMount(MountChange {
            target: folder.clone(),
            at: at.clone(),
            source: source.clone(),
            files: files.iter().map(|&file| file.to_owned()).collect(),
        });
        let standing = journal.begin(id, format!("{id}-mount"), change)?;
        // From here on a return drops it, and so undoes it.
        let mount = FuseMount { journal: journal.clone(), standing: Some(standing), folder, at, source };
        for dir in [&mount.folder, &mount.folder.join(INSIDE)] {
            rustix::fs::mkdir(dir, Mode::RWXU).map_err(|e| ChangeError::in_dir("make", dir, e.into()))?;
        }
        journal.step("folder made");
        Ok(mount)
    }

    /// Tells the journal's watcher that the file system was mounted.
    pub fn mounted(&self) {
        self.journal.step("file system mounted");
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the file system goes.
    pub fn at(&self) -> &Path {
        &self.at
    }

    /// What the file system must name as its source.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Unmounts and removes now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Undo`]; the next start tries again.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for FuseMount {
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
    fn a_mount_is_known_by_its_source() {
        let table = "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/root rw\n\
                     40 22 0:53 / /run/x/mnt rw - fuse tiermark-x-1 rw,user_id=0\n";
        assert_eq!(find(table, "tiermark-x-1"), Some(53));
        assert_eq!(find(table, "tiermark-x"), None);
        assert_eq!(find(table, "/dev/root"), None);
    }

    #[test]
    fn the_folder_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let mount = FuseMount::prepare(&journal, "x-1", dir.path(), None, &["socket"]).unwrap();
        std::fs::write(mount.folder().join("socket"), "").unwrap();
        assert!(mount.at().is_dir());
        mount.remove().unwrap();
        assert!(!dir.path().join("x-1").exists());
        assert_eq!(std::fs::read_dir(journal.dir()).unwrap().count(), 0);
    }

    #[test]
    fn what_somebody_put_there_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        let mount = FuseMount::prepare(&journal, "x-1", dir.path(), None, &["socket"]).unwrap();
        std::fs::write(mount.folder().join("letter"), "dear").unwrap();
        assert!(matches!(mount.remove(), Err(ChangeError::Undo { .. })));
        assert!(dir.path().join("x-1/letter").exists());
    }
}
