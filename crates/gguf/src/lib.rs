//! What a GGUF file says before its weights: its keys, its tensors and where they lie; and from these alone in which order the
//! decoding of a token touches them, and how much. Pure: it reads a header through `Read + Seek`, never the weights, and no
//! file makes it panic, read more than [`MOST_READ`] bytes or hold more than some 40 MB. How fast that order is fed from a
//! tier is left to others.
#![forbid(unsafe_code)]

mod decode;
mod error;
mod header;
mod kind;
mod mix;
pub mod models;
mod read;
pub mod shape;
mod source;
mod value;

pub use decode::{Decode, KvCache, Part, Touch, decode};
pub use error::{GgufError, Place};
pub use header::{Header, Tensor};
pub use kind::Kind;
pub use mix::Mix;
pub use read::{MOST_KEYS, MOST_LISTED, MOST_STRINGS, MOST_TENSORS, MOST_TEXT, read};
pub use shape::Shape;
pub use source::MOST_READ;
pub use value::Value;
