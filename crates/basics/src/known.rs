//! A figure that may be missing, with the reason. Unknown is not zero (DESIGN.md, rule 5): a reader of a record must be
//! able to tell "the governor is unknown because sysfs does not say" from a value.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Why a figure is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The kernel or the device does not report it.
    NotReported,
    /// It exists and may not be read by this user.
    NoPermission,
    /// It was read and could not be understood; the text is what stood there.
    Unreadable(String),
    /// It was not measured, for the stated reason in a few words ("no room", "root only").
    NotMeasured(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::NotReported => f.write_str("not reported"),
            Why::NoPermission => f.write_str("root only"),
            Why::Unreadable(text) => write!(f, "unreadable ({text:?})"),
            Why::NotMeasured(reason) => f.write_str(reason),
        }
    }
}

/// A value, or the reason why there is none.
///
/// In JSON a known value is itself and an unknown one is `{"unknown": reason}`; documents for other readers
/// (`--json`) leave unknown keys out with `skip_serializing_if = "Known::is_unknown"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known<T> {
    /// The value.
    Is(T),
    /// No value, and why.
    Unknown(Why),
}

impl<T> Known<T> {
    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Known::Is(value) => Some(value),
            Known::Unknown(_) => None,
        }
    }
    /// The value by move, if there is one.
    pub fn into_option(self) -> Option<T> {
        match self {
            Known::Is(value) => Some(value),
            Known::Unknown(_) => None,
        }
    }
    /// True when there is no value.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Known::Unknown(_))
    }
    /// The same, with the value changed by `f`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Known<U> {
        match self {
            Known::Is(value) => Known::Is(f(value)),
            Known::Unknown(why) => Known::Unknown(why),
        }
    }
    /// A known value from `Some`, or unknown because nothing reports it.
    pub fn or_not_reported(value: Option<T>) -> Self {
        value.map_or(Known::Unknown(Why::NotReported), Known::Is)
    }
    /// Unknown because it was not measured, for `reason`.
    pub fn not_measured(reason: impl Into<String>) -> Self {
        Known::Unknown(Why::NotMeasured(reason.into()))
    }
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Known::Unknown(Why::NotReported)
    }
}

impl<T> From<T> for Known<T> {
    fn from(value: T) -> Self {
        Known::Is(value)
    }
}

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Known::Is(value) => value.fmt(f),
            Known::Unknown(why) => why.fmt(f),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct UnknownForm {
    unknown: Why,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form<T> {
    Unknown(UnknownForm),
    Is(T),
}

impl<T: Serialize> Serialize for Known<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Known::Is(value) => value.serialize(serializer),
            Known::Unknown(why) => UnknownForm { unknown: why.clone() }.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Known<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Unknown(form) => Known::Unknown(form.unknown),
            Form::Is(value) => Known::Is(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_the_reason() {
        let unknown: Known<u32> = Known::not_measured("no room");
        let text = serde_json::to_string(&unknown).unwrap();
        assert_eq!(text, r#"{"unknown":{"not-measured":"no room"}}"#);
        assert_eq!(serde_json::from_str::<Known<u32>>(&text).unwrap(), unknown);
        assert_eq!(serde_json::from_str::<Known<u32>>("7").unwrap(), Known::Is(7));
        assert_eq!(unknown.to_string(), "no room");
    }
}
