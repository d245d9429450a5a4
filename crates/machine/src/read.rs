//! Puts the machine together: facts, devices with their connections, mounts and swap areas on their tiers, what is noticed
//! about them, in the order in which people read them.

use crate::block::{Devices, Disk};
use crate::layers::Layers;
use crate::model::{Machine, SwapArea, Tier, TierKind};
use crate::mounts::{self, Mounted};
use crate::root::Root;
use crate::{facts, filesystems, swap, warnings};
use std::path::PathBuf;

/// Reads the machine below `root`. Nothing is written and nothing is waited for; what can't be read is unknown.
pub fn read(root: &Root) -> Machine {
    read_with(root, &[])
}

/// The same, and what each of these absolute paths lies on is a tier even if nobody would keep anything there.
pub fn read_with(root: &Root, asked: &[PathBuf]) -> Machine {
    let mut machine = facts::read(root);
    let devices = Devices::read(root);
    let table = mounts::table(root);
    let mut layers = Layers::new(root, &devices, &table, machine.ram.clone());
    machine.tiers.push(layers.ram());
    for disk in &devices.disks {
        machine.tiers.extend(layers.tier(&disk.name).map(|built| built.tier));
    }
    for entry in &table {
        place_mount(root, &devices, entry, &mut machine.tiers);
    }
    machine.tiers.extend(filesystems::tiers(root, &devices, &table, &mut layers, asked));
    machine.tiers.retain(|tier| !is_package(tier));
    machine.swaps = swap::areas(root);
    for area in &mut machine.swaps {
        place_swap(root, &devices, &table, area, &mut machine.tiers);
    }
    machine.swap_managers = swap::managers(root);
    warnings::add(root, &mut machine, &layers.ports());
    machine.tiers.sort_by(|a, b| {
        let rate = |tier: &Tier| tier.ceiling.get().map_or(0.0, |ceiling| ceiling.practical_mbps.1);
        rank(a).cmp(&rank(b)).then(rate(b).total_cmp(&rate(a)))
    });
    machine
}

/// RAM, compressed RAM, devices, file systems without a device.
fn rank(tier: &Tier) -> u8 {
    match tier.kind {
        TierKind::Ram => 0,
        TierKind::Zram => 1,
        TierKind::FileSystem => 3,
        _ => 2,
    }
}

/// A loop device that is an installed package (snap, apex), not a place where bytes can live.
fn is_package(tier: &Tier) -> bool {
    let file = tier.block.as_ref().and_then(|block| block.backing_file.as_ref());
    file.is_some_and(|file| {
        file.extension().is_some_and(|extension| extension == "snap" || extension == "apex")
            || file.components().any(|part| part.as_os_str() == "apex")
    })
}

fn place_mount(root: &Root, devices: &Devices, entry: &Mounted, tiers: &mut [Tier]) {
    for disk in devices.of_mount(root, entry) {
        if let Some(tier) = tiers.iter_mut().find(|tier| tier.name == disk.name) {
            tier.mounts.push(entry.mount.clone());
        }
    }
}

fn place_swap(root: &Root, devices: &Devices, table: &[Mounted], area: &mut SwapArea, tiers: &mut [Tier]) {
    let covering = || mounts::covering(table, &area.path).map(|entry| (entry, devices.of_mount(root, entry)));
    let disk: Option<&Disk> = match area.kind.as_str() {
        "file" => covering().and_then(|(_, disks)| disks.first().copied()),
        _ => area.path.to_str().and_then(|path| devices.by_path(root, path)),
    };
    let name = match disk {
        Some(disk) => disk.name.clone(),
        None => match covering().filter(|_| area.kind == "file") {
            Some((entry, _)) => entry.mount.at.display().to_string(),
            None => return,
        },
    };
    if let Some(tier) = tiers.iter_mut().find(|tier| tier.name == name) {
        tier.swaps.push(area.path.clone());
        area.tier = Some(name);
    }
}
