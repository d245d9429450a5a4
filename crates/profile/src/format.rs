//! What a profile says, as it stands in its TOML file. Every field is optional: what is left out has the default that
//! its line states, and what has none is unknown, so that nothing can be asked of it.

use crate::distribution::Latency;
use basics::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// A device's behaviour, condensed. Rates are in 10^6 bytes a second.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short, in kebab-case.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub title: String,
    /// Where its figures come from.
    #[serde(default)]
    pub source: String,
    /// What to mind, each a sentence without its full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What its figures say against each other (Little's law, two figures of one thing), a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inconsistent: Vec<String>,
    /// What a fit could not see, by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<String>,
    /// Size when none is asked for. Default: 4 GiB.
    #[serde(default, with = "size", skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// What it really holds, where that is less than it claims: addresses beyond it wrap around. Default: all.
    #[serde(default, with = "size", skip_serializing_if = "Option::is_none")]
    pub real_size: Option<Bytes>,
    /// Operations that the medium works on at a time. Default: as many as come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Bytes beyond which an operation is split into several. Default: never.
    #[serde(default, with = "size", skip_serializing_if = "Option::is_none")]
    pub largest: Option<Bytes>,
    /// The bus, shared by all operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// Reads. Without it nothing can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Direction>,
    /// Writes, as long as the cache has room. Without it nothing can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Direction>,
    /// What reads and writes do to each other. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixed: Option<Mixed>,
    /// A write cache. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// What making written data durable costs. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush: Option<Flush>,
    /// Moments at which nothing moves.
    #[serde(default, rename = "stall", skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<Stall>,
    /// Places that are slower or faster than the rest.
    #[serde(default, rename = "zone", skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Zone>,
    /// What heat or time does to it. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdown>,
    /// Of a fitted profile: how well a field is known, by its dotted name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub confidence: BTreeMap<String, Confidence>,
    /// Of a fitted profile: other structures that explain its figures as well.
    #[serde(default, rename = "alternative", skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Alternative>,
}

/// Channels and link that could stand in the place of the profile's; what one operation alone takes stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// Default: as many as come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// The bus between the machine and the medium: one operation after the other passes it, and the medium moves its bytes
/// meanwhile: of one operation alone the slower of both rates counts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Default: no limit.
    #[serde(default, rename = "bandwidth_MBps", skip_serializing_if = "Option::is_none")]
    pub bandwidth_mbps: Option<f64>,
    /// What each operation costs on it, whatever its size. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_us: Option<f64>,
    /// Operations that it takes at a time, those in the medium included: 1 for USB bulk-only transport, 32 for SATA NCQ.
    /// Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
}

/// One direction: operations at random places, and those that go on where one before ended.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Direction {
    /// At random places.
    #[serde(flatten)]
    pub random: Pattern,
    /// In sequence; one stream is served one operation after the other. Default: as at random places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Pattern>,
}

/// Time on the medium: latency + size / bandwidth + what the table of sizes says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pattern {
    /// Whatever the size. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// Of one channel. Default: no limit.
    #[serde(default, rename = "bandwidth_MBps", skip_serializing_if = "Option::is_none")]
    pub bandwidth_mbps: Option<f64>,
    /// Further time by size, µs: in between in proportion, beyond the largest at its rate, below the smallest as that.
    /// Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub size_us: BTreeMap<String, f64>,
}

/// Factors on the time on the medium while operations of the other direction are under way.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mixed {
    /// On reads while writes are under way. Default: 1.
    #[serde(default = "one")]
    pub read_factor: f64,
    /// On writes while reads are under way. Default: 1.
    #[serde(default = "one")]
    pub write_factor: f64,
}

/// A write cache: it takes writes at the speed of `write` until it is full, and empties at a rate of its own, all the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// What it holds.
    #[serde(with = "exact_size")]
    pub size: Bytes,
    /// At which it empties while written to: the rate of writes when it is full.
    #[serde(rename = "drain_MBps")]
    pub drain_mbps: f64,
    /// At which it empties while nothing is written. Default: as while written to.
    #[serde(default, rename = "idle_drain_MBps", skip_serializing_if = "Option::is_none")]
    pub idle_drain_mbps: Option<f64>,
}

/// What a flush costs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// In any case. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Latency>,
    /// For each 10^6 bytes written since the last flush. Default: 0.
    #[serde(default, rename = "dirty_us_per_MB", skip_serializing_if = "Option::is_none")]
    pub dirty_us_per_mb: Option<f64>,
    /// Bytes since the last flush beyond which no more are charged. Default: no limit.
    #[serde(default, with = "size", skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bytes>,
}

