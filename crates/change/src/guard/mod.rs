//! May this be written? A raw device is written only when its full name was repeated, and never while anything uses it,
//! a partition of it, the disk it is a partition of, or what it is made of: as a mounted file system in any process's
//! view, as swap, as a member of RAID, device mapper, btrfs or bcache, or under a loop device. Devices are compared by
//! number, never by name: `/dev/sda` is in use when `sda1` is mounted.

mod family;
mod in_use;
pub mod signature;

use family::{Family, Number};
pub(crate) use in_use::unescape;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Why something is not written. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Something uses it.
    #[error("{} is not written: {user}; {remedy}", device.display())]
    InUse {
        /// The device.
        device: PathBuf,
        /// What uses it, as a clause (`/dev/sda1 is mounted at /`).
        user: String,
        /// The way out.
        remedy: &'static str,
    },
    /// `--destroy` was not given, and there is something on it.
    #[error(
        "{} is not written: it holds {content}; if that may be lost for good, repeat its full name: --destroy {}",
        device.display(),
        device.display()
    )]
    Holds {
        /// The device.
        device: PathBuf,
        /// What was found there (`an ext4 file system`).
        content: String,
    },
    /// `--destroy` was not given; nothing known was found on it, which does not say that it is empty.
    #[error(
        "{} is not written: a raw write destroys what is there, though nothing known was found; if it may be lost for good, \
         repeat its full name: --destroy {}",
        device.display(),
        device.display()
    )]
    NotNamed {
        /// The device.
        device: PathBuf,
    },
    /// `--destroy` names something else.
    #[error(
        "{} is not written: --destroy names {named:?}, which is not its full name; to lose what is on {} for good, write \
         --destroy {}",
        device.display(),
        device.display(),
        device.display()
    )]
    OtherName {
        /// The device.
        device: PathBuf,
        /// What was given.
        named: String,
    },
    /// A file, a directory or whatever else is no block device.
    #[error("{} is not written: it is {what}; name a directory instead, and tiermark makes a file of its own there", path.display())]
    NotADevice {
        /// The path.
        path: PathBuf,
        /// What it is (`an existing file`).
        what: &'static str,
    },
    /// It could not be found out whether anything uses it.
    #[error("{} is not written: {what} cannot be read ({source}), so nobody knows whether it is in use; try again as root", device.display())]
    Unknown {
        /// The device.
        device: PathBuf,
        /// What could not be read.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// It is not there, or this user may not open it.
    #[error("{} cannot be opened: {source}{hint}", path.display())]
    Unavailable {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
        /// The way out, as "; …", where one is known.
        hint: &'static str,
    },
}

impl Refused {
    /// True when nothing was refused for safety: the path is missing, or needs other rights.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Refused::Unavailable { .. })
    }
}

/// The right to write one block device, which nothing else uses or can come to use while this lives: it is held open
/// exclusively.
#[derive(Debug)]
pub struct DeviceGrant {
    path: PathBuf,
    fd: OwnedFd,
    overrides: Option<String>,
}

impl DeviceGrant {
    /// Its node, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// What is on it and will be lost (`an ext4 file system`), if anything known is.
    pub fn overrides(&self) -> Option<&str> {
        self.overrides.as_deref()
    }
    /// Open for reading and writing, buffered.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    /// The descriptor itself, past the page cache when `direct`.
    ///
    /// # Errors
    /// [`Refused::Unavailable`] when the device refuses O_DIRECT.
    pub fn into_fd(self, direct: bool) -> Result<OwnedFd, Refused> {
        if direct {
            let set = rustix::fs::fcntl_getfl(&self.fd)
                .and_then(|flags| rustix::fs::fcntl_setfl(&self.fd, flags | OFlags::DIRECT));
            set.map_err(|errno| unavailable(&self.path, errno.into()))?;
        }
        Ok(self.fd)
    }
}

