//! A cache of vectors, as data: which vectors there are and how they are stored, what a Redis server keeps of them, where the rest
//! lies, and what was seen of it.

use crate::latency::Latencies;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// How a number of a vector is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Four bytes, as models give them.
    F32,
    /// One of 256 values between the least and the largest number of all vectors.
    Int8,
    /// One of 16, two to a byte.
    Int4,
}

impl Format {
    /// All, the longest first.
    pub const ALL: [Format; 3] = [Format::F32, Format::Int8, Format::Int4];

    /// On the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::Int8 => "int8",
            Format::Int4 => "int4",
        }
    }

    /// Of a vector of so many numbers.
    pub fn bytes(self, dim: u32) -> Bytes {
        let dim = u64::from(dim);
        Bytes(match self {
            Format::F32 => 4 * dim,
            Format::Int8 => dim,
            Format::Int4 => dim.div_ceil(2),
        })
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Format::ALL.map(Format::name).join(", ");
        Format::ALL
            .into_iter()
            .find(|format| format.name() == text)
            .ok_or_else(|| format!("{text:?} is none of {names}"))
    }
}

/// Which vectors there are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Each is its group's middle and noise about it, both normal in every number, and then as long as 1.
    MadeUp {
        /// How many.
        count: u64,
        /// Numbers of each.
        dim: u32,
        /// Groups.
        groups: u32,
        /// Length of the noise, per cent of the middle's.
        spread: u32,
        /// Of every random choice.
        seed: u64,
    },
    /// The rows of a NumPy file.
    File {
        /// The file.
        path: PathBuf,
        /// Rows that are stored: its last ones are asked for instead.
        count: u64,
        /// Numbers of each.
        dim: u32,
    },
}

impl Source {
    /// Vectors that are stored.
    pub fn count(&self) -> u64 {
        match self {
            Source::MadeUp { count, .. } | Source::File { count, .. } => *count,
        }
    }

    /// Numbers of each.
    pub fn dim(&self) -> u32 {
        match self {
            Source::MadeUp { dim, .. } | Source::File { dim, .. } => *dim,
        }
    }
}

/// Where those are that the server has not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cold {
    /// In a file beside it, read past the page cache: as one that is many times RAM.
    File,
    /// In a second server, so far off each way.
    Remote(Nanos),
}

/// What happens after a model was replaced, and every vector that the server has is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refill {
    /// Each is fetched once somebody asks for it.
    OnDemand,
    /// The most wanted are fetched at once, beside what is asked for.
    Prefetch,
}

impl Refill {
    /// On the command line.
    pub fn name(self) -> &'static str {
        match self {
            Refill::OnDemand => "on-demand",
            Refill::Prefetch => "prefetch",
        }
    }
}

/// A server that keeps the vectors that are wanted most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// The vectors.
    pub source: Source,
    /// How they are stored, here and there.
    pub format: Format,
    /// How many of them there is room for.
    pub hot: u64,
    /// Where the others are.
    pub cold: Cold,
    /// In the middle of the load the model is replaced, where that is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refill: Option<Refill>,
    /// What computing a vector anew takes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<Nanos>,
}

/// What was seen of a cache.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cached {
    /// As it was planned.
    pub plan: Option<Cache>,
    /// Requests that the server answered, from sending to the vector.
    pub hits: Latencies,
    /// Those that it did not: asked, fetched from where the others are, and given to the server.
    pub misses: Latencies,
    /// The fetching alone, of these.
    pub fetched: Latencies,
    /// What the server needs for one, its key and everything else included.
    pub per_vector: Option<f64>,
    /// Part of the ten nearest that is found by what is stored (recall@10), over many questions.
    pub recall: Option<f64>,
    /// Vectors that were there at the end.
    pub kept: u64,
    /// Hits of a hundred requests before the model was replaced.
    pub before: Option<f64>,
    /// Time from there until nine tenths of that was reached again; nothing where it was not.
    pub back: Option<Nanos>,
    /// Median and 95th percentile of all requests in the second after it.
    pub after: Option<(Nanos, Nanos)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_its_name_and_length() {
        for format in Format::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert_eq!(Format::ALL.map(|format| format.bytes(385).0), [1540, 385, 193]);
        assert!("f16".parse::<Format>().unwrap_err().contains("f32, int8, int4"));
    }
}
