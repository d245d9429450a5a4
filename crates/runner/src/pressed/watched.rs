//! Watches the process under pressure for its memory curve while it is measured, in a thread of this process, which is outside
//! of the limit.

use basics::Bytes;
use basics::curve::Watched;
use observe::accesses::{Accesses, Account, Options, PERIOD, Seen};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use study::curve::{Reuse, curve, today};

/// Of the process's time that watching may take: more than where nobody asked for it, since what it takes is known and given back
/// in what is said.
const SHARE: f64 = 0.08;
/// Sizes between which the curve tells apart.
const SIZES: u64 = 512;

/// Watching, until it is ended or dropped.
pub(super) struct Watcher {
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

impl Watcher {
    /// Begins to watch a process.
    pub fn of(pid: u32) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&enough);
        let watch = move || match watch(pid, &stop) {
            Ok(watched) => watched,
            Err(error) => {
                Watched { trouble: Some(format!("the process cannot be watched: {error}")), ..Watched::default() }
            }
        };
        Watcher { enough, thread: Some(std::thread::spawn(watch)) }
    }

    /// What was seen.
    pub fn end(mut self) -> Watched {
        self.enough.store(true, Relaxed);
        let seen = self.thread.take().and_then(|thread| thread.join().ok());
        seen.unwrap_or_else(|| Watched { trouble: Some("the watching thread failed".to_owned()), ..Watched::default() })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.enough.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(pid: u32, enough: &AtomicBool) -> std::io::Result<Watched> {
    let mut accesses = Accesses::open(pid, Options { share: SHARE, ..Options::default() })?;
    let begun: Account = accesses.account();
    let mut reuse = Reuse::new(Bytes((begun.whole.0 / SIZES).max(1)), begun.ratio);
    let mut each = |seen| match seen {
        Seen::Ready { at } => reuse.begin(at),
        Seen::Entered { key } => reuse.enter(key),
        Seen::Touched { at, key, bytes } => reuse.touch(at, key, bytes),
        Seen::Thinned { below, ratio } => reuse.thin(below, ratio),
    };
    while !enough.load(Relaxed) && accesses.poll(&mut each)? {
        std::thread::sleep(PERIOD.into());
    }
    let account = accesses.account();
    tracing::debug!("{account:?}");
    let page = Bytes(rustix::param::page_size() as u64);
    let seen = curve(&reuse, account.elapsed, account.movable()).zip(today(&account, page));
    Ok(Watched { time: account.elapsed, seen, lost: account.lost, ..Watched::default() })
}
