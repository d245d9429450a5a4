//! An emulated disk that holds a file system and a swap area beside it, as a board's one disk does: two loop devices on parts of it, the
//! file system made and mounted.

use super::Needs;
use crate::RunError;
use crate::emulated::Emulated;
use basics::Bytes;
use basics::pressure::Files;
use change::{LoopDevice, Mount, Part};
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the first partition begins, as tools for partitions have it.
const FIRST: u64 = 1 << 20;

/// How much a disk must hold for both.
pub(super) fn whole(swap: Bytes, files: Option<&Files>) -> Bytes {
    files.map_or(swap, |files| Bytes(FIRST + files.size.0 + swap.0))
}

/// The disk, ready.
pub(super) struct Shared {
    mount: Mount,
    files: LoopDevice,
    swap: LoopDevice,
    disk: PathBuf,
    emulated: Emulated,
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::Load { what: what.to_string() }
}

impl Shared {
    pub fn of(
        emulated: Emulated,
        disk: &Path,
        (swap, files): (Bytes, &Files),
        needs: &Needs<'_>,
    ) -> Result<Self, RunError> {
        let part = |offset: u64, len: u64| {
            let part = Part::Of { offset, len, read_only: false };
            LoopDevice::attach_part(needs.journal, needs.run, disk, part, 4096)
        };
        let of_files = part(FIRST, files.size.0)?;
        let of_swap = part(FIRST + files.size.0, swap.0)?;
        make(&files.fs, of_files.path())?;
        let kind = CString::new(files.fs.as_str()).map_err(failed)?;
        let options = files.options.clone().map(CString::new).transpose().map_err(failed)?;
        let options = (false, options.as_deref());
        let dir = std::env::temp_dir();
        let mount = Mount::with(needs.journal, needs.run, of_files.path(), &kind, options, &dir)?;
        Ok(Shared { mount, files: of_files, swap: of_swap, disk: disk.to_owned(), emulated })
    }

    /// Where its file system is.
    pub fn folder(&self) -> &Path {
        self.mount.path()
    }

    /// The device for the swap area.
    pub fn swap(&self) -> &Path {
        self.swap.path()
    }

    /// The disk itself.
    pub fn disk(&self) -> &Path {
        &self.disk
    }

    /// Takes it away, once nothing is swapped there.
    pub fn take_down(self) -> Vec<RunError> {
        let Shared { mount, files, swap, emulated, .. } = self;
        let mut troubles: Vec<RunError> = mount.unmount().err().map(RunError::from).into_iter().collect();
        troubles.extend([files.detach().err(), swap.detach().err()].into_iter().flatten().map(RunError::from));
        troubles.extend(emulated.end());
        troubles
    }
}

/// Makes the file system, all at once: nothing may be written later on that nobody asked for.
fn make(fs: &str, device: &Path) -> Result<(), RunError> {
    let (program, options, package): (&str, &[&str], &str) = match fs {
        "ext4" => ("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "e2fsprogs"),
        "btrfs" => ("mkfs.btrfs", &["-q", "-f"], "btrfs-progs"),
        "f2fs" => ("mkfs.f2fs", &["-q", "-f"], "f2fs-tools"),
        other => return Err(failed(format!("{other} is not made here; take ext4, btrfs or f2fs"))),
    };
    let mut mkfs = Command::new(program);
    mkfs.args(options).arg(device).stdin(Stdio::null());
    let output = mkfs.output().map_err(|error| {
        failed(format!("no file system can be made on the emulated disk: {program}: {error}; install {package}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("{program} on the emulated disk: {}", said.trim())))
}
