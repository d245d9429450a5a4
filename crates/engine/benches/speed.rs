//! What does measuring cost? 4 KiB random reads of a page-cached file on one core, every latency recorded: this engine
//! against fio, and against fio's bare `t/io_uring` if T_IO_URING names its binary; then both at once on that core, the null
//! target, and a direct file. Interleaved; prints Markdown. `cargo bench -p engine --bench speed`; ROUNDS (11), RUN_SECONDS
//! (2), FILE_MIB (1024), CORE (1), BENCH_DIR; words after `--` choose cases by name.
#![forbid(unsafe_code)]

mod common;

use basics::job::{Direction, Engine, Order, Stop};
use basics::units::MIB;
use basics::{Bytes, Interval, Job, Nanos};
use common::{Case, Result, Round, TestFile, is_wanted, median, per_operation, setting, spread, was_a_round};
use engine::{Control, Target, run};
use std::io::{self, BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// fio at its best: no map of the blocks already read, file and buffers registered.
const URING: &[&str] = &["--ioengine=io_uring", "--registerfiles=1", "--fixedbufs=1", "--norandommap=1"];
/// And with batches, which it does not make unless told to.
const BATCHED: &[&str] = &[
    "--ioengine=io_uring",
    "--registerfiles=1",
    "--fixedbufs=1",
    "--norandommap=1",
    "--iodepth_batch_submit=16",
    "--iodepth_batch_complete_min=16",
    "--iodepth_batch_complete_max=16",
];
const PSYNC: &[&str] = &["--ioengine=psync", "--norandommap=1"];
/// As it comes, with the map.
const PLAIN: &[&str] = &["--ioengine=psync"];

/// `t/io_uring` on a case's file, printing its rate each second as it goes.
fn bare(binary: &str, case: &Case, file: &TestFile, seconds: u64) -> Command {
    let mut command = Command::new("stdbuf");
    command
        .args(["-oL", binary, &format!("-d{}", case.depth), "-s16", "-c16", "-b4096", "-p0", "-B1", "-F1", "-X1"])
        .args(["-R1", "-n1", &format!("-r{seconds}"), &format!("-O{}", u8::from(case.direct))])
        .arg(&file.path);
    command
}

/// The rate in a line of it.
fn rate(line: &str) -> Option<f64> {
    let number = line.strip_prefix("IOPS=")?.split(',').next()?;
    match number.strip_suffix('M').or(number.strip_suffix('K')) {
        Some(digits) => Some(digits.parse::<f64>().ok()? * if number.ends_with('M') { 1e6 } else { 1e3 }),
        None => number.parse().ok(),
    }
}

/// A round of it; its mean rate without the first second, which the others spend on warming up.
fn bare_round(binary: &str, case: &Case, file: &TestFile, seconds: u64) -> Result<Round> {
    let output = bare(binary, case, file, seconds + 2).output()?;
    let rates: Vec<f64> = String::from_utf8_lossy(&output.stdout).lines().filter_map(rate).skip(1).collect();
    let mut round = Round::default();
    round.read.iops = basics::stats::mean(&rates).ok_or("t/io_uring printed no rates")?;
    Ok(round)
}

/// CPU time that a process has had so far, in ns (Documentation/scheduler/sched-stats.rst).
fn cpu_ns(pid: u32) -> Result<f64> {
    let mut sum = 0.0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or_default().parse::<f64>()?;
    }
    Ok(sum)
}

