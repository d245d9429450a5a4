//! The memory curve against truth: what it says of two other limits, and what is then measured there. Needs root, a memory
//! control group and zram; leaves the machine as it was, and says what it skips and why.
#![forbid(unsafe_code)]

mod toucher;

use basics::Bytes;
use change::{Cgroup, ChangeError, Journal, Limits, SwapOn, Zram, swap_area};
use observe::accesses::{Accesses, Account, Options, PERIOD, Seen};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use study::curve::{Curve, Reuse, Today};
use toucher::{Order, Toucher};

const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;
/// A power of two.
const PAGES: u64 = 32 << 10;
/// How often each page is gone through at a touch: some work beside the stalls.
const LOADS: u64 = 10;
/// Limits are lowered by so much at a time.
const STEP: u64 = 2 * MIB;
/// Limit at which it is watched, and those of which it is said what would be.
const TODAY: u64 = 80 * MIB;
const LESS: u64 = 56 * MIB;
const MORE: u64 = 112 * MIB;

/// Swap areas that are on.
fn swaps() -> usize {
    std::fs::read_to_string("/proc/swaps").unwrap().lines().count() - 1
}

/// Swap of ours alone: nobody else's test runs beside this one, and a swap that is on already is waited for.
fn alone() -> Option<File> {
    let lock = File::open("/sys/block").unwrap();
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let begun = Instant::now();
    while swaps() > 0 {
        if begun.elapsed() > Duration::from_secs(60) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Some(lock)
}

/// Dropped in this order.
struct Place {
    toucher: Toucher,
    group: Cgroup,
    _swap: SwapOn,
    _zram: Zram,
    _journal: Journal,
    _dir: tempfile::TempDir,
}

impl Place {
    /// Bytes that are charged to the group.
    fn used(&self) -> u64 {
        let dir = &self.group.groups()[0];
        let path = ["memory.usage_in_bytes", "memory.current"]
            .into_iter()
            .map(|file| dir.join(file))
            .find(|path| path.exists());
        std::fs::read_to_string(path.unwrap()).unwrap().trim().parse().unwrap()
    }

    fn limit(&self, memory: u64) {
        let dir = &self.group.groups()[0];
        let path =
            ["memory.limit_in_bytes", "memory.max"].into_iter().map(|file| dir.join(file)).find(|path| path.exists());
        let path = path.unwrap();
        let now: u64 = std::fs::read_to_string(&path).unwrap().trim().parse().unwrap();
        // In small steps, as the kernel sometimes ends what misses much at once; and again, as it gives up when it cannot
        // make room fast enough.
        let steps = now.saturating_sub(memory).div_ceil(STEP);
        for step in (0..steps.max(1)).rev() {
            let begun = Instant::now();
            while let Err(error) = std::fs::write(&path, (memory + step * STEP).to_string()) {
                assert!(begun.elapsed() < Duration::from_secs(20), "{}: {error}", path.display());
                std::thread::sleep(Duration::from_millis(20));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn place(test: &str, order: Order) -> Option<Place> {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(&dir.path().join("journal")).unwrap();
    let name = format!("curve-{}", std::process::id());
    // Filled without any shortage, in which the kernel ends a process at times rather than swap.
    let limits = Limits { memory: Bytes(2 * PAGES * PAGE), swap: None, swappiness: Some(100) };
    let group = match Cgroup::make(&journal, "curve", &name, &limits) {
        Err(ChangeError::Lacks { what, .. }) => {
            println!("SKIP {test}: {what}");
            return None;
        }
        group => group.unwrap(),
    };
    let size = Bytes(3 * PAGES * PAGE);
    let zram = Zram::add(&journal, "curve", size, None).unwrap();
    let file = File::options().read(true).write(true).open(zram.path()).unwrap();
    swap_area::format(&file, size, "tiermark").unwrap();
    drop(file);
    let swap = SwapOn::on(&journal, "curve", zram.path(), Some(32767)).unwrap();
    let mut toucher = Toucher::start(test, order, PAGES, LOADS, group.groups());
    toucher.touched()?;
    Some(Place { toucher, group, _swap: swap, _zram: zram, _journal: journal, _dir: dir })
}

/// What it really does at this limit: touches a second, and pages missed for each touch. Time in which it waited for a
/// processor is left out: others work on this machine too.
fn measure(place: &mut Place, time: Duration) -> Option<(f64, f64)> {
    let now = |place: &mut Place| {
        let touched = place.toucher.touched()?;
        Some((touched, place.toucher.faults(), place.toucher.waited(), Instant::now()))
    };
    let (touched, faults, waited, begun) = now(place)?;
    std::thread::sleep(time);
    let (touched_then, faults_then, waited_then, end) = now(place)?;
    let took = (end - begun).as_secs_f64() - (waited_then - waited);
    let touches = (touched_then - touched) as f64;
    Some((touches / took, (faults_then - faults) as f64 / touches))
}

/// Watches it until the curve is known up to so much more than today, for a while at least.
fn watch(place: &mut Place, more: u64) -> Option<(Curve, Today, Account)> {
    let mut accesses = Accesses::open(place.toucher.pid(), Options::default()).unwrap();
    let whole = accesses.account().whole;
    let mut reuse = Reuse::new(Bytes(whole.0 / 512), accesses.account().ratio);
    let begun = Instant::now();
    let known = |reuse: &Reuse, account: Account| {
        let curve = Curve::of(reuse, account.elapsed, account.movable());
        curve.is_some_and(|curve| curve.known.0 >= account.resident.0 + more)
    };
    for ms in (0..).step_by(5) {
        let enough = ms >= 6000 && ms % 1000 == 0 && known(&reuse, accesses.account());
        if enough || begun.elapsed() > Duration::from_secs(20) {
            break;
        }
        std::thread::sleep(PERIOD.into());
        let mut each = |seen| match seen {
            Seen::Ready { at } => reuse.begin(at),
            Seen::Entered { key } => reuse.enter(key),
            Seen::Touched { at, key, bytes } => reuse.touch(at, key, bytes),
            Seen::Thinned { below, ratio } => reuse.thin(below, ratio),
        };
        if !accesses.poll(&mut each).unwrap() {
            return None;
        }
    }
    let account = accesses.account();
    let curve = Curve::of(&reuse, account.elapsed, account.movable()).unwrap();
    Some((curve, Today::of(&account, Bytes(PAGE)).unwrap(), account))
}

/// One order of touching: what is said at one limit about two others, and what is then seen there. True when all of it is
/// within a fifth; None when it could not be tried, or when the kernel ended the process rather than swap, as it does at times
/// after its limit was lowered.
fn holds(test: &str, order: Order) -> Option<bool> {
    const TIME: Duration = Duration::from_millis(2000);
    let Some(_alone) = alone() else {
        println!("SKIP {test}: another's swap stays on");
        return None;
    };
    let mut place = place(test, order)?;
    // What was made room for has to come in first, which is missed once and never again.
    let settle = |place: &Place, limit: u64| {
        place.limit(limit);
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(400));
        while place.used() < limit - MIB && begun.elapsed() < Duration::from_secs(8) {
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // Upwards: a limit that is lowered may end the process.
    settle(&place, LESS);
    let less = measure(&mut place, TIME)?;
    settle(&place, TODAY);
    let now = measure(&mut place, TIME)?;
    let (touched, waited, begun) = (place.toucher.touched()?, place.toucher.waited(), Instant::now());
    let (curve, today, account) = watch(&mut place, MORE - TODAY)?;
    let took = begun.elapsed().as_secs_f64() - (place.toucher.waited() - waited);
    let watched = (place.toucher.touched()? - touched) as f64 / took;
    let again = measure(&mut place, TIME)?;
    settle(&place, MORE);
    let more = measure(&mut place, TIME)?;
    if swaps() != 1 {
        println!("  another's swap came between");
        return None;
    }
    println!(
        "{order:?}, {} touched in {} of memory: {:.2} passes/s, while watched {:.2}, then {:.2}; {:.0} faults a pass",
        Bytes(PAGES * PAGE),
        Bytes(TODAY),
        now.0 / PAGES as f64,
        watched / PAGES as f64,
        again.0 / PAGES as f64,
        now.1 * PAGES as f64
    );
    println!(
        "  watched: stalled {:.3}, {} a fault, {} units, 1 in {:.0}, {} held, overhead {:.1} %, own CPU {:.1} %",
        today.stalled,
        account.fault.unwrap_or_default(),
        account.units,
        account.ratio.recip(),
        account.held,
        100.0 * account.overhead,
        100.0 * account.own_cpu.secs() / account.elapsed.secs(),
    );
    assert_eq!(account.lost, 0);
    let mut all = true;
    // Each beside today's nearest to it, since the machine is not the same all the time.
    for (limit, seen, now) in [(LESS, less, now), (MORE, more, again)] {
        let expected = curve.predict(&today, limit as i64 - TODAY as i64);
        assert!(expected.known, "{expected:?}");
        let (speed, misses) = (seen.0 / now.0, seen.1 / now.1);
        println!(
            "  {}: passes/s {:.2} expected, {:.2} seen; faults a pass {:.0} expected, {:.0} seen",
            Bytes(limit),
            now.0 * expected.speed / PAGES as f64,
            seen.0 / PAGES as f64,
            now.1 * expected.misses.unwrap() * PAGES as f64,
            seen.1 * PAGES as f64,
        );
        let near = |expected: f64, seen: f64| (expected / seen - 1.0).abs() < 0.2;
        all &= near(expected.speed, speed) && near(expected.misses.unwrap(), misses);
    }
    Some(all)
}

#[test]
fn what_is_said_of_other_limits_is_seen_there() {
    const NAME: &str = "what_is_said_of_other_limits_is_seen_there";
    if let Ok(orders) = std::env::var(toucher::ORDERS) {
        return toucher::serve(&orders);
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/class/zram-control/hot_add").exists() {
        return println!("SKIP {NAME}: needs root and zram");
    }
    if std::env::var_os("TIERMARK_TEST_FULL").is_none() {
        return println!(
            "SKIP {NAME}: holds speeds against each other, three times each; TIERMARK_TEST_FULL=1 runs it"
        );
    }
    for order in [Order::Cyclic, Order::Uniform, Order::Zipf(0.8)] {
        // Others work on this machine too: of three tries two must hold.
        let tries: Vec<Option<bool>> = (0..3).map(|_| holds(NAME, order)).collect();
        let of = |held: bool| tries.iter().filter(|one| **one == Some(held)).count();
        if of(true) + of(false) < 2 {
            println!("SKIP {NAME} for {order:?}: it could not be tried to the end");
            continue;
        }
        assert!(of(true) > of(false), "{order:?}: {tries:?}");
    }
}
