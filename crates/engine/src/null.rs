//! The null target: nothing is called, so what is measured is the harness; or, with a service time and stalls, a device
//! whose behaviour is known and against which the engine itself is tested.

use crate::blocking::{Device, libc_errno};
use crate::pace::wait_until;
use crate::queued::{Piece, Queue};
use crate::stream::Op;
use basics::Nanos;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::clock::{Clock, Rate};

/// A device that does nothing, or nothing for a while.
#[derive(Debug)]
pub(crate) struct Null<'a> {
    clock: Clock,
    rate: Rate,
    stop: &'a AtomicBool,
    start: u64,
    service: u64,
    /// Period and length of a stall; it is the end of each period.
    stall: Option<(u64, u64)>,
    /// At depth: slot, when it will be complete, and its result.
    pending: Vec<(u32, u64, i32)>,
    now: u64,
}

impl<'a> Null<'a> {
    /// Stalls are counted from `start` on.
    pub(crate) fn new(
        service: Nanos,
        stall: Option<(Nanos, Nanos)>,
        (clock, rate, start): (Clock, Rate, u64),
        stop: &'a AtomicBool,
        depth: u32,
    ) -> Self {
        let ticks = |n: Nanos| rate.ticks(n.0 as f64) as u64;
        let stall = stall.map(|(period, length)| (ticks(period).max(1), ticks(length.min(period))));
        let pending = Vec::with_capacity(depth as usize);
        Null { clock, rate, stop, start, service: ticks(service), stall, pending, now: 0 }
    }
    fn is_idle(&self) -> bool {
        self.service == 0 && self.stall.is_none()
    }
    /// When an operation sent at `now` completes: after the stall that it falls into, and its service time.
    fn completion(&self, now: u64) -> u64 {
        let after_stall = match self.stall {
            None => now,
            Some((period, length)) => {
                let phase = now.saturating_sub(self.start) % period;
                if phase >= period - length { now + period - phase } else { now }
            }
        };
        after_stall + self.service
    }
}

impl Device for Null<'_> {
    fn prepare(&mut self, _op: &Op) {}
    #[inline]
    fn perform(&mut self, _op: &Op) -> Result<(), i32> {
        if self.is_idle() {
            return Ok(());
        }
        let due = self.completion(self.clock.ticks());
        match wait_until(due, self.clock, self.rate, self.stop) {
            Some(_) => Ok(()),
            None => Err(libc_errno::ECANCELED),
        }
    }
    fn flush(&mut self, _data_only: bool) -> Result<(), i32> {
        Ok(())
    }
}

impl Queue for Null<'_> {
    fn room(&self) -> u32 {
        u32::MAX
    }
    #[inline]
    fn issue(&mut self, slot: u32, piece: Piece) {
        let due = if self.is_idle() { 0 } else { self.completion(self.clock.ticks()) };
        let result = match piece {
            Piece::Transfer { op, done, .. } => op.len - done,
            Piece::Flush { .. } => 0,
        };
        self.pending.push((slot, due, result as i32));
    }
    fn enter(&mut self, wait: bool, at_most: Option<Duration>) -> Result<(), i32> {
        if self.is_idle() {
            return Ok(());
        }
        self.now = self.clock.ticks();
        let Some(first) = self.pending.iter().map(|(_, due, _)| *due).min() else { return Ok(()) };
        if wait && first > self.now {
            let limit = at_most.map_or(u64::MAX, |t| self.now + self.rate.ticks(t.as_nanos() as f64) as u64);
            match wait_until(first.min(limit), self.clock, self.rate, self.stop) {
                Some(now) => self.now = now,
                None => {
                    for (_, due, result) in &mut self.pending {
                        (*due, *result) = (0, -libc_errno::ECANCELED);
                    }
                }
            }
        }
        Ok(())
    }
    #[inline]
    fn reap(&mut self) -> Option<(u32, i32)> {
        let ready = if self.is_idle() {
            self.pending.len().checked_sub(1)?
        } else {
            self.pending.iter().position(|(_, due, _)| *due <= self.now)?
        };
        let (slot, _, result) = self.pending.swap_remove(ready);
        Some((slot, result))
    }
    fn is_all_done(&self) -> bool {
        self.pending.iter().all(|(_, due, _)| *due <= self.now)
    }
    fn flush(&mut self, _data_only: bool) -> Result<(), i32> {
        Ok(())
    }
}
