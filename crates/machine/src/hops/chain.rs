//! Which buses a device's place in sysfs leads through. The kernel's own layout says it in the path
//! (`/sys/devices/…/0000:01:00.0/…/usb2/2-1/2-1:1.0/host0/…/block/sda`); trees made by hand may have folders instead of
//! links, or keep the attributes only below `/sys/bus`, so each node remembers every folder that may describe it.

use crate::block::Disk;
use crate::root::Root;
use std::path::{Path, PathBuf};

/// Folders looked through at most to find a device in a tree without links below `/sys/block`.
const SEARCH_LIMIT: usize = 20_000;
/// PCIe buses between CPU and device at most (there are 256 bus numbers).
const MAX_BRIDGES: usize = 32;

/// One device on the way, with the folders that may hold its attributes, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) dirs: Vec<PathBuf>,
}

impl Node {
    fn new(name: &str, dir: &Path, bus: Option<&str>) -> Self {
        let mut dirs = vec![dir.to_owned()];
        dirs.extend(bus.map(|bus| Path::new(bus).join(name)));
        Node { name: name.to_owned(), dirs }
    }

    /// The first folder's attribute of this name that says something.
    pub(super) fn word(&self, root: &Root, file: &str) -> Option<String> {
        self.dirs.iter().find_map(|dir| root.word(dir.join(file)))
    }

    /// The attribute with its path, for evidence.
    pub(super) fn evidence(&self, root: &Root, file: &str) -> Option<String> {
        self.dirs.iter().find_map(|dir| {
            let path = dir.join(file);
            Some(format!("{}: {}", path.display(), root.word(&path)?))
        })
    }

    /// First bytes of a binary attribute.
    pub(super) fn bytes(&self, root: &Root, file: &str, limit: u64) -> Option<Vec<u8>> {
        self.dirs.iter().find_map(|dir| root.bytes(dir.join(file), limit).ok().filter(|bytes| !bytes.is_empty()))
    }

    /// Where the attribute would be.
    pub(super) fn path(&self) -> String {
        self.dirs.first().map_or_else(|| self.name.clone(), |dir| dir.display().to_string())
    }
}

/// The buses on the way to one device, each in the order CPU → medium.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Chain {
    /// PCI functions: root port, switch ports, the device.
    pub(super) pci: Vec<Node>,
    /// A platform's PCIe controller whose PCI devices are not on the path (the Pi 5's RP1 hangs on one).
    pub(super) platform_pcie: Option<PathBuf>,
    /// Root hub, hubs, the device.
    pub(super) usb: Vec<Node>,
    /// Folder of the USB interface that is the disk.
    pub(super) usb_interface: Option<PathBuf>,
    /// `host0` of SCSI.
    pub(super) scsi_host: Option<PathBuf>,
    pub(super) ata: Option<Node>,
    pub(super) card_host: Option<Node>,
    pub(super) card: Option<Node>,
    pub(super) virtio: Option<Node>,
    /// A bus without a rate: Xen, Hyper-V, UFS, NBD.
    pub(super) other: Option<&'static str>,
}

impl Chain {
    /// The longest chain that any description of the disk's place gives.
    pub(super) fn of(root: &Root, disk: &Disk) -> Chain {
        let mut places = vec![disk.dir.clone()];
        places.extend(["device", "device/device"].iter().filter_map(|below| root.real(disk.dir.join(below))));
        let mut chain = longest(&places);
        if chain.len() == 0 && disk.name.starts_with("nvme") {
            chain = longest(&nvme_places(root, disk));
        }
        if chain.len() == 0 {
            chain = bare(root, disk);
        }
        if chain.len() == 0 {
            chain = longest(&search(root, &disk.name));
        }
        chain.complete_usb(root);
        chain.complete_pci(root);
        chain
    }

    fn len(&self) -> usize {
        let single = [self.ata.is_some(), self.card.is_some(), self.virtio.is_some(), self.other.is_some()];
        self.pci.len() + self.usb.len() + single.iter().filter(|is| **is).count()
    }

    /// Reads the components of a path without links.
    fn from_path(path: &Path) -> Chain {
        let mut chain = Chain::default();
        let mut dir = PathBuf::new();
        for component in path.components() {
            dir.push(component);
            let Some(name) = component.as_os_str().to_str() else { continue };
            if is_pci_address(name) {
                chain.pci.push(Node::new(name, &dir, Some("/sys/bus/pci/devices")));
            } else if is_root_hub(name) || is_usb_device(name) {
                chain.usb.push(Node::new(name, &dir, Some("/sys/bus/usb/devices")));
            } else if is_usb_interface(name) {
                chain.usb_interface = Some(dir.clone());
            } else if is_numbered(name, "ata") {
                chain.ata = Some(Node::new(name, &dir, None));
            } else if is_numbered(name, "host") {
                chain.scsi_host = Some(dir.clone());
            } else if is_numbered(name, "mmc") {
                chain.card_host = Some(Node::new(name, &dir, Some("/sys/class/mmc_host")));
            } else if name.starts_with("mmc") && name.contains(':') {
                chain.card = Some(Node::new(name, &dir, Some("/sys/bus/mmc/devices")));
            } else if is_numbered(name, "virtio") {
                chain.virtio = Some(Node::new(name, &dir, None));
            } else if name.ends_with(".pcie") || name.starts_with("pcie@") {
                chain.platform_pcie = Some(dir.clone());
            } else if let Some(bus) = other_bus(name) {
                chain.other = Some(bus);
            }
        }
        chain
    }

