//! A real redis-server through the whole program: every way to keep data on a directory and on an emulated card, what a slow disk
//! costs, and nothing left behind, whatever goes wrong. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::machine::{alone, machine};
use common::{Home, Need, Place, has_keys, possible};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn can(test: &str, needs: &[Need]) -> bool {
    possible(test, needs) && possible(test, &[Need::Tool("redis-server")])
}

fn of(cell: &Value, key: &str) -> f64 {
    cell[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {cell}"))
}

fn cell<'a>(document: &'a Value, mode: &str, medium: &str) -> &'a Value {
    let cells = document["cells"].as_array().unwrap_or_else(|| panic!("{document}"));
    let found = cells.iter().find(|cell| cell["mode"] == mode && cell["medium"] == medium);
    found.unwrap_or_else(|| panic!("no {mode} on {medium}: {document}"))
}

/// The servers that were started in a folder.
fn servers_in(folder: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let inside = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    entries.filter(inside).count()
}

/// Each way costs on a slow card at least what waiting for it must, and the record says the same again.
#[test]
fn every_way_on_every_medium_is_a_cell() {
    if !can("every_way_on_every_medium_is_a_cell", &[Need::Root, Need::Loops]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let here = work.to_str().unwrap();
    let mut words = vec!["load", "redis", "--on", here, "--on", "sd-evo-pi5", "--payload", "64", "--size", "512MiB"];
    words.extend(["--operations", "12000", "--keys", "3000", "--repeat", "1"]);
    for mode in ["memory-only", "rdb", "aof-everysec", "aof-always", "aof-rewrite"] {
        words.extend(["--mode", mode]);
    }
    let document = place.home.json(&words);
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
    assert_eq!(servers_in(here), 0);
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 10);
    for cell in cells {
        has_keys(cell, "mode medium payload_B ops_per_s lat_us cost_percent client_bound visits why memory_peak_B");
        let lat = &cell["lat_us"];
        has_keys(lat, "p50 p95 p99 p99.9 max");
        assert!(of(lat, "p50") <= of(lat, "p99") && of(lat, "p99") <= of(lat, "max"), "{cell}");
        assert!(of(cell, "ops_per_s") > 100.0, "{cell}");
        // Of a server that does nothing the clients get thousands.
        assert!(of(cell, "client_limit_ops_per_s") > 1000.0, "{cell}");
    }
    // A card makes at most some hundred writes durable a second, for 50 clients each.
    let always = cell(&document, "aof-always", "sd-evo-pi5");
    assert!(of(always, "cost_percent") > 50.0, "{always}");
    assert!(of(always, "device_B_per_logical_B") > 2.0, "{always}");
    assert!(always["why"].as_str().unwrap().contains("waits for its disk"), "{always}");
    let forked = |mode: &str| cell(&document, mode, "sd-evo-pi5")["why"].as_str().unwrap().contains("forked");
    assert!(forked("rdb") && forked("aof-rewrite") && !forked("aof-everysec"), "{document}");
    // GETs and SETs as asked, in the same record, in text.
    let record = place.home.last();
    let (read, write) = (record.steps[0].read.operations(), record.steps[0].write.operations());
    assert_eq!((read, write), (6000, 6000));
    let served = record.steps[0].load.as_ref().unwrap().redis.as_ref().unwrap();
    assert_eq!((served.misses, served.hits, served.keys), (0, 6000, 3000));
    let text = place.home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("Against keeping nothing") && text.contains("aof-rewrite"), "{text}");
}

/// Requests at a rate are late when the server stands still, as an ordinary user, and over a Unix socket.
#[test]
fn a_server_that_stands_still_makes_what_was_due_late() {
    if !can("a_server_that_stands_still_makes_what_was_due_late", &[]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap().to_owned();
    let mut words = vec!["load", "redis", "--on", &here, "--mode", "memory-only", "--payload", "64", "--repeat", "1"];
    words.extend(["--rate", "2000", "--runtime", "4s", "--keys", "1000", "--link", "unix", "--threads", "1", "--json"]);
    words.extend(["--connections", "4"]);
    let mut running = home.start(&words);
    let server = || {
        let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
            cwd.starts_with(&here).then(|| entry.file_name().to_string_lossy().parse::<i32>().ok())?
        });
        pids.into_iter().find_map(rustix::process::Pid::from_raw)
    };
    running.until("the server runs", || server().is_some());
    std::thread::sleep(Duration::from_millis(1500));
    let pid = server().unwrap();
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    let document = common::finish(running).code(0).json();
    let cell = &document["cells"][0];
    // 600 ms of 4 s: one in seven was due meanwhile.
    assert!(of(&cell["lat_us"], "p95") > 150_000.0, "{cell}");
    assert!(of(&cell["service_us"], "p95") < of(&cell["lat_us"], "p95"), "{cell}");
    // Where the kernel tells (root), that is the cause, and it took what it took. A kernel that is deaf while a processor idles
    // may have missed the end of the stop; what it did tell is true all the same.
    let lack = cell["spikes"]["lacks"].as_array().unwrap().first().map(|lack| lack.as_str().unwrap());
    let why = cell["why"].as_str().unwrap();
    let cause = &cell["causes"][0];
    match lack {
        Some(lack) if cause.is_null() => {
            assert!(lack.contains("is seen by root alone") || lack.contains("does not tell"), "{cell}");
            assert!(why.contains(lack), "{cell}");
        }
        _ => {
            assert_eq!(cause["name"], "stopped", "{cell}");
            assert!(of(cause, "share") > 0.5 && of(cause, "longest_us") >= 590_000.0, "{cell}");
            assert!(why.contains("a signal that stopped the server"), "{cell}");
        }
    }
    home.assert_clean(&work);
}

