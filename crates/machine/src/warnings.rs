//! What is noticed across devices and about the machine as a whole, without measuring. What one bus shows by itself stands
//! with that bus in `hops`.

use crate::hops::Port;
use crate::model::{Hop, Machine, Tier, TierKind, Warning};
use crate::root::Root;
use basics::units::{listed, significant};
use basics::{Known, Why};
use std::collections::BTreeMap;

/// Adds the warnings to the machine's tiers, and the notices to the machine.
pub(crate) fn add(root: &Root, machine: &mut Machine, ports: &BTreeMap<String, Port>) {
    shared_ports(machine, ports);
    shared_links(machine, ports);
    for tier in &mut machine.tiers {
        let found = [read_only(tier), swap_on_sd(tier), unaligned(tier)];
        tier.warnings.extend(found.into_iter().flatten());
    }
    let notices = [two_swap_managers(machine), zswap_and_zram(machine), throttled(machine)];
    machine.notices.extend(notices.into_iter().flatten());
    unread(root, machine);
}

fn warning(id: &str, text: String, evidence: String) -> Warning {
    Warning { id: id.to_owned(), text, evidence }
}

/// Disks behind one USB port have that port's rate between them.
fn shared_ports(machine: &mut Machine, ports: &BTreeMap<String, Port>) {
    let mut groups: BTreeMap<&str, (&Port, Vec<&str>)> = BTreeMap::new();
    for tier in &machine.tiers {
        if let Some(port) = ports.get(&tier.name) {
            groups.entry(&port.name).or_insert_with(|| (port, Vec::new())).1.push(&tier.name);
        }
    }
    let mut found = Vec::new();
    for (port, names) in groups.into_values().filter(|(_, names)| names.len() > 1) {
        let link = port.link.as_deref().unwrap_or("USB");
        let rate = port.practical_mbps.map_or_else(String::new, |(low, high)| {
            let each = |rate: f64| significant((rate / names.len() as f64).round());
            let (low_each, high_each) = (each(low), each(high));
            format!(", {low}–{high} MB/s for all together: {low_each}–{high_each} each when all are busy")
        });
        let text = format!("{} share one USB port ({}, {link}){rate}.", listed(&names), port.name);
        let evidence = format!("/sys/bus/usb/devices/{}: above {}", port.name, names.join(", "));
        found.extend(
            names.iter().map(|name| ((*name).to_owned(), warning("usb-shared-port", text.clone(), evidence.clone()))),
        );
    }
    for (name, warning) in found {
        machine.tiers.iter_mut().filter(|tier| tier.name == name).for_each(|tier| tier.warnings.push(warning.clone()));
    }
}

/// Disks behind one PCIe link that together could do more than it: two NVMe disks on one switch, two USB 3 ports of one
/// controller on one lane.
fn shared_links(machine: &mut Machine, ports: &BTreeMap<String, Port>) {
    let mut links: BTreeMap<String, (Hop, Vec<&Tier>)> = BTreeMap::new();
    for tier in machine.tiers.iter().filter(|tier| tier.below.is_empty()) {
        for hop in tier.hops.iter().filter(|hop| hop.kind.starts_with("pcie")) {
            let key = hop.detail.clone().unwrap_or_default();
            links.entry(key).or_insert_with(|| (hop.clone(), Vec::new())).1.push(tier);
        }
    }
    let mut found = Vec::new();
    for (detail, (link, tiers)) in links.into_iter().filter(|(_, (_, tiers))| tiers.len() > 1) {
        let Some((low, high)) = link.practical_mbps else { continue };
        // What each could do behind the link; those on one USB port count once.
        let mut wanted: BTreeMap<&str, f64> = BTreeMap::new();
        for tier in &tiers {
            let behind = tier.hops.iter().skip_while(|hop| hop.detail != link.detail).skip(1);
            let own = behind.filter_map(|hop| Some(hop.practical_mbps?.1)).fold(f64::INFINITY, f64::min);
            let place = ports.get(&tier.name).map_or(tier.name.as_str(), |port| &port.name);
            wanted.insert(place, own);
        }
        let sum: f64 = wanted.values().sum();
        if wanted.len() < 2 || !sum.is_finite() || sum <= high {
            continue;
        }
        let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
        let text = format!(
            "{} share one link ({detail}, {low}–{high} MB/s) for all together; apart they could do {} MB/s.",
            listed(&names),
            significant(sum.round())
        );
        let evidence = format!("{detail}: above {}", names.join(", "));
        found.extend(
            names.iter().map(|name| ((*name).to_owned(), warning("pcie-shared-link", text.clone(), evidence.clone()))),
        );
    }
    for (name, warning) in found {
        machine.tiers.iter_mut().filter(|tier| tier.name == name).for_each(|tier| tier.warnings.push(warning.clone()));
    }
}

