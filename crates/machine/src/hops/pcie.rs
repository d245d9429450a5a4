//! PCIe: every link between root complex and device, and which end of them is the one that holds the device back.
//!
//! An upstream port or an endpoint reports the link above it, a root port or a downstream port the one below it. From the
//! device upwards they alternate: endpoint, the port in front of it, that switch's upstream port, the port in front of it, ….

use super::Connection;
use super::chain::{Chain, Node};
use crate::block::Disk;
use crate::ceiling;
use crate::model::{Hop, Warning};
use crate::root::Root;
use std::path::Path;

/// Makers of devices that exist in software: QEMU, Red Hat's virtio, VMware, VirtualBox, Hyper-V, Amazon, Google. The links that
/// they report are decoration; no byte crosses them.
const VIRTUAL: [&str; 7] = ["0x1b36", "0x1af4", "0x15ad", "0x80ee", "0x1414", "0x1d0f", "0x1ae0"];

/// Generation and lanes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Width {
    generation: u32,
    lanes: u32,
}

impl Width {
    fn read(root: &Root, node: &Node, which: &str) -> Option<Width> {
        let generation = ceiling::pcie_generation(&node.word(root, &format!("{which}_link_speed"))?)?;
        let lanes = node.word(root, &format!("{which}_link_width"))?.trim_start_matches('x').parse().ok()?;
        // Zero lanes: no link; 63 and 255: a device that hides its link.
        (1..=32).contains(&lanes).then_some(Width { generation, lanes })
    }

    fn name(self) -> String {
        ceiling::pcie_name(self.generation, self.lanes)
    }

    /// After the line code, in MB/s.
    fn mbps(self) -> f64 {
        ceiling::pcie(self.generation, self.lanes, None).encoded_mbps.unwrap_or(0.0)
    }

    /// What two ends agree on: the lower of each.
    fn lower(self, other: Width) -> Width {
        Width { generation: self.generation.min(other.generation), lanes: self.lanes.min(other.lanes) }
    }
}

/// One link with both its ends.
struct Link<'a> {
    above: Option<&'a Node>,
    below: &'a Node,
    now: Width,
}

/// Adds the hops of the chain's PCIe links, and what limits them.
pub(super) fn add(root: &Root, disk: &Disk, chain: &Chain, found: &mut Connection) {
    let platform = chain.pci.is_empty().then_some(chain.platform_pcie.as_deref()).flatten();
    let nodes = platform.map_or_else(|| chain.pci.clone(), |controller| beside(root, controller));
    let maker = nodes.last().and_then(|device| device.word(root, "vendor"));
    if maker.is_some_and(|maker| VIRTUAL.contains(&maker.as_str())) {
        return;
    }
    let links = links(root, &nodes);
    for (index, link) in links.iter().enumerate() {
        let last = index + 1 == links.len();
        found.hops.push(hop(root, link, last));
    }
    // A controller's own limits are the board's business; the finding is a disk that could do more.
    if chain.usb.is_empty() && chain.ata.is_none() && chain.card.is_none() && platform.is_none() {
        found.warnings.extend(limit(root, disk, &nodes, &links, found.hops.last_mut()));
    }
}

/// The PCI functions below a platform's controller, when the device's path leaves it for the platform bus.
fn beside(root: &Root, controller: &Path) -> Vec<Node> {
    let pci = |dir: &Path, wanted: &dyn Fn(&str) -> bool| {
        root.names(dir).into_iter().find(|name| wanted(name)).map(|n| dir.join(n))
    };
    let is_function = |name: &str| name.matches(':').count() == 2 && name.contains('.');
    let mut nodes = Vec::new();
    let mut at =
        pci(controller, &|name| name.starts_with("pci") && name.contains(':')).and_then(|bus| pci(&bus, &is_function));
    while let Some(dir) = at.filter(|_| nodes.len() < 8) {
        let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned();
        at = pci(&dir, &is_function);
        nodes.push(Node { name, dirs: vec![dir] });
    }
    nodes
}

