//! Small trees about the machine as a whole, each one thing: page size, boards, heat, who manages swap, an Android.
#![forbid(unsafe_code)]

mod support;

use basics::{Bytes, Known};
use machine::{Machine, Root, TierKind, tier_of_path};
use std::path::Path;
use support::{Tree, disk, hops, mapping, mounts, tier, warning};

fn with(files: &[(&str, &str)]) -> Machine {
    let tree = Tree::empty();
    for (path, content) in files {
        tree.file(path, content);
    }
    tree.read()
}

#[test]
fn traces_of_the_page_size() {
    let page = |files: &[(&str, &str)]| with(files).page_size.into_option().map(|Bytes(size)| size);
    assert_eq!(page(&[("/proc/meminfo", "MemTotal: 4147616 kB\nHugepagesize:      32768 kB\n")]), Some(16384));
    assert_eq!(page(&[("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152")]), Some(4096));
    assert_eq!(page(&[("/proc/1/smaps", "7f00-8f00 r-xp\nKernelPageSize:       16 kB\n")]), Some(16384));
    assert_eq!(page(&[("/proc/sys/kernel/osrelease", "6.12.25+rpt-rpi-2712")]), Some(16384));
    assert_eq!(page(&[("/proc/version", "Linux version 6.1.21-v8+ (x@y) gcc")]), Some(4096));
    assert_eq!(page(&[("/proc/cpuinfo", "vendor_id : GenuineIntel\n")]), Some(4096));
    assert_eq!(
        page(&[("/proc/sys/kernel/osrelease", "6.8"), ("/boot/config-6.8", "CONFIG_ARM64_64K_PAGES=y\n")]),
        Some(65536)
    );
    assert_eq!(page(&[]), None);
}

#[test]
fn the_cache_before_the_memory() {
    let cache = |files: &[(&str, &str, &str)]| {
        let tree = Tree::empty();
        for (cache, level, size) in files {
            let (cpu, index) = cache.split_once('/').unwrap();
            let dir = format!("/sys/devices/system/cpu/{cpu}/cache/{index}");
            let kind = if index == "index1" { "Instruction" } else { "Unified" };
            for (file, text) in [("level", *level), ("size", *size), ("type", kind)] {
                tree.file(&format!("{dir}/{file}"), text);
            }
        }
        tree.read().cpu.last_level_cache.into_option()
    };
    let laptop = [("cpu0/index0", "1", "48K"), ("cpu0/index2", "2", "2048K"), ("cpu0/index3", "3", "12288K")];
    assert_eq!(cache(&laptop), Some(Bytes(12 << 20)));
    // An RK3399: no third level, and the large cores' second one is the larger.
    let unequal = [("cpu0/index1", "2", "4096K"), ("cpu0/index2", "2", "512K"), ("cpu4/index2", "2", "1024K")];
    assert_eq!(cache(&unequal), Some(Bytes(1 << 20)));
    assert_eq!(cache(&[("cpu0/index0", "1", "lots")]), None);
    assert_eq!(cache(&[]), None);
}

#[test]
fn names_of_boards() {
    let model = |files: &[(&str, &str)]| with(files).model.into_option();
    assert_eq!(model(&[("/proc/device-tree/model", "Xunlong Orange Pi 5\0")]).as_deref(), Some("Xunlong Orange Pi 5"));
    assert_eq!(
        model(&[("/proc/cpuinfo", "processor : 0\nModel : Raspberry Pi Zero\n")]).as_deref(),
        Some("Raspberry Pi Zero")
    );
    let dmi = [
        ("/sys/class/dmi/id/sys_vendor", "To Be Filled By O.E.M."),
        ("/sys/class/dmi/id/board_vendor", "ASRock"),
        ("/sys/class/dmi/id/product_name", "Default string"),
        ("/sys/class/dmi/id/board_name", "N100DC-ITX"),
    ];
    assert_eq!(model(&dmi).as_deref(), Some("ASRock N100DC-ITX"));
}

