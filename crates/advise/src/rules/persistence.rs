//! What is kept on the disk, and when: the cheapest way that loses no more than is allowed.

use super::{ARTICLE, REDIS_CONF, redis};
use crate::goals::{Job, worst_loss};
use crate::model::{Evidence, Origin, Recommendation, Rule};
use crate::situation::{Seen, Situation};
use basics::redis::Mode;
use basics::units::significant;
use basics::{Bytes, Nanos};
use profile::articles::redis_edge;

pub(super) const RULE: Rule = Rule {
    name: "redis-persistence",
    title: "what is kept on the disk, and when",
    condition: "always: the cheapest way to keep data that loses no more than --loss allows",
    source: "Redis on Tiny Devices, patterns 1 to 3 and case study; Redis's documentation of persistence",
    jobs: &Job::REDIS,
    judge,
};

/// Ways from the cheapest to the strictest.
const BY_COST: [Mode; 4] = [Mode::MemoryOnly, Mode::Rdb, Mode::AofEverysec, Mode::AofAlways];

/// What is chosen, and how well it does.
pub(super) struct Choice<'a> {
    /// The way to keep data.
    pub mode: Mode,
    /// What was measured of it here.
    pub seen: Option<&'a Seen>,
    /// Its p95, measured or published, and whence.
    pub p95: Option<(Nanos, Origin)>,
    /// Whether that is what is wanted.
    pub meets: Option<bool>,
}

impl Choice<'_> {
    /// Whether a child is forked: for a snapshot, or to write the log anew.
    pub(super) fn forks(&self) -> bool {
        self.mode != Mode::MemoryOnly
    }
}

/// The cheapest way that loses no more than is allowed: what it lost here where that was measured, else what it may.
pub(super) fn choose<'a>(situation: &Situation<'a>) -> Choice<'a> {
    let allowed = |mode: &Mode| match situation.goals.loss {
        None => true,
        Some(most) => worst_loss(*mode).is_some_and(|loss| loss <= most),
    };
    // Nothing is stricter than `always`.
    let mode = BY_COST.into_iter().find(allowed).unwrap_or(Mode::AofAlways);
    let seen = situation.measured(mode);
    let p95 = match seen.and_then(|seen| Some((seen.cell.lat.get()?.p95, &seen.run))) {
        Some((us, run)) => Some((Nanos((us * 1000.0) as u64), Origin::Run(run.clone()))),
        None => published_p95(situation, mode).map(|p95| (p95, Origin::Published(ARTICLE.to_owned()))),
    };
    let meets = p95.as_ref().zip(situation.goals.p95).map(|((p95, _), most)| *p95 <= most);
    Choice { mode, seen, p95, meets }
}

/// What the article printed of a Raspberry Pi 5 with this medium; the longest that it states.
fn published_p95(situation: &Situation<'_>, mode: Mode) -> Option<Nanos> {
    let rows = study::published_redis(published_payload(situation.goals.payload));
    let of_mode = rows.iter().filter(|row| row.mode == mode.name() && row.on.starts_with("Raspberry Pi 5"));
    let medium = situation.is_card().map(|card| if card { "SD" } else { "NVMe" });
    // A row without a medium holds for any; one of another medium for none.
    let fits = |on: &str| match on.split_once(", ") {
        None => true,
        Some((_, of)) => medium.is_none_or(|medium| medium == of),
    };
    let longest = of_mode.filter(|row| fits(&row.on)).map(|row| row.p95_ms.1).reduce(f64::max)?;
    Some(Nanos((longest * 1e6) as u64))
}

