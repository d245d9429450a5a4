//! A Redis server under load as JSON: a cell for each way to keep values of a length on a medium.

use super::{Object, number, pair};
use basics::redis::Lose;
use serde_json::Value;
use study::{CommandCell, Explained, Late, Loss, Percentiles, RedisCell};

/// One cell.
pub(super) fn cell(cell: &RedisCell) -> Value {
    Object::default()
        .with("mode", cell.mode.as_str())
        .with("medium", cell.medium.as_str())
        .with("payload_B", cell.payload.0)
        .maybe("payload_mix", cell.mix.as_deref())
        .known("ops_per_s", &cell.ops_per_s, |v| number(*v))
        .maybe("ops_per_s_range", cell.range_ops.map(pair))
        .known("lat_us", &cell.lat, percentiles)
        .maybe("service_us", cell.service.as_ref().map(percentiles))
        .known("cost_percent", &cell.cost_percent, |v| number(*v))
        .maybe("client_bound", cell.client_bound)
        .known("client_limit_ops_per_s", &cell.client_limit, |v| number(*v))
        .known("server_busy", &cell.server_busy, |v| number(*v))
        .known("client_busy", &cell.client_busy, |v| number(*v))
        .known("device_B_per_logical_B", &cell.written_per_byte, |v| number(*v))
        .known("memory_peak_B", &cell.peak, |v| Value::from(v.0))
        .maybe("causes", cell.late.as_ref().map(causes))
        .maybe("spikes", cell.late.as_ref().map(spikes))
        .maybe("send_lag_us", cell.lag.as_ref().map(percentiles))
        .maybe("commands", (!cell.commands.is_empty()).then(|| cell.commands.iter().map(command).collect::<Value>()))
        .maybe("lost", cell.lost.as_ref().map(loss))
        .with("visits", cell.visits)
        .with("why", cell.why.as_str())
        .build()
}

fn command(cell: &CommandCell) -> Value {
    Object::default()
        .with("command", cell.command)
        .with("ops_per_s", number(cell.ops_per_s))
        .with("lat_us", percentiles(&cell.lat))
        .build()
}

/// Those that are claimed.
fn causes(late: &Late) -> Value {
    late.reasons.iter().filter(|explained| explained.claimed).map(explained).collect()
}

/// All that was looked at.
fn spikes(late: &Late) -> Value {
    Object::default()
        .with("clusters", late.clusters)
        .with("unexplained", late.unexplained)
        .with("explained", late.reasons.iter().map(explained).collect::<Value>())
        .with("lacks", late.lacks.clone())
        .build()
}

fn explained(explained: &Explained) -> Value {
    Object::default()
        .with("name", explained.reason.name())
        .with("share", number(explained.share))
        .with("by_chance", number(explained.by_chance))
        .with("clusters", explained.clusters)
        .with("longest_us", number(explained.worst.us()))
        .maybe("who", (!explained.who.is_empty()).then(|| explained.who.clone()))
        .build()
}

fn loss(lost: &Loss) -> Value {
    Object::default()
        .with("by", if lost.how == Lose::Kill { "kill" } else { "power" })
        .with("acknowledged", lost.acknowledged)
        .with("of", lost.of)
        .maybe("oldest_s", lost.oldest.map(|time| number(time.secs())))
        .with("seeds", lost.seeds)
        .with("losing", lost.losing)
        .with("all_gone", lost.all_gone)
        .with("did_not_start", lost.did_not_start)
        .maybe("why", lost.why.as_deref())
        .maybe("longest_fsync_s", lost.longest_fsync.map(|time| number(time.secs())))
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
