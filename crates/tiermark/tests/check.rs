//! `check` as its first user sees it: the text, the document, and the report in a real browser.
#![forbid(unsafe_code)]

mod common;

use common::{Home, has_keys, possible};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The narrowest paper that the text fits.
const COLUMNS: usize = 100;

#[test]
fn the_document_has_the_figures_that_matter() {
    let home = Home::new();
    let work = home.work();
    let document = home.json(&["check", "--quick", "--in", work.to_str().unwrap()]);
    has_keys(&document, "schema run report elapsed_s tiers");
    let report = Path::new(document["report"].as_str().unwrap());
    let page = fs::read_to_string(report).unwrap();
    assert!(page.contains(document["run"].as_str().unwrap()), "the report names its run");

    let tiers = document["tiers"].as_array().unwrap();
    let ram = tiers.iter().find(|tier| tier["kind"] == "ram").unwrap_or_else(|| panic!("no RAM: {document}"));
    has_keys(ram, "name kind seq_read_MBps seq_write_MBps findings good_for");
    let place = fs::canonicalize(&work).unwrap();
    let here = tiers.iter().find(|tier| Path::new(tier["place"].as_str().unwrap()) == place);
    let here = here.unwrap_or_else(|| panic!("{} was asked for and not measured: {document}", work.display()));
    for tier in tiers {
        has_keys(tier, "name findings good_for");
        for key in ["seq_read_MBps", "seq_write_MBps", "rand_read_4k_qd1_us", "rand_read_4k_qd32_iops"] {
            assert!(tier.get(key).is_none_or(|figure| figure.as_f64() > Some(0.0)), "{key}: {tier}");
        }
        for finding in tier["findings"].as_array().unwrap() {
            has_keys(finding, "id text evidence");
        }
    }
    if here["kind"] != "ram" {
        has_keys(here, "seq_read_MBps seq_write_MBps swap_sim rand_read_4k_qd1_us rand_read_4k_qd32_iops fsync_us");
        has_keys(&here["swap_sim"], "read_iops write_iops read_lat_us write_lat_us");
        has_keys(&here["fsync_us"], "p50 p99");
        assert!(!here["good_for"].as_array().unwrap().is_empty(), "{here}");
    }

    home.assert_clean(&work);
    let runs = home.json(&["runs"]);
    let listed = &runs["runs"][0];
    assert_eq!(
        (&listed["run"], &listed["method"], &listed["state"]),
        (&document["run"], &"check".into(), &"done".into())
    );
    let shown = home.json(&["show", document["run"].as_str().unwrap()]);
    assert_eq!(listed["steps"].as_u64(), Some(shown["steps"].as_array().unwrap().len() as u64));
}

#[test]
fn the_text_fits_and_its_report_opens_in_a_browser() {
    let home = Home::new();
    let began = Instant::now();
    let told = home.run(&["check", "--quick", "--in", home.work().to_str().unwrap()]).code(0);
    // The budget is 15 s; other tests run meanwhile, and still nobody waits two minutes for it.
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
    assert!(!told.out.contains('\x1b') && !told.err.contains("panicked"), "{told:?}");
    fits(&told.out);
    let run = home.json(&["runs"])["runs"][0]["run"].as_str().unwrap().to_owned();
    assert!(told.out.contains(&format!("tiermark show {run}")), "{}", told.out);
    assert!(told.out.contains("measured in ") && told.out.contains("work ("), "{}", told.out);
    let reports = fs::read_dir(home.database().with_file_name("reports")).unwrap();
    let reports: Vec<PathBuf> = reports.map(|entry| entry.unwrap().path()).collect();
    let [report] = reports.as_slice() else { panic!("not one report: {reports:?}") };
    assert!(told.out.contains(report.file_name().unwrap().to_str().unwrap()), "{}", told.out);
    fits(&home.run(&["show", "last"]).code(0).out);
    fits(&home.run(&["runs"]).code(0).out);

    // The report can be made again, elsewhere, of the record alone.
    let again = home.work().join("again.html");
    home.run(&["report", "last", "--out", again.to_str().unwrap()]).code(0);
    assert!(fs::read(&again).unwrap() == fs::read(report).unwrap(), "the same record gave two reports");
    opens_in_a_browser(report);
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= COLUMNS, "{} columns: {line}", line.chars().count());
    }
}

/// No error on its console, charts drawn; its picture stays in the build's folder for a person to look at.
fn opens_in_a_browser(page: &Path) {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found =
        |name: &&str| Command::new("sh").args(["-c", &format!("command -v {name}")]).output().unwrap().status.success();
    let Some(browser) = names.into_iter().find(found) else {
        assert!(!possible("opens_in_a_browser", &[common::Need::Tool("chromium")]));
        return;
    };
    let open = |what: &str| {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--hide-scrollbars", "--window-size=1280,6400", "--virtual-time-budget=8000"]);
        command.args(["--enable-logging=stderr", what, &format!("--user-data-dir={}", profile.path().display())]);
        let output = command.arg(format!("file://{}", page.display())).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert_eq!(console, [""; 0], "{}", page.display());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let document = open("--dump-dom");
    let charts = document.matches("class=\"main-svg\"").count();
    assert!(charts >= 3, "{charts} drawings on the page");
    assert!(document.matches("class=\"trace scatter").count() >= 5, "the charts are empty");
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check-report.png");
    open(&format!("--screenshot={}", picture.display()));
    assert!(fs::metadata(&picture).unwrap().len() > 50_000, "{} shows an empty page", picture.display());
}

#[test]
fn ctrl_c_keeps_what_a_check_has() {
    let home = Home::new();
    let mut running = home.start(&["check", "--in", home.work().to_str().unwrap()]);
    let database = home.database();
    running.until("a first step is done", || {
        let store = record::Store::open_for_reading(&database).ok();
        store.and_then(|store| store.runs().ok()).is_some_and(|runs| runs.first().is_some_and(|run| run.steps > 1))
    });
    running.signal(rustix::process::Signal::INT);
    let told = common::finish(running).code(130);
    assert!(!told.err.contains("panicked"), "{told:?}");
    let run = home.json(&["runs"])["runs"][0].clone();
    assert_eq!(run["state"], "interrupted");
    assert!(run["steps"].as_u64() > Some(0), "{run}");
    assert!(told.out.contains("tiermark show"), "what there is is shown: {told:?}");
    fits(&told.out);
    home.assert_clean(&home.work());
}

#[test]
fn without_root_it_does_what_it_can_and_says_what_root_would_add() {
    let mut home = Home::new();
    home.as_an_ordinary_user();
    let document = home.json(&["check", "--quick"]);
    let tiers = document["tiers"].as_array().unwrap();
    assert!(tiers.iter().any(|tier| tier["kind"] == "ram" && tier["seq_read_MBps"].as_f64() > Some(0.0)), "{document}");
    // What only root may read has a row, so that it is seen, and not a figure.
    for raw in tiers.iter().filter(|tier| tier["place"].as_str().is_some_and(|p| p.starts_with("/dev/"))) {
        assert!(raw["seq_read_MBps"].is_null(), "a raw device was read without the right to it: {raw}");
    }
    assert_eq!(home.json(&["runs"])["runs"][0]["state"], "done");
}
