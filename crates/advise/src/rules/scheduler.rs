//! The I/O scheduler: what a queue of the device itself does better, and what a single head or a card needs.

use super::{KERNEL_BLOCK, each_disk, queue};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "scheduler",
    title: "the scheduler that fits the disk",
    condition: "a card or a spinning disk has none, or an NVMe disk has one that sorts (bfq, kyber)",
    source: "Linux kernel documentation, block: none for fast devices with queues of their own, mq-deadline or bfq for slow ones",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let mut reasons = Vec::new();
    let (changes, evidence) = each_disk(situation, |tier, block| {
        let now = block.scheduler.get()?;
        let offered = situation.setup.schedulers.get(&tier.name)?;
        let has = |name: &str| offered.iter().any(|other| other == name);
        let spins = block.rotational.get() == Some(&true)
            && !matches!(tier.kind, TierKind::Virtio | TierKind::Nvme | TierKind::Usb);
        let wanted = match tier.kind {
            TierKind::Sd | TierKind::Sata if now == "none" && (tier.kind == TierKind::Sd || spins) => {
                let desktop = situation.goals.job == Job::Desktop && has("bfq");
                let sorts = if desktop { "bfq" } else { "mq-deadline" };
                reasons.push(format!(
                    "{} serves one request after another, so a long write keeps every read waiting",
                    tier.name
                ));
                has(sorts).then_some(sorts)?
            }
            TierKind::Nvme if matches!(now.as_str(), "bfq" | "kyber") && has("none") => {
                reasons.push(format!(
                    "{} has queues of its own, and {now} costs processor time at every request",
                    tier.name
                ));
                "none"
            }
            _ => return None,
        };
        let change = queue(&tier.name, "scheduler", wanted);
        Some((change, Evidence::machine(&format!("/sys/block/{}/queue/scheduler", tier.name), now.clone())))
    })?;
    let mut evidence = evidence;
    evidence.push(Evidence::published(KERNEL_BLOCK, "bfq and mq-deadline for slow devices, none for fast ones"));
    let titles: Vec<String> = changes.iter().map(super::queue_words).collect();
    Some(Recommendation {
        title: titles.join(", "),
        why: format!("{}.", reasons.join("; ")),
        evidence,
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use basics::Known;
    use machine::BlockFacts;

    #[test]
    fn cards_and_nvme() {
        let said = |job, kind, now: &str| {
            let mut scene = Scene::of(job);
            let block = BlockFacts { scheduler: Known::Is(now.to_owned()), ..BlockFacts::default() };
            scene.machine.tiers = vec![machine::Tier { block: Some(block), ..tier("it", kind, "/") }];
            let all = ["none", "mq-deadline", "bfq"].map(str::to_owned);
            scene.setup.schedulers.insert("it".to_owned(), all.to_vec());
            judge(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(said(Job::Any, TierKind::Sd, "none").unwrap(), "it: scheduler mq-deadline");
        assert_eq!(said(Job::Desktop, TierKind::Sd, "none").unwrap(), "it: scheduler bfq");
        assert_eq!(said(Job::Any, TierKind::Nvme, "bfq").unwrap(), "it: scheduler none");
        assert_eq!((said(Job::Any, TierKind::Nvme, "none"), said(Job::Any, TierKind::Sd, "mq-deadline")), (None, None));
    }
}
