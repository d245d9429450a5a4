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

/// The 95 % interval of a figure of a point.
fn interval(review: &Value, name: &str, rw: &str, axis: &str, at: u64, figure: &str) -> Option<[f64; 2]> {
    let sweeps = review["sweeps"].as_array().unwrap().iter().filter(|sweep| sweep["name"] == name && sweep["rw"] == rw);
    let point = sweeps.flat_map(|sweep| sweep["points"].as_array().unwrap()).find(|point| point[axis] == at)?;
    let ends = point.pointer(&format!("{figure}_ci95"))?.as_array()?;
    Some([ends[0].as_f64()?, ends[1].as_f64()?])
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
}

/// What it says of the two others beside the P4800X, each sentence as numbers, and the page that puts the three side by side.
#[test]
fn the_sentences_about_the_other_two_hold() {
    let home = Home::new();
    let review = |name: &str| {
        let document = run(&home, &["ssd-review", "--on", &format!("profile:{name}")]);
        (document["run"].as_str().unwrap().to_owned(), document, shown(&home))
    };
    let [(optane, p4800x, _), (intel, p3700, of_p3700), (other, micron, of_micron)] =
        ["p4800x", "p3700", "micron-9100"].map(review);
    let of = |document: &Value, name: &str, rw: &str, axis: &str, figure: &str| {
        curve(&document["method"]["figures"], name, rw, axis, figure)
    };
    let ratios = |name: &str, rw: &str, axis: &str, figure: &str| -> Vec<(u64, f64)> {
        let [ours, theirs] = [&micron, &p4800x].map(|document| of(document, name, rw, axis, figure));
        assert_eq!(ours.len(), theirs.len());
        ours.into_iter().zip(theirs).map(|((at, ours), (_, theirs))| (at, ours / theirs)).collect()
    };
    // At most a tenth of the P4800X below 64 KiB, and more from there on.
    let by_size = ratios("size", "read", "bs_B", "/MBps");
    assert_eq!(by_size.len(), 12);
    assert!(by_size.iter().all(|(at, ratio)| (*at < 64 << 10) == (*ratio <= 0.1)), "{by_size:?}");
    let grows = of(&micron, "size", "read", "bs_B", "/MBps");
    assert!(grows.windows(2).all(|pair| pair[0].1 < pair[1].1), "low but steadily growing: {grows:?}");
    // Nearly ten times its mean latency at depth 1, faster above depth 16 and at no lower one, saturated at 64.
    let latency = ratios("depth-seq", "read", "depth", "/lat_us/mean");
    assert!((9.0..10.0).contains(&latency[0].1), "{latency:?}");
    let by_depth = ratios("depth-seq", "read", "depth", "/MBps");
    assert!(by_depth.iter().all(|(at, ratio)| (*at > 16) == (*ratio > 1.0)), "{by_depth:?}");
    let rates = of(&micron, "depth-seq", "read", "depth", "/MBps");
    assert!(rates[8].1 < 1.05 * rates[7].1, "{rates:?}");
    let far = ratios("depth-seq", "read", "depth", "/lat_us/p99");
    assert!(far.iter().all(|(at, ratio)| *at < 32 || *ratio > 1.2), "its p99 stays the higher one: {far:?}");
    // Writes: 1.2 to 1.3 GB/s in the largest ones, a little over half of the P4800X's at depth, slower at every depth.
    for document in [&p3700, &micron] {
        let largest = of(document, "size", "write", "bs_B", "/MBps").last().unwrap().1;
        assert!((1200.0..=1300.0).contains(&largest), "{largest}");
    }
    let by_depth = ratios("depth-seq", "write", "depth", "/MBps");
    assert!(by_depth[1..].iter().all(|(_, ratio)| (0.5..0.6).contains(ratio)), "{by_depth:?}");
    // The p99 of writes: some two times the P4800X's up to depth 2, some ten times from 3 on.
    let p99 = ratios("depth-seq", "write", "depth", "/lat_us/p99");
    assert!((1.5..2.5).contains(&p99[0].1) && p99[1].1 < 2.5 && p99[2].1 > 8.0, "{p99:?}");
    let jump = |document: &Value| {
        let findings = document["findings"].as_array().unwrap().iter();
        findings.filter(|finding| finding["id"] == "latency-jump").cloned().collect::<Vec<_>>()
    };
    let told = jump(&micron);
    assert!(
        told.iter().any(|finding| {
            let text = finding["text"].as_str().unwrap();
            text.starts_with("micron-9100, sequential writes of 128 KiB: p99 jumps at depth 3")
                && finding["evidence"].is_array()
        }),
        "{told:?}"
    );
    assert!(jump(&p4800x).is_empty());
    // Left out with the reason.
    assert!(of(&p3700, "depth-seq", "write", "depth", "/MBps").is_empty());
    assert!(of_p3700.contains("writes over depths were erratic and left out by the reviewers"), "{of_p3700}");
    assert!(of_micron.contains("at random: only sequential operations are published"), "{of_micron}");

    // One page of the three: each sentence's curve is on it, what is left out is named, and so is where the review contradicts itself.
    let page = home.work().join("review.html");
    home.run(&["report", &optane, &intel, &other, "--out", &page.display().to_string()]).code(0);
    let page = std::fs::read_to_string(page).unwrap().replace("&#x2f;", "/");
    for words in [
        "a tenth or less up to 32 KiB",
        "and overtakes it from depth 32 on",
        "p99 jumps at depth 3",
        "p3700: the published figures are not of one piece: writes over depths were erratic and left out by the reviewers",
        "p4800x: the published figures are not of one piece: reads of 128 KiB at depth 1: 1.8 GB/s in the sweep over depths, above 2.0 in the sweep over sizes",
        "id=\"chart-sweep-size\"",
        "id=\"chart-sweep-depth\"",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // The same for a post, by the name of the file as by the flag.
    let post = home.work().join("review.md");
    home.run(&["report", &optane, &intel, &other, "--out", &post.display().to_string()]).code(0);
    let post = std::fs::read_to_string(post).unwrap();
    assert!(post.starts_with("# ssd-review of ") && post.contains("\n| depth | profile:p4800x MB/s | "), "{post}");
    let printed = home.run(&["report", &optane, &intel, &other, "--format", "markdown", "--out", "-"]).code(0).out;
    assert_eq!(printed.trim_end(), post.trim_end());
}

/// The usual form and the published procedure on one device, whose latencies vary, which stalls, and whose cache fills: a
/// tenth of the time and of the bytes at most, and every mean, median and p99 the same within 3 %, or within its own
/// interval, where that is wider.
#[test]
fn the_usual_form_says_the_same_in_a_tenth_of_the_time() {
    let home = Home::new();
    let disk = profile(
        &home,
        "disk",
        "size = \"1GiB\"\nchannels = 4\n[link]\nbandwidth_MBps = 500\n[read]\nlatency_us = { mean = 9000, sigma = 0.1 }\n\
         [write]\nlatency_us = { mean = 15000, sigma = 0.1 }\n[cache]\nsize = \"200MB\"\ndrain_MBps = 10\n\
         [[stall]]\nperiod_ms = 500\nlength_ms = 20",
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
    let (short, long) = (seconds(&usual) + 71.0, seconds(&letter) + 71.0 * 60.0);
    assert!(short * 10.0 <= long, "{short} s against {long} s");
    let (little, much) = (written(&usual, 1.0), written(&letter, 60.0));
    assert!(little * 10.0 <= much, "{little} MB against {much} MB");
    let (mut far, mut points, mut intervals, mut hold) = (Vec::new(), 0, 0, 0);
    for (name, axis) in [("size", "bs_B"), ("depth-seq", "depth"), ("depth-rand", "depth"), ("mixed", "read_percent")] {
        for rw in ["read", "write"] {
            for figure in ["/lat_us/mean", "/lat_us/p50", "/lat_us/p99"] {
                let [one, other] =
                    [&usual, &letter].map(|run| curve(&run["method"]["figures"], name, rw, axis, figure));
                assert_eq!(one.len(), other.len());
                for ((at, short), (_, long)) in one.into_iter().zip(other) {
                    points += 1;
                    let ci95 = interval(&usual["method"]["figures"], name, rw, axis, at, figure);
                    // A thousandth is what the buckets of a histogram leave open.
                    let holds = ci95.is_some_and(|[low, high]| (low * 0.999..=high * 1.001).contains(&long));
                    intervals += u32::from(ci95.is_some());
                    hold += u32::from(holds);
                    if (short / long - 1.0).abs() > 0.03 && !holds {
                        far.push(format!("{name} {rw} {at} {figure}: {short} against {long}, {ci95:?}"));
                    }
                }
            }
        }
    }
    println!(
        "{points} figures, {} further apart than 3 %; {hold} of {intervals} intervals hold; {short:.0} s against {long:.0} s",
        far.len()
    );
    assert!(intervals >= 100 && hold * 10 >= intervals * 9, "{hold} of {intervals} intervals hold the truth");
    assert!(points >= 200 && far.is_empty(), "{} of {points}: {far:#?}", far.len());
}
