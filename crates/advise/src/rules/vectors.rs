//! More embeddings than fit: smaller ones, and only those in memory that are asked for.

use super::ARTICLE;
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::Bytes;
use basics::units::grouped;

pub(super) const RULE: Rule = Rule {
    name: "redis-vectors",
    title: "smaller vectors, and only the hot ones in memory",
    condition: "--for redis-vectors",
    source: "Redis on Tiny Devices, pattern 3: quantised vectors, hot set in memory, cold set on the local SSD",
    jobs: &[Job::RedisVectors],
    judge,
};

/// What a key takes beside its value: a dictionary entry, the key's string, the value's header, and their share of the tables
/// (`MEMORY USAGE` of a key of 16 bytes with an empty value says 56 to 72 in Redis 7).
const BESIDE: u64 = 64;

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
    let room = budget.map_or_else(String::new, |budget| format!(" in {budget}"));
    Some(Recommendation {
        title: "quantise vectors; keep the hot ones in Redis, all of them in a file on the SSD".to_owned(),
        why: format!(
            "Vectors of {} dimensions{room}: {}, keys included. The rest is fetched from the file when it is asked for, and set \
             with a TTL; after an update of the model fetch what was hot before it is asked for.",
            float / 4,
            words.join(", ")
        ),
        evidence: vec![Evidence::published(
            ARTICLE,
            "int8 or 4-bit vectors, hot set in memory, cold set on the local SSD, TTLs, prefetch after a model update",
        )],
        risk: Some("Quantised vectors find slightly other neighbours: measure the recall with your own.".to_owned()),
        ..Recommendation::default()
    })
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
        assert!(why.starts_with("Vectors of 384 dimensions in 1 GiB: 671,088 as float32 (1536 B), "), "{why}");
        assert!(why.contains("(388 B), ") && why.contains("as 4-bit (196 B)"), "{why}");
    }
}
