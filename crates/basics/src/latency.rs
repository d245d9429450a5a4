//! The one histogram of the house: latencies in nanoseconds, 1 ns to 18 minutes at three significant digits, of a fixed
//! size whatever happens, mergeable, stored in HdrHistogram's own V2 deflate form so that other tools read it.

use crate::units::Nanos;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::LazyLock;
use thiserror::Error;

/// The longest latency told apart, 2^40 ns (about 18 minutes); longer ones count as this.
pub const LONGEST: Nanos = Nanos(1 << 40);

/// A stored histogram that could not be read.
#[derive(Debug, Error)]
#[error("a stored histogram cannot be read: {0}")]
pub struct CorruptHistogram(String);

/// A latency histogram. A new one is about 250 KB, all of it taken when it is made; one that was read back from storage
/// takes only the room of its filled buckets, until something is added to it.
#[derive(Debug, Clone)]
pub struct Latencies(Form);

#[derive(Debug, Clone)]
enum Form {
    /// Every bucket, ready to count.
    Open(Histogram<u64>),
    /// The filled buckets in ascending order: a latency of the bucket, and the count.
    Packed(Box<[(u64, u64)]>),
}

/// Tells the bounds of buckets, which are the same in all histograms of the house; nothing is ever counted in it.
static SHAPE: LazyLock<Histogram<u64>> = LazyLock::new(open);

fn open() -> Histogram<u64> {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the constructor accepts; a test holds it")]
    Histogram::new_with_bounds(1, LONGEST.0, 3).expect("constant bounds")
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Latencies {
    fn eq(&self, other: &Self) -> bool {
        self.buckets().eq(other.buckets())
    }
}

impl Latencies {
    /// An empty histogram.
    pub fn new() -> Self {
        Latencies(Form::Open(open()))
    }
    /// An empty histogram that takes its memory when something is first counted; not for measuring loops.
    pub fn lazy() -> Self {
        Latencies(Form::Packed(Box::default()))
    }
    /// The histogram with all its buckets.
    #[inline]
    fn opened(&mut self) -> &mut Histogram<u64> {
        if let Form::Packed(_) = self.0 {
            self.0 = Form::Open(self.unpacked().into_owned());
        }
        match &mut self.0 {
            Form::Open(histogram) => histogram,
            Form::Packed(_) => unreachable!("opened just above"),
        }
    }
    fn unpacked(&self) -> Cow<'_, Histogram<u64>> {
        match &self.0 {
            Form::Open(histogram) => Cow::Borrowed(histogram),
            Form::Packed(buckets) => {
                let mut histogram = open();
                buckets.iter().for_each(|(latency, n)| histogram.saturating_record_n(*latency, *n));
                Cow::Owned(histogram)
            }
        }
    }
    /// Counts one latency; never fails and, in a histogram that was made by [`Latencies::new`], never allocates.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        self.opened().saturating_record(latency.0);
    }
    /// Counts one latency `n` times.
    pub fn record_n(&mut self, latency: Nanos, n: u64) {
        self.opened().saturating_record_n(latency.0, n);
    }
    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        match &other.0 {
            // Both have the same bounds, so `add` cannot refuse; it must not pass in silence if that ever changes.
            Form::Open(histogram) => {
                if let Err(error) = self.opened().add(histogram) {
                    unreachable!("histograms of one shape: {error}");
                }
            }
            Form::Packed(buckets) => {
                let to = self.opened();
                buckets.iter().for_each(|(latency, n)| to.saturating_record_n(*latency, *n));
            }
        }
    }
    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Form::Open(histogram) => histogram.reset(),
            Form::Packed(buckets) => *buckets = Box::default(),
        }
    }
    /// Gives back the memory of the empty buckets.
    pub fn pack(&mut self) {
        if let Form::Open(histogram) = &self.0 {
            let filled = histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
            self.0 = Form::Packed(filled.collect());
        }
    }
    /// How many were counted.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Form::Open(histogram) => histogram.len(),
            Form::Packed(buckets) => buckets.iter().map(|(_, n)| n).sum(),
        }
    }
    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }
    /// Arithmetic mean; nothing when empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.exact_mean().round() as u64))
    }
    fn exact_mean(&self) -> f64 {
        match &self.0 {
            Form::Open(histogram) => histogram.mean(),
            Form::Packed(buckets) => {
                let sum: f64 = buckets.iter().map(|(latency, n)| middle(*latency) * *n as f64).sum();
                sum / self.count() as f64
            }
        }
    }
    /// Standard deviation; nothing when empty.
    pub fn stdev(&self) -> Option<Nanos> {
        let exact = || match &self.0 {
            Form::Open(histogram) => histogram.stdev(),
            Form::Packed(buckets) => {
                let mean = self.exact_mean();
                let squares = buckets.iter().map(|(latency, n)| (middle(*latency) - mean).powi(2) * *n as f64);
                (squares.sum::<f64>() / self.count() as f64).sqrt()
            }
        };
        (!self.is_empty()).then(|| Nanos(exact().round() as u64))
    }
    /// The latency that `percent` (0 to 100) of the operations did not exceed; nothing when empty.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let buckets = match &self.0 {
            Form::Open(histogram) => {
                let exact = || Nanos(histogram.value_at_percentile(percent).min(histogram.max()));
                return (!self.is_empty()).then(exact);
            }
            Form::Packed(buckets) => buckets,
        };
        let quantile = (percent / 100.0).min(1.0);
        let asked = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let mut passed = 0;
        let reached = buckets.iter().find(|(_, n)| {
            passed += n;
            passed >= asked
        });
        let bound = |&(latency, _): &(u64, u64)| match quantile == 0.0 {
            true => SHAPE.lowest_equivalent(latency),
            false => SHAPE.highest_equivalent(latency),
        };
        reached.map(bound).map(Nanos)
    }
    /// The smallest; nothing when empty.
    pub fn min(&self) -> Option<Nanos> {
        match &self.0 {
            Form::Open(histogram) => (!self.is_empty()).then(|| Nanos(histogram.min())),
            Form::Packed(buckets) => buckets.first().map(|(latency, _)| Nanos(SHAPE.lowest_equivalent(*latency))),
        }
    }
    /// The largest; nothing when empty.
    pub fn max(&self) -> Option<Nanos> {
        match &self.0 {
            Form::Open(histogram) => (!self.is_empty()).then(|| Nanos(histogram.max())),
            Form::Packed(buckets) => buckets.last().map(|(latency, _)| Nanos(SHAPE.highest_equivalent(*latency))),
        }
    }
    /// The filled buckets, as (highest latency of the bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let (open, packed) = match &self.0 {
            Form::Open(histogram) => (Some(histogram), None),
            Form::Packed(buckets) => (None, Some(buckets)),
        };
        let open = open.into_iter().flat_map(|histogram| histogram.iter_recorded());
        let open = open.map(|step| (Nanos(step.value_iterated_to()), step.count_at_value()));
        let packed = packed.into_iter().flat_map(|buckets| buckets.iter());
        open.chain(packed.map(|(latency, n)| (Nanos(SHAPE.highest_equivalent(*latency)), *n)))
    }
    /// HdrHistogram V2 deflate.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to a Vec does not fail, and every histogram of ours has bounds that the format holds.
        if let Err(error) = V2DeflateSerializer::new().serialize(&self.unpacked(), &mut out) {
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
        let ours = (stored.low(), stored.high(), stored.sigfig()) == (SHAPE.low(), SHAPE.high(), SHAPE.sigfig());
        let stored = if ours {
            stored
        } else {
            let mut same = open();
            same.add(&stored).map_err(|e| corrupt(format!("{e:?}")))?;
            same
        };
        let buckets = stored.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()));
        Ok(Latencies(Form::Packed(buckets.collect())))
    }
}

