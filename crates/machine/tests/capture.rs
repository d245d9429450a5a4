//! A capture reads as the machine that it was taken of, and tells nobody whose machine that is.
#![forbid(unsafe_code)]

mod support;

use machine::{Machine, Root};
use std::fs;
use std::io::Read;
use support::{GOLDEN, Tree, golden};

fn captured(root: &Root) -> (Vec<u8>, Tree) {
    let mut bytes = Vec::new();
    let summary = machine::capture(root, &mut bytes).unwrap();
    assert!(summary.files > 0);
    let tree = Tree::empty();
    tar::Archive::new(bytes.as_slice()).unpack(tree.path()).unwrap();
    (bytes, tree)
}

#[test]
fn a_capture_reads_as_its_machine() {
    for name in GOLDEN {
        let root = Root::at(golden(name));
        let (_, tree) = captured(&root);
        assert_eq!(plain(tree.read()), plain(machine::read(&root)), "{name}");
    }
}

/// Without what a capture replaces.
fn plain(mut machine: Machine) -> Machine {
    for tier in &mut machine.tiers {
        tier.mounts.iter_mut().for_each(|mount| mount.source.clear());
        tier.mounts.iter_mut().for_each(|mount| mount.at.clear());
        if tier.kind == machine::TierKind::FileSystem {
            tier.name.clear();
            tier.path = None;
        }
    }
    machine
}

#[test]
fn the_live_machine_can_be_captured() {
    let live = machine::read(&Root::live());
    let (_, tree) = captured(&Root::live());
    let read = tree.read();
    assert_eq!((&read.page_size, &read.kernel, &read.ram), (&live.page_size, &live.kernel, &live.ram));
    let disks = |machine: &Machine| {
        let blocks = machine.tiers.iter().filter(|tier| tier.block.is_some());
        blocks.map(|tier| (tier.name.clone(), tier.hops.len(), tier.mounts.len())).collect::<Vec<_>>()
    };
    assert_eq!(disks(&read), disks(&live));
}

/// What must not be found in a capture, in whatever case.
const SECRETS: [&str; 26] = [
    "mayu",
    "alice",
    "bob",
    "b8:27:eb:11:22:33",
    "b827eb112233",
    "10000000deadbeef",
    "S3Z8NB0K123456A",
    "8e27b9a2",
    "1234-ABCD",
    "0a1b2c3d-89ab-cdef-0123-456789abcdef",
    "f00dfeed-89ab-cdef-0123-456789abcdef",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "0x5002538e40a1b2c3",
    "eui.0025385b71b0a3c1",
    "nas.example.org",
    "10.20.30.40",
    "fd00:aa:bb::17",
    "hunter2",
    "HOLIDAYS",
    "WORKGRP",
    "PhotosOfUs",
    "03534453433332",
    "0xcafe1234",
    "abcdefabcdefabcdefabcdef",
    "notes to self",
    "VGIDVGIDVGID",
];

