//! A fitted profile knows how uncertain it is: the same job on the ends of what the device may be says between what its
//! figures lie.

use crate::ready::Opened;
use basics::units::grouped;
use basics::{Expected, Interval, Job, Nanos, Predicted, Side};
use engine::{Control, Ended, EngineError, Outcome};
use profile::Device;

/// What chance does to figures of so many operations is within this many standard errors, 19 times of 20.
const SURE: f64 = 1.96;
/// Part by which a span is widened at the least: the same device is not quite the same on another day.
const LEAST: f64 = 0.01;

impl Opened {
    /// The spans around `own`, for a model of a profile that states its confidence; nothing for everything else.
    pub fn predict(&self, job: &Job, control: &Control<'_>, own: &Outcome) -> Result<Option<Predicted>, EngineError> {
        let Opened::Model { profile, seed } = self else { return Ok(None) };
        let ends = profile.ends();
        if ends.is_empty() || own.ended == Ended::Cancelled {
            return Ok(None);
        }
        let mut all = Predicted { read: span(&own.read, own.elapsed), write: span(&own.write, own.elapsed) };
        for end in &ends {
            let mut device = Device::new(end, end.size(), *seed);
            let outcome = engine::simulate(job, &mut device, end.size(), control, &mut |_: &Interval| {})?;
            if outcome.ended == Ended::Cancelled {
                return Ok(None);
            }
            all.read = hull(all.read, span(&outcome.read, outcome.elapsed));
            all.write = hull(all.write, span(&outcome.write, outcome.elapsed));
        }
        Ok(Some(all))
    }
}

/// One direction of one simulation, as wide as chance makes it.
fn span(side: &Side, elapsed: Nanos) -> Option<Expected> {
    let (mean, stdev) = (side.latency.mean()?.us(), side.latency.stdev()?.us());
    let count = side.operations() as f64;
    let chance = if mean > 0.0 { SURE * stdev / mean / count.sqrt() } else { 0.0 };
    let part = chance.clamp(LEAST, 0.9);
    let around = |value: f64| (value * (1.0 - part), value * (1.0 + part));
    let seconds = elapsed.secs();
    (seconds > 0.0).then(|| Expected { iops: around(count / seconds), lat_mean_us: around(mean) })
}

fn hull(one: Option<Expected>, other: Option<Expected>) -> Option<Expected> {
    let both = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    match (one, other) {
        (Some(one), Some(other)) => {
            Some(Expected { iops: both(one.iops, other.iops), lat_mean_us: both(one.lat_mean_us, other.lat_mean_us) })
        }
        (one, other) => one.or(other),
    }
}

/// For people: `the profile's uncertainty: 9,800 to 12,300 IOPS`.
pub fn in_words(predicted: Predicted) -> String {
    let words = |name: &str, expected: Expected| {
        let (low, high) = expected.iops;
        format!("{name}{} to {} IOPS", grouped(low.round() as i64), grouped(high.round() as i64))
    };
    let text = match (predicted.read, predicted.write) {
        (Some(read), Some(write)) => format!("{}, {}", words("reads ", read), words("writes ", write)),
        (Some(one), None) | (None, Some(one)) => words("", one),
        (None, None) => "nothing was done".to_owned(),
    };
    format!("the profile's uncertainty: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Order, Stop};
    use profile::Profile;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_span_reaches_from_the_slow_to_the_fast_end_and_none_is_told_without_confidence() {
        let text = "name = \"x\"\nchannels = 8\n[read]\nlatency_us = 100\n[[alternative]]\nlink = { command_us = 12.5 }\n\
                    [confidence.\"read.latency_us\"]\nlow = 90\nhigh = 120";
        let profile = Box::new(Profile::parse(text).unwrap());
        let plain = Box::new(Profile { confidence: std::collections::BTreeMap::new(), ..(*profile).clone() });
        let stop = Stop { operations: Some(5000), ..Stop::default() };
        let job = Job { depth: 4, order: Order::Permuted, stop, ..Job::default() };
        let never = AtomicBool::new(false);
        let control = Control::new(&never);
        let model = |profile| Opened::Model { profile, seed: 1 };
        let own = model(plain.clone()).run(&job, &control, &mut |_: &Interval| {}).unwrap();
        assert_eq!(model(plain).predict(&job, &control, &own).unwrap(), None);
        let told = model(profile).predict(&job, &control, &own).unwrap().unwrap();
        let Expected { iops, lat_mean_us } = told.read.unwrap();
        assert!((iops.0 - 33_000.0).abs() < 700.0 && (iops.1 - 44_890.0).abs() < 900.0, "{iops:?}");
        assert!((lat_mean_us.0 - 89.1).abs() < 1.0 && (lat_mean_us.1 - 121.2).abs() < 1.5, "{lat_mean_us:?}");
        assert!(told.write.is_none());
        assert!(in_words(told).starts_with("the profile's uncertainty: 3"), "{}", in_words(told));
    }
}
