//! How far the kernel reads ahead of a program that reads in order.

use super::{KERNEL_BLOCK, each_disk, queue};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "readahead",
    title: "read ahead as far as it helps",
    condition: "a disk's read-ahead is below 64 KiB, or above 4 MiB with 4 GiB of memory or less",
    source: "Linux: 128 KiB by default (read_ahead_kb, ABI/stable/sysfs-block)",
    jobs: &Job::GENERAL,
    judge,
};

const LEAST: u64 = 64 << 10;
const MOST: u64 = 4 << 20;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let little = situation.ram_mib().is_some_and(|mib| mib <= 4096);
    let mut reasons = Vec::new();
    let (changes, mut evidence) = each_disk(situation, |tier, block| {
        let now = block.read_ahead.get()?.0;
        if tier.kind == machine::TierKind::Loop || tier.kind == machine::TierKind::Zram {
            return None;
        }
        let wanted = if now < LEAST {
            reasons.push(format!(
                "{} is asked for {} KiB at a time by whoever reads in order, a whole access each",
                tier.name,
                now >> 10
            ));
            128
        } else if now > MOST && little {
            reasons.push(format!(
                "{} reads {} MiB ahead, which pushes out what is in use on little memory",
                tier.name,
                now >> 20
            ));
            512
        } else {
            return None;
        };
        let file = format!("/sys/block/{}/queue/read_ahead_kb", tier.name);
        Some((
            queue(&tier.name, "read_ahead_kb", &wanted.to_string()),
            Evidence::machine(&file, (now >> 10).to_string()),
        ))
    })?;
    evidence.push(Evidence::published(KERNEL_BLOCK, "read_ahead_kb: 128 by default"));
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
    use basics::{Bytes, Known};
    use machine::{BlockFacts, TierKind};

    #[test]
    fn neither_too_short_nor_too_far() {
        let said = |kib: u64, gib| {
            let mut scene = Scene::of(Job::Any).with_ram_gib(gib);
            let block = BlockFacts { read_ahead: Known::Is(Bytes(kib << 10)), ..BlockFacts::default() };
            scene.machine.tiers = vec![machine::Tier { block: Some(block), ..tier("it", TierKind::Usb, "/") }];
            judge(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(said(4, 1).unwrap(), "it: read_ahead_kb 128");
        assert_eq!(said(16384, 1).unwrap(), "it: read_ahead_kb 512");
        assert_eq!((said(128, 1), said(4096, 1), said(16384, 16)), (None, None, None));
    }
}
