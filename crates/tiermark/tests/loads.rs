//! Workloads under pressure: each tier for swap is set up, measured and taken away, and the machine is as before, also after
//! SIGKILL at any moment and one more command.
#![forbid(unsafe_code)]

mod common;

use common::machine::{alone, machine};
use common::{Home, Need, Place, Random, full, has_keys, possible};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

fn has_memory_cgroup() -> bool {
    let v2 = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    v2.contains("memory") || Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists()
}

fn can(test: &str) -> bool {
    if !possible(test, &[Need::Root, Need::Loops]) {
        return false;
    }
    if !Path::new("/sys/class/zram-control/hot_add").exists() || !has_memory_cgroup() {
        println!("SKIP {test}: needs zram and a memory cgroup");
        return false;
    }
    true
}

/// The rows of a run by their tiers.
fn rows(document: &Value) -> BTreeMap<String, Value> {
    let rows = document["rows"].as_array().unwrap_or_else(|| panic!("{document}"));
    rows.iter().map(|row| (row["tier"].as_str().unwrap().to_owned(), row.clone())).collect()
}

fn of(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {row}"))
}

/// A small ladder: what does not fit says so, compression is told from disks, and nothing is left of any rung.
#[test]
fn each_tier_is_set_up_measured_and_taken_away() {
    if !can("each_tier_is_set_up_measured_and_taken_away") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let zswap = format!("zswap+{}", work.display());
    let mut words =
        vec!["load", "swap", "--size", "192M", "--memory", "96M", "--runtime", "1500ms", "--page-cluster", "4"];
    for tier in ["none", "zram", &zswap, work.to_str().unwrap(), "optane-pi5", "optane-pi5,optane-pi5"] {
        words.extend(["--swap", tier]);
    }
    let document = place.home.json(&words);
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
    let rows = rows(&document);
    let why = |tier: &str| rows[tier]["why"].as_str().unwrap().to_owned();
    assert!(why("none").contains("does not fit") && rows["none"].get("MBps").is_none(), "{}", rows["none"]);
    for tier in ["zram", &zswap, "optane-pi5", "optane-pi5,optane-pi5"] {
        let row = &rows[tier];
        has_keys(row, "passes_per_s MBps major_faults_per_s fault_us cpu_percent iowait_percent why visits");
        assert!(of(row, "MBps") > 1.0 && of(row, "major_faults_per_s") > 10.0, "{row}");
        assert!(of(&row["fault_us"], "p50") <= of(&row["fault_us"], "p99"), "{row}");
        let passes = of(row, "MBps") / of(row, "passes_per_s");
        assert!((passes / 192.0 / 1.048_576 - 1.0).abs() < 0.01, "{row}");
    }
    assert!(why("zram").contains("compression holds it"), "{}", why("zram"));
    assert!(why("optane-pi5").contains("of the disk's rate"), "{}", why("optane-pi5"));
    // A fault of an emulated Optane takes what its profile says, and the kernel's own; not what this machine's disk takes.
    let fault = of(&rows["optane-pi5"]["fault_us"], "p50");
    assert!(fault >= 100.0, "{fault}");
    let (one, two) = (of(&rows["optane-pi5"], "disk_MBps"), of(&rows["optane-pi5,optane-pi5"], "disk_MBps"));
    if full() {
        // Compression is quicker than a disk. Two disks bring twice as much, but two emulators on two cores are in each other's way. On a
        // machine that has other things to do none of it holds.
        assert!(of(&rows["zram"], "MBps") > of(&rows["optane-pi5"], "MBps"), "{rows:#?}");
        assert!(fault < 2000.0 && two / one > 1.2, "{fault} {one} {two}");
    }
    let record = place.home.last();
    let load = record.steps[1].load.as_ref().unwrap();
    assert_eq!(load.settings["/proc/sys/vm/page-cluster"], "4");
    let zram = load.areas[0].compressed.as_ref().unwrap();
    let ratio = zram.original.0 as f64 / zram.compressed.0 as f64;
    assert!((1.5..2.5).contains(&ratio), "{zram:?}");
    assert!(load.peak.unwrap().0 <= 97 << 20, "{:?}", load.peak);
    // The same record says the same again, in text too.
    let text = place.home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("does not fit") && text.contains("optane-pi5,optane"), "{text}");
}

