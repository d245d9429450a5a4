//! The page's structure: whole, offline, escaped.

use super::support;
use basics::job::Engine;
use report::html::report;

/// The page without the library that draws and without what the script reads.
fn own_part(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<script") {
        out.push_str(before);
        rest = after.split_once("</script>").map_or("", |(_, tail)| tail);
    }
    // The template engine writes a slash as a reference.
    (out + rest).replace("&#x2f;", "/")
}

#[test]
fn nothing_is_fetched() {
    let page = report(&[support::check_record()]);
    for tag in ["src=", "<link", "@import", "url(", "<iframe", "<object", "<base"] {
        assert!(!own_part(&page).contains(tag), "{tag}");
    }
    for part in own_part(&page).split("href=\"").skip(1) {
        assert!(part.starts_with('#'), "a link leaves the page: {}", &part[..40.min(part.len())]);
    }
    assert!(page.contains("Content-Security-Policy\" content=\"default-src 'none'"), "and the browser holds it");
    assert_eq!(page.matches("plotly.js v").count(), 1, "the library is there once");
}

#[test]
fn every_section_stands_in_its_order() {
    let page = own_part(&report(&[support::check_record()]));
    let order =
        ["<h1>", "id=\"ladder\"", "id=\"pipe\"", "id=\"findings\"", "id=\"good-for\"", "id=\"curves\"", "id=\"how\""];
    let at: Vec<usize> =
        order.iter().map(|mark| page.find(mark).unwrap_or_else(|| panic!("{mark} is missing"))).collect();
    assert!(at.is_sorted(), "{at:?}");
    assert!(page.contains("<html lang=\"en\">"));
    assert!(
        page.contains("625 → 500 → 430–450 MB/s") && page.contains("625 → 500 → 400–430 MB/s"),
        "the bus mathematics"
    );
    assert!(page.contains("◂ narrowest") && page.contains("could be PCIe Gen3 x1"));
    assert!(page.contains("data-step=\""), "evidence leads to its step");
    assert!(page.contains("tiermark check") && page.contains("seed 42") && page.contains("NO_SQARRAY"));
}

#[test]
fn names_from_the_machine_stay_text() {
    let evil = "/mnt/</script><script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
    let mut record = support::sda_record(1.0);
    record.run.command = format!("tiermark check --in {evil}");
    record.run.target = evil.into();
    record.run.notes = vec![evil.into()];
    record.run.machine.model = basics::Known::Is(evil.into());
    for step in &mut record.steps {
        step.target = evil.into();
        step.tier = None;
        step.notes = vec![evil.into()];
    }
    for tier in &mut record.run.machine.tiers {
        tier.model = basics::Known::Is(evil.into());
        tier.hops.iter_mut().for_each(|hop| hop.name = evil.into());
    }
    let page = report(&[&record]);
    for way_out in ["<script>alert", "<img", "</script><script>a"] {
        assert!(!page.contains(way_out), "{way_out} became an element");
    }
    assert!(page.contains("&lt;img src"), "it is shown as it is");
}

#[test]
fn a_run_that_is_no_check_has_its_steps_and_curves() {
    let page = own_part(&report(&[&support::open_loop_record()]));
    assert!(page.contains("id=\"curves\"") && page.contains("id=\"pipe\"") && page.contains("<h1>sda: 9"));
    assert!(!page.contains("id=\"good-for\"") && !page.contains("id=\"ladder\""));
}

#[test]
fn several_runs_stand_on_one_page() {
    let (first, second) = (support::check_record(), support::open_loop_record());
    let page = own_part(&report(&[first, &second]));
    assert!(page.contains("Run 7c1e04aa") && page.contains("Run a90b33c2"));
}

/// The second check had no headline and no table, and two rungs of the ladder bore the same name.
#[test]
fn each_of_two_checks_has_its_table_and_its_name() {
    let first = support::check_record();
    let mut second = first.clone();
    "5d5d5d5d".clone_into(&mut second.run.id);
    let page = own_part(&report(&[first, &second]));
    assert_eq!(page.matches("class=\"figures\"").count(), 2);
    assert_eq!(page.matches("class=\"matrix\"").count(), 2);
    for words in ["<h2 class=\"of-run\">Run 5d5d5d5d: ", "RAM (7c1e04aa)", "RAM (5d5d5d5d)", "Run 5d5d5d5d:</span>"] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(report::file_name_of(&[first]), report::file_name(first));
    assert_eq!(report::file_name_of(&[first, &second]), "2026-11-21-check-7c1e04aa-with-5d5d5d5d.html");
}

