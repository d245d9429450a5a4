//! Where a system goes: a disk that was named to be written over, or an image. It gets a table, file systems and swap, and says of itself
//! what it is for, so that whoever comes back goes on.

use crate::boot::Boot;
use crate::error::MoveError;
use crate::table::{self, Holds, Role, Style};
use crate::tree::OWN;
use basics::Bytes;
use change::{DeviceGrant, Journal, LoopDevice, Mount, Part};
use rustix::fs::{FileType, SeekFrom, seek};
use serde::{Deserialize, Serialize};
use std::ffi::CString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The disk or the image.
    pub path: PathBuf,
    /// Of an image that is to be made.
    pub size: Option<Bytes>,
    /// Named once more by who knows that it is written over.
    pub destroy: Option<String>,
    /// The root's file system.
    pub fs: Fs,
    /// How btrfs compresses: `zstd:1`, `lzo`, `zlib`; none for not at all.
    pub compress: Option<String>,
    /// Length of a swap area.
    pub swap: Option<Bytes>,
    /// Length of a boot partition, where that goes with the system.
    pub boot: Option<Bytes>,
    /// How the table is written.
    pub style: Style,
}

/// The root's file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fs {
    /// ext4.
    Ext4,
    /// btrfs.
    Btrfs,
}

impl Fs {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Fs::Ext4 => "ext4",
            Fs::Btrfs => "btrfs",
        }
    }
}

/// What a target says of itself, in tiermark's own folder below its root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Which system it is a copy of.
    pub from: String,
    /// Of the root file system.
    pub root_uuid: String,
    /// Of the swap area, where there is one.
    pub swap_uuid: Option<String>,
    /// All was copied and found to be the same.
    pub verified: bool,
    /// The command line that led to the old system, where it lies on the old boot partition.
    pub before: Option<String>,
}

/// A target that can be written to.
#[derive(Debug)]
pub struct Target {
    /// Its root. Dropped before the device below it.
    mount: Option<Mount>,
    device: LoopDevice,
    fs: Fs,
    options: Option<CString>,
    /// Its partitions with what they are for.
    pub parts: Vec<(Role, table::Part)>,
    /// What it says of itself.
    pub state: State,
    /// It was begun before.
    pub resumed: bool,
    /// Its boot partition.
    pub boot: Option<Boot>,
    /// Nobody else may use it meanwhile.
    _grant: Option<DeviceGrant>,
}

impl Target {
    /// Makes it, or finds what was begun there for the same system.
    ///
    /// # Errors
    /// [`MoveError::Refused`] and [`MoveError::Holds`] where something would be lost; the kernel's, and mkfs's.
    pub fn open(wanted: &Wanted, from: &str, journal: &Journal, run: &str, dir: &Path) -> Result<Self, MoveError> {
        if let Some(found) = Self::begun(wanted, from, journal, run, dir)? {
            return Ok(found);
        }
        let (mut file, grant) = granted(wanted)?;
        let size = Bytes(
            std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
                .map_err(MoveError::io("look at", &wanted.path))?,
        );
        let layout = table::layout(size, wanted.style, wanted.boot, wanted.swap)?;
        // What lies where file systems are looked for would be found in them.
        for (_, start, len) in &layout {
            let zeros = vec![0; usize::try_from(len.0.min(1 << 20)).unwrap_or(1 << 20)];
            std::os::unix::fs::FileExt::write_all_at(&file, &zeros, start.0)
                .map_err(MoveError::io("write", &wanted.path))?;
        }
        let parts = table::write(&mut file, &wanted.path, wanted.style, &layout)?;
        drop(file);
        let parts: Vec<(Role, table::Part)> = layout.iter().map(|(role, ..)| *role).zip(parts).collect();
        let state = State {
            from: from.to_owned(),
            root_uuid: table::uuid()?,
            swap_uuid: wanted.swap.map(|_| table::uuid()).transpose()?,
            verified: false,
            before: None,
        };
        for (role, part) in &parts {
            match role {
                Role::Boot => boot_of(&wanted.path, part).format()?,
                Role::Swap => {
                    let area = window(journal, run, &wanted.path, part)?;
                    tool("mkswap", &["-U", state.swap_uuid.as_deref().unwrap_or_default()], area.path())?;
                    area.detach()?;
                }
                Role::Root => {}
            }
        }
        let root = part(&parts, Role::Root)?;
        let device = window(journal, run, &wanted.path, root)?;
        match wanted.fs {
            Fs::Ext4 => tool("mkfs.ext4", &["-q", "-F", "-L", "rootfs", "-U", &state.root_uuid], device.path())?,
            Fs::Btrfs => tool("mkfs.btrfs", &["-q", "-f", "-L", "rootfs", "-U", &state.root_uuid], device.path())?,
        }
        let mut target = Self::mounted(wanted, journal, run, dir, device, parts, state)?;
        target._grant = grant;
        target.keep()?;
        Ok(target)
    }

