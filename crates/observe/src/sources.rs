//! The files of `/proc` and `/sys` that a sample is read from. Each is opened once and read again from its start by
//! `pread`, which makes the kernel write it anew, so that a sample costs neither a path walk nor a descriptor. What is
//! missing or refuses to be read is absent from the sample, never zero.

use crate::{Disk, Sample};
use basics::sensors;
use procfs_core::DiskStat;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Lines of `/proc/vmstat` that are kept; their meaning stands in the kernel's `mm/vmstat.c`.
const VM: [&str; 18] = [
    "nr_dirty",
    "nr_writeback",
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgfault",
    "pgmajfault",
    "zswpin",
    "zswpout",
    "zswpwb",
    "swap_ra",
    "swap_ra_hit",
    "swpin_zero",
    "swpout_zero",
    "workingset_refault_anon",
    "workingset_refault_file",
    "oom_kill",
];
/// Resources whose pressure the kernel tells (Documentation/accounting/psi.rst).
const PRESSURES: [&str; 3] = ["cpu", "memory", "io"];
/// Bytes in a sector of `/proc/diskstats`, whatever the disk's own sector is (Documentation/admin-guide/iostats.rst).
const SECTOR: u64 = 512;
/// Room for a short file, and for the first line of `/proc/stat`: 4 + 10 × 21 bytes at most. The lines of interrupts
/// that follow it are then not copied.
const SHORT: usize = 256;
/// Longest file that is read. `/proc/diskstats` takes about 100 bytes a disk.
const LONGEST: usize = 1 << 20;

/// Open files, and the buffer that each is read into.
pub(crate) struct Sources {
    disks: Vec<String>,
    stat: Option<File>,
    vmstat: Option<File>,
    diskstats: Option<File>,
    pressures: Vec<(&'static str, File)>,
    zones: Vec<File>,
    cpu_khz: Option<File>,
    throttled: Option<File>,
    buffer: Vec<u8>,
}

impl Sources {
    /// Opens what this machine has below `root`; `disks` are names as in `/proc/diskstats`.
    pub(crate) fn open(root: &Path, disks: Vec<String>) -> Self {
        let file = |path: &str| File::open(root.join(path)).ok();
        let pressure = |name: &'static str| Some((name, file(&format!("proc/pressure/{name}"))?));
        let thermal = fs::read_dir(root.join("sys/class/thermal")).into_iter().flatten().flatten();
        let zones = thermal.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"thermal_zone"));
        Sources {
            stat: file("proc/stat"),
            vmstat: file("proc/vmstat"),
            diskstats: if disks.is_empty() { None } else { file("proc/diskstats") },
            pressures: PRESSURES.into_iter().filter_map(pressure).collect(),
            zones: zones.filter_map(|zone| File::open(zone.path().join("temp")).ok()).collect(),
            cpu_khz: file("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq"),
            throttled: throttled(root),
            disks,
            buffer: vec![0; 16 << 10],
        }
    }

    /// Reads everything once. The time is left to the caller.
    pub(crate) fn sample(&mut self) -> Sample {
        let buffer = &mut self.buffer;
        let mut sample = Sample::default();
        if let Some(file) = &self.stat {
            sample.cpu_ticks = short(file, buffer).and_then(cpu_ticks);
        }
        if let Some(file) = &self.vmstat {
            sample.vm = whole(file, buffer).map(vm).unwrap_or_default();
        }
        if let Some(file) = &self.diskstats {
            sample.disks = whole(file, buffer).map(|text| diskstats(text, &self.disks)).unwrap_or_default();
        }
        for (name, file) in &self.pressures {
            if let Some(stalls) = short(file, buffer).and_then(pressure) {
                sample.pressure_us.insert((*name).to_owned(), stalls);
            }
        }
        let degrees = self.zones.iter().filter_map(|zone| short(zone, buffer)?.trim().parse().ok());
        sample.temperature_c = degrees.filter_map(sensors::celsius).reduce(f64::max);
        if let Some(file) = &self.cpu_khz {
            sample.cpu_mhz = short(file, buffer).and_then(|text| Some(text.trim().parse::<u32>().ok()? / 1000));
        }
        if let Some(file) = &self.throttled {
            sample.throttled = short(file, buffer).and_then(hexadecimal);
        }
        sample
    }
}

