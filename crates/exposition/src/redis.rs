//! What a server says of itself, under the names that redis_exporter gives it; what that leaves out is called `tiermark_redis_…`.

use crate::text::{Family, Kind, Kind::Counter, Kind::Gauge};
use redisd::{Info, Spike};

/// Fields of INFO, what they are, and their names behind `redis_`, as redis_exporter 1.7x has them (`exporter/exporter.go`).
const NAMES: &[(&str, Kind, &str)] = &[
    ("uptime_in_seconds", Gauge, "uptime_in_seconds"),
    ("process_id", Gauge, "process_id"),
    ("connected_clients", Gauge, "connected_clients"),
    ("blocked_clients", Gauge, "blocked_clients"),
    ("maxclients", Gauge, "max_clients"),
    ("client_recent_max_output_buffer", Gauge, "client_recent_max_output_buffer_bytes"),
    ("client_recent_max_input_buffer", Gauge, "client_recent_max_input_buffer_bytes"),
    ("allocator_active", Gauge, "allocator_active_bytes"),
    ("allocator_allocated", Gauge, "allocator_allocated_bytes"),
    ("allocator_resident", Gauge, "allocator_resident_bytes"),
    ("used_memory", Gauge, "memory_used_bytes"),
    ("used_memory_rss", Gauge, "memory_used_rss_bytes"),
    ("used_memory_peak", Gauge, "memory_used_peak_bytes"),
    ("used_memory_overhead", Gauge, "memory_used_overhead_bytes"),
    ("used_memory_startup", Gauge, "memory_used_startup_bytes"),
    ("used_memory_dataset", Gauge, "memory_used_dataset_bytes"),
    ("maxmemory", Gauge, "memory_max_bytes"),
    ("mem_fragmentation_ratio", Gauge, "mem_fragmentation_ratio"),
    ("mem_clients_normal", Gauge, "mem_clients_normal"),
    ("mem_aof_buffer", Gauge, "mem_aof_buffer_bytes"),
    ("mem_not_counted_for_evict", Gauge, "mem_not_counted_for_eviction_bytes"),
    ("lazyfree_pending_objects", Gauge, "lazyfree_pending_objects"),
    ("loading", Gauge, "loading_dump_file"),
    ("rdb_changes_since_last_save", Gauge, "rdb_changes_since_last_save"),
    ("rdb_bgsave_in_progress", Gauge, "rdb_bgsave_in_progress"),
    ("rdb_last_save_time", Gauge, "rdb_last_save_timestamp_seconds"),
    ("rdb_last_bgsave_status", Gauge, "rdb_last_bgsave_status"),
    ("rdb_last_bgsave_time_sec", Gauge, "rdb_last_bgsave_duration_sec"),
    ("rdb_current_bgsave_time_sec", Gauge, "rdb_current_bgsave_duration_sec"),
    // A gauge there, under the same name: OpenMetrics keeps `_total` for counters.
    ("rdb_saves", Counter, "rdb_saves_total"),
    ("rdb_last_cow_size", Gauge, "rdb_last_cow_size_bytes"),
    ("aof_enabled", Gauge, "aof_enabled"),
    ("aof_rewrite_in_progress", Gauge, "aof_rewrite_in_progress"),
    ("aof_rewrite_scheduled", Gauge, "aof_rewrite_scheduled"),
    ("aof_last_rewrite_time_sec", Gauge, "aof_last_rewrite_duration_sec"),
    ("aof_current_rewrite_time_sec", Gauge, "aof_current_rewrite_duration_sec"),
    ("aof_last_cow_size", Gauge, "aof_last_cow_size_bytes"),
    ("aof_current_size", Gauge, "aof_current_size_bytes"),
    ("aof_base_size", Gauge, "aof_base_size_bytes"),
    ("aof_pending_rewrite", Gauge, "aof_pending_rewrite"),
    ("aof_buffer_length", Gauge, "aof_buffer_length"),
    ("aof_pending_bio_fsync", Gauge, "aof_pending_bio_fsync"),
    ("aof_delayed_fsync", Gauge, "aof_delayed_fsync"),
    ("aof_last_bgrewrite_status", Gauge, "aof_last_bgrewrite_status"),
    ("aof_last_write_status", Gauge, "aof_last_write_status"),
    // In seconds, which its name says there.
    (FORK, Gauge, "latest_fork_seconds"),
    ("connected_slaves", Gauge, "connected_slaves"),
    ("master_repl_offset", Gauge, "master_repl_offset"),
    ("total_connections_received", Counter, "connections_received_total"),
    ("total_commands_processed", Counter, "commands_processed_total"),
    ("rejected_connections", Counter, "rejected_connections_total"),
    ("total_net_input_bytes", Counter, "net_input_bytes_total"),
    ("total_net_output_bytes", Counter, "net_output_bytes_total"),
    ("expired_keys", Counter, "expired_keys_total"),
    ("evicted_keys", Counter, "evicted_keys_total"),
    ("keyspace_hits", Counter, "keyspace_hits_total"),
    ("keyspace_misses", Counter, "keyspace_misses_total"),
    ("eventloop_cycles", Counter, "eventloop_cycles_total"),
    ("eventloop_duration_sum", Counter, "eventloop_duration_sum_usec_total"),
    ("used_cpu_sys", Counter, "cpu_sys_seconds_total"),
    ("used_cpu_user", Counter, "cpu_user_seconds_total"),
    ("used_cpu_sys_children", Counter, "cpu_sys_children_seconds_total"),
    ("used_cpu_user_children", Counter, "cpu_user_children_seconds_total"),
    ("used_cpu_sys_main_thread", Counter, "cpu_sys_main_thread_seconds_total"),
    ("used_cpu_user_main_thread", Counter, "cpu_user_main_thread_seconds_total"),
];

