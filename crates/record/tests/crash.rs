//! SIGKILL in mid-run, then a new start: the database opens, the run is *interrupted*, every interval that was handed over
//! is there. And two processes at once.
#![forbid(unsafe_code)]

mod common;

use basics::Interval;
use record::{RecordError, State, Store};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Database to measure into until killed.
const ORDERS: &str = "TIERMARK_MEASURE_INTO";

/// What the killed process does: steps of ten intervals, for ever; each is told once it has been handed over.
fn measure(database: &Path) -> ! {
    let mut store = Store::open(database).unwrap();
    let mut plan = common::run();
    plan.plan.steps = vec![plan.plan.steps[0].clone(); 2_000];
    let id = store.begin(&plan).unwrap();
    let mut spool = store.spool(&id).unwrap();
    println!("\nspool {}", spool.path().display());
    for index in 0.. {
        let intervals: Vec<Interval> = (0..10).map(common::interval).collect();
        for (n, interval) in intervals.iter().enumerate() {
            spool.interval(index, interval);
            println!("interval {index} {n}");
            std::io::stdout().flush().unwrap();
            // Most of a run is measuring; so most kills should come there.
            std::thread::sleep(Duration::from_micros(500));
        }
        store.commit_step(&mut spool, &common::step(index, &intervals)).unwrap();
    }
    unreachable!("steps without end")
}

/// A process that measures into the database.
fn measuring(database: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_at_any_moment_all_but_the_interval_in_progress_is_kept", "--nocapture"])
        .env(ORDERS, database)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Bug: a killed run whose database was then removed left its spool in memory for ever.
#[test]
fn a_spool_whose_process_and_database_are_gone_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut elsewhere = Store::open(&dir.path().join("elsewhere.db")).unwrap();
    let folder = dir.path().join("removed");
    let mut child = measuring(&folder.join("tiermark.db"));
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let spool: PathBuf = told.find_map(|line| line.strip_prefix("spool ").map(PathBuf::from)).unwrap();
    told.find(|line| line.starts_with("interval ")).unwrap();
    // Stopped, so that it neither ends nor makes anything anew while its folder goes.
    let process = rustix::process::Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let kept = dir.path().join("kept");
    std::fs::rename(&folder, &kept).unwrap();
    elsewhere.recover().unwrap();
    assert!(spool.exists(), "its process lives");
    std::fs::rename(&kept, &folder).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    elsewhere.recover().unwrap();
    assert!(spool.exists(), "its database is there and knows it");
    std::fs::remove_dir_all(&folder).unwrap();
    let beside = PathBuf::from(format!("{}.new", spool.display()));
    std::fs::write(&beside, "killed while it was thinned").unwrap();
    elsewhere.recover().unwrap();
    assert!(!spool.exists() && !beside.exists());
}

/// A step whose turn did not come.
const NOT_RUN: State = State::NotRun(basics::NotRun::Interrupted);

#[test]
fn killed_at_any_moment_all_but_the_interval_in_progress_is_kept() {
    if let Ok(database) = std::env::var(ORDERS) {
        measure(Path::new(&database));
    }
    let rounds = if std::env::var_os("TIERMARK_TEST_FULL").is_some() { 200 } else { 20 };
    // SIGKILL is the same in memory, and twenty databases' flushes are not waited for.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let database = dir.path().join("tiermark.db");
    let mut inside_a_step = 0;
    for round in 0..rounds {
        let mut child = measuring(&database);
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let spool: PathBuf = told.find_map(|line| line.strip_prefix("spool ").map(PathBuf::from)).unwrap();
        // Not random, so that a failure can be had again; spread over a few steps all the same.
        std::thread::sleep(Duration::from_micros(round * 7919 % 40_000));
        child.kill().unwrap();
        let last = told.filter(|line| line.starts_with("interval ")).last();
        child.wait().unwrap();
        let last = last.map(|line| {
            let mut words = line.split(' ').skip(1).map(|word| word.parse::<u32>().unwrap());
            (words.next().unwrap(), words.next().unwrap())
        });

        assert!(spool.exists(), "round {round}: a spool survives");
        let mut store = Store::open(&database).unwrap();
        assert_eq!(store.runs().unwrap()[0].state, State::Running);
        let [id] = store.recover().unwrap().try_into().unwrap();
        assert!(!spool.exists(), "round {round}: its spool is cleared");
        assert_eq!(store.recover().unwrap(), [""; 0]);
        let record = store.load(&id).unwrap();
        assert_eq!(record.run.state, State::Interrupted);
        let handed_over = last.map_or(0, |(step, n)| step * 10 + n + 1) as usize;
        let kept = record.intervals.len();
        assert!((handed_over..=handed_over + 1).contains(&kept), "round {round}: {kept} of {handed_over}");
        for (at, (step, interval)) in record.intervals.iter().enumerate() {
            assert_eq!((*step as usize, interval.position as usize), (at / 10, at % 10));
        }
        let operations: u64 = record.intervals.iter().map(|(_, interval)| interval.read.operations()).sum();
        assert_eq!(record.steps.iter().map(|step| step.read.operations()).sum::<u64>(), operations);
        let ran = record.steps.iter().filter(|step| step.state != NOT_RUN);
        for (at, step) in ran.clone().enumerate() {
            let whole = step.state == State::Done;
            assert!(whole || (step.state == State::Interrupted && at + 1 == ran.clone().count()));
            let known = (step.cpu_user.is_some(), step.cpu_system.is_some(), step.observing.is_some());
            assert_eq!(known, (whole, whole, whole), "what nobody could measure is unknown, not zero");
            inside_a_step += usize::from(!whole);
        }
    }
    assert!(inside_a_step > rounds as usize / 4, "{inside_a_step} kills inside a step: the test has lost its grip");
}

