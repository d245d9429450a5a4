//! Where servers keep their files: a directory, or the file system of an emulated disk that is made for the run.

use super::{Site, failed};
use crate::RunError;
use crate::emulated::{Emulated, Faults};
use basics::Bytes;
use basics::redis::Medium;
use change::Mount;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An emulated disk with a file system, mounted. Fields go in this order.
struct Disk {
    mount: Mount,
    emulated: Emulated,
    device: PathBuf,
    faults: Faults,
    /// What goes wrong with it under load.
    fault: Option<String>,
    /// It can be mounted, as far as is known.
    whole: bool,
}

/// The media of a run that were made for it.
#[derive(Default)]
pub(crate) struct Media(BTreeMap<String, Disk>);

impl Media {
    /// The directory of a medium, made ready where it is not, and the disk below where it is ours.
    pub fn place(&mut self, medium: &Medium, site: Site<'_>) -> Result<(PathBuf, Option<String>), RunError> {
        let (name, toml, size, fault) = match medium {
            Medium::Directory(dir) => return Ok((dir.clone(), None)),
            // Found once it is asked.
            Medium::Running { .. } => return Ok((PathBuf::new(), None)),
            Medium::Emulated { name, toml, size, fault } => (name, toml, *size, fault),
        };
        let key = medium.name();
        if !self.0.contains_key(&key) {
            self.0.insert(key.clone(), Disk::new((name, toml), size, fault.clone(), site)?);
        }
        let disk = &self.0[&key];
        let device = disk.device.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok((disk.mount.path().to_owned(), device))
    }

    /// What cuts off the disk of a medium, where it is an emulated one that is there. It counts as broken until
    /// [`Media::return_power`].
    pub fn take_power(&mut self, medium: &Medium) -> Option<Faults> {
        let disk = self.0.get_mut(&medium.name())?;
        disk.whole = false;
        Some(disk.faults.clone())
    }

    /// What was written to the disk of a medium is durable: syncfs ends with writes that no flush follows, and a superblock that a power
    /// cut tears is more than its journal can mend.
    pub fn flush(&self, medium: &Medium) -> Result<(), RunError> {
        let Some(disk) = self.0.get(&medium.name()) else { return Ok(()) };
        std::fs::File::open(&disk.device).and_then(|device| device.sync_all()).map_err(failed)
    }

    /// From here on goes wrong what is to go wrong with the medium.
    pub fn begin_trouble(&self, medium: &Medium) -> Result<(), RunError> {
        match self.0.get(&medium.name()) {
            Some(Disk { faults, fault: Some(fault), .. }) => faults.put(&[fault.as_str()]),
            _ => Ok(()),
        }
    }

    /// The disk of a medium has no power: its file system is taken off, and once the power is back mounted again, which recovers
    /// its journal. The reason, where it cannot be mounted.
    pub fn return_power(&mut self, medium: &Medium) -> Result<Option<String>, RunError> {
        let Some(disk) = self.0.get_mut(&medium.name()) else { return Ok(None) };
        disk.mount.off()?;
        disk.faults.put(&["clear"])?;
        // What could not be written, and was told to nobody, would be told to the next who syncs.
        let _ = std::fs::File::open(&disk.device).and_then(|device| device.sync_all());
        let cannot = disk.mount.on(&disk.device, c"ext4").err();
        disk.whole = cannot.is_none();
        Ok(cannot.map(|error| error.to_string()))
    }

    /// Nothing goes wrong any more with a medium, and its file system is made anew where it may not be whole.
    pub fn end_trouble(&mut self, medium: &Medium) -> Result<(), RunError> {
        let Some(disk) = self.0.get_mut(&medium.name()) else { return Ok(()) };
        if disk.whole && disk.fault.is_none() {
            return Ok(());
        }
        disk.mount.off()?;
        disk.faults.put(&["clear"])?;
        let _ = std::fs::File::open(&disk.device).and_then(|device| device.sync_all());
        make(&disk.device)?;
        disk.mount.on(&disk.device, c"ext4")?;
        disk.whole = true;
        Ok(())
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
    fn new(profile: (&str, &str), size: Bytes, fault: Option<String>, site: Site<'_>) -> Result<Self, RunError> {
        let mut emulated = Emulated::begin(profile, size, (site.journal, site.run, site.program))?;
        let device = emulated.device()?;
        make(&device)?;
        let mount = Mount::new(site.journal, site.run, &device, c"ext4", &std::env::temp_dir())?;
        let faults = emulated.faults(site.program);
        Ok(Disk { mount, emulated, device, faults, fault, whole: true })
    }
}

/// Makes the file system.
fn make(device: &Path) -> Result<(), RunError> {
    // All at once: nothing may be written later on that nobody asked for.
    let mut mkfs = Command::new("mkfs.ext4");
    mkfs.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]).arg(device);
    let output = mkfs.stdin(Stdio::null()).output().map_err(|error| {
        failed(format!("no file system can be made on the emulated disk: mkfs.ext4: {error}; install e2fsprogs"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("mkfs.ext4 on the emulated disk: {}", said.trim())))
}
