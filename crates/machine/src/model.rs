//! What a machine is, as data: facts, tiers, hops, ceilings. Made by [`crate::read`] from a root path, kept in every
//! record, read by `study` and `report`. A fact that nothing reports is [`Known::Unknown`] with its reason.

use basics::{Bytes, Known};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A machine as it was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Board or computer, as the firmware names it.
    pub model: Known<String>,
    /// `uname -r`.
    pub kernel: Known<String>,
    /// `PRETTY_NAME` of os-release.
    pub distribution: Known<String>,
    /// The kernel's page size; 16 KiB on a Raspberry Pi 5.
    pub page_size: Known<Bytes>,
    /// `MemTotal`.
    pub ram: Known<Bytes>,
    /// `MemAvailable`.
    pub ram_available: Known<Bytes>,
    /// Processors.
    pub cpu: Cpu,
    /// Hottest of the thermal zones, in degrees Celsius.
    pub temperature_c: Known<f64>,
    /// Throttling as the firmware or the kernel tells it: what holds now and what held since boot, in words.
    pub throttled: Known<Vec<String>>,
    /// `vm.*` settings that matter here, by name (`swappiness`, `page-cluster`, `dirty_ratio`, …).
    pub vm: BTreeMap<String, Known<String>>,
    /// Other settings below `/proc/sys`, by the names of sysctl(8) (`net.core.somaxconn`, `fs.file-max`).
    pub settings: BTreeMap<String, Known<String>>,
    /// zswap's settings.
    pub zswap: Known<Zswap>,
    /// Active swap areas.
    pub swaps: Vec<SwapArea>,
    /// Who manages swap here: `dphys-swapfile`, `rpi-swap`, `zram-generator`, `zram-tools`, `zram-config`,
    /// `armbian-zram-config`, `systemd`, `fstab`. Empty: nobody. Two tools: a notice.
    pub swap_managers: Vec<String>,
    /// Places where bytes can live.
    pub tiers: Vec<Tier>,
    /// What is noticed about the machine as a whole (`two-swap-managers`, `zswap-and-zram`, `throttled`, `was-throttled`).
    pub notices: Vec<Warning>,
    /// What could not be read of the machine as a whole, each a sentence.
    pub warnings: Vec<String>,
}

/// Processors.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    /// How many are online.
    pub count: Known<u32>,
    /// Marketing name.
    pub model: Known<String>,
    /// Frequency governor (of the first; "mixed: …" when they differ).
    pub governor: Known<String>,
    /// Highest frequency in MHz.
    pub max_mhz: Known<u32>,
    /// The largest of the caches of the last level: what fits it is read without the memory.
    pub last_level_cache: Known<Bytes>,
}

/// zswap.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Zswap {
    /// On.
    pub enabled: bool,
    /// `lzo`, `lz4`, `zstd`, ….
    pub compressor: Known<String>,
    /// Pool allocator; the setting is gone from current kernels.
    pub zpool: Known<String>,
    /// Largest share of RAM.
    pub max_pool_percent: Known<u32>,
}

/// One line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapArea {
    /// Device or file.
    pub path: PathBuf,
    /// `partition` or `file`.
    pub kind: String,
    /// Its length.
    pub size: Bytes,
    /// In use.
    pub used: Bytes,
    /// Higher is used first.
    pub priority: i32,
    /// The tier it lies on, by name, when that is known.
    pub tier: Option<String>,
}

/// What kind of place a tier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TierKind {
    /// Main memory.
    Ram,
    /// Compressed memory as a block device.
    Zram,
    /// SD card.
    Sd,
    /// Soldered eMMC.
    Emmc,
    /// Disk behind USB.
    Usb,
    /// NVMe.
    Nvme,
    /// SATA disk.
    Sata,
    /// Virtual disk of a virtual machine.
    Virtio,
    /// Loop device on a file.
    Loop,
    /// dm-crypt or another device-mapper target.
    Dm,
    /// Software RAID.
    Md,
    /// A file system without a local block device (tmpfs, NFS, overlay, 9p, …).
    FileSystem,
    /// Any other block device.
    Block,
}

/// A place where bytes can live.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// Short name: `RAM`, `zram0`, `nvme0n1`, `sda`, `mmcblk0`, `dm-0`, or a mount point.
    pub name: String,
    /// What it is.
    pub kind: TierKind,
    /// Its node below `/dev`, or the mount point; none for RAM.
    pub path: Option<PathBuf>,
    /// Vendor and model as the device says, trimmed; without serial number.
    pub model: Known<String>,
    /// Capacity.
    pub size: Known<Bytes>,
    /// From the CPU to the medium.
    pub hops: Vec<Hop>,
    /// The most that the chain lets through; unknown when no hop has one.
    pub ceiling: Known<Ceiling>,
    /// Facts of the block device, when it is one.
    pub block: Option<BlockFacts>,
    /// Partitions, in order; empty when the whole is used.
    pub partitions: Vec<Partition>,
    /// Where file systems of it (or of its partitions, or on top of them when nothing but this tier lies between) are
    /// mounted.
    pub mounts: Vec<Mount>,
    /// Swap areas on it, by path.
    pub swaps: Vec<PathBuf>,
    /// Names of the tiers that it is made of (a loop's disk, a RAID's members, the disk below dm-crypt).
    pub below: Vec<String>,
    /// What stands in the way, each a finding in words with its figures.
    pub warnings: Vec<Warning>,
}

