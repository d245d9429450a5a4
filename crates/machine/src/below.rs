//! From a path to its tier, and from a tier to the devices under it.

use crate::block::parse_dev;
use crate::model::{Machine, Tier};
use crate::mounts;
use crate::root::Root;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The tier that a file or folder lies on; a path that does not exist yet lies where its nearest existing parent does.
/// A device's own node, or a partition's, is that device. A file in memory (tmpfs) lies on `RAM` when its file system is no
/// tier of its own. None when neither the device number nor the mount table leads to a tier.
pub fn tier_of_path(machine: &Machine, root: &Root, path: &Path) -> Option<String> {
    let path = if root.is_live() { std::path::absolute(path).ok()? } else { Path::new("/").join(path) };
    // What does not exist yet keeps its name: in a tree the mount points themselves may be missing.
    let real = path.ancestors().find_map(|above| Some(root.real(above)?.join(path.strip_prefix(above).ok()?)))?;
    // A device's node lies in memory; who names it means the device.
    if let Some(node) = real.strip_prefix("/dev").ok().and_then(Path::to_str) {
        let device = |tier: &&Tier| tier.name == node || tier.partitions.iter().any(|partition| partition.name == node);
        if let Some(tier) = machine.tiers.iter().find(device) {
            return Some(tier.name.clone());
        }
    }
    let table = mounts::table(root);
    if let Some(entry) = mounts::covering(&table, &real) {
        let tier = machine.tiers.iter().find(|tier| {
            tier.mounts.iter().any(|mount| mount.at == entry.mount.at && mount.source == entry.mount.source)
        });
        if let Some(tier) = tier {
            return Some(tier.name.clone());
        }
        if matches!(entry.mount.fs.as_str(), "tmpfs" | "ramfs" | "devtmpfs") {
            return Some("RAM".to_owned());
        }
    }
    by_device_number(machine, root, &real)
}

/// The mount table of another namespace does not cover the path; the number of its device still says where it lies.
fn by_device_number(machine: &Machine, root: &Root, real: &Path) -> Option<String> {
    if !root.is_live() {
        return None;
    }
    let number = real.ancestors().find_map(|path| std::fs::metadata(path).ok())?.dev();
    // st_dev as the kernel encodes it for 64-bit interfaces (new_encode_dev): minor's low 8 bits, major, minor's high bits.
    let (major, minor) = ((number >> 8 & 0xfff) as u32, (number & 0xff | number >> 12 & 0xfff00) as u32);
    let device = root.real(format!("/sys/dev/block/{major}:{minor}"))?;
    let disk = device.ancestors().take(2).find_map(|dir| machine.tier(dir.file_name()?.to_str()?));
    disk.filter(|_| root.word(device.join("dev")).as_deref().and_then(parse_dev) == Some((major, minor)))
        .map(|tier| tier.name.clone())
}

/// The tier and every block device under it, by the names of `/proc/diskstats`; empty for RAM and for a file system without
/// a local block device.
pub fn disks_below(machine: &Machine, tier: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let mut open = vec![tier.to_owned()];
    while let Some(name) = open.pop() {
        let Some(tier) = machine.tier(&name).filter(|_| !seen.contains(&name)) else { continue };
        open.extend(tier.below.iter().rev().cloned());
        if tier.block.is_some() {
            found.push(name.clone());
        }
        seen.push(name);
    }
    found
}
