//! Known machines as trees in, machines out. The figures of the articles are asserted one by one; the whole machine is held
//! by a snapshot.
#![forbid(unsafe_code)]

mod support;

use basics::{Bytes, Known};
use machine::{Root, TierKind, disks_below, tier_of_path};
use std::path::Path;
use support::{GOLDEN, golden, hops, kinds, practical, tier, warning};

#[test]
fn golden_machines() {
    for name in GOLDEN {
        let machine = machine::read(&Root::at(golden(name)));
        insta::assert_snapshot!(name, serde_json::to_string_pretty(&machine).unwrap());
    }
}

/// The article: 625 → 500 → 430–450 MB/s and 20 µs on USB 3.
#[test]
fn usb3_of_the_pi5() {
    let machine = machine::read(&Root::at(golden("pi5-optane")));
    for name in ["sda", "sdb", "sdc", "sdd", "sde"] {
        let disk = tier(&machine, name);
        let usb = disk.hops.iter().find(|hop| hop.kind == "usb").unwrap();
        assert_eq!((usb.signal_gbps, usb.encoding.as_deref()), (Some(5.0), Some("8b/10b")));
        assert_eq!((usb.raw_mbps, usb.encoded_mbps), (Some(625.0), Some(500.0)));
        assert_eq!((usb.practical_mbps, usb.transit_us), (Some((430.0, 450.0)), Some(20.0)));
        let ceiling = disk.ceiling.get().unwrap();
        assert_eq!((ceiling.encoded_mbps, ceiling.practical_mbps), (500.0, (430.0, 450.0)));
        assert_eq!(ceiling.hop, "USB 3 5 Gbit/s");
        assert_eq!(disk.hops.iter().filter_map(|hop| hop.transit_us).sum::<f64>(), 20.0);
    }
    assert_eq!(kinds(tier(&machine, "sda")), ["pcie", "usb"]);
    assert_eq!(kinds(tier(&machine, "sdb")), ["pcie", "usb-hub", "usb"]);
}

