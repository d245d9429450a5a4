//! The one histogram of the house: latencies in nanoseconds, 1 ns to 18 minutes at three significant digits, of a fixed
//! size whatever happens, mergeable, stored in HdrHistogram's own V2 deflate form so that other tools read it.

use crate::units::Nanos;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use thiserror::Error;

/// The longest latency told apart, 2^40 ns (about 18 minutes); longer ones count as this.
pub const LONGEST: Nanos = Nanos(1 << 40);

/// A stored histogram that could not be read.
#[derive(Debug, Error)]
#[error("a stored histogram cannot be read: {0}")]
pub struct CorruptHistogram(String);

/// A latency histogram. About 250 KB; all of it is taken when it is made.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Latencies {
    /// An empty histogram.
    pub fn new() -> Self {
        #[expect(
            clippy::expect_used,
            reason = "the bounds are constants that the constructor accepts; a test holds it"
        )]
        Latencies(Histogram::new_with_bounds(1, LONGEST.0, 3).expect("constant bounds"))
    }
    /// Counts one latency; never fails and never allocates.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.0.saturating_record(latency.0);
    }
    /// Counts one latency `n` times.
    pub fn record_n(&mut self, latency: Nanos, n: u64) {
        self.0.saturating_record_n(latency.0, n);
    }
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        // Both have the same bounds, so `add` cannot refuse; it must not pass in silence if that ever changes.
        if let Err(error) = self.0.add(&other.0) {
            unreachable!("histograms of one shape: {error}");
        }
    }
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }
    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Arithmetic mean; nothing when empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.mean().round() as u64))
    }
    /// Standard deviation; nothing when empty.
    pub fn stdev(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.stdev().round() as u64))
    }
    /// The latency that `percent` (0 to 100) of the operations did not exceed; nothing when empty.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.value_at_percentile(percent).min(self.0.max())))
    }
    /// The smallest; nothing when empty.
    pub fn min(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.min()))
    }
    /// The largest; nothing when empty.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.max()))
    }
    /// The filled buckets, as (highest latency of the bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|step| (Nanos(step.value_iterated_to()), step.count_at_value()))
    }
    /// HdrHistogram V2 deflate.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to a Vec does not fail, and every histogram of ours has bounds that the format holds.
        if let Err(error) = V2DeflateSerializer::new().serialize(&self.0, &mut out) {
            unreachable!("serialising to memory: {error:?}");
        }
        out
    }
    /// Reads what [`Latencies::to_bytes`] or another HdrHistogram wrote.
    ///
    /// # Errors
    /// When the bytes are no histogram, or hold values beyond [`LONGEST`] that cannot be merged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CorruptHistogram> {
        let corrupt = |error: String| CorruptHistogram(error);
        let stored: Histogram<u64> =
            Deserializer::new().deserialize(&mut &bytes[..]).map_err(|e| corrupt(format!("{e:?}")))?;
        let mut out = Self::new();
        out.0.add(&stored).map_err(|e| corrupt(format!("{e:?}")))?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_survive_storage() {
        let mut all = Latencies::new();
        for i in 1..=10_000u64 {
            all.record(Nanos(i * 1000));
        }
        all.record(Nanos(u64::MAX));
        let back = Latencies::from_bytes(&all.to_bytes()).unwrap();
        assert_eq!(back, all);
        assert_eq!(back.count(), 10_001);
        let p50 = back.percentile(50.0).unwrap().us();
        assert!((p50 - 5000.0).abs() < 5.0, "{p50}");
        assert!(back.max().unwrap() >= LONGEST);
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Latencies::from_bytes(b"no histogram").is_err());
        assert!(Latencies::from_bytes(&[]).is_err());
    }
}
