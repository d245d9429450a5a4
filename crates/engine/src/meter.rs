//! Where one thread counts its operations while another reads along. Every counter has a single writer, so counting is a
//! plain load and store, without lock or allocation; the collector reads at any moment, also while the writer is stuck
//! in a long operation, so nobody has to hand anything over. Latencies are counted in ticks of the clock; what a tick is
//! worth is known best at the end.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Latencies of 2^42 ticks (half an hour at 2.6 GHz) and more count as this.
const RANGE: u32 = 42;
/// Buckets that share one "touched" mark, so that the collector skips what was never used.
pub(crate) const CHUNK: usize = 64;
/// Memory that all histograms of a job may take together: half of what a run is allowed is left for everything else.
const BUDGET: usize = 12 << 20;

/// Buckets an octave, as a power of two: finest 2^9 (width 0.2 % of the value, its middle errs by 0.1 %), coarsest 2^5.
const FINEST: u32 = 9;
const COARSEST: u32 = 5;

/// Buckets of a histogram: linear below 2^resolution ticks, then 2^resolution to each octave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) resolution: u32,
}

impl Shape {
    /// The finest of which `histograms` stay within the budget.
    pub(crate) fn for_histograms(histograms: usize) -> Self {
        let fits = |resolution: &u32| Shape { resolution: *resolution }.buckets() * 4 * histograms <= BUDGET;
        Shape { resolution: (COARSEST..=FINEST).rev().find(fits).unwrap_or(COARSEST) }
    }
    pub(crate) fn buckets(self) -> usize {
        ((RANGE - self.resolution + 1) as usize) << self.resolution
    }
    /// The largest error of a bucket's middle, in per cent.
    pub(crate) fn error_percent(self) -> f64 {
        50.0 / f64::from(1u32 << self.resolution)
    }
    pub(crate) fn is_finest(self) -> bool {
        self.resolution == FINEST
    }
    #[inline(always)]
    fn index(self, ticks: u64) -> usize {
        let ticks = ticks.min((1 << RANGE) - 1);
        let shift = 63 - (ticks | (1 << self.resolution)).leading_zeros() - self.resolution;
        ((shift as usize) << self.resolution) + (ticks >> shift) as usize
    }
    /// The middle of a bucket in ticks.
    pub(crate) fn middle(self, index: usize) -> f64 {
        let shift = (index >> self.resolution).saturating_sub(1);
        let low = ((index - (shift << self.resolution)) as u64) << shift;
        low as f64 + ((1u64 << shift) - 1) as f64 / 2.0
    }
}

/// One histogram of one thread.
#[derive(Debug)]
pub(crate) struct Histogram {
    shape: Shape,
    counts: Box<[AtomicU32]>,
    touched: Box<[AtomicBool]>,
}

impl Histogram {
    fn new(shape: Shape) -> Self {
        let counts: Box<[AtomicU32]> = (0..shape.buckets()).map(|_| AtomicU32::new(0)).collect();
        // Fresh pages of zeros are not there until they are stored to.
        for count in counts.iter().step_by(512) {
            count.store(std::hint::black_box(0), Relaxed);
        }
        let touched = (0..shape.buckets().div_ceil(CHUNK)).map(|_| AtomicBool::new(false)).collect();
        Histogram { shape, counts, touched }
    }
    /// Counts a latency of so many ticks. By its one writer only.
    #[inline(always)]
    pub(crate) fn record(&self, ticks: u64) {
        let index = self.shape.index(ticks);
        let count = &self.counts[index];
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        self.touched[index / CHUNK].store(true, Relaxed);
    }
    /// The count of a bucket so far, modulo 2^32.
    pub(crate) fn count(&self, index: usize) -> u32 {
        self.counts[index].load(Relaxed)
    }
    /// Was any bucket of this chunk ever used? May lag behind by a moment, never for good.
    pub(crate) fn is_touched(&self, chunk: usize) -> bool {
        self.touched[chunk].load(Relaxed)
    }
}

/// One direction of one thread.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) latency: Histogram,
    /// Open loop only.
    pub(crate) service: Option<Histogram>,
    pub(crate) bytes: AtomicU64,
    /// Operations that were timed only together with one that is in `latency`.
    pub(crate) untimed: AtomicU64,
}

impl Lane {
    fn new(shape: Shape, open_loop: bool) -> Self {
        Lane {
            latency: Histogram::new(shape),
            service: open_loop.then(|| Histogram::new(shape)),
            bytes: AtomicU64::new(0),
            untimed: AtomicU64::new(0),
        }
    }
}

/// All that one thread counts; on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Meter {
    pub(crate) read: Option<Lane>,
    pub(crate) write: Option<Lane>,
    /// Offset of the last operation.
    pub(crate) position: AtomicU64,
}

impl Meter {
    pub(crate) fn new(shape: Shape, reads: bool, writes: bool, open_loop: bool) -> Self {
        Meter {
            read: reads.then(|| Lane::new(shape, open_loop)),
            write: writes.then(|| Lane::new(shape, open_loop)),
            position: AtomicU64::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A bucket's middle errs no more than the shape says, over the whole range and at each resolution.
        #[test]
        fn the_middle_is_near(resolution in COARSEST..=FINEST, ticks in 0u64..1 << RANGE, shift in 0u32..42) {
            let shape = Shape { resolution };
            let ticks = ticks >> shift;
            let index = shape.index(ticks);
            prop_assert!(index < shape.buckets());
            let error = (shape.middle(index) - ticks as f64).abs();
            prop_assert!(error <= 0.5 + ticks as f64 * shape.error_percent() / 100.0, "{ticks}: {error}");
        }
    }

    #[test]
    fn buckets_follow_each_other_and_end() {
        let shape = Shape { resolution: 5 };
        assert_eq!(shape.index(u64::MAX), shape.buckets() - 1);
        for i in 1..shape.buckets() {
            assert!(shape.middle(i) > shape.middle(i - 1));
            assert_eq!(shape.index(shape.middle(i) as u64), i);
        }
    }

    /// 64 threads that mix in open loop, and the most that a job may ask for: always within the budget.
    #[test]
    fn memory_is_bounded() {
        for histograms in [1, 64 * 4, 256 * 4] {
            let shape = Shape::for_histograms(histograms);
            assert!(shape.buckets() * 4 * histograms <= BUDGET);
            assert!(shape.error_percent() <= 1.0, "{histograms}: {shape:?}");
        }
        assert!(Shape::for_histograms(2).is_finest());
    }
}
