//! A job in virtual time: the same operations, schedule and stop rules as on a real target, but a device model says when
//! each is done, and the clock jumps from one event to the next. Hours pass in a second or so, and equal seeds give equal
//! figures.

use crate::collect::figure_of;
use crate::confidence::Series;
use crate::geometry::{Share, shares_within};
use crate::pace::Schedule;
use crate::stream::{Op, Stream};
use crate::{Control, Ended, EngineError, Outcome, Sink};
use basics::job::{Engine, Entropy, Lead, Pacing, Sync, Until};
use basics::{Bytes, Each, EngineUse, Interval, Job, Latencies, Nanos, Side};
use profile::{Device, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::Relaxed;
use sys::clock::Clock;

/// Events between two looks at [`Control::cancel`].
const LOOK: u64 = 4096;

/// What happens at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The write is done and what was written is now made durable.
    Written(Flight),
    /// The operation is done, and its slot is free.
    Done(Flight),
    /// A slot is free, or an operation is due.
    Free { thread: u32, due: Option<u64> },
}

/// An operation under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    thread: u32,
    due: u64,
    begin: u64,
    len: u32,
    offset: u64,
    read: bool,
}

/// One thread's part.
struct Thread {
    stream: Stream,
    schedule: Option<Schedule>,
    share: Share,
    /// What it may still send; all that it wants before the warm-up is over.
    operations: u64,
    bytes: u64,
    unsynced: u32,
}

struct Simulation<'a> {
    job: &'a Job,
    device: &'a mut Device,
    threads: Vec<Thread>,
    /// The earliest on top; what comes at the same moment in the order in which it was planned.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    planned: u64,
    measure: u64,
    end: u64,
    account: Account<'a>,
}

/// What was completed, by interval and in all.
struct Account<'a> {
    sink: &'a mut dyn Sink,
    every: u64,
    measure: u64,
    interval: Interval,
    read: Side,
    write: Side,
    /// With room for all operations of the job, if each is to be kept.
    each: Vec<Each>,
    until: Option<Until>,
    series: Series,
}

/// [`crate::run()`] on a model of a device that holds `len`.
///
/// # Errors
/// As [`crate::run()`]; and when the model knows nothing of a direction that the job needs.
pub fn simulate(
    job: &Job,
    device: &mut Device,
    len: Bytes,
    control: &Control<'_>,
    sink: &mut dyn Sink,
) -> Result<Outcome, EngineError> {
    job.check()?;
    if matches!(job.engine, Engine::Mmap | Engine::Memory) {
        let why = "a profile has no memory to touch".to_owned();
        return Err(EngineError::Unavailable { engine: job.engine.name(), why });
    }
    if job.entropy == Entropy::Tagged && job.direction.reads() {
        let why = "a profile holds no bytes that could be looked at; emulate it as a disk".to_owned();
        return Err(EngineError::Unavailable { engine: Engine::Virtual.name(), why });
    }
    let shares = shares_within(job, len, job.separate_regions)?;
    let measure = job.warmup.0;
    let open_loop = job.pacing != Pacing::Closed;
    // A tick is a nanosecond here.
    let rate = Clock::kernel().rate();
    let thread = |share: &Share| Thread {
        stream: Stream::new(job, share),
        schedule: Schedule::new(job.pacing, share.thread, job.threads, job.seed, rate),
        share: *share,
        operations: u64::MAX,
        bytes: u64::MAX,
        unsynced: 0,
    };
    let side = || Side { service: open_loop.then(Latencies::new), ..Side::default() };
    let account = Account {
        sink,
        every: job.interval.0,
        measure,
        interval: Interval { read: side(), write: side(), ..Interval::default() },
        read: side(),
        write: side(),
        each: Vec::with_capacity(if job.each { job.stop.operations.unwrap_or(0) as usize } else { 0 }),
        until: job.stop.until,
        series: Series::new(),
    };
    let mut simulation = Simulation {
        job,
        device,
        threads: shares.iter().map(thread).collect(),
        events: BinaryHeap::new(),
        planned: 0,
        measure,
        end: job.stop.time.map_or(u64::MAX, |time| measure.saturating_add(time.0)),
        account,
    };
    simulation.run(control)
}

