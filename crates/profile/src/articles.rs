//! The five published articles as typed data, in the units in which they were published. Each file in `data/` names its
//! source; [`crate::published`] brings what they say of devices to the units in which tiermark measures.

use basics::little::{self, Audit, Flow};
use serde::Deserialize;
use std::sync::LazyLock;

/// The machine that figures were measured on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Board.
    pub model: String,
    /// RAM in 10^9 bytes, as sold.
    #[serde(rename = "ram_GB")]
    pub ram_gb: Option<f64>,
    /// The kernel's page size.
    #[serde(rename = "page_size_B")]
    pub page_size_b: Option<u64>,
}

/// A bus as an article computes or states it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// Name in the article.
    pub name: String,
    /// Signalling rate.
    #[serde(rename = "signal_Gbps")]
    pub signal_gbps: Option<f64>,
    /// Line code.
    pub encoding: Option<String>,
    /// Signalling rate in 10^6 bytes a second.
    #[serde(rename = "raw_MBps")]
    pub raw_mbps: Option<f64>,
    /// After the line code.
    #[serde(rename = "encoded_MBps")]
    pub encoded_mbps: Option<f64>,
    /// Lowest and highest rate in practice.
    #[serde(rename = "practical_MBps")]
    pub practical_mbps: Option<(f64, f64)>,
    /// Time to cross it.
    pub transit_us: Option<f64>,
    /// Commands a second at depth 1, as a multiple of USB 3's ("up to").
    pub qd1_commands_vs_usb3: Option<f64>,
}

/// What `hdparm -tT --direct` printed, in 2^20 bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hdparm {
    /// The same 2 MiB over and over (`-T`).
    #[serde(rename = "cached_MiBps")]
    pub cached_mibps: f64,
    /// From the start on (`-t`).
    #[serde(rename = "disk_MiBps")]
    pub disk_mibps: f64,
}

/// Mean and 99th percentile, µs.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeanP99 {
    /// Arithmetic mean.
    pub mean: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A row of the swap simulation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapRow {
    /// Reads a second.
    pub read_iops: f64,
    /// 2^20 bytes read a second.
    #[serde(rename = "read_MiBps")]
    pub read_mibps: f64,
    /// Writes a second.
    pub write_iops: f64,
    /// 2^20 bytes written a second.
    #[serde(rename = "write_MiBps")]
    pub write_mibps: f64,
    /// Of reads.
    pub read_lat_us: Option<MeanP99>,
    /// Of writes.
    pub write_lat_us: Option<MeanP99>,
    /// Of both together, where the directions were not told apart.
    pub lat_us: Option<MeanP99>,
    /// IOPS × mean latency summed over directions: the operations really in flight.
    pub littles_law: f64,
}

impl SwapRow {
    /// The row held against the depth of its job.
    pub fn audit(&self, job: &SwapJob, in_submission: bool) -> Audit {
        let flow = |iops, latency: Option<MeanP99>| Flow { iops, mean_us: latency.or(self.lat_us).map(|l| l.mean) };
        let flows = [flow(self.read_iops, self.read_lat_us), flow(self.write_iops, self.write_lat_us)];
        little::audit(&flows, job.depth, job.jobs, 0.0, in_submission)
    }
}

/// A device of the Pi 5 article.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pi5Device {
    /// Short name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What it hangs on.
    pub bus: Option<String>,
    /// Sequential reads.
    pub hdparm: Hdparm,
    /// Swap simulation.
    pub swap: SwapRow,
    /// Operations are done when their submission returns: it is memory.
    #[serde(default)]
    pub in_submission: bool,
}

/// The job of the swap simulation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwapJob {
    /// Share of reads.
    pub read_percent: u8,
    /// Length of an operation.
    #[serde(rename = "block_B")]
    pub block_b: u64,
    /// Operations in flight.
    pub depth: u32,
    /// Processes.
    pub jobs: u32,
    /// Length of the file, 2^20 bytes.
    #[serde(rename = "size_MiB")]
    pub size_mib: u64,
    /// How long.
    pub runtime_s: u32,
    /// Past the page cache.
    pub direct: bool,
}

