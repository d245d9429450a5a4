//! The decoding of a language model, as data: which weights one token after the other needs, and what was seen of a model that
//! made tokens. A made-up model and a real one tell the second in the same words.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What a process does that decodes without being a language model: it multiplies weights that mean nothing, in the order and
/// at the speed of one that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decoding {
    /// The model's name.
    pub model: String,
    /// All weights, those too that no token touches.
    pub size: Bytes,
    /// What one token touches, in the order of the computation.
    pub pieces: Vec<Piece>,
    /// Tokens that are given, which are taken in at once.
    pub prompt: u32,
    /// Tokens that are made.
    pub tokens: u32,
    /// Tokens that the cache has room for, where that is more: a runner's context.
    #[serde(default)]
    pub room: u32,
    /// The weights are pages of a file on the tier and are read there again; otherwise they are the process's own and go
    /// through swap.
    pub mapped: bool,
}

/// A tensor, or the cache of a layer, as a token touches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where it begins: of weights in all of the weights, of a cache in all of the cache.
    pub at: Bytes,
    /// Its length; of a cache that of one token.
    pub len: Bytes,
    /// Length of a row, whose product is one number of the result; of a cache that of one head's key and value.
    pub row: Bytes,
    /// Weights in a byte: 2 where each has four bits or about as many, else 1. Of a cache: heads that ask each head's keys.
    pub packed: u8,
    /// How much of it.
    pub part: Part,
}

/// How much of a piece a token touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    Whole,
    /// One row, another for each token.
    Row,
    /// `used` of `of` equal slices, others for each token.
    Experts {
        /// Slices that a token touches.
        used: u32,
        /// Slices that there are.
        of: u32,
    },
    /// A layer's keys and values: this token's are written, those of all tokens before it read.
    Cache,
}

/// What a real runner of models does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Serving {
    /// Which one.
    pub server: Server,
    /// Its program, where it is started.
    pub program: Option<PathBuf>,
    /// The model, as its row is called.
    pub model: String,
    /// Where it is.
    pub source: Source,
    /// What is given.
    pub prompt: String,
    /// Tokens that are made.
    pub tokens: u32,
    /// Tokens for which it makes room.
    pub context: u32,
    /// Threads that compute; its own choice when not given.
    pub threads: Option<u32>,
    /// Weights mapped from the file, or read into memory; its own choice when not given.
    pub mapped: Option<bool>,
    /// The weights mean nothing: what was said becomes less likely, so that it does not end by saying one token for ever.
    pub random: bool,
    /// Bytes of the file.
    pub size: Bytes,
    /// Bytes of weights, keys and values that a token touches, where that is known.
    pub touched: Option<Bytes>,
    /// Bytes of keys and values at the end, where that is known.
    pub cache: Option<Bytes>,
    /// Bytes of all room for them, which is cleared before any is in use; 0 where that is not known.
    #[serde(default)]
    pub room: Bytes,
}

/// A program that runs models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Ollama.
    Ollama,
    /// llama.cpp's `llama-server`.
    LlamaServer,
}

/// Where a runner has its model from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// A GGUF.
    File(PathBuf),
    /// A folder of Ollama's, in which the model is known by a name.
    Folder {
        /// The folder.
        models: PathBuf,
        /// The name.
        name: String,
    },
    /// A runner that runs already, and is not ours to limit or to end.
    Running {
        /// Where it listens.
        addr: SocketAddr,
        /// The name that it has for the model.
        name: String,
    },
}

impl Piece {
    /// Bytes that the token touches which has `before` others before it.
    pub fn touched(&self, before: u64) -> u64 {
        match self.part {
            Part::Whole => self.len.0,
            Part::Row => self.row.0.min(self.len.0),
            Part::Experts { used, of } => self.len.0 / u64::from(of.max(1)) * u64::from(used.min(of)),
            Part::Cache => self.len.0 * (before + 1),
        }
    }
}

/// Columns of the room for values that lie on pages which `used` tokens touch. Values lie across the room in llama.cpp without flash
/// attention: a row for each number of a value, a column of two bytes for each token. So a token goes through all rows, and through
/// all of the room where a row is no longer than a page.
pub fn columns(used: u64, room: u64, page: Bytes) -> u64 {
    used.next_multiple_of((page.0 / 2).max(1)).min(room)
}

