//! The memory curve of a workload, as data: what it would miss with other amounts of RAM, what it missed with today's, and how
//! that was seen. A record keeps it; what follows from it is for `study`.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Misses against memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Curve {
    /// Memory of the workload, rising from 0, and the bytes that it would miss a second, never rising: of a second at the
    /// speed at which it was watched.
    pub points: Vec<(Bytes, f64)>,
    /// Up to here it was seen; from here to where all fits it is a straight line, and may be anything below its beginning.
    pub known: Bytes,
    /// From here on all fits.
    pub whole: Bytes,
    /// Sampled touches on which it stands.
    pub touches: u64,
}

/// What is measured at today's size.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Today {
    /// What of the workload is in RAM and can leave it.
    pub resident: Bytes,
    /// Bytes missed a second: pages that came by a fault and were not new.
    pub missed: f64,
    /// Major faults for each page that is missed; below 1 where readahead brings several.
    pub major: f64,
    /// Part of the time that faults take, those of watching not counted.
    pub stalled: f64,
    /// Seconds that a missed byte costs.
    pub cost: f64,
    /// Part of the time that watching took.
    pub overhead: f64,
    /// Length of a page.
    pub page: Bytes,
}

/// A workload that was watched for its curve while it was measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// The limit of its memory meanwhile, where it had one.
    pub limit: Option<Bytes>,
    /// The other limits of which it is asked what they would bring.
    pub asked: Vec<Bytes>,
    /// For how long.
    pub time: Nanos,
    /// What was seen; None when it was too little.
    pub seen: Option<(Curve, Today)>,
    /// Why nothing was seen, where that is not for want of time.
    pub trouble: Option<String>,
    /// Faults of which the kernel's ring had no room to tell.
    pub lost: u64,
}