impl Simulation<'_> {
    fn plan(&mut self, at: u64, event: Event) {
        self.events.push(Reverse((at, self.planned, event)));
        self.planned += 1;
    }

    fn run(&mut self, control: &Control<'_>) -> Result<Outcome, EngineError> {
        let depth = if self.job.engine == Engine::Psync { 1 } else { self.job.depth };
        let mut slots: Vec<u32> = vec![depth; self.threads.len()];
        for thread in 0..self.threads.len() as u32 {
            for _ in 0..depth {
                self.plan(0, Event::Free { thread, due: None });
            }
        }
        let (mut now, mut seen) = (0, 0u64);
        let mut ended = None;
        let mut counting = false;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            seen += 1;
            if seen.is_multiple_of(LOOK) && control.cancel.load(Relaxed) {
                ended = Some(Ended::Cancelled);
                break;
            }
            if !counting && at >= self.measure {
                counting = true;
                self.begin_to_count();
            }
            now = at;
            if self.account.cut(now.min(self.end)) && ended.is_none() {
                // Nothing more is sent; what is under way comes to its end.
                ended = Some(Ended::Confidence);
            }
            match event {
                Event::Written(flight) => {
                    let done = self.submit(at, Request::Flush)?;
                    self.plan(done, Event::Done(flight));
                }
                Event::Done(flight) => {
                    if counting {
                        self.account.record(&flight, at);
                    }
                    self.plan(at, Event::Free { thread: flight.thread, due: None });
                }
                Event::Free { thread, due } => {
                    let why = if ended.is_some() { Some(Ended::Confidence) } else { self.send(at, thread, due)? };
                    if let Some(why) = why {
                        slots[thread as usize] -= 1;
                        ended = ended.or(Some(why).filter(|_| slots.iter().all(|left| *left == 0)));
                    }
                }
            }
        }
        self.finish(now, ended.unwrap_or(Ended::Time))
    }

    /// From now on a thread's share is counted; what is in flight is part of it.
    fn begin_to_count(&mut self) {
        let mut flying = vec![(0u64, 0u64); self.threads.len()];
        for Reverse((_, _, event)) in &self.events {
            if let Event::Written(flight) | Event::Done(flight) = event {
                flying[flight.thread as usize].0 += 1;
                flying[flight.thread as usize].1 += u64::from(flight.len);
            }
        }
        for (thread, (operations, bytes)) in self.threads.iter_mut().zip(flying) {
            thread.operations = thread.share.operations.saturating_sub(operations);
            thread.bytes = thread.share.bytes.saturating_sub(bytes);
        }
    }

    fn submit(&mut self, now: u64, request: Request) -> Result<u64, EngineError> {
        let done = self.device.submit(Nanos(now), request).map_err(EngineError::Profile)?;
        // Nothing is done in no time: a model that says so would stop the clock.
        Ok(done.0.max(now + 1))
    }

    /// Sends the next operation of a thread, or plans it for when it is due; why not, when there is none.
    fn send(&mut self, now: u64, index: u32, due: Option<u64>) -> Result<Option<Ended>, EngineError> {
        let thread = &mut self.threads[index as usize];
        if now >= self.end {
            return Ok(Some(Ended::Time));
        }
        if thread.operations == 0 {
            return Ok(Some(Ended::Operations));
        }
        if thread.bytes == 0 {
            return Ok(Some(Ended::Bytes));
        }
        let due = match (due, &mut thread.schedule) {
            (Some(due), _) => due,
            (None, None) => now,
            (None, Some(schedule)) => {
                let due = schedule.due();
                if due >= self.end {
                    return Ok(Some(Ended::Time));
                }
                schedule.advance();
                if due > now {
                    self.plan(due, Event::Free { thread: index, due: Some(due) });
                    return Ok(None);
                }
                due
            }
        };
        let Op { offset, len, read } = thread.stream.next(thread.bytes);
        thread.operations = thread.operations.saturating_sub(1);
        thread.bytes = thread.bytes.saturating_sub(u64::from(len));
        let syncs = !read && thread.is_sync_due(self.job.sync);
        let mut now = now;
        if let Some(Lead::Page(page) | Lead::Same(page)) = self.job.lead {
            now = self.submit(now, Request::Read { offset, len: page.0.min(u64::from(len)) })?;
        }
        if let Some(Lead::Same(_)) = self.job.lead {
            now = self.submit(now, Request::Read { offset, len: u64::from(len) })?;
        }
        let due = if self.job.lead.is_some() { now } else { due };
        let flight = Flight { thread: index, due, begin: now, len, offset, read };
        let len = u64::from(len);
        let request = if read { Request::Read { offset, len } } else { Request::Write { offset, len } };
        let done = self.submit(now, request)?;
        self.plan(done, if syncs { Event::Written(flight) } else { Event::Done(flight) });
        Ok(None)
    }

    fn finish(&mut self, now: u64, ended: Ended) -> Result<Outcome, EngineError> {
        let mut last = now;
        if self.job.end_fsync && ended != Ended::Cancelled {
            last = self.submit(now, Request::Flush)?;
        }
        // In open loop the quiet time after the last operation belongs to the measurement.
        if ended == Ended::Time && self.end != u64::MAX {
            last = last.max(self.end);
        }
        let elapsed = Nanos(last.saturating_sub(self.measure));
        self.account.close(elapsed);
        let mut notes = Vec::new();
        if !self.job.direct {
            notes.push("simulated without a page cache, though the job is buffered".to_owned());
        }
        let until = self.end.min(now);
        let missed: u64 = self.threads.iter().filter_map(|t| Some(t.schedule.as_ref()?.missed(until))).sum();
        if missed > 0 && ended == Ended::Time {
            notes.push(format!(
                "{missed} operations were due and not sent when the time was over: the rate was not held"
            ));
        }
        Ok(Outcome {
            slowest: Vec::new(),
            commands: Vec::new(),
            began: 0,
            faults: basics::Latencies::lazy(),
            engine: EngineUse {
                asked: self.job.engine,
                used: Engine::Virtual,
                why: "the target is a profile: no operation was real".to_owned(),
                dropped: Vec::new(),
            },
            ended,
            elapsed,
            read: std::mem::take(&mut self.account.read),
            write: std::mem::take(&mut self.account.write),
            cpu_user: Nanos(0),
            cpu_system: Nanos(0),
            each: std::mem::take(&mut self.account.each),
            notes,
        })
    }
}

