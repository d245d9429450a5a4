//! Published devices in the figures and units that tiermark measures, so that a tier can be held against them. Each
//! figure says which published number it was made from.

use crate::articles::{self, GnomeDevice, Pi3Device, Pi5Device, ReviewDevice};
use serde::Serialize;
use std::sync::LazyLock;

/// A figure that a published device and a measured tier may both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Sequential read of large blocks, 10^6 B/s.
    SeqRead,
    /// Sequential write of large blocks, made durable, 10^6 B/s.
    SeqWrite,
    /// Random 70/30 of 16 KiB at depth 4: reads a second.
    SwapReadIops,
    /// The same: writes a second.
    SwapWriteIops,
    /// The same: mean latency of a read, µs.
    SwapReadMean,
    /// The same: 99th percentile of a read, µs.
    SwapReadP99,
    /// The same: mean latency of a write, µs.
    SwapWriteMean,
    /// The same: 99th percentile of a write, µs.
    SwapWriteP99,
    /// Mean of a random 4 KiB read at depth 1, µs.
    RandRead4kMean,
    /// Mean of a random read of one page at depth 1 (the access time of gnome-disks), µs.
    PageReadMean,
}

impl Figure {
    /// Name with unit, for tables.
    pub fn label(self) -> &'static str {
        match self {
            Figure::SeqRead => "sequential read MB/s",
            Figure::SeqWrite => "sequential write MB/s",
            Figure::SwapReadIops => "16K 70/30 QD4 read IOPS",
            Figure::SwapWriteIops => "16K 70/30 QD4 write IOPS",
            Figure::SwapReadMean => "16K 70/30 QD4 read mean µs",
            Figure::SwapReadP99 => "16K 70/30 QD4 read p99 µs",
            Figure::SwapWriteMean => "16K 70/30 QD4 write mean µs",
            Figure::SwapWriteP99 => "16K 70/30 QD4 write p99 µs",
            Figure::RandRead4kMean => "4K random read QD1 mean µs",
            Figure::PageReadMean => "page random read QD1 mean µs",
        }
    }
}

/// A published figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Which.
    pub figure: Figure,
    /// In the unit of [`Figure::label`].
    pub value: f64,
    /// The number as published and how it was measured.
    pub from: String,
    /// False: kept for the record, but not what a measurement of the same device would give (see the device's notes).
    pub comparable: bool,
}

/// A device that somebody measured and published.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedDevice {
    /// Short kebab-case name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Title of the article.
    pub source: String,
    /// What it was measured on, when the source says.
    pub machine: Option<String>,
    /// What it hung on, when the source says.
    pub bus: Option<String>,
    /// In a fixed order, each at most once.
    pub figures: Vec<Published>,
    /// What to mind, each a sentence without its full stop.
    pub notes: Vec<String>,
}

impl PublishedDevice {
    /// A figure, when it was published.
    pub fn figure(&self, figure: Figure) -> Option<&Published> {
        self.figures.iter().find(|published| published.figure == figure)
    }
    /// The value of a figure that may be held against a measurement.
    pub fn comparable(&self, figure: Figure) -> Option<f64> {
        self.figure(figure).filter(|published| published.comparable).map(|published| published.value)
    }
}

/// All published devices.
pub fn published() -> &'static [PublishedDevice] {
    static ALL: LazyLock<Vec<PublishedDevice>> = LazyLock::new(|| {
        let pi5 = articles::pi5_optane().devices.iter().map(from_pi5);
        let pi3 = articles::pi3desk().devices.iter().map(from_pi3);
        let gnome = articles::usb_vs_sd().devices.iter().map(from_gnome);
        let review = articles::review().devices.iter().map(from_review);
        pi5.chain(pi3).chain(gnome).chain(review).collect()
    });
    &ALL
}

/// The published device of this name.
pub fn device(name: &str) -> Option<&'static PublishedDevice> {
    published().iter().find(|device| device.name == name)
}

