//! What other programs read: fio's JSON, CSV, OpenMetrics.

use super::support;
use basics::{NotRun, Side};
use jiff::tz::TimeZone;
use record::State;
use report::terminal::{self, Style};
use report::{csv, fio_json, html, json, openmetrics};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Every key of a job and a direction that fio 3.33 prints in all runs, by its name there.
#[test]
fn fios_json_has_fios_keys() {
    let document = fio_json::run(support::check_record());
    assert!(document["fio version"].as_str().unwrap().starts_with("fio-3."));
    let job = &document["jobs"][0];
    let of_job = "jobname groupid error eta elapsed read write trim sync job_runtime usr_cpu sys_cpu ctx majf minf latency_ns \
                  latency_us latency_ms latency_depth latency_target latency_percentile latency_window";
    for key in of_job.split_whitespace().chain(["job options"]) {
        assert!(job.get(key).is_some(), "{key}");
    }
    for option in ["rw", "bs", "iodepth", "numjobs", "direct", "name"] {
        assert!(job["job options"][option].is_string(), "{option}: fio's options are all text");
    }
    let of_side = "io_bytes io_kbytes bw_bytes bw iops runtime total_ios short_ios drop_ios slat_ns clat_ns lat_ns bw_min bw_max \
                   bw_agg bw_mean bw_dev bw_samples iops_min iops_max iops_mean iops_stddev iops_samples";
    for direction in ["read", "write", "trim"] {
        for key in of_side.split_whitespace() {
            assert!(job[direction].get(key).is_some(), "{direction} {key}");
        }
        for kind in ["slat_ns", "clat_ns", "lat_ns"] {
            for key in ["min", "max", "mean", "stddev", "N"] {
                assert!(job[direction][kind][key].is_number(), "{direction} {kind} {key}");
            }
        }
    }
}

#[test]
fn fios_json_says_what_the_record_says() {
    let record = support::sda_record(1.0);
    let document = fio_json::run(&record);
    let steps: Vec<_> = record.steps.iter().filter(|step| step.read.operations() > 0).collect();
    assert!(!steps.is_empty());
    for step in steps {
        let jobs = document["jobs"].as_array().unwrap();
        let job = jobs.iter().find(|job| job["groupid"] == step.index).unwrap();
        let (read, clat) = (&job["read"], &job["read"]["clat_ns"]);
        assert_eq!(
            (job["jobname"].as_str(), &read["total_ios"]),
            (Some(step.name.as_str()), &step.read.operations().into())
        );
        assert_eq!(read["io_bytes"], step.read.bytes);
        assert!((number(&read["iops"]) * step.elapsed.secs() / step.read.operations() as f64 - 1.0).abs() < 1e-9);
        assert_eq!(number(&read["bw"]), (number(&read["bw_bytes"]) / 1024.0).floor());
        assert_eq!(clat["percentile"]["99.000000"], step.read.latency.percentile(99.0).unwrap().0);
        assert_eq!(
            (&clat["N"], number(&clat["mean"])),
            (&step.read.latency.count().into(), step.read.latency.mean().unwrap().0 as f64)
        );
        assert!(number(&read["iops_samples"]) > 0.0 && number(&read["iops_min"]) <= number(&read["iops_mean"]));
        let classes = ["latency_ns", "latency_us", "latency_ms"].map(|unit| job[unit].as_object().unwrap());
        let all: f64 = classes.iter().flat_map(|classes| classes.values()).map(number).sum();
        assert!((all - 100.0).abs() < 1e-6, "{all} per cent in all classes together");
    }
}

/// fio's clat is what the device took; what an open loop's user waits is its lat.
#[test]
fn an_open_loop_has_a_service_time() {
    let document = fio_json::run(&support::open_loop_record());
    let (read, options) = (&document["jobs"][0]["read"], &document["jobs"][0]["job options"]);
    assert!(
        number(&read["lat_ns"]["percentile"]["99.000000"])
            > 100.0 * number(&read["clat_ns"]["percentile"]["99.000000"])
    );
    assert_eq!(options["rate_iops"], "1000");
}

#[test]
fn what_was_not_begun_is_no_job_and_what_failed_has_a_number() {
    let mut record = support::interrupted_record();
    let first = record.steps.first_mut().unwrap();
    first.state = State::NotRun(NotRun::RunFailed);
    let document = fio_json::run(&record);
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), record.steps.len() - 1);
    assert!(jobs.iter().any(|job| job["error"] != 0) && jobs.iter().any(|job| job["error"] == 0));
}

