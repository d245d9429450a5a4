//! Mixes of commands on a real redis-server: what the server counts is what was asked for, each command has its own figures, and
//! nothing that is read is missing. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, has_keys, possible};
use std::collections::BTreeMap;

#[test]
fn each_command_is_asked_as_often_as_its_weight_says() {
    if !possible("each_command_is_asked_as_often_as_its_weight_says", &[Need::Tool("redis-server")]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let mix = "get=40,set=20,incr=10,hset=10,hget=10,zadd=5,xadd=5";
    let mut words = vec!["load", "redis", "--on", work.to_str().unwrap(), "--mode", "memory-only", "--commands", mix];
    words.extend(["--operations", "20000", "--keys", "2000", "--payload", "100", "--repeat", "1"]);
    let document = home.json(&words);
    home.assert_clean(&work);
    let cell = &document["cells"][0];
    let record = home.last();
    let served = record.steps[0].load.as_ref().unwrap().redis.as_ref().unwrap();
    let counts: BTreeMap<&str, u64> =
        served.commands.iter().map(|(command, latencies)| (command.name(), latencies.count())).collect();
    assert_eq!(counts.values().sum::<u64>(), 20_000);
    for (command, weight) in
        [("get", 40.0), ("set", 20.0), ("incr", 10.0), ("hset", 10.0), ("hget", 10.0), ("zadd", 5.0), ("xadd", 5.0)]
    {
        let share = 100.0 * counts[command] as f64 / 20_000.0;
        assert!((share - weight).abs() < 1.5, "{command}: {share} %");
        let all = cell["commands"].as_array().unwrap();
        let own = all.iter().find(|one| one["command"] == command).unwrap_or_else(|| panic!("{command}: {cell}"));
        has_keys(own, "ops_per_s lat_us");
        has_keys(&own["lat_us"], "p50 p95 p99 max");
    }
    // The server's own account: strings and hashes that are read are there.
    assert_eq!((served.misses, served.hits), (0, counts["get"] + counts["hget"]));
    let text = home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("  zadd ") && text.contains("  hget "), "{text}");
}

#[test]
fn a_rate_and_a_pipeline_hold_with_a_mix() {
    if !possible("a_rate_and_a_pipeline_hold_with_a_mix", &[Need::Tool("redis-server")]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let common = ["load", "redis", "--on", work.to_str().unwrap(), "--mode", "memory-only", "--payload", "64:1,300:1"];
    let more = [
        &["--commands", "hset=1", "--rate", "2000", "--runtime", "2s"][..],
        &["--commands", "zadd=1,hget=1", "--pipeline", "8", "--operations", "8000"][..],
    ];
    for more in more {
        let mut words: Vec<&str> = common.into_iter().chain(more.iter().copied()).collect();
        words.extend(["--keys", "500", "--repeat", "1"]);
        let document = home.json(&words);
        assert_eq!(document["steps"][0]["state"], "done", "{document}");
        assert!(!document["cells"][0]["commands"].as_array().unwrap().is_empty(), "{document}");
    }
    home.assert_clean(&work);
}

#[test]
fn a_mix_that_is_none_is_one_sentence() {
    let home = Home::new();
    let work = home.work();
    for (mix, said) in
        [("get=0", "above 0"), ("foo=1", "none of get, set"), ("get", "get=50"), ("get=1,get=2", "twice")]
    {
        let told = home.run(&["load", "redis", "--on", work.to_str().unwrap(), "--commands", mix]);
        // Without a server that is what is missing first.
        if possible("a_mix_that_is_none_is_one_sentence", &[Need::Tool("redis-server")]) {
            let told = told.code(2);
            assert!(told.err.contains(said) && told.err.trim_end().lines().count() == 1, "{mix}: {}", told.err);
        }
    }
}
