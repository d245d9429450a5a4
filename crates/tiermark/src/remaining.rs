//! How much longer a run takes: what its plan states, and for what the plan leaves to the device how it has gone so far. All
//! time is the caller's, so that a test need not wait. What cannot be known yet is not guessed.

use basics::job::Job;
use basics::plan::{Act, CHUNK, Plan, Rounds, Target};
use basics::{Bytes, Nanos};

/// Less of a step's work than this says little of the rest.
const ENOUGH: f64 = 0.05;

/// What is left, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    pub secs: f64,
    /// It may well be less: no step that ends when its figure is known has ended yet.
    pub at_most: bool,
}

/// What a plan asks of one step.
struct Ask {
    job: Job,
    /// Rests before and after, s.
    rests: f64,
    /// Written before it, to lay its test file out.
    fill: Bytes,
}

/// How far the present step has come.
#[derive(Default)]
struct Here {
    index: usize,
    filled: Bytes,
    /// That took so long, s.
    filling: f64,
    /// Measured so far, s, and what was moved in that.
    measured: f64,
    moved: f64,
    operations: f64,
}

/// What a finished step has shown.
struct Seen {
    job: Job,
    bytes_per_s: f64,
    operations_per_s: f64,
}

/// The remaining time of one run.
pub struct Remaining {
    asks: Vec<Ask>,
    /// Steps that may turn out not to be needed.
    rounds: Option<Rounds>,
    here: Here,
    seen: Vec<Seen>,
    /// Of steps that end when a figure is known: what was allowed and what they took, s.
    known: (f64, f64),
    /// What finished steps took beside fill, rests and measurement, s, and how many they were.
    beside: (f64, f64),
    /// Bytes that were laid out, and how long that took, s.
    laid_out: (f64, f64),
}

impl Remaining {
    pub fn new(plan: &Plan) -> Self {
        let mut filled = vec![false; plan.targets.len()];
        let rest = |act: &Act| if let Act::Rest(time) = act { time.secs() } else { 0.0 };
        let ask = |step: &basics::plan::Step| {
            let fill = match &plan.targets[step.target] {
                Target::TestFile { size, first_step_fills: false, .. }
                    if !std::mem::replace(&mut filled[step.target], true) =>
                {
                    Bytes(size.0.next_multiple_of(CHUNK))
                }
                _ => Bytes(0),
            };
            Ask { job: step.job.clone(), rests: step.before.iter().map(rest).sum(), fill }
        };
        Remaining {
            asks: plan.steps.iter().map(ask).collect(),
            rounds: plan.rounds.clone(),
            here: Here::default(),
            seen: Vec::new(),
            known: (0.0, 0.0),
            beside: (0.0, 0.0),
            laid_out: (0.0, 0.0),
        }
    }

    /// The step `index` is laying its file out: so much of it in so many seconds.
    pub fn filling(&mut self, index: usize, done: Bytes, secs: f64) {
        self.at(index);
        (self.here.filled, self.here.filling) = (done, secs);
    }

    /// The step `index` has measured for so long and moved so much more.
    pub fn measuring(&mut self, index: usize, measured: Nanos, bytes: u64, operations: u64) {
        self.at(index);
        self.here.measured = measured.secs();
        self.here.moved += bytes as f64;
        self.here.operations += operations as f64;
    }

    /// The step `index` is over: it measured for so long, and took so many seconds with all that is around.
    pub fn finished(&mut self, index: usize, measured: Nanos, took: f64) {
        self.at(index);
        let Some(ask) = self.asks.get(index) else { return };
        let measured = measured.secs();
        self.laid_out.0 += self.here.filled.0 as f64;
        self.laid_out.1 += self.here.filling;
        if let (Some(_), Some(time)) = (ask.job.stop.until, ask.job.stop.time) {
            self.known = (self.known.0 + time.secs(), self.known.1 + measured);
        }
        if measured > 0.0 {
            let (bytes_per_s, operations_per_s) = (self.here.moved / measured, self.here.operations / measured);
            self.seen.push(Seen { job: ask.job.clone(), bytes_per_s, operations_per_s });
        }
        let beside = took - measured - self.here.filling - ask.rests - ask.job.warmup.secs();
        self.beside = (self.beside.0 + beside.max(0.0), self.beside.1 + 1.0);
        self.here = Here { index: index + 1, ..Here::default() };
    }

    fn at(&mut self, index: usize) {
        if self.here.index != index {
            self.here = Here { index, ..Here::default() };
        }
    }

    /// From now on; nothing while a step is to come of which neither the plan nor the run so far says how long it takes.
    pub fn left(&self) -> Option<Left> {
        let (here, later) = self.asks.get(self.here.index..)?.split_first()?;
        let mut secs = self.rest_of(here)?;
        for ask in later {
            let whole = self.measured(&ask.job)?;
            secs += whole + ask.job.warmup.secs() + ask.rests + self.fill(ask.fill)? + self.beside();
        }
        let until = self.asks[self.here.index..].iter().any(|ask| ask.job.stop.until.is_some());
        let to_come = self.here.index..self.asks.len();
        let may_be_left = self.rounds.as_ref().is_some_and(|rounds| to_come.into_iter().any(|i| rounds.may_be_left(i)));
        Some(Left { secs, at_most: until && self.known.0 == 0.0 || may_be_left })
    }

