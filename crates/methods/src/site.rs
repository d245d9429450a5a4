//! A site: somewhere that a method can be asked to work, found on this machine, with what is known about it. It becomes
//! a target of a plan once the method has decided how large a test file should be.

use crate::MethodError;
use basics::plan::{Step, Target};
use basics::{Bytes, Job, Known, Nanos};
use machine::{Machine, Root};
use profile::{Figures, FiguresError, Profile, ProfileError};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// What a site is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// Main memory.
    Memory,
    /// Nothing; the harness alone.
    Null {
        /// Time that each operation takes.
        service: Nanos,
        /// Every `.0`, all operations wait for `.1`.
        stall: Option<(Nanos, Nanos)>,
    },
    /// A directory in which a test file can be made.
    Directory(PathBuf),
    /// An existing file, for reading.
    File(PathBuf),
    /// A block device.
    Device {
        /// Its node.
        path: PathBuf,
        /// What the user gave to `--destroy`.
        destroy: Option<String>,
    },
    /// A device model, in virtual time.
    Profile {
        /// Its name.
        name: String,
        /// The whole of it.
        toml: String,
    },
}

/// Somewhere to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The tier that it lies on, by name, when that is known.
    pub tier: Option<String>,
    /// What it is.
    pub at: Where,
    /// Room that a test file may take there so that a tenth of the file system stays free.
    pub room: Known<Bytes>,
    /// The file system compresses what is written.
    pub compresses: bool,
}

impl Site {
    /// The site that a user names: `memory`, `null`, `null:service=20us,stall=200ms/1s`, `profile:NAME`, a directory, a
    /// file, a block device, or the name of a tier that is one.
    ///
    /// # Errors
    /// When nothing of that name exists, or it is of no use.
    pub fn named(text: &str, destroy: Option<&str>, machine: &Machine, root: &Root) -> Result<Self, MethodError> {
        if text.is_empty() {
            let why = "is no target; name a directory, a file, a block device, a tier, memory or null".to_owned();
            return Err(MethodError::Unusable { path: "\"\"".into(), why });
        }
        let bare = |at| Site { tier: None, at, room: Known::default(), compresses: false };
        if matches!(text, "memory" | "ram" | "RAM") {
            return Ok(Site { tier: Some("RAM".to_owned()), ..bare(Where::Memory) });
        }
        if let Some(name) = text.strip_prefix("profile:") {
            let profile = profile_named(name)?;
            let toml = profile.to_toml()?;
            return Ok(Site { tier: Some(profile.name.clone()), ..bare(Where::Profile { name: profile.name, toml }) });
        }
        if let Some(options) = text.strip_prefix("null") {
            return Ok(bare(null(options)?));
        }
        let mut path = PathBuf::from(text);
        if !path.exists()
            && let Some(node) = machine.tier(text).and_then(|tier| tier.path.clone())
        {
            path = node;
        }
        let unusable = |why: String| MethodError::Unusable { path: path.clone(), why };
        let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => MethodError::Missing { path: path.clone() },
            _ => unusable(format!("cannot be looked at: {error}")),
        })?;
        let kind = metadata.file_type();
        let at = if kind.is_dir() {
            return Ok(Self::directory(&path, machine, root));
        } else if kind.is_file() {
            if metadata.len() == 0 {
                return Err(unusable("the file is empty, there is nothing to read; give a directory instead".into()));
            }
            Where::File(path.clone())
        } else if kind.is_block_device() {
            Where::Device { path: path.clone(), destroy: destroy.map(str::to_owned) }
        } else {
            return Err(unusable("neither a directory, a file nor a block device".into()));
        };
        Ok(Site { tier: machine::tier_of_path(machine, root, &path), ..bare(at) })
    }

    /// A directory, with the tier below it, its room, and whether it compresses.
    pub fn directory(path: &Path, machine: &Machine, root: &Root) -> Self {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let tier = machine::tier_of_path(machine, root, &path);
        let mounts = tier.as_deref().and_then(|name| machine.tier(name)).map_or(&[][..], |tier| &tier.mounts);
        let mount = mounts.iter().filter(|mount| path.starts_with(&mount.at)).max_by_key(|m| m.at.as_os_str().len());
        let compresses = mount.is_some_and(|m| m.compression.is_some() || matches!(m.fs.as_str(), "zfs" | "bcachefs"));
        Site { room: Known::or_not_reported(change::room(&path).ok()), at: Where::Directory(path), tier, compresses }
    }

    /// The length of what is worked on, where that is known.
    pub(crate) fn length(&self, machine: &Machine) -> Result<Option<Bytes>, MethodError> {
        Ok(match &self.at {
            Where::Profile { toml, .. } => Some(Profile::parse(toml)?.size()),
            Where::File(path) => std::fs::metadata(path).ok().map(|metadata| Bytes(metadata.len())),
            Where::Device { path, .. } => {
                let tier = machine.tiers.iter().find(|tier| tier.path.as_ref() == Some(path));
                tier.and_then(|tier| tier.size.get().copied())
            }
            Where::Memory | Where::Null { .. } | Where::Directory(_) => None,
        })
    }

    /// Whether a job may write here: never to a file of the user's, to a device with `--destroy`.
    pub(crate) fn may_write(&self) -> bool {
        !matches!(self.at, Where::File(_) | Where::Device { destroy: None, .. })
    }

    /// A step here: the run goes on without it when it fails, if it `may_fail`.
    pub(crate) fn step(&self, name: impl Into<String>, job: Job, may_fail: bool) -> Step {
        let (name, tier) = (name.into(), self.tier.clone());
        Step { name, tier, target: 0, job, may_fail, before: vec![] }
    }

    /// The target for a method that wants a test file of `size`, should this be a directory.
    pub fn target(&self, size: Bytes, entropy: basics::job::Entropy, first_step_fills: bool) -> Target {
        match &self.at {
            Where::Memory => Target::Memory { size },
            Where::Null { service, stall } => Target::Null { service: *service, stall: *stall },
            Where::Directory(dir) => Target::TestFile { dir: dir.clone(), size, entropy, first_step_fills },
            Where::File(path) => Target::File { path: path.clone() },
            Where::Profile { name, toml } => Target::Profile { name: name.clone(), toml: toml.clone() },
            Where::Device { path, destroy } => Target::Device { path: path.clone(), destroy: destroy.clone() },
        }
    }
}

