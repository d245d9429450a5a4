//! A kernel cuts an operation that is larger than a request may be, and sends the parts one after the other without waiting.
//! A device is told one long operation, not several: the emulated disk, which sees only the parts, puts them together again.
//! A request belongs to the one before it when it goes on where that ended, came at once after it, and that one was as large
//! as requests get.

use std::collections::VecDeque;

/// What a request holds when it was cut: 128 segments (the kernel's default, `BLK_MAX_SEGMENTS`) of one page of 4 KiB.
const FULL: u64 = 128 * 4096;
/// Parts come at such distances at most, ns: tens of microseconds apart, more when the CPU is taken in between.
const AT_ONCE: f64 = 300e3;
/// Operations whose parts may still be coming.
const OPEN: usize = 16;

/// An operation, as far as it has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) read: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Length of the latest part.
    pub(crate) last: u64,
    /// When that came, when it was over the link, and when it will be done.
    pub(crate) came: f64,
    pub(crate) arrived: f64,
    pub(crate) done: f64,
    /// It goes on with a stream.
    pub(crate) sequential: bool,
}

/// The latest operations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(VecDeque<Run>);

impl Runs {
    /// The operation that a request is a part of, taken out.
    pub(crate) fn take(&mut self, now: f64, read: bool, offset: u64, len: u64) -> Option<Run> {
        let belongs = |run: &Run| {
            // Two threads that pass requests on may swap two parts.
            let adjacent = (run.end == offset && run.last >= FULL) || (offset + len == run.start && len >= FULL);
            run.read == read && adjacent && now - run.came <= AT_ONCE && run.done > now
        };
        let index = self.0.iter().rposition(belongs)?;
        self.0.remove(index)
    }
    pub(crate) fn remember(&mut self, run: Run) {
        if self.0.len() == OPEN {
            self.0.pop_front();
        }
        self.0.push_back(run);
    }
}
