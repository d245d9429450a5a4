//! So many clients as the article has, and what the kernel must allow for that.

use super::{ARTICLE, redis, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "redis-clients",
    title: "a kernel that lets in as many clients as the server would",
    condition: "net.core.somaxconn is below tcp-backlog, or fs.file-max below what 10,000 clients need",
    source: "Redis on Tiny Devices: maxclients 10000, tcp-backlog 511, fs.file-max=200000",
    jobs: &Job::REDIS,
    judge,
};

/// The article's, and redis.conf's default.
const BACKLOG: u64 = 511;
/// The article's.
const FILES: u64 = 200_000;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let now = |name: &str| situation.machine.settings.get(name)?.get()?.parse::<u64>().ok();
    let low = [("net.core.somaxconn", BACKLOG), ("fs.file-max", FILES)];
    let low: Vec<(&str, u64, u64)> = low
        .into_iter()
        .filter_map(|(name, wanted)| Some((name, now(name)?, wanted)))
        .filter(|(_, now, wanted)| now < wanted)
        .collect();
    if low.is_empty() {
        return None;
    }
    let said: Vec<String> =
        low.iter().map(|(name, now, wanted)| format!("{name} is {now}, {wanted} are needed")).collect();
    let mut changes = vec![redis("maxclients", "10000"), redis("tcp-backlog", BACKLOG.to_string())];
    changes.extend(low.iter().map(|(name, _, wanted)| sysctl(name, wanted.to_string())));
    let files = |name: &str| format!("/proc/sys/{}", name.replace('.', "/"));
    let mut evidence: Vec<_> =
        low.iter().map(|(name, now, _)| Evidence::machine(&files(name), now.to_string())).collect();
    evidence.push(Evidence::published(ARTICLE, "maxclients 10000, tcp-backlog 511, fs.file-max=200000"));
    Some(Recommendation {
        title: "let all clients in".to_owned(),
        why: format!("Connections beyond that are turned away or wait: {}.", said.join("; ")),
        evidence,
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;

    #[test]
    fn only_what_is_too_low_is_raised() {
        let mut scene = Scene::of(Job::RedisCache);
        assert_eq!(judge(&scene.situation()), None);
        let mut set =
            |name: &str, value: &str| scene.machine.settings.insert(name.to_owned(), Known::Is(value.to_owned()));
        set("net.core.somaxconn", "128");
        set("fs.file-max", "9223372036854775807");
        let lines: Vec<_> = judge(&scene.situation()).unwrap().changes.iter().map(change::Wanted::line).collect();
        assert_eq!(lines, ["maxclients 10000", "tcp-backlog 511", "net.core.somaxconn = 511"]);
        scene.machine.settings.insert("net.core.somaxconn".to_owned(), Known::Is("4096".to_owned()));
        assert_eq!(judge(&scene.situation()), None);
    }
}
