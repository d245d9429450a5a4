//! Whether programs' memory or the page cache goes first, by what swap costs.

use super::{KERNEL_VM, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "swappiness",
    title: "what goes first by what it costs to come back",
    condition: "for a desktop, a build or an LLM swap lies in zram and vm.swappiness is less than 100; or it lies on a memory card and is \
                more than 60",
    source: "Linux kernel documentation, admin-guide/sysctl/vm: beyond 100 where swap is faster than the file systems",
    jobs: &Job::GENERAL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let now = situation.vm("swappiness")?;
    let (_, tier) = situation.first_swap()?;
    let tier = tier?;
    let presses = matches!(situation.goals.job, Job::Desktop | Job::Build | Job::Llm);
    let (wanted, why) = match tier.kind {
        TierKind::Zram if presses && now < 100 => (
            100,
            "a page comes back from compressed memory in microseconds, one of a file from the disk in hundreds of them",
        ),
        TierKind::Sd if now > 60 => (10, "each page that is swapped out is written to the card and read from it again"),
        _ => return None,
    };
    Some(Recommendation {
        title: format!("vm.swappiness = {wanted}"),
        why: format!("Swap is on {}: {why}.", tier.name),
        evidence: vec![
            Evidence::machine("/proc/sys/vm/swappiness", now.to_string()),
            Evidence::published(
                KERNEL_VM,
                "for in-memory swap, like zram or zswap, values beyond 100 can be considered",
            ),
        ],
        changes: vec![sysctl("vm.swappiness", wanted.to_string())],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn by_tier_and_job() {
        let said = |job, kind, now| {
            judge(&Scene::of(job).with_swap(kind).vm("swappiness", now).situation()).map(|said| said.title)
        };
        assert_eq!(said(Job::Desktop, TierKind::Zram, "60").unwrap(), "vm.swappiness = 100");
        assert_eq!(said(Job::Server, TierKind::Sd, "100").unwrap(), "vm.swappiness = 10");
        assert_eq!((said(Job::Any, TierKind::Zram, "60"), said(Job::Desktop, TierKind::Nvme, "60")), (None, None));
    }
}
