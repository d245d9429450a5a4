//! How many pages are read from swap at once: a disk is asked for several in the time of one, compressed memory is not.

use super::{KERNEL_VM, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "page-cluster",
    title: "as many pages at once as the swap tier likes",
    condition: "swap lies in zram and vm.page-cluster is not 0, or on a card or a spinning disk and it is less than 3",
    source: "Linux kernel documentation, admin-guide/sysctl/vm; rpi-swap sets 0 for zram",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let now = situation.vm("page-cluster")?;
    let (area, tier) = situation.first_swap()?;
    let tier = tier?;
    let spins = tier.block.as_ref().is_some_and(|block| block.rotational.get() == Some(&true));
    let (wanted, why) = match tier.kind {
        TierKind::Zram if now > 0 => (
            0,
            format!(
                "each fault decompresses {} pages where one is wanted, and throws others out for them",
                1 << now.min(10)
            ),
        ),
        TierKind::Sd | TierKind::Emmc | TierKind::Usb | TierKind::Sata
            if now < 3 && (spins || tier.kind == TierKind::Sd) =>
        {
            (
                3,
                "a page costs little more when its neighbours are read with it, and each alone costs a whole access"
                    .to_owned(),
            )
        }
        _ => return None,
    };
    Some(Recommendation {
        title: format!("vm.page-cluster = {wanted}"),
        why: format!("Swap is on {}: {why}.", tier.name),
        evidence: vec![
            Evidence::machine("/proc/sys/vm/page-cluster", now.to_string()),
            Evidence::machine("/proc/swaps", format!("{} priority {}", area.path.display(), area.priority)),
            Evidence::published(KERNEL_VM, "2 to the power of it pages are read in a single attempt; 3 by default"),
        ],
        changes: vec![sysctl("vm.page-cluster", wanted.to_string())],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn by_tier() {
        let said = |kind, now| {
            judge(&Scene::of(Job::Any).with_swap(kind).vm("page-cluster", now).situation()).map(|said| said.title)
        };
        assert_eq!(said(TierKind::Zram, "3").unwrap(), "vm.page-cluster = 0");
        assert_eq!(said(TierKind::Sd, "0").unwrap(), "vm.page-cluster = 3");
        assert_eq!((said(TierKind::Zram, "0"), said(TierKind::Nvme, "3"), said(TierKind::Sd, "3")), (None, None, None));
    }
}