#[test]
fn a_broken_run_says_so_at_the_top() {
    let page = own_part(&report(&[&support::interrupted_record()]));
    assert!(page.contains("class=\"alarm\"") && page.contains("was interrupted"));
    assert!(page.contains("Input/output error"));
}

#[test]
fn a_run_without_a_step_carries_no_library() {
    let mut record = support::sda_record(1.0);
    record.steps.clear();
    record.intervals.clear();
    record.samples.clear();
    let page = report(&[&record]);
    assert!(page.len() < 200_000, "{} bytes", page.len());
    assert!(!page.contains("id=\"curves\""));
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let record = support::check_record();
    assert_eq!(report(&[record]), report(&[record]));
    assert_eq!(report::file_name(record), "2026-11-21-check-7c1e04aa.html");
}

/// Curves of two devices lie on one chart; what was not measured of them is named beside it, and one is held against the other.
#[test]
fn sweeps_of_two_runs_are_drawn_side_by_side() {
    let (first, second) = (support::sweep_record("x", 1.0), support::sweep_record("y", 0.05));
    let page = report(&[&first, &second]);
    let own = own_part(&page);
    assert!(own.contains("<h1>ssd-review of profile:x and profile:y, side by side."));
    for words in [
        "id=\"chart-sweep-depth\"",
        "Random reads of 4 KiB: y has 0.05",
        "x, random reads of 4 KiB: saturated from depth 4 on",
        "profile:y, depth-seq-write: nothing is written here",
    ] {
        assert!(own.contains(words), "{words}");
    }
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let curve = &data["runs"][1]["sweeps"][0];
    assert_eq!(
        (&curve["axis"], &curve["subject"], &curve["title"]),
        (&"depth".into(), &"y".into(), &"random reads of 4 KiB".into())
    );
    let at: Vec<u64> = curve["points"].as_array().unwrap().iter().map(|point| point["at"].as_u64().unwrap()).collect();
    assert_eq!(at, [1, 2, 4, 8, 16]);
    let published = data["points"].as_array().unwrap();
    let largest =
        |point: &&serde_json::Value| point["at"] == 1 << 20 && point["title"] == "sequential reads at depth 1";
    assert!(published.iter().filter(largest).any(|point| point["mbps"] == 2300.0));
    // A run without a curve has none of it.
    assert!(!own_part(&report(&[support::check_record()])).contains("Left out"));
}

