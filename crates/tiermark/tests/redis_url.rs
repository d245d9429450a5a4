//! A load of a real redis-server that is somebody else's: its keys are read and nothing of it is changed; what is set where that is
//! allowed is gone afterwards. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Server, has_keys, possible};
use serde_json::Value;

fn can(test: &str) -> bool {
    possible(test, &[Need::Tool("redis-server"), Need::Tool("redis-cli")])
}

/// Strings of 10 to 2,000 B, 505 B in the mean, with names of several lengths, and some that are none.
fn fill(server: &Server) {
    let mut commands = String::new();
    for key in 0..1000 {
        let length = [10, 10, 2000, 0][key % 4];
        commands.push_str(&format!("SET user:{key} \"{}\"\r\n", "x".repeat(length)));
        commands.push_str(&format!("RPUSH list:{key} a b\r\n"));
    }
    server.tell(&commands);
}

fn load(home: &Home, url: &str, more: &[&str]) -> Value {
    let words = ["load", "redis", "--url", url, "--operations", "20000", "--repeat", "1", "--connections", "8"];
    home.json(&[&words[..], more].concat())
}

fn calls(server: &Server, command: &str) -> String {
    let all = server.asked("info commandstats");
    let line = all.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    line.and_then(|line| line.split(',').next()).unwrap_or_default().to_owned()
}

#[test]
fn its_keys_are_read_and_nothing_is_changed() {
    if !can("its_keys_are_read_and_nothing_is_changed") {
        return;
    }
    let home = Home::new();
    let server = Server::start(
        home.path(),
        &["--requirepass", "pa*ss", "--enable-debug-command", "yes", "--slowlog-log-slower-than", "0"],
    );
    let url = format!("{}?pass=pa*ss", server.url());
    let refused = home.run(&["load", "redis", "--url", &server.url(), "--repeat", "1"]).code(4);
    assert!(refused.err.contains("password") && !refused.err.contains("pa*ss"), "{}", refused.err);
    server.asked("-a 'pa*ss' config set requirepass ''");
    fill(&server);
    let (digest, sets) = (server.asked("debug digest"), calls(&server, "set"));
    server.asked("config set requirepass 'pa*ss'");

    let document = load(&home, &url, &["--theta", "1"]);
    let cell = &document["cells"][0];
    has_keys(cell, "mode medium payload_B ops_per_s lat_us client_bound causes");
    assert_eq!(cell["mode"], "as-it-runs", "{cell}");
    assert!(cell["medium"].as_str().unwrap().starts_with("unix://"), "{cell}");
    assert_eq!(cell["payload_B"], 505, "{cell}");
    assert!(!document.to_string().contains("pa*ss"));
    let step = &document["steps"][0];
    assert!(step["notes"].to_string().contains("no log and no snapshots"), "{}", step["notes"]);
    assert_eq!((step["read"]["ops"].as_u64(), step["write"]["ops"].as_u64()), (Some(20_000), None));
    let record = home.last();
    let served = record.steps[0].load.as_ref().unwrap().redis.as_ref().unwrap();
    assert_eq!((served.keys, served.hits, served.misses), (1000, 20_000, 0), "{served:?}");
    let text = home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("as-it-runs") && text.contains("505 B") && !text.contains("pa*ss"), "{text}");

    server.asked("-a 'pa*ss' config set requirepass ''");
    assert_eq!((server.asked("debug digest"), calls(&server, "set")), (digest, sets));
    assert_eq!(calls(&server, "config|resetstat"), "");
    assert!(server.asked("slowlog len").trim().parse::<u64>().unwrap() > 0, "its log of slow commands was emptied");
}

#[test]
fn what_is_set_is_gone_afterwards() {
    if !can("what_is_set_is_gone_afterwards") {
        return;
    }
    let home = Home::new();
    let server = Server::start(home.path(), &["--enable-debug-command", "yes"]);
    fill(&server);
    let digest = server.asked("debug digest");
    assert_eq!(digest.len(), 40, "{digest}");
    let document = load(&home, &server.url(), &["--writes", "--payload", "100", "--keys", "3000"]);
    let step = &document["steps"][0];
    let done = step["read"]["ops"].as_u64().unwrap() + step["write"]["ops"].as_u64().unwrap();
    assert!(done == 20_000 && step["write"]["ops"].as_u64().unwrap() > 8000, "{step}");
    assert_eq!((server.asked("debug digest"), server.asked("dbsize")), (digest, "2000".to_owned()));
    // In its midst every key ends by itself should it be left behind.
    let mut running =
        home.start(&["load", "redis", "--url", &server.url(), "--writes", "--keys", "50", "--runtime", "20s"]);
    running.until("its keys are there", || server.asked("dbsize").trim().parse::<u64>().unwrap() >= 2050);
    let key = server.asked("--scan --pattern 'tiermark:*'").lines().next().unwrap().to_owned();
    let left: i64 = server.asked(&format!("ttl {key}")).trim().parse().unwrap();
    assert!((3000..=3600).contains(&left), "{key}: {left}");
    running.signal(rustix::process::Signal::INT);
    common::finish(running).code(130);
    assert_eq!(server.asked("dbsize"), "2000");
}

#[test]
fn what_it_cannot_take_is_one_sentence() {
    if !can("what_it_cannot_take_is_one_sentence") {
        return;
    }
    let home = Home::new();
    let server = Server::start(home.path(), &["--maxmemory", "20mb", "--maxmemory-policy", "allkeys-lru"]);
    let url = server.url();
    let told = |words: &[&str], code: i32, parts: &[&str]| {
        let told = home.run(&[&["load", "redis", "--repeat", "1", "--operations", "100"], words].concat()).code(code);
        parts
            .iter()
            .for_each(|part| assert!(told.err.contains(part) || told.out.contains(part), "{words:?}: {told:?}"));
    };
    told(&["--url", &url], 1, &["no key that holds a string", "--writes"]);
    told(&["--url", &url, "--writes", "--payload", "4096", "--keys", "10000"], 1, &["has room for", "--keys"]);
    told(&["--url", &url, "--reads", "50"], 2, &["--writes"]);
    told(&["--url", &url, "--payload", "64"], 2, &["--writes"]);
    told(&["--url", "redis://127.0.0.1:1"], 4, &["redis://127.0.0.1:1"]);
    told(&["--url", "rediss://127.0.0.1:1"], 2, &["TLS"]);
    told(&["--url", "nonsense"], 2, &["unix:///path"]);
    assert_eq!(server.asked("dbsize"), "0");
}
