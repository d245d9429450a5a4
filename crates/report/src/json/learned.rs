//! What was learned of a server that serves somebody, as JSON.

use super::{Object, number};
use basics::job::Block;
use serde_json::Value;
use study::Learned;

/// `load redis --learn URL --json`.
pub fn learned(learned: &Learned) -> Value {
    let command = |(name, share, like): &(String, f64, bool)| {
        Object::default().with("name", name.as_str()).with("share", number(*share)).with("done_again", *like).build()
    };
    let lengths = |lengths: &Block| match lengths {
        Block::Fixed(size) => Value::from(vec![length(size.0, 1.0)]),
        Block::Split(parts) => {
            let all: u64 = parts.iter().map(|(_, count)| u64::from(*count)).sum();
            parts.iter().map(|(size, count)| length(size.0, f64::from(*count) / all.max(1) as f64)).collect()
        }
    };
    Object::default()
        .with("schema", "tiermark.learned/1")
        .with("version", learned.version.as_str())
        .with("keys", learned.keys)
        .with("memory_B", learned.memory.0)
        .with("ops_per_s", number(learned.ops_per_s))
        .known("payload", &learned.lengths, lengths)
        .known("reads_percent", &learned.reads, |v| Value::from(*v))
        .with("commands", learned.commands.iter().map(command).collect::<Value>())
        .known("with_ttl", &learned.with_ttl, |v| number(*v))
        .maybe("expires_s", learned.expires.map(|time| number(time.secs())))
        .with("expired_per_s", number(learned.expired_per_s))
        .known("hit_rate", &learned.hit_rate, |v| number(*v))
        .known("zipf_theta", &learned.theta, |v| number(*v))
        .known("hottest_hundredth", &learned.hottest, |v| number(*v))
        .known("compressed_to", &learned.compressed_to, |v| number(*v))
        .with("notes", learned.notes.clone())
        .with("words", learned.words())
        .build()
}

fn length(bytes: u64, share: f64) -> Value {
    Object::default().with("B", bytes).with("share", number(share)).build()
}
