//! Partitions: too full, or not where the medium's pages begin; and file systems made for cards.

use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const FREE: Rule = Rule {
    name: "free-space",
    title: "room to write",
    condition: "less than a tenth of the system's file system is free",
    source: "ext4(5) keeps 5 % for root; flash needs free blocks to write into",
    jobs: &Job::ALL,
    judge: free,
};

pub(super) const ALIGNED: Rule = Rule {
    name: "alignment",
    title: "partitions where pages begin",
    condition: "a partition does not begin on a multiple of 4 KiB",
    source: "4 KiB pages of flash and of disks with 4 KiB sectors",
    jobs: &Job::ALL,
    judge: aligned,
};

pub(super) const F2FS: Rule = Rule {
    name: "f2fs-on-card",
    title: "a file system made for flash",
    condition: "a desktop's or a build's system lies on ext4 on an SD card, and there is no other disk",
    source: "Project Pi3Desk compares with a card of F2FS; Linux kernel documentation, filesystems/f2fs",
    jobs: &[Job::Desktop, Job::Build],
    judge: f2fs,
};

fn free(situation: &Situation<'_>) -> Option<Recommendation> {
    let (_, mounted) = situation.system()?;
    let (free, all) = situation.setup.room.get(&mounted.at)?;
    if free.0 * 10 >= all.0 {
        return None;
    }
    Some(Recommendation {
        title: "make room".to_owned(),
        why: format!(
            "{free} of {all} are free at {}: logs stop, updates fail, and flash writes slower.",
            mounted.at.display()
        ),
        evidence: vec![Evidence::machine("statvfs(3)", format!("{}: {free} of {all}", mounted.at.display()))],
        ..Recommendation::default()
    })
}

fn aligned(situation: &Situation<'_>) -> Option<Recommendation> {
    let (_, warning) = situation.noticed("partition-unaligned").next()?;
    Some(Recommendation {
        title: "make the partition anew when it is next empty".to_owned(),
        why: warning.text.clone(),
        evidence: vec![Evidence::machine("/sys/class/block", warning.evidence.clone())],
        ..Recommendation::default()
    })
}

fn f2fs(situation: &Situation<'_>) -> Option<Recommendation> {
    let (tier, mounted) =
        situation.system().filter(|(tier, mounted)| tier.kind == TierKind::Sd && mounted.fs == "ext4")?;
    let disk = |kind| matches!(kind, TierKind::Usb | TierKind::Nvme | TierKind::Sata);
    if situation.machine.tiers.iter().any(|tier| disk(tier.kind)) {
        return None;
    }
    Some(Recommendation {
        title: "a disk for the system, or F2FS when the card is next written".to_owned(),
        why: format!(
            "{} is ext4 on {}: each small write at random rewrites whole erase blocks of the card; F2FS writes them one after another.",
            mounted.source, tier.name
        ),
        evidence: vec![Evidence::machine(
            "/proc/self/mountinfo",
            format!("/ {} {}", mounted.fs, mounted.options.join(",")),
        )],
        risk: Some("The boot loader and the initramfs must know it; it is no change of a running system.".to_owned()),
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use basics::Bytes;

    #[test]
    fn each_where_it_holds() {
        let mut scene = Scene::of(Job::Desktop);
        scene.machine.tiers = vec![tier("mmcblk0", TierKind::Sd, "/")];
        assert!(f2fs(&scene.situation()).is_some() && free(&scene.situation()).is_none());
        scene.setup.room.insert("/".into(), (Bytes(1 << 30), Bytes(32 << 30)));
        assert!(free(&scene.situation()).unwrap().why.contains("1 GiB of 32 GiB"));
        scene.machine.tiers.push(tier("sda", TierKind::Usb, "/mnt"));
        assert!(f2fs(&scene.situation()).is_none());
        assert!(aligned(&Scene::of(Job::Any).warned("partition-unaligned").situation()).is_some());
    }
}
