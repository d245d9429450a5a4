//! The methods of latency and of reviews from end to end, in virtual time: what they find out of devices whose truth is known.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use serde_json::Value;

fn run(home: &Home, args: &[&str]) -> Value {
    home.json(&[&["run"], args].concat())
}

fn figures(home: &Home, args: &[&str]) -> Value {
    run(home, args)["method"]["figures"].clone()
}

fn profile(home: &Home, name: &str, toml: &str) -> String {
    let path = home.path().join(format!("{name}.toml"));
    std::fs::write(&path, format!("name = \"{name}\"\n{toml}")).unwrap();
    format!("profile:{}", path.display())
}

#[test]
fn the_card_of_the_article_is_not_what_its_label_says() {
    let home = Home::new();
    let card = figures(&home, &["sd-class", "--on", "profile:microsd-u3", "--set", "label=U3"]);
    assert_eq!(card["verdict"], "consistent with U1, V10; not with the U3 on its label", "{card}");
    assert_eq!(card["consistent_with"], serde_json::json!(["U1", "V10"]));
    let told = home.run(&["show", "last"]).code(0).out;
    assert!(told.contains("consistent with U1, V10; not with the U3 on its label"), "{told}");
    let slow = profile(
        &home,
        "slow",
        "[read]\nlatency_us = 500\n[write]\nlatency_us = 1000\nbandwidth_MBps = 40\n[write.sequential]\nbandwidth_MBps = 40",
    );
    let card = figures(&home, &["sd-class", "--on", &slow, "--set", "runtime=2s"]);
    assert_eq!(card["consistent_with"], serde_json::json!(["U3", "V30", "A2"]), "{card}");
    home.run(&["run", "sd-class", "--on", "memory", "--set", "label=U4"]).code(2);
}

#[test]
fn a_durable_write_is_the_write_and_the_flush() {
    let home = Home::new();
    let disk = profile(&home, "disk", "[read]\nlatency_us = 1\n[write]\nlatency_us = 200\n[flush]\nlatency_us = 800");
    let found = figures(&home, &["fsync", "--on", &disk]);
    let points = found["points"].as_array().unwrap();
    let sizes: Vec<u64> = points.iter().map(|point| point["bs_B"].as_u64().unwrap() / 1024).collect();
    assert_eq!(sizes, [4, 4, 8, 8, 16, 16, 64, 64]);
    for point in points {
        let mean = point["lat_us"]["mean"].as_f64().unwrap();
        assert!((mean - 1000.0).abs() < 10.0, "{point}");
        let why = point["lat_us"]["p99_999_why"].as_str().unwrap();
        assert!(why.starts_with("not enough operations: ") && why.ends_with(" of 1,000,000"), "{why}");
    }
    let real = figures(
        &home,
        &[
            "fsync",
            "--on",
            &home.work().display().to_string(),
            "--set",
            "sizes=4k",
            "--set",
            "runtime=200ms",
            "--set",
            "size=1MiB",
        ],
    );
    assert_eq!(real["points"].as_array().unwrap().len(), 2, "{real}");
    home.assert_clean(&home.work());
}

/// Requests a second apart meet the device idle, and a stall strikes some of them.
#[test]
fn a_ping_keeps_every_request() {
    let home = Home::new();
    let disk = profile(&home, "disk", "[read]\nlatency_us = 100\n[[stall]]\nperiod_ms = 10500\nlength_ms = 500");
    let document = run(&home, &["ping", "--on", &disk, "--set", "count=60"]);
    let (found, step) = (&document["method"]["figures"], &document["steps"][0]);
    let elapsed = step["elapsed_s"].as_f64().unwrap();
    assert!((58.5..61.0).contains(&elapsed), "one a second: {step}");
    assert_eq!((&found["requests"], found["min_us"].as_f64().unwrap().round()), (&60.into(), 100.0));
    assert!(found["max_us"].as_f64().unwrap() > 10_000.0, "{found}");
    let bars: Vec<u64> =
        found["histogram"].as_array().unwrap().iter().map(|bar| bar["requests"].as_u64().unwrap()).collect();
    assert_eq!(bars.iter().sum::<u64>(), 60);
    assert!(bars[0] >= 50, "{bars:?}");
    let real = figures(
        &home,
        &[
            "ping",
            "--on",
            &home.work().display().to_string(),
            "--set",
            "count=20",
            "--set",
            "every=2ms",
            "--set",
            "size=1MiB",
        ],
    );
    assert_eq!(real["requests"], 20, "{real}");
    home.assert_clean(&home.work());
}