/// A model of the LLM table; in pairs, one for each of [`Llm::tiers`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmModel {
    /// Name in Ollama.
    pub name: String,
    /// 10^9 bytes.
    #[serde(rename = "size_GB")]
    pub size_gb: f64,
    /// Whole time in seconds.
    pub total_s: [f64; 2],
    /// Generated tokens a second.
    pub tps: [f64; 2],
    /// CPU use.
    pub cpu_percent: [f64; 2],
    /// Share of time in which CPUs waited for I/O.
    pub iowait_percent: [f64; 2],
}

/// LLM generation under memory pressure, swap on two kinds of disk.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Llm {
    /// The program.
    pub runner: String,
    /// Memory taken away, 10^9 bytes.
    #[serde(rename = "locked_GB")]
    pub locked_gb: f64,
    /// Where swap was.
    pub tiers: [String; 2],
    /// What to mind.
    pub note: String,
    /// Rows.
    #[serde(rename = "model")]
    pub models: Vec<LlmModel>,
}

/// `data/pi5-optane.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pi5Optane {
    /// Title of the article.
    pub source: String,
    /// Where it was measured.
    pub machine: Machine,
    /// Its bus mathematics.
    #[serde(rename = "bus")]
    pub buses: Vec<Bus>,
    /// The job behind the swap rows.
    pub swap_simulation: SwapJob,
    /// Devices.
    #[serde(rename = "device")]
    pub devices: Vec<Pi5Device>,
    /// LLM table.
    pub llm: Llm,
}

/// A row of iozone's table: record size in KiB, then 2^10 bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "[f64; 7]")]
pub struct IozoneRow {
    /// Record size, 2^10 bytes.
    pub record_kib: f64,
    /// First write of the file.
    pub write: f64,
    /// Second write.
    pub rewrite: f64,
    /// First read.
    pub read: f64,
    /// Second read.
    pub reread: f64,
    /// Each record once, in random order.
    pub random_read: f64,
    /// The same, written.
    pub random_write: f64,
}

impl From<[f64; 7]> for IozoneRow {
    fn from([record_kib, write, rewrite, read, reread, random_read, random_write]: [f64; 7]) -> Self {
        IozoneRow { record_kib, write, rewrite, read, reread, random_read, random_write }
    }
}

/// How iozone was run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Iozone {
    /// Length of the file, 2^10 bytes.
    #[serde(rename = "file_KiB")]
    pub file_kib: u64,
    /// What the columns of the rows are.
    pub columns: Vec<String>,
}

/// A device of the Pi 3 article.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pi3Device {
    /// Short name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What it hangs on.
    pub bus: String,
    /// The article's quick sequential figure, 10^6 bytes a second.
    #[serde(rename = "quick_MBps")]
    pub quick_mbps: f64,
    /// iozone's table.
    pub iozone: Vec<IozoneRow>,
}

/// Zeros against a compressing file system.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zeros {
    /// Zeros, as the program that wrote them saw it.
    #[serde(rename = "through_compression_MBps")]
    pub through_compression_mbps: f64,
    /// What the disk does.
    #[serde(rename = "incompressible_MBps")]
    pub incompressible_mbps: f64,
}

/// A row of compsize.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compsize {
    /// `total`, `none` or the algorithm.
    #[serde(rename = "type")]
    pub kind: String,
    /// Share of the disk usage in the uncompressed length.
    pub percent: f64,
    /// On the disk, 10^9 bytes.
    #[serde(rename = "disk_GB")]
    pub disk_gb: f64,
    /// What it holds.
    #[serde(rename = "uncompressed_GB")]
    pub uncompressed_gb: f64,
}

/// zswap as the article sets it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zswap {
    /// Largest share of RAM.
    pub max_pool_percent: u32,
    /// Allocator.
    pub zpool: String,
    /// What to mind today.
    pub note: String,
}

