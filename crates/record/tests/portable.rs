//! A run leaves one database as a file and comes into another; a file that is not right changes nothing.
#![forbid(unsafe_code)]

mod common;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use record::{RecordError, Store};
use std::io::{Read, Write};

struct Pair {
    here: Store,
    there: Store,
    _dir: tempfile::TempDir,
}

fn pair() -> Pair {
    let dir = tempfile::tempdir().unwrap();
    let open = |name| Store::open(&dir.path().join(name)).unwrap();
    Pair { here: open("here.db"), there: open("there.db"), _dir: dir }
}

fn exported(store: &mut Store) -> (String, Vec<u8>) {
    let id = common::done(store);
    let mut file = Vec::new();
    store.export(&id, &mut file).unwrap();
    (id, file)
}

fn packed(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(text.as_bytes()).unwrap();
    out.finish().unwrap()
}

fn unpacked(file: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_run_arrives_whole_and_once() {
    let Pair { mut here, mut there, _dir } = pair();
    let (id, file) = exported(&mut here);
    assert_eq!(there.import(&file[..]).unwrap(), id);
    assert_eq!(there.load(&id).unwrap(), here.load(&id).unwrap());
    assert_eq!(there.import(&file[..]).unwrap(), id, "again");
    assert_eq!(here.import(&file[..]).unwrap(), id, "where it came from");
    assert_eq!((here.runs().unwrap().len(), there.runs().unwrap().len()), (1, 1));
    let mut again = Vec::new();
    there.export(&id, &mut again).unwrap();
    assert_eq!(unpacked(&again), unpacked(&file));
}

#[test]
fn another_run_of_the_same_name_gets_a_new_one() {
    let Pair { mut here, _dir, .. } = pair();
    let (id, file) = exported(&mut here);
    let other = packed(&unpacked(&file).replace("Raspberry Pi 5", "Raspberry Pi 4"));
    let new = here.import(&other[..]).unwrap();
    assert_ne!(new, id);
    assert_eq!(here.load(&new).unwrap().run.machine.model.get().unwrap(), "Raspberry Pi 4");
    assert_eq!(here.load(&id).unwrap().run.machine.model.get().unwrap(), "Raspberry Pi 5");
}

#[test]
fn what_still_runs_is_not_exported() {
    let Pair { mut here, _dir, .. } = pair();
    let (id, _spool, _) = common::begun(&mut here);
    assert!(matches!(here.export(&id, std::io::sink()), Err(RecordError::StillRunning { .. })));
}

/// A sender during whose every breath somebody else writes to the database.
struct Slow<'a> {
    rest: &'a [u8],
    other: Store,
    written: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let begun = std::time::Instant::now();
        common::done(&mut self.other);
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "the database was held");
        self.written += 1;
        let length = to.len().min(self.rest.len()).min(1000);
        self.rest.read(&mut to[..length])
    }
}

#[test]
fn a_slow_sender_keeps_nobody_from_writing() {
    let Pair { mut here, mut there, _dir } = pair();
    let (id, file) = exported(&mut here);
    let mut slow = Slow { rest: &file, other: Store::open(there.path()).unwrap(), written: 0 };
    assert_eq!(there.import(&mut slow).unwrap(), id);
    assert!(slow.written > 1);
    assert_eq!(there.runs().unwrap().len(), slow.written + 1);
    let record = there.load(&id).unwrap();
    assert_eq!(record.steps, here.load(&id).unwrap().steps);
}

#[test]
fn a_step_that_nobody_finished_arrives_as_unknown() {
    let Pair { mut here, mut there, _dir } = pair();
    let (id, mut spool, step) = common::begun(&mut here);
    let unfinished = record::StepRecord { index: 1, cpu_user: None, cpu_system: None, observing: None, ..step };
    here.commit_step(&mut spool, &unfinished).unwrap();
    here.finish(&id, &record::State::Interrupted, &[]).unwrap();
    let mut file = Vec::new();
    here.export(&id, &mut file).unwrap();
    let id = there.import(&file[..]).unwrap();
    assert_eq!(there.load(&id).unwrap().steps[1], unfinished);
}

#[test]
fn a_cut_file_changes_nothing() {
    let Pair { mut here, mut there, _dir } = pair();
    let (_, file) = exported(&mut here);
    for cut in (0..file.len()).step_by(7).chain([file.len() - 1, file.len() - 8, file.len() - 9]) {
        let error = there.import(&file[..cut]).unwrap_err();
        assert!(matches!(error, RecordError::NotPortable { .. }), "cut at {cut}: {error}");
    }
    let text = unpacked(&file);
    let lines: Vec<&str> = text.lines().collect();
    for missing in 0..lines.len() {
        let rest: Vec<&str> = lines.iter().enumerate().filter(|(n, _)| *n != missing).map(|(_, line)| *line).collect();
        let error = there.import(&packed(&format!("{}\n", rest.join("\n")))[..]).unwrap_err();
        assert!(matches!(error, RecordError::NotPortable { .. }), "without line {}: {error}", missing + 1);
    }
    assert_eq!(there.runs().unwrap(), []);
    there.begin(&common::run()).expect("no transaction is left open");
}

