//! What a job means on a given target: which bytes each thread may use, how many operations and bytes are its share. All
//! that cannot be is refused here, before anything is touched.

use crate::buffers::{Layout, pages};
use crate::{EngineError, Target, memory, resp};
use basics::job::Engine;
use basics::units::GIB;
use basics::{Bytes, Job};
use sys::memory::{HUGE_PAGE, Pages};

/// One thread's part of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its number, from 0.
    pub(crate) thread: u32,
    /// First byte of its region in the target.
    pub(crate) base: u64,
    /// Length of its region, a multiple of the smallest block.
    pub(crate) len: u64,
    /// Operations that it counts, at most.
    pub(crate) operations: u64,
    /// Bytes that it counts, at most: a multiple of the smallest block.
    pub(crate) bytes: u64,
}

/// What a null target pretends to hold.
const NOTHING: u64 = 1024 * GIB;

fn geometry(sentence: String) -> EngineError {
    EngineError::Geometry(sentence)
}

/// `total` divided over `n`, the first get the remainder.
fn part(total: u64, n: u64, index: u64) -> u64 {
    total / n + u64::from(index < total % n)
}

/// Refuses blocks and offsets that direct I/O cannot move.
pub(crate) fn aligned(job: &Job, alignment: Bytes) -> Result<(), EngineError> {
    let mut lengths = [job.offset, job.block.smallest()].into_iter();
    match lengths.find(|length| !length.0.is_multiple_of(alignment.0.max(1))) {
        None => Ok(()),
        Some(bad) => Err(geometry(format!(
            "direct I/O here wants multiples of {alignment}, not {bad}; choose another bs or offset, or direct=false"
        ))),
    }
}

/// Each thread's share of `job` on `target`.
pub(crate) fn shares(job: &Job, target: &Target<'_>) -> Result<Vec<Share>, EngineError> {
    let len = match target {
        Target::File { len, .. } => len.0,
        Target::Memory { size } => size.0,
        Target::Touched { region } => region.size() as u64,
        Target::Keys(keys) => keys.count.saturating_mul(job.block.smallest().0),
        Target::Null { .. } => NOTHING,
    };
    if let Target::File { alignment, direct: true, .. } = target {
        aligned(job, *alignment)?;
    }
    let apart = job.separate_regions || matches!(target, Target::Memory { .. } | Target::Touched { .. });
    if let Target::Keys(keys) = target
        && !job.depth.is_multiple_of(keys.pipeline.max(1))
    {
        return Err(geometry(format!(
            "{} requests on the way are no multiple of the {} on each connection; choose whole connections",
            job.depth, keys.pipeline
        )));
    }
    let shares = shares_within(job, Bytes(len), apart)?;
    let each = shares.first().map_or(0, |share| share.len);
    if matches!(target, Target::Memory { .. }) && memory::is_chase(job.order) && each < memory::LINE as u64 {
        return Err(geometry(format!(
            "{} thread(s) on {} of memory have {} each, less than one cache line of {}; choose a larger size or fewer \
             threads",
            job.threads,
            job.size.unwrap_or(Bytes(len)),
            Bytes(each),
            Bytes(memory::LINE as u64)
        )));
    }
    Ok(shares)
}

/// The same on anything that holds `len`, each thread in a region `apart` or all in the same.
pub(crate) fn shares_within(job: &Job, len: Bytes, apart: bool) -> Result<Vec<Share>, EngineError> {
    let (unit, threads, len) = (job.block.smallest().0, u64::from(job.threads), len.0);
    let left = len.saturating_sub(job.offset.0);
    let size = job.size.map_or(left, |size| size.0);
    if size > left {
        return Err(geometry(format!(
            "a region of {} from {} on does not fit the target's {}; choose a smaller size or offset",
            Bytes(size),
            job.offset,
            Bytes(len)
        )));
    }
    let part_of_each = if apart { size / threads } else { size };
    let each = part_of_each - part_of_each % unit;
    if each < job.block.largest().0 {
        return Err(geometry(format!(
            "{} thread(s) on {} have {} each, less than one block of {}; choose a larger size or fewer threads",
            threads,
            Bytes(size),
            Bytes(part_of_each),
            job.block.largest()
        )));
    }
    let units = job.stop.bytes.map(|bytes| bytes.0.div_ceil(unit));
    Ok((0..threads)
        .map(|i| Share {
            thread: i as u32,
            base: job.offset.0 + if apart { i * each } else { 0 },
            len: each,
            operations: job.stop.operations.map_or(u64::MAX, |all| part(all, threads, i)),
            bytes: units.map_or(u64::MAX, |all| part(all, threads, i).saturating_mul(unit)),
        })
        .collect())
}

