//! What both benches need: a test file laid out the same way each time, the engine and fio on the same job, medians of
//! interleaved rounds. A bench is a claim about two programs in the same minute on the same machine; never compare
//! figures of two runs.

#![allow(dead_code, reason = "each bench uses a part of it")]

pub mod bare;

use basics::job::{Block, Direction, Engine, Order, Stop};
use basics::{Bytes, Interval, Job, Latencies, Nanos, stats};
use engine::{Control, Target, run};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use sys::map::Mapping;

/// Failures of a bench are printed, not handled.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `O_DIRECT` of this architecture.
#[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
const O_DIRECT: i32 = 0o200_000;
#[cfg(not(any(target_arch = "aarch64", target_arch = "arm")))]
const O_DIRECT: i32 = 0o40_000;

/// A number from the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Was this case asked for? Without a word on the command line all are; else those whose name holds it.
pub fn is_wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}

/// A file that is removed at the end. Its folder is `BENCH_DIR`, or cargo's own for such things.
pub struct TestFile {
    pub path: PathBuf,
    held: Option<Mapping>,
}

impl TestFile {
    /// Written anew in pieces of 1 MiB, so that the page cache holds it in the same way each time, and synced.
    pub fn new(len: Bytes) -> Result<Self> {
        let folder = std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
        let path = Path::new(&folder).join(format!("bench-{}.dat", std::process::id()));
        let mut state = 42u64;
        let piece: Vec<u8> = (0..1 << 20)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let mut file = File::create(&path)?;
        let out = TestFile { path, held: None };
        for _ in 0..len.0 >> 20 {
            file.write_all(&piece)?;
        }
        file.sync_all()?;
        Ok(out)
    }

    /// Keeps it in the page cache as long as it exists. Without this a kernel that reclaims before it must (DAMON, a cgroup's
    /// limit) has taken 3 to 9 thousand pages of it every four seconds, which every program then waited for.
    pub fn held(mut self) -> Result<Self> {
        let file = File::open(&self.path)?;
        let held = Mapping::new(file.as_fd(), 0, file.metadata()?.len() as usize, false)?;
        if let Err(error) = held.lock() {
            eprintln!("the kernel may take pages of the test file away while it is read: {error} (ulimit -l)");
        }
        self.held = Some(held);
        Ok(self)
    }
}

/// Opened as a job wants it.
fn open(path: &Path, direct: bool) -> io::Result<File> {
    let flags = if direct { O_DIRECT } else { 0 };
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// A process is told by this variable that it is a round, and of what.
const ROUND: &str = "BENCH_ROUND";

/// Whether this process is a round of one of the cases; then that has been run and printed, and nothing else is to be done.
pub fn was_a_round(cases: &[Case]) -> Result<bool> {
    let Ok(asked) = std::env::var(ROUND) else { return Ok(false) };
    let [name, path, len, seconds] = asked.split('\n').collect::<Vec<_>>()[..] else { return Err("no round".into()) };
    let case = cases.iter().find(|case| case.name == name).ok_or("no such case")?;
    let round = case.measure(Path::new(path), Bytes(len.parse()?), seconds.parse()?)?;
    let figures = [round.read, round.write].map(|side| [side.iops, side.mean_us, side.p50_us, side.p99_us]);
    let numbers = [&[round.user_ns, round.system_ns, round.operations], figures.as_flattened()].concat();
    println!("{}", serde_json::to_string(&numbers)?);
    Ok(true)
}

impl Drop for TestFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            eprintln!("{} is left behind: {error}", self.path.display());
        }
    }
}

/// Huge pages that are reserved and free: fio takes them from there only (`sysctl vm.nr_hugepages=16`).
pub fn huge_pages_free() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// One direction of one round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    pub iops: f64,
    pub mean_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Mean time of a request below the file system, by the kernel's own account of the disk; and how many of them there were.
    pub disk_us: f64,
    pub requests: f64,
}

/// One round of one program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    pub read: Figures,
    pub write: Figures,
    pub user_ns: f64,
    pub system_ns: f64,
    pub operations: f64,
}

