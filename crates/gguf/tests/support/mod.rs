//! A writer of small GGUF files in memory, which can lie, and a reader that counts what is read of it.
#![allow(dead_code, reason = "each test uses its part")]

use gguf::{GgufError, Header, Kind};
use std::io::{Cursor, Read, Seek, SeekFrom};

/// The bytes of a file, number by number.
pub struct Writer {
    pub bytes: Vec<u8>,
    pub big_endian: bool,
}

impl Writer {
    /// Magic, version and counts.
    pub fn new(version: u32, tensors: u64, keys: u64) -> Self {
        Writer { bytes: b"GGUF".to_vec(), big_endian: false }.u32(version).u64(tensors).u64(keys)
    }

    pub fn big_endian(version: u32, tensors: u64, keys: u64) -> Self {
        Writer { bytes: b"GGUF".to_vec(), big_endian: true }.u32(version).u64(tensors).u64(keys)
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }
    pub fn u32(self, number: u32) -> Self {
        let bytes = if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        self.raw(&bytes)
    }
    pub fn u64(self, number: u64) -> Self {
        let bytes = if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        self.raw(&bytes)
    }
    pub fn text(self, text: &str) -> Self {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    /// A key with a number of 32 bits.
    pub fn number(self, key: &str, number: u32) -> Self {
        self.text(key).u32(4).u32(number)
    }
    /// A key with a text.
    pub fn word(self, key: &str, word: &str) -> Self {
        self.text(key).u32(8).text(word)
    }
    /// A key with a list of texts.
    pub fn words(self, key: &str, words: &[&str]) -> Self {
        let list = self.text(key).u32(9).u32(8).u64(words.len() as u64);
        words.iter().fold(list, |list, word| list.text(word))
    }
    pub fn tensor(self, name: &str, dims: &[u64], kind: Kind, offset: u64) -> Self {
        let dimensions = self.text(name).u32(dims.len() as u32);
        dims.iter().fold(dimensions, |this, dim| this.u64(*dim)).u32(kind as u32).u64(offset)
    }
    /// Zeros up to a multiple of `alignment`, then so many.
    pub fn data(mut self, alignment: usize, bytes: usize) -> Self {
        let end = self.bytes.len().next_multiple_of(alignment) + bytes;
        self.bytes.resize(end, 0);
        self
    }

    pub fn read(&self) -> Result<Header, GgufError> {
        read(&self.bytes)
    }
    /// The sentence about it.
    pub fn told(&self) -> String {
        self.read().unwrap_err().to_string()
    }
}

pub fn read(bytes: &[u8]) -> Result<Header, GgufError> {
    gguf::read(Cursor::new(bytes), bytes.len() as u64)
}

/// A small model with a key of each kind, in the given order of bytes.
pub fn small(big_endian: bool) -> Writer {
    let new = if big_endian { Writer::big_endian } else { Writer::new };
    new(3, 3, 9)
        .word("general.architecture", "llama")
        .word("general.name", "small")
        .number("llama.block_count", 1)
        .text("llama.attention.layer_norm_rms_epsilon")
        .u32(6)
        .u32(1e-5f32.to_bits())
        .text("llama.attention.causal")
        .u32(7)
        .raw(&[1])
        .text("llama.attention.head_count_kv")
        .u32(9)
        .u32(10)
        .u64(2)
        .u64(8)
        .u64(4)
        .words("tokenizer.ggml.tokens", &["a", "", "of"])
        .text("llama.byte")
        .u32(1)
        .raw(&[0xfe])
        .text("llama.double")
        .u32(12)
        .u64(2.5f64.to_bits())
        .tensor("token_embd.weight", &[32, 4], Kind::Q8_0, 0)
        .tensor("blk.0.attn_q.weight", &[3, 3], Kind::F32, 160)
        .tensor("blk.0.attn_norm.weight", &[3], Kind::F16, 224)
        .data(32, 224 + 6)
}

/// A file that goes on without end, repeating bytes behind its beginning; it counts what is read and the calls.
pub struct Endless {
    pub start: Vec<u8>,
    pub again: Vec<u8>,
    pub position: u64,
    pub read: u64,
    pub calls: u64,
}

impl Endless {
    pub fn new(start: Vec<u8>, again: &[u8]) -> Self {
        Endless { start, again: again.to_vec(), position: 0, read: 0, calls: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < out.len() {
            let at = self.position as usize;
            let next = match self.start.get(at..) {
                Some(next) if !next.is_empty() => next,
                _ => &self.again[(at - self.start.len()) % self.again.len()..],
            };
            let some = next.len().min(out.len() - filled);
            out[filled..filled + some].copy_from_slice(&next[..some]);
            filled += some;
            self.position += some as u64;
        }
        self.read += out.len() as u64;
        self.calls += 1;
        Ok(out.len())
    }
}

impl Seek for Endless {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let SeekFrom::Start(position) = to else { panic!("{to:?}") };
        self.calls += 1;
        self.position = position;
        Ok(position)
    }
}
