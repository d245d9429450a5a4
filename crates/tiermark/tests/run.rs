//! `run` from end to end: every engine, every kind of target, what stays afterwards, and what can be done with the record.
#![forbid(unsafe_code)]

mod common;

use common::{Home, filled, finish, has_keys, job};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// The command of the README, shorter.
fn readme_job(engine: &str, on: &Path) -> Vec<String> {
    let engine = format!("engine={engine}");
    job(&["rw=randread", "bs=4k", "depth=32", "size=32MiB", "runtime=500ms", "direct=true", &engine], on)
}

#[test]
fn every_engine_measures_a_directory_and_leaves_nothing() {
    let home = Home::new();
    for engine in ["auto", "psync", "io_uring"] {
        let document = home.json(&readme_job(engine, &home.work()));
        let step = &document["steps"][0];
        assert_eq!((&document["state"], &step["state"]), (&"done".into(), &"done".into()), "{engine}");
        if engine != "auto" {
            assert_eq!(step["engine"], engine);
        }
        assert_eq!((&step["job"]["depth"], &step["job"]["bs_B"]), (&32.into(), &4096.into()));
        let (read, elapsed) = (&step["read"], number(&step["elapsed_s"]));
        let (ops, iops) = (number(&read["ops"]), number(&read["iops"]));
        assert!(ops > 0.0 && elapsed >= 0.45, "{step}");
        assert!((ops / elapsed / iops - 1.0).abs() < 0.01, "{ops} in {elapsed} s are not {iops} a second");
        assert!((number(&read["MBps"]) / (iops * 4096.0 / 1e6) - 1.0).abs() < 0.01, "{read}");
        let points = ["p50", "p90", "p95", "p99", "p99.9", "p99.99", "p99.999", "max"];
        // The far ones are absent where too few operations were measured to know them.
        let points: Vec<f64> = points.iter().filter_map(|point| read["lat_us"][point].as_f64()).collect();
        assert!(points.len() >= 3 && points[0] > 0.0 && points.is_sorted(), "{read}");
        assert!(step.get("write").is_none());
        home.assert_clean(&home.work());
    }
    let mapped = job(&["rw=randread", "size=16MiB", "runtime=300ms", "direct=false", "engine=mmap"], home.work());
    assert_eq!(home.json(&mapped)["steps"][0]["engine"], "mmap");
    home.assert_clean(&home.work());
}

#[test]
fn a_mix_writes_and_reads_in_the_asked_share() {
    let home = Home::new();
    let settings = ["rw=randrw", "rwmixread=70", "bs=16k", "depth=4", "size=32MiB", "operations=1000", "runtime=0"];
    let document = home.json(&job(&settings, home.work()));
    let step = &document["steps"][0];
    let (read, write) = (number(&step["read"]["ops"]), number(&step["write"]["ops"]));
    assert_eq!((read + write, &step["ended_by"]), (1000.0, &"operations".into()));
    assert!((600.0..800.0).contains(&read), "{read} of 1000 operations were reads");
    has_keys(&step["write"], "iops MBps ops lat_us");
}

#[test]
fn bytes_end_a_write_job_exactly() {
    let home = Home::new();
    let settings = ["rw=write", "bs=64k", "size=8MiB", "bytes=4MiB", "fsync=8", "end_fsync=true"];
    let step = home.json(&job(&settings, home.work()))["steps"][0].clone();
    assert_eq!((&step["write"]["ops"], &step["ended_by"]), (&64.into(), &"bytes".into()));
    home.assert_clean(&home.work());
}

