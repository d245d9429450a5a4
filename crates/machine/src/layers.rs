//! Tiers and what they are made of: hardware as its connection says; zram, loop, device mapper, RAID and caches on top of
//! other tiers, with those tiers' hops behind their own, for a byte passes the layer first and the bus after it.

use crate::block::{self, Devices, Disk};
use crate::ceiling::{self, unrated};
use crate::hops::{self, Port};
use crate::model::{BlockFacts, Ceiling, Hop, Tier, TierKind};
use crate::mounts::{self, Mounted};
use crate::root::Root;
use basics::{Bytes, Known};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Layers on top of each other at most (LUKS on LVM on RAID on a loop is five).
const MAX_DEPTH: usize = 12;

/// A tier with the USB port that it hangs on, if it hangs on one.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    pub(crate) tier: Tier,
    pub(crate) port: Option<Port>,
}

/// Makes tiers, each once.
pub(crate) struct Layers<'a> {
    root: &'a Root,
    devices: &'a Devices,
    table: &'a [Mounted],
    ram: Known<Bytes>,
    built: BTreeMap<String, Option<Built>>,
}

impl<'a> Layers<'a> {
    pub(crate) fn new(root: &'a Root, devices: &'a Devices, table: &'a [Mounted], ram: Known<Bytes>) -> Self {
        Layers { root, devices, table, ram, built: BTreeMap::new() }
    }

    /// Main memory.
    pub(crate) fn ram(&self) -> Tier {
        Tier { size: self.ram.clone(), hops: vec![unrated("memory", "memory")], ..Tier::new("RAM", TierKind::Ram) }
    }

    /// The USB port of each device that hangs on one directly.
    pub(crate) fn ports(&self) -> BTreeMap<String, Port> {
        let direct = self.built.iter().filter_map(|(name, built)| {
            let built = built.as_ref().filter(|built| built.tier.kind == TierKind::Usb)?;
            Some((name.clone(), built.port.clone()?))
        });
        direct.collect()
    }

    /// The tier of this device.
    pub(crate) fn tier(&mut self, name: &str) -> Option<Built> {
        self.at_depth(name, 0)
    }

    fn at_depth(&mut self, name: &str, depth: usize) -> Option<Built> {
        if let Some(known) = self.built.get(name) {
            return known.clone();
        }
        let devices = self.devices;
        let disk = devices.disks.iter().find(|disk| disk.name == name).filter(|_| depth < MAX_DEPTH)?;
        // A device that is made of itself can only stand in a damaged tree; it ends here.
        self.built.insert(name.to_owned(), None);
        let mut facts = block::facts(self.root, disk);
        let made_of = |what: &str| self.root.exists(disk.dir.join(what));
        let mut built = if disk.name.starts_with("zram") {
            self.zram(disk, depth)
        } else if let Some(file) = facts.backing_file.as_deref().filter(|_| block::is_loop(&disk.name)) {
            self.of_file(file, depth)
        } else if !disk.slaves.is_empty() || made_of("dm") || made_of("md") {
            self.of_members(disk, depth)
        } else {
            hardware(self.root, disk, &mut facts)
        };
        built.tier.name = disk.name.clone();
        built.tier.path = Some(PathBuf::from(format!("/dev/{}", disk.name.replace('!', "/"))));
        built.tier.size = disk.size.clone();
        built.tier.partitions = disk.partitions.iter().map(|part| part.fact.clone()).collect();
        built.tier.block = Some(facts);
        self.built.insert(name.to_owned(), Some(built.clone()));
        Some(built)
    }

    fn zram(&mut self, disk: &Disk, depth: usize) -> Built {
        let backing = self.root.word(disk.dir.join("backing_dev")).filter(|path| path != "none");
        let below = backing.and_then(|path| Some(self.devices.by_path(self.root, &path)?.name.clone()));
        let below = below.filter(|name| self.at_depth(name, depth + 1).is_some());
        let hops = vec![unrated("zram", "zram"), unrated("memory", "memory")];
        Built { tier: Tier { hops, below: below.into_iter().collect(), ..Tier::new("", TierKind::Zram) }, port: None }
    }

    /// A loop device: its file's file system, and what that lies on.
    fn of_file(&mut self, file: &Path, depth: usize) -> Built {
        let own = Hop { detail: Some(file.display().to_string()), ..unrated("loop", "loop") };
        let mut tier = Tier { hops: vec![own], ..Tier::new("", TierKind::Loop) };
        let mut port = None;
        let Some(entry) = mounts::covering(self.table, file) else { return Built { tier, port } };
        tier.hops.push(file_system_hop(entry));
        let under: Vec<String> = self.devices.of_mount(self.root, entry).iter().map(|disk| disk.name.clone()).collect();
        let members: Vec<Built> = under.iter().filter_map(|name| self.at_depth(name, depth + 1)).collect();
        if let Some(slowest) = slowest(&members) {
            tier.hops.extend(slowest.tier.hops.clone());
            tier.ceiling = slowest.tier.ceiling.clone();
            port = slowest.port.clone();
            tier.below = under;
        } else if entry.mount.fs == "tmpfs" {
            tier.hops.push(unrated("memory", "memory"));
            tier.below.push("RAM".to_owned());
        }
        Built { tier, port }
    }

