//! What a tier is good for. Each use has a few criteria; a criterion is a figure, two thresholds and the source they
//! come from, and the worst criterion decides. A verdict that needs a figure which was not measured is `unknown`.

use crate::figures::{TierSteps, fsync_p99};
use crate::model::{Fitness, TierFigures};
use basics::units::significant;
use basics::{Bytes, Known};
use machine::{Tier, TierKind};

/// A figure held against what a use needs.
struct Criterion {
    /// What it is, for people.
    what: &'static str,
    /// Its value and unit.
    value: Known<f64>,
    /// Where less is better and the value is not known: what it certainly is not below.
    at_least: Option<f64>,
    unit: &'static str,
    /// Good from here on.
    good: f64,
    /// Still bearable from here on.
    bearable: f64,
    /// False: less is better.
    more_is_better: bool,
    /// Where the thresholds come from.
    source: &'static str,
}

/// How a tier does by one criterion, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    No,
    Unknown,
    Bearable,
    Good,
}

impl Criterion {
    fn grade(&self) -> Grade {
        let reaches = |value: f64, bound: f64| if self.more_is_better { value >= bound } else { value <= bound };
        match self.value {
            Known::Is(value) if reaches(value, self.good) => Grade::Good,
            Known::Is(value) if reaches(value, self.bearable) => Grade::Bearable,
            Known::Is(_) => Grade::No,
            Known::Unknown(_) if self.at_least.is_some_and(|floor| floor > self.bearable) => Grade::No,
            Known::Unknown(_) => Grade::Unknown,
        }
    }
    /// The figure against the threshold that it met, or missed, and whose threshold that is.
    fn why(&self) -> String {
        let value = match (&self.value, self.grade(), self.at_least) {
            (Known::Is(value), ..) => significant(*value),
            (_, Grade::No, Some(floor)) => format!("at least {}", significant(floor)),
            (unknown, ..) => return format!("{}: {}", self.what, word(unknown)),
        };
        let (relation, bound) = match (self.grade(), self.more_is_better) {
            (Grade::Good, true) => ("at least", self.good),
            (Grade::Good, false) => ("at most", self.good),
            (Grade::Bearable, true) => ("below", self.good),
            (Grade::Bearable, false) => ("above", self.good),
            (_, true) => ("below", self.bearable),
            (_, false) => ("above", self.bearable),
        };
        let (bound, unit) = (significant(bound), self.unit);
        format!("{}: {value} {unit}, {relation} {bound} {unit} ({})", self.what, self.source)
    }
}

fn word(value: &Known<f64>) -> String {
    match value {
        Known::Is(_) => String::new(),
        Known::Unknown(why) => why.to_string(),
    }
}

/// All uses of a tier. RAM is what the uses compete for, so it has none; what zram holds is gone at power-off.
pub(crate) fn fitness(steps: &TierSteps<'_, '_>, figures: &TierFigures) -> Vec<Fitness> {
    let kind = steps.tier.map(|tier| tier.kind);
    if kind == Some(TierKind::Ram) || !figures.load_ns.is_unknown() {
        return Vec::new();
    }
    let measured = Figures::new(steps, figures);
    let mut all = vec![
        judge("llm-swap", "slow", &measured.llm_swap()),
        judge("redis-aof", "everysec", &measured.redis_aof()),
        judge("database", "slow", &measured.database()),
        judge("desktop-root", "slow", &measured.desktop_root()),
        judge("bulk-files", "slow", &measured.bulk_files()),
    ];
    if kind == Some(TierKind::Zram) || steps.tier.is_some_and(in_memory) {
        for fitness in &mut all {
            let (verdict, why) = match fitness.purpose.as_str() {
                "llm-swap" if kind != Some(TierKind::Zram) => ("no", "it lies in RAM, and in swap when that is full"),
                "llm-swap" => ("small", "it takes the RAM that swap is to spare, and model weights hardly compress"),
                _ => ("no", "what it holds is gone at power-off"),
            };
            (fitness.verdict, fitness.why) = (verdict.to_owned(), why.to_owned());
        }
        return all;
    }
    if let Some(size) = steps.tier.and_then(|tier| tier.size.get()).filter(|size| **size < ROOMY) {
        for fitness in all.iter_mut().filter(|f| ["desktop-root", "bulk-files"].contains(&f.purpose.as_str())) {
            if fitness.verdict == "yes" {
                fitness.verdict = "small".to_owned();
                fitness.why = format!(
                    "{}; but it holds {} GB, less than the 32 GB of the Pi3Desk article's SSD",
                    fitness.why,
                    significant(size.0 as f64 / 1e9)
                );
            }
        }
    }
    all
}

