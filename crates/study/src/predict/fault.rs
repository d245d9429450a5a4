//! How fast swapped pages come back from a device when a program waits for each: from its profile, by the swap simulation in
//! virtual time. Far below what the device gives in sequence; what a kernel reads ahead is not in it.

use crate::fit::replay::{Work, replay};
use basics::{Bytes, Known};
use profile::{Profile, articles};
use serde::{Deserialize, Serialize};

/// The swap simulation's share of reads and its depth (the article's fio job, and this project's method `swap-sim`).
const READS: f64 = 0.7;
const DEPTH: u32 = 4;
/// At which threads fault when a profile says nothing of writes: between 2 and 3 (FIELD-NOTES.md 14).
const FAULT_DEPTH: u32 = 3;
/// Block of `hdparm -t`.
const SEQUENTIAL: u64 = 2 << 20;
/// Simulations that are averaged: with 6,000 operations each a write in a hundred that takes 60 ms is met 144 times.
const ROUNDS: u64 = 8;

/// What the path of a page fault gives on a device, in 10^6 bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FaultPath {
    /// While pages are read only: weights never change, so once they were written out their swap slots stay valid.
    pub mbps: f64,
    /// While 30 % of the operations are writes: the first pass, and a swap that is more than half full (the kernel then frees slots
    /// as it reads, and writes as much as it reads; FIELD-NOTES.md 14).
    pub amid_writes_mbps: f64,
    /// Large blocks in sequence.
    pub sequential_mbps: f64,
}

impl FaultPath {
    /// Of a device with pages of that size; nothing where its profile does not say how fast it reads.
    ///
    /// The time of one read is 1 / IOPS of both directions − share of writes × (mean latency of writes − mean latency of reads):
    /// in a queue that both directions share they wait alike, so that their latencies differ by their service times, whose mean
    /// is 1 / IOPS. It is no less than a page takes in sequence, and no more than 1 / IOPS of reads (FIELD-NOTES.md 14).
    pub fn of(profile: &Profile, page: Bytes) -> Option<Self> {
        let work = |reads, depth| Work { reads, sequential: false, size: page.0.max(1), depth, streams: 1 };
        let sequence = Work { reads: 1.0, sequential: true, size: SEQUENTIAL, depth: 1, streams: 1 };
        let sequential_mbps = replay(profile, sequence, 1)?.iops * SEQUENTIAL as f64 / 1e6;
        let mbps = |us: f64| page.0 as f64 / us;
        let rounds: Option<Vec<_>> = (1..=ROUNDS).map(|seed| replay(profile, work(READS, DEPTH), seed)).collect();
        let Some(rounds) = rounds else {
            let alone = mbps(1e6 / replay(profile, work(1.0, FAULT_DEPTH), 1)?.iops);
            return Some(FaultPath { mbps: alone, amid_writes_mbps: alone, sequential_mbps });
        };
        let mean = |pick: &dyn Fn(usize) -> f64| (0..rounds.len()).map(pick).sum::<f64>() / rounds.len() as f64;
        // Means of times, so that what a slow write adds to all of them cancels.
        let each_us = mean(&|i| 1e6 / rounds[i].iops);
        let apart_us = mean(&|i| rounds[i].mean_us[1] - rounds[i].mean_us[0]);
        let (least, most) = (page.0 as f64 / sequential_mbps, each_us / READS);
        let read_us = (each_us - (1.0 - READS) * apart_us).min(most).max(least);
        Some(FaultPath { mbps: mbps(read_us), amid_writes_mbps: mbps(most.max(least)), sequential_mbps })
    }

    /// Of several devices at equal priority: pages are spread over them and awaited one by one, so they behave as one device with
    /// their mean service time, not as several (FIELD-NOTES.md 14).
    pub fn together(paths: &[FaultPath]) -> Option<Self> {
        let mean =
            |rate: fn(&FaultPath) -> f64| paths.len() as f64 / paths.iter().map(|path| 1.0 / rate(path)).sum::<f64>();
        (!paths.is_empty()).then(|| FaultPath {
            mbps: mean(|path| path.mbps),
            amid_writes_mbps: mean(|path| path.amid_writes_mbps),
            sequential_mbps: mean(|path| path.sequential_mbps),
        })
    }
}

