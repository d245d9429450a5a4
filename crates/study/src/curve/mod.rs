//! The miss-ratio curve of a running workload: what it would miss, and how fast it would be, with other amounts of memory. Pure:
//! sampled touches (`observe::accesses`) come in one by one, and what is measured at today's size beside them.
//!
//! **The law.** Reuse distances give the misses of a least-recently-used policy at every size at once (Mattson et al. 1970). Linux's two
//! lists, without LRU_GEN, come near that: a zram swap and 128 MiB of anonymous memory on 6.18, misses for each touch,
//!
//! | limit, MiB | cyclic | uniform (1 − kept) | zipf 0.8 | zipf 1.0 |
//! | --- | --- | --- | --- | --- |
//! | 32 | 1.000 | 0.753 (0.750) | 0.392 | 0.199 |
//! | 64 | 1.000 | 0.502 (0.500) | 0.212 | 0.095 |
//! | 96 | 1.000 | 0.253 (0.250) | 0.088 | 0.037 |
//! | 120 | 1.000 | 0.065 (0.063) | 0.019 | 0.008 |
//! | 144 | 0 | 0 | 0.000 | 0.001 |
//!
//! What the kernel did before matters too: after a change of the limit it kept up to a fifth of a cycle, the same fifth at every limit.
//! Therefore the curve of the policy is multiplied by what is missed today over what it says of today. That was better than
//! to take today's memory for more or less than it is, which finds no place on the flat part of a cycle.
//!
//! **Time.** A second of today is work and stalls. At another size the work stays, and the stalls change as the misses do: `1 − s + s · misses
//! / misses today`, s being the part of today's time that faults take. Where nothing is missed today, a fault takes what those took that
//! watching brought about.
//!
//! **Held against truth** (`crates/tiermark/tests/loads.rs`): 128 MiB on zram watched at 80, faults a pass at 56 and 104 MiB
//! within 5 % of what was expected for uniform touches and 1 % for a cycle, on a quiet machine and on a busy one.
//!
//! **Uncertain**: kernels with LRU_GEN keep something of a cycle (FIELD-NOTES.md 14), so that today's factor carries less
//! far. A fault is taken to cost the same at all sizes, which a disk that comes to its limit does not hold. What a fault takes is
//! timed without the processor's way in and out of it and the cold caches after it: where faults are as short as zram's and
//! the work between two of them is below a few µs, the speed at which all fits comes out too low, by half at worst. Sizes
//! beyond what was touched while watching are a straight line to where all fits, and said to be unknown.

mod purchase;
mod reuse;
#[cfg(test)]
mod tests;

use basics::curve::{Curve, Today};
use basics::{Bytes, Nanos};
use observe::accesses::Account;
pub use purchase::{Foreseen, Memory};
pub(crate) use purchase::{Unit, memory};
pub use reuse::Reuse;
use serde::{Deserialize, Serialize};

/// Sizes at which memory was full for less than this part of the time say nothing.
const LEAST: f64 = 0.2;
/// What is missed at a part of this of the most is nothing: a few pages that come late.
const NOTHING: f64 = 0.002;
/// The kernel misses this much of what a least-recently-used policy would, at the least and at the most; beyond is an error of
/// measurement.
const FACTOR: (f64, f64) = (0.5, 1.5);

/// What is to be expected at another size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// What of the workload is in RAM there, as much as there is room.
    pub resident: Bytes,
    /// Its speed, today's being 1.
    pub speed: f64,
    /// Bytes missed for a piece of work, in those that are missed for it today; None when nothing is missed today.
    pub misses: Option<f64>,
    /// Bytes missed a second.
    pub missed: f64,
    /// Major faults a second.
    pub major_per_s: f64,
    /// The curve was seen there, or all fits. If not, watching was too short: a workload has to come round a few times.
    pub known: bool,
}

/// From the account of watching; None when it was too short to time any fault, or to see how much is resident.
pub fn today(account: &Account, page: Bytes) -> Option<Today> {
    let seconds = account.elapsed.secs();
    let minor = account.minor.saturating_sub(account.fresh);
    // Sampled pages that were out by our doing would have been missed as often as the others, and what was not told is taken to be as
    // what was.
    let told = account.major + account.minor + account.induced;
    let untold = 1.0 + account.lost as f64 / told.max(1) as f64;
    let pages = untold * (account.major + minor) as f64 / (1.0 - account.ratio).max(0.5);
    let missed = pages * page.0 as f64 / seconds;
    let stalled = account.stalled?;
    let of_ours = account.induced_fault.secs() / page.0 as f64;
    let enough = pages > 100.0 && stalled > 0.001;
    (seconds > 0.0 && account.resident.0 > 0).then(|| Today {
        resident: Bytes(account.resident.0.saturating_sub(account.held.0)),
        missed,
        major: if enough { account.major as f64 / (account.major + minor) as f64 } else { 1.0 },
        stalled,
        cost: if enough { stalled / missed } else { of_ours },
        overhead: account.overhead,
        page,
    })
}

/// What the touches until `end` say; `whole` is all that the workload has, in RAM and out, and can leave it
/// ([`Account::movable`]). None before the sample was touched again often enough to say anything.
pub fn curve(reuse: &Reuse, end: Nanos, whole: Bytes) -> Option<Curve> {
    let mut points = reuse.missed(end, LEAST);
    let most = points.first().filter(|(_, most)| *most > 0.0)?.1;
    let mut before = f64::INFINITY;
    for (_, missed) in &mut points {
        // Sizes that were full later are counted over less time, which can make them seem to miss more.
        before = before.min(if *missed < NOTHING * most { 0.0 } else { *missed });
        *missed = before;
    }
    let known = points.last().map_or(Bytes(0), |(size, _)| *size);
    let whole = whole.max(known);
    points.push((whole, 0.0));
    Some(Curve { points, known, whole, touches: reuse.touches() })
}

/// Bytes that are missed a second with so much memory, kept by a least-recently-used policy.
pub fn missed(curve: &Curve, memory: Bytes) -> f64 {
    let memory = memory.0 as f64;
    let next = curve.points.partition_point(|(size, _)| (size.0 as f64) < memory);
    let Some((right, low)) = curve.points.get(next) else { return 0.0 };
    let Some((left, high)) = next.checked_sub(1).map(|before| curve.points[before]) else { return *low };
    let along = (memory - left.0 as f64) / (right.0 as f64 - left.0 as f64).max(1.0);
    high + (low - high) * along.clamp(0.0, 1.0)
}

/// What it would be with so many bytes of memory more than today, or less.
pub fn predict(curve: &Curve, today: &Today, change: i64) -> Prediction {
    let resident = Bytes(today.resident.0.saturating_add_signed(change));
    let (now, then) = (missed(curve, today.resident), missed(curve, resident));
    let differs = if now > 0.0 && today.missed > 0.0 { (today.missed / now).clamp(FACTOR.0, FACTOR.1) } else { 1.0 };
    let missed = then * differs;
    // Of many threads that all fault at once more may be told than there was time.
    let work = (1.0 - today.overhead).max(0.5);
    let time = (work + today.cost * (missed - today.missed)).max(work * (1.0 - today.stalled).max(0.001));
    let a_second = missed / time;
    Prediction {
        resident,
        speed: work / time,
        misses: (today.missed > 0.0).then(|| missed / today.missed),
        missed: a_second,
        known: resident <= curve.known || resident >= curve.whole,
        major_per_s: a_second / today.page.0 as f64 * today.major,
    }
}
