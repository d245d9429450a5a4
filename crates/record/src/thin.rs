//! Fewer entries that say the same: neighbouring intervals joined, and one of as many samples, which are counters as they
//! stood. The last of each is held back until it is known whether more follows.

use crate::blob::RawInterval;
use crate::spool::{BEGIN, Entries, Entry, INTERVAL, LONGEST_ENTRY, MEASURED, SAMPLE, encode};
use basics::Interval;
use std::fs::File;
use std::io::{self, BufWriter, Write};

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

/// Writes entries as long as there is room.
pub(crate) struct Bounded<'a> {
    out: BufWriter<&'a File>,
    /// Bytes written.
    pub end: u64,
    room: u64,
    body: Vec<u8>,
}

impl<'a> Bounded<'a> {
    pub fn new(file: &'a File, room: u64) -> Self {
        Bounded { out: BufWriter::new(file), end: 0, room, body: Vec::new() }
    }

    /// False without room.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<bool> {
        self.end += bytes.len() as u64;
        let fits = self.end <= self.room;
        if fits {
            self.out.write_all(bytes)?;
        }
        Ok(fits)
    }

    /// What was written is in the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn entry(&mut self, step: u32, kind: u8, content: impl FnOnce(&mut Vec<u8>)) -> io::Result<bool> {
        let mut body = std::mem::take(&mut self.body);
        encode(&mut body, step, kind, content);
        let fits = body.len() <= 8 + LONGEST_ENTRY as usize && self.write(&body)?;
        self.body = body;
        Ok(fits)
    }

    fn interval(&mut self, step: u32, interval: Option<Interval>) -> io::Result<bool> {
        interval.map_or(Ok(true), |one| self.entry(step, INTERVAL, |body| RawInterval::of(&one).encode(body)))
    }

    fn sample(&mut self, step: u32, sample: Option<Vec<u8>>) -> io::Result<bool> {
        sample.map_or(Ok(true), |json| self.entry(step, SAMPLE, |body| body.extend_from_slice(&json)))
    }
}

/// False when there was no room for all.
pub(crate) fn copy_thinned(entries: Entries<'_>, factor: u32, out: &mut Bounded<'_>) -> io::Result<bool> {
    let mut thinner = Thinner::new(factor);
    let mut now = 0;
    let rest = |thinner: &mut Thinner, step, out: &mut Bounded<'_>| -> io::Result<bool> {
        let (interval, sample) = thinner.rest();
        Ok(out.interval(step, interval)? && out.sample(step, sample)?)
    };
    for (step, entry) in entries {
        if step != now {
            if !rest(&mut thinner, now, out)? {
                return Ok(false);
            }
            now = step;
        }
        let fits = match entry {
            Entry::Begin(at) => out.entry(step, BEGIN, |body| body.extend_from_slice(&at.0.to_le_bytes()))?,
            Entry::Measured(at) => out.entry(step, MEASURED, |body| body.extend_from_slice(&at.0.to_le_bytes()))?,
            Entry::Interval(raw) => {
                let interval = raw.interval().map_err(|error| io::Error::other(error.to_string()))?;
                let complete = thinner.interval(&interval);
                out.interval(step, complete)?
            }
            Entry::Sample(json) => {
                let kept = thinner.sample(json.into_bytes());
                out.sample(step, kept)?
            }
        };
        if !fits {
            return Ok(false);
        }
    }
    rest(&mut thinner, now, out)
}