/// Both at once on the core that they share: the scheduler gives it to each in turn every few milliseconds, so that both meet
/// the same neighbours and the same caches. CPU nanoseconds for an operation, `t/io_uring`'s (`None`: ours) beside ours.
fn at_once(other: Option<&str>, case: &Case, file: &TestFile, len: Bytes, seconds: u64) -> Result<(f64, f64)> {
    let cost = |round: &Round| (round.user_ns + round.system_ns) / round.operations;
    let Some(binary) = other else {
        return std::thread::scope(|scope| {
            let path = &file.path;
            let second = scope.spawn(|| case.ours(path, len, seconds).map_err(|error| error.to_string()));
            let first = case.ours(path, len, seconds)?;
            Ok((cost(&first), cost(&second.join().map_err(|_| "a round has panicked")??)))
        });
    };
    let mut child = bare(binary, case, file, seconds + 2).stdout(Stdio::piped()).spawn()?;
    let (pid, output) = (child.id(), child.stdout.take().ok_or("no output")?);
    let theirs = std::thread::spawn(move || {
        let mut points = Vec::new();
        let mut operations = 0.0;
        for rate in BufReader::new(output).lines().map_while(io::Result::ok).filter_map(|line| rate(&line)) {
            operations += rate;
            // At its end it has no tasks any more.
            points.extend(cpu_ns(pid).ok().map(|ns| (operations, ns)));
        }
        points
    });
    let ours = case.ours(&file.path, len, seconds);
    child.wait()?;
    let points = theirs.join().map_err(|_| "the reader has panicked")?;
    let [first, .., last] = points[..] else { return Err("t/io_uring printed no rates".into()) };
    Ok((cost(&ours?), (last.1 - first.1) / (last.0 - first.0)))
}

/// Operations for the same CPU time, ours over another's; and ours over our own, which says what the way of measuring leaves open.
fn shared_core(cases: &[Case], len: Bytes, rounds: u64, seconds: u64) -> Result<()> {
    println!(
        "\n| both at once on one core | CPU ns an operation | the other's | operations for the same CPU time, median | least – most |"
    );
    println!("| --- | --- | --- | --- | --- |");
    let binary = std::env::var("T_IO_URING").ok();
    for case in cases.iter().filter(|case| is_wanted(case.name) && !case.direct && case.engine == Engine::IoUring) {
        let file = TestFile::new(len)?.held()?;
        for (name, other) in [("`t/io_uring`", binary.as_deref()), ("itself", None)] {
            if name != "itself" && other.is_none() {
                continue;
            }
            let pairs = (0..rounds).map(|_| at_once(other, case, &file, len, seconds)).collect::<Result<Vec<_>>>()?;
            let middle = |of: &dyn Fn(&(f64, f64)) -> f64| {
                basics::stats::median(&pairs.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
            };
            let ratios = || pairs.iter().map(|(ours, theirs)| theirs / ours);
            println!(
                "| {}, beside {name} | {:.0} | {:.0} | **{:.3}** | {:.3} – {:.3} |",
                case.name,
                middle(&|pair| pair.0),
                middle(&|pair| pair.1),
                middle(&|pair| pair.1 / pair.0),
                ratios().fold(f64::INFINITY, f64::min),
                ratios().fold(0.0, f64::max),
            );
        }
    }
    Ok(())
}

fn cached_and_direct(cases: &[Case], len: Bytes, rounds: u64, seconds: u64) -> Result<()> {
    let binary = std::env::var("T_IO_URING").ok();
    println!("| job | k IOPS | ± | fio | ± | of fio | t/io_uring | of it | user ns | fio | share | system ns | fio |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in cases.iter().filter(|case| is_wanted(case.name)) {
        let file = TestFile::new(len)?;
        let file = if case.direct { file } else { file.held()? };
        let (mut ours, mut fio, mut peer) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            // Who goes first alternates.
            for who in (round..round + 3).map(|turn| turn % 3) {
                match (who, &binary, case.engine) {
                    (0, ..) => ours.push(case.ours(&file.path, len, seconds)?),
                    (1, ..) => fio.push(case.fio(&file, len, seconds)?),
                    (_, Some(binary), Engine::IoUring) => {
                        peer.push(bare_round(binary, case, &file, seconds)?);
                    }
                    _ => {}
                }
            }
        }
        let iops = |r: &Round| r.read.iops;
        let pairs = |of: &[Round]| {
            let ratios: Vec<f64> = ours.iter().zip(of).map(|(a, b)| a.read.iops / b.read.iops).collect();
            basics::stats::median(&ratios)
        };
        let of_peer = pairs(&peer).map_or("–".to_owned(), |ratio| format!("**{ratio:.3}**"));
        let peer = if peer.is_empty() { "–".to_owned() } else { format!("{:.1}", median(&peer, iops) / 1e3) };
        let user = |rounds| per_operation(rounds, |r| r.user_ns);
        let system = |rounds| per_operation(rounds, |r| r.system_ns);
        println!(
            "| {} | {:.1} | {:.1} % | {:.1} | {:.1} % | **{:.3}** | {peer} | {of_peer} | {:.0} | {:.0} | {:.2} | {:.0} | {:.0} |",
            case.name,
            median(&ours, iops) / 1e3,
            spread(&ours, iops),
            median(&fio, iops) / 1e3,
            spread(&fio, iops),
            pairs(&fio).unwrap_or(f64::NAN),
            user(&ours),
            user(&fio),
            user(&ours) / user(&fio),
            system(&ours),
            system(&fio),
        );
    }
    Ok(())
}