/// A job as both programs are told.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    pub direction: Direction,
    /// fio visits each block once a pass like [`Order::Permuted`], and with `norandommap` draws like [`Order::Uniform`]. Of a
    /// page-cached file the CPU's cache still holds some of what is drawn again, and nothing of what waits for its pass.
    pub order: Order,
    pub block: u64,
    pub depth: u32,
    pub direct: bool,
    pub engine: Engine,
    /// Seconds that run first and are not counted.
    pub warmup_s: u64,
    /// Buffers of both in huge pages; fio needs them reserved, see [`huge_pages_free`].
    pub huge_pages: bool,
    /// fio's name of the engine, and further options for it.
    pub fio: &'static [&'static str],
}

fn figures(latency: &Latencies, elapsed: Nanos) -> Figures {
    let us = |percent| latency.percentile(percent).map_or(0.0, Nanos::us);
    let (iops, mean_us) = (latency.count() as f64 / elapsed.secs(), latency.mean().map_or(0.0, Nanos::us));
    Figures { iops, mean_us, p50_us: us(50.0), p99_us: us(99.0), ..Figures::default() }
}

/// What the kernel counts of the disk that holds a file, for reads and for writes: requests, and their milliseconds in all
/// (Documentation/block/stat.rst). NaN where no block device is behind the file system.
#[derive(Debug, Clone, Copy)]
struct Disk([(f64, f64); 2]);

impl Disk {
    fn read(file: &TestFile) -> Result<Self> {
        let dev = std::fs::metadata(&file.path)?.dev();
        // The kernel's own packing of a device number in 64 bits (glibc's `gnu_dev_major`, `gnu_dev_minor`).
        let (major, minor) = ((dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00));
        let path = format!("/sys/dev/block/{major}:{minor}/stat");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let fields: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let pair = |at: usize| (*fields.get(at).unwrap_or(&f64::NAN), *fields.get(at + 3).unwrap_or(&f64::NAN));
        Ok(Disk([pair(0), pair(4)]))
    }
    /// Requests since `before` and their mean µs, by direction.
    fn since(self, before: Disk) -> [(f64, f64); 2] {
        [0, 1].map(|i| {
            let requests = self.0[i].0 - before.0[i].0;
            (requests, 1e3 * (self.0[i].1 - before.0[i].1) / requests)
        })
    }
}

impl Case {
    /// The job for a run of `seconds`.
    pub fn job(&self, seconds: u64) -> Job {
        Job {
            direction: self.direction,
            order: self.order,
            block: Block::Fixed(Bytes(self.block)),
            depth: self.depth,
            direct: self.direct,
            huge_pages: self.huge_pages,
            warmup: Nanos::from_millis(self.warmup_s * 1000),
            engine: self.engine,
            stop: Stop { time: Some(Nanos::from_millis(seconds * 1000)), ..Stop::default() },
            ..Job::default()
        }
    }

    /// A round of this engine, in a process of its own as fio's is: an old one gets the pages again that it gave back, and
    /// these lie in RAM as they come.
    pub fn ours(&self, path: &Path, len: Bytes, seconds: u64) -> Result<Round> {
        let asked = [self.name, &path.to_string_lossy(), &len.0.to_string(), &seconds.to_string()].join("\n");
        let output = Command::new(std::env::current_exe()?).env(ROUND, asked).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        let numbers: Vec<f64> = serde_json::from_slice(&output.stdout)?;
        let &[user_ns, system_ns, operations, ref figures @ ..] = &numbers[..] else { return Err("no figures".into()) };
        let side = |at: usize| {
            let [iops, mean_us, p50_us, p99_us] = figures[at..at + 4] else { return Figures::default() };
            Figures { iops, mean_us, p50_us, p99_us, ..Figures::default() }
        };
        Ok(Round { read: side(0), write: side(4), user_ns, system_ns, operations })
    }

    /// What such a process does.
    fn measure(&self, path: &Path, len: Bytes, seconds: u64) -> Result<Round> {
        let file = open(path, self.direct)?;
        let alignment = Bytes(if self.direct { 4096 } else { 1 });
        let target = Target::File { fd: file.as_fd(), len, alignment, direct: self.direct };
        let outcome = run(&self.job(seconds), target, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {})?;
        let operations = (outcome.read.operations() + outcome.write.operations()) as f64;
        Ok(Round {
            read: figures(&outcome.read.latency, outcome.elapsed),
            write: figures(&outcome.write.latency, outcome.elapsed),
            user_ns: outcome.cpu_user.0 as f64,
            system_ns: outcome.cpu_system.0 as f64,
            operations,
        })
    }

