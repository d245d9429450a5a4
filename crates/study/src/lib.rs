//! What a record means: percentiles, confidence, share of the ceiling, likeness to published devices, findings, what a
//! tier is good for. Pure: numbers in, meaning out; it reads no file and no clock.
#![forbid(unsafe_code)]

mod beside;
mod build;
mod capacity;
mod certainty;
mod check;
mod compare;
pub mod curve;
mod desktop;
mod figures;
mod findings;
pub mod fit;
mod fitness;
pub mod flow;
mod headline;
mod knee;
pub mod layer;
mod likeness;
pub mod little;
mod load;
pub mod model;
pub mod predict;
pub mod proof;
pub mod published;
mod quotes;
mod redis;
mod series;
mod spread;
mod stalls;
pub mod steady;
mod summary;
mod sweeps;
#[cfg(test)]
mod testing;
mod tokens;
mod work;

pub use beside::beside;
pub use build::{BuildRow, build_headline, build_rows};
pub use check::{explain, findings};
pub use compare::compare;
pub use desktop::{DesktopRow, DesktopVerdict, desktop_headline, desktop_rows, desktop_verdicts};
pub use load::{LoadRow, load_headline, load_rows};
pub use model::*;
pub use redis::{
    CommandCell, Explained, Late, LateRequests, Learned, Loss, Percentiles, PublishedRedis, Reason, RedisCell, VECTORS,
    VectorRow, by_values, late_requests, learned, published_redis, redis_cells, redis_headline, vector_rows,
    vectors_headline,
};
pub use spread::{Spread, shares, spread};
pub use stalls::{Stall, stalls};
pub use summary::{latency, summarise};
pub use sweeps::{Axis, Point, Sweep, sweeps};
pub use tokens::{TokenRow, token_headline, token_rows, weights_read};
