//! The verb `profile` as a whole: runs and devices in virtual time become profiles, what is printed can be read again, and
//! what cannot be fitted is refused in one sentence.
#![forbid(unsafe_code)]

mod common;

use common::{Home, has_keys, job};
use serde_json::Value;
use std::fs;

/// A device that is known.
const TRUTH: &str = "name = \"truth\"\nsize = \"8GiB\"\nchannels = 4\n[read]\nlatency_us = { mean = 120, sigma = 0.3 }\n\
                     bandwidth_MBps = 200\n[write]\nlatency_us = 60\nbandwidth_MBps = 150\n";

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A home with the profile of that text in it, and what `--on` takes for it.
fn with_profile(toml: &str) -> (Home, String) {
    let home = Home::new();
    let path = home.work().join("truth.toml");
    fs::write(&path, toml).unwrap();
    let on = format!("profile:{}", path.display());
    (home, on)
}

/// Mean latency of a direction of a fitted profile, whatever form it has.
fn mean_us(fitted: &Value, direction: &str) -> f64 {
    let toml = toml_of(fitted);
    let profile = profile::Profile::parse(&toml).unwrap();
    let side = profile.direction(direction == "read").unwrap();
    side.random.latency_us.as_ref().unwrap().mean_us()
}

/// The JSON of a profile read as one: its keys are the TOML's, or this fails.
fn toml_of(json: &Value) -> String {
    let mut fields = json.as_object().unwrap().clone();
    assert_eq!(fields.remove("schema").unwrap(), "tiermark.profile/1");
    let profile: profile::Profile = serde_json::from_value(Value::Object(fields)).unwrap();
    profile.to_toml().unwrap()
}

#[test]
fn a_profile_measured_on_a_known_device_is_that_device() {
    let (home, on) = with_profile(TRUTH);
    let measured = ["profile", "--on", &on, "--set", "runtime=10s", "--name", "found"];
    let fitted = home.json(&measured);
    has_keys(&fitted, "name source size channels read write unseen confidence");
    assert_eq!(fitted["name"], "found");
    assert_eq!(fitted["channels"], 4);
    for (direction, truth) in [("read", 120.0), ("write", 60.0)] {
        let found = mean_us(&fitted, direction);
        assert!((found / truth - 1.0).abs() < 0.1, "{direction}: {found}, truth {truth}");
        let rate = fitted[direction]["bandwidth_MBps"].as_f64().unwrap();
        assert!((rate / if direction == "read" { 200.0 } else { 150.0 } - 1.0).abs() < 0.1, "{direction}: {rate}");
    }
    // What it could not see is named, field by field, in the document and in the text for people.
    let unseen: Vec<&str> = fitted["unseen"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let told = home.run(&["profile", "last", "--name", "found"]).code(0);
    for field in
        ["link.queue", "cache", "cache.idle_drain_MBps", "stall", "slowdown", "slowdown.recovers_s", "flush.at_most"]
    {
        assert!(unseen.iter().any(|text| text.starts_with(&format!("{field}: "))), "{field} is not in {unseen:?}");
        assert!(told.err.contains(&format!("not seen  {field}: ")), "{field}: {}", told.err);
    }
    // The same run again, as TOML: the same profile, which can be run on.
    let again = profile::Profile::parse(&told.out).unwrap();
    assert_eq!(again, profile::Profile::parse(&toml_of(&fitted)).unwrap());
    let file = home.work().join("found.toml");
    home.run(&["profile", "last", "--name", "found", "-o", file.to_str().unwrap()]).code(0);
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), told.out.trim());
    let on = format!("profile:{}", file.display());
    let run = home.json(&job(&["rw=randread", "depth=16", "runtime=2s"], &on));
    let read = &run["steps"][0]["read"];
    let (low, high) = (&read["predicted"]["iops"][0], &read["predicted"]["iops"][1]);
    let iops = read["iops"].as_f64().unwrap();
    assert!(low.as_f64().unwrap() <= iops && iops <= high.as_f64().unwrap(), "{read}");
}