/// Bug: an import took any interval at any time, and any nominal width of one.
#[test]
fn intervals_that_no_engine_gives_are_refused_with_their_line() {
    let Pair { mut here, mut there, _dir } = pair();
    let (_, file) = exported(&mut here);
    let text = unpacked(&file);
    let cases = [
        ("interval\":100000000", "interval\":0", "line 3: interval"),
        ("interval\":100000000", "interval\":18446744073709551615", "line 3: interval"),
        ("\"depth\":1", "\"depth\":0", "line 3: depth"),
        ("\"start\":100000000", "\"start\":99999999", "line 5: it is an interval that begins before"),
        ("\"start\":100000000", "\"start\":300000000", "line 5: it is an interval that ends before"),
        ("\"end\":300000000", "\"end\":400000001", "line 6: it is an interval that ends after"),
        ("\"end\":300000000", "\"end\":18446744073709551615", "line 6: it is an interval that ends after"),
        ("{\"interval\":{\"step\":0", "{\"interval\":{\"step\":7", "line 4: it is an interval of a step that"),
    ];
    for (from, to, why) in cases {
        // Of the step and what follows it; the plan above stays.
        let (head, rest) = text.split_once("{\"step\":{").unwrap();
        assert!(rest.contains(from), "{from} in {rest}");
        let changed = format!("{head}{{\"step\":{{{}", rest.replacen(from, to, 1));
        let error = there.import(&packed(&changed)[..]).expect_err(to);
        assert!(matches!(error, RecordError::NotPortable { .. }), "{to}: {error}");
        assert!(error.to_string().contains(why), "{to}: {error}");
        assert_eq!(there.runs().unwrap(), []);
    }
    let late = text.replacen("\"end\":300000000", "\"end\":400000000", 1);
    there.import(&packed(&late)[..]).expect("an interval may be cut a little later than its step");
}

#[test]
fn a_hostile_file_changes_nothing() {
    let Pair { mut here, mut there, _dir } = pair();
    let (_, file) = exported(&mut here);
    let text = unpacked(&file);
    let line = |n: usize| text.lines().nth(n).unwrap();
    let histogram = text.split("\"latency\":\"").nth(1).unwrap().split('"').next().unwrap();
    // A histogram whose counts claim to be 4 GiB long.
    let bomb = {
        use base64::Engine;
        let mut inner = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        let head = [0x1c84_9303_u32, u32::MAX, 0, 3];
        inner.write_all(&head.map(u32::to_be_bytes).concat()).unwrap();
        inner.write_all(&[0; 4096]).unwrap();
        let inner = inner.finish().unwrap();
        let outer = [&0x1c84_9314_u32.to_be_bytes()[..], &(inner.len() as u32).to_be_bytes(), &inner].concat();
        base64::engine::general_purpose::STANDARD.encode(outer)
    };
    let twice = text.replacen(line(2), &format!("{}\n{}", line(2), line(2)), 1);
    let whole = |body: &str| format!("{}\n{}\n{body}\n", line(0), line(1));
    let cases = [
        ("", String::new()),
        ("another file", "{\"name\": \"shopping\"}\n".into()),
        ("a running run", text.replacen("\"state\":\"done\"", "\"state\":\"running\"", 1)),
        ("a step twice", twice),
        ("a second run", whole(line(1))),
        ("a histogram of nothing", text.replace(histogram, "AAAA")),
        ("a histogram that is too large", text.replace(histogram, &bomb)),
        ("no Base64", text.replace(histogram, "%%%%")),
        ("an unknown kind", whole("{\"poem\": {}}")),
        ("no JSON", whole("once upon a time")),
        ("nesting", whole(&"[".repeat(100_000))),
        ("a line without end", whole(&format!("\"{}", "x".repeat(20 << 20)))),
        ("more after the end", format!("{text}{}\n", line(2))),
        ("a wrong count", text.replace("{\"end\":{\"lines\":8}}", "{\"end\":{\"lines\":9}}")),
    ];
    assert!(text.contains("{\"end\":{\"lines\":8}}"));
    for (what, text) in cases {
        let error = there.import(&packed(&text)[..]).expect_err(what);
        assert!(matches!(error, RecordError::NotPortable { .. }), "{what}: {error}");
        let sentence = error.to_string();
        assert!(sentence.len() < 500 && !sentence.contains('\n'), "{what}: {sentence}");
    }
    let newer = packed(&text.replace("\"tiermark_run\":1", "\"tiermark_run\":2"));
    assert!(matches!(there.import(&newer[..]), Err(RecordError::NewerPortable { found: 2, known: 1 })));
    assert!(matches!(there.import(&b"not packed at all"[..]), Err(RecordError::NotPortable { .. })));
    assert_eq!(there.runs().unwrap(), []);
}

#[test]
fn quoted_figures_are_kept_whole_and_travel() {
    let dir = tempfile::tempdir().unwrap();
    let mut here = Store::open(&dir.path().join("here.db")).unwrap();
    let mut there = Store::open(&dir.path().join("there.db")).unwrap();
    let text = "/dev/sda:\n Timing cached reads:   136 MB in  2.01 seconds =  67.52 MB/sec\n\
                /dev/sdb:\n Timing buffered disk reads: 1232 MB in  3.00 seconds = 410.22 MB/sec\n";
    let blocks = quoted::read(text).unwrap();
    let ids = here.quote(blocks.clone(), "tiermark import notes.txt", "0.1.0").unwrap();
    assert_eq!(ids.len(), 2);
    for (id, block) in ids.iter().zip(blocks) {
        let record = here.load(id).unwrap();
        assert_eq!(record.run.quoted, Some(block.figures));
        assert_eq!((record.run.target, record.run.state), (block.what, record::State::Done));
        assert_eq!(record.run.origin, record::Origin::Quoted("hdparm".into()));
        assert_eq!(record.steps, []);
        let mut file = Vec::new();
        here.export(id, &mut file).unwrap();
        assert_eq!(there.import(&file[..]).unwrap(), *id);
        assert_eq!(there.load(id).unwrap(), here.load(id).unwrap());
    }
    assert_eq!(there.runs().unwrap().iter().map(|run| run.steps).collect::<Vec<_>>(), [0, 0]);
}
