//! Sizes and durations with their unit in the type, read the way people write them and printed so that a unit is never
//! in doubt: `kB MB GB` are powers of ten, `k K KiB MiB GiB` powers of two (as fio reads them).

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, Mul, Sub};
use std::str::FromStr;
use thiserror::Error;

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes.
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;

/// A number with a unit that could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnitError {
    /// Not a size.
    #[error("{0:?} is not a size; write for example 4k, 16KiB, 100MB or 2G")]
    Size(String),
    /// Not a duration.
    #[error("{0:?} is not a duration; write for example 500ms, 30s, 5m or 1h")]
    Duration(String),
    /// 2^63 bytes or nanoseconds, or more.
    #[error("{0:?} is too much: the largest size is just below 8 EiB, the longest duration 292 years")]
    TooLarge(String),
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A duration or a time stamp in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

/// Splits `"1.5MiB"` into 1.5 and `"MiB"`.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// The product as an integer, if it fits 63 bits.
fn scaled(number: f64, factor: u64, text: &str) -> Result<u64, UnitError> {
    let value = number * factor as f64;
    if value >= (1u64 << 63) as f64 {
        return Err(UnitError::TooLarge(text.to_owned()));
    }
    Ok(value.round() as u64)
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::Size(text.to_owned());
        let (number, unit) = number_and_unit(text).ok_or_else(bad)?;
        let factor = match unit {
            "" | "B" | "b" => 1,
            "kB" | "KB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "PB" => 1_000_000_000_000_000,
            "EB" => 1_000_000_000_000_000_000,
            _ => match unit.to_ascii_lowercase().as_str() {
                "k" | "ki" | "kib" => KIB,
                "m" | "mi" | "mib" => MIB,
                "g" | "gi" | "gib" => GIB,
                "t" | "ti" | "tib" => GIB << 10,
                "p" | "pi" | "pib" => GIB << 20,
                "e" | "ei" | "eib" => GIB << 30,
                _ => return Err(bad()),
            },
        };
        scaled(number, factor, text).map(Bytes)
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bad = || UnitError::Duration(text.to_owned());
        let (number, unit) = number_and_unit(text).ok_or_else(bad)?;
        let factor = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "" | "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(bad()),
        };
        scaled(number, factor, text).map(Nanos)
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that keeps the number exact or at three significant digits: `4 KiB`, `1.46 GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (factor, unit) in [(GIB << 10, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
            if self.0 >= factor {
                return write!(f, "{} {unit}", significant(self.0 as f64 / factor as f64));
            }
        }
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Nanos {
    /// Three significant digits in the unit that fits: `71.0 µs`, `21.1 ms`, `58.0 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{} µs", significant(ns / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} ms", significant(ns / 1e6)),
            _ => write!(f, "{} s", significant(ns / 1e9)),
        }
    }
}

/// A number at three significant digits with thousands separated by commas: `9,840`, `88.2`, `0.346`.
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        return grouped(value.round() as i64);
    }
    let decimals = if magnitude >= 100.0 || value == value.trunc() {
        0
    } else if magnitude >= 10.0 {
        1
    } else if magnitude >= 1.0 {
        2
    } else {
        3
    };
    format!("{value:.decimals$}")
}

/// An integer with a comma before each group of three digits.
pub fn grouped(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    if value < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

impl Bytes {
    /// As powers of ten a second (MB/s) when moved in `elapsed`; zero for an empty interval.
    pub fn mbps(self, elapsed: Nanos) -> f64 {
        if elapsed.0 == 0 { 0.0 } else { self.0 as f64 * 1e3 / elapsed.0 as f64 }
    }
}

impl Nanos {
    /// In seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// In microseconds.
    pub fn us(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// From seconds.
    pub fn from_secs(secs: f64) -> Self {
        Nanos((secs.max(0.0) * 1e9).round() as u64)
    }
    /// From milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Nanos(ms * 1_000_000)
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(nanos: Nanos) -> Self {
        std::time::Duration::from_nanos(nanos.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// Saturates at zero: clocks of two threads may disagree by a few nanoseconds.
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, n: u64) -> Bytes {
        Bytes(self.0 * n)
    }
}

/// `a, b and c`.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_as_people_do() {
        assert_eq!(listed::<&str>(&[]), "");
        assert_eq!(listed(&["a"]), "a");
        assert_eq!(listed(&["a".to_owned(), "b".to_owned(), "c".to_owned()]), "a, b and c");
    }

    #[test]
    fn sizes_as_people_write_them() {
        for (text, bytes) in [
            ("512", 512),
            ("4k", 4096),
            ("16K", 16384),
            ("1MiB", 1 << 20),
            ("2GB", 2_000_000_000),
            ("1.5G", 1_610_612_736),
            ("100 MB", 100_000_000),
            ("10kB", 10_000),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "4x", "-4k", "4 4k", "1..5M", "NaN", "inf"] {
            assert!(matches!(text.parse::<Bytes>(), Err(UnitError::Size(_))), "{text}");
        }
        assert!(matches!("99999999999T".parse::<Bytes>(), Err(UnitError::TooLarge(_))));
    }

    #[test]
    fn durations_as_people_write_them() {
        for (text, ns) in [
            ("5s", 5_000_000_000),
            ("5", 5_000_000_000),
            ("200ms", 200_000_000),
            ("50us", 50_000),
            ("2m", 120_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(ns)), "{text}");
        }
        assert!("5 parsecs".parse::<Nanos>().is_err());
    }

    #[test]
    fn printed_with_their_unit() {
        assert_eq!(Bytes(4096).to_string(), "4 KiB");
        assert_eq!(Bytes(3 * GIB / 2).to_string(), "1.50 GiB");
        assert_eq!(Nanos(71_000).to_string(), "71 µs");
        assert_eq!(Nanos(21_123_000).to_string(), "21.1 ms");
        assert_eq!(significant(9840.4), "9,840");
        assert_eq!(significant(0.3456), "0.346");
        assert_eq!(grouped(-1234567), "-1,234,567");
    }
}
