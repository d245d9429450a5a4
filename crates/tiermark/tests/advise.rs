//! Advice through the whole program: a real redis-server starts with the file that follows from it, what was measured on this
//! machine is what it stands on, and made-up machines are told what fits them.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, has_keys, possible};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A captured machine of the crate that reads them.
fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees").join(name)
}

fn rules(document: &Value) -> Vec<&str> {
    document["recommendations"].as_array().unwrap().iter().map(|said| said["rule"].as_str().unwrap()).collect()
}

fn said<'a>(document: &'a Value, rule: &str) -> &'a Value {
    let all = document["recommendations"].as_array().unwrap();
    all.iter().find(|said| said["rule"] == rule).unwrap_or_else(|| panic!("no {rule}: {document}"))
}

/// The lines of a file, without comments.
fn settings(document: &Value, file: &str) -> String {
    let files = document["files"].as_array().unwrap();
    let text = files.iter().find(|made| made["name"] == file).map_or("", |made| made["text"].as_str().unwrap());
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A server that goes when the test ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What it says to `CONFIG GET *`.
fn configuration(conf: &Path, folder: &Path) -> BTreeMap<String, String> {
    let socket = folder.join("socket");
    let mut command = Command::new("redis-server");
    command.arg(conf).args(["--port", "0", "--daemonize", "no", "--unixsocket"]).arg(&socket);
    let _server = Server(command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let began = Instant::now();
    let mut stream = loop {
        match UnixStream::connect(&socket) {
            Ok(stream) => break stream,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(20), "the server does not start: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"CONFIG GET *\r\nQUIT\r\n").unwrap();
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    // An array of bulk strings: a line with the length before each.
    let words: Vec<&str> = told.split("\r\n").skip(1).collect();
    let strings: Vec<&str> =
        words.chunks(2).filter(|pair| pair[0].starts_with('$')).filter_map(|pair| pair.get(1).copied()).collect();
    strings.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// Each line of the file that is written holds in the server that is started with it.
#[test]
fn a_real_server_is_set_up_as_advised() {
    if !possible("a_real_server_is_set_up_as_advised", &[Need::Tool("redis-server")]) {
        return;
    }
    for (job, wanted) in [
        ("redis-cache", &[("appendonly", "no"), ("save", ""), ("maxmemory-policy", "allkeys-lru")][..]),
        ("redis-store", &[("appendonly", "yes"), ("appendfsync", "everysec"), ("maxmemory-policy", "noeviction")][..]),
        ("redis-vectors", &[("appendonly", "no"), ("latency-monitor-threshold", "5")][..]),
    ] {
        let home = Home::new();
        let (work, out) = (home.work(), home.path().join("out"));
        std::fs::create_dir(&out).unwrap();
        let words =
            ["advise", "--for", job, "--on", work.to_str().unwrap(), "--memory", "1GiB", "--p95", "5ms", "--out"];
        let words: Vec<&str> = words.into_iter().chain([out.to_str().unwrap()]).collect();
        let document = home.json(&words);
        let told = configuration(&out.join("redis.conf"), &work);
        for (name, value) in wanted {
            assert_eq!(told[*name], *value, "{job}: {name}");
        }
        for line in settings(&document, "redis.conf").split("; ").filter(|line| !line.starts_with("maxmemory ")) {
            let (name, value) = line.split_once(' ').unwrap();
            let value = value.trim_matches('"').to_owned();
            // The folder may be below a link.
            if name != "dir" {
                assert_eq!(told[name], value, "{job}: {line}");
            }
        }
        assert!(told["maxmemory"].parse::<u64>().unwrap() > 200 << 20, "{job}: {}", told["maxmemory"]);
        // What is there is not replaced.
        let again = home.run(&words).code(4);
        assert!(again.err.contains("not replaced"), "{}", again.err);
    }
}

/// What was measured here is believed before what was published.
#[test]
fn a_run_of_this_machine_is_what_advice_stands_on() {
    if !possible("a_run_of_this_machine_is_what_advice_stands_on", &[Need::Tool("redis-server")]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    let words = ["advise", "--for", "redis-store", "--on", here];
    let before = home.json(&words);
    let from_run = |document: &Value| {
        let evidence = said(document, "redis-persistence")["evidence"].as_array().unwrap().clone();
        evidence.iter().filter_map(|one| one["run"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(from_run(&before), Vec::<String>::new());
    let mut load = vec!["load", "redis", "--on", here, "--payload", "512", "--repeat", "1", "--operations", "4000"];
    load.extend(["--keys", "500", "--mode", "memory-only", "--mode", "aof-everysec", "--mode", "aof-always"]);
    let run = home.json(&load)["run"].as_str().unwrap().to_owned();
    let after = home.json(&words);
    assert_eq!(from_run(&after), vec![run.clone(); 3]);
    let persistence = said(&after, "redis-persistence");
    has_keys(&persistence["gain"], "of percent low high from");
    assert_eq!(persistence["gain"]["from"], format!("run {run}"));
    assert!(persistence["why"].as_str().unwrap().contains(&format!("run {run}")), "{persistence}");
    assert!(after["measure"].as_str().unwrap().starts_with("tiermark load redis --on "), "{after}");
    // A goal that nothing here meets is told, with the ways out.
    let hasty = home.json(&["advise", "--for", "redis-store", "--on", here, "--p95", "1us"]);
    assert!(said(&hasty, "redis-persistence")["why"].as_str().unwrap().contains("misses the 1 µs"), "{hasty}");
    assert!(rules(&hasty).contains(&"redis-replica"), "{hasty}");
}

#[test]
fn machines_are_told_what_fits_them() {
    let home = Home::new();
    let ask = |tree_name: &str, words: &[&str]| {
        let root = tree(tree_name);
        let all = ["advise", "--root", root.to_str().unwrap()];
        home.json(&all.into_iter().chain(words.iter().copied()).collect::<Vec<_>>())
    };
    // Swap on the card, and a server that forks.
    let store = ask("pi4", &["--for", "redis-store"]);
    assert_eq!(settings(&store, "60-tiermark-redis.conf"), "vm.overcommit_memory = 1; vm.swappiness = 10");
    // What keeps nothing forks nothing.
    let cache = ask("pi4", &["--for", "redis-cache"]);
    assert_eq!(settings(&cache, "60-tiermark-redis.conf"), "vm.swappiness = 10");
    assert!(!rules(&cache).contains(&"redis-overcommit"), "{cache}");
    let strict = ask("pi4", &["--for", "redis-cache", "--loss", "0"]);
    assert!(settings(&strict, "redis.conf").contains("appendfsync always"), "{strict}");
    assert!(settings(&strict, "redis.conf").contains("no-appendfsync-on-rewrite no"), "{strict}");
    // On an emulated card the medium is the first thing to change.
    let card = ask("pi4", &["--for", "redis-store", "--on", "sd-evo-pi5"]);
    assert!(rules(&card).contains(&"redis-medium") && rules(&card).contains(&"redis-replica"), "{card}");
    let ssd = ask("pi4", &["--for", "redis-store", "--on", "nvme-usb3-pi5"]);
    assert!(!rules(&ssd).contains(&"redis-medium"), "{ssd}");
}

#[test]
fn what_cannot_be_understood_is_one_sentence() {
    let home = Home::new();
    for (words, code, said) in [
        (&["advise", "--for", "tea"][..], 2, "redis-cache, redis-store, redis-vectors"),
        (&["advise", "--for", "redis-cache", "--p95", "soon"][..], 2, "--p95"),
        (&["advise", "--for", "desktop", "--loss", "2s"], 2, "--loss speaks of a Redis server"),
        (&["advise", "--for", "redis-cache", "--loss", "little"][..], 2, "--loss"),
        (&["advise", "--for", "redis-cache", "--memory", "much"][..], 2, "--memory"),
        (&["advise", "--for", "redis-cache", "--on", "nowhere"][..], 2, "a directory, or a profile"),
        (&["advise", "--for", "redis-cache", "--root", "/nowhere"][..], 4, "it is no machine"),
    ] {
        let told = home.run(words).code(code);
        assert!(told.err.contains(said) && told.err.trim_end().lines().count() == 1, "{words:?}: {}", told.err);
    }
    let all = home.json(&["rules"]);
    for rule in all["rules"].as_array().unwrap() {
        has_keys(rule, "name title for condition source");
    }
}
