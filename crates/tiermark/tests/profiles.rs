//! `profiles`, and jobs on them in virtual time: the published rows from the command line, marked as simulated everywhere.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use std::fs;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn all_are_listed_and_one_is_a_form_for_others() {
    let home = Home::new();
    let list = home.json(&words("profiles"));
    let names: Vec<_> = list["profiles"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(
        names.join(" "),
        "sd-evo-pi5 nvme-usb3-pi5 sata-usb3-pi5 optane-pi5 ram-pi5 zram-pi5 sd-pi3 ssd-usb2-pi3 microsd-u3 ssd-usb-pi \
         p4800x p3700 micron-9100 disk-425"
    );
    let optane = &list["profiles"][3];
    assert_eq!(optane["fields"]["link"]["bandwidth_MBps"], 443.0);
    assert!(optane["source"].as_str().unwrap().contains("Optane"));
    let text = home.run(&words("profiles optane-pi5")).out;
    assert!(text.contains("# Swap row"), "{text}");
    let own = home.work().join("mine.toml");
    fs::write(&own, text.replace("optane-pi5", "mine").replace("mean = 168", "mean = 1680")).unwrap();
    let on = format!("profile:{}", own.display());
    let mine = home.json(&["run", "swap-sim", "--on", &on].map(str::to_owned));
    let theirs = home.json(&words("run swap-sim --on profile:optane-pi5"));
    let mean = |run: &serde_json::Value| run["steps"][0]["read"]["lat_us"]["mean"].as_f64().unwrap();
    assert!(mean(&mine) > 1600.0 && mean(&theirs) < 300.0, "{} {}", mean(&mine), mean(&theirs));
    fs::write(&own, "name = \"mine\"\nlatency = 3").unwrap();
    let told = home.run(&["run", "swap-sim", "--on", &on].map(str::to_owned));
    assert_eq!(told.status.code(), Some(2), "a bad text is bad usage: {}", told.err);
    assert!(told.err.contains("latency") && told.err.contains("mine.toml"), "{}", told.err);
}

/// A minute of swap simulation in a moment, with the published figures, and never taken for a measurement.
#[test]
fn virtual_time_gives_the_published_row_and_says_what_it_is() {
    let home = Home::new();
    let run = home.json(&words("run swap-sim --on profile:sata-usb3-pi5 --as-published"));
    let step = &run["steps"][0];
    assert_eq!(step["engine"], "virtual");
    let elapsed = step["elapsed_s"].as_f64().unwrap();
    assert!((60.0..60.1).contains(&elapsed), "{elapsed}: what was under way at the end is waited for");
    assert_eq!(run["origin"], "simulated: sata-usb3-pi5");
    assert!(step.get("cpu").is_none(), "{step}");
    for (side, iops) in [("read", 5006.0), ("write", 2150.0)] {
        let found = step[side]["iops"].as_f64().unwrap();
        assert!((found / iops - 1.0).abs() < 0.05, "{side}: {found}, published {iops}");
    }
    let again = home.json(&words("run swap-sim --on profile:sata-usb3-pi5 --as-published"));
    assert_eq!(again["steps"][0]["read"], step["read"], "equal seeds, equal figures");
    let text = home.run(&words("show last")).out;
    assert!(text.contains("simulated from the profile sata-usb3-pi5, not measured"), "{text}");
    let sd = home.json(&words("run swap-sim --on profile:sd-evo-pi5"));
    assert!(sd["steps"][0]["notes"][0].as_str().unwrap().contains("sums to 3.08"), "{sd}");
    let unknown = home.run(&words("run job --on profile:p3700"));
    assert!(unknown.err.contains("says nothing of reads"), "{}", unknown.err);
    let missing = home.run(&words("run job --on profile:floppy"));
    assert_eq!(missing.status.code(), Some(2), "{}", missing.err);
    assert!(missing.err.contains("tiermark profiles"), "{}", missing.err);
}
