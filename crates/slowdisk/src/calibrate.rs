//! What the way through FUSE and the loop device costs on this machine now, and the most it carries. Requests of a constant
//! time go through the loop device itself: what they take beyond that is the way, and beyond the kernel's account the part
//! of it outside. Requests of no time at all then show how many of them a second this machine can take.

use crate::asked::{Asked, Program, Seen, What};
use crate::disk::Disk;
use crate::error::{SlowdiskError, io_at};
use crate::registry::Most;
use crate::way::{Account, MOST_OUTSIDE_PER_BYTE, MOST_SCATTER, Way};
use basics::Nanos;
use std::path::Path;

/// What each request of the probe takes: long enough to sleep for, as real ones are.
const DELAY: Nanos = Nanos(200_000);
/// Time for the small requests, and for the large ones, the flushes and those of no time.
const SMALL: u64 = 250;
const LARGE: u64 = 100;
/// Requests under way at a time, when there are several: the depth of the published swap tables.
pub(crate) const CROWD: u32 = 4;
/// Requests under way when the most is asked for, small ones and large ones.
const MANY: u32 = 32;
const SOME: u32 = 8;
/// Sizes of both.
const SIZES: [u64; 2] = [4096, 512 << 10];
/// Writes go to no more than so much, from the start; it is a hole again afterwards.
const WRITTEN: u64 = 16 << 20;

/// The loop device under measurement.
pub(crate) struct Calibration<'a> {
    pub disk: &'a Disk,
    pub device: &'a Path,
    pub account: Option<&'a Account>,
    pub program: &'a Program<'a>,
}

impl Calibration<'_> {
    /// The way, of reads alone: what a write costs by its size is taken to be the same, because the same bytes are copied; the
    /// kernel's account corrects it from the first requests on.
    pub fn way(&self) -> Result<Way, SlowdiskError> {
        self.disk.probe(Some(DELAY));
        let measured = self.measure();
        self.disk.probe(None);
        measured
    }

    /// Of what small and large requests take beyond the delay, what a quarter does not exceed: the middle of the quiet half,
    /// so that another program's burst at the start is not taken for the way.
    fn measure(&self) -> Result<Way, SlowdiskError> {
        let beyond = |quarter: f64| (quarter - DELAY.0 as f64).max(0.0);
        let [small_len, large_len] = [SIZES[0], self.large()].map(|len| len as f64);
        let (alone, alone_outside) = self.reads(1, SIZES[0], SMALL)?;
        let (crowd, crowd_outside) = self.reads(CROWD, SIZES[0], SMALL)?;
        let (large, large_outside) = self.reads(1, SIZES[1], LARGE)?;
        let (small, large) = (beyond(alone.p25_ns), beyond(large.p25_ns));
        let each_byte = |beyond: f64| (beyond / (large_len - small_len)).max(0.0);
        let per_byte = each_byte(large - small);
        let mut way = Way::new((small - small_len * per_byte).max(0.0), per_byte, [alone_outside, crowd_outside]);
        // What is outside is a part of the way: no more than all of it, whatever other programs did meanwhile.
        way.outside_per_byte = each_byte(large_outside - alone_outside).min(per_byte).min(MOST_OUTSIDE_PER_BYTE);
        way.scatter = [scatter(alone), scatter(crowd)];
        way.flush = beyond(self.ask(What::Flush, 1, 0, LARGE)?.p25_ns);
        Ok(way)
    }

    /// What it carries.
    pub fn most(&self) -> Result<Most, SlowdiskError> {
        self.disk.probe(Some(Nanos(0)));
        // Without it, for lack of memory or on a kernel that refuses, the disk is as good.
        let rate = |what, depth, len: u64| match self.ask(what, depth, len, LARGE) {
            Ok(seen) => Some(seen.rate()),
            Err(error) => {
                tracing::info!("what the way carries is not known: {error}");
                None
            }
        };
        let iops = |what| rate(what, MANY, SIZES[0]).map(f64::round);
        let mbps = |what| rate(what, SOME, SIZES[1]).map(|rate| (rate * self.large() as f64 / 1e6).round());
        let most = Most {
            read_iops: iops(What::Read),
            write_iops: iops(What::Write),
            read_mbps: mbps(What::Read),
            write_mbps: mbps(What::Write),
        };
        self.disk.probe(None);
        self.disk.blank(self.disk.size.min(WRITTEN)).map_err(io_at("empty", self.device))?;
        Ok(most)
    }

    /// The large size, on this disk.
    fn large(&self) -> u64 {
        SIZES[1].min(self.disk.size)
    }

    fn ask(&self, what: What, depth: u32, len: u64, time_ms: u64) -> Result<Seen, SlowdiskError> {
        let region = if what == What::Write { self.disk.size.min(WRITTEN) } else { self.disk.size };
        let asked = Asked { what, region, len: len.min(region), depth, time_ms };
        (self.program)(&asked, asked.open(self.device)?)
    }

    /// Reads, and what they take on average beyond the kernel's account.
    fn reads(&self, depth: u32, len: u64, time_ms: u64) -> Result<(Seen, f64), SlowdiskError> {
        let account = || self.account.and_then(|account| account.read().ok()).map(|[reads, _]| reads);
        let before = account();
        let seen = self.ask(What::Read, depth, len, time_ms)?;
        let outside = match (before, account()) {
            (Some(before), Some(after)) if is_account_of(after.since(before).requests, seen.requests) => {
                (seen.mean_ns - after.since(before).mean()).max(0.0)
            }
            _ => 0.0,
        };
        Ok((seen, outside))
    }
}

/// Whether the kernel's account is that of the requests seen. It is not where the kernel takes them apart, where it keeps none,
/// and where a slow machine made the program ask again.
fn is_account_of(kernel: u64, seen: u64) -> bool {
    (seen..=seen + seen / 5).contains(&kernel)
}

/// Standard deviation as the middle four fifths have it: what is beyond may be another program's doing.
fn scatter(seen: Seen) -> f64 {
    // Of a normal law: 1.2816 deviations to either side.
    ((seen.p90_ns - seen.p10_ns) / (2.0 * 1.2816)).clamp(0.0, MOST_SCATTER)
}
