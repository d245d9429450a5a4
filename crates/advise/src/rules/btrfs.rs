//! Compression of btrfs, by what the processor can do and what the bus lets through.

use super::{DESKTOP, mount};
use crate::goals::Job;
use crate::model::{Evidence, Gain, Origin, Recommendation, Rule};
use crate::situation::Situation;
use machine::{Mount, Tier, TierKind};

pub(super) const RULE: Rule = Rule {
    name: "btrfs-compression",
    title: "less through a narrow bus",
    condition: "a file system of btrfs on a card or a disk whose bus takes less than 450 MB/s is not compressed, or is compressed in a way \
                that costs more processor than it saves (zlib, zstd above 3 on a small processor)",
    source: "Project Pi3Desk: 123 MB/s of zeros through a disk of 30; btrfs(5)",
    jobs: &Job::GENERAL,
    judge,
};

/// Slower than a busy USB 3 port.
const NARROW: f64 = 450.0;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let weak = weak(situation);
    let level = if weak { "lzo" } else { "zstd:1" };
    let (mut evidence, mut changes, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let mut bare = false;
    for (tier, mounted) in situation.mounts().filter(|(tier, mounted)| is_narrow(tier) && mounted.fs == "btrfs") {
        let here = mounted.at.display();
        match mounted.compression.as_deref() {
            None => {
                bare = true;
                reasons.push(format!(
                    "{here} goes through {} as it is; compressed it is written and read in less time",
                    tier.name
                ));
            }
            Some(now) if costly(now, situation) => {
                reasons.push(format!(
                    "{here} is compressed by {now}, which this processor does more slowly than {} writes",
                    tier.name
                ));
            }
            Some(_) => continue,
        }
        if situation.setup.mounted_by(&mounted.at).is_some() {
            changes.push(wanted(mounted, level));
        }
        let options = mounted.options.join(",");
        evidence.push(Evidence::machine("/proc/self/mountinfo", format!("{here} btrfs {options}")));
    }
    if reasons.is_empty() {
        return None;
    }
    evidence.push(Evidence::published(
        DESKTOP,
        "8.8 GB of a desktop's files took 5.6 GB; zeros at 123 MB/s through a disk of 30",
    ));
    // What a desktop's root compressed to bounds it: 37 % less through the bus, where the processor keeps up.
    let gain = bare.then(|| Gain {
        of: "more of a desktop's files a second through the same bus".to_owned(),
        percent: 57.0,
        low: 0.0,
        high: 57.0,
        from: Origin::Published(DESKTOP.to_owned()),
    });
    Some(Recommendation {
        title: format!("compress={level}"),
        why: format!("{}.", reasons.join("; ")),
        evidence,
        gain,
        risk: Some("Files that were written before stay as they are, until `btrfs filesystem defragment -c`; processor time while writing.".to_owned()),
        changes,
        ..Recommendation::default()
    })
}

fn is_narrow(tier: &Tier) -> bool {
    let narrow = |tier: &Tier| tier.ceiling.get().is_some_and(|ceiling| ceiling.practical_mbps.1 <= NARROW);
    matches!(tier.kind, TierKind::Sd) || (matches!(tier.kind, TierKind::Usb | TierKind::Emmc) && narrow(tier))
}

/// Processors of the first boards: zstd is slower than their USB 2.
fn weak(situation: &Situation<'_>) -> bool {
    let cpu = &situation.machine.cpu;
    let small = cpu.model.get().is_some_and(|model| ["ARM1176", "Cortex-A7", "ARMv6"].iter().any(|old| model == old));
    small || cpu.count.get() == Some(&1)
}

fn costly(now: &str, situation: &Situation<'_>) -> bool {
    let (kind, level) = now.split_once(':').map_or((now, None), |(kind, level)| (kind, level.parse::<u32>().ok()));
    let mhz = situation.machine.cpu.max_mhz.get().copied().unwrap_or(u32::MAX);
    let small = mhz <= 1800 || weak(situation);
    match kind {
        // Without a level zlib has 3, as slow as zstd's 9.
        "zlib" => small && situation.machine.kernel_version().is_some_and(|version| version >= (5, 1)),
        "zstd" => small && level.unwrap_or(3) > 3,
        _ => false,
    }
}

fn wanted(mounted: &Mount, level: &str) -> change::Wanted {
    let forced = mounted.options.iter().any(|option| option.starts_with("compress-force"));
    let option = format!("{}={level}", if forced { "compress-force" } else { "compress" });
    mount(&mounted.at, &[&option], &[])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use basics::Known;

    #[test]
    fn by_bus_and_processor() {
        let said = |kind, now: Option<&str>, mhz: u32, cpu: &str| {
            let mut scene = Scene::of(Job::Desktop).with_fstab("/", "btrfs", "defaults");
            let mut it = tier("it", kind, "/");
            it.mounts[0].fs = "btrfs".to_owned();
            it.mounts[0].compression = now.map(str::to_owned);
            scene.machine.tiers = vec![it];
            scene.machine.kernel = Known::Is("6.12.1".to_owned());
            scene.machine.cpu.model = Known::Is(cpu.to_owned());
            scene.machine.cpu.max_mhz = Known::Is(mhz);
            judge(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(said(TierKind::Sd, None, 1400, "Cortex-A53").unwrap(), "compress=zstd:1");
        assert_eq!(said(TierKind::Sd, None, 1000, "ARM1176").unwrap(), "compress=lzo");
        assert_eq!(said(TierKind::Sd, Some("zstd:15"), 1400, "Cortex-A53").unwrap(), "compress=zstd:1");
        assert_eq!(said(TierKind::Sd, Some("zstd:1"), 1400, "Cortex-A53"), None);
        assert_eq!(said(TierKind::Sd, Some("zlib"), 3000, "fast"), None);
        assert_eq!(said(TierKind::Nvme, None, 1400, "Cortex-A53"), None);
    }
}
