//! The boot partition: a folder where it is mounted, or FAT in an image, which is read and written there without the kernel (not every
//! kernel has FAT, and an image's is nobody else's).

use crate::error::MoveError;
use crate::tree::Hash;
use basics::Bytes;
use fatfs::{FileSystem, FormatVolumeOptions, FsOptions};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What the kernel is started with: the Raspberry Pi's.
pub const COMMAND_LINE: &str = "cmdline.txt";
/// The same as it was before, beside it: any computer can put it back.
pub const WAY_BACK: &str = "cmdline.txt.before-tiermark";

/// Where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boot {
    /// Mounted here.
    Folder(PathBuf),
    /// So much of this file.
    Fat {
        /// The image or the disk.
        path: PathBuf,
        /// Where it begins.
        start: Bytes,
        /// Its length.
        len: Bytes,
    },
}

/// A part of a file as if it were one.
struct Window {
    file: File,
    start: u64,
    len: u64,
    at: u64,
}

impl Read for Window {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX));
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        let read = self.file.read(&mut into[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Write for Window {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let most = from.len().min(usize::try_from(self.len.saturating_sub(self.at)).unwrap_or(usize::MAX));
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        let written = self.file.write(&from[..most])?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl Seek for Window {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Boot {
    fn window(&self, writes: bool) -> io::Result<Window> {
        match self {
            Boot::Folder(_) => Err(io::ErrorKind::Unsupported.into()),
            Boot::Fat { path, start, len } => {
                let file = File::options().read(true).write(writes).open(path)?;
                Ok(Window { file, start: start.0, len: len.0, at: 0 })
            }
        }
    }

    /// Where, as it is told.
    pub fn describe(&self) -> String {
        match self {
            Boot::Folder(path) => path.display().to_string(),
            Boot::Fat { path, .. } => format!("the boot partition of {}", path.display()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Boot::Folder(path) | Boot::Fat { path, .. } => path,
        }
    }

    /// What a file there says; none where there is no such file.
    ///
    /// # Errors
    /// The kernel's, or that it is no FAT.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, MoveError> {
        let read = || -> io::Result<Vec<u8>> {
            if let Boot::Folder(folder) = self {
                return std::fs::read(folder.join(name));
            }
            let fs = FileSystem::new(self.window(false)?, FsOptions::new())?;
            let mut bytes = Vec::new();
            fs.root_dir().open_file(name)?.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(MoveError::io("read the boot partition of", self.path())(error)),
        }
    }

    /// Puts a file there, in the place of one of that name, durably: written beside it under another name first, so that a full partition
    /// is found out before anything is gone.
    ///
    /// # Errors
    /// The kernel's; what was there stays.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), MoveError> {
        let draft = format!("{name}.tiermark-draft");
        let put = || -> io::Result<()> {
            if let Boot::Folder(folder) = self {
                let (draft, wanted) = (folder.join(&draft), folder.join(name));
                let written = File::create(&draft).and_then(|mut file| {
                    file.write_all(bytes)?;
                    file.sync_all()
                });
                if let Err(error) = written.and_then(|()| std::fs::rename(&draft, &wanted)) {
                    let _ = std::fs::remove_file(&draft);
                    return Err(error);
                }
                return File::open(folder)?.sync_all();
            }
            let fs = FileSystem::new(self.window(true)?, FsOptions::new())?;
            let root = fs.root_dir();
            let mut file = root.create_file(&draft)?;
            let written = file.truncate().and_then(|()| file.write_all(bytes)).and_then(|()| file.flush());
            drop(file);
            if let Err(error) = written {
                let _ = root.remove(&draft);
                return Err(error);
            }
            match root.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            root.rename(&draft, &root, name)?;
            drop(root);
            fs.unmount()
        };
        put().map_err(MoveError::io("write to the boot partition of", self.path()))
    }

    /// Takes a file away, if it is there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, name: &str) -> Result<(), MoveError> {
        let remove = || -> io::Result<()> {
            if let Boot::Folder(folder) = self {
                return std::fs::remove_file(folder.join(name));
            }
            let fs = FileSystem::new(self.window(true)?, FsOptions::new())?;
            fs.root_dir().remove(name)?;
            fs.unmount()
        };
        match remove() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(MoveError::io("remove a file from the boot partition of", self.path())(error))
            }
            _ => Ok(()),
        }
    }

    /// Makes a FAT32 file system there (FAT16 where it is too small for that).
    ///
    /// # Errors
    /// The kernel's.
    pub fn format(&self) -> Result<(), MoveError> {
        let options = FormatVolumeOptions::new().volume_label(*b"BOOTFS     ");
        let window = self.window(true);
        let made =
            window.and_then(|mut window| fatfs::format_volume(&mut window, options).and_then(|()| window.flush()));
        made.map_err(MoveError::io("make a FAT file system on", self.path()))
    }

    /// Copies all that is here to `to`, which is FAT of ours and empty; how many files and bytes it was.
    ///
    /// # Errors
    /// The kernel's.
    pub fn copy_to(&self, to: &Boot) -> Result<(u64, u64), MoveError> {
        let mut told = (0, 0);
        let copied = (|| -> io::Result<()> {
            let target = FileSystem::new(to.window(true)?, FsOptions::new())?;
            match self {
                Boot::Folder(folder) => from_folder(folder, &target.root_dir(), &mut told)?,
                Boot::Fat { .. } => {
                    let source = FileSystem::new(self.window(false)?, FsOptions::new())?;
                    from_fat(&source.root_dir(), &target.root_dir(), &mut told)?;
                }
            }
            target.unmount()
        })();
        copied.map_err(MoveError::io("copy the boot partition of", self.path()))?;
        Ok(told)
    }

    /// Whether an initramfs lies there and config.txt has the firmware start one.
    ///
    /// # Errors
    /// As [`Boot::read`].
    pub fn starts_initramfs(&self) -> Result<bool, MoveError> {
        let config = self.read("config.txt")?.unwrap_or_default();
        let told = String::from_utf8_lossy(&config).lines().any(|line| {
            let line = line.trim();
            line == "auto_initramfs=1" || line.starts_with("initramfs ")
        });
        let fail = MoveError::io("read the boot partition of", self.path());
        let names = || -> io::Result<Vec<String>> {
            if let Boot::Folder(folder) = self {
                let all = std::fs::read_dir(folder)?;
                return all.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect();
            }
            let fs = FileSystem::new(self.window(false)?, FsOptions::new())?;
            fs.root_dir().iter().map(|entry| Ok(entry?.file_name())).collect()
        };
        let names = names().map_err(fail)?;
        Ok(told && names.iter().any(|name| name.starts_with("initrd") || name.starts_with("initramfs")))
    }

    /// Each file with a hash of what it says (SHA-256), by its path, for comparison.
    ///
    /// # Errors
    /// The kernel's.
    pub fn all(&self) -> Result<Vec<(String, Hash)>, MoveError> {
        let mut all = Vec::new();
        let read = (|| -> io::Result<()> {
            match self {
                Boot::Folder(folder) => list_folder(folder, "", &mut all),
                Boot::Fat { .. } => {
                    let fs = FileSystem::new(self.window(false)?, FsOptions::new())?;
                    list_fat(&fs.root_dir(), "", &mut all)
                }
            }
        })();
        read.map_err(MoveError::io("read the boot partition of", self.path()))?;
        all.sort();
        Ok(all)
    }
}