/// True for a file system that keeps its files in RAM.
fn in_memory(tier: &Tier) -> bool {
    !tier.mounts.is_empty() && tier.mounts.iter().all(|mount| ["tmpfs", "ramfs"].contains(&mount.fs.as_str()))
}

/// The Pi3Desk article's SSD is sold as 32 GB, and a desktop's files filled 8.8 GB of it; formatted and reserved parts
/// leave such a disk a little below its name.
const ROOMY: Bytes = Bytes(30_000_000_000);

fn judge(purpose: &str, bearable: &str, criteria: &[Criterion]) -> Fitness {
    let worst = criteria.iter().min_by_key(|criterion| criterion.grade());
    let (verdict, why) = match worst {
        None => ("unknown", String::new()),
        Some(criterion) => {
            let verdict = match criterion.grade() {
                Grade::Good => "yes",
                Grade::Bearable => bearable,
                Grade::No => "no",
                Grade::Unknown => "unknown",
            };
            (verdict, criterion.why())
        }
    };
    Fitness { purpose: purpose.to_owned(), verdict: verdict.to_owned(), why }
}

/// A p99 of a few operations is none, but that it lies below their median can be ruled out: were it so, each operation
/// would be slower than the median with a chance of 1 %, half of four with one of 6 in 10,000.
const FOR_MEDIAN: u64 = 4;

/// The figures that the criteria need, in one unit each.
struct Figures {
    swap_in_mbps: Known<f64>,
    swap_write_mean_us: Known<f64>,
    small_read_us: Known<f64>,
    small_read_qd32: Known<f64>,
    fsync_p99_ms: Known<f64>,
    fsync_p50_ms: Option<f64>,
    seq_read: Known<f64>,
    seq_write: Known<f64>,
}

impl Figures {
    fn new(steps: &TierSteps<'_, '_>, figures: &TierFigures) -> Self {
        let block = steps.measured("swap-sim").map_or(0, |step| step.job.block.largest().0) as f64;
        Figures {
            swap_in_mbps: figures.swap_sim_read.clone().map(|side| side.iops * block / 1e6),
            swap_write_mean_us: match &figures.swap_sim_write {
                Known::Is(side) => side.lat.mean.clone().map(|mean| mean.us()),
                Known::Unknown(why) => Known::Unknown(why.clone()),
            },
            small_read_us: figures.rand_read_4k_qd1_us.clone(),
            small_read_qd32: figures.rand_read_4k_qd32_iops.clone(),
            fsync_p99_ms: fsync_p99(steps, figures).map(|p99| p99.us() / 1e3),
            fsync_p50_ms: (steps.measured("fsync").map_or(0, |step| step.write.operations()) >= FOR_MEDIAN)
                .then(|| figures.fsync.get().and_then(|fsync| fsync.percentile(50.0)))
                .flatten()
                .map(|p50| p50.us() / 1e3),
            seq_read: figures.seq_read_mbps.clone(),
            seq_write: figures.seq_write_mbps.clone(),
        }
    }

    /// Pages coming back while others go out. The Optane of the Pi 5 article (11,700 reads of 16 KiB, 192 MB/s) kept a
    /// model talking at 0.36 tokens/s where USB SSDs (3,618 and 5,006, 59 and 82 MB/s) gave 0.08; the SD card (496, 8
    /// MB/s) was useless. Thresholds are rounded down from the rows.
    fn llm_swap(&self) -> [Criterion; 1] {
        [Criterion {
            what: "pages read back under 70/30 load",
            value: self.swap_in_mbps.clone(),
            at_least: None,
            unit: "MB/s",
            good: 160.0,
            bearable: 50.0,
            more_is_better: true,
            source: "Pi 5 article: Optane 192, USB SSDs 59 and 82, SD card 8",
        }]
    }