/// As text a histogram is its filled buckets: pairs of the highest latency in ns and the count.
impl Serialize for Latencies {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets().map(|(latency, n)| (latency.0, n)))
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(u64, u64)>::deserialize(deserializer)?;
        let mut all = Latencies::lazy();
        pairs.into_iter().for_each(|(latency, n)| all.record_n(Nanos(latency), n));
        all.pack();
        Ok(all)
    }
}

/// What the mean counts a bucket as.
fn middle(latency: u64) -> f64 {
    SHAPE.median_equivalent(latency) as f64
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
    fn a_histogram_that_was_read_says_what_it_said_and_counts_on() {
        let mut kept = Latencies::new();
        let empty = Latencies::from_bytes(&kept.to_bytes()).unwrap();
        assert_eq!((empty.max(), empty.min(), empty.mean(), empty.percentile(50.0)), (None, None, None, None));
        assert_eq!(empty, kept);
        assert_eq!(Latencies::lazy(), kept);
        let mut state = 1u64;
        for i in 0..5_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            kept.record(Nanos((state >> 33) >> (i % 30)));
        }
        let mut read = Latencies::from_bytes(&kept.to_bytes()).unwrap();
        assert!(matches!(read.0, Form::Packed(_)));
        let figures = |all: &Latencies| (all.count(), all.min(), all.max(), all.mean(), all.stdev(), all.to_bytes());
        assert_eq!(figures(&read), figures(&kept));
        for tenth in 0..=1000 {
            let percent = f64::from(tenth) / 10.0;
            assert_eq!(read.percentile(percent), kept.percentile(percent), "p{percent}");
        }
        let mut twice = kept.clone();
        twice.merge(&kept);
        read.merge(&Latencies::from_bytes(&kept.to_bytes()).unwrap());
        assert_eq!(figures(&read), figures(&twice));
        read.clear();
        assert_eq!(read, Latencies::new());
        read.record(Nanos(5));
        assert_eq!(read.count(), 1);
    }

    #[test]
    fn as_text_it_says_the_same() {
        let mut all = Latencies::new();
        (1..500u64).for_each(|i| all.record(Nanos(i * i * 97)));
        let text = serde_json::to_string(&all).unwrap();
        let back: Latencies = serde_json::from_str(&text).unwrap();
        assert_eq!(back, all);
        assert_eq!(serde_json::from_str::<Latencies>("[]").unwrap(), Latencies::new());
    }

    #[test]
    fn garbage_is_refused() {
        assert!(Latencies::from_bytes(b"no histogram").is_err());
        assert!(Latencies::from_bytes(&[]).is_err());
    }
}