/// What the memory curve says of two other limits is what is then seen there: faults for each pass, which a busy machine does not
/// change, and in the full tests its speed too.
#[test]
fn other_limits_bring_what_the_curve_says() {
    let test = "other_limits_bring_what_the_curve_says";
    if !can(test) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let run = |pattern: &str, memory: &str, time: &str, more: &[&str]| {
        let mut words = vec!["load", "swap", "--size", "128M", "--swap", "zram", "--pattern", pattern];
        words.extend(["--memory", memory, "--runtime", time]);
        words.extend(more);
        rows(&place.home.json(&words))["zram"].clone()
    };
    let a_pass = |row: &Value| of(row, "major_faults_per_s") / of(row, "passes_per_s");
    let near = |what: &str, said: f64, seen: f64| {
        println!("{what}: {said:.3} said, {seen:.3} seen");
        assert!((said / seen - 1.0).abs() < 0.2, "{what}: {said} said, {seen} seen");
    };
    for pattern in ["random", "cyclic"] {
        let watched = run(pattern, "80M", "6s", &["--curve", "56M,104M"]);
        let curve = &watched["curve"];
        has_keys(curve, "resident_B known_B whole_B missed_B_per_s stalled overhead watched_s points predictions why");
        assert!(of(curve, "overhead") < 0.2, "{curve}");
        let said = curve["predictions"].as_array().unwrap();
        assert_eq!(said.len(), 2);
        for (said, limit) in said.iter().zip(["56M", "104M"]) {
            has_keys(said, "memory_B speed passes_per_s major_faults_per_s known");
            assert_eq!(said["known"], true, "{curve}");
            near(
                &format!("faults a pass, {pattern} in {limit}"),
                a_pass(said),
                a_pass(&run(pattern, limit, "2s", &[])),
            );
        }
        if pattern == "cyclic" {
            assert!(curve["why"].as_str().unwrap().starts_with("less than all that it lacks brings little"), "{curve}");
        }
    }
    if full() {
        // The machine is not the same all the time: each beside the others, and the middle of three.
        let mut speeds: [Vec<(f64, f64)>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..3 {
            let watched = run("random", "80M", "6s", &["--curve", "56M,104M"]);
            for (at, limit) in ["56M", "104M"].into_iter().enumerate() {
                let said = of(&watched["curve"]["predictions"][at], "passes_per_s");
                speeds[at].push((said, of(&run("random", limit, "6s", &[]), "passes_per_s")));
            }
        }
        for all in &mut speeds {
            all.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            near("passes a second", all[1].0, all[1].1);
        }
    }
    // Asked for nothing in particular, it says what is worth asking for; and one that fits needs no more.
    let fits = run("random", "192M", "3s", &["--curve"]);
    assert!(fits["curve"]["why"].as_str().unwrap().contains("all that it needs is in RAM"), "{fits}");
    let text = place.home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("all that it needs is in RAM") && text.contains("144 MiB"), "{text}");
    assert_eq!(machine(), before);
}

