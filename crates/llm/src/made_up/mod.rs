//! A GGUF of random weights that real runners load and decode: llama's form, any measures, a vocabulary of as many tokens as
//! it says. Speed does not depend on what weights are worth, only on their number and type; these are as good as
//! incompressible, small enough to stay finite, and never end a text by themselves.

mod keys;
mod vocabulary;

use crate::error::LlmError;
use basics::Bytes;
use keys::{Keys, string};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use vocabulary::FIRST_WORD;

/// Weights that share one scale; both types have as many.
const BLOCK: u64 = 32;
/// Each tensor begins at a multiple of it; what GGUF takes when nothing is said.
const ALIGN: u64 = 32;
/// Bytes made at once.
const PIECE: u64 = 1 << 20;
/// The type of the matrices. Norms are F32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quant {
    /// 34 bytes for 32 weights.
    Q8_0,
    /// 18 bytes for 32 weights.
    Q4_0,
}

impl Quant {
    /// As GGML numbers it.
    fn kind(self) -> u32 {
        match self {
            Quant::Q8_0 => 8,
            Quant::Q4_0 => 2,
        }
    }

    /// The type of a whole file, `LLAMA_FTYPE_MOSTLY_…`.
    fn file_type(self) -> u32 {
        match self {
            Quant::Q8_0 => 7,
            Quant::Q4_0 => 2,
        }
    }

    fn block_bytes(self) -> u64 {
        match self {
            Quant::Q8_0 => 34,
            Quant::Q4_0 => 18,
        }
    }

    /// The standard deviation of a weight whose bits are random, in units of its scale.
    fn spread(self) -> f64 {
        match self {
            Quant::Q8_0 => 256.0 / 12f64.sqrt(),
            Quant::Q4_0 => 16.0 / 12f64.sqrt(),
        }
    }
}

/// The measures of a model of random weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeUp {
    /// Layers, 1 to 1000.
    pub layers: u32,
    /// Length of a token's vector, a multiple of 32 and of twice `heads`.
    pub embd: u32,
    /// Inner length of a feed-forward block, a multiple of 32.
    pub ffn: u32,
    /// Heads of attention.
    pub heads: u32,
    /// Heads of keys and values, of which `heads` is a multiple.
    pub kv_heads: u32,
    /// Tokens of the vocabulary, 512 or more.
    pub vocab: u32,
    /// Tokens that it says it was trained for.
    pub context: u32,
    /// Type of the matrices.
    pub quant: Quant,
    /// The same seed makes the same file.
    pub seed: u64,
}

struct Tensor {
    name: String,
    /// Length of a row, then rows; 0 rows for a vector.
    row: u32,
    rows: u32,
}

impl MadeUp {
    fn check(&self) -> Result<(), LlmError> {
        let wrong = |key, why: &str| Err(LlmError::MadeUp { key, why: why.to_owned() });
        let most = 1 << 20;
        if !(1..=1000).contains(&self.layers) {
            return wrong("layers", "must be 1 to 1000");
        }
        if self.heads == 0 || !self.embd.is_multiple_of(self.heads.saturating_mul(2)) {
            return wrong("embd", "must be a multiple of twice the heads");
        }
        for (key, value) in [("embd", self.embd), ("ffn", self.ffn)] {
            if value == 0 || value > most || !u64::from(value).is_multiple_of(BLOCK) {
                return wrong(key, "must be a multiple of 32 up to 2^20");
            }
        }
        if self.kv_heads == 0 || !self.heads.is_multiple_of(self.kv_heads) {
            return wrong("kv_heads", "must divide the heads");
        }
        if !(512..=1 << 24).contains(&self.vocab) {
            return wrong("vocab", "must be 512 to 2^24");
        }
        if self.context == 0 {
            return wrong("context", "must be 1 or more");
        }
        Ok(())
    }

    /// Its tensors in the order of the file.
    fn tensors(&self) -> Vec<Tensor> {
        let tensor = |name: &str, row, rows| Tensor { name: name.to_owned(), row, rows };
        let mut tensors = vec![tensor("token_embd.weight", self.embd, self.vocab)];
        let keys = self.embd / self.heads * self.kv_heads;
        for layer in 0..self.layers {
            let mut add =
                |role: &str, row, rows| tensors.push(tensor(&format!("blk.{layer}.{role}.weight"), row, rows));
            add("attn_norm", self.embd, 0);
            add("attn_q", self.embd, self.embd);
            add("attn_k", self.embd, keys);
            add("attn_v", self.embd, keys);
            add("attn_output", self.embd, self.embd);
            add("ffn_norm", self.embd, 0);
            add("ffn_gate", self.embd, self.ffn);
            add("ffn_up", self.embd, self.ffn);
            add("ffn_down", self.ffn, self.embd);
        }
        tensors.push(tensor("output_norm.weight", self.embd, 0));
        tensors.push(tensor("output.weight", self.embd, self.vocab));
        tensors
    }

