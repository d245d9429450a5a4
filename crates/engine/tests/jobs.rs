//! Whole jobs on files, memory and null targets: what is asked is what is counted, what fails is told, what was measured
//! is kept.
#![forbid(unsafe_code)]

use basics::job::{Block, Direction, Engine, Entropy, Figure, Order, Pacing, Stop, Sync, Until};
use basics::units::{KIB, MIB};
use basics::{Bytes, Interval, Job, Nanos};
use engine::{Control, Ended, EngineError, Outcome, Target, run};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const ENGINES: [Engine; 3] = [Engine::Psync, Engine::IoUring, Engine::Mmap];

fn file(len: u64) -> File {
    let mut file = tempfile::tempfile().unwrap();
    for _ in 0..len / MIB {
        file.write_all(&vec![0x55; MIB as usize]).unwrap();
    }
    file
}

fn target(file: &File, len: u64) -> Target<'_> {
    Target::File { fd: file.as_fd(), len: Bytes(len), alignment: Bytes(1), direct: false }
}

fn null(service: Nanos) -> Target<'static> {
    Target::Null { service, stall: None }
}

fn operations(n: u64) -> Stop {
    Stop { operations: Some(n), ..Stop::default() }
}

fn buffered() -> Job {
    Job { direct: false, ..Job::default() }
}

/// Runs, and holds that the intervals together are the totals and follow each other.
fn measure(job: &Job, target: Target<'_>) -> Outcome {
    let (mut operations, mut bytes, mut end) = (0, 0, Nanos(0));
    let mut sink = |interval: &Interval| {
        assert_eq!(interval.start, end);
        assert!(interval.end >= interval.start);
        end = interval.end;
        operations += interval.read.operations() + interval.write.operations();
        bytes += interval.read.bytes + interval.write.bytes;
    };
    let outcome = run(job, target, &Control::new(&AtomicBool::new(false)), &mut sink).unwrap();
    assert_eq!(operations, outcome.read.operations() + outcome.write.operations());
    assert_eq!(bytes, outcome.read.bytes + outcome.write.bytes);
    assert!(end >= outcome.elapsed || operations == 0);
    outcome
}

#[test]
fn counts_are_exact_on_every_engine_depth_and_number_of_threads() {
    let file = file(4 * MIB);
    for engine in ENGINES {
        for (depth, threads) in [(1, 1), (3, 1), (32, 1), (1, 3), (16, 4), (300, 2)] {
            let job = Job {
                engine,
                depth,
                threads,
                order: Order::Permuted,
                direction: Direction::Mixed { read_percent: 60 },
                stop: operations(1001),
                ..buffered()
            };
            let outcome = measure(&job, target(&file, 4 * MIB));
            let context = format!("{engine:?} depth {depth} threads {threads}: {outcome:?}");
            assert_eq!(outcome.ended, Ended::Operations, "{context}");
            assert_eq!(outcome.engine.used, engine);
            assert_eq!(outcome.read.operations() + outcome.write.operations(), 1001, "{context}");
            assert_eq!(outcome.read.bytes + outcome.write.bytes, 1001 * 4096);
            assert!((500..700).contains(&outcome.read.operations()), "{context}");
            let bytes = Stop { bytes: Some(Bytes(MIB + 1)), ..Stop::default() };
            let outcome = measure(&Job { stop: bytes, ..job }, target(&file, 4 * MIB));
            assert_eq!(outcome.ended, Ended::Bytes);
            assert_eq!(outcome.read.bytes + outcome.write.bytes, MIB + 4 * KIB, "rounded up to a block");
        }
    }
}

#[test]
fn sizes_of_a_split_add_up_to_the_bytes() {
    let file = file(4 * MIB);
    for engine in ENGINES {
        let block = Block::Split(vec![(Bytes(4096), 2), (Bytes(32768), 1)]);
        let stop = Stop { bytes: Some(Bytes(3 * MIB)), ..Stop::default() };
        let job = Job { engine, block, stop, depth: 4, order: Order::Uniform, ..buffered() };
        let outcome = measure(&job, target(&file, 4 * MIB));
        assert_eq!(outcome.read.bytes, 3 * MIB, "{engine:?}");
        assert!(outcome.read.operations() < 3 * 256);
    }
}