#[test]
fn memory_and_a_file_and_the_harness_are_targets() {
    let home = Home::new();
    for rw in ["read", "write", "randread"] {
        let document = home.json(&job(&[&format!("rw={rw}"), "size=64MiB", "runtime=200ms"], "memory"));
        assert_eq!(document["steps"][0]["engine"], "memory", "{rw}");
    }
    let null = home.json(&job(&["runtime=200ms"], "null"));
    assert!(number(&null["steps"][0]["read"]["iops"]) > 1e3, "{null}");
    assert!(number(&null["harness_ns_per_op"]) > 0.0);
    let file = filled(&home.work().join("film"), 4);
    let step = home.json(&job(&["rw=read", "bs=64k", "runtime=200ms"], &file))["steps"][0].clone();
    assert!(number(&step["read"]["ops"]) > 0.0);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 4 << 20);
}

/// A target that stalls 200 ms once a second, asked 100 times a second: those who had to wait count, though most of them
/// were never sent to the target while it stalled.
#[test]
fn a_stall_shows_in_the_intended_time_and_service_time_stands_beside_it() {
    let home = Home::new();
    let settings = ["rw=randread", "rate=1000", "runtime=3s", "depth=1"];
    let document = home.json(&job(&settings, "null:service=20us,stall=200ms/1s"));
    let read = &document["steps"][0]["read"];
    let intended = number(&read["lat_us"]["p99"]);
    let service = number(&read["service_us"]["p99"]);
    assert!((150e3..400e3).contains(&intended), "intended-time p99 is {intended} µs: {read}");
    assert!(service < 20e3, "service-time p99 is {service} µs: {read}");
    assert!(number(&read["service_us"]["max"]) > 100e3, "the stall itself was served: {read}");
    let text = home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("service"), "the service time stands in the text too: {text}");
}

#[test]
fn a_rate_is_kept() {
    let home = Home::new();
    for process in ["rate_process=linear", "rate_process=poisson"] {
        let read = home.json(&job(&["rate=2000", process, "runtime=1s"], "null"))["steps"][0]["read"].clone();
        let iops = number(&read["iops"]);
        // Never more than was asked for; less where the machine stood still.
        assert!((500.0..2300.0).contains(&iops), "{process}: {iops}");
    }
}

#[test]
fn the_confidence_interval_ends_a_run() {
    let home = Home::new();
    // In virtual time: how steady a real target is depends on what else the machine does.
    let document = home.json(&job(&["rw=randread", "until=2", "runtime=5m"], "profile:sata-usb3-pi5"));
    let step = &document["steps"][0];
    assert_eq!(step["ended_by"], "confidence", "{step}");
    assert!(number(&step["elapsed_s"]) < 60.0 && number(&step["read"]["ci95_percent"]) <= 2.0, "{step}");
}

#[test]
fn a_dry_run_writes_nothing() {
    let home = Home::new();
    let mut words = readme_job("io_uring", &home.work());
    words.push("--dry-run".to_owned());
    let said = home.run(&words).code(0).out;
    let here = home.work().canonicalize().unwrap();
    for word in ["nothing of it has been done", "takes ", "in all  1 step;", here.to_str().unwrap()] {
        assert!(said.contains(word), "{word:?}: {said}");
    }
    words.push("--json".to_owned());
    let plan = home.run(&words).code(0).json();
    has_keys(&plan, "schema hash plan steps cost");
    has_keys(&plan["cost"], "least_s most_s laid_out_B least_written_B most_written_B");
    assert_eq!((&plan["cost"]["laid_out_B"], &plan["cost"]["most_written_B"]), (&(32 << 20).into(), &0.into()));
    assert_eq!(plan["steps"].as_array().unwrap().len(), plan["plan"]["steps"].as_array().unwrap().len());
    assert_eq!(plan["plan"]["method"], "job");
    assert_eq!(std::fs::read_dir(home.work()).unwrap().count(), 0);
    assert!(!home.path().join("data").exists(), "a database was made");
    assert_eq!(home.run(&words).code(0).json(), plan, "the same plan each time");
    let other = words.iter().map(|word| word.replace("depth=32", "depth=31")).collect::<Vec<_>>();
    assert_ne!(home.run(&other).code(0).json()["hash"], plan["hash"]);
}

