//! Brings a job about: a thread for each of its shares, all made ready before any starts, the calling thread as collector
//! of the intervals, one account at the end.

use crate::blocking::{Mmap, Psync, drive as drive_blocking};
use crate::collect::Collector;
use crate::gate::{Gate, Leaving};
use crate::geometry::{Share, fits, shares};
use crate::meter::{Meter, Shape};
use crate::null::Null;
use crate::pace::{Schedule, wait_until};
use crate::probe::{dropped, probe};
use crate::queued::{Rings, drive as drive_queued};
use crate::resp::Connections;
use crate::slowest::Slowest;
use crate::stream::Stream;
use crate::worker::{Finish, Tally, Timeline, Worker};
use crate::{Control, Ended, EngineError, Outcome, Sink, Target, memory, touch};
use basics::job::{Engine, Entropy, MOST_EACH_REQUEST, Pacing};
use basics::redis_commands::Command;
use basics::units::grouped;
use basics::{EngineUse, Job, Latencies, Nanos};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;
use sys::clock::{Clock, Pair, Rate};
use sys::ring::Feature;

/// Stack of a measuring thread; its loops need a few hundred bytes.
const STACK: usize = 256 << 10;
/// How often [`Control::cancel`] is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Between setting the start and the first operation, so that every thread is awake by then.
const HEAD_START: Nanos = Nanos(200_000);

/// What all threads of a run share.
struct Setup<'a> {
    job: &'a Job,
    target: Target<'a>,
    engine: Engine,
    refuse: &'a [Feature],
    clock: Clock,
    rate: Rate,
    stop: &'a AtomicBool,
    gate: &'a Gate,
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::System { what, source }
}

