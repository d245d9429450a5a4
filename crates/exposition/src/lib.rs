//! What Prometheus reads while something runs, as a page that is served on loopback. Of a Redis server under load: its figures under
//! the names of redis_exporter, the kernel's under those of node_exporter, those of the load generator, and a dashboard for Grafana
//! that asks for these names. Of the pager: how each process stands that it helps.
#![forbid(unsafe_code)]

mod error;
pub mod kernel;
mod live;
pub mod load;
pub mod pager;
pub mod redis;
mod server;
pub mod text;

pub use error::ExpositionError;
pub use live::{Live, Watched};
pub use server::{Server, address};

/// A dashboard for Grafana, as JSON that it imports: latency with forks, fsyncs and copy-on-write in one panel.
pub const DASHBOARD: &str = include_str!("../data/redis-dashboard.json");
