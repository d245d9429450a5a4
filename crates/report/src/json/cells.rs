//! A Redis server under load as JSON: a cell for each way to keep values of a length on a medium.

use super::{Object, number, pair};
use serde_json::Value;
use study::{Percentiles, RedisCell};

/// One cell.
pub(super) fn cell(cell: &RedisCell) -> Value {
    Object::default()
        .with("mode", cell.mode.as_str())
        .with("medium", cell.medium.as_str())
        .with("payload_B", cell.payload.0)
        .known("ops_per_s", &cell.ops_per_s, |v| number(*v))
        .maybe("ops_per_s_range", cell.range_ops.map(pair))
        .known("lat_us", &cell.lat, percentiles)
        .maybe("service_us", cell.service.as_ref().map(percentiles))
        .known("cost_percent", &cell.cost_percent, |v| number(*v))
        .maybe("client_bound", cell.client_bound)
        .known("server_busy", &cell.server_busy, |v| number(*v))
        .known("client_busy", &cell.client_busy, |v| number(*v))
        .known("device_B_per_logical_B", &cell.written_per_byte, |v| number(*v))
        .known("memory_peak_B", &cell.peak, |v| Value::from(v.0))
        .maybe("send_lag_us", cell.lag.as_ref().map(percentiles))
        .with("visits", cell.visits)
        .with("why", cell.why.as_str())
        .build()
}

fn percentiles(all: &Percentiles) -> Value {
    Object::default()
        .with("p50", number(all.p50))
        .with("p95", number(all.p95))
        .with("p99", number(all.p99))
        .maybe("p99.9", all.p999.map(number))
        .with("max", number(all.max))
        .build()
}