/// `data/pi3desk.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pi3Desk {
    /// Title of the article.
    pub source: String,
    /// Where it was measured.
    pub machine: Machine,
    /// Buses.
    #[serde(rename = "bus")]
    pub buses: Vec<Bus>,
    /// How iozone was run.
    pub iozone: Iozone,
    /// Devices.
    #[serde(rename = "device")]
    pub devices: Vec<Pi3Device>,
    /// Zeros through compression.
    pub zeros: Zeros,
    /// What compression saved on a desktop's root.
    pub compsize: Vec<Compsize>,
    /// zswap.
    pub zswap: Zswap,
}

/// A device of the gnome-disks article.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GnomeDevice {
    /// Short name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// What it hangs on.
    pub bus: String,
    /// Mean of the samples' rates.
    #[serde(rename = "read_MBps")]
    pub read_mbps: f64,
    /// Mean of the samples' rates.
    #[serde(rename = "write_MBps")]
    pub write_mbps: f64,
    /// Mean of random reads of one page.
    pub access_ms: Option<f64>,
    /// No significant variance over the device.
    pub stable: bool,
    /// The rate falls below this.
    #[serde(rename = "drops_below_MBps")]
    pub drops_below_mbps: Option<f64>,
    /// In which parts of the device.
    #[serde(default)]
    pub drops_where: Vec<String>,
}

/// A speed class of SD cards.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeedClass {
    /// Its names.
    pub names: Vec<String>,
    /// Least sequential write rate.
    #[serde(rename = "write_MBps")]
    pub write_mbps: f64,
}

/// How gnome-disks was run.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GnomeMethod {
    /// Samples of the rate.
    pub throughput_samples: u32,
    /// Length of one, 10^6 bytes.
    #[serde(rename = "sample_MB")]
    pub sample_mb: u32,
    /// Samples of the access time.
    pub access_samples: u32,
}

/// `data/usb-vs-sd.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsbVsSd {
    /// Title of the article.
    pub source: String,
    /// Where it was measured.
    pub machine: Machine,
    /// How.
    pub method: GnomeMethod,
    /// Devices.
    #[serde(rename = "device")]
    pub devices: Vec<GnomeDevice>,
    /// Interfaces.
    #[serde(rename = "bus")]
    pub buses: Vec<Bus>,
    /// Speed classes.
    #[serde(rename = "class")]
    pub classes: Vec<SpeedClass>,
}

/// What the review states about sequential reads of a device.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewRead {
    /// 128 KiB at depth 1 in the sweep over depths, 10^9 bytes a second.
    #[serde(rename = "qd1_128k_GBps")]
    pub qd1_128k_gbps: Option<f64>,
    /// The same point in the sweep over sizes: at least so much.
    #[serde(rename = "qd1_128k_by_size_at_least_GBps")]
    pub qd1_128k_by_size_at_least_gbps: Option<f64>,
    /// At all depths from `saturates_at_depth` on.
    #[serde(rename = "saturated_GBps")]
    pub saturated_gbps: Option<f64>,
    /// Depth from which it gets no faster.
    pub saturates_at_depth: u32,
    /// 1 MiB at depth 1.
    #[serde(rename = "largest_transfer_qd1_GBps")]
    pub largest_transfer_qd1_gbps: Option<f64>,
}

impl ReviewRead {
    /// The rate at depth 1 in one sweep held against the time of an operation in the other: at depth 1 rate × time is 1, or the
    /// two are not of one device. Nothing where only one is stated.
    pub fn audit(&self) -> Option<Audit> {
        let (by_depth, by_size) = (self.qd1_128k_gbps?, self.qd1_128k_by_size_at_least_gbps?);
        let bytes = 128.0 * 1024.0;
        let flow = Flow { iops: by_depth * 1e9 / bytes, mean_us: Some(bytes / by_size / 1e3) };
        Some(little::audit(&[flow], 1, 1, 0.0, false))
    }
}

/// What the review states about sequential writes of a device.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewWrite {
    /// 1 MiB at depth 1, lowest and highest, 10^9 bytes a second.
    #[serde(rename = "largest_transfer_qd1_GBps")]
    pub largest_transfer_qd1_gbps: (f64, f64),
    /// Depth from which it gets no faster.
    pub saturates_at_depth: Option<u32>,
}