#[test]
fn interrupted_it_takes_everything_away() {
    if !can("interrupted_it_takes_everything_away") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let words = ["load", "swap", "--size", "128M", "--memory", "64M", "--runtime", "60s", "--swap", "zram"];
    let mut running = place.home.start_leading(&words);
    running.until("the swap area is on", || machine()["/proc/swaps"] != before["/proc/swaps"]);
    std::thread::sleep(Duration::from_millis(700));
    // As Ctrl-C at a terminal: everybody in the program's group hears it.
    let group = rustix::process::Pid::from_raw(running.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    let told = common::finish(running).code(130);
    assert_eq!(place.home.last().steps[0].ended_by, "interrupted");
    assert_eq!(machine(), before, "{told:?}");
    assert_eq!(place.home.journal(), [""; 0]);
}

/// SIGKILL at moments that nobody chose, then any command.
#[test]
fn killed_at_any_moment_the_next_command_takes_everything_away() {
    if !can("killed_at_any_moment_the_next_command_takes_everything_away") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let zswap = format!("zswap:lzo:25+{}", place.home.work().display());
    let words = [
        "load",
        "swap",
        "--size",
        "96M",
        "--memory",
        "48M",
        "--runtime",
        "500ms",
        "--page-cluster",
        "5",
        "--swap",
        "zram",
        "--swap",
        &zswap,
        "--swap",
        "optane-pi5,optane-pi5",
    ];
    let mut random = Random(u64::from(std::process::id()));
    let mut changed = 0;
    for round in 0..if full() { 30 } else { 5 } {
        let moment = Duration::from_millis(random.below(9000));
        let running = place.home.start(&words);
        std::thread::sleep(moment);
        running.signal(Signal::KILL);
        drop(running);
        changed += usize::from(machine() != before);
        let told = place.home.run(&["tiers"]).code(0);
        assert_eq!(machine(), before, "round {round}, after {moment:?}: {}", told.err);
        assert_eq!(place.home.journal(), [""; 0], "round {round}, after {moment:?}: {}", told.err);
        assert_eq!(place.home.left_in(&place.home.work()), [""; 0]);
    }
    assert!(changed > 0, "no kill ever left anything behind: the test has lost its grip");
}

#[test]
fn what_makes_no_sense_is_one_sentence() {
    let home = Home::new();
    let said = |words: &[&str], code: i32| home.run(words).code(code).sentence().to_owned();
    assert!(said(&["load", "swap", "--swap", "none"], 2).contains("--memory"));
    assert!(said(&["load", "swap", "--memory", "600M", "--swap", "floppy"], 2).contains("floppy"));
    assert!(said(&["load", "swap", "--memory", "many", "--swap", "none"], 2).contains("--memory"));
    let plan = home.json(&["load", "swap", "--memory", "600M", "--swap", "none", "--swap", "zram", "--dry-run"]);
    assert_eq!(plan["steps"].as_array().unwrap().len(), 2);
}

/// Somebody's shell, which is not tiermark's.
struct Shell {
    child: std::process::Child,
    joined: AtomicBool,
}

impl Shell {
    fn start() -> Self {
        let mut command = std::process::Command::new("sh");
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        Shell { child: command.spawn().unwrap(), joined: AtomicBool::new(false) }
    }

    /// Put into tiermark's memory group, if there is one now.
    fn is_in_a_group_of_ours(&self) -> bool {
        let groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"].map(fs::read_dir).into_iter().flatten().flatten();
        let ours = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("tiermark-");
        for group in groups.flatten().map(|entry| entry.path()).filter(ours) {
            if fs::write(group.join("cgroup.procs"), self.child.id().to_string()).is_ok() {
                self.joined.store(true, Relaxed);
            }
        }
        self.was_in_a_group_of_ours()
    }

    fn was_in_a_group_of_ours(&self) -> bool {
        self.joined.load(Relaxed)
    }

    fn answer(&mut self, question: &str) -> String {
        writeln!(self.child.stdin.as_mut().unwrap(), "{question}").unwrap();
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ballast in the cgroup, random touches, a card below: the run ends by itself, says why, and keeps what it had measured.
#[test]
fn the_watchdog_ends_a_run_that_only_waits() {
    if !can("the_watchdog_ends_a_run_that_only_waits") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let words = [
        "load",
        "swap",
        "--pattern",
        "random",
        "--size",
        "160M",
        "--memory",
        "160M",
        "--lock",
        "80M",
        "--swap",
        "sd-evo-pi5",
        "--watchdog",
        "40",
        "--runtime",
        "90s",
        "--json",
    ];
    let mut shell = Shell::start();
    let done = AtomicBool::new(false);
    let document = std::thread::scope(|scope| {
        // Into the group once it is there, as somebody would who looks what is slow.
        scope.spawn(|| {
            while !done.load(Relaxed) && !shell.is_in_a_group_of_ours() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let document = place.home.run(&words).code(1).json();
        done.store(true, Relaxed);
        document
    });
    assert!(shell.was_in_a_group_of_ours(), "the group was never seen");
    assert_eq!(shell.answer("echo it goes on"), "it goes on");
    assert_eq!(machine(), before);
    let step = &document["steps"][0];
    assert_eq!(step["state"], "failed", "{step}");
    // Ended within ten seconds of the moment in which the limit was reached: what was stalled for less than the window of ten
    // seconds cannot have been over it before.
    let elapsed = document["elapsed_s"].as_f64().unwrap();
    println!("the run took {elapsed} s of 90");
    assert!(elapsed < 80.0, "{elapsed}");
    assert_eq!(step["ended_by"], "watchdog", "{step}");
    assert!(rows(&document)["sd-evo-pi5"]["why"].as_str().unwrap().contains("40 % was the limit"), "{document}");
    let record = place.home.last();
    assert!(record.steps[0].load.is_some());
}
