//! How a machine is set up: what its configuration files and switches say that decides which advice fits. What is not said is unknown,
//! and nobody should conclude from it.

use crate::mounts::unescape;
use crate::root::Root;
use basics::{Bytes, Known};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What advice needs to know beyond [`crate::Machine`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Setup {
    /// The words of the kernel's command line.
    pub parameters: Vec<String>,
    /// Lines of fstab(5).
    pub fstab: Vec<FstabLine>,
    /// Lines of the Raspberry Pi firmware's config.txt that set something, each with the section that it stands in.
    pub firmware: Vec<(String, String)>,
    /// Whether free blocks are given back to the disks once a week (`fstrim.timer`).
    pub trims: Known<bool>,
    /// Whether memory can be limited by control group.
    pub memory_cgroup: Known<bool>,
    /// The I/O schedulers that each disk may have.
    pub schedulers: BTreeMap<String, Vec<String>>,
    /// The frequency governors that there are.
    pub governors: Vec<String>,
    /// The file in which each group of processors (a board may have fast and slow ones) has its governor, and which it is.
    pub policies: Vec<(PathBuf, String)>,
    /// The driver that sets the processor's frequency.
    pub frequency_driver: Known<String>,
    /// Present and highest frequency of the fastest processor, in MHz.
    pub mhz: Known<(u32, u32)>,
    /// What the device itself says of its cache, by disk: `write back`, `write through`.
    pub device_cache: BTreeMap<String, String>,
    /// How much of its life an eMMC says to have used, by disk: of each kind of its cells, in tenths begun (JEDEC's life time estimate).
    pub life: BTreeMap<String, u32>,
    /// Whether zram-generator is installed.
    pub zram_generator: bool,
    /// Whether Raspberry Pi OS's rpi-swap is installed.
    pub rpi_swap: bool,
    /// USB quirks that a file below `/etc/modprobe.d` sets: file and value.
    pub usb_quirks: Vec<(PathBuf, String)>,
    /// Room of mounted file systems, by mount point: free for users, and in all. Of the running machine alone.
    pub room: BTreeMap<PathBuf, (Bytes, Bytes)>,
}

/// A line of fstab(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabLine {
    /// What is mounted.
    pub source: String,
    /// Where.
    pub at: PathBuf,
    /// File system.
    pub fs: String,
    /// Options.
    pub options: Vec<String>,
}

impl Setup {
    /// The value of a parameter of the command line; the last one counts.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let named =
            |word: &str| word.split('=').next().is_some_and(|key| key.replace('-', "_") == name.replace('-', "_"));
        let word = self.parameters.iter().rev().find(|word| named(word))?;
        Some(word.split_once('=').map_or("", |(_, value)| value))
    }

    /// The line that mounts something there.
    pub fn mounted_by(&self, at: &Path) -> Option<&FstabLine> {
        self.fstab.iter().find(|line| line.at == at)
    }
}

/// Reads it. Nothing is written, and no program is started.
pub fn setup(root: &Root) -> Setup {
    let text = |path: &str| root.word(path).unwrap_or_default();
    Setup {
        parameters: parameters(root),
        fstab: text("/etc/fstab").lines().filter_map(fstab_line).collect(),
        firmware: firmware(root),
        trims: trims(root),
        memory_cgroup: memory_cgroup(root),
        schedulers: schedulers(root),
        governors: of_policies(root, "scaling_available_governors")
            .first()
            .map(|(_, all)| all.split_ascii_whitespace().map(str::to_owned).collect())
            .unwrap_or_default(),
        policies: of_policies(root, "scaling_governor"),
        frequency_driver: Known::or_not_reported(
            of_policies(root, "scaling_driver").into_iter().next().map(|(_, driver)| driver),
        ),
        mhz: mhz(root),
        device_cache: of_disks(root, device_cache),
        life: of_disks(root, life),
        zram_generator: generator(root, "zram-generator"),
        rpi_swap: generator(root, "rpi-swap-generator") || root.exists("/etc/rpi/swap.conf"),
        usb_quirks: usb_quirks(root),
        room: BTreeMap::new(),
    }
}

