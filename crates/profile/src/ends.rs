//! The ends of what a fitted profile may be: its confidence intervals and its alternatives as profiles of their own, so
//! that whatever is asked of a profile can be asked of those too, and the answers span the uncertainty.

use crate::distribution::Latency;
use crate::format::{Alternative, Confidence, Direction, Link, Pattern, Profile};

/// Which end of each interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Long latencies, low rates.
    Slow,
    /// Short latencies, high rates.
    Fast,
}

impl Profile {
    /// For each structure that explains the figures (the profile's own first), the slow and the fast end of what is known
    /// of its numbers. Empty for a profile that states no confidence: nothing is known of its uncertainty.
    pub fn ends(&self) -> Vec<Profile> {
        if self.confidence.is_empty() {
            return Vec::new();
        }
        let own = Profile { alternatives: Vec::new(), ..self.clone() };
        let mut structures = vec![own];
        structures.extend(self.alternatives.iter().map(|other| self.restructured(other)));
        // With alternatives, the intervals of channels and link are about which structure it is: the list says it better.
        let known = self.alternatives.is_empty();
        structures
            .iter()
            .flat_map(|profile| [End::Slow, End::Fast].map(|end| profile.at_end(self, end, known)))
            .collect()
    }

    /// The same device with another bottleneck: what the link takes from one operation alone, the medium gives back. Bytes
    /// are on the link while the medium moves them, so the slower of both rates stays.
    pub fn restructured(&self, other: &Alternative) -> Profile {
        let (old, new) = (self.link.unwrap_or_default(), other.link.unwrap_or_default());
        let per_byte = |link: Link| link.bandwidth_mbps.map_or(0.0, |rate| 1.0 / rate);
        let command = old.command_us.unwrap_or(0.0) - new.command_us.unwrap_or(0.0);
        let pattern = |pattern: &Pattern| {
            let alone = pattern.bandwidth_mbps.map_or(0.0, |rate| 1.0 / rate).max(per_byte(old));
            Pattern {
                latency_us: pattern.latency_us.as_ref().map(|latency| latency.shifted(command)),
                // What differs by less than a fiftieth is the noise of a measurement, not a rate.
                bandwidth_mbps: match pattern.size_us.is_empty() {
                    true => (alone > 1.02 * per_byte(new)).then(|| 1.0 / alone),
                    // A table tells all that the medium takes.
                    false => pattern.bandwidth_mbps,
                },
                size_us: pattern.size_us.clone(),
            }
        };
        let direction = |side: &Direction| Direction {
            random: pattern(&side.random),
            sequential: side.sequential.as_ref().map(&pattern),
        };
        Profile {
            channels: other.channels,
            link: other.link.map(|link| Link { queue: old.queue.or(link.queue), ..link }),
            read: self.read.as_ref().map(direction),
            write: self.write.as_ref().map(direction),
            alternatives: Vec::new(),
            ..self.clone()
        }
    }

