//! Block devices as sysfs lists them: which there are, their facts, partitions and what they are made of. How a device is
//! connected is left to `hops`.

use crate::model::{BlockFacts, Partition};
use crate::mounts::Mounted;
use crate::root::Root;
use basics::{Bytes, Known};
use std::path::{Path, PathBuf};

/// sysfs counts sizes and starts in units of 512 bytes, whatever the device's sector is.
const SYSFS_SECTOR: u64 = 512;

/// A whole device.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) name: String,
    /// `/sys/block/NAME`, links resolved.
    pub(crate) dir: PathBuf,
    pub(crate) dev: Option<(u32, u32)>,
    pub(crate) size: Known<Bytes>,
    pub(crate) partitions: Vec<Part>,
    /// Devices that it is made of, as sysfs names them (partitions among them).
    pub(crate) slaves: Vec<String>,
    /// Name below `/dev/mapper`.
    pub(crate) dm_name: Option<String>,
}

/// A partition with its device number.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) dev: Option<(u32, u32)>,
    pub(crate) fact: Partition,
}

/// `8:1`.
pub(crate) fn parse_dev(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Every whole device that holds bytes: no empty ram disk, loop without a file, optical drive, floppy, boot area of an
/// eMMC or anything of no size.
pub(crate) fn disks(root: &Root) -> Vec<Disk> {
    let mut listed = root.names("/sys/block");
    let class = root.names("/sys/class/block");
    if listed.is_empty() {
        listed =
            class.iter().filter(|name| !root.exists(format!("/sys/class/block/{name}/partition"))).cloned().collect();
    }
    listed.iter().filter(|name| holds_bytes(name)).filter_map(|name| disk(root, name, &class)).collect()
}

fn holds_bytes(name: &str) -> bool {
    let not = ["ram", "sr", "fd", "mtdblock"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    });
    let emmc_area =
        name.starts_with("mmcblk") && (name.contains("boot") || name.contains("rpmb") || name.contains("gp"));
    !not && !emmc_area
}

fn disk(root: &Root, name: &str, class: &[String]) -> Option<Disk> {
    let dir =
        [format!("/sys/block/{name}"), format!("/sys/class/block/{name}")].iter().find_map(|path| root.real(path))?;
    let sectors: Known<u64> = root.number(dir.join("size"));
    if sectors.get() == Some(&0) {
        return None;
    }
    if is_loop(name) && root.word(dir.join("loop/backing_file")).is_none() {
        return None;
    }
    let size = match root.number(dir.join("disksize")) {
        // zram tells its size in bytes and has none until it is set up.
        Known::Is(0) => return None,
        Known::Is(bytes) => Known::Is(Bytes(bytes)),
        Known::Unknown(_) if name.starts_with("zram") && sectors.is_unknown() => return None,
        Known::Unknown(_) => sectors.map(|n: u64| Bytes(n.saturating_mul(SYSFS_SECTOR))),
    };
    Some(Disk {
        dev: root.word(dir.join("dev")).as_deref().and_then(parse_dev),
        size,
        partitions: partitions(root, name, &dir, class),
        slaves: root.entries(dir.join("slaves")),
        dm_name: root.word(dir.join("dm/name")),
        name: name.to_owned(),
        dir,
    })
}

/// True for `loop0`, not for `loopback`.
pub(crate) fn is_loop(name: &str) -> bool {
    name.strip_prefix("loop").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The partitions lie in the disk's folder; a tree of flat folders may have them only below `/sys/class/block`.
fn partitions(root: &Root, disk: &str, dir: &Path, class: &[String]) -> Vec<Part> {
    let inside = root.names(dir).into_iter().map(|name| dir.join(name));
    let beside = class.iter().map(|name| Path::new("/sys/class/block").join(name));
    let mut found: Vec<Part> = Vec::new();
    for path in inside.chain(beside) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !is_partition_of(name, disk) || found.iter().any(|part| part.fact.name == name) {
            continue;
        }
        if !root.exists(path.join("partition")) && !root.exists(path.join("start")) {
            continue;
        }
        let bytes = |file: &str| root.number(path.join(file)).map(|n: u64| Bytes(n.saturating_mul(SYSFS_SECTOR)));
        found.push(Part {
            dev: root.word(path.join("dev")).as_deref().and_then(parse_dev),
            fact: Partition { name: name.to_owned(), start: bytes("start"), size: bytes("size") },
        });
    }
    found
}

/// `sda1` of `sda`, `mmcblk0p2` of `mmcblk0`.
fn is_partition_of(name: &str, disk: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let digits = if disk.ends_with(|c: char| c.is_ascii_digit()) { rest.strip_prefix('p') } else { Some(rest) };
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// What the queue says.
pub(crate) fn facts(root: &Root, disk: &Disk) -> BlockFacts {
    let queue = |file: &str| disk.dir.join("queue").join(file);
    let bytes = |file: &str, unit: u64| root.number(queue(file)).map(|n: u64| Bytes(n.saturating_mul(unit)));
    let flag = |path: PathBuf| root.number(path).map(|n: u64| n != 0);
    BlockFacts {
        logical_sector: bytes("logical_block_size", 1),
        physical_sector: bytes("physical_block_size", 1),
        rotational: flag(queue("rotational")),
        scheduler: root.text(queue("scheduler")).map(|list| chosen(&list)),
        read_ahead: bytes("read_ahead_kb", 1024),
        max_request: bytes("max_sectors_kb", 1024),
        write_cache: root.text(queue("write_cache")),
        discard: flag(queue("discard_max_bytes")),
        read_only: flag(disk.dir.join("ro")),
        removable: flag(disk.dir.join("removable")),
        backing_file: root
            .word(disk.dir.join("loop/backing_file"))
            .map(|path| PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(&path))),
        compression: root.word(disk.dir.join("comp_algorithm")).map(|list| chosen(&list)),
        card: None,
    }
}

