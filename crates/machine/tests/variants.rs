//! Small trees, each one thing: buses that the golden machines lack, layouts that people make by hand, older kernels.
#![forbid(unsafe_code)]

mod support;

use basics::Known;
use machine::{TierKind, disks_below, read_with, tier_of_path};
use std::path::Path;
use support::{Tree, disk, hops, kinds, mapping, mounts, practical, tier, warning};

/// A USB device with a SCSI disk, laid out as the kernel does.
fn usb_disk(tree: &Tree, controller: &str, device: &str, name: &str, speed: &str, driver: &str) -> String {
    let (bus, ports) = device.split_once('-').unwrap();
    let mut dir = format!("/sys/devices/{controller}/usb{bus}");
    tree.file(&format!("{dir}/speed"), speed);
    let mut path = String::new();
    for port in ports.split('.') {
        path = if path.is_empty() { port.to_owned() } else { format!("{path}.{port}") };
        dir = format!("{dir}/{bus}-{path}");
        tree.files(&dir, &[("speed", speed), ("version", " 2.00")]);
    }
    let interface = format!("{dir}/{device}:1.0");
    tree.link(&format!("{interface}/driver"), &format!("/sys/bus/usb/drivers/{driver}"));
    let block = format!("{interface}/host0/target0:0:0/0:0:0:0/block/{name}");
    disk(tree, &block, &format!("8:{}", 16 * (name.as_bytes()[2] - b'a')));
    tree.link(&format!("/sys/block/{name}"), &format!("../..{block}"));
    dir
}

fn pci(tree: &Tree, dir: &str, now: Link, most: Link) {
    tree.files(
        dir,
        &[
            ("current_link_speed", now.0),
            ("current_link_width", now.1),
            ("max_link_speed", most.0),
            ("max_link_width", most.1),
        ],
    );
}

/// Speed and width of a link, as sysfs words them.
type Link<'a> = (&'a str, &'a str);

/// An NVMe disk below a chain of PCI functions, each with its present and best link.
fn nvme(tree: &Tree, chain: &[(&str, Link, Link)]) {
    let mut dir = "/sys/devices/pci0000:00".to_owned();
    for (address, now, most) in chain {
        dir = format!("{dir}/{address}");
        pci(tree, &dir, *now, *most);
    }
    let block = format!("{dir}/nvme/nvme0/nvme0n1");
    disk(tree, &block, "259:0");
    tree.link("/sys/block/nvme0n1", &format!("../..{block}"));
}

// ---- PCIe