    /// Every number at one end of its interval. Intervals are taken relative to the fitted value, so that they also hold
    /// where an alternative has shifted it.
    fn at_end(&self, fitted: &Profile, end: End, known_structure: bool) -> Profile {
        let ratio = |field: &str, value: f64, longer_is_slow: bool| -> f64 {
            let Some(Confidence { low, high }) = fitted.confidence.get(field) else { return 1.0 };
            let bound = if (end == End::Slow) == longer_is_slow { high } else { low };
            if value > 0.0 && bound.is_finite() { (bound / value).clamp(1e-3, 1e3) } else { 1.0 }
        };
        let known = &fitted.confidence;
        let mut out = self.clone();
        let sides = [("read", &mut out.read, &fitted.read), ("write", &mut out.write, &fitted.write)];
        for (name, side, fitted) in sides {
            let (Some(side), Some(fitted)) = (side, fitted) else { continue };
            let sequential = side.sequential.as_mut().zip(fitted.sequential.as_ref());
            let patterns = [(name.to_owned(), Some((&mut side.random, &fitted.random)))];
            let patterns = patterns.into_iter().chain([(format!("{name}.sequential"), sequential)]);
            for (field, both) in patterns {
                let Some((pattern, fitted)) = both else { continue };
                if let (Some(latency), Some(of)) = (&mut pattern.latency_us, &fitted.latency_us) {
                    *latency = latency.scaled(ratio(&format!("{field}.latency_us"), of.mean_us(), true));
                    // In a closed loop the more widely spread is the slower: channels wait for the last ones.
                    if let (Latency::LogNormal(law), Some(sigma)) =
                        (latency, known.get(&format!("{field}.latency_us.sigma")))
                    {
                        law.sigma = if end == End::Slow { sigma.high } else { sigma.low };
                    }
                }
                if let (Some(rate), Some(of)) = (&mut pattern.bandwidth_mbps, fitted.bandwidth_mbps) {
                    *rate *= ratio(&format!("{field}.bandwidth_MBps"), of, false);
                }
                let table = ratio(&format!("{field}.size_us"), 1.0, true);
                pattern.size_us.values_mut().for_each(|us| *us *= table);
            }
        }
        if known_structure {
            if let Some(channels) = out.channels {
                let many = f64::from(channels) * ratio("channels", f64::from(channels), false);
                out.channels = Some((many.round() as u32).clamp(1, 65_536));
            }
            if let Some(link) = &mut out.link {
                if let Some(us) = &mut link.command_us {
                    *us *= ratio("link.command_us", *us, true);
                }
                if let Some(rate) = &mut link.bandwidth_mbps {
                    *rate *= ratio("link.bandwidth_MBps", *rate, false);
                }
            }
        }
        if let Some(cache) = &mut out.cache {
            cache.size.0 = (cache.size.0 as f64 * ratio("cache.size", cache.size.0 as f64, false)) as u64;
            cache.drain_mbps *= ratio("cache.drain_MBps", cache.drain_mbps, false);
        }
        if let Some(flush) = &mut out.flush {
            if let Some(latency) = &mut flush.latency_us {
                *latency = latency.scaled(ratio("flush.latency_us", latency.mean_us(), true));
            }
            if let Some(us) = &mut flush.dirty_us_per_mb {
                *us *= ratio("flush.dirty_us_per_MB", *us, true);
            }
        }
        if let Some(mixed) = &mut out.mixed {
            mixed.read_factor *= ratio("mixed.read_factor", mixed.read_factor, true);
            mixed.write_factor *= ratio("mixed.write_factor", mixed.write_factor, true);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_spread_is_wide_at_the_slow_end() {
        let text = "name = \"x\"\n[read]\nlatency_us = { mean = 100, sigma = 0.5 }\n\
                    [confidence.\"read.latency_us.sigma\"]\nlow = 0.05\nhigh = 1.1";
        let ends = Profile::parse(text).unwrap().ends();
        let sigma = |profile: &Profile| match profile.read.as_ref().unwrap().random.latency_us.as_ref().unwrap() {
            Latency::LogNormal(law) => (law.mean, law.sigma),
            other => panic!("{other:?}"),
        };
        assert_eq!([sigma(&ends[0]), sigma(&ends[1])], [(100.0, 1.1), (100.0, 0.05)]);
    }

    #[test]
    fn the_ends_are_those_of_the_intervals_and_one_operation_alone_takes_as_long() {
        let text = "name = \"x\"\nchannels = 8\n[read]\nlatency_us = 100\nbandwidth_MBps = 100\n\
                    [[alternative]]\nlink = { command_us = 12.5 }\n[[alternative]]\nlink = { bandwidth_MBps = 400 }\n\
                    [confidence.\"read.latency_us\"]\nlow = 90\nhigh = 120";
        let profile = Profile::parse(text).unwrap();
        assert_eq!(Profile::parse(&profile.to_toml().unwrap()).unwrap(), profile);
        let ends = profile.ends();
        assert_eq!(ends.len(), 6);
        let latency = |profile: &Profile| profile.read.as_ref().unwrap().random.latency_us.as_ref().unwrap().mean_us();
        assert_eq!((latency(&ends[0]), latency(&ends[1])), (120.0, 90.0));
        assert_eq!((ends[2].channels, latency(&ends[2])), (None, 87.5 * 1.2));
        let rate = |profile: &Profile| profile.read.as_ref().unwrap().random.bandwidth_mbps.unwrap();
        assert!((rate(&ends[4]) - 100.0).abs() < 1e-9, "slower than the link");
        assert!(Profile { confidence: std::collections::BTreeMap::new(), ..profile }.ends().is_empty());
    }
}
