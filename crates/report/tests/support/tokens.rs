//! A language model under pressure, by hand: four tiers of which one was visited twice, one has no thermometer and nothing
//! about its bytes, and one had no room. The figures are made up; their order is that of real ones.

use super::{STARTED, record_of};
use basics::decoding::{Generated, Lay};
use basics::job::{Block, Direction, Engine};
use basics::pressure::{AreaSeen, Compressed, Load};
use basics::units::MIB;
use basics::{Bytes, EngineUse, FailKind, Job, Nanos, Side};
use observe::{Cost, Disk, Sample};
use record::{Failure, Record, State, StepRecord};

/// What a token of the model touches.
const TOUCHED: u64 = 1_550 * MIB;
/// What of it the memory has no room for.
const LACKING: u64 = 620 * MIB;

struct Visit {
    name: &'static str,
    tier: &'static str,
    /// To the first token, and each after it, in s.
    first: f64,
    each: f64,
    /// Major faults for a token.
    faults: f64,
    temperature: Option<f64>,
    /// Looks at where the bytes were.
    looks: u64,
}

/// The state of everything at a moment: how much of the way to the last token, in tokens.
fn done(visit: &Visit, tokens: &[Nanos], at: f64) -> f64 {
    let whole = tokens.iter().take_while(|token| token.secs() <= at).count();
    let from = whole.checked_sub(1).map_or(0.0, |last| tokens[last].secs());
    let to = tokens.get(whole).map_or(from + visit.each, |next| next.secs());
    whole as f64 + ((at - from) / (to - from)).min(1.0)
}

fn samples(visit: &Visit, tokens: &[Nanos], mapped: bool, index: u32, begun: f64) -> Vec<(u32, Sample)> {
    let end = tokens.last().copied().unwrap_or_default().secs();
    let count = (end * 10.0).round() as u64;
    let sample = |i: u64| {
        let at = i as f64 / 10.0;
        let done = done(visit, tokens, at);
        let read = (done * LACKING as f64) as u64;
        let disk = Disk { read_bytes: read, ..Disk::default() };
        Sample {
            at: Nanos::from_secs(begun + at),
            cpu_ticks: Some([500 + 12 * i, 0, 100 + 4 * i, 900 + 10 * i, 300 + 14 * i, 0, 0, 0]),
            vm: [
                ("pgmajfault".to_owned(), 70 + (done * visit.faults) as u64),
                ("pswpin".to_owned(), if mapped { 3 } else { 9 + read / 16384 }),
            ]
            .into(),
            disks: [(format!("loop{index}"), disk)].into(),
            temperature_c: visit.temperature.map(|warm| warm + 18.0 * (1.0 - (-at / 9.0).exp())),
            ..Sample::default()
        }
    };
    (0..=count).map(|i| (index, sample(i))).collect()
}

fn lay(visit: &Visit, end: f64, mapped: bool) -> Vec<Lay> {
    let look = |i: u64| {
        let share = i as f64 / visit.looks as f64;
        let held = |most: u64| Bytes((most as f64 * (1.0 - (-6.0 * share).exp())) as u64 * MIB);
        let (weights, rest) = (held(930), Bytes(held(620).0 + (i % 3) * 5 * MIB));
        Lay {
            at: Nanos::from_secs(end * share),
            anonymous: if mapped { Bytes(64 * MIB) } else { Bytes(weights.0 + 40 * MIB) },
            file: if mapped { weights } else { Bytes(9 * MIB) },
            swap: if mapped { Bytes(0) } else { rest },
        }
    };
    (0..=visit.looks).map(look).take(visit.looks as usize).collect()
}