    fn mounted(
        wanted: &Wanted,
        journal: &Journal,
        run: &str,
        dir: &Path,
        device: LoopDevice,
        parts: Vec<(Role, table::Part)>,
        state: State,
    ) -> Result<Self, MoveError> {
        let options = wanted.compress.as_ref().filter(|_| wanted.fs == Fs::Btrfs);
        let options = options.map(|compress| CString::new(format!("compress={compress}"))).transpose();
        let options = options.map_err(|_| MoveError::Usage("--compress holds a NUL".to_owned()))?;
        let kind = CString::new(wanted.fs.as_str()).unwrap_or_default();
        let mount = Mount::with(journal, run, device.path(), &kind, (false, options.as_deref()), dir)?;
        let boot = parts.iter().find(|(role, _)| *role == Role::Boot);
        let boot = boot.map(|(_, part)| boot_of(&wanted.path, part));
        Ok(Target {
            mount: Some(mount),
            device,
            fs: wanted.fs,
            options,
            parts,
            state,
            resumed: false,
            boot,
            _grant: None,
        })
    }

    /// What was begun for the same system and is not done.
    fn begun(wanted: &Wanted, from: &str, journal: &Journal, run: &str, dir: &Path) -> Result<Option<Self>, MoveError> {
        let Ok(mut file) = File::open(&wanted.path) else { return Ok(None) };
        let all = table::read(&mut file);
        let Some(root) = all.iter().find(|part| table::holds(&file, part.start).kernel_name().is_some()) else {
            return Ok(None);
        };
        let fs = match table::holds(&file, root.start) {
            Holds::Ext4 => Fs::Ext4,
            Holds::Btrfs => Fs::Btrfs,
            _ => return Ok(None),
        };
        if fs != wanted.fs {
            return Ok(None);
        }
        // Looked at without a byte of it being written, also not by a journal: whose it is is not known yet.
        let look = Part::Of { offset: root.start.0, len: root.len.0, read_only: true };
        let device = LoopDevice::attach_part(journal, run, &wanted.path, look, 512)?;
        let calm = if fs == Fs::Ext4 { Some(c"noload") } else { None };
        let kind = CString::new(fs.as_str()).unwrap_or_default();
        let Ok(seen) = Mount::with(journal, run, device.path(), &kind, (true, calm), dir) else { return Ok(None) };
        let text = fs::read_to_string(seen.path().join(OWN).join("state.json"));
        seen.unmount()?;
        device.detach()?;
        let Ok(text) = text else { return Ok(None) };
        let Ok(state) = serde_json::from_str::<State>(&text) else { return Ok(None) };
        if state.from != from || state.swap_uuid.is_some() != wanted.swap.is_some() {
            return Ok(None);
        }
        let has_boot = all.iter().any(|part| table::holds(&file, part.start) == Holds::Fat);
        if has_boot != wanted.boot.is_some() {
            let (began, now) = if has_boot { ("move", "stay") } else { ("stay", "move") };
            let path = wanted.path.display();
            return Err(MoveError::Usage(format!(
                "the move to {path} was begun with --boot {began} and cannot go on with --boot {now}: say --boot {began}, or begin anew \
                 (of an image: remove it; of a disk: `wipefs -a {path}`)"
            )));
        }
        // A device is still asked for as at first: it may be in use by now.
        let grant = if is_device(&wanted.path) {
            Some(change::guard_for_writing(&wanted.path, wanted.destroy.as_deref())?)
        } else {
            None
        };
        let parts: Vec<(Role, table::Part)> = all
            .iter()
            .map(|part| {
                let role = match table::holds(&file, part.start) {
                    Holds::Fat => Role::Boot,
                    Holds::Swap => Role::Swap,
                    _ => Role::Root,
                };
                (role, part.clone())
            })
            .collect();
        let device = window(journal, run, &wanted.path, part(&parts, Role::Root)?)?;
        let mut target = Self::mounted(wanted, journal, run, dir, device, parts, state)?;
        target._grant = grant;
        target.resumed = true;
        Ok(Some(target))
    }

    /// Its root.
    pub fn root(&self) -> &Path {
        self.mount.as_ref().map_or(Path::new("/nowhere"), Mount::path)
    }

