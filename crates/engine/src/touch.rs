//! Memory that may not fit into RAM, touched page by page. Each touch is timed by itself; one that took long enough for it
//! asks the kernel whether it met a major fault, and those have a histogram of their own. Closed loop only: an operation
//! that waits for a page keeps its thread, as it would in a program.

use crate::entropy::Filler;
use crate::geometry::Share;
use crate::worker::{Finish, Worker};
use crate::{Ended, EngineError};
use basics::{Bytes, Job, Latencies, Nanos};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Instant;
use sys::region::Region;

/// No major fault is faster: even a page out of compressed memory takes more. Asking the kernel takes half a µs.
const LEAST: Nanos = Nanos(1000);
/// Filled between two looks at whether to go on.
const PIECE: usize = 1 << 20;

/// Touches block after block until the job ends.
pub(crate) fn touch(mut worker: Worker<'_>, region: &Region) -> Finish {
    let clock = worker.clock;
    let least = worker.rate.ticks(LEAST.0 as f64) as u64;
    let mut faults = Latencies::new();
    let mut seen = sys::thread::major_faults();
    let mut now = clock.ticks();
    let mut value = 0;
    let ended = loop {
        if worker.stop.load(Relaxed) {
            break None;
        }
        if now >= worker.tally.horizon && worker.tally.cross(now, 0, 0) {
            break Some(Ended::Time);
        }
        if let Some(ended) = worker.tally.all_sent() {
            break Some(ended);
        }
        let op = worker.stream.next(worker.tally.bytes_left());
        worker.tally.sent(1, u64::from(op.len));
        let (at, len) = (op.offset as usize, op.len as usize);
        if op.read {
            black_box(region.load(at, len));
        } else {
            value += 1;
            region.stamp(at, len, value);
        }
        let begin = now;
        now = clock.ticks();
        worker.tally.record(&op, begin, begin, now);
        if now - begin >= least {
            let all = sys::thread::major_faults();
            if all != seen && begin >= worker.timeline.measure {
                faults.record(Nanos(worker.rate.nanos((now - begin) as f64) as u64));
            }
            seen = all;
            // What asking took is nobody's latency.
            now = clock.ticks();
        }
    };
    Finish { faults, ..worker.finish(ended, || Ok(())) }
}

/// Fills a region with what the job writes, each thread the part that it is going to touch, in rising order, and goes through
/// it once more where `again`, so that what will be swapped has its copy there, as after a while. False when
/// `cancel` was set meanwhile; `told` is called now and then with how much is done.
///
/// # Errors
/// When no thread can be had, or the job does not fit.
pub fn fill(
    job: &Job,
    region: &Region,
    again: bool,
    cancel: &AtomicBool,
    mut told: impl FnMut(Bytes),
) -> Result<bool, EngineError> {
    /// Between two looks.
    const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
    let shares = crate::geometry::shares_within(job, Bytes(region.size() as u64), true)?;
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(shares.len());
        for share in &shares {
            let fill = || part(job, region, share, again, (&stop, &done));
            let thread = std::thread::Builder::new().spawn_scoped(scope, fill);
            threads.push(thread.map_err(|source| {
                stop.store(true, Relaxed);
                EngineError::System { what: "a thread that fills memory", source }
            })?);
        }
        let mut last = Instant::now();
        while !threads.iter().all(|thread| thread.is_finished()) {
            stop.fetch_or(cancel.load(Relaxed), Relaxed);
            std::thread::sleep(LOOK);
            if last.elapsed() > 5 * LOOK {
                last = Instant::now();
                told(Bytes(done.load(Relaxed)));
            }
        }
        Ok(!stop.load(Relaxed))
    })
}

fn part(job: &Job, region: &Region, share: &Share, again: bool, (stop, done): (&AtomicBool, &AtomicU64)) {
    let mut filler = Filler::new(job.entropy, job.seed, u64::from(share.thread));
    let mut piece = vec![0; PIECE];
    let (mut at, end) = (share.base as usize, (share.base + share.len) as usize);
    while at < end && !stop.load(Relaxed) {
        let len = PIECE.min(end - at);
        // Anew for each piece: pages that are alike would be one to zram and zswap.
        filler.fill(&mut piece[..len]);
        region.fill(at, &piece[..len]);
        at += len;
        done.fetch_add(len as u64, Relaxed);
    }
    if again {
        let pieces = (share.base as usize..end).step_by(PIECE).take_while(|_| !stop.load(Relaxed));
        pieces.for_each(|at| {
            black_box(region.load(at, PIECE.min(end - at)));
        });
    }
}