/// Fields that redis_exporter leaves out, behind `tiermark_redis_`.
const OURS: &[(&str, Kind, &str)] = &[
    ("total_forks", Counter, "forks_total"),
    ("aof_rewrites", Counter, "aof_rewrites_total"),
    ("current_cow_size", Gauge, "current_cow_size_bytes"),
    ("current_cow_peak", Gauge, "current_cow_peak_bytes"),
];

const FORK: &str = "latest_fork_usec";

/// The family of a field of INFO, without points.
pub fn family(field: &str) -> Option<Family> {
    let in_table = |table: &[(&str, Kind, &str)], prefix: &str| {
        let (field, kind, name) = table.iter().find(|(known, ..)| *known == field)?;
        Some(Family::new(*kind, &format!("{prefix}{name}"), format!("{field} of INFO.")))
    };
    in_table(NAMES, "redis_").or_else(|| in_table(OURS, "tiermark_redis_"))
}

/// A field's value in its metric's unit; nothing where it is no number.
fn value(field: &str, text: &str) -> Option<f64> {
    let number = match text {
        "ok" => 1.0,
        "err" | "fail" => 0.0,
        _ => text.parse::<f64>().ok().filter(|number| number.is_finite())?,
    };
    Some(if field == FORK { number / 1e6 } else { number })
}

/// Whether it answers. That it does not is known; what it would say is not.
pub fn up(answers: bool) -> Family {
    Family::new(Gauge, "redis_up", "Whether the server answers.").with(vec![], f64::from(u8::from(answers)))
}

/// What INFO and LATENCY LATEST say.
pub fn families(info: &Info, spikes: &[Spike]) -> Vec<Family> {
    let fields = NAMES.iter().chain(OURS).map(|(field, ..)| *field);
    let mut all: Vec<Family> =
        fields.filter_map(|field| Some(family(field)?.with(vec![], value(field, info.get(field)?)?))).collect();
    let text = |field: &str| info.get(field).unwrap_or_default().to_owned();
    let labels = ["role", "redis_version", "redis_mode", "os", "maxmemory_policy", "tcp_port", "run_id", "process_id"];
    let labels = labels.into_iter().map(|field| (field, text(field))).collect();
    all.push(Family::new(Gauge, "redis_instance_info", "Which server it is.").with(labels, 1.0));
    // `db0:keys=5,expires=0,avg_ttl=0`.
    if let Some(db) = info.get("db0") {
        let of = |key: &str| {
            db.split(',').find_map(|part| part.split_once('=').filter(|(name, _)| *name == key)?.1.parse().ok())
        };
        for (key, name) in [("keys", "redis_db_keys"), ("expires", "redis_db_keys_expiring")] {
            let db = vec![("db", "db0".to_owned())];
            all.extend(
                of(key).map(|keys| {
                    Family::new(Gauge, name, format!("{key} of INFO's line of a database.")).with(db, keys)
                }),
            );
        }
    }
    let mut last =
        Family::new(Gauge, "redis_latency_spike_last", "When the server last saw such an event, as Unix time.");
    let mut lasted = Family::new(Gauge, "redis_latency_spike_duration_seconds", "How long that event lasted.");
    for spike in spikes {
        let event = || vec![("event_name", spike.event.clone())];
        last = last.with(event(), spike.at as f64);
        lasted = lasted.with(event(), spike.ms as f64 / 1e3);
    }
    all.extend([last, lasted]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, write};

    #[test]
    fn fields_go_by_the_names_of_redis_exporter() {
        let info = "redis_version:7.0.15\r\nlatest_fork_usec:1500\r\ntotal_forks:2\r\naof_delayed_fsync:3\r\nused_memory:10\r\n\
                    rdb_last_bgsave_status:ok\r\naof_last_write_status:err\r\nkeyspace_hits:4\r\nmem_fragmentation_ratio:nan\r\n\
                    rdb_saves:6\r\ndb0:keys=5,expires=1,avg_ttl=0\r\nrole:master\r\n";
        let spike = Spike { event: "fork".to_owned(), at: 1_700_000_000, ms: 12, most_ms: 30 };
        let text = write(families(&Info::parse(info), &[spike]), Format::OpenMetrics);
        for line in [
            "redis_latest_fork_seconds 0.0015",
            "tiermark_redis_forks_total 2",
            "redis_aof_delayed_fsync 3",
            "redis_memory_used_bytes 10",
            "redis_rdb_last_bgsave_status 1",
            "redis_aof_last_write_status 0",
            "redis_keyspace_hits_total 4",
            "redis_rdb_saves_total 6",
            "redis_db_keys{db=\"db0\"} 5",
            "redis_latency_spike_last{event_name=\"fork\"} 1700000000",
            "redis_latency_spike_duration_seconds{event_name=\"fork\"} 0.012",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        // What the server does not say is not there.
        assert!(!text.contains("fragmentation") && !text.contains("rewrite"), "{text}");
        assert!(text.contains("role=\"master\",redis_version=\"7.0.15\""), "{text}");
    }

    #[test]
    fn a_name_is_given_once() {
        let mut names: Vec<&str> = NAMES.iter().chain(OURS).map(|(.., name)| *name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