/// The length of the article's rows that is nearest.
fn published_payload(wanted: Bytes) -> Bytes {
    let far = |payload: &u64| (*payload as f64 / wanted.0.max(1) as f64).ln().abs();
    let lengths = redis_edge().results.iter().map(|row| row.payload_b);
    Bytes(lengths.min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(wanted.0))
}

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let choice = choose(situation);
    let goals = situation.goals;
    let title = match choice.mode {
        Mode::MemoryOnly | Mode::Replica | Mode::AsItRuns => "keep nothing on the disk",
        Mode::Rdb | Mode::Checkpoint => "snapshots, no log",
        Mode::AofEverysec | Mode::AofRewrite => "a log (AOF) that is made durable every second",
        Mode::AofAlways => "a log (AOF) that is durable before each answer",
    };
    let loses = match worst_loss(choice.mode) {
        None => "a restart begins empty, and that is allowed".to_owned(),
        Some(Nanos(0)) => "it loses no acknowledged write on a disk that keeps its word about flushes".to_owned(),
        Some(loss) if choice.mode == Mode::Rdb => {
            format!(
                "what was written since the last snapshot is gone: a minute of a busy server, up to {} of a quiet one",
                span(loss)
            )
        }
        Some(loss) => format!("at most {loss} and the longest flush are gone on a disk that keeps its word"),
    };
    let mut why = format!("The cheapest way that loses no more than is allowed: {loses}.");
    why.push_str(&match (&choice.p95, goals.p95, choice.meets) {
        (Some((p95, from)), Some(most), Some(false)) => format!(
            " It misses the {most} that are wanted: 19 of 20 requests {} {p95}{}. Allow a greater --loss, take a faster medium, or \
             keep the copy elsewhere (redis-replica).",
            answered(from),
            by(from)
        ),
        (Some((p95, from)), ..) => format!(" 19 of 20 requests {} {p95}{}.", answered(from), by(from)),
        (None, ..) => " How fast it answers here was not measured, and nobody published it.".to_owned(),
    });
    let mut evidence: Vec<Evidence> =
        BY_COST.into_iter().filter_map(|mode| Some(situation.measured(mode)?.evidence())).collect();
    evidence.extend(BY_COST.into_iter().filter_map(|mode| situation.lost(mode)?.loss()));
    evidence.extend(published(situation, choice.mode));
    let gain = choice.seen.zip(situation.measured(Mode::AofAlways)).filter(|_| choice.mode != Mode::AofAlways);
    let gain = gain.and_then(|(seen, strict)| seen.gain_over(strict, "requests a second, against aof-always"));
    let mut changes: Vec<_> = choice.mode.settings().iter().map(|(name, value)| redis(name, *value)).collect();
    if let Some(dir) = goals.dir.as_ref().filter(|_| choice.mode != Mode::MemoryOnly) {
        changes.push(redis("dir", format!("\"{}\"", dir.display())));
    }
    Some(Recommendation {
        title: title.to_owned(),
        why,
        evidence,
        gain,
        risk: risk(choice.mode),
        changes,
        ..Recommendation::default()
    })
}

/// Here, or on the article's board.
fn answered(from: &Origin) -> &'static str {
    if matches!(from, Origin::Run(_)) { "are answered here within" } else { "were answered on a Raspberry Pi 5 within" }
}

fn by(from: &Origin) -> String {
    match from {
        Origin::Run(_) => format!(" ({from})"),
        _ => format!(" ({from}); here it was not measured"),
    }
}

/// What the article says of it.
fn published(situation: &Situation<'_>, mode: Mode) -> Vec<Evidence> {
    let mut said = Vec::new();
    let rows = study::published_redis(published_payload(situation.goals.payload));
    for row in rows.iter().filter(|row| row.mode == mode.name() && row.on.starts_with("Raspberry Pi 5")) {
        let p95 = if row.p95_ms.0 < row.p95_ms.1 {
            format!("{} to {}", significant(row.p95_ms.0), significant(row.p95_ms.1))
        } else {
            significant(row.p95_ms.0)
        };
        let payload = published_payload(situation.goals.payload);
        let text =
            format!("{}, {}, values of {payload}: {}/s, p95 {p95} ms", row.mode, row.on, significant(row.ops_per_s));
        said.push(Evidence::published(ARTICLE, text));
    }
    let case = &redis_edge().case_study;
    let text = format!(
        "{} nodes: from {} to {}: answers {} times as fast",
        case.nodes,
        case.before,
        case.after,
        significant(case.latency_gain)
    );
    said.push(Evidence::published(ARTICLE, text));
    if mode == Mode::AofEverysec {
        said.push(Evidence::published(
            REDIS_CONF,
            "appendfsync everysec: fsync only one time every second; compromise",
        ));
    }
    said
}

