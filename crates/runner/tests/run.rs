//! Plans run for real in a temporary folder: what is kept, what is removed, what is refused, what an interruption leaves.
#![forbid(unsafe_code)]

use basics::job::{Block, Direction, Entropy, Order, Stop};
use basics::plan::{Rounds, Step, Target};
use basics::units::MIB;
use basics::{Bytes, FailKind, Interval, Job, Nanos, NotRun, Plan};
use change::Journal;
use machine::Machine;
use record::{Failure, Record, State, Store};
use runner::{Finished, Kind, Progress, RunError, Runner, Silent};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// A store and a journal of their own, and a folder to measure in.
struct House {
    dir: TempDir,
    store: Store,
    journal: Journal,
    interrupted: AtomicBool,
}

impl House {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("data/tiermark.db")).unwrap();
        let journal = Journal::open(&dir.path().join("data/journal")).unwrap();
        std::fs::create_dir(dir.path().join("there")).unwrap();
        House { dir, store, journal, interrupted: AtomicBool::new(false) }
    }
    fn there(&self) -> std::path::PathBuf {
        self.dir.path().join("there")
    }
    fn run(&mut self, plan: Plan, progress: &mut dyn Progress) -> Result<Finished, RunError> {
        let House { store, journal, interrupted, .. } = self;
        Runner { store, journal, interrupted, progress, program: Path::new("") }.run(plan, Machine::default(), "a test")
    }
    fn record(&self, finished: &Finished) -> Record {
        self.store.load(&finished.id).unwrap()
    }
}

