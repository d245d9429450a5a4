//! USB: the negotiated speed of each link from the root hub to the disk, the driver, and what the device could do elsewhere.

use super::Connection;
use super::chain::{Chain, Node};
use crate::block::Disk;
use crate::ceiling::{self, unrated};
use crate::model::{Hop, Warning};
use crate::root::Root;
use std::path::Path;

/// Descriptor types of the USB 3.2 specification, table 9-6, and of its device capabilities, table 9-14.
const DEVICE_CAPABILITY: u8 = 0x10;
const CAPABILITY_SUPERSPEED: u8 = 0x03;
const CAPABILITY_SUPERSPEED_PLUS: u8 = 0x0a;
const CAPABILITY_CONTAINER_ID: u8 = 0x04;
/// USB Attached SCSI: interface class 8, subclass 6, protocol 0x62.
const UAS_INTERFACE: [u8; 3] = [0x08, 0x06, 0x62];

/// One USB port of the machine, with the link that all that hangs on it shares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Port {
    /// `4-1`: bus 4, port 1.
    pub(crate) name: String,
    /// Rate of the port's link after the line code, in MB/s.
    pub(crate) encoded_mbps: Option<f64>,
    /// After the protocol, in MB/s.
    pub(crate) practical_mbps: Option<(f64, f64)>,
    /// The port's link as people call it.
    pub(crate) link: Option<String>,
}

/// Adds a hop for each hub and one for the device.
pub(super) fn add(root: &Root, disk: &Disk, chain: &Chain, found: &mut Connection) {
    let devices: Vec<&Node> = chain.usb.iter().filter(|node| !node.name.starts_with("usb")).collect();
    let Some((device, hubs)) = devices.split_last() else { return };
    let driver = driver(root, chain);
    for hub in hubs {
        let mut hop = match link(root, hub) {
            Some(link) => Hop { name: format!("USB hub, {}", link.name), kind: "usb-hub".to_owned(), ..link },
            None => unrated("USB hub", "usb-hub"),
        };
        hop.detail = Some(described(root, hub));
        // The article's 20 µs are those of the whole way; they stand on the device's own link.
        hop.transit_us = None;
        found.hops.push(hop);
    }
    let mut hop = link(root, device).unwrap_or_else(|| unrated("USB", "usb"));
    let at = Some(device.name.as_str()).filter(|name| !name.is_empty());
    let detail: Vec<&str> = at.into_iter().chain(driver.as_deref()).collect();
    hop.detail = (!detail.is_empty()).then(|| detail.join(", "));
    hop.could_be = could_be(root, device);
    found.port = devices.first().filter(|node| !node.name.is_empty()).map(|first| {
        let shared = link(root, first);
        Port {
            name: first.name.clone(),
            encoded_mbps: shared.as_ref().and_then(|hop| hop.encoded_mbps),
            practical_mbps: shared.as_ref().and_then(|hop| hop.practical_mbps),
            link: shared.map(|hop| hop.name),
        }
    });
    found.warnings.extend(usb3_at_usb2(root, disk, device, hubs, &hop));
    found.warnings.extend(not_uas(root, disk, device, driver.as_deref(), &hop));
    found.hops.push(hop);
}

/// What sysfs's `speed` says, in Mbit/s, with the lanes where USB 3.2 uses two.
fn link(root: &Root, node: &Node) -> Option<Hop> {
    let mbit = mbit(root, node)?;
    let lanes = node.word(root, "tx_lanes").and_then(|lanes| lanes.parse().ok()).unwrap_or(1);
    ceiling::usb(mbit, lanes)
}

fn mbit(root: &Root, node: &Node) -> Option<f64> {
    node.word(root, "speed")?.split_whitespace().next()?.parse().ok()
}

