//! What a plan costs before it is run: its time, and the bytes that it writes for good. Only what the plan itself and the
//! limit of a bus say is said; where the device's speed decides there is no upper end.

use crate::job::{Direction, Job, Pacing};
use crate::plan::{Act, CHUNK, Plan, Step, Target};
use crate::units::{Bytes, Nanos};
use std::ops::Add;

/// From what to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<T> {
    /// At least.
    pub least: T,
    /// At most; nothing where the speed of the device decides.
    pub most: Option<T>,
}

impl<T: Copy + PartialEq + Default> Span<T> {
    fn exactly(value: T) -> Self {
        Span { least: value, most: Some(value) }
    }
    /// The one value that it can have.
    pub fn exact(&self) -> Option<T> {
        self.most.filter(|most| *most == self.least)
    }
    /// Nothing at all.
    pub fn is_none(&self) -> bool {
        self.exact() == Some(T::default())
    }
}

impl<T: Add<Output = T>> Add for Span<T> {
    type Output = Span<T>;
    fn add(self, other: Self) -> Self {
        let most = self.most.zip(other.most).map(|(one, other)| one + other);
        Span { least: self.least + other.least, most }
    }
}

/// What a step, or a plan, costs. Rests are in its time; `sync` and `fsync` take what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Written to lay out the test file before the step.
    pub laid_out: Bytes,
    /// Written by the step's job to a file or device; memory and devices of virtual time are not worn.
    pub written: Span<Bytes>,
    /// Rests, warm-up and measured time; how long the laying out takes the device alone decides.
    pub time: Span<Nanos>,
}

impl Cost {
    /// Of steps one after the other.
    pub fn sum(costs: &[Cost]) -> Cost {
        let (written, time) = (Span::exactly(Bytes(0)), Span::exactly(Nanos(0)));
        costs.iter().fold(Cost { laid_out: Bytes(0), written, time }, |sum, cost| sum + *cost)
    }
    /// All that is written for good.
    pub fn worn(&self) -> Span<Bytes> {
        Span::exactly(self.laid_out) + self.written
    }
}

impl Add for Cost {
    type Output = Cost;
    fn add(self, other: Self) -> Self {
        Cost {
            laid_out: self.laid_out + other.laid_out,
            written: self.written + other.written,
            time: self.time + other.time,
        }
    }
}

impl Plan {
    /// What each step costs, where `limit` is the rate in 10^6 B/s that nothing on the way to a step's tier exceeds, if one is
    /// known.
    pub fn costs(&self, limit: impl Fn(&Step) -> Option<f64>) -> Vec<Cost> {
        let mut laid_out = vec![false; self.targets.len()];
        let of = |(index, step): (usize, &Step)| {
            let target = &self.targets[step.target];
            let mut cost = cost(step, target, limit(step).filter(|limit| *limit > 0.0));
            if let Target::TestFile { size, first_step_fills: false, .. } = target
                && !std::mem::replace(&mut laid_out[step.target], true)
            {
                cost.laid_out = Bytes(size.0.next_multiple_of(CHUNK));
            }
            if self.rounds.as_ref().is_some_and(|rounds| rounds.may_be_left(index)) {
                (cost.written.least, cost.time.least) = (Bytes(0), Nanos(0));
            }
            cost
        };
        self.steps.iter().enumerate().map(of).collect()
    }
}

/// How long `bytes` take when nothing but the limit holds them up.
fn at_best(bytes: Bytes, limit: Option<f64>) -> Nanos {
    limit.filter(|limit| *limit > 0.0).map_or(Nanos(0), |limit| Nanos::from_secs(bytes.0 as f64 / (limit * 1e6)))
}

fn cost(step: &Step, target: &Target, limit: Option<f64>) -> Cost {
    let job = &step.job;
    let is_worn = matches!(target, Target::TestFile { .. } | Target::File { .. } | Target::Device { .. });
    // Through the page cache bytes come and go faster than over any bus.
    let limit = limit.filter(|_| job.direct && is_worn);
    let rests = step.before.iter().map(|act| match act {
        Act::Rest(time) => *time,
        _ => Nanos(0),
    });
    let time = Span::exactly(rests.fold(Nanos(0), Add::add));
    let written = if is_worn { written(job, limit) } else { Span::exactly(Bytes(0)) };
    Cost { laid_out: Bytes(0), written, time: time + measured(job, limit) }
}

