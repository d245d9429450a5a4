//! How much the keys may take, so that a fork does not push the machine into swap.

use super::persistence::choose;
use super::{ARTICLE, REDIS_ADMIN, redis};
use crate::goals::{Job, redis_size};
use crate::model::{Evidence, Origin, Recommendation, Rule};
use crate::situation::Situation;
use basics::Bytes;
use basics::redis::Mode;
use basics::units::{MIB, significant};

pub(super) const RULE: Rule = Rule {
    name: "redis-maxmemory",
    title: "a bound for the keys that leaves room for a fork",
    condition: "always, where --memory is given or the machine's memory is known",
    source: "Redis on Tiny Devices: 6 of 8 GB; Redis's administration guide: a fork may need up to twice the memory",
    jobs: &Job::REDIS,
    judge,
};

/// Of a machine's memory, what a server may have when nobody says: the article's 6 of 8 GB.
const SHARE: f64 = 0.75;
/// A server that forks may take twice what its keys do, where all of them are set anew meanwhile.
const TWICE: f64 = 2.0;
/// Of what the server takes, beside keys and what is copied: its buffers, and what its allocator cannot give out again.
const BESIDE: f64 = 1.1;
/// Less is no bound that serves anybody.
const LEAST: u64 = 16 * MIB;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let choice = choose(situation);
    let (budget, whose) = match situation.goals.memory {
        Some(memory) => (memory.0 as f64, format!("of the {memory} that it may take")),
        None => {
            let ram = situation.machine.ram.get()?;
            (ram.0 as f64 * SHARE, format!("of three quarters of the {ram} of this machine"))
        }
    };
    let mut evidence = vec![Evidence::published(ARTICLE, "maxmemory 6gb on a board of 8 GB")];
    let (factor, reason) = if choice.forks() {
        match copied(situation, choice.mode) {
            Some((times, run)) => {
                let text =
                    format!("{} took {} times the memory of memory-only at its peak", choice.mode, significant(times));
                evidence.push(Evidence { text, from: Origin::Run(run) });
                (
                    times.max(1.0) * BESIDE,
                    format!("a fork was measured to need {} times the memory", significant(times)),
                )
            }
            None => {
                let text = "in a write-heavy application a fork may use up to 2 times the memory normally used";
                evidence.push(Evidence::published(REDIS_ADMIN, text));
                (TWICE * BESIDE, "a fork may need as much again, where all keys are set anew meanwhile".to_owned())
            }
        }
    } else {
        (BESIDE, "nothing forks".to_owned())
    };
    let bytes = Bytes(((budget / factor) as u64 / LEAST * LEAST).max(LEAST));
    Some(Recommendation {
        title: format!("maxmemory {}", redis_size(bytes)),
        why: format!(
            "{} {whose}: {reason}, and a tenth stays for buffers and what the allocator cannot use.",
            Share(bytes.0 as f64 / budget)
        ),
        evidence,
        risk: Some("What goes beyond is evicted or refused (redis-eviction).".to_owned()),
        changes: vec![redis("maxmemory", redis_size(bytes))],
        ..Recommendation::default()
    })
}

/// How much more a way to keep data took at its peak than keeping nothing, in one run.
fn copied(situation: &Situation<'_>, mode: Mode) -> Option<(f64, String)> {
    let forked = situation.measured(mode)?;
    let plain = situation.measured(Mode::MemoryOnly)?;
    let same = forked.run == plain.run && forked.cell.payload == plain.cell.payload;
    let (peak, of) = (forked.cell.peak.get()?, plain.cell.peak.get()?);
    (same && of.0 > 0).then(|| (peak.0 as f64 / of.0 as f64, forked.run.clone()))
}

/// A share in per cent.
struct Share(f64);

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} %", 100.0 * self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, seen};
    use super::*;
    use basics::Known;
    use basics::units::GIB;

    fn bound(scene: &Scene) -> String {
        judge(&scene.situation()).unwrap().title
    }

    #[test]
    fn a_fork_needs_room() {
        let mut scene = Scene::of(Job::RedisCache);
        scene.machine.ram = Known::Is(Bytes(8 * GIB));
        assert_eq!(bound(&scene), "maxmemory 5584mb");
        scene.goals.memory = Some(Bytes(GIB));
        assert_eq!(bound(&scene), "maxmemory 928mb");
        let mut store = Scene::of(Job::RedisStore);
        store.goals.memory = Some(Bytes(GIB));
        assert_eq!(bound(&store), "maxmemory 464mb");
    }

    #[test]
    fn what_a_fork_took_here_counts() {
        let mut store = Scene::of(Job::RedisStore).on("/mnt");
        store.goals.memory = Some(Bytes(GIB));
        let mut plain = seen("7c1e", Mode::MemoryOnly, "/mnt", 512, 50_000.0, 1000.0);
        let mut forked = seen("7c1e", Mode::AofEverysec, "/mnt", 512, 40_000.0, 1000.0);
        plain.cell.peak = Known::Is(Bytes(100 * MIB));
        forked.cell.peak = Known::Is(Bytes(120 * MIB));
        store.seen = vec![plain, forked];
        assert_eq!(bound(&store), "maxmemory 768mb");
    }

    #[test]
    fn where_nothing_is_known_nothing_is_said() {
        let mut scene = Scene::of(Job::RedisCache);
        scene.machine.ram = Known::default();
        assert_eq!(judge(&scene.situation()), None);
    }
}
