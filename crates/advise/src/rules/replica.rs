//! A copy elsewhere instead of a disk that is waited for.

use super::ARTICLE;
use super::persistence::choose;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::{Seen, Situation};
use basics::redis::Mode;

pub(super) const RULE: Rule = Rule {
    name: "redis-replica",
    title: "a copy elsewhere instead of waiting for the disk",
    condition: "what may be lost asks for a log, and the log's p95 is more than --p95, or is that of a memory card",
    source: "Redis on Tiny Devices: push to a replica or a central store rather than fsync always",
    jobs: &[Job::RedisStore],
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let choice = choose(situation);
    let slow = choice.meets == Some(false) || (choice.seen.is_none() && situation.is_card() == Some(true));
    if !matches!(choice.mode, Mode::AofEverysec | Mode::AofAlways) || !slow {
        return None;
    }
    let article =
        "where power is unreliable, push to a remote replica or central store asynchronously rather than fsync=always";
    let mut evidence = Vec::new();
    for instead in [Mode::Replica, Mode::Checkpoint] {
        evidence.extend(situation.measured(instead).map(Seen::evidence));
        evidence.extend(situation.lost(instead).and_then(Seen::loss));
    }
    evidence.push(Evidence::published(ARTICLE, article));
    Some(Recommendation {
        title: "replicate to a stronger node, and keep nothing or snapshots here".to_owned(),
        why: "A replica has each write a network's delay later, and no request waits for the disk. Or order a snapshot every few \
              minutes, and copy the RDB file there: what was written since is lost with this node. `tiermark load redis --mode \
              replica --mode checkpoint`, with --lose and without, shows both on this machine."
            .to_owned(),
        evidence,
        risk: Some(
            "Replication is asynchronous: what was acknowledged within its lag is lost with this node. A node that restarts \
             empty must not be copied from: let it become a replica first."
                .to_owned(),
        ),
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, seen};
    use super::*;

    #[test]
    fn where_the_log_is_too_slow() {
        let mut scene = Scene::of(Job::RedisStore).on("/mnt");
        scene.seen = vec![seen("7c1e", Mode::AofEverysec, "/mnt", 512, 41_000.0, 2_000.0)];
        assert_eq!(judge(&scene.situation()), None);
        scene.seen = vec![seen("7c1e", Mode::AofEverysec, "/mnt", 512, 41_000.0, 20_000.0)];
        assert!(judge(&scene.situation()).is_some());
        scene.goals.loss = None;
        assert_eq!(judge(&scene.situation()), None);
    }
}
