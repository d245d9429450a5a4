//! What flows through a machine between two looks at it, and what of that somebody who looks on should be told. Pure: two samples
//! in, rates out; whoever shows them holds them against the tiers' ceilings.

use basics::units::significant;
use basics::{Bytes, Nanos};
use observe::{Disk, Sample};
use serde::Serialize;
use std::collections::BTreeMap;

/// Share of the time in which all that wanted to run waited for memory: beyond it a machine feels stuck (systemd-oomd's
/// default for killing is 60 % over 30 s).
pub const STUCK: f64 = 20.0;
/// The same of waiting for I/O.
const HELD_UP: f64 = 50.0;
/// Of the processors' time, taken by the hypervisor.
const STOLEN: f64 = 10.0;
/// Major faults a second from which the pager engages (FIELD-NOTES.md 13): fewer are a program that starts.
const FAULTS: f64 = 30.0;
/// A request takes so long on a disk that something is wrong with it, or that it is a card that tidies up; ms.
pub const SLOW_MS: f64 = 200.0;

/// Rates between two samples. What either lacks is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Flow {
    /// Between the two, seconds.
    pub seconds: f64,
    /// Of all processors' time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Processors>,
    /// By `cpu`, `memory`, `io`: share of the time in which some, and all, of what wanted to run was stalled; per cent.
    pub stalled_percent: BTreeMap<String, (f64, f64)>,
    /// Faults a second that a disk, zram or zswap had to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major_faults_per_s: Option<f64>,
    /// From swap areas and to them, 10^6 bytes a second; zswap's own are not in it.
    #[serde(rename = "swap_MBps", skip_serializing_if = "Option::is_none")]
    pub swap_mbps: Option<(f64, f64)>,
    /// Out of zswap and into it, 10^6 bytes a second.
    #[serde(rename = "zswap_MBps", skip_serializing_if = "Option::is_none")]
    pub zswap_mbps: Option<(f64, f64)>,
    /// By disk.
    pub disks: BTreeMap<String, DiskFlow>,
    /// Hottest zone now, °C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Of the first processor now.
    #[serde(rename = "cpu_MHz", skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<u32>,
}

/// Shares of all processors' time, per cent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Processors {
    /// Anything but idle and waiting for I/O.
    pub busy: f64,
    /// Idle with I/O under way.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
}

/// What a disk did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct DiskFlow {
    /// 10^6 bytes a second.
    #[serde(rename = "read_MBps")]
    pub read_mbps: f64,
    /// 10^6 bytes a second.
    #[serde(rename = "write_MBps")]
    pub write_mbps: f64,
    /// Completed a second.
    pub reads_per_s: f64,
    /// Completed a second.
    pub writes_per_s: f64,
    /// Mean of those that completed, queueing included; absent where none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ms: Option<f64>,
    /// The same of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ms: Option<f64>,
    /// Share of the time in which something was under way, per cent.
    pub busy_percent: f64,
    /// Under way now.
    pub in_flight: u64,
}

/// What flowed from one sample to a later one; `page` is the kernel's. None where no time passed.
pub fn flow(before: &Sample, after: &Sample, page: Bytes) -> Option<Flow> {
    let seconds = (after.at - before.at).secs();
    if after.at <= before.at {
        return None;
    }
    let moved = |name: &str| Some(after.vm.get(name)?.checked_sub(*before.vm.get(name)?)? as f64 / seconds);
    let mbps = |name: &str| Some(moved(name)? * page.0 as f64 / 1e6);
    let stalled = after.pressure_us.iter().filter_map(|(name, (some, full))| {
        let (some_before, full_before) = before.pressure_us.get(name)?;
        let share = |now: u64, then: u64| (now.saturating_sub(then) as f64 / seconds / 1e4).min(100.0);
        Some((name.clone(), (share(*some, *some_before), share(*full, *full_before))))
    });
    let disks = after.disks.iter().filter_map(|(name, disk)| {
        let then = before.disks.get(name)?;
        Some((name.clone(), disk_flow(then, disk, seconds)?))
    });
    Some(Flow {
        seconds,
        cpu: before.cpu_ticks.zip(after.cpu_ticks).and_then(|(then, now)| processors(then, now)),
        stalled_percent: stalled.collect(),
        major_faults_per_s: moved("pgmajfault"),
        swap_mbps: mbps("pswpin").zip(mbps("pswpout")),
        zswap_mbps: mbps("zswpin").zip(mbps("zswpout")),
        disks: disks.collect(),
        temperature_c: after.temperature_c,
        cpu_mhz: after.cpu_mhz,
    })
}