impl Decoding {
    /// Tokens that there is room for, in whole pads as llama.cpp has them (`GGML_PAD(n_ctx, 32)`).
    pub fn context(&self) -> u64 {
        self.used().max(u64::from(self.room)).next_multiple_of(32)
    }
    /// Tokens whose keys and values there are at the end.
    fn used(&self) -> u64 {
        u64::from(self.prompt) + u64::from(self.tokens)
    }
    /// Keys and values of a token, in all layers.
    fn of_a_token(&self) -> u64 {
        self.pieces.iter().filter(|piece| piece.part == Part::Cache).map(|piece| piece.len.0).sum()
    }
    /// Length of the cache of keys and values.
    pub fn cache(&self) -> Bytes {
        Bytes(self.of_a_token() * self.context())
    }
    /// What of the cache is in use at the end: the keys of those tokens, one after the other, and the pages of the room for values.
    pub fn cache_in_use(&self, page: Bytes) -> Bytes {
        let columns = columns(self.used(), self.context(), page);
        Bytes(self.of_a_token() / 2 * self.used() + self.of_a_token().div_ceil(2) * columns)
    }
    /// Bytes that the token in the middle of those that are made touches.
    pub fn touched(&self) -> Bytes {
        let before = u64::from(self.prompt) + u64::from(self.tokens) / 2;
        Bytes(self.pieces.iter().map(|piece| piece.touched(before)).sum())
    }
}

/// What was seen of a model that made tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Generated {
    /// Its name.
    pub model: String,
    /// Until it could take a prompt: its weights read, or made up.
    pub load: Nanos,
    /// Tokens that were given, as it counts them.
    pub prompt: u32,
    /// Computing them, up to the first token that was made, by the runner's own clock; none where it said nothing.
    pub prompt_time: Option<Nanos>,
    /// When each token was there, since the prompt was given.
    pub tokens: Vec<Nanos>,
    /// Bytes of weights, keys and values that a token touches, where that is known.
    pub touched: Option<Bytes>,
    /// Bytes that it can't do without besides: keys, values, what it computes with.
    pub besides: Option<Bytes>,
    /// Bytes of all room for keys and values; 0 where that is not known.
    pub room: Bytes,
    /// The weights are pages of a file, not the process's own.
    pub mapped: bool,
    /// Threads that compute.
    pub threads: u32,
    /// CPU time of all of them at the weights, page faults included; none where waiting for each other cannot be told from it.
    pub busy: Option<Nanos>,
    /// Where its bytes were, now and then.
    pub lay: Vec<Lay>,
}

/// Where the bytes of a process were at a moment (`/proc/PID/status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lay {
    /// Since the prompt was given; what was before it is left out.
    pub at: Nanos,
    /// Its own pages in RAM.
    pub anonymous: Bytes,
    /// Pages of files in RAM.
    pub file: Bytes,
    /// Its own pages in swap, zram included.
    pub swap: Bytes,
}

impl Generated {
    /// Tokens a second, once the first was there; none with fewer than two.
    pub fn tps(&self) -> Option<f64> {
        let (first, last) = self.tokens.first().zip(self.tokens.last())?;
        let time = last.0.checked_sub(first.0).filter(|time| *time > 0)?;
        Some((self.tokens.len() - 1) as f64 * 1e9 / time as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(len: u64, part: Part) -> Piece {
        Piece { at: Bytes(0), len: Bytes(len), row: Bytes(10), packed: 1, part }
    }

    #[test]
    fn what_a_token_touches() {
        let pieces = vec![
            piece(1000, Part::Row),
            piece(500, Part::Whole),
            piece(80, Part::Experts { used: 2, of: 8 }),
            piece(4, Part::Cache),
        ];
        let decoding = Decoding {
            model: "m".to_owned(),
            size: Bytes(1580),
            pieces,
            prompt: 10,
            tokens: 4,
            room: 0,
            mapped: false,
        };
        assert_eq!(decoding.touched(), Bytes(10 + 500 + 20 + 4 * 13));
        assert_eq!((decoding.cache(), decoding.cache_in_use(Bytes(4096))), (Bytes(4 * 32), Bytes(2 * 14 + 2 * 32)));
        let decoding = Decoding { room: 2000, ..decoding };
        assert_eq!((decoding.cache(), decoding.cache_in_use(Bytes(4096))), (Bytes(4 * 2016), Bytes(2 * 14 + 2 * 2016)));
        let decoding = Decoding { room: 32_000, ..decoding };
        assert_eq!(decoding.cache_in_use(Bytes(4096)), Bytes(2 * 14 + 2 * 2048), "a row is longer than a page");
    }

    #[test]
    fn the_first_token_is_the_prompts() {
        let seconds = |list: &[u64]| list.iter().map(|second| Nanos(second * 1_000_000_000)).collect();
        let generated = Generated { tokens: seconds(&[5, 6, 7]), ..Generated::default() };
        assert_eq!(generated.tps(), Some(1.0));
        assert_eq!(Generated { tokens: seconds(&[5]), ..Generated::default() }.tps(), None);
    }
}
