//! `load desktop` with a real Chromium, `load build` with what compiles here, and the checks and advice that go with a desktop. Short: two
//! small pages on one set-up, a few files compiled.
#![forbid(unsafe_code)]

mod common;

use common::machine::alone;
use common::{Home, Need, full, has_keys, possible};
use std::path::Path;

/// Whether a browser and what it needs is here; says so where it is not.
fn browses(test: &str) -> bool {
    if !possible(test, &[Need::Root, Need::Loops, Need::Tool("mkfs.ext4"), Need::Tool("mkfs.btrfs")]) {
        return false;
    }
    let has_browser =
        ["/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser", "/opt/google/chrome/chrome"]
            .iter()
            .any(|program| Path::new(program).exists());
    if !has_browser {
        println!("SKIP {test}: needs chromium");
    }
    if !Path::new("/dev/fuse").exists() {
        println!("SKIP {test}: needs FUSE");
        return false;
    }
    has_browser
}

#[test]
fn a_browser_opens_pages_on_a_board_s_disk_and_leaves_nothing() {
    let _alone = alone();
    if !browses("a_browser_opens_pages_on_a_board_s_disk_and_leaves_nothing") {
        return;
    }
    let home = Home::new();
    // The program stays where it is: copying it takes most of the time. The whole comparison is for the long form.
    let mut words =
        vec!["load", "desktop", "--pages", "2", "--weight", "8M", "--memory", "700M", "--switches", "4", "--json"];
    words.extend(["--patience", "120s", "--repeat", "1", "--program-stays", "--progress", "never", "--on", "moved"]);
    if full() {
        words.extend(["--on", "stock"]);
    }
    let told = home.run(&words);
    if told.err.contains("memory controller") {
        println!("SKIP a_browser_opens_pages_on_a_board_s_disk_and_leaves_nothing: needs a memory cgroup");
        return;
    }
    let run = told.code(0).json();
    let row = &run["rows"][0];
    has_keys(
        row,
        "setup wait_s start_s interactive_s switch_s longest_freeze_s answer_p99_ms pages swap_MB disk_MB memory_percent cpu_percent visits why",
    );
    assert_eq!((row["setup"].as_str(), row["visits"].as_u64()), (Some("moved"), Some(1)), "{row}");
    assert_eq!(row["pages"]["alive"], 2.0, "{row}");
    assert!(row["wait_s"].as_f64().unwrap() > 0.0 && row["wait_s"].as_f64() < Some(120.0), "{row}");
    if full() {
        let verdict = &run["verdicts"][0];
        has_keys(verdict, "from to verdict acts visits sentence");
        assert_eq!(verdict["acts"], 6);
    }
    home.assert_clean(&home.work());
}

#[test]
fn what_no_browser_can_do_is_told_in_a_sentence() {
    let home = Home::new();
    let told =
        |words: &[&str]| home.run(&[&["load", "desktop", "--dry-run", "--browser", "/bin/true"], words].concat());
    assert!(told(&["--on", "floppy"]).code(2).sentence().contains("is no set-up"));
    assert!(told(&["--on", "sd-pi3,compress=zstd"]).code(2).sentence().contains("does not compress"));
    assert!(told(&["--memory", "50M"]).code(2).sentence().contains("no browser starts"));
    let nothing = home.run(&["load", "desktop", "--dry-run", "--browser", "/no/such/browser"]);
    assert!(nothing.code(4).sentence().contains("/no/such/browser"));
    let plan = told(&["--json"]).code(0).json();
    assert!(plan.to_string().contains("ssd-usb2-pi3"), "{plan}");
}

#[test]
fn a_build_is_timed_and_says_what_of_heat_it_cannot_see() {
    let _alone = alone();
    let home = Home::new();
    for compiler in ["mix", "c"] {
        if compiler == "c" && !possible("a_build_is_timed_and_says_what_of_heat_it_cannot_see", &[Need::Tool("cc")]) {
            continue;
        }
        let words = ["load", "build", "--compiler", compiler, "--builds", "1", "--units", "4", "--jobs", "2", "--json"];
        let run = home.run(&[&words[..], &["--progress", "never"]].concat()).code(0).json();
        let row = &run["rows"][0];
        has_keys(row, "tier build_s files_per_minute visits why");
        assert!(row["build_s"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row.get("minutes_to_throttling").is_some() || row.to_string().contains("thrott"), "{row}");
    }
    home.assert_clean(&home.work());
}

#[test]
fn the_desktop_s_checks_are_made_and_the_matrix_of_before_stands_beside() {
    let _alone = alone();
    let home = Home::new();
    let dir = home.work();
    let words = ["check", "--for", "desktop", "--quick", "--in", dir.to_str().unwrap(), "--json"];
    let first = home.run(&words).code(0).json();
    has_keys(&first, "schema dir iozone zeros compression zswap build");
    assert_eq!(first["schema"], "tiermark.check-desktop/1");
    assert!(first["iozone"]["figures"].is_object() && first["zeros"]["figures"].is_object(), "{first}");
    assert!(first["build"]["rows"][0]["files_per_minute"].as_f64().unwrap() > 0.0);
    if full() {
        let second = home.run(&words).code(0).json();
        assert_eq!(second["iozone_before"]["run"], first["iozone"]["run"]);
    }
    home.assert_clean(&dir);
}

#[test]
fn advice_measures_what_it_lacks_unless_it_may_not() {
    let _alone = alone();
    let home = Home::new();
    let runs = |home: &Home| home.run(&["runs", "--json"]).json()["runs"].as_array().map_or(0, Vec::len);
    home.run(&["advise", "--for", "desktop", "--no-run"]).code(0);
    assert_eq!(runs(&home), 0);
    let advice = home.run(&["advise", "--for", "desktop", "--json"]).code(0).json();
    let of_swap = ["swap-on-card", "no-swap", "page-cluster", "swappiness", "zswap"];
    let said = advice["recommendations"].as_array().unwrap();
    let wants = said.iter().any(|said| of_swap.contains(&said["rule"].as_str().unwrap()));
    // Once at most, and only where a rule speaks of swap and its disk can be written.
    assert!(runs(&home) <= usize::from(wants), "{advice}");
    if runs(&home) == 1 {
        assert!(advice.to_string().contains("as swap:"), "{advice}");
        home.run(&["advise", "--for", "desktop"]).code(0);
        assert_eq!(runs(&home), 1);
    }
    home.assert_clean(&home.work());
}