impl Machine {
    /// The tier of this name.
    pub fn tier(&self, name: &str) -> Option<&Tier> {
        self.tiers.iter().find(|tier| tier.name == name)
    }

    /// The mounted file system that a full path without links lies on, where it is a tier's: the longest mount point above it.
    pub fn mount_of(&self, path: &Path) -> Option<&Mount> {
        let mounts = self.tiers.iter().flat_map(|tier| &tier.mounts).filter(|mount| path.starts_with(&mount.at));
        mounts.max_by_key(|mount| mount.at.components().count())
    }

    /// The kernel's version as far as it decides what a file system does: 6.14 of `6.14.2-rpi`.
    pub fn kernel_version(&self) -> Option<(u32, u32)> {
        let mut numbers = self.kernel.get()?.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }
}

impl Tier {
    /// A tier of which nothing is known but its name and kind.
    pub(crate) fn new(name: &str, kind: TierKind) -> Self {
        Tier {
            name: name.to_owned(),
            kind,
            path: None,
            model: Known::default(),
            size: Known::default(),
            hops: Vec::new(),
            ceiling: Known::default(),
            block: None,
            partitions: Vec::new(),
            mounts: Vec::new(),
            swaps: Vec::new(),
            below: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// What is noticed about a tier, or about the machine as a whole, without measuring.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable kebab-case name. Of tiers: `pcie-switch-limits`, `pcie-link-limits`, `pcie-port-limits`, `pcie-shared-link`, `usb3-at-usb2`,
    /// `usb-shared-port`, `usb-storage-not-uas`, `sd-slow-mode`, `swap-on-sd`, `read-only`, `partition-unaligned`. Of the
    /// machine: `two-swap-managers`, `zswap-and-zram`, `throttled`, `was-throttled`.
    pub id: String,
    /// One sentence: what, how much, compared with what.
    pub text: String,
    /// What was read, as `path: value`.
    pub evidence: String,
}

/// Facts of a block device.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockFacts {
    /// Smallest addressable unit.
    pub logical_sector: Known<Bytes>,
    /// Smallest unit that is written without a read.
    pub physical_sector: Known<Bytes>,
    /// Spinning.
    pub rotational: Known<bool>,
    /// Active I/O scheduler.
    pub scheduler: Known<String>,
    /// Read-ahead.
    pub read_ahead: Known<Bytes>,
    /// Largest single request.
    pub max_request: Known<Bytes>,
    /// `write back` or `write through`.
    pub write_cache: Known<String>,
    /// TRIM is supported.
    pub discard: Known<bool>,
    /// Write protected.
    pub read_only: Known<bool>,
    /// Can be pulled out.
    pub removable: Known<bool>,
    /// File behind a loop device.
    pub backing_file: Option<PathBuf>,
    /// Compression algorithm of zram.
    pub compression: Option<String>,
    /// SD and eMMC: application class and whether the command queue is on, in words.
    pub card: Option<String>,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partition {
    /// `sda1`.
    pub name: String,
    /// Offset of its first byte.
    pub start: Known<Bytes>,
    /// Length.
    pub size: Known<Bytes>,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Source as the mount table says.
    pub source: String,
    /// Mount point.
    pub at: PathBuf,
    /// `ext4`, `btrfs`, ….
    pub fs: String,
    /// Mount and super-block options.
    pub options: Vec<String>,
    /// True when mounted read-only.
    pub read_only: bool,
    /// Transparent compression, when the options ask for it (`zstd:1`).
    pub compression: Option<String>,
}

/// One link on the way from the CPU to a medium.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hop {
    /// What people call it: `PCIe Gen2 x1`, `USB 3 5 Gbit/s`, `USB hub`, `SD SDR104`, `dm-crypt`.
    pub name: String,
    /// `pcie`, `pcie-bridge`, `nvme`, `usb`, `usb-hub`, `sd`, `emmc`, `sata`, `virtio`, `loop`, `dm-crypt`, `dm`, `md`, `bcache`,
    /// `btrfs`, `file-system`, `zram`, `memory`, `block` (a bus without a rate).
    pub kind: String,
    /// What identifies it on this machine, such as the PCI or USB address or the driver (`uas`).
    pub detail: Option<String>,
    /// Signalling rate × lanes.
    pub signal_gbps: Option<f64>,
    /// Line code: `8b/10b`, `128b/130b`, `128b/132b`, `none`.
    pub encoding: Option<String>,
    /// Signalling rate in bytes, 10^6 a second.
    pub raw_mbps: Option<f64>,
    /// After the line code, 10^6 bytes a second.
    pub encoded_mbps: Option<f64>,
    /// After the protocol, lowest and highest seen in practice, 10^6 bytes a second.
    pub practical_mbps: Option<(f64, f64)>,
    /// Time to cross it once, in µs.
    pub transit_us: Option<f64>,
    /// What the device could do on a better link, when that is more than what was negotiated (`PCIe Gen3 x2`).
    pub could_be: Option<String>,
    /// Where the practical range and the transit time come from.
    pub source: Option<String>,
}

/// The lowest hop of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// After the line code, 10^6 bytes a second.
    pub encoded_mbps: f64,
    /// After the protocol, 10^6 bytes a second.
    pub practical_mbps: (f64, f64),
    /// Name of the hop that sets it.
    pub hop: String,
}