impl Thread {
    fn is_sync_due(&mut self, sync: Sync) -> bool {
        match sync {
            Sync::None => false,
            Sync::Dsync | Sync::OSync => true,
            Sync::Fsync { every } | Sync::Fdatasync { every } => {
                self.unsynced += 1;
                let due = self.unsynced >= every;
                self.unsynced = if due { 0 } else { self.unsynced };
                due
            }
        }
    }
}

impl Account<'_> {
    fn record(&mut self, flight: &Flight, now: u64) {
        let interval = &mut self.interval;
        let (part, all) =
            if flight.read { (&mut interval.read, &mut self.read) } else { (&mut interval.write, &mut self.write) };
        for side in [part, all] {
            side.latency.record(Nanos(now - flight.due));
            side.bytes += u64::from(flight.len);
            if let Some(service) = &mut side.service {
                service.record(Nanos(now - flight.begin));
            }
        }
        if flight.thread == 0 {
            interval.position = flight.offset;
        }
        if self.each.len() < self.each.capacity() {
            let (offset, len) = (Bytes(flight.offset), Bytes(u64::from(flight.len)));
            let (at, latency) = (Nanos(flight.begin.saturating_sub(self.measure)), Nanos(now - flight.begin));
            self.each.push(Each { offset, len, read: flight.read, at, latency, waited: Nanos(0) });
        }
    }

    /// Ends every interval that is over before `now`; true when the figure asked for is known.
    fn cut(&mut self, now: u64) -> bool {
        let since = now.saturating_sub(self.measure);
        let mut known = false;
        while since > self.interval.start.0 + self.every {
            known |= self.hand_on(Nanos(self.interval.start.0 + self.every));
        }
        known
    }

    fn hand_on(&mut self, end: Nanos) -> bool {
        self.interval.end = end;
        self.sink.interval(&self.interval);
        let known = self.until.is_some_and(|until| {
            figure_of(&self.interval, until.figure).is_some_and(|value| self.series.is_known(value, until.percent))
                && end >= until.at_least
        });
        self.interval.start = end;
        self.interval.read.clear();
        self.interval.write.clear();
        known
    }

    /// What is left at the end.
    fn close(&mut self, elapsed: Nanos) {
        self.cut(elapsed.0.saturating_add(self.measure));
        if elapsed > self.interval.start {
            self.hand_on(elapsed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Block, Direction, Figure, Order, Stop};
    use profile::Profile;
    use std::sync::atomic::AtomicBool;

    fn run(job: &Job, toml: &str) -> (Outcome, Vec<Interval>) {
        let profile = Profile::parse(&format!("name = \"x\"\n{toml}")).unwrap();
        let mut device = Device::new(&profile, Bytes(1 << 30), 1);
        let mut intervals = Vec::new();
        let sink = &mut |interval: &Interval| intervals.push(interval.clone());
        let outcome = simulate(job, &mut device, Bytes(1 << 30), &Control::new(&AtomicBool::new(false)), sink).unwrap();
        (outcome, intervals)
    }
    fn reads(depth: u32, seconds: u64) -> Job {
        let stop = Stop { time: Some(Nanos::from_millis(seconds * 1000)), ..Stop::default() };
        Job { depth, order: Order::Permuted, stop, ..Job::default() }
    }
    const HUNDRED: &str =
        "channels = 2\n[read]\nlatency_us = 100\n[write]\nlatency_us = 200\n[flush]\nlatency_us = 800";

    /// Two channels of 100 µs: 10,000 at depth 1, 20,000 from depth 2 on, where latency follows Little's law.
    #[test]
    fn closed_loops_obey_littles_law() {
        for (depth, iops, us) in [(1, 10_000, 100.0), (2, 20_000, 100.0), (8, 20_000, 400.0)] {
            let (outcome, intervals) = run(&reads(depth, 10), HUNDRED);
            assert_eq!(outcome.ended, Ended::Time);
            assert!(outcome.read.operations().abs_diff(iops * 10) <= 10, "{}", outcome.read.operations());
            let mean = outcome.read.latency.mean().unwrap().us();
            assert!((mean / us - 1.0).abs() < 0.01, "depth {depth}: {mean}");
            let sum: u64 = intervals.iter().map(|i| i.read.operations()).sum();
            assert_eq!(sum, outcome.read.operations());
            assert!(intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }

    #[test]
    fn stop_rules_end_the_job() {
        let stop = Stop { operations: Some(777), ..Stop::default() };
        let (outcome, _) = run(&Job { stop, threads: 2, ..reads(4, 1) }, HUNDRED);
        assert_eq!((outcome.ended, outcome.read.operations()), (Ended::Operations, 777));
        let stop = Stop { bytes: Some(Bytes(1 << 20)), ..Stop::default() };
        let (outcome, _) = run(&Job { stop, ..reads(4, 1) }, HUNDRED);
        assert_eq!((outcome.ended, outcome.read.bytes), (Ended::Bytes, 1 << 20));
        let until = Until { figure: Figure::Iops, percent: 1.0, at_least: Nanos::from_millis(500) };
        let stop = Stop { until: Some(until), time: Some(Nanos::from_millis(60_000)), ..Stop::default() };
        let noisy = "channels = 1\n[read]\nlatency_us = { mean = 100, sigma = 1 }";
        let (outcome, _) = run(&Job { stop, ..reads(4, 1) }, noisy);
        assert_eq!(outcome.ended, Ended::Confidence);
        assert!(
            (Nanos::from_millis(500)..Nanos::from_millis(30_000)).contains(&outcome.elapsed),
            "{}",
            outcome.elapsed
        );
    }

    /// A sync after each write is part of its latency, one after every fourth is part of that one's.
    #[test]
    fn syncs_are_flushes() {
        let job = Job { direction: Direction::Write, ..reads(1, 1) };
        for (sync, us) in [(Sync::None, 200.0), (Sync::Dsync, 1000.0), (Sync::Fsync { every: 4 }, 400.0)] {
            let (outcome, _) = run(&Job { sync, ..job.clone() }, HUNDRED);
            let mean = outcome.write.latency.mean().unwrap().us();
            assert!((mean / us - 1.0).abs() < 0.01, "{sync:?}: {mean}");
        }
    }

    /// Must not be confused: a device that stalls 200 ms once a second under a fixed rate.
    #[test]
    fn open_loops_count_from_the_intended_time() {
        let stalls = format!("{HUNDRED}\n[[stall]]\nperiod_ms = 1000\nlength_ms = 200");
        let job = Job { pacing: Pacing::Fixed { iops: 1000.0 }, ..reads(1, 10) };
        let (outcome, _) = run(&job, &stalls);
        assert!(outcome.read.operations().abs_diff(10_000) <= 200, "{}", outcome.read.operations());
        let p95 = |latencies: &Latencies| latencies.percentile(95.0).unwrap();
        assert!(p95(&outcome.read.latency) > Nanos::from_millis(100));
        assert!(p95(outcome.read.service.as_ref().unwrap()) < Nanos::from_millis(1));
    }

    /// The warm-up is not counted, an unknown direction is an error, and equal seeds give equal figures.
    #[test]
    fn warmup_direction_and_seed() {
        let cache = "[write]\nbandwidth_MBps = 100\n[cache]\nsize = \"100MB\"\ndrain_MBps = 10";
        let block = Block::Fixed(Bytes(1 << 20));
        let job = Job { direction: Direction::Write, block, warmup: Nanos::from_millis(3000), ..reads(1, 5) };
        let (outcome, intervals) = run(&job, cache);
        let rate = outcome.write.bytes as f64 / 1e6 / outcome.elapsed.secs();
        assert!((rate / 10.0 - 1.0).abs() < 0.05, "after the cliff: {rate}");
        assert_eq!(intervals[0].start, Nanos(0));
        let profile = Profile::parse("name = \"x\"\n[read]\nlatency_us = 1").unwrap();
        let mut device = Device::new(&profile, Bytes(1 << 30), 1);
        let control = AtomicBool::new(false);
        let error =
            simulate(&job, &mut device, Bytes(1 << 30), &Control::new(&control), &mut |_: &Interval| {}).unwrap_err();
        assert!(error.to_string().contains("says nothing of writes"), "{error}");
        let noisy = "channels = 3\n[read]\nlatency_us = { mean = 100, sigma = 1 }";
        assert_eq!(run(&reads(8, 1), noisy).0, run(&reads(8, 1), noisy).0);
    }
}
