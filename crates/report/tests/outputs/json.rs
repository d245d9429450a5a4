//! The keys that other programs read, by their literal names.

use super::support;
use basics::Known;
use record::{Origin, RunHead, State};
use report::json;
use serde_json::Value;
use std::path::Path;

/// Keys of an object, sorted.
#[track_caller]
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn by_name<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap()
}

#[test]
fn tiers_carry_the_bus_mathematics() {
    let mut machine = support::machine();
    let document = json::tiers(&machine);
    assert_eq!(keys(&document), ["machine", "notices", "schema", "tiers"]);
    assert_eq!(document["schema"], "tiermark.tiers/1");
    assert_eq!(keys(&document["machine"]), ["kernel", "model", "page_size_B", "ram_B"]);
    assert_eq!(document["machine"]["page_size_B"], 16384);
    let sda = by_name(&document["tiers"], "sda");
    assert_eq!(keys(sda), ["ceiling", "hops", "kind", "name", "path", "size_B", "warning_details", "warnings"]);
    assert_eq!((&sda["kind"], &sda["path"]), (&"usb".into(), &"/dev/sda".into()));
    let usb = &sda["hops"][0];
    for key in ["name", "kind", "signal_Gbps", "encoding", "raw_MBps", "encoded_MBps", "practical_MBps", "transit_us"] {
        assert!(usb.get(key).is_some(), "{key}");
    }
    assert_eq!((&usb["raw_MBps"], &usb["encoded_MBps"]), (&625.0.into(), &500.0.into()));
    assert_eq!(usb["practical_MBps"], serde_json::json!([430.0, 450.0]));
    assert_eq!(usb["transit_us"], 20.0);
    assert_eq!(keys(&sda["ceiling"]), ["encoded_MBps", "hop", "practical_MBps"]);
    let optane = by_name(&document["tiers"], "nvme0n1");
    assert_eq!(keys(&optane["warning_details"][0]), ["evidence", "id", "text"]);
    assert_eq!(optane["warning_details"][0]["text"], optane["warnings"][0]);
    // RAM has no device node, no bus and no ceiling: the keys are absent, not null or zero.
    assert_eq!(
        keys(by_name(&document["tiers"], "RAM")),
        ["hops", "kind", "name", "size_B", "warning_details", "warnings"]
    );
    machine.kernel = Known::default();
    assert_eq!(keys(&json::tiers(&machine)["machine"]), ["model", "page_size_B", "ram_B"]);
}

