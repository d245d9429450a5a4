//! What the kernel counts, under the names that node_exporter gives it. What this kernel lacks is not there.

use crate::text::{Family, Kind, Kind::Counter, Kind::Gauge};
use observe::{Disk, Sample};
use procfs_core::{CpuTime, ExplicitSystemInfo, FromBufReadSI, KernelStats};
use std::io::BufRead;

/// Ticks of a processor: user, nice, system, idle, iowait, irq, softirq, steal.
pub type Ticks = [u64; 8];

/// The same as node_exporter calls them.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Of a disk: the name behind `node_disk_`, what it is, and its value.
type OfDisk = (&'static str, Kind, &'static str, fn(&Disk) -> Option<f64>);

const DISK: &[OfDisk] = &[
    ("reads_completed_total", Counter, "Reads completed.", |disk| Some(disk.reads as f64)),
    ("read_bytes_total", Counter, "Bytes read.", |disk| Some(disk.read_bytes as f64)),
    ("read_time_seconds_total", Counter, "Time that all reads took.", |disk| Some(disk.read_ms as f64 / 1e3)),
    ("writes_completed_total", Counter, "Writes completed.", |disk| Some(disk.writes as f64)),
    ("written_bytes_total", Counter, "Bytes written.", |disk| Some(disk.write_bytes as f64)),
    ("write_time_seconds_total", Counter, "Time that all writes took.", |disk| Some(disk.write_ms as f64 / 1e3)),
    ("io_now", Gauge, "Requests on the way.", |disk| Some(disk.in_flight as f64)),
    ("io_time_seconds_total", Counter, "Time in which the disk was busy.", |disk| Some(disk.busy_ms as f64 / 1e3)),
    ("flush_requests_total", Counter, "Flushes completed.", |disk| disk.flushes.map(|flushes| flushes as f64)),
];

/// Stalls: the resource, and behind `node_pressure_` the names for those of some tasks and of all.
const PRESSURE: &[(&str, &str, Option<&str>)] = &[
    ("cpu", "cpu_waiting_seconds_total", None),
    ("io", "io_waiting_seconds_total", Some("io_stalled_seconds_total")),
    ("memory", "memory_waiting_seconds_total", Some("memory_stalled_seconds_total")),
];

/// The ticks of each processor, of the text of `/proc/stat`.
pub fn processors(stat: impl BufRead) -> Vec<Ticks> {
    let ticks = |time: &CpuTime| {
        let or_none = |ticks: Option<u64>| ticks.unwrap_or(0);
        let later = [or_none(time.iowait), or_none(time.irq), or_none(time.softirq), or_none(time.steal)];
        let [iowait, irq, softirq, steal] = later;
        [time.user, time.nice, time.system, time.idle, iowait, irq, softirq, steal]
    };
    // Ticks stay ticks here, so that none of this matters.
    let system = ExplicitSystemInfo { boot_time_secs: 0, ticks_per_second: 1, page_size: 1, is_little_endian: true };
    let stat = KernelStats::from_buf_read(stat, &system);
    stat.map_or_else(|_| Vec::new(), |stat| stat.cpu_time.iter().map(ticks).collect())
}

/// The families of a sample, and of the processors by their names with it.
pub fn families(sample: &Sample, processors: &[(String, Ticks)], ticks_per_second: f64) -> Vec<Family> {
    let mut all = Vec::new();
    let mut cpu = Family::new(Counter, "node_cpu_seconds_total", "Time that each processor spent in each mode.");
    for (name, ticks) in processors {
        for (mode, ticks) in MODES.iter().zip(ticks) {
            let labels = vec![("cpu", name.clone()), ("mode", (*mode).to_owned())];
            cpu = cpu.with(labels, *ticks as f64 / ticks_per_second);
        }
    }
    all.push(cpu);
    for (resource, waiting, stalled) in PRESSURE {
        let Some((some, full)) = sample.pressure_us.get(*resource) else { continue };
        let mut add = |name: &str, who: &str, us: u64| {
            let help = format!("Time in which {who} tasks stalled for want of {resource}.");
            all.push(Family::new(Counter, &format!("node_pressure_{name}"), help).with(vec![], us as f64 / 1e6));
        };
        add(waiting, "some", *some);
        if let Some(stalled) = stalled {
            add(stalled, "all", *full);
        }
    }
    for (field, value) in &sample.vm {
        let help = format!("/proc/vmstat information field {field}.");
        all.push(Family::new(Kind::Unknown, &format!("node_vmstat_{field}"), help).with(vec![], *value as f64));
    }
    for (name, kind, help, value) in DISK {
        let mut family = Family::new(*kind, &format!("node_disk_{name}"), *help);
        for (disk, figures) in &sample.disks {
            if let Some(value) = value(figures) {
                family = family.with(vec![("device", disk.clone())], value);
            }
        }
        all.push(family);
    }
    if let Some(mhz) = sample.cpu_mhz {
        let family = Family::new(Gauge, "node_cpu_scaling_frequency_hertz", "Frequency of a processor.");
        all.push(family.with(vec![("cpu", "0".to_owned())], f64::from(mhz) * 1e6));
    }
    if let Some(degrees) = sample.temperature_c {
        // node_exporter names each zone; this is the hottest.
        all.push(Family::new(Gauge, "tiermark_temperature_celsius", "Hottest thermal zone.").with(vec![], degrees));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, write};

    const STAT: &str = "cpu  300 0 200 1000 50 0 7 9 0 0\ncpu0 100 0 150 600 50 0 7 4 0 0\ncpu1 200 0 50 400 0 0 0 5 0 0\n\
                        intr 9001 0\nctxt 1\nbtime 1700000000\nprocesses 10\nprocs_running 1\nprocs_blocked 0\n";

    #[test]
    fn counters_go_by_the_names_of_node_exporter() {
        let ticks = processors(STAT.as_bytes());
        assert_eq!(ticks.len(), 2);
        let processors: Vec<_> = ticks.into_iter().enumerate().map(|(cpu, ticks)| (cpu.to_string(), ticks)).collect();
        let disk = Disk { writes: 3, write_bytes: 4096, busy_ms: 1500, flushes: None, ..Disk::default() };
        let sample = Sample {
            pressure_us: [("io".to_owned(), (2_500_000, 1_000_000)), ("cpu".to_owned(), (1, 0))].into(),
            vm: [("pgmajfault".to_owned(), 12)].into(),
            disks: [("mmcblk0".to_owned(), disk)].into(),
            ..Sample::default()
        };
        let text = write(families(&sample, &processors, 100.0), Format::Plain);
        for line in [
            "node_cpu_seconds_total{cpu=\"1\",mode=\"steal\"} 0.05",
            "node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 0.5",
            "node_pressure_io_waiting_seconds_total 2.5",
            "node_pressure_io_stalled_seconds_total 1",
            "node_vmstat_pgmajfault 12",
            "node_disk_written_bytes_total{device=\"mmcblk0\"} 4096",
            "node_disk_io_time_seconds_total{device=\"mmcblk0\"} 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        // Unknown is not zero.
        assert!(!text.contains("memory") && !text.contains("flush") && !text.contains("celsius"), "{text}");
    }

    #[test]
    fn without_the_kernels_text_there_is_no_figure() {
        assert_eq!(processors(&b""[..]), Vec::<Ticks>::new());
        assert_eq!(write(families(&Sample::default(), &[], 100.0), Format::Plain), "");
    }
}
