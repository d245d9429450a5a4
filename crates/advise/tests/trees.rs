//! Machines with one thing wrong, and machines with nothing wrong: what the rules say of each, and what they don't.
#![forbid(unsafe_code)]

use advise::{Goals, Job, Situation, advise};
use machine::Root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            symlink(fs::read_link(path).unwrap(), to).unwrap();
        } else if kind.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(path, to).unwrap();
        }
    }
}

struct Tree(tempfile::TempDir);

impl Tree {
    /// A captured machine of the reader's own tests.
    fn of(name: &str) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let trees = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees");
        copy(&trees.join(name), dir.path());
        Tree(dir)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }

    /// Writes a file; one that ends in `+` gets a line more, `-` takes what is there away, and `a→b` replaces a part.
    fn with(&self, path: &str, text: &str) {
        let (path, more) = path.strip_suffix('+').map_or((path, false), |path| (path, true));
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        let old = fs::read_to_string(&at).unwrap_or_default();
        let new = match text.split_once('→') {
            _ if text == "-" => {
                let _ = fs::remove_file(&at);
                return;
            }
            Some((a, b)) => {
                assert!(old.contains(a), "{path}: {old}");
                old.replace(a, b)
            }
            None if more => format!("{old}{text}\n"),
            None => text.to_owned(),
        };
        fs::write(at, new).unwrap();
    }

    fn said(&self, job: Job) -> Vec<&'static str> {
        let root = Root::at(self.0.path());
        let (machine, setup) = (machine::read(&root), machine::setup(&root));
        let goals = Goals::of(job);
        let all = advise(&Situation {
            machine: &machine,
            setup: &setup,
            goals: &goals,
            seen: &[],
            vectors: &[],
            proofs: &[],
            media: &[],
        });
        for said in &all {
            assert!(!said.evidence.is_empty() && !said.why.is_empty() && !said.title.is_empty(), "{said:?}");
        }
        all.into_iter().map(|said| said.rule).collect()
    }
}

const SWAPS: &str = "Filename Type Size Used Priority\n";
const GEN3: &str = "8.0 GT/s PCIe\n";

/// A captured machine with what was wrong with it put right.
fn healthy(name: &str) -> Tree {
    let tree = Tree::of(name);
    match name {
        "pi4" => {
            tree.with("/proc/swaps", SWAPS);
            // With 8 GB nobody misses swap.
            tree.with("/proc/meminfo", "MemTotal:        7900000 kB\nMemAvailable:    7000000 kB\n");
            tree.with("/etc/dphys-swapfile", "-");
            tree.with("/etc/systemd/system/multi-user.target.wants/dphys-swapfile.service", "-");
            tree.with("/proc/self/mountinfo", "rw,discard→rw");
        }
        "pi5-nvme" => {
            tree.with("/proc/sys/vm/page-cluster", "0\n");
            tree.with("/proc/sys/vm/swappiness", "100\n");
            let link = "/sys/devices/platform/axi/1000110000.pcie/pci0001:00/0001:00:00.0";
            for file in ["current_link_speed", "max_link_speed", "0001:01:00.0/current_link_speed"] {
                tree.with(&format!("{link}/{file}"), GEN3);
            }
        }
        "x86-laptop" => {
            let folder = "/sys/devices/system/cpu/cpu0/thermal_throttle";
            for file in ["core_throttle_count", "package_throttle_count"] {
                tree.with(&format!("{folder}/{file}"), "0\n");
            }
        }
        _ => {}
    }
    tree
}

#[test]
fn of_healthy_machines_nothing_is_said() {
    for name in ["pi4", "pi5-nvme", "x86-laptop", "cloud-vm"] {
        for job in Job::GENERAL {
            // Two gigabytes without swap are enough for a server, not for a person or a model.
            let short = name == "cloud-vm" && matches!(job, Job::Desktop | Job::Llm | Job::Build);
            let wanted: &[&str] = if short { &["no-swap"] } else { &[] };
            assert_eq!(healthy(name).said(job), wanted, "{name} {job}");
        }
    }
}

/// A fault: the machine, what it is for, what is changed, and what must be said: no more, and no less.
type Fault = (&'static str, Job, &'static [(&'static str, &'static str)], &'static [&'static str]);

const CARD_SWAP: (&str, &str) = ("/proc/swaps+", "/var/swap file 102396 0 -2");
const ZSWAP_ON: (&str, &str) = ("/sys/module/zswap/parameters/enabled", "Y\n");