/// From the device upwards, each node whose own link leads up, with the port in front of it.
fn links<'a>(root: &Root, nodes: &'a [Node]) -> Vec<Link<'a>> {
    let mut links = Vec::new();
    let mut rest = nodes;
    while let Some((below, front)) = rest.split_last() {
        let above = front.last();
        let own = Width::read(root, below, "current");
        let facing = above.and_then(|port| Width::read(root, port, "current"));
        if let Some(now) = own.or(facing) {
            links.push(Link { above, below, now });
        }
        rest = front.split_last().map_or(&[], |(_, upper)| upper);
    }
    links.reverse();
    links
}

fn hop(root: &Root, link: &Link, last: bool) -> Hop {
    let payload = link.below.bytes(root, "config", 256).and_then(|config| payload(&config));
    let mut hop = ceiling::pcie(link.now.generation, link.now.lanes, payload);
    let ends: Vec<&str> = link.above.iter().map(|node| node.name.as_str()).chain([link.below.name.as_str()]).collect();
    hop.detail = Some(ends.join(" – "));
    if !last {
        hop.name = format!("{} to switch", link.now.name());
        hop.kind = "pcie-bridge".to_owned();
        hop.detail = Some(format!("{}, {}", ends.join(" – "), maker(root, link.below)));
        // The article's time is that of the whole way; it stands on the device's own link.
        hop.transit_us = None;
    }
    hop
}

/// The negotiated payload in bytes from the first 256 bytes of configuration space: capability 0x10, Device Control,
/// bits 7:5. Without root only 64 bytes are readable, which end before the capabilities.
fn payload(config: &[u8]) -> Option<u32> {
    let byte = |at: usize| config.get(at).copied();
    let has_capabilities = byte(0x06)? & 0x10 != 0;
    let mut at = usize::from(byte(0x34)?) & !3;
    for _ in 0..48 {
        if !has_capabilities || at < 0x40 {
            return None;
        }
        if byte(at)? == 0x10 {
            let control = u16::from_le_bytes([byte(at + 8)?, byte(at + 9)?]);
            let code = control >> 5 & 7;
            return (code <= 5).then(|| 128 << code);
        }
        at = usize::from(byte(at + 1)?) & !3;
    }
    None
}