    /// A round of this engine, one of fio and another of fio, `first` of the three first, with the kernel's account of the
    /// disk meanwhile. The second fio says how far a program lies from itself.
    pub fn turn(&self, file: &TestFile, len: Bytes, seconds: u64, first: usize) -> Result<[Round; 3]> {
        let mut rounds = [Round::default(); 3];
        for who in (first..first + 3).map(|turn| turn % 3) {
            let before = Disk::read(file)?;
            let mut round = if who == 0 { self.ours(&file.path, len, seconds)? } else { self.fio(file, len, seconds)? };
            let [read, write] = Disk::read(file)?.since(before);
            (round.read.requests, round.read.disk_us) = read;
            (round.write.requests, round.write.disk_us) = write;
            rounds[who] = round;
        }
        Ok(rounds)
    }

    /// A round of fio, told to keep the same latencies (`lat`, from submission to completion) and the page cache.
    pub fn fio(&self, file: &TestFile, len: Bytes, seconds: u64) -> Result<Round> {
        let rw = match (self.direction, self.order != Order::Sequential) {
            (Direction::Read, false) => "read",
            (Direction::Read, true) => "randread",
            (Direction::Write, false) => "write",
            (Direction::Write, true) => "randwrite",
            (Direction::Mixed { .. }, false) => "rw",
            (Direction::Mixed { .. }, true) => "randrw",
        };
        let mix = if let Direction::Mixed { read_percent } = self.direction { read_percent } else { 50 };
        let output = Command::new("fio")
            .args(["--name=peer", "--output-format=json", "--time_based", "--invalidate=0", "--randrepeat=0"])
            .args(["--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:99"])
            .arg(format!("--filename={}", file.path.display()))
            .args([format!("--size={}", len.0), format!("--runtime={seconds}"), format!("--rw={rw}")])
            .args([format!("--bs={}", self.block), format!("--iodepth={}", self.depth)])
            .args([format!("--rwmixread={mix}"), format!("--direct={}", u8::from(self.direct))])
            .args(self.fio)
            .args(self.huge_pages.then_some("--mem=mmaphuge"))
            .arg(format!("--ramp_time={}s", self.warmup_s))
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let json: Value = serde_json::from_str(&text[text.find('{').ok_or("fio printed no JSON")?..])?;
        let job = &json["jobs"][0];
        let side = |name: &str| {
            let side = &job[name];
            let us = |percent: &str| side["lat_ns"]["percentile"][percent].as_f64().unwrap_or(0.0) / 1e3;
            Figures {
                iops: side["iops"].as_f64().unwrap_or(0.0),
                mean_us: side["lat_ns"]["mean"].as_f64().unwrap_or(0.0) / 1e3,
                p50_us: us("50.000000"),
                p99_us: us("99.000000"),
                ..Figures::default()
            }
        };
        let total = |name: &str| job[name]["total_ios"].as_f64().unwrap_or(0.0);
        let cpu =
            |name: &str| job[name].as_f64().unwrap_or(0.0) / 100.0 * job["job_runtime"].as_f64().unwrap_or(0.0) * 1e6;
        Ok(Round {
            read: side("read"),
            write: side("write"),
            user_ns: cpu("usr_cpu"),
            system_ns: cpu("sys_cpu"),
            operations: total("read") + total("write"),
        })
    }
}

/// The median of what `pick` takes of each round.
pub fn median(rounds: &[Round], pick: impl Fn(&Round) -> f64) -> f64 {
    stats::median(&rounds.iter().map(pick).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Half the distance between the quartiles, in per cent of the median.
pub fn spread(rounds: &[Round], pick: impl Fn(&Round) -> f64) -> f64 {
    let values: Vec<f64> = rounds.iter().map(pick).collect();
    let quantile = |q| stats::quantile(&values, q).unwrap_or(f64::NAN);
    50.0 * (quantile(0.75) - quantile(0.25)) / quantile(0.5)
}

/// CPU time of all rounds over their operations, in nanoseconds: rusage counts by ticks, so single rounds say little.
pub fn per_operation(rounds: &[Round], pick: impl Fn(&Round) -> f64) -> f64 {
    rounds.iter().map(pick).sum::<f64>() / rounds.iter().map(|r| r.operations).sum::<f64>()
}
