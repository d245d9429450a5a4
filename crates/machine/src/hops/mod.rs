//! From a block device's place in sysfs to the chain of links between CPU and medium. Each bus has its file; here stands
//! which of them a device's chain goes through, in the order CPU → medium.

mod card;
mod chain;
mod pcie;
mod sata;
mod usb;

pub(crate) use usb::{Port, without_container_id};

use crate::block::Disk;
use crate::ceiling::unrated;
use crate::model::{Hop, TierKind, Warning};
use crate::root::Root;
use basics::Known;
use chain::Chain;

/// How a device is connected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Connection {
    pub(crate) kind: TierKind,
    pub(crate) hops: Vec<Hop>,
    pub(crate) model: Known<String>,
    /// Application class and command queue of a card.
    pub(crate) card: Option<String>,
    /// The USB port of the machine that it hangs on.
    pub(crate) port: Option<Port>,
    pub(crate) warnings: Vec<Warning>,
}

/// The connection of a disk that is a piece of hardware (or that a hypervisor presents as one).
pub(crate) fn connection(root: &Root, disk: &Disk) -> Connection {
    let chain = Chain::of(root, disk);
    let mut found = Connection {
        kind: TierKind::Block,
        hops: Vec::new(),
        model: model(root, disk),
        card: None,
        port: None,
        warnings: Vec::new(),
    };
    if chain.virtio.is_none() {
        pcie::add(root, disk, &chain, &mut found);
    }
    if !chain.usb.is_empty() {
        found.kind = TierKind::Usb;
        // USB's published transit time is that of the whole way, its controller's PCIe link included.
        found.hops.iter_mut().for_each(|hop| hop.transit_us = None);
        usb::add(root, disk, &chain, &mut found);
    } else if let Some(card) = chain.card.as_ref() {
        card::add(root, disk, card, chain.card_host.as_ref(), &mut found);
    } else if let Some(port) = chain.ata.as_ref() {
        found.kind = TierKind::Sata;
        sata::add(root, port, &mut found);
    } else if let Some(device) = chain.virtio.as_ref() {
        found.kind = TierKind::Virtio;
        found.hops.push(Hop { detail: Some(device.name.clone()), ..unrated("virtio", "virtio") });
    } else if disk.name.starts_with("nvme") {
        found.kind = TierKind::Nvme;
        if found.hops.is_empty() {
            found.hops.push(unrated("NVMe", "nvme"));
        }
    } else if disk.name.starts_with("mmcblk") {
        found.kind = TierKind::Sd;
        found.hops.push(unrated("SD", "sd"));
    } else if disk.name.starts_with("vd") {
        found.kind = TierKind::Virtio;
        found.hops.push(unrated("virtio", "virtio"));
    } else if root.word(disk.dir.join("device/vendor")).as_deref() == Some("ATA") {
        found.kind = TierKind::Sata;
        found.hops.push(unrated("SATA", "sata"));
    } else if let Some(bus) = chain.other.or(disk.name.starts_with("xvd").then_some("Xen block")) {
        found.hops.push(unrated(bus, "block"));
    }
    found
}

/// Vendor and model as the device says, without a serial number: SCSI and ATA have both, NVMe and virtual disks a model.
fn model(root: &Root, disk: &Disk) -> Known<String> {
    let word = |name: &str| {
        let class = disk.name.starts_with("nvme").then(|| chain::nvme_class(&disk.name));
        let places = [Some(disk.dir.join("device")), class];
        let text = places.into_iter().flatten().find_map(|dir| root.word(dir.join(name)))?;
        Some(squeezed(&text))
    };
    let vendor = word("vendor").filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
    match (vendor, word("model")) {
        (Some(vendor), Some(model)) if !model.starts_with(&vendor) => Known::Is(format!("{vendor} {model}")),
        (_, Some(model)) => Known::Is(model),
        (vendor, None) => Known::or_not_reported(vendor),
    }
}

/// With single spaces: SCSI pads its strings.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
