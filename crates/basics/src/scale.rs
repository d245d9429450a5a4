//! How far the durations of a plan are shortened, so that a procedure of hours can be tried in minutes: `1/60`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A part of one, as it was typed: `1/60`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scale {
    part: u32,
    of: u32,
}

/// Not a scale.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no scale: write a part of one, such as 1/60")]
pub struct NotAScale(String);

/// There is nothing to shorten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no step of this plan lasts for a given time: there is nothing that a scale could shorten")]
pub struct NothingToScale;

impl Scale {
    /// So much of `number`, at least one of what is not nothing.
    pub fn of(self, number: u64) -> u64 {
        let scaled = u128::from(number) * u128::from(self.part) / u128::from(self.of);
        // No larger than `number`, for the part is no larger than one.
        u64::try_from(scaled).unwrap_or(number).max(number.min(1))
    }
}

impl FromStr for Scale {
    type Err = NotAScale;
    fn from_str(text: &str) -> Result<Self, NotAScale> {
        let parts =
            text.split_once('/').and_then(|(part, of)| Some((part.trim().parse().ok()?, of.trim().parse().ok()?)));
        match parts {
            Some((part, of)) if 0 < part && part <= of => Ok(Scale { part, of }),
            _ => Err(NotAScale(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Scale {
    type Error = NotAScale;
    fn try_from(text: String) -> Result<Self, NotAScale> {
        text.parse()
    }
}

impl From<Scale> for String {
    fn from(scale: Scale) -> String {
        scale.to_string()
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_part_of_one() {
        let minute: Scale = "1/60".parse().unwrap();
        assert_eq!([60, 3600, 7, 0].map(|number| minute.of(number)), [1, 60, 1, 0]);
        assert_eq!("3/3".parse::<Scale>().unwrap().of(u64::MAX), u64::MAX);
        for nonsense in ["60", "0/60", "1/0", "2/1", "-1/60", "1/60/2", "a/b", ""] {
            assert_eq!(nonsense.parse::<Scale>(), Err(NotAScale(nonsense.to_owned())), "{nonsense}");
        }
        assert_eq!(serde_json::from_str::<Scale>(&serde_json::to_string(&minute).unwrap()).unwrap(), minute);
    }
}