/// Refuses a job whose memory this machine does not have: `available` bytes, if that is known.
pub(crate) fn fits(job: &Job, target: &Target<'_>, available: Option<u64>) -> Result<(), EngineError> {
    let Some(available) = available else { return Ok(()) };
    let need = match target {
        // What was touched before is there, wherever it is.
        Target::Null { .. } | Target::Touched { .. } => 0,
        Target::Keys(_) => resp::memory(job),
        Target::Memory { size } => size.0,
        Target::File { .. } => {
            // Before the choice of an engine, since its probe makes a thread's buffers already.
            let slots = if matches!(job.engine, Engine::Psync | Engine::Mmap) { 1 } else { job.depth };
            let stride = Layout::new(job, slots).stride() as u64;
            let of_thread = stride.saturating_mul(u64::from(slots));
            let of_thread = match pages(job) {
                Pages::Usual => of_thread,
                Pages::Huge => of_thread.checked_next_multiple_of(HUGE_PAGE as u64).unwrap_or(u64::MAX),
            };
            of_thread.saturating_mul(u64::from(job.threads))
        }
    };
    if need <= available {
        return Ok(());
    }
    let (need, available) = (Bytes(need), Bytes(available));
    Err(geometry(match target {
        Target::File { .. } | Target::Keys(_) => format!(
            "the buffers for depth {} on {} thread(s) with blocks of {} take {need}, and {available} of memory are \
             available; choose a smaller depth or bs, or fewer threads",
            job.depth,
            job.threads,
            job.block.largest()
        ),
        _ => format!("{need} of memory are to be measured and {available} are available; choose a smaller size"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Block, Order, Stop};
    use basics::units::MIB;

    fn memory(size: u64) -> Target<'static> {
        Target::Memory { size: Bytes(size) }
    }

    #[test]
    fn shares_add_up() {
        let stop = Stop { operations: Some(10), bytes: Some(Bytes(9 * 4096 + 1)), ..Stop::default() };
        let job = Job { threads: 3, stop, ..Job::default() };
        let shares = shares(&job, &Target::Null { service: basics::Nanos(0), stall: None }).unwrap();
        assert_eq!(shares.iter().map(|s| s.operations).sum::<u64>(), 10);
        assert_eq!(shares.iter().map(|s| s.bytes).sum::<u64>(), 10 * 4096, "rounded up to a block");
        assert_eq!(shares[1].base, shares[0].len);
    }

    /// A line for each thread is enough for a chase, less is not.
    #[test]
    fn a_chase_needs_a_line_for_each_thread() {
        let job = |threads| Job { block: Block::Fixed(Bytes(8)), order: Order::Permuted, threads, ..Job::default() };
        for (size, threads) in [(8, 1), (64, 8), (64 * 8 - 8, 8)] {
            let message = shares(&job(threads), &memory(size)).unwrap_err().to_string();
            assert!(message.contains("cache line of 64 B"), "{message}");
        }
        assert_eq!(shares(&job(8), &memory(64 * 8)).unwrap().len(), 8);
    }

    #[test]
    fn memory_is_held_against_what_is_there() {
        let file = tempfile::tempfile().unwrap();
        let fd = std::os::fd::AsFd::as_fd(&file);
        let target = Target::File { fd, len: Bytes(GIB), alignment: Bytes(1), direct: false };
        let job = Job { depth: 4096, threads: 256, block: Block::Fixed(Bytes(GIB)), ..Job::default() };
        let message = fits(&job, &target, Some(64 * GIB)).unwrap_err().to_string();
        assert!(message.contains("take 1,024 TiB"), "{message}");
        assert!(message.contains("smaller depth"), "{message}");
        assert!(fits(&Job { engine: Engine::Psync, threads: 1, ..job.clone() }, &target, Some(GIB)).is_ok());
        assert!(fits(&job, &target, None).is_ok());
        assert!(fits(&job, &memory(GIB + 1), Some(GIB)).unwrap_err().to_string().contains("smaller size"));
        assert!(fits(&job, &memory(GIB), Some(GIB)).is_ok());
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_way_out() {
        let job = Job { block: Block::Fixed(Bytes(MIB)), threads: 4, ..Job::default() };
        let message = shares(&job, &memory(3 * MIB)).unwrap_err().to_string();
        assert!(message.contains("768 KiB each") && message.contains("fewer threads"), "{message}");
        let job = Job { offset: Bytes(MIB), size: Some(Bytes(MIB)), ..Job::default() };
        assert!(shares(&job, &memory(MIB)).unwrap_err().to_string().contains("does not fit"));
        let file = tempfile::tempfile().unwrap();
        let target =
            Target::File { fd: std::os::fd::AsFd::as_fd(&file), len: Bytes(MIB), alignment: Bytes(4096), direct: true };
        let job = Job { block: Block::Fixed(Bytes(512)), ..Job::default() };
        assert!(shares(&job, &target).unwrap_err().to_string().contains("multiples of 4 KiB"));
    }
}