/// Every block is written exactly once, in its own place, with data like no other block's; reading finds the file whole.
#[test]
fn what_is_written_is_in_the_file() {
    for engine in ENGINES {
        for sync in [Sync::None, Sync::Dsync, Sync::Fdatasync { every: 10 }] {
            let file = file(2 * MIB);
            let stop = Stop { bytes: Some(Bytes(MIB)), ..Stop::default() };
            let job = Job {
                engine,
                sync,
                stop,
                end_fsync: true,
                direction: Direction::Write,
                order: Order::Permuted,
                offset: Bytes(512 * KIB),
                size: Some(Bytes(MIB)),
                depth: 8,
                threads: 2,
                ..buffered()
            };
            let outcome = measure(&job, target(&file, 2 * MIB));
            assert_eq!(outcome.write.operations(), 256, "{engine:?} {outcome:?}");
            let mut data = vec![0; 2 * MIB as usize];
            file.read_exact_at(&mut data, 0).unwrap();
            let untouched = |block: &&[u8]| block.iter().all(|&b| b == 0x55);
            let blocks: Vec<&[u8]> = data.chunks(4096).collect();
            assert_eq!(blocks.iter().filter(|b| untouched(b)).count(), 256);
            assert!(blocks[..128].iter().all(untouched) && blocks[384..].iter().all(untouched));
            let distinct: std::collections::HashSet<_> = blocks[128..384].iter().collect();
            assert_eq!(distinct.len(), 256, "{engine:?} {sync:?}");
        }
    }
}

#[test]
fn zeros_are_zeros() {
    let file = file(MIB);
    let stop = operations(16);
    let job = Job { direction: Direction::Write, entropy: Entropy::Zeros, stop, engine: Engine::Psync, ..buffered() };
    measure(&job, target(&file, MIB));
    let mut data = vec![1; 65536];
    file.read_exact_at(&mut data, 0).unwrap();
    assert!(data.iter().all(|&b| b == 0));
}

/// Must show 8: an open-loop job against a target that stalls 200 ms once a second. Latency from the intended time shows
/// the stall, service time hardly does: only one operation a stall was inside.
#[test]
fn a_stall_is_in_the_latency_and_not_in_the_service_time() {
    for (depth, pacing) in [(1, Pacing::Fixed { iops: 2000.0 }), (8, Pacing::Poisson { iops: 2000.0 })] {
        let stall = Some((Nanos::from_millis(500), Nanos::from_millis(100)));
        let target = Target::Null { service: Nanos(20_000), stall };
        let stop = Stop { time: Some(Nanos::from_millis(1200)), ..Stop::default() };
        let outcome = measure(&Job { pacing, stop, depth, ..Job::default() }, target);
        let intended = outcome.read.latency.percentile(90.0).unwrap();
        let service = outcome.read.service.as_ref().unwrap();
        assert!(intended > Nanos::from_millis(30), "{intended}");
        assert!(outcome.read.latency.max().unwrap() > Nanos::from_millis(95));
        assert!(service.percentile(90.0).unwrap() < intended, "{:?}", service.percentile(90.0));
        assert_eq!(service.count(), outcome.read.operations());
        // No more than were due; fewer where the machine itself stood still.
        assert!((1..2600).contains(&outcome.read.operations()), "{}", outcome.read.operations());
    }
}

