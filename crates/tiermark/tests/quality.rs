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

/// Memory is fixed before the first operation: more of them take no more of it.
#[test]
fn memory_does_not_grow_with_the_operations() {
    let home = Home::new();
    let held = |operations: &str| peak(&home, &job(&[&format!("operations={operations}"), "runtime=0"], "null"));
    let (few, many) = (held("100000"), held("20000000"));
    assert!(many < few + 2 * MIB, "{few} bytes for 100000 operations, {many} for 200 times as many");
}