#[test]
fn throttling() {
    let throttled = |files: &[(&str, &str)]| with(files).throttled.into_option();
    let file = "/sys/devices/platform/soc/soc:firmware/get_throttled";
    assert_eq!(
        throttled(&[(file, "0x50005")]).unwrap(),
        ["now: under-voltage", "now: throttled", "since boot: under-voltage", "since boot: throttled"]
    );
    assert_eq!(throttled(&[(file, "0")]), Some(vec![]));
    assert_eq!(throttled(&[(file, "garbage")]), None);
    let cooling = "/sys/class/thermal/cooling_device0";
    let device = [
        (&*format!("{cooling}/type"), "cpufreq-cpu0"),
        (&*format!("{cooling}/cur_state"), "2"),
        (&*format!("{cooling}/max_state"), "5"),
    ]
    .map(|(p, c)| (p.to_owned(), c));
    let device: Vec<(&str, &str)> = device.iter().map(|(path, content)| (path.as_str(), *content)).collect();
    assert_eq!(throttled(&device).unwrap(), ["now: processor frequency held down (step 2 of 5, cpufreq-cpu0)"]);
    let machine =
        with(&[("/sys/class/hwmon/hwmon2/name", "rpi_volt"), ("/sys/class/hwmon/hwmon2/in0_lcrit_alarm", "1")]);
    assert_eq!(machine.notices[0].id, "throttled");
}

#[test]
fn temperature_of_the_hottest_sensor() {
    let zone = |n: u32| format!("/sys/class/thermal/thermal_zone{n}/temp");
    let machine = with(&[(&zone(0), "48312"), (&zone(1), "61000"), (&zone(2), "-274000"), (&zone(3), "busy")]);
    assert_eq!(machine.temperature_c, Known::Is(61.0));
    assert_eq!(with(&[("/sys/class/hwmon/hwmon0/temp1_input", "39850")]).temperature_c, Known::Is(39.85));
}

#[test]
fn who_manages_swap() {
    let managers = |tree: &Tree| machine::read(&tree.root()).swap_managers;
    let wants = "/etc/systemd/system/multi-user.target.wants";
    let tree = Tree::empty();
    tree.file("/etc/dphys-swapfile", "CONF_SWAPSIZE=100\n");
    assert_eq!(managers(&tree), ["dphys-swapfile"], "a tree that does not tell what is enabled");
    tree.link(&format!("{wants}/ssh.service"), "/lib/systemd/system/ssh.service");
    assert_eq!(managers(&tree), [""; 0], "the package was removed, its configuration stayed");
    tree.link("/etc/rc3.d/S01dphys-swapfile", "../init.d/dphys-swapfile");
    assert_eq!(managers(&tree), ["dphys-swapfile"]);
    tree.file("/etc/default/zramswap", "ALGO=lz4\n")
        .link(&format!("{wants}/zramswap.service"), "/lib/systemd/system/zramswap.service");
    assert_eq!(managers(&tree), ["dphys-swapfile", "zram-tools"]);
    assert_eq!(tree.read().notices[0].id, "two-swap-managers");

    let tree = Tree::empty();
    tree.file("/etc/rpi/swap.conf", "[Main]\nMechanism=zram+file\n")
        .file("/usr/lib/systemd/zram-generator.conf", "[zram0]\n");
    assert_eq!(managers(&tree), ["rpi-swap"], "zram-generator is its tool");
    tree.file("/etc/rpi/swap.conf.d/80-off.conf", "[Main]\nMechanism=none\n");
    assert_eq!(managers(&tree), ["zram-generator"]);
    tree.link("/etc/systemd/zram-generator.conf", "/dev/null");
    assert_eq!(managers(&tree), [""; 0], "shadowed");
    tree.remove("/etc/systemd/zram-generator.conf")
        .file("/etc/systemd/zram-generator.conf", "# own\n[zram0]\nzram-size = ram / 2\n");
    assert_eq!(managers(&tree), ["zram-generator"]);

    let tree = Tree::empty();
    tree.link("/etc/systemd/system/swap.target.wants/swapfile.swap", "../swapfile.swap");
    tree.link(&format!("{wants}/armbian-zram-config.service"), "/lib/x")
        .file("/etc/default/armbian-zram-config", "ENABLED=true\n");
    tree.file("/etc/fstab", "/swapfile none swap sw 0 0\n");
    assert_eq!(managers(&tree), ["armbian-zram-config", "fstab", "systemd"]);
    tree.file("/etc/default/armbian-zram-config", "# ENABLED=true\nENABLED=false\n")
        .file("/etc/fstab", "#/swapfile none swap sw 0 0\n/x none swap noauto 0 0\n");
    assert_eq!(managers(&tree), ["systemd"]);
}

