//! A setting that looks like tuning and takes away what was promised.

use super::persistence::choose;
use super::{REDIS_CONF, redis};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::Nanos;
use basics::redis::Mode;

pub(super) const RULE: Rule = Rule {
    name: "redis-rewrite-fsync",
    title: "the log is made durable while it is rewritten, too",
    condition: "a log is kept",
    source: "redis.conf: no-appendfsync-on-rewrite yes is as appendfsync no while a child writes",
    jobs: &Job::REDIS,
    judge,
};

/// What the kernel may keep unwritten by default (`dirty_expire_centisecs` 3000), which redis.conf states as the loss.
const LATER: Nanos = Nanos::from_millis(30_000);

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let mode = choose(situation).mode;
    let (value, why) = match mode {
        Mode::MemoryOnly | Mode::Replica | Mode::AsItRuns | Mode::Rdb | Mode::Checkpoint => return None,
        Mode::AofAlways => (
            "no",
            "With yes, `always` is `no` while a child writes: acknowledged writes of up to 30 s are lost by a power cut then. Never \
             both.",
        ),
        Mode::AofEverysec | Mode::AofRewrite if situation.goals.loss.is_some_and(|loss| loss >= LATER) => (
            "yes",
            "30 s may be lost, so flushes need not compete with the child that rewrites the log: the longest stalls of writes go.",
        ),
        Mode::AofEverysec | Mode::AofRewrite => (
            "no",
            "With yes up to 30 s instead of 2 are lost by a power cut while the log is rewritten, which is more than is allowed.",
        ),
    };
    Some(Recommendation {
        title: format!("no-appendfsync-on-rewrite {value}"),
        why: why.to_owned(),
        evidence: vec![Evidence::published(
            REDIS_CONF,
            "in practical terms it is possible to lose up to 30 seconds of log in the worst scenario (with the default Linux settings)",
        )],
        risk: (value == "no").then(|| "Writes may wait for the disk while the log is rewritten.".to_owned()),
        changes: vec![redis("no-appendfsync-on-rewrite", value)],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn never_together_with_always() {
        let title = |loss| {
            let mut scene = Scene::of(Job::RedisStore);
            scene.goals.loss = Some(loss);
            judge(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(title(Nanos(0)).unwrap(), "no-appendfsync-on-rewrite no");
        assert_eq!(title(Nanos::from_millis(2000)).unwrap(), "no-appendfsync-on-rewrite no");
        assert_eq!(title(Nanos::from_millis(60_000)).unwrap(), "no-appendfsync-on-rewrite yes");
        assert_eq!(title(Nanos::from_millis(3_600_000)), None);
    }
}
