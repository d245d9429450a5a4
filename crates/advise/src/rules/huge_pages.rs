//! Huge pages and a fork: a byte that is written copies 2 MiB.

use super::persistence::choose;
use super::{ARTICLE, redis};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::Known;
use change::Wanted;
use std::path::PathBuf;

pub(super) const RULE: Rule = Rule {
    name: "redis-huge-pages",
    title: "no huge pages that nobody asked for",
    condition: "transparent huge pages are \"always\"",
    source: "Redis on Tiny Devices; Redis warns of it when it starts",
    jobs: &Job::REDIS,
    judge,
};

const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let now = situation.machine.vm.get("transparent_hugepage").and_then(Known::get)?;
    if now != "always" {
        return None;
    }
    let fork = if choose(situation).forks() {
        "After a fork the first write to a huge page copies all of it, 2 MiB for a value of 64 B"
    } else {
        "Huge pages make a server's memory grow beyond its keys, and come and go while it runs"
    };
    Some(Recommendation {
        title: "transparent huge pages only for who asks (madvise)".to_owned(),
        why: format!(
            "{fork}. From Redis 6.2 on `disable-thp yes`, its default, keeps them from the server itself; older ones need the \
             system's setting. With madvise those programs keep them that ask."
        ),
        evidence: vec![
            Evidence::machine(FILE, format!("[{now}]")),
            Evidence::published(ARTICLE, "echo never > /sys/kernel/mm/transparent_hugepage/enabled"),
            Evidence::published(
                "redis-server's own warning at start",
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            ),
        ],
        risk: Some("Programs that gained from huge pages without asking lose them.".to_owned()),
        changes: vec![
            redis("disable-thp", "yes"),
            Wanted::Sysfs { path: PathBuf::from(FILE), value: "madvise".to_owned() },
        ],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn only_where_they_are_given_to_all() {
        let said = |value: &str| {
            let mut scene = Scene::of(Job::RedisStore);
            scene.machine.vm.insert("transparent_hugepage".to_owned(), Known::Is(value.to_owned()));
            judge(&scene.situation()).is_some()
        };
        assert!(said("always"));
        assert!(!said("madvise") && !said("never"));
        assert_eq!(judge(&Scene::of(Job::RedisStore).situation()), None);
    }
}