/// 2^20 bytes a second in 10^6.
fn mib_to_mb(mibps: f64) -> f64 {
    mibps * 1.048_576
}

fn figure(figure: Figure, value: f64, from: impl Into<String>) -> Published {
    Published { figure, value, from: from.into(), comparable: true }
}

fn from_pi5(device: &Pi5Device) -> PublishedDevice {
    let article = articles::pi5_optane();
    let swap = &device.swap;
    let fio = "fio randrw 70/30, 16 KiB, depth 4";
    let mut figures = vec![
        figure(
            Figure::SeqRead,
            mib_to_mb(device.hdparm.disk_mibps),
            format!("hdparm -t --direct, {} MiB/s", device.hdparm.disk_mibps),
        ),
        figure(Figure::SwapReadIops, swap.read_iops, fio),
        figure(Figure::SwapWriteIops, swap.write_iops, fio),
    ];
    let read = (swap.read_lat_us.or(swap.lat_us), Figure::SwapReadMean, Figure::SwapReadP99);
    let write = (swap.write_lat_us.or(swap.lat_us), Figure::SwapWriteMean, Figure::SwapWriteP99);
    let audit = swap.audit(&article.swap_simulation, device.in_submission);
    for (latency, mean, p99) in [read, write] {
        let Some(latency) = latency else { continue };
        for (which, value) in [(mean, latency.mean), (p99, latency.p99)] {
            figures.push(Published { comparable: !audit.is_off(), ..figure(which, value, fio) });
        }
    }
    PublishedDevice {
        name: device.name.clone(),
        title: device.title.clone(),
        source: article.source.clone(),
        machine: Some(article.machine.model.clone()),
        bus: device.bus.clone(),
        figures,
        notes: audit.mark().into_iter().collect(),
    }
}

fn from_pi3(device: &Pi3Device) -> PublishedDevice {
    let article = articles::pi3desk();
    let mut figures = Vec::new();
    let largest = device.iozone.iter().max_by(|a, b| a.record_kib.total_cmp(&b.record_kib));
    if let Some(row) = largest {
        let from = |column: &str, kibps: f64| format!("iozone -e -I, {} KiB, {column}, {kibps} KiB/s", row.record_kib);
        figures.push(figure(Figure::SeqRead, row.read * 1.024e-3, from("read", row.read)));
        figures.push(figure(Figure::SeqWrite, row.write * 1.024e-3, from("write", row.write)));
    }
    if let Some(row) = device.iozone.iter().find(|row| row.record_kib == 4.0) {
        let from = format!("iozone -e -I, 4 KiB, random read, {} KiB/s", row.random_read);
        figures.push(figure(Figure::RandRead4kMean, 1e6 * row.record_kib / row.random_read, from));
    }
    PublishedDevice {
        name: device.name.clone(),
        title: device.title.clone(),
        source: article.source.clone(),
        machine: Some(article.machine.model.clone()),
        bus: Some(device.bus.clone()),
        figures,
        notes: Vec::new(),
    }
}

fn from_gnome(device: &GnomeDevice) -> PublishedDevice {
    let article = articles::usb_vs_sd();
    let from = "gnome-disks, mean of 1000 samples of 10 MB";
    let mut figures =
        vec![figure(Figure::SeqRead, device.read_mbps, from), figure(Figure::SeqWrite, device.write_mbps, from)];
    if let Some(ms) = device.access_ms {
        figures.push(figure(Figure::PageReadMean, ms * 1e3, "gnome-disks, mean of 1000 access times"));
    }
    let unstable = device.drops_below_mbps.map(|rate| {
        format!("unstable: falls below {rate} MB/s at the {} of the card", device.drops_where.join(" and the "))
    });
    PublishedDevice {
        name: device.name.clone(),
        title: device.title.clone(),
        source: article.source.clone(),
        machine: Some(article.machine.model.clone()),
        bus: Some(device.bus.clone()),
        figures,
        notes: unstable.into_iter().collect(),
    }
}

