//! What a job means on a given target: which bytes each thread may use, how many operations and bytes are its share. All
//! that cannot be is refused here, before anything is touched.

use crate::{EngineError, Target};
use basics::units::GIB;
use basics::{Bytes, Job};

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

/// Each thread's share of `job` on `target`.
pub(crate) fn shares(job: &Job, target: &Target<'_>) -> Result<Vec<Share>, EngineError> {
    let unit = job.block.smallest().0;
    let threads = u64::from(job.threads);
    let len = match target {
        Target::File { len, .. } => len.0,
        Target::Memory { size } => size.0,
        Target::Null { .. } => NOTHING,
    };
    if let Target::File { alignment, direct: true, .. } = target
        && let Some(bad) = [job.offset.0, unit].into_iter().find(|v| !v.is_multiple_of(alignment.0.max(1)))
    {
        return Err(geometry(format!(
            "direct I/O here wants multiples of {alignment}, not {}; choose another bs or offset, or direct=false",
            Bytes(bad)
        )));
    }
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
    let apart = job.separate_regions || matches!(target, Target::Memory { .. });
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

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Block, Stop};
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
