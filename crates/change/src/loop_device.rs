//! A loop device over a file of tiermark's own. It is detached when its owner is dropped, and by the next start after a
//! kill; never while something uses it: then that is said, and it is tried again at the next start.

use crate::error::ChangeError;
use crate::guard;
use crate::journal::{Journal, Standing};
use crate::kind::{Change, Present, Reversible};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
pub use sys::loopdev::Part;

/// Another process may take the free number first; so often another is asked for.
const TRIES: usize = 16;
/// For programs that look at every new device (udev, blkid) and hold it open for a moment.
const SETTLE: Duration = Duration::from_secs(2);
/// FUSE takes a request of 256 pages at once; what is larger would reach the file as two, and the kernel's account of the
/// device would not be of the requests that were served.
const LARGEST_KIB: u64 = 1024;

/// Before: nothing behind the device. Wanted: our file, whose path is nobody else's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoopChange {
    /// `/dev/loopN`.
    target: PathBuf,
    /// The file behind it, as the kernel names it.
    backing: PathBuf,
    /// Largest request in KiB before, where it is made smaller: it stays with the number when the file goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest_kib: Option<u64>,
}

impl LoopChange {
    /// Where the kernel has the largest request.
    fn limit(device: &Path) -> Option<PathBuf> {
        Some(Path::new("/sys/block").join(device.file_name()?).join("queue/max_sectors_kb"))
    }

    /// The largest request now, in KiB, where it is beyond what FUSE takes at once.
    fn beyond(device: &Path) -> Option<u64> {
        let text = std::fs::read_to_string(Self::limit(device)?).ok()?;
        text.trim().parse().ok().filter(|kib| *kib > LARGEST_KIB)
    }

    fn set_limit(device: &Path, kib: u64) -> io::Result<()> {
        let limit = Self::limit(device).ok_or(io::ErrorKind::NotFound)?;
        std::fs::write(limit, kib.to_string())
    }

    /// What the kernel has behind the device.
    fn behind(&self) -> Option<PathBuf> {
        let name = self.target.file_name()?;
        let path = Path::new("/sys/block").join(name).join("loop/backing_file");
        let text = std::fs::read_to_string(path).ok()?;
        // A file whose file system was unmounted lazily is shown so.
        let text = text.trim_end_matches('\n');
        Some(PathBuf::from(text.strip_suffix(" (deleted)").unwrap_or(text)))
    }
}

impl Reversible for LoopChange {
    fn target(&self) -> String {
        self.target.display().to_string()
    }

    fn present(&self) -> Result<Present, ChangeError> {
        if self.behind().as_deref() != Some(&self.backing) {
            // Whatever is behind it now is somebody else's, and ours is gone.
            return Ok(Present::Before);
        }
        match guard::user_of(Path::new("/"), &self.target) {
            Ok(None) => Ok(Present::Wanted),
            Ok(Some((user, remedy))) => Ok(Present::Away(format!("is in use: {user}; {remedy}"))),
            Err(error) => Ok(Present::Away(format!("cannot be looked at: {error}"))),
        }
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Undo { action: "detach", path: self.target.clone(), source };
        let device = open(&self.target).map_err(fail)?;
        match sys::loopdev::detach(&device) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::NXIO.raw_os_error()) => {
                return Err(fail(error));
            }
            _ => {}
        }
        drop(device);
        let began = Instant::now();
        while self.behind().as_deref() == Some(&self.backing) {
            if began.elapsed() > SETTLE {
                return Err(fail(io::Error::new(io::ErrorKind::ResourceBusy, "a program has it open")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(kib) = self.largest_kib {
            Self::set_limit(&self.target, kib).map_err(fail)?;
        }
        Ok(())
    }

    fn undone(&self) -> &'static str {
        "was detached"
    }
}

fn open(device: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(device, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// A loop device that is detached when this is dropped.
#[derive(Debug)]
pub struct LoopDevice {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
}

impl LoopDevice {
    /// Puts the file at `backing` (a full path that nobody else uses) behind a free loop device, past the page cache, with
    /// logical sectors of `sector` bytes; `run` is who it is for.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] with the kernel's reason, [`ChangeError::Journal`].
    pub fn attach(journal: &Journal, run: &str, backing: &Path, sector: u32) -> Result<Self, ChangeError> {
        Self::attach_part(journal, run, backing, Part::Whole, sector)
    }

    /// The same with a part of it. Whoever calls it may do with that part what the loop device lets be done: a partition that
    /// [`guard`](crate::guard) granted, or one that is only read.
    ///
    /// # Errors
    /// As [`LoopDevice::attach`].
    pub fn attach_part(
        journal: &Journal,
        run: &str,
        backing: &Path,
        part: Part,
        sector: u32,
    ) -> Result<Self, ChangeError> {
        let apply = |action, path: &Path, source| ChangeError::Apply { action, path: path.to_owned(), source };
        let writes = !matches!(part, Part::Of { read_only: true, .. });
        let file = File::options().read(true).write(writes).open(backing).map_err(|e| apply("open", backing, e))?;
        let mut last = io::Error::from(io::ErrorKind::ResourceBusy);
        for _ in 0..TRIES {
            let number =
                sys::loopdev::free().map_err(|e| apply("get a loop device from", Path::new("/dev/loop-control"), e))?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let largest_kib = LoopChange::beyond(&path);
            let change = LoopChange { target: path.clone(), backing: backing.to_owned(), largest_kib };
            let change = Change::LoopDevice(change);
            let standing = journal.begin(run, format!("{run}-loop{number}"), change)?;
            // From here on a return drops it, and so undoes it.
            let device = LoopDevice { journal: journal.clone(), standing: Some(standing), path };
            let fd = open(&device.path).map_err(|e| apply("open", &device.path, e))?;
            match sys::loopdev::configure(&fd, &file, part, sector, run) {
                Ok(()) => {
                    journal.step("loop device attached");
                    if largest_kib.is_some() {
                        let path = &device.path;
                        LoopChange::set_limit(path, LARGEST_KIB)
                            .map_err(|e| apply("limit the requests of", path, e))?;
                    }
                    return Ok(device);
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => last = error,
                Err(error) => return Err(apply("attach a file to", &device.path, error)),
            }
        }
        Err(apply("get a loop device from", Path::new("/dev/loop-control"), last))
    }

    /// Its node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Detaches it now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Away`] when something uses it; [`ChangeError::Undo`]. The next start tries again.
    pub fn detach(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Some(standing) = self.standing.take()
            && let Err(error) = self.journal.end(&standing)
        {
            tracing::warn!("{error}");
        }
    }
}
