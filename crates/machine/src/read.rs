//! Puts the machine together: facts, devices with their connections, mounts and swap areas on their tiers, in the order in
//! which people read them.

use crate::block::{self, Devices, Disk};
use crate::model::{Hop, Machine, SwapArea, Tier, TierKind};
use crate::mounts::{self, Mounted};
use crate::root::Root;
use crate::{facts, hops, swap};
use std::path::{Path, PathBuf};

/// Reads the machine below `root`. Nothing is written and nothing is waited for; what can't be read is unknown.
pub fn read(root: &Root) -> Machine {
    let mut machine = facts::read(root);
    let devices = Devices::read(root);
    let table = mounts::table(root);
    machine.swaps = swap::areas(root);
    machine.swap_managers = swap::managers(root);
    machine.tiers.push(ram(&machine));
    for disk in &devices.disks {
        machine.tiers.push(tier(root, disk));
    }
    for entry in &table {
        place_mount(root, &devices, entry, &mut machine.tiers);
    }
    let mut swaps = std::mem::take(&mut machine.swaps);
    for area in &mut swaps {
        place_swap(root, &devices, &table, area, &mut machine.tiers);
    }
    machine.swaps = swaps;
    machine.tiers.sort_by(|a, b| {
        let rank = |tier: &Tier| match tier.kind {
            TierKind::Ram => 0,
            TierKind::Zram => 1,
            TierKind::FileSystem => 3,
            _ => 2,
        };
        let rate = |tier: &Tier| tier.ceiling.get().map_or(0.0, |ceiling| ceiling.practical_mbps.1);
        rank(a).cmp(&rank(b)).then(rate(b).total_cmp(&rate(a)))
    });
    machine
}

fn ram(machine: &Machine) -> Tier {
    let hop = Hop { name: "memory".to_owned(), kind: "memory".to_owned(), ..Hop::default() };
    Tier { name: "RAM".to_owned(), size: machine.ram.clone(), hops: vec![hop], ..Tier::new("RAM", TierKind::Ram) }
}

fn tier(root: &Root, disk: &Disk) -> Tier {
    let connection = hops::connection(root, disk);
    Tier {
        path: Some(PathBuf::from(format!("/dev/{}", disk.name.replace('!', "/")))),
        model: connection.model,
        size: disk.size.clone(),
        hops: connection.hops,
        block: Some(block::facts(root, disk)),
        partitions: disk.partitions.iter().map(|part| part.fact.clone()).collect(),
        warnings: connection.warnings,
        ..Tier::new(&disk.name, connection.kind)
    }
}

/// The disks that a mounted file system lies on.
fn disks_of<'a>(root: &Root, devices: &'a Devices, entry: &Mounted) -> Vec<&'a Disk> {
    if let Some(disk) = entry.dev.filter(|(major, _)| *major != 0).and_then(|dev| devices.by_dev(dev)) {
        return vec![disk];
    }
    entry.mount.source.split(':').filter_map(|path| devices.by_path(root, path)).collect()
}

fn place_mount(root: &Root, devices: &Devices, entry: &Mounted, tiers: &mut Vec<Tier>) {
    for disk in disks_of(root, devices, entry) {
        if let Some(tier) = tiers.iter_mut().find(|tier| tier.name == disk.name) {
            tier.mounts.push(entry.mount.clone());
        }
    }
}

fn place_swap(root: &Root, devices: &Devices, table: &[Mounted], area: &mut SwapArea, tiers: &mut [Tier]) {
    let disk = match area.kind.as_str() {
        "file" => mounts::covering(table, &area.path).and_then(|entry| disks_of(root, devices, entry).first().copied()),
        _ => area.path.to_str().and_then(|path| devices.by_path(root, path)),
    };
    if let Some(tier) = disk.and_then(|disk| tiers.iter_mut().find(|tier| tier.name == disk.name)) {
        tier.swaps.push(area.path.clone());
        area.tier = Some(tier.name.clone());
    }
}

/// The tier that a file or folder lies on; a path that does not exist yet lies where its nearest existing parent does.
/// None when the mount table knows no block device and no listed file system for it.
pub fn tier_of_path(machine: &Machine, root: &Root, path: &Path) -> Option<String> {
    let real = path.ancestors().find_map(|path| root.real(path))?;
    let table = mounts::table(root);
    let entry = mounts::covering(&table, &real)?;
    let holds =
        |tier: &&Tier| tier.mounts.iter().any(|mount| mount.at == entry.mount.at && mount.source == entry.mount.source);
    match machine.tiers.iter().find(holds) {
        Some(tier) => Some(tier.name.clone()),
        None => matches!(entry.mount.fs.as_str(), "tmpfs" | "ramfs" | "devtmpfs").then(|| "RAM".to_owned()),
    }
}

/// The tier and every block device under it, by the names of `/proc/diskstats`; empty for RAM and for a file system without
/// a local block device.
pub fn disks_below(machine: &Machine, tier: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![tier.to_owned()];
    while let Some(name) = open.pop() {
        let Some(tier) = machine.tier(&name) else { continue };
        if found.contains(&name) {
            continue;
        }
        open.extend(tier.below.iter().rev().cloned());
        if tier.block.is_some() {
            found.push(name);
        }
    }
    found
}
