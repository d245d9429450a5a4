//! The pager on a real kernel: a program goes through memory that does not fit, with it and without, and is none the worse when the
//! pager is killed.
#![forbid(unsafe_code)]

mod common;

use common::machine::{alone, machine};
use common::{Need, Place, possible};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn can(test: &str) -> bool {
    if !possible(test, &[Need::Root, Need::Loops]) {
        return false;
    }
    let v2 = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let cgroup = v2.contains("memory") || Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !cgroup {
        println!("SKIP {test}: needs a memory cgroup");
        return false;
    }
    true
}

const SCAN: [&str; 12] = [
    "load",
    "swap",
    "--pattern",
    "cyclic",
    "--content",
    "random",
    "--size",
    "256M",
    "--memory",
    "200M",
    "--swap",
    "disk-425",
];

/// Bytes a second in the second half of the time.
fn settled(place: &Place, options: &[&str]) -> f64 {
    place.home.json(&[&SCAN[..], options].concat());
    let record = place.home.last();
    let end = record.intervals.last().unwrap().1.end;
    let late = record.intervals.iter().filter(|(_, interval)| interval.start.0 * 2 > end.0);
    late.map(|(_, interval)| interval.read.bytes).sum::<u64>() as f64 / (end.secs() / 2.0)
}

#[test]
fn a_cyclic_scan_goes_several_times_as_fast() {
    let test = "a_cyclic_scan_goes_several_times_as_fast";
    if !can(test) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let kernel = settled(&place, &["--runtime", "5s"]);
    let paged = settled(&place, &["--runtime", "12s", "--pager"]);
    let seen = place.home.last().steps[0].load.clone().unwrap().paged.unwrap();
    if let Some(trouble) = seen.trouble {
        return println!("SKIP {test}: {trouble}");
    }
    // Some ten times on a machine that has nothing else to do.
    assert!(paged > 2.0 * kernel, "{paged} {kernel} {seen:?}");
    assert!(seen.kept.0 > 100 << 20 && seen.laps > 2, "{seen:?}");
    assert_eq!(machine(), before);
}

/// What is brought in of a file counts against the program's own limit, so that as much is read again as has no room.
#[test]
fn mapped_weights_are_multiplied_several_times_as_fast_within_their_limit() {
    let test = "mapped_weights_are_multiplied_several_times_as_fast_within_their_limit";
    if !can(test) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let decode = |options: &[&str]| {
        let shape = ["load", "decode", "--shape", "layers=5,embd=2048,quant=Q8_0", "--mapped", "--memory", "250M"];
        let document = place
            .home
            .json(&[&shape[..], &["--swap", "disk-425", "--prompt", "2", "--context", "64"], options].concat());
        let of = |key: &str| document["rows"][0][key].as_f64().unwrap();
        (of("tps"), of("bytes_per_token"), of("touched_per_token"))
    };
    let (kernel, ..) = decode(&["--tokens", "4"]);
    let (paged, read, touched) = decode(&["--tokens", "40", "--pager"]);
    let seen = place.home.last().steps[0].load.clone().unwrap().paged.unwrap();
    if let Some(trouble) = seen.trouble {
        return println!("SKIP {test}: {trouble}");
    }
    println!("{kernel} without, {paged} with the pager; {read} of {touched} read a token; {seen:?}");
    assert!(paged > 1.5 * kernel && seen.laps > 2, "{paged} {kernel} {seen:?}");
    assert!(read > 0.7 * (touched - 250.0 * 1048576.0), "{read} of {touched} B a token: it has more than its limit");
    assert_eq!(machine(), before);
}

#[test]
fn who_is_not_there_is_said_in_a_sentence() {
    let program = env!("CARGO_BIN_EXE_tiermark");
    let said = |words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, sentence) = said(&["pager", "--pid", "4194000"]);
    assert!(code == Some(4) && sentence.contains("4194000") && sentence.lines().count() == 1, "{code:?} {sentence}");
    let (code, sentence) = said(&["pager", "--name", "nobody-has-it"]);
    assert!(code == Some(4) && sentence.contains("no process is called"), "{code:?} {sentence}");
    assert_eq!(said(&["pager"]).0, Some(2));
}

fn helping(script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tiermark"));
    command.args(["pager", "--live", "--", "sh", "-c", script]);
    command
}

// Where the kernel does not let it help, the program runs on all the same: neither needs any right.
#[test]
fn a_command_keeps_its_exit_status() {
    let output = helping("sleep 0.3; exit 7").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    // Nobody reads what is told.
    let mut child = helping("sleep 2.5; exit 7").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_command_is_told_to_end_and_waited_for() {
    let script = "trap 'echo told; exit 3' TERM; echo ready; while :; do sleep 0.1; done";
    let mut child = helping(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "ready"));
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(lines.any(|line| line.unwrap() == "told"));
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
