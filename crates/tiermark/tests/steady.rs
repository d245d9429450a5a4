//! Steady state from end to end: on devices of which it is known when they settle, or that they never do, and once really.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use serde_json::Value;

fn profile(home: &Home, name: &str, toml: &str) -> String {
    let path = home.path().join(format!("{name}.toml"));
    std::fs::write(&path, format!("name = \"{name}\"\nsize = \"1GiB\"\n{toml}")).unwrap();
    format!("profile:{}", path.display())
}

/// One operation after the other, a millisecond each, into a cache that empties at 2 MB/s: once it is full the same
/// writes are slower, those of 4 KiB by half.
fn settling(home: &Home, gigabytes: u32) -> String {
    let toml = "channels = 1\n[read]\nlatency_us = 1000\n[write]\nlatency_us = 1000\n[cache]\ndrain_MBps = 2\nsize = ";
    profile(home, &format!("settles-{gigabytes}"), &format!("{toml}\"{gigabytes}GB\""))
}

/// The round of a step, from 1 on.
fn round(step: &Value) -> u64 {
    step["name"].as_str().unwrap().rsplit_once("-r").unwrap().1.parse().unwrap()
}

/// The first round in which more was written than the cache takes up meanwhile.
fn full_in_round(document: &Value, gigabytes: u32) -> u64 {
    let mut room = f64::from(gigabytes) * 1e9;
    for step in document["steps"].as_array().unwrap().iter().filter(|step| step["state"] == "done") {
        let elapsed = step["elapsed_s"].as_f64().unwrap();
        room += 2e6 * elapsed - step["write"]["MBps"].as_f64().unwrap_or(0.0) * 1e6 * elapsed;
        // What is in flight when the cache fills waits for it: 32 operations of 1 MiB at most.
        if room <= 32.0 * 1_048_576.0 {
            return round(step);
        }
    }
    panic!("it was never full")
}

/// What the specification asks of the last five of so many rounds, here in other words than the program's.
fn holds_still(iops: &[f64]) -> bool {
    let Some(first) = iops.len().checked_sub(5) else { return false };
    let window = &iops[first..];
    let mean = window.iter().sum::<f64>() / 5.0;
    let spread = window.iter().copied().fold(0.0, f64::max) - window.iter().copied().fold(f64::MAX, f64::min);
    let slope = (2.0 * (window[4] - window[0]) + window[3] - window[1]) / 10.0;
    spread <= 0.2 * mean && (4.0 * slope).abs() <= 0.1 * mean
}

