//! A kernel cuts an operation that is larger than a request may be, and sends the parts one after the other without waiting.
//! A device is told one long operation, not several: the emulated disk, which sees only the parts, puts them together again.
//! A request belongs to the one before it when it goes on at once where that ended, and that one was as large as requests
//! get. Where several operations of a stream are under way nobody can tell parts from operations: there all stay apart.

use std::collections::VecDeque;

/// What a request holds when it was cut: 128 segments (the kernel's default, `BLK_MAX_SEGMENTS`) of one page of 4 KiB.
const FULL: u64 = 128 * 4096;
/// Parts come at such distances at most, ns: tens of microseconds apart, but half a millisecond when 512 KiB of each are copied.
const AT_ONCE: f64 = 1e6;
/// Operations whose parts may still be coming.
const OPEN: usize = 16;
/// What is done so soon, ns, may have been answered: the way there and back is taken off at both ends.
const AS_GOOD_AS_DONE: f64 = 200e3;

/// An operation, as far as it has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) read: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Length of the latest part.
    pub(crate) last: u64,
    /// When that came, when it was over the link, what the medium took before the first byte, and when it will be done.
    pub(crate) came: f64,
    pub(crate) arrived: f64,
    pub(crate) latency: f64,
    pub(crate) done: f64,
    /// It goes on with a stream.
    pub(crate) sequential: bool,
}

/// The latest operations, each with whether it is one of several of its stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Runs(VecDeque<(Run, bool)>);

impl Runs {
    /// The operation that a request is a part of, taken out.
    pub(crate) fn take(&mut self, now: f64, read: bool, offset: u64, len: u64) -> Option<Run> {
        let belongs = |(run, is_one_of_several): &(Run, bool)| {
            // Two threads that pass requests on may swap two parts.
            let adjacent = (run.end == offset && run.last >= FULL) || (offset + len == run.start && len >= FULL);
            let at_once = now - run.came <= AT_ONCE && run.done > now;
            run.read == read && adjacent && at_once && !is_one_of_several
        };
        let index = self.0.iter().rposition(belongs)?;
        self.0.remove(index).map(|(run, _)| run)
    }
    pub(crate) fn remember(&mut self, run: Run) {
        let before = |(other, _): &(Run, bool)| {
            let is_older = run.came - other.came > AT_ONCE && other.done > run.came + AS_GOOD_AS_DONE;
            other.read == run.read && other.end == run.start && is_older
        };
        let is_one_of_several = self.0.iter().any(before);
        if self.0.len() == OPEN {
            self.0.pop_front();
        }
        self.0.push_back((run, is_one_of_several));
    }
}