#[rustfmt::skip]
const FAULTS: &[Fault] = &[
    ("pi4", Job::Any, &[CARD_SWAP], &["swap-on-card"]),
    ("pi4", Job::Server, &[CARD_SWAP, ("/proc/sys/vm/swappiness", "100\n")], &["swap-on-card", "swappiness"]),
    ("pi4", Job::Any, &[CARD_SWAP, ("/proc/sys/vm/page-cluster", "0\n")], &["swap-on-card", "page-cluster"]),
    ("pi4", Job::Any, &[("/etc/dphys-swapfile", "CONF_SWAPSIZE=100\n"), ("/etc/rpi/swap.conf", "[Main]\nMechanism=zram\n"),
        ("/etc/systemd/system/multi-user.target.wants/dphys-swapfile.service", "")], &["swap-managers"]),
    ("pi5-nvme", Job::Any, &[ZSWAP_ON], &["zswap-over-zram"]),
    ("pi5-nvme", Job::Any, &[("/proc/sys/vm/page-cluster", "3\n")], &["page-cluster"]),
    ("pi5-nvme", Job::Desktop, &[("/proc/sys/vm/swappiness", "10\n")], &["swappiness"]),
    ("pi5-nvme", Job::Server, &[("/proc/sys/vm/swappiness", "10\n")], &[]),
    ("pi4", Job::Any, &[("/proc/meminfo", "MemTotal:         930000 kB\n")], &["no-swap"]),
    ("pi4", Job::Llm, &[("/proc/meminfo", "MemTotal:        3880000 kB\n")], &["no-swap"]),
    ("pi3-desktop", Job::Desktop, &[("/sys/module/zswap/parameters/enabled", "N\n")],
        &["supply", "usb3-at-usb2", "card-mode", "zswap"]),
    ("pi4", Job::Any, &[("/proc/cmdline", "rootwait→rootwait zswap.zpool=z3fold"),
        ("/sys/module/zswap/parameters/zpool", "zsmalloc\n")], &["zswap-parameters"]),
    ("pi5-nvme", Job::Any, &[("/proc/cmdline", "rootwait→rootwait zswap.zpool=zbud"),
        ("/sys/module/zswap/parameters/zpool", "-")], &["zswap-parameters"]),
    ("x86-laptop", Job::Any, &[ZSWAP_ON, ("/sys/module/zswap/parameters/max_pool_percent", "80\n")], &["zswap-parameters"]),
    ("x86-laptop", Job::Any, &[("/proc/cmdline", "quiet→zswap.compressor=lz4"),
        ("/sys/module/zswap/parameters/compressor", "lzo\n")], &["zswap-parameters"]),
    // Gigabytes may wait for a card.
    ("pi4", Job::Server, &[("/proc/meminfo", "MemTotal:        7900000 kB\n"), ("/proc/sys/vm/dirty_background_bytes", "0\n")],
        &["dirty-bytes"]),
    ("pi4", Job::Any, &[("/proc/meminfo", "MemTotal:        7900000 kB\n"), ("/proc/sys/vm/dirty_background_bytes", "0\n")], &[]),
    ("pi4", Job::Any, &[("/sys/block/mmcblk0/queue/scheduler", "[none] mq-deadline bfq\n")], &["scheduler"]),
    ("pi5-nvme", Job::Any, &[("/sys/block/nvme0n1/queue/scheduler", "none mq-deadline [bfq]\n")], &["scheduler"]),
    ("x86-laptop", Job::Any, &[("/sys/block/sda/queue/rotational", "1\n"), ("/sys/block/sda/queue/scheduler", "[none] mq-deadline\n")],
        &["scheduler"]),
    ("pi4", Job::Any, &[("/sys/block/sda/queue/read_ahead_kb", "4\n")], &["readahead"]),
    ("pi4", Job::Any, &[("/sys/block/sda/queue/read_ahead_kb", "65536\n"), ("/proc/meminfo", "MemTotal:        3880000 kB\n")],
        &["readahead"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "/ rw,noatime→/ rw,relatime")], &["noatime"]),
    ("pi5-nvme", Job::Any, &[("/proc/self/mountinfo", "/ rw,noatime→/ rw,strictatime")], &["noatime"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/root rw→- btrfs /dev/root rw,space_cache=v2"),
        ("/etc/fstab", "ext4→btrfs")], &["btrfs-compression"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/root rw→- btrfs /dev/root rw,compress=zstd:15"),
        ("/etc/fstab", "ext4→btrfs"), ("/sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq", "1500000\n")],
        &["btrfs-compression"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/root rw→- btrfs /dev/root rw,compress=zstd:1"),
        ("/etc/fstab", "ext4→btrfs")], &[]),
    ("usb3-at-usb2", Job::Any, &[], &["usb3-at-usb2", "swap-on-card", "discard"]),
    ("pi5-optane", Job::Any, &[], &["pcie-generation", "usb-shared-port", "page-cluster"]),
    ("pi5-nvme", Job::Any, &[("/boot/firmware/config.txt", "dtparam=pciex1_gen=1\n"),
        ("/sys/devices/platform/axi/1000110000.pcie/pci0001:00/0001:00:00.0/0001:01:00.0/current_link_speed", "2.5 GT/s PCIe\n")],
        &["pcie-generation"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/root rw→- ext4 /dev/root rw,nobarrier")], &["flushes"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/sda1 rw→- ext4 /dev/sda1 rw,barrier=0")], &["flushes"]),
    ("x86-laptop", Job::Any, &[("/sys/block/sda/device/scsi_disk/0:0:0:0/cache_type", "write back\n"),
        ("/sys/block/sda/queue/write_cache", "write through\n")], &["flushes"]),
    ("pi4", Job::Any, &[("/sys/block/mmcblk0/ro", "1\n")], &["card-wear"]),
    ("pi4", Job::Any, &[("/sys/block/mmcblk0/device/type", "MMC\n"), ("/sys/block/mmcblk0/device/life_time", "0x0a 0x02\n")],
        &["card-wear"]),
    ("pi4", Job::Any, &[("/sys/block/mmcblk0/device/type", "MMC\n"), ("/sys/block/mmcblk0/device/life_time", "0x02 0x01\n")], &[]),
    ("pi4", Job::Any, &[("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "cpufreq-dt\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "conservative ondemand powersave\n")], &["governor"]),
    ("pi4", Job::Server, &[("/sys/fs/cgroup/cgroup.controllers", "-"), ("/proc/cmdline", "rootwait→rootwait cgroup_disable=memory")],
        &["memory-cgroup"]),
    ("pi4", Job::Server, &[("/sys/fs/cgroup/cgroup.controllers", "-"),
        ("/proc/cmdline", "rootwait→rootwait cgroup_disable=memory cgroup_enable=cpuset,memory")], &[]),
    // Two clusters, of which the fast one is held down, as some boards' images come.
    ("pi4", Job::Any, &[("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "ondemand\n"),
        ("/sys/devices/system/cpu/cpufreq/policy4/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "cpufreq-dt\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "ondemand powersave schedutil\n")], &["governor"]),
    // Keys of modules are written with a dash or without, and a later one counts.
    ("pi5-nvme", Job::Any, &[("/proc/cmdline", "rootwait→rootwait zswap.compressor=lz4 zswap.compressor=zstd zswap.zpool=z3fold"),
        ("/sys/module/zswap/parameters/compressor", "zstd\n"), ("/sys/module/zswap/parameters/zpool", "-")], &["zswap-parameters"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "/ rw,noatime→/ rw,lazytime,relatime")], &["noatime"]),
    ("pi4", Job::Any, &[CARD_SWAP, ("/proc/sys/vm/swappiness", "1\n")], &["swap-on-card"]),
    ("x86-laptop", Job::Any, &[("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_driver", "intel_pstate\n"),
        ("/sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors", "performance powersave\n")], &[]),
    ("x86-laptop", Job::Any, &[("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n")], &["heat"]),
    ("pi4", Job::Any, &[("/sys/devices/platform/soc/soc:firmware/get_throttled", "50005\n")], &["supply"]),
    ("pi4", Job::Any, &[("/sys/devices/platform/soc/soc:firmware/get_throttled", "80008\n")], &["heat"]),
    ("pi4", Job::Any, &[("/sys/devices/platform/soc/soc:firmware/get_throttled", "0\n")], &[]),
    ("pi4", Job::Server, &[("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n")], &["memory-cgroup"]),
    ("pi4", Job::Desktop, &[("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n")], &[]),
    ("pi4", Job::Llm, &[("/proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\nmemory 0 98 0\n")], &["memory-cgroup"]),
    ("pi4", Job::Any, &[("/proc/self/mountinfo", "- ext4 /dev/sda1 rw→- ext4 /dev/sda1 rw,discard")], &["discard"]),
    ("x86-laptop", Job::Any, &[("/usr/lib/systemd/system/fstrim.timer", "[Install]\nWantedBy=timers.target\n")], &["trim"]),
    ("x86-laptop", Job::Any, &[("/usr/lib/systemd/system/fstrim.timer", ""),
        ("/etc/systemd/system/timers.target.wants/fstrim.timer", "")], &[]),
    ("pi4", Job::Any, &[("/sys/block/sda/sda1/start", "63\n")], &["alignment"]),
    ("pi4", Job::Any, &[("/proc/cmdline", "rootwait→rootwait usb-storage.quirks=152d:0578:u")], &[]),
];

#[test]
fn of_each_fault_what_helps_is_said_and_nothing_else() {
    assert!(FAULTS.len() >= 40, "{}", FAULTS.len());
    let mut wrong = Vec::new();
    for (name, job, changes, wanted) in FAULTS {
        let tree = if matches!(*name, "pi4" | "pi5-nvme" | "x86-laptop") { healthy(name) } else { Tree::of(name) };
        for (path, text) in *changes {
            tree.with(path, text);
        }
        let said = tree.said(*job);
        if said != *wanted {
            wrong.push(format!("{name} for {job} with {changes:?}\n  said {said:?}\n  not  {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_name_of_its_own_and_says_when_and_whence() {
    let mut names: Vec<&str> = advise::ALL.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert!(
        advise::ALL.iter().all(|rule| !rule.condition.is_empty() && !rule.source.is_empty() && !rule.jobs.is_empty())
    );
}