/// The article: the Optane links at Gen2 x1 because of the switch, 500 → 400–430 MB/s and 1.5 µs.
#[test]
fn optane_behind_the_switch() {
    let machine = machine::read(&Root::at(golden("pi5-optane")));
    let optane = tier(&machine, "nvme0n1");
    assert_eq!(optane.model, Known::Is("INTEL MEMPEK1W016GA".to_owned()));
    assert_eq!(kinds(optane), ["pcie-bridge", "pcie"]);
    let link = &optane.hops[1];
    assert_eq!(link.name, "PCIe Gen2 x1");
    assert_eq!((link.encoded_mbps, link.practical_mbps), (Some(500.0), Some((400.0, 430.0))));
    assert_eq!((link.transit_us, link.could_be.as_deref()), (Some(1.5), Some("PCIe Gen3 x2")));
    assert_eq!(optane.hops.iter().filter_map(|hop| hop.transit_us).sum::<f64>(), 1.5);
    assert_eq!(optane.ceiling.get().unwrap().hop, "PCIe Gen2 x1");
    let text = warning(optane, "pcie-switch-limits").unwrap();
    for part in [
        "PCIe Gen2 x1 (400–430 MB/s)",
        "because of the PCIe switch",
        "ASMedia",
        "device can do PCIe Gen3 x2",
        "board's port PCIe Gen3 x1",
    ] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[test]
fn four_disks_share_a_port() {
    let machine = machine::read(&Root::at(golden("pi5-optane")));
    for name in ["sdb", "sdc", "sdd", "sde"] {
        let text = warning(tier(&machine, name), "usb-shared-port").unwrap();
        assert!(text.starts_with("sdb, sdc, sdd and sde share one USB port (4-1,"), "{text}");
        assert!(text.contains("430–450 MB/s for all together"), "{text}");
    }
    assert_eq!(warning(tier(&machine, "sda"), "usb-shared-port"), None);
}

#[test]
fn the_rest_of_the_pi5() {
    let root = Root::at(golden("pi5-optane"));
    let machine = machine::read(&root);
    assert_eq!(machine.page_size, Known::Is(Bytes(16384)));
    assert_eq!(machine.throttled, Known::Is(vec![]));
    let names: Vec<&str> = machine.tiers.iter().map(|tier| tier.name.as_str()).collect();
    assert_eq!(names, ["RAM", "zram0", "sda", "sdb", "sdc", "sdd", "sde", "nvme0n1", "mmcblk0"]);
    let zram = tier(&machine, "zram0");
    assert_eq!(zram.block.as_ref().unwrap().compression.as_deref(), Some("lz4"));
    assert_eq!((zram.swaps.len(), zram.ceiling.is_unknown()), (1, true));
    let card = tier(&machine, "mmcblk0");
    assert_eq!((card.kind, hops(card)), (TierKind::Sd, vec!["SD SDR104"]));
    assert_eq!(card.block.as_ref().unwrap().card.as_deref(), Some("A1, U1, V10, class 10"));
    let (low, high) = practical(card);
    assert!((low..=high).contains(&92.4), "the article's 88.15 MiB/s are 92.4 MB/s");
    for (path, name) in [
        ("/srv/optane/test.fio", Some("nvme0n1")),
        ("/srv/optane", Some("nvme0n1")),
        ("/srv/opt", Some("mmcblk0")),
        ("/home/pi/not/there/yet", Some("mmcblk0")),
        ("/dev/nvme0n1", Some("nvme0n1")),
        ("/dev/mmcblk0p2", Some("mmcblk0")),
        ("/dev/shm/x", Some("RAM")),
        ("/proc/self/auxv", None),
    ] {
        assert_eq!(tier_of_path(&machine, &root, Path::new(path)).as_deref(), name, "{path}");
    }
    assert_eq!(disks_below(&machine, "nvme0n1"), ["nvme0n1"]);
    assert!(disks_below(&machine, "RAM").is_empty() && disks_below(&machine, "nothing").is_empty());
}

#[test]
fn usb3_that_negotiated_usb2() {
    let machine = machine::read(&Root::at(golden("usb3-at-usb2")));
    let disk = tier(&machine, "sda");
    let text = warning(disk, "usb3-at-usb2").unwrap();
    for part in ["USB 2 480 Mbit/s", "30–40 MB/s", "instead of 430–450", "has a USB 3 bus"] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    assert_eq!(
        (practical(disk), disk.hops.last().unwrap().could_be.as_deref()),
        ((30.0, 40.0), Some("USB 3 5 Gbit/s"))
    );
    let machine = machine::read(&Root::at(golden("pi4")));
    assert_eq!(warning(tier(&machine, "sda"), "usb3-at-usb2"), None);
    assert_eq!(tier(&machine, "sda").ceiling.get().unwrap().hop, "PCIe Gen2 x1", "the Pi 4's USB 3 hangs on one lane");
}

#[test]
fn pi3_desktop() {
    let machine = machine::read(&Root::at(golden("pi3-desktop")));
    let ssd = tier(&machine, "sda");
    assert_eq!(ssd.mounts.iter().find(|mount| mount.fs == "btrfs").unwrap().compression.as_deref(), Some("zlib"));
    assert_eq!(ssd.swaps, [Path::new("/dev/sda3")]);
    assert_eq!(practical(ssd), (30.0, 40.0));
    let zswap = machine.zswap.get().unwrap();
    assert!(zswap.enabled && zswap.zpool == Known::Is("z3fold".to_owned()) && zswap.max_pool_percent == Known::Is(15));
    assert_eq!(machine.swap_managers, ["fstab"], "dphys-swapfile was removed");
    assert!(tier(&machine, "mmcblk0").mounts.iter().any(|mount| mount.fs == "f2fs"));
    assert_eq!(machine.page_size, Known::Is(Bytes(4096)));
    assert_eq!(
        machine.throttled,
        Known::Is(vec!["since boot: under-voltage".to_owned(), "since boot: throttled".to_owned()])
    );
}

#[test]
fn encrypted_root_on_a_laptop() {
    let root = Root::at(golden("x86-laptop"));
    let machine = machine::read(&root);
    let volume = tier(&machine, "dm-1");
    assert_eq!(kinds(volume), ["dm", "dm-crypt", "pcie"]);
    assert_eq!(volume.mounts[0].at, Path::new("/"));
    assert_eq!(disks_below(&machine, "dm-1"), ["dm-1", "dm-0", "nvme0n1"]);
    assert_eq!(tier_of_path(&machine, &root, Path::new("/usr/bin")).as_deref(), Some("dm-1"));
    assert_eq!(machine.swaps[0].tier.as_deref(), Some("dm-2"));
    assert_eq!((tier(&machine, "sda").kind, practical(tier(&machine, "sda"))), (TierKind::Sata, (550.0, 560.0)));
    assert!(tier(&machine, "nvme0n1").warnings.is_empty(), "Gen3 x4 on both ends");
}

#[test]
fn a_virtual_machines_disks_have_no_ceiling() {
    let machine = machine::read(&Root::at(golden("cloud-vm")));
    for name in ["vda", "vdb", "sda"] {
        let disk = tier(&machine, name);
        assert_eq!((disk.kind, disk.ceiling.is_unknown(), kinds(disk)), (TierKind::Virtio, true, vec!["virtio"]));
    }
    assert!(machine.tier("loop0").is_none(), "a snap is no place for bytes");
    assert_eq!(machine.tiers.len(), 4);
}