impl<'a> Setup<'a> {
    /// A worker that may begin: the start has come.
    fn worker(&self, share: &Share, meter: &'a Meter, timeline: Timeline) -> Worker<'a> {
        let job = self.job;
        // Nobody sets the stop sign before the start is long over; if so, the loops see it at once.
        let _ = wait_until(timeline.start, self.clock, self.rate, self.stop);
        Worker {
            clock: self.clock,
            rate: self.rate,
            stop: self.stop,
            timeline,
            stream: Stream::new(job, share),
            schedule: Schedule::new(job.pacing, share.thread, job.threads, job.seed, self.rate),
            sync: job.sync,
            end_fsync: job.end_fsync,
            each: Vec::with_capacity(if job.each { share.operations.min(MOST_EACH_REQUEST) as usize } else { 0 }),
            slowest: Slowest::new(if let Target::Keys(keys) = self.target { keys.slowest } else { 0 }),
            thread: share.thread,
            tally: Tally::new(meter, *share, timeline),
        }
    }

    /// A measuring thread, from its preparation to its account; nothing when the run did not start.
    fn thread(&self, share: Share, meter: &'a Meter, memory: Option<&mut [memory::Word]>) -> Option<Finish> {
        let _leaving = Leaving(self.gate);
        sys::thread::sharpen_timers();
        let (job, thread, gate) = (self.job, share.thread, self.gate);
        let examined = job.touch.is_some() || job.entropy == Entropy::Tagged;
        let singly = job.each || job.lead.is_some() || examined;
        match self.target {
            Target::Memory { .. } => {
                let Some(memory) = memory else {
                    let why = "a thread has no part of the memory; choose a larger size or fewer threads";
                    return gate.arrive(Err(EngineError::Geometry(why.to_owned()))).and(None);
                };
                if memory::is_chase(job.order) {
                    memory::link(memory, job.seed);
                }
                let timeline = gate.arrive(Ok(Vec::new()))?;
                let worker = self.worker(&share, meter, timeline);
                Some(if memory::is_chase(job.order) {
                    memory::chase(worker, memory, &share)
                } else {
                    memory::stream(worker, memory, &share)
                })
            }
            Target::Touched { region } => {
                let timeline = gate.arrive(Ok(Vec::new()))?;
                Some(touch::touch(self.worker(&share, meter, timeline), region))
            }
            Target::Keys(keys) => match Connections::new(&keys, job, thread, (self.clock, self.rate, self.stop)) {
                Ok(mut connections) => {
                    let connections_room = connections.slots();
                    let timeline = gate.arrive(Ok(Vec::new()))?;
                    let worker = self.worker(&share, meter, timeline);
                    let mut finish = drive_queued(worker, &mut connections, connections_room, 1);
                    finish.commands = connections.commands();
                    if let Some(said) = connections.refused() {
                        finish.ended = Some(Ended::Refused { said });
                    }
                    Some(finish)
                }
                Err(error) => gate.arrive(Err(error)).and(None),
            },
            Target::Null { service, stall } => {
                let timeline = gate.arrive(Ok(Vec::new()))?;
                let clock = (self.clock, self.rate, timeline.start);
                let mut null = Null::new(service, stall, clock, self.stop, job.depth);
                let worker = self.worker(&share, meter, timeline);
                Some(if self.engine == Engine::IoUring {
                    drive_queued(worker, &mut null, job.depth, 1)
                } else {
                    drive_blocking(worker, &mut null, singly)
                })
            }
            Target::File { fd, alignment, direct, .. } => {
                sys::thread::own_descriptors();
                let alignment = if direct { alignment.0.max(1) } else { 1 };
                match self.engine {
                    Engine::IoUring => match Rings::new(fd, job, thread, self.refuse) {
                        Ok((mut queue, refusals)) => {
                            let mut without: Vec<_> = refusals.iter().map(|r| dropped(r.feature, &r.error)).collect();
                            without.extend(queue.settle(job));
                            let timeline = gate.arrive(Ok(without))?;
                            let worker = self.worker(&share, meter, timeline);
                            Some(drive_queued(worker, &mut queue, job.depth, alignment))
                        }
                        Err(error) => gate.arrive(Err(no_ring(&error, job))).and(None),
                    },
                    Engine::Mmap => match Mmap::new(fd, share.base, share.len, job, thread) {
                        Ok(mut mmap) => {
                            let timeline = gate.arrive(Ok(Vec::new()))?;
                            Some(drive_blocking(self.worker(&share, meter, timeline), &mut mmap, singly))
                        }
                        Err(error) => gate.arrive(Err(error)).and(None),
                    },
                    _ => match Psync::new(fd, alignment, job, thread, self.stop) {
                        Ok(mut psync) => {
                            let timeline = gate.arrive(Ok(psync.settle(job)))?;
                            Some(drive_blocking(self.worker(&share, meter, timeline), &mut psync, singly))
                        }
                        Err(error) => gate.arrive(Err(system("buffers for the operations")(error))).and(None),
                    },
                }
            }
        }
    }
}

/// A thread can have no ring; where a limit is the cause, the way out is to want less of it.
fn no_ring(error: &io::Error, job: &Job) -> EngineError {
    let way_out = match error.raw_os_error() {
        // The numbers are those of every Linux architecture: ENFILE, EMFILE.
        Some(23 | 24) => "fewer threads or a higher limit (ulimit -n)",
        _ if error.kind() == io::ErrorKind::OutOfMemory => {
            "fewer threads, a smaller depth or a higher limit of locked memory (ulimit -l)"
        }
        _ => return EngineError::Unavailable { engine: "io_uring", why: error.to_string() },
    };
    let why = format!("{error} at a ring for each of {} thread(s), which takes {way_out}", job.threads);
    EngineError::Unavailable { engine: "io_uring", why }
}

/// Notes that plain calls do the work of a ring.
fn without_depth(engine: Engine, job: &Job, without: &mut Vec<(String, String)>) {
    if !matches!(engine, Engine::IoUring | Engine::Resp) && job.depth > 1 {
        let why = format!("{} has one operation in flight for each thread", engine.name());
        without.push((format!("depth {}", job.depth), why));
    }
}

/// Which engine, and what the job cannot have with it.
fn choose(job: &Job, target: &Target<'_>) -> Result<EngineUse, EngineError> {
    let unavailable = |why: &str| Err(EngineError::Unavailable { engine: job.engine.name(), why: why.to_owned() });
    match (target, job.engine) {
        (
            Target::Memory { .. },
            Engine::Psync
            | Engine::IoUring
            | Engine::Mmap
            | Engine::Touch
            | Engine::Decode
            | Engine::Served
            | Engine::Browsed
            | Engine::Built
            | Engine::Resp,
        ) => {
            return unavailable("the target is memory");
        }
        (
            Target::Touched { .. },
            Engine::Psync
            | Engine::IoUring
            | Engine::Mmap
            | Engine::Memory
            | Engine::Decode
            | Engine::Served
            | Engine::Browsed
            | Engine::Built
            | Engine::Resp,
        ) => {
            return unavailable("the target is memory that may be swapped");
        }
        (Target::File { .. }, engine) if engine == Engine::Memory || engine.is_workload() => {
            return unavailable("the target is a file or a device");
        }
        (Target::Keys(_), engine) if !matches!(engine, Engine::Auto | Engine::Resp) => {
            return unavailable("the target is a key-value server");
        }
        _ => {}
    }
    if let Target::Memory { .. } = target {
        if memory::is_chase(job.order) && job.direction.writes() {
            return Err(EngineError::Geometry(
                "memory is written in sequence only; choose rw=write, or rw=randread for its latency".to_owned(),
            ));
        }
        if !job.block.smallest().0.is_multiple_of(size_of::<memory::Word>() as u64) {
            let smallest = job.block.smallest();
            return Err(EngineError::Geometry(format!(
                "memory moves in words of 8 B, not {smallest}; choose a bs that is a multiple of 8 B, such as 64 B or 1 MiB"
            )));
        }
    }
    if let Target::Memory { .. } | Target::Touched { .. } = target
        && job.pacing != Pacing::Closed
    {
        return Err(EngineError::Geometry("memory is measured in closed loop; leave the rate out".to_owned()));
    }
    if job.entropy == Entropy::Tagged && job.direction.reads() && !matches!(job.engine, Engine::Auto | Engine::Psync) {
        return unavailable("only plain calls look at what they read");
    }
    let found = probe(job, target);
    let mut without = Vec::new();
    without_depth(found.engine, job, &mut without);
    let from_buffers = matches!(target, Target::File { .. }) && found.engine != Engine::Mmap;
    if job.wants_huge_pages() && !from_buffers {
        without.push((EngineUse::HUGE_PAGES.to_owned(), "no buffers are used".to_owned()));
    }
    if let Target::File { fd, direct, .. } = target {
        if job.direct && !direct {
            without.push((
                EngineUse::DIRECT.to_owned(),
                "the target is not opened with it: the page cache is in the way".into(),
            ));
        }
        if job.direction.reads()
            && let Err(error) = sys::file::skip_access_time(*fd)
        {
            without.push(("O_NOATIME".to_owned(), error.to_string()));
        }
    }
    Ok(EngineUse { asked: job.engine, used: found.engine, why: found.why, dropped: without })
}

/// Memory for a [`Target::Memory`], touched.
fn memory_of(target: &Target<'_>) -> Result<Vec<memory::Word>, EngineError> {
    let Target::Memory { size } = target else { return Ok(Vec::new()) };
    let words = usize::try_from(size.0 / size_of::<memory::Word>() as u64).unwrap_or(usize::MAX);
    let mut memory = Vec::new();
    let lack = |_| EngineError::System { what: "the memory to measure", source: io::ErrorKind::OutOfMemory.into() };
    memory.try_reserve_exact(words).map_err(lack)?;
    memory.resize(words, 1);
    Ok(memory)
}

/// [`crate::run()`], with features of the ring that are to be treated as refused.
pub(crate) fn run(
    job: &Job,
    target: Target<'_>,
    control: &Control<'_>,
    sink: &mut dyn Sink,
    refuse: &[Feature],
) -> Result<Outcome, EngineError> {
    job.check()?;
    let shares = shares(job, &target)?;
    fits(job, &target, sys::memory::available())?;
    let engine = choose(job, &target)?;
    or_plain_calls(job, engine, |engine| attempt(job, target, &shares, engine, control, sink, refuse))
}

/// What a probe with one ring found possible may not be so for a ring in each thread: where the choice was ours and a
/// limit is reached, plain calls do the work, and the record says why.
fn or_plain_calls(
    job: &Job,
    engine: EngineUse,
    mut attempt: impl FnMut(EngineUse) -> Result<Outcome, EngineError>,
) -> Result<Outcome, EngineError> {
    match attempt(engine.clone()) {
        Err(EngineError::Unavailable { engine: "io_uring", why }) if engine.asked == Engine::Auto => {
            let mut plain =
                EngineUse { used: Engine::Psync, why: format!("io_uring cannot be used here ({why})"), ..engine };
            without_depth(plain.used, job, &mut plain.dropped);
            attempt(plain)
        }
        result => result,
    }
}

/// Runs the job with this engine.
fn attempt(
    job: &Job,
    target: Target<'_>,
    shares: &[Share],
    mut engine: EngineUse,
    control: &Control<'_>,
    sink: &mut dyn Sink,
    refuse: &[Feature],
) -> Result<Outcome, EngineError> {
    tracing::debug!(used = engine.used.name(), why = engine.why, "engine chosen");
    let open_loop = job.pacing != Pacing::Closed;
    let (reads, writes) = (job.direction.reads(), job.direction.writes());
    let histograms = shares.len() * (usize::from(reads) + usize::from(writes)) * (1 + usize::from(open_loop));
    let shape = Shape::for_histograms(histograms);
    let meters: Vec<Meter> = shares.iter().map(|_| Meter::new(shape, reads, writes, open_loop)).collect();
    let mut memory = memory_of(&target)?;
    let chase = matches!(target, Target::Memory { .. }) && memory::is_chase(job.order);
    let per_tick = if chase { memory::UNITS_PER_TICK as f64 } else { 1.0 };
    let mut collector = Collector::new(&meters, shape, per_tick, job.stop.until);
    let clock = Clock::best();
    let (stop, gate) = (AtomicBool::new(false), Gate::default());
    let setup = Setup { job, target, engine: engine.used, refuse, clock, rate: clock.rate(), stop: &stop, gate: &gate };
    let (mut finishes, elapsed, began, confident) = std::thread::scope(|scope| {
        let threads = match spawn(scope, &setup, shares, &meters, &mut memory) {
            Ok(threads) => threads,
            Err(error) => {
                gate.cancel();
                return Err(error);
            }
        };
        let mut first = Pair { ticks: 0, nanos: 0 };
        let timeline = gate.open(threads.len(), || {
            first = clock.pair();
            timeline(job, &setup, first.ticks)
        })?;
        let confident = watch(&setup, &mut collector, timeline, first, control, sink);
        let mut finishes = Vec::with_capacity(threads.len());
        for thread in threads {
            match thread.join() {
                Ok(finish) => finishes.extend(finish),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let rate = Rate::between(first, clock.pair()).unwrap_or(setup.rate);
        let last = finishes.iter().map(|f| f.last).max().unwrap_or(0);
        let elapsed = Nanos(rate.nanos(last.saturating_sub(timeline.measure) as f64) as u64);
        if elapsed > Nanos(0) {
            collector.cut(elapsed.max(collector.end()), rate, sink);
        }
        let began = first.nanos + rate.nanos(timeline.measure.saturating_sub(first.ticks) as f64) as u64;
        Ok((finishes, elapsed, began, confident))
    })?;
    engine.dropped.append(&mut gate.dropped());
    let mut notes = Vec::new();
    if !shape.is_finest() {
        notes.push(format!("latencies are counted with an error of up to {} %", shape.error_percent()));
    }
    if chase {
        notes.push(format!("each latency is the mean of {} dependent loads, which are timed together", memory::LOADS));
    }
    let missed: u64 = finishes.iter().map(|f| f.missed).sum();
    if missed > 0 {
        let missed = grouped(missed as i64);
        notes.push(format!("{missed} operations were due and not sent when the time was over: the rate was not held"));
    }
    let mut faults = Latencies::lazy();
    finishes.iter().filter(|f| !f.faults.is_empty()).for_each(|f| faults.merge(&f.faults));
    Ok(Outcome {
        engine,
        faults,
        ended: reason(&finishes, confident, control),
        elapsed,
        began,
        slowest: finishes.iter_mut().flat_map(|f| std::mem::take(&mut f.slowest)).collect(),
        commands: together(&mut finishes),
        read: collector.read,
        write: collector.write,
        cpu_user: finishes.iter().fold(Nanos(0), |sum, f| sum + f.usage.user.into()),
        cpu_system: finishes.iter().fold(Nanos(0), |sum, f| sum + f.usage.system.into()),
        each: finishes.into_iter().flat_map(|f| f.each).collect(),
        notes,
    })
}

/// Each command of all threads.
fn together(finishes: &mut [Finish]) -> Vec<(Command, Latencies)> {
    let mut all: Vec<(Command, Latencies)> = Vec::new();
    for (command, latencies) in finishes.iter_mut().flat_map(|finish| std::mem::take(&mut finish.commands)) {
        match all.iter_mut().find(|(known, _)| *known == command) {
            Some((_, sum)) => sum.merge(&latencies),
            None => all.push((command, latencies)),
        }
    }
    all
}

/// Starts a thread for each share.
fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    setup: &'scope Setup<'env>,
    shares: &[Share],
    meters: &'env [Meter],
    memory: &'scope mut [memory::Word],
) -> Result<Vec<ScopedJoinHandle<'scope, Option<Finish>>>, EngineError> {
    let mut parts = memory.chunks_exact_mut(shares.first().map_or(1, |s| (s.len as usize / 8).max(1)));
    let mut threads = Vec::with_capacity(shares.len());
    for (share, meter) in shares.iter().zip(meters) {
        let (share, part) = (*share, parts.next());
        let builder = Builder::new().name(format!("job-{}", share.thread)).stack_size(STACK);
        let thread = builder.spawn_scoped(scope, move || setup.thread(share, meter, part));
        threads.push(thread.map_err(system("a measuring thread"))?);
    }
    Ok(threads)
}

/// The moments of a run that begins now.
fn timeline(job: &Job, setup: &Setup<'_>, now: u64) -> Timeline {
    let ticks = |n: Nanos| setup.rate.ticks(n.0 as f64) as u64;
    let start = now + ticks(HEAD_START);
    let measure = start + ticks(job.warmup);
    Timeline { start, measure, end: job.stop.time.map_or(u64::MAX, |time| measure + ticks(time)) }
}

/// Cuts intervals until all threads are done; true when the figure asked for is known.
fn watch(
    setup: &Setup<'_>,
    collector: &mut Collector<'_>,
    timeline: Timeline,
    first: Pair,
    control: &Control<'_>,
    sink: &mut dyn Sink,
) -> bool {
    let threads = setup.job.threads as usize;
    let interval = setup.rate.ticks(setup.job.interval.0 as f64) as u64;
    let mut next = timeline.measure + interval;
    let mut confident = false;
    loop {
        // What is left at the very end belongs to the last interval, not to a sliver after it.
        let cut = if timeline.end.saturating_sub(next) < interval / 8 { u64::MAX } else { next };
        let left = setup.rate.nanos(cut.saturating_sub(setup.clock.ticks()) as f64);
        if setup.gate.wait_done(threads, Duration::from_nanos(left as u64).min(LOOK)) {
            return confident;
        }
        if control.cancel.load(Relaxed) {
            setup.stop.store(true, Relaxed);
        }
        let now = setup.clock.pair();
        if now.ticks >= cut {
            let rate = Rate::between(first, now).unwrap_or(setup.rate);
            let end = Nanos(rate.nanos((now.ticks - timeline.measure) as f64) as u64);
            if collector.cut(end, rate, sink) && !confident {
                confident = true;
                setup.stop.store(true, Relaxed);
            }
            // A late look makes one long interval, not a row of empty ones.
            next += interval * ((now.ticks - next) / interval + 1);
        }
    }
}

/// Why the whole job ended: a failure before an order, an order before the plan.
fn reason(finishes: &[Finish], confident: bool, control: &Control<'_>) -> Ended {
    let all = || finishes.iter().filter_map(|f| f.ended.as_ref());
    if let Some(failure) = all().find(|e| e.is_failure()) {
        return failure.clone();
    }
    if confident {
        return Ended::Confidence;
    }
    if control.cancel.load(Relaxed) && finishes.iter().any(|f| f.ended.is_none()) {
        return Ended::Cancelled;
    }
    all().find(|e| **e == Ended::Time).or_else(|| all().next()).cloned().unwrap_or(Ended::Cancelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::job::{Order, Stop};
    use basics::{Bytes, Interval};
    use std::os::fd::AsFd;

    /// A kernel that refuses a feature costs speed, not the job; and the record names it.
    #[test]
    fn refused_features_are_done_without_and_named() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let target = Target::File { fd: file.as_fd(), len: Bytes(1 << 20), alignment: Bytes(1), direct: false };
        let stop = Stop { operations: Some(500), ..Stop::default() };
        let job =
            Job { engine: Engine::IoUring, depth: 8, order: Order::Permuted, direct: false, stop, ..Job::default() };
        let sink = &mut |_: &Interval| {};
        for (refuse, named) in [
            (&[Feature::DeferTaskrun][..], &["DEFER_TASKRUN"][..]),
            (&[Feature::SingleIssuer], &["DEFER_TASKRUN", "SINGLE_ISSUER"]),
            (&[Feature::RegisteredBuffers, Feature::RegisteredFile], &["registered buffers", "registered file"]),
        ] {
            let outcome = run(&job, target, &Control::new(&AtomicBool::new(false)), sink, refuse).unwrap();
            assert_eq!(outcome.read.operations(), 500);
            for name in named {
                let dropped = &outcome.engine.dropped;
                assert_eq!(dropped.iter().filter(|(what, _)| what == name).count(), 1, "{name}: {dropped:?}");
            }
        }
    }

    /// One ring could be had when the target was probed, and not one for each of the threads.
    #[test]
    fn auto_that_finds_no_ring_for_each_thread_makes_plain_calls() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let target = Target::File { fd: file.as_fd(), len: Bytes(1 << 20), alignment: Bytes(1), direct: false };
        let stop = Stop { operations: Some(100), ..Stop::default() };
        let job = Job { depth: 8, threads: 2, direct: false, stop, ..Job::default() };
        let shares = shares(&job, &target).unwrap();
        let attempt = |engine: EngineUse| match engine.used {
            Engine::IoUring => Err(no_ring(&io::Error::from_raw_os_error(24), &job)),
            _ => {
                let cancel = AtomicBool::new(false);
                attempt(&job, target, &shares, engine, &Control::new(&cancel), &mut |_: &Interval| {}, &[])
            }
        };
        let rings = |asked| EngineUse { asked, used: Engine::IoUring, why: "probed".into(), dropped: vec![] };
        let outcome = or_plain_calls(&job, rings(Engine::Auto), attempt).unwrap();
        assert_eq!((outcome.engine.used, outcome.read.operations()), (Engine::Psync, 100));
        assert!(outcome.engine.why.contains("Too many open files"), "{:?}", outcome.engine);
        assert!(outcome.engine.dropped.iter().any(|(what, _)| what == "depth 8"), "{:?}", outcome.engine);
        let refused = or_plain_calls(&job, rings(Engine::IoUring), attempt).unwrap_err().to_string();
        assert!(refused.contains("fewer threads") && refused.contains("ulimit -n"), "{refused}");
    }

    /// Open loop without a time limit in `enter`, as on Linux 5.10.
    #[test]
    fn a_rate_is_held_without_timeouts() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let target = Target::File { fd: file.as_fd(), len: Bytes(1 << 20), alignment: Bytes(1), direct: false };
        let stop = Stop { time: Some(Nanos::from_millis(200)), ..Stop::default() };
        let pacing = Pacing::Fixed { iops: 1000.0 };
        let job = Job { engine: Engine::IoUring, depth: 8, direct: false, pacing, stop, ..Job::default() };
        for refuse in [&[][..], &[Feature::Timeout, Feature::DeferTaskrun]] {
            let outcome =
                run(&job, target, &Control::new(&AtomicBool::new(false)), &mut |_: &Interval| {}, refuse).unwrap();
            assert!((150..=200).contains(&outcome.read.operations()), "{}", outcome.read.operations());
        }
    }
}
