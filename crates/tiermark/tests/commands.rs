//! The commands around a measurement: what they teach, print, refuse, and say when something is amiss.
#![forbid(unsafe_code)]

mod common;

use common::{Home, has_keys, job, possible};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const VERBS: [&str; 14] = [
    "check",
    "tiers",
    "methods",
    "profiles",
    "run",
    "runs",
    "show",
    "compare",
    "report",
    "export",
    "import",
    "emulate",
    "completions",
    "man",
];

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees").join(name)
}

/// A home with one short run in it, of enough operations for every percentile.
fn home_with_a_run() -> Home {
    let home = Home::new();
    home.run(&job(&["rw=randread", "operations=1000000", "runtime=0"], "null")).code(0);
    home
}

#[test]
fn help_teaches_every_verb() {
    let home = Home::new();
    let all = home.run(&["--help"]).code(0);
    assert_eq!(all.err, "");
    for word in ["Examples:", "Exit status:", "--db", "--json"].iter().chain(&VERBS) {
        assert!(all.out.contains(word), "{word}: {}", all.out);
    }
    for verb in VERBS {
        let help = home.run(&[verb, "--help"]).code(0).out;
        assert!(help.contains(&format!("Usage: tiermark {verb}")), "{help}");
        let first = help.lines().next().unwrap();
        assert!(first.split(' ').count() > 3, "{verb} is not explained: {first}");
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{verb}: {help}");
    }
    assert!(home.run(&["--version"]).code(0).out.starts_with("tiermark "));
    assert!(!home.database().exists(), "help makes no database");
}

#[test]
fn who_types_nothing_is_shown_what_to_ask() {
    let home = Home::new();
    let screen = home.run::<&str>(&[]).code(0).out;
    let said = home.json::<&str>(&[]);
    let suggestions = said["suggestions"].as_array().unwrap();
    assert_eq!(suggestions.len(), 3, "{said}");
    assert_eq!(suggestions[0]["command"], "tiermark check --quick", "nothing was measured yet: {said}");
    for suggestion in suggestions {
        let command = suggestion["command"].as_str().unwrap();
        assert!(screen.contains(command), "{command}: {screen}");
        // It is one that can be typed.
        let words: Vec<&str> = command.split(' ').skip_while(|word| *word != "tiermark").skip(1).collect();
        home.run(&[&words[..], &["--help"]].concat()).code(0);
    }
    for verb in ["check", "tiers", "predict", "advise", "prove"] {
        assert!(screen.contains(verb), "{verb}: {screen}");
    }
    assert!(screen.lines().count() <= 24 || machine_is_large(&screen), "more than a screen: {screen}");
    assert!(!home.database().exists(), "who looks makes no database");
}

/// It has so many disks that they alone take half of a screen.
fn machine_is_large(screen: &str) -> bool {
    screen.lines().take_while(|line| !line.is_empty()).count() > 6
}

#[test]
fn bad_usage_is_status_2() {
    let home = Home::new();
    let twice = ["check", "--quick", "--thorough"];
    for words in [&["chek"][..], &["runs", "--frob"], &["run", "job"], &["compare", "abcd"], &twice] {
        let told = home.run(words).code(2);
        assert!(told.out.is_empty() && told.err.starts_with("error: "), "{told:?}");
    }
}

#[test]
fn completions_come_for_each_shell() {
    let home = Home::new();
    for (shell, mark) in [("bash", "complete -F"), ("zsh", "#compdef tiermark"), ("fish", "complete -c tiermark")] {
        let text = home.run(&["completions", shell]).code(0).out;
        assert!(text.contains(mark), "{shell}");
        for verb in VERBS {
            assert!(text.contains(verb), "{shell} does not complete {verb}");
        }
    }
}

