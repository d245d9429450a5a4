//! What happens when the bound is reached: a cache forgets, a store refuses.

use super::{ARTICLE, REDIS_CONF, redis};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "redis-eviction",
    title: "what happens when the bound is reached",
    condition: "always",
    source: "Redis on Tiny Devices: volatile-lru; Redis's documentation of key eviction",
    jobs: &Job::REDIS,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let article = Evidence::published(ARTICLE, "maxmemory-policy volatile-lru, with TTLs on what may go");
    let (policy, why, second, risk) = match situation.goals.job {
        Job::RedisCache | Job::RedisVectors => (
            "allkeys-lru",
            "What was used longest ago goes first, with a TTL or without. The article's volatile-lru does the same among keys with a \
             TTL, and refuses writes when none has one.",
            "allkeys-lru: evict any key using approximated LRU; of any policy, when there are no suitable keys for eviction: an error on write operations that require more memory",
            "Keys vanish before their time: the hit rate says whether the bound is too small.",
        ),
        Job::RedisStore => (
            "noeviction",
            "A store that is full says so to the client instead of forgetting what it promised to keep.",
            "noeviction: don't evict anything, just return an error on write operations",
            "Writes fail with OOM when it is full: watch used_memory against maxmemory.",
        ),
        _ => return None,
    };
    Some(Recommendation {
        title: format!("maxmemory-policy {policy}"),
        why: why.to_owned(),
        evidence: vec![Evidence::published(REDIS_CONF, second), article],
        risk: Some(risk.to_owned()),
        changes: vec![redis("maxmemory-policy", policy)],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn a_cache_forgets_and_a_store_refuses() {
        let title = |job| judge(&Scene::of(job).situation()).unwrap().title;
        assert_eq!(title(Job::RedisCache), "maxmemory-policy allkeys-lru");
        assert_eq!(title(Job::RedisVectors), "maxmemory-policy allkeys-lru");
        assert_eq!(title(Job::RedisStore), "maxmemory-policy noeviction");
    }
}
