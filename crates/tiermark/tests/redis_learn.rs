//! What is learned of a real redis-server that serves somebody: lengths, reads and writes, times to live, how uneven its keys are
//! used; that nothing of it is changed; and a load like its own. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Server, has_keys, possible, try_sh};
use serde_json::Value;
use std::path::Path;

fn can(test: &str) -> bool {
    possible(test, &[Need::Tool("redis-server"), Need::Tool("redis-cli")])
}

/// 7 of 10 values have 64 B, 3 have 512; half of the keys of each kind live 60 s; five reads for each write.
fn fill(server: &Server) {
    let mut commands = String::new();
    for n in 0..4000 {
        let value = if n % 10 < 7 { "x".repeat(64) } else { "y".repeat(512) };
        let ttl = if n % 2 == 0 { " EX 60" } else { "" };
        commands.push_str(&format!("SET item:{n} {value}{ttl}\r\n"));
        for m in 0..5 {
            commands.push_str(&format!("GET item:{}\r\n", (n * 7 + m) % 4000));
        }
    }
    server.tell(&commands);
}

fn near(document: &Value, key: &str, wanted: f64, within: f64) {
    let found = document[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {document}"));
    assert!((found - wanted).abs() <= within, "{key}: {found} instead of {wanted} in {document}");
}

#[test]
fn what_a_server_serves_is_learned_and_nothing_is_changed() {
    if !can("what_a_server_serves_is_learned_and_nothing_is_changed") {
        return;
    }
    let home = Home::new();
    let server = Server::start(&home.work(), &[]);
    fill(&server);
    let before = (server.asked("dbsize"), server.asked("config get *"), server.asked("debug digest"));
    let document = home.json(&["load", "redis", "--learn", &server.url()]);
    has_keys(&document, "schema version keys memory_B ops_per_s payload reads_percent commands with_ttl notes words");
    assert_eq!((server.asked("dbsize"), server.asked("config get *"), server.asked("debug digest")), before);
    near(&document, "keys", 4000.0, 0.0);
    near(&document, "reads_percent", 83.0, 1.0);
    // A thousand of 4000 keys, at random: three standard deviations are 5 %.
    near(&document, "with_ttl", 0.5, 0.05);
    let payload = document["payload"].as_array().unwrap();
    assert_eq!(payload.len(), 2, "{document}");
    assert_eq!((&payload[0]["B"], &payload[1]["B"]), (&64.into(), &512.into()));
    near(&payload[0], "share", 0.7, 0.05);
    assert!(document.get("zipf_theta").is_none(), "nobody listened: {document}");
    let text = home.run(&["load", "redis", "--learn", &server.url()]).code(0).out;
    assert!(
        text.contains("tiermark load redis --on DIR --payload 64:") && text.contains("unknown: only --monitor"),
        "{text}"
    );
}

#[test]
fn a_load_like_it_is_made() {
    if !can("a_load_like_it_is_made") {
        return;
    }
    let home = Home::new();
    let theirs = home.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    let server = Server::start(&theirs, &[]);
    fill(&server);
    let (work, url) = (home.work(), server.url());
    let mut words = vec!["load", "redis", "--learn", &url, "--on", work.to_str().unwrap(), "--mode", "memory-only"];
    words.extend(["--operations", "12000", "--repeat", "1"]);
    let document = home.json(&words);
    home.assert_clean(&work);
    let cell = &document["cells"][0];
    assert!(cell["payload_mix"].as_str().unwrap().starts_with("64 B "), "{cell}");
    // 0.7 of 64 and 0.3 of 512, as far as the sample is.
    near(cell, "payload_B", 198.0, 25.0);
    let record = home.last();
    let (reads, writes) = (record.steps[0].read.operations(), record.steps[0].write.operations());
    assert_eq!((reads + writes, record.steps[0].load.as_ref().unwrap().redis.as_ref().unwrap().keys), (12_000, 4000));
    assert!((9900..10_080).contains(&reads), "{reads}");
    assert_eq!(server.asked("dbsize").trim(), "4000");
}

/// The exponent of a load is learned by listening to it.
#[test]
fn how_uneven_keys_are_used_is_heard() {
    if !can("how_uneven_keys_are_used_is_heard") {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    let mut words = vec!["load", "redis", "--on", here, "--mode", "memory-only", "--payload", "64", "--repeat", "1"];
    words.extend(["--keys", "10000", "--theta", "0.9", "--rate", "4000", "--runtime", "20s", "--threads", "1"]);
    words.extend(["--link", "unix", "--json"]);
    let mut running = home.start(&words);
    let socket = || {
        let folders = std::fs::read_dir(&work).into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join("socket")).find(|socket| socket.exists())
    };
    let filled = |socket: &Path| {
        try_sh(&format!("redis-cli -s {} dbsize", socket.display())).is_ok_and(|keys| keys.trim() == "10000")
    };
    running.until("the keys are set", || socket().is_some_and(|socket| filled(&socket)));
    // The measurement has begun.
    std::thread::sleep(std::time::Duration::from_secs(1));
    let url = format!("unix://{}", socket().unwrap().display());
    let document = home.json(&["load", "redis", "--learn", &url, "--monitor", "6s"]);
    near(&document, "zipf_theta", 0.9, 0.15);
    near(&document, "reads_percent", 50.0, 5.0);
    common::finish(running).code(0);
}

#[test]
fn who_cannot_be_looked_at_is_one_sentence() {
    if !can("who_cannot_be_looked_at_is_one_sentence") {
        return;
    }
    let home = Home::new();
    let server = Server::start(&home.work(), &["--requirepass", "secret"]);
    let with = |password: &str| server.url().to_string() + "?pass=" + password;
    let (right, wrong, absent) = (with("secret"), with("other"), "redis://127.0.0.1:1".to_owned());
    for (url, code, said) in [
        (server.url(), 4, "wants a password"),
        (wrong, 4, "another password"),
        (absent, 4, "redis://127.0.0.1:1 cannot be looked at"),
        ("rediss://somewhere".to_owned(), 2, "TLS"),
        ("somewhere".to_owned(), 2, "redis://"),
    ] {
        let told = home.run(&["load", "redis", "--learn", &url]).code(code);
        assert!(told.err.contains(said) && told.err.trim_end().lines().count() == 1, "{url}: {}", told.err);
        assert!(!told.err.contains("secret"), "{}", told.err);
    }
    // One that holds nothing makes no load, and says why.
    let told = home.run(&["load", "redis", "--learn", &right]).code(0);
    assert!(told.out.contains("unknown: it holds no strings"), "{}", told.out);
    for payload in ["64:70,512", "64:0,512:1", "a:1,b:2"] {
        let told = home.run(&["load", "redis", "--on", "/", "--payload", payload]).code(2);
        assert!(told.err.contains("--payload"), "{}", told.err);
    }
}
