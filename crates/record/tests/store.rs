//! The database through its face: what goes in comes out, and every file that is not right is told in a sentence.
#![forbid(unsafe_code)]

mod common;

use basics::{FailKind, Nanos};
use record::{Failure, RecordError, State, Store};
use std::path::Path;

fn failed() -> State {
    State::Failed(Failure { kind: FailKind::Gone, why: "the disk went away".into() })
}

fn open(dir: &tempfile::TempDir) -> Store {
    Store::open(&dir.path().join("data/tiermark.db")).unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let (id, spool, step) = common::begun(&mut store);
    assert_eq!(store.runs().unwrap()[0].state, State::Running);
    store.finish(&id, &failed(), &["a last note".into()]).unwrap();
    assert!(!spool.path().exists());

    let record = Store::open_for_reading(store.path()).unwrap().load(&id).unwrap();
    let expected = record::Run {
        id: id.clone(),
        state: failed(),
        ended: record.run.ended,
        notes: vec!["a note".into(), "a last note".into()],
        ..common::run()
    };
    assert_eq!(record.run, expected);
    assert_eq!(record.run.plan.hash(), common::run().plan.hash());
    assert!(record.run.ended.unwrap() > Nanos(1_700_000_000_000_000_000));
    assert_eq!(record.steps, [step]);
    assert_eq!(record.intervals, (0..3).map(|n| (0, common::interval(n))).collect::<Vec<_>>());
    assert_eq!(record.samples, (0..3).map(|n| (0, common::sample(n))).collect::<Vec<_>>());

    let head = store.runs().unwrap().remove(0);
    assert_eq!((head.method.as_str(), head.target.as_str(), head.steps), ("check", "null", 1));
    assert_eq!(head.tiers, ["sda", "mmcblk0"]);
}

#[test]
fn a_long_series_is_thinned_and_loses_no_operation() {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut store = open(&dir);
    let id = store.begin(&common::run()).unwrap();
    let mut spool = store.spool(&id).unwrap();
    let lengths = [3, 9_001];
    for (index, length) in (0..).zip(lengths) {
        for n in 0..length {
            let interval = basics::Interval { start: Nanos::from_millis(n * 100), ..common::interval(0) };
            spool.interval(index, &basics::Interval { end: Nanos::from_millis(n * 100 + 100), ..interval });
            spool.sample(index, &common::sample(n));
        }
        store.commit_step(&mut spool, &common::step(index, &[common::interval(0)])).unwrap();
    }
    store.finish(&id, &State::Done, &[]).unwrap();
    let record = store.load(&id).unwrap();
    let most = record::LONGEST_SERIES + 2 * lengths.len();
    assert!((most / 2..=most).contains(&record.intervals.len()), "{} intervals", record.intervals.len());
    assert!((most / 2..=most).contains(&record.samples.len()), "{} samples", record.samples.len());
    for (index, length) in (0..).zip(lengths) {
        let intervals = || record.intervals.iter().filter(|(step, _)| *step == index).map(|(_, interval)| interval);
        assert_eq!(intervals().map(|interval| interval.read.operations()).sum::<u64>(), length);
        assert!(intervals().zip(intervals().skip(1)).all(|(one, next)| one.end == next.start));
        assert_eq!(intervals().next_back().unwrap().end, Nanos::from_millis(length * 100));
        let samples = || record.samples.iter().filter(|(step, _)| *step == index).map(|(_, sample)| sample.at);
        assert_eq!(
            (samples().next(), samples().next_back()),
            (Some(Nanos(0)), Some(Nanos::from_millis((length - 1) * 100)))
        );
    }
    let mut exported = Vec::new();
    store.export(&id, &mut exported).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&exported[..]), &mut text).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("{\"interval\"")).count(),
        9_004,
        "an export holds them all"
    );
}

#[test]
fn a_plan_that_json_cannot_hold_is_refused_and_leaves_nothing() {
    use std::os::unix::ffi::OsStringExt;
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let mut run = common::run();
    let path = std::ffi::OsString::from_vec(b"/mnt/caf\xe9".to_vec()).into();
    run.plan.targets = vec![basics::plan::Target::File { path }];
    let error = store.begin(&run).unwrap_err();
    assert!(matches!(error, RecordError::NotText { .. }), "{error}");
    assert!(error.to_string().contains("UTF-8"), "{error}");
    assert_eq!(store.runs().unwrap(), []);
}

