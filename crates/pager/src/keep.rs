//! How much of a cycle is kept in memory. Of the room that there is, what is on its way in and what waits to go out needs a part, and so
//! does what nobody can count (the swap cache's stale pages, the kernel's own). Where a control group tells what it has left, that last part
//! is what leaves it next to nothing in the mean of a lap, and at no moment less; else it is found by trying: smaller while nothing kept is
//! lost, larger when it is. A little too much kept costs far more than a little too little.

/// At first, and at least.
const SLACK: u64 = 16 << 20;
const LEAST: u64 = 2 << 20;
/// Lost in a lap without meaning anything, of all that is kept.
const NOISE: f64 = 0.000_5;
/// Lost so much of what is kept, less is kept.
const HARM: f64 = 0.003;
/// Lost so much of it, there is no waiting until the room has settled.
const FAR: f64 = 0.25;
/// The same of what was brought in where nothing was left: one unit now and then is no harm.
const OVER: u64 = 8 << 20;
const FAR_OVER: u64 = 4 * OVER;
/// What is to be left in the mean of a lap, where that is told: it differs by half as much from one moment to the next. More where it
/// differs by more, so that it is never less than nothing: the kernel takes forty pages for one then, and a slow disk needs a lap or two to
/// bring them back.
const SPARE: i64 = 1 << 20;
/// Of the room, taken or given at a time.
const STEP: f64 = 0.008;
/// Laps for which a size that was too much is not tried again.
const WARY: u32 = 12;

/// Steps are doubled so often at most.
const FASTEST: u32 = 3;

/// Ends of laps until what is lost speaks of the present size.
const SETTLING: u8 = 2;

/// The size of the kept part.
#[derive(Debug)]
pub struct Keep {
    slack: u64,
    /// Slack that was too little, and laps until it may be tried again.
    bad: Option<(u64, u32)>,
    lost: u64,
    /// What was left in a lap, where that is told, in all and how often it was looked at; and bytes that were brought in where there was
    /// nothing left.
    balance: (i64, i64),
    /// The least that was left at any moment.
    least: i64,
    over: u64,
    wary: u32,
    /// It was made smaller since it last was too little: what is lost now is that trial's doing, and no disturbance from outside.
    tried: bool,
    /// How often in a row too much was lost: the further off, the longer the steps.
    hurts: u32,
    /// Laps until what is lost says something: after a change of the room it is found to be gone a whole lap long.
    settling: u8,
}

impl Default for Keep {
    fn default() -> Self {
        Keep {
            slack: SLACK,
            bad: None,
            lost: 0,
            balance: (0, 0),
            least: i64::MAX,
            over: 0,
            wary: WARY,
            tried: false,
            hurts: 0,
            settling: 1,
        }
    }
}

impl Keep {
    /// It was one of so many cycles below the same limit, and is one of so many now.
    pub fn beside(&mut self, before: u64, now: u64) {
        self.slack = (self.slack * before / now).max(LEAST);
        self.settling = self.settling.max(1);
    }

    /// Bytes to keep of so much room, when so much of it is needed for what comes and goes.
    pub fn bytes(&self, room: u64, moving: u64) -> u64 {
        room.saturating_sub(moving + self.slack)
    }

    /// So many kept bytes were found to be gone.
    pub fn lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// So much is left before the kernel makes room by itself, or so much less than nothing.
    pub fn balance(&mut self, bytes: i64) {
        self.balance = (self.balance.0 + bytes, self.balance.1 + 1);
    }

    /// So much is, at one of the many moments of a lap.
    pub fn at_least(&mut self, bytes: i64) {
        self.least = self.least.min(bytes);
    }

    /// So many bytes were brought in where nothing was left.
    pub fn over(&mut self, bytes: u64) {
        self.over += bytes;
    }

    /// Whether so much was lost, or brought in where nothing was left, that it cannot wait for the lap's end.
    pub fn is_hurt(&self, kept: u64) -> bool {
        let (lost, over) = if self.settling == 0 { (8.0 * HARM, OVER) } else { (FAR, FAR_OVER) };
        self.lost as f64 > lost * kept as f64 + (1 << 20) as f64 || self.over > over
    }

    /// Nothing to speak of was lost of late: what was brought in was there until its turn.
    pub fn is_calm(&self) -> bool {
        self.settling == 0 && self.lost < 1 << 20
    }

