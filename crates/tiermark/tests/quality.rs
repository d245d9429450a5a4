//! What users feel and no one measures twice: how large the program is, and how much memory a run takes.
#![forbid(unsafe_code)]

mod common;

use common::{Home, finish, job};
use std::fs;

const MIB: u64 = 1 << 20;

#[test]
fn the_program_is_small() {
    if cfg!(debug_assertions) {
        println!("SKIP the_program_is_small: it is built without optimisation; see `cargo test --release`");
        return;
    }
    let size = fs::metadata(assert_cmd::cargo::cargo_bin!("tiermark")).unwrap().len();
    assert!(size < 20_000_000, "{size} bytes");
}

/// The most memory that a run ever held at once, in bytes.
fn peak(home: &Home, words: &[String]) -> u64 {
    let mut running = home.start(words);
    let status = format!("/proc/{}/status", running.id());
    let mut peak = 0;
    running.until("it ends", || {
        let Ok(text) = fs::read_to_string(&status) else { return true };
        // A process that has ended has none.
        let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) else { return true };
        peak = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
        false
    });
    finish(running).code(0);
    peak
}

#[test]
fn a_run_takes_less_than_40_mb_beside_its_buffers() {
    let home = Home::new();
    for (threads, depth) in [(1, 1), (1, 32), (16, 64)] {
        for engine in ["psync", "io_uring"] {
            // A plain call has one buffer a thread, a ring one for each operation in flight.
            let in_flight = if engine == "psync" { threads } else { threads * depth };
            let settings = [
                "rw=randrw".to_owned(),
                "size=32MiB".to_owned(),
                "runtime=1s".to_owned(),
                format!("threads={threads}"),
                format!("depth={depth}"),
                format!("engine={engine}"),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let peak = peak(&home, &job(&settings, home.work()));
            let beside = peak.saturating_sub(in_flight * 4096);
            assert!(beside > MIB, "{peak} bytes at the peak: the test has lost its grip");
            assert!(beside < 40_000_000, "{threads} × {depth}, {engine}: {beside} bytes beside the buffers");
        }
    }
}

/// Thousands of intervals go to the spool and to the database one by one; whoever shows or reports the run packs them.
#[test]
fn thousands_of_intervals_take_no_more_memory() {
    let home = Home::new();
    let run = peak(&home, &job(&["rw=randrw", "interval=1ms", "runtime=4s", "depth=4"], "null"));
    let intervals = home.last().intervals.len();
    assert!(intervals > 2000, "{intervals} intervals: the test has lost its grip");
    let report = home.path().join("report.html").display().to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let shown = peak(&home, &words(&["show", "last"]));
    let reported = peak(&home, &words(&["report", "last", "--out", &report]));
    for (what, peak) in [("run", run), ("show", shown), ("report", reported)] {
        assert!(peak > MIB, "{what}: {peak} bytes at the peak: the test has lost its grip");
        assert!(peak < 40_000_000, "{what}: {peak} bytes with {intervals} intervals");
    }
}

/// Memory is fixed before the first operation: more of them take no more of it.
#[test]
fn memory_does_not_grow_with_the_operations() {
    let home = Home::new();
    let held = |operations: &str| peak(&home, &job(&[&format!("operations={operations}"), "runtime=0"], "null"));
    let (few, many) = (held("100000"), held("20000000"));
    assert!(many < few + 2 * MIB, "{few} bytes for 100000 operations, {many} for 200 times as many");
}
