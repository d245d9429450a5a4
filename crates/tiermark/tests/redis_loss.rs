//! A real redis-server that is lost in the middle of its load: what each way to keep data loses of what it had acknowledged, that a
//! server which does not start again is told as that, and that nothing is left behind. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use basics::redis::{Lost, Mode};
use common::machine::alone;
use common::{Home, Need, Place, full, possible};
use rustix::process::Signal;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Beyond what an fsync takes and Redis promises: this machine may have had other things to do.
const SLACK: f64 = 1.0;

fn can(test: &str, needs: &[Need]) -> bool {
    possible(test, needs) && possible(test, &[Need::Tool("redis-server")])
}

/// What each visit to a cell lost.
fn losses(record: &record::Record, mode: Mode, medium: &str) -> Vec<Lost> {
    let is_it = |step: &&record::StepRecord| step.name == mode.name() && step.tier.as_deref() == Some(medium);
    let lost = |step: &record::StepRecord| step.load.as_ref()?.redis.as_ref()?.lost.clone();
    record.steps.iter().filter(is_it).map(|step| lost(step).unwrap_or_else(|| panic!("{step:?}"))).collect()
}

/// Of this home alone: others may use disks of this machine meanwhile.
fn assert_nothing_is_left(place: &Place) {
    place.assert_clean();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let of_it = format!("tiermark-{}-", place.home.last().run.id);
    assert!(!mounts.contains(&of_it), "{mounts}");
}

fn cell<'a>(document: &'a Value, mode: &str, medium: &str) -> &'a Value {
    let cells = document["cells"].as_array().unwrap_or_else(|| panic!("{document}"));
    let found = cells.iter().find(|cell| cell["mode"] == mode && cell["medium"] == medium);
    found.unwrap_or_else(|| panic!("no {mode} on {medium}: {document}"))
}

