//! A fork that is refused: a server of 2 GiB asks for 2 GiB more, of which it needs little.

use super::persistence::choose;
use super::{ARTICLE, REDIS_ADMIN, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "redis-overcommit",
    title: "a fork that is not refused",
    condition: "the server forks, and vm.overcommit_memory is not 1",
    source: "Redis on Tiny Devices; Redis's administration guide",
    jobs: &Job::REDIS,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let now = situation.machine.vm.get("overcommit_memory")?.get()?;
    if !choose(situation).forks() || now == "1" {
        return None;
    }
    Some(Recommendation {
        title: "vm.overcommit_memory = 1".to_owned(),
        why: "A fork asks for as much memory as the server has, though it copies little of it; with 0 or 2 the kernel may refuse it, \
              and then no snapshot is made and no log rewritten."
            .to_owned(),
        evidence: vec![
            Evidence::machine("/proc/sys/vm/overcommit_memory", now),
            Evidence::published(REDIS_ADMIN, "set the Linux kernel overcommit memory setting to 1"),
            Evidence::published(ARTICLE, "vm.overcommit_memory=1"),
        ],
        risk: Some("All programs are promised more than there is: who uses too much is killed rather than refused.".to_owned()),
        changes: vec![sysctl("vm.overcommit_memory", "1")],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;

    #[test]
    fn where_it_forks_and_could_be_refused() {
        let said = |job, value: Option<&str>| {
            let mut scene = Scene::of(job);
            let known = value.map_or_else(Known::default, |value| Known::Is(value.to_owned()));
            scene.machine.vm.insert("overcommit_memory".to_owned(), known);
            judge(&scene.situation()).is_some()
        };
        assert!(said(Job::RedisStore, Some("0")) && said(Job::RedisStore, Some("2")));
        assert!(!said(Job::RedisStore, Some("1")) && !said(Job::RedisStore, None));
        assert!(!said(Job::RedisCache, Some("0")));
    }
}
