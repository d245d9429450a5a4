//! Old results as runs: what other programs printed is taken over, shown, compared, reported, sent on and fitted to, and
//! text that only looks like it is refused whole.
#![forbid(unsafe_code)]

mod common;

use common::Home;
use std::fs;

/// As a post in a forum quotes them.
const POST: &str = "My two disks, have a look:\n\n/dev/sda:\n Timing cached reads:   136 MB in  2.01 seconds =  67.52 MB/sec\n \
                    Timing buffered disk reads: 266 MB in  3.02 seconds =  88.15 MB/sec\n\n/dev/nvme0n1:\n Timing cached reads:   \
                    820 MB in  2.00 seconds = 409.13 MB/sec\n Timing buffered disk reads: 1232 MB in  3.00 seconds = 410.22 MB/sec\n\n\
                    and the tables:\n              kB  reclen    write  rewrite    read    reread    read     write\n          \
                    102400       4    10885    11722    11881    12764    11026     9815\n";

#[test]
fn old_results_are_runs_like_others() {
    let home = Home::new();
    let post = home.work().join("post.txt");
    fs::write(&post, POST).unwrap();
    let imported = home.json(&["import", post.to_str().unwrap()]);
    let runs = imported["runs"].as_array().unwrap();
    let formats: Vec<_> = runs.iter().map(|run| run["source_format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["hdparm", "hdparm", "iozone"]);
    assert_eq!(runs[1]["figures"]["disk_MiBps"], 410.22);
    assert_eq!(runs[2]["figures"]["rows"][0]["random_write"], 9815);
    let ids: Vec<_> = runs.iter().map(|run| run["run"].as_str().unwrap()).collect();

    let shown = home.json(&["show", ids[1]]);
    assert_eq!(shown["method"]["figures"], runs[1]["figures"]);
    assert_eq!(shown["origin"], "quoted: hdparm");
    let shown = home.run(&["show", ids[1]]).code(0).out;
    for word in ["410.22", "not measured here", "/dev/nvme0n1"] {
        assert!(shown.contains(word), "{shown}");
    }
    let list = home.run(&["runs"]).code(0).out;
    assert_eq!((list.matches(" hdparm ").count(), list.matches(" iozone ").count()), (2, 1), "{list}");
    let compared = home.json(&["compare", ids[0], ids[1]]);
    let figures = compared["comparisons"][0]["figures"].as_array().unwrap();
    assert_eq!((figures.len(), &figures[1]["before"], &figures[1]["verdict"]), (2, &88.15.into(), &"better".into()));
    let page = home.work().join("page.html");
    home.run(&["report", ids[1], ids[2], "--out", page.to_str().unwrap()]).code(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<th scope=\"row\">disk_MiBps</th><td class=\"n\">410.22</td>"));
    assert!(page.contains("random_write_KiBps_at_4_KiB"));

    let file = home.work().join("one.tiermark");
    home.run(&["export", ids[2], "--out", file.to_str().unwrap()]).code(0);
    let there = Home::new();
    there.run(&["import", file.to_str().unwrap()]).code(0);
    assert_eq!(there.json(&["show", ids[2]]), home.json(&["show", ids[2]]));

    // Forms that consist of operations would be empty.
    for format in ["fio-json", "csv", "openmetrics"] {
        let told = home.run(&["export", ids[2], "--format", format, "--out", "-"]).code(2);
        assert_eq!(told.out, "");
        told.says(&[ids[2], "a table of iozone", "--format json"]);
    }
    let exported = home.run(&["export", ids[2], "--format", "json", "--out", "-"]).code(0).json();
    assert_eq!(exported["method"]["figures"], runs[2]["figures"]);

    // 4 KiB at 11026 KiB/s, one at a time: 363 µs.
    let fitted = home.json(&["profile", ids[2], "--name", "old-ssd"]);
    let mean = fitted["read"]["latency_us"]["mean"].as_f64().unwrap();
    assert!((mean - 362.9).abs() < 4.0, "{fitted}");
    assert!(fitted["source"].as_str().unwrap().contains("iozone"), "{fitted}");
}

#[test]
fn what_only_looks_like_results_is_refused_whole() {
    let home = Home::new();
    for (name, text, says) in [
        ("comma", POST.replace("88.15", "88,15"), ["line 5", "LC_ALL=C"]),
        ("cut", POST[..POST.find("409.13").unwrap()].to_owned(), ["line 8", "cut off"]),
    ] {
        let file = home.work().join(name);
        fs::write(&file, text).unwrap();
        let told = home.run(&["import", file.to_str().unwrap()]).code(2);
        told.sentence();
        told.says(&says);
    }
    assert_eq!(home.json(&["runs"])["runs"].as_array().unwrap().len(), 0);
}