#[test]
fn gen3_forced_on_a_pi5() {
    let tree = Tree::empty();
    nvme(
        &tree,
        &[
            ("0000:00:00.0", ("8.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "1")),
            ("0000:01:00.0", ("8.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "4")),
        ],
    );
    let machine = tree.read();
    let disk = tier(&machine, "nvme0n1");
    assert_eq!((hops(disk), practical(disk)), (vec!["PCIe Gen3 x1"], (790.0, 910.0)));
    assert!(warning(disk, "pcie-port-limits").unwrap().contains("the board's port goes no further than PCIe Gen3 x1"));
}

#[test]
fn gen4_x4_has_nothing_to_say() {
    let tree = Tree::empty();
    nvme(
        &tree,
        &[
            ("0000:00:06.0", ("16.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "4")),
            ("0000:01:00.0", ("16.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "4")),
        ],
    );
    let machine = tree.read();
    assert_eq!(practical(tier(&machine, "nvme0n1")), (6300.0, 7300.0));
    assert!(tier(&machine, "nvme0n1").warnings.is_empty());
}

#[test]
fn a_link_that_trained_too_low() {
    let tree = Tree::empty();
    nvme(
        &tree,
        &[
            ("0000:00:06.0", ("2.5 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "4")),
            ("0000:01:00.0", ("2.5 GT/s PCIe", "4"), ("8.0 GT/s PCIe", "4")),
        ],
    );
    let machine = tree.read();
    let text = warning(tier(&machine, "nvme0n1"), "pcie-link-limits").unwrap();
    assert!(text.contains("PCIe Gen1 x4 (800–860 MB/s) though the device can do PCIe Gen3 x4"), "{text}");
}

/// The switch can do Gen3; the one lane above it is the board's.
#[test]
fn a_fast_switch_on_a_slow_port() {
    let tree = Tree::empty();
    let (slow, fast) = (("5.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "2"));
    nvme(
        &tree,
        &[
            ("0000:00:00.0", slow, slow),
            ("0000:01:00.0", slow, fast),
            ("0000:02:00.0", fast, fast),
            ("0000:03:00.0", fast, ("8.0 GT/s PCIe", "4")),
        ],
    );
    let machine = tree.read();
    let disk = tier(&machine, "nvme0n1");
    assert_eq!(hops(disk), ["PCIe Gen2 x1 to switch", "PCIe Gen3 x2"]);
    assert_eq!(disk.ceiling.get().unwrap().hop, "PCIe Gen2 x1 to switch");
    assert!(warning(disk, "pcie-port-limits").unwrap().contains("board's port goes no further than PCIe Gen2 x1"));
}

/// Made by hand with the switch as one device, without its best link and in an older kernel's words.
#[test]
fn a_switch_as_one_device() {
    let tree = Tree::empty();
    let base = "/sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0";
    pci(&tree, base, ("5 GT/s", "1"), ("8 GT/s", "1"));
    tree.files(
        &format!("{base}/0000:01:00.0"),
        &[("current_link_speed", "5 GT/s"), ("current_link_width", "x1"), ("vendor", "0x1b21"), ("device", "0x1184")],
    );
    pci(&tree, &format!("{base}/0000:01:00.0/0000:02:00.0"), ("5 GT/s", "1"), ("8 GT/s", "2"));
    disk(&tree, &format!("{base}/0000:01:00.0/0000:02:00.0/nvme/nvme0/nvme0n1"), "259:0");
    tree.link("/sys/block/nvme0n1", &format!("{base}/0000:01:00.0/0000:02:00.0/nvme/nvme0/nvme0n1"));
    let machine = tree.read();
    let disk = tier(&machine, "nvme0n1");
    assert_eq!((practical(disk), disk.ceiling.get().unwrap().hop.as_str()), ((400.0, 430.0), "PCIe Gen2 x1"));
    let text = warning(disk, "pcie-switch-limits").unwrap();
    assert!(text.contains("because of the PCIe switch 0000:01:00.0 (ASMedia ASM1184)"), "{text}");
}

/// QEMU's NVMe says 2.5 GT/s x1 and reads 2 GB/s.
#[test]
fn links_of_virtual_devices_are_no_hops() {
    let tree = Tree::empty();
    let link = ("2.5 GT/s PCIe", "1");
    nvme(&tree, &[("0000:00:03.0", link, ("16.0 GT/s PCIe", "32")), ("0000:01:00.0", link, link)]);
    tree.file("/sys/devices/pci0000:00/0000:00:03.0/0000:01:00.0/vendor", "0x1b36");
    tree.file("/sys/class/nvme/nvme0/model", "QEMU NVMe Ctrl      ");
    disk(&tree, "/sys/block/xvda", "202:0");
    disk(&tree, "/sys/block/sda", "8:0");
    tree.file("/sys/block/sda/device/vendor", "ATA     ");
    let machine = tree.read();
    let virtual_disk = tier(&machine, "nvme0n1");
    assert_eq!((hops(virtual_disk), virtual_disk.ceiling.is_unknown()), (vec!["NVMe"], true));
    assert_eq!(virtual_disk.model, Known::Is("QEMU NVMe Ctrl".to_owned()));
    assert_eq!((hops(tier(&machine, "xvda")), tier(&machine, "sda").kind), (vec!["Xen block"], TierKind::Sata));
}

/// Folders instead of links: the bridges are found by their bus numbers.
#[test]
fn flat_pci_devices() {
    let tree = Tree::empty();
    let bus = "/sys/bus/pci/devices";
    disk(&tree, "/sys/block/nvme0n1", "259:0");
    tree.files("/sys/class/nvme/nvme0", &[("address", "0000:03:00.0"), ("model", "INTEL MEMPEK1W016GA")]);
    for (address, below) in [("0000:00:00.0", "1"), ("0000:01:00.0", "2"), ("0000:02:03.0", "3")] {
        let most = if address == "0000:00:00.0" { "8.0 GT/s PCIe" } else { "5.0 GT/s PCIe" };
        pci(&tree, &format!("{bus}/{address}"), ("5.0 GT/s PCIe", "1"), (most, "1"));
        tree.file(&format!("{bus}/{address}/secondary_bus_number"), below);
    }
    pci(&tree, &format!("{bus}/0000:03:00.0"), ("5.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "2"));
    let machine = tree.read();
    let disk = tier(&machine, "nvme0n1");
    assert_eq!(hops(disk), ["PCIe Gen2 x1 to switch", "PCIe Gen2 x1"]);
    assert!(warning(disk, "pcie-switch-limits").is_some());
}

#[test]
fn attributes_in_the_device_folder_itself() {
    let tree = Tree::empty();
    disk(&tree, "/sys/block/nvme0n1", "259:0");
    pci(&tree, "/sys/block/nvme0n1/device/device", ("8.0 GT/s PCIe", "4"), ("8.0 GT/s PCIe", "4"));
    disk(&tree, "/sys/block/sda", "8:0");
    tree.files("/sys/block/sda/device", &[("speed", "5000"), ("version", " 3.20"), ("driver", "uas"), ("model", "X")]);
    disk(&tree, "/sys/block/mmcblk0", "179:0");
    tree.files("/sys/block/mmcblk0/device", &[("type", "SD"), ("name", "SC32G")]);
    tree.file(
        "/sys/kernel/debug/mmc0/ios",
        "clock:\t\t50000000 Hz\nbus width:\t2 (4 bits)\ntiming spec:\t2 (sd high-speed)\n",
    );
    let machine = tree.read();
    assert_eq!(hops(tier(&machine, "nvme0n1")), ["PCIe Gen3 x4"]);
    assert_eq!((hops(tier(&machine, "sda")), tier(&machine, "sda").kind), (vec!["USB 3 5 Gbit/s"], TierKind::Usb));
    assert_eq!((hops(tier(&machine, "mmcblk0")), tier(&machine, "mmcblk0").kind), (vec!["SD HS"], TierKind::Sd));
}

/// A tree unpacked without links: `/sys/block` holds folders, the way to the disk is searched.
#[test]
fn a_tree_without_links() {
    let tree = Tree::empty();
    disk(&tree, "/sys/block/sda", "8:0");
    let usb = "/sys/devices/platform/axi/1000120000.pcie/1f00300000.usb/xhci-hcd.1/usb4";
    tree.files(&format!("{usb}/4-1"), &[("speed", "5000"), ("version", "3.20")]);
    disk(&tree, &format!("{usb}/4-1/4-1:1.0/host0/target0:0:0/0:0:0:0/block/sda"), "8:0");
    assert_eq!(hops(tier(&tree.read(), "sda")), ["USB 3 5 Gbit/s"]);
}

#[test]
fn a_namespace_of_a_multipath_subsystem() {
    let tree = Tree::empty();
    disk(&tree, "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1", "259:0");
    tree.link("/sys/block/nvme0n1", "../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
    let device = "/sys/devices/pci0000:00/0000:00:06.0/0000:01:00.0";
    pci(&tree, device, ("16.0 GT/s PCIe", "4"), ("16.0 GT/s PCIe", "4"));
    tree.file(&format!("{device}/nvme/nvme0/address"), "0000:01:00.0")
        .link("/sys/class/nvme/nvme0", &format!("../../../{device}/nvme/nvme0"));
    assert_eq!(hops(tier(&tree.read(), "nvme0n1")), ["PCIe Gen4 x4"]);
}

/// Intel VMD: the function in front of the domain is no port of it.
#[test]
fn a_disk_behind_vmd() {
    let tree = Tree::empty();
    let link = ("8.0 GT/s PCIe", "4");
    let vmd = "/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0";
    tree.file("/sys/devices/pci0000:00/0000:00:0e.0/class", "0x010400");
    pci(&tree, vmd, link, link);
    pci(&tree, &format!("{vmd}/10000:e1:00.0"), link, ("16.0 GT/s PCIe", "4"));
    disk(&tree, &format!("{vmd}/10000:e1:00.0/nvme/nvme0/nvme0n1"), "259:0");
    tree.link("/sys/block/nvme0n1", &format!("{vmd}/10000:e1:00.0/nvme/nvme0/nvme0n1"));
    let machine = tree.read();
    assert_eq!(hops(tier(&machine, "nvme0n1")), ["PCIe Gen3 x4"]);
    assert!(warning(tier(&machine, "nvme0n1"), "pcie-port-limits").unwrap().contains("board's port"));
}

#[test]
fn sata_controller_on_one_lane() {
    let tree = Tree::empty();
    let hba = "/sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0";
    pci(
        &tree,
        "/sys/devices/platform/axi/1000110000.pcie/pci0000:00/0000:00:00.0",
        ("5.0 GT/s PCIe", "1"),
        ("5.0 GT/s PCIe", "1"),
    );
    pci(&tree, hba, ("5.0 GT/s PCIe", "1"), ("8.0 GT/s PCIe", "2"));
    tree.file(&format!("{hba}/ata3/link3/ata_link/link3/sata_spd"), "6.0 Gbps");
    disk(&tree, &format!("{hba}/ata3/host2/target2:0:0/2:0:0:0/block/sda"), "8:0");
    tree.link("/sys/block/sda", &format!("{hba}/ata3/host2/target2:0:0/2:0:0:0/block/sda"));
    let machine = tree.read();
    let disk = tier(&machine, "sda");
    assert_eq!((hops(disk), disk.kind), (vec!["PCIe Gen2 x1", "SATA 6 Gbit/s"], TierKind::Sata));
    assert_eq!(disk.ceiling.get().unwrap().hop, "PCIe Gen2 x1");
}

/// Two disks on a dual HAT: the lane above the switch is for both.
#[test]
fn two_disks_behind_one_switch() {
    let tree = Tree::empty();
    let (lane, base) = (("5.0 GT/s PCIe", "1"), "/sys/devices/pci0000:00/0000:00:00.0");
    pci(&tree, base, lane, lane);
    pci(&tree, &format!("{base}/0000:01:00.0"), lane, lane);
    for (index, port) in [(0, "0000:02:03.0"), (1, "0000:02:07.0")] {
        let device = format!("{base}/0000:01:00.0/{port}/0000:0{}:00.0", 3 + index);
        pci(&tree, &format!("{base}/0000:01:00.0/{port}"), lane, lane);
        pci(&tree, &device, lane, ("8.0 GT/s PCIe", "4"));
        disk(&tree, &format!("{device}/nvme/nvme{index}/nvme{index}n1"), &format!("259:{index}"));
        tree.link(&format!("/sys/block/nvme{index}n1"), &format!("../..{device}/nvme/nvme{index}/nvme{index}n1"));
    }
    let machine = tree.read();
    let text = warning(tier(&machine, "nvme1n1"), "pcie-shared-link").unwrap();
    assert!(text.starts_with("nvme0n1 and nvme1n1 share one link (0000:00:00.0 – 0000:01:00.0"), "{text}");
    assert!(text.contains("400–430 MB/s) for all together; apart they could do 860 MB/s"), "{text}");
}

// ---- USB

#[test]
fn usb_generations() {
    for (speed, name, range) in [
        ("12", "USB 1 12 Mbit/s", (1.0, 1.2)),
        ("480", "USB 2 480 Mbit/s", (30.0, 40.0)),
        ("5000", "USB 3 5 Gbit/s", (430.0, 450.0)),
        ("10000", "USB 3.2 10 Gbit/s", (1000.0, 1100.0)),
        ("20000", "USB 3.2 20 Gbit/s", (2100.0, 2200.0)),
    ] {
        let tree = Tree::empty();
        usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-3", "sda", speed, "uas");
        let machine = tree.read();
        assert_eq!((hops(tier(&machine, "sda")), practical(tier(&machine, "sda"))), (vec![name], range));
    }
    let tree = Tree::empty();
    let dir = usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-3", "sda", "10000", "uas");
    tree.files(&dir, &[("tx_lanes", "2"), ("rx_lanes", "2")]);
    assert_eq!(tier(&tree.read(), "sda").ceiling.get().unwrap().encoded_mbps, 1000.0, "Gen1 x2");
}

/// The last article's disk: what it says of itself decides whether 480 Mbit/s is a finding.
#[test]
fn signs_of_usb3_at_480() {
    let bos: Vec<u8> = vec![5, 0x0f, 15, 0, 1, 10, 0x10, 3, 0, 0x0e, 0, 1, 10, 0xff, 7];
    let found = |version: &str, product: &str, bos: &[u8]| {
        let tree = Tree::empty();
        let dir = usb_disk(&tree, "pci0000:00/0000:00:14.0", "1-3", "sda", "480", "usb-storage");
        tree.files(&dir, &[("version", version), ("product", product)]).file(&format!("{dir}/bos_descriptors"), bos);
        warning(tier(&tree.read(), "sda"), "usb3-at-usb2").map(str::to_owned)
    };
    assert!(found(" 2.10", "", b"").unwrap().contains("no USB 3 bus"));
    assert!(found(" 3.20", "", b"").is_some());
    assert!(found(" 2.00", "USB 3.0 SSD", b"").is_some());
    assert!(found(" 2.00", "Disk", &bos).is_some());
    assert!(found(" 2.00", "Disk", b"").is_none(), "a USB 2 disk");
    assert!(found(" 2.01", "Disk", b"").is_none(), "USB 2 with link power management");
}

#[test]
fn a_usb2_hub_in_front_of_a_usb3_disk() {
    let tree = Tree::empty();
    let dir = usb_disk(
        &tree,
        "platform/scb/fd500000.pcie/pci0000:00/0000:00:00.0/0000:01:00.0",
        "1-1.3",
        "sda",
        "480",
        "usb-storage",
    );
    tree.file(&format!("{dir}/version"), " 2.10");
    let machine = tree.read();
    assert!(warning(tier(&machine, "sda"), "usb3-at-usb2").unwrap().contains("the hub 1-1 in between is a USB 2 hub"));
    assert_eq!(kinds(tier(&machine, "sda")), ["usb-hub", "usb"]);
}

#[test]
fn usb_storage_and_its_quirk() {
    let tree = Tree::empty();
    let dir = usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-1", "sda", "5000", "usb-storage");
    tree.files(&dir, &[("idVendor", "152d"), ("idProduct", "0578")]);
    assert!(warning(tier(&tree.read(), "sda"), "usb-storage-not-uas").unwrap().contains("offers no UAS"));
    // Interface 0, alternate setting 1: mass storage, SCSI, UAS.
    tree.file(&format!("{dir}/descriptors"), [9u8, 4, 0, 1, 4, 8, 6, 0x62, 0]);
    assert!(warning(tier(&tree.read(), "sda"), "usb-storage-not-uas").unwrap().contains("the device offers UAS"));
    tree.file("/proc/cmdline", "rootwait usb-storage.quirks=152d:0578:u quiet");
    assert!(
        warning(tier(&tree.read(), "sda"), "usb-storage-not-uas").unwrap().contains("usb-storage.quirks=152d:0578:u")
    );
    let tree = Tree::empty();
    usb_disk(&tree, "pci0000:00/0000:00:14.0", "1-1", "sda", "480", "usb-storage");
    assert!(warning(tier(&tree.read(), "sda"), "usb-storage-not-uas").is_none(), "a stick on USB 2");
}

/// Only the driver's name in the interface's uevent, or in the SCSI host.
#[test]
fn drivers_without_a_link() {
    for (file, content) in
        [("uevent", "DEVTYPE=usb_interface\nDRIVER=uas\n"), ("host0/scsi_host/host0/proc_name", "uas")]
    {
        let tree = Tree::empty();
        let dir = usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-1", "sda", "5000", "uas");
        tree.remove(&format!("{dir}/2-1:1.0/driver")).file(&format!("{dir}/2-1:1.0/{file}"), content);
        assert_eq!(tier(&tree.read(), "sda").hops[0].detail.as_deref(), Some("2-1, uas"), "{file}");
    }
}

/// The attributes only below `/sys/bus/usb/devices`, as folders.
#[test]
fn flat_usb_devices() {
    let tree = Tree::empty();
    for name in ["sda", "sdb"] {
        let device = if name == "sda" { "4-1.1" } else { "4-1.2" };
        let block = format!("/sys/bus/usb/devices/{device}/{device}:1.0/host0/target0:0:0/0:0:0:0/block/{name}");
        disk(&tree, &block, if name == "sda" { "8:0" } else { "8:16" });
        tree.file(&format!("/sys/bus/usb/devices/{device}/speed"), "5000").link(&format!("/sys/block/{name}"), &block);
    }
    tree.file("/sys/bus/usb/devices/4-1/speed", "5000").file("/sys/bus/usb/devices/usb4/speed", "5000");
    let machine = tree.read();
    assert_eq!(hops(tier(&machine, "sda")), ["USB hub, USB 3 5 Gbit/s", "USB 3 5 Gbit/s"]);
    assert!(
        warning(tier(&machine, "sdb"), "usb-shared-port").unwrap().starts_with("sda and sdb share one USB port (4-1,")
    );
}

// ---- cards

fn card(tree: &Tree, kind: &str, name: &str) -> String {
    let host = "/sys/devices/platform/fe330000.mmc";
    let dir = format!("{host}/mmc_host/mmc1/mmc1:0001");
    tree.files(&dir, &[("type", kind), ("name", name), ("manfid", "0x000015")]);
    tree.link(&format!("{host}/mmc_host/mmc1/device"), "../../../fe330000.mmc");
    disk(tree, &format!("{dir}/block/mmcblk1"), "179:0");
    tree.link("/sys/block/mmcblk1", &format!("../..{dir}/block/mmcblk1"));
    dir
}

#[test]
fn emmc_of_an_orange_pi() {
    let tree = Tree::empty();
    let dir = card(&tree, "MMC", "AJTD4R");
    tree.file(&format!("{dir}/cmdq_en"), "1");
    for area in ["mmcblk1boot0", "mmcblk1boot1", "mmcblk1rpmb"] {
        disk(&tree, &format!("/sys/block/{area}"), "179:8");
    }
    tree.file(
        "/sys/kernel/debug/mmc1/ios",
        "clock:\t\t200000000 Hz\nactual clock:\t200000000 Hz\nbus width:\t3 (8 bits)\ntiming spec:\t9 (mmc HS200)\n",
    );
    tree.file("/sys/devices/platform/fe330000.mmc/of_node/mmc-hs400-1_8v", "")
        .file("/sys/devices/platform/fe330000.mmc/of_node/bus-width", [0, 0, 0, 8]);
    let machine = tree.read();
    let disk = tier(&machine, "mmcblk1");
    assert_eq!((disk.kind, hops(disk), kinds(disk)), (TierKind::Emmc, vec!["eMMC HS200"], vec!["emmc"]));
    assert_eq!(disk.hops[0].raw_mbps, Some(200.0));
    assert_eq!(disk.block.as_ref().unwrap().card.as_deref(), Some("command queue on"));
    assert_eq!(disk.model, Known::Is("Samsung AJTD4R".to_owned()));
    assert!(warning(disk, "sd-slow-mode").unwrap().contains("the host can do eMMC HS400"));
    assert_eq!(machine.tiers.len(), 2, "boot areas are no tiers");
}

/// Without root debugfs is closed: the device tree bounds the mode from above, or nothing does.
#[test]
fn a_card_whose_mode_is_for_root_only() {
    let tree = Tree::empty();
    card(&tree, "SD", "SC64G");
    let machine = tree.read();
    assert_eq!((hops(tier(&machine, "mmcblk1")), tier(&machine, "mmcblk1").ceiling.is_unknown()), (vec!["SD"], true));
    tree.file("/sys/devices/platform/fe330000.mmc/of_node/cap-sd-highspeed", "")
        .file("/sys/devices/platform/fe330000.mmc/of_node/sd-uhs-sdr104", "");
    let machine = tree.read();
    assert_eq!(
        (hops(tier(&machine, "mmcblk1")), practical(tier(&machine, "mmcblk1"))),
        (vec!["at most SD SDR104"], (92.0, 99.0))
    );
}

#[test]
fn modes_of_cards() {
    for (timing, clock, width, name, raw) in [
        ("0 (legacy)", 25_000_000, 2, "SD default speed", 12.5),
        ("2 (sd high-speed)", 50_000_000, 2, "SD HS", 25.0),
        ("5 (sd uhs SDR50)", 100_000_000, 2, "SD SDR50", 50.0),
        ("6 (sd uhs SDR104)", 208_000_000, 2, "SD SDR104", 104.0),
        ("6 (sd uhs SDR104)", 150_000_000, 2, "SD SDR104", 75.0),
        ("7 (sd uhs DDR50)", 50_000_000, 2, "SD DDR50", 50.0),
        ("10 (mmc HS400)", 200_000_000, 3, "eMMC HS400", 400.0),
        ("sd uhs SDR104", 200_000_000, 2, "SD SDR104", 100.0),
        ("15 (invalid)", 52_000_000, 2, "SD UHS-II FD156", 195.0),
    ] {
        let tree = Tree::empty();
        card(&tree, if timing.contains("mmc") { "MMC" } else { "SD" }, "X");
        tree.file(
            "/sys/kernel/debug/mmc1/ios",
            format!("clock:\t\t{clock} Hz\nbus width:\t{width} (x)\ntiming spec:\t{timing}\n"),
        );
        let machine = tree.read();
        let hop = &tier(&machine, "mmcblk1").hops[0];
        assert_eq!((hop.name.as_str(), hop.raw_mbps), (name, Some(raw)), "{timing}");
    }
}

// ---- layers

#[test]
fn raid1_of_two_usb_disks() {
    for (second, expected) in [("2-2", (860.0, 900.0)), ("2-1.2", (430.0, 450.0))] {
        let tree = Tree::empty();
        usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-1.1", "sda", "5000", "uas");
        usb_disk(&tree, "pci0000:00/0000:00:14.0", second, "sdb", "5000", "uas");
        let md = "/sys/devices/virtual/block/md0";
        disk(&tree, md, "9:0");
        tree.file(&format!("{md}/md/level"), "raid1").link("/sys/block/md0", "../devices/virtual/block/md0");
        tree.link(&format!("{md}/slaves/sda"), "nowhere").link(&format!("{md}/slaves/sdb"), "nowhere");
        mounts(&tree, &["9:0 / /srv rw - ext4 /dev/md0 rw"]);
        let machine = tree.read();
        let array = tier(&machine, "md0");
        assert_eq!(
            (array.kind, array.hops[0].name.as_str(), practical(array)),
            (TierKind::Md, "raid1", expected),
            "{second}"
        );
        assert_eq!(disks_below(&machine, "md0"), ["md0", "sda", "sdb"]);
        assert_eq!(tier_of_path(&machine, &tree.root(), Path::new("/srv/x")).as_deref(), Some("md0"));
    }
}

#[test]
fn luks_on_lvm() {
    let tree = Tree::empty();
    let dir = usb_disk(&tree, "pci0000:00/0000:00:14.0", "2-1", "sda", "5000", "uas");
    tree.files(
        &format!("{dir}/2-1:1.0/host0/target0:0:0/0:0:0:0/block/sda/sda2"),
        &[("partition", "2"), ("start", "2048"), ("size", "8"), ("dev", "8:2")],
    );
    mapping(&tree, 0, "vg-secret", "LVM-abc", "sda2");
    mapping(&tree, 1, "secret", "CRYPT-LUKS2-abc-secret", "dm-0");
    mounts(&tree, &["0:30 / /home rw - btrfs /dev/mapper/secret rw,compress-force=zstd:1"]);
    tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/mapper/vg-secret partition 100 0 -2\n");
    let machine = tree.read();
    let top = tier(&machine, "dm-1");
    assert_eq!(kinds(top), ["dm-crypt", "dm", "usb"]);
    assert_eq!((top.mounts[0].compression.as_deref(), practical(top)), (Some("zstd:1"), (430.0, 450.0)));
    assert_eq!(disks_below(&machine, "dm-1"), ["dm-1", "dm-0", "sda"]);
    assert_eq!(machine.swaps[0].tier.as_deref(), Some("dm-0"));
}

#[test]
fn a_loop_on_btrfs_and_one_in_memory() {
    let tree = Tree::empty();
    usb_disk(&tree, "pci0000:00/0000:00:14.0", "1-1", "sda", "480", "usb-storage");
    for (number, file) in [(0, "/data/disk.img"), (1, "/dev/shm/disk.img (deleted)")] {
        let dir = format!("/sys/block/loop{number}");
        disk(&tree, &dir, &format!("7:{number}"));
        tree.file(&format!("{dir}/loop/backing_file"), file);
    }
    mounts(
        &tree,
        &[
            "0:30 / /data rw - btrfs /dev/sda rw,compress=zstd:3",
            "0:31 / /dev/shm rw - tmpfs tmpfs rw",
            "7:0 / /mnt rw - ext4 /dev/loop0 rw",
        ],
    );
    let machine = tree.read();
    let disk = tier(&machine, "loop0");
    assert_eq!((disk.kind, kinds(disk), practical(disk)), (TierKind::Loop, vec!["loop", "btrfs", "usb"], (30.0, 40.0)));
    assert_eq!(disk.hops[1].detail.as_deref(), Some("compresses with zstd:3"));
    assert_eq!(disks_below(&machine, "loop0"), ["loop0", "sda"]);
    let memory = tier(&machine, "loop1");
    assert_eq!((memory.below.clone(), kinds(memory)), (vec!["RAM".to_owned()], vec!["loop", "file-system", "memory"]));
    assert_eq!(memory.block.as_ref().unwrap().backing_file.as_deref(), Some(Path::new("/dev/shm/disk.img")));
}

#[test]
fn btrfs_on_two_disks() {
    let tree = Tree::empty();
    disk(&tree, "/sys/block/sda", "8:0");
    disk(&tree, "/sys/block/sdb", "8:16");
    tree.file("/sys/fs/btrfs/features/x", "")
        .file("/sys/fs/btrfs/u/devices/sda/x", "")
        .file("/sys/fs/btrfs/u/devices/sdb/x", "");
    mounts(&tree, &["0:30 / /pool rw - btrfs /dev/sda rw"]);
    let machine = tree.read();
    assert_eq!((tier(&machine, "sda").mounts.len(), tier(&machine, "sdb").mounts.len()), (1, 1));
}

// ---- file systems

#[test]
fn file_systems_without_a_disk() {
    let tree = Tree::empty();
    disk(&tree, "/sys/block/sda", "8:0");
    mounts(
        &tree,
        &[
            "8:0 / /rw rw - ext4 /dev/sda rw",
            "0:30 / / rw - overlay overlay rw,lowerdir=/ro,upperdir=/rw/up,workdir=/rw/work",
            "0:31 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw,lowerdir=/x,upperdir=/y",
            "0:32 / /nas rw - nfs4 nas:/export rw",
            "0:32 /sub /nas2 rw - nfs4 nas:/export rw",
            "0:33 / /tank rw - zfs tank rw",
            "0:34 / /host rw - 9p hostshare rw,trans=virtio",
            "0:35 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
            "0:36 / /run/user/1000/doc rw - fuse.portal portal rw",
            "0:37 / /remote rw - fuse.sshfs me@box:/ rw",
            "0:38 / /tmp rw - tmpfs tmpfs rw,size=1g",
            "0:39 / /dev/shm rw - tmpfs tmpfs rw",
            "8:0 /etc/hosts /etc/hosts rw - ext4 /dev/sda rw",
        ],
    );
    let machine = tree.read();
    let found: Vec<&str> =
        machine.tiers.iter().filter(|t| t.kind == TierKind::FileSystem).map(|t| t.name.as_str()).collect();
    assert_eq!(found, ["/", "/nas", "/tank", "/host", "/remote", "/tmp"]);
    assert_eq!(tier(&machine, "/").below, ["sda"]);
    assert_eq!(tier(&machine, "/nas").mounts.len(), 2);
    let root = tree.root();
    for (path, name) in
        [("/home/x", "/"), ("/nas2/x", "/nas"), ("/tmp/y", "/tmp"), ("/dev/shm/z", "RAM"), ("/rw/z", "sda")]
    {
        assert_eq!(tier_of_path(&machine, &root, Path::new(path)).as_deref(), Some(name), "{path}");
    }
    // Asked for, what it lies on is a tier of its own; what lies on a disk stays that disk's.
    let asked = read_with(&root, &["/dev/shm/z".into(), "/rw/z".into()]);
    assert_eq!(tier(&asked, "/dev/shm").mounts[0].fs, "tmpfs");
    assert_eq!(asked.tiers.len(), machine.tiers.len() + 1);
}

/// Before mountinfo, and where `/proc/self` is a link to a number that a capture does not have.
#[test]
fn other_mount_tables() {
    for table in ["/proc/mounts", "/proc/self/mounts", "/etc/mtab"] {
        let tree = Tree::empty();
        disk(&tree, "/sys/block/sda", "8:0");
        tree.file(table, "/dev/sda / ext4 ro,noatime 0 0\nproc /proc proc rw 0 0\n");
        let machine = tree.read();
        assert_eq!(tier(&machine, "sda").mounts.len(), 1, "{table}");
        assert!(warning(tier(&machine, "sda"), "read-only").is_some());
    }
}

/// `/dev/root` without a device number: the command line tells, by name or by an identifier that a link resolves.
#[test]
fn the_kernels_own_name_of_root() {
    for root in ["/dev/sda1", "PARTUUID=8e27-01"] {
        let tree = Tree::empty();
        disk(&tree, "/sys/block/sda", "8:0");
        tree.files("/sys/block/sda/sda1", &[("partition", "1"), ("start", "2048"), ("size", "8")]);
        tree.link("/dev/disk/by-partuuid/8e27-01", "../../sda1");
        tree.file("/proc/mounts", "/dev/root / ext4 rw 0 0\n")
            .file("/proc/cmdline", format!("quiet root={root} rootwait"));
        assert_eq!(tier(&tree.read(), "sda").mounts.len(), 1, "{root}");
    }
}
