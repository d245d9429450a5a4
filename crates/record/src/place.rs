//! Where the database and the spools live.

use crate::error::RecordError;
use rustix::fs::{StatVfs, statfs, statvfs};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The database when no `--db` names one: `$XDG_DATA_HOME/tiermark/tiermark.db`, else
/// `$HOME/.local/share/tiermark/tiermark.db` (XDG Base Directory Specification 0.8; relative values are ignored, as it
/// says).
///
/// # Errors
/// [`RecordError::NoHome`].
pub fn default_path() -> Result<PathBuf, RecordError> {
    default_path_in(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

fn default_path_in(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, RecordError> {
    let full = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    full(data_home)
        .or_else(|| full(home).map(|home| home.join(".local/share")))
        .map(|data| data.join("tiermark/tiermark.db"))
        .ok_or(RecordError::NoHome)
}

/// The spool of one run may grow to this many bytes, and to a quarter of what is free where it lies: it is memory that is
/// missing while memory is measured. Some ten minutes of intervals go whole.
const LARGEST_SPOOL: u64 = 16 << 20;
/// A place with less than this free is no place for a spool.
const LEAST_ROOM: u64 = 1 << 20;
/// `statfs` types of file systems that live in memory (linux/magic.h): tmpfs, ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58F6];

/// A folder for a spool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpoolPlace {
    pub dir: PathBuf,
    /// The most that a spool may take there, in bytes.
    pub limit: u64,
    /// True when nothing written there reaches a disk.
    pub in_memory: bool,
}

/// The first of `$XDG_RUNTIME_DIR`, `/dev/shm` and `/run` that is in memory, writable and not full; else the database's
/// own folder, where the run's intervals are written to a disk in mid-step.
pub(crate) fn for_spool(database: &Path) -> SpoolPlace {
    first_in_memory(in_memory()).unwrap_or_else(|| {
        let dir = match database.parent() {
            Some(dir) if dir != Path::new("") => dir.to_owned(),
            _ => PathBuf::from("."),
        };
        let limit = statvfs(&dir).map_or(LARGEST_SPOOL, |stat| (free(&stat) / 4).min(LARGEST_SPOOL));
        SpoolPlace { dir, limit, in_memory: false }
    })
}

/// Where spools are looked for and made, the best first.
pub(crate) fn in_memory() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    runtime.into_iter().chain(["/dev/shm".into(), "/run".into()])
}

fn first_in_memory(mut candidates: impl Iterator<Item = PathBuf>) -> Option<SpoolPlace> {
    candidates.find_map(|dir| {
        let kind = statfs(&dir).ok()?.f_type as u64;
        let room = free(&statvfs(&dir).ok()?);
        let writable = rustix::fs::access(&dir, rustix::fs::Access::WRITE_OK).is_ok();
        (IN_MEMORY.contains(&(kind & 0xFFFF_FFFF)) && writable && room >= LEAST_ROOM).then(|| SpoolPlace {
            limit: (room / 4).min(LARGEST_SPOOL),
            dir,
            in_memory: true,
        })
    })
}

fn free(stat: &StatVfs) -> u64 {
    stat.f_bavail.saturating_mul(stat.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_follows_the_xdg_folders() {
        let path = |data: &str, home: &str| default_path_in(Some(data.into()), Some(home.into()));
        assert_eq!(path("/data", "/home/a").unwrap(), Path::new("/data/tiermark/tiermark.db"));
        assert_eq!(path("", "/home/a").unwrap(), Path::new("/home/a/.local/share/tiermark/tiermark.db"));
        assert_eq!(path("relative", "/home/a").unwrap(), Path::new("/home/a/.local/share/tiermark/tiermark.db"));
        let error = default_path_in(None, None).unwrap_err();
        assert!(error.to_string().contains("--db"), "{error}");
    }

    #[test]
    fn a_disk_is_no_memory() {
        assert_eq!(first_in_memory(["/proc".into(), "/nonexistent".into()].into_iter()), None);
    }
}
