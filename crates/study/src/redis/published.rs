//! What the third article printed of the same cells, to stand beside one's own.

use basics::Bytes;
use profile::articles::{Span, redis_edge};

/// A row of the article.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRedis {
    /// The machine, and the medium where the row states one.
    pub on: String,
    /// The way to keep data, by its name.
    pub mode: &'static str,
    /// Requests a second.
    pub ops_per_s: f64,
    /// 95th percentile of the latency, ms: the least and the most that are stated.
    pub p95_ms: (f64, f64),
    /// Slower than keeping nothing on the same machine, per cent.
    pub cost_percent: Option<f64>,
}

/// Those with values of this length; none where the article has none.
pub fn published_redis(payload: Bytes) -> Vec<PublishedRedis> {
    let rows = || redis_edge().results.iter().filter(|row| row.payload_b == payload.0);
    let base = |node: &str| rows().find(|row| row.node == node && row.mode == "memory-only").map(|row| row.ops);
    let row = |row: &'static profile::articles::RedisRow| PublishedRedis {
        on: row.medium.as_ref().map_or_else(|| row.node.clone(), |medium| format!("{}, {medium}", row.node)),
        mode: &row.mode,
        ops_per_s: row.ops,
        p95_ms: match row.p95_ms {
            Span::One(value) => (value, value),
            Span::Between(least, most) => (least, most),
        },
        cost_percent: base(&row.node).filter(|_| row.mode != "memory-only").map(|most| 100.0 * (1.0 - row.ops / most)),
    };
    rows().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_articles_rows_stand_beside_values_of_their_length() {
        let rows = published_redis(Bytes(64));
        let card = rows.iter().find(|row| row.on == "Raspberry Pi 5, SD").unwrap();
        assert_eq!((card.mode, card.ops_per_s, card.p95_ms), ("aof-everysec", 65_000.0, (5.0, 8.0)));
        // 65 of the board's own 85 thousand.
        assert!((card.cost_percent.unwrap() - 23.5).abs() < 0.1, "{card:?}");
        assert!(rows.iter().all(|row| (row.mode == "memory-only") == row.cost_percent.is_none()), "{rows:?}");
        assert!(published_redis(Bytes(100)).is_empty());
    }
}