/// A device that is write protected, or a file system on it that is mounted so. SD cards end this way.
fn read_only(tier: &Tier) -> Option<Warning> {
    let block = tier.block.as_ref()?;
    if block.read_only == Known::Is(true) {
        let text = format!("{} is write protected: nothing on it can be written.", tier.name);
        return Some(warning("read-only", text, format!("/sys/block/{}/ro: 1", tier.name)));
    }
    let image = |fs: &str| matches!(fs, "squashfs" | "erofs" | "iso9660" | "udf" | "cramfs");
    let mount = tier.mounts.iter().find(|mount| mount.read_only && !image(&mount.fs))?;
    // The same file system may be mounted for writing elsewhere.
    if tier.mounts.iter().any(|other| other.source == mount.source && !other.read_only) {
        return None;
    }
    let text = format!(
        "{} is mounted read-only at {}: set so, or the kernel stopped writing after an error.",
        mount.source,
        mount.at.display()
    );
    Some(warning(
        "read-only",
        text,
        format!("/proc/self/mountinfo: {} {}", mount.at.display(), mount.options.join(",")),
    ))
}

fn swap_on_sd(tier: &Tier) -> Option<Warning> {
    let area = tier.swaps.first().filter(|_| tier.kind == TierKind::Sd)?;
    let text = format!("Swap is on {}, an SD card: each page that is swapped in waits for it.", tier.name);
    Some(warning("swap-on-sd", text, format!("/proc/swaps: {}", area.display())))
}

/// A partition that begins within a 4 KiB page of the medium makes two writes of one.
fn unaligned(tier: &Tier) -> Option<Warning> {
    let part = tier.partitions.iter().find(|part| part.start.get().is_some_and(|start| start.0 % 4096 != 0))?;
    let start = part.start.get()?.0;
    let text = format!(
        "{} begins at byte {start}, not on a multiple of 4 KiB: each 4 KiB write touches two pages of the medium.",
        part.name
    );
    Some(warning("partition-unaligned", text, format!("/sys/class/block/{}/start: {}", part.name, start / 512)))
}

fn two_swap_managers(machine: &Machine) -> Option<Warning> {
    // A line in fstab or a swap unit beside one tool is a plan; two tools know nothing of each other.
    let tools = machine.swap_managers.iter().filter(|name| !matches!(name.as_str(), "fstab" | "systemd"));
    let names: Vec<&str> = tools.map(String::as_str).collect();
    if names.len() < 2 {
        return None;
    }
    let text = format!("{} set up swap here; each may bring back what another removed.", listed(&names));
    Some(warning("two-swap-managers", text, format!("/etc: {}", names.join(", "))))
}

fn zswap_and_zram(machine: &Machine) -> Option<Warning> {
    let enabled = machine.zswap.get().is_some_and(|zswap| zswap.enabled);
    let on_zram = |tier: &&Tier| tier.kind == TierKind::Zram && !tier.swaps.is_empty();
    let zram = machine.tiers.iter().find(on_zram).filter(|_| enabled)?;
    let text = format!(
        "zswap is on in front of swap on {}: pages are compressed twice, in two pools of the same memory.",
        zram.name
    );
    let evidence = format!("/sys/module/zswap/parameters/enabled: Y; /proc/swaps: /dev/{}", zram.name);
    Some(warning("zswap-and-zram", text, evidence))
}

fn throttled(machine: &Machine) -> Option<Warning> {
    let words = machine.throttled.get().filter(|words| !words.is_empty())?;
    let evidence = words.join("; ");
    Some(if words.iter().any(|word| word.starts_with(crate::heat::NOW)) {
        let text = format!("The processor is held back ({evidence}): figures measured now are too low.");
        warning("throttled", text, evidence)
    } else {
        let text = format!("The processor was held back since boot ({evidence}): it may be again under load.");
        warning("was-throttled", text, evidence)
    })
}

/// What could not be read of the machine as a whole.
fn unread(root: &Root, machine: &mut Machine) {
    if machine.tiers.iter().all(|tier| tier.mounts.is_empty()) {
        machine
            .warnings
            .push("No mounted file system could be assigned: the mount table is missing or empty.".to_owned());
    }
    if machine.tiers.iter().all(|tier| tier.block.is_none()) {
        machine.warnings.push("No block device is listed below /sys/block.".to_owned());
    }
    let cards = machine.tiers.iter_mut().filter(|tier| matches!(tier.kind, TierKind::Sd | TierKind::Emmc));
    for tier in cards {
        let Some(hop) = tier.hops.last() else { continue };
        let Some(host) = &hop.detail else { continue };
        let told = !tier.ceiling.is_unknown() && !hop.name.starts_with("at most");
        let ios = format!("/sys/kernel/debug/{host}/ios");
        match root.bytes(&ios, 1) {
            Err(Why::NoPermission) => {
                machine.warnings.push(format!("The bus mode of {} is for root only ({ios}).", tier.name));
                if tier.ceiling.is_unknown() {
                    tier.ceiling = Known::Unknown(Why::NoPermission);
                }
            }
            // A kernel without debugfs, or one on which nobody has mounted it.
            Err(Why::NotReported) if !told && root.names("/sys/kernel/debug").is_empty() => {
                let how = "mount -t debugfs none /sys/kernel/debug";
                machine.warnings.push(format!(
                    "The bus mode of {} is told in debugfs alone, which is not mounted ({how}).",
                    tier.name
                ));
            }
            _ => {}
        }
    }
}
