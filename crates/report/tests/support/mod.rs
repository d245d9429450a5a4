//! Hand-made records for the tests: the Raspberry Pi 5 that REPORT.md draws, and what goes wrong with it. The figures are
//! made up; they are laid into real histograms and intervals so that `study` and `report` see what a run gives them.
#![allow(dead_code, reason = "each test binary takes what it needs of this module")]

pub mod redis;
mod tokens;

pub use tokens::tokens_record;

use basics::job::{Block, Direction, Engine, Order, Stop, Sync};
use basics::plan::{LeftOut, Plan};
use basics::{Bytes, EngineUse, Interval, Job, Known, Latencies, Nanos, Side, Why};
use machine::{BlockFacts, Ceiling, Cpu, Hop, Machine, Mount, SwapArea, Tier, TierKind, Warning};
use observe::{Cost, Sample};
use record::{Failure, Origin, Record, Run, State, StepRecord};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use study::{CheckStudy, Finding, Fitness, LatencySummary, Likeness, SideSummary, TierFigures, TierStudy};

/// 2026-11-21 10:04:00 UTC.
pub const STARTED: Nanos = Nanos(1_795_255_440_000_000_000);

fn us(value: f64) -> Nanos {
    Nanos((value * 1e3) as u64)
}

// ---- the machine ---------------------------------------------------------------------------------------------------

fn hop(name: &str, kind: &str, detail: Option<&str>) -> Hop {
    Hop {
        name: name.into(),
        kind: kind.into(),
        detail: detail.map(Into::into),
        signal_gbps: None,
        encoding: None,
        raw_mbps: None,
        encoded_mbps: None,
        practical_mbps: None,
        transit_us: None,
        could_be: None,
        source: None,
    }
}

fn bus(
    name: &str,
    kind: &str,
    detail: &str,
    gbps: f64,
    encoding: &str,
    figures: [f64; 4],
    transit: Option<f64>,
) -> Hop {
    let [raw, encoded, low, high] = figures;
    Hop {
        signal_gbps: Some(gbps),
        encoding: Some(encoding.into()),
        raw_mbps: Some(raw),
        encoded_mbps: Some(encoded),
        practical_mbps: Some((low, high)),
        transit_us: transit,
        source: Some("Playing with an Intel Optane on a Raspberry Pi 5".into()),
        ..hop(name, kind, Some(detail))
    }
}