fn from_review(device: &ReviewDevice) -> PublishedDevice {
    let article = articles::review();
    let mut figures = Vec::new();
    if let Some(gbps) = device.read.saturated_gbps {
        let from = format!("128 KiB, depth {} and more", device.read.saturates_at_depth);
        figures.push(figure(Figure::SeqRead, gbps * 1e3, from));
    }
    let (low, high) = device.write.largest_transfer_qd1_gbps;
    figures.push(figure(Figure::SeqWrite, (low + high) / 2.0 * 1e3, format!("1 MiB, depth 1, {low} to {high} GB/s")));
    PublishedDevice {
        name: device.name.clone(),
        title: device.title.clone(),
        source: article.source.clone(),
        machine: None,
        bus: None,
        figures,
        notes: device.inconsistent.iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::Figure::*;
    use super::*;

    /// Every shipped figure against a list written by hand from the articles' tables.
    #[test]
    fn every_figure_is_the_published_one() {
        // 88.15 MiB/s = 92.43 MB/s and so on: hdparm's "MB/sec" are 2^20 bytes.
        let swap = [SwapReadIops, SwapWriteIops, SwapReadMean, SwapReadP99, SwapWriteMean, SwapWriteP99];
        let pi5: [(&str, f64, [f64; 6], bool); 6] = [
            ("sd-evo-pi5", 92.432, [496.0, 211.0, 3430.0, 21100.0, 6520.0, 60000.0], false),
            ("nvme-usb3-pi5", 363.363, [3618.0, 1556.0, 591.0, 750.0, 553.0, 979.0], false),
            ("sata-usb3-pi5", 179.621, [5006.0, 2150.0, 704.0, 2410.0, 171.0, 302.0], true),
            ("optane-pi5", 430.147, [11700.0, 5005.0, 217.0, 429.0, 278.0, 490.0], true),
            ("ram-pi5", 3048.189, [212_000.0, 91_000.0, 3.07, 4.32, 3.07, 4.32], false),
            ("zram-pi5", 2822.850, [66_300.0, 28_400.0, 32.07, 61.0, 32.07, 61.0], false),
        ];
        for (name, seq_read, row, latencies_hold) in pi5 {
            let device = device(name).unwrap();
            assert!((device.comparable(SeqRead).unwrap() - seq_read).abs() < 0.001, "{name}");
            for (figure, value) in swap.into_iter().zip(row) {
                let published = device.figure(figure).unwrap();
                assert_eq!(published.value, value, "{name} {figure:?}");
                let rate = matches!(figure, SwapReadIops | SwapWriteIops);
                assert_eq!(published.comparable, rate || latencies_hold, "{name} {figure:?}");
            }
            assert_eq!(device.figures.len(), 7, "{name}");
            assert_eq!(device.notes.is_empty(), latencies_hold, "{name}");
        }
        let others: [(&str, &[(Figure, f64)]); 7] = [
            // 22959 and 19316 KiB/s; 8722 KiB/s of 4 KiB are 2180.5 reads a second.
            ("sd-pi3", &[(SeqRead, 23.510), (SeqWrite, 19.780), (RandRead4kMean, 458.61)]),
            ("ssd-usb2-pi3", &[(SeqRead, 29.387), (SeqWrite, 32.399), (RandRead4kMean, 362.78)]),
            ("ssd-usb-pi", &[(SeqRead, 34.8), (SeqWrite, 35.6), (PageReadMean, 460.0)]),
            ("microsd-u3", &[(SeqRead, 21.0), (SeqWrite, 17.2)]),
            ("p4800x", &[(SeqRead, 2500.0), (SeqWrite, 2000.0)]),
            ("p3700", &[(SeqWrite, 1250.0)]),
            ("micron-9100", &[(SeqWrite, 1250.0)]),
        ];
        for (name, figures) in others {
            let device = device(name).unwrap();
            assert_eq!(device.figures.len(), figures.len(), "{name}");
            for (figure, value) in figures {
                let found = device.comparable(*figure).unwrap();
                assert!((found / value - 1.0).abs() < 1e-4, "{name} {figure:?}: {found}");
            }
        }
        assert_eq!(published().len(), 13);
    }

    /// The sums that the data state are those of the rows, and each row that misses the depth is marked: in the notes of the
    /// device and, with the same words, in the profile that was made from it.
    #[test]
    fn littles_law_marks_the_rows_that_miss_their_depth() {
        let article = articles::pi5_optane();
        let mut missed = Vec::new();
        for row in &article.devices {
            let swap = &row.swap;
            let audit = swap.audit(&article.swap_simulation, row.in_submission);
            assert!((audit.sum - swap.littles_law).abs() < 0.01, "{}: {audit:?}", row.name);
            let marks: Vec<String> = audit.mark().into_iter().collect();
            assert_eq!(device(&row.name).unwrap().notes, marks, "{}", row.name);
            assert_eq!(crate::find(&row.name).unwrap().inconsistent, marks, "{}", row.name);
            missed.extend(audit.is_off().then_some(row.name.as_str()));
            // 16 KiB operations a second are the MiB/s that stand beside them.
            for (iops, mibps) in [(swap.read_iops, swap.read_mibps), (swap.write_iops, swap.write_mibps)] {
                assert!((iops / 64.0 / mibps - 1.0).abs() < 0.01, "{}", row.name);
            }
        }
        assert_eq!(missed, ["sd-evo-pi5", "nvme-usb3-pi5", "ram-pi5", "zram-pi5"]);
    }

    /// The review's two rates at 128 KiB and depth 1 are not of one device, and its profile says so.
    #[test]
    fn the_review_contradicts_itself_and_is_marked() {
        for row in &articles::review().devices {
            let off = row.read.audit().is_some_and(|audit| audit.is_off());
            assert_eq!(off, row.name == "p4800x", "{}", row.name);
            if off {
                let sum = row.read.audit().unwrap().sum;
                assert!((sum - 0.9).abs() < 1e-9, "{sum}");
                let said = |all: &[String]| all.iter().any(|text| text.contains("1.8 GB/s") && text.contains("2.0"));
                assert!(said(&device(&row.name).unwrap().notes), "{}", row.name);
                assert!(said(&crate::find(&row.name).unwrap().inconsistent), "{}", row.name);
            }
        }
    }

    #[test]
    fn what_later_work_needs_is_there() {
        let pi5 = articles::pi5_optane();
        assert_eq!(pi5.buses[0].practical_mbps, Some((430.0, 450.0)));
        assert_eq!((pi5.buses[1].transit_us, pi5.buses[1].qd1_commands_vs_usb3), (Some(1.5), Some(13.0)));
        let gemma = pi5.llm.models.iter().find(|model| model.name == "gemma2:2b").unwrap();
        assert_eq!((gemma.tps, gemma.total_s), ([0.078, 0.355], [3284.85, 678.92]));
        let desk = articles::pi3desk();
        assert_eq!((desk.zeros.through_compression_mbps, desk.zeros.incompressible_mbps), (123.0, 30.0));
        assert_eq!(desk.compsize[2].uncompressed_gb, 5.5);
        assert_eq!(desk.iozone.columns.len(), 7);
        let redis = articles::redis_edge();
        assert_eq!(redis.results.len(), 10);
        assert_eq!(redis.results[3].p95_ms, articles::Span::Between(5.0, 8.0));
        let classes = &articles::usb_vs_sd().classes;
        assert_eq!(classes.iter().find(|class| class.names.contains(&"V30".to_owned())).unwrap().write_mbps, 30.0);
        assert_eq!(articles::review().devices[0].read.qd1_128k_gbps, Some(1.8));
    }
}
