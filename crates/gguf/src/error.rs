//! What is wrong with a file, or why it does not decode: one sentence that names the place and, where there is one, the way
//! out. Which file it is, the caller knows and says.

use std::fmt;
use std::io;
use thiserror::Error;

/// Why a file gives no header, or a header no order of decoding.
#[derive(Debug, Error)]
pub enum GgufError {
    /// The reader failed.
    #[error("reading failed at byte {at}: {source}")]
    Io {
        /// Byte of the file.
        at: u64,
        /// What the reader said.
        source: io::Error,
    },
    /// Something else than a GGUF file.
    #[error("this is no GGUF file: {why}")]
    NotGguf {
        /// How it begins, and what it may be instead.
        why: String,
    },
    /// A version that cannot be read.
    #[error("this is a GGUF file of version {version}, {why}")]
    Version {
        /// As the file says.
        version: u32,
        /// Why not, and the way out.
        why: &'static str,
    },
    /// It ends inside its header.
    #[error("the file ends at byte {at}, inside {place}: it was cut short; copy or download it again")]
    Truncated {
        /// Its length in bytes.
        at: u64,
        /// What ends there.
        place: Place,
    },
    /// It contradicts itself or the format.
    #[error("{place}, at byte {at}: {why}")]
    Broken {
        /// Byte of the file.
        at: u64,
        /// What is wrong.
        place: Place,
        /// How, and the way out.
        why: String,
    },
    /// A header beyond what is read of a file.
    #[error("{place}, at byte {at}: {why}; no model needs that, so no more of it is read")]
    TooMuch {
        /// Byte of the file.
        at: u64,
        /// Where it is noticed.
        place: Place,
        /// What there is too much of, and how much is read.
        why: String,
    },
    /// One of several files of a model.
    #[error(
        "this is only part {number} of the {of} files of a model, and the tensors of the others are not in it; make one file \
         of them with `llama-gguf-split --merge FIRST-PART WHOLE.gguf` and give that"
    )]
    Part {
        /// Counted from 1.
        number: u64,
        /// Files of the model.
        of: u64,
    },
    /// The model does not make one token after another.
    #[error("it does not decode: {why}")]
    NoDecode {
        /// What it is instead.
        why: String,
    },
    /// A key without which the order is unknown.
    #[error("the key {key} {why}")]
    Key {
        /// Its full name, in quotation marks.
        key: String,
        /// What is wrong with it and what it is needed for.
        why: String,
    },
    /// A made-up model that cannot be.
    #[error("in the shape of a model, {key} {why}")]
    Shape {
        /// The key.
        key: String,
        /// What is wrong and what it may be.
        why: String,
    },
    /// A model by a name that is not listed.
    #[error(
        "the shape of {name} is not known; give a GGUF file of it, or --shape, or one of {known} (with an ending such as \
         -q8_0 for another quantisation)"
    )]
    Model {
        /// In quotation marks.
        name: String,
        /// The names that are.
        known: String,
    },
}

/// A place in a file, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Magic, version and the two counts.
    Start,
    /// A key before its name is known, counted from 1, and how many there are.
    KeyNumber(u64, u64),
    /// A key by its name.
    Key(String),
    /// A tensor before its name is known, counted from 1, and how many there are.
    TensorNumber(u64, u64),
    /// A tensor by its name.
    Tensor(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Start => f.write_str("the first 24 bytes"),
            Place::KeyNumber(number, of) => write!(f, "key {number} of {of}"),
            Place::Key(name) => write!(f, "key {}", excerpt(name)),
            Place::TensorNumber(number, of) => write!(f, "tensor {number} of {of}"),
            Place::Tensor(name) => write!(f, "tensor {}", excerpt(name)),
        }
    }
}

/// Bytes of a file's text that a sentence repeats at most; a tensor's name is shorter.
const MOST_SAID: usize = 80;

/// The text in quotation marks, with what a terminal would obey escaped, and cut where it is long.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown = String::from("\"");
    for c in text.chars() {
        let next: String = c.escape_debug().collect();
        if shown.len() + next.len() > MOST_SAID {
            return shown + "…\"";
        }
        shown += &next;
    }
    shown + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_repeats_little_and_nothing_that_a_terminal_obeys() {
        let told = Place::Key("\u{1b}[2J".repeat(5000)).to_string();
        assert!(told.len() < 100 && !told.contains('\u{1b}') && told.ends_with("…\""), "{told}");
        assert_eq!(excerpt("blk.0.µ"), "\"blk.0.µ\"");
    }
}