/// The firmware's word, wherever this Raspberry Pi has it.
fn throttled(root: &Path) -> Option<File> {
    let within = |dir: &Path, wanted: fn(&str) -> bool| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter(move |entry| entry.file_name().to_str().is_some_and(wanted)).map(|entry| entry.path())
    };
    within(&root.join(sensors::PLATFORM), sensors::is_soc)
        .flat_map(|soc| within(&soc, sensors::is_firmware).collect::<Vec<_>>())
        .find_map(|firmware| File::open(firmware.join(sensors::THROTTLED)).ok())
}

/// `pread` that a signal does not disturb.
fn pread(file: &File, buffer: &mut [u8], offset: usize) -> Option<usize> {
    loop {
        match file.read_at(buffer, offset as u64) {
            Ok(length) => return Some(length),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// The start of a file by one read.
fn short<'b>(file: &File, buffer: &'b mut [u8]) -> Option<&'b str> {
    let length = pread(file, &mut buffer[..SHORT], 0)?;
    std::str::from_utf8(&buffer[..length]).ok()
}

/// A file up to its end, which `/proc` hands out in pieces of about a page; cut at [`LONGEST`].
fn whole<'b>(file: &File, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
    let mut length = 0;
    while length < LONGEST {
        if length == buffer.len() {
            buffer.resize(2 * length, 0);
        }
        match pread(file, &mut buffer[length..], length)? {
            0 => break,
            more => length += more,
        }
    }
    std::str::from_utf8(&buffer[..length]).ok()
}

/// The sum over all processors from the first line of `/proc/stat`. Guest time, the ninth and tenth figure, is part of
/// user and nice already.
fn cpu_ticks(stat: &str) -> Option<[u64; 8]> {
    let mut figures = stat.strip_prefix("cpu ")?.split_ascii_whitespace();
    let mut ticks = [0; 8];
    for tick in &mut ticks {
        *tick = figures.next()?.parse().ok()?;
    }
    Some(ticks)
}

/// The lines of `/proc/vmstat` named in [`VM`].
fn vm(vmstat: &str) -> BTreeMap<String, u64> {
    let pairs = vmstat.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| VM.contains(name));
    pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
}

/// The lines of `/proc/diskstats` about `disks`.
fn diskstats(text: &str, disks: &[String]) -> BTreeMap<String, Disk> {
    let ours = text
        .lines()
        .filter(|line| line.split_ascii_whitespace().nth(2).is_some_and(|name| disks.iter().any(|disk| disk == name)));
    ours.filter_map(|line| {
        let stat = DiskStat::from_line(line).ok()?;
        let disk = Disk {
            reads: stat.reads,
            read_bytes: stat.sectors_read * SECTOR,
            read_ms: stat.time_reading,
            writes: stat.writes,
            write_bytes: stat.sectors_written * SECTOR,
            write_ms: stat.time_writing,
            in_flight: stat.in_progress,
            busy_ms: stat.time_in_progress,
            flushes: stat.flushes,
        };
        Some((stat.name, disk))
    })
    .collect()
}

/// The totals of `some` and `full`. Linux before 5.13 has no `full` line for the CPU, where it is always zero.
fn pressure(text: &str) -> Option<(u64, u64)> {
    let total = |kind: &str| text.lines().find(|line| line.starts_with(kind))?.rsplit_once("total=")?.1.parse().ok();
    Some((total("some")?, total("full").unwrap_or(0)))
}