type FatDir<'a> = fatfs::Dir<'a, Window>;

fn from_folder(folder: &Path, to: &FatDir<'_>, told: &mut (u64, u64)) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_str().ok_or(io::ErrorKind::InvalidData)?;
        if entry.file_type()?.is_dir() {
            from_folder(&entry.path(), &to.create_dir(name)?, told)?;
        } else {
            told.1 += io::copy(&mut File::open(entry.path())?, &mut to.create_file(name)?)?;
            told.0 += 1;
        }
    }
    Ok(())
}

fn from_fat(from: &FatDir<'_>, to: &FatDir<'_>, told: &mut (u64, u64)) -> io::Result<()> {
    for entry in from.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.as_str(), "." | "..") {
            continue;
        }
        if entry.is_dir() {
            from_fat(&entry.to_dir(), &to.create_dir(&name)?, told)?;
        } else {
            told.1 += io::copy(&mut entry.to_file(), &mut to.create_file(&name)?)?;
            told.0 += 1;
        }
    }
    Ok(())
}

/// A hash of all that a file says, of which no more than a piece is held at once.
fn said(file: &mut dyn Read) -> io::Result<Hash> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn list_folder(folder: &Path, below: &str, all: &mut Vec<(String, Hash)>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => list_folder(&entry.path(), &format!("{name}/"), all)?,
            false => all.push((name, said(&mut File::open(entry.path())?)?)),
        }
    }
    Ok(())
}