#[test]
fn swap_sim_runs_as_it_stands() {
    let home = Home::new();
    let document = home.json(&["methods", "swap-sim"]);
    let keys = document["methods"][0]["parameters"].to_string();
    let mut words = vec!["run".to_owned(), "swap-sim".to_owned(), "--on".to_owned()];
    words.push(home.work().to_str().unwrap().to_owned());
    for (key, value) in [("size", "64MiB"), ("runtime", "500ms")] {
        assert!(keys.contains(&format!("{key:?}")), "{keys}");
        words.extend(["--set".to_owned(), format!("{key}={value}")]);
    }
    let document = home.json(&words);
    let step = &document["steps"][0];
    assert!(number(&step["read"]["iops"]) > 0.0 && number(&step["write"]["iops"]) > 0.0, "{step}");
    home.assert_clean(&home.work());
}

#[test]
fn ctrl_c_keeps_what_there_is() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let mut running = home.start(&job(&["rw=randrw", "size=16MiB", "runtime=60s"], home.work()));
        running.until("it measures", || spooled(&home) > 4096);
        running.signal(signal);
        let told = finish(running).code(130);
        assert!(!told.err.contains("panicked"), "{told:?}");
        home.assert_clean(&home.work());
        let runs = home.json(&["runs"]);
        assert_eq!(runs["runs"][0]["state"], "interrupted");
        let record = home.last();
        assert!(record.intervals.len() >= 2, "{} intervals", record.intervals.len());
        let shown = home.json(&["show", "last"]);
        assert!(number(&shown["steps"][0]["read"]["ops"]) > 0.0, "{shown}");
        assert_eq!(shown["steps"][0]["state"], "interrupted");
    }
}

/// Bytes in the spools of the only run of this home.
fn spooled(home: &Home) -> u64 {
    let Ok(store) = record::Store::open_for_reading(&home.database()) else { return 0 };
    let Ok(run) = store.find("last") else { return 0 };
    home.spools(&run).iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}

#[test]
fn ctrl_c_while_the_test_file_is_written() {
    let home = Home::new();
    let mut running = home.start(&job(&["rw=randread", "size=2GiB", "runtime=60s"], home.work()));
    running.until("the file is there", || !home.left_in(&home.work()).is_empty());
    running.signal(Signal::INT);
    finish(running).code(130);
    home.assert_clean(&home.work());
    assert_eq!(home.json(&["runs"])["runs"][0]["state"], "interrupted");
}