#[test]
fn what_goes_wrong_is_one_sentence_and_nothing_is_left() {
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    let said = |words: &[&str], code: i32| {
        let words = [&["load", "redis", "--on", here, "--mode", "memory-only", "--payload", "64"], words].concat();
        home.run(&words).code(code).sentence().to_owned()
    };
    // Whether or not there is a server here.
    let program = work.join("server");
    std::fs::write(&program, "#!/bin/sh\necho 'cannot be what you think'\nexit 3\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = ["--server", program.to_str().unwrap()];
    assert!(said(&["--server", "/nowhere/redis-server"], 4).contains("--server /nowhere"));
    assert!(said(&[&server[..], &["--mode", "fsync"]].concat(), 2).contains("memory-only, rdb"));
    assert!(said(&[&server[..], &["--connections", "3"]].concat(), 2).contains("fewer threads"));
    assert!(said(&[&server[..], &["--config", "maxmemory"]].concat(), 2).contains("NAME=VALUE"));
    assert!(said(&[&server[..], &["--on", "floppy"]].concat(), 2).contains("--on floppy"));
    assert!(said(&[&server[..], &["--config", "tls-port=7777"]].concat(), 2).contains("speaks no TLS"));
    for own in ["port=1", "Daemonize=yes", "dir=/etc"] {
        assert!(said(&[&server[..], &["--config", own]].concat(), 2).contains("tiermark's own"));
    }
    let told = home.run(&[&["load", "redis", "--on", here, "--mode", "rdb", "--payload", "64"], &server[..]].concat());
    assert!(told.out.contains("cannot be what you think"), "{told:?}");
    std::fs::remove_file(&program).unwrap();
    home.assert_clean(&work);
    if !can("what_goes_wrong_is_one_sentence_and_nothing_is_left", &[]) {
        return;
    }
    // A memory that is full, a setting that does not exist, a password that nobody gave.
    for (setting, expected) in [
        (
            &["--config", "maxmemory=1500kb", "--config", "maxmemory-policy=noeviction", "--payload", "65536"][..],
            "give it more",
        ),
        (&["--config", "nonsense=1"][..], "'nonsense 1'"),
        (&["--config", "rename-command=SET X"][..], "unknown command 'SET'"),
        (&["--config", "maxclients=10"][..], "fewer --connections"),
        (&["--config", "user=default on nopass -@all"][..], "leave the ACL out"),
    ] {
        let words = [&["load", "redis", "--on", here, "--mode", "memory-only", "--repeat", "1"], setting].concat();
        let told = home.run(&words);
        // On standard error it is one line, however long.
        assert!(told.err.contains(expected), "{setting:?}: {told:?}");
        home.assert_clean(&work);
        assert_eq!(servers_in(here), 0);
    }
}

/// SIGINT, and SIGKILL with any command after it.
#[test]
fn stopped_in_the_middle_nothing_is_left() {
    if !can("stopped_in_the_middle_nothing_is_left", &[Need::Root, Need::Loops]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let here = work.to_str().unwrap();
    let mut words = vec!["load", "redis", "--on", here, "--on", "optane-pi5", "--mode", "aof-everysec"];
    words.extend(["--payload", "64", "--runtime", "60s", "--keys", "1000", "--size", "256MiB"]);
    for (signal, on_disk) in [(Signal::INT, false), (Signal::KILL, false), (Signal::KILL, true)] {
        let chosen: Vec<&str> = if on_disk {
            words.iter().copied().filter(|word| *word != here).collect::<Vec<_>>()
        } else {
            words.clone()
        };
        // The first `--on` has lost its directory.
        let chosen = if on_disk { [&chosen[..2], &chosen[3..]].concat() } else { chosen };
        let mut running = place.home.start(&chosen);
        if on_disk {
            running.until("the disk is mounted", || machine()["mounts"] != before["mounts"]);
            std::thread::sleep(Duration::from_millis(500));
        } else {
            running.until("the server runs", || servers_in(here) > 0);
            std::thread::sleep(Duration::from_millis(300));
        }
        running.signal(signal);
        if signal == Signal::INT {
            common::finish(running).code(130);
        } else {
            drop(running);
        }
        place.home.run(&["tiers"]).code(0);
        assert_eq!(machine(), before, "{signal:?} {on_disk}");
        place.home.assert_clean(&work);
        assert_eq!(servers_in(here), 0);
    }
}