fn list_fat(dir: &FatDir<'_>, below: &str, all: &mut Vec<(String, Hash)>) -> io::Result<()> {
    for entry in dir.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.as_str(), "." | "..") {
            continue;
        }
        if entry.is_dir() {
            list_fat(&entry.to_dir(), &format!("{below}{name}/"), all)?;
        } else {
            all.push((format!("{below}{name}"), said(&mut entry.to_file())?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_and_go_in_an_image_as_in_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("disk");
        File::create(&path).unwrap().set_len(80 << 20).unwrap();
        let fat = Boot::Fat { path: path.clone(), start: Bytes(4 << 20), len: Bytes(64 << 20) };
        assert!(fat.read("x").is_err(), "it is no FAT yet");
        fat.format().unwrap();
        let folder = Boot::Folder(dir.path().join("boot"));
        std::fs::create_dir_all(dir.path().join("boot/overlays")).unwrap();
        std::fs::write(dir.path().join("boot/overlays/a-long-name-of-an-overlay.dtbo"), [7; 70_000]).unwrap();
        for boot in [&fat, &folder] {
            assert_eq!(boot.read(COMMAND_LINE).unwrap(), None);
            for text in ["root=/dev/mmcblk0p2 rootwait\n", "root=PARTUUID=x\n"] {
                boot.put(COMMAND_LINE, text.as_bytes()).unwrap();
                assert_eq!(boot.read(COMMAND_LINE).unwrap().unwrap(), text.as_bytes());
            }
            boot.put(WAY_BACK, b"before").unwrap();
            boot.remove(WAY_BACK).unwrap();
            boot.remove(WAY_BACK).unwrap();
            assert_eq!(boot.read(WAY_BACK).unwrap(), None);
        }
        fat.remove(COMMAND_LINE).unwrap();
        assert_eq!(folder.copy_to(&fat).unwrap(), (2, 70_016));
        let names: Vec<String> = fat.all().unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["cmdline.txt", "overlays/a-long-name-of-an-overlay.dtbo"]);
        let other = Boot::Fat { path, start: Bytes(68 << 20), len: Bytes(12 << 20) };
        other.format().unwrap();
        fat.copy_to(&other).unwrap();
        std::fs::write(dir.path().join("boot/overlays/a-long-name-of-an-overlay.dtbo"), [8; 70_000]).unwrap();
        assert!(fat.all().unwrap() != folder.all().unwrap(), "one byte is another");
        std::fs::write(dir.path().join("boot/overlays/a-long-name-of-an-overlay.dtbo"), [7; 70_000]).unwrap();
        assert!(fat.all().unwrap() == other.all().unwrap() && fat.all().unwrap() == folder.all().unwrap());
        // Too much for it: what was there stays.
        assert!(other.put(COMMAND_LINE, &vec![1; 16 << 20]).is_err());
        assert_eq!(other.all().unwrap(), fat.all().unwrap());
    }
}