    /// The names of USB devices hold the whole way: `4-1.2` hangs on hub `4-1`, which hangs on bus `usb4`.
    fn complete_usb(&mut self, root: &Root) {
        let Some(last) = self.usb.last().cloned().filter(|node| is_usb_device(&node.name)) else { return };
        let Some((bus, ports)) = last.name.split_once('-') else { return };
        let mut names = vec![format!("usb{bus}")];
        let ends = ports.match_indices('.').map(|(at, _)| at).chain([ports.len()]);
        names.extend(ends.map(|end| format!("{bus}-{}", &ports[..end])));
        let known = std::mem::take(&mut self.usb);
        self.usb = names
            .iter()
            .map(|name| {
                let mut node = known
                    .iter()
                    .find(|node| &node.name == name)
                    .cloned()
                    .unwrap_or_else(|| Node::new(name, &Path::new("/sys/bus/usb/devices").join(name), None));
                node.dirs.retain(|dir| root.exists(dir));
                node
            })
            .collect();
        if self.pci.is_empty() {
            let bus = root.real(Path::new("/sys/bus/usb/devices").join(&names[0]));
            self.pci = bus.map(|path| Chain::from_path(&path).pci).unwrap_or_default();
        }
    }

    /// A lone PCI function may have its bridges elsewhere: in the path that its address below `/sys/bus` leads to, or in the
    /// bus numbers.
    fn complete_pci(&mut self, root: &Root) {
        if self.pci.len() != 1 {
            return;
        }
        let linked = root.real(Path::new("/sys/bus/pci/devices").join(&self.pci[0].name));
        let linked = linked.map(|path| Chain::from_path(&path).pci).unwrap_or_default();
        if linked.len() > 1 {
            self.pci = linked;
            return;
        }
        let bridges: Vec<(String, u32)> = root
            .names("/sys/bus/pci/devices")
            .into_iter()
            .filter_map(|name| {
                let below = root.number(format!("/sys/bus/pci/devices/{name}/secondary_bus_number")).into_option()?;
                Some((name, below))
            })
            .collect();
        while self.pci.len() < MAX_BRIDGES {
            let Some((domain, bus)) = self.pci.first().and_then(|node| bus_number(&node.name)) else { break };
            let above = bridges.iter().find(|(name, below)| *below == bus && name.starts_with(&domain));
            let Some((name, _)) = above.filter(|(name, _)| self.pci.iter().all(|node| &node.name != name)) else {
                break;
            };
            self.pci.insert(0, Node::new(name, &Path::new("/sys/bus/pci/devices").join(name), None));
        }
    }
}

fn longest(places: &[PathBuf]) -> Chain {
    let mut best = Chain::default();
    for chain in places.iter().map(|path| Chain::from_path(path)) {
        if chain.len() > best.len() {
            best = chain;
        }
    }
    best
}

/// The folder of a namespace's controller: `/sys/class/nvme/nvme0` for `nvme0n1`.
pub(super) fn nvme_class(name: &str) -> PathBuf {
    let number = name.trim_start_matches("nvme");
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    PathBuf::from(format!("/sys/class/nvme/nvme{}", &number[..end]))
}

/// A namespace of a multipath subsystem lies below `/sys/devices/virtual`; its controller tells the PCI address.
fn nvme_places(root: &Root, disk: &Disk) -> Vec<PathBuf> {
    let class = nvme_class(&disk.name);
    let address = root.word(class.join("address")).filter(|address| is_pci_address(address));
    let by_address = address.map(|address| {
        let path = Path::new("/sys/bus/pci/devices").join(address);
        root.real(&path).unwrap_or(path)
    });
    [root.real(&class), root.real(class.join("device")), by_address].into_iter().flatten().collect()
}

/// A hand-made `device` folder that holds the bus's attributes itself.
fn bare(root: &Root, disk: &Disk) -> Chain {
    let mut chain = Chain::default();
    for below in ["device", "device/device"] {
        let dir = disk.dir.join(below);
        let has = |file: &str| root.exists(dir.join(file));
        let named = |keys: &[&str]| {
            let uevent = root.word(dir.join("uevent")).unwrap_or_default();
            let value = |key: &&str| {
                uevent.lines().find_map(|line| line.strip_prefix(*key)?.strip_prefix('=')).map(str::to_owned)
            };
            keys.iter().find_map(value)
        };
        if has("current_link_speed") && chain.pci.is_empty() {
            let name = named(&["PCI_SLOT_NAME"]).or_else(|| root.word(dir.join("address")));
            let name = name.filter(|name| is_pci_address(name)).unwrap_or_default();
            chain.pci.push(Node { name, dirs: vec![dir] });
        } else if has("speed") && chain.usb.is_empty() {
            let name = root
                .word(dir.join("devpath"))
                .zip(root.word(dir.join("busnum")))
                .map(|(path, bus)| format!("{bus}-{path}"));
            chain.usb.push(Node { name: name.unwrap_or_default(), dirs: vec![dir] });
        } else if has("type") && disk.name.starts_with("mmcblk") && chain.card.is_none() {
            let host = disk.name.replace("mmcblk", "mmc");
            chain.card_host = Some(Node::new(&host, &Path::new("/sys/class/mmc_host").join(&host), None));
            chain.card = Some(Node { name: host, dirs: vec![dir] });
        }
    }
    chain
}