#[test]
fn man_pages_are_written() {
    let home = Home::new();
    home.run(&["man", home.work().to_str().unwrap()]).code(0);
    for page in ["tiermark.1".to_owned()].into_iter().chain(VERBS.map(|verb| format!("tiermark-{verb}.1"))) {
        let text = fs::read_to_string(home.work().join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(".TH") && text.contains(".SH SYNOPSIS"), "{page}");
    }
    home.run(&["man", "no/such/folder"]).code(4).says(&["no/such/folder"]);
}

#[test]
fn methods_are_listed_and_explained() {
    let home = Home::new();
    let list = home.run(&["methods"]).code(0).out;
    assert!(list.lines().any(|line| line.starts_with("job ")) && list.contains("swap-sim"), "{list}");
    let job = home.run(&["methods", "job"]).code(0).out;
    for key in ["rw", "bs", "depth", "size", "runtime", "direct", "engine", "until", "rate", "entropy", "seed"] {
        assert!(job.lines().any(|line| line.trim_start().starts_with(&format!("{key} "))), "{key}: {job}");
    }
    let document = home.json(&["methods", "job"]);
    assert_eq!(document["methods"][0]["name"], "job");
    home.run(&["methods", "bonnie"]).code(2).says(&["bonnie", "job", "swap-sim"]);
}

#[test]
fn nonsense_is_refused_by_name() {
    let home = Home::new();
    let work = home.work();
    for (setting, words) in [
        ("dpeth=3", &["dpeth", "tiermark methods job"][..]),
        ("depth", &["KEY=VALUE", "depth"]),
        ("depth=many", &["depth=many"]),
        ("depth=0", &["depth"]),
        ("rw=sideways", &["rw=sideways", "randread"]),
        ("bs=4q", &["bs=4q"]),
        ("bs=-1", &["bs=-1"]),
        ("bs=0", &["0"]),
        ("size=huge", &["size=huge"]),
        ("size=99999999999999999999", &["size=99999999999999999999"]),
        ("runtime=5parsecs", &["runtime=5parsecs"]),
        ("engine=libaio", &["engine=libaio", "io_uring"]),
    ] {
        home.run(&job(&[setting], &work)).code(2).says(words);
    }
    home.run(&["run", "bonnie", "--on", "memory"]).code(2).says(&["bonnie"]);
    assert_eq!(home.left_in(&work), [""; 0]);
}

#[test]
fn a_size_beyond_the_file_system_is_missing_room() {
    let home = Home::new();
    home.run(&job(&["size=100TiB"], home.work())).code(4).says(&["100 TiB", "work"]);
    home.assert_clean(&home.work());
}

#[test]
fn a_target_that_is_not_there_is_missing() {
    let home = Home::new();
    home.run(&job(&[], home.work().join("none"))).code(4).says(&["none", "does not exist"]);
    home.run(&job(&[], "/dev/nosuchdisk")).code(4).says(&["/dev/nosuchdisk"]);
    home.run(&job(&[], "/dev/tty")).code(4).says(&["/dev/tty"]);
    let empty = home.work().join("empty");
    fs::write(&empty, "").unwrap();
    home.run(&job(&[], &empty)).code(4).says(&["empty"]);
    home.run(&["check", "--in", "no/such/folder"]).code(4).says(&["no/such/folder"]);
    home.run(&["show", "last"]).code(4).sentence();
    home.run(&["import", "no/such/file"]).code(4).says(&["no/such/file"]);
    home.run(&["tiers", "--root", "no/such/tree"]).code(4).says(&["no/such/tree"]);
    let home = home_with_a_run();
    for verb in ["show", "export", "report"] {
        home.run(&[verb, "0123"]).code(4).says(&["0123", "tiermark runs"]);
        home.run(&[verb, "x"]).code(2).says(&["\"x\""]);
    }
    home.run(&["run", "job", "--on", ""]).code(4).says(&["is no target"]);
}

