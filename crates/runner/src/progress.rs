//! What a run tells whoever watches it; called between and during the steps, always on the runner's own thread.

use basics::plan::Step;
use basics::{Bytes, Interval, Nanos, Plan};
use record::StepRecord;

/// Someone who watches a run.
pub trait Progress {
    /// The run begins.
    fn begin(&mut self, _plan: &Plan) {}
    /// A test file is being written before `step` (the `index`th).
    fn filling(&mut self, _index: usize, _step: &Step, _done: Bytes, _of: Bytes) {}
    /// A server was started for `step` (the `index`th) and answers there; its files lie on these disks.
    fn serving(&mut self, _index: usize, _step: &Step, _at: &redisd::Address, _disks: &[String]) {}
    /// `step` (the `index`th) has been running for `elapsed`, its warm-up not counted; the last interval is given.
    fn measuring(&mut self, _index: usize, _step: &Step, _elapsed: Nanos, _interval: &Interval) {}
    /// A step is over and committed.
    fn finished(&mut self, _index: usize, _record: &StepRecord) {}
    /// Something that the user should know at once.
    fn note(&mut self, _text: &str) {}
    /// The run is over.
    fn end(&mut self) {}
}

/// Nobody watches.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}
