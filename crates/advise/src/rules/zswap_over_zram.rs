//! zswap before zram: a page is compressed, and compressed again.

use super::{KERNEL_MM, boot};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "zswap-over-zram",
    title: "one compressed pool, not two",
    condition: "zswap is on and swap lies in zram",
    source: "Linux kernel documentation, admin-guide/mm/zswap: a cache before a real swap device",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let notice = situation.notice("zswap-and-zram")?;
    let disk = situation.machine.swaps.iter().any(|area| !area.path.to_string_lossy().contains("zram"));
    let but = if disk { " What is swapped to a disk after zram is full is then not compressed." } else { "" };
    Some(Recommendation {
        title: "zswap off".to_owned(),
        why: format!("{}{but}", notice.text),
        evidence: vec![
            Evidence::machine("/sys/module/zswap/parameters/enabled", notice.evidence.clone()),
            Evidence::published(KERNEL_MM, "zswap is a compressed cache for pages on their way to a swap device"),
        ],
        changes: vec![boot("zswap.enabled", "0")],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn where_both_are_on() {
        let said = judge(&Scene::of(Job::Llm).noticed("zswap-and-zram").situation()).unwrap();
        assert_eq!(said.changes[0].line(), "zswap.enabled=0");
        assert!(judge(&Scene::of(Job::Llm).situation()).is_none());
    }
}