#[test]
fn the_documents_have_the_documented_keys() {
    let home = home_with_a_run();
    let runs = home.json(&["runs"]);
    has_keys(&runs["runs"][0], "run state method target started");
    assert_eq!(runs["runs"][0]["method"], "job");
    let run = home.json(&["show", "last"]);
    has_keys(&run, "schema run state steps");
    let step = &run["steps"][0];
    has_keys(step, "name engine job read elapsed_s cpu notes");
    has_keys(&step["read"], "iops MBps ops lat_us");
    has_keys(&step["read"]["lat_us"], "mean p50 p90 p95 p99 p99.9 p99.99 p99.999 max");
    has_keys(&step["cpu"], "total_us_per_op");
    assert!(step.get("write").is_none(), "what did not happen is absent");
    assert_eq!(run["run"], runs["runs"][0]["run"]);
    let tiers = home.json(&["tiers"]);
    has_keys(&tiers, "schema machine tiers");
    has_keys(&tiers["machine"], "kernel page_size_B ram_B");
    has_keys(&tiers["tiers"][0], "name kind hops warnings");
}

/// The figures of the first article, by the program.
#[test]
fn tiers_knows_the_articles_raspberry_pi_5() {
    let home = Home::new();
    let root = tree("pi5-optane");
    let document = home.json(&["tiers", "--root", root.to_str().unwrap()]);
    let tiers = document["tiers"].as_array().unwrap();
    let tier = |name: &str| tiers.iter().find(|tier| tier["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for name in ["sda", "sdb", "sdc", "sdd", "sde"] {
        let hops = tier(name)["hops"].as_array().unwrap();
        let usb = hops.iter().find(|hop| hop["kind"] == "usb").unwrap();
        has_keys(usb, "name kind signal_Gbps encoding raw_MBps encoded_MBps practical_MBps transit_us");
        let figures = [&usb["raw_MBps"], &usb["encoded_MBps"], &usb["practical_MBps"], &usb["transit_us"]];
        assert_eq!(figures, [&json!(625.0), &json!(500.0), &json!([430.0, 450.0]), &json!(20.0)]);
    }
    let optane = tier("nvme0n1");
    assert_eq!(optane["ceiling"]["encoded_MBps"], 500.0);
    assert_eq!(optane["ceiling"]["practical_MBps"], json!([400.0, 430.0]));
    let link = optane["hops"].as_array().unwrap().iter().find(|hop| hop["name"] == optane["ceiling"]["hop"]).unwrap();
    assert_eq!((&link["name"], &link["transit_us"]), (&json!("PCIe Gen2 x1"), &json!(1.5)));
    assert!(optane["warnings"].to_string().contains("switch"), "{}", optane["warnings"]);
    for name in ["sdb", "sdc", "sdd", "sde"] {
        assert!(tier(name)["warnings"].to_string().contains("share one USB port"), "{name}");
    }
    let text = home.run(&["tiers", "--root", root.to_str().unwrap()]).code(0).out;
    for part in ["nvme0n1", "switch", "430", "share one USB port"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn every_golden_tree_is_shown_within_100_columns() {
    let home = Home::new();
    for entry in fs::read_dir(tree("")).unwrap() {
        let root = entry.unwrap().path();
        let text = home.run(&["tiers", "--root", root.to_str().unwrap()]).code(0).out;
        assert!(text.lines().count() > 3, "{}: {text}", root.display());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", root.display());
        }
    }
    let bare = home.run(&["tiers", "--root", home.work().to_str().unwrap()]).code(4);
    bare.says(&["work"]);
}

#[test]
fn a_capture_is_a_machine_again_and_keeps_names_to_itself() {
    let home = Home::new();
    let file = home.work().join("here.tar");
    home.run(&["tiers", "--capture", file.to_str().unwrap()]).code(0);
    home.run(&["tiers", "--capture", file.to_str().unwrap()]).code(4).says(&["here.tar"]);
    let root = home.work().join("root");
    fs::create_dir(&root).unwrap();
    common::sh(&format!("tar -xf {} -C {}", file.display(), root.display()));
    let (live, captured) = (home.json(&["tiers"]), home.json(&["tiers", "--root", root.to_str().unwrap()]));
    assert_eq!(live["machine"]["kernel"], captured["machine"]["kernel"]);
    assert_eq!(captured, home.json(&["tiers", "--root", file.to_str().unwrap()]), "the tar is as good as the tree");
    let other = home.work().join("other.tar");
    fs::write(&other, "no tar").unwrap();
    home.run(&["tiers", "--root", other.to_str().unwrap()]).code(4).says(&["other.tar", "--capture"]);
    let names = |document: &serde_json::Value| -> Vec<String> {
        document["tiers"].as_array().unwrap().iter().map(|tier| tier["name"].to_string()).collect()
    };
    // Other tests make and drop loop devices meanwhile.
    let lasting = |names: Vec<String>| names.into_iter().filter(|name| !name.contains("loop")).collect::<Vec<_>>();
    assert_eq!(lasting(names(&live)), lasting(names(&captured)));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let bytes = fs::read(&file).unwrap();
    let host = host.trim().as_bytes();
    assert!(host.len() < 4 || !bytes.windows(host.len()).any(|window| window == host), "the host's name is in it");
}

#[test]
fn what_is_no_terminal_gets_no_colour_and_no_bar() {
    let home = home_with_a_run();
    let texts = [
        home.run(&job(&["runtime=100ms"], "memory")).code(0),
        home.run(&["runs"]).code(0),
        home.run(&["show", "last"]).code(0),
        home.run(&["tiers"]).code(0),
    ];
    for told in &texts {
        assert!(!told.out.contains('\x1b') && told.err.is_empty(), "{told:?}");
    }
}

#[test]
fn progress_without_a_terminal_is_lines() {
    let home = Home::new();
    let mut words = job(&["runtime=300ms", "size=4MiB"], home.work());
    words.extend(["--progress", "always"].map(str::to_owned));
    let told = home.run(&words).code(0);
    let lines: Vec<&str> = told.err.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("tiermark: step 1 of 1")), "{told:?}");
    assert!(lines.iter().any(|line| line.contains("IOPS")) && !told.err.contains('\x1b'), "{told:?}");
}

