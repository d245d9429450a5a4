//! Little's law as an audit: operations a second × mean latency, summed over directions, are the operations in flight.
//! Figures of a closed loop must sum to its depth; those that do not are of another depth, or leave out a part of the time.
//! The only place where this is computed: for published rows, for what is imported, for our own steps and for the fit.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Rate and mean latency of one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Operations a second.
    pub iops: f64,
    /// Mean latency, µs; absent where none is known.
    pub mean_us: Option<f64>,
}

/// Deviation of the sum from the depth, as a part of it, from which on figures contradict each other. Good rows of fio at
/// depth 4 sum to 3.89 and 3.93; one slot that is always left out shows up to a depth of 12.
pub const OFF: f64 = 0.08;

/// Figures that sum to no more than this, for each thread, are those of one operation at a time.
const ALONE: f64 = 1.3;

/// Why figures do not sum to their depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// An operation is done when its submission returns: memory, a compressed device, an engine without a queue.
    InSubmission,
    /// One slot's time is missing: what a program counts from the end of a submission that blocks (fio's clat).
    BlockedInSubmission,
    /// Fewer were in flight than asked, or latencies leave out more than that.
    Fewer,
    /// One at a time was asked, and part of the time lies between one and the next.
    Between,
    /// More than there can be: the figures are of different moments or of another depth.
    More,
}

/// Why nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsaid {
    /// A rate without a latency.
    NoLatency,
    /// Operations are due at their times, however many are in flight.
    OpenLoop,
    /// Time passes in syncs that belong to no operation.
    Syncs,
    /// Too few operations for the depth: what begins and ends with the step is a part to mind.
    Few,
    /// Threads that had done their share did nothing while others went on.
    Shares,
    /// It did not come to its end.
    Unfinished,
    /// Memory is touched in batches; latencies leave out what lies between.
    Batches,
}

/// What figures sum to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// To the depth.
    Consistent,
    /// To something else.
    Off(Cause),
    /// Cannot be said.
    Unsaid(Unsaid),
}

/// Figures held against the depth that they are said to be of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// IOPS × mean latency over the directions whose latency is known.
    pub sum: f64,
    /// Operations in flight that were asked for: depth × threads.
    pub depth: f64,
    /// What to make of it.
    pub verdict: Verdict,
}

/// Holds the figures of a closed loop against its depth.
///
/// `depth` is what each of `threads` keeps in flight. `slack` is the part of the sum by which the figures may miss it for
/// reasons that are known (an operation that was under way at the end, the time between two operations), beside [`OFF`].
/// `in_submission` says that the target is known to complete operations in submission.
pub fn audit(flows: &[Flow], depth: u32, threads: u32, slack: f64, in_submission: bool) -> Audit {
    let moving = || flows.iter().filter(|flow| flow.iops > 0.0);
    let sum: f64 = moving().filter_map(|flow| Some(flow.iops * flow.mean_us? / 1e6)).sum();
    let asked = f64::from(depth) * f64::from(threads);
    let verdict = if moving().next().is_none() || moving().any(|flow| flow.mean_us.is_none()) {
        Verdict::Unsaid(Unsaid::NoLatency)
    } else if (sum / asked - 1.0).abs() <= OFF + slack {
        Verdict::Consistent
    } else if sum > asked {
        Verdict::Off(Cause::More)
    } else if in_submission || (depth > 1 && sum <= ALONE * f64::from(threads)) {
        Verdict::Off(Cause::InSubmission)
    } else if depth > 1 && (sum / (asked - f64::from(threads)) - 1.0).abs() <= OFF {
        Verdict::Off(Cause::BlockedInSubmission)
    } else {
        Verdict::Off(if depth > 1 { Cause::Fewer } else { Cause::Between })
    };
    Audit { sum, depth: asked, verdict }
}