#[test]
fn a_run_carries_steps_with_percentiles() {
    let document = json::run(support::check_record());
    assert_eq!(document["schema"], "tiermark.run/1");
    assert!(document["parameters"].is_object());
    assert_eq!((&document["method"]["name"], &document["as_published"]), (&"check".into(), &false.into()));
    assert_eq!((&document["run"], &document["state"]), (&"7c1e04aa".into(), &"done".into()));
    let steps = document["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "swap-sim" && step["tier"] == "nvme0n1").unwrap();
    for key in ["name", "engine", "job", "read", "write", "elapsed_s", "cpu", "notes"] {
        assert!(!step[key].is_null(), "{key}");
    }
    assert_eq!(step["engine"], "io_uring");
    assert_eq!(step["engine_dropped"][0]["feature"], "NO_SQARRAY");
    assert_eq!(
        (&step["job"]["rw"], &step["job"]["bs_B"], &step["job"]["depth"]),
        (&"randrw".into(), &16384.into(), &4.into())
    );
    let observing = &step["observing"];
    assert_eq!(keys(observing), ["cpu_us", "dropped", "samples"]);
    assert!(observing["cpu_us"].as_f64().unwrap() > 0.0);
    assert_eq!((&step["job"]["invalidate"], &step["job"]["interval_s"]), (&false.into(), &0.1.into()));
    assert_eq!(step["job"]["huge_pages"], false);
    assert_eq!(keys(&step["cpu"]), ["total_us_per_op"]);
    assert!((step["cpu"]["total_us_per_op"].as_f64().unwrap() - 2.76).abs() < 0.001);
    let read = &step["read"];
    assert_eq!(keys(read), ["MBps", "ci95_percent", "iops", "lat_us", "ops"]);
    assert!((read["iops"].as_f64().unwrap() - 11_693.0).abs() < 400.0, "{}", read["iops"]);
    assert_eq!(keys(&read["lat_us"]), ["max", "mean", "p50", "p90", "p95", "p99", "p99.9"]);
    // A direction that did not run is absent.
    let write = steps.iter().find(|step| step["name"] == "seq-write").unwrap();
    assert!(write.get("read").is_none() && write["write"]["MBps"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_open_loop_carries_service_time() {
    let document = json::run(&support::open_loop_record());
    let read = &document["steps"][0]["read"];
    let (intended, service) = (read["lat_us"]["p99"].as_f64().unwrap(), read["service_us"]["p99"].as_f64().unwrap());
    assert!(intended > 100.0 * service, "{intended} {service}");
    assert_eq!(document["steps"][0]["job"]["rate_iops"], 1000.0);
}

#[test]
fn a_broken_run_says_why() {
    let document = json::run(&support::interrupted_record());
    assert_eq!(document["state"], "interrupted");
    let last = document["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["state"], "failed");
    assert!(last["why"].as_str().unwrap().contains("Input/output error"));
}

#[test]
fn runs_are_listed() {
    let head = RunHead {
        id: "7c1e04aa".into(),
        state: State::Failed(record::Failure { kind: basics::FailKind::NoRoom, why: "no room".into() }),
        origin: Origin::Simulated("optane-pi5".into()),
        method: "check".into(),
        target: "/mnt".into(),
        tiers: vec!["sda".into()],
        started: support::STARTED,
        ended: None,
        steps: 0,
    };
    let document = json::runs(&[head]);
    assert_eq!(document["schema"], "tiermark.runs/1");
    let run = &document["runs"][0];
    assert_eq!(keys(run), ["method", "origin", "run", "started", "state", "steps", "target", "why"]);
    assert_eq!(run["origin"], "simulated: optane-pi5");
    assert_eq!((&run["state"], &run["started"]), (&"failed".into(), &"2026-11-21T10:04:00Z".into()));
}

#[test]
fn a_check_carries_figures_and_meaning() {
    let document = json::check(support::check_record(), &support::check_study(), Some(Path::new("/tmp/r.html")));
    assert_eq!(document["schema"], "tiermark.check/1");
    assert_eq!(document["origin"], "measured");
    assert_eq!((&document["report"], &document["elapsed_s"]), (&"/tmp/r.html".into(), &58.0.into()));
    let tier = by_name(&document["tiers"], "nvme0n1");
    for key in [
        "name",
        "kind",
        "path",
        "seq_read_MBps",
        "seq_write_MBps",
        "swap_sim",
        "rand_read_4k_qd1_us",
        "rand_read_4k_qd32_iops",
        "fsync_us",
        "ceiling_share",
        "resembles",
        "findings",
        "good_for",
    ] {
        assert!(tier.get(key).is_some(), "{key}");
    }
    assert_eq!(keys(&tier["swap_sim"]), ["read_iops", "read_lat_us", "write_iops", "write_lat_us"]);
    assert_eq!(tier["swap_sim"]["read_lat_us"]["p99.9"].as_f64().map(|p| p > 0.0), Some(true));
    assert!(tier["fsync_us"]["p50"].is_number() && tier["fsync_us"]["p99"].is_number());
    assert_eq!(keys(&tier["resembles"]), ["distance", "name"]);
    assert_eq!(tier["findings"][0]["id"], "pcie-switch-limits");
    let fitness = tier["fitness"].as_array().unwrap();
    assert_eq!(keys(&fitness[0]), ["purpose", "verdict", "why"]);
    let good: Vec<&Value> = fitness.iter().filter(|f| f["verdict"] == "yes").map(|f| &f["purpose"]).collect();
    assert_eq!(tier["good_for"].as_array().unwrap().iter().collect::<Vec<_>>(), good);

    // What was not measured is absent.
    let gaps = json::check(support::check_record(), &support::study_with_gaps(), None);
    assert!(gaps.get("report").is_none());
    let tier = by_name(&gaps["tiers"], "nvme0n1");
    for key in ["seq_read_MBps", "swap_sim", "fsync_us", "ceiling_share"] {
        assert!(tier.get(key).is_none(), "{key}");
    }
}

#[test]
fn a_comparison_carries_verdicts() {
    let record = support::check_record();
    let document = json::compare(&[vec![record], vec![record]]);
    assert_eq!((&document["schema"], &document["before"]), (&"tiermark.compare/1".into(), &"7c1e04aa".into()));
    let figures = document["comparisons"][0]["figures"].as_array().unwrap();
    assert!(figures.iter().all(|figure| figure["ratio"] == 1.0), "a run is what it is");
    assert!(figures.iter().any(|figure| figure["verdict"] == "same"));
    assert!(figures.iter().all(|figure| figure["verdict"] != "better" && figure["verdict"] != "worse"));
}

#[test]
fn what_came_before_the_measurement_is_not_judged() {
    let mut record = support::check_record().clone();
    let all = report::view(&record).steps[0].samples.len();
    let from = report::view(&record).steps[0].samples[2].at;
    record.steps[0].measured_from = Some(from);
    let view = report::view(&record);
    assert_eq!((view.steps[0].samples.len(), view.steps[0].samples[0].at), (all - 2, from));
}