/// Largest profile that is read: a fitted one takes a few kilobytes.
const LARGEST_PROFILE: u64 = 1 << 20;

/// The profile that a user names: a shipped one, or the path of a TOML file.
///
/// # Errors
/// When there is none of that name, the file cannot be read, or it is no profile.
pub fn profile_named(text: &str) -> Result<Profile, MethodError> {
    if !text.contains('/') && !text.ends_with(".toml") {
        return Ok(profile::find(text)?.clone());
    }
    let path = Path::new(text);
    let why = |error: ProfileError| MethodError::Malformed { path: path.to_owned(), why: error.to_string() };
    Profile::parse(&text_of(path, "a profile")?).map_err(why)
}

/// The figures in a file.
///
/// # Errors
/// When the file cannot be read, or holds no figures.
pub fn figures_in(path: &Path) -> Result<Figures, MethodError> {
    let why = |error: FiguresError| MethodError::Malformed { path: path.to_owned(), why: error.to_string() };
    Figures::parse(&text_of(path, "figures")?).map_err(why)
}

pub(crate) fn text_of(path: &Path, what: &str) -> Result<String, MethodError> {
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        std::fs::File::open(path)?.take(LARGEST_PROFILE).read_to_string(&mut text)?;
        Ok(text)
    };
    let why =
        |error| MethodError::Unusable { path: path.to_owned(), why: format!("cannot be read as {what}: {error}") };
    read().map_err(why)
}

/// Reads what follows `null`: nothing, or `:service=20us,stall=200ms/1s` (200 ms in every second).
fn null(options: &str) -> Result<Where, MethodError> {
    let bad = |why: &str| MethodError::Unusable {
        path: format!("null{options}").into(),
        why: format!("{why}; write null, null:service=20us or null:stall=200ms/1s"),
    };
    let (mut service, mut stall) = (Nanos(0), None);
    let list = match options {
        "" => "",
        _ => options.strip_prefix(':').ok_or_else(|| bad("not a target"))?,
    };
    for part in list.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("service", value)) => service = value.parse().map_err(|_| bad("service takes a duration"))?,
            Some(("stall", value)) => {
                let (length, period) = value.split_once('/').ok_or_else(|| bad("stall takes LENGTH/PERIOD"))?;
                let length: Nanos = length.parse().map_err(|_| bad("stall takes LENGTH/PERIOD"))?;
                let period: Nanos = period.parse().map_err(|_| bad("stall takes LENGTH/PERIOD"))?;
                if length.0 == 0 || period <= length {
                    return Err(bad("the stall must be shorter than its period"));
                }
                stall = Some((period, length));
            }
            _ => return Err(bad("null takes service and stall")),
        }
    }
    Ok(Where::Null { service, stall })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Result<Site, MethodError> {
        Site::named(text, None, &Machine::default(), &Root::live())
    }

    #[test]
    fn the_null_target_can_stall() {
        let site = named("null:service=20us,stall=200ms/1s").unwrap();
        let stall = Some((Nanos::from_millis(1000), Nanos::from_millis(200)));
        assert_eq!(site.at, Where::Null { service: Nanos(20_000), stall });
        for nonsense in ["null:stall=1s/200ms", "null:service=x", "nullify", "null:a=b", "null:stall=5ms"] {
            assert!(matches!(named(nonsense), Err(MethodError::Unusable { .. })), "{nonsense}");
        }
    }

    #[test]
    fn what_is_there_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let site = named(&text(dir.path())).unwrap();
        assert!(matches!(site.at, Where::Directory(_)) && site.room.get().is_some());
        assert!(matches!(named(&text(&dir.path().join("none"))), Err(MethodError::Missing { .. })));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(named(&text(&file)).unwrap_err().to_string().contains("empty"));
        std::fs::write(&file, "x").unwrap();
        assert_eq!(named(&text(&file)).unwrap().at, Where::File(file));
        assert!(named("/dev/null").unwrap_err().to_string().contains("neither"));
    }
}
