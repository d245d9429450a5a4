//! Takes a tar that [`crate::capture()`] wrote apart again. Such files come from strangers, so an entry is written only below
//! the given folder and never through a link, and there is an end to how much is written.

use basics::Bytes;
use basics::units::MIB;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, EntryType};
use thiserror::Error;

/// Bytes of all files together, and entries: a capture of a large server has a tenth of either.
const MOST_BYTES: Bytes = Bytes(64 * MIB);
const MOST_ENTRIES: usize = 100_000;

/// A file that is not taken apart.
#[derive(Debug, Error)]
pub enum UnpackError {
    /// It is no tar, or damaged, or the folder cannot be written.
    #[error("it is not unpacked: {source}; give a file that `tiermark tiers --capture` wrote")]
    Io {
        /// What the system or the format said.
        #[from]
        source: io::Error,
    },
    /// A path or a link that leads elsewhere, or something that is neither file, folder nor link.
    #[error("it is not unpacked: {} in it {why}, which no capture of tiermark does", path.display())]
    Entry {
        /// The entry.
        path: PathBuf,
        /// What is wrong with it, as the middle of the sentence.
        why: &'static str,
    },
    /// More than a machine's facts take.
    #[error(
        "it is not unpacked: it holds more than {MOST_BYTES} or {MOST_ENTRIES} entries, and no capture of tiermark does"
    )]
    TooLarge,
}

/// Writes the tree in `tar` below the folder `into`, which should be empty.
///
/// # Errors
/// When it is no such tree, or would reach beyond `into`; what was written until then is left.
pub fn unpack(tar: impl Read, into: &Path) -> Result<(), UnpackError> {
    let mut archive = Archive::new(tar);
    let mut left = MOST_BYTES.0;
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let refused = |why| UnpackError::Entry { path: path.clone(), why };
        let inside = inside(&path).ok_or_else(|| refused("leads out of the tree"))?;
        let place = into.join(&inside);
        if number >= MOST_ENTRIES {
            return Err(UnpackError::TooLarge);
        }
        let folder =
            if entry.header().entry_type() == EntryType::Directory { Some(place.as_path()) } else { place.parent() };
        if through_a_link(into, folder.unwrap_or(into)) {
            return Err(refused("lies behind a link"));
        }
        fs::create_dir_all(folder.unwrap_or(into))?;
        match entry.header().entry_type() {
            EntryType::Directory => {}
            EntryType::Regular => {
                left = left.checked_sub(entry.size()).ok_or(UnpackError::TooLarge)?;
                io::copy(&mut entry, &mut File::create_new(&place)?)?;
            }
            EntryType::Symlink => {
                let target = entry.link_name()?.ok_or_else(|| refused("is a link to nothing"))?.into_owned();
                // A full path is one below the tree's own root: whoever reads the tree resolves it so.
                let from = if target.is_absolute() { Path::new("") } else { inside.parent().unwrap_or(Path::new("")) };
                if !stays_inside(&from.join(target.strip_prefix("/").unwrap_or(&target))) {
                    return Err(refused("is a link out of the tree"));
                }
                std::os::unix::fs::symlink(&target, &place)?;
            }
            _ => return Err(refused("is neither a file, a folder nor a link")),
        }
    }
    Ok(())
}

/// The path without `.`, when it has nothing but names.
fn inside(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(out)
}

/// Whether a path never climbs above where it begins.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0usize;
    path.components().all(|part| match part {
        Component::Normal(_) => {
            depth += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => match depth.checked_sub(1) {
            Some(less) => {
                depth = less;
                true
            }
            None => false,
        },
        Component::RootDir | Component::Prefix(_) => false,
    })
}

/// Whether a folder on the way from `base` to `folder` exists and is not a folder itself.
fn through_a_link(base: &Path, folder: &Path) -> bool {
    let below = folder.ancestors().take_while(|at| *at != base);
    below.filter_map(|at| fs::symlink_metadata(at).ok()).any(|metadata| !metadata.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tar::{Builder, Header};

    fn header(kind: EntryType, path: &str, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mode(0o644);
        // Past the checks of `set_path`, which refuses what a hostile file holds.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header
    }

    fn file(path: &str) -> (Header, &'static [u8]) {
        let mut header = header(EntryType::Regular, path, 2);
        header.set_cksum();
        (header, b"x\n")
    }

    fn link(path: &str, to: &str) -> (Header, &'static [u8]) {
        let mut header = header(EntryType::Symlink, path, 0);
        header.as_old_mut().linkname[..to.len()].copy_from_slice(to.as_bytes());
        header.set_cksum();
        (header, b"")
    }

    fn tar(entries: &[(Header, &'static [u8])]) -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        for (header, content) in entries {
            tar.append(header, *content).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn a_capture_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let entries = [file("proc/version"), link("sys/block/sda", "../devices/x"), link("etc/mtab", "/proc/mounts")];
        unpack(tar(&entries).as_slice(), dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("proc/version")).unwrap(), "x\n");
        assert_eq!(fs::read_link(dir.path().join("sys/block/sda")).unwrap(), Path::new("../devices/x"));
        assert_eq!(fs::read_link(dir.path().join("etc/mtab")).unwrap(), Path::new("/proc/mounts"));
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        let outer = tempfile::tempdir().unwrap();
        let into = outer.path().join("in");
        let hostile: [&[(Header, &'static [u8])]; 6] = [
            &[file("../evil")],
            &[file("/evil")],
            &[file("a/../../evil")],
            &[link("out", "../../")],
            &[link("here", "."), file("here/evil")],
            &[link("evil", "x"), file("evil")],
        ];
        for entries in hostile {
            fs::create_dir(&into).unwrap();
            let error = unpack(tar(entries).as_slice(), &into).unwrap_err().to_string();
            assert!(error.starts_with("it is not unpacked: "), "{error}");
            assert!(!outer.path().join("evil").exists() && !into.join("x").exists());
            fs::remove_dir_all(&into).unwrap();
        }
        let mut device = header(EntryType::Char, "null", 0);
        device.set_cksum();
        let error = unpack(tar(&[(device, b"")]).as_slice(), outer.path()).unwrap_err().to_string();
        assert!(error.contains("null in it is neither"), "{error}");
    }

    #[test]
    fn there_is_an_end_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut large = header(EntryType::Regular, "large", MOST_BYTES.0 + 1);
        large.set_cksum();
        let error = unpack(large.as_bytes().as_slice(), dir.path()).unwrap_err();
        assert!(matches!(error, UnpackError::TooLarge), "{error}");
        assert!(!dir.path().join("large").exists());
        assert!(unpack(&b"no tar at all, and longer than nothing"[..], dir.path()).is_err());
    }
}