    /// A lap is over, or it could not wait.
    pub fn lap(&mut self, room: u64, kept: u64) {
        let (lost, over) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.over));
        let (sum, looks) = std::mem::take(&mut self.balance);
        let least = std::mem::replace(&mut self.least, i64::MAX);
        if self.settling > 0 && lost as f64 <= FAR * kept as f64 && over <= FAR_OVER {
            self.settling -= 1;
            return;
        }
        let step = ((room as f64 * STEP) as u64).max(1 << 20);
        if let Some((_, wait)) = &mut self.bad {
            *wait = wait.saturating_sub(1);
        }
        let harmed = lost as f64 > HARM * kept as f64;
        if harmed || over > OVER {
            // What was tried and was too much twice is longer left alone.
            if std::mem::take(&mut self.tried) && self.bad.is_some() {
                self.wary = (self.wary * 2).min(64 * WARY);
            }
            self.bad = Some((self.slack, self.wary));
            // Where next to nothing is left, all that is brought in is brought in where nothing is: it does not say how far off it is.
            let more = if harmed { step.max(lost.min(2 * step)) } else { step / 2 };
            self.slack = (self.slack + (more << self.hurts)).min(room / 2);
            self.hurts = (self.hurts + 1).min(FASTEST);
            // What went at once is found to be gone until all has been passed.
            self.settling = SETTLING;
        } else if looks > 0 {
            self.hurts = 0;
            // Half of it is taken at a time: what is kept from now on is there a lap later.
            let more = (SPARE - sum / looks).max(least.saturating_neg());
            self.slack = self.slack.saturating_add_signed(if more > 0 { more } else { more / 2 }).min(room / 2);
            self.settling = u8::from(more.unsigned_abs() > step / 8);
        } else if lost as f64 <= NOISE * kept as f64 {
            self.hurts = 0;
            // Towards what was too little, half of the way at a time.
            let half = self.bad.map_or(0, |(bad, _)| bad.midpoint(self.slack));
            let lower = self.slack.saturating_sub(step).max(half.min(self.slack)).max(LEAST);
            match self.bad {
                Some((bad, wait)) if lower <= bad + step / 2 && wait > 0 => {}
                _ => (self.slack, self.tried) = (lower, lower < self.slack),
            }
        }
    }

    /// The room is another now. What nobody can count is what it was: less room has to hold it as well.
    pub fn changed(&mut self) {
        *self = Keep { slack: self.slack, settling: SETTLING, ..Keep::default() };
    }

    /// What is left free beside all that is counted.
    pub fn slack(&self) -> u64 {
        self.slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_settles_below_what_is_too_much() {
        let (mut keep, room, truth) = (Keep::default(), 600 << 20, 570u64 << 20);
        let mut over = 0;
        for lap in 0..200 {
            let kept = keep.bytes(room, 16 << 20);
            let lost = if kept > truth { 20 << 20 } else { 0 };
            over += u32::from(lost > 0);
            keep.lost(lost);
            keep.lap(room, kept);
            assert!(lap < 3 || kept > truth - (30 << 20), "{lap}: {kept}");
        }
        assert!(over < 10, "{over}");
        assert_eq!(keep.bytes(0, 1), 0);
    }

    #[test]
    fn a_little_too_much_is_no_reason_for_a_leap() {
        let (mut keep, room) = (Keep::default(), 600 << 20);
        keep.lap(room, 0);
        let before = keep.slack();
        keep.balance(-SPARE);
        keep.balance(-3 * SPARE);
        keep.lap(room, 0);
        assert_eq!(keep.slack(), before + 3 * SPARE as u64);
    }

    #[test]
    fn what_is_left_at_the_worst_moment_of_a_lap_counts_too() {
        let (mut keep, room) = (Keep::default(), 600 << 20);
        keep.lap(room, 0);
        let before = keep.slack();
        keep.balance(SPARE);
        keep.at_least(-2 * SPARE);
        keep.at_least(SPARE);
        keep.lap(room, 0);
        assert_eq!(keep.slack(), before + 2 * SPARE as u64);
        keep.balance(SPARE);
        keep.at_least(1);
        keep.lap(room, 0);
        assert_eq!(keep.slack(), before + 2 * SPARE as u64, "that was another lap's");
    }

    #[test]
    fn where_it_is_told_what_is_left_all_of_it_is_used() {
        // Beside what is counted there are 9 MB, and later, of which nobody knows why, 30 MB more.
        let (mut keep, room) = (Keep::default(), 600u64 << 20);
        let mut laps = |count: u32, other: u64| {
            let used = |keep: &Keep| keep.bytes(room, 16 << 20) + (16 << 20) + other;
            for _ in 0..count {
                keep.balance(room as i64 - used(&keep) as i64);
                keep.over(used(&keep).saturating_sub(room));
                keep.lap(room, 0);
            }
            used(&keep)
        };
        for used in [laps(20, 9 << 20), laps(20, 39 << 20)] {
            assert!(used.abs_diff(room) < 2 << 20, "{used}");
        }
    }
}
