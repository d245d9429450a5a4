//! What Prometheus reads of a Redis server under load: the server's figures under the names of redis_exporter, the kernel's under
//! those of node_exporter, and those of the load generator, as a page that is served while the load runs. A dashboard for Grafana
//! that asks for these names goes with it.
#![forbid(unsafe_code)]

mod error;
pub mod kernel;
mod live;
pub mod load;
pub mod redis;
mod server;
pub mod text;

pub use error::ExpositionError;
pub use live::{Live, Watched};
pub use server::{Server, address};

/// A dashboard for Grafana, as JSON that it imports: latency with forks, fsyncs and copy-on-write in one panel.
pub const DASHBOARD: &str = include_str!("../data/redis-dashboard.json");