fn names(dir: &Path) -> Vec<String> {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn test_file(dir: &Path, first_step_fills: bool) -> Target {
    Target::TestFile { dir: dir.into(), size: Bytes(4 * MIB), entropy: Entropy::Incompressible, first_step_fills }
}

fn step(name: &str, target: usize, job: Job) -> Step {
    Step { name: name.into(), tier: None, target, job, may_fail: false, before: vec![] }
}

fn plan(targets: Vec<Target>, steps: Vec<Step>) -> Plan {
    Plan {
        method: "test".into(),
        parameters: BTreeMap::new(),
        as_published: false,
        seed: 1,
        targets,
        steps,
        left_out: vec![],
        ..Plan::default()
    }
}

/// Each block of the region once.
fn once(direction: Direction, order: Order) -> Job {
    let stop = Stop { bytes: Some(Bytes(4 * MIB)), ..Stop::default() };
    Job { direction, order, block: Block::Fixed(Bytes(65536)), direct: false, stop, ..Job::default() }
}

#[test]
fn a_test_file_is_whole_before_it_is_read_and_gone_afterwards() {
    let mut house = House::new();
    let plan = plan(vec![test_file(&house.there(), false)], vec![step("r", 0, once(Direction::Read, Order::Permuted))]);
    let finished = house.run(plan, &mut Silent).unwrap();
    let record = house.record(&finished);
    assert_eq!((&finished.state, finished.errors.len()), (&State::Done, 0));
    assert_eq!(record.steps[0].read.bytes, 4 * MIB);
    assert_eq!(record.steps[0].read.operations(), 64);
    assert_eq!(record.steps[0].write.bytes, 0, "filling is not measured");
    assert_eq!(record.steps[0].filled.unwrap().bytes, Bytes(4 * MIB));
    assert_eq!(record.steps[0].region, Some(Bytes(4 * MIB)));
    let series: u64 = record.intervals.iter().map(|(_, interval)| interval.read.operations()).sum();
    assert_eq!(series, 64, "the series holds every operation");
    assert!(names(&house.there()).is_empty());
    assert!(record.run.harness_ns_per_op.is_some());
}

#[test]
fn a_small_or_odd_test_file_is_written_to_its_last_block() {
    for size in [4096, 65_536, 10_000_000, 4 * MIB + 4096] {
        let mut house = House::new();
        let target = Target::TestFile {
            dir: house.there(),
            size: Bytes(size),
            entropy: Entropy::Incompressible,
            first_step_fills: false,
        };
        let stop = Stop { operations: Some(size / 4096), ..Stop::default() };
        let read = Job { block: Block::Fixed(Bytes(4096)), stop, ..once(Direction::Read, Order::Permuted) };
        let finished = house.run(plan(vec![target], vec![step("r", 0, read)]), &mut Silent).unwrap();
        assert_eq!(finished.state, State::Done, "{size}: {:?}", finished.errors);
        let blocks = house.record(&finished).steps[0].read.operations();
        assert_eq!(blocks, size / 4096, "of {size} bytes");
        assert!(names(&house.there()).is_empty());
    }
}

#[test]
fn later_steps_stay_on_what_the_first_one_wrote() {
    let mut house = House::new();
    let half = Job {
        stop: Stop { bytes: Some(Bytes(2 * MIB)), ..Stop::default() },
        ..once(Direction::Write, Order::Sequential)
    };
    let read =
        Job { stop: Stop { operations: Some(500), ..Stop::default() }, ..once(Direction::Read, Order::Permuted) };
    let plan = plan(vec![test_file(&house.there(), true)], vec![step("w", 0, half), step("r", 0, read)]);
    let finished = house.run(plan, &mut Silent).unwrap();
    assert_eq!(finished.state, State::Done, "{:?}", finished.errors);
    let record = house.record(&finished);
    let farthest = record.intervals.iter().map(|(_, interval)| interval.position).max().unwrap();
    assert!(farthest < 2 * MIB, "read at {farthest}, beyond what was written");
    assert_eq!((record.steps[1].job.size, record.steps[1].region), (None, Some(Bytes(2 * MIB))));
}

#[test]
fn a_write_that_begins_again_from_the_start_leaves_no_more_than_its_region() {
    let mut house = House::new();
    let around = Job { size: Some(Bytes(MIB)), ..once(Direction::Write, Order::Sequential) };
    let read =
        Job { stop: Stop { operations: Some(100), ..Stop::default() }, ..once(Direction::Read, Order::Permuted) };
    let plan = plan(vec![test_file(&house.there(), true)], vec![step("w", 0, around), step("r", 0, read)]);
    let finished = house.run(plan, &mut Silent).unwrap();
    let record = house.record(&finished);
    assert_eq!(record.steps[0].write.bytes, 4 * MIB, "four times around");
    assert_eq!(record.steps[1].region, Some(Bytes(MIB)));
}

#[test]
fn samples_go_on_through_the_warm_up_and_the_record_tells_where_it_ends() {
    let mut house = House::new();
    let (warmup, time) = (Nanos::from_millis(500), Nanos::from_millis(500));
    let job = Job {
        warmup,
        stop: Stop { time: Some(time), ..Stop::default() },
        // One interval only, so that none comes while the samples do.
        interval: Nanos::from_secs(60.0),
        ..Job::default()
    };
    let null = Target::Null { service: Nanos::from_millis(1), stall: None };
    let finished = house.run(plan(vec![null], vec![step("n", 0, job)]), &mut Silent).unwrap();
    let record = house.record(&finished);
    let (step, cost) = (&record.steps[0], record.steps[0].observing.unwrap());
    assert_eq!(cost.samples, record.samples.len() as u64, "none is lost between the observer and the record");
    let from = step.measured_from.unwrap();
    assert!(from >= warmup, "{from}");
    let last = record.samples.last().unwrap().1.at;
    assert!(last >= from + time, "the last sample, at {last}, is of the end");
    assert_eq!(step.region, None, "there are no bytes in nothing");
}

#[test]
fn an_existing_file_is_never_written() {
    let mut house = House::new();
    let path = house.there().join("precious");
    std::fs::write(&path, [7; 8192]).unwrap();
    let target = Target::File { path: path.clone() };
    let write = step("w", 0, once(Direction::Write, Order::Sequential));
    let error = house.run(plan(vec![target], vec![write]), &mut Silent).unwrap_err();
    assert_eq!(error.kind(), Kind::Refused);
    assert_eq!(std::fs::read(&path).unwrap(), [7; 8192]);
    assert!(house.store.runs().unwrap().is_empty(), "a refused run has not begun");
}

#[test]
fn a_step_that_may_fail_leaves_the_others_alone() {
    let mut house = House::new();
    let missing = test_file(&house.there().join("nowhere"), false);
    let mut first = step("a", 0, once(Direction::Read, Order::Sequential));
    first.may_fail = true;
    let second = step("b", 1, once(Direction::Read, Order::Sequential));
    let third = Step { name: "c".into(), ..first.clone() };
    let plan = plan(vec![missing, test_file(&house.there(), false)], vec![first, second, third]);
    let finished = house.run(plan, &mut Silent).unwrap();
    assert_eq!(finished.state, State::Done);
    assert_eq!(finished.errors[0].kind(), Kind::Missing, "{:?}", finished.errors);
    let record = house.record(&finished);
    assert!(matches!(record.steps[0].state, State::Failed(Failure { kind: FailKind::Gone, .. })), "{record:?}");
    assert_eq!(record.steps[1].state, State::Done);
    assert_eq!((record.steps[2].name.as_str(), &record.steps[2].state), ("c", &State::NotRun(NotRun::TargetFailed)));
    assert_eq!(house.store.runs().unwrap()[0].steps, 2, "one was not run");
}

#[test]
fn an_interruption_keeps_what_was_measured_and_removes_the_file() {
    /// Sets the flag once a few intervals have been seen.
    struct Impatient<'a>(&'a AtomicBool, u32);
    impl Progress for Impatient<'_> {
        fn measuring(&mut self, _: usize, _: &Step, _: Nanos, _: &Interval) {
            self.1 += 1;
            self.0.store(self.1 >= 3, Ordering::Relaxed);
        }
    }
    let mut house = House::new();
    let endless = Job {
        stop: Stop { time: Some(Nanos::from_secs(60.0)), ..Stop::default() },
        interval: Nanos::from_millis(20),
        ..once(Direction::Read, Order::Permuted)
    };
    let steps = vec![step("r", 0, endless.clone()), step("never", 0, endless)];
    let plan = plan(vec![test_file(&house.there(), false)], steps);
    let House { store, journal, interrupted, .. } = &mut house;
    let mut impatient = Impatient(interrupted, 0);
    let mut runner = Runner { store, journal, interrupted, progress: &mut impatient, program: Path::new("") };
    let finished = runner.run(plan, Machine::default(), "a test").unwrap();
    assert_eq!(finished.state, State::Interrupted);
    let record = house.record(&finished);
    assert_eq!((record.steps.len(), &record.run.state), (2, &State::Interrupted));
    assert_eq!(record.steps[1].state, State::NotRun(NotRun::Interrupted));
    assert!(record.steps[0].read.operations() > 0);
    assert!(names(&house.there()).is_empty());
}

