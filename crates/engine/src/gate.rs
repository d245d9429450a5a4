//! Where the threads of a job meet: all are ready before any starts, and whoever waits for their end is woken by it.

use crate::EngineError;
use crate::worker::Timeline;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// All threads ready, or one that cannot be; then the word to go.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    ready: usize,
    error: Option<EngineError>,
    dropped: Vec<(String, String)>,
    go: Option<Timeline>,
    cancelled: bool,
    done: usize,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// A thread is ready, with what it does without, or cannot be. Returns the moments of the run, or nothing when there
    /// will be none.
    pub(crate) fn arrive(&self, result: Result<Vec<(String, String)>, EngineError>) -> Option<Timeline> {
        let mut state = self.lock();
        match result {
            Ok(dropped) => {
                for feature in dropped {
                    if !state.dropped.contains(&feature) {
                        state.dropped.push(feature);
                    }
                }
                state.ready += 1;
            }
            Err(error) => {
                state.error.get_or_insert(error);
                state.cancelled = true;
            }
        }
        self.change.notify_all();
        let waits = |state: &mut GateState| state.go.is_none() && !state.cancelled;
        let state = self.change.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if state.cancelled { None } else { state.go }
    }
    /// Nobody will start.
    pub(crate) fn cancel(&self) {
        self.lock().cancelled = true;
        self.change.notify_all();
    }
    /// Waits for all threads, then lets them go.
    pub(crate) fn open(&self, threads: usize, timeline: impl FnOnce() -> Timeline) -> Result<Timeline, EngineError> {
        let waits = |state: &mut GateState| state.ready < threads && !state.cancelled;
        let mut state = self.change.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let timeline = timeline();
        state.go = Some(timeline);
        self.change.notify_all();
        Ok(timeline)
    }
    /// A thread is done; whoever waits should look.
    fn leave(&self) {
        self.lock().done += 1;
        self.change.notify_all();
    }
    /// What the threads do without, each once.
    pub(crate) fn dropped(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.lock().dropped)
    }
    /// Waits until all `threads` are done or `time` has passed; true when they are done.
    pub(crate) fn wait_done(&self, threads: usize, time: Duration) -> bool {
        let waits = |state: &mut GateState| state.done < threads;
        let (state, _) =
            self.change.wait_timeout_while(self.lock(), time, waits).unwrap_or_else(PoisonError::into_inner);
        state.done == threads
    }
}

/// Counts a thread as done on every way out of it.
pub(crate) struct Leaving<'a>(pub(crate) &'a Gate);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    const TIMELINE: Timeline = Timeline { start: 1, measure: 2, end: 3 };

    #[test]
    fn all_start_together_and_are_waited_for() {
        let gate = Gate::default();
        let twice = || vec![("feature".to_owned(), "reason".to_owned())];
        let started = std::thread::scope(|scope| {
            let threads = [(); 2].map(|()| {
                scope.spawn(|| {
                    let _leaving = Leaving(&gate);
                    gate.arrive(Ok(twice())).map(|t| t.end)
                })
            });
            assert_eq!(gate.open(2, || TIMELINE).unwrap().start, 1);
            assert!(gate.wait_done(2, Duration::from_secs(10)));
            threads.map(|t| t.join().unwrap())
        });
        assert_eq!(started, [Some(3), Some(3)]);
        assert_eq!(gate.dropped(), twice());
        assert!(!gate.wait_done(3, Duration::from_millis(1)));
    }

    /// One thread that cannot be ready keeps all others from starting, and the caller hears why.
    #[test]
    fn one_that_fails_stops_all() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let ready = scope.spawn(|| gate.arrive(Ok(Vec::new())).is_none());
            let source = io::ErrorKind::OutOfMemory.into();
            scope.spawn(|| gate.arrive(Err(EngineError::System { what: "buffers", source })).is_none());
            assert!(gate.open(2, || TIMELINE).is_err());
            assert!(ready.join().unwrap());
        });
    }
}