#[test]
fn the_living_are_left_alone_and_the_dead_are_taken_over_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let (id, mut spool, _) = common::begun(&mut store);
    spool.interval(1, &common::interval(0));
    let recover = |path: &Path| Store::open(path).unwrap().recover().unwrap();
    assert_eq!(recover(&path), [""; 0], "its owner lives");
    assert!(spool.path().exists());

    common::kill_owners(&path);
    let found: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| recover(&path))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(found, [id.as_str()], "by one of four");
    let record = store.load(&id).unwrap();
    assert_eq!(
        (record.steps.len(), &record.steps[2].state),
        (3, &NOT_RUN),
        "and the plan's last step is accounted for"
    );
    assert_eq!((record.steps[1].name.as_str(), &record.steps[1].state), ("seq-write", &State::Interrupted));
    assert_eq!(record.intervals.len(), 4);
    assert!(record.run.ended.is_some());
}

#[test]
fn a_lost_spool_costs_its_step_and_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let (id, mut spool, _) = common::begun(&mut store);
    spool.interval(1, &common::interval(0));
    std::fs::remove_file(spool.path()).unwrap();
    common::kill_owners(&path);
    assert_eq!(store.recover().unwrap(), [id.as_str()]);
    let record = store.load(&id).unwrap();
    assert_eq!((store.runs().unwrap()[0].steps, record.intervals.len()), (1, 3));
    assert!(record.run.notes.iter().any(|note| note.contains("lost")), "{:?}", record.run.notes);
}

#[test]
fn killed_between_the_commit_and_the_emptying_of_the_spool_nothing_comes_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let id = store.begin(&common::run()).unwrap();
    let mut spool = store.spool(&id).unwrap();
    spool.interval(0, &common::interval(0));
    let entries = std::fs::read(spool.path()).unwrap();
    store.commit_step(&mut spool, &common::step(0, &[common::interval(0)])).unwrap();
    std::fs::write(spool.path(), entries).unwrap();
    common::kill_owners(&path);
    assert_eq!(store.recover().unwrap(), [id.as_str()]);
    let record = store.load(&id).unwrap();
    assert_eq!((store.runs().unwrap()[0].steps, record.intervals.len()), (1, 1));
    assert_eq!(record.steps[0].state, State::Done);
}

#[test]
fn a_dead_run_that_cannot_be_read_is_marked_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let (id, mut spool, _) = common::begun(&mut store);
    spool.interval(1, &common::interval(0));
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE run SET plan = '{}'", []).unwrap();
    common::kill_owners(&path);
    assert_eq!(store.recover().unwrap(), [id.as_str()]);
    assert_eq!(store.runs().unwrap()[0].state, State::Interrupted);
    assert!(matches!(store.load(&id), Err(RecordError::Damaged { .. })));
}

#[test]
fn a_run_that_ended_keeps_its_state_when_only_its_spool_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let (id, spool, _) = common::begun(&mut store);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("UPDATE run SET state = '\"done\"'", []).unwrap();
    common::kill_owners(&path);
    assert_eq!(store.recover().unwrap(), [""; 0]);
    assert!(!spool.path().exists());
    assert_eq!(store.load(&id).unwrap().run.state, State::Done);
}

#[test]
fn two_processes_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| common::done(&mut Store::open(&path).unwrap()));
        }
    });
    let store = Store::open(&path).unwrap();
    let runs = store.runs().unwrap();
    assert_eq!(runs.len(), 4);
    for run in runs {
        assert_eq!((run.state, store.load(&run.id).unwrap().intervals.len()), (State::Done, 3));
    }
}

#[test]
fn a_database_that_somebody_holds_is_waited_for_and_then_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiermark.db");
    let mut store = Store::open(&path).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = std::thread::scope(|scope| {
        let begun = scope.spawn(|| store.begin(&common::run()));
        std::thread::sleep(Duration::from_millis(50));
        other.execute_batch("ROLLBACK").unwrap();
        begun.join().unwrap()
    });
    assert!(!matches!(begun, Err(RecordError::Busy { .. })), "{begun:?}");
    begun.unwrap();
}
