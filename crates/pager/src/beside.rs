//! What a process holds that waits for nothing, beside one of its family that is followed and short of memory. The kernel would take what
//! such a process has not used for longest; where what is left is never used up it takes nothing, and a heap that was needed once stays
//! for good. So all of it goes out once it has come to rest; what is used comes back, and then it is tried ever more rarely.

/// Anonymous bytes from which on it is worth it; and more than this part of the limit, one in so many, is no rest of something but what
/// the process is there for.
const WORTH: u64 = 2 << 20;
const MOST: u64 = 16;
/// Looks in a row at which it was no more or less than so many bytes different, and hardly ran: it has come to rest.
const RESTS: u32 = 4;
const SAME: u64 = 256 << 10;
/// After so long what is back is what it uses, in ns; and it is left alone for so long, twice as long each time that as much is back.
const BACK: u64 = 5_000_000_000;
const WAIT: u64 = 10_000_000_000;
const MOST_WAIT: u64 = 600_000_000_000;

/// One such process.
#[derive(Debug)]
pub struct Beside {
    /// What it had when it came to rest, and the looks since then.
    held: (u64, u32),
    /// When it was sent out, until what is back was counted.
    sent: Option<u64>,
    until: u64,
    wait: u64,
}

impl Default for Beside {
    fn default() -> Self {
        Beside { held: (0, 0), sent: None, until: 0, wait: WAIT }
    }
}

impl Beside {
    /// Whether what it has is to go out now: so many anonymous bytes in memory, below a limit of so many; and whether it runs.
    pub fn goes(&mut self, held: u64, limit: u64, runs: bool, now: u64) -> bool {
        let (rest, looks) = self.held;
        // From where it came to rest, so that what grows slowly has not.
        self.held = if !runs && held.abs_diff(rest) <= SAME { (rest, looks + 1) } else { (held, 0) };
        if let Some(at) = self.sent {
            if now.saturating_sub(at) < BACK {
                return false;
            }
            self.sent = None;
            self.wait = if held >= WORTH { (2 * self.wait).min(MOST_WAIT) } else { WAIT };
            self.until = at + self.wait;
        }
        if !(WORTH..=limit / MOST).contains(&held) || self.held.1 < RESTS || now < self.until {
            return false;
        }
        self.sent = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const MIB: u64 = 1 << 20;

    /// The seconds in which it went out, of so many, looked at twice a second; what it has is told by the second and whether it went.
    fn played_by(runs: bool, seconds: u64, held: impl Fn(u64, &[u64]) -> u64) -> Vec<u64> {
        let (mut beside, mut went) = (Beside::default(), Vec::new());
        for half in 0..2 * seconds {
            if beside.goes(held(half / 2, &went), 650 * MIB, runs, half * SECOND / 2) {
                went.push(half / 2);
            }
        }
        went
    }

    fn played(seconds: u64, held: impl Fn(u64, &[u64]) -> u64) -> Vec<u64> {
        played_by(false, seconds, held)
    }

    #[test]
    fn what_came_to_rest_goes_once_and_again_when_as_much_is_there_again() {
        let heap = |second: u64, went: &[u64]| match went.last() {
            None => 6 * MIB,
            Some(_) if (120..125).contains(&second) => 8 * MIB + second % 2 * MIB,
            Some(last) if second >= 125 && *last < 120 => 7 * MIB,
            Some(_) => MIB,
        };
        assert_eq!(played(300, heap), [2, 127]);
    }

    #[test]
    fn what_is_small_or_large_or_changes_is_left_alone_and_what_is_used_as_good_as() {
        assert!(played(300, |_, _| MIB).is_empty() && played(300, |_, _| 100 * MIB).is_empty());
        assert!(played(300, |second, _| 4 * MIB + second % 2 * MIB).is_empty());
        assert!(played_by(true, 300, |_, _| 4 * MIB).is_empty(), "it runs");
        let times = played(3600, |_, _| 20 * MIB);
        assert!(times.len() <= 12 && times.windows(3).all(|of| of[2] - of[1] >= of[1] - of[0]), "{times:?}");
    }
}