/// The bytes that end a job, if bytes or operations do, from and to.
fn amount(job: &Job) -> Option<(Bytes, Bytes)> {
    let operations = job.stop.operations.map(|n| (job.block.smallest() * n, job.block.largest() * n));
    let bytes = job.stop.bytes.map(|bytes| (bytes, bytes));
    match (bytes, operations) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.min(other.1))),
        (one, other) => one.or(other),
    }
}

/// The time of a job, its warm-up in it.
fn measured(job: &Job, limit: Option<f64>) -> Span<Nanos> {
    let amount = amount(job);
    let most = job.stop.time;
    let mut least = most.unwrap_or_default();
    if let Some((bytes, _)) = amount {
        let best = at_best(bytes, limit);
        least = most.map_or(best, |most| most.min(best));
    }
    if let Some(until) = job.stop.until {
        least = least.min(until.at_least);
    }
    Span::exactly(job.warmup) + Span { least, most }
}

/// The bytes that a job writes, its warm-up's with them.
fn written(job: &Job, limit: Option<f64>) -> Span<Bytes> {
    let share = match job.direction {
        Direction::Read => return Span::exactly(Bytes(0)),
        Direction::Write => 1.0,
        Direction::Mixed { read_percent } => 1.0 - f64::from(read_percent.min(100)) / 100.0,
    };
    let part = |bytes: Bytes| Bytes((bytes.0 as f64 * share).round() as u64);
    let paced = match job.pacing {
        Pacing::Closed => None,
        Pacing::Fixed { iops } | Pacing::Poisson { iops } => Some(iops * job.block.largest().0 as f64 / 1e6),
    };
    let rate = [paced, limit].into_iter().flatten().reduce(f64::min);
    let within = |time: Nanos| Some(Bytes((rate? * 1e6 * time.secs()).round() as u64));
    let by_time = job.stop.time.and_then(within);
    let amount = amount(job);
    let most = [amount.map(|(_, most)| most), by_time].into_iter().flatten().min();
    // Only what nothing else can end sooner is sure to be written.
    let sure = amount.filter(|_| job.stop.time.is_none() && job.stop.until.is_none());
    let span = Span { least: sure.map_or(Bytes(0), |(least, _)| part(least)), most: most.map(part) };
    let warmup = if job.warmup.0 == 0 { Some(Bytes(0)) } else { within(job.warmup).map(part) };
    span + Span { least: Bytes(0), most: warmup }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Block, Entropy, Figure, Stop, Until};
    use crate::plan::Rounds;
    use crate::units::MIB;
    use std::collections::BTreeMap;

    fn plan(target: Target, jobs: Vec<Job>) -> Plan {
        let step = |job| Step {
            name: "x".into(),
            tier: None,
            target: 0,
            job,
            may_fail: false,
            before: vec![Act::Sync, Act::Rest(Nanos::from_millis(3000))],
        };
        let (method, parameters, left_out) = ("x".into(), BTreeMap::new(), vec![]);
        let steps = jobs.into_iter().map(step).collect();
        Plan { method, parameters, seed: 1, targets: vec![target], steps, left_out, ..Plan::default() }
    }

    fn file(first_step_fills: bool) -> Target {
        let (size, entropy) = (Bytes(100 * MIB + 1), Entropy::Zeros);
        Target::TestFile { dir: "/mnt".into(), size, entropy, first_step_fills }
    }

    fn write(stop: Stop) -> Job {
        Job { direction: Direction::Write, block: Block::Fixed(Bytes(MIB)), stop, ..Job::default() }
    }

    const NO_LIMIT: fn(&Step) -> Option<f64> = |_| None;

    #[test]
    fn what_is_stated_is_exact() {
        let whole = Stop { bytes: Some(Bytes(64 * MIB)), ..Stop::default() };
        let read = Job { warmup: Nanos::from_millis(1000), ..Job::default() };
        let costs = plan(file(false), vec![write(whole), read]).costs(NO_LIMIT);
        assert_eq!(costs[0].laid_out, Bytes(101 * MIB), "whole chunks");
        assert_eq!(costs[0].written.exact(), Some(Bytes(64 * MIB)));
        assert_eq!(costs[0].time, Span { least: Nanos::from_millis(3000), most: None }, "the device decides");
        assert_eq!((costs[1].laid_out, costs[1].written.is_none()), (Bytes(0), true));
        assert_eq!(costs[1].time.exact(), Some(Nanos::from_millis(9000)));
        let all = costs[0] + costs[1];
        assert_eq!(all.worn().exact(), Some(Bytes(165 * MIB)));
        let grown = plan(file(true), vec![write(whole)]).costs(NO_LIMIT);
        assert_eq!((grown[0].laid_out, grown[0].worn().exact()), (Bytes(0), Some(Bytes(64 * MIB))));
    }

    #[test]
    fn a_bus_or_a_pace_bounds_what_only_time_ends() {
        let time = Some(Nanos::from_millis(4000));
        let timed = || write(Stop { time, ..Stop::default() });
        let device = || Target::Device { path: "/dev/x".into(), destroy: None };
        let costs = plan(device(), vec![timed()]).costs(NO_LIMIT);
        assert_eq!(costs[0].written, Span { least: Bytes(0), most: None });
        let costs = plan(device(), vec![timed(), Job { direct: false, ..timed() }]).costs(|_| Some(100.0));
        assert_eq!(costs[0].written.most, Some(Bytes(400_000_000)));
        assert_eq!(costs[1].written.most, None, "the page cache takes more than the bus");
        let paced =
            Job { pacing: Pacing::Fixed { iops: 10.0 }, direction: Direction::Mixed { read_percent: 75 }, ..timed() };
        assert_eq!(plan(device(), vec![paced]).costs(NO_LIMIT)[0].written.most, Some(Bytes(10 * MIB)));
        let whole = Stop { bytes: Some(Bytes(50_000_000)), ..Stop::default() };
        let costs = plan(device(), vec![write(whole)]).costs(|_| Some(100.0));
        assert_eq!(costs[0].time.least, Nanos::from_millis(3500));
    }

    #[test]
    fn what_may_end_sooner_says_from_when() {
        let until = Some(Until { figure: Figure::Iops, percent: 2.0, at_least: Nanos::from_millis(1500) });
        let stop = Stop { time: Some(Nanos::from_millis(5000)), until, ..Stop::default() };
        let costs = plan(file(true), vec![Job { stop, ..Job::default() }]).costs(NO_LIMIT);
        let (least, most) = (Nanos::from_millis(4500), Some(Nanos::from_millis(8000)));
        assert_eq!(costs[0].time, Span { least, most });
    }

    #[test]
    fn rounds_that_may_not_be_needed_cost_something_or_nothing() {
        let job = write(Stop { bytes: Some(Bytes(MIB)), ..Stop::default() });
        let rounds = Some(Rounds { first: 0, steps: 1, least: 2, most: 3, tracked: vec![0] });
        let costs = Plan { rounds, ..plan(file(true), vec![job; 4]) }.costs(NO_LIMIT);
        let least: Vec<u64> = costs.iter().map(|cost| cost.written.least.0 / MIB).collect();
        assert_eq!(least, [1, 1, 0, 1]);
        let all = Cost::sum(&costs);
        assert_eq!((all.written.least, all.written.most), (Bytes(3 * MIB), Some(Bytes(4 * MIB))));
    }

    #[test]
    fn nothing_is_worn_in_memory_and_in_virtual_time() {
        let job = || write(Stop { bytes: Some(Bytes(MIB)), ..Stop::default() });
        for target in [
            Target::Memory { size: Bytes(MIB) },
            Target::Profile { name: "x".into(), toml: String::new() },
            Target::Null { service: Nanos(0), stall: None },
        ] {
            let cost = plan(target, vec![job()]).costs(NO_LIMIT)[0];
            assert!(cost.worn().is_none());
            assert_eq!(cost.time.least, Nanos::from_millis(3000), "virtual time rests too");
        }
    }
}