    fn tensor_bytes(&self, tensor: &Tensor) -> u64 {
        match tensor.rows {
            0 => u64::from(tensor.row) * 4,
            rows => u64::from(tensor.row) / BLOCK * u64::from(rows) * self.quant.block_bytes(),
        }
    }

    /// Bytes of all weights; the file is longer by its header.
    ///
    /// # Errors
    /// [`LlmError::MadeUp`].
    pub fn weights(&self) -> Result<Bytes, LlmError> {
        self.check()?;
        Ok(Bytes(self.tensors().iter().map(|tensor| self.tensor_bytes(tensor)).sum()))
    }

    /// A text that the model's vocabulary makes `tokens` tokens of, with the one that says that a text begins; 2 or more.
    pub fn prompt(&self, tokens: u32) -> String {
        let words = self.vocab.saturating_sub(FIRST_WORD).max(1);
        let each = (1..tokens.max(2)).map(|n| vocabulary::word((u64::from(n) * 7919 % u64::from(words)) as u32));
        each.collect::<Vec<_>>().join(" ")
    }

    /// Writes it to `path`, which must not exist, and says how long the file is. What was written when it fails is left there.
    ///
    /// # Errors
    /// [`LlmError::MadeUp`], [`LlmError::File`], [`LlmError::Cancelled`].
    pub fn write(&self, path: &Path, cancel: &AtomicBool) -> Result<Bytes, LlmError> {
        self.check()?;
        let failed = |source| LlmError::File { action: "write", path: path.to_owned(), source };
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(PIECE as usize, file);
        let tensors = self.tensors();
        let header = self.header(&tensors);
        out.write_all(&header).map_err(failed)?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut bytes = header.len() as u64;
        for tensor in &tensors {
            if cancel.load(Ordering::Relaxed) {
                return Err(LlmError::Cancelled);
            }
            self.weigh(tensor, &mut random, &mut out).map_err(failed)?;
            let length = self.tensor_bytes(tensor);
            let padded = length.next_multiple_of(ALIGN);
            out.write_all(&[0; ALIGN as usize][..(padded - length) as usize]).map_err(failed)?;
            bytes += padded;
        }
        out.flush().map_err(failed)?;
        Ok(Bytes(bytes))
    }

    fn weigh(&self, tensor: &Tensor, random: &mut Xoshiro256PlusPlus, out: &mut impl Write) -> io::Result<()> {
        if tensor.rows == 0 {
            return (0..tensor.row).try_for_each(|_| out.write_all(&1f32.to_le_bytes()));
        }
        // A row times a vector of ones' size gives a one's size; scales are within a factor of two, 1.5 in the mean.
        let wanted = 1.0 / (f64::from(tensor.row).sqrt() * self.quant.spread() * 1.5);
        let exponent = (wanted.log2().round() as i32).clamp(-14, 15) + 15;
        let block = self.quant.block_bytes();
        let row = u64::from(tensor.row) / BLOCK * block;
        // What is no word gets 0 where words get about ±1: with 252 words and more it is never the most likely, nor among the first 40.
        let mut silent = if tensor.name == "output.weight" { u64::from(FIRST_WORD) * row } else { 0 };
        let mut left = row * u64::from(tensor.rows);
        let mut piece = vec![0; (PIECE / block * block) as usize];
        while left > 0 {
            let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = &mut piece[..most];
            random.fill_bytes(piece);
            for block in piece.chunks_mut(block as usize) {
                // Sign and mantissa stay random: half of the blocks turn around, or what is not symmetric about 0 would add up.
                let scale = u16::from_le_bytes([block[0], block[1]]) & 0x83ff | (exponent as u16) << 10;
                let scale = if silent > 0 { 0 } else { scale };
                block[..2].copy_from_slice(&scale.to_le_bytes());
                silent = silent.saturating_sub(block.len() as u64);
            }
            out.write_all(piece)?;
            left -= most as u64;
        }
        Ok(())
    }