#[test]
fn runs_are_found_by_what_people_type() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    assert!(matches!(store.find("last"), Err(RecordError::NoRunYet { .. })));
    for id in ["0123abcd", "0123ffff", "89abcdef"] {
        assert_eq!(store.begin(&record::Run { id: id.into(), ..common::run() }).unwrap(), id);
    }
    let other = store.begin(&record::Run { id: "89abcdef".into(), ..common::run() }).unwrap();
    assert_ne!(other, "89abcdef", "a name is given once");
    assert_eq!(store.find("last").unwrap(), other);
    assert_eq!(store.find("0123a").unwrap(), "0123abcd");
    assert_eq!(store.find("89ABCDEF").unwrap(), "89abcdef");
    let ambiguous = store.find("0123").unwrap_err().to_string();
    assert!(ambiguous.contains("0123abcd") && ambiguous.contains("0123ffff"), "{ambiguous}");
    for nonsense in ["", "012", "0123abcd0", "xyzw", "01%3", "0123'"] {
        assert!(matches!(store.find(nonsense), Err(RecordError::NotARun { .. })), "{nonsense}");
    }
    assert!(matches!(store.find("ffff"), Err(RecordError::NoSuchRun { .. })));
    let order: Vec<_> = store.runs().unwrap().into_iter().map(|run| run.id).collect();
    assert_eq!(order, [other.as_str(), "89abcdef", "0123ffff", "0123abcd"]);
}

#[test]
fn a_run_is_removed_when_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let (id, _spool, _) = common::begun(&mut store);
    assert!(matches!(store.remove(&id), Err(RecordError::StillRunning { .. })));
    store.finish(&id, &State::Done, &[]).unwrap();
    store.remove(&id).unwrap();
    assert!(matches!(store.load(&id), Err(RecordError::NoSuchRun { .. })));
    let db = rusqlite::Connection::open(store.path()).unwrap();
    let rest = "SELECT (SELECT count(*) FROM step) + (SELECT count(*) FROM interval) + (SELECT count(*) FROM sample)";
    assert_eq!(db.query_row(rest, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// One sentence that names the file and the way out.
fn sentence(error: RecordError, path: &Path) -> String {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()) && text.contains("--db"), "{text}");
    assert!(!text.contains('\n') && !text.contains("  "), "{text}");
    text
}

#[test]
fn what_is_no_database_of_ours_is_told_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.db");
    for open in [Store::open as fn(&Path) -> _, Store::open_for_reading] {
        std::fs::write(&path, "this is a shopping list, and quite a long one, with bread and butter in it").unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(sentence(open(&path).unwrap_err(), &path).contains("no SQLite file"));
        assert_eq!(std::fs::read(&path).unwrap(), before);

        std::fs::remove_file(&path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE bread (butter)").unwrap();
        let before = std::fs::read(&path).unwrap();
        assert!(sentence(open(&path).unwrap_err(), &path).contains("another program's"));
        assert_eq!(std::fs::read(&path).unwrap(), before);
        std::fs::remove_file(&path).unwrap();

        sentence(open(dir.path()).unwrap_err(), dir.path());
    }
    assert!(matches!(Store::open_for_reading(&path), Err(RecordError::NoDatabase { .. })));
    assert!(!path.exists(), "reading makes nothing");
    sentence(Store::open(Path::new("/proc/version/x.db")).unwrap_err(), Path::new("/proc/version"));
}

#[test]
fn a_newer_database_is_told_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = open(&dir).path().to_owned();
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 999).unwrap();
    for open in [Store::open as fn(&Path) -> _, Store::open_for_reading] {
        let text = sentence(open(&path).unwrap_err(), &path);
        assert!(text.contains("newer tiermark") && text.contains("999"), "{text}");
    }
}

#[test]
fn a_damaged_database_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let id = common::done(&mut store);
    let path = store.path().to_owned();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    let mut told = 0;
    for page in 1..whole.len() / 4096 {
        let mut damaged = whole.clone();
        damaged[page * 4096..(page + 1) * 4096].fill(0xA5);
        std::fs::write(&path, damaged).unwrap();
        let read = Store::open_for_reading(&path).and_then(|store| store.load(&id));
        if let Err(error) = read {
            assert!(matches!(error, RecordError::Damaged { .. } | RecordError::NoSuchRun { .. }), "{error:?}");
            told += 1;
        }
    }
    assert!(told > 3, "{told}");
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let read = Store::open_for_reading(&path).and_then(|store| store.load(&id));
    assert!(matches!(read, Err(RecordError::Damaged { .. })), "{read:?}");
}