/// A stall that comes back: garbage collection, a card that tidies up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// From the beginning of one to that of the next, on average.
    pub period_ms: f64,
    /// How long one lasts.
    pub length_ms: f64,
    /// Part of the period by which its beginning strays, 0 to 1. Default: 0.
    #[serde(default)]
    pub spread: f64,
}

/// A part of the device that is of another speed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// Where it begins, as a part of the device (0 to 1).
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// On the time on the medium.
    pub factor: f64,
}

/// What heat or time does to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Under way for so long.
    pub after_s: f64,
    /// On the time on the medium from then on.
    pub factor: f64,
    /// Idle time after which it is as at first. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovers_s: Option<f64>,
}

/// Between what the truth lies with 95 %, in the field's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confidence {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// A profile that cannot be used.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum ProfileError {
    /// No TOML, or not of a profile.
    #[error("{0}")]
    Syntax(String),
    /// A field is nonsense.
    #[error("profile {name}: {field} is {value}; {rule}")]
    Field {
        /// The profile's.
        name: String,
        /// Dotted.
        field: String,
        /// As it stands there.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Nothing of this name is shipped.
    #[error("there is no profile {0:?}; `tiermark profiles` lists them, and the path of a TOML file is taken too")]
    Unknown(String),
    /// A job asks for what nobody published or measured.
    #[error("profile {name} says nothing of {what}: it was not published or not measured")]
    Says {
        /// The profile's.
        name: String,
        /// `reads` or `writes`.
        what: &'static str,
    },
}

fn one() -> f64 {
    1.0
}

/// What a profile offers when nothing else is asked for.
const SIZE: Bytes = Bytes(4 << 30);
/// Longest that any time in a profile may be, µs: an hour.
const LONGEST_US: f64 = 3.6e9;

/// What TOML has to say, in one line: where, and what.
pub(crate) fn told(text: &str, error: &toml::de::Error) -> String {
    let what = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {what}", before.matches('\n').count() + 1),
        None => what,
    }
}