#[test]
fn a_rate_that_cannot_be_held_is_noted() {
    let stop = Stop { time: Some(Nanos::from_millis(100)), ..Stop::default() };
    let job = Job { pacing: Pacing::Fixed { iops: 10_000.0 }, stop, ..Job::default() };
    let outcome = measure(&job, null(Nanos::from_millis(1)));
    assert!(outcome.notes.iter().any(|n| n.contains("were due and not sent")), "{:?}", outcome.notes);
    assert!(outcome.read.latency.max().unwrap() > Nanos::from_millis(50), "the backlog grows");
    let held = Job { pacing: Pacing::Fixed { iops: 1000.0 }, threads: 2, ..job };
    let outcome = measure(&held, null(Nanos(0)));
    // What was due and not sent, because the machine stood still, is noted.
    assert!((1..=100).contains(&outcome.read.operations()), "{}", outcome.read.operations());
    assert!(outcome.notes.is_empty() || outcome.read.operations() < 100, "{:?}", outcome.notes);
}

#[test]
fn the_warm_up_is_run_and_not_counted() {
    // Only bounds that a machine which stands still for a while does not break: a stall makes what is
    // counted less and all that is timed longer.
    let warmup = Nanos::from_millis(150);
    for (engine, depth) in [(Engine::Psync, 1), (Engine::IoUring, 4)] {
        let stop = Stop { time: Some(Nanos::from_millis(60)), ..Stop::default() };
        let job = Job { warmup, engine, depth, stop, ..Job::default() };
        let begun = Instant::now();
        let outcome = measure(&job, null(Nanos::from_millis(2)));
        let all = Nanos::from(begun.elapsed());
        assert!(all >= Nanos::from_millis(205), "{all}");
        assert!(all - outcome.elapsed >= warmup, "{} of {all}", outcome.elapsed);
        let n = outcome.read.operations() / u64::from(depth);
        assert!(n <= outcome.elapsed.0 / 2_000_000 + 4, "{n} in {}", outcome.elapsed);
        let few = Job { stop: operations(3), ..job };
        assert_eq!(measure(&few, null(Nanos::from_millis(2))).read.operations(), 3);
    }
}

#[test]
fn a_steady_target_is_known_early() {
    let until = Until { figure: Figure::Iops, percent: 20.0, at_least: Nanos::from_millis(50) };
    for figure in [Figure::Iops, Figure::MeanLatency] {
        let stop =
            Stop { time: Some(Nanos::from_millis(20_000)), until: Some(Until { figure, ..until }), ..Stop::default() };
        let job = Job { stop, interval: Nanos::from_millis(20), ..Job::default() };
        // Long enough to sleep through: a target that spins shares its core with whatever else runs, and is not steady then.
        let outcome = measure(&job, null(Nanos::from_millis(2)));
        assert_eq!(outcome.ended, Ended::Confidence);
        assert!(outcome.elapsed >= Nanos::from_millis(200), "ten intervals at least: {}", outcome.elapsed);
    }
}

/// A kernel need not have any; then the record says so, and the job runs all the same.
#[test]
fn huge_pages_are_had_or_said_to_be_missing() {
    let allowed = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let never = allowed.is_empty() || allowed.contains("[never]");
    for engine in [Engine::Psync, Engine::IoUring] {
        let block = Block::Fixed(Bytes(64 << 10));
        let job = Job { engine, block, huge_pages: true, stop: operations(64), ..buffered() };
        let outcome = measure(&job, target(&file(1 << 20), 1 << 20));
        let missing = outcome.engine.dropped.iter().any(|(what, _)| what == basics::EngineUse::HUGE_PAGES);
        assert!(missing || !never, "{:?}", outcome.engine);
        assert_eq!(outcome.read.operations(), 64);
    }
    let block = Block::Fixed(Bytes(64 << 10));
    let job = Job { block, huge_pages: true, stop: operations(64), ..Job::default() };
    let dropped = measure(&job, null(Nanos(0))).engine.dropped;
    assert!(dropped.iter().any(|(what, _)| what == basics::EngineUse::HUGE_PAGES), "no buffers: {dropped:?}");
}

