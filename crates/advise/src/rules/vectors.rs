//! More embeddings than fit: smaller ones, and only those in memory that are asked for.

use super::ARTICLE;
use crate::goals::Job;
use crate::model::{Evidence, Origin, Recommendation, Rule};
use crate::situation::{SeenVectors, Situation};
use basics::Bytes;
use basics::units::{grouped, significant};
use std::collections::HashSet;

pub(super) const RULE: Rule = Rule {
    name: "redis-vectors",
    title: "smaller vectors, and only the hot ones in memory",
    condition: "--for redis-vectors",
    source: "Redis on Tiny Devices, pattern 3: quantised vectors, hot set in memory, cold set on the local SSD",
    jobs: &[Job::RedisVectors],
    judge,
};

/// What a key takes beside its value: a dictionary entry, the key's string, the value's header, their share of the tables, and what
/// the allocator rounds up (`load vectors` with Redis 7.0: 129 beside 192 bytes, 161 beside 384, 353 beside 1536).
const BESIDE: u64 = 130;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let goals = situation.goals;
    let budget = goals.memory.or_else(|| situation.machine.ram.get().map(|ram| Bytes(ram.0 / 4 * 3)));
    let fits = |bytes: u64| budget.map(|budget| grouped((budget.0 / (bytes + BESIDE)) as i64));
    // As float32, in bytes, and in half bytes, each with its scale.
    let float = goals.payload.0;
    let sizes = [("float32", float), ("int8", float / 4 + 4), ("4-bit", float / 8 + 4)];
    let words: Vec<String> = sizes
        .iter()
        .map(|(name, bytes)| match fits(*bytes) {
            Some(count) => format!("{count} as {name} ({bytes} B)"),
            None => format!("{bytes} B as {name}"),
        })
        .collect();
    // The newest of each format and place.
    let mut told = HashSet::new();
    let newest = situation.vectors.iter().filter(|seen| told.insert((seen.row.format, seen.row.place.as_str())));
    let mut evidence: Vec<Evidence> = newest.filter_map(measured).collect();
    evidence.push(Evidence::published(
        ARTICLE,
        "int8 or 4-bit vectors, hot set in memory, cold set on the local SSD, TTLs, prefetch after a model update",
    ));
    let room = budget.map_or_else(String::new, |budget| format!(" in {budget}"));
    Some(Recommendation {
        title: "quantise vectors; keep the hot ones in Redis, all of them in a file on the SSD".to_owned(),
        why: format!(
            "Vectors of {} dimensions{room}: {}, keys included. The rest is fetched from the file when it is asked for, and set \
             with a TTL; after an update of the model fetch what was hot before it is asked for.",
            float / 4,
            words.join(", ")
        ),
        evidence,
        risk: Some(
            "Quantised vectors find slightly other neighbours: measure the recall with your own (`tiermark load vectors --file`)."
                .to_owned(),
        ),
        ..Recommendation::default()
    })
}

/// What a run of `load vectors` says.
fn measured(seen: &SeenVectors) -> Option<Evidence> {
    let row = &seen.row;
    let (recall, each) = (row.recall.get()?, row.per_vector.get()?);
    let (p50, p95, _) = row.lat_us.get()?;
    let ms = |us: &f64| significant(us / 1000.0);
    let pays = match row.break_even_percent.get() {
        Some(even) => format!("a cache pays from {} % of hits on", significant(*even)),
        None => "a file alone is as fast".to_owned(),
    };
    let text = format!(
        "{} with all of them on {}: {} B each in Redis, recall@10 {} %, {} % hits, p50 {} ms, p95 {} ms; {pays}",
        row.format,
        row.place,
        grouped(each.round() as i64),
        significant(100.0 * recall),
        row.hit_percent.get().map_or_else(|| "unknown".to_owned(), |hits| significant(*hits)),
        ms(p50),
        ms(p95)
    );
    Some(Evidence { text, from: Origin::Run(seen.run.clone()) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::units::GIB;

    #[test]
    fn it_says_how_many_fit() {
        let mut scene = Scene::of(Job::RedisVectors);
        scene.goals.payload = Bytes(1536);
        scene.goals.memory = Some(Bytes(GIB));
        let why = judge(&scene.situation()).unwrap().why;
        assert!(why.starts_with("Vectors of 384 dimensions in 1 GiB: 644,502 as float32 (1536 B), "), "{why}");
        assert!(why.contains("(388 B), ") && why.contains("as 4-bit (196 B)"), "{why}");
    }
}
