//! zswap before swap on a disk: most pages never get there.

use super::{DESKTOP, KERNEL_MM, boot};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "zswap",
    title: "a compressed cache before swap",
    condition: "swap lies on a disk that is no memory card, memory is 4 GiB at most, and this kernel has zswap, which is off",
    source: "Project Pi3Desk; Linux kernel documentation, admin-guide/mm/zswap",
    jobs: &[Job::Desktop, Job::Build, Job::Llm],
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let zswap = situation.machine.zswap.get()?;
    let (area, tier) = situation.first_swap()?;
    let kind = tier?.kind;
    let any_zram = situation.machine.swaps.iter().any(|area| area.path.to_string_lossy().contains("zram"));
    let disk = matches!(kind, TierKind::Usb | TierKind::Sata | TierKind::Nvme | TierKind::Virtio | TierKind::Emmc);
    if zswap.enabled || any_zram || !disk || situation.ram_mib()? > 4096 {
        return None;
    }
    let line = situation.setup.parameters.iter().any(|word| word.starts_with("zswap.enabled"));
    let said = if line { "zswap.enabled=0 on the command line" } else { "N" };
    Some(Recommendation {
        title: "zswap on, up to 20 % of memory".to_owned(),
        why: format!(
            "Swap is on {}. Pages that compress are kept in memory in a third to a half of their room, and come back in microseconds; \
             only the coldest are written to the disk.",
            area.path.display()
        ),
        evidence: vec![
            Evidence::machine("/sys/module/zswap/parameters/enabled", said),
            Evidence::published(DESKTOP, "zswap.enabled=1 zswap.max_pool_percent=15"),
            Evidence::published(KERNEL_MM, "max_pool_percent: 20 by default"),
        ],
        risk: Some("Compressing takes processor time while memory is short.".to_owned()),
        changes: vec![boot("zswap.enabled", "1"), boot("zswap.max_pool_percent", "20")],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;
    use machine::Zswap;

    #[test]
    fn before_a_disk_on_little_memory() {
        let said = |kind, gib, enabled| {
            let mut scene = Scene::of(Job::Desktop).with_ram_gib(gib).with_swap(kind);
            scene.machine.zswap = Known::Is(Zswap { enabled, ..Zswap::default() });
            judge(&scene.situation()).is_some()
        };
        assert!(said(TierKind::Usb, 1, false) && said(TierKind::Nvme, 4, false));
        assert!(!said(TierKind::Usb, 8, false) && !said(TierKind::Usb, 1, true) && !said(TierKind::Zram, 1, false));
        assert!(judge(&Scene::of(Job::Desktop).with_ram_gib(1).with_swap(TierKind::Usb).situation()).is_none());
    }
}