/// A number as the firmware prints it, with or without `0x`.
fn hexadecimal(text: &str) -> Option<u32> {
    let text = text.trim();
    u32::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A tree of these files.
    fn tree(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn sample(root: &TempDir, disks: &[&str]) -> Sample {
        Sources::open(root.path(), disks.iter().map(|disk| (*disk).to_owned()).collect()).sample()
    }

    /// A Raspberry Pi 5 under load, as Linux 6.6 prints it.
    const PI5: [(&str, &str); 11] = [
        (
            "proc/stat",
            "cpu  40111 12 9822 1204411 8891 0 311 0 0 0\ncpu0 10042 3 2511 300871 2410 0 180 0 0 0\nintr 9001 0 0\n",
        ),
        (
            "proc/vmstat",
            "nr_free_pages 81234\nnr_dirty 17\nnr_writeback 3\npgpgin 2201344\npgpgout 99122\npswpin 4096\npswpout 8192\n\
             pgfault 7123456\npgmajfault 5120\nzswpin 11\nzswpout 12\n",
        ),
        (
            "proc/diskstats",
            " 179       0 mmcblk0 21034 7021 2201344 30111 2210 3301 198244 44012 1 51200 74123 0 0 0 0 811 2200\n \
             179       1 mmcblk0p1 341 1204 12234 255 1 0 1 0 0 240 255 0 0 0 0 0 0\n   \
             8       0 sda 100 0 800 50 7 0 56 3 0 41 53\n",
        ),
        (
            "proc/pressure/cpu",
            "some avg10=3.11 avg60=1.00 avg300=0.20 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        ),
        (
            "proc/pressure/memory",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=40\n",
        ),
        (
            "proc/pressure/io",
            "some avg10=45.10 avg60=9.12 avg300=2.00 total=99887766\nfull avg10=40.00 avg60=8.00 avg300=1.90 total=88776655\n",
        ),
        ("sys/class/thermal/thermal_zone0/temp", "61950\n"),
        ("sys/class/thermal/thermal_zone1/temp", "58300\n"),
        ("sys/class/thermal/cooling_device0/temp", "99000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n"),
        ("sys/devices/platform/soc/soc:firmware/get_throttled", "50005\n"),
    ];

    #[test]
    fn every_figure_of_a_pi_5() {
        let sample = sample(&tree(&PI5), &["mmcblk0", "sda", "nvme9n1"]);
        let vm = [
            ("nr_dirty", 17),
            ("nr_writeback", 3),
            ("pgpgin", 2_201_344),
            ("pgpgout", 99_122),
            ("pswpin", 4096),
            ("pswpout", 8192),
            ("pgfault", 7_123_456),
            ("pgmajfault", 5120),
            ("zswpin", 11),
            ("zswpout", 12),
        ];
        let pressure = [("cpu", (1_234_567, 0)), ("memory", (42, 40)), ("io", (99_887_766, 88_776_655))];
        let card = Disk {
            reads: 21034,
            read_bytes: 2_201_344 * 512,
            read_ms: 30111,
            writes: 2210,
            write_bytes: 198_244 * 512,
            write_ms: 44012,
            in_flight: 1,
            busy_ms: 51200,
            flushes: Some(811),
        };
        // A kernel before 5.5 does not count flushes.
        let old = Disk {
            reads: 100,
            read_bytes: 800 * 512,
            read_ms: 50,
            writes: 7,
            write_bytes: 56 * 512,
            write_ms: 3,
            in_flight: 0,
            busy_ms: 41,
            flushes: None,
        };
        let expected = Sample {
            at: basics::Nanos(0),
            cpu_ticks: Some([40111, 12, 9822, 1_204_411, 8891, 0, 311, 0]),
            pressure_us: pressure.map(|(name, stalls)| (name.to_owned(), stalls)).into(),
            vm: vm.map(|(name, value)| (name.to_owned(), value)).into(),
            disks: [("mmcblk0".to_owned(), card), ("sda".to_owned(), old)].into(),
            temperature_c: Some(61.95),
            cpu_mhz: Some(2400),
            throttled: Some(0x50005),
        };
        assert_eq!(sample, expected);
        let stored = serde_json::to_string(&expected).unwrap();
        assert_eq!(serde_json::from_str::<Sample>(&stored).unwrap(), expected);
    }

    /// Bug: the Pi 5, whose folders bear an address, was never seen throttled.
    #[test]
    fn a_real_pi_5_tells_its_heat_and_throttling() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees/pi5-nvme");
        let sample = Sources::open(&root, vec![]).sample();
        assert!(sample.throttled.is_some() && sample.temperature_c.is_some(), "{sample:?}");
    }

    #[test]
    fn a_reading_beyond_reason_is_no_temperature() {
        let zones = [
            ("sys/class/thermal/thermal_zone0/temp", "-274000\n"),
            ("sys/class/thermal/thermal_zone1/temp", "55000\n"),
            ("sys/class/thermal/thermal_zone2/temp", "999000\n"),
        ];
        assert_eq!(sample(&tree(&zones), &[]).temperature_c, Some(55.0));
    }

    #[test]
    fn what_a_machine_lacks_is_absent() {
        assert_eq!(sample(&tree(&[]), &["sda"]), Sample::default());
        // Broken off in mid-write, of another kind, or from a kernel that has only half of it.
        let odd = [
            ("proc/stat", "cpu  40111 12"),
            ("proc/vmstat", "pgfault many\nnr_dirty\npgmajfault 3\n"),
            ("proc/diskstats", "   8       0 sda 100 0 800\n"),
            ("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"),
            ("proc/pressure/io", ""),
            ("sys/class/thermal/thermal_zone0/temp", "N/A\n"),
            ("sys/class/thermal/thermal_zone1/temp", "-4000\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "<unknown>\n"),
            ("sys/devices/platform/soc/soc:firmware/get_throttled", "\n"),
        ];
        let expected = Sample {
            vm: [("pgmajfault".to_owned(), 3)].into(),
            pressure_us: [("cpu".to_owned(), (7, 0))].into(),
            temperature_c: Some(-4.0),
            ..Sample::default()
        };
        assert_eq!(sample(&tree(&odd), &["sda"]), expected);
    }

    #[test]
    fn files_are_read_again_from_their_start() {
        let root = tree(&PI5);
        let mut sources = Sources::open(root.path(), vec![]);
        assert_eq!(sources.sample().temperature_c, Some(61.95));
        fs::write(root.path().join("sys/class/thermal/thermal_zone0/temp"), "70000\n").unwrap();
        assert_eq!(sources.sample().temperature_c, Some(70.0));
    }

    #[test]
    fn a_machine_of_many_disks_is_read_to_its_end() {
        let lines: String =
            (0..2000).map(|n| format!(" 259 {n} nvme{n}n1 1 0 8 1 2 0 16 1 0 1 2 0 0 0 0 0 0\n")).collect();
        let sample = sample(&tree(&[("proc/diskstats", &lines)]), &["nvme1999n1"]);
        assert_eq!(sample.disks["nvme1999n1"].writes, 2);
    }

    #[test]
    fn a_real_disk_counts_up() {
        let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
        let names: Vec<String> =
            text.lines().filter_map(|line| Some(line.split_ascii_whitespace().nth(2)?.to_owned())).collect();
        let mut sources = Sources::open(Path::new("/"), names.clone());
        let (first, second) = (sources.sample(), sources.sample());
        // A loop device may come or go meanwhile, so only those that both know are compared.
        assert!(names.is_empty() || !first.disks.is_empty());
        for (name, disk) in &first.disks {
            assert!(second.disks.get(name).is_none_or(|later| later.read_bytes >= disk.read_bytes), "{name}");
        }
    }
}
