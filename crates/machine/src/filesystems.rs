//! File systems that are tiers of their own because no local block device holds them: network and pass-through file systems,
//! pools, overlays, memory at `/tmp`. Pseudo file systems and containers' layers are none.

use crate::block::Devices;
use crate::ceiling::unrated;
use crate::layers::{Layers, file_system_hop};
use crate::model::{Tier, TierKind};
use crate::mounts::{self, Mounted};
use crate::root::Root;
use std::path::{Path, PathBuf};

/// Network, pass-through and flash file systems, and pools that manage their own disks.
const REAL: [&str; 18] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "glusterfs",
    "jffs2",
    "lustre",
    "nfs",
    "nfs4",
    "orangefs",
    "smb3",
    "ubifs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
    "yaffs2",
    "zfs",
];
/// FUSE file systems that show settings or other files, not places for bytes.
const FUSE_PSEUDO: [&str; 6] =
    ["fuse.gvfsd-fuse", "fuse.portal", "fuse.lxcfs", "fuse.xdg-document-portal", "fuse.snapfuse", "fuse.squashfuse"];
/// Where container engines mount their layers.
const CONTAINERS: [&str; 6] =
    ["/var/lib/docker", "/var/lib/containers", "/var/lib/containerd", "/var/lib/kubelet", "/run", "/snap"];

/// The tiers, each file system once: further mounts of the same source are listed with the first. Whatever a place that
/// somebody asked for lies on is one too, unless it lies on a disk.
pub(crate) fn tiers(
    root: &Root,
    devices: &Devices,
    table: &[Mounted],
    layers: &mut Layers,
    asked: &[PathBuf],
) -> Vec<Tier> {
    let mut found: Vec<(Option<(u32, u32)>, Tier)> = Vec::new();
    let asked: Vec<&Mounted> = asked.iter().filter_map(|place| mounts::covering(table, place)).collect();
    for entry in table {
        let is_asked = asked.contains(&entry) && devices.of_mount(root, entry).is_empty();
        if !(is_asked || is_place(root, devices, entry)) || is_hidden(table, entry) {
            continue;
        }
        let same = found.iter_mut().find(|(dev, tier)| {
            let first = &tier.mounts[0];
            first.source == entry.mount.source
                && first.fs == entry.mount.fs
                && (*dev == entry.dev || entry.dev.is_none())
        });
        match same {
            Some((_, tier)) => tier.mounts.push(entry.mount.clone()),
            None => found.push((entry.dev, tier(root, devices, table, entry, layers))),
        }
    }
    found.into_iter().map(|(_, tier)| tier).collect()
}

fn is_place(root: &Root, devices: &Devices, entry: &Mounted) -> bool {
    let (fs, at) = (entry.mount.fs.as_str(), entry.mount.at.as_path());
    match fs {
        "tmpfs" => at == Path::new("/tmp") || at == Path::new("/"),
        "overlay" | "aufs" => !CONTAINERS.iter().any(|dir| at.starts_with(dir)),
        "fuseblk" => devices.of_mount(root, entry).is_empty(),
        _ if fs.starts_with("fuse.") => !FUSE_PSEUDO.contains(&fs) && !CONTAINERS.iter().any(|dir| at.starts_with(dir)),
        _ if REAL.contains(&fs) => true,
        // A disk's file system whose disk this machine does not show, as in a container.
        _ => entry.mount.source.starts_with("/dev/") && !is_image(fs) && devices.of_mount(root, entry).is_empty(),
    }
}

/// Read-only images, and what `/dev/` as a source means otherwise.
fn is_image(fs: &str) -> bool {
    matches!(fs, "squashfs" | "erofs" | "iso9660" | "udf" | "devpts" | "devtmpfs")
}

/// True when a later mount covers the same place.
fn is_hidden(table: &[Mounted], entry: &Mounted) -> bool {
    mounts::covering(table, &entry.mount.at).is_some_and(|top| top != entry)
}

fn tier(root: &Root, devices: &Devices, table: &[Mounted], entry: &Mounted, layers: &mut Layers) -> Tier {
    let at = entry.mount.at.display().to_string();
    let mut tier = Tier {
        path: Some(entry.mount.at.clone()),
        hops: vec![file_system_hop(entry)],
        mounts: vec![entry.mount.clone()],
        ..Tier::new(&at, TierKind::FileSystem)
    };
    if entry.mount.fs == "tmpfs" {
        tier.hops.push(unrated("memory", "memory"));
        tier.below.push("RAM".to_owned());
    }
    // What is written to an overlay goes to its upper folder.
    let upper = entry.mount.options.iter().find_map(|option| option.strip_prefix("upperdir="));
    let lower = upper.and_then(|dir| mounts::covering(table, Path::new(dir))).filter(|lower| *lower != entry);
    for disk in lower.map(|lower| devices.of_mount(root, lower)).unwrap_or_default() {
        if let Some(built) = layers.tier(&disk.name) {
            tier.hops.extend(built.tier.hops);
            tier.ceiling = built.tier.ceiling;
            tier.below.push(disk.name.clone());
            break;
        }
    }
    tier
}