fn tier(name: &str, kind: TierKind, model: &str, size: u64, hops: Vec<Hop>, ceiling: Option<usize>) -> Tier {
    let ceiling = ceiling.map(|at| Ceiling {
        encoded_mbps: hops[at].encoded_mbps.unwrap(),
        practical_mbps: hops[at].practical_mbps.unwrap(),
        hop: hops[at].name.clone(),
    });
    Tier {
        name: name.into(),
        kind,
        path: (kind != TierKind::Ram).then(|| format!("/dev/{name}").into()),
        model: if model.is_empty() { Known::default() } else { Known::Is(model.into()) },
        size: Known::Is(Bytes(size)),
        hops,
        ceiling: Known::or_not_reported(ceiling),
        block: (kind != TierKind::Ram).then(|| BlockFacts {
            scheduler: Known::Is("none".into()),
            read_ahead: Known::Is(Bytes(128 << 10)),
            logical_sector: Known::Is(Bytes(512)),
            physical_sector: Known::Is(Bytes(4096)),
            ..BlockFacts::default()
        }),
        partitions: Vec::new(),
        mounts: Vec::new(),
        swaps: Vec::new(),
        below: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The Raspberry Pi 5 of REPORT.md.
pub fn machine() -> Machine {
    let soc = || hop("memory", "memory", None);
    let mut zram = tier("zram0", TierKind::Zram, "", 4 << 30, vec![soc(), hop("zram", "zram", Some("lz4"))], None);
    zram.block = Some(BlockFacts { compression: Some("lz4".into()), ..BlockFacts::default() });
    zram.swaps = vec!["/dev/zram0".into()];
    let root = bus("PCIe Gen3 x1", "pcie", "0001:00:00.0", 8.0, "128b/130b", [1000.0, 984.6, 780.0, 850.0], None);
    let mut switch = bus(
        "PCIe Gen2 x1",
        "pcie-bridge",
        "switch 0001:02:00.0",
        5.0,
        "8b/10b",
        [625.0, 500.0, 400.0, 430.0],
        Some(1.5),
    );
    switch.could_be = Some("PCIe Gen3 x1".into());
    let mut optane = tier("nvme0n1", TierKind::Nvme, "Optane", 14_403_239_936, vec![root, switch], Some(1));
    optane.warnings = vec![Warning {
        id: "pcie-switch-limits".into(),
        text: "nvme0n1 links at Gen2 x1 because of the switch 0001:02:00.0; device and board could do Gen3 x1 (780–850 MB/s).".into(),
        evidence: "/sys/bus/pci/devices/0001:02:00.0/current_link_speed: 5.0 GT/s PCIe".into(),
    }];
    optane.mounts = vec![Mount {
        source: "/dev/nvme0n1p1".into(),
        at: "/mnt/optane".into(),
        fs: "ext4".into(),
        options: vec!["noatime".into()],
        read_only: false,
        compression: None,
    }];
    let usb = bus("USB 3 5 Gbit/s", "usb", "port 1, uas", 5.0, "8b/10b", [625.0, 500.0, 430.0, 450.0], Some(20.0));
    let sata = bus("SATA 6 Gbit/s", "sata", "bridge", 6.0, "8b/10b", [750.0, 600.0, 530.0, 560.0], None);
    let ssd = tier("sda", TierKind::Usb, "S3520", 240_057_409_536, vec![usb, sata], Some(0));
    let mut sd_bus = bus("SD SDR104", "sd", "mmc0", 0.832, "none", [104.0, 104.0, 85.0, 95.0], None);
    sd_bus.signal_gbps = None;
    let mut sd = tier("mmcblk0", TierKind::Sd, "EVO", 63_864_569_856, vec![sd_bus], Some(0));
    sd.swaps = vec!["/var/swap".into()];
    sd.mounts = vec![Mount {
        source: "/dev/mmcblk0p2".into(),
        at: "/".into(),
        fs: "ext4".into(),
        options: vec!["noatime".into()],
        read_only: false,
        compression: None,
    }];
    let mut vm = BTreeMap::new();
    vm.insert("swappiness".to_owned(), Known::Is("60".to_owned()));
    vm.insert("page-cluster".to_owned(), Known::Is("3".to_owned()));
    Machine {
        model: Known::Is("Raspberry Pi 5 Model B".into()),
        kernel: Known::Is("6.12".into()),
        distribution: Known::Is("Debian GNU/Linux 12 (bookworm)".into()),
        page_size: Known::Is(Bytes(16384)),
        ram: Known::Is(Bytes(4_227_858_432)),
        ram_available: Known::Is(Bytes(3_100_000_256)),
        cpu: Cpu {
            count: Known::Is(4),
            model: Known::Is("Cortex-A76".into()),
            governor: Known::Is("ondemand".into()),
            max_mhz: Known::Is(2400),
            last_level_cache: Known::Is(Bytes(2 << 20)),
        },
        temperature_c: Known::Is(54.3),
        throttled: Known::Is(Vec::new()),
        vm,
        settings: BTreeMap::new(),
        zswap: Known::default(),
        swaps: vec![SwapArea {
            path: "/var/swap".into(),
            kind: "file".into(),
            size: Bytes(512 << 20),
            used: Bytes(0),
            priority: -2,
            tier: Some("mmcblk0".into()),
        }],
        swap_managers: vec!["dphys-swapfile".into()],
        tiers: vec![tier("RAM", TierKind::Ram, "", 4_227_858_432, vec![soc()], None), zram, optane, ssd, sd],
        warnings: Vec::new(),
        notices: Vec::new(),
    }
}

// ---- the record ----------------------------------------------------------------------------------------------------

/// The shape of a latency distribution: median, tail at p99, largest; in µs.
#[derive(Clone, Copy)]
pub struct Shape {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Shape {
    /// The latency at a quantile: logarithmic between the three points, rounded below the median.
    fn at(self, q: f64) -> f64 {
        let nines = -(1.0 - q).log10();
        let between = |a: f64, b: f64, t: f64| a * (b / a).powf(t);
        match q {
            ..0.5 => between(self.p50 * 0.72, self.p50, (q / 0.5).powf(0.45)),
            0.5..0.99 => between(self.p50, self.p99, (nines - 0.301) / (2.0 - 0.301)),
            _ => between(self.p99, self.max, ((nines - 2.0) / 3.2).min(1.0)),
        }
    }
}

/// Most different latencies in one interval; further operations repeat them.
const DIFFERENT: u64 = 250;

/// `operations` latencies of a shape; `salt` moves the quantiles so that two intervals are never the same.
pub fn latencies(operations: u64, shape: Shape, salt: u64) -> Latencies {
    let mut out = Latencies::new();
    let points = operations.min(DIFFERENT);
    for i in 0..points {
        let q = (i as f64 + 0.25 + (salt % 7) as f64 / 12.0) / points as f64;
        // What does not divide goes to the fastest.
        let times = operations / points + if i == 0 { operations % points } else { 0 };
        out.record_n(us(shape.at(q)), times);
    }
    out
}

/// What a step of the hand-made run does.
pub struct Piece {
    pub name: &'static str,
    pub tier: &'static str,
    pub place: &'static str,
    pub job: Job,
    pub seconds: f64,
    /// Operations a second and their shape.
    pub read: Option<(f64, Shape)>,
    pub write: Option<(f64, Shape)>,
    /// Seconds from the step's start at which 200 ms pass without an operation.
    pub stalls: Vec<f64>,
}

const WIDTH: f64 = 0.1;

fn side(rate: f64, shape: Shape, block: u64, index: u64, stalled: bool) -> Side {
    if stalled {
        return Side::default();
    }
    // A slow wave and a little noise, both fixed.
    let wave = 1.0 + 0.03 * (index as f64 / 5.0).sin() + 0.02 * (((index * 7919) % 13) as f64 / 13.0 - 0.5);
    let operations = ((rate * WIDTH * wave).round() as u64).max(1);
    let latency = latencies(operations, shape, index);
    if block == 64 {
        // Dependent loads: each latency is the mean of 256.
        return Side { bytes: operations * 256 * block, latency, service: None, untimed: operations * 255 };
    }
    Side { bytes: operations * block, latency, service: None, untimed: 0 }
}

struct Laid {
    step: StepRecord,
    intervals: Vec<(u32, Interval)>,
    samples: Vec<(u32, Sample)>,
}

/// Lays a piece out as a step with its series, starting `at` after the run.
fn lay(index: u32, piece: &Piece, at: f64) -> Laid {
    let block = piece.job.block.largest().0;
    let count = (piece.seconds / WIDTH).round() as u64;
    let (mut read, mut write) = (Side::default(), Side::default());
    let mut intervals = Vec::new();
    let mut samples = Vec::new();
    for i in 0..count {
        let start = i as f64 * WIDTH;
        let stalled = piece.stalls.iter().any(|stall| start >= *stall && start < stall + 0.2);
        let make = |what: Option<(f64, Shape)>| {
            what.map(|(rate, shape)| side(rate, shape, block, i, stalled)).unwrap_or_default()
        };
        let interval = Interval {
            start: Nanos::from_secs(start),
            end: Nanos::from_secs(start + WIDTH),
            read: make(piece.read),
            write: make(piece.write),
            position: i * block,
        };
        read.merge(&interval.read);
        write.merge(&interval.write);
        // Ticks since boot: 40 in a tenth of a second on four processors.
        let ticks = 10_000 + ((at + start) / WIDTH).round() as u64;
        samples.push((
            index,
            Sample {
                at: Nanos::from_secs(start),
                cpu_ticks: Some([ticks, 0, 2 * ticks, 34 * ticks, 3 * ticks, 0, 0, 0]),
                temperature_c: Some(54.0 + (at + start) / 12.0 + ((i % 4) as f64) * 0.2),
                throttled: Some(0),
                ..Sample::default()
            },
        ));
        intervals.push((index, interval));
    }
    let operations = read.operations() + write.operations();
    let memory = piece.place == "memory";
    let engine = EngineUse {
        asked: Engine::Auto,
        used: if memory { Engine::Memory } else { Engine::IoUring },
        why: if memory { String::new() } else { "a probe found it 1.4 times as fast as psync".into() },
        dropped: if memory { vec![] } else { vec![("NO_SQARRAY".into(), "needs Linux 6.6".into())] },
    };
    let step = StepRecord {
        index,
        name: piece.name.into(),
        tier: Some(piece.tier.into()),
        target: piece.place.into(),
        job: piece.job.clone(),
        state: State::Done,
        engine: Some(engine),
        ended_by: "time".into(),
        region: Some(Bytes(1 << 30)),
        filled: None,
        started: STARTED + Nanos::from_secs(at),
        measured_from: Some(Nanos(0)),
        elapsed: Nanos::from_secs(piece.seconds),
        read,
        write,
        cpu_user: Some(Nanos(operations * 310)),
        cpu_system: Some(Nanos(operations * 2_450)),
        observing: Some(Cost { samples: count, cpu: Nanos(count * 90_000), dropped: 0 }),
        predicted: None,
        each: Vec::new(),
        load: None,
        notes: Vec::new(),
    };
    Laid { step, intervals, samples }
}

fn job(direction: Direction, order: Order, block: u64, depth: u32) -> Job {
    Job {
        direction,
        order,
        block: Block::Fixed(Bytes(block)),
        depth,
        stop: Stop { time: Some(Nanos::from_millis(2000)), ..Stop::default() },
        ..Job::default()
    }
}

/// The pieces of one tier: sequential rates in MB/s, the swap simulation's IOPS, the shape of a page read at depth 1.
fn pieces(
    tier: &'static str,
    place: &'static str,
    mbps: [f64; 2],
    swap: f64,
    page: Shape,
    fsync: f64,
    stalls: Vec<f64>,
) -> Vec<Piece> {
    let mib = 1u64 << 20;
    let mb = |rate: f64| rate * 1e6 / mib as f64;
    let around = |mean: f64| Shape { p50: mean * 0.97, p99: mean * 2.2, max: mean * 6.0 };
    let piece =
        |name, job, seconds, read, write| Piece { name, tier, place, job, seconds, read, write, stalls: Vec::new() };
    let read = Direction::Read;
    let mut out = vec![
        piece(
            "seq-write",
            Job { end_fsync: true, ..job(Direction::Write, Order::Sequential, mib, 4) },
            1.2,
            None,
            Some((mb(mbps[1]), around(4e6 / mb(mbps[1])))),
        ),
        piece(
            "seq-read",
            job(read, Order::Sequential, mib, 4),
            1.2,
            Some((mb(mbps[0]), around(4e6 / mb(mbps[0])))),
            None,
        ),
    ];
    let busy = 4e6 / swap;
    let slow = Shape { p50: busy * 0.9, p99: busy * (page.p99 / page.p50).min(8.0), max: page.max * 2.0 };
    let mut mixed = piece(
        "swap-sim",
        job(Direction::Mixed { read_percent: 70 }, Order::Permuted, 16384, 4),
        2.4,
        Some((swap * 0.7, slow)),
        Some((swap * 0.3, Shape { p50: slow.p50 * 1.2, p99: slow.p99 * 1.3, max: slow.max * 1.6 })),
    );
    mixed.stalls = stalls;
    out.push(mixed);
    out.push(piece("page-read-qd1", job(read, Order::Permuted, 16384, 1), 1.1, Some((0.9e6 / page.p50, page)), None));
    let small = Shape { p50: page.p50 * 0.82, ..page };
    out.push(piece(
        "rand-read-4k-qd1",
        job(read, Order::Permuted, 4096, 1),
        1.1,
        Some((0.9e6 / small.p50, small)),
        None,
    ));
    let deep = Shape { p50: page.p50 * 5.0, p99: page.p99 * 9.0, max: page.max * 12.0 };
    out.push(piece("rand-read-4k-qd32", job(read, Order::Permuted, 4096, 32), 1.1, Some((5e6 / page.p50, deep)), None));
    let sync = Shape { p50: fsync, p99: fsync * 4.0, max: fsync * 12.0 };
    out.push(piece(
        "fsync",
        Job { direct: false, sync: Sync::Fsync { every: 1 }, ..job(Direction::Write, Order::Sequential, 4096, 1) },
        1.1,
        None,
        Some((0.8e6 / fsync, sync)),
    ));
    out
}

/// The check of REPORT.md's picture; made once, for its histograms take their time.
pub fn check_record() -> &'static Record {
    static MADE: OnceLock<Record> = OnceLock::new();
    MADE.get_or_init(|| record_of(&check_pieces()))
}

fn check_pieces() -> Vec<Piece> {
    let shape = |p50, p99, max| Shape { p50, p99, max };
    let mut all = Vec::new();
    let mib = 1u64 << 20;
    for (name, mbps) in [("ram-read", 9840.0), ("ram-write", 7120.0)] {
        let rate = mbps * 1e6 / mib as f64;
        let moved = Some((rate, shape(1e6 / rate, 1.3e6 / rate, 3e6 / rate)));
        let direction = if name == "ram-read" { Direction::Read } else { Direction::Write };
        all.push(Piece {
            name,
            tier: "RAM",
            place: "memory",
            job: Job { engine: Engine::Memory, ..job(direction, Order::Sequential, mib, 1) },
            seconds: 0.7,
            read: moved.filter(|_| name == "ram-read"),
            write: moved.filter(|_| name == "ram-write"),
            stalls: Vec::new(),
        });
    }
    all.push(Piece {
        name: "ram-load",
        tier: "RAM",
        place: "memory",
        job: Job { engine: Engine::Memory, ..job(Direction::Read, Order::Uniform, 64, 1) },
        seconds: 0.7,
        read: Some((33_000.0, shape(0.118, 0.122, 0.162))),
        write: None,
        stalls: Vec::new(),
    });
    all.extend(pieces("zram0", "/dev/zram0", [2690.0, 1140.0], 94_700.0, shape(6.1, 14.2, 220.0), 9.0, vec![]));
    all.extend(pieces("nvme0n1", "/mnt/optane", [410.0, 145.0], 16_705.0, shape(71.0, 118.0, 910.0), 160.0, vec![]));
    all.extend(pieces("sda", "/mnt/ssd", [171.0, 168.0], 7_156.0, shape(212.0, 640.0, 9_800.0), 880.0, vec![]));
    all.extend(pieces("mmcblk0", "/", [88.0, 31.0], 707.0, shape(610.0, 21_000.0, 310_000.0), 6_400.0, vec![0.7, 1.5]));
    all
}

/// The steps of the disk behind USB, each at `factor` of its rate.
pub fn sda_record(factor: f64) -> Record {
    let all = pieces(
        "sda",
        "/mnt/ssd",
        [171.0 * factor, 168.0 * factor],
        7_156.0 * factor,
        Shape { p50: 212.0 / factor, p99: 640.0 / factor, max: 9_800.0 },
        880.0,
        vec![],
    );
    record_of(&all)
}

/// A done run of these pieces, one after the other.
pub fn record_of(pieces: &[Piece]) -> Record {
    let mut at = 1.2;
    let (mut steps, mut intervals, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    for (index, piece) in (0u32..).zip(pieces) {
        let laid = lay(index, piece, at);
        at += piece.seconds + 0.25;
        steps.push(laid.step);
        intervals.extend(laid.intervals);
        samples.extend(laid.samples);
    }
    let plan = Plan {
        method: "check".into(),
        parameters: [("effort".to_owned(), "usual".to_owned())].into(),
        as_published: false,
        seed: 42,
        targets: Vec::new(),
        steps: Vec::new(),
        left_out: vec![LeftOut {
            tier: "zram0".into(),
            step: "fsync".into(),
            why: Why::NotMeasured("no file system".into()),
        }],
        ..Plan::default()
    };
    Record {
        run: Run {
            id: "7c1e04aa".into(),
            state: State::Done,
            origin: Origin::Measured,
            started: STARTED,
            ended: Some(STARTED + Nanos::from_millis(58_000)),
            version: "0.1.0".into(),
            command: "tiermark check".into(),
            target: "RAM, zram0, nvme0n1, sda, mmcblk0".into(),
            plan,
            machine: machine(),
            harness_ns_per_op: Some(14.2),
            notes: Vec::new(),
            quoted: None,
        },
        steps,
        intervals,
        samples,
    }
}

/// A job at a fixed rate against a target that stalls: the intended-time latency beside the service time.
pub fn open_loop_record() -> Record {
    use basics::job::Pacing;
    let piece = Piece {
        name: "job",
        tier: "sda",
        place: "/mnt/ssd",
        job: Job { pacing: Pacing::Fixed { iops: 1000.0 }, ..job(Direction::Read, Order::Uniform, 4096, 4) },
        seconds: 3.0,
        read: Some((1000.0, Shape { p50: 120.0, p99: 181_000.0, max: 200_400.0 })),
        write: None,
        stalls: Vec::new(),
    };
    let mut record = record_of(&[piece]);
    record.run.plan.method = "job".into();
    record.run.plan.left_out.clear();
    record.run.command = "tiermark run job --set rw=randread --set bs=4k --set rate=1000 --on /mnt/ssd".into();
    record.run.target = "/mnt/ssd".into();
    record.run.id = "a90b33c2".into();
    let service = latencies(5000, Shape { p50: 118.0, p99: 160.0, max: 200_300.0 }, 3);
    for side in record.steps.iter_mut().map(|step| &mut step.read) {
        side.service = Some(service.clone());
    }
    record
}

/// A sweep over depths of a device of four channels, as a profile of this name would have given it.
pub fn sweep_record(name: &'static str, factor: f64) -> Record {
    let names = [
        ("depth-rand-read-qd1", 1),
        ("depth-rand-read-qd2", 2),
        ("depth-rand-read-qd4", 4),
        ("depth-rand-read-qd8", 8),
        ("depth-rand-read-qd16", 16),
    ];
    let point = |(step, depth): (&'static str, u32)| {
        let rate = f64::from(depth.min(4)) * 1e4 * factor;
        let mean = f64::from(depth) / rate * 1e6;
        Piece {
            name: step,
            tier: name,
            place: "profile",
            job: job(Direction::Read, Order::Permuted, 4096, depth),
            seconds: 1.2,
            read: Some((rate, Shape { p50: mean, p99: mean * 1.5, max: mean * 3.0 })),
            write: None,
            stalls: Vec::new(),
        }
    };
    let mut record = record_of(&names.map(point));
    let run = &mut record.run;
    run.id = format!("5eed00{name}0");
    run.plan.method = "ssd-review".into();
    run.plan.left_out = vec![LeftOut {
        tier: name.into(),
        step: "depth-seq-write".into(),
        why: Why::NotMeasured("nothing is written here".into()),
    }];
    run.origin = Origin::Simulated(name.into());
    run.target = format!("profile:{name}");
    run.command = format!("tiermark run ssd-review --on profile:{name}");
    record
}

/// The check, broken off: the second disk's step failed, and then the user had enough.
pub fn interrupted_record() -> Record {
    let mut record = record_of(&check_pieces()[..13]);
    record.run.state = State::Interrupted;
    record.run.ended = Some(STARTED + Nanos::from_millis(31_000));
    let last = record.steps.last_mut().unwrap();
    last.state = State::Failed(Failure {
        kind: basics::FailKind::Io,
        why: "reading /mnt/optane at 4.00 MiB: Input/output error (5)".into(),
    });
    last.ended_by = "an error".into();
    last.notes = vec!["The device vanished while it was measured; what came before it is kept.".into()];
    record.run.notes = vec!["Without root no raw device was read.".into()];
    record
}

// ---- the study, by hand ---------------------------------------------------------------------------------------------

fn lat(p50: f64, p99: f64) -> LatencySummary {
    LatencySummary {
        mean: Known::Is(us(p50 * 1.1)),
        percentiles: vec![
            (50.0, us(p50)),
            (90.0, us((p50 * p99).sqrt())),
            (95.0, us((p50 * p99).sqrt() * 1.2)),
            (99.0, us(p99)),
            (99.9, us(p99 * 2.0)),
        ],
        max: Known::Is(us(p99 * 5.0)),
    }
}

fn summary(iops: f64, block: f64, p50: f64, p99: f64) -> SideSummary {
    SideSummary {
        iops,
        mbps: iops * block / 1e6,
        ops: (iops * 3.0) as u64,
        lat: lat(p50, p99),
        service: None,
        ci95_percent: Known::Is(1.7),
        variation: Known::Is(0.04),
    }
}

fn fit(purpose: &str, verdict: &str, why: &str) -> Fitness {
    Fitness { purpose: purpose.into(), verdict: verdict.into(), why: why.into() }
}

fn study(name: &str, place: &str, mbps: [f64; 2], swap: f64, page: [f64; 2], share: Option<(f64, &str)>) -> TierStudy {
    let mean = 4e6 / swap;
    TierStudy {
        name: name.into(),
        place: place.into(),
        figures: TierFigures {
            seq_read_mbps: Known::Is(mbps[0]),
            seq_write_mbps: Known::Is(mbps[1]),
            swap_sim_read: Known::Is(summary(swap * 0.7, 16384.0, mean, mean * 2.0)),
            swap_sim_write: Known::Is(summary(swap * 0.3, 16384.0, mean * 1.2, mean * 2.6)),
            page_read_qd1: Known::Is(lat(page[0], page[1])),
            rand_read_4k_qd1_us: Known::Is(page[0] * 0.9),
            rand_read_4k_qd32_iops: Known::Is(5e6 / page[0]),
            fsync: Known::Is(lat(page[0] * 2.0, page[1] * 3.0)),
            load_ns: Known::default(),
        },
        ceiling_share: share.map_or_else(|| Known::not_measured("no ceiling known"), |(share, _)| Known::Is(share)),
        ceiling_hop: share.map(|(_, hop)| hop.to_owned()),
        resembles: Vec::new(),
        findings: Vec::new(),
        good_for: Vec::new(),
    }
}

fn finding(id: &str, weight: u8, tier: &str, text: &str, advice: Option<&str>, evidence: &[&str]) -> Finding {
    Finding {
        id: id.into(),
        weight,
        tier: Some(tier.into()),
        text: text.into(),
        advice: advice.map(Into::into),
        gain: None,
        evidence: evidence.iter().map(|text| (*text).to_owned()).collect(),
    }
}

/// What REPORT.md's picture says.
pub fn check_study() -> CheckStudy {
    let mut ram = study("RAM", "memory", [9840.0, 7120.0], 1.0, [0.1, 0.2], None);
    ram.figures.swap_sim_read = Known::default();
    ram.figures.swap_sim_write = Known::default();
    ram.figures.load_ns = Known::Is(118.0);
    let (mean, max) = (Known::Is(Nanos(118)), Known::not_measured("timed in batches"));
    ram.figures.page_read_qd1 = Known::Is(LatencySummary { mean, percentiles: vec![], max });
    ram.figures.fsync = Known::default();
    let zram = study("zram0", "/dev/zram0", [2690.0, 1140.0], 94_700.0, [6.0, 14.0], None);
    let mut optane =
        study("nvme0n1", "/mnt/optane", [410.0, 145.0], 16_705.0, [71.0, 118.0], Some((0.953, "PCIe Gen2 x1")));
    optane.resembles = vec![Likeness {
        name: "optane-pi5".into(),
        source: "Playing with an Intel Optane on a Raspberry Pi 5".into(),
        distance: 0.06,
        table: vec![
            ("sequential read MB/s".into(), 410.0, 430.0),
            ("16K 70/30 QD4 read IOPS".into(), 11_693.0, 11_700.0),
        ],
    }];
    optane.findings = vec![finding(
        "pcie-switch-limits",
        70,
        "nvme0n1",
        "nvme0n1 is held back by its bus: the HAT's switch links at Gen2 though device and board can do Gen3 (≈ 780 MB/s).",
        None,
        &["step 11 seq-read: 410 MB/s", "/sys/bus/pci/devices/0001:02:00.0/current_link_speed: 5.0 GT/s PCIe"],
    )];
    optane.good_for = vec![
        fit("llm-swap", "yes", "16,705 IOPS at depth 4, at least 8,000 wanted (pi5-optane.toml)"),
        fit("redis-aof", "yes", "fsync p99 354 µs, at most 2 ms wanted"),
        fit("database", "yes", "fsync p50 142 µs"),
        fit("desktop-root", "small", "14.4 GB, at least 32 GB wanted"),
        fit("bulk-files", "small", "14.4 GB, at least 64 GB wanted"),
    ];
    let mut ssd = study("sda", "/mnt/ssd", [171.0, 168.0], 7156.0, [212.0, 640.0], Some((0.38, "USB 3 5 Gbit/s")));
    ssd.findings = vec![finding(
        "device-limited",
        30,
        "sda",
        "sda is limited by itself, not by USB (38 % of 450 MB/s).",
        None,
        &["step 18 seq-read: 171 MB/s"],
    )];
    ssd.good_for = vec![
        fit("llm-swap", "slow", "7,156 IOPS at depth 4, at least 8,000 wanted"),
        fit("redis-aof", "everysec", "fsync p99 1.92 ms, at most 2 ms wanted for always"),
        fit("database", "yes", "fsync p50 424 µs"),
        fit("desktop-root", "yes", "240 GB, p99 640 µs"),
        fit("bulk-files", "yes", "240 GB, 171 MB/s"),
    ];
    let mut sd = study("mmcblk0", "/", [88.0, 31.0], 707.0, [610.0, 21_000.0], Some((0.926, "SD SDR104")));
    sd.findings = vec![finding(
        "swap-on-slow-tier",
        90,
        "mmcblk0",
        "Swap is on mmcblk0: a major fault costs 3.4 ms there, 0.2 ms on nvme0n1.",
        Some("Put swap on nvme0n1"),
        &["step 26 swap-sim: read mean 3.4 ms", "/proc/swaps: /var/swap file 524288 0 -2"],
    )];
    sd.findings[0].gain = Some("17 times fewer milliseconds for each major fault".into());
    sd.good_for = vec![
        fit("llm-swap", "no", "707 IOPS at depth 4, at least 8,000 wanted"),
        fit("redis-aof", "no", "fsync p99 63 ms, at most 2 ms wanted"),
        fit("database", "no", "fsync p50 1.22 ms"),
        fit("desktop-root", "slow", "p99 21 ms, at most 5 ms wanted"),
        fit("bulk-files", "yes", "63.9 GB, 88 MB/s"),
    ];
    CheckStudy {
        headline: "Swap lies on the slowest tier: nvme0n1 would serve a major fault 17 times as fast as mmcblk0."
            .into(),
        tiers: vec![ram, zram, optane, ssd, sd],
        findings: Vec::new(),
    }
}

/// The same with gaps, each with its reason.
pub fn study_with_gaps() -> CheckStudy {
    let mut study = check_study();
    let gaps: [fn(&mut TierFigures); 3] = [
        |f| *f = TierFigures { seq_read_mbps: Known::Unknown(Why::NoPermission), ..TierFigures::default() },
        |f| f.seq_write_mbps = Known::not_measured("no room"),
        |f| {
            f.swap_sim_read = Known::not_measured("no room");
            f.page_read_qd1 = Known::not_measured("out of time");
        },
    ];
    for (tier, gap) in study.tiers.iter_mut().skip(2).zip(gaps) {
        gap(&mut tier.figures);
    }
    study.tiers[2].ceiling_share = Known::not_measured("not measured");
    study.tiers[2].good_for.iter_mut().for_each(|fitness| fitness.verdict = "unknown".into());
    study
}