/// Where swap is: a device or several at equal priority.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tier {
    /// As it is called in tables.
    pub name: String,
    /// What faults get from it.
    pub path: Known<FaultPath>,
    /// It is memory itself (a RAM disk, zram): what it holds is taken from what the model has. Compression does not help, because
    /// quantised weights are nearly random bytes.
    pub takes_memory: bool,
}

impl Tier {
    /// One device, by its profile.
    pub fn of(profile: &Profile, page: Bytes) -> Self {
        Tier::array(&profile.name, &[profile], page)
    }

    /// Several devices at equal priority; one that stands there twice counts twice.
    pub fn array(name: &str, profiles: &[&Profile], page: Bytes) -> Self {
        let mut known: Vec<(&str, Option<FaultPath>)> = Vec::new();
        for profile in profiles {
            if !known.iter().any(|(name, _)| *name == profile.name) {
                known.push((&profile.name, FaultPath::of(profile, page)));
            }
        }
        let path =
            |profile: &&Profile| known.iter().find(|(name, _)| *name == profile.name).and_then(|(_, path)| *path);
        let paths: Option<Vec<FaultPath>> = profiles.iter().map(path).collect();
        let path = match paths.and_then(|paths| FaultPath::together(&paths)) {
            Some(path) => Known::Is(path),
            None => Known::not_measured("no reads published"),
        };
        let in_submission = |name: &str| {
            articles::pi5_optane().devices.iter().any(|device| device.in_submission && device.name == name)
        };
        let takes_memory = profiles.iter().any(|profile| in_submission(&profile.name));
        Tier { name: name.to_owned(), path, takes_memory }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Bytes = Bytes(16_384);

    fn path(name: &str) -> FaultPath {
        FaultPath::of(profile::find(name).unwrap(), PAGE).unwrap()
    }

    /// The rates that the article's own rows give by the formula, within what the profiles reproduce of the rows: 4 % of the
    /// rates, 7 % of the latencies, and the SD card's row misses its own depth by a quarter.
    #[test]
    fn the_articles_devices_have_the_rates_of_their_rows() {
        let mut wrong = String::new();
        for (name, mbps) in
            [("optane-pi5", 394.0), ("nvme-usb3-pi5", 80.0), ("sata-usb3-pi5", 82.0), ("sd-evo-pi5", 33.0)]
        {
            let row = &articles::pi5_optane().devices.iter().find(|device| device.name == name).unwrap();
            let swap = row.swap;
            let (reads, writes) = (swap.read_lat_us.unwrap().mean, swap.write_lat_us.unwrap().mean);
            let iops = swap.read_iops + swap.write_iops;
            let us = 1e6 / iops - swap.write_iops / iops * (writes - reads);
            let us = us.min(1e6 / swap.read_iops).max(16_384.0 / (row.hdparm.disk_mibps * 1.048_576));
            let published = 16_384.0 / us;
            assert!((published / mbps - 1.0).abs() < 0.02, "{name}: {published}");
            let found = path(name);
            if (found.mbps / published - 1.0).abs() > 0.1 {
                wrong += &format!("{name}: {found:?}, published {published}\n");
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn several_are_as_slow_as_one() {
        let (nvme, sata, optane) = (path("nvme-usb3-pi5"), path("sata-usb3-pi5"), path("optane-pi5"));
        let array = FaultPath::together(&[sata, nvme, nvme, nvme, nvme]).unwrap();
        assert!(array.mbps > nvme.mbps.min(sata.mbps) && array.mbps < nvme.mbps.max(sata.mbps));
        let mixed = FaultPath::together(&[nvme, optane]).unwrap();
        assert!((mixed.mbps / (2.0 / (1.0 / nvme.mbps + 1.0 / optane.mbps)) - 1.0).abs() < 1e-9);
        assert_eq!(FaultPath::together(&[]), None);
    }

    #[test]
    fn what_was_not_published_is_unknown() {
        let tier = Tier::of(profile::find("p3700").unwrap(), PAGE);
        assert!(tier.path.is_unknown() && !tier.takes_memory);
        assert!(Tier::of(profile::find("zram-pi5").unwrap(), PAGE).takes_memory);
        let reads = profile::Profile::parse("name = \"x\"\n[read]\nlatency_us = 100").unwrap();
        let path = FaultPath::of(&reads, Bytes(4096)).unwrap();
        assert!((path.mbps / (3.0 * 40.96) - 1.0).abs() < 0.01, "{path:?}");
    }
}