/// Of the kernel that runs; of an image, whose kernel does not, what it will be started with.
fn parameters(root: &Root) -> Vec<String> {
    let files = ["/proc/cmdline", "/boot/firmware/cmdline.txt", "/boot/cmdline.txt", "/etc/kernel/cmdline"];
    let line = files.iter().find_map(|path| root.word(path)).unwrap_or_default();
    line.split_ascii_whitespace().map(str::to_owned).collect()
}

/// A file of each group of processors whose frequency is set together, or of the first where the kernel has no groups.
fn of_policies(root: &Root, file: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new("/sys/devices/system/cpu/cpufreq");
    let mut names = root.names(folder);
    names.retain(|name| name.starts_with("policy"));
    names.sort_by_key(|name| name.trim_start_matches("policy").parse::<u32>().unwrap_or(u32::MAX));
    let mut paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name).join(file)).collect();
    if paths.is_empty() {
        paths.push(Path::new("/sys/devices/system/cpu/cpu0/cpufreq").join(file));
    }
    paths.into_iter().filter_map(|path| Some((path.clone(), root.word(&path)?.trim().to_owned()))).collect()
}

fn words(root: &Root, path: &str) -> Vec<String> {
    root.word(path).unwrap_or_default().split_ascii_whitespace().map(str::to_owned).collect()
}

fn fstab_line(line: &str) -> Option<FstabLine> {
    let fields: Vec<&str> = line.split('#').next()?.split_ascii_whitespace().collect();
    let (source, at, fs) = (fields.first()?, fields.get(1)?, fields.get(2)?);
    let options = fields.get(3).map_or_else(Vec::new, |list| list.split(',').map(str::to_owned).collect());
    Some(FstabLine { source: unescape(source), at: unescape(at).into(), fs: (*fs).to_owned(), options })
}

fn firmware(root: &Root) -> Vec<(String, String)> {
    let text =
        ["/boot/firmware/config.txt", "/boot/config.txt"].iter().find_map(|path| root.word(path)).unwrap_or_default();
    let mut section = "all".to_owned();
    let mut all = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => section = inner.to_ascii_lowercase(),
            None if line.is_empty() => {}
            None => all.push((section.clone(), line.to_owned())),
        }
    }
    all
}

/// A link of systemd's says yes; only a machine that shows its timers or that unit says no.
fn trims(root: &Root) -> Known<bool> {
    let wants = "/etc/systemd/system/timers.target.wants";
    if root.link_name(format!("{wants}/fstrim.timer")).is_some() || root.exists(format!("{wants}/fstrim.timer")) {
        return Known::Is(true);
    }
    let shows = [wants, "/usr/lib/systemd/system/fstrim.timer", "/lib/systemd/system/fstrim.timer"];
    Known::or_not_reported(shows.iter().any(|path| root.exists(path)).then_some(false))
}

/// `memory  0  98  1` (cgroups(7)), or version 2's list; where neither is there, what the command line says.
fn memory_cgroup(root: &Root) -> Known<bool> {
    if let Some(controllers) = root.word("/sys/fs/cgroup/cgroup.controllers") {
        return Known::Is(controllers.split_ascii_whitespace().any(|name| name == "memory"));
    }
    let table = root.word("/proc/cgroups").unwrap_or_default();
    let line = table.lines().find(|line| line.split_ascii_whitespace().next() == Some("memory"));
    let told = line.and_then(|line| Some(line.split_ascii_whitespace().nth(3)? == "1"));
    Known::or_not_reported(told.or_else(|| switched_off(&parameters(root)).then_some(false)))
}

/// The command line has it off, and not on: a Raspberry Pi's firmware puts the first there, and `cgroup_enable` undoes it.
fn switched_off(parameters: &[String]) -> bool {
    let says = |name: &str| {
        let values = parameters.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        values.flat_map(|value| value.split(',')).any(|controller| controller == "memory")
    };
    says("cgroup_disable") && !says("cgroup_enable")
}

fn schedulers(root: &Root) -> BTreeMap<String, Vec<String>> {
    of_disks(root, |root, disk| {
        let all = words(root, &format!("/sys/block/{disk}/queue/scheduler"));
        (!all.is_empty()).then(|| all.iter().map(|word| word.trim_matches(['[', ']']).to_owned()).collect())
    })
}

