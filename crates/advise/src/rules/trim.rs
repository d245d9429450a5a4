//! Free blocks given back to the disk: at every deletion, once a week, or never.

use super::{mount, unit};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::{Mount, Tier};

pub(super) const DISCARD: Rule = Rule {
    name: "discard",
    title: "trim once a week, not at every deletion",
    condition: "ext4, f2fs or xfs is mounted with discard",
    source: "fstrim(8), ext4(5): discard at every deletion delays it; a weekly fstrim does the same work",
    jobs: &Job::ALL,
    judge: discard,
};

pub(super) const TRIM: Rule = Rule {
    name: "trim",
    title: "trim, at least once a week",
    condition: "a disk takes trims, a file system on it is not mounted with discard, and fstrim.timer is off",
    source: "fstrim(8): a drive that does not know what is free writes slower and wears sooner",
    jobs: &Job::ALL,
    judge: trim,
};

fn is_ours(mounted: &Mount) -> bool {
    matches!(mounted.fs.as_str(), "ext4" | "f2fs" | "xfs") && !mounted.read_only
}

fn discards(mounted: &Mount) -> bool {
    mounted.options.iter().any(|option| option == "discard" || option.starts_with("discard="))
}

fn discard(situation: &Situation<'_>) -> Option<Recommendation> {
    let all: Vec<(&Tier, &Mount)> =
        situation.mounts().filter(|(_, mounted)| is_ours(mounted) && discards(mounted)).collect();
    // A virtual disk's trim is its host's, which may want each at once.
    let all: Vec<_> = all.into_iter().filter(|(tier, _)| tier.kind != machine::TierKind::Virtio).collect();
    let in_fstab: Vec<_> =
        all.iter().filter(|(_, mounted)| situation.setup.mounted_by(&mounted.at).is_some()).collect();
    let (tier, first) = all.first()?;
    let mut changes: Vec<_> = in_fstab.iter().map(|(_, mounted)| mount(&mounted.at, &[], &["discard"])).collect();
    if !changes.is_empty() && situation.setup.trims.get() == Some(&false) {
        changes.push(unit("fstrim.timer", true));
    }
    let places: Vec<String> = all.iter().map(|(_, mounted)| mounted.at.display().to_string()).collect();
    Some(Recommendation {
        title: format!("{} without discard, fstrim once a week", places.join(", ")),
        why: format!(
            "Each deletion on {} waits for {} to forget the blocks; many disks do nothing else meanwhile.",
            first.at.display(),
            tier.name
        ),
        evidence: all
            .iter()
            .map(|(_, mounted)| {
                Evidence::machine(
                    "/proc/self/mountinfo",
                    format!("{} {}", mounted.at.display(), mounted.options.join(",")),
                )
            })
            .collect(),
        changes,
        ..Recommendation::default()
    })
}

fn trim(situation: &Situation<'_>) -> Option<Recommendation> {
    if *situation.setup.trims.get()? {
        return None;
    }
    let takes = |tier: &Tier| tier.block.as_ref().is_some_and(|block| block.discard.get() == Some(&true));
    let lacks =
        |mounted: &Mount| (is_ours(mounted) || mounted.fs == "btrfs") && !mounted.read_only && !discards(mounted);
    let found: Vec<_> = situation.mounts().filter(|(tier, mounted)| takes(tier) && lacks(mounted)).collect();
    let (tier, mounted) = found.first()?;
    Some(Recommendation {
        title: "fstrim.timer on".to_owned(),
        why: format!(
            "Nothing ever tells {} which of its blocks are free ({}): it copies them as if they were used, writes slower and wears sooner.",
            tier.name,
            mounted.at.display()
        ),
        evidence: vec![
            Evidence::machine("/etc/systemd/system/timers.target.wants", "no fstrim.timer"),
            Evidence::machine(&format!("/sys/block/{}/queue/discard_max_bytes", tier.name), "more than 0"),
        ],
        changes: vec![unit("fstrim.timer", true)],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use basics::Known;
    use machine::{BlockFacts, TierKind};

    fn scene(options: &str, trims: Known<bool>) -> Scene {
        let mut scene = Scene::of(Job::Any).with_fstab("/", "ext4", options);
        let block = BlockFacts { discard: Known::Is(true), ..BlockFacts::default() };
        let mut it = Tier { block: Some(block), ..tier("it", TierKind::Sata, "/") };
        it.mounts[0].options = options.split(',').map(str::to_owned).collect();
        scene.machine.tiers = vec![it];
        scene.setup.trims = trims;
        scene
    }

    #[test]
    fn once_a_week() {
        let lines = |said: Option<Recommendation>| {
            said.map(|said| said.changes.iter().map(change::Wanted::line).collect::<Vec<_>>())
        };
        let both = |options: &str, trims| {
            let scene = scene(options, trims);
            (lines(discard(&scene.situation())), lines(trim(&scene.situation())))
        };
        let no = || Known::Is(false);
        let (said, other) = both("rw,discard", no());
        assert_eq!(said.unwrap(), ["/ without discard", "fstrim.timer starts by itself"]);
        assert_eq!(other, None);
        assert_eq!(both("rw,discard", Known::Is(true)).0.unwrap(), ["/ without discard"]);
        assert_eq!(both("rw", no()).1.unwrap(), ["fstrim.timer starts by itself"]);
        assert_eq!((both("rw", Known::Is(true)), both("rw", Known::default())), ((None, None), (None, None)));
    }
}
