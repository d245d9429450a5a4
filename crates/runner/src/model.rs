//! A device model at work in a run. One device lives through all steps on its target, as a real one does: what a step leaves
//! in its cache the next one meets, and rests let it drain. A fitted profile knows how uncertain it is: the ends of what the
//! device may be live beside it, and the same jobs on them say between what its figures lie.

use basics::plan::Act;
use basics::units::grouped;
use basics::{Bytes, Expected, Interval, Job, Nanos, Predicted, Side};
use engine::{Control, Ended, EngineError, Outcome, Sink};
use profile::{Device, Profile, Request};

/// What chance does to figures of so many operations is within this many standard errors, 19 times of 20.
const SURE: f64 = 1.96;
/// Part by which a span is widened at the least: the same device is not quite the same on another day.
const LEAST: f64 = 0.01;

/// A device that lives through a run, with the ends of what its profile says it may be.
pub struct Model {
    own: Living,
    ends: Vec<Living>,
    /// What contradicts itself in the profile's source, each a sentence.
    pub notes: Vec<String>,
}

struct Living {
    device: Device,
    size: Bytes,
}

impl Living {
    fn new(profile: &Profile, seed: u64) -> Self {
        Living { device: Device::new(profile, profile.size(), seed), size: profile.size() }
    }

    fn run(&mut self, job: &Job, control: &Control<'_>, sink: &mut dyn Sink) -> Result<Outcome, EngineError> {
        let outcome = engine::simulate(job, &mut self.device, self.size, control, sink)?;
        self.device.pass(job.warmup + outcome.elapsed);
        Ok(outcome)
    }

    fn act(&mut self, act: Act) -> Result<(), EngineError> {
        match act {
            Act::Rest(time) => self.device.pass(time),
            Act::Sync | Act::Fsync | Act::Drop => {
                let done = self.device.submit(Nanos(0), Request::Flush).map_err(EngineError::Profile)?;
                self.device.pass(done);
            }
            // It has no files.
            Act::Renew => {}
        }
        Ok(())
    }
}

impl Model {
    /// A new device of that profile; `seed` is where its chances begin.
    pub fn new(profile: &Profile, seed: u64) -> Self {
        Model {
            own: Living::new(profile, seed),
            ends: profile.ends().iter().map(|end| Living::new(end, seed)).collect(),
            notes: profile.inconsistent.iter().map(|what| format!("the profile's source: {what}")).collect(),
        }
    }

    /// Runs a job in virtual time.
    pub fn run(
        &mut self,
        job: &Job,
        control: &Control<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(Outcome, Option<Predicted>), EngineError> {
        let outcome = self.own.run(job, control, sink)?;
        let predicted = self.predict(job, control, &outcome)?;
        Ok((outcome, predicted))
    }

    /// Does to it what is done to a target between two jobs.
    pub fn act(&mut self, act: Act) -> Result<(), EngineError> {
        self.own.act(act)?;
        self.ends.iter_mut().try_for_each(|end| end.act(act))
    }

    /// The spans around `own`; nothing where the profile states no confidence.
    fn predict(&mut self, job: &Job, control: &Control<'_>, own: &Outcome) -> Result<Option<Predicted>, EngineError> {
        if self.ends.is_empty() || own.ended == Ended::Cancelled {
            return Ok(None);
        }
        let mut all = Predicted { read: span(&own.read, own.elapsed), write: span(&own.write, own.elapsed) };
        for end in &mut self.ends {
            let outcome = end.run(job, control, &mut |_: &Interval| {})?;
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
    use basics::job::{Block, Direction, Order, Stop};
    use std::sync::atomic::AtomicBool;

    fn run(model: &mut Model, job: &Job) -> (Outcome, Option<Predicted>) {
        model.run(job, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {}).unwrap()
    }

    #[test]
    fn the_span_reaches_from_the_slow_to_the_fast_end_and_none_is_told_without_confidence() {
        let text = "name = \"x\"\nchannels = 8\n[read]\nlatency_us = 100\n[[alternative]]\nlink = { command_us = 12.5 }\n\
                    [confidence.\"read.latency_us\"]\nlow = 90\nhigh = 120";
        let profile = Profile::parse(text).unwrap();
        let plain = Profile { confidence: std::collections::BTreeMap::new(), ..profile.clone() };
        let stop = Stop { operations: Some(5000), ..Stop::default() };
        let job = Job { depth: 4, order: Order::Permuted, stop, ..Job::default() };
        assert_eq!(run(&mut Model::new(&plain, 1), &job).1, None);
        let told = run(&mut Model::new(&profile, 1), &job).1.unwrap();
        let Expected { iops, lat_mean_us } = told.read.unwrap();
        assert!((iops.0 - 33_000.0).abs() < 700.0 && (iops.1 - 44_890.0).abs() < 900.0, "{iops:?}");
        assert!((lat_mean_us.0 - 89.1).abs() < 1.0 && (lat_mean_us.1 - 121.2).abs() < 1.5, "{lat_mean_us:?}");
        assert!(told.write.is_none());
        assert!(in_words(told).starts_with("the profile's uncertainty: 3"), "{}", in_words(told));
    }

    /// A cache that one job has filled is full for the next one, here and at the ends, unless there was a rest.
    #[test]
    fn a_device_lives_through_the_steps() {
        let text = "name = \"x\"\n[write]\nbandwidth_MBps = 100\n[cache]\nsize = \"100MB\"\ndrain_MBps = 10\n\
                    [confidence.\"cache.drain_MBps\"]\nlow = 9\nhigh = 11";
        let mut model = Model::new(&Profile::parse(text).unwrap(), 1);
        let block = Block::Fixed(Bytes(1 << 20));
        let stop = Stop { time: Some(Nanos::from_secs(3.0)), ..Stop::default() };
        let job = Job { direction: Direction::Write, block, stop, ..Job::default() };
        let rate = |model: &mut Model| {
            let (outcome, predicted) = run(model, &job);
            let mbps = outcome.write.bytes as f64 / 1e6 / outcome.elapsed.secs();
            let iops = predicted.unwrap().write.unwrap().iops;
            (mbps, [iops.0, iops.1].map(|iops| iops * 1.048_576))
        };
        let (first, _) = rate(&mut model);
        let (full, span) = rate(&mut model);
        model.act(Act::Rest(Nanos::from_secs(20.0))).unwrap();
        let (rested, _) = rate(&mut model);
        assert!(first > 40.0 && (full - 10.0).abs() < 0.5, "{first}, then {full}");
        assert!((8.0..9.5).contains(&span[0]) && (10.5..12.0).contains(&span[1]), "{span:?}");
        assert!((rested / first - 1.0).abs() < 0.05, "{first}, after a rest {rested}");
    }
}
