//! How long a program is left alone after following it was no good. One that went elsewhere may come back at once; where following
//! took longer than the kernel alone, or no lap ever ended, it costs the program so much each time that it is tried ever more rarely.

use std::time::Duration;

/// At first, and at most, where it went elsewhere soon.
const FIRST: Duration = Duration::from_millis(500);
const MOST: Duration = Duration::from_secs(4);
/// Followed for so long, it was worth it where it then went elsewhere.
const LONG: Duration = Duration::from_secs(20);
/// So many times as long as it was followed in vain, the second time in a row: the first may have been another phase of it than the
/// one in which it was learned. Four times as many each further time, and no longer than that. Short times add up, too: a program that
/// was followed for two seconds in each six lost a fifth of its speed.
const VAIN: u32 = 2;
const MOST_VAIN: Duration = Duration::from_secs(600);

/// What is remembered of it.
#[derive(Debug)]
pub struct Penance {
    time: Duration,
    times: u32,
}

impl Default for Penance {
    fn default() -> Self {
        Penance { time: FIRST, times: 0 }
    }
}

impl Penance {
    /// There was no order to follow; how long it is left alone.
    pub fn usual(&self) -> Duration {
        self.time
    }

    /// It was followed for so long, and went elsewhere.
    pub fn elsewhere(&mut self, followed: Duration) -> Duration {
        self.time = if followed < LONG { (self.time * 2).min(MOST) } else { FIRST };
        self.time
    }

    /// It was followed for so long, and that was no gain, or no lap ended.
    pub fn in_vain(&mut self, followed: Duration) -> Duration {
        let (before, usual) = (self.times, self.elsewhere(followed));
        self.times = (before + 1).min(5);
        if before == 0 { usual } else { (followed * (VAIN << (2 * (before - 1)))).clamp(usual, MOST_VAIN) }
    }

    /// Following it is a gain.
    pub fn gains(&mut self) {
        self.times = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_gain_is_tried_ever_more_rarely() {
        let (mut penance, followed) = (Penance::default(), Duration::from_secs(25));
        let times: Vec<_> = (0..5).map(|_| penance.in_vain(followed).as_secs_f64()).collect();
        assert_eq!(times, [0.5, 50.0, 200.0, 600.0, 600.0]);
        penance.gains();
        assert_eq!(penance.in_vain(followed), FIRST);
        let short = Duration::from_secs(2);
        let times: Vec<_> = (0..4).map(|_| penance.in_vain(short).as_secs_f64()).collect();
        assert_eq!(times, [4.0, 16.0, 64.0, 256.0], "it adds up");
    }

    #[test]
    fn who_goes_elsewhere_may_come_back_soon() {
        let mut penance = Penance::default();
        let times: Vec<_> = (0..4).map(|_| penance.elsewhere(Duration::from_secs(5)).as_millis()).collect();
        assert_eq!(times, [1000, 2000, 4000, 4000]);
        assert_eq!(penance.elsewhere(LONG), FIRST);
    }
}
