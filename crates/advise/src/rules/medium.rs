//! A log on a memory card: the article's first rule is not to have one.

use super::ARTICLE;
use super::persistence::choose;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::{Tier, TierKind};

pub(super) const RULE: Rule = Rule {
    name: "redis-medium",
    title: "no log on a memory card",
    condition: "data are kept, their files lie on an SD card or eMMC, and it was not measured to be fast enough",
    source: "Redis on Tiny Devices: avoid slow SD cards for AOF or heavy writes",
    jobs: &Job::REDIS,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let choice = choose(situation);
    let measured_good = choice.seen.is_some() && choice.meets == Some(true);
    if !choice.forks() || measured_good || situation.is_card() != Some(true) {
        return None;
    }
    let better: Vec<String> = situation.machine.tiers.iter().filter_map(place).collect();
    let (title, way_out) = match better.first() {
        Some(place) => (format!("put the files on {place}"), format!("{place} is here and is none")),
        None => (
            "take another disk than the card, or keep the copy elsewhere".to_owned(),
            "no other disk with a file system was found here: an SSD behind USB, or a copy elsewhere (redis-replica)"
                .to_owned(),
        ),
    };
    let mut evidence =
        vec![Evidence::published(ARTICLE, "AOF everysec costs 24 % on SD, 15 % on NVMe, with values of 64 B")];
    evidence.extend(choice.seen.map(|seen| seen.evidence()));
    if let Some(tier) = situation.tier() {
        let of = tier.path.as_ref().map_or_else(|| tier.name.clone(), |path| path.display().to_string());
        evidence.push(Evidence::machine(&of, "the files lie on a memory card"));
    }
    Some(Recommendation {
        title,
        why: format!(
            "Requests wait for the card whenever it flushes or tidies up, and each write wears it; {way_out}."
        ),
        evidence,
        risk: Some("What is moved needs the server stopped.".to_owned()),
        ..Recommendation::default()
    })
}

/// Where on a disk that is no card files could lie.
fn place(tier: &Tier) -> Option<String> {
    let kind = matches!(tier.kind, TierKind::Usb | TierKind::Nvme | TierKind::Sata);
    let mount = tier.mounts.iter().find(|mount| !mount.read_only)?;
    kind.then(|| format!("{} ({})", mount.at.display(), tier.name))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, seen, tier};
    use super::*;
    use basics::redis::Mode;

    #[test]
    fn a_card_is_told_unless_it_was_measured_to_be_good() {
        let mut scene = Scene::of(Job::RedisStore).on("/mnt");
        scene.machine.tiers = vec![tier("mmcblk0", TierKind::Sd, "/mnt")];
        let said = judge(&scene.situation()).unwrap();
        assert!(said.why.contains("no other disk"), "{}", said.why);
        scene.machine.tiers.push(tier("sda", TierKind::Usb, "/media/ssd"));
        assert_eq!(judge(&scene.situation()).unwrap().title, "put the files on /media/ssd (sda)");
        scene.seen = vec![seen("7c1e", Mode::AofEverysec, "/mnt", 512, 41_000.0, 2_000.0)];
        assert_eq!(judge(&scene.situation()), None);
        scene.seen = vec![seen("7c1e", Mode::AofEverysec, "/mnt", 512, 41_000.0, 50_000.0)];
        assert!(judge(&scene.situation()).is_some());
        scene.goals.loss = None;
        assert_eq!(judge(&scene.situation()), None);
    }

    #[test]
    fn other_disks_are_left_alone() {
        let mut scene = Scene::of(Job::RedisStore).on("/mnt");
        scene.machine.tiers = vec![tier("nvme0n1", TierKind::Nvme, "/mnt")];
        assert_eq!(judge(&scene.situation()), None);
    }
}