/// user, nice, system, idle, iowait, irq, softirq, steal. Idle and iowait may go backwards by a tick (proc_stat(5)).
fn processors(then: [u64; 8], now: [u64; 8]) -> Option<Processors> {
    let mut gone = [0.0; 8];
    for (gone, (now, then)) in gone.iter_mut().zip(now.iter().zip(then)) {
        *gone = now.saturating_sub(then) as f64;
    }
    let all: f64 = gone.iter().sum();
    let share = |ticks: f64| 100.0 * ticks / all;
    (all > 0.0).then(|| Processors {
        busy: share(all - gone[3] - gone[4] - gone[7]),
        iowait: share(gone[4]),
        steal: share(gone[7]),
    })
}

/// None where a counter went backwards: the disk was taken away and another came.
fn disk_flow(then: &Disk, now: &Disk, seconds: f64) -> Option<DiskFlow> {
    let gone = |now: u64, then: u64| Some(now.checked_sub(then)? as f64);
    let (reads, writes) = (gone(now.reads, then.reads)?, gone(now.writes, then.writes)?);
    let mean = |ms: f64, requests: f64| (requests > 0.0).then(|| ms / requests);
    Some(DiskFlow {
        read_mbps: gone(now.read_bytes, then.read_bytes)? / seconds / 1e6,
        write_mbps: gone(now.write_bytes, then.write_bytes)? / seconds / 1e6,
        reads_per_s: reads / seconds,
        writes_per_s: writes / seconds,
        read_ms: mean(gone(now.read_ms, then.read_ms)?, reads),
        write_ms: mean(gone(now.write_ms, then.write_ms)?, writes),
        busy_percent: (gone(now.busy_ms, then.busy_ms)? / seconds / 10.0).min(100.0),
        in_flight: now.in_flight,
    })
}

/// Something that happened, of a kind that is told once while it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Of which kind, and of which disk: the same while it lasts.
    pub kind: String,
    /// A sentence.
    pub text: String,
}

/// What somebody who looks on should be told of `flow`, the latest sample being `after`.
pub fn events(flow: &Flow, before: &Sample, after: &Sample) -> Vec<Event> {
    let mut told = Vec::new();
    let mut tell = |kind: &str, text: String| told.push(Event { kind: kind.to_owned(), text });
    let all = |name: &str| flow.stalled_percent.get(name).map_or(0.0, |stalled| stalled.1);
    let killed =
        after.vm.get("oom_kill").zip(before.vm.get("oom_kill")).map_or(0, |(now, then)| now.saturating_sub(*then));
    if killed > 0 {
        tell("oom", format!("memory ran out: the kernel ended {killed} program{}", if killed == 1 { "" } else { "s" }));
    }
    if all("memory") >= STUCK {
        let share = significant(all("memory"));
        tell("memory", format!("all programs waited for memory {share} % of the time"));
    } else if flow.major_faults_per_s.unwrap_or(0.0) >= FAULTS {
        let faults = significant(flow.major_faults_per_s.unwrap_or(0.0));
        tell(
            "faults",
            format!("programs wait for pages from a disk or from compressed memory: {faults} major faults a second"),
        );
    }
    if all("io") >= HELD_UP {
        tell("io", format!("all programs waited for disks {} % of the time", significant(all("io"))));
    }
    for (name, disk) in &flow.disks {
        let slowest = disk.read_ms.unwrap_or(0.0).max(disk.write_ms.unwrap_or(0.0));
        if slowest >= SLOW_MS {
            tell(&format!("slow {name}"), format!("a request to {name} took {} ms on average", significant(slowest)));
        }
    }
    if let Some(cpu) = flow.cpu.filter(|cpu| cpu.steal >= STOLEN) {
        tell("steal", format!("the hypervisor took {} % of the processors", significant(cpu.steal)));
    }
    for (bit, text) in THROTTLED {
        if after.throttled.is_some_and(|bits| bits & (1 << bit) != 0) {
            tell(text, text.to_owned());
        }
    }
    told
}

/// The firmware's bits that hold now (`vcgencmd get_throttled`).
const THROTTLED: [(u32, &str); 4] = [
    (0, "the supply is too weak: under-voltage"),
    (1, "the processors' frequency is capped"),
    (2, "the processors are throttled"),
    (3, "the soft temperature limit is reached"),
];

