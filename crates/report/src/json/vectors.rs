//! A cache of vectors as JSON: a row for each way to store them and each place of the others.

use super::{Object, number};
use serde_json::Value;
use study::VectorRow;

/// One row.
pub(super) fn row(row: &VectorRow) -> Value {
    Object::default()
        .with("format", row.format.name())
        .with("place", row.place.as_str())
        .with("vector_B", row.bytes.0)
        .known("redis_B_per_vector", &row.per_vector, |v| number(*v))
        .known("recall_at_10", &row.recall, |v| number(*v))
        .with("hot", row.hot.0)
        .with("vectors", row.hot.1)
        .known("kept", &row.kept, |v| number(*v))
        .known("hit_percent", &row.hit_percent, |v| number(*v))
        .known("ops_per_s", &row.ops_per_s, |v| number(*v))
        .known("lat_us", &row.lat_us, |lat| {
            Object::default().with("p50", number(lat.0)).with("p95", number(lat.1)).with("p99", number(lat.2)).build()
        })
        .known("hit_us", &row.hit_us, |v| number(*v))
        .known("miss_us", &row.miss_us, |v| number(*v))
        .known("fetch_us", &row.fetch_us, |v| number(*v))
        .known("break_even_hit_percent", &row.break_even_percent, |v| number(*v))
        .maybe("back_s", row.back_s.as_ref().and_then(|back| back.get().copied()).map(number))
        .maybe(
            "after_us",
            row.after_us.map(|(p50, p95)| Object::default().with("p50", number(p50)).with("p95", number(p95)).build()),
        )
        .with("visits", row.visits)
        .with("why", row.why.as_str())
        .build()
}
