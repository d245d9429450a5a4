//! What the machine did meanwhile: CPU by kind, pressure, virtual memory, disks, heat, as raw counters a few times a
//! second, with the observer's own cost. It judges nothing: rates and verdicts are derived by `study`.
#![forbid(unsafe_code)]

pub mod accesses;
mod listener;
mod memory;
mod observer;
mod sources;
pub mod stalls;

pub use listener::listener;
pub use memory::{Compressed, Memory, memory};
pub use observer::{ObserveError, Observer, sample};

use basics::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counters as they stood at one moment. A counter that this kernel lacks is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sample {
    /// Since the observer began, which is before the target is prepared and the job warmed up.
    pub at: Nanos,
    /// Of all processors, in clock ticks since boot: user, nice, system, idle, iowait, irq, softirq, steal.
    pub cpu_ticks: Option<[u64; 8]>,
    /// Time in µs in which some (`.0`) and all (`.1`) tasks stalled, by `cpu`, `memory`, `io`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pressure_us: BTreeMap<String, (u64, u64)>,
    /// From `/proc/vmstat`: pgfault, pgmajfault, pswpin, pswpout, pgpgin, pgpgout, nr_dirty, nr_writeback, zswpin,
    /// zswpout, zswpwb, swap_ra, swap_ra_hit, swpin_zero, swpout_zero, workingset_refault_anon and _file, oom_kill, those
    /// that exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vm: BTreeMap<String, u64>,
    /// By disk.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub disks: BTreeMap<String, Disk>,
    /// Hottest thermal zone, °C.
    pub temperature_c: Option<f64>,
    /// Of the first processor, MHz.
    pub cpu_mhz: Option<u32>,
    /// The firmware's throttling bits (Raspberry Pi): 0 to 3 under-voltage, frequency capped, throttled, soft
    /// temperature limit; 16 to 19 the same since they were last looked at. The driver asks about every two seconds.
    pub throttled: Option<u32>,
}

/// One line of `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Milliseconds spent reading.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Milliseconds spent writing.
    pub write_ms: u64,
    /// In flight now.
    pub in_flight: u64,
    /// Milliseconds in which it was busy.
    pub busy_ms: u64,
    /// Flushes completed; counted since Linux 5.5, and for whole disks only.
    pub flushes: Option<u64>,
}

/// What observing cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Samples taken.
    pub samples: u64,
    /// CPU time that opening, reading, parsing and handing over took, on whichever thread.
    pub cpu: Nanos,
    /// Samples left out because the one before, or its receiver, took longer than a period.
    pub dropped: u64,
}
