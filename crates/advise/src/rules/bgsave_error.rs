//! The article's own trap: a server that goes on when its snapshots fail.

use super::persistence::choose;
use super::{ARTICLE, REDIS_CONF, redis};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::redis::Mode;

pub(super) const RULE: Rule = Rule {
    name: "redis-bgsave-error",
    title: "a store whose snapshots fail must not go on as if they did not",
    condition: "snapshots are what is kept",
    source: "against Redis on Tiny Devices, which sets it to no \"careful with durability\"",
    jobs: &Job::REDIS,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    if choose(situation).mode != Mode::Rdb {
        return None;
    }
    Some(Recommendation {
        title: "stop-writes-on-bgsave-error yes".to_owned(),
        why: "With no, a full disk or a failed fork goes unnoticed and every write since the last snapshot that worked is lost with \
              the next power cut. With yes the clients are told at once (MISCONF)."
            .to_owned(),
        evidence: vec![
            Evidence::published(REDIS_CONF, "otherwise chances are that no one will notice and some disaster will happen"),
            Evidence::published(ARTICLE, "stop-writes-on-bgsave-error no (careful with durability)"),
        ],
        risk: Some("Writes stop while snapshots fail.".to_owned()),
        changes: vec![redis("stop-writes-on-bgsave-error", "yes")],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Nanos;

    #[test]
    fn only_where_snapshots_are_what_is_kept() {
        let mut scene = Scene::of(Job::RedisStore);
        assert_eq!(judge(&scene.situation()), None);
        scene.goals.loss = Some(Nanos::from_millis(3_600_000));
        assert!(judge(&scene.situation()).is_some());
        assert_eq!(judge(&Scene::of(Job::RedisCache).situation()), None);
    }
}
