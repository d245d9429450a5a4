//! The mount table, and which of its entries a path lies on.

use crate::model::Mount;
use crate::root::Root;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mounted {
    /// Major and minor of the super block; major 0 for file systems without one block device (btrfs, tmpfs, NFS).
    pub(crate) dev: Option<(u32, u32)>,
    pub(crate) mount: Mount,
}

/// The mount table of this process (of init where `self` is missing, as in a captured tree), in mount order.
pub(crate) fn table(root: &Root) -> Vec<Mounted> {
    for path in ["/proc/self/mountinfo", "/proc/1/mountinfo"] {
        if let Some(text) = root.word(path) {
            return text.lines().filter_map(mountinfo_line).collect();
        }
    }
    for path in ["/proc/self/mounts", "/proc/mounts", "/proc/1/mounts", "/etc/mtab"] {
        if let Some(text) = root.word(path) {
            return text.lines().filter_map(mounts_line).collect();
        }
    }
    Vec::new()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue` (proc_pid_mountinfo(5)).
fn mountinfo_line(line: &str) -> Option<Mounted> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split_ascii_whitespace().skip(2);
    let dev = crate::block::parse_dev(left.next()?);
    let at = unescape(left.nth(1)?);
    let own = left.next()?;
    let mut right = right.split_ascii_whitespace();
    let fs = right.next()?;
    let source = right.next().unwrap_or("none");
    Some(Mounted { dev, mount: mount(source, at, fs, &[own, right.next().unwrap_or("")]) })
}

/// `/dev/sda1 / ext4 rw,noatime 0 0` (fstab(5)).
fn mounts_line(line: &str) -> Option<Mounted> {
    let mut words = line.split_ascii_whitespace();
    let (source, at, fs) = (words.next()?, words.next()?, words.next()?);
    Some(Mounted { dev: None, mount: mount(source, unescape(at), fs, &[words.next().unwrap_or("")]) })
}

fn mount(source: &str, at: String, fs: &str, options: &[&str]) -> Mount {
    let mut all: Vec<String> = Vec::new();
    for option in options.iter().flat_map(|list| list.split(',')).filter(|option| !option.is_empty()) {
        let option = unescape(option);
        if !all.contains(&option) {
            all.push(option);
        }
    }
    // Both lists say rw or ro: the mount's own and the super block's. Either one being ro forbids writing.
    let read_only = all.iter().any(|option| option == "ro");
    if read_only {
        all.retain(|option| option != "rw");
    }
    let compression = compression(fs, &all);
    Mount { source: unescape(source), at: PathBuf::from(at), fs: fs.to_owned(), options: all, read_only, compression }
}

/// The algorithm that the options ask for, as far as a mount option decides it (btrfs, f2fs, bcachefs).
fn compression(fs: &str, options: &[String]) -> Option<String> {
    let key = match fs {
        "btrfs" => ["compress", "compress-force"],
        "f2fs" => ["compress_algorithm", "compress_algorithm"],
        "bcachefs" => ["compression", "compression"],
        _ => return None,
    };
    options.iter().rev().find_map(|option| {
        let (name, value) = option.split_once('=').unwrap_or((option, "zlib"));
        (key.contains(&name) && !matches!(value, "no" | "none")).then(|| value.to_owned())
    })
}

/// Undoes the octal escapes of the kernel's tables: `\040` is a space.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes
            .get(i + 1..i + 4)
            .filter(|digits| bytes[i] == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal {
            Some(d) => {
                out.push((u32::from(d[0] - b'0') * 64 + u32::from(d[1] - b'0') * 8 + u32::from(d[2] - b'0')) as u8);
                i += 4;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What is mounted at exactly this place now, the latest where there are several.
pub fn mount_at(root: &Root, at: &Path) -> Option<Mount> {
    table(root).into_iter().rev().map(|entry| entry.mount).find(|mount| mount.at == at)
}

/// The entry that `path` (without links) lies on: the longest mount point above it, the latest of equal ones.
pub(crate) fn covering<'a>(table: &'a [Mounted], path: &Path) -> Option<&'a Mounted> {
    table
        .iter()
        .filter(|entry| path.starts_with(&entry.mount.at))
        .max_by_key(|entry| entry.mount.at.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_each_table() {
        let line = r"36 35 98:0 /sub /my\040disk rw,noatime shared:1 - btrfs /dev/sda2 ro,compress=zstd:3,subvol=/@";
        let entry = mountinfo_line(line).unwrap();
        assert_eq!(entry.dev, Some((98, 0)));
        assert_eq!(entry.mount.at, Path::new("/my disk"));
        assert!(entry.mount.read_only);
        assert_eq!(entry.mount.compression.as_deref(), Some("zstd:3"));
        assert_eq!(entry.mount.options, ["noatime", "ro", "compress=zstd:3", "subvol=/@"]);
        let entry = mounts_line("/dev/sda2 / btrfs rw,noatime,compress 0 0").unwrap();
        assert_eq!(entry.mount.compression.as_deref(), Some("zlib"), "btrfs(5): zlib when no algorithm is named");
        assert_eq!(mounts_line("/dev/sda2 /"), None);
        assert_eq!(mountinfo_line("36 35 98:0 / - x"), None);
    }

    #[test]
    fn the_latest_longest_mount_covers() {
        let table: Vec<Mounted> =
            ["/dev/a / ext4 rw", "/dev/b /srv ext4 rw", "/dev/c /srv xfs rw", "/dev/d /srvx ext4 rw"]
                .iter()
                .filter_map(|line| mounts_line(line))
                .collect();
        let source = |path: &str| covering(&table, Path::new(path)).unwrap().mount.source.clone();
        assert_eq!(source("/srv/data/x"), "/dev/c");
        assert_eq!(source("/srv2"), "/dev/a");
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(r"a\040b\134c\0"), r"a b\c\0");
        assert_eq!(unescape(r"\999\7"), r"\999\7");
    }
}
