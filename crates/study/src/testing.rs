//! Runs made by hand, so that a test can bring a finding about.

use crate::model::{Origin, RunView, State, StepView};
use basics::job::{Block, Direction, Engine, Entropy, Job, Order, Sync};
use basics::{Bytes, EngineUse, FailKind, Interval, Known, Nanos, NotRun, Side};
use machine::{Ceiling, Machine, Tier, TierKind};
use observe::{Disk, Sample};
use std::collections::BTreeMap;

/// Width of every made interval.
const WIDTH: Nanos = Nanos(100_000_000);

/// A tier with nothing but a name and a kind.
pub fn tier(name: &str, kind: TierKind) -> Tier {
    Tier {
        name: name.to_owned(),
        kind,
        path: Some(format!("/dev/{name}").into()),
        model: Known::default(),
        size: Known::Is(Bytes(128_000_000_000)),
        hops: Vec::new(),
        ceiling: Known::default(),
        block: Some(machine::BlockFacts::default()),
        partitions: Vec::new(),
        mounts: Vec::new(),
        swaps: Vec::new(),
        below: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The same with a ceiling.
pub fn capped(name: &str, kind: TierKind, hop: &str, encoded_mbps: f64, practical_mbps: (f64, f64)) -> Tier {
    Tier { ceiling: Known::Is(Ceiling { encoded_mbps, practical_mbps, hop: hop.to_owned() }), ..tier(name, kind) }
}

/// A mounted file system.
pub fn mount(at: &str, fs: &str, compression: Option<&str>) -> machine::Mount {
    machine::Mount {
        source: String::new(),
        at: at.into(),
        fs: fs.to_owned(),
        options: Vec::new(),
        read_only: false,
        compression: compression.map(str::to_owned),
    }
}

/// A swap area.
pub fn swap(path: &str, tier: &str, priority: i32) -> machine::SwapArea {
    machine::SwapArea {
        path: path.into(),
        kind: "partition".to_owned(),
        size: Bytes(2_000_000_000),
        used: Bytes(0),
        priority,
        tier: Some(tier.to_owned()),
    }
}

/// A run.
pub struct Run {
    pub id: String,
    pub method: &'static str,
    pub parameters: BTreeMap<String, String>,
    pub machine: Machine,
    pub steps: Vec<Step>,
    pub left_out: Vec<basics::plan::LeftOut>,
    pub quoted: Option<quoted::Figures>,
    pub rounds: Option<basics::plan::Rounds>,
}

impl Default for Run {
    fn default() -> Self {
        let (id, parameters) = (String::new(), BTreeMap::new());
        Run {
            id,
            method: "job",
            parameters,
            machine: Machine::default(),
            steps: Vec::new(),
            left_out: Vec::new(),
            quoted: None,
            rounds: None,
        }
    }
}

impl Run {
    /// A run of this method, with these parameters.
    pub fn of(method: &'static str, parameters: &[(&str, &str)]) -> Self {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Run { method, parameters: parameters.iter().map(own).collect(), ..Run::default() }
    }
    pub fn tiers(mut self, tiers: impl IntoIterator<Item = Tier>) -> Self {
        self.machine.tiers.extend(tiers);
        self
    }
    pub fn steps(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.extend(steps);
        for (index, step) in self.steps.iter_mut().enumerate() {
            step.index = u32::try_from(index).unwrap();
        }
        self
    }
    pub fn view(&self) -> RunView<'_> {
        RunView {
            id: &self.id,
            state: State::Done,
            origin: Origin::Measured,
            machine: &self.machine,
            harness_ns_per_op: None,
            method: self.method,
            as_published: false,
            scale: None,
            rounds: self.rounds.as_ref(),
            parameters: &self.parameters,
            left_out: &self.left_out,
            quoted: self.quoted.as_ref(),
            steps: self.steps.iter().map(Step::view).collect(),
        }
    }
}

/// A step.
pub struct Step {
    pub index: u32,
    pub name: String,
    pub tier: String,
    pub target: String,
    pub job: Job,
    pub region: Option<Bytes>,
    pub engine: Option<EngineUse>,
    pub state: State,
    pub elapsed: Nanos,
    pub read: Side,
    pub write: Side,
    pub cpu: Option<(Nanos, Nanos)>,
    pub failed: Option<(FailKind, String)>,
    pub not_run: Option<NotRun>,
    pub load: Option<basics::pressure::Load>,
    pub notes: Vec<String>,
    pub intervals: Vec<Interval>,
    pub samples: Vec<Sample>,
    pub before: Vec<Sample>,
}

impl Step {
    pub fn new(name: &str, tier: &str, job: Job) -> Self {
        Step {
            index: 0,
            name: name.to_owned(),
            tier: tier.to_owned(),
            target: "/mnt/here".to_owned(),
            job,
            region: None,
            engine: Some(EngineUse {
                asked: Engine::Auto,
                used: Engine::IoUring,
                why: String::new(),
                dropped: Vec::new(),
            }),
            state: State::Done,
            elapsed: Nanos(0),
            read: Side::default(),
            write: Side::default(),
            cpu: Some((Nanos(0), Nanos(0))),
            failed: None,
            not_run: None,
            load: None,
            notes: Vec::new(),
            intervals: Vec::new(),
            samples: Vec::new(),
            before: Vec::new(),
        }
    }
    /// 2 s of sequential reads at a steady rate.
    pub fn seq_read(tier: &str, mbps: f64) -> Self {
        let job = Job { block: Block::Fixed(Bytes(1 << 20)), depth: 4, ..Job::default() };
        Step::new("seq-read", tier, job).rate_mbps(mbps)
    }
    /// 2 s of sequential writes at a steady rate.
    pub fn seq_write(tier: &str, mbps: f64) -> Self {
        let block = Block::Fixed(Bytes(1 << 20));
        let job = Job { direction: Direction::Write, block, depth: 4, end_fsync: true, ..Job::default() };
        Step::new("seq-write", tier, job).rate_mbps(mbps)
    }
    /// The swap simulation, still without operations.
    pub fn swap_sim(tier: &str) -> Self {
        let job = Job {
            direction: Direction::Mixed { read_percent: 70 },
            order: Order::Uniform,
            block: Block::Fixed(Bytes(16384)),
            depth: 4,
            ..Job::default()
        };
        Step::new("swap-sim", tier, job)
    }
    /// 2 s of random page reads at depth 1, each of this latency.
    pub fn page_read(tier: &str, latency: Nanos) -> Self {
        let block = Block::Fixed(Bytes(16384));
        let job = Job { order: Order::Uniform, block, ..Job::default() };
        Step::new("page-read-qd1", tier, job).reads(&[(WIDTH.0 / latency.0).max(1); 20], latency)
    }
    /// 2 s of random 4 KiB reads.
    pub fn small_reads(tier: &str, depth: u32, latency: Nanos) -> Self {
        let job = Job { order: Order::Uniform, depth, ..Job::default() };
        let count = (WIDTH.0 * u64::from(depth) / latency.0).max(1);
        Step::new(&format!("rand-read-4k-qd{depth}"), tier, job).reads(&[count; 20], latency)
    }
    /// 4 KiB writes with an fsync each: 2 s of them, or as long as it takes until a p99 can be judged.
    pub fn fsyncs(tier: &str, latency: Nanos) -> Self {
        let job = Job { direction: Direction::Write, sync: Sync::Fsync { every: 1 }, ..Job::default() };
        let each = (WIDTH.0 / latency.0).max(1);
        Step::new("fsync", tier, job).writes(&vec![each; 20.max(120 / each as usize)], latency)
    }
    /// The same step with other operations in each 100 ms.
    pub fn replaced(self, counts: &[u64], latency: Nanos) -> Self {
        let empty = Step { intervals: Vec::new(), read: Side::default(), write: Side::default(), ..self };
        if empty.job.direction.writes() { empty.writes(counts, latency) } else { empty.reads(counts, latency) }
    }
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }
    pub fn block(mut self, bytes: u64) -> Self {
        self.job.block = Block::Fixed(Bytes(bytes));
        self
    }
    pub fn entropy(mut self, entropy: Entropy) -> Self {
        self.job.entropy = entropy;
        self
    }
    pub fn failed(mut self, kind: FailKind, why: &str) -> Self {
        self.failed = Some((kind, why.to_owned()));
        self.state = State::Failed;
        self
    }
    /// Planned, and never begun.
    pub fn not_run(mut self, why: NotRun) -> Self {
        self.not_run = Some(why);
        self.state = State::NotRun;
        self
    }
    /// Operations of 20 intervals for a rate; latency as a depth of 4 would see it.
    fn rate_mbps(self, mbps: f64) -> Self {
        let block = self.job.block.largest().0 as f64;
        // Spread the remainder, so that the sum is right though each count is whole.
        let each = mbps * 1e5 / block;
        let counts: Vec<u64> = (0..20)
            .map(|i| ((f64::from(i) + 1.0) * each).round() as u64 - (f64::from(i) * each).round() as u64)
            .collect();
        let latency = Nanos((4.0 * block / mbps * 1e3) as u64);
        if self.job.direction.writes() { self.writes(&counts, latency) } else { self.reads(&counts, latency) }
    }
    /// So many reads in each 100 ms, all of the same latency.
    pub fn reads(mut self, counts: &[u64], latency: Nanos) -> Self {
        self.fill(counts, latency, |interval| &mut interval.read);
        self
    }
    /// So many writes in each 100 ms, all of the same latency.
    pub fn writes(mut self, counts: &[u64], latency: Nanos) -> Self {
        self.fill(counts, latency, |interval| &mut interval.write);
        self
    }
    fn fill(&mut self, counts: &[u64], latency: Nanos, side: impl Fn(&mut Interval) -> &mut Side) {
        let block = self.job.block.largest().0;
        let mut whole = Interval::default();
        let mut position = 0;
        for (i, count) in counts.iter().enumerate() {
            let start = Nanos(i as u64 * WIDTH.0);
            if self.intervals.len() <= i {
                self.intervals.push(Interval { start, end: start + WIDTH, ..Interval::default() });
            }
            position += block * count;
            self.intervals[i].position = position;
            for part in [side(&mut self.intervals[i]), side(&mut whole)] {
                part.latency.record_n(latency, *count);
                part.bytes += block * count;
            }
        }
        if whole.read.bytes > 0 {
            self.read = whole.read;
        } else {
            self.write = whole.write;
        }
        self.elapsed = self.intervals.last().map_or(Nanos(0), |last| last.end);
    }
    /// Samples ten times a second in which `disk` moved this share of the step's bytes, with `flushes` in all.
    pub fn at_disk(mut self, disk: &str, share: f64, flushes: u64) -> Self {
        let n = self.intervals.len() as u64;
        self.sampled();
        for (i, sample) in self.samples.iter_mut().enumerate() {
            let done = i as f64 / n as f64;
            let of = |bytes: u64| 1_000_000 + (bytes as f64 * share * done) as u64;
            let counters = Disk {
                read_bytes: of(self.read.bytes),
                write_bytes: of(self.write.bytes),
                writes: (self.write.operations() as f64 * done) as u64,
                flushes: Some(100 + (flushes as f64 * done) as u64),
                ..Disk::default()
            };
            sample.disks.insert(disk.to_owned(), counters);
        }
        self
    }
    /// Empty samples ten times a second, to be filled by a test.
    pub fn sampled(&mut self) -> &mut Vec<Sample> {
        if self.samples.is_empty() {
            let at = |i| Sample { at: Nanos(i * WIDTH.0), ..Sample::default() };
            self.samples = (0..=self.intervals.len() as u64).map(at).collect();
        }
        &mut self.samples
    }
    pub fn view(&self) -> StepView<'_> {
        StepView {
            index: self.index,
            name: &self.name,
            tier: Some(&self.tier),
            target: &self.target,
            job: &self.job,
            region: self.region,
            engine: self.engine.as_ref(),
            state: self.state,
            elapsed: self.elapsed,
            read: &self.read,
            write: &self.write,
            cpu: self.cpu,
            failed: self.failed.as_ref().map(|(kind, why)| (*kind, why.as_str())),
            not_run: self.not_run,
            each: &[],
            load: self.load.as_ref(),
            notes: &self.notes,
            intervals: self.intervals.iter().collect(),
            samples: self.samples.iter().collect(),
            before: self.before.iter().collect(),
        }
    }
}
