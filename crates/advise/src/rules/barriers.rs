//! What was synced and is not on the medium: flushes switched off, or a cache that the kernel takes for none.

use super::{KERNEL_BLOCK, mount};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "flushes",
    title: "a sync that reaches the medium",
    condition: "a file system is mounted with nobarrier or barrier=0, or a disk that says it has a write cache is treated as if it had none",
    source: "ext4(5), xfs(5); Linux kernel documentation, block/writeback_cache_control",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let (mut reasons, mut evidence, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (tier, mounted) in situation.mounts() {
        let off = mounted.options.iter().find(|option| matches!(option.as_str(), "nobarrier" | "barrier=0"));
        let Some(off) = off.filter(|_| !mounted.read_only) else { continue };
        let at = mounted.at.display();
        reasons.push(format!(
            "{at} is mounted with {off}: what programs sync may still be in the cache of {} when the power fails",
            tier.name
        ));
        evidence.push(Evidence::machine("/proc/self/mountinfo", format!("{at} {}", mounted.options.join(","))));
        if situation.setup.mounted_by(&mounted.at).is_some() {
            changes.push(mount(&mounted.at, &[], &["nobarrier", "barrier"]));
        }
    }
    for tier in &situation.machine.tiers {
        let kernel = tier.block.as_ref().and_then(|block| block.write_cache.get());
        let device = situation.setup.device_cache.get(&tier.name);
        if let (Some(kernel), Some(device)) = (kernel, device)
            && kernel == "write through"
            && device.starts_with("write back")
        {
            let path = format!("/sys/block/{}/queue/write_cache", tier.name);
            reasons.push(format!(
                "{} has a write cache, and the kernel was told that it has none: it never flushes it",
                tier.name
            ));
            evidence.push(Evidence::machine(&path, kernel.clone()));
            changes.push(super::queue(&tier.name, "write_cache", "write back"));
        }
    }
    if reasons.is_empty() {
        return None;
    }
    evidence.push(Evidence::published(
        KERNEL_BLOCK,
        "a flush is what makes written data durable on a device with a volatile cache",
    ));
    Some(Recommendation {
        title: "flush what is synced".to_owned(),
        why: format!("{}.", reasons.join("; ")),
        evidence,
        risk: Some("Programs that sync often become slower, as slow as the disk is.".to_owned()),
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use machine::TierKind;

    #[test]
    fn where_they_are_switched_off() {
        let said = |options: &str| {
            let mut scene = Scene::of(Job::Any).with_fstab("/", "ext4", options);
            let mut it = tier("it", TierKind::Sata, "/");
            it.mounts[0].options = options.split(',').map(str::to_owned).collect();
            scene.machine.tiers = vec![it];
            judge(&scene.situation()).map(|said| said.changes[0].line())
        };
        assert_eq!(said("rw,nobarrier").unwrap(), "/ without nobarrier,barrier");
        assert_eq!(said("rw,barrier=0").unwrap(), "/ without nobarrier,barrier");
        assert_eq!((said("rw"), said("rw,barrier=1")), (None, None));
    }
}