impl Profile {
    /// Reads and checks a profile.
    ///
    /// # Errors
    /// [`ProfileError::Syntax`] with line and column, [`ProfileError::Field`].
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|error| ProfileError::Syntax(told(text, &error)))?;
        profile.check()?;
        Ok(profile)
    }
    /// The profile as TOML; [`Profile::parse`] gives it back.
    ///
    /// # Errors
    /// When a number is too large for TOML.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        toml::to_string(self).map_err(|error| ProfileError::Syntax(error.to_string()))
    }
    /// Its size, or the default.
    pub fn size(&self) -> Bytes {
        self.size.unwrap_or(SIZE)
    }
    /// One direction, if anything is known of it.
    ///
    /// # Errors
    /// [`ProfileError::Says`].
    pub fn direction(&self, read: bool) -> Result<&Direction, ProfileError> {
        let (side, what) = if read { (&self.read, "reads") } else { (&self.write, "writes") };
        side.as_ref().ok_or_else(|| ProfileError::Says { name: self.name.clone(), what })
    }
    /// Refuses nonsense.
    ///
    /// # Errors
    /// [`ProfileError::Field`], the first one found.
    pub fn check(&self) -> Result<(), ProfileError> {
        let bad = |field: &str, value: String, rule| {
            Err(ProfileError::Field { name: self.name.clone(), field: field.to_owned(), value, rule })
        };
        let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || self.name.len() > 64 || !self.name.chars().all(is_kebab) {
            return bad(
                "name",
                format!("{:?}", self.name),
                "it must be 1 to 64 lower-case letters, digits and hyphens",
            );
        }
        for (field, value) in self.positive() {
            if !(value.is_finite() && value > 0.0) {
                return bad(&field, value.to_string(), "it must be above 0");
            }
        }
        for (field, value) in self.times() {
            if !(0.0..=LONGEST_US).contains(&value) {
                return bad(&field, format!("{value} µs"), "it must be between 0 and an hour");
            }
        }
        for (field, size) in [("size", self.size), ("real_size", self.real_size), ("largest", self.largest)] {
            if let Some(size) = size.filter(|size| size.0 < 4096) {
                return bad(field, size.to_string(), "it must be at least 4 KiB");
            }
        }
        for (field, count) in [("channels", self.channels), ("link.queue", self.link.and_then(|link| link.queue))] {
            if let Some(count) = count.filter(|count| !(1..=65_536).contains(count)) {
                return bad(field, count.to_string(), "it must be between 1 and 65536");
            }
        }
        for other in &self.alternatives {
            let link = other.link.unwrap_or_default();
            let sane = |value: Option<f64>| value.is_none_or(|value| (0.0..=LONGEST_US).contains(&value));
            if other.channels == Some(0) || link.bandwidth_mbps == Some(0.0) {
                return bad("alternative", "0".to_owned(), "it must be above 0");
            }
            if !sane(link.command_us) || !sane(link.bandwidth_mbps) || other.channels.is_some_and(|n| n > 65_536) {
                return bad("alternative", format!("{other:?}"), "it must be as `channels` and `link` are");
            }
        }
        for (field, pattern) in self.patterns() {
            if let Some(Err(rule)) = pattern.latency_us.as_ref().map(Latency::check) {
                return bad(&format!("{field}.latency_us"), format!("{:?}", pattern.latency_us), rule);
            }
            if let Some(size) = pattern.size_us.keys().find(|size| size.parse::<Bytes>().is_err()) {
                return bad(&format!("{field}.size_us"), format!("{size:?}"), "it must be a size such as 4KiB");
            }
        }
        if let Some(Err(rule)) = self.flush.as_ref().and_then(|f| f.latency_us.as_ref()).map(Latency::check) {
            return bad("flush.latency_us", String::new(), rule);
        }
        for zone in &self.zones {
            if !(0.0 <= zone.from && zone.from < zone.to && zone.to <= 1.0) {
                return bad("zone", format!("{} to {}", zone.from, zone.to), "it must lie between 0 and 1");
            }
        }
        for stall in &self.stalls {
            if stall.length_ms >= stall.period_ms || !(0.0..=1.0).contains(&stall.spread) {
                let value = format!("{} of {} ms, spread {}", stall.length_ms, stall.period_ms, stall.spread);
                return bad("stall", value, "it must be shorter than its period, its spread between 0 and 1");
            }
        }
        Ok(())
    }

    fn patterns(&self) -> Vec<(&'static str, &Pattern)> {
        let sides = [("read", "read.sequential", &self.read), ("write", "write.sequential", &self.write)];
        let present =
            sides.into_iter().filter_map(|(random, sequential, side)| Some((random, sequential, side.as_ref()?)));
        present
            .flat_map(|(random, sequential, side)| {
                [Some((random, &side.random)), side.sequential.as_ref().map(|pattern| (sequential, pattern))]
            })
            .flatten()
            .collect()
    }

    /// Fields that must be above 0, where they are given.
    fn positive(&self) -> Vec<(String, f64)> {
        let link = self.link.and_then(|link| link.bandwidth_mbps).map(|rate| ("link.bandwidth_MBps".to_owned(), rate));
        let rates = self
            .patterns()
            .into_iter()
            .filter_map(|(field, pattern)| Some((format!("{field}.bandwidth_MBps"), pattern.bandwidth_mbps?)));
        let cache = self.cache.iter().flat_map(|cache| {
            [
                Some(("cache.drain_MBps".to_owned(), cache.drain_mbps)),
                cache.idle_drain_mbps.map(|rate| ("cache.idle_drain_MBps".to_owned(), rate)),
            ]
        });
        let mixed = self.mixed.iter().flat_map(|mixed| {
            [("mixed.read_factor".to_owned(), mixed.read_factor), ("mixed.write_factor".to_owned(), mixed.write_factor)]
        });
        let zones = self.zones.iter().map(|zone| ("zone.factor".to_owned(), zone.factor));
        let slowdown = self.slowdown.iter().map(|slowdown| ("slowdown.factor".to_owned(), slowdown.factor));
        link.into_iter().chain(rates).chain(cache.flatten()).chain(mixed).chain(zones).chain(slowdown).collect()
    }

    /// Times in µs that must be sane.
    fn times(&self) -> Vec<(String, f64)> {
        let command = self.link.and_then(|link| link.command_us).map(|us| ("link.command_us".to_owned(), us));
        let sizes = self.patterns().into_iter().flat_map(|(field, pattern)| {
            pattern.size_us.iter().map(move |(size, us)| (format!("{field}.size_us.{size}"), *us))
        });
        let dirty = self.flush.as_ref().and_then(|flush| flush.dirty_us_per_mb);
        let stalls = self.stalls.iter().flat_map(|stall| {
            [
                ("stall.period_ms".to_owned(), stall.period_ms * 1e3),
                ("stall.length_ms".to_owned(), stall.length_ms * 1e3),
            ]
        });
        let slowdown = self.slowdown.iter().flat_map(|slowdown| {
            let recovers = slowdown.recovers_s.map(|s| ("slowdown.recovers_s".to_owned(), s * 1e6));
            [Some(("slowdown.after_s".to_owned(), slowdown.after_s * 1e6)), recovers]
        });
        let dirty = dirty.map(|us| ("flush.dirty_us_per_MB".to_owned(), us));
        command.into_iter().chain(sizes).chain(dirty).chain(stalls).chain(slowdown.flatten()).collect()
    }
}

