//! SIGKILL in mid-run: the database opens, the run is listed as interrupted with its intervals, the next start of any
//! command removes what was left, and everything works as before. `TIERMARK_TEST_FULL` makes more of them.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Random, Running, full, job};
use rustix::process::Signal;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the random moments come from; printed, and taken from `TIERMARK_TEST_SEED` to see a failure again.
struct Moments(Random);

impl Moments {
    fn new() -> Self {
        let given = std::env::var("TIERMARK_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
        let seed = given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos().into());
        println!("TIERMARK_TEST_SEED={seed}");
        Moments(Random(seed))
    }

    /// Up to `most`.
    fn next(&mut self, most: Duration) -> Duration {
        most.mul_f64((self.0.next() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

fn rounds() -> usize {
    if full() { 20 } else { 5 }
}

/// Kills it; false when it had ended before.
fn killed(mut running: Running) -> bool {
    let alive = running.child().try_wait().unwrap().is_none();
    if alive {
        running.signal(Signal::KILL);
        running.child().wait().unwrap();
    }
    alive
}

/// Intervals that lie in the spools of a killed run, counted by whoever wrote them: none until its file has grown past the
/// head and a first interval with both its histograms.
fn spooled(home: &Home, run: &str) -> u64 {
    home.spools(run).iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// The name of the newest run, without the recovery that any command of the program would do.
fn newest(database: &Path) -> Option<String> {
    record::Store::open_for_reading(database).ok()?.find("last").ok()
}

#[test]
fn killed_at_any_moment_the_run_is_interrupted_with_its_intervals() {
    let home = Home::new();
    let mut moments = Moments::new();
    let (mut begun, mut measured) = (0, 0);
    let words = job(&["rw=randrw", "size=16MiB", "runtime=30s", "interval=50ms", "depth=4"], home.work());
    for round in 0..rounds() {
        let running = home.start(&words);
        // The first half of the moments falls on the start and the file's filling, the second into the measurement.
        std::thread::sleep(moments.next(Duration::from_millis(if round % 2 == 0 { 400 } else { 3000 })));
        assert!(killed(running), "it ended by itself");
        let run = newest(&home.database()).unwrap_or_default();
        let kept_aside = if run.is_empty() { 0 } else { spooled(&home, &run) };

        let runs = home.run(&["runs", "--json"]).code(0).json();
        assert_eq!(home.left_in(&home.work()), [""; 0], "round {round}: a test file is left after the next start");
        home.assert_clean(&home.work());
        let Some(listed) = runs["runs"].as_array().unwrap().iter().find(|listed| listed["run"] == *run) else {
            assert_eq!(kept_aside, 0, "round {round}: killed before it began");
            continue;
        };
        begun += 1;
        assert_eq!(listed["state"], "interrupted", "round {round}");
        let record = home.last();
        // A head takes 16 bytes, the note of a step's beginning 21, an interval of a mix some hundreds.
        if kept_aside > 4096 {
            measured += 1;
            assert!(!record.intervals.is_empty(), "round {round}: {kept_aside} bytes and no interval");
            let operations =
                record.intervals.iter().map(|(_, i)| i.read.operations() + i.write.operations()).sum::<u64>();
            assert!(operations > 0);
            let shown = home.json(&["show", &run]);
            let step = &shown["steps"][0];
            assert_eq!((&step["state"], &shown["state"]), (&"interrupted".into(), &"interrupted".into()));
            let ops = step["read"]["ops"].as_u64().unwrap_or(0) + step["write"]["ops"].as_u64().unwrap_or(0);
            assert_eq!(ops, operations, "the step's totals are its intervals'");
        }
        home.run(&["show", &run]).code(0);
    }
    println!("{} kills, {begun} after the run had begun, {measured} in mid-step", rounds());
    // A last one that is surely in mid-step, however slow the machine is.
    let mut running = home.start(&words);
    running.until("it measures", || newest(&home.database()).is_some_and(|run| spooled(&home, &run) > 16_384));
    assert!(killed(running));
    assert!(!home.left_in(&home.work()).is_empty(), "nothing was left behind: the test shows nothing");
    let told = home.run(&["runs"]).code(0);
    assert!(told.err.contains("was interrupted") && told.err.contains("removed"), "{told:?}");
    assert!(home.last().intervals.len() >= 2);
    home.assert_clean(&home.work());
    home.run(&["check", "--quick", "--in", home.work().to_str().unwrap()]).code(0);
    home.assert_clean(&home.work());
}

#[test]
fn killed_while_the_test_file_is_written_nothing_stays() {
    let home = Home::new();
    let mut moments = Moments::new();
    for round in 0..rounds().div_ceil(2) {
        let mut running = home.start(&job(&["rw=randread", "size=1GiB", "runtime=30s"], home.work()));
        running.until("the file is there", || !home.left_in(&home.work()).is_empty());
        std::thread::sleep(moments.next(Duration::from_millis(300)));
        assert!(killed(running), "round {round}: it ended by itself");
        assert_eq!(home.left_in(&home.work()).len(), 1);
        // Any command does it, also one that needs no database.
        let command: &[&str] = if round % 2 == 0 { &["runs"] } else { &["tiers"] };
        let told = home.run(command).code(0);
        assert!(told.err.contains("removed"), "{told:?}");
        home.assert_clean(&home.work());
        assert_eq!(home.json(&["runs"])["runs"][0]["state"], "interrupted");
    }
}

/// A process that still runs is nobody's to clean up after.
#[test]
fn a_living_run_is_left_alone() {
    let home = Home::new();
    let mut running = home.start(&job(&["rw=randread", "size=16MiB", "runtime=3s"], home.work()));
    running.until("the file is there", || !home.left_in(&home.work()).is_empty());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        let runs = home.json(&["runs"]);
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
        assert!(runs["runs"][0]["state"] == "running" || runs["runs"][0]["state"] == "done", "{runs}");
    }
    common::finish(running).code(0);
    assert_eq!(home.json(&["runs"])["runs"][0]["state"], "done");
    home.assert_clean(&home.work());
}
