//! Single requests as ioping sums them up, with a histogram in powers of two.

use crate::model::RunView;
use basics::Nanos;
use basics::stats::{mean, median, quantile, stdev};
use serde::Serialize;

/// Latencies of single requests, µs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ping {
    /// Requests that were answered.
    pub requests: u64,
    /// The quickest.
    pub min_us: f64,
    /// Arithmetic mean.
    pub avg_us: f64,
    /// Median.
    pub p50_us: f64,
    /// One in a hundred takes longer.
    pub p99_us: f64,
    /// The slowest.
    pub max_us: f64,
    /// Standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mdev_us: Option<f64>,
    /// From the quickest to the slowest without a gap.
    pub histogram: Vec<Bar>,
}

/// How many requests took how long.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// At least.
    pub from_us: f64,
    /// Less than.
    pub to_us: f64,
    /// So many.
    pub requests: u64,
}

/// Characters of the longest bar.
const WIDEST: u64 = 40;

pub(super) fn figures(run: &RunView<'_>) -> Option<Ping> {
    let step = run.steps.iter().find(|step| step.name == "ping" && step.is_whole())?;
    let each: Vec<f64> = step.each.iter().map(|each| each.latency.us()).collect();
    // An answer in no time at all would have no power of two.
    let power = |us: f64| us.max(1e-3).log2().floor() as i32;
    let least = each.iter().copied().map(power).min()?;
    let most = each.iter().copied().map(power).max()?;
    let bar = |exponent: i32| {
        let requests = each.iter().filter(|us| power(**us) == exponent).count() as u64;
        Bar { from_us: f64::from(exponent).exp2(), to_us: f64::from(exponent + 1).exp2(), requests }
    };
    Some(Ping {
        requests: each.len() as u64,
        min_us: quantile(&each, 0.0)?,
        avg_us: mean(&each)?,
        p50_us: median(&each)?,
        p99_us: quantile(&each, 0.99)?,
        max_us: quantile(&each, 1.0)?,
        mdev_us: stdev(&each),
        histogram: (least..=most).map(bar).collect(),
    })
}

impl Ping {
    pub(super) fn lines(&self) -> Vec<String> {
        let time = |us: f64| Nanos((us * 1e3).round() as u64).to_string();
        let [min, avg, max] = [self.min_us, self.avg_us, self.max_us].map(time);
        let mdev = self.mdev_us.map_or_else(String::new, |mdev| format!(" / {}", time(mdev)));
        let heads = if self.mdev_us.is_some() { "min/avg/max/mdev" } else { "min/avg/max" };
        let mut lines = vec![format!("{} requests: {heads} = {min} / {avg} / {max}{mdev}", self.requests)];
        let most = self.histogram.iter().map(|bar| bar.requests).max().unwrap_or(1).max(1);
        lines.extend(self.histogram.iter().map(|bar| {
            let length = (bar.requests * WIDEST).div_ceil(most) as usize;
            let bars = "#".repeat(length);
            format!("{:>7} to {:>7} {:>5} {bars}", time(bar.from_us), time(bar.to_us), bar.requests)
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::{Bytes, Each};

    #[test]
    fn requests_are_counted_one_by_one() {
        let run = Run::of("ping", &[]).steps([Step::page_read("sda", Nanos(100_000)).named("ping")]);
        let each = [100u64, 120, 140, 600].map(|us| Each {
            offset: Bytes(0),
            len: Bytes(4096),
            read: true,
            at: Nanos(0),
            latency: Nanos(us * 1000),
            waited: Nanos(0),
        });
        let mut view = run.view();
        assert_eq!(figures(&view), None, "none was kept");
        view.steps[0].each = &each;
        let ping = figures(&view).unwrap();
        assert_eq!((ping.requests, ping.min_us, ping.avg_us, ping.max_us), (4, 100.0, 240.0, 600.0));
        let bars: Vec<_> = ping.histogram.iter().map(|bar| (bar.from_us, bar.requests)).collect();
        assert_eq!(bars, [(64.0, 2), (128.0, 1), (256.0, 0), (512.0, 1)]);
        assert!(ping.lines()[0].starts_with("4 requests: min/avg/max/mdev = 100 µs / 240 µs / 600 µs / "), "{ping:?}");
        assert!(ping.lines()[1].ends_with(&"#".repeat(40)), "{:?}", ping.lines());
    }
}
