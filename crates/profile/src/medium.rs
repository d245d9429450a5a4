//! What an operation takes on the medium itself: latency, transfer, or a table by size.

use crate::distribution::Narrowed;
use crate::format::Pattern;
use basics::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Time on the medium.
#[derive(Debug, Clone)]
pub(crate) struct Medium {
    pub(crate) latency: Narrowed,
    us_per_byte: f64,
    /// Size in bytes and time in µs, rising.
    sizes: Vec<(f64, f64)>,
}

impl Medium {
    pub(crate) fn new(pattern: &Pattern) -> Self {
        let parse = |(size, us): (&String, &f64)| Some((size.parse::<Bytes>().ok()?.0 as f64, *us));
        let mut sizes: Vec<(f64, f64)> = pattern.size_us.iter().filter_map(parse).collect();
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let us_per_byte = pattern.bandwidth_mbps.map_or(0.0, |rate| 1.0 / rate);
        Medium { latency: Narrowed::new(pattern.latency_us.as_ref()), us_per_byte, sizes }
    }
    /// Nanoseconds until the bytes begin to move.
    pub(crate) fn latency(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        1e3 * self.latency.draw(rng)
    }
    /// Nanoseconds for so many bytes.
    pub(crate) fn transfer(&self, len: f64) -> f64 {
        1e3 * (len * self.us_per_byte + self.by_size(len))
    }
    fn by_size(&self, len: f64) -> f64 {
        let above = self.sizes.partition_point(|(size, _)| *size < len);
        match (above.checked_sub(1).map(|i| self.sizes[i]), self.sizes.get(above)) {
            (None, None) => 0.0,
            (None, Some((_, us))) => *us,
            // Beyond the largest: at its rate.
            (Some((size, us)), None) => us * len / size,
            (Some((small, low)), Some((large, high))) => low + (high - low) * (len - small) / (large - small),
        }
    }
}
