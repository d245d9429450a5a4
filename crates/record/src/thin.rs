//! Fewer entries that say the same: neighbouring intervals joined, and one of as many samples, which are counters as they
//! stood. The last of each is held back until it is known whether more follows.

use basics::Interval;

/// Joins what comes one after the other.
#[derive(Debug)]
pub(crate) struct Thinner {
    /// How many intervals become one, and of how many samples one is kept.
    pub together: u32,
    joined: Option<(Interval, u32)>,
    last_sample: Option<Vec<u8>>,
    samples: u32,
}

impl Thinner {
    pub fn new(together: u32) -> Self {
        Thinner { together, joined: None, last_sample: None, samples: 0 }
    }

    /// Takes an interval; gives one that is complete. None is joined across a gap, of which study must know.
    pub fn interval(&mut self, next: &Interval) -> Option<Interval> {
        let (joined, complete) = match self.joined.take() {
            Some((mut joined, parts)) if joined.end == next.start => {
                joined.join(next);
                ((joined, parts + 1), None)
            }
            before => ((next.clone(), 1), before.map(|(interval, _)| interval)),
        };
        if joined.1 >= self.together && complete.is_none() {
            return Some(joined.0);
        }
        self.joined = Some(joined);
        complete
    }

    /// Takes a sample as it is to be stored; gives it back when it is one to keep.
    pub fn sample(&mut self, sample: Vec<u8>) -> Option<Vec<u8>> {
        let keep = self.samples == 0;
        self.samples = (self.samples + 1) % self.together;
        self.last_sample = None;
        if keep {
            return Some(sample);
        }
        self.last_sample = Some(sample);
        None
    }

    /// Nothing more follows: what was held back.
    pub fn rest(&mut self) -> (Option<Interval>, Option<Vec<u8>>) {
        self.samples = 0;
        (self.joined.take().map(|(interval, _)| interval), self.last_sample.take())
    }
}
