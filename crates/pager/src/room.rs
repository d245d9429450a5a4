//! The room that there is for a process's cycle: what its limits leave when others have what they need. Others are what is held below
//! the tightest limit beyond what was counted of the cycle itself.

use crate::counts::resident;
use crate::limits::{Limit, Limits};
use crate::memory::Memory;
use crate::streams::Streams;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

/// Between two looks at limits, in ns; what is held below them is looked at every third time.
const LOOK: u64 = 100_000_000;
const SOME: u64 = 3;
/// Between two counts of what of a cycle is in memory, at least, and so many times what one takes; and what others may take before it is
/// counted as theirs.
const COUNT: u64 = 1_500_000_000;
const RARELY: u64 = 400;
const NEIGHBOUR: f64 = 48e6;

/// Left to what is on its way: what the kernel counts for each processor in advance, what was asked for and is not counted yet.
const MARGIN: u64 = 1 << 20;
/// Of a limit, less than this part, one in so many, are pages of files where they do not matter.
const FILES: u64 = 16;

/// A cycle that became longer or shorter by more than this part, one in so many, is soon counted anew, and that count taken as it is: what
/// turned up in it was others' before.
const OTHER: u64 = 64;

/// What of a cycle was found to be in memory.
#[derive(Debug, Clone, Copy)]
struct Held {
    at: u64,
    bytes: u64,
    /// All of the cycle then.
    cycle: u64,
    /// What looking took, in ns.
    took: u64,
    /// What all of the process had then.
    resident: u64,
}

/// The room of one process.
#[derive(Debug)]
pub struct Room {
    pid: u32,
    limits: Limits,
    numbers: Vec<Option<u64>>,
    /// The limit that is the tightest, and what others hold below it.
    tightest: Option<Limit>,
    others: Option<f64>,
    /// Where it is told how much there is below that limit.
    used: Option<File>,
    held: Option<Held>,
    numbers_at: u64,
    measured_at: u64,
}

impl Room {
    /// Below the limits that hold this process now; it may go to another group later.
    pub fn of(pid: u32) -> Self {
        let limits = Limits::of(pid);
        Room {
            pid,
            numbers: limits.numbers(),
            limits,
            tightest: None,
            others: None,
            used: None,
            held: None,
            numbers_at: 0,
            measured_at: 0,
        }
    }

    /// Bytes that others hold, as far as is known.
    pub fn others(&self) -> f64 {
        self.others.unwrap_or(0.0)
    }

    /// Whether a control group is what limits it.
    pub fn is_a_group(&self) -> bool {
        self.used.is_some()
    }

    /// The limit that is the tightest, in bytes, if it holds this process, too.
    pub fn shared_with(&self, pid: u32) -> Option<u64> {
        self.tightest.filter(|limit| self.limits.hold(limit.level, pid)).map(|limit| limit.limit)
    }

    /// Bytes until the kernel begins to look for pages that can go; as a control group counts them, if one is the tightest limit. Where
    /// much of it are pages of files nobody can say: they fill it up and leave by themselves.
    pub fn left(&self) -> Option<u64> {
        let limit = self.tightest.filter(|limit| limit.files < limit.limit / FILES)?;
        let mut text = [0; 24];
        let read = self.used.as_ref()?.read_at(&mut text, 0).ok()?;
        let used: u64 = std::str::from_utf8(&text[..read]).ok()?.trim().parse().ok()?;
        Some((limit.limit + limit.idle_files).saturating_sub(used + MARGIN))
    }

    /// Has the kernel count anew what its limits hold (see there).
    pub fn renew_counts(&self) {
        self.limits.renew();
    }

    /// Whether it is time to measure it again: now and then, and at once when a limit is another than before.
    pub fn is_due(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.numbers_at) < LOOK {
            return false;
        }
        self.numbers_at = now;
        let numbers = self.limits.numbers();
        let changed = numbers != self.numbers;
        self.numbers = numbers;
        if changed {
            self.held = None;
        }
        changed || now.saturating_sub(self.measured_at) >= SOME * LOOK
    }

    /// Bytes of it for this cycle, of a process that met a fault last at `active`; none where nothing limits it.
    pub fn measure(&mut self, follow: &Streams, memory: &mut Memory, active: u64, now: u64) -> Option<u64> {
        self.measured_at = now;
        let limit = self.limits.tightest()?;
        let before = self.tightest.replace(limit);
        if before.is_none_or(|before| before.level != limit.level) {
            (self.held, self.others, self.used) = (None, None, self.limits.used(limit.level));
        }
        let counted = self.counted(&limit, follow, memory, active, now);
        // Who needs much more gets it at once.
        let more = limit.held.saturating_sub(counted) as f64;
        let smooth = self.others.unwrap_or(more);
        let smooth = if more > smooth + NEIGHBOUR { more - NEIGHBOUR / 2.0 } else { smooth };
        Some(limit.limit.saturating_sub(smooth as u64))
    }

    /// What is of the cycle is counted now and then; in between it has become so much more or less as the process has, and others
    /// show as what is held beyond that. While nothing happens, nothing needs to be counted.
    fn counted(&mut self, limit: &Limit, follow: &Streams, memory: &mut Memory, active: u64, now: u64) -> u64 {
        let (resident, cycle) = (resident(self.pid, memory.page()), follow.bytes());
        let is_other = self.held.is_none_or(|held| OTHER * cycle.abs_diff(held.cycle) > cycle);
        if let Some(held) = self.held {
            let pause = if is_other { COUNT } else { COUNT.max(RARELY * held.took) };
            if now.saturating_sub(held.at) < pause || active < held.at {
                return (held.bytes + resident).saturating_sub(held.resident);
            }
        }
        let begun = Instant::now();
        let bytes = follow.count(memory);
        self.held = Some(Held { at: now, bytes, cycle, took: begun.elapsed().as_nanos() as u64, resident });
        let others = limit.held.saturating_sub(bytes) as f64;
        let before = self.others.filter(|_| !is_other);
        self.others = Some(before.map_or(others, |before| 0.5 * before + 0.5 * others));
        bytes
    }
}
