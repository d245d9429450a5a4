//! Loop devices for tests: made over a file of their own, found again by their names, gone when the test ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// Runs a command line and gives its output; fails the test when the command does.
#[track_caller]
pub fn sh(line: &str) -> String {
    try_sh(line).unwrap_or_else(|told| panic!("{line}: {told}"))
}

/// Runs a command line; gives its output, or all that it said when it fails.
pub fn try_sh(line: &str) -> Result<String, String> {
    let Output { status, stdout, stderr } = Command::new("sh").args(["-c", line]).output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    if status.success() { Ok(stdout.trim().to_owned()) } else { Err(format!("{stdout}{stderr}").trim().to_owned()) }
}

/// What is undone when a test ends, however it ends.
pub struct Undo(pub String);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new("sh").args(["-c", &self.0]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// A free loop device over a file or a disk.
pub fn attach(over: &Path) -> PathBuf {
    // Two that look at once may find the same one. Who comes second has it open for a moment, for writing, while the
    // other's test goes on.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    sh(&format!("losetup --find --show {}", over.display())).into()
}

/// A loop device over a sparse file.
pub struct Disk {
    pub device: PathBuf,
    pub image: PathBuf,
    // Fields go in this order: the device before its file, the file system below the file before its mount point.
    _detach: Undo,
    _below: Option<Undo>,
    dir: TempDir,
}

impl Disk {
    pub fn new(mib: u64) -> Self {
        Self::at(tempfile::tempdir().unwrap(), mib, None)
    }

    /// A disk of `mib` MiB of which only `real` MiB can ever be written: the file below it lies on a file system of that
    /// size, in memory.
    pub fn promising(mib: u64, real: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("small");
        std::fs::create_dir(&at).unwrap();
        sh(&format!("mount -t tmpfs -o size={real}m none {}", at.display()));
        let below = Undo(format!("umount {}", at.display()));
        Self::at(dir, mib, Some((at, below)))
    }

    fn at(dir: TempDir, mib: u64, below: Option<(PathBuf, Undo)>) -> Self {
        let (folder, below) = below.map_or((dir.path().to_owned(), None), |(at, undo)| (at, Some(undo)));
        let image = folder.join("image");
        std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let device = attach(&image);
        let detach = Undo(format!("partx -d {0}; losetup -d {0}", device.display()));
        Disk { device, image, _detach: detach, _below: below, dir }
    }

    pub fn name(&self) -> &str {
        self.device.to_str().unwrap()
    }

    /// A folder beside the image.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn mkfs(&self) {
        self.mkfs_on(&self.device);
    }

    /// Without a journal, so that an error of the disk stays the error of one file.
    pub fn mkfs_on(&self, device: &Path) {
        let options = "-O ^has_journal -E lazy_itable_init=0,nodiscard";
        sh(&format!("mkfs.ext4 -q {options} {}", device.display()));
    }

    /// Where [`Disk::mount`] mounts.
    pub fn mount_point(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }

    pub fn mount(&self, device: &Path, options: &str) -> Undo {
        let at = self.mount_point();
        std::fs::create_dir_all(&at).unwrap();
        sh(&format!("mount {options} {} {}", device.display(), at.display()));
        Undo(format!("umount {}", at.display()))
    }

    /// Two partitions, made known to the kernel even where it reads no tables itself.
    pub fn partition(&self) -> (PathBuf, PathBuf) {
        sh(&format!("printf 'label: dos\\n,16M,83\\n,,83\\n' | sfdisk -q --no-reread {}", self.name()));
        sh(&format!("partx -a {0} 2>/dev/null || test -e {0}p1", self.name()));
        (format!("{}p1", self.name()).into(), format!("{}p2", self.name()).into())
    }

    /// Every byte of the disk, with nothing left in a cache.
    pub fn bytes(&self) -> Vec<u8> {
        sh("sync");
        std::fs::read(&self.image).unwrap()
    }
}
