//! Faults, and how they are written: `KIND[:KEY=VALUE[,KEY=VALUE…]]`. Each has operations that it looks at (`on`), a range
//! of the disk, a probability or a countdown (`after`, `times`), and a seed; equal operations meet equal fates.

use crate::error::SlowdiskError;
use basics::{Bytes, Nanos};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::str::FromStr;

/// What is done to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Read or written.
    Read,
    /// Written, zeros included.
    Write,
    /// Made durable.
    Flush,
    /// Given back.
    Trim,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// `eio`: the operation fails.
    Eio,
    /// `enospc`: a write fails for lack of room.
    Enospc,
    /// `corrupt`: one bit is turned over, silently: of a read in what is read, of a write in what is stored.
    Corrupt,
    /// `stall`: nothing moves for so long.
    Stall(Nanos),
    /// `slow`: the operation takes so many times as long.
    Slow(f64),
    /// `disconnect`: everything fails, until `return` or for so long. What was written is kept.
    Disconnect(Option<Nanos>),
    /// `power-cut`: what was not flushed is lost, everything fails, for so long or until nobody uses the disk any more.
    PowerCut(Option<Nanos>),
    /// `lying-flush`: a flush says that it is done and does nothing.
    LyingFlush,
    /// `wrap`: addresses from here on are those from the front again.
    Wrap(Bytes),
    /// `return`: a disconnected or cut-off disk is there again.
    Return,
    /// `clear`: no faults any more; the disk is there, with its whole size.
    Clear,
}

/// One fault at work.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What goes wrong.
    pub kind: Kind,
    /// As it was written.
    pub text: String,
    on: Vec<Act>,
    range: Option<(u64, u64)>,
    p: f64,
    after: u64,
    times: Option<u64>,
    /// Where chance begins.
    pub seed: u64,
    rng: Xoshiro256PlusPlus,
    seen: u64,
    /// How often it has struck.
    pub fired: u64,
}

/// Kinds, what they look at when nothing is said, and the keys that are theirs alone.
const KINDS: [(&str, &[Act], &[&str]); 11] = [
    ("eio", &[Act::Read, Act::Write, Act::Flush], &[]),
    ("enospc", &[Act::Write], &[]),
    ("corrupt", &[Act::Write], &[]),
    ("stall", &[Act::Read, Act::Write, Act::Flush], &["for"]),
    ("slow", &[Act::Read, Act::Write, Act::Flush], &["factor"]),
    ("disconnect", &[Act::Read, Act::Write, Act::Flush], &["for"]),
    ("power-cut", &[Act::Read, Act::Write, Act::Flush], &["for"]),
    ("lying-flush", &[Act::Flush], &[]),
    ("wrap", &[], &["size"]),
    ("return", &[], &[]),
    ("clear", &[], &[]),
];
/// Keys that every kind with operations has.
const COMMON: [&str; 6] = ["on", "p", "after", "times", "range", "seed"];
/// Longest stall, and time away.
const LONGEST: Nanos = Nanos(3_600_000_000_000);

impl Fault {
    /// True when it takes effect at once, not at some operation: a kind that only sets a state, or a power cut or a
    /// disconnection without a word on when.
    pub fn is_immediate(&self) -> bool {
        match self.kind {
            Kind::Wrap(_) | Kind::Return | Kind::Clear => true,
            Kind::PowerCut(_) | Kind::Disconnect(_) => !self
                .text
                .split([':', ','])
                .any(|word| ["on=", "p=", "after=", "times=", "range="].iter().any(|key| word.trim().starts_with(key))),
            _ => false,
        }
    }

    /// Whether this operation is struck; counts it. A flush has no place, and no range excludes it.
    pub fn strikes(&mut self, act: Act, offset: u64, len: u64) -> bool {
        let within = self.range.is_none_or(|(from, to)| act == Act::Flush || (offset < to && offset + len > from));
        if !self.on.contains(&act) || !within || self.times == Some(self.fired) {
            return false;
        }
        self.seen += 1;
        if self.seen <= self.after {
            return false;
        }
        if self.p < 1.0 && unit(&mut self.rng) >= self.p {
            return false;
        }
        self.fired += 1;
        true
    }

    /// Of an operation that is to be corrupted: which byte of it, inside the range if it has one, and which bit.
    pub fn bit(&mut self, offset: u64, len: u64) -> (u64, u8) {
        let (from, to) = self.range.unwrap_or((0, u64::MAX));
        let (from, to) = (from.max(offset), to.min(offset + len));
        let at = from + self.rng.next_u64() % (to.saturating_sub(from)).max(1);
        (at, (self.rng.next_u64() & 7) as u8)
    }
}

fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

impl FromStr for Fault {
    type Err = SlowdiskError;

    fn from_str(spec: &str) -> Result<Self, SlowdiskError> {
        parse(spec.trim()).map_err(|why| SlowdiskError::Fault { spec: spec.to_owned(), why })
    }
}

fn parse(spec: &str) -> Result<Fault, String> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let Some((_, acts, own)) = KINDS.iter().find(|(kind, ..)| *kind == name) else {
        let known: Vec<&str> = KINDS.iter().map(|(kind, ..)| *kind).collect();
        return Err(format!("the kinds are {}", known.join(", ")));
    };
    let mut fault = Fault {
        kind: Kind::Eio,
        text: spec.to_owned(),
        on: acts.to_vec(),
        range: None,
        p: 1.0,
        after: 0,
        times: None,
        seed: 1,
        rng: Xoshiro256PlusPlus::seed_from_u64(1),
        seen: 0,
        fired: 0,
    };
    let (mut lasts, mut factor, mut size) = (None, None, None);
    for word in rest.split(',').filter(|word| !word.is_empty()) {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("{word:?} is not KEY=VALUE"))?;
        let keys = COMMON.iter().filter(|_| !acts.is_empty()).chain(own.iter());
        if !keys.clone().any(|known| *known == key) {
            let known: Vec<&str> = keys.copied().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{name} has no key {key:?} (its keys: {known})"));
        }
        let number = || value.parse::<u64>().map_err(|_| format!("{key} is {value:?}, not a whole number"));
        match key {
            "on" => fault.on = value.split('+').map(|act| self::act(act, acts)).collect::<Result<_, _>>()?,
            "p" => fault.p = decimal(key, value).and_then(|p| within(key, p, 0.0, 1.0))?,
            "after" => fault.after = number()?,
            "times" => fault.times = Some(number()?),
            "seed" => fault.seed = number()?,
            "range" => fault.range = Some(range(value)?),
            "for" => lasts = Some(duration(value)?),
            "factor" => factor = Some(decimal(key, value).and_then(|factor| within(key, factor, 0.001, 1e6))?),
            _ => size = Some(value.parse::<Bytes>().map_err(|error| error.to_string())?),
        }
    }
    fault.rng = Xoshiro256PlusPlus::seed_from_u64(fault.seed);
    fault.kind = match name {
        "eio" => Kind::Eio,
        "enospc" => Kind::Enospc,
        "corrupt" => Kind::Corrupt,
        "stall" => Kind::Stall(lasts.ok_or("it needs for=DURATION, such as for=500ms")?),
        "slow" => Kind::Slow(factor.ok_or("it needs factor=NUMBER")?),
        "disconnect" => Kind::Disconnect(lasts),
        "power-cut" => Kind::PowerCut(lasts),
        "lying-flush" => Kind::LyingFlush,
        "wrap" => Kind::Wrap(size.filter(|size| size.0 >= 4096).ok_or("it needs size=SIZE of 4 KiB or more")?),
        "return" => Kind::Return,
        _ => Kind::Clear,
    };
    // A disk that is gone is gone once.
    if matches!(fault.kind, Kind::Disconnect(_) | Kind::PowerCut(_)) && fault.times.is_none() {
        fault.times = Some(1);
    }
    Ok(fault)
}

fn act(word: &str, possible: &[Act]) -> Result<Act, String> {
    let act = match word {
        "read" => Act::Read,
        "write" => Act::Write,
        "flush" => Act::Flush,
        "trim" => Act::Trim,
        _ => return Err(format!("on is {word:?}; it may be read, write, flush, trim, or several with + between")),
    };
    // Nothing can be corrupted in a flush, and no read runs out of room.
    match possible {
        [Act::Flush] if act != Act::Flush => Err("it is about flushes alone".to_owned()),
        [Act::Write] if matches!(act, Act::Flush | Act::Trim) => Err("it is about reads and writes alone".to_owned()),
        _ => Ok(act),
    }
}

fn decimal(key: &str, value: &str) -> Result<f64, String> {
    value.parse().map_err(|_| format!("{key} is {value:?}, not a number"))
}

fn within(key: &str, value: f64, low: f64, high: f64) -> Result<f64, String> {
    if (low..=high).contains(&value) { Ok(value) } else { Err(format!("{key} must be between {low} and {high}")) }
}