/// A stall longer than an interval leaves empty intervals, and they come in time.
#[test]
fn a_stuck_thread_holds_nothing_back() {
    let stall = Some((Nanos::from_millis(400), Nanos::from_millis(200)));
    let stop = Stop { time: Some(Nanos::from_millis(380)), ..Stop::default() };
    let job = Job { stop, interval: Nanos::from_millis(20), ..Job::default() };
    let begun = Instant::now();
    let mut seen = Vec::new();
    let mut sink = |i: &Interval| seen.push((i.read.operations(), i.end, begun.elapsed()));
    run(&job, Target::Null { service: Nanos(50_000), stall }, &Control::new(&AtomicBool::new(false)), &mut sink)
        .unwrap();
    let empty = seen.iter().filter(|(n, ..)| *n == 0).count();
    assert!(empty >= 4, "{seen:?}");
    // Told while it runs, not all at its end.
    let last = seen.last().unwrap().2;
    assert!(seen.iter().filter(|(_, _, at)| *at < last).count() > seen.len() / 4, "{seen:?}");
}

#[test]
fn a_file_that_becomes_shorter_fails_the_job_and_keeps_what_was_measured() {
    for (engine, depth) in [(Engine::Psync, 1), (Engine::IoUring, 8), (Engine::Mmap, 1)] {
        let file = file(4 * MIB);
        file.set_len(3 * MIB + 100).unwrap();
        let job = Job { engine, depth, threads: 2, separate_regions: false, stop: operations(100_000), ..buffered() };
        let outcome = measure(&job, target(&file, 4 * MIB));
        let Ended::Failed { what: "read", offset, errno } = outcome.ended else { panic!("{outcome:?}") };
        assert!(offset.0 > 3 * MIB - 4096 && offset.0 <= 3 * MIB + 64 * KIB, "{offset}");
        assert_eq!(errno, sys::errno::ENODATA, "{engine:?}");
        assert!(outcome.read.operations() >= 768, "{}", outcome.read.operations());
        assert!(outcome.elapsed > Nanos(0));
    }
}

/// A disk that begins again at 1 MiB: the block there is kept in the same place as the one at 0.
#[test]
fn a_block_that_another_has_taken_the_place_of_ends_the_job() {
    let file = file(2 * MIB);
    let stop = Stop { bytes: Some(Bytes(2 * MIB)), ..Stop::default() };
    let tagged = |direction| Job { direction, entropy: Entropy::Tagged, stop, ..buffered() };
    for engine in [Engine::Psync, Engine::IoUring] {
        let written = measure(&Job { engine, depth: 8, ..tagged(Direction::Write) }, target(&file, 2 * MIB));
        assert_eq!(written.ended, Ended::Bytes, "{written:?}");
        let read = measure(&Job { depth: 8, ..tagged(Direction::Read) }, target(&file, 2 * MIB));
        assert_eq!((read.ended, read.engine.used), (Ended::Bytes, Engine::Psync));
    }
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, 0).unwrap();
    file.write_all_at(&block, MIB).unwrap();
    let outcome = measure(&tagged(Direction::Read), target(&file, 2 * MIB));
    assert_eq!(outcome.ended, Ended::Astray { offset: Bytes(MIB), holds: Some(Bytes(0)) });
    assert_eq!(outcome.read.operations(), 256);
    file.set_len(0).unwrap();
    file.set_len(2 * MIB).unwrap();
    let lost = measure(&tagged(Direction::Read), target(&file, 2 * MIB));
    assert_eq!(lost.ended, Ended::Astray { offset: Bytes(0), holds: None });
}

/// The smallest full disk that needs no mount: a file size limit raises EFBIG, /dev/full ENOSPC.
#[test]
fn a_full_disk_fails_the_job() {
    let full = File::options().read(true).write(true).open("/dev/full").unwrap();
    for (engine, depth) in [(Engine::Psync, 1), (Engine::IoUring, 4)] {
        let job = Job { engine, depth, direction: Direction::Write, ..buffered() };
        let outcome = measure(&job, target(&full, MIB));
        let Ended::Failed { what: "write", errno, .. } = outcome.ended else { panic!("{outcome:?}") };
        assert_eq!(errno, sys::errno::ENOSPC);
        assert_eq!(outcome.write.operations(), 0);
    }
}

