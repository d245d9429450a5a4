//! `prove` on this machine: what helps is said to help and by how much, what does nothing to do nothing, and every setting is as it
//! was, also after a kill in mid-turn.
#![forbid(unsafe_code)]

mod common;

use common::machine::alone;
use common::{Emulated, Home, Need, Place, emulation, full, possible};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// A setting that no work here feels: how often counters of the kernel's virtual memory are brought together.
const PLACEBO: &str = "vm.stat_interval";

fn readahead(disk: &Emulated<'_>) -> String {
    format!("/sys/block/{}/queue/read_ahead_kb", disk.device.trim_start_matches("/dev/"))
}

/// Reading in order through the page cache.
fn reading(disk: &Emulated<'_>) -> String {
    let device = &disk.device;
    format!(
        "job --set rw=read --set direct=false --set invalidate=true --set size=32M --set runtime=200ms --on {device}"
    )
}

#[test]
fn what_helps_is_told_from_what_hurts_and_kept() {
    if !emulation("what_helps_is_told_from_what_hurts_and_kept", &[]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let home = &place.home;
    // A profile that waits a tenth of a millisecond for each request: large ones are worth it.
    fs::write(home.path().join("slow.toml"), "name = \"slow\"\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100\n")
        .unwrap();
    let disk = place.start_as("./slow.toml", &["--size", "64MiB"]);
    let setting = readahead(&disk);
    let before = fs::read_to_string(&setting).unwrap();
    let (more, less) = (format!("{setting}=1024"), format!("{setting}=4"));
    let prove = |set: &str, against: &str| {
        let words = ["prove", "--set", set, "--against", against, "--with", &reading(&disk), "--pairs", "8"];
        home.json(&words.map(str::to_owned))
    };
    let helped = prove(&more, &less);
    assert_eq!(helped["verdict"], "helped", "{helped}");
    let effect = &helped["effect_percent"];
    let of = |key: &str| effect[key].as_f64().unwrap();
    assert!(100.0 < of("low") && of("low") <= of("mid") && of("mid") <= of("high"), "{effect}");
    assert_eq!((helped["of"].as_str().unwrap(), helped["turns"].as_array().unwrap().len()), ("MB/s", 17));
    let hurt = prove(&less, &more);
    assert_eq!(hurt["verdict"], "hurt", "{hurt}");
    assert_eq!(fs::read_to_string(&setting).unwrap(), before);
    let kept = home.json(&["prove"]);
    let verdicts: Vec<&Value> = kept["proofs"].as_array().unwrap().iter().map(|proof| &proof["verdict"]).collect();
    assert_eq!(verdicts, ["hurt", "helped"]);
    let text = home.run(&["prove"]).code(0).out;
    assert!(text.contains("proof 2") && text.contains("helped by") && text.contains("99 % interval"), "{text}");
    disk.stop();
    place.assert_clean();
}

/// At the 1 % level one of a hundred is wrong; that two of twenty are has a chance of one in sixty.
#[test]
fn what_does_nothing_is_told_to_do_nothing() {
    let name = "what_does_nothing_is_told_to_do_nothing";
    if !possible(name, &[Need::Root]) {
        return;
    }
    let _alone = alone();
    let home = Home::new();
    let before = fs::read_to_string("/proc/sys/vm/stat_interval").unwrap();
    let dir = home.work();
    let work = format!("job --set rw=randread --set size=8M --set runtime=100ms --on {}", dir.display());
    let all = if full() { 20 } else { 2 };
    let proof = || {
        let set = format!("{PLACEBO}={}", before.trim().parse::<u64>().unwrap() + 1);
        home.json(&["prove", "--set", &set, "--with", &work, "--pairs", "8"].map(str::to_owned))
    };
    let proofs: Vec<Value> = (0..all).map(|_| proof()).collect();
    let none = proofs.iter().filter(|proof| proof["verdict"] == "no effect").count();
    println!("no effect: {none} of {all}");
    assert!(none + 1 >= all, "{proofs:#?}");
    assert_eq!(fs::read_to_string("/proc/sys/vm/stat_interval").unwrap(), before);
    home.assert_clean(&dir);
}

#[test]
fn a_kill_in_mid_turn_leaves_no_setting() {
    if !possible("a_kill_in_mid_turn_leaves_no_setting", &[Need::Root]) {
        return;
    }
    let _alone = alone();
    let home = Home::new();
    let path = "/proc/sys/vm/stat_interval";
    let before = fs::read_to_string(path).unwrap();
    let work = format!("job --set rw=randread --set size=8M --set runtime=20s --on {}", home.work().display());
    let set = format!("{PLACEBO}=77");
    let mut running = home.start(&["prove", "--set", &set, "--against", "vm.stat_interval=78", "--with", &work]);
    running.until("the setting is another", || fs::read_to_string(path).unwrap().trim() == "78");
    running.signal(Signal::KILL);
    let _ = common::finish(running);
    assert_eq!(fs::read_to_string(path).unwrap().trim(), "78");
    let said = home.run(&["tiers"]).code(0);
    assert!(said.err.contains("stat_interval") && said.err.contains("was set back"), "{}", said.err);
    assert_eq!(fs::read_to_string(path).unwrap(), before);
    // What was begun is kept, and is no verdict.
    let kept = home.json(&["prove"]);
    assert_eq!(kept["proofs"][0]["verdict"], "unknown", "{kept}");
}

#[test]
fn what_cannot_be_proven_is_told_in_a_sentence() {
    let mut home = Home::new();
    let work = home.work();
    let on = work.to_str().unwrap();
    let job = format!("job --on {on}");
    let no = |words: &[&str], code: i32, says: &[&str]| {
        let words: Vec<String> = std::iter::once("prove").chain(words.iter().copied()).map(str::to_owned).collect();
        home.run(&words).code(code).says(says);
    };
    no(&["page-cluster"], 2, &["--with"]);
    no(&["--with", &job], 2, &["names nothing that differs"]);
    no(&["--set", "vm.page-cluster", "--with", &job], 2, &["SETTING=VALUE"]);
    no(&["--set", "vm.no_such_thing=1", "--with", &job], 2, &["has no /proc/sys/vm/no_such_thing"]);
    no(&["--set", "vm.page-cluster=1", "--with", "check"], 2, &["`run` and `load`"]);
    no(&["--set", "vm.page-cluster=1", "--with", "job --no-such"], 2, &["--no-such"]);
    no(&["--set", "vm.page-cluster=1", "--with", "job --on 'x"], 2, &["quote"]);
    no(&["--set", "vm.page-cluster=1", "--with", &job, "--pairs", "7"], 2, &["takes 8"]);
    no(&["--set", "vm.page-cluster=1", "--against", "vm.swappiness=1", "--with", &job], 2, &["--against"]);
    no(
        &["--set", "vm.page-cluster=1", "--with", "load swap --memory 128M --size 256M --swap zram --page-cluster 3"],
        2,
        &["sets page-cluster itself"],
    );
    no(&["999999", "--with", &job], 2, &["999999"]);
    no(&["no-such-rule", "--with", &job], 2, &["no-such-rule"]);
    let dry = home.run(&["prove", "--set", "vm.page-cluster=1", "--with", &job, "--dry-run"]).code(0).out;
    assert!(dry.contains("→ 1") && dry.contains("10 pairs"), "{dry}");
    home.as_an_ordinary_user();
    home.run(&["prove", "--set", "vm.page-cluster=1", "--with", &job]).code(4).says(&["root"]);
}

/// What takes a reboot has its two sides in two boots; here both are made of runs of this one.
#[test]
fn two_sides_of_a_reboot_make_a_verdict_too() {
    let home = Home::new();
    let work = home.work();
    let mut runs = Vec::new();
    for size in ["rate=40", "rate=400"] {
        for _ in 0..5 {
            let on = work.to_str().unwrap();
            let words =
                ["run", "job", "--set", "rw=randread", "--set", "size=8M", "--set", "runtime=300ms", "--set", size];
            home.run(&[&words[..], &["--on", on]].concat()).code(0);
            runs.push(home.last().run.id);
        }
    }
    let turn = |(at, run): (usize, &String)| record::Turn {
        run: run.clone(),
        changed: at >= 5,
        pair: Some(at as u32 % 5),
        boot: Some(format!("boot {}", at / 5)),
    };
    let mut proof = record::Proof {
        started: basics::Nanos(1),
        rules: vec!["cgroup-memory".to_owned()],
        applied: Some("1".to_owned()),
        differs: vec!["cgroup_enable=memory".to_owned()],
        with: "job".to_owned(),
        interleaved: false,
        seed: 0,
        turns: runs.iter().enumerate().map(turn).collect(),
    };
    let mut store = record::Store::open(&home.database()).unwrap();
    store.keep_proof(None, &proof).unwrap();
    proof.turns.truncate(7);
    store.keep_proof(None, &proof).unwrap();
    drop(store);
    let kept = home.json(&["prove"]);
    let (half, whole) = (&kept["proofs"][0], &kept["proofs"][1]);
    assert_eq!((half["verdict"].as_str(), whole["verdict"].as_str()), (Some("unknown"), Some("helped")), "{kept}");
    assert!(half["notes"][0].as_str().unwrap().contains("2 turns after"), "{half}");
    let mid = whole["effect_percent"]["mid"].as_f64().unwrap();
    assert!(mid > 100.0, "{whole}");
    assert!(home.run(&["prove"]).code(0).out.contains("across a reboot"));
}

/// The article's question, on a disk that answers like an Optane: does reading ahead help swap there?
#[test]
fn page_cluster_is_proven_on_an_emulated_disk() {
    let name = "page_cluster_is_proven_on_an_emulated_disk";
    if !full() {
        return println!("SKIP {name}: takes minutes; TIERMARK_TEST_FULL=1 runs it");
    }
    if !emulation(name, &["mkswap"]) {
        return;
    }
    let _alone = alone();
    let home = Home::new();
    let work = "load swap --size 200M --memory 100M --swap optane-pi5 --runtime 2s";
    let proof = home.json(&["prove", "--set", "vm.page-cluster=5", "--against", "vm.page-cluster=0", "--with", work]);
    println!("{} {}", proof["verdict"], proof["effect_percent"]);
    assert_eq!(proof["verdict"], "helped", "{proof}");
}
