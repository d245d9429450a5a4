//! One direction of a device, and the streams by which sequential operations are told from random ones.

use crate::format::Direction;
use crate::medium::Medium;
use std::collections::VecDeque;

/// Streams whose ends are remembered, to tell sequential from random operations.
const STREAMS: usize = 16;
/// An operation goes on with a stream when it begins this many of its own lengths, at most, from where the stream ended:
/// a queue reorders. What two operations have not yet made a stream goes on exactly where it ended: in a small region
/// random places are near to each other too.
const STRAY: u64 = 4;

/// One direction.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) random: Medium,
    pub(crate) sequential: Option<Medium>,
    /// The latest at the back.
    streams: VecDeque<Stream>,
    /// Until when operations of this direction are under way.
    pub(crate) busy_until: f64,
}

/// Operations that go on where others ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Where the next one is expected.
    end: u64,
    /// When the last one will be done.
    pub(crate) done: f64,
    /// It has more than one operation.
    is_known: bool,
}

impl Side {
    pub(crate) fn new(direction: &Direction) -> Self {
        Side {
            random: Medium::new(&direction.random),
            sequential: direction.sequential.as_ref().map(Medium::new),
            streams: VecDeque::with_capacity(STREAMS),
            busy_until: 0.0,
        }
    }
    /// The stream that an operation goes on with, if it does, taken out.
    pub(crate) fn stream(&mut self, offset: u64, len: u64) -> Option<Stream> {
        let stray = |stream: &Stream| if stream.is_known { STRAY * len } else { 0 };
        let index = self.streams.iter().rposition(|stream| stream.end.abs_diff(offset) <= stray(stream))?;
        self.streams.remove(index)
    }
    /// Nothing of it is under way after `now`.
    pub(crate) fn rest(&mut self, now: f64) {
        self.busy_until = self.busy_until.min(now);
        self.streams.iter_mut().for_each(|stream| stream.done = stream.done.min(now));
    }
    /// Keeps what an operation up to `end` has made of the stream that it went on with.
    pub(crate) fn remember(&mut self, before: Option<Stream>, end: u64, done: f64) {
        if self.streams.len() == STREAMS {
            self.streams.pop_front();
        }
        let end = before.map_or(end, |before| before.end.max(end));
        self.streams.push_back(Stream { end, done, is_known: before.is_some() });
    }
}