/// The tracked figures of a run: round by round.
fn tracked(figures: &Value) -> Vec<Vec<f64>> {
    let series = |one: &Value| one["iops"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    figures["tracked"].as_array().unwrap().iter().map(series).collect()
}

#[test]
fn a_steady_state_is_found_within_a_round_of_the_truth() {
    let home = Home::new();
    for gigabytes in [3, 8, 16] {
        let document = home.json(&["run", "snia", "--on", &settling(&home, gigabytes)]);
        let (found, steps) = (&document["method"]["figures"], document["steps"].as_array().unwrap());
        let (truth, known) = (full_in_round(&document, gigabytes), found["steady_at_round"].as_u64().unwrap());
        // Known with the fifth of the steady rounds: the first of them is the one in which it is full, or the next.
        let begun = known - 4;
        println!("{gigabytes} GB: full in round {truth}, steady from round {begun} on");
        assert!(
            truth.abs_diff(begun) <= 1,
            "{gigabytes} GB: full in round {truth}, steady from round {begun} on: {found}"
        );
        assert_eq!(found["rounds"], known, "it ends there");
        let (done, rest): (Vec<&Value>, Vec<&Value>) = steps.iter().partition(|step| round(step) <= known);
        assert!(done.iter().all(|step| step["state"] == "done"), "{gigabytes} GB");
        assert!(rest.iter().all(|step| step["state"] == "not run" && step["why_kind"] == "enough"), "{gigabytes} GB");
        assert_eq!((steps.len(), rest.len() as u64), (25 * 56, (25 - known) * 56));
        // Writes of 4 KiB at 2 MB/s.
        let iops = found["steady_iops"]["0-4KiB"].as_f64().unwrap();
        assert!((iops / (2e6 / 4096.0) - 1.0).abs() < 0.05, "{gigabytes} GB: {iops}");
        let told = home.run(&["show", "last"]).code(0).out;
        assert!(told.contains(&format!("steady state in rounds {begun} to {known}")), "{told}");
        assert!(told.contains(&format!("{} steps: what it would have shown was known by then", rest.len())), "{told}");
    }
}

/// It stalls for two seconds at some moment of every four: of two rounds no figure is the same.
#[test]
fn what_never_settles_is_given_up_after_25_rounds() {
    let home = Home::new();
    let toml = "channels = 4\n[read]\nlatency_us = 20000\n[write]\nlatency_us = 20000\n\
                [[stall]]\nperiod_ms = 4000\nlength_ms = 2000\nspread = 1";
    let document = home.json(&["run", "snia", "--on", &profile(&home, "restless", toml)]);
    let found = &document["method"]["figures"];
    assert_eq!((&found["rounds"], found.get("steady_at_round")), (&25.into(), None), "{found}");
    assert!(document["steps"].as_array().unwrap().iter().all(|step| step["state"] == "done"));
    assert_eq!(found["verdict"], "not steady after 25 rounds");
    let still = |rounds: usize| tracked(found).iter().all(|iops| holds_still(&iops[..rounds]));
    assert!((1..=25).all(|rounds| !still(rounds)), "{found}");
    let told = home.run(&["show", "last"]).code(0).out;
    assert!(told.contains("not steady after 25 rounds"), "{told}");
}

/// Two passes of writes first, then points of a minute: a device whose cache is full by then is steady at once.
#[test]
fn to_the_letter_the_rounds_meet_a_device_that_was_written_full() {
    let home = Home::new();
    let toml = "channels = 1\n[read]\nlatency_us = 20000\n[write]\nlatency_us = 20000\n\
                [cache]\ndrain_MBps = 0.1\nsize = \"1GB\"";
    let document = home.json(&["run", "snia", "--as-published", "--on", &profile(&home, "slow", toml)]);
    let (found, steps) = (&document["method"]["figures"], document["steps"].as_array().unwrap());
    assert_eq!(found["steady_at_round"], 5, "{found}");
    let written = steps[0]["write"]["ops"].as_f64().unwrap() * 131_072.0;
    assert_eq!((steps[0]["name"].as_str().unwrap(), written), ("precondition", 2.0 * 1_073_741_824.0));
    let points = &steps[1..1 + 5 * 56];
    assert!(points.iter().all(|step| step["job"]["runtime_s"] == 60.0 && step["elapsed_s"].as_f64().unwrap() >= 60.0));
    assert_eq!(steps.len(), 1 + 25 * 56);
}

/// Rounds with real operations, shortened: what is said follows from what was measured, whatever that was.
#[test]
fn scaled_rounds_run_really_and_say_so() {
    let home = Home::new();
    let place = home.work().display().to_string();
    // 49 points of 20 ms a round; one operation at a time, for the large buffers of many take longer than the points.
    let sets = ["--set", "size=16MiB", "--set", "depth=1"];
    let words = [&["run", "snia", "--as-published", "--scale", "1/3000", "--on", &place][..], &sets].concat();
    let document = home.json(&words);
    home.assert_clean(&home.work());
    let (found, steps) = (&document["method"]["figures"], document["steps"].as_array().unwrap());
    assert_eq!((&document["scale"], &document["as_published"]), (&"1/3000".into(), &true.into()));
    assert_eq!(steps[1]["job"]["runtime_s"], 0.02);
    assert_eq!(steps[0]["write"]["ops"], 256, "bytes are not scaled: two passes");
    let all = tracked(found);
    let rounds = found["rounds"].as_u64().unwrap() as usize;
    assert!(
        all.len() == 3 && all.iter().all(|iops| iops.len() == rounds && iops.iter().all(|value| *value > 0.0)),
        "{found}"
    );
    let first = (1..=rounds).find(|round| all.iter().all(|iops| holds_still(&iops[..*round])));
    println!("{}", found["verdict"]);
    match found["steady_at_round"].as_u64() {
        Some(round) => assert_eq!((first, rounds as u64), (Some(round as usize), round), "{found}"),
        None => {
            assert_eq!((first, rounds, &found["verdict"]), (None, 25, &"not steady after 25 rounds".into()), "{found}")
        }
    }
    let told = home.run(&["show", "last"]).code(0).out;
    assert!(told.contains("all durations are 1/3000 of what snia takes"), "{told}");
    // Nothing to shorten, and what is no part of one.
    home.run(&["run", "ping", "--on", &place, "--scale", "1/60", "--dry-run"])
        .code(2)
        .says(&["nothing that a scale could"]);
    let refused = home.run(&["run", "snia", "--on", &place, "--scale", "60"]).code(2).err;
    assert!(refused.contains("a part of one, such as 1/60"), "{refused}");
}

/// The writes before a review end when their rate holds still, and what follows is of a device that was written full.
#[test]
fn the_writes_before_a_review_end_when_they_hold_still() {
    let home = Home::new();
    let toml = "channels = 1\n[read]\nlatency_us = 5000\n[write]\nlatency_us = 500\n\
                [cache]\ndrain_MBps = 4\nidle_drain_MBps = 0.001\nsize = \"250MB\"";
    let disk = profile(&home, "disk", toml);
    let document = home.json(&["run", "ssd-review", "--set", "precondition=true", "--on", &disk]);
    let (found, steps) = (&document["method"]["figures"]["precondition"], document["steps"].as_array().unwrap());
    // 8.192 MB/s fill 250 MB, which empty at 4 MB/s, with the 489th megabyte: in the fifth round of 107 MB. Five alike
    // from then on, which are looked for once all was written: from the tenth on.
    let known = found["steady_at_round"].as_u64().unwrap() as usize;
    assert_eq!(known, 10, "{found}");
    assert!(holds_still(&tracked(&document["method"]["figures"]["precondition"])[0]), "{found}");
    let states: Vec<&str> = steps[..20].iter().map(|step| step["state"].as_str().unwrap()).collect();
    assert!(states[..known].iter().all(|state| *state == "done"), "{states:?}");
    assert!(states[known..].iter().all(|state| *state == "not run"), "{states:?}");
    assert!(steps[20..].iter().all(|step| step["state"] == "done"));
    let write = steps.iter().find(|step| step["name"] == "depth-rand-write-qd4").unwrap();
    assert!((write["write"]["MBps"].as_f64().unwrap() / 4.0 - 1.0).abs() < 0.05, "{write}");
    let told = home.run(&["show", "last"]).code(0).out;
    assert!(told.contains("written full before: steady state in rounds"), "{told}");
}
