//! What does measuring cost? 4 KiB random reads of a page-cached file on one core, every latency recorded: this engine
//! against fio, and against fio's bare `t/io_uring` if T_IO_URING names its binary; then the null target, and a direct
//! file. Interleaved; prints Markdown. `cargo bench -p engine --bench speed`; ROUNDS (11), RUN_SECONDS (2), FILE_MIB
//! (1024), CORE (1), BENCH_DIR; words after `--` choose cases by name.
#![forbid(unsafe_code)]

mod common;

use basics::job::{Direction, Engine, Order, Stop};
use basics::units::MIB;
use basics::{Bytes, Interval, Job, Nanos};
use common::{Case, Result, Round, TestFile, is_wanted, median, per_operation, setting, spread, was_a_round};
use engine::{Control, Target, run};
use std::process::Command;
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

/// A round of `t/io_uring`; its mean rate without the first second, which the others spend on warming up.
fn bare(binary: &str, file: &TestFile, depth: u32, direct: bool, seconds: u64) -> Result<Round> {
    let (depth, seconds) = (format!("-d{depth}"), format!("-r{}", seconds + 2));
    let output = Command::new(binary)
        .args([&depth, "-s16", "-c16", "-b4096", "-p0", "-B1", "-F1", "-X1", "-R1", "-n1", &seconds])
        .arg(format!("-O{}", u8::from(direct)))
        .arg(&file.0)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = |line: &str| -> Option<f64> {
        let number = line.strip_prefix("IOPS=")?.split(',').next()?;
        match number.strip_suffix('M').or(number.strip_suffix('K')) {
            Some(digits) => Some(digits.parse::<f64>().ok()? * if number.ends_with('M') { 1e6 } else { 1e3 }),
            None => number.parse().ok(),
        }
    };
    let rates: Vec<f64> = text.lines().filter_map(rate).skip(1).collect();
    let mean = basics::stats::mean(&rates).ok_or("t/io_uring printed no rates")?;
    let mut round = Round::default();
    round.read.iops = mean;
    Ok(round)
}

fn cached_and_direct(cases: &[Case], len: Bytes, rounds: u64, seconds: u64) -> Result<()> {
    let binary = std::env::var("T_IO_URING").ok();
    println!("| job | k IOPS | ± | fio | ± | of fio | t/io_uring | of it | user ns | fio | share | system ns | fio |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in cases.iter().filter(|case| is_wanted(case.name)) {
        let file = TestFile::new(len)?;
        let (mut ours, mut fio, mut peer) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..rounds {
            // Who goes first alternates.
            for who in (round..round + 3).map(|turn| turn % 3) {
                match (who, &binary, case.engine) {
                    (0, ..) => ours.push(case.ours(&file, len, seconds)?),
                    (1, ..) => fio.push(case.fio(&file, len, seconds)?),
                    (_, Some(binary), Engine::IoUring) => {
                        peer.push(bare(binary, &file, case.depth, case.direct, seconds)?);
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
    null(rounds)
}
