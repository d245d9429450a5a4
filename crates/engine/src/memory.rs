//! RAM. In sequence an operation is one block, summed or filled with the widest loads and stores that the compiler finds:
//! bandwidth. At random it is one load whose address the load before it delivers, so that nothing can be fetched ahead:
//! latency; such loads are timed in batches, each of which has one latency, the mean of its loads; a load counts as one
//! operation and as one line of 64 bytes, whatever the job's block. Pages are as the kernel gives them; a huge page spares address translations.

use crate::Ended;
use crate::geometry::Share;
use crate::order::Visits;
use crate::worker::{Finish, Worker};
use basics::job::Order;
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes that move between memory and cache at a time on all machines this runs on.
pub(crate) const LINE: usize = 64;
/// Dependent loads that are timed together: some 20 µs of DRAM, against which the clock's cost vanishes.
pub(crate) const LOADS: u64 = 256;
/// Latencies of single loads are counted in this fraction of a tick; a Raspberry Pi's counter ticks every 18 ns only.
pub(crate) const UNITS_PER_TICK: u64 = 256;

/// Does this job chase pointers?
pub(crate) fn is_chase(order: Order) -> bool {
    order != Order::Sequential
}

/// Words of eight bytes: what loads are made of.
pub(crate) type Word = u64;

/// Makes `memory` a ring of indices: each line names the next in a permutation of all.
pub(crate) fn link(memory: &mut [Word], seed: u64) {
    let words = LINE / size_of::<Word>();
    let lines = (memory.len() / words) as u64;
    if lines == 0 {
        return;
    }
    let mut visits = Visits::new(Order::Permuted, lines, seed);
    let first = visits.next() as usize * words;
    let mut from = first;
    for _ in 1..lines {
        let next = visits.next() as usize * words;
        memory[from] = next as Word;
        from = next;
    }
    memory[from] = first as Word;
}

/// Follows the ring until the job ends.
pub(crate) fn chase(mut worker: Worker<'_>, memory: &[Word], share: &Share) -> Finish {
    let clock = worker.clock;
    let mut now = clock.ticks();
    let mut at = 0usize;
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
        let most = worker.tally.bytes_left().div_ceil(LINE as u64);
        let n = LOADS.min(worker.tally.operations_left()).min(most);
        let begin = clock.ticks();
        for _ in 0..n {
            at = memory[at] as usize;
        }
        at = black_box(at);
        now = clock.ticks();
        let bytes = (n * LINE as u64).min(worker.tally.bytes_left());
        worker.tally.sent(n, bytes);
        let offset = share.base + (at * size_of::<Word>()) as u64;
        worker.tally.record_batch(n, (now - begin) * UNITS_PER_TICK / n, bytes, offset);
    };
    worker.finish(ended, || Ok(()))
}

/// Eight sums side by side: independent, so that loads overlap and the compiler may widen them.
fn sum(block: &[Word]) -> Word {
    let mut sums = [0 as Word; 8];
    let (lines, rest) = block.as_chunks::<8>();
    for line in lines {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().chain(rest).fold(0, |a, b| a.wrapping_add(*b))
}

/// Reads or fills block after block until the job ends.
pub(crate) fn stream(mut worker: Worker<'_>, memory: &mut [Word], share: &Share) -> Finish {
    let clock = worker.clock;
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
        let from = (op.offset - share.base) as usize / size_of::<Word>();
        let block = &mut memory[from..from + op.len as usize / size_of::<Word>()];
        if op.read {
            black_box(sum(black_box(block)));
        } else {
            value += 1;
            block.fill(value);
            black_box(block);
        }
        let begin = now;
        now = clock.ticks();
        worker.tally.record(&op, begin, begin, now);
    };
    worker.finish(ended, || Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ring comes back to its start after exactly all lines: none is left out, none comes twice.
    #[test]
    fn the_chase_visits_every_line() {
        for lines in [1usize, 2, 1000] {
            let mut memory = vec![0; lines * 8];
            link(&mut memory, 9);
            let mut at = 0;
            let mut seen = vec![false; lines];
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at / 8], true));
                at = memory[at] as usize;
            }
            assert_eq!(at, 0);
        }
    }

    #[test]
    fn a_sum_is_a_sum() {
        let words: Vec<Word> = (0..1003).collect();
        assert_eq!(sum(&words), 1002 * 1003 / 2);
    }
}
