//! Which emulated disks run: each has a folder of its own, in which it tells who it is and listens on a socket. Folders of
//! dead ones are cleared by the journal of changes, not here.

use crate::error::{SlowdiskError, io_at};
use basics::Bytes;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use sys::process::{Identity, Life};

/// Files in an emulated disk's folder.
pub(crate) const ABOUT: &str = "about.json";
pub(crate) const ABOUT_DRAFT: &str = "about.draft";
pub(crate) const SOCKET: &str = "socket";
/// Longest name.
const LONGEST_NAME: usize = 48;

/// Who an emulated disk is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// What it is called.
    pub name: String,
    /// The profile's name.
    pub profile: String,
    /// The loop device.
    pub device: PathBuf,
    /// What it claims to hold.
    #[serde(rename = "size_B")]
    pub size: u64,
    /// What a small request takes at least, whatever the profile says.
    pub floor_us: f64,
    /// What it carries at most, whatever the profile says.
    #[serde(default)]
    pub most: Most,
    /// `ram`, or the file.
    pub backing: String,
    /// Its process.
    pub owner: Identity,
}

/// What the way through FUSE and the loop device carries on this machine, as measured at the start with requests of no time;
/// nothing where that could not be measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Most {
    /// Reads of 4 KiB a second.
    pub read_iops: Option<f64>,
    /// Writes of 4 KiB a second.
    pub write_iops: Option<f64>,
    /// Reads of 512 KiB, MB/s.
    #[serde(rename = "read_MBps")]
    pub read_mbps: Option<f64>,
    /// Writes of 512 KiB, MB/s.
    #[serde(rename = "write_MBps")]
    pub write_mbps: Option<f64>,
}

/// The folder of folders.
#[derive(Debug, Clone)]
pub struct Registry {
    dir: PathBuf,
}

/// Held while a disk is being made, so that no two get the same name.
#[derive(Debug)]
pub(crate) struct Locked {
    _file: File,
}

impl Registry {
    /// Makes the folder, if it is not there.
    ///
    /// # Errors
    /// [`SlowdiskError::Io`].
    pub fn open(dir: &Path) -> Result<Self, SlowdiskError> {
        std::fs::create_dir_all(dir).map_err(io_at("make the folder", dir))?;
        let dir = std::fs::canonicalize(dir).map_err(io_at("find", dir))?;
        Ok(Registry { dir })
    }

    /// Where the folders are.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn lock(&self) -> Result<Locked, SlowdiskError> {
        let file = File::open(&self.dir).map_err(io_at("open", &self.dir))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| io_at("lock", &self.dir)(e.into()))?;
        Ok(Locked { _file: file })
    }

    /// Those that run, by name, with their folders.
    ///
    /// # Errors
    /// [`SlowdiskError::Io`] when the folder cannot be read.
    pub fn running(&self) -> Result<Vec<(Description, PathBuf)>, SlowdiskError> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(io_at("read", &self.dir))? {
            let folder = entry.map_err(io_at("read", &self.dir))?.path();
            // Half made, or being removed.
            let Ok(text) = std::fs::read_to_string(folder.join(ABOUT)) else { continue };
            let Ok(description) = serde_json::from_str::<Description>(&text) else { continue };
            if description.owner.life().is_ok_and(|life| life != Life::Gone) {
                found.push((description, folder));
            }
        }
        found.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        Ok(found)
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`SlowdiskError::Unknown`].
    pub fn find(&self, name: &str) -> Result<(Description, PathBuf), SlowdiskError> {
        let found = self.running()?.into_iter().find(|(description, _)| description.name == name);
        found.ok_or_else(|| SlowdiskError::Unknown(name.to_owned()))
    }

    /// A name that is free: the one asked for, or the profile's with a number if need be.
    pub(crate) fn name(&self, wanted: Option<&str>, profile: &str) -> Result<String, SlowdiskError> {
        let running = self.running()?;
        let taken = |name: &str| running.iter().any(|(description, _)| description.name == name);
        if let Some(name) = wanted {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) || name.starts_with(['.', '-']) {
                let rule = "1 to 48 letters, digits, hyphens, dots and underscores, the first no dot or hyphen";
                return Err(SlowdiskError::Usage(format!("{name:?} is no name for an emulated disk: {rule}")));
            }
            if taken(name) {
                let sentence = format!("an emulated disk called {name} runs already; give another --name, or stop it");
                return Err(SlowdiskError::Usage(sentence));
            }
            return Ok(name.to_owned());
        }
        let profile = &profile[..profile.len().min(LONGEST_NAME - 8)];
        let numbered = (2..).map(|i| format!("{profile}-{i}"));
        let free = std::iter::once(profile.to_owned()).chain(numbered).find(|name| !taken(name));
        Ok(free.unwrap_or_else(|| profile.to_owned()))
    }
}

impl Description {
    /// Its size.
    pub fn size(&self) -> Bytes {
        Bytes(self.size)
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), SlowdiskError> {
        let draft = folder.join(ABOUT_DRAFT);
        let text = serde_json::to_vec_pretty(self).map_err(|e| io_at("write", &draft)(e.into()))?;
        std::fs::write(&draft, text).map_err(io_at("write", &draft))?;
        let path = folder.join(ABOUT);
        std::fs::rename(&draft, &path).map_err(io_at("write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> (tempfile::TempDir, Registry) {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(&dir.path().join("emulate")).unwrap();
        (dir, registry)
    }
    fn put(registry: &Registry, name: &str, owner: Identity) {
        let folder = registry.dir().join(format!("{name}-0123"));
        std::fs::create_dir(&folder).unwrap();
        let description = Description {
            name: name.to_owned(),
            profile: "x".to_owned(),
            device: "/dev/loop0".into(),
            size: 1,
            floor_us: 50.0,
            most: Most { read_iops: Some(9e4), ..Most::default() },
            backing: "ram".to_owned(),
            owner,
        };
        description.write(&folder).unwrap();
    }

    #[test]
    fn names_are_told_apart() {
        let (_dir, registry) = registry();
        let me = Identity::of_this_process().unwrap();
        assert_eq!(registry.name(None, "optane").unwrap(), "optane");
        put(&registry, "optane", me.clone());
        put(&registry, "optane-2", me);
        assert_eq!(registry.name(None, "optane").unwrap(), "optane-3");
        assert!(registry.name(Some("optane"), "x").unwrap_err().to_string().contains("runs already"));
        assert!(registry.name(Some("../x"), "x").is_err() && registry.name(Some(""), "x").is_err());
        assert_eq!(registry.find("optane-2").unwrap().0.name, "optane-2");
        assert!(matches!(registry.find("sd"), Err(SlowdiskError::Unknown(_))));
    }

    #[test]
    fn the_dead_are_not_listed() {
        let (_dir, registry) = registry();
        let me = Identity::of_this_process().unwrap();
        put(&registry, "dead", Identity { start_ticks: me.start_ticks + 1, ..me });
        std::fs::create_dir(registry.dir().join("half")).unwrap();
        assert_eq!(registry.running().unwrap(), []);
    }
}