    /// Writes down what it says of itself, durably.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep(&self) -> Result<(), MoveError> {
        let folder = self.root().join(OWN);
        let (path, draft) = (folder.join("state.json"), folder.join("state.json.draft"));
        let text = serde_json::to_string_pretty(&self.state).unwrap_or_default();
        let kept = fs::create_dir_all(&folder).and_then(|()| {
            let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(&folder)?.sync_all()
        });
        kept.map_err(MoveError::io("write", &path))
    }

    /// Takes it off and puts it on again, so that what is read next comes from the disk.
    ///
    /// # Errors
    /// The kernel's.
    pub fn afresh(&mut self, journal: &Journal, run: &str, dir: &Path) -> Result<(), MoveError> {
        if let Some(mount) = self.mount.take() {
            mount.unmount()?;
        }
        // What the kernel still holds of the device below it.
        if let Ok(device) = File::open(self.device.path()) {
            let _ = rustix::fs::fadvise(&device, 0, None, rustix::fs::Advice::DontNeed);
        }
        let kind = CString::new(self.fs.as_str()).unwrap_or_default();
        let options = (false, self.options.as_deref());
        self.mount = Some(Mount::with(journal, run, self.device.path(), &kind, options, dir)?);
        Ok(())
    }

    /// Takes all of it off, and tells whether that went well.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(mut self) -> Result<(), MoveError> {
        if let Some(mount) = self.mount.take() {
            mount.unmount()?;
        }
        self.device.detach()?;
        Ok(())
    }
}

fn part(parts: &[(Role, table::Part)], role: Role) -> Result<&table::Part, MoveError> {
    let found = parts.iter().find(|(of, _)| *of == role).map(|(_, part)| part);
    found.ok_or_else(|| MoveError::Missing(format!("the target has no {role:?} partition")))
}

fn boot_of(path: &Path, part: &table::Part) -> Boot {
    Boot::Fat { path: path.to_owned(), start: part.start, len: part.len }
}

/// A partition behind a device of its own: whatever the kernel thinks of the table.
fn window(journal: &Journal, run: &str, path: &Path, part: &table::Part) -> Result<LoopDevice, MoveError> {
    let window = Part::Of { offset: part.start.0, len: part.len.0, read_only: false };
    Ok(LoopDevice::attach_part(journal, run, path, window, 512)?)
}

fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.file_type().is_block_device())
}

/// The right to write over it: a device as `change`'s guard gives it, a new image, or one that holds nothing or was named once more.
fn granted(wanted: &Wanted) -> Result<(File, Option<DeviceGrant>), MoveError> {
    let path = &wanted.path;
    let open = || File::options().read(true).write(true).open(path).map_err(MoveError::io("open", path));
    match fs::symlink_metadata(path).map(|about| about.file_type()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("{} does not exist; --size SIZE says how long an image is to be made", path.display());
            let size = wanted.size.ok_or(MoveError::Missing(what))?;
            let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
            let file = made.and_then(|file| file.set_len(size.0).map(|()| file));
            Ok((file.map_err(MoveError::io("make", path))?, None))
        }
        Err(error) => Err(MoveError::io("look at", path)(error)),
        Ok(_) if is_device(path) => {
            let grant = change::guard_for_writing(path, wanted.destroy.as_deref())?;
            Ok((open()?, Some(grant)))
        }
        Ok(kind) if kind.is_file() => {
            let file = open()?;
            let empty = matches!(seek(&file, SeekFrom::Data(0)), Err(rustix::io::Errno::NXIO));
            let named = wanted.destroy.as_deref().is_some_and(|named| Path::new(named) == path);
            if empty || named {
                return Ok((file, None));
            }
            let path = path.display();
            Err(MoveError::Holds(format!("{path} holds something; to write over all of it, add --destroy {path}")))
        }
        Ok(_) => {
            let kind = rustix::fs::stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode));
            let what = if kind == Ok(FileType::Directory) { "a directory" } else { "no disk and no image" };
            Err(MoveError::Usage(format!("{} is {what}; name a disk or an image", path.display())))
        }
    }
}

/// A program that makes something on a device.
fn tool(program: &'static str, words: &[&str], device: &Path) -> Result<(), MoveError> {
    let ran = Command::new(program).args(words).arg(device).stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            let package = match program {
                "mkfs.btrfs" => "btrfs-progs",
                "mkfs.ext4" => "e2fsprogs",
                _ => "util-linux",
            };
            MoveError::Missing(format!("{program} is not installed; the package {package} has it"))
        }
        _ => MoveError::Tool { program, said: error.to_string() },
    })?;
    if ran.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    let said = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why").to_owned();
    Err(MoveError::Tool { program, said })
}