/// What a user reads is one sentence in their own words, and no failed run stays for what could be seen before.
#[test]
fn what_cannot_be_is_said_once_and_before_the_run() {
    let home = Home::new();
    let work = home.work();
    home.run(&job(&["bs=3"], &work)).code(2).says(&["direct I/O", "3 B"]);
    home.run(&job(&["bs=1M", "size=64k"], &work)).code(2).says(&["64 KiB", "1 MiB"]);
    home.run(&job(&["size=1EiB"], &work)).code(4).says(&["no room", "work"]);
    home.run(&job(&["size=8EiB"], &work)).code(2).says(&["the largest size"]);
    home.run(&job(&["rw=randrw", "rwmixread=150"], &work)).code(2).says(&["rwmixread", "not 150"]);
    home.run(&job(&["random=zipf:-5"], &work)).code(2).says(&["zipf", "-5"]);
    home.run(&job(&["fsync=1"], &work)).code(2).says(&["only reads"]);
    home.run(&job(&[], "/proc")).code(4).says(&["/proc", "no room of its own"]);
    home.run(&["check", "--in", "/proc"]).code(4).says(&["/proc", "no room of its own"]);
    home.run(&["show", "last"]).code(4).sentence();
}

/// A place for data that cannot be made is told as what is missed there: a database, not the journal beside it.
#[test]
fn a_place_that_cannot_be_written_is_no_talk_of_journals() {
    let home = Home::new();
    let output = home.command(&["runs"]).env("XDG_DATA_HOME", "/proc").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("there is no database at /proc/tiermark") && !err.contains("journal"), "{err}");
}