#[test]
fn runs_of_any_jobs_become_a_profile_and_several_are_taken_together() {
    let (home, on) = with_profile(TRUTH);
    for settings in [["rw=randread", "depth=1"], ["rw=randwrite", "depth=1"], ["rw=randread", "depth=32"]] {
        home.run(&job(&[settings[0], settings[1], "runtime=3s"], &on)).code(0);
    }
    let runs = home.json(&words("runs"));
    let mut names: Vec<String> =
        runs["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect();
    let both: Vec<String> = ["profile".to_owned()].into_iter().chain(names.clone()).collect();
    let fitted = home.json(&both);
    // One saturated figure of one size cannot tell four channels from a link; both are there.
    let others = fitted["alternative"].as_array().unwrap();
    let channels: Vec<&Value> = std::iter::once(&fitted).chain(others).map(|one| &one["channels"]).collect();
    assert!(channels.iter().any(|n| **n == 4) && channels.iter().any(|n| n.is_null()), "{channels:?}");
    has_keys(&fitted, "read write");
    assert!(fitted["source"].as_str().unwrap().contains("3 runs"), "{}", fitted["source"]);
    // One alone says nothing of writes and leaves them unknown.
    names.retain(|name| {
        let run = home.json(&["show", name]);
        run["steps"][0]["job"]["depth"] == 1 && run["steps"][0]["job"]["rw"] == "randread"
    });
    let fitted = home.json(&["profile", &names[0]]);
    assert!(fitted.get("write").is_none(), "{fitted}");
    assert!(fitted["unseen"].as_array().unwrap().iter().any(|text| text == "write: no step did that"), "{fitted}");
}

#[test]
fn what_cannot_be_fitted_is_refused_in_one_sentence() {
    let (home, on) = with_profile(TRUTH);
    home.run(&words("profile last")).code(4).says(&["no run is recorded", "tiermark check"]);
    home.run(&words("profile nosuchrun")).code(2).says(&["nosuchrun", "tiermark runs"]);
    home.run(&words("profile")).code(2);
    home.run(&words("profile last --on memory")).code(2);
    home.run(&words("profile --on memory")).code(4).says(&["memory is no device"]);
    home.run(&words("profile --on profile:floppy")).code(2).says(&["floppy", "tiermark profiles"]);
    let absent = home.work().join("absent");
    home.run(&["profile", "--on", absent.to_str().unwrap()]).code(4).says(&["absent"]);
    // A profile that is none, and one that cannot be read.
    let broken = home.work().join("broken.toml");
    let on_broken = format!("profile:{}", broken.display());
    home.run(&["profile", "--on", &on_broken]).code(4).says(&["broken.toml", "cannot be read"]);
    for (text, says) in
        [("name = \"x\"\nlatency = 3", "latency"), ("channels = ", "broken.toml"), ("\u{0}", "broken.toml")]
    {
        fs::write(&broken, text).unwrap();
        let told = home.run(&["profile", "--on", &on_broken]).code(2);
        assert!(told.err.contains(says) && told.out.is_empty(), "{told:?}");
        assert!(told.sentence().contains("broken.toml: line "), "{told:?}");
    }
    // A method whose steps say nothing of a device: bandwidth and loads of memory.
    home.run(&job(&["rw=read", "size=16MiB", "runtime=200ms"], "memory")).code(0);
    home.run(&words("profile last")).code(2).says(&["tiermark profile --on"]);
    // A bad parameter and a bad name are found before anything is measured, and no empty file is left.
    let out = home.work().join("out.toml");
    let file = out.to_str().unwrap();
    home.run(&["profile", "--on", &on, "--set", "runtime=0", "-o", file]).code(2).says(&["runtime"]);
    assert!(!out.exists());
    fs::write(&out, "mine").unwrap();
    home.run(&["profile", "--on", &on, "-o", file]).code(4).says(&["out.toml"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine", "an existing file is never replaced");
}

/// Rate and latency that do not sum to the depth are marked wherever the run is shown, and by whoever imports it.
#[test]
fn figures_that_do_not_sum_to_their_depth_are_marked() {
    let (home, on) = with_profile(TRUTH);
    let settings = ["rw=randread", "depth=4", "runtime=2s"];
    let good = home.json(&job(&settings, &on));
    let in_flight = &good["steps"][0]["in_flight"];
    assert_eq!(in_flight["verdict"], "consistent", "{in_flight}");
    assert!((in_flight["sum"].as_f64().unwrap() - 4.0).abs() < 0.05 && in_flight["asked"] == 4.0, "{in_flight}");
    // One at a time, though four were asked.
    let off = home.json(&job(&[settings[0], settings[1], settings[2], "engine=psync"], &on));
    assert_eq!(off["steps"][0]["in_flight"]["verdict"], "off", "{off}");
    let shown = home.run(&words("show last")).code(0).out;
    assert!(shown.contains("sums to 1.00, not to the depth of 4: operations complete in submission"), "{shown}");
    let open = home.json(&job(&[settings[0], settings[1], settings[2], "rate=100"], &on));
    assert_eq!(open["steps"][0]["in_flight"]["verdict"], "unsaid", "{open}");

    for (run, marked) in [(&off, true), (&good, false)] {
        let run = run["run"].as_str().unwrap();
        let file = home.work().join(format!("{run}.tiermark"));
        let file = file.to_str().unwrap();
        home.run(&["export", run, "-o", file]).code(0);
        let (there, also) = (Home::new(), Home::new());
        let told = there.run(&["import", file]).code(0);
        assert_eq!(told.err.contains("not to the depth of 4"), marked, "{told:?}");
        let runs = also.json(&["import", file]);
        assert_eq!(runs["runs"][0]["inconsistent"].as_array().unwrap().len(), usize::from(marked), "{runs}");
        let page = there.work().join("page.html");
        there.run(&["report", "last", "-o", page.to_str().unwrap()]).code(0);
        assert_eq!(fs::read_to_string(page).unwrap().contains("sums to 1.00, not to the depth of 4"), marked);
    }
    let list = home.run(&words("profiles")).code(0).out;
    assert!(list.contains("inconsistent  sd-evo-pi5, nvme-usb3-pi5, ram-pi5"), "{list}");
    let card = home.run(&words("profiles sd-evo-pi5")).code(0).out;
    assert!(card.contains("sums to 3.08, not to the depth of 4: latencies leave out the time blocked"), "{card}");
}

/// Figures without a run: a latency at depth 1 and one saturated rate say what depth 16 does, with an interval.
#[test]
fn figures_alone_predict_a_row_that_they_do_not_hold() {
    let home = Home::new();
    let (figures, fitted) = (home.work().join("review.toml"), home.work().join("disk.toml"));
    let rows = "name = \"disk\"\nsource = \"a review\"\n[[row]]\nrw = \"randread\"\nbs = \"4KiB\"\nread_lat_us = 100\n\
                [[row]]\nrw = \"randread\"\nbs = \"4KiB\"\ndepth = 128\nread_iops = 300000\n";
    fs::write(&figures, rows).unwrap();
    let (figures, out) = (figures.to_str().unwrap(), fitted.to_str().unwrap());
    let told = home.run(&["profile", "--figures", figures, "-o", out]).code(0);
    assert!(told.out.contains("read.latency_us.sigma") && told.out.contains("not seen  stall: "), "{}", told.out);
    let on = format!("profile:{out}");
    let run = home.json(&job(&["rw=randread", "bs=4k", "depth=16", "runtime=1s"], &on));
    let iops = &run["steps"][0]["read"]["predicted"]["iops"];
    let (low, high) = (iops[0].as_f64().unwrap(), iops[1].as_f64().unwrap());
    // 16 at a time of 100 µs each are 160,000; thirty channels do not hold them up much.
    assert!(low < 160_000.0 && 160_000.0 < high && high / low < 1.4, "{low} to {high}");
    let json = home.json(&["profile", "--figures", figures, "--name", "other"]);
    assert_eq!((&json["name"], &json["source"]), (&"other".into(), &"fitted to 2 quoted figures: a review".into()));
    for (rows, says) in [
        ("name = \"x\"\nsource = \"y\"\n[[row]]\nrw = \"read\"\nbs = \"4k\"", "row 1: neither a rate nor"),
        ("name = \"x\"\nsource = \"y\"\nrow = []", "no step of these runs"),
        ("name = \"X y\"\nsource = \"y\"\n[[row]]\nrw = \"read\"\nbs = \"4k\"\nread_iops = 9", "lower-case"),
    ] {
        fs::write(figures, rows).unwrap();
        home.run(&["profile", "--figures", figures]).code(2).says(&[says]);
    }
    home.run(&["profile", "--figures", "absent.toml"]).code(4).says(&["absent.toml", "cannot be read as figures"]);
    home.run(&["profile", "last", "--figures", figures]).code(2);
}

/// Bug: threads that each read in sequence looked like one stream of which four pieces were under way at once, and what
/// was measured in sequence was thrown away.
#[test]
fn a_whole_review_becomes_the_device_that_it_was_taken_on() {
    let (home, on) = with_profile(&format!("{TRUTH}[cache]\nsize = \"300MB\"\ndrain_MBps = 90\n"));
    home.run(&["run", "ssd-review", "--on", &on]).code(0);
    let fitted = home.json(&["profile", "last"]);
    assert_eq!((&fitted["channels"], fitted.get("link")), (&Value::from(4), None), "{fitted}");
    for (direction, us, rate) in [("read", 120.0, 200.0), ("write", 60.0, 150.0)] {
        let found = mean_us(&fitted, direction);
        assert!((found / us - 1.0f64).abs() < 0.1, "{direction}: {found}, truth {us}");
        for pattern in [&fitted[direction], &fitted[direction]["sequential"]] {
            let found = pattern["bandwidth_MBps"].as_f64().unwrap();
            assert!((found / rate - 1.0f64).abs() < 0.1, "{direction}: {found}, truth {rate}");
        }
    }
    let (cache, drain) = (&fitted["cache"]["size"], &fitted["cache"]["drain_MBps"]);
    assert!((cache.as_f64().unwrap() / 3e8 - 1.0).abs() < 0.1 && (drain.as_f64().unwrap() / 90.0 - 1.0).abs() < 0.1);
}