#[test]
fn cancelling_ends_soon_whatever_the_threads_do() {
    let idle = Pacing::Fixed { iops: 0.1 };
    let cases = [
        (idle, 1, Nanos(0)),
        (idle, 8, Nanos(0)),
        (Pacing::Closed, 1, Nanos::from_millis(60_000)),
        (Pacing::Closed, 8, Nanos::from_millis(60_000)),
        (Pacing::Closed, 8, Nanos(1000)),
    ];
    let warmups = [Nanos(0), Nanos::from_millis(60_000)];
    for ((pacing, depth, service), warmup) in cases.iter().flat_map(|case| warmups.map(|warmup| (*case, warmup))) {
        let cancel = AtomicBool::new(false);
        let control = Control::new(&cancel);
        let job = Job { pacing, depth, warmup, threads: 2, ..Job::default() };
        let (outcome, took) = std::thread::scope(|scope| {
            let runner = scope.spawn(|| run(&job, null(service), &control, &mut |_: &Interval| {}));
            std::thread::sleep(Duration::from_millis(60));
            cancel.store(true, Relaxed);
            let begun = Instant::now();
            (runner.join().unwrap().unwrap(), begun.elapsed())
        });
        assert_eq!(outcome.ended, Ended::Cancelled);
        // A tenth of a second on a machine that has nothing else to do; all of them would go on for a minute or for ever.
        assert!(took < Duration::from_secs(10), "{pacing:?} depth {depth}: {took:?}");
    }
}

#[test]
fn memory_has_a_bandwidth_and_a_latency() {
    let ram = Target::Memory { size: Bytes(64 * MIB) };
    let stop = Stop { time: Some(Nanos::from_millis(60)), ..Stop::default() };
    let stream = Job { block: Block::Fixed(Bytes(MIB)), threads: 2, stop, ..Job::default() };
    for direction in [Direction::Read, Direction::Write] {
        let outcome = measure(&Job { direction, ..stream.clone() }, ram);
        assert_eq!(outcome.engine.used, Engine::Memory);
        let rate = Bytes(outcome.read.bytes + outcome.write.bytes).mbps(outcome.elapsed);
        assert!(rate > 1.0, "{rate} MB/s");
    }
    let chase = Job { order: Order::Permuted, stop: operations(100_003), ..Job::default() };
    let outcome = measure(&chase, ram);
    assert_eq!(outcome.read.operations(), 100_003);
    assert_eq!(outcome.read.bytes, 100_003 * 64);
    assert_eq!(outcome.read.latency.count(), 100_003_u64.div_ceil(256), "a batch has one latency");
    assert!(outcome.notes.iter().any(|note| note.contains("mean of 256 dependent loads")), "{:?}", outcome.notes);
    let each = outcome.elapsed.0 as f64 / 100_003.0;
    let mean = outcome.read.latency.mean().unwrap().0 as f64;
    // The clock also sees what lies between two batches.
    assert!(mean > 0.0 && mean < 1.3 * each, "{mean} ns by the histogram, {each} ns by the clock");
}

#[test]
fn nonsense_is_refused_before_anything_runs() {
    let ram = Target::Memory { size: Bytes(MIB) };
    let refused = |job: &Job, target| {
        run(job, target, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {}).unwrap_err()
    };
    let random_write = Job { order: Order::Permuted, direction: Direction::Write, ..Job::default() };
    assert!(matches!(refused(&random_write, ram), EngineError::Geometry(_)));
    let odd = Job { block: Block::Fixed(Bytes(100)), ..Job::default() };
    assert!(refused(&odd, ram).to_string().contains("multiple of 8 B"));
    let wrong = Job { engine: Engine::IoUring, ..Job::default() };
    assert_eq!(
        refused(&wrong, ram).to_string(),
        "engine io_uring cannot be used here: the target is memory; leave engine=auto"
    );
    assert!(matches!(refused(&Job { depth: 0, ..Job::default() }, ram), EngineError::Job(_)));
    let read_only = File::open("/proc/self/exe").unwrap();
    let write = Job { engine: Engine::Mmap, direction: Direction::Write, ..buffered() };
    assert!(matches!(refused(&write, target(&read_only, MIB)), EngineError::Unavailable { engine: "mmap", .. }));
}