    /// What a finished step takes beside what is stated, s.
    fn beside(&self) -> f64 {
        if self.beside.1 > 0.0 { self.beside.0 / self.beside.1 } else { 0.0 }
    }

    /// Laying out so much, s.
    fn fill(&self, bytes: Bytes) -> Option<f64> {
        match (bytes.0, self.laid_out) {
            (0, _) => Some(0.0),
            (_, (done, secs)) if done > 0.0 => Some(bytes.0 as f64 * secs / done),
            _ => None,
        }
    }

    /// The rest of the present step, s.
    fn rest_of(&self, ask: &Ask) -> Option<f64> {
        let here = &self.here;
        let to_fill = match (here.filled.0, ask.fill.0.saturating_sub(here.filled.0)) {
            (_, 0) => 0.0,
            (0, all) => self.fill(Bytes(all))?,
            (done, rest) => here.filling * rest as f64 / done as f64,
        };
        if here.measured == 0.0 {
            // Rests before it and its warm-up may be under way: they count until the measurement begins.
            return Some(to_fill + ask.rests + ask.job.warmup.secs() + self.measured(&ask.job)?);
        }
        let done = self.done(&ask.job);
        let whole = match done {
            Some(done) if done >= ENOUGH => {
                let by_progress = here.measured / done;
                ask.job.stop.time.map_or(by_progress, |time| by_progress.min(time.secs()))
            }
            _ => self.measured(&ask.job)?,
        };
        Some((whole - here.measured).max(0.0))
    }

    /// The share of the present step's work that is done, where it is work that ends it. What the page cache took in is not
    /// done before the fsync at the end.
    fn done(&self, job: &Job) -> Option<f64> {
        if !job.direct && job.end_fsync {
            return None;
        }
        let bytes = job.stop.bytes.map(|bytes| self.here.moved / bytes.0 as f64);
        let operations = job.stop.operations.map(|operations| self.here.operations / operations as f64);
        [bytes, operations].into_iter().flatten().reduce(f64::max)
    }

    /// How long a job will have measured, s.
    fn measured(&self, job: &Job) -> Option<f64> {
        let seen = self.seen.iter().rev().find(|seen| same_work(&seen.job, job));
        let bytes = job.stop.bytes.map(|bytes| Some(bytes.0 as f64 / seen?.bytes_per_s));
        let operations = job.stop.operations.map(|operations| Some(operations as f64 / seen?.operations_per_s));
        let by_work = match (bytes, operations) {
            (None, None) => None,
            (one, other) => Some([one, other].into_iter().flatten().flatten().reduce(f64::min)),
        };
        let time = job.stop.time.map(|time| time.secs());
        let whole = match (time, by_work) {
            (Some(time), Some(Some(work))) => time.min(work),
            (Some(time), _) => time,
            (None, work) => work.flatten()?,
        };
        let pace = if self.known.0 > 0.0 { self.known.1 / self.known.0 } else { 1.0 };
        Some(if job.stop.until.is_some() { whole * pace } else { whole })
    }
}

