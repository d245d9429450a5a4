//! Runs, steps and intervals to keep.
#![allow(dead_code, reason = "each test file uses its part")]

use basics::job::Engine;
use basics::plan::{Step, Target};
use basics::{Bytes, EngineUse, Interval, Job, Nanos, Plan, Side};
use record::{Origin, Run, RunId, State, StepRecord, Store};
use std::collections::BTreeMap;
use std::path::Path;

/// A run of two steps against nothing.
pub fn run() -> Run {
    let step = |name: &str, tier: &str| Step {
        name: name.into(),
        tier: Some(tier.into()),
        target: 0,
        job: Job::default(),
        may_fail: false,
        before: vec![],
    };
    Run {
        id: record::new_id(),
        state: State::Running,
        origin: Origin::Measured,
        started: Nanos(1_700_000_000_000_000_000),
        ended: None,
        version: "0.1.0".into(),
        command: "tiermark check".into(),
        target: "null".into(),
        plan: Plan {
            method: "check".into(),
            parameters: BTreeMap::from([("quick".into(), "true".into())]),
            as_published: false,
            seed: 42,
            targets: vec![Target::Null { service: Nanos(0), stall: None }],
            steps: vec![step("seq-read", "sda"), step("seq-write", "sda"), step("swap-sim", "mmcblk0")],
            left_out: vec![],
            ..Plan::default()
        },
        machine: machine::Machine { model: "Raspberry Pi 5".to_owned().into(), ..Default::default() },
        harness_ns_per_op: Some(13.25),
        notes: vec!["a note".into()],
        quoted: None,
    }
}

/// The `n`-th tenth of a second of a step.
pub fn interval(n: u64) -> Interval {
    let mut read = Side { bytes: 4096 * (n + 1), ..Side::default() };
    for i in 0..=n {
        read.latency.record(Nanos(71_000 + i * 1000));
    }
    Interval {
        start: Nanos::from_millis(n * 100),
        end: Nanos::from_millis((n + 1) * 100),
        read,
        position: n,
        ..Interval::default()
    }
}

pub fn sample(n: u64) -> observe::Sample {
    observe::Sample { at: Nanos::from_millis(n * 100), temperature_c: Some(51.3), ..Default::default() }
}

/// The account of a step that had these intervals.
pub fn step(index: u32, intervals: &[Interval]) -> StepRecord {
    let mut read = Side::default();
    intervals.iter().for_each(|interval| read.merge(&interval.read));
    StepRecord {
        each: vec![basics::Each {
            offset: basics::Bytes(4096),
            len: basics::Bytes(512),
            read: true,
            at: Nanos(7),
            latency: Nanos(9),
            waited: Nanos(0),
        }],
        index,
        name: "seq-read".into(),
        tier: Some("sda".into()),
        target: "null".into(),
        job: Job { size: Some(Bytes(1 << 30)), ..Job::default() },
        state: State::Done,
        engine: Some(EngineUse {
            asked: Engine::Auto,
            used: Engine::Psync,
            why: "depth 1".into(),
            dropped: vec![("O_DIRECT".into(), "refused".into())],
        }),
        ended_by: "time".into(),
        region: Some(Bytes(1 << 30)),
        filled: Some(record::Fill { bytes: Bytes(1 << 30), time: Nanos::from_millis(2_000) }),
        started: Nanos(1_700_000_001_000_000_000),
        measured_from: Some(Nanos::from_millis(250)),
        elapsed: Nanos::from_millis(100 * intervals.len() as u64),
        read,
        write: Side::default(),
        cpu_user: Some(Nanos(5)),
        cpu_system: Some(Nanos(6)),
        observing: Some(observe::Cost { samples: 1, cpu: Nanos(7), dropped: 0 }),
        predicted: Some(basics::Predicted {
            read: Some(basics::Expected { iops: (9.5, 11.0), lat_mean_us: (90.0, 105.5) }),
            write: None,
        }),
        load: None,
        notes: vec!["a note of the step".into()],
    }
}

/// A run with one step of three intervals, not ended.
pub fn begun(store: &mut Store) -> (RunId, record::Spool, StepRecord) {
    let id = store.begin(&run()).unwrap();
    let mut spool = store.spool(&id).unwrap();
    let intervals: Vec<Interval> = (0..3).map(interval).collect();
    for (n, interval) in intervals.iter().enumerate() {
        spool.interval(0, interval);
        spool.sample(0, &sample(n as u64));
    }
    let step = step(0, &intervals);
    store.commit_step(&mut spool, &step).unwrap();
    (id, spool, step)
}

/// The same, ended.
pub fn done(store: &mut Store) -> RunId {
    let (id, _, _) = begun(store);
    store.finish(&id, &State::Done, &[]).unwrap();
    id
}

/// Makes the owner of every run in the file a process that is gone.
pub fn kill_owners(database: &Path) {
    let db = rusqlite::Connection::open(database).unwrap();
    db.execute("UPDATE owner SET process = json_set(process, '$.boot_id', 'an earlier one')", []).unwrap();
}
