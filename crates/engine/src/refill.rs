//! How many operations a queue is refilled with by one `enter`. On a disk each should go as soon as there is room for it:
//! waiting for company leaves the device idle for a moment, 5–9 % of the rate. Where the CPU is the limit (page cache, zram)
//! batches of 16 cost a fifth less. What answers within the `enter` that asks (the page cache) has no moment to be idle in and
//! always gets batches; which of the two another target is shows by trying.

use sys::clock::Rate;

/// What one `enter` sends at most; beyond 16 nothing is gained.
pub(crate) const BATCH: u32 = 16;
/// So many looks in a row that find all done make a target one that answers at once: what was sent last has had no time.
const AT_ONCE: u8 = 2;
/// Length of a try. Each way has two, in turns.
const TRY_NS: f64 = 10e6;
const TRIES: u8 = 4;
/// How long the better way is kept until the next try: four hundredths of the time are spent on trying.
const KEEP_NS: f64 = 1e9;
/// So much more batches have to bring: less is a disk's chance, and what waits for company would have its wait told as latency.
const WORTH: f64 = 1.1;

/// The present way, and the tries behind it.
#[derive(Debug)]
pub(crate) struct Refill {
    most: u32,
    /// Number of the present try; [`TRIES`] while the better way is kept.
    turn: u8,
    until: u64,
    /// Completions by single refills and by batches, and all when the present try began.
    gained: [u64; 2],
    before: u64,
    /// Looks in a row that found all done.
    all_done: u8,
    try_ticks: u64,
    keep_ticks: u64,
}

impl Refill {
    /// Begins with a try at `now`; or, when there is nothing to choose, always sends batches.
    pub(crate) fn new(now: u64, rate: Rate, choose: bool) -> Self {
        let try_ticks = rate.ticks(TRY_NS) as u64;
        let (most, turn, until) = if choose { (1, 0, now + try_ticks) } else { (BATCH, TRIES, u64::MAX) };
        let keep_ticks = rate.ticks(KEEP_NS) as u64;
        Refill { most, turn, until, gained: [0; 2], before: 0, all_done: 0, try_ticks, keep_ticks }
    }
    /// What to send at most.
    #[inline(always)]
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
    /// Is it time for a look?
    #[inline(always)]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.until
    }
    /// To be called then, after an `enter` that has not waited, with all completions before it and whether the target had
    /// answered everything when it returned.
    #[cold]
    pub(crate) fn look(&mut self, now: u64, completed: u64, is_all_done: bool) {
        self.all_done = if is_all_done { (self.all_done + 1).min(AT_ONCE) } else { 0 };
        if self.all_done == AT_ONCE {
            (self.turn, self.most, self.until) = (TRIES, BATCH, now + self.keep_ticks);
            return;
        }
        if self.turn == TRIES {
            (self.turn, self.gained) = (0, [0; 2]);
        } else {
            self.gained[usize::from(self.turn % 2)] += completed - self.before;
            self.turn += 1;
        }
        self.before = completed;
        let singles = match self.turn {
            TRIES => self.gained[1] as f64 <= WORTH * self.gained[0] as f64,
            turn => turn % 2 == 0,
        };
        self.most = if singles { 1 } else { BATCH };
        self.until = now + if self.turn == TRIES { self.keep_ticks } else { self.try_ticks };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::clock::Clock;

    /// What is kept after the tries on a target that completes so many in a try by either way.
    fn kept(singles: u64, batches: u64) -> u32 {
        let rate = Clock::best().rate();
        let step = rate.ticks(TRY_NS) as u64;
        let mut refill = Refill::new(0, rate, true);
        let (mut now, mut completed) = (0, 0);
        for _ in 0..TRIES {
            completed += if refill.most() == 1 { singles } else { batches };
            now += step;
            assert!(refill.is_due(now));
            refill.look(now, completed, false);
        }
        refill.most()
    }

    #[test]
    fn the_way_that_completes_more_is_kept() {
        assert_eq!(kept(725, 670), 1, "a disk");
        assert_eq!(kept(8_000, 11_000), BATCH, "the page cache");
        assert_eq!(kept(1_000, 1_050), 1, "chance");
    }

    #[test]
    fn what_answers_at_once_always_gets_batches() {
        let rate = Clock::best().rate();
        let (step, keep) = (rate.ticks(TRY_NS) as u64, rate.ticks(KEEP_NS) as u64);
        let mut refill = Refill::new(0, rate, true);
        refill.look(step, 9, true);
        refill.look(2 * step, 9, true);
        assert_eq!(refill.most(), BATCH, "without a trial");
        refill.look(2 * step + keep, 9, true);
        assert_eq!((refill.turn, refill.most()), (TRIES, BATCH), "nor another");
        refill.look(2 * step + 2 * keep, 9, false);
        assert_eq!((refill.turn, refill.most()), (0, 1), "until it has to be waited for");
    }

    #[test]
    fn it_is_tried_again_after_a_while() {
        let rate = Clock::best().rate();
        let mut refill = Refill::new(0, rate, true);
        let step = rate.ticks(TRY_NS) as u64;
        (1..=4).for_each(|n| refill.look(n * step, n, false));
        assert_eq!((refill.turn, refill.most()), (TRIES, 1));
        assert!(!refill.is_due(5 * step));
        refill.look(4 * step + rate.ticks(KEEP_NS) as u64 + 1, 6, false);
        assert_eq!((refill.turn, refill.most()), (0, 1));
        assert_eq!(Refill::new(0, rate, false).most(), BATCH);
    }
}
