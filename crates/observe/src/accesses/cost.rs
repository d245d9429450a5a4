//! What faults take, and what watching may take.

use basics::Nanos;
use std::collections::HashMap;
use sys::faults::Fault;

/// Before any was timed.
const GUESS: Nanos = Nanos(50_000);
/// How much the guess weighs, in faults.
const WEIGHT: u64 = 4;
/// To be told of one fault. Touches that all missed, 13 µs each out of zram, took up to 1 µs longer with it.
const TOLD: Nanos = Nanos(700);
/// Threads that meet fewer of the faults than this part of what the busiest meets do not hold the work up.
const BUSY: f64 = 0.1;
/// What is not spent is kept for so long.
const KEPT: Nanos = Nanos::from_millis(1000);

/// Of a thread.
#[derive(Debug, Default, Clone, Copy)]
struct Thread {
    faults: u64,
    /// How long it was listened to, without what it waited for a processor.
    time: Nanos,
    /// How long it had waited for a processor when listening began.
    waited: Nanos,
}

/// Sums of timed faults.
#[derive(Debug, Default)]
pub(super) struct Cost {
    listening: Option<Nanos>,
    /// Sent out by us: how long they took, and how many.
    induced: (Nanos, u64),
    natural: (Nanos, u64),
    threads: HashMap<u32, Thread>,
}

impl Cost {
    pub fn listening(&self) -> bool {
        self.listening.is_some()
    }

    /// `waited` tells how long each thread has waited for a processor so far. On a busy machine that is most of the time,
    /// and it would pass for work: a kernel takes the processor away at the end of a fault rather than within.
    pub fn begin(&mut self, now: Nanos, waited: &[(u32, Nanos)]) {
        self.listening = Some(now);
        for (tid, waited) in waited {
            self.threads.entry(*tid).or_default().waited = *waited;
        }
    }

    pub fn end(&mut self, now: Nanos, waited: &[(u32, Nanos)]) {
        let Some(begun) = self.listening.take() else { return };
        for (tid, waited) in waited {
            let thread = self.threads.entry(*tid).or_default();
            thread.time = thread.time + ((now - begun) - (*waited - thread.waited));
        }
    }

    pub fn fault(&mut self, fault: &Fault, ours: bool) {
        let Some(took) = fault.took else { return };
        let (sum, count) = if ours { &mut self.induced } else { &mut self.natural };
        (*sum, *count) = (*sum + Nanos(took), *count + 1);
        self.threads.entry(fault.tid).or_default().faults += 1;
    }

    /// What one of ours takes.
    pub fn induced(&self) -> Nanos {
        let (sum, count) = self.induced;
        Nanos((sum.0 + WEIGHT * GUESS.0) / (count + WEIGHT))
    }

    /// What one takes that is not ours.
    pub fn natural(&self) -> Option<Nanos> {
        Some(Nanos(self.natural.0.0.checked_div(self.natural.1)?))
    }

    /// Part of the time of the threads that meet faults, of which waiting for a processor is none.
    pub fn stalled(&self) -> Option<f64> {
        let most = self.threads.values().map(|thread| thread.faults).max()?;
        let busy = self.threads.values().filter(|thread| thread.faults as f64 >= BUSY * most as f64);
        let time: f64 = busy.map(|thread| thread.time.secs()).sum();
        (time > 0.0).then(|| (self.natural.0.secs() / time).min(1.0))
    }
}

/// How long each thread of a process has waited for a processor so far: `/proc/PID/task/TID/schedstat`, where there is one.
pub(super) fn waited(pid: u32) -> Vec<(u32, Nanos)> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let one = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let tid = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
        let waited = text.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok());
        Some((tid, Nanos(waited.unwrap_or(0))))
    };
    threads.filter_map(one).collect()
}

/// The share of the process's time that may be spent.
#[derive(Debug)]
pub(super) struct Purse {
    share: f64,
    /// In ns.
    coins: f64,
    earned: Option<Nanos>,
    /// For what we were told since, and in all: faults.
    owed: u64,
    told: u64,
    thinned: Nanos,
}

impl Purse {
    pub fn new(share: f64) -> Self {
        Purse { share, coins: 0.0, earned: None, owed: 0, told: 0, thinned: Nanos(0) }
    }

    /// What the time since the last call allows. To be told of faults is paid first, but with half of it at most, or where
    /// there are many nothing would be left to learn by.
    pub fn earn(&mut self, now: Nanos) {
        let since = now - self.earned.replace(now).unwrap_or(now);
        let wages = self.share * since.0 as f64;
        let told = (self.owed * TOLD.0) as f64;
        self.owed = 0;
        self.coins = (self.coins + wages - told.min(wages / 2.0)).min(self.share * KEPT.0 as f64);
    }

    pub fn told(&mut self, faults: u64) {
        self.owed += faults;
        self.told += faults;
    }

    pub fn pay(&mut self, price: Nanos) -> bool {
        let enough = self.coins >= price.0 as f64;
        if enough {
            self.coins -= price.0 as f64;
        }
        enough
    }

    pub fn give_back(&mut self, price: Nanos) {
        self.coins += price.0 as f64;
    }

    /// Too many wait; true when the last time that something was done about it is long enough ago.
    pub fn late(&mut self, now: Nanos, again: Nanos) -> bool {
        let enough = now - self.thinned >= again;
        if enough {
            self.thinned = now;
        }
        enough
    }

    /// Part of the time that was really spent.
    pub fn spent(&self, induced: u64, price: Nanos, elapsed: Nanos) -> f64 {
        let spent = (induced * price.0 + self.told * TOLD.0) as f64;
        if elapsed.0 == 0 { 0.0 } else { spent / elapsed.0 as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_spent_than_earned() {
        let mut purse = Purse::new(0.03);
        let mut paid = 0;
        for ms in 0..2000 {
            purse.earn(Nanos::from_millis(ms));
            while purse.pay(Nanos(100_000)) {
                paid += 1;
            }
        }
        assert!((595..=600).contains(&paid), "{paid}");
        purse.told(1_000_000);
        purse.earn(Nanos::from_millis(3000));
        assert!(purse.pay(Nanos(14_900_000)) && !purse.pay(Nanos(200_000)));
        let spent = purse.spent(600, Nanos(100_000), Nanos::from_millis(3000));
        assert!((spent - 0.02 - 0.7 / 3.0).abs() < 1e-9, "{spent}");
    }

    #[test]
    fn threads_that_hardly_fault_do_not_count() {
        let mut cost = Cost::default();
        assert_eq!((cost.induced(), cost.natural(), cost.stalled()), (GUESS, None, None));
        cost.begin(Nanos(0), &[(1, Nanos(500)), (2, Nanos(0)), (3, Nanos(0))]);
        let fault = |tid, took| Fault { at: 0, tid, addr: 0, major: true, took };
        for _ in 0..1000 {
            cost.fault(&fault(1, Some(500)), false);
            cost.fault(&fault(2, Some(300)), false);
            cost.fault(&fault(2, None), false);
        }
        cost.fault(&fault(3, Some(100)), false);
        cost.fault(&fault(3, Some(1_000_000)), true);
        // A fifth of the time it waited.
        cost.end(Nanos(1_000_000), &[(1, Nanos(200_500)), (2, Nanos(200_000)), (3, Nanos(0))]);
        let stalled = cost.stalled().unwrap();
        assert!((stalled - 0.800_1 / 1.6).abs() < 1e-6, "{stalled}");
        assert_eq!(cost.induced(), Nanos(1_200_000 / 5));
    }
}
