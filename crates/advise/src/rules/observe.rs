//! What the server notes of its own stalls, so that the next spike has a name.

use super::{ARTICLE, redis};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::Nanos;

pub(super) const RULE: Rule = Rule {
    name: "redis-observe",
    title: "a server that notes its own stalls",
    condition: "always",
    source: "Redis on Tiny Devices: LATENCY LATEST and SLOWLOG; the monitor is off by default",
    jobs: &Job::REDIS,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    // What misses the goal by itself; without a goal what a person notices.
    let threshold = situation.goals.p95.unwrap_or(Nanos::from_millis(100)).0.div_ceil(1_000_000).max(1);
    Some(Recommendation {
        title: format!("note what takes {threshold} ms or more"),
        why: "Forks, flushes and slow commands then stand in LATENCY LATEST and SLOWLOG with their times, without cost: the monitor \
              is off by default."
            .to_owned(),
        evidence: vec![Evidence::published(ARTICLE, "use LATENCY LATEST and SLOWLOG")],
        changes: vec![
            redis("latency-monitor-threshold", threshold.to_string()),
            redis("slowlog-log-slower-than", (threshold * 1000).to_string()),
        ],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn what_misses_the_goal_is_noted() {
        let mut scene = Scene::of(Job::RedisCache);
        let lines = |scene: &Scene| -> Vec<String> {
            judge(&scene.situation()).unwrap().changes.iter().map(change::Wanted::line).collect()
        };
        assert_eq!(lines(&scene), ["latency-monitor-threshold 10", "slowlog-log-slower-than 10000"]);
        scene.goals.p95 = Some(Nanos(200_000));
        assert_eq!(lines(&scene)[0], "latency-monitor-threshold 1");
    }
}