#[test]
fn the_first_schema_still_opens() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.db");
    let dump = include_str!("fixtures/version-1.sql");
    rusqlite::Connection::open(&path).unwrap().execute_batch(dump).unwrap();
    let store = Store::open(&path).unwrap();
    let record = store.load(&store.find("0123abcd").unwrap()).unwrap();
    assert_eq!(record.run.machine.model.get().unwrap(), "Raspberry Pi 5");
    // Written when buffered jobs dropped the cache unless told otherwise; what was done stays what was done.
    let mut plan = common::run().plan;
    plan.steps.iter_mut().for_each(|step| step.job.invalidate = true);
    assert_eq!(record.run.plan, plan);
    assert_eq!(record.steps[0].read.operations(), 6);
    assert_eq!(record.steps[0].read.latency.max().unwrap().us().round(), 73.0);
    assert_eq!(record.steps[0].engine.as_ref().unwrap().dropped.len(), 1);
    assert_eq!(record.intervals, (0..3).map(|n| (0, common::interval(n))).collect::<Vec<_>>());
    assert_eq!(record.samples[2], (0, common::sample(2)));
    assert_eq!(store.runs().unwrap()[0].state, State::Done);
}

/// What is undone when a test ends, however it ends.
struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let unmount = || std::process::Command::new("umount").arg(self.0).status();
        for _ in 0..10 {
            if unmount().is_ok_and(|status| status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

/// A small file system, when this user may mount one.
fn tmpfs<'a>(test: &str, at: &'a Path, size: &str) -> Option<Unmount<'a>> {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP {test}: needs root");
        return None;
    }
    let options = format!("size={size}");
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", &options, "tiermark-test"])
        .arg(at)
        .status()
        .unwrap();
    assert!(mounted.success());
    Some(Unmount(at))
}

#[test]
fn a_full_disk_is_told_and_what_was_committed_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = tmpfs("a_full_disk_is_told_and_what_was_committed_is_kept", dir.path(), "512k") else { return };
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&common::run()).unwrap();
    let mut spool = store.spool(&id).unwrap();
    let mut committed = 0;
    let error = loop {
        for n in 0..200 {
            spool.interval(committed, &common::interval(n));
        }
        match store.commit_step(&mut spool, &common::step(committed, &[])) {
            Ok(()) => committed += 1,
            Err(error) => break error,
        }
        assert!(committed < 100, "512 KiB hold no more");
    };
    assert!(matches!(error, RecordError::Full { .. }), "{error:?}");
    sentence(error, &path);
    assert!(committed > 0);
    assert_eq!(store.load(&id).unwrap().steps.len(), committed as usize);
    std::fs::write(dir.path().join("fill"), vec![0; 1 << 20]).unwrap_err();
    let error = Store::open(&dir.path().join("other.db")).map(drop).unwrap_err();
    assert!(matches!(error, RecordError::Full { .. }), "{error:?}");
    // What was not committed outlives this process, and its database does not.
    std::fs::remove_file(spool.path()).unwrap();
}

#[test]
fn a_read_only_place_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let Some(_mount) = tmpfs("a_read_only_place_can_be_read", dir.path(), "4M") else { return };
    let path = dir.path().join("100% mine?.db");
    let mut store = Store::open(&path).unwrap();
    let id = common::done(&mut store);
    drop(store);
    // Between fork and exec, another test's child holds this one's descriptors open.
    let remount = || std::process::Command::new("mount").args(["-o", "remount,ro"]).arg(dir.path()).status().unwrap();
    let patiently = (0..50).any(|_| {
        let done = remount().success();
        std::thread::sleep(std::time::Duration::from_millis(if done { 0 } else { 20 }));
        done
    });
    assert!(patiently);
    let store = Store::open_for_reading(&path).unwrap();
    assert_eq!(store.load(&id).unwrap().steps.len(), 1);
    assert!(store.notes().is_empty());
    assert!(matches!(Store::open(&path), Err(RecordError::ReadOnly { .. })));
}

#[test]
fn a_proof_is_kept_and_grows_turn_by_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = open(&dir);
    let turn = |run: &str, changed, pair| record::Turn { run: run.into(), changed, pair, boot: Some("b".into()) };
    let mut proof = record::Proof {
        started: Nanos(5),
        rules: vec!["page-cluster".into()],
        applied: None,
        differs: vec!["vm.page-cluster: 3 → 0".into()],
        with: "load swap".into(),
        interleaved: true,
        seed: u64::MAX,
        turns: vec![turn("00000001", false, None)],
    };
    let number = store.keep_proof(None, &proof).unwrap();
    proof.turns.push(turn("00000002", true, Some(0)));
    assert_eq!(store.keep_proof(Some(number), &proof).unwrap(), number);
    let other = store.keep_proof(None, &record::Proof { turns: Vec::new(), ..proof.clone() }).unwrap();
    let kept = store.proofs().unwrap();
    assert_eq!(kept.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [other, number]);
    assert_eq!(kept[1].1, proof);
}