/// Events as they begin: what lasts is told once, and again when it comes back.
#[derive(Debug, Clone, Default)]
pub struct Begun {
    lasting: Vec<String>,
}

impl Begun {
    /// Those of `events` that were not there at the look before.
    pub fn of(&mut self, events: Vec<Event>) -> Vec<Event> {
        let before = std::mem::replace(&mut self.lasting, events.iter().map(|event| event.kind.clone()).collect());
        events.into_iter().filter(|event| !before.contains(&event.kind)).collect()
    }
}

/// How far a disk is used: what it moves over the ceiling of its way, in per cent. `ceiling_mbps` is the way's practical rate.
pub fn share_of_ceiling(disk: &DiskFlow, ceiling_mbps: f64) -> Option<f64> {
    (ceiling_mbps > 0.0).then(|| 100.0 * (disk.read_mbps + disk.write_mbps) / ceiling_mbps)
}

/// The time between two looks, at least: a tenth of a second says little of counters that tick a hundred times in one.
pub const SHORTEST: Nanos = Nanos::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64) -> Sample {
        Sample { at: Nanos(seconds * 1_000_000_000), ..Sample::default() }
    }

    #[test]
    fn rates_are_differences_over_time() {
        let disk = |reads: u64| Disk {
            reads,
            read_bytes: reads * 4096,
            read_ms: reads * 3,
            busy_ms: reads,
            in_flight: 2,
            ..Disk::default()
        };
        let mut before = sample(10);
        let mut after = sample(12);
        before.vm = [("pswpin", 100), ("pswpout", 0), ("pgmajfault", 7)].map(|(name, n)| (name.to_owned(), n)).into();
        after.vm = [("pswpin", 1100), ("pswpout", 50), ("pgmajfault", 27)].map(|(name, n)| (name.to_owned(), n)).into();
        before.cpu_ticks = Some([0; 8]);
        after.cpu_ticks = Some([100, 0, 0, 200, 60, 0, 0, 40]);
        before.disks.insert("sda".to_owned(), disk(100));
        after.disks.insert("sda".to_owned(), disk(1100));
        before.pressure_us.insert("memory".to_owned(), (0, 0));
        after.pressure_us.insert("memory".to_owned(), (1_000_000, 500_000));
        let flow = flow(&before, &after, Bytes(4096)).unwrap();
        assert_eq!(flow.swap_mbps, Some((2.048, 0.1024)));
        assert_eq!(flow.zswap_mbps, None, "a counter that the kernel lacks is no zero");
        assert_eq!(flow.major_faults_per_s, Some(10.0));
        assert_eq!(flow.cpu, Some(Processors { busy: 25.0, iowait: 15.0, steal: 10.0 }));
        assert_eq!(flow.stalled_percent["memory"], (50.0, 25.0));
        let sda = flow.disks["sda"];
        assert_eq!((sda.read_mbps, sda.reads_per_s, sda.read_ms, sda.write_ms), (2.048, 500.0, Some(3.0), None));
        assert_eq!(sda.busy_percent, 50.0);
        assert_eq!(share_of_ceiling(&sda, 20.48), Some(10.0));
    }

    #[test]
    fn a_disk_that_was_changed_says_nothing() {
        let (mut before, mut after) = (sample(0), sample(1));
        before.disks.insert("sda".to_owned(), Disk { reads: 9, ..Disk::default() });
        after.disks.insert("sda".to_owned(), Disk::default());
        assert!(flow(&before, &after, Bytes(4096)).unwrap().disks.is_empty());
        assert_eq!(flow(&before, &before, Bytes(4096)), None);
    }

    #[test]
    fn what_lasts_is_told_once() {
        let (before, mut after) = (sample(0), sample(1));
        after.throttled = Some(0b101 | 1 << 18);
        let flow = Flow { stalled_percent: [("memory".to_owned(), (80.0, 60.0))].into(), ..Flow::default() };
        let told = events(&flow, &before, &after);
        let kinds: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
        assert_eq!(kinds, ["memory", "the supply is too weak: under-voltage", "the processors are throttled"]);
        let mut begun = Begun::default();
        assert_eq!(begun.of(told.clone()).len(), 3);
        assert!(begun.of(told.clone()).is_empty());
        assert!(begun.of(vec![]).is_empty());
        assert_eq!(begun.of(told).len(), 3);
        assert!(events(&Flow::default(), &before, &before).is_empty());
    }
}