impl Audit {
    /// One about which nothing can be said.
    pub fn unsaid(why: Unsaid) -> Self {
        Audit { sum: 0.0, depth: 0.0, verdict: Verdict::Unsaid(why) }
    }
    /// True when the figures contradict each other.
    pub fn is_off(&self) -> bool {
        matches!(self.verdict, Verdict::Off(_))
    }
    /// The sentence to put beside figures that contradict each other, without its full stop.
    pub fn mark(&self) -> Option<String> {
        let Verdict::Off(cause) = self.verdict else { return None };
        let of = match cause {
            Cause::More | Cause::Between => String::new(),
            _ => format!("; the latencies are those of depth {:.0}", self.sum.max(1.0)),
        };
        Some(format!("IOPS × mean latency sums to {:.2}, not to the depth of {}: {cause}{of}", self.sum, self.depth))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cause::InSubmission => "operations complete in submission",
            Cause::BlockedInSubmission => "latencies leave out the time blocked in submission",
            Cause::Fewer => "fewer were in flight than asked",
            Cause::Between => "part of the time is in no operation",
            Cause::More => "more than there can be, so the figures are not of the same moments or the same depth",
        })
    }
}

impl fmt::Display for Unsaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsaid::NoLatency => "no mean latency is known",
            Unsaid::OpenLoop => "an open loop has no fixed depth",
            Unsaid::Syncs => "time passes in syncs outside of operations",
            Unsaid::Few => "too few operations for the depth",
            Unsaid::Shares => "threads that had done their share waited for the others",
            Unsaid::Unfinished => "it did not come to its end",
            Unsaid::Batches => "memory is touched in batches",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Consistent, Off};

    fn at(flows: &[(f64, f64)], depth: u32) -> Audit {
        let flows: Vec<Flow> = flows.iter().map(|(iops, us)| Flow { iops: *iops, mean_us: Some(*us) }).collect();
        audit(&flows, depth, 1, 0.0, false)
    }

    #[test]
    fn figures_sum_to_their_depth_or_it_is_said_to_what() {
        for (flows, depth, sum, verdict) in [
            // The rows of the swap table: Optane, SATA, and the SD card that fio fed at depth 3 while 4 was asked.
            (&[(11_700.0, 217.0), (5005.0, 278.0)][..], 4, 3.93, Consistent),
            (&[(5006.0, 704.0), (2150.0, 171.0)], 4, 3.89, Consistent),
            (&[(496.0, 3430.0), (211.0, 6520.0)], 4, 3.08, Off(Cause::BlockedInSubmission)),
            (&[(212_000.0, 3.07), (91_000.0, 3.07)], 4, 0.93, Off(Cause::InSubmission)),
            // RAM at its true depth: what lies between two operations is within the bounds.
            (&[(212_000.0, 3.07), (91_000.0, 3.07)], 1, 0.93, Consistent),
            (&[(1000.0, 16_000.0)], 32, 16.0, Off(Cause::Fewer)),
            (&[(1000.0, 40_000.0)], 32, 40.0, Off(Cause::More)),
        ] {
            let found = at(flows, depth);
            assert!((found.sum - sum).abs() < 0.01, "{found:?}");
            assert_eq!(found.verdict, verdict, "{flows:?}");
            assert_eq!(found.mark().is_some(), verdict != Consistent);
        }
    }

    #[test]
    fn a_direction_without_latency_leaves_it_open_and_one_without_operations_does_not() {
        let half = [Flow { iops: 100.0, mean_us: Some(1e4) }, Flow { iops: 100.0, mean_us: None }];
        assert_eq!(audit(&half, 1, 1, 0.0, false).verdict, Verdict::Unsaid(Unsaid::NoLatency));
        let idle = [half[0], Flow { iops: 0.0, mean_us: None }];
        assert_eq!(audit(&idle, 1, 1, 0.0, false).verdict, Consistent);
        assert_eq!(audit(&[], 1, 1, 0.0, false).verdict, Verdict::Unsaid(Unsaid::NoLatency));
    }

    #[test]
    fn slack_widens_and_threads_multiply() {
        let eight = [Flow { iops: 700.0, mean_us: Some(1e4) }];
        assert!(audit(&eight, 4, 2, 0.0, false).is_off());
        assert!(!audit(&eight, 4, 2, 0.05, false).is_off());
    }

    #[test]
    fn the_mark_is_a_sentence_with_both_numbers() {
        let mark = at(&[(496.0, 3430.0), (211.0, 6520.0)], 4).mark().unwrap();
        assert_eq!(
            mark,
            "IOPS × mean latency sums to 3.08, not to the depth of 4: latencies leave out the time blocked in \
             submission; the latencies are those of depth 3"
        );
    }
}