/// Whether one job's rate is another's.
fn same_work(one: &Job, other: &Job) -> bool {
    let work = |job: &Job| Job { stop: other.stop, seed: 0, size: None, offset: Bytes(0), ..job.clone() };
    work(one) == work(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Block, Direction, Entropy, Figure, Stop, Until};
    use basics::plan::Step;
    use basics::units::MIB;
    use machine::{Machine, Root};
    use methods::{Request, Settings, Site};
    use std::collections::BTreeMap;

    /// What a step really takes: laying out at a rate, its job at another, in 10^6 B/s, or a share of its time.
    #[derive(Clone, Copy)]
    enum Truth {
        Mbps(f64),
        Share(f64),
    }

    const FILL_MBPS: f64 = 20.0;
    const BESIDE: f64 = 0.05;

    /// Runs a plan in made-up time and holds what is told from a tenth of it on against what was left: within a fifth, and
    /// two hundredths of the whole, which is how finely a person looks. Gives the part of that time in which something was told.
    fn told(plan: &Plan, truth: impl Fn(&Step) -> Truth) -> f64 {
        let mut remaining = Remaining::new(plan);
        let mut said: Vec<(f64, Option<Left>)> = Vec::new();
        let mut now = 0.0;
        for index in 0..plan.steps.len() {
            let (step, ask) = (&plan.steps[index], &remaining.asks[index]);
            let (fill, rests, began) = (ask.fill, ask.rests, now);
            let fill_s = fill.0 as f64 / (FILL_MBPS * 1e6);
            for tenth in 1..=10u64 {
                if fill.0 > 0 {
                    now += fill_s / 10.0;
                    remaining.filling(index, Bytes(fill.0 * tenth / 10), now - began);
                    said.push((now, remaining.left()));
                }
            }
            let stop = step.job.stop;
            let block = step.job.block.largest().0;
            let bytes = stop.bytes.map(|bytes| bytes.0).or(stop.operations.map(|operations| operations * block));
            let (measured, mbps) = match (truth(step), bytes, stop.time) {
                (Truth::Share(share), _, Some(time)) => (share * time.secs(), 1.0),
                (Truth::Mbps(mbps), Some(bytes), time) => {
                    (time.map_or(f64::MAX, |time| time.secs()).min(bytes as f64 / (mbps * 1e6)), mbps)
                }
                (Truth::Mbps(mbps), None, Some(time)) => (time.secs(), mbps),
                (Truth::Share(_), _, None) | (_, None, None) => panic!("endless"),
            };
            now += rests + step.job.warmup.secs();
            for tick in 1..=40u32 {
                let part = mbps * 1e6 * measured / 40.0;
                now += measured / 40.0;
                let at = Nanos::from_secs(measured * f64::from(tick) / 40.0);
                remaining.measuring(index, at, part as u64, part as u64 / block);
                said.push((now, remaining.left()));
            }
            now += BESIDE;
            remaining.finished(index, Nanos::from_secs(measured), now - began);
        }
        let late: Vec<_> = said.iter().filter(|(at, _)| *at >= now / 10.0).collect();
        for (at, left) in &late {
            let truly = now - at;
            let Some(left) = left else { continue };
            let (low, high) = (0.8 * truly - 0.02 * now, 1.2 * truly + 0.02 * now);
            assert!(
                left.secs >= low && (left.at_most || left.secs <= high),
                "at {at:.1} of {now:.1} s: {left:?}, truly {truly:.1}"
            );
        }
        late.iter().filter(|(_, left)| left.is_some()).count() as f64 / late.len() as f64
    }

    fn planned(method: &str, on: &str, as_published: bool) -> Plan {
        let machine = Machine::default();
        let site = Site::named(on, None, &machine, &Root::live()).unwrap();
        let method = methods::find(method).unwrap();
        let settings = Settings::parse(method.name(), method.parameters(), &[]).unwrap();
        method.plan(&Request { site: &site, settings: &settings, as_published, machine: &machine }).unwrap()
    }

    #[test]
    fn what_is_left_is_honest_from_a_tenth_on() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().to_str().unwrap();
        // A minute after half a minute of laying out.
        assert_eq!(told(&planned("swap-sim", here, true), |_| Truth::Mbps(8.0)), 1.0);
        // Rests of seconds between short measurements: the second is of other work, and ended by its time.
        assert_eq!(told(&planned("hdparm", "null", true), |_| Truth::Mbps(80.0)), 1.0);
        // Eighteen passes at rates that nothing told before: what is not known is not told.
        let iozone = planned("iozone", here, true);
        let by_record = |step: &Step| {
            let writes = step.job.direction == Direction::Write;
            Truth::Mbps((step.job.block.largest().0 as f64).log2() * if writes { 1.1 } else { 2.3 })
        };
        let share = told(&iozone, by_record);
        assert!(share > 0.0 && share < 1.0, "{share}");
    }

    /// Steps that end when their figure is known: the first say how soon the others will.
    #[test]
    fn steps_that_may_end_sooner_say_so_and_learn() {
        let until = Some(Until { figure: Figure::Iops, percent: 2.0, at_least: Nanos::from_millis(1000) });
        let stop = Stop { time: Some(Nanos::from_millis(10_000)), until, ..Stop::default() };
        let step = |i: u64| Step {
            name: format!("{i}"),
            tier: None,
            target: 0,
            job: Job { stop, block: Block::Fixed(Bytes(4096 << (i % 5))), ..Job::default() },
            may_fail: false,
            before: vec![],
        };
        let size = Bytes(100 * MIB);
        let plan = Plan {
            method: "x".into(),
            parameters: BTreeMap::new(),
            as_published: false,
            seed: 1,
            targets: vec![Target::TestFile {
                dir: "/x".into(),
                size,
                entropy: Entropy::Zeros,
                first_step_fills: false,
            }],
            steps: (0..40).map(step).collect(),
            left_out: vec![],
            ..Plan::default()
        };
        let share = |step: &Step| Truth::Share(0.30 + 0.04 * f64::from(step.name.parse::<u32>().unwrap() % 7));
        assert_eq!(told(&plan, share), 1.0);
        let first = Remaining::new(&plan);
        assert_eq!(first.left(), None, "how fast its file is laid out is not known");
        let mut first = Remaining::new(&plan);
        first.filling(0, Bytes(50 * MIB), 2.5);
        assert_eq!(first.left(), Some(Left { secs: 402.5, at_most: true }));
    }
}