/// What the page's script reads.
fn data(page: &str) -> serde_json::Value {
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn a_language_model_has_its_bars_its_reasons_and_its_timeline() {
    let page = report(&[&support::tokens_record(false)]);
    let own = own_part(&page);
    for words in [
        "<h1>On optane gemma2:2b makes ",
        "href=\"#tokens\"",
        "id=\"chart-tokens\"",
        "id=\"chart-lay\"",
        "<h3>gemma2:2b</h3>",
        "<b>zram</b> compressed memory is taken from what should hold the weights",
        "<span class=\"missing\">does not fit</span>",
        "<b>none</b> does not fit: ",
    ] {
        assert!(own.contains(words), "{words}");
    }
    assert!(!own.contains("<section aria-label=\"Under pressure\">"), "it touches no memory by itself");
    let data = data(&page);
    let steps = data["runs"][0]["steps"].as_array().unwrap();
    let tokens = &steps[0]["tokens"];
    assert_eq!((tokens["first"].as_f64(), tokens["of"].as_u64()), (Some(4.1), Some(48)));
    let column = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let (at, took) = (column(&tokens["at"]), column(&tokens["took"]));
    assert_eq!((at.len(), took.len()), (47, 47), "the first is the prompt's");
    assert!((took[0].as_f64().unwrap() - (at[0].as_f64().unwrap() - 4.1)).abs() < 1e-2);
    // On the prompt's clock, which began 3 s after the observer's.
    let meanwhile = &tokens["meanwhile"];
    assert_eq!(meanwhile["t"][0], 0);
    let mean = |name: &str| {
        let known: Vec<f64> = column(&meanwhile[name]).iter().filter_map(serde_json::Value::as_f64).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    assert!(mean("faults") > 1000.0 && mean("read") > 100.0 && mean("temperature") > 48.0);
    assert_eq!(column(&tokens["lay"]["swap"]).len(), 60);
    // What nobody saw is unknown, not zero; a step that made no token has no timeline.
    let zram = &steps[1]["tokens"];
    assert!(column(&zram["meanwhile"]["temperature"]).iter().all(serde_json::Value::is_null));
    assert_eq!(column(&zram["lay"]["t"]), Vec::<serde_json::Value>::new());
    assert!(steps[4]["tokens"].is_null());
    assert!(!own_part(&report(&[support::check_record()])).contains("id=\"tokens\""));
}

/// A run of a real runner has several models: each is a table with its own fastest tier, and is named where a tier alone says
/// too little.
#[test]
fn each_model_of_a_run_has_its_own_table() {
    let mut record = support::tokens_record(true);
    let names = ["gemma2:2b", "gemma2:2b", "qwen2.5:1.5b", "gemma2:2b", "qwen2.5:1.5b"];
    for (step, name) in record.steps.iter_mut().zip(names) {
        step.name = name.to_owned();
        step.job.engine = Engine::Served;
        step.engine.iter_mut().for_each(|engine| engine.used = Engine::Served);
        let generated = step.load.as_mut().and_then(|load| load.generated.as_mut());
        generated.into_iter().for_each(|generated| generated.model = name.to_owned());
    }
    let page = report(&[&record]);
    let own = own_part(&page);
    let at = |words: &str| own.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(at("<h3>gemma2:2b</h3>") < at("<h3>qwen2.5:1.5b</h3>"));
    assert_eq!(own.matches("style=\"width:100.0%\"").count(), 2, "each has its fastest");
    assert!(!own.split_once("</nav>").unwrap().0.contains("<section"), "the sections stand below their list");
    assert_eq!(data(&page)["runs"][0]["steps"][2]["tokens"]["model"], "qwen2.5:1.5b");
    let text = report::markdown::report(&[&record]);
    assert!(text.contains("\n| gemma2:2b on optane | ") && text.contains("\n- qwen2.5:1.5b on none: "), "{text}");
}

/// Where the disk below a file is not known, what all disks gave is taken, and is called so.
#[test]
fn what_all_disks_gave_is_called_so() {
    let mut record = support::tokens_record(true);
    record.steps.iter_mut().filter_map(|step| step.load.as_mut()).for_each(|load| load.areas.clear());
    let of = |record: &record::Record| data(&report(&[record]))["runs"][0]["steps"][0]["tokens"].clone();
    assert_eq!(of(&record)["from"], "disks");
    assert!(of(&record)["meanwhile"]["read"].as_array().unwrap().iter().all(serde_json::Value::is_null));
    assert_eq!(of(&support::tokens_record(true))["from"], "disk");
    assert_eq!(of(&support::tokens_record(false))["from"], "swap");
}

/// Mapped weights are read from the tier's disk; one that was not looked at gave an unknown rate.
#[test]
fn mapped_weights_are_read_from_the_disk() {
    let mut record = support::tokens_record(true);
    let read = |record: &record::Record| {
        let column = data(&report(&[record]))["runs"][0]["steps"][0]["tokens"]["meanwhile"]["read"].clone();
        column.as_array().unwrap().iter().filter_map(serde_json::Value::as_f64).collect::<Vec<_>>()
    };
    assert!(read(&record).iter().all(|mbps| *mbps > 10.0));
    record.samples.iter_mut().for_each(|(_, sample)| sample.disks.clear());
    assert_eq!(read(&record), Vec::<f64>::new());
}

/// A real runner's step counts tokens and no operations: it has its charts, and none of those of operations.
#[test]
fn tokens_alone_carry_the_library() {
    let mut record = support::tokens_record(false);
    record.steps.iter_mut().for_each(|step| step.read = basics::Side::default());
    let page = report(&[&record]);
    assert!(page.contains("plotly.js v") && page.contains("id=\"chart-tokens\"") && !page.contains("id=\"curves\""));
}
