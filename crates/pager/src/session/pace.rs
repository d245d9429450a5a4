//! How long nothing needs to be done while a process is followed: less than what is asked for ahead of it lasts, more where it pauses.

use super::Session;
use crate::streams::Streams;
use std::time::Duration;

/// Without a fault for so long, in ns, it pauses; and for so long, it does so for good.
const PAUSES: u64 = 30_000_000;
const IDLES: u64 = 1_000_000_000;
/// Seconds between two steps at least; and at most where not every fault is told, of a quick disk and of any.
const SHORTEST: f64 = 4e-4;
const QUICK: f64 = 3e-3;
const LONGEST: f64 = 16e-3;
/// The same where every fault is told: while the program runs, or waits for what is asked for, and while it stands.
const RUNS: f64 = 1e-3;
const STANDS: f64 = 4e-3;

impl Session {
    /// Until the next step.
    pub(super) fn pace(&self, now: u64) -> Duration {
        let follow = self.follow.as_ref();
        match now.saturating_sub(self.active) {
            _ if follow.is_some_and(Streams::fits) => Duration::from_millis(20),
            ..PAUSES if self.bringing < 1.0 => Duration::from_secs_f64(SHORTEST),
            // A third of what is asked for ahead may be used meanwhile; of a slow disk a quarter, and that is longer. In a burst the
            // processors are the program's.
            ..PAUSES => {
                let lasts = follow.map_or(0, Streams::window) as f64 / self.bringing;
                let most = match follow.is_some_and(|follow| follow.is_busy(now)) {
                    _ if !self.every => (lasts / 4.0).clamp(QUICK, LONGEST),
                    true => RUNS,
                    false => STANDS,
                };
                Duration::from_secs_f64((lasts / 3.0).clamp(SHORTEST, most))
            }
            PAUSES..IDLES => Duration::from_millis(2),
            IDLES.. => Duration::from_millis(20),
        }
    }
}