#[test]
fn a_capture_keeps_secrets() {
    let tree = Tree::copy_of("pi5-optane");
    let usb = "/sys/devices/platform/axi/1000120000.pcie/1f00200000.usb/xhci-hcd.0/usb2/2-1";
    let card = "/sys/devices/platform/axi/1000fff000.mmc/mmc_host/mmc0/mmc0:aaaa";
    let nvme = "/sys/block/nvme0n1/device";
    tree.file("/etc/hostname", "Mayu\n")
        .file("/proc/sys/kernel/hostname", "mayu.example.org\n")
        .file("/etc/passwd", "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000:Alice A:/home/alice:/bin/sh\n")
        .file("/etc/machine-id", "9f8e7d6c5b4a39281706f5e4d3c2b1a0")
        .file("/sys/firmware/devicetree/base/serial-number", "10000000deadbeef\0")
        .file("/sys/class/net/eth0/address", "b8:27:eb:11:22:33")
        .file("/sys/devices/virtual/dmi/id/product_uuid", "f00dfeed-89ab-cdef-0123-456789abcdef")
        .files(usb, &[("serial", "S3Z8NB0K123456A"), ("product", "bob's disk")])
        .files(card, &[("cid", "0353445343333247"), ("serial", "0xcafe1234")])
        .files(
            nvme,
            &[
                ("serial", "S3Z8NB0K123456A"),
                ("wwid", "eui.0025385b71b0a3c1"),
                ("uuid", "f00dfeed-89ab-cdef-0123-456789abcdef"),
            ],
        )
        .file("/sys/block/sda/device/wwid", "0x5002538e40a1b2c3");
    let cpuinfo = fs::read_to_string(tree.at("/proc/cpuinfo")).unwrap();
    tree.file("/proc/cpuinfo", format!("{cpuinfo}\nSerial\t\t: 10000000deadbeef\n"));
    tree.file(
        "/proc/cmdline",
        "root=PARTUUID=8e27b9a2-02 smsc95xx.macaddr=b8:27:eb:11:22:33 bcm2708.serial=0xcafe1234 ip=10.20.30.40::::mayu systemd.hostname=mayu resume=UUID=0a1b2c3d-89ab-cdef-0123-456789abcdef rootwait\n",
    );
    tree.file(
        "/etc/fstab",
        "# notes to self: alice's disks\nPARTUUID=8e27b9a2-02 / ext4 defaults 0 1\nUUID=1234-ABCD /boot vfat defaults 0 2\nLABEL=HOLIDAYS /media/alice/HOLIDAYS ext4 noauto 0 0\n/dev/disk/by-id/ata-INTEL_S3Z8NB0K123456A-part1 /x ext4 defaults 0 0\n//nas.example.org/PhotosOfUs /home/alice/p cifs credentials=/home/alice/.cred,domain=WORKGRP 0 0\n",
    );
    let mounts = fs::read_to_string(tree.at("/proc/self/mountinfo")).unwrap();
    let more = [
        "70 1 0:60 / /home/alice/nas rw - nfs4 nas.example.org:/export/alice rw,vers=4.2,addr=10.20.30.40,clientaddr=fd00:aa:bb::17",
        "71 1 0:61 / /home/alice/p rw - cifs //nas.example.org/PhotosOfUs rw,username=bob,password=hunter2,domain=WORKGRP,uid=1000",
        "72 1 0:62 / /home/alice/ssh rw - fuse.sshfs bob@nas.example.org:/srv rw,user_id=1000",
        "73 1 8:33 / /media/alice/HOLIDAYS rw - ext4 /dev/sdc1 rw",
        "74 1 0:63 / /srv/btrfs rw - btrfs /dev/sdd1 rw,compress=zstd:1",
        "75 1 0:64 / /mnt/abcdefabcdefabcdefabcdef rw - nfs [fd00:aa:bb::17]:/x rw",
        "76 1 254:9 / /mnt/lv rw - ext4 /dev/mapper/mayu--vg-alice rw",
    ];
    tree.file("/proc/self/mountinfo", format!("{mounts}{}\n", more.join("\n")));
    tree.link("/sys/fs/btrfs/0a1b2c3d-89ab-cdef-0123-456789abcdef/devices/sdd1", "../../../../class/block/sdd1");
    let dm = "/sys/devices/virtual/block/dm-9";
    tree.files(
        dm,
        &[("size", "2048"), ("dev", "254:9"), ("dm/name", "mayu--vg-alice"), ("dm/uuid", "LVM-VGIDVGIDVGID")],
    )
    .link(&format!("{dm}/slaves/sde1"), "../../../../../class/block/sde1")
    .link("/sys/block/dm-9", "../devices/virtual/block/dm-9")
    .files("/sys/devices/virtual/block/loop1", &[("size", "2048"), ("loop/backing_file", "/home/alice/disk.img")])
    .link("/etc/systemd/system/swap.target.wants/home-alice-swap.swap", "/etc/systemd/system/home-alice-swap.swap")
    .link("/etc/rc3.d/S01dphys-swapfile", "../init.d/dphys-swapfile")
    .link("/etc/rc3.d/S02alice", "../init.d/alice")
    .link(
        "/etc/systemd/system/multi-user.target.wants/syncthing@alice.service",
        "/lib/systemd/system/syncthing@.service",
    );
    let bos: Vec<u8> = [5u8, 0x0f, 25, 0, 1, 20, 0x10, 4, 0].into_iter().chain(*b"alicebobhunter2!").collect();
    tree.file(&format!("{usb}/bos_descriptors"), bos);

    let (tar, unpacked) = captured(&tree.root());
    let mut all = String::new();
    for entry in tar::Archive::new(tar.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        all.push_str(&format!("{}\n", entry.path().unwrap().display()));
        if let Some(target) = entry.link_name().unwrap() {
            all.push_str(&format!("{}\n", target.display()));
        }
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        all.push_str(&String::from_utf8_lossy(&content));
        all.push('\n');
    }
    let all = all.to_lowercase();
    for secret in SECRETS {
        if let Some(at) = all.find(&secret.to_lowercase()) {
            let around: String = all[at.saturating_sub(80)..].chars().take(160).collect();
            panic!("{secret} is in the capture: …{around}…");
        }
    }
    let before = tree.read();
    let after = unpacked.read();
    let shape = |machine: &Machine| {
        let tiers = machine.tiers.iter();
        tiers
            .filter(|tier| tier.block.is_some())
            .map(|tier| {
                (
                    tier.name.clone(),
                    tier.hops.iter().map(|hop| hop.name.clone()).collect::<Vec<_>>(),
                    tier.mounts.len(),
                    tier.below.clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&before), shape(&after));
    assert_eq!(before.swap_managers, after.swap_managers);
    assert!(after.swap_managers.contains(&"dphys-swapfile".to_owned()));
    assert_eq!(before.tiers.len(), after.tiers.len());
    assert!(before.tier("dm-9").is_some_and(|tier| tier.mounts.len() == 1 && tier.below == ["sde"]));
    assert_eq!(after.tier("loop1").unwrap().below, ["mmcblk0"], "the loop's file still lies where it lay");
}
