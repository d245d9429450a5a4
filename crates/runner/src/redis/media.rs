//! Where servers keep their files: a directory, or the file system of an emulated disk that is made for the run.

use super::{Site, failed};
use crate::RunError;
use crate::emulated::Emulated;
use basics::Bytes;
use basics::redis::Medium;
use change::Mount;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An emulated disk with a file system, mounted. Fields go in this order.
struct Disk {
    mount: Mount,
    emulated: Emulated,
    device: PathBuf,
}

/// The media of a run that were made for it.
#[derive(Default)]
pub(crate) struct Media(BTreeMap<String, Disk>);

impl Media {
    /// The directory of a medium, made ready where it is not, and the disk below where it is ours.
    pub fn place(&mut self, medium: &Medium, site: Site<'_>) -> Result<(PathBuf, Option<String>), RunError> {
        let (name, toml, size) = match medium {
            Medium::Directory(dir) => return Ok((dir.clone(), None)),
            Medium::Emulated { name, toml, size } => (name, toml, *size),
        };
        if !self.0.contains_key(name) {
            self.0.insert(name.clone(), Disk::new((name, toml), size, site)?);
        }
        let disk = &self.0[name];
        let device = disk.device.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok((disk.mount.path().to_owned(), device))
    }

    /// Takes all of them away.
    pub fn close(&mut self) -> Vec<RunError> {
        let mut troubles = Vec::new();
        for disk in std::mem::take(&mut self.0).into_values() {
            troubles.extend(disk.mount.unmount().err().map(RunError::from));
            troubles.extend(disk.emulated.end());
        }
        troubles
    }
}

impl Disk {
    fn new(profile: (&str, &str), size: Bytes, site: Site<'_>) -> Result<Self, RunError> {
        let mut emulated = Emulated::begin(profile, size, (site.journal, site.run, site.program))?;
        let device = emulated.device()?;
        // All at once: nothing may be written later on that nobody asked for.
        let mut mkfs = Command::new("mkfs.ext4");
        mkfs.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(&device);
        let output = mkfs.stdin(Stdio::null()).output().map_err(|error| {
            failed(format!("no file system can be made on the emulated disk: mkfs.ext4: {error}; install e2fsprogs"))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("mkfs.ext4 on the emulated disk: {}", said.trim())));
        }
        let mount = Mount::new(site.journal, site.run, &device, c"ext4", &std::env::temp_dir())?;
        Ok(Disk { mount, emulated, device })
    }
}
