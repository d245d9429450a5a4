//! The knee of a sweep over depths: from which depth on a device gives no more operations, and what queueing beyond it
//! costs. Beyond saturation, Little's law turns each further operation in flight into latency alone.

use serde::Serialize;

/// Share of the most operations a second that counts as all of them: less than runs of one device differ by.
pub(crate) const ALL: f64 = 0.95;

/// Where a curve bends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Knee {
    /// The smallest depth of the sweep that gives 95 % of the most operations a second.
    pub depth: u32,
    /// Operations a second there.
    pub iops: f64,
    /// Mean latency there, µs.
    pub mean_us: f64,
    /// Mean latency at the deepest point over that here: what queueing beyond it costs.
    pub beyond: f64,
}

/// The knee of points of depth, operations a second and mean latency in µs. None where fewer than three points were
/// measured, or the deepest is the first that saturates: then the device may have more to give.
pub fn knee(points: &[(u32, f64, f64)]) -> Option<Knee> {
    let most = points.iter().map(|(_, iops, _)| *iops).reduce(f64::max)?;
    let (_, _, last_us) = *points.last()?;
    let at = points.iter().position(|(_, iops, _)| *iops >= ALL * most)?;
    let (depth, iops, mean_us) = points[at];
    (points.len() >= 3 && at + 1 < points.len() && mean_us > 0.0).then(|| Knee {
        depth,
        iops,
        mean_us,
        beyond: last_us / mean_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of so many channels of 100 µs.
    fn curve(channels: u32) -> Vec<(u32, f64, f64)> {
        let point = |depth: u32| {
            let iops = f64::from(depth.min(channels)) * 1e4;
            (depth, iops, f64::from(depth) / iops * 1e6)
        };
        [1, 2, 4, 8, 16, 32, 64].map(point).to_vec()
    }

    #[test]
    fn the_knee_is_where_the_channels_are_full() {
        for channels in [1, 4, 16, 32] {
            let knee = knee(&curve(channels)).unwrap();
            assert_eq!((knee.depth, knee.mean_us.round()), (channels, 100.0));
            assert!((knee.beyond - 64.0 / f64::from(channels)).abs() < 1e-6, "{knee:?}");
        }
        assert_eq!(knee(&curve(64)), None, "it rises to the end");
        assert_eq!(knee(&curve(1)[..2]), None);
    }
}
