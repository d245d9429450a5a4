//! How far behind the program's slowest thread units go out. Too near, and a thread wants again what has just gone; too far, and
//! memory holds what nobody needs any more. It is found by trying: further after what went too soon, nearer after a lap without.

/// In units: at first, at least, and at most.
const FIRST: f64 = 16.0;
const LEAST: f64 = 4.0;
const MOST: f64 = 128.0;
/// Units sent out too soon, within so many, before more is left behind.
const EARLY: u32 = 3;
const WITHIN: i64 = 64;

/// The distance.
#[derive(Debug)]
pub struct Lag {
    units: f64,
    /// Where units were wanted again of late, and how many.
    run: (i64, u32),
    in_lap: u32,
}

impl Default for Lag {
    fn default() -> Self {
        Lag { units: FIRST, run: (0, 0), in_lap: 0 }
    }
}

impl Lag {
    /// In units.
    pub fn units(&self) -> f64 {
        self.units
    }

    /// A unit that went was wanted again, so far behind the front of a cycle of that length. True where no distance helps: it is too
    /// far back for any thread, or was early before.
    pub fn early(&mut self, back: i64, front: i64, len: i64, before: impl FnOnce() -> bool) -> bool {
        self.in_lap += 1;
        if back as f64 > 2.0 * self.units + FIRST || before() {
            return true;
        }
        let (at, count) = self.run;
        self.run = if front - at < WITHIN { (at, count + 1) } else { (front, 1) };
        if self.run.1 >= EARLY {
            self.run = (front, 0);
            self.units = (self.units * 1.5).min(MOST).min(len as f64 / 8.0);
        }
        false
    }

    /// A lap of so many units is over.
    pub fn lap(&mut self, len: i64) {
        if f64::from(std::mem::take(&mut self.in_lap)) <= 2.0 + len as f64 / 400.0 {
            self.units = (self.units * 0.7).max(LEAST);
        }
    }

    /// Places are counted otherwise now, from this front on.
    pub fn renewed(&mut self, front: i64) {
        self.run = (front, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_what_is_early_and_shrinks_by_clean_laps() {
        let mut lag = Lag::default();
        for front in 100..103 {
            assert!(!lag.early(20, front, 3000, || false));
        }
        assert_eq!(lag.units(), 24.0);
        assert!(lag.early(200, 104, 3000, || false), "no thread is that far behind");
        assert!(lag.early(20, 105, 3000, || true), "it is always so");
        (0..20).for_each(|_| lag.lap(3000));
        assert_eq!(lag.units(), LEAST);
    }
}