/// Sizes as people write them (`"4GiB"`), in a field that may be left out.
mod size {
    use basics::Bytes;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }

    pub(super) fn parse<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        match Written::deserialize(from)? {
            Written::Number(bytes) => Ok(Bytes(bytes)),
            Written::Text(text) => text.parse().map_err(D::Error::custom),
        }
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        parse(from).map(Some)
    }
    #[expect(clippy::ref_option, reason = "serde asks for this signature")]
    pub(super) fn serialize<S: Serializer>(size: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        // A number of bytes is exact; "1.46 GiB" is not.
        to.serialize_u64(size.map_or(0, |size| size.0))
    }
}

mod exact_size {
    use basics::Bytes;
    use serde::{Deserializer, Serializer};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        super::size::parse(from)
    }
    pub(super) fn serialize<S: Serializer>(size: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(size.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        name = "all-of-it"
        title = "Everything that a profile can say"
        size = "32GB"
        real_size = 8000000000
        channels = 2
        largest = "1MiB"
        [link]
        bandwidth_MBps = 440
        command_us = 20
        queue = 32
        [read]
        latency_us = { mean = 131, sigma = 0.4, tail = { share = 0.01, median = 600, sigma = 0.3 } }
        bandwidth_MBps = 430
        size_us = { "4KiB" = 10, "1MiB" = 300 }
        [read.sequential]
        latency_us = 30
        [write]
        latency_us = [[0, 80], [50, 100], [99, 400], [99.999, 9000]]
        [mixed]
        read_factor = 1.5
        [cache]
        size = "2GB"
        drain_MBps = 30
        [flush]
        latency_us = 500
        dirty_us_per_MB = 20
        [[stall]]
        period_ms = 1000
        length_ms = 100
        [[zone]]
        from = 0
        to = 0.1
        factor = 2
        [slowdown]
        after_s = 60
        factor = 1.5
        [confidence."link.command_us"]
        low = 18
        high = 22
    "#;

    #[test]
    fn a_profile_survives_being_written() {
        let profile = Profile::parse(WHOLE).unwrap();
        assert_eq!(profile.size(), Bytes(32_000_000_000));
        assert_eq!(Profile::parse(&profile.to_toml().unwrap()).unwrap(), profile);
        let json = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&json).unwrap(), profile);
    }

    #[test]
    fn nonsense_is_named_with_its_field() {
        for (from, to, says) in [
            ("command_us = 20", "command_us = -1", "link.command_us"),
            ("factor = 2", "factor = 0", "zone.factor"),
            ("length_ms = 100", "length_ms = 1000", "shorter than its period"),
            ("to = 0.1", "to = 1.1", "between 0 and 1"),
            ("channels = 2", "channels = 0", "channels is 0"),
            ("drain_MBps = 30", "drain_MBps = nan", "cache.drain_MBps"),
            ("sigma = 0.4", "sigma = -1", "read.latency_us"),
            ("[50, 100]", "[50, 1000]", "write.latency_us"),
            ("\"4KiB\" = 10", "\"4 apples\" = 10", "4 apples"),
            ("all-of-it", "All of it", "lower-case"),
            ("title =", "titel =", "titel"),
            ("size = \"2GB\"", "size = \"2 pears\"", "2 pears"),
        ] {
            assert!(WHOLE.contains(from), "{from}");
            let error = Profile::parse(&WHOLE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn what_is_not_given_is_not_invented() {
        let profile = Profile::parse("name = \"x\"\n[read]\nlatency_us = 1").unwrap();
        let error = profile.direction(false).unwrap_err().to_string();
        assert_eq!(error, "profile x says nothing of writes: it was not published or not measured");
        assert!(profile.direction(true).is_ok());
    }
}