/// The entry in brackets of a list such as `none [mq-deadline] kyber`, or the whole when none is.
pub(crate) fn chosen(list: &str) -> String {
    let bracketed = list.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    bracketed.unwrap_or(list).trim().to_owned()
}

/// Every device with a name or a number, to find which disk a mount's source or a swap's path is.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    pub(crate) disks: Vec<Disk>,
}

impl Devices {
    pub(crate) fn read(root: &Root) -> Self {
        Devices { disks: disks(root) }
    }

    /// The disk that has this number, or a partition with it.
    pub(crate) fn by_dev(&self, dev: (u32, u32)) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.dev == Some(dev) || disk.partitions.iter().any(|part| part.dev == Some(dev)))
    }

    /// The disk of this name, or with a partition of it; `mapper/NAME` and sysfs's `!` for `/` are understood.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Disk> {
        let name = name.strip_prefix("/dev/").unwrap_or(name);
        // Android keeps its nodes one folder further down.
        let name = name.strip_prefix("block/").unwrap_or(name).replace('/', "!");
        let mapped = name.strip_prefix("mapper!");
        self.disks.iter().find(|disk| {
            disk.name == name
                || disk.partitions.iter().any(|part| part.fact.name == name)
                || mapped.is_some_and(|mapped| disk.dm_name.as_deref() == Some(mapped))
        })
    }

    /// The disks that a mounted file system lies on; several for btrfs and bcachefs.
    pub(crate) fn of_mount(&self, root: &Root, entry: &Mounted) -> Vec<&Disk> {
        if let Some(disk) = entry.dev.filter(|(major, _)| *major != 0).and_then(|dev| self.by_dev(dev)) {
            return vec![disk];
        }
        // bcachefs names all its devices in the source, separated by colons.
        let source = match entry.mount.source.as_str() {
            "/dev/root" => root_device(root).unwrap_or_default(),
            source => source.to_owned(),
        };
        let mut disks: Vec<&Disk> = source.split(':').filter_map(|path| self.by_path(root, path)).collect();
        if entry.mount.fs == "btrfs" {
            for name in btrfs_devices(root, &source) {
                disks.extend(self.by_name(&name).filter(|disk| disks.iter().all(|known| known.name != disk.name)));
            }
        }
        disks
    }

    /// The disk behind a path below `/dev`, its links (`/dev/disk/by-uuid/…`) followed when the tree has them.
    pub(crate) fn by_path(&self, root: &Root, path: &str) -> Option<&Disk> {
        self.by_name(path).or_else(|| {
            let links = path.starts_with("/dev/");
            let real = root.real(path).filter(|_| links).and_then(|real| real.to_str().map(str::to_owned));
            // A tree has the link, not the node that it leads to.
            let target = || root.link_name(path).filter(|_| links);
            self.by_name(&real.or_else(target)?)
        })
    }
}

/// What the kernel was told to mount as root; it calls that device `/dev/root` itself.
fn root_device(root: &Root) -> Option<String> {
    let cmdline = root.word("/proc/cmdline")?;
    let device = cmdline.split_whitespace().find_map(|word| word.strip_prefix("root="))?;
    match device.split_once('=') {
        None => Some(device.to_owned()),
        Some(("UUID", id)) => Some(format!("/dev/disk/by-uuid/{id}")),
        Some(("PARTUUID", id)) => Some(format!("/dev/disk/by-partuuid/{id}")),
        Some(("LABEL", id)) => Some(format!("/dev/disk/by-label/{id}")),
        Some(_) => None,
    }
}

/// Every device of the btrfs that `source` belongs to, from `/sys/fs/btrfs/UUID/devices`.
fn btrfs_devices(root: &Root, source: &str) -> Vec<String> {
    let own = source.strip_prefix("/dev/").unwrap_or(source);
    let all = root.names("/sys/fs/btrfs").into_iter().map(|uuid| root.entries(format!("/sys/fs/btrfs/{uuid}/devices")));
    all.filter(|devices| devices.iter().any(|name| name == own)).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_partitions() {
        assert!(is_partition_of("sda1", "sda"));
        assert!(is_partition_of("nvme0n1p12", "nvme0n1"));
        assert!(!is_partition_of("sdaa", "sda"));
        assert!(!is_partition_of("mmcblk0boot0", "mmcblk0"));
        assert!(!is_partition_of("loop10", "loop1"));
    }

    #[test]
    fn what_counts_as_a_disk() {
        for name in ["sda", "mmcblk1", "ramdisk", "zram0", "nbd3", "xvda", "dm-0", "md127"] {
            assert!(holds_bytes(name), "{name}");
        }
        for name in ["ram0", "sr0", "fd0", "mmcblk0boot0", "mmcblk0rpmb", "mtdblock2"] {
            assert!(!holds_bytes(name), "{name}");
        }
    }

    #[test]
    fn the_choice_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
        assert_eq!(chosen("[broken"), "[broken");
    }
}
