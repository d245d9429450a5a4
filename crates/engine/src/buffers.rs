//! How the buffer of a slot is divided: a part that reads fill, and several that writes are taken from in turn, so that
//! neighbouring writes do not carry the same bytes even at depth 1.

use crate::entropy::Filler;
use crate::stream::Op;
use basics::job::Entropy;
use basics::{EngineUse, Job};
use sys::memory::{Buffer, Pages};

/// What all write buffers of a job together are at least: beyond the windows of compressors (128 KiB for btrfs, 32 KiB for
/// deflate, 64 KiB for LZ4), divided over the threads.
const POOL: usize = 16 << 20;
/// And what one thread's are at least and at most, unless its depth needs more.
const POOL_OF_THREAD: std::ops::RangeInclusive<usize> = 256 << 10..=1 << 20;
const PAGE: usize = 4096;

/// The layout of one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    block: usize,
    reads: usize,
    parts: usize,
}

impl Layout {
    /// For `slots` slots a thread.
    pub(crate) fn new(job: &Job, slots: u32) -> Self {
        let block = (job.block.largest().0 as usize).next_multiple_of(PAGE);
        let pool = (POOL / job.threads as usize).clamp(*POOL_OF_THREAD.start(), *POOL_OF_THREAD.end());
        let varied = matches!(job.entropy, Entropy::Incompressible | Entropy::Compressible);
        let parts = match job.direction.writes() {
            false => 0,
            true if varied => (pool / block.saturating_mul(slots as usize)).max(1),
            true => 1,
        };
        Layout { block, reads: usize::from(job.direction.reads()), parts }
    }
    /// Bytes of a slot.
    pub(crate) fn stride(&self) -> usize {
        self.block * (self.reads + self.parts)
    }
    /// Fills what will be written.
    pub(crate) fn fill(&self, slot: &mut [u8], filler: &mut Filler) {
        filler.fill(&mut slot[self.reads * self.block..]);
    }
    /// Where in the slot the `turn`th write begins; reads are at 0.
    #[inline]
    pub(crate) fn part(&self, turn: usize) -> usize {
        self.block * (self.reads + turn % self.parts.max(1))
    }
}

/// What the job's buffers are to be made of.
pub(crate) fn pages(job: &Job) -> Pages {
    if job.wants_huge_pages() { Pages::Huge } else { Pages::Usual }
}

/// What is not as asked of buffers that stay in RAM, each with the reason.
pub(crate) fn without(job: &Job, locked: std::io::Result<()>, buffer: &Buffer) -> Vec<(String, String)> {
    let unlocked = locked.err().map(|error| ("locked buffers".to_owned(), error.to_string()));
    let scattered = match job.wants_huge_pages().then(|| buffer.is_huge()) {
        None | Some(Ok(true)) => None,
        Some(Ok(false)) => Some("the kernel has none of 2 MiB, or none free".to_owned()),
        Some(Err(error)) => Some(format!("not known whether the kernel gave them: {error}")),
    };
    let scattered = scattered.map(|why| (EngineUse::HUGE_PAGES.to_owned(), why));
    unlocked.into_iter().chain(scattered).collect()
}

/// Chooses and stamps the part for a write: its place in the slot.
#[inline]
pub(crate) fn prepare(layout: &Layout, filler: &mut Filler, turn: usize, slot: &mut [u8], op: &Op) -> usize {
    let at = layout.part(turn);
    filler.stamp(&mut slot[at..at + op.len as usize], op.offset);
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::Direction;

    #[test]
    fn reads_never_touch_what_is_written() {
        let job = Job { direction: Direction::Mixed { read_percent: 50 }, ..Job::default() };
        let layout = Layout::new(&job, 4);
        assert_eq!(layout.part(0), 4096);
        assert_eq!(layout.stride(), 4096 + (1 << 20) / 4);
        let mut slot = vec![0; layout.stride()];
        layout.fill(&mut slot, &mut Filler::new(job.entropy, 1, 0));
        assert!(slot[..4096].iter().all(|&b| b == 0));
        let op = Op { offset: 0, len: 4096, read: false };
        let mut filler = Filler::new(job.entropy, 1, 0);
        let places: Vec<usize> = (0..65).map(|t| prepare(&layout, &mut filler, t, &mut slot, &op)).collect();
        assert_eq!(places[64], places[0], "in turn");
        assert!(places[..64].windows(2).all(|w| w[1] == w[0] + 4096));
    }

    #[test]
    fn reads_alone_need_one_block() {
        assert_eq!(Layout::new(&Job::default(), 32).stride(), 4096);
    }
}
