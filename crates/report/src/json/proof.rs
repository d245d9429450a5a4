//! `prove --json`.

use super::Object;
use crate::proof::Proved;
use serde_json::Value;

/// One proof.
pub fn proof(proved: &Proved<'_>) -> Value {
    let proof = proved.proof;
    let texts = |texts: &[String]| texts.iter().map(String::as_str).collect::<Value>();
    let effect = proved
        .effect
        .percent
        .map(|(low, mid, high)| Object::default().with("low", low).with("mid", mid).with("high", high).build());
    let turns = proof.turns.iter().map(|turn| {
        Object::default()
            .with("run", turn.run.as_str())
            .with("changed", turn.changed)
            .maybe("pair", turn.pair)
            .maybe("boot_id", turn.boot.as_deref())
            .build()
    });
    Object::default()
        .with("schema", "tiermark.proof/1")
        .with("number", proved.number)
        .with("rules", texts(&proof.rules))
        .maybe("applied", proof.applied.as_deref())
        .with("differs", texts(&proof.differs))
        .with("with", proof.with.as_str())
        .with("interleaved", proof.interleaved)
        .with("seed", proof.seed)
        .maybe("of", proved.of.as_deref())
        .with("before", proved.before.iter().copied().collect::<Value>())
        .with("after", proved.after.iter().copied().collect::<Value>())
        .with("verdict", proved.effect.verdict.as_str())
        .maybe("effect_percent", effect)
        .with("notes", texts(&proved.notes))
        .with("turns", turns.collect::<Value>())
        .build()
}

/// All that are kept.
pub fn proofs(all: &[Proved<'_>]) -> Value {
    Object::default()
        .with("schema", "tiermark.proofs/1")
        .with("proofs", all.iter().map(proof).collect::<Value>())
        .build()
}
