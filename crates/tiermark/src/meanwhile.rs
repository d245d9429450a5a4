//! `--live`: the whole terminal while something is measured, drawn once a second by a thread of its own, so that nobody who
//! measures waits for a terminal.

use crate::out;
use crate::screen::{Screen, clock};
use crate::verbs::watch::Look;
use anyhow::Result;
use basics::{Interval, Nanos};
use machine::Root;
use report::live::{Live, Work};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks.
const EVERY: Nanos = Nanos::from_millis(1000);
/// A key is heard after so long.
const KEYS: Duration = Duration::from_millis(200);

/// What is shown while it is measured.
#[derive(Default)]
pub struct Meanwhile {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    latest: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Shared {
    work: Mutex<Work>,
    said: Mutex<Vec<String>>,
    ends: AtomicBool,
}

impl Meanwhile {
    /// Takes the terminal over.
    pub fn start(&mut self) {
        let shared = Arc::clone(&self.shared);
        shared.ends.store(false, Relaxed);
        // Without a thread nothing is shown, and all is measured all the same.
        self.thread = std::thread::Builder::new()
            .name("live".to_owned())
            .spawn(move || {
                if let Err(error) = shown(&shared) {
                    out::say(&format!("nothing is shown meanwhile: {error:#}"));
                }
            })
            .ok();
    }

    /// Gives it back.
    pub fn end(&mut self) {
        self.shared.ends.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for text in locked(&self.shared.said).drain(..) {
            out::say(&text);
        }
    }

    /// Which step is under way, and the time left.
    pub fn step(&self, step: String, left: Option<String>) {
        let mut work = locked(&self.shared.work);
        work.step = step;
        work.left = left;
    }

    /// What the last interval brought; one a second is enough.
    pub fn interval(&self, interval: &Interval) {
        let mut latest = locked(&self.latest);
        if latest.is_some_and(|at| at.elapsed() < Duration::from_nanos(EVERY.0)) {
            return;
        }
        *latest = Some(Instant::now());
        let seconds = (interval.end - interval.start).secs().max(1e-9);
        let mut latencies = interval.read.latency.clone();
        latencies.merge(&interval.write.latency);
        let mut work = locked(&self.shared.work);
        work.mbps = Some((interval.read.bytes + interval.write.bytes) as f64 / seconds / 1e6);
        work.per_s = Some((interval.read.operations() + interval.write.operations()) as f64 / seconds);
        let at = |percent| latencies.percentile(percent).map(Nanos::us);
        work.latency_us = at(50.0).zip(at(99.0)).zip(at(99.9)).map(|((p50, p99), p999)| [p50, p99, p999]);
    }

    /// Something that the user should know at once; it is said again once the terminal is as it was.
    pub fn say(&self, text: &str) {
        locked(&self.shared.said).push(text.to_owned());
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        self.end();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown(shared: &Shared) -> Result<()> {
    let machine = machine::read(&Root::live());
    let mut live = Live::new(&machine, std::env::var_os("NO_COLOR").is_none());
    let Some(mut screen) = Screen::take()? else { return Ok(()) };
    let mut look = Look::start(&machine, EVERY)?;
    let (mut told, mut asked) = (0, false);
    while !shared.ends.load(Relaxed) {
        // The terminal hands keys over as they are typed, Ctrl-C among them: what it would have done is done here. Once: a second
        // signal would end the process before all is undone.
        if asked {
            std::thread::sleep(KEYS);
        } else if screen.ends(KEYS) {
            asked = true;
            let _ = kill_process(getpid(), Signal::INT);
        }
        let Some(seen) = look.next(Duration::ZERO)? else { continue };
        live.look(&clock(), seen.flow, seen.memory, seen.events);
        live.working(Some(locked(&shared.work).clone()));
        let said = locked(&shared.said);
        said[told.min(said.len())..].iter().for_each(|text| live.say(&clock(), text));
        told = said.len();
        drop(said);
        screen.draw(&live)?;
    }
    Ok(())
}
