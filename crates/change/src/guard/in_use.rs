//! Who uses any of a family of block devices: mounts in every process's view, swap, RAID and device mapper, btrfs, bcache,
//! loop devices, and programs that have it open for writing (a virtual machine's disk claims nothing in the kernel).

use super::family::{Family, Number, Unreadable, names};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Who uses a device, as a clause, and the way out.
pub(super) type User = (String, &'static str);

const UNMOUNT: &str = "unmount it first";
const SWAPOFF: &str = "switch that swap off first (swapoff)";
const TAKE_OUT: &str = "take it out of there first";

/// The first user found.
pub(super) fn find(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    if let Some(user) = held(family) {
        return Ok(Some(user));
    }
    for look in [swap, mounts, btrfs, loops, writers] {
        if let Some(user) = look(root, family)? {
            return Ok(Some(user));
        }
    }
    Ok(None)
}

/// By RAID, device mapper, or bcache.
fn held(family: &Family) -> Option<User> {
    if let Some((node, holder)) = family.holders.first() {
        return Some((format!("/dev/{} is part of {holder}", node.name), TAKE_OUT));
    }
    let cached = family.members.iter().find(|node| node.dir.join("bcache").exists())?;
    Some((format!("/dev/{} is part of a bcache", cached.name), TAKE_OUT))
}

/// `/proc/swaps`: a path in the first column, after a line of titles. A swap file lies on a mounted file system, which is
/// found by its mount.
fn swap(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    let path = root.join("proc/swaps");
    let text = match std::fs::read_to_string(&path) {
        // A kernel without swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|e| (path.display().to_string(), e))?,
    };
    for line in text.lines().skip(1) {
        let Some(area) = line.split_ascii_whitespace().next().map(unescape) else { continue };
        let number = block_number(root, &area)
            .or_else(|| block_number(root, Path::new("/dev").join(area.file_name()?).as_path()));
        if let Some(node) = number.and_then(|number| family.member(number)) {
            return Ok(Some((format!("/dev/{} is in use as swap", node.name), SWAPOFF)));
        }
    }
    Ok(None)
}

/// Every mount namespace that any process is in, each read once.
fn mounts(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    let proc = root.join("proc");
    let own = proc.join("self/mountinfo");
    let text = std::fs::read_to_string(&own).map_err(|e| (own.display().to_string(), e))?;
    if let Some(user) = mounted(&text, family, Path::new("/"), "") {
        return Ok(Some(user));
    }
    let mut seen: BTreeSet<PathBuf> = std::fs::read_link(proc.join("self/ns/mnt")).into_iter().collect();
    for name in names(&proc)? {
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let process = proc.join(&name);
        // A process that has ended, or whose namespace this user may not look at: without root, the exclusive open
        // that follows is what finds its mounts.
        let Ok(namespace) = std::fs::read_link(process.join("ns/mnt")) else { continue };
        if seen.contains(&namespace) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(process.join("mountinfo")) else { continue };
        let whose = format!(" for process {name}");
        if let Some(user) = mounted(&text, family, &process.join("root"), &whose) {
            return Ok(Some(user));
        }
        seen.insert(namespace);
    }
    Ok(None)
}

/// One mount table (proc(5), `/proc/PID/mountinfo`): the third field is the device number; btrfs and others show a number of
/// their own there, so the source after the dash is looked up as well.
fn mounted(table: &str, family: &Family, view: &Path, whose: &str) -> Option<User> {
    table.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(2);
        let number = fields.next()?.parse::<Number>().ok();
        let at = unescape(fields.nth(1)?);
        let source = unescape(file_system.split(' ').nth(1)?);
        let by_source = || block_number(view, &source).and_then(|number| family.member(number));
        let node = number.and_then(|number| family.member(number)).or_else(by_source)?;
        Some((format!("/dev/{} is mounted at {}{whose}", node.name, at.display()), UNMOUNT))
    })
}

/// Members of mounted btrfs file systems; only one of them stands in the mount table.
fn btrfs(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    let dir = root.join("sys/fs/btrfs");
    for id in names(&dir)? {
        let devices = dir.join(&id).join("devices");
        for name in names(&devices)? {
            let number = std::fs::read_to_string(devices.join(&name).join("dev")).ok().and_then(|n| n.parse().ok());
            if let Some(node) = number.and_then(|number: Number| family.member(number)) {
                return Ok(Some((format!("/dev/{} is part of the mounted btrfs {id}", node.name), UNMOUNT)));
            }
        }
    }
    Ok(None)
}

