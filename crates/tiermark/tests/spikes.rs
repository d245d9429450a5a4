//! Slow requests that were made slow on purpose, on a real redis-server: a fork, a command that takes long, a sync that hangs, a
//! program that wants the processors too. Each is named as the main cause, and where none was made none is claimed. In the full tests
//! ten times each, of which nine must be right. Needs root, and redis-server.
#![forbid(unsafe_code)]

mod common;

use common::machine::{alone, machine};
use common::{Home, Need, Place, full, possible, sh, try_sh};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn can(test: &str) -> bool {
    possible(test, &[Need::Root, Need::Loops]) && possible(test, &[Need::Tool("redis-server"), Need::Tool("redis-cli")])
}

/// What is told of the one cell of a run at a rate, while `meanwhile` goes on.
fn told(home: &Home, on: &str, more: &[&str], meanwhile: impl FnOnce()) -> Value {
    let mut words = vec!["load", "redis", "--on", on, "--rate", "3000", "--runtime", "6s", "--repeat", "1"];
    words.extend(["--threads", "1", "--link", "unix", "--json"]);
    words.extend(more);
    let running = home.start(&words);
    meanwhile();
    let document = common::finish(running).code(0).json();
    document["cells"][0].clone()
}

/// The socket below this folder, once the server holds so many keys.
fn filled(below: &Path, keys: u64) -> PathBuf {
    let mut found = PathBuf::new();
    common::patiently("the keys are set", || {
        let folders = std::fs::read_dir(below).into_iter().flatten().flatten();
        let mut sockets = folders.map(|folder| folder.path().join("socket")).filter(|socket| socket.exists());
        sockets.any(|socket| {
            let asked = try_sh(&format!("redis-cli -s {} dbsize", socket.display()));
            found = socket;
            asked.is_ok_and(|said| said.trim() == keys.to_string())
        })
    });
    found
}

/// A program that only counts, ended when dropped.
struct Hog(Vec<Child>);

impl Hog {
    fn new(count: usize) -> Self {
        let one = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        Hog((0..count).map(|_| one()).collect())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// So often as the tests are long, and how often it was right.
fn rounds(what: &str, mut one: impl FnMut() -> Value, right: impl Fn(&Value) -> bool) {
    let count = if full() { 10 } else { 1 };
    let mut wrong = Vec::new();
    for _ in 0..count {
        let cell = one();
        if !right(&cell) {
            wrong.push(format!("{} {}", cell["causes"], cell["spikes"]));
        }
    }
    println!("{what}: {} of {count} right {wrong:?}", count - wrong.len());
    assert!(10 * wrong.len() <= count, "{what}: {wrong:#?}");
}

fn main_is(cell: &Value, name: &str) -> bool {
    cell["causes"][0]["name"] == name
}

#[test]
fn what_was_made_on_purpose_is_named() {
    if !can("what_was_made_on_purpose_is_named") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let here = work.to_str().unwrap();
    let keys = |count: &'static str| ["--keys", count, "--mode", "memory-only", "--payload", "16"];
    let long = || {
        told(&place.home, here, &keys("1000000"), || {
            let socket = filled(&work, 1_000_000);
            std::thread::sleep(Duration::from_millis(2500));
            sh(&format!("redis-cli -s {} keys '*' > /dev/null", socket.display()));
        })
    };
    rounds("a command that takes long", long, |cell| {
        main_is(cell, "command") && cell["causes"][0]["who"].as_str().is_some_and(|who| who.starts_with("keys"))
    });
    if full() {
        let fork = || told(&place.home, here, &["--keys", "200000", "--mode", "rdb", "--payload", "512"], || {});
        rounds("a fork", fork, |cell| main_is(cell, "fork"));
        let hog = || {
            let _hog = Hog::new(2);
            told(&place.home, here, &keys("20000"), || {})
        };
        rounds("a hog", hog, |cell| main_is(cell, "processor"));
        let hangs = || {
            let always =
                ["--mode", "aof-always", "--keys", "2000", "--size", "512MiB", "--rate", "100", "--payload", "64"];
            let mut words =
                vec!["load", "redis", "--on", "sd-evo-pi5", "--runtime", "8s", "--repeat", "1", "--threads", "1"];
            words.extend(["--json"].iter().chain(&always));
            let mut running = place.home.start(&words);
            running.until("the disk is mounted", || machine()["mounts"] != before["mounts"]);
            std::thread::sleep(Duration::from_secs(5));
            let listed = place.home.json(&["emulate", "list"]);
            let name = listed["disks"][0]["name"].as_str().unwrap().to_owned();
            place.home.run(&["emulate", "fault", &name, "stall:on=flush,for=500ms,times=1"]).code(0);
            common::finish(running).code(0).json()["cells"][0].clone()
        };
        rounds("a sync that hangs", hangs, |cell| main_is(cell, "own-sync"));
        let nothing = || told(&place.home, here, &keys("20000"), || {});
        rounds("nothing", nothing, |cell| cell["causes"].as_array().is_some_and(Vec::is_empty));
    }
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
}
