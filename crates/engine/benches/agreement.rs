//! Does this engine measure what fio measures? The same four jobs by both, direct on a file, interleaved, with fio's `lat`
//! (its `clat` begins after `io_uring_enter` has returned), and by fio once more: how far it lies from itself is what
//! these rounds can tell at all. Prints a Markdown table: medians, ratio of medians with its 95 % interval. A row takes
//! ROUNDS (7) turns and goes on, to MOST_ROUNDS (ROUNDS) at most, until the interval of the IOPS ratio is within ± 3 %.
//! Rows with huge pages take the chance of the buffers' places in RAM out of both; for fio reserve some before
//! (`sysctl vm.nr_hugepages=16`). `cargo bench -p engine --bench agreement`; RUN_SECONDS (3), FILE_MIB (1024), BENCH_DIR; words after `--` choose cases.
#![forbid(unsafe_code)]

mod common;

use basics::Bytes;
use basics::job::{Direction, Engine, Order};
use basics::stats;
use basics::units::MIB;
use common::{
    Case, Figures, Result, Round, TestFile, huge_pages_free, is_wanted, median, setting, spread, was_a_round,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fmt::Write;

const URING: &[&str] = &["--ioengine=io_uring"];
const PSYNC: &[&str] = &["--ioengine=psync"];
/// Half the width of the interval, in per cent, at which a row is known well enough.
const ENOUGH: f64 = 3.0;

/// A ratio of medians and its 95 % interval, from medians of pairs drawn anew (percentile bootstrap, 1000 draws).
fn ratio(ours: &[Round], fio: &[Round], pick: impl Fn(&Round) -> f64) -> (f64, f64, f64) {
    let of = |rounds: &[Round]| rounds.iter().map(&pick).collect::<Vec<_>>();
    let (ours, fio) = (of(ours), of(fio));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut drawn: Vec<f64> = (0..1000)
        .map(|_| {
            let pairs: Vec<usize> = ours.iter().map(|_| (rng.next_u64() % ours.len() as u64) as usize).collect();
            let median_of = |all: &[f64]| stats::median(&pairs.iter().map(|i| all[*i]).collect::<Vec<_>>());
            median_of(&ours).unwrap_or(f64::NAN) / median_of(&fio).unwrap_or(f64::NAN)
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let whole = stats::median(&ours).unwrap_or(f64::NAN) / stats::median(&fio).unwrap_or(f64::NAN);
    (whole, drawn[25], drawn[975])
}

/// Takes the figures of one direction.
type Side = fn(&Round) -> Figures;

/// The directions of a round.
const SIDES: [(&str, Side); 2] = [("read", |r| r.read), ("write", |r| r.write)];

/// A row of the table: one program over fio.
fn row(what: &str, rounds: &[Round], fio: &[Round], side: Side) {
    print!("| {what} |");
    for pick in [(|f| f.iops) as fn(Figures) -> f64, |f| f.p50_us, |f| f.p99_us] {
        let pick = |r: &Round| pick(side(r));
        let (ratio, low, high) = ratio(rounds, fio, pick);
        let (a, b) = (median(rounds, pick), median(fio, pick));
        print!(" {a:.0} | {b:.0} | **{ratio:.3}** ({low:.3}–{high:.3}) | {:.1} % |", spread(fio, pick));
    }
    println!();
}

/// How many requests at the disk an operation became, by the kernel's account, and where a program's time goes: in such a
/// request; from there to what the program reports as its mean latency; and how many of the `depth` operations were on their way (Little's law), the rest of the time being
/// the program's own, between one operation's end and the next one's start. Medians of the rounds.
fn parts(case: &Case, who: &str, rounds: &[Round], seconds: u64) -> String {
    let mut out = String::new();
    for (name, side) in SIDES.iter().take(1 + usize::from(case.direction.writes())) {
        let disk = median(rounds, |r| side(r).disk_us);
        let above = median(rounds, |r| side(r).mean_us - side(r).disk_us);
        let requests = median(rounds, |r| side(r).requests / (side(r).iops * seconds as f64));
        let _ = writeln!(out, "| {} {name} | {who} | {requests:.2} | {disk:.1} | {above:.1} |", case.name);
    }
    let on_their_way = median(rounds, |r| SIDES.iter().map(|(_, side)| side(r).iops * side(r).mean_us / 1e6).sum());
    out.replace("|\n", &format!("| {on_their_way:.2} |\n"))
}

fn main() -> Result<()> {
    let (rounds, seconds) = (setting("ROUNDS", 7), setting("RUN_SECONDS", 3));
    let most = setting("MOST_ROUNDS", rounds);
    let len = Bytes(setting("FILE_MIB", 1024) * MIB);
    let case = |name, order, block, depth, engine, fio| Case {
        name,
        direction: Direction::Read,
        order,
        block,
        depth,
        direct: true,
        engine,
        warmup_s: 0,
        huge_pages: false,
        fio,
    };
    let mixed = Case {
        direction: Direction::Mixed { read_percent: 70 },
        ..case("16 KiB 70/30, depth 4", Order::Permuted, 16384, 4, Engine::IoUring, URING)
    };
    let cases = [
        case("1 MiB sequential, depth 1", Order::Sequential, MIB, 1, Engine::Psync, PSYNC),
        Case {
            huge_pages: true,
            ..case("1 MiB sequential, depth 1, huge pages", Order::Sequential, MIB, 1, Engine::Psync, PSYNC)
        },
        case("4 KiB random, depth 1", Order::Permuted, 4096, 1, Engine::Psync, PSYNC),
        case("4 KiB random, depth 32", Order::Permuted, 4096, 32, Engine::IoUring, URING),
        mixed.clone(),
        Case { name: "16 KiB 70/30, depth 4, huge pages", huge_pages: true, ..mixed },
    ];
    if was_a_round(&cases)? {
        return Ok(());
    }
    let mut ledger = String::new();
    let file = TestFile::new(len)?;
    println!(
        "interleaved rounds of {seconds} s; in brackets the 95 % interval; ± is half the distance of fio's quartiles\n"
    );
    println!("| job | IOPS | fio | ratio | fio ± | p50 µs | fio | ratio | fio ± | p99 µs | fio | ratio | fio ± |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in cases.iter().filter(|case| is_wanted(case.name)) {
        if case.huge_pages && huge_pages_free() == 0 {
            println!("| {}: skipped, fio needs reserved huge pages: sysctl vm.nr_hugepages=16 |", case.name);
            continue;
        }
        let (mut ours, mut fio, mut again) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..most {
            // Who goes first alternates, so that a drift of the machine favours nobody.
            let turn = case.turn(&file, len, seconds, round as usize % 3)?;
            ours.push(turn[0]);
            fio.push(turn[1]);
            again.push(turn[2]);
            let (_, low, high) = ratio(&ours, &fio, |r| r.read.iops);
            if round + 1 >= rounds && (high - low) * 50.0 <= ENOUGH {
                break;
            }
        }
        for (name, side) in SIDES.iter().take(1 + usize::from(case.direction.writes())) {
            row(&format!("{} {name}, {} turns", case.name, ours.len()), &ours, &fio, *side);
            row("the same, fio against itself", &again, &fio, *side);
        }
        ledger += &parts(case, "tiermark", &ours, seconds);
        ledger += &parts(case, "fio", &fio, seconds);
    }
    println!("\n| job | by | requests | at the disk, µs | above it, µs | on their way |");
    println!("| --- | --- | --- | --- | --- | --- |\n{ledger}");
    Ok(())
}