/// A device of the review.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewDevice {
    /// Short name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Sequential reads.
    pub read: ReviewRead,
    /// Sequential writes.
    pub write: ReviewWrite,
    /// Where the review contradicts itself or gave up.
    pub inconsistent: Option<String>,
}

/// How the review measured.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewMethod {
    /// Length of a point.
    pub minutes_per_point: u32,
    /// Thrown away of it.
    pub discard_first_minutes: u32,
    /// Block size of the sweep over depths, 2^10 bytes.
    #[serde(rename = "depth_sweep_block_KiB")]
    pub depth_sweep_block_kib: u32,
    /// Deepest total.
    pub total_depth_max: u32,
    /// Most threads.
    pub threads_max: u32,
}

/// `data/p4800x.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Review {
    /// Title of the review.
    pub source: String,
    /// How.
    pub method: ReviewMethod,
    /// Devices.
    #[serde(rename = "device")]
    pub devices: Vec<ReviewDevice>,
}

/// One value, or the lowest and the highest.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Span {
    /// One value.
    One(f64),
    /// Lowest, highest.
    Between(f64, f64),
}

/// A row of the Redis article.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisRow {
    /// Machine.
    pub node: String,
    /// Storage, where the row states it.
    pub medium: Option<String>,
    /// Bytes of a value.
    #[serde(rename = "payload_B")]
    pub payload_b: u64,
    /// `memory-only`, `aof-everysec`, `aof-always`.
    pub mode: String,
    /// Operations a second.
    pub ops: f64,
    /// 95th percentile of the latency, ms.
    pub p95_ms: Span,
}

/// How Redis was measured.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisMethod {
    /// Bytes of a value.
    #[serde(rename = "payload_B")]
    pub payload_b: Vec<u64>,
    /// Connections.
    pub clients: u32,
    /// Threads of the client.
    pub threads: u32,
    /// Operations a test.
    pub operations: u64,
    /// Repeats, of which the median.
    pub repeats: u32,
}

/// `data/redis-edge.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisEdge {
    /// Title of the article.
    pub source: String,
    /// How.
    pub method: RedisMethod,
    /// Rows.
    #[serde(rename = "result")]
    pub results: Vec<RedisRow>,
    /// What became of a real installation.
    pub case_study: RedisCase,
}

/// An installation before and after its Redis servers were set up otherwise.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedisCase {
    /// Machines.
    pub nodes: u32,
    /// How it was.
    pub before: String,
    /// How it is.
    pub after: String,
    /// Times as fast, as users see it.
    pub latency_gain: f64,
    /// Less traffic to the cloud, per cent.
    pub egress_saved_percent: f64,
}

/// A shipped file, parsed when first asked for.
macro_rules! shipped {
    ($(#[$doc:meta])* $face:ident: $type:ty = $file:literal) => {
        $(#[$doc])*
        pub fn $face() -> &'static $type {
            static PARSED: LazyLock<$type> = LazyLock::new(|| {
                // The file is part of the program and a test parses it: this cannot fail in use.
                toml::from_str(include_str!(concat!("../data/", $file))).expect($file)
            });
            &PARSED
        }
    };
}

shipped! {
    /// SD, USB SSDs, Optane, RAM and zram on a Raspberry Pi 5; LLMs under swap.
    pi5_optane: Pi5Optane = "pi5-optane.toml"
}
shipped! {
    /// SD card against USB SSD on a Raspberry Pi 3 desktop.
    pi3desk: Pi3Desk = "pi3desk.toml"
}
shipped! {
    /// SD card against USB SSD with gnome-disks; speed classes.
    usb_vs_sd: UsbVsSd = "usb-vs-sd.toml"
}
shipped! {
    /// Three data-centre SSDs, sequential.
    review: Review = "p4800x.toml"
}
shipped! {
    /// Redis on a Raspberry Pi 5 and on a server.
    redis_edge: RedisEdge = "redis-edge.toml"
}
