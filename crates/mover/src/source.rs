//! What is moved: the system that runs, or one in an image. Of an image the root is mounted read-only and the boot partition read where it
//! lies; of the running system the root file system is looked at once more, without what is mounted into it.

use crate::boot::Boot;
use crate::error::MoveError;
use crate::table::{self, Holds};
use basics::Bytes;
use change::{Journal, LoopDevice, Mount, Part, Refused};
use machine::Root;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Which system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whence {
    /// The one that runs.
    Live,
    /// An image, or a disk that nothing is mounted of.
    Image(PathBuf),
}

/// A system that can be read.
#[derive(Debug)]
pub struct Source {
    /// Its root, read-only. Dropped before the device below it.
    mount: Mount,
    /// Kept for the mount.
    _device: Option<LoopDevice>,
    /// Its boot partition, where it has one of its own.
    pub boot: Option<Boot>,
    /// By what it is known: the same word means the same system.
    pub name: String,
    /// Swap files, which are not copied.
    pub swap_files: Vec<PathBuf>,
    /// It runs, and writes to its files meanwhile.
    pub runs: bool,
}

/// Where mounts are made: in memory, so that none of them is seen in what is copied.
pub fn place() -> PathBuf {
    let memory = Path::new("/run");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// A disk whose boot partition is read and written without the kernel must not be mounted, nor an image through a loop device: the
/// kernel would know nothing of it, and what is copied would change meanwhile.
fn unused(path: &Path) -> Result<(), MoveError> {
    let about = path.metadata().map_err(MoveError::io("look at", path))?;
    let devices = if about.file_type().is_block_device() { vec![path.to_owned()] } else { loops_of(&about) };
    for device in devices {
        if let Some((user, remedy)) = change::guard::user_of(Path::new("/"), &device)? {
            return Err(Refused::InUse { device, user, remedy }.into());
        }
    }
    Ok(())
}

/// The loop devices that are made of this file.
fn loops_of(file: &fs::Metadata) -> Vec<PathBuf> {
    let made_of_it = |device: fs::DirEntry| {
        let behind = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let about = Path::new(behind.trim_end_matches('\n')).metadata().ok()?;
        let same = (about.dev(), about.ino()) == (file.dev(), file.ino());
        same.then(|| Path::new("/dev").join(device.file_name()))
    };
    fs::read_dir("/sys/block").into_iter().flatten().flatten().filter_map(made_of_it).collect()
}

/// Nothing is copied onto itself: neither under another name, nor into a file that a loop device is made of.
///
/// # Errors
/// [`MoveError::Usage`] and [`MoveError::Refused`].
pub fn apart(from: &Whence, to: &Path) -> Result<(), MoveError> {
    let Ok(target) = to.metadata() else { return Ok(()) };
    let same = |about: &fs::Metadata| match about.file_type().is_block_device() {
        true => target.file_type().is_block_device() && about.rdev() == target.rdev(),
        false => (about.dev(), about.ino()) == (target.dev(), target.ino()),
    };
    if let Whence::Image(from) = from
        && from.metadata().is_ok_and(|about| same(&about))
    {
        let what = format!("--from {} and --to {} are the same; nothing was written", from.display(), to.display());
        return Err(MoveError::Usage(what));
    }
    if let Some(device) = loops_of(&target).first().filter(|_| target.is_file()) {
        let user = format!("{} is made of it", device.display());
        return Err(
            Refused::InUse { device: to.to_owned(), user, remedy: "detach that with `losetup -d` first" }.into()
        );
    }
    Ok(())
}

impl Source {
    /// Opens it.
    ///
    /// # Errors
    /// [`MoveError::Missing`] where no system is found; the kernel's.
    pub fn open(whence: &Whence, journal: &Journal, run: &str, dir: &Path) -> Result<Self, MoveError> {
        match whence {
            Whence::Live => Self::live(journal, run, dir),
            Whence::Image(path) => Self::image(path, journal, run, dir),
        }
    }

    fn live(journal: &Journal, run: &str, dir: &Path) -> Result<Self, MoveError> {
        let root = Root::live();
        let boot = ["/boot/firmware", "/boot"].into_iter().map(Path::new).find(|at| {
            machine::mount_at(&root, at)
                .is_some_and(|mount| mount.at == **at && matches!(mount.fs.as_str(), "vfat" | "msdos"))
        });
        let mount = Mount::seen(journal, run, Path::new("/"), dir)?;
        let mut source = Source {
            swap_files: Vec::new(),
            mount,
            _device: None,
            boot: boot.map(|at| Boot::Folder(at.to_owned())),
            name: "the system that runs".to_owned(),
            runs: true,
        };
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        let active = swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(PathBuf::from);
        source.swap_files = source.swap_files_with(active.collect());
        Ok(source)
    }

    fn image(path: &Path, journal: &Journal, run: &str, dir: &Path) -> Result<Self, MoveError> {
        let path = fs::canonicalize(path).map_err(MoveError::io("open", path))?;
        unused(&path)?;
        let mut file = File::open(&path).map_err(MoveError::io("open", &path))?;
        let all = table::read(&mut file);
        let none = |what: &str| MoveError::Missing(format!("{} {what}", path.display()));
        if all.is_empty() {
            return Err(none("has no partition table that is known (GPT, MBR); is it the image of a disk?"));
        }
        let boot = all.iter().find(|part| table::holds(&file, part.start) == Holds::Fat);
        let boot = boot.map(|part| Boot::Fat { path: path.clone(), start: part.start, len: part.len });
        for part in &all {
            let holds = table::holds(&file, part.start);
            let Some(kind) = holds.kernel_name() else { continue };
            let window = Part::Of { offset: part.start.0, len: part.len.0, read_only: true };
            let device = LoopDevice::attach_part(journal, run, &path, window, 512)?;
            // One that was not unmounted has a journal, which is left as it is.
            let calm = (holds == Holds::Ext4).then_some(c"noload");
            let mount = Mount::with(journal, run, device.path(), kind, (true, None), dir)
                .or_else(|_| Mount::with(journal, run, device.path(), kind, (true, calm), dir))?;
            if !["etc/fstab", "etc/os-release", "sbin/init", "usr/lib/os-release"]
                .iter()
                .any(|name| mount.path().join(name).exists())
            {
                continue;
            }
            let mut source = Source {
                swap_files: Vec::new(),
                mount,
                _device: Some(device),
                boot,
                name: path.display().to_string(),
                runs: false,
            };
            source.swap_files = source.swap_files_with(Vec::new());
            return Ok(source);
        }
        Err(none("holds no partition with a system on it (no etc/fstab, no sbin/init)"))
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        self.mount.path()
    }

    /// What a file of it says.
    pub fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root().join(name)).ok()
    }

    /// What of it is not copied: swap files; of the system that runs also the journal, which changes with each step of a move and tells
    /// of no change of the copy, and an image that it is copied to.
    pub fn without(&self, journal: &Journal, to: &Path) -> Vec<PathBuf> {
        let mut all = self.swap_files.clone();
        if self.runs {
            all.extend(
                [journal.dir(), to].into_iter().filter_map(|path| path.strip_prefix("/").ok()).map(Path::to_owned),
            );
        }
        all
    }

    /// Bytes that its files take.
    ///
    /// # Errors
    /// The kernel's.
    pub fn used(&self) -> Result<Bytes, MoveError> {
        let about = rustix::fs::statvfs(self.root()).map_err(MoveError::errno("look at", self.root()))?;
        let used = about.f_blocks.saturating_sub(about.f_bfree).saturating_mul(about.f_frsize);
        let swap = self.swap_files.iter().filter_map(|name| self.root().join(name).metadata().ok());
        Ok(Bytes(used.saturating_sub(swap.map(|about| about.blocks() * 512).sum())))
    }

    /// Those of fstab, of dphys-swapfile and the ones in use, as far as they are files of this root.
    fn swap_files_with(&self, mut all: Vec<PathBuf>) -> Vec<PathBuf> {
        for line in self.text("etc/fstab").unwrap_or_default().lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [source, _, "swap", ..] = fields[..]
                && source.starts_with('/')
            {
                all.push(source.into());
            }
        }
        let dphys = self.text("etc/dphys-swapfile").unwrap_or_default();
        let named = dphys.lines().find_map(|line| line.trim().strip_prefix("CONF_SWAPFILE="));
        all.push(named.unwrap_or("/var/swap").trim_matches('"').into());
        let below = all.iter().filter_map(|path| path.strip_prefix("/").ok());
        let mut files: Vec<PathBuf> =
            below.filter(|name| self.root().join(name).is_file()).map(Path::to_owned).collect();
        files.sort();
        files.dedup();
        // A file of that name that is no swap area is somebody's.
        files.retain(|name| {
            File::open(self.root().join(name)).is_ok_and(|file| table::holds(&file, Bytes(0)) == Holds::Swap)
        });
        files
    }
}
