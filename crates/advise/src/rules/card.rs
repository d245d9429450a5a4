//! Memory cards: too slow a class for the use, a slow mode of the bus, and cells that are worn.

use super::CARD;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::{Tier, TierKind};

pub(super) const CLASS: Rule = Rule {
    name: "card-class",
    title: "a card for programs, or no card",
    condition: "the system lies on an SD card that names no application class (A1, A2)",
    source: "Raspberry PI Storage Performance: Part 1 USB vs SD Card; SD Association: A1 is 1,500 reads and 500 writes a second at random",
    jobs: &[Job::Desktop, Job::Build, Job::RedisStore, Job::RedisVectors],
    judge: class,
};

pub(super) const MODE: Rule = Rule {
    name: "card-mode",
    title: "the card's faster mode",
    condition: "a card works in a mode below what it and its host can do",
    source: "SD Association: UHS-I needs 1.8 V signalling, which a long adapter or a dirty contact can prevent",
    jobs: &Job::ALL,
    judge: mode,
};

pub(super) const WEAR: Rule = Rule {
    name: "card-wear",
    title: "a medium near its end",
    condition: "an eMMC says that 80 % or more of its life is used, or a card is write protected",
    source: "JEDEC eMMC 5.0: DEVICE_LIFE_TIME_EST in tenths; Project Pi3Desk: cards that refuse writes at the end",
    jobs: &Job::ALL,
    judge: wear,
};

fn class(situation: &Situation<'_>) -> Option<Recommendation> {
    let (tier, _) = situation.system().filter(|(tier, _)| tier.kind == TierKind::Sd)?;
    let words = tier.block.as_ref()?.card.as_deref()?;
    let named = |class: &str| words.split(", ").any(|word| word == class);
    if named("A1") || named("A2") {
        return None;
    }
    Some(Recommendation {
        title: "a card of class A1 or A2, or better a disk".to_owned(),
        why: format!(
            "{} names no application class ({words}): its speed class speaks of one long write, programs write small pieces at random.",
            tier.name
        ),
        evidence: vec![
            Evidence::machine(&format!("/sys/block/{}/device/ssr", tier.name), words),
            Evidence::published(CARD, "a card of class U3 (30 MB/s) wrote 17.2 MB/s"),
        ],
        ..Recommendation::default()
    })
}

fn mode(situation: &Situation<'_>) -> Option<Recommendation> {
    let (_, warning) = situation.noticed("sd-slow-mode").next()?;
    Some(Recommendation {
        title: "look at the slot, the adapter and the host's settings".to_owned(),
        why: warning.text.clone(),
        evidence: vec![Evidence::machine("/sys/kernel/debug", warning.evidence.clone())],
        ..Recommendation::default()
    })
}

fn wear(situation: &Situation<'_>) -> Option<Recommendation> {
    let is_card = |tier: &&Tier| matches!(tier.kind, TierKind::Sd | TierKind::Emmc);
    for tier in situation.machine.tiers.iter().filter(is_card) {
        // 9 stands for 80 to 90 % used, 11 for more than all of it.
        if let Some(tenths) = situation.setup.life.get(&tier.name).filter(|tenths| **tenths >= 9) {
            let used = if *tenths > 10 {
                "more than its estimated life".to_owned()
            } else {
                format!("{} to {} %", (tenths - 1) * 10, tenths * 10)
            };
            return Some(worn(
                tier,
                format!("{} says that {used} of its life is used.", tier.name),
                Evidence::machine(&format!("/sys/block/{}/device/life_time", tier.name), format!("0x{tenths:02x}")),
            ));
        }
        if let Some(warning) = tier.warnings.iter().find(|warning| warning.id == "read-only") {
            return Some(worn(
                tier,
                warning.text.clone(),
                Evidence::machine("/proc/self/mountinfo", warning.evidence.clone()),
            ));
        }
    }
    None
}

fn worn(tier: &Tier, why: String, evidence: Evidence) -> Recommendation {
    Recommendation {
        title: format!("replace {}, and copy what is on it now", tier.name),
        why: format!("{why} Cards end so: they refuse to be written, or are gone."),
        evidence: vec![evidence],
        ..Recommendation::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use machine::BlockFacts;

    #[test]
    fn classes_and_ends() {
        let scene = |card: &str| {
            let mut scene = Scene::of(Job::Desktop);
            let block = BlockFacts { card: Some(card.to_owned()), ..BlockFacts::default() };
            scene.machine.tiers = vec![Tier { block: Some(block), ..tier("mmcblk0", TierKind::Sd, "/") }];
            scene
        };
        assert!(class(&scene("U1, V10, class 10").situation()).is_some());
        assert!(class(&scene("A1, U1, V10").situation()).is_none());
        let mut worn = scene("A1");
        assert!(wear(&worn.situation()).is_none());
        worn.setup.life.insert("mmcblk0".to_owned(), 9);
        assert!(wear(&worn.situation()).unwrap().why.contains("80 to 90 %"));
        worn.setup.life.insert("mmcblk0".to_owned(), 2);
        assert!(wear(&worn.situation()).is_none());
        assert!(mode(&Scene::of(Job::Any).warned("sd-slow-mode").situation()).is_some());
    }
}
