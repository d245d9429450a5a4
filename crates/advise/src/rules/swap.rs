//! Keys that were swapped out: each costs a read of the swap tier before it is answered.

use super::{ARTICLE, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "redis-swap",
    title: "keys stay in memory while the page cache can go",
    condition: "swap lies on a disk, and vm.swappiness is more than 10",
    source: "Redis on Tiny Devices: vm.swappiness=10, zram for swap",
    jobs: &Job::REDIS,
    judge,
};

/// The article's.
const WANTED: u32 = 10;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let machine = situation.machine;
    let now: u32 = machine.vm.get("swappiness")?.get()?.parse().ok()?;
    // The kernel fills the area of the highest priority first.
    let first = machine.swaps.iter().max_by_key(|area| area.priority)?;
    let tier = first.tier.as_deref().and_then(|name| machine.tier(name));
    let kind = tier.map(|tier| tier.kind);
    if kind.is_none_or(|kind| kind == TierKind::Zram) || now <= WANTED {
        return None;
    }
    let on_card = matches!(kind, Some(TierKind::Sd | TierKind::Emmc));
    let name = tier.map_or("a disk", |tier| tier.name.as_str());
    let zram =
        if on_card { " Better still is swap in compressed memory (zram), which also spares the card." } else { "" };
    Some(Recommendation {
        title: format!("vm.swappiness = {WANTED}"),
        why: format!(
            "Swap is on {name}: a key that was swapped out is read from there before it is answered, and all other clients wait \
             meanwhile, as the server has one thread.{zram}"
        ),
        evidence: vec![
            Evidence::machine("/proc/swaps", format!("{} priority {}", first.path.display(), first.priority)),
            Evidence::machine("/proc/sys/vm/swappiness", now.to_string()),
            Evidence::published(ARTICLE, "vm.swappiness=10; use zram for swap to avoid SD wear and reduce I/O jitter"),
        ],
        risk: Some("Files are read again sooner, by other programs too.".to_owned()),
        changes: vec![sysctl("vm.swappiness", WANTED.to_string())],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;
    use basics::{Bytes, Known};
    use machine::SwapArea;

    fn scene(kind: TierKind, swappiness: &str) -> Scene {
        let mut scene = Scene::of(Job::RedisStore);
        scene.machine.vm.insert("swappiness".to_owned(), Known::Is(swappiness.to_owned()));
        scene.machine.tiers = vec![tier("it", kind, "/somewhere")];
        let tier = Some("it".to_owned());
        let swap = SwapArea {
            path: "/dev/it".into(),
            kind: "partition".to_owned(),
            size: Bytes(1 << 30),
            used: Bytes(0),
            priority: -2,
            tier,
        };
        scene.machine.swaps = vec![swap];
        scene
    }

    #[test]
    fn where_swap_lies_on_a_disk() {
        let said = |kind, value| judge(&scene(kind, value).situation());
        assert!(said(TierKind::Sd, "60").unwrap().why.contains("zram"));
        assert!(!said(TierKind::Nvme, "60").unwrap().why.contains("zram"));
        assert_eq!(said(TierKind::Zram, "60"), None);
        assert_eq!(said(TierKind::Sd, "10"), None);
        let mut none = scene(TierKind::Sd, "60");
        none.machine.swaps.clear();
        assert_eq!(judge(&none.situation()), None);
    }
}