#[test]
fn an_exported_run_is_the_same_elsewhere() {
    let (here, there) = (Home::new(), Home::new());
    here.run(&job(&["rw=randrw", "size=16MiB", "runtime=300ms"], here.work())).code(0);
    let file = here.path().join("run.tiermark");
    let path = file.to_str().unwrap();
    here.run(&["export", "last", "--out", path]).code(0);
    let shown = here.json(&["show", "last"]);
    let run = shown["run"].as_str().unwrap();
    assert_eq!(there.json(&["import", path])["runs"][0]["run"], run);
    assert_eq!(there.json(&["show", run]), shown);
    let (one, other) = (here.last(), there.last());
    assert_eq!(one.intervals.len(), other.intervals.len());
    assert_eq!(one.samples.len(), other.samples.len());
    // Through a pipe, and once more: a run is not doubled.
    let mut import = there.command(&["import", "-"]);
    let status = import.stdin(std::fs::File::open(&file).unwrap()).status().unwrap();
    assert!(status.success() || status.code() == Some(4), "{status}");
    assert_eq!(there.json(&["runs"])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_is_the_same_as_itself_and_a_slower_one_is_worse() {
    let home = Home::new();
    home.run(&job(&["rate=1000", "runtime=2s"], "null")).code(0);
    let document = home.json(&["compare", "last", "last"]);
    let figures = document["comparisons"][0]["figures"].as_array().unwrap();
    let iops = |figures: &[Value]| {
        let found = figures.iter().find(|figure| figure["figure"].as_str().unwrap().contains("IOPS"));
        found.unwrap_or_else(|| panic!("no IOPS in {figures:?}")).clone()
    };
    assert_eq!(iops(figures)["verdict"], "same", "{document}");
    for figure in figures {
        assert_eq!(number(&figure["ratio"]), 1.0);
        assert!(figure["verdict"] == "same" || figure["verdict"] == "unclear", "{figure}");
    }
    let run = |service: &str| {
        home.run(&job(&["runtime=2s"], format!("null:service={service}"))).code(0);
        home.json(&["show", "last"])["run"].as_str().unwrap().to_owned()
    };
    let (fast, slow) = (run("100us"), run("1ms"));
    let document = home.json(&["compare", &fast, &slow]);
    let figures = document["comparisons"][0]["figures"].as_array().unwrap();
    assert_eq!(iops(figures)["verdict"], "worse", "ten times slower: {document}");
    let back = home.json(&["compare", &slow, &fast]);
    assert_eq!(iops(back["comparisons"][0]["figures"].as_array().unwrap())["verdict"], "better", "{back}");
    assert!(home.run(&["compare", &fast, &slow]).code(0).out.contains("worse"));
}

#[test]
fn two_runs_at_once_do_not_disturb_each_other() {
    let home = Home::new();
    let words = job(&["rw=randread", "size=8MiB", "runtime=500ms"], home.work());
    let started: Vec<_> = (0..3).map(|_| home.start(&words)).collect();
    for running in started {
        finish(running).code(0);
    }
    let runs = home.json(&["runs"]);
    let states: Vec<_> = runs["runs"].as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["done"; 3]);
    home.assert_clean(&home.work());
}

#[test]
fn a_job_file_of_fios_runs() {
    let home = Home::new();
    let work = home.work();
    let file = work.join("mine.fio");
    let path = file.to_str().unwrap();
    let directory = work.to_str().unwrap();
    let jobs = "[global]\nsize=4m\ndirectory=${WHERE}\nfilename=data\nthread\n[fill]\nrw=write\nbs=1m\n\
                [read]\nstonewall\nrw=randread\nbs=8k\nnumber_ios=100\n";
    std::fs::write(&file, jobs).unwrap();
    home.run(&["run", path]).code(2).says(&["mine.fio, line 3", "WHERE"]);
    for (words, jobs) in [
        (&["run", path][..], jobs.replace("${WHERE}", directory)),
        (&["run", path, "--on", directory], jobs.to_owned()),
    ] {
        std::fs::write(&file, jobs).unwrap();
        let document = home.json(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            (&document["method"]["name"], &document["parameters"]["ignored"]),
            (&"fio".into(), &"thread".into())
        );
        let [fill, read] = &document["steps"].as_array().unwrap()[..] else { panic!("{document}") };
        assert_eq!((&fill["name"], &fill["write"]["ops"], &fill["filled"]), (&"fill".into(), &4.into(), &Value::Null));
        assert_eq!(
            (&read["name"], &read["read"]["ops"], &read["job"]["bs_B"]),
            (&"read".into(), &100.into(), &8192.into())
        );
        home.assert_clean(&work);
    }
    std::fs::write(&file, "[a]\nrw=write\nsize=1m\nverify=md5\n").unwrap();
    home.run(&["run", path, "--on", "null"]).code(2).says(&["mine.fio, line 4: verify=md5 is not supported"]);
    std::fs::write(&file, format!("[a]\nrw=write\nsize=4k\nfilename={path}\n")).unwrap();
    home.run(&["run", path]).code(3).says(&["mine.fio"]);
    let told = home.run(&["run", path, "--set", "bs=4k"]).code(2);
    assert!(told.err.contains("edit the job file"), "{told:?}");
    home.run(&["run", "absent.fio", "--on", "null"]).code(4).says(&["absent.fio"]);
}