/// Rounds of two steps, of which the second must hold still, and a step behind them.
fn in_rounds(job: impl Fn(usize) -> Job) -> Plan {
    let rounds = (1..=8).flat_map(|round| {
        let hasty = Job { stop: Stop { operations: Some(1), ..Stop::default() }, ..Job::default() };
        [step(&Rounds::name("any", round), 0, hasty), step(&Rounds::name("tracked", round), 0, job(round))]
    });
    let steps = rounds.chain([step("behind", 0, job(8))]).collect();
    let toml = "name = \"x\"\nchannels = 1\n[read]\nlatency_us = 1000\n[write]\nlatency_us = 3000".to_owned();
    let target = Target::Profile { name: "x".to_owned(), toml };
    let rounds = Some(Rounds { first: 0, steps: 2, least: 1, most: 8, tracked: vec![1] });
    Plan { rounds, ..plan(vec![target], steps) }
}

fn counted(direction: Direction) -> Job {
    Job { direction, stop: Stop { operations: Some(50), ..Stop::default() }, ..Job::default() }
}

#[test]
fn rounds_end_once_they_hold_still_and_the_run_goes_on_behind_them() {
    let mut house = House::new();
    // The first round is three times as slow as the others: the window of the second to the sixth is the first that is even.
    let plan = in_rounds(|round| counted(if round == 1 { Direction::Write } else { Direction::Read }));
    let finished = house.run(plan, &mut Silent).unwrap();
    assert_eq!((&finished.state, finished.errors.len()), (&State::Done, 0));
    let record = house.record(&finished);
    let states: Vec<&State> = record.steps.iter().map(|step| &step.state).collect();
    assert!(states[..12].iter().all(|state| **state == State::Done), "{states:?}");
    assert!(states[12..16].iter().all(|state| **state == State::NotRun(NotRun::Enough)), "{states:?}");
    assert_eq!((states.len(), states[16]), (17, &State::Done));
}

#[test]
fn rounds_that_never_hold_still_are_all_run() {
    let mut house = House::new();
    let plan = in_rounds(|round| counted(if round % 2 == 1 { Direction::Write } else { Direction::Read }));
    let finished = house.run(plan, &mut Silent).unwrap();
    assert!(house.record(&finished).steps.iter().all(|step| step.state == State::Done));
}

#[test]
fn an_interrupted_round_is_interrupted_and_not_enough() {
    /// Sets the flag once the tenth step is over.
    struct Impatient<'a>(&'a AtomicBool);
    impl Progress for Impatient<'_> {
        fn finished(&mut self, index: usize, _: &record::StepRecord) {
            self.0.store(index >= 8, Ordering::Relaxed);
        }
    }
    let mut house = House::new();
    let plan = in_rounds(|_| counted(Direction::Read));
    let House { store, journal, interrupted, .. } = &mut house;
    let mut impatient = Impatient(interrupted);
    let mut runner = Runner { store, journal, interrupted, progress: &mut impatient, program: Path::new("") };
    let finished = runner.run(plan, Machine::default(), "a test").unwrap();
    assert_eq!(finished.state, State::Interrupted);
    let record = house.record(&finished);
    let rest = &record.steps[9..];
    assert!(rest.len() == 8 && rest.iter().all(|step| step.state == State::NotRun(NotRun::Interrupted)), "{rest:?}");
}

#[test]
fn a_file_that_shrinks_under_the_reader_is_one_sentence() {
    let mut house = House::new();
    let path = house.there().join("file");
    std::fs::write(&path, vec![1; 4 << 20]).unwrap();
    /// Cuts the file short after the first interval.
    struct Cutter(std::path::PathBuf);
    impl Progress for Cutter {
        fn measuring(&mut self, _: usize, _: &Step, _: Nanos, _: &Interval) {
            std::fs::File::options().write(true).open(&self.0).unwrap().set_len(0).unwrap();
        }
    }
    let job = Job {
        stop: Stop { time: Some(Nanos::from_secs(30.0)), ..Stop::default() },
        interval: Nanos::from_millis(20),
        ..once(Direction::Read, Order::Permuted)
    };
    let plan = plan(vec![Target::File { path: path.clone() }], vec![step("r", 0, job)]);
    let finished = house.run(plan, &mut Cutter(path)).unwrap();
    let State::Failed(Failure { why: sentence, .. }) = &finished.state else { panic!("{finished:?}") };
    assert!(sentence.starts_with("reading at ") && sentence.contains("kept"), "{sentence}");
    assert!(house.record(&finished).steps[0].read.operations() > 0);
}