/// Memory alone loses all, everysec at most 2 s and the longest fsync, always nothing, unless the disk lies about flushes. All 20
/// seeds: `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test redis_loss power_cut -- --nocapture`.
#[test]
fn a_power_cut_takes_what_was_not_durable() {
    if !can("a_power_cut_takes_what_was_not_durable", &[Need::Root, Need::Loops, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let (rounds, seeds) = if full() { (5, "4") } else { (1, "2") };
    let (honest, lying) = ("sd-evo-pi5", "sd-evo-pi5+lying-flush");
    let mut gone_on_a_liar = 0;
    for round in 0..rounds {
        let seed = (42 + round).to_string();
        let mut words = vec!["load", "redis", "--lose", "power", "--seeds", seeds, "--seed", &seed, "--runtime", "4s"];
        words.extend(["--on", honest, "--on", lying, "--payload", "64", "--size", "512MiB"]);
        words.extend(["--mode", "memory-only", "--mode", "aof-everysec", "--mode", "aof-always"]);
        let document = place.home.json(&words);
        assert_nothing_is_left(&place);
        let record = place.home.last();
        for medium in [honest, lying] {
            for lost in losses(&record, Mode::MemoryOnly, medium) {
                assert!(lost.of > 0 && lost.acknowledged == lost.of, "{medium}: {lost:?}");
            }
        }
        for lost in losses(&record, Mode::AofEverysec, honest) {
            let most = 2.0 + lost.longest_fsync.map_or(0.0, |time| time.secs()) + SLACK;
            assert!(lost.did_not_start.is_none() && lost.of > 0, "{lost:?}");
            assert!(lost.oldest.is_none_or(|oldest| oldest.secs() <= most), "{lost:?}");
        }
        for lost in losses(&record, Mode::AofAlways, honest) {
            assert!(lost.of > 0 && lost.acknowledged == 0 && lost.did_not_start.is_none(), "{lost:?}");
        }
        gone_on_a_liar += losses(&record, Mode::AofAlways, lying).iter().map(|lost| lost.acknowledged).sum::<u64>();
        let always = cell(&document, "aof-always", honest);
        assert_eq!((&always["lost"]["acknowledged"], &always["lost"]["by"]), (&0.into(), &"power".into()), "{always}");
        assert!(always["ops_per_s"].as_f64().unwrap() > 10.0 && always["lat_us"]["p99"].is_number(), "{always}");
        let nothing_kept = cell(&document, "memory-only", honest);
        assert_eq!(nothing_kept["lost"]["all_gone"], nothing_kept["lost"]["seeds"], "{nothing_kept}");
        println!("{}", place.home.run(&["show", "last"]).code(0).out);
    }
    assert!(gone_on_a_liar > 0, "a disk that lies about flushes lost nothing");
}

/// What a killed server had sent arrives at its replica; without power what was on its way does not, and the replica's distance shows as
/// what is lost. No request waits for it.
#[test]
fn a_replica_has_all_but_what_was_on_its_way() {
    if !can("a_replica_has_all_but_what_was_on_its_way", &[]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    let common = ["--on", here, "--payload", "64", "--threads", "2", "--mode", "memory-only", "--mode", "replica"];
    let mut words = vec!["load", "redis", "--lose", "kill", "--seeds", "2", "--runtime", "1500ms", "--rate", "2000"];
    words.extend(["--delay", "200ms"]);
    words.extend(common);
    let document = home.json(&words);
    home.assert_clean(&work);
    let nothing_kept = cell(&document, "memory-only", here);
    assert_eq!(nothing_kept["lost"]["all_gone"], 2, "{nothing_kept}");
    for lost in losses(&home.last(), Mode::Replica, here) {
        assert!(lost.did_not_start.is_none() && lost.of > 0 && lost.acknowledged < lost.of / 4, "{lost:?}");
    }
    let mut words = vec!["load", "redis", "--repeat", "1", "--operations", "4000", "--keys", "500", "--delay", "50ms"];
    words.extend(common);
    let document = home.json(&words);
    home.assert_clean(&work);
    let replica = cell(&document, "replica", here);
    assert!(replica["why"].as_str().unwrap().contains("a replica 50 ms off"), "{replica}");
    // Nobody waits for it.
    assert!(replica["lat_us"]["p50"].as_f64().unwrap() < 50_000.0, "{replica}");
    let refused = home.run(&["load", "redis", "--on", here, "--mode", "replica", "--link", "unix"]).code(2);
    assert!(refused.err.contains("over TCP"), "{}", refused.err);
}

#[test]
fn without_power_what_was_on_its_way_to_a_replica_is_gone() {
    let needs = [Need::Root, Need::Loops, Need::Tool("mkfs.ext4")];
    if !can("without_power_what_was_on_its_way_to_a_replica_is_gone", &needs) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let mut words = vec!["load", "redis", "--lose", "power", "--seeds", "2", "--runtime", "1500ms", "--rate", "2000"];
    words.extend([
        "--on",
        "sd-evo-pi5",
        "--size",
        "512MiB",
        "--payload",
        "64",
        "--mode",
        "replica",
        "--delay",
        "200ms",
    ]);
    place.home.json(&words);
    assert_nothing_is_left(&place);
    for lost in losses(&place.home.last(), Mode::Replica, "sd-evo-pi5") {
        // 200 ms of 2000 a second.
        assert!(lost.did_not_start.is_none() && lost.acknowledged > 100 && lost.acknowledged < lost.of, "{lost:?}");
        assert!((0.1..1.5).contains(&lost.oldest.unwrap().secs()), "{lost:?}");
    }
}

/// What the page cache holds outlives its server; memory does not. As an ordinary user.
#[test]
fn a_killed_server_loses_its_memory_alone() {
    if !can("a_killed_server_loses_its_memory_alone", &[]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    let mut words = vec!["load", "redis", "--on", here, "--lose", "kill", "--seeds", "3", "--runtime", "1s"];
    words.extend(["--payload", "64", "--rate", "3000", "--threads", "2"]);
    words.extend(["--mode", "memory-only", "--mode", "aof-always"]);
    let document = home.json(&words);
    home.assert_clean(&work);
    let gone = |mode: &str| cell(&document, mode, here)["lost"].clone();
    assert_eq!((&gone("memory-only")["all_gone"], &gone("memory-only")["seeds"]), (&3.into(), &3.into()));
    assert_eq!((&gone("aof-always")["losing"], &gone("aof-always")["did_not_start"]), (&0.into(), &0.into()));
    let text = home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("Killed in the middle of its load") && text.contains("memory-only loses all"), "{text}");
    // Each seed has a moment of its own; a busy machine may miss it by something.
    let at: Vec<f64> = losses(&home.last(), Mode::MemoryOnly, here).iter().map(|lost| lost.at.secs()).collect();
    assert!(at.iter().all(|at| (0.2..3.0).contains(at)) && at[0] != at[1], "{at:?}");
}

/// A log that cannot be read any more is the end of all that was acknowledged, in the server's own words.
/// What was set since the last snapshot is gone, and no more.
#[test]
fn a_checkpoint_bounds_what_a_killed_server_loses() {
    let name = "a_checkpoint_bounds_what_a_killed_server_loses";
    if !can(name, &[Need::Tool("redis-server")]) {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let words = ["load", "redis", "--lose", "kill", "--seeds", "3", "--mode", "checkpoint", "--every", "400ms"];
    let more = ["--payload", "64", "--connections", "4", "--threads", "1", "--on", work.to_str().unwrap()];
    let document = home.json(&[&words[..], &more].concat());
    let lost = &cell(&document, "checkpoint", work.to_str().unwrap())["lost"];
    assert_eq!(
        (&lost["seeds"], &lost["did_not_start"], &lost["all_gone"]),
        (&3.into(), &0.into(), &0.into()),
        "{lost}"
    );
    // A snapshot is ordered each 0.4 s, and takes what it takes; the oldest that is gone was set since the last but one.
    let oldest = lost["oldest_s"].as_f64().unwrap();
    assert!(oldest > 0.0 && oldest < 3.0, "{lost}");
    home.assert_clean(&work);
}

#[test]
fn a_server_that_does_not_start_again_is_told() {
    if !can("a_server_that_does_not_start_again_is_told", &[]) {
        return;
    }
    let home = Home::new();
    let (work, tools) = (home.work(), tempfile::tempdir().unwrap());
    let program = tools.path().join("redis-server");
    let script = "#!/bin/sh\nif [ -e was ]; then echo '1:M # Bad file format reading the append only file'; exit 1; fi\n\
                  touch was; exec redis-server \"$@\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (here, server) = (work.to_str().unwrap(), program.to_str().unwrap());
    let mut words = vec!["load", "redis", "--on", here, "--lose", "kill", "--seeds", "2", "--runtime", "1s"];
    words.extend(["--payload", "64", "--mode", "aof-always", "--server", server, "--connections", "8"]);
    let document = home.json(&words);
    home.assert_clean(&work);
    let lost = &cell(&document, "aof-always", here)["lost"];
    assert_eq!((&lost["did_not_start"], &lost["all_gone"]), (&2.into(), &2.into()), "{lost}");
    assert_eq!(lost["why"], "Bad file format reading the append only file");
}

/// One that goes by itself before its moment was not lost on purpose.
#[test]
fn a_server_that_goes_by_itself_is_a_failure_and_no_loss() {
    if !can("a_server_that_goes_by_itself_is_a_failure_and_no_loss", &[]) {
        return;
    }
    let home = Home::new();
    let (work, tools) = (home.work(), tempfile::tempdir().unwrap());
    let program = tools.path().join("redis-server");
    std::fs::write(&program, "#!/bin/sh\nredis-server \"$@\" & sleep 2; kill -9 $!; wait\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (here, server) = (work.to_str().unwrap(), program.to_str().unwrap());
    let mut words = vec!["load", "redis", "--on", here, "--lose", "kill", "--seeds", "1", "--runtime", "60s"];
    words.extend(["--payload", "64", "--mode", "memory-only", "--server", server, "--rate", "1000"]);
    let told = home.run(&words).code(1);
    assert!(told.err.contains("under load"), "{told:?}");
    let lost = home.last().steps[0].load.as_ref().and_then(|load| load.redis.as_ref()?.lost.clone());
    assert_eq!(lost, None);
    home.assert_clean(&work);
}

#[test]
fn what_cannot_be_lost_is_refused_before_anything_starts() {
    let home = Home::new();
    let work = home.work();
    let here = work.to_str().unwrap();
    // Whether or not there is a server here.
    let said = |words: &[&str]| {
        let words = [&["load", "redis", "--server", "/bin/true", "--payload", "64"], words].concat();
        home.run(&words).code(2).sentence().to_owned()
    };
    let power = said(&["--on", here, "--lose", "power"]);
    assert!(power.contains("is on a disk of this machine") && power.contains("--lose kill"), "{power}");
    assert!(said(&["--on", here, "--lose", "kill", "--runtime", "500ms"]).contains("1 s"));
    assert!(said(&["--on", "sd-evo-pi5+lying", "--lose", "power"]).contains("the kinds are"));
    home.run(&["load", "redis", "--on", here, "--lose", "kill", "--reads", "10"]).code(2);
    home.run(&["load", "redis", "--on", here, "--seeds", "3"]).code(2);
    home.assert_clean(&work);
    assert!(home.run(&["runs"]).code(0).out.lines().count() <= 1);
}

/// SIGINT and SIGKILL at several moments, with power and without.
#[test]
fn stopped_while_it_loses_nothing_is_left() {
    if !can("stopped_while_it_loses_nothing_is_left", &[Need::Root, Need::Loops, Need::Tool("mkfs.ext4")]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let mut words = vec!["load", "redis", "--on", "sd-evo-pi5+lying-flush", "--lose", "power", "--seeds", "9"];
    words.extend(["--runtime", "1s", "--mode", "aof-everysec", "--payload", "64", "--size", "256MiB"]);
    for (signal, millis) in [(Signal::INT, 700), (Signal::KILL, 900), (Signal::INT, 1300), (Signal::KILL, 1600)] {
        let mut running = place.home.start(&words);
        running.until("the disk is mounted", || place.home.journal().iter().any(|entry| entry.contains("-mount-")));
        std::thread::sleep(Duration::from_millis(millis));
        running.signal(signal);
        if signal == Signal::INT {
            common::finish(running).code(130);
        } else {
            drop(running);
        }
        place.home.run(&["tiers"]).code(0);
        println!("{signal:?} after {millis} ms");
        assert_nothing_is_left(&place);
    }
}