/// Address and product of a hub.
fn described(root: &Root, node: &Node) -> String {
    let product = node.word(root, "product");
    [Some(node.name.clone()), product]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// `uas` or `usb-storage`: the interface's driver, else the SCSI host's name.
fn driver(root: &Root, chain: &Chain) -> Option<String> {
    let interface = chain.usb_interface.as_ref();
    let linked = interface.and_then(|dir| root.link_name(dir.join("driver")));
    let event = || {
        let text = root.word(interface?.join("uevent"))?;
        text.lines().find_map(|line| line.strip_prefix("DRIVER=")).map(str::to_owned)
    };
    let host = || {
        let dir = chain.scsi_host.as_ref()?;
        let name = dir.file_name()?;
        let class = Path::new("/sys/class/scsi_host").join(name).join("proc_name");
        root.word(dir.join("scsi_host").join(name).join("proc_name")).or_else(|| root.word(class))
    };
    let bare = || {
        let dir = chain.usb.last()?.dirs.first()?.join("driver");
        root.link_name(&dir).or_else(|| root.word(&dir)).filter(|name| name == "uas" || name == "usb-storage")
    };
    linked.or_else(event).or_else(host).or_else(bare)
}

/// The best speed that the device announces, when it is more than what was negotiated.
fn could_be(root: &Root, device: &Node) -> Option<String> {
    let now = mbit(root, device)?;
    let best = announced(root, device).map(|(mbit, _)| mbit)?;
    if best > now { ceiling::usb_name(best) } else { None }
}

/// Mbit/s that the device says it can do, and where it says so: its capabilities, else the version of its descriptor (a
/// USB 3 device says 2.10 when it works at 480 Mbit/s: USB 3.2 specification, section 9.6.1), else its name.
fn announced(root: &Root, device: &Node) -> Option<(f64, String)> {
    if let Some(mbit) = device.bytes(root, "bos_descriptors", 4096).and_then(|bos| superspeed(&bos)) {
        return Some((mbit, format!("{}/bos_descriptors: SuperSpeed", device.path())));
    }
    let version: Option<f64> = device.word(root, "version").and_then(|text| text.parse().ok());
    if version.is_some_and(|version| version >= 2.1) {
        return Some((5000.0, device.evidence(root, "version")?));
    }
    let names_usb3 = |text: &String| {
        let text = text.to_ascii_lowercase().replace([' ', '-', '_'], "");
        text.contains("usb3") || text.contains("superspeed")
    };
    device.word(root, "product").filter(names_usb3)?;
    Some((5000.0, device.evidence(root, "product")?))
}

/// The best rate of the Binary device Object Store: 5000, 10 000, or none.
fn superspeed(bos: &[u8]) -> Option<f64> {
    capabilities(bos)
        .filter_map(|capability| match capability.get(2) {
            Some(&CAPABILITY_SUPERSPEED) => Some(5000.0),
            Some(&CAPABILITY_SUPERSPEED_PLUS) => Some(10000.0),
            _ => None,
        })
        .reduce(f64::max)
}

/// The descriptors of a list that are device capabilities; each begins with its length and type.
fn capabilities(descriptors: &[u8]) -> impl Iterator<Item = &[u8]> {
    each(descriptors).filter(|one| one.get(1) == Some(&DEVICE_CAPABILITY))
}

fn each(mut descriptors: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = usize::from(*descriptors.first()?);
        if length < 2 || length > descriptors.len() {
            return None;
        }
        let (one, rest) = descriptors.split_at(length);
        descriptors = rest;
        Some(one)
    })
}

/// The capabilities with the container identifier, which is unique to one device, set to zero.
pub(crate) fn without_container_id(bos: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bos.len());
    for one in each(bos) {
        let unique = one.get(1) == Some(&DEVICE_CAPABILITY) && one.get(2) == Some(&CAPABILITY_CONTAINER_ID);
        let kept = if unique { one.len().min(4) } else { one.len() };
        out.extend_from_slice(&one[..kept]);
        out.resize(out.len() + one.len() - kept, 0);
    }
    out
}

