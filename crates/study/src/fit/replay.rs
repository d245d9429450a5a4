//! A closed loop on a device model, small enough to be asked hundreds of times: which structure explains the figures is
//! found by trying. The full simulation of a job is the engine's; here only the steady rate is of interest.

use basics::{Bytes, Nanos};
use profile::{Device, Profile, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is done, over and over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Work {
    /// Share of reads, 0 to 1.
    pub reads: f64,
    pub sequential: bool,
    pub size: u64,
    pub depth: u32,
    /// Sequences, each in a part of its own, over which the depth is spread.
    pub streams: u32,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Rate {
    /// Operations a second, both directions.
    pub iops: f64,
    /// Mean latency of reads and of writes, µs.
    pub mean_us: [f64; 2],
}

/// Region that is worked on: so large that random operations do not look sequential.
const REGION: u64 = 1 << 40;
/// Operations that are counted; with latencies as widely spread as those of an SD card their mean is known to 3 %.
pub(crate) const OPERATIONS: u64 = 6000;

/// An operation under way; what is done first comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flying {
    done: u64,
    sent: u64,
    stream: usize,
    read: bool,
}

/// The steady rate of a work on a device; nothing where the profile knows nothing of a direction.
pub(crate) fn replay(profile: &Profile, work: Work, seed: u64) -> Option<Rate> {
    let mut device = Device::new(profile, Bytes(REGION), seed);
    let mut flying: BinaryHeap<Reverse<Flying>> = BinaryHeap::new();
    let mut state = seed | 1;
    let part = REGION / u64::from(work.streams.max(1));
    let mut next: Vec<u64> = (0..u64::from(work.streams.max(1))).map(|stream| stream * part).collect();
    let mut submit = |device: &mut Device, now: u64, stream: usize| -> Option<Reverse<Flying>> {
        // Knuth's MMIX generator: only the spread over the region and the mix hang on it.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let read = ((state >> 40) as f64 / (1u64 << 24) as f64) < work.reads;
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 20) % (REGION / work.size) * work.size;
        let (offset, len) = (if work.sequential { next[stream] } else { random }, work.size);
        let begin = stream as u64 * part;
        next[stream] = begin + (next[stream] + len - begin) % (part - len);
        let request = if read { Request::Read { offset, len } } else { Request::Write { offset, len } };
        let done = device.submit(Nanos(now), request).ok()?.0.max(now + 1);
        Some(Reverse(Flying { done, sent: now, stream, read }))
    };
    for i in 0..work.depth {
        flying.push(submit(&mut device, 0, (i % work.streams.max(1)) as usize)?);
    }
    let warm = 4 * u64::from(work.depth);
    let (mut begun, mut now) = (0, 0);
    let (mut sum, mut count) = ([0u64; 2], [0u64; 2]);
    for i in 0..warm + OPERATIONS {
        let Some(Reverse(Flying { done, sent, stream, read })) = flying.pop() else { break };
        now = done;
        if i == warm {
            begun = now;
        } else if i > warm {
            sum[usize::from(!read)] += done - sent;
            count[usize::from(!read)] += 1;
        }
        flying.push(submit(&mut device, now, stream)?);
    }
    let mean = |side: usize| if count[side] > 0 { sum[side] as f64 / count[side] as f64 / 1e3 } else { 0.0 };
    let iops = (count[0] + count[1]) as f64 / Nanos(now.saturating_sub(begun).max(1)).secs();
    Some(Rate { iops, mean_us: [mean(0), mean(1)] })
}