#[test]
fn auto_says_what_it_took_and_why() {
    let file = file(MIB);
    let auto = Job { stop: operations(10), ..buffered() };
    let outcome = measure(&auto, target(&file, MIB));
    assert_eq!((outcome.engine.asked, outcome.engine.used), (Engine::Auto, Engine::Psync));
    assert!(outcome.engine.why.contains("depth 1"), "{}", outcome.engine.why);
    let deep = measure(&Job { depth: 8, ..auto.clone() }, target(&file, MIB));
    assert_eq!(deep.engine.used, Engine::IoUring);
    let writes = measure(&Job { depth: 8, direction: Direction::Write, ..auto.clone() }, target(&file, MIB));
    assert_eq!(writes.engine.used, Engine::Psync);
    assert!(writes.engine.dropped.iter().any(|(what, _)| what == "depth 8"), "{:?}", writes.engine);
    let asked_direct = measure(&Job { direct: true, ..auto }, target(&file, MIB));
    assert!(asked_direct.engine.dropped.iter().any(|(what, _)| what == "O_DIRECT"));
}

/// A probe never writes, and on a target that claims to be direct it does read.
#[test]
fn a_probe_reads_and_never_writes() {
    let file = file(MIB);
    let target = Target::File { fd: file.as_fd(), len: Bytes(MIB), alignment: Bytes(512), direct: true };
    let job = Job { depth: 8, direction: Direction::Write, order: Order::Permuted, ..Job::default() };
    let choice = engine::probe(&job, &target);
    assert_eq!(
        (choice.engine, choice.why.as_str()),
        (Engine::IoUring, "depth 8 needs a queue (writes are not probed)")
    );
    let mixed = Job { direction: Direction::Mixed { read_percent: 50 }, ..job };
    let choice = engine::probe(&mixed, &target);
    assert!(choice.why.starts_with("probed: "), "{choice:?}");
    let mut data = vec![0; MIB as usize];
    file.read_exact_at(&mut data, 0).unwrap();
    assert!(data.iter().all(|&b| b == 0x55));
}

#[test]
fn the_harness_knows_its_own_cost() {
    let cost = engine::calibrate().unwrap();
    assert!(cost > 1.0 && cost < 5000.0, "{cost} ns an operation");
}

/// Memory that fits: every page is visited as often as every other, and no touch meets a major fault.
#[test]
fn touched_memory_that_fits_has_no_major_faults() {
    let region = sys::region::Region::new(8 << 20).unwrap();
    let stop = Stop { operations: Some(3 * 2048), ..Stop::default() };
    for (direction, threads) in [(Direction::Read, 1), (Direction::Write, 2)] {
        let job = Job { direction, threads, stop, engine: Engine::Touch, direct: false, ..Job::default() };
        let mut told = 0;
        assert!(engine::fill(&job, &region, true, &AtomicBool::new(false), |done| told = done.0).unwrap());
        assert!(told <= 8 << 20);
        assert!((0..8 << 20).step_by(4096).all(|at| (0..8).any(|line| region.load(at + 64 * line, 64) != 0)));
        let outcome = measure(&job, Target::Touched { region: &region });
        assert_eq!(outcome.engine.used, Engine::Touch);
        assert_eq!(outcome.read.operations() + outcome.write.operations(), 3 * 2048);
        assert_eq!(outcome.read.bytes + outcome.write.bytes, 24 << 20);
        assert!(outcome.faults.is_empty(), "{:?}", outcome.faults.max());
    }
    let cancelled = engine::fill(&Job::default(), &region, false, &AtomicBool::new(true), |_| {}).unwrap();
    assert!(!cancelled);
}
