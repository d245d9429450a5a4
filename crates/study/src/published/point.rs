//! A step's direction as reviews print it: rate, confidence, and latency as mean, median, p99 and p99.999. The last is
//! given only where enough operations stand behind it; where not, it says how many of how many there are.

use crate::certainty::Certainty;
use crate::model::{StepSummary, StepView};
use crate::series::Way;
use basics::units::grouped;
use basics::{Known, Nanos};
use serde::Serialize;

/// Operations behind a p99.999: ten beyond it.
const FOR_FIVE_NINES: u64 = 1_000_000;

/// Latencies, µs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// One in a hundred takes longer.
    pub p99: f64,
    /// One in a hundred thousand takes longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_999: Option<f64>,
    /// Why there is no `p99_999`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_999_why: Option<String>,
    /// 95 % confidence interval of `mean`; absent below ten intervals of the series, as those below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_ci95: Option<[f64; 2]>,
    /// Of `p50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ci95: Option<[f64; 2]>,
    /// Of `p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_ci95: Option<[f64; 2]>,
}

/// One direction of one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// Operations a second.
    pub iops: f64,
    /// 10^6 bytes a second.
    #[serde(rename = "MBps")]
    pub mbps: f64,
    /// From submission to completion.
    pub lat_us: Latency,
    /// Half width of the 95 % confidence interval of `iops`, per cent of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95_percent: Option<f64>,
}

/// The reads and the writes of a step that came to its end; of each, what it did of them.
pub(super) fn of(step: &StepView<'_>) -> [Option<Figures>; 2] {
    if !step.is_whole() {
        return [None, None];
    }
    let StepSummary { read, write, .. } = crate::summarise(step);
    [(read, Way::Read), (write, Way::Write)].map(|(side, way)| {
        let side = side?;
        let certainty = Certainty::of(step, way);
        let ci95 = |percent| certainty.as_ref()?.percentile(percent);
        let us = |percent| side.lat.percentile(percent).map(Nanos::us);
        let p99_999 = us(99.999);
        let lat_us = Latency {
            mean: side.lat.mean.get()?.us(),
            p50: us(50.0)?,
            p99: us(99.0)?,
            p99_999,
            p99_999_why: p99_999.is_none().then(|| too_few(side.ops)),
            mean_ci95: certainty.as_ref().and_then(Certainty::mean),
            p50_ci95: ci95(50.0),
            p99_ci95: ci95(99.0),
        };
        let ci95_percent = Known::into_option(side.ci95_percent);
        Some(Figures { iops: side.iops, mbps: side.mbps, lat_us, ci95_percent })
    })
}

fn too_few(operations: u64) -> String {
    let words = |n: u64| grouped(i64::try_from(n).unwrap_or(i64::MAX));
    format!("not enough operations: {} of {}", words(operations), words(FOR_FIVE_NINES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;

    #[test]
    fn five_nines_take_a_million_operations() {
        let [few, none] = of(&Step::page_read("sda", Nanos(100_000)).view());
        let few = few.unwrap();
        assert_eq!((few.lat_us.p99_999, none), (None, None));
        assert_eq!(few.lat_us.p99_999_why.as_deref(), Some("not enough operations: 20,000 of 1,000,000"));
        let many = Step::page_read("sda", Nanos(1_000)).replaced(&[50_000; 20], Nanos(1_000));
        let many = of(&many.view())[0].clone().unwrap();
        assert_eq!((many.lat_us.p99_999, many.lat_us.p99_999_why), (Some(1.0), None));
        let mut part = Step::page_read("sda", Nanos(100_000));
        part.state = crate::State::Interrupted;
        assert_eq!(of(&part.view()), [None, None]);
    }
}