    /// With `always` an fsync stands before every reply: the Redis article asks for a p95 below 10 ms, half of which
    /// is left to the disk. With `everysec` it is in the background, but a write waits for one that is still pending; the
    /// article calls 20 to 60 ms spiky and advises against slow SD cards.
    fn redis_aof(&self) -> [Criterion; 1] {
        [Criterion {
            what: "write + fsync p99",
            value: self.fsync_p99_ms.clone(),
            at_least: self.fsync_p50_ms,
            unit: "ms",
            good: 5.0,
            bearable: 20.0,
            more_is_better: false,
            source: "Redis article: p95 below 10 ms wanted, 20 to 60 ms is spiky",
        }]
    }

    /// Random reads as application class A2 asks (A1: bearable), and commits of 10 ms at most. No source gives a bound for
    /// commits: 100 a second by one client, and 20 as bearable, are tiermark's own.
    fn database(&self) -> [Criterion; 2] {
        [
            Criterion {
                what: "write + fsync p99",
                value: self.fsync_p99_ms.clone(),
                at_least: self.fsync_p50_ms,
                unit: "ms",
                good: 10.0,
                bearable: 50.0,
                more_is_better: false,
                source: "tiermark's own bound: one client commits 100 times a second, bearable 20",
            },
            Criterion {
                what: "4 KiB random reads at depth 32",
                value: self.small_read_qd32.clone(),
                at_least: None,
                unit: "IOPS",
                good: 4000.0,
                bearable: 1500.0,
                more_is_better: true,
                source: "SD application classes: A2 4000, A1 1500",
            },
        ]
    }

    /// What the Pi3Desk article's SSD gave (4 KiB reads of 363 µs, 29 MB/s) made a desktop; its SD card (459 µs, but
    /// 4 KiB writes three times slower, 23 MB/s) did not. The Pi 5 article's SSDs write a page under load in 0.2 to 0.6
    /// ms, its SD card in 6.5 ms.
    fn desktop_root(&self) -> [Criterion; 3] {
        [
            Criterion {
                what: "4 KiB random read at depth 1",
                value: self.small_read_us.clone(),
                at_least: None,
                unit: "µs",
                good: 400.0,
                bearable: 2000.0,
                more_is_better: false,
                source: "Pi3Desk article: USB SSD 363 µs, SD card 459",
            },
            Criterion {
                what: "page write under load, mean",
                value: self.swap_write_mean_us.clone(),
                at_least: None,
                unit: "µs",
                good: 1000.0,
                bearable: 10_000.0,
                more_is_better: false,
                source: "Pi 5 article: SSDs 171 to 553 µs, SD card 6,520",
            },
            Criterion {
                what: "sequential read",
                value: self.seq_read.clone(),
                at_least: None,
                unit: "MB/s",
                good: 25.0,
                bearable: 10.0,
                more_is_better: true,
                source: "Pi3Desk article: USB SSD 29 MB/s, SD card 23",
            },
        ]
    }

