//! Two tools that set up swap: each brings back what the other removed.

use super::unit;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "swap-managers",
    title: "one tool for swap",
    condition: "two tools set up swap at each start",
    source: "the tools' own documentation: each sets up all swap by itself",
    jobs: &Job::ALL,
    judge,
};

/// Which stays, the first before the others: those of the distribution before older ones; and the unit that starts it.
const TOOLS: [(&str, Option<&str>); 6] = [
    ("rpi-swap", None),
    ("zram-generator", None),
    ("armbian-zram-config", Some("armbian-zram-config.service")),
    ("zram-tools", Some("zramswap.service")),
    ("zram-config", Some("zram-config.service")),
    ("dphys-swapfile", Some("dphys-swapfile.service")),
];

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let notice = situation.notice("two-swap-managers")?;
    let here = |name: &str| situation.machine.swap_managers.iter().any(|manager| manager == name);
    let mut tools = TOOLS.iter().filter(|(name, _)| here(name));
    let (kept, _) = tools.next()?;
    let others: Vec<_> = tools.collect();
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    Some(Recommendation {
        title: format!("leave swap to {kept}, stop {}", names.join(" and ")),
        why: notice.text.clone(),
        evidence: vec![Evidence::machine("/etc", notice.evidence.clone())],
        risk: Some("What the stopped tool had set up is gone after the next start.".to_owned()),
        changes: others.iter().filter_map(|(_, service)| Some(unit((*service)?, false))).collect(),
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn the_older_one_goes() {
        let mut scene = Scene::of(Job::Any).noticed("two-swap-managers");
        scene.machine.swap_managers = vec!["dphys-swapfile".to_owned(), "rpi-swap".to_owned()];
        let said = judge(&scene.situation()).unwrap();
        assert_eq!(said.changes, [unit("dphys-swapfile.service", false)]);
        assert!(judge(&Scene::of(Job::Any).situation()).is_none());
    }
}