fn visited(visit: &Visit, mapped: bool, index: u32, started: f64) -> (StepRecord, Vec<(u32, Sample)>) {
    /// Weights are made up before the prompt is given; samples are taken all the while.
    const BEGUN: f64 = 3.0;
    // Every seventh token has to wait for the disk's own business; the prompt's is another matter.
    let spans = (0..48u32).map(|i| match i {
        0 => visit.first,
        _ => visit.each * (1.0 + 0.15 * f64::from(i * 7919 % 13) / 13.0 + if i % 7 == 3 { 0.9 } else { 0.0 }),
    });
    let tokens: Vec<Nanos> = spans
        .scan(0.0, |at, span| {
            *at += span;
            Some(Nanos::from_secs(*at))
        })
        .collect();
    let end = tokens.last().copied().unwrap_or_default();
    let samples = samples(visit, &tokens, mapped, index, BEGUN);
    let mut read = Side { bytes: TOUCHED * 48, ..Side::default() };
    tokens.windows(2).for_each(|pair| read.latency.record(pair[1] - pair[0]));
    let zram = visit.tier == "zram";
    let compressed = Compressed {
        algorithm: "lz4".into(),
        original: Bytes(LACKING),
        compressed: Bytes(LACKING),
        memory: Bytes(LACKING),
        behind: None,
    };
    let area = AreaSeen {
        what: visit.tier.into(),
        disk: Some(format!("loop{index}")),
        sequential: (!zram)
            .then_some((Bytes(400_000_000), Nanos::from_millis(if visit.each > 1.0 { 930 } else { 285 }))),
        compressed: zram.then_some(compressed),
        ..AreaSeen::default()
    };
    let generated = Generated {
        model: "gemma2:2b".into(),
        load: Nanos::from_secs(BEGUN),
        prompt: 26,
        prompt_time: None,
        lay: lay(visit, end.secs(), mapped),
        tokens,
        touched: Some(Bytes(TOUCHED)),
        besides: Some(Bytes(70 * MIB)),
        room: Bytes(70 * MIB),
        mapped,
        threads: 4,
        busy: None,
    };
    let load = Load {
        areas: vec![area],
        settings: [("/proc/sys/vm/page-cluster".to_owned(), "3".to_owned())].into(),
        left: Some(Bytes(1000 * MIB)),
        cgroup: Some("/sys/fs/cgroup/tiermark".into()),
        page: Bytes(16384),
        generated: Some(Box::new(generated)),
        ..Load::default()
    };
    let step = StepRecord {
        index,
        name: visit.name.into(),
        tier: Some(visit.tier.into()),
        target: visit.tier.into(),
        job: job(),
        state: State::Done,
        engine: Some(EngineUse {
            asked: Engine::Decode,
            used: Engine::Decode,
            why: "the target is a model's weights".into(),
            dropped: Vec::new(),
        }),
        ended_by: "operations".into(),
        region: Some(Bytes(1_690 * MIB)),
        filled: None,
        started: STARTED + Nanos::from_secs(started),
        measured_from: Some(Nanos::from_secs(BEGUN)),
        elapsed: end,
        read,
        write: Side::default(),
        cpu_user: None,
        cpu_system: None,
        observing: Some(Cost { samples: samples.len() as u64, cpu: Nanos(1_000_000), dropped: 0 }),
        predicted: None,
        each: Vec::new(),
        load: Some(Box::new(load)),
        notes: Vec::new(),
    };
    (step, samples)
}

fn job() -> Job {
    Job {
        direction: Direction::Read,
        block: Block::Fixed(Bytes(16384)),
        threads: 4,
        direct: false,
        engine: Engine::Decode,
        ..Job::default()
    }
}

/// The run. Mapped weights are dropped and read again; otherwise they are the process's own and go through swap.
pub fn tokens_record(mapped: bool) -> Record {
    let visit =
        |name, tier, first, each, faults| Visit { name, tier, first, each, faults, temperature: Some(48.0), looks: 60 };
    let visits = [
        visit("decode-r1", "optane", 4.1, 0.55, 5_200.0),
        Visit { temperature: None, looks: 0, ..visit("decode-r1", "zram", 6.0, 1.1, 39_000.0) },
        visit("decode-r1", "nvme-usb", 8.2, 1.3, 5_100.0),
        visit("decode-r2", "optane", 4.0, 0.52, 5_150.0),
    ];
    let mut record = record_of(&[]);
    let mut at = 1.0;
    for (index, visit) in (0u32..).zip(&visits) {
        let (step, samples) = visited(visit, mapped, index, at);
        at += step.elapsed.secs() + 8.0;
        record.steps.push(step);
        record.samples.extend(samples);
    }
    let why = "1.7 GiB do not fit into at most 1 GiB of RAM with no swap".to_owned();
    let mut none = record.steps[0].clone();
    (none.index, none.name, none.tier) = (4, "decode-r1".into(), Some("none".into()));
    (none.read, none.load, none.elapsed) = (Side::default(), None, Nanos(0));
    none.state = State::Failed(Failure { kind: FailKind::NoRoom, why });
    record.steps.push(none);
    let run = &mut record.run;
    run.id = "11ac0de5".into();
    run.plan.method = "load-decode".into();
    run.plan.left_out.clear();
    run.plan.parameters =
        [("model", "gemma2:2b"), ("memory", "1000 MiB"), ("mapped", if mapped { "yes" } else { "no" })]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    run.target = "optane, zram, nvme-usb, none".into();
    run.command =
        "tiermark load decode gemma2-2b.gguf --memory 1000M --swap optane zram nvme-usb none --repeat 2".into();
    record
}