    fn header(&self, tensors: &[Tensor]) -> Vec<u8> {
        let mut keys = Keys::default();
        keys.text("general.architecture", "llama");
        keys.text("general.name", "random weights");
        keys.number("general.file_type", self.quant.file_type());
        keys.number("general.quantization_version", 2);
        keys.number("llama.block_count", self.layers);
        keys.number("llama.context_length", self.context);
        keys.number("llama.embedding_length", self.embd);
        keys.number("llama.feed_forward_length", self.ffn);
        keys.number("llama.attention.head_count", self.heads);
        keys.number("llama.attention.head_count_kv", self.kv_heads);
        keys.number("llama.rope.dimension_count", self.embd / self.heads);
        keys.number("llama.vocab_size", self.vocab);
        keys.put("llama.attention.layer_norm_rms_epsilon", 6, &1e-5f32.to_le_bytes());
        keys.text("tokenizer.ggml.model", "llama");
        keys.array("tokenizer.ggml.tokens", 8, self.vocab, |out, token| string(out, &vocabulary::text(token)));
        keys.array("tokenizer.ggml.scores", 6, self.vocab, |out, token| {
            out.extend((-(token as f32)).to_le_bytes());
        });
        keys.array("tokenizer.ggml.token_type", 5, self.vocab, |out, token| {
            out.extend(vocabulary::kind(token).to_le_bytes());
        });
        keys.number("tokenizer.ggml.unknown_token_id", 0);
        keys.number("tokenizer.ggml.bos_token_id", 1);
        keys.number("tokenizer.ggml.eos_token_id", 2);
        keys.put("tokenizer.ggml.add_bos_token", 7, &[1]);

        let mut header = b"GGUF".to_vec();
        header.extend(3u32.to_le_bytes());
        header.extend((tensors.len() as u64).to_le_bytes());
        header.extend(keys.count.to_le_bytes());
        header.extend(keys.bytes);
        let mut offset = 0u64;
        for tensor in tensors {
            string(&mut header, &tensor.name);
            let dims: &[u32] = if tensor.rows == 0 { &[tensor.row] } else { &[tensor.row, tensor.rows] };
            header.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| header.extend(u64::from(*dim).to_le_bytes()));
            let kind = if tensor.rows == 0 { 0 } else { self.quant.kind() };
            header.extend(kind.to_le_bytes());
            header.extend(offset.to_le_bytes());
            offset += self.tensor_bytes(tensor).next_multiple_of(ALIGN);
        }
        header.resize(header.len().next_multiple_of(ALIGN as usize), 0);
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: MadeUp = MadeUp {
        layers: 2,
        embd: 64,
        ffn: 96,
        heads: 4,
        kv_heads: 2,
        vocab: 1000,
        context: 256,
        quant: Quant::Q8_0,
        seed: 1,
    };

    #[test]
    fn a_file_is_as_long_as_its_tensors_and_the_same_for_a_seed() {
        let dir = tempfile::tempdir().unwrap();
        let go_on = AtomicBool::new(false);
        for quant in [Quant::Q8_0, Quant::Q4_0] {
            let model = MadeUp { quant, ..SMALL };
            let paths = [1, 2].map(|n| dir.path().join(format!("{quant:?}-{n}")));
            let bytes = paths.each_ref().map(|path| {
                let length = model.write(path, &go_on).unwrap();
                assert_eq!(length.0, path.metadata().unwrap().len());
                std::fs::read(path).unwrap()
            });
            assert!(bytes[0] == bytes[1] && bytes[0].starts_with(b"GGUF\x03\0\0\0"));
            let weights = model.weights().unwrap().0;
            assert!(bytes[0].len() as u64 > weights && weights > 2 * 1000 * 64 / 32 * quant.block_bytes());
        }
        let there = SMALL.write(&dir.path().join("Q8_0-1"), &go_on).unwrap_err().to_string();
        assert!(there.contains("File exists"), "{there}");
    }

    #[test]
    fn scales_keep_a_rows_product_at_one() {
        for (quant, row) in [(Quant::Q8_0, 64u32), (Quant::Q8_0, 16384), (Quant::Q4_0, 4096)] {
            let model = MadeUp { quant, ..SMALL };
            let mut bytes = Vec::new();
            let tensor = Tensor { name: "x".to_owned(), row, rows: 64 };
            model.weigh(&tensor, &mut Xoshiro256PlusPlus::seed_from_u64(3), &mut bytes).unwrap();
            let (mut squares, mut count) = (0.0, 0.0);
            for block in bytes.chunks(quant.block_bytes() as usize) {
                let half = u16::from_le_bytes([block[0], block[1]]);
                let scale = f64::from(1024 + (half & 1023)) / 1024.0 * 2f64.powi(i32::from(half >> 10 & 31) - 15);
                for byte in &block[2..] {
                    let each = match quant {
                        Quant::Q8_0 => vec![f64::from(*byte as i8)],
                        Quant::Q4_0 => vec![f64::from(byte & 15) - 8.0, f64::from(byte >> 4) - 8.0],
                    };
                    squares += each.iter().map(|weight| (weight * scale).powi(2)).sum::<f64>();
                    count += each.len() as f64;
                }
            }
            let size = (squares / count * f64::from(row)).sqrt();
            assert!((0.6..1.7).contains(&size), "{quant:?} {row}: {size}");
        }
    }

    #[test]
    fn a_model_that_cannot_be_is_refused() {
        for (model, said) in [
            (MadeUp { layers: 0, ..SMALL }, "layers must be 1 to 1000"),
            (MadeUp { embd: 65, ..SMALL }, "embd must be a multiple of twice the heads"),
            (MadeUp { ffn: 33, ..SMALL }, "ffn must be a multiple of 32 up to 2^20"),
            (MadeUp { kv_heads: 3, ..SMALL }, "kv_heads must divide the heads"),
            (MadeUp { vocab: 100, ..SMALL }, "vocab must be 512 to 2^24"),
            (MadeUp { heads: 0, ..SMALL }, "embd must be a multiple of twice the heads"),
            (MadeUp { heads: u32::MAX, ..SMALL }, "embd must be a multiple of twice the heads"),
        ] {
            assert_eq!(model.weights().unwrap_err().to_string(), format!("in a model of random weights, {said}"));
        }
    }
}