fn of_disks<T>(root: &Root, of: impl Fn(&Root, &str) -> Option<T>) -> BTreeMap<String, T> {
    root.names("/sys/block").into_iter().filter_map(|disk| of(root, &disk).map(|value| (disk, value))).collect()
}

/// What a SCSI disk, SATA and USB ones too, says of its cache.
fn device_cache(root: &Root, disk: &str) -> Option<String> {
    let folder = format!("/sys/block/{disk}/device/scsi_disk");
    root.names(&folder).first().and_then(|name| root.word(format!("{folder}/{name}/cache_type")))
}

/// `0x01 0x02`: the worse of both kinds of cells.
fn life(root: &Root, disk: &str) -> Option<u32> {
    let text = root.word(format!("/sys/block/{disk}/device/life_time"))?;
    let estimates =
        text.split_ascii_whitespace().filter_map(|word| u32::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    estimates.max().filter(|worst| *worst > 0)
}

fn mhz(root: &Root) -> Known<(u32, u32)> {
    let folder = Path::new("/sys/devices/system/cpu/cpufreq/policy0");
    let khz = |name: &str| root.number::<u32>(folder.join(name)).into_option();
    let both = khz("scaling_cur_freq").zip(khz("cpuinfo_max_freq"));
    Known::or_not_reported(both.map(|(now, most)| (now / 1000, most / 1000)))
}

fn generator(root: &Root, name: &str) -> bool {
    ["/usr/lib/systemd", "/lib/systemd"].iter().any(|lib| root.exists(format!("{lib}/system-generators/{name}")))
}

/// `options usb-storage quirks=152d:0578:u`
fn usb_quirks(root: &Root) -> Vec<(PathBuf, String)> {
    let folder = Path::new("/etc/modprobe.d");
    let files = root.names(folder).into_iter().map(|name| folder.join(name));
    let quirks = |path: PathBuf| {
        let text = root.word(&path)?;
        let value = text.lines().find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let is_it = words.next() == Some("options") && words.next()?.replace('-', "_") == "usb_storage";
            words.find_map(|word| word.strip_prefix("quirks=")).filter(|_| is_it).map(str::to_owned)
        })?;
        Some((path, value))
    };
    files.filter_map(quirks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_files_say() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let read = || setup(&Root::at(dir.path()));
        assert_eq!(read(), Setup::default());
        write("proc/cmdline", "root=/dev/sda2 zswap.enabled=0 zswap.enabled=1 quiet\n");
        write("etc/fstab", "# x\nUUID=1 /my\\040disk ext4 noatime,discard 0 1\nnone swap\n");
        write("boot/firmware/config.txt", "[all]\ndtparam=audio=on # so\n[pi5]\ndtparam=pciex1_gen=2\n");
        write("proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t98\t0\n");
        write("usr/lib/systemd/system/fstrim.timer", "");
        write("sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
        write("sys/block/sda/device/scsi_disk/0:0:0:0/cache_type", "write back\n");
        write("sys/block/mmcblk0/device/life_time", "0x01 0x0a\n");
        write("etc/modprobe.d/uas.conf", "options usb-storage quirks=152d:0578:u\n");
        let setup = read();
        assert_eq!((setup.parameter("zswap.enabled"), setup.parameter("quiet")), (Some("1"), Some("")));
        assert_eq!(setup.mounted_by(Path::new("/my disk")).unwrap().options, ["noatime", "discard"]);
        assert_eq!(setup.firmware[1], ("pi5".to_owned(), "dtparam=pciex1_gen=2".to_owned()));
        assert_eq!((setup.memory_cgroup, setup.trims), (Known::Is(false), Known::Is(false)));
        assert_eq!(setup.schedulers["sda"], ["none", "mq-deadline"]);
        assert_eq!((setup.device_cache["sda"].as_str(), setup.life["mmcblk0"]), ("write back", 10));
        assert_eq!(setup.usb_quirks[0].1, "152d:0578:u");
        write("etc/systemd/system/timers.target.wants/fstrim.timer", "");
        write("sys/fs/cgroup/cgroup.controllers", "cpu memory io\n");
        assert_eq!((read().memory_cgroup, read().trims), (Known::Is(true), Known::Is(true)));
    }
}
