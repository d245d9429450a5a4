//! How fast a model will decode where memory does not hold it, without running it: from published figures alone an interval
//! between two laws of replacement, with a probe of this machine a figure; which disk to buy, and how much memory. Pure; the
//! probe and the miss-ratio curve are measured by others.
//!
//! The model of a token (FIELD-NOTES.md 14): H / memory's rate + m·H / R + 16 µs a page read / threads, where H is what it touches,
//! m the share of it that is read again and R the rate of the fault path. Swap's readahead is left out: what is known fits without. The terms are added: a thread that faults waits for
//! its page, all threads of a runner fault in the same matrix and meet at its end, so that hardly anything is left to compute
//! meanwhile. Where a disk serves one page at a time the other threads may compute during a wait, and readahead runs beside
//! them; a [`Probe`] can say how much that is, and its interval has room for it.

mod article;
mod contradiction;
mod curve;
mod fault;
mod figures;
mod law;
mod measured;
mod need;
mod paged;
mod probe;
mod table;

pub use article::{SideBySide, article, article_runs, pi5, usb_array};
pub use contradiction::{Contradiction, PublishedRun, contradictions};
pub use curve::{Curve, Purchase, Step, Work};
pub use fault::{FaultPath, Tier};
pub use figures::predict;
pub use law::random_misses;
pub use measured::probe_of;
pub use need::{Need, Usage};
pub(crate) use paged::round_s;
pub use paged::{paged_with_probe, predict_paged};
pub use probe::{Backing, Probe, ProbePoint, predict_with_probe, share_to_probe};
pub use table::{Row, Versus, predict_table, versus};

use basics::units::{GIB, significant};
use basics::{Bytes, Known};
use serde::{Deserialize, Serialize};

/// A machine to predict for: this one, or one that nobody here has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// What it is called.
    pub name: String,
    /// RAM as sold.
    pub ram: Bytes,
    /// The kernel's page size.
    pub page: Bytes,
    /// Threads with which a runner decodes.
    pub threads: u32,
    /// Bytes of weights that all threads multiply in a second when they are in memory, 10^6 a second, with 4 to 5 bits a weight as
    /// most downloads have.
    pub memory_mbps: Known<f64>,
    /// Weights that they multiply in a second, whatever their type: nearer to the truth, where somebody knows it.
    pub weights_per_s: Known<f64>,
    /// Least and most of the RAM that firmware, kernel and services keep to themselves; [`SYSTEM`] where nobody has looked.
    pub system: (Bytes, Bytes),
    /// Where the figures come from.
    pub source: String,
}

/// What firmware, kernel and services take of a small board's RAM as sold when no desktop runs: 153 MB on a Raspberry Pi 2 (of
/// 1 GiB 949,328 KiB are reported and 50,276 KiB in use without caches; pull request 105 of eidottermihi/rpicheck), 422 MB on a
/// Raspberry Pi 4 (of 4 GiB 3.7 are reported and 95 MiB in use; issue 99 of sakaki-/gentoo-on-rpi-64bit).
pub const SYSTEM: (Bytes, Bytes) = (Bytes(153_000_000), Bytes(422_000_000));

impl Board {
    /// Least and most memory that is left for what a token touches, with so much of the RAM taken away.
    pub fn left(&self, locked: Bytes, need: &Need) -> (Bytes, Bytes) {
        let beside = |system: Bytes| Bytes(self.ram.0.saturating_sub(locked.0 + system.0 + need.resident.0));
        (beside(self.system.1), beside(self.system.0))
    }
}

/// A prediction, as tokens a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// The one figure to give: with a probe what it says, else the geometric mean of both ends.
    pub tps: Known<f64>,
    /// The least that is to be expected.
    pub tps_low: Known<f64>,
    /// The most.
    pub tps_high: Known<f64>,
    /// Why, in one sentence without its full stop.
    pub why: String,
}

impl Predicted {
    /// Nothing can be said, for `lack` in a few words.
    pub fn unknown(lack: &str, why: String) -> Self {
        let none = || Known::not_measured(lack);
        Predicted { tps: none(), tps_low: none(), tps_high: none(), why }
    }

    /// True when `tps` lies within the interval; false where that is unknown.
    pub fn contains(&self, tps: f64) -> bool {
        match (&self.tps_low, &self.tps_high) {
            (Known::Is(low), Known::Is(high)) => (*low..=*high).contains(&tps),
            _ => false,
        }
    }
}

/// A size as people say it: RAM as sold in GiB, everything else in powers of ten.
pub(crate) fn said(bytes: Bytes) -> String {
    if bytes.0 > 0 && bytes.0.is_multiple_of(GIB / 4) {
        return bytes.to_string();
    }
    match bytes.0 {
        0..1_000_000 => format!("{} kB", significant(bytes.0 as f64 / 1e3)),
        1_000_000..1_000_000_000 => format!("{} MB", (bytes.0 as f64 / 1e6).round()),
        _ => format!("{} GB", significant(bytes.0 as f64 / 1e9)),
    }
}

/// Two sizes that are the same to a reader are said once.
pub(crate) fn between(low: Bytes, high: Bytes) -> String {
    let (low, high) = (said(low), said(high));
    if low == high { low } else { format!("{low} to {high}") }
}