/// Below a pseudo-terminal that `script` makes.
#[test]
fn a_terminal_gets_colour_unless_no_color_is_set() {
    if !possible("a_terminal_gets_colour_unless_no_color_is_set", &[common::Need::Tool("script")]) {
        return;
    }
    let home = Home::new();
    let root = tree("pi5-optane");
    let seen = |no_color: &str| {
        let typical = home.command::<&str>(&[]);
        let line = format!("{} tiers --root {}", typical.get_program().display(), root.display());
        let mut command = std::process::Command::new("script");
        command.args(["--quiet", "--command", &line, "/dev/null"]).env("TERM", "xterm").env("NO_COLOR", no_color);
        command.env("XDG_DATA_HOME", home.path().join("data")).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(seen("").contains("\x1b["), "{}", seen(""));
    assert!(!seen("1").contains("\x1b["), "{}", seen("1"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let home = home_with_a_run();
    for words in [&["runs"][..], &["tiers"], &["completions", "bash"], &["methods", "job"], &["show", "last", "--json"]]
    {
        let mut command = home.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}

#[test]
fn a_full_disk_behind_a_redirection_is_an_error() {
    let home = home_with_a_run();
    for words in [&["runs"][..], &["completions", "bash"], &["show", "last", "--json"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = home.command(words).stdout(full).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains("standard output"), "{words:?}: {text}");
    }
}

#[test]
fn a_database_that_cannot_be_used_is_told_and_left_alone() {
    let home = home_with_a_run();
    let database = home.database();
    let db = |file: &Path| ["--db".to_owned(), file.to_str().unwrap().to_owned(), "runs".to_owned()];

    let text = home.work().join("letters.txt");
    fs::write(&text, "Dear diary, this is not a database.\n".repeat(50)).unwrap();
    home.run(&db(&text)).code(4).says(&["letters.txt", "--db"]);
    assert!(fs::read_to_string(&text).unwrap().starts_with("Dear diary"));

    home.run(&db(&home.work())).code(4).says(&["work"]);
    home.run(&db(&text.join("runs.db"))).code(4).says(&["letters.txt"]);

    // The version stands big-endian at byte 60 of an SQLite file.
    let newer = home.work().join("newer.db");
    fs::copy(&database, &newer).unwrap();
    let file = fs::File::options().write(true).open(&newer).unwrap();
    file.write_all_at(&9000u32.to_be_bytes(), 60).unwrap();
    let before = fs::read(&newer).unwrap();
    home.run(&db(&newer)).code(4).says(&["newer", "9000", "update"]);
    assert!(fs::read(&newer).unwrap() == before, "a newer database was touched");

    let cut = home.work().join("cut.db");
    let whole = fs::read(&database).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    home.run(&db(&cut)).code(4).says(&["cut.db"]);
}

#[test]
fn a_database_that_may_not_be_read_is_told() {
    let mut home = home_with_a_run();
    fs::set_permissions(home.database(), fs::Permissions::from_mode(0o000)).unwrap();
    home.as_an_ordinary_user();
    home.run(&["runs"]).code(4).says(&["tiermark.db"]);
    fs::set_permissions(home.database(), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn without_a_home_the_way_out_is_named() {
    let home = Home::new();
    let output = home.command(&["runs"]).env_remove("HOME").env_remove("XDG_DATA_HOME").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.lines().count() == 1 && text.contains("HOME") && text.contains("--db"), "{text}");
    for verb in ["tiers", "methods"] {
        let output = home.command(&[verb]).env_remove("HOME").env_remove("XDG_DATA_HOME").output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{verb} stores nothing: {output:?}");
    }
    let mut command = home.command(&["--db", "here.db", "run", "job", "--on", "null", "--set", "runtime=50ms"]);
    let output = command.env_remove("HOME").env_remove("XDG_DATA_HOME").output().unwrap();
    assert!(output.status.success() && home.path().join("here.db").exists(), "{output:?}");
}

#[test]
fn nothing_but_a_document_stands_on_standard_output() {
    let home = home_with_a_run();
    for words in [&["runs"][..], &["show", "last"], &["tiers"], &["methods"], &["compare", "last", "last"]] {
        let document = home.json(words);
        assert!(document["schema"].as_str().unwrap().starts_with("tiermark."), "{document}");
    }
}

#[test]
fn a_file_that_is_no_export_is_not_imported() {
    let home = home_with_a_run();
    let export = home.work().join("run.tiermark");
    let path = export.to_str().unwrap();
    home.run(&["export", "last", "--out", path]).code(0);
    home.run(&["export", "last", "--out", path]).code(4).says(&["run.tiermark"]);
    let whole = fs::read(&export).unwrap();
    for (name, bytes) in [("half", &whole[..whole.len() / 2]), ("empty", &[]), ("words", b"hello\n")] {
        let damaged = home.work().join(name);
        fs::File::create(&damaged).unwrap().write_all(bytes).unwrap();
        home.run(&["import", damaged.to_str().unwrap()]).code(4).sentence();
    }
    home.run(&["import", home.work().to_str().unwrap()]).code(4).says(&["work", "is a directory"]);
    assert_eq!(home.json(&["runs"])["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_dash_is_standard_output_for_a_report_too() {
    let home = home_with_a_run();
    let told = home.run(&["report", "last", "--out", "-"]).code(0);
    assert!(told.out.starts_with("<!doctype html>") && !home.path().join("-").exists());
}

/// A report of two runs took the place of the first one's own.
#[test]
fn a_report_of_two_runs_has_a_name_of_its_own() {
    let home = home_with_a_run();
    let first = home.run(&["report", "last"]).code(0).out;
    let other = home.last().run.id;
    home.run(&job(&["runtime=50ms"], "null")).code(0);
    let both = home.run(&["report", &other, "last"]).code(0).out;
    assert_ne!(first, both);
    assert!(both.contains(&other) && both.contains(&home.last().run.id), "{both}");
}

/// A directory's name reached the terminal as it was and could have moved its cursor or set its title.
#[test]
fn a_name_with_control_characters_is_made_visible() {
    let home = Home::new();
    let folder = home.work().join("a\x1b]0;x\x07b");
    fs::create_dir(&folder).unwrap();
    let told = [
        home.run(&job(&["rw=randread", "runtime=50ms", "size=1M"], &folder)).code(0),
        home.run(&["show", "last"]).code(0),
        home.run(&["runs"]).code(0),
        home.run(&job(&["rw=randread"], folder.join("none"))).code(4),
    ];
    for told in &told {
        assert!(!told.out.contains(['\x1b', '\x07']) && !told.err.contains(['\x1b', '\x07']), "{told:?}");
        assert!(format!("{}{}", told.out, told.err).contains("\\u{1b}]0;x\\u{7}b"), "{told:?}");
    }
}

#[test]
fn a_run_goes_out_in_the_form_of_other_programs() {
    let home = home_with_a_run();
    let to = |format: &str| home.run(&["export", "last", "--format", format, "-o", "-"]).code(0).out;
    let run = home.json(&["show", "last"].map(str::to_owned));
    let same: serde_json::Value = serde_json::from_str(&to("json")).unwrap();
    assert_eq!(same, run);
    let fio: serde_json::Value = serde_json::from_str(&to("fio-json")).unwrap();
    let ops = &run["steps"][0]["read"]["ops"];
    assert_eq!(&fio["jobs"][0]["read"]["total_ios"], ops);
    let table = to("csv");
    assert!(table.starts_with("run,step,name,") && table.contains(&format!(",{ops},")), "{table}");
    assert!(to("openmetrics").ends_with("# EOF\n"));
    let file = home.work().join("out.csv");
    let words = ["export", "last", "--format", "csv", "-o", file.to_str().unwrap()];
    home.run(&words).code(0);
    home.run(&words).code(4).says(&["out.csv", "exists"]);
    assert_eq!(fs::read_to_string(file).unwrap(), table);
    let other = home.work().join("out.json");
    let made = home.json(&["export", "last", "--format", "json", "-o", other.to_str().unwrap()]);
    assert_eq!((made["schema"].as_str(), made["path"].as_str()), (Some("tiermark.made/1"), other.to_str()), "{made}");
    home.run(&["export", "last", "--format", "xml"]).code(2);
}