/// The harness alone: nanoseconds an operation, the best and the median of some runs.
fn null(rounds: u64) -> Result<()> {
    println!("\n| null target | ns an operation, median | best |\n| --- | --- | --- |");
    for (name, order, depth) in [
        ("sequential, depth 1", Order::Sequential, 1),
        ("permuted, depth 1", Order::Permuted, 1),
        ("permuted, depth 32", Order::Permuted, 32),
        ("uniform, depth 32", Order::Uniform, 32),
    ] {
        if !is_wanted("null") {
            continue;
        }
        let mut costs = Vec::new();
        for _ in 0..rounds {
            let stop = Stop { time: Some(Nanos::from_millis(200)), ..Stop::default() };
            let job = Job { order, depth, stop, size: Some(Bytes(1024 * MIB)), ..Job::default() };
            let target = Target::Null { service: Nanos(0), stall: None };
            let outcome = run(&job, target, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {})?;
            costs.push(outcome.elapsed.0 as f64 / outcome.read.operations() as f64);
        }
        let best = costs.iter().copied().fold(f64::INFINITY, f64::min);
        println!("| {name} | {:.1} | {best:.1} |", basics::stats::median(&costs).unwrap_or(f64::NAN));
    }
    Ok(())
}

fn main() -> Result<()> {
    let (rounds, seconds) = (setting("ROUNDS", 11), setting("RUN_SECONDS", 2));
    let len = Bytes(setting("FILE_MIB", 1024) * MIB);
    sys::thread::pin(setting("CORE", 1) as usize)?;
    let case = |name, depth, direct, engine, fio| Case {
        name,
        direction: Direction::Read,
        order: if fio == PLAIN { Order::Permuted } else { Order::Uniform },
        block: 4096,
        depth,
        direct,
        engine,
        // What `t/io_uring` prints of its first second is left out as well.
        warmup_s: 1,
        huge_pages: false,
        fio,
    };
    let cases = [
        case("cached, io_uring, depth 32", 32, false, Engine::IoUring, URING),
        case("cached, io_uring, depth 32, fio in batches of 16", 32, false, Engine::IoUring, BATCHED),
        case("cached, psync", 1, false, Engine::Psync, PSYNC),
        case("cached, psync, fio as it comes", 1, false, Engine::Psync, PLAIN),
        case("direct, io_uring, depth 32", 32, true, Engine::IoUring, URING),
    ];
    if was_a_round(&cases)? {
        return Ok(());
    }
    println!("{rounds} interleaved rounds of {seconds} s on one core; ± is half the distance of the quartiles\n");
    cached_and_direct(&cases, len, rounds, seconds)?;
    // The first case differs from the second in fio's options only.
    shared_core(&cases[..1], len, rounds, seconds)?;
    null(rounds)
}