/// Every folder below `/sys/devices` of this name, in a tree that has no links to it.
fn search(root: &Root, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if root.is_live() {
        return found;
    }
    let mut open = vec![PathBuf::from("/sys/devices")];
    let mut looked = 0;
    while let Some(dir) = open.pop() {
        looked += 1;
        if looked > SEARCH_LIMIT || dir.components().count() > 40 {
            continue;
        }
        for child in root.names(&dir) {
            let path = dir.join(&child);
            // Links only lead back up or across; what is a folder has itself as real path.
            if root.real(&path).as_deref() != Some(&path) {
                continue;
            }
            if child == name {
                found.push(path);
            } else {
                open.push(path);
            }
        }
    }
    found
}

/// `0000:03:00.0`; the domain may have more digits (Intel VMD: `10000:e1:00.0`).
fn is_pci_address(name: &str) -> bool {
    let mut parts = name.split([':', '.']);
    let hex = |part: Option<&str>, min: usize, max: usize| {
        part.is_some_and(|p| (min..=max).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    name.matches(':').count() == 2
        && name.matches('.').count() == 1
        && hex(parts.next(), 4, 8)
        && hex(parts.next(), 2, 2)
        && hex(parts.next(), 2, 2)
        && hex(parts.next(), 1, 1)
}

/// Domain with its colon, and bus, of an address.
fn bus_number(address: &str) -> Option<(String, u32)> {
    let (domain, rest) = address.split_once(':')?;
    let bus = u32::from_str_radix(rest.split(':').next()?, 16).ok()?;
    Some((format!("{domain}:"), bus))
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn is_root_hub(name: &str) -> bool {
    is_numbered(name, "usb")
}

/// `4-1.2`.
fn is_usb_device(name: &str) -> bool {
    let Some((bus, ports)) = name.split_once('-') else { return false };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    number(bus) && ports.split('.').all(number)
}

/// `4-1.2:1.0`.
fn is_usb_interface(name: &str) -> bool {
    name.split_once(':').is_some_and(|(device, rest)| is_usb_device(device) && rest.contains('.'))
}

fn other_bus(name: &str) -> Option<&'static str> {
    if name.starts_with("vbd-") {
        Some("Xen block")
    } else if name.contains("VMBUS") || name.starts_with("vmbus") {
        Some("Hyper-V storage")
    } else if name.ends_with(".ufshc") || name.ends_with(".ufs") || name.starts_with("ufshc") {
        Some("UFS")
    } else if is_numbered(name, "nbd") {
        Some("network block device")
    } else if is_numbered(name, "session") {
        Some("iSCSI")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_kernel() {
        assert!(is_pci_address("0000:03:00.0") && is_pci_address("10000:e1:00.0"));
        assert!(!is_pci_address("pci0000:00") && !is_pci_address("0:0:0:0") && !is_pci_address("0000:03:00"));
        assert!(is_usb_device("4-1.2.3") && is_usb_device("10-2"));
        assert!(!is_usb_device("4-0:1.0") && !is_usb_device("4-") && !is_usb_device("a-1"));
        assert!(is_usb_interface("4-1.2:1.0") && !is_usb_interface("mmc0:aaaa"));
        assert_eq!(bus_number("0000:1f:00.0"), Some(("0000:".to_owned(), 31)));
    }

    #[test]
    fn a_path_of_the_kernel() {
        let path = "/sys/devices/platform/scb/fd500000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0/usb2/2-1/2-1.4/2-1.4:1.0/host0/target0:0:0/0:0:0:0/block/sda";
        let chain = Chain::from_path(Path::new(path));
        let names = |nodes: &[Node]| nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&chain.pci), ["0000:00:00.0", "0000:01:00.0"]);
        assert_eq!(names(&chain.usb), ["usb2", "2-1", "2-1.4"]);
        assert!(chain.usb_interface.unwrap().ends_with("2-1.4:1.0"));
        assert!(chain.scsi_host.unwrap().ends_with("host0"));
        let chain =
            Chain::from_path(Path::new("/sys/devices/platform/soc/3f202000.mmc/mmc_host/mmc0/mmc0:aaaa/block/mmcblk0"));
        assert_eq!(
            (chain.card_host.unwrap().name, chain.card.unwrap().name),
            ("mmc0".to_owned(), "mmc0:aaaa".to_owned())
        );
    }
}