    /// Films and backups ask for the sequential rate that class 10 stands for (class 4: bearable).
    fn bulk_files(&self) -> [Criterion; 2] {
        let criterion = |what, value: &Known<f64>| Criterion {
            what,
            value: value.clone(),
            at_least: None,
            unit: "MB/s",
            good: 10.0,
            bearable: 4.0,
            more_is_better: true,
            source: "SD speed classes: C10 10 MB/s, C4 4 MB/s",
        };
        [criterion("sequential write", &self.seq_write), criterion("sequential read", &self.seq_read)]
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::testing::{Run, Step, mount, tier};
    use basics::{Bytes, Known, Nanos};
    use machine::{Tier, TierKind};

    fn verdicts(tier: Tier, steps: Vec<Step>) -> Vec<(String, String, String)> {
        let run = Run::default().tiers([tier]).steps(steps);
        let study = explain(&run.view()).tiers.remove(0);
        study.good_for.into_iter().map(|f| (f.purpose, f.verdict, f.why)).collect()
    }

    fn words(verdicts: &[(String, String, String)]) -> Vec<&str> {
        verdicts.iter().map(|(_, verdict, _)| verdict.as_str()).collect()
    }

    #[test]
    fn the_articles_devices_get_the_articles_verdicts() {
        let optane = Tier { size: Known::Is(Bytes(14_400_000_000)), ..tier("nvme0n1", TierKind::Nvme) };
        let steps = vec![
            Step::seq_read("nvme0n1", 430.0),
            Step::seq_write("nvme0n1", 145.0),
            Step::swap_sim("nvme0n1").reads(&[1170; 20], Nanos(217_000)).writes(&[500; 20], Nanos(278_000)),
            Step::small_reads("nvme0n1", 1, Nanos(60_000)),
            Step::small_reads("nvme0n1", 32, Nanos(500_000)),
            Step::fsyncs("nvme0n1", Nanos(300_000)),
        ];
        let all = verdicts(optane, steps);
        assert_eq!(words(&all), ["yes", "yes", "yes", "small", "small"], "{all:?}");
        assert!(all[0].2.contains("192 MB/s, at least 160 MB/s (Pi 5 article"), "{}", all[0].2);

        let steps = vec![
            Step::seq_read("mmcblk0", 88.0),
            Step::seq_write("mmcblk0", 31.0),
            Step::swap_sim("mmcblk0").reads(&[50; 20], Nanos(3_430_000)).writes(&[21; 20], Nanos(6_520_000)),
            Step::small_reads("mmcblk0", 1, Nanos(610_000)),
            Step::small_reads("mmcblk0", 32, Nanos(20_000_000)),
            Step::fsyncs("mmcblk0", Nanos(25_000_000)),
        ];
        let all = verdicts(tier("mmcblk0", TierKind::Sd), steps);
        assert_eq!(words(&all), ["no", "no", "slow", "slow", "yes"], "{all:?}");
    }

    #[test]
    fn few_fsyncs_decide_only_what_their_median_rules_out() {
        let fsyncs = |n, each| {
            let steps = vec![Step::fsyncs("sda", each).replaced(&[1; 150][..n], each)];
            verdicts(tier("sda", TierKind::Usb), steps)
        };
        let fast = fsyncs(99, Nanos(1_000_000));
        assert_eq!(words(&fast)[1..3], ["unknown", "unknown"], "{fast:?}");
        assert_eq!(fast[1].2, "write + fsync p99: 99 operations are too few for it, 100 are needed");
        let slow = fsyncs(20, Nanos(70_000_000));
        assert_eq!(words(&slow)[1..3], ["no", "no"], "{slow:?}");
        assert!(slow[1].2.starts_with("write + fsync p99: at least 70"), "{}", slow[1].2);
        assert_eq!(words(&fsyncs(3, Nanos(70_000_000)))[1], "unknown");
        assert_eq!(words(&fsyncs(100, Nanos(70_000_000)))[1], "no");
    }

    #[test]
    fn no_figure_no_verdict_and_zram_forgets() {
        let all = verdicts(tier("sda", TierKind::Usb), vec![Step::seq_read("sda", 300.0)]);
        assert_eq!(words(&all), ["unknown"; 5], "{all:?}");
        assert!(all[0].2.contains("not mounted"), "{}", all[0].2);
        let swap = Step::swap_sim("zram0").reads(&[6000; 20], Nanos(9000)).writes(&[2800; 20], Nanos(9000));
        let all = verdicts(tier("zram0", TierKind::Zram), vec![swap]);
        assert_eq!(words(&all), ["small", "no", "no", "no", "no"]);
        let tmpfs = Tier { mounts: vec![mount("/tmp", "tmpfs", None)], ..tier("/tmp", TierKind::FileSystem) };
        let all = verdicts(tmpfs, vec![Step::seq_read("/tmp", 3000.0), Step::seq_write("/tmp", 3000.0)]);
        assert_eq!(words(&all), ["no"; 5]);
    }
}
