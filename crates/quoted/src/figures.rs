//! The figures of each format, typed, under the names that its readers know, with the unit in the name. Unknown is absent.

use crate::Format;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of one block. As JSON: `{"format": "hdparm", "figures": {…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "format", content = "figures", rename_all = "kebab-case")]
pub enum Figures {
    /// Of hdparm.
    Hdparm(Hdparm),
    /// Of a job in fio's JSON.
    FioJson(Fio),
    /// Of a job in fio's text.
    FioText(Fio),
    /// Of iozone.
    Iozone(Iozone),
    /// Of dd.
    Dd(Dd),
    /// Of compsize.
    Compsize(Compsize),
    /// Of gnome-disks.
    GnomeDisks(GnomeDisks),
    /// Of a log of fio.
    FioLog(FioLog),
}

/// What `hdparm -tT` prints. Its "MB/sec" are 2^20 bytes a second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Hdparm {
    /// `-T`: 2^20 bytes a second.
    #[serde(rename = "cached_MiBps", skip_serializing_if = "Option::is_none", default)]
    pub cached_mibps: Option<f64>,
    /// `-t`: 2^20 bytes a second.
    #[serde(rename = "disk_MiBps", skip_serializing_if = "Option::is_none", default)]
    pub disk_mibps: Option<f64>,
    /// With `--direct`: neither passed through the page cache.
    pub direct: bool,
}

/// A job, or a group of jobs that were reported together, as fio prints it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Fio {
    /// The job's name. Empty where the text does not say.
    pub job: String,
    /// `randread`, ….
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rw: Option<String>,
    /// Bytes of an operation, when it is one size.
    #[serde(rename = "block_B", skip_serializing_if = "Option::is_none", default)]
    pub block_b: Option<u64>,
    /// Operations in flight for each job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u32>,
    /// Jobs at a time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jobs: Option<u32>,
    /// Whether it went past the page cache.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub direct: Option<bool>,
    /// Reads, where there were any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read: Option<FioSide>,
    /// Writes, where there were any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub write: Option<FioSide>,
    /// Discards, where there were any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trim: Option<FioSide>,
}

/// One direction of a job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FioSide {
    /// Operations a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    #[serde(rename = "MBps")]
    pub mbps: f64,
    /// Bytes in all.
    #[serde(rename = "bytes", skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// How long it ran, s.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runtime_s: Option<f64>,
    /// Submission, µs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub slat_us: Option<Spread>,
    /// From submitted to complete, µs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clat_us: Option<Spread>,
    /// Both together, µs. fio gives percentiles of it only with `lat_percentiles=1`; those of `clat_us` are its default.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lat_us: Option<Spread>,
}

/// A distribution of latencies as fio sums it up, all in µs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Least.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min: Option<f64>,
    /// Greatest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max: Option<f64>,
    /// Mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mean: Option<f64>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stddev: Option<f64>,
    /// Percentiles by name: `p50`, `p99`, `p99_9`, ….
    #[serde(flatten)]
    pub percentiles: BTreeMap<String, f64>,
}

/// The name of a percentile as fio writes it: `99.900000` is `p99_9`.
pub(crate) fn percentile_name(percent: f64) -> String {
    format!("p{percent}").replace('.', "_")
}

/// A table of iozone.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Iozone {
    /// Length of the file, 2^10 bytes.
    #[serde(rename = "file_KiB")]
    pub file_kib: u64,
    /// A row for each record size.
    pub rows: Vec<IozoneRow>,
}

/// Rates at one record size, 2^10 bytes a second, each absent when its test was not run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct IozoneRow {
    /// Length of a record, 2^10 bytes.
    #[serde(rename = "record_KiB")]
    pub record_kib: u64,
    /// By column: `write`, `rewrite`, `read`, `reread`, `random_read`, `random_write`, ….
    #[serde(flatten)]
    pub rates: BTreeMap<String, u64>,
}

/// dd's last line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Dd {
    /// Bytes copied.
    pub bytes: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// The rate as printed, 10^6 bytes a second; where none is printed, bytes over seconds.
    #[serde(rename = "MBps")]
    pub mbps: f64,
}

/// A table of compsize.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Compsize {
    /// A row for each kind, `total` among them.
    pub types: Vec<CompsizeRow>,
}

/// What files of one kind of compression take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CompsizeRow {
    /// `total`, `none`, `zlib`, `lzo`, `zstd`, ….
    #[serde(rename = "type")]
    pub kind: String,
    /// Disk usage over uncompressed size, as printed.
    pub percent: f64,
    /// Bytes on the disk, as exact as they were printed.
    #[serde(rename = "disk_B")]
    pub disk_b: u64,
    /// Bytes that they hold.
    #[serde(rename = "uncompressed_B")]
    pub uncompressed_b: u64,
    /// Bytes that files refer to.
    #[serde(rename = "referenced_B")]
    pub referenced_b: u64,
}

/// What gnome-disks draws under its chart; the keys are those of the TOML as well.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GnomeDisks {
    /// A short name of the device.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// How it is connected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bus: Option<String>,
    /// Average read rate, 10^6 bytes a second.
    #[serde(rename = "read_MBps", skip_serializing_if = "Option::is_none", default)]
    pub read_mbps: Option<f64>,
    /// Average write rate, 10^6 bytes a second.
    #[serde(rename = "write_MBps", skip_serializing_if = "Option::is_none", default)]
    pub write_mbps: Option<f64>,
    /// Average access time, ms.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub access_ms: Option<f64>,
    /// Whether the curve keeps its height, as somebody saw it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stable: Option<bool>,
    /// What it drops below where it does not, 10^6 bytes a second.
    #[serde(rename = "drops_below_MBps", skip_serializing_if = "Option::is_none", default)]
    pub drops_below_mbps: Option<f64>,
    /// Where it drops: `start`, `end`, ….
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drops_where: Vec<String>,
}

/// A log of fio. Its entries are single operations, or averages when fio was told `log_avg_msec`; the file does not say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FioLog {
    /// `bw` (values in 10^6 bytes a second), `iops`, or `lat`, `clat`, `slat` (µs).
    pub kind: String,
    /// Reads.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub read: Option<LogSide>,
    /// Writes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub write: Option<LogSide>,
    /// Discards.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub trim: Option<LogSide>,
}

/// One direction of a log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LogSide {
    /// Lines.
    pub entries: u64,
    /// Time of the last, s.
    pub until_s: f64,
    /// Least, greatest and mean of the entries, each counted once.
    pub values: Spread,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Dotted: `read.lat_us.p99`.
    pub name: String,
    /// In the unit that the name says.
    pub value: f64,
    /// Whether more is better, where one of the two is.
    pub more_is_better: Option<bool>,
}

impl Figures {
    /// Whose they are.
    pub fn format(&self) -> Format {
        match self {
            Figures::Hdparm(_) => Format::Hdparm,
            Figures::FioJson(_) => Format::FioJson,
            Figures::FioText(_) => Format::FioText,
            Figures::Iozone(_) => Format::Iozone,
            Figures::Dd(_) => Format::Dd,
            Figures::Compsize(_) => Format::Compsize,
            Figures::GnomeDisks(_) => Format::GnomeDisks,
            Figures::FioLog(_) => Format::FioLog,
        }
    }

    /// What was asked for, as far as the text says: figures of different work are not held against each other.
    pub fn asked(&self) -> Vec<(&'static str, String)> {
        let mut asked = Vec::new();
        let mut put = |name, value: Option<String>| asked.extend(value.map(|value| (name, value)));
        match self {
            Figures::Hdparm(hdparm) => put("the way past the page cache", Some(hdparm.direct.to_string())),
            Figures::FioJson(fio) | Figures::FioText(fio) => {
                put("the order and direction", fio.rw.clone());
                put("the block size", fio.block_b.map(|bytes| format!("{bytes} B")));
                put("the depth", fio.depth.map(|depth| depth.to_string()));
                put("the number of jobs", fio.jobs.map(|jobs| jobs.to_string()));
            }
            Figures::Iozone(iozone) => put("the length of the file", Some(format!("{} KiB", iozone.file_kib))),
            Figures::Dd(_) | Figures::Compsize(_) | Figures::GnomeDisks(_) | Figures::FioLog(_) => {}
        }
        asked
    }

    /// Every measured figure by its name, in the order in which they are printed; what was asked for (sizes, depths) names
    /// rows and is no figure.
    pub fn list(&self) -> Vec<Figure> {
        let mut list = List(Vec::new());
        match self {
            Figures::Hdparm(hdparm) => {
                list.rate("cached_MiBps", hdparm.cached_mibps);
                list.rate("disk_MiBps", hdparm.disk_mibps);
            }
            Figures::FioJson(fio) | Figures::FioText(fio) => {
                for (name, side) in [("read", &fio.read), ("write", &fio.write), ("trim", &fio.trim)] {
                    if let Some(side) = side {
                        list.side(name, side);
                    }
                }
            }
            Figures::Iozone(iozone) => {
                for row in &iozone.rows {
                    // Known columns first, as iozone orders them.
                    let place = |name: &str| crate::iozone::COLUMNS.iter().position(|column| *column == name);
                    let mut rates: Vec<_> = row.rates.iter().collect();
                    rates.sort_by_key(|(name, _)| place(name));
                    for (name, rate) in rates {
                        list.rate(&format!("{name}_KiBps_at_{}_KiB", row.record_kib), Some(*rate as f64));
                    }
                }
            }
            Figures::Dd(dd) => {
                list.rate("MBps", Some(dd.mbps));
                list.push("seconds".to_owned(), Some(dd.seconds), Some(false));
            }
            Figures::Compsize(compsize) => {
                for row in &compsize.types {
                    let name = |part: &str| format!("{}.{part}", row.kind);
                    list.push(name("percent"), Some(row.percent), Some(false));
                    list.push(name("disk_B"), Some(row.disk_b as f64), None);
                    list.push(name("uncompressed_B"), Some(row.uncompressed_b as f64), None);
                    list.push(name("referenced_B"), Some(row.referenced_b as f64), None);
                }
            }
            Figures::GnomeDisks(disks) => {
                list.rate("read_MBps", disks.read_mbps);
                list.rate("write_MBps", disks.write_mbps);
                list.push("access_ms".to_owned(), disks.access_ms, Some(false));
                list.rate("drops_below_MBps", disks.drops_below_mbps);
            }
            Figures::FioLog(log) => {
                let (unit, more) = match log.kind.as_str() {
                    "bw" => ("MBps".to_owned(), true),
                    "iops" => ("iops".to_owned(), true),
                    latency => (format!("{latency}_us"), false),
                };
                for (name, side) in [("read", &log.read), ("write", &log.write), ("trim", &log.trim)] {
                    let Some(LogSide { values, .. }) = side else { continue };
                    for (part, value) in [("mean", values.mean), ("min", values.min), ("max", values.max)] {
                        list.push(format!("{name}.{unit}.{part}"), value, Some(more));
                    }
                }
            }
        }
        list.0
    }
}

struct List(Vec<Figure>);

impl List {
    fn push(&mut self, name: String, value: Option<f64>, more_is_better: Option<bool>) {
        self.0.extend(value.map(|value| Figure { name, value, more_is_better }));
    }

    fn rate(&mut self, name: &str, value: Option<f64>) {
        self.push(name.to_owned(), value, Some(true));
    }

    fn side(&mut self, name: &str, side: &FioSide) {
        self.rate(&format!("{name}.iops"), Some(side.iops));
        self.rate(&format!("{name}.MBps"), Some(side.mbps));
        for (kind, spread) in [("lat_us", &side.lat_us), ("clat_us", &side.clat_us), ("slat_us", &side.slat_us)] {
            let Some(spread) = spread else { continue };
            for (part, value) in
                [("mean", spread.mean), ("stddev", spread.stddev), ("min", spread.min), ("max", spread.max)]
            {
                self.push(format!("{name}.{kind}.{part}"), value, Some(false));
            }
            let percent = |name: &str| name.trim_start_matches('p').replace('_', ".").parse().unwrap_or(f64::NAN);
            let mut percentiles: Vec<_> = spread.percentiles.iter().collect();
            percentiles.sort_by(|a, b| percent(a.0).total_cmp(&percent(b.0)));
            for (part, value) in percentiles {
                self.push(format!("{name}.{kind}.{part}"), Some(*value), Some(false));
            }
        }
    }
}
