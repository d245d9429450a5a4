//! The endless stream of operations of one thread: where, how long, read or write. It knows no clock and no target.

use crate::geometry::Share;
use crate::order::{Visits, below};
use basics::Job;
use basics::job::{Block, Direction, Engine, Order};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Op {
    /// Place in the target.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: u32,
    pub(crate) read: bool,
}

/// Makes operations of a job within a share.
#[derive(Debug)]
pub(crate) struct Stream {
    base: u64,
    end: u64,
    unit: u64,
    visits: Visits,
    sizes: Sizes,
    /// When both directions come.
    mix: Option<Mix>,
    reads: bool,
    rng: Xoshiro256PlusPlus,
}

/// Reads and writes in random order, and in every hundred as many of each as asked: a coin for each operation would be off
/// by half a per cent in a minute of a slow disk, always the same way for the same seed.
#[derive(Debug)]
struct Mix {
    percent: u64,
    /// Of the present hundred.
    left: u64,
    reads_left: u64,
}

impl Mix {
    #[inline(always)]
    fn reads(&mut self, rng: &mut Xoshiro256PlusPlus) -> bool {
        if self.left == 0 {
            (self.left, self.reads_left) = (100, self.percent);
        }
        let read = below(self.left, rng) < self.reads_left;
        self.left -= 1;
        self.reads_left -= u64::from(read);
        read
    }
}

#[derive(Debug)]
enum Sizes {
    Fixed(u32),
    /// Sizes with cumulated weights, each above 0 (see `Job::check`).
    Split(Vec<(u32, u64)>),
    /// The same of values, each of a key of its own, that take no room from each other.
    Values(Vec<(u32, u64)>),
}

impl Stream {
    pub(crate) fn new(job: &Job, share: &Share) -> Self {
        // Threads and the two kinds of choice must not follow each other's numbers; seeding goes through splitmix64.
        let seed = job.seed.wrapping_add(u64::from(share.thread) << 32);
        let unit = match job.order {
            Order::Strided { align, .. } => align.0,
            _ => job.block.smallest().0,
        };
        let sizes = match &job.block {
            Block::Fixed(size) => Sizes::Fixed(size.0 as u32),
            Block::Split(parts) => {
                let mut sum = 0;
                let cumulate = |(size, weight): &(basics::Bytes, u32)| {
                    sum += u64::from(*weight);
                    (size.0 as u32, sum)
                };
                let parts = parts.iter().map(cumulate).collect();
                if job.engine == Engine::Resp { Sizes::Values(parts) } else { Sizes::Split(parts) }
            }
        };
        let mix = match job.direction {
            Direction::Mixed { read_percent } if job.direction.reads() && job.direction.writes() => {
                Some(Mix { percent: u64::from(read_percent), left: 0, reads_left: 0 })
            }
            _ => None,
        };
        Stream {
            base: share.base,
            end: share.base + share.len,
            unit,
            visits: Visits::new(job.order, share.len / unit, seed),
            sizes,
            mix,
            reads: job.direction.reads(),
            rng: Xoshiro256PlusPlus::seed_from_u64(!seed),
        }
    }

    /// The next operation, of at most `most` bytes (a multiple of the smallest block, not 0).
    #[inline(always)]
    pub(crate) fn next(&mut self, most: u64) -> Op {
        let offset = self.base + self.visits.next() * self.unit;
        let len = match &self.sizes {
            // Only places that do not lie a block apart may have less than that before the end.
            Sizes::Fixed(len) => u64::from(*len).min(self.end - offset),
            Sizes::Values(sizes) => chosen(sizes, &mut self.rng),
            Sizes::Split(sizes) => {
                let len = chosen(sizes, &mut self.rng).min(self.end - offset);
                self.visits.skip(len / self.unit - 1);
                len
            }
        };
        let read = match &mut self.mix {
            None => self.reads,
            Some(mix) => mix.reads(&mut self.rng),
        };
        Op { offset, len: len.min(most) as u32, read }
    }
}

/// One of the sizes, by their weights.
#[inline(always)]
fn chosen(sizes: &[(u32, u64)], rng: &mut Xoshiro256PlusPlus) -> u64 {
    let total = sizes.last().map_or(1, |(_, sum)| *sum);
    let pick = below(total, rng);
    sizes.iter().find(|(_, sum)| pick < *sum).map_or(0, |(len, _)| u64::from(*len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Bytes;
    use basics::job::Order;

    fn share(len: u64) -> Share {
        Share { thread: 0, base: 8192, len, operations: u64::MAX, bytes: u64::MAX }
    }

    #[test]
    fn a_split_keeps_to_its_weights_and_region() {
        let block = Block::Split(vec![(Bytes(4096), 3), (Bytes(65536), 1)]);
        for order in [Order::Sequential, Order::Permuted] {
            let mut stream = Stream::new(&Job { block: block.clone(), order, ..Job::default() }, &share(1 << 30));
            let mut small = 0;
            for _ in 0..10_000 {
                let op = stream.next(u64::MAX);
                assert!(op.offset >= 8192 && op.offset + u64::from(op.len) <= 8192 + (1 << 30));
                small += u32::from(op.len == 4096);
            }
            assert!((7300..7700).contains(&small), "{small}");
        }
    }

    /// Each key is set once, whatever the length of its value.
    #[test]
    fn values_take_no_room_from_each_other() {
        let block = Block::Split(vec![(Bytes(64), 70), (Bytes(500), 25), (Bytes(4096), 5)]);
        let job = Job { block, order: Order::Sequential, engine: Engine::Resp, ..Job::default() };
        job.check().unwrap();
        let mut stream = Stream::new(&job, &share(64 * 10_000));
        let ops: Vec<Op> = (0..10_000).map(|_| stream.next(u64::MAX)).collect();
        assert!(ops.iter().enumerate().all(|(at, op)| op.offset == 8192 + 64 * at as u64));
        let of = |len| ops.iter().filter(|op| op.len == len).count();
        assert!((6800..7200).contains(&of(64)) && (400..600).contains(&of(4096)), "{} {}", of(64), of(4096));
        assert_eq!(of(64) + of(500) + of(4096), 10_000);
    }

    /// Sequential operations of different sizes follow each other without gap or overlap, and wrap at the end.
    #[test]
    fn sequential_is_gapless_whatever_the_sizes() {
        let block = Block::Split(vec![(Bytes(4096), 1), (Bytes(16384), 1)]);
        let mut stream = Stream::new(&Job { block, ..Job::default() }, &share(100 * 4096));
        let mut expected = 8192;
        for _ in 0..1000 {
            let op = stream.next(u64::MAX);
            assert_eq!(op.offset, expected);
            expected += u64::from(op.len);
            if expected == 8192 + 100 * 4096 {
                expected = 8192;
            }
        }
    }

    #[test]
    fn a_mix_is_as_asked() {
        let direction = Direction::Mixed { read_percent: 70 };
        let mut stream = Stream::new(&Job { direction, ..Job::default() }, &share(1 << 20));
        let reads: Vec<bool> = (0..10_000).map(|_| stream.next(u64::MAX).read).collect();
        assert!(reads.chunks(100).all(|hundred| hundred.iter().filter(|read| **read).count() == 70));
        // Random within: two reads follow each other in about half of all pairs (0.7 × 0.7).
        let pairs = reads.windows(2).filter(|pair| pair[0] && pair[1]).count();
        assert!((4600..5200).contains(&pairs), "{pairs}");
        assert_eq!(stream.next(512).len, 512);
    }
}