    /// Device mapper, RAID, bcache: one layer over one or several devices.
    fn of_members(&mut self, disk: &Disk, depth: usize) -> Built {
        let mut names: Vec<String> = Vec::new();
        for slave in &disk.slaves {
            let name = self.devices.by_name(slave).map(|disk| disk.name.clone());
            names.extend(name.filter(|name| !names.contains(name)));
        }
        let members: Vec<Built> = names.iter().filter_map(|name| self.at_depth(name, depth + 1)).collect();
        let layer = Layer::of(self.root, disk);
        let own =
            Hop { detail: (!disk.slaves.is_empty()).then(|| disk.slaves.join(", ")), ..unrated(layer.name, layer.hop) };
        let mut tier = Tier {
            hops: vec![own],
            below: names,
            model: Known::or_not_reported(disk.dm_name.clone()),
            ..Tier::new("", layer.kind)
        };
        let slowest = slowest(&members);
        tier.hops.extend(slowest.iter().flat_map(|member| member.tier.hops.clone()));
        tier.ceiling = match members.as_slice() {
            [one] => one.tier.ceiling.clone(),
            several => Known::or_not_reported(together(several, layer.parallel)),
        };
        Built { tier, port: slowest.and_then(|member| member.port.clone()) }
    }
}

fn hardware(root: &Root, disk: &Disk, facts: &mut BlockFacts) -> Built {
    let found = hops::connection(root, disk);
    facts.card = found.card;
    let tier = Tier {
        model: found.model,
        ceiling: Known::or_not_reported(ceiling::lowest(&found.hops)),
        hops: found.hops,
        warnings: found.warnings,
        ..Tier::new("", found.kind)
    };
    Built { tier, port: found.port }
}

/// The file system as a hop, with its compression when it has one.
pub(crate) fn file_system_hop(entry: &Mounted) -> Hop {
    let fs = &entry.mount.fs;
    let kind = if fs == "btrfs" { "btrfs" } else { "file-system" };
    let detail = entry.mount.compression.as_ref().map(|algorithm| format!("compresses with {algorithm}"));
    Hop { detail, ..unrated(fs.clone(), kind) }
}

/// What kind of layer a device is.
struct Layer {
    name: String,
    hop: &'static str,
    kind: TierKind,
    /// Members work at the same time.
    parallel: bool,
}

impl Layer {
    fn of(root: &Root, disk: &Disk) -> Layer {
        let level = root.word(disk.dir.join("md/level"));
        if level.is_some() || disk.name.starts_with("md") {
            let level = level.unwrap_or_else(|| "md".to_owned());
            return Layer { parallel: level != "linear", name: level, hop: "md", kind: TierKind::Md };
        }
        let uuid = root.word(disk.dir.join("dm/uuid")).unwrap_or_default();
        // The prefix tells who made a mapping (libdevmapper's convention).
        let (name, hop) = match uuid.split('-').next().unwrap_or("") {
            "CRYPT" => ("dm-crypt", "dm-crypt"),
            "LVM" => ("LVM", "dm"),
            "mpath" => ("multipath", "dm"),
            "DMRAID" => ("dm-raid", "dm"),
            _ if disk.name.starts_with("bcache") => ("bcache", "bcache"),
            _ => ("device mapper", "dm"),
        };
        let kind = if hop == "bcache" { TierKind::Block } else { TierKind::Dm };
        Layer { name: name.to_owned(), hop, kind, parallel: name == "dm-raid" || name == "multipath" }
    }
}

/// The member with the lowest known ceiling, else the first.
fn slowest(members: &[Built]) -> Option<&Built> {
    let known = members.iter().filter(|member| !member.tier.ceiling.is_unknown());
    known.min_by(|a, b| rate(a).total_cmp(&rate(b))).or(members.first())
}

fn rate(member: &Built) -> f64 {
    member.tier.ceiling.get().map_or(0.0, |ceiling| ceiling.practical_mbps.1)
}

/// The most that several members let through. Working in parallel their ceilings add up, those behind one USB port only to that
/// port's; otherwise each byte lies on one of them, so the fastest bounds it. None when a member's is unknown.
fn together(members: &[Built], parallel: bool) -> Option<Ceiling> {
    let ceilings: Vec<&Ceiling> = members.iter().map(|member| member.tier.ceiling.get()).collect::<Option<_>>()?;
    if !parallel {
        return ceilings.into_iter().max_by(|a, b| a.practical_mbps.1.total_cmp(&b.practical_mbps.1)).cloned();
    }
    let mut groups: BTreeMap<String, Vec<(&Built, &Ceiling)>> = BTreeMap::new();
    for (member, ceiling) in members.iter().zip(ceilings) {
        let key = member
            .port
            .as_ref()
            .map_or_else(|| format!("device {}", member.tier.name), |port| format!("port {}", port.name));
        groups.entry(key).or_default().push((member, ceiling));
    }
    let mut sum = Ceiling { encoded_mbps: 0.0, practical_mbps: (0.0, 0.0), hop: String::new() };
    let mut names = Vec::new();
    for group in groups.values() {
        let add = |rate: &dyn Fn(&Ceiling) -> f64| group.iter().map(|(_, ceiling)| rate(ceiling)).sum::<f64>();
        let shared = group[0].0.port.as_ref().filter(|_| group.len() > 1);
        let port = shared.and_then(|port| Some((port.practical_mbps?, port.encoded_mbps?)));
        let ((low, high), encoded) = port.unwrap_or(((f64::MAX, f64::MAX), f64::MAX));
        sum.practical_mbps.0 += add(&|c| c.practical_mbps.0).min(low);
        sum.practical_mbps.1 += add(&|c| c.practical_mbps.1).min(high);
        sum.encoded_mbps += add(&|c| c.encoded_mbps).min(encoded);
        names.push(match shared {
            Some(port) => format!("shared {}", port.link.as_deref().unwrap_or("USB port")),
            None => group.iter().map(|(_, ceiling)| ceiling.hop.clone()).collect::<Vec<_>>().join(" + "),
        });
    }
    sum.hop = names.join(" + ");
    Some(sum)
}