/// The finding: a USB 3 disk on a link of 480 Mbit/s, and what is likely between.
fn usb3_at_usb2(root: &Root, disk: &Disk, device: &Node, hubs: &[&Node], hop: &Hop) -> Option<Warning> {
    let now = mbit(root, device)?;
    let (best, said) = announced(root, device)?;
    if now > 480.0 || best < 5000.0 {
        return None;
    }
    let is_usb2_hub = |hub: &&&Node| {
        let version: Option<f64> = hub.word(root, "version").and_then(|text| text.parse().ok());
        version.is_some_and(|version| version < 2.1)
    };
    let reason = if let Some(hub) = hubs.iter().find(is_usb2_hub) {
        format!("the hub {} in between is a USB 2 hub", described(root, hub))
    } else if has_usb3_bus(root) {
        "this machine has a USB 3 bus: look at the port, the cable and the plug".to_owned()
    } else {
        "this machine shows no USB 3 bus, so no port of it does more".to_owned()
    };
    let (low, high) = hop.practical_mbps.unwrap_or((1.0, 1.2));
    // The rate that the device announces, on a link of its own.
    let could = ceiling::usb(best, 1).and_then(|hop| hop.practical_mbps);
    let instead = could.map(|(low, high)| format!(" instead of {low}–{high}")).unwrap_or_default();
    let name = ceiling::usb_name(now).unwrap_or_else(|| format!("{now} Mbit/s"));
    Some(Warning {
        id: "usb3-at-usb2".to_owned(),
        text: format!(
            "{} is a USB 3 device that has negotiated {name}: {low}–{high} MB/s{instead}; {reason}.",
            disk.name
        ),
        evidence: [device.evidence(root, "speed"), Some(said)].into_iter().flatten().collect::<Vec<_>>().join("; "),
    })
}

/// A root hub of 5 Gbit/s or more.
fn has_usb3_bus(root: &Root) -> bool {
    let buses = root.names("/sys/bus/usb/devices").into_iter().filter(|name| name.starts_with("usb"));
    buses.into_iter().any(|bus| {
        let speed = root.number::<f64>(format!("/sys/bus/usb/devices/{bus}/speed"));
        speed.get().is_some_and(|mbit| *mbit >= 5000.0)
    })
}

/// `usb-storage` sends one command at a time; UAS queues them.
fn not_uas(root: &Root, disk: &Disk, device: &Node, driver: Option<&str>, hop: &Hop) -> Option<Warning> {
    let offers_uas = device.bytes(root, "descriptors", 4096).is_some_and(|bytes| {
        each(&bytes).any(|one| one.get(1) == Some(&0x04) && one.get(5..8) == Some(&UAS_INTERFACE[..]))
    });
    let fast = mbit(root, device)? >= 5000.0;
    if driver != Some("usb-storage") || !(fast || offers_uas) {
        return None;
    }
    let ids = device.word(root, "idVendor").zip(device.word(root, "idProduct"));
    let quirk = ids.map(|(vendor, product)| format!("{vendor}:{product}:")).and_then(|id| {
        let cmdline = root.word("/proc/cmdline")?;
        cmdline
            .split_whitespace()
            .find(|word| word.starts_with("usb-storage.quirks=") && word.contains(&id))
            .map(str::to_owned)
    });
    let reason = match (&quirk, offers_uas) {
        (Some(quirk), _) => format!("the kernel command line says so ({quirk})"),
        (None, true) => "the device offers UAS, so a quirk of the kernel forbids it".to_owned(),
        (None, false) => "the device offers no UAS, or a quirk of the kernel forbids it".to_owned(),
    };
    Some(Warning {
        id: "usb-storage-not-uas".to_owned(),
        text: format!(
            "{} uses usb-storage instead of uas on {}, one command at a time whatever the queue depth: {reason}.",
            disk.name, hop.name
        ),
        evidence: format!("{}: driver usb-storage", device.path()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BOS as a USB 3 enclosure sends it: USB 2 extension, SuperSpeed, container identifier.
    fn bos() -> Vec<u8> {
        let mut bos = vec![5, 0x0f, 42, 0, 3, 7, 0x10, 2, 2, 0, 0, 0, 10, 0x10, 3, 0, 0x0e, 0, 1, 10, 0xff, 7];
        bos.extend([20, 0x10, 4, 0]);
        bos.extend([0xab; 16]);
        bos
    }

    #[test]
    fn capabilities_of_a_device() {
        assert_eq!(superspeed(&bos()), Some(5000.0));
        assert_eq!(superspeed(&bos()[..10]), None, "cut off in the middle");
        assert_eq!(superspeed(&[0, 0, 0]), None);
    }

    #[test]
    fn a_container_identifier_does_not_survive() {
        let scrubbed = without_container_id(&bos());
        assert_eq!(scrubbed.len(), bos().len());
        assert!(!scrubbed.contains(&0xab));
        assert_eq!(superspeed(&scrubbed), Some(5000.0));
    }
}
