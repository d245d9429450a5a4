//! Embeddings as a cache of them meets them: made up with a structure that is stated, or the rows of a NumPy file; stored as floats
//! or in fewer bits; and how many of the nearest are still found by what is stored. Nothing is timed here, and no server is asked.
#![forbid(unsafe_code)]

mod coder;
mod popularity;
mod recall;
mod source;

pub use coder::Coder;
pub use popularity::Popularity;
pub use recall::{NEAREST, recall};
pub use source::{QUESTIONS, VectorError, Vectors, shape};
