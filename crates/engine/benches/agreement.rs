//! Does this engine measure what fio measures? The same four jobs by both, direct on a file, interleaved, with fio's `lat`
//! (its `clat` begins after `io_uring_enter` has returned). Prints a Markdown table: medians, ratio of medians, fio's own
//! spread. `cargo bench -p engine --bench agreement`; ROUNDS (7), RUN_SECONDS (3), FILE_MIB (1024), BENCH_DIR; words
//! after `--` choose cases by name.
#![forbid(unsafe_code)]

mod common;

use basics::Bytes;
use basics::job::{Direction, Engine};
use basics::units::MIB;
use common::{Case, Figures, Result, Round, TestFile, is_wanted, median, setting, spread};

const URING: &[&str] = &["--ioengine=io_uring"];
const PSYNC: &[&str] = &["--ioengine=psync"];
/// Large buffers from a mapping, as ours are: fio's own, from malloc, cost it 2 to 5 % of the rate at 1 MiB.
const MAPPED: &[&str] = &["--ioengine=psync", "--mem=mmap"];

fn row(case: &Case, name: &str, side: fn(&Round) -> Figures, ours: &[Round], fio: &[Round]) {
    let ratio = |pick: fn(Figures) -> f64| {
        let of = |rounds| median(rounds, |r| pick(side(r)));
        (of(ours), of(fio), of(ours) / of(fio), spread(fio, |r| pick(side(r))))
    };
    let (iops, p50, p99) = (ratio(|f| f.iops), ratio(|f| f.p50_us), ratio(|f| f.p99_us));
    println!(
        "| {} {name} | {:.0} | {:.0} | **{:.3}** | {:.1} % | {:.1} | {:.1} | **{:.3}** | {:.1} % | {:.1} | {:.1} | **{:.3}** | {:.1} % |",
        case.name, iops.0, iops.1, iops.2, iops.3, p50.0, p50.1, p50.2, p50.3, p99.0, p99.1, p99.2, p99.3
    );
}

fn main() -> Result<()> {
    let (rounds, seconds) = (setting("ROUNDS", 7), setting("RUN_SECONDS", 3));
    let len = Bytes(setting("FILE_MIB", 1024) * MIB);
    let case = |name, random, block, depth, engine, fio| Case {
        name,
        direction: Direction::Read,
        random,
        block,
        depth,
        direct: true,
        engine,
        fio,
    };
    let cases = [
        case("1 MiB sequential, depth 1", false, MIB, 1, Engine::Psync, MAPPED),
        case("4 KiB random, depth 1", true, 4096, 1, Engine::Psync, PSYNC),
        case("4 KiB random, depth 32", true, 4096, 32, Engine::IoUring, URING),
        Case {
            direction: Direction::Mixed { read_percent: 70 },
            ..case("16 KiB 70/30, depth 4", true, 16384, 4, Engine::IoUring, URING)
        },
    ];
    let file = TestFile::new(len)?;
    println!("{rounds} interleaved rounds of {seconds} s; ± is half the distance of fio's own quartiles\n");
    println!("| job | IOPS | fio | ratio | fio ± | p50 µs | fio | ratio | fio ± | p99 µs | fio | ratio | fio ± |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for case in cases.iter().filter(|case| is_wanted(case.name)) {
        let (mut ours, mut fio) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Who goes first alternates, so that a drift of the machine favours neither.
            if round % 2 == 0 {
                ours.push(case.ours(&file, len, seconds)?);
                fio.push(case.fio(&file, len, seconds)?);
            } else {
                fio.push(case.fio(&file, len, seconds)?);
                ours.push(case.ours(&file, len, seconds)?);
            }
        }
        row(case, "read", |r| r.read, &ours, &fio);
        if case.direction.writes() {
            row(case, "write", |r| r.write, &ours, &fio);
        }
    }
    Ok(())
}
