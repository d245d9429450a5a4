//! A write cache as it fills and empties.

use crate::format::Cache;

/// How full the write cache is.
#[derive(Debug, Clone)]
pub(crate) struct Level {
    cache: Cache,
    bytes: f64,
    at: f64,
    /// When the last write came: between writes it may empty at another rate.
    written: f64,
}

/// A pause between writes after which a cache counts as idle.
const IDLE_NS: f64 = 100e6;

impl Level {
    /// An empty one.
    pub(crate) fn new(cache: Cache) -> Self {
        Level { cache, bytes: 0.0, at: 0.0, written: 0.0 }
    }
    /// Takes a write; how long it must wait for room, ns.
    pub(crate) fn take(&mut self, len: f64, now: f64) -> f64 {
        let rate = |mbps: f64| mbps / 1e3;
        let busy = rate(self.cache.drain_mbps);
        let idle = rate(self.cache.idle_drain_mbps.unwrap_or(self.cache.drain_mbps));
        // `at` runs ahead of the clock while writes wait for room.
        let gone = (now - self.at).max(0.0);
        let quiet = (now - self.written - IDLE_NS).clamp(0.0, gone);
        self.bytes = (self.bytes - (gone - quiet) * busy - quiet * idle).max(0.0) + len;
        self.at = self.at.max(now);
        self.written = now;
        let over = (self.bytes - self.cache.size.0 as f64).max(0.0);
        let until = self.at + over / busy;
        self.bytes -= over;
        self.at = until;
        until - now
    }
}
