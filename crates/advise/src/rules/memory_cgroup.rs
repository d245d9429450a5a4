//! Limits of memory that do not hold: Raspberry Pi OS starts its kernel without the memory cgroup.

use super::boot;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "memory-cgroup",
    title: "limits of memory that hold",
    condition: "memory cannot be limited by control group, and the machine runs services, containers, builds or models",
    source: "Raspberry Pi's firmware adds cgroup_disable=memory; admin-guide/cgroup-v2",
    jobs: &[Job::Llm, Job::Server, Job::Build],
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    if *situation.setup.memory_cgroup.get()? {
        return None;
    }
    let why = "MemoryMax= of a service and --memory of a container have no effect: one that grows takes the whole machine with it. \
               tiermark, too, can only lock memory instead of limiting it.";
    let line = situation.setup.parameter("cgroup_disable").map(|value| format!("cgroup_disable={value}"));
    Some(Recommendation {
        title: "cgroup_enable=memory".to_owned(),
        why: why.to_owned(),
        evidence: vec![Evidence::machine("/proc/cgroups", line.unwrap_or_else(|| "memory: not enabled".to_owned()))],
        risk: Some("Some per cent of memory and processor time for the accounts.".to_owned()),
        changes: vec![boot("cgroup_enable", "memory"), boot("cgroup_memory", "1")],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;

    #[test]
    fn where_it_is_off() {
        let said = |on| {
            let mut scene = Scene::of(Job::Server);
            scene.setup.memory_cgroup = on;
            judge(&scene.situation()).is_some()
        };
        assert!(said(Known::Is(false)) && !said(Known::Is(true)) && !said(Known::default()));
    }
}