#[test]
fn a_table_has_as_many_fields_in_each_line() {
    let mut record = support::sda_record(1.0);
    record.steps[0].name = "a, \"b\"".to_owned();
    let text = csv::run(&record).unwrap();
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(heads[..3], ["run", "step", "name"]);
    assert!(heads.contains(&"lat_p99_us") && heads.contains(&"lat_p99.999_us"), "{heads:?}");
    let first = lines.next().unwrap();
    assert!(first.contains("\"a, \"\"b\"\"\""), "{first}");
    let iops = heads.iter().position(|head| *head == "iops").unwrap();
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), heads.len(), "{line}");
        assert!(fields[iops].parse::<f64>().unwrap() > 0.0);
    }
}

/// A visit to a tier is a line, also one that did not fit; a run of another kind has none of its columns.
#[test]
fn a_workload_has_its_own_columns() {
    let text = csv::run(&support::tokens_record(false)).unwrap();
    let plain = csv::run(&support::sda_record(1.0)).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let heads = &lines[0];
    assert!(text.starts_with(plain.lines().next().unwrap()) && !plain.contains("tps"), "{heads:?}");
    let of = |line: &[&str], head: &str| line[heads.iter().position(|other| *other == head).unwrap()].to_owned();
    assert_eq!(lines.len(), 6);
    let optane = &lines[1];
    assert_eq!((of(optane, "tier").as_str(), of(optane, "model").as_str()), ("optane", "gemma2:2b"));
    assert!(
        of(optane, "tps").parse::<f64>().unwrap() > 1.0 && of(optane, "bytes_per_token").parse::<f64>().unwrap() > 1e6
    );
    assert_eq!(of(optane, "passes_per_s"), "");
    let none = &lines[5];
    assert_eq!((of(none, "tier").as_str(), of(none, "ops").as_str(), of(none, "tps").as_str()), ("none", "", ""));
    assert!(of(none, "why").starts_with("does not fit"), "{none:?}");
    assert!(lines[1..5].iter().all(|line| line.len() >= heads.len()));
}

/// As people read it: terminal and page.
fn shown(record: &record::Record) -> [String; 2] {
    let style = Style { width: 100, color: false, unicode: true, zone: TimeZone::UTC };
    let page = html::report(&[record]).replace("&#x2f;", "/");
    [terminal::run(record, &style), page]
}

/// Whoever reads a file that was taken out of here must know as well that the durations were shortened.
#[test]
fn every_form_says_a_scale() {
    let mut record = support::sda_record(1.0);
    record.run.plan.scale = Some("1/60".parse().unwrap());
    for text in shown(&record) {
        assert!(text.contains("all durations are 1/60 of what "), "{}", &text[..text.len().min(2000)]);
    }
    assert!(report::markdown::report(&[&record]).contains("all durations are 1/60 of what "));
    assert_eq!(json::run(&record)["scale"], "1/60");
    assert_eq!(fio_json::run(&record)["global options"]["scale"], "1/60");
    let table = csv::run(&record).unwrap();
    assert!(table.lines().next().unwrap().ends_with(",scale"), "{table}");
    assert!(table.lines().skip(1).all(|line| line.ends_with(",1/60")), "{table}");
    assert!(openmetrics::run(&record).contains("scale=\"1/60\""));
    record.run.plan.scale = None;
    assert!(shown(&record).iter().all(|text| !text.contains("all durations are")));
    assert!(json::run(&record).get("scale").is_none() && !openmetrics::run(&record).contains("scale="));
}

#[test]
fn what_was_not_needed_is_counted_and_not_listed() {
    let mut record = support::sda_record(1.0);
    let last = record.steps.last_mut().unwrap();
    last.state = State::NotRun(NotRun::Enough);
    (last.name, last.read, last.write) = ("needless".to_owned(), Side::default(), Side::default());
    for text in shown(&record) {
        assert!(text.contains("1 steps: what it would have shown was known by then"), "{text}");
    }
    assert!(!shown(&record)[0].contains("needless"));
    assert_eq!(json::run(&record)["steps"].as_array().unwrap().last().unwrap()["why_kind"], "enough");
}

#[test]
fn metrics_are_escaped_and_end() {
    let mut record = support::sda_record(1.0);
    record.steps[0].name = "a\"b\\c\nd".to_owned();
    let text = openmetrics::run(&record);
    assert!(text.ends_with("# EOF\n") && text.contains("name=\"a\\\"b\\\\c\\nd\""), "{text}");
    assert!(text.contains("quantile=\"0.9999\"") || text.contains("quantile=\"0.999\""), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, values) = line.rsplit_once("} ").unwrap();
        let values: Vec<f64> = values.split(' ').map(|value| value.parse().unwrap()).collect();
        assert!(values.len() == 2 && values[0] >= 0.0, "{line}");
    }
    assert_eq!(text, openmetrics::run(&record));
}
