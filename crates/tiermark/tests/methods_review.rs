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

/// A curve of a review: where on its axis, and what is asked of each point.
fn curve(review: &Value, name: &str, rw: &str, axis: &str, figure: &str) -> Vec<(u64, f64)> {
    let sweeps = review["sweeps"].as_array().unwrap();
    let found = sweeps.iter().find(|sweep| sweep["name"] == name && sweep["rw"] == rw);
    let points = found.map_or(&[][..], |sweep| sweep["points"].as_array().unwrap());
    points
        .iter()
        .map(|point| (point[axis].as_u64().unwrap(), point.pointer(figure).unwrap().as_f64().unwrap()))
        .collect()
}

/// What `show last` prints, however its lines are broken.
fn shown(home: &Home) -> String {
    home.run(&["show", "last"]).code(0).out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the review of the P4800X says in sentences, as numbers.
#[test]
fn the_sentences_of_the_review_hold() {
    let home = Home::new();
    let document = run(&home, &["ssd-review", "--on", "profile:p4800x"]);
    let review = &document["method"]["figures"];
    let by_size = curve(review, "size", "read", "bs_B", "/MBps");
    assert_eq!((by_size.len(), by_size[0].0, by_size[11].0), (12, 512, 1 << 20));
    assert!((by_size[11].1 / 2300.0 - 1.0).abs() < 0.03, "2.3 GB/s at the largest transfer: {by_size:?}");
    let by_depth = curve(review, "depth-seq", "read", "depth", "/MBps");
    assert!((by_depth[0].1 / 1800.0 - 1.0).abs() < 0.03, "1.8 GB/s at depth 1: {by_depth:?}");
    let deeper = &by_depth[1..];
    assert!(
        deeper.iter().all(|(_, rate)| (rate / 2500.0 - 1.0).abs() < 0.03),
        "2.5 GB/s from depth 2 on: {by_depth:?}"
    );
    let sweeps = review["sweeps"].as_array().unwrap();
    let knee = sweeps.iter().find(|sweep| sweep["name"] == "depth-seq" && sweep["rw"] == "read").unwrap();
    assert_eq!(knee["knee"]["depth"], 2);
    let told = shown(&home);
    assert!(told.contains("saturated from depth 2 on") && told.contains("not enough operations: "), "{told}");
    // The one point where the article contradicts itself is named.
    assert!(told.contains("1.8 GB/s in the sweep over depths, above 2.0 in the sweep over sizes"), "{told}");

    for name in ["p3700", "micron-9100"] {
        let document = run(&home, &["ssd-review", "--on", &format!("profile:{name}")]);
        let review = &document["method"]["figures"];
        let by_size = curve(review, "size", "write", "bs_B", "/MBps");
        assert!(by_size.len() == 1 && (1200.0..=1300.0).contains(&by_size[0].1), "{name}: {by_size:?}");
        assert!(curve(review, "depth-seq", "write", "depth", "/MBps").is_empty(), "{name}");
        let told = shown(&home);
        assert!(told.contains("depth-seq-write: the profile does not say what it does at depth"), "{told}");
        assert_eq!(told.contains("writes over depths were erratic"), name == "p3700", "{told}");
    }
}

/// The usual form and the published procedure on one device, whose latencies vary and which stalls: a tenth of the time and
/// of the bytes at most, and every mean, median and p99 the same within 3 %.
#[test]
fn the_usual_form_says_the_same_in_a_tenth_of_the_time() {
    let home = Home::new();
    let disk = profile(
        &home,
        "disk",
        "size = \"1GiB\"\nchannels = 4\n[link]\nbandwidth_MBps = 500\n[read]\nlatency_us = { mean = 9000, sigma = 0.1 }\n\
         [write]\nlatency_us = { mean = 15000, sigma = 0.1 }\n[[stall]]\nperiod_ms = 500\nlength_ms = 20",
    );
    let usual = run(&home, &["ssd-review", "--on", &disk]);
    let letter = run(&home, &["ssd-review", "--on", &disk, "--as-published", "--set", "precondition=false"]);
    // What is thrown away at the beginning of each point was done all the same.
    let written = |document: &Value, warmup: f64| {
        let steps = document["steps"].as_array().unwrap().iter();
        let of = |step: &Value| Some(step["write"]["MBps"].as_f64()? * (step["elapsed_s"].as_f64()? + warmup));
        steps.filter_map(of).sum::<f64>()
    };
    let seconds = |document: &Value| {
        document["steps"].as_array().unwrap().iter().filter_map(|step| step["elapsed_s"].as_f64()).sum::<f64>()
    };
    let (short, long) = (seconds(&usual) + 63.0, seconds(&letter) + 63.0 * 60.0);
    assert!(short * 10.0 <= long, "{short} s against {long} s");
    let (little, much) = (written(&usual, 1.0), written(&letter, 60.0));
    assert!(little * 10.0 <= much, "{little} MB against {much} MB");
    let (mut far, mut points) = (Vec::new(), 0);
    for (name, axis) in [("size", "bs_B"), ("depth-seq", "depth"), ("depth-rand", "depth"), ("mixed", "read_percent")] {
        for rw in ["read", "write"] {
            for figure in ["/lat_us/mean", "/lat_us/p50", "/lat_us/p99"] {
                let [one, other] =
                    [&usual, &letter].map(|run| curve(&run["method"]["figures"], name, rw, axis, figure));
                assert_eq!(one.len(), other.len());
                for ((at, short), (_, long)) in one.into_iter().zip(other) {
                    points += 1;
                    if (short / long - 1.0).abs() > 0.03 {
                        far.push(format!("{name} {rw} {at} {figure}: {short} against {long}"));
                    }
                }
            }
        }
    }
    println!("{points} figures, {} further apart than 3 %; {short:.0} s against {long:.0} s", far.len());
    assert!(points >= 200 && far.is_empty(), "{} of {points}: {far:#?}", far.len());
}