/// The finding: the device could do more than its path lets it, and which part of the path that is.
fn limit(root: &Root, disk: &Disk, nodes: &[Node], links: &[Link], hop: Option<&mut Hop>) -> Option<Warning> {
    let device = nodes.last()?;
    // Intel's VMD puts a whole PCI domain behind a function of another one, which is no port of this chain.
    let domain = device.name.split(':').next();
    let nodes = &nodes[nodes.iter().position(|node| node.name.split(':').next() == domain)?..];
    let can = Width::read(root, device, "max")?;
    let now = links.iter().map(|link| link.now).min_by(|a, b| a.mbps().total_cmp(&b.mbps()))?;
    if now.mbps() >= can.mbps() {
        return None;
    }
    if let Some(hop) = hop {
        hop.could_be = Some(can.name());
    }
    let payload = device.bytes(root, "config", 256).and_then(|config| payload(&config));
    let rate = |width: Width| {
        let (low, high) = ceiling::pcie(width.generation, width.lanes, payload).practical_mbps.unwrap_or_default();
        format!("{} ({low}–{high} MB/s)", width.name())
    };
    // A port that does not tell its best is taken at what it does.
    let most = |node: &Node| Width::read(root, node, "max").or_else(|| Width::read(root, node, "current"));
    let (port, switch) = match nodes {
        [port, switch @ .., _] => (most(port), switch),
        _ => (None, &[][..]),
    };
    let tightest = switch.iter().filter_map(|node| Some((node, most(node)?)));
    let tightest = tightest.min_by(|(_, a), (_, b)| a.mbps().total_cmp(&b.mbps()));
    let what = format!("{} links at {}", disk.name, rate(now));
    let limits = |width: Width| width.mbps() <= now.mbps();
    let mut cause = None;
    let (id, text) = match (tightest, port) {
        (Some((node, width)), port) if limits(width) => {
            cause = Some(node);
            let board = match port {
                Some(port) if limits(port) => format!("; the board's port reports no more than {} too", port.name()),
                Some(port) => format!(" and the board's port {}", rate(port.lower(can))),
                None => String::new(),
            };
            let switch = format!("the PCIe switch {} ({})", node.name, maker(root, node));
            let most = width.name();
            let text = format!(
                "{what} because of {switch}, which goes no further than {most}; the device can do {}{board}",
                rate(can)
            );
            ("pcie-switch-limits", text)
        }
        (_, Some(port)) if limits(port) => {
            cause = nodes.first();
            let most = port.name();
            let text =
                format!("{what} because the board's port goes no further than {most}; the device can do {}", rate(can));
            ("pcie-port-limits", text)
        }
        (_, Some(port)) => {
            let text = format!(
                "{what} though the device can do {} and the board's port {}: look at the cable, the contacts and the firmware's setting",
                rate(can),
                port.name()
            );
            ("pcie-link-limits", text)
        }
        (_, None) => ("pcie-link-limits", format!("{what}; the device can do {}", rate(can))),
    };
    Some(Warning { id: id.to_owned(), text: format!("{text}."), evidence: evidence(root, device, cause) })
}

fn evidence(root: &Root, device: &Node, limiting: Option<&Node>) -> String {
    let files = ["current_link_speed", "current_link_width", "max_link_speed", "max_link_width"];
    let of_device = files.iter().filter_map(|file| device.evidence(root, file));
    let of_switch =
        limiting.into_iter().flat_map(|node| files[2..].iter().filter_map(|file| node.evidence(root, file)));
    of_device.chain(of_switch).collect::<Vec<_>>().join("; ")
}

/// Who made a switch, from its PCI identity (the PCI ID repository's names).
fn maker(root: &Root, node: &Node) -> String {
    let vendor = node.word(root, "vendor").unwrap_or_default();
    let device = node.word(root, "device").unwrap_or_default();
    let name = match vendor.as_str() {
        "0x1b21" => "ASMedia",
        "0x10b5" | "0x1000" => "Broadcom PLX",
        "0x12d8" => "Diodes Pericom",
        "0x14e4" => "Broadcom",
        "0x1b4b" | "0x11ab" => "Marvell",
        "0x197b" => "JMicron",
        "0x8086" => "Intel",
        "0x1022" => "AMD",
        "0x104c" => "Texas Instruments",
        "0x111d" => "IDT",
        "0x11f8" => "Microchip",
        "" => return "maker unknown".to_owned(),
        other => return format!("PCI {}:{}", other.trim_start_matches("0x"), device.trim_start_matches("0x")),
    };
    let number = device.trim_start_matches("0x");
    // ASMedia's device numbers are the chips' own: 1182 is the ASM1182e.
    match name {
        "ASMedia" if number.len() == 4 => format!("ASMedia ASM{number}"),
        _ if number.is_empty() => name.to_owned(),
        _ => format!("{name} {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_from_configuration_space() {
        let mut config = vec![0u8; 256];
        config[0x06] = 0x10;
        config[0x34] = 0x40;
        config[0x40] = 0x01;
        config[0x41] = 0x70;
        config[0x70] = 0x10;
        config[0x78] = 1 << 5 | 0x0f;
        assert_eq!(payload(&config), Some(256));
        assert_eq!(payload(&config[..64]), None, "what an ordinary user may read");
        config[0x41] = 0x40;
        assert_eq!(payload(&config), None, "a list that goes in circles");
        assert_eq!(payload(b""), None);
    }
}
