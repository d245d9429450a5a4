//! The file system of a disk, emulated or not, mounted at a folder of ours: it is unmounted, and the
//! folder removed, when its owner is dropped, and by the next start after a kill.

use crate::error::ChangeError;
use crate::journal::{Journal, Standing, random};
use crate::kind::{Change, Present, Reversible};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest that unmounting may take: a program that was ended may still have a file open.
const SETTLE: Duration = Duration::from_secs(10);

/// Before: no such folder. Wanted: a folder of a name that holds 64 random bits, and whatever is mounted there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskMountChange {
    /// The folder.
    target: PathBuf,
}

impl Reversible for DiskMountChange {
    fn target(&self) -> String {
        format!("{} (a mounted disk)", self.target.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        Ok(match self.target.symlink_metadata() {
            // A mount whose disk is gone cannot be looked at, and can be unmounted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Present::Before,
            _ => Present::Wanted,
        })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |action, source| ChangeError::Undo { action, path: self.target.clone(), source };
        unmounted(&self.target)?;
        match std::fs::remove_dir(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail("remove", error)),
            _ => Ok(()),
        }
    }

    fn undone(&self) -> &'static str {
        "was unmounted"
    }
}

/// Nothing is mounted there any more.
fn unmounted(path: &Path) -> Result<(), ChangeError> {
    let began = Instant::now();
    loop {
        match rustix::mount::unmount(path, UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(Errno::BUSY) if began.elapsed() < SETTLE => std::thread::sleep(Duration::from_millis(20)),
            Err(errno) => {
                return Err(ChangeError::Undo { action: "unmount", path: path.to_owned(), source: errno.into() });
            }
        }
    }
}

/// A file system that is unmounted when this is dropped.
#[derive(Debug)]
pub struct Mount {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
}

impl Mount {
    /// Mounts the file system (`ext4`) on `device` at a new folder in `dir`, for `run`.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] with the kernel's reason, [`ChangeError::Journal`].
    pub fn new(journal: &Journal, run: &str, device: &Path, kind: &CStr, dir: &Path) -> Result<Self, ChangeError> {
        Self::at_new_folder(journal, run, dir, |mount| mount.on(device, kind))
    }

    /// The same with options of the file system's own, and read-only where that is wanted.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub fn with(
        journal: &Journal,
        run: &str,
        device: &Path,
        kind: &CStr,
        (read_only, options): (bool, Option<&CStr>),
        dir: &Path,
    ) -> Result<Self, ChangeError> {
        let read_only = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        Self::at_new_folder(journal, run, dir, |mount| mount.mounted(device, kind, read_only, options))
    }

    /// What is mounted at `what`, without what is mounted below it, once more; nothing can be written there.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub fn seen(journal: &Journal, run: &str, what: &Path, dir: &Path) -> Result<Self, ChangeError> {
        Self::at_new_folder(journal, run, dir, |mount| {
            let read_only = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
            rustix::mount::mount_bind(what, &mount.path)
                // What is mounted there later stays out of it, too.
                .and_then(|()| rustix::mount::mount_change(&mount.path, MountPropagationFlags::PRIVATE))
                .and_then(|()| rustix::mount::mount_remount(&mount.path, read_only, ""))
                .map_err(|errno| ChangeError::as_root("mount", what, errno.into()))
        })
    }

    fn at_new_folder(
        journal: &Journal,
        run: &str,
        dir: &Path,
        mounted: impl FnOnce(&Self) -> Result<(), ChangeError>,
    ) -> Result<Self, ChangeError> {
        let fail = |action, path: &Path, source| ChangeError::as_root(action, path, source);
        let dir = std::fs::canonicalize(dir).map_err(|source| fail("make a folder in", dir, source))?;
        let number = random();
        let path = dir.join(format!("tiermark-{run}-{number:016x}"));
        let change = DiskMountChange { target: path.clone() };
        let standing = journal.begin(run, format!("{run}-mount-{number:016x}"), Change::DiskMount(change))?;
        let mount = Mount { journal: journal.clone(), standing: Some(standing), path };
        let made = std::fs::DirBuilder::new().mode(0o700).create(&mount.path);
        made.map_err(|source| fail("make the folder", &mount.path, source))?;
        journal.step("folder made");
        mounted(&mount)?;
        journal.step("disk mounted");
        Ok(mount)
    }

    /// Mounts what [`Mount::off`] took off, at the same folder.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] with the kernel's reason.
    pub fn on(&self, device: &Path, kind: &CStr) -> Result<(), ChangeError> {
        self.mounted(device, kind, MountFlags::empty(), None)
    }

    fn mounted(
        &self,
        device: &Path,
        kind: &CStr,
        flags: MountFlags,
        options: Option<&CStr>,
    ) -> Result<(), ChangeError> {
        let flags = flags | MountFlags::NODEV | MountFlags::NOSUID;
        rustix::mount::mount(device, &self.path, kind, flags, options)
            .map_err(|errno| ChangeError::as_root("mount", device, errno.into()))
    }

    /// Unmounts it for a while: the folder stays, and its entry in the journal, which is good for both.
    ///
    /// # Errors
    /// [`ChangeError::Undo`].
    pub fn off(&self) -> Result<(), ChangeError> {
        unmounted(&self.path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts it now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Undo`]; the next start tries again.
    pub fn unmount(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(standing) = self.standing.take()
            && let Err(error) = self.journal.end(&standing)
        {
            tracing::warn!("{error}");
        }
    }
}