fn risk(mode: Mode) -> Option<String> {
    let text = match mode {
        Mode::MemoryOnly | Mode::Replica | Mode::AsItRuns => {
            "After a restart all is computed or fetched again, at once: let clients cope with an empty cache."
        }
        Mode::Rdb | Mode::Checkpoint => {
            "Each snapshot forks: what is written meanwhile is copied, and needs memory (redis-maxmemory)."
        }
        Mode::AofEverysec | Mode::AofRewrite => {
            "A flush that takes longer than a second holds up writes; a log that grows is written anew by a fork."
        }
        Mode::AofAlways => "Each group of requests waits for the disk: a flush of 5 ms is 5 ms for all that wait.",
    };
    Some(text.to_owned())
}

/// Hours where they are whole.
fn span(time: Nanos) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    if time.0.is_multiple_of(HOUR) { format!("{} h", time.0 / HOUR) } else { time.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, seen};
    use super::*;

    fn conf(scene: &Scene) -> (String, Recommendation) {
        let said = judge(&scene.situation()).unwrap();
        let lines: Vec<_> = said.changes.iter().map(change::Wanted::line).collect();
        (lines.join("; "), said)
    }

    #[test]
    fn what_may_be_lost_decides() {
        assert_eq!(conf(&Scene::of(Job::RedisCache)).0, "save \"\"; appendonly no");
        assert_eq!(conf(&Scene::of(Job::RedisStore)).0, "save \"\"; appendonly yes; appendfsync everysec");
        let mut strict = Scene::of(Job::RedisStore);
        strict.goals.loss = Some(Nanos(0));
        assert_eq!(conf(&strict).0, "save \"\"; appendonly yes; appendfsync always");
        let mut lax = Scene::of(Job::RedisStore);
        lax.goals.loss = Some(Nanos::from_millis(7_200_000));
        assert!(conf(&lax).0.starts_with("save 3600 1 300 100 60 10000; appendonly no"));
        // Half a second is less than everysec promises.
        lax.goals.loss = Some(Nanos::from_millis(500));
        assert!(conf(&lax).0.ends_with("appendfsync always"));
    }

    #[test]
    fn a_run_of_this_machine_is_believed_before_the_article() {
        let mut scene = Scene::of(Job::RedisStore).on("/mnt");
        let (_, said) = conf(&scene);
        assert!(said.why.contains("Redis on Tiny Devices"), "{}", said.why);
        scene.seen = vec![seen("7c1e", Mode::AofEverysec, "/mnt", 512, 41_000.0, 25_000.0)];
        let (_, said) = conf(&scene);
        assert!(said.why.contains("misses the 10 ms"), "{}", said.why);
        assert!(said.why.contains("25 ms (run 7c1e)"), "{}", said.why);
        assert_eq!(said.gain, None);
        scene.seen.push(seen("7c1e", Mode::AofAlways, "/mnt", 512, 20_500.0, 60_000.0));
        let gain = conf(&scene).1.gain.unwrap();
        assert!(
            (gain.percent - 100.0).abs() < 0.1 && gain.low <= gain.percent && gain.percent <= gain.high,
            "{gain:?}"
        );
    }

    /// What was measured somewhere else, or with values of another kind, says nothing of here.
    #[test]
    fn other_media_and_other_values_are_left_aside() {
        let mut scene = Scene::of(Job::RedisStore).on("/mnt");
        scene.seen = vec![
            seen("0001", Mode::AofEverysec, "sd-evo-pi5", 512, 41_000.0, 25_000.0),
            seen("0002", Mode::AofEverysec, "/mnt", 65_536, 41_000.0, 25_000.0),
        ];
        assert!(!conf(&scene).1.why.contains("run 000"));
    }
}