/// Loop devices over a block device of the family. The kernel does not list those as holders.
fn loops(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    let dir = root.join("sys/block");
    for name in names(&dir)? {
        let Ok(text) = std::fs::read(dir.join(&name).join("loop/backing_file")) else { continue };
        let backing = PathBuf::from(OsString::from_vec(text.trim_ascii_end().to_vec()));
        if let Some(node) = block_number(root, &backing).and_then(|number| family.member(number)) {
            return Ok(Some((format!("/dev/{} is behind /dev/{name}", node.name), "detach that first (losetup -d)")));
        }
    }
    Ok(None)
}

/// Programs that have a device of the family open for writing.
fn writers(root: &Path, family: &Family) -> Result<Option<User>, Unreadable> {
    let proc = root.join("proc");
    let own = std::process::id().to_string();
    for process in names(&proc)?.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        // As with mounts, other users' processes are open to root alone.
        let Ok(descriptors) = names(&proc.join(&process).join("fd")) else { continue };
        for descriptor in descriptors.iter().filter(|_| process != own) {
            // The link leads to the device itself, whatever its name is in that process's view.
            let number = number_at(&proc.join(&process).join("fd").join(descriptor));
            let Some(node) = number.and_then(|number| family.member(number)) else { continue };
            let info = std::fs::read_to_string(proc.join(&process).join("fdinfo").join(descriptor));
            if info.is_ok_and(|info| opened_for_writing(&info)) {
                let name = std::fs::read_to_string(proc.join(&process).join("comm")).unwrap_or_default();
                let user = format!("process {process} ({}) has /dev/{} open for writing", name.trim(), node.name);
                return Ok(Some((user, "end that first")));
            }
        }
    }
    Ok(None)
}

/// Whether `/proc/PID/fdinfo/N` tells of more than O_RDONLY, which is 0 in the last two bits of its octal flags.
fn opened_for_writing(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 0o3 != 0)
}

/// The number of the block device at a full path as seen from `view`.
fn block_number(view: &Path, path: &Path) -> Option<Number> {
    number_at(&view.join(path.strip_prefix("/").ok()?))
}

/// The number of the block device that stands here. What the kernel knows is enough: other programs' files may lie on a
/// server that is away or a FUSE file system that hangs, and must not be asked for.
fn number_at(path: &Path) -> Option<Number> {
    let found = match statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE) {
        Ok(found) => found,
        // Linux before 4.11, or a sandbox that does not know the call.
        Err(Errno::NOSYS) => {
            let metadata = std::fs::metadata(path).ok()?;
            return metadata.file_type().is_block_device().then(|| Number::of(metadata.rdev()));
        }
        Err(_) => return None,
    };
    let is_device = FileType::from_raw_mode(found.stx_mode.into()) == FileType::BlockDevice;
    is_device.then(|| Number::of(makedev(found.stx_rdev_major, found.stx_rdev_minor)))
}

/// Blanks and the like stand as `\040` in the kernel's tables.
pub(crate) fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.first_chunk::<3>().filter(|_| first == b'\\');
        let byte = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        out.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &tail[3..] } else { tail };
    }
    OsString::from_vec(out).into()
}

#[cfg(test)]
mod tests {
    use super::super::family::Node;
    use super::*;

    fn family(members: &[(&str, &str)]) -> Family {
        let node = |&(name, number): &(&str, &str)| Node {
            number: number.parse().unwrap(),
            name: name.to_owned(),
            dir: PathBuf::new(),
        };
        Family { members: members.iter().map(node).collect(), holders: vec![] }
    }

    #[test]
    fn a_mount_is_found_by_number() {
        let table = "22 1 8:1 / / rw,noatime shared:1 - ext4 /dev/root rw\n\
                     30 22 8:17 / /mnt/two\\040words rw - vfat /dev/sdb1 rw\n";
        let (user, _) = mounted(table, &family(&[("sdb", "8:16"), ("sdb1", "8:17")]), Path::new("/"), "").unwrap();
        assert_eq!(user, "/dev/sdb1 is mounted at /mnt/two words");
        assert!(mounted(table, &family(&[("sdc", "8:32")]), Path::new("/"), "").is_none());
    }

    #[test]
    fn the_flags_of_a_descriptor() {
        assert!(opened_for_writing("pos:\t0\nflags:\t0100002\nmnt_id:\t9\n"));
        assert!(opened_for_writing("flags:\t0100001\n"));
        assert!(!opened_for_writing("pos:\t2\nflags:\t0100000\n"));
    }

    #[test]
    fn the_kernels_escapes() {
        assert_eq!(unescape("/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescape("/a\\04"), Path::new("/a\\04"));
    }
}