fn duration(value: &str) -> Result<Nanos, String> {
    let time: Nanos = value.parse().map_err(|error: basics::units::UnitError| error.to_string())?;
    if time <= LONGEST { Ok(time) } else { Err(format!("{time} is longer than an hour")) }
}

fn range(value: &str) -> Result<(u64, u64), String> {
    let (from, to) = value.split_once('-').ok_or_else(|| format!("range is {value:?}, not FROM-TO"))?;
    let size = |text: &str| text.parse::<Bytes>().map(|size| size.0).map_err(|error| error.to_string());
    let (from, to) = (size(from)?, size(to)?);
    if from < to { Ok((from, to)) } else { Err(format!("range {value:?} is empty")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(spec: &str) -> Fault {
        spec.parse().unwrap()
    }

    #[test]
    fn every_kind_is_understood() {
        for (spec, kind) in [
            ("eio", Kind::Eio),
            ("eio:on=read+flush,p=0.01,range=1MiB-2MiB,seed=7", Kind::Eio),
            ("enospc:after=100,times=3", Kind::Enospc),
            ("corrupt:on=read,p=0.001", Kind::Corrupt),
            ("stall:for=500ms,after=10,times=1", Kind::Stall(Nanos::from_millis(500))),
            ("slow:factor=2.5,on=write", Kind::Slow(2.5)),
            ("disconnect", Kind::Disconnect(None)),
            ("disconnect:for=2s", Kind::Disconnect(Some(Nanos::from_millis(2000)))),
            ("power-cut:after=100,seed=3", Kind::PowerCut(None)),
            ("lying-flush:p=0.5", Kind::LyingFlush),
            ("wrap:size=1GiB", Kind::Wrap(Bytes(1 << 30))),
            ("return", Kind::Return),
            ("clear", Kind::Clear),
        ] {
            assert_eq!(fault(spec).kind, kind, "{spec}");
        }
        assert!(fault("power-cut:seed=3").is_immediate() && !fault("power-cut:after=3").is_immediate());
    }

    #[test]
    fn mistakes_are_named() {
        for (spec, says) in [
            ("eoi", "the kinds are eio, enospc"),
            ("eio:on=reads", "read, write, flush"),
            ("eio:p=2", "between 0 and 1"),
            ("eio:p=often", "not a number"),
            ("eio:range=2MiB-1MiB", "empty"),
            ("eio:range=1MiB", "FROM-TO"),
            ("eio:frequency=2", "no key \"frequency\""),
            ("eio:p", "KEY=VALUE"),
            ("stall", "for=DURATION"),
            ("stall:for=2h", "longer than an hour"),
            ("slow", "factor=NUMBER"),
            ("wrap", "size=SIZE"),
            ("lying-flush:on=write", "flushes alone"),
            ("enospc:on=flush", "reads and writes"),
            ("return:p=1", "its keys: none"),
            ("", "the kinds are"),
        ] {
            let error = spec.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(says), "{spec}: {error}");
        }
    }

    #[test]
    fn countdown_range_and_chance() {
        let mut countdown = fault("eio:on=write,after=2,times=2");
        let struck: Vec<bool> = (0..6).map(|_| countdown.strikes(Act::Write, 0, 512)).collect();
        assert_eq!(struck, [false, false, true, true, false, false]);
        assert!(!countdown.strikes(Act::Read, 0, 512));

        let mut placed = fault("eio:range=1MiB-2MiB");
        assert!(!placed.strikes(Act::Read, 0, 1 << 20));
        assert!(placed.strikes(Act::Read, 0, (1 << 20) + 1) && placed.strikes(Act::Write, (2 << 20) - 1, 9));
        assert!(!placed.strikes(Act::Read, 2 << 20, 9) && placed.strikes(Act::Flush, 0, 0));

        let strikes = |spec: &str| {
            let mut chance = fault(spec);
            (0..10_000).map(|_| chance.strikes(Act::Read, 0, 512)).collect::<Vec<_>>()
        };
        let struck = strikes("eio:p=0.01,seed=7");
        assert!((60..150).contains(&struck.iter().filter(|&&struck| struck).count()));
        assert_eq!(struck, strikes("eio:p=0.01,seed=7"));
        assert_ne!(struck, strikes("eio:p=0.01,seed=8"));
    }

    #[test]
    fn a_corrupted_bit_lies_in_the_range() {
        let mut corrupt = fault("corrupt:range=4KiB-4097");
        let (at, bit) = corrupt.bit(0, 8192);
        assert_eq!(at, 4096);
        assert!(bit < 8);
    }
}
