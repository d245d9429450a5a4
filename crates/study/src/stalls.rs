//! Stretches of a step in which almost nothing was done. One rule for findings and charts, so that what is shaded in the
//! one is what the other names.

use crate::model::StepView;
use crate::series::{self, Piece, Way};
use basics::stats::median;
use basics::{Interval, Nanos};

/// A piece below this share of the median rate is a stall.
const STALL: f64 = 0.25;
/// Fewest operations in a usual piece for an empty one to be a stall and not luck: at 8 expected, none at all comes by
/// chance once in 3000 pieces.
const USUAL: f64 = 8.0;
/// A shorter one is the scheduler's as likely as the disk's.
const FELT: Nanos = Nanos(50_000_000);

/// A stretch in which almost nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Since the measurement began, as the intervals are cut.
    pub from: Nanos,
    /// Since the measurement began, as the intervals are cut.
    pub to: Nanos,
    /// How long the device did not answer: never more than the largest latency that was seen meanwhile.
    pub lasted: Nanos,
}

/// The stalls of a step in order of time.
pub fn stalls(step: &StepView<'_>) -> Vec<Stall> {
    let pieces = settled(step, Way::Both);
    let counts: Vec<f64> = pieces.iter().map(|piece| piece.operations as f64).collect();
    let Some(usual) = median(&series::rates(&pieces)) else { return Vec::new() };
    if median(&counts).is_none_or(|count| count < USUAL) {
        return Vec::new();
    }
    let mut stretches: Vec<(Nanos, Nanos)> = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.rate() < STALL * usual) {
        match stretches.last_mut() {
            Some(last) if last.1 == piece.start => last.1 = piece.end,
            _ => stretches.push((piece.start, piece.end)),
        }
    }
    let stall = |(from, to): (Nanos, Nanos)| {
        let lasted = waited(step, from, to).map_or(to - from, |longest| longest.min(to - from));
        Stall { from, to, lasted }
    };
    stretches.into_iter().map(stall).filter(|stall| stall.lasted >= FELT).collect()
}

/// The pieces without the first: threads start and queues fill in it, so that its rate is no property of the device.
pub(crate) fn settled(step: &StepView<'_>, way: Way) -> Vec<Piece> {
    series::pieces(step, way).into_iter().filter(|piece| piece.start > Nanos(0)).collect()
}

/// The largest latency that was seen from `from` to the end of the interval after `to`, in which what hung is completed.
/// Nothing where none was completed, or where operations were not timed one by one.
fn waited(step: &StepView<'_>, from: Nanos, to: Nanos) -> Option<Nanos> {
    let seen = step.intervals.iter().filter(|interval| interval.end > from && interval.start <= to);
    seen.filter_map(|interval| longest(interval)).max()
}

fn longest(interval: &Interval) -> Option<Nanos> {
    // In an open loop latency counts from the intended time, and is long after the device has recovered.
    let of = |side: &basics::Side| side.service.as_ref().unwrap_or(&side.latency).max();
    let timed = [&interval.read, &interval.write].into_iter().filter(|side| side.is_each_timed());
    timed.filter_map(of).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;

    /// 30 operations in each 100 ms, but for `few`; `longest` is the latency of one operation in the interval after it.
    fn step(few: &[(usize, u64)], longest: (usize, Nanos)) -> Step {
        let mut counts = [30; 20];
        few.iter().for_each(|(at, count)| counts[*at] = *count);
        let mut step = Step::seq_write("sda", 1.0).replaced(&counts, Nanos(1_000_000));
        step.intervals[longest.0].write.latency.record(longest.1);
        step
    }

    #[test]
    fn a_stall_is_where_nothing_was_done_and_something_waited() {
        let step = step(&[(7, 2), (8, 0)], (9, Nanos(190_000_000)));
        let all = stalls(&step.view());
        assert_eq!((all.len(), all[0].from, all[0].to), (1, Nanos(700_000_000), Nanos(900_000_000)));
        assert!((190..192).contains(&(all[0].lasted.0 / 1_000_000)), "{all:?}");
    }

    /// Bug: 400 ms of slow work were called a stall of 400 ms though no operation took longer than 237.
    #[test]
    fn no_stall_is_longer_than_the_largest_latency() {
        let slow = [(7, 2), (8, 3), (9, 2), (10, 2)];
        let all = stalls(&step(&slow, (10, Nanos(237_000_000))).view());
        assert!((237..240).contains(&(all[0].lasted.0 / 1_000_000)), "{all:?}");
        assert_eq!(stalls(&step(&slow, (10, Nanos(20_000_000))).view()), [], "slow, and nothing hung");
    }

    /// Bug: the first interval, in which threads start, was a stall of the disk.
    #[test]
    fn the_ramp_is_no_stall() {
        assert_eq!(stalls(&step(&[(0, 0)], (1, Nanos(90_000_000))).view()), []);
    }
}
