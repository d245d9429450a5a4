//! Intervals and directions in their stored form: histograms as HdrHistogram V2 deflate, nothing at all for an empty
//! one. The spool and the database keep the same bytes, so a commit copies them without looking inside.

use basics::latency::CorruptHistogram;
use basics::{Interval, Latencies, Nanos, Side};

/// One direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawSide {
    pub bytes: u64,
    pub latency: Option<Vec<u8>>,
    pub service: Option<Vec<u8>>,
    pub untimed: u64,
}

impl RawSide {
    pub fn of(side: &Side) -> Self {
        RawSide {
            bytes: side.bytes,
            latency: (!side.latency.is_empty()).then(|| side.latency.to_bytes()),
            service: side.service.as_ref().map(Latencies::to_bytes),
            untimed: side.untimed,
        }
    }

    pub fn side(&self) -> Result<Side, CorruptHistogram> {
        Ok(Side {
            bytes: self.bytes,
            latency: self.latency.as_deref().map_or_else(|| Ok(Latencies::lazy()), Latencies::from_bytes)?,
            service: self.service.as_deref().map(Latencies::from_bytes).transpose()?,
            untimed: self.untimed,
        })
    }
}

/// One interval of a series.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawInterval {
    pub start: Nanos,
    pub end: Nanos,
    pub position: u64,
    pub read: RawSide,
    pub write: RawSide,
}

impl RawInterval {
    pub fn of(interval: &Interval) -> Self {
        RawInterval {
            start: interval.start,
            end: interval.end,
            position: interval.position,
            read: RawSide::of(&interval.read),
            write: RawSide::of(&interval.write),
        }
    }

    pub fn interval(&self) -> Result<Interval, CorruptHistogram> {
        Ok(Interval {
            start: self.start,
            end: self.end,
            read: self.read.side()?,
            write: self.write.side()?,
            position: self.position,
        })
    }

    /// Little-endian u64 for start, end, position and each direction's bytes and untimed operations; a histogram is its
    /// length as u32 (0: none) and its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (read, write) = (&self.read, &self.write);
        let sides = [read.bytes, read.untimed, write.bytes, write.untimed];
        for number in [self.start.0, self.end.0, self.position].into_iter().chain(sides) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for histogram in [&self.read.latency, &self.read.service, &self.write.latency, &self.write.service] {
            let bytes = histogram.as_deref().unwrap_or_default();
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
    }

    /// The reverse of [`RawInterval::encode`]; nothing when the bytes do not add up.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut number = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let [start, end, position] = [number()?, number()?, number()?];
        let [(read, read_untimed), (write, write_untimed)] = [(number()?, number()?), (number()?, number()?)];
        let mut histogram = || {
            let (head, tail) = rest.split_first_chunk::<4>()?;
            let (blob, tail) = tail.split_at_checked(u32::from_le_bytes(*head) as usize)?;
            rest = tail;
            Some((!blob.is_empty()).then(|| blob.to_vec()))
        };
        let read = RawSide { bytes: read, latency: histogram()?, service: histogram()?, untimed: read_untimed };
        let write = RawSide { bytes: write, latency: histogram()?, service: histogram()?, untimed: write_untimed };
        rest.is_empty().then_some(RawInterval { start: Nanos(start), end: Nanos(end), position, read, write })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_survives_and_a_cut_one_is_refused() {
        let mut interval = Interval { start: Nanos(1), end: Nanos(2), position: u64::MAX, ..Interval::default() };
        interval.read.bytes = 4096;
        interval.read.untimed = 255;
        interval.read.latency.record(Nanos(71_000));
        interval.write.service = Some(Latencies::new());
        let raw = RawInterval::of(&interval);
        assert_eq!(raw.write.latency, None, "an empty histogram takes no room");
        let mut bytes = vec![];
        raw.encode(&mut bytes);
        assert_eq!(RawInterval::decode(&bytes).unwrap().interval().unwrap(), interval);
        for cut in 0..bytes.len() {
            assert_eq!(RawInterval::decode(&bytes[..cut]), None);
        }
        bytes.push(0);
        assert_eq!(RawInterval::decode(&bytes), None);
    }
}