/// Asks for the right to write `device`. `root` is where `/proc` and `/sys` are found (`/` on a live machine); `destroy`
/// is what the user gave to `--destroy`.
///
/// # Errors
/// [`Refused`], and then nothing was opened for writing and no byte was changed.
pub fn device_for_writing(root: &Path, device: &Path, destroy: Option<&str>) -> Result<DeviceGrant, Refused> {
    let path = std::fs::canonicalize(device).map_err(|e| unavailable(device, e))?;
    let stat = rustix::fs::stat(&path).map_err(|e| unavailable(device, e.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::BlockDevice => {}
        FileType::RegularFile => return Err(existing_file_refused(device)),
        FileType::Directory => return Err(not_a_device(device, "a directory")),
        _ => return Err(not_a_device(device, "no block device")),
    }
    let number = Number::of(stat.st_rdev);
    let unknown = |(what, source)| Refused::Unknown { device: path.clone(), what, source };
    let family = Family::of(root, number).map_err(unknown)?;
    if let Some((user, remedy)) = in_use::find(root, &family).map_err(unknown)? {
        return Err(Refused::InUse { device: path, user, remedy });
    }
    // The kernel opens a write-protected device for writing without a word, and fails the writes.
    if family.is_write_protected() {
        return Err(unavailable(&path, io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "it is write protected")));
    }
    let reading = File::open(&path).map_err(|e| unavailable(&path, e))?;
    let content = signature::find(&reading).map_err(|e| unavailable(&path, e))?;
    drop(reading);
    let overrides = content.map(|found| found.to_string());
    match destroy {
        Some(named) if path.as_os_str() == named || (device.is_absolute() && device.as_os_str() == named) => {}
        Some(named) => return Err(Refused::OtherName { device: path, named: named.to_owned() }),
        None => {
            return Err(match overrides {
                Some(content) => Refused::Holds { device: path, content },
                None => Refused::NotNamed { device: path },
            });
        }
    }
    // The kernel's own word on use (mounts and members claim a device exclusively), and a claim of our own: from here on
    // nobody can mount it.
    let flags = OFlags::RDWR | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::open(&path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::BUSY => Refused::InUse {
            device: path.clone(),
            user: "the kernel says that something uses it".to_owned(),
            remedy: "find out what with `lsblk` and release it",
        },
        errno => unavailable(&path, errno.into()),
    })?;
    let opened = rustix::fs::fstat(&fd).map_err(|e| unavailable(&path, e.into()))?;
    if opened.st_rdev != stat.st_rdev || FileType::from_raw_mode(opened.st_mode) != FileType::BlockDevice {
        let user = "it became another device while it was looked at".to_owned();
        return Err(Refused::InUse { device: path, user, remedy: "try again" });
    }
    Ok(DeviceGrant { path, fd, overrides })
}

/// [`device_for_writing`] on the machine that runs.
///
/// # Errors
/// As there.
pub fn live_device_for_writing(device: &Path, destroy: Option<&str>) -> Result<DeviceGrant, Refused> {
    device_for_writing(Path::new("/"), device, destroy)
}

/// Who uses a block device, a partition of it or what it is part of, as a clause, and the way out; nothing when nobody
/// does. `root` is where `/proc` and `/sys` are found.
///
/// # Errors
/// [`Refused::Unavailable`] and [`Refused::Unknown`].
pub fn user_of(root: &Path, device: &Path) -> Result<Option<(String, &'static str)>, Refused> {
    let path = std::fs::canonicalize(device).map_err(|e| unavailable(device, e))?;
    let stat = rustix::fs::stat(&path).map_err(|e| unavailable(device, e.into()))?;
    let unknown = |(what, source)| Refused::Unknown { device: path.clone(), what, source };
    let family = Family::of(root, Number::of(stat.st_rdev)).map_err(unknown)?;
    in_use::find(root, &family).map_err(unknown)
}

/// Opens a block device for reading only, which never changes a byte of it and is fine while it is in use.
///
/// # Errors
/// [`Refused::NotADevice`] or [`Refused::Unavailable`].
pub fn device_for_reading(device: &Path, direct: bool) -> Result<OwnedFd, Refused> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    flags.set(OFlags::DIRECT, direct);
    let fd = rustix::fs::open(device, flags, Mode::empty()).map_err(|e| unavailable(device, e.into()))?;
    let stat = rustix::fs::fstat(&fd).map_err(|e| unavailable(device, e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "it is no block device");
        return Err(Refused::Unavailable { path: device.to_owned(), source, hint: "" });
    }
    Ok(fd)
}

/// The refusal of a write job on a file that exists.
pub fn existing_file_refused(path: &Path) -> Refused {
    not_a_device(path, "an existing file, and those are never written")
}

fn not_a_device(path: &Path, what: &'static str) -> Refused {
    Refused::NotADevice { path: path.to_owned(), what }
}

fn unavailable(path: &Path, source: io::Error) -> Refused {
    let hint = match source.kind() {
        io::ErrorKind::NotFound => "; look for the right name with `lsblk`",
        io::ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
            "; root may not either: the container, its device rules or the device itself forbid this"
        }
        io::ErrorKind::PermissionDenied => "; try again as root",
        _ => "",
    };
    Refused::Unavailable { path: path.to_owned(), source, hint }
}
