//! The observing thread: a sample at once, one a period on an absolute schedule, and one at the end, each handed to a
//! sink. It keeps nothing, so its memory does not grow; it counts what it costs. Where samples go is left to the caller.

use crate::sources::Sources;
use crate::{Cost, Sample};
use basics::Nanos;
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::panic;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// Shortest period: below it a busy small board would mostly watch itself.
const SHORTEST: Nanos = Nanos::from_millis(1);

/// Why observing could not begin.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The period is too short.
    #[error("the machine cannot be observed every {0}; take 1 ms or more")]
    Period(Nanos),
    /// The kernel gives no thread.
    #[error("no thread for observing the machine could be started: {0}; free memory or raise the process limit")]
    Thread(#[source] io::Error),
}

/// Watches the machine until stopped or dropped.
#[derive(Debug)]
pub struct Observer {
    /// Its end tells the thread to finish.
    stop: Option<Sender<()>>,
    /// Where the samples' clock began.
    begin: Instant,
    thread: Option<JoinHandle<Cost>>,
}

impl Observer {
    /// Takes the first sample (`at` zero) before it returns, then one each `period` from a thread, and hands each to
    /// `sink`. `disks` are names as in `/proc/diskstats`; `root` is `/` but for tests. What the machine lacks is
    /// absent from the samples.
    ///
    /// # Errors
    /// The period is below 1 ms, or no thread could be started.
    pub fn start(
        root: &Path,
        disks: Vec<String>,
        period: Nanos,
        mut sink: impl FnMut(Sample) + Send + 'static,
    ) -> Result<Observer, ObserveError> {
        if period < SHORTEST {
            return Err(ObserveError::Period(period));
        }
        let before = thread_cpu();
        let mut sources = Sources::open(root, disks);
        let begin = Instant::now();
        sink(sources.sample());
        let mut cost = Cost { samples: 1, cpu: thread_cpu() - before, dropped: 0 };
        let (stop, stopped) = mpsc::channel::<()>();
        let watch = move || {
            let mut due = period;
            loop {
                let wait = due - Nanos::from(begin.elapsed());
                let last = stopped.recv_timeout(wait.into()) != Err(RecvTimeoutError::Timeout);
                let at = Nanos::from(begin.elapsed());
                sink(Sample { at, ..sources.sample() });
                cost.samples += 1;
                if last {
                    cost.cpu = cost.cpu + thread_cpu();
                    return cost;
                }
                let missed;
                (due, missed) = next_due(due, begin.elapsed().into(), period);
                cost.dropped += missed;
            }
        };
        let thread = thread::Builder::new().name("observe".to_owned()).spawn(watch).map_err(ObserveError::Thread)?;
        Ok(Observer { stop: Some(stop), begin, thread: Some(thread) })
    }

    /// What [`Sample::at`] of a sample would be that is taken now.
    pub fn elapsed(&self) -> Nanos {
        self.begin.elapsed().into()
    }

    /// Takes a last sample, ends the thread and tells what it cost. Returns as soon as that sample is handed over,
    /// whatever the period.
    ///
    /// # Panics
    /// Hands on a panic of the sink.
    pub fn stop(mut self) -> Cost {
        match self.end() {
            Some(Ok(cost)) => cost,
            Some(Err(panicked)) => panic::resume_unwind(panicked),
            None => Cost::default(),
        }
    }

    fn end(&mut self) -> Option<thread::Result<Cost>> {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        // A panic of the sink has been printed by its thread; there is nobody here to hand it to.
        drop(self.end());
    }
}

/// One sample of the machine below `root`, now; `at` is zero.
pub fn sample(root: &Path, disks: &[String]) -> Sample {
    Sources::open(root, disks.to_vec()).sample()
}

/// The next point of the schedule after `due` that is not yet past, and how many before it are.
fn next_due(due: Nanos, now: Nanos, period: Nanos) -> (Nanos, u64) {
    let missed = (now - due).0 / period.0;
    (due + Nanos(period.0 * (missed + 1)), missed)
}

/// CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Nanos {
    let spent = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(u64::try_from(spent.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(spent.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Long enough that only a hang exceeds it, however busy the machine is.
    const PATIENCE: Duration = Duration::from_secs(30);

    fn observe(period: Nanos) -> (Observer, mpsc::Receiver<Sample>) {
        let (sender, samples) = mpsc::channel();
        let observer = Observer::start(Path::new("/"), vec![], period, move |sample| {
            // The receiver may have left, when a test has seen enough.
            let _ = sender.send(sample);
        });
        (observer.unwrap(), samples)
    }

    #[test]
    fn this_machine_is_sampled_on_schedule() {
        let period = Nanos::from_millis(5);
        let (observer, samples) = observe(period);
        let mut seen: Vec<Sample> = (0..20).map(|_| samples.recv_timeout(PATIENCE).unwrap()).collect();
        let cost = observer.stop();
        seen.extend(samples.try_iter());
        assert_eq!(seen[0].at, Nanos(0));
        assert!(seen.is_sorted_by(|a, b| a.at < b.at));
        assert_eq!(cost.samples, seen.len() as u64);
        // No sample comes before its point of the schedule, so none can add up to a drift.
        let scheduled = &seen[seen.len() - 2];
        assert!(scheduled.at.0 >= (seen.len() as u64 - 2) * period.0, "{scheduled:?}");
        assert!(cost.cpu > Nanos(0));
        for sample in &seen {
            assert!(sample.cpu_ticks.is_some() && sample.vm["pgfault"] > 0);
        }
        assert!(seen.is_sorted_by(|a, b| a.vm["pgfault"] <= b.vm["pgfault"]));
    }

    #[test]
    fn stopping_does_not_wait_for_the_period() {
        let (observer, samples) = observe(Nanos::from_secs(3600.0));
        let stopper = thread::spawn(move || observer.stop());
        assert_eq!(samples.recv_timeout(PATIENCE).unwrap().at, Nanos(0));
        assert!(samples.recv_timeout(PATIENCE).unwrap().at > Nanos(0));
        assert_eq!(stopper.join().unwrap().samples, 2);
    }

    #[test]
    fn an_observer_that_is_dropped_ends() {
        let (observer, samples) = observe(Nanos::from_secs(3600.0));
        drop(observer);
        assert_eq!(samples.iter().count(), 2);
    }

    #[test]
    fn a_slow_sink_costs_samples_not_the_schedule() {
        assert_eq!(next_due(Nanos(100), Nanos(101), Nanos(100)), (Nanos(200), 0));
        assert_eq!(next_due(Nanos(100), Nanos(199), Nanos(100)), (Nanos(200), 0));
        assert_eq!(next_due(Nanos(100), Nanos(430), Nanos(100)), (Nanos(500), 3));
    }

    #[test]
    fn a_panic_of_the_sink_reaches_who_stops() {
        let mut samples = 0;
        let sink = move |_| {
            samples += 1;
            assert_eq!(samples, 1, "the second sample is too much for this sink");
        };
        let observer = Observer::start(Path::new("/"), vec![], Nanos::from_secs(3600.0), sink).unwrap();
        assert!(thread::spawn(move || observer.stop()).join().is_err());
    }

    #[test]
    fn a_period_of_nothing_is_refused() {
        let error = Observer::start(Path::new("/"), vec![], Nanos(0), |_| ()).unwrap_err();
        assert_eq!(error.to_string(), "the machine cannot be observed every 0 ns; take 1 ms or more");
    }
}