#[test]
fn zswap_in_front_of_zram() {
    let tree = Tree::empty();
    tree.files(
        "/sys/block/zram0",
        &[("size", "2048"), ("disksize", "1048576"), ("comp_algorithm", "lzo [lz4]"), ("dev", "252:0")],
    );
    tree.files("/sys/block/zram1", &[("size", "0"), ("disksize", "0")]);
    tree.file("/sys/module/zswap/parameters/enabled", "Y\n");
    tree.file("/proc/swaps", "Filename Type Size Used Priority\n/dev/zram0 partition 1020 0 100\n");
    let machine = tree.read();
    assert_eq!(machine.notices[0].id, "zswap-and-zram");
    assert_eq!((machine.tiers.len(), tier(&machine, "zram0").size.clone()), (2, Known::Is(Bytes(1 << 20))));
}

#[test]
fn partitions_and_protection() {
    let tree = Tree::empty();
    disk(&tree, "/sys/block/sda", "8:0");
    tree.files(
        "/sys/block/sda",
        &[("ro", "1"), ("queue/scheduler", "noop deadline [cfq]"), ("queue/read_ahead_kb", "128")],
    );
    tree.files("/sys/class/block/sda1", &[("partition", "1"), ("start", "63"), ("size", "100"), ("dev", "8:1")]);
    mounts(&tree, &["8:1 / /old ro - vfat /dev/sda1 ro"]);
    let machine = tree.read();
    let disk = tier(&machine, "sda");
    assert_eq!(disk.partitions[0].start, Known::Is(Bytes(63 * 512)));
    assert!(
        warning(disk, "partition-unaligned").is_some()
            && warning(disk, "read-only").unwrap().contains("write protected")
    );
    let facts = disk.block.as_ref().unwrap();
    assert_eq!(
        (facts.scheduler.clone(), facts.read_ahead.clone()),
        (Known::Is("cfq".to_owned()), Known::Is(Bytes(131072)))
    );
    assert_eq!(disk.mounts.len(), 1);
}

/// A phone: UFS, everything on device mapper, no configuration below `/etc`.
#[test]
fn an_android() {
    let tree = Tree::empty();
    let ufs = "/sys/devices/platform/soc/1d84000.ufshc/host0/target0:0:0/0:0:0:0";
    disk(&tree, &format!("{ufs}/block/sda"), "8:0");
    tree.files(ufs, &[("vendor", "SAMSUNG "), ("model", "KLUDG4UHDC-B0E1 ")])
        .link("/sys/block/sda", &format!("../..{ufs}/block/sda"));
    tree.link(&format!("{ufs}/block/sda/device"), "../..");
    mapping(&tree, 7, "userdata", "", "sda");
    tree.file("/proc/mounts", "/dev/block/dm-7 /data f2fs rw,compress_algorithm=lz4 0 0\n");
    let machine = tree.read();
    let disk = tier(&machine, "sda");
    assert_eq!(
        (disk.kind, hops(disk), disk.model.clone()),
        (TierKind::Block, vec!["UFS"], Known::Is("SAMSUNG KLUDG4UHDC-B0E1".to_owned()))
    );
    assert_eq!(tier(&machine, "dm-7").mounts[0].compression.as_deref(), Some("lz4"));
}

#[test]
fn the_live_machine_is_read() {
    let root = Root::at("/");
    assert!(root.is_live());
    let machine = machine::read(&root);
    assert!(machine.ram.get().is_some_and(|ram| ram.0 > 1 << 26) && machine.page_size.get().is_some());
    let here = tier_of_path(&machine, &root, Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(here.is_some_and(|name| machine.tier(&name).is_some()), "the project lies on some tier");
}
