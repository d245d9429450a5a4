//! The header of a GGUF file as data: keys, tensors and where they lie in the file.

use crate::kind::Kind;
use crate::value::Value;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a GGUF file says before its weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Header {
    /// Of the format: 2 or 3.
    pub version: u32,
    /// True for a file whose numbers, those of the weights included, are for big-endian machines.
    pub big_endian: bool,
    /// `general.architecture`: which model's code runs it, and the first part of the names of the keys that shape it.
    pub architecture: Option<String>,
    /// `general.name`: what its maker calls it.
    pub name: Option<String>,
    /// Every key by its full name.
    pub keys: BTreeMap<String, Value>,
    /// In the order of the file.
    pub tensors: Vec<Tensor>,
    /// Byte of the file at which the tensors begin.
    pub data_start: u64,
    /// Bytes of the file, or of what there is of it.
    pub len: u64,
}

/// A tensor, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tensor {
    /// As in `blk.0.attn_q.weight`; shorter than 64 bytes.
    pub name: String,
    /// Elements along each dimension, at most four; the first is that of a row, whose elements are neighbours.
    pub dims: Vec<u64>,
    /// The type of its elements.
    pub kind: Kind,
    /// Byte of the file at which it begins.
    pub offset: u64,
    /// Its size in bytes, without what pads it.
    pub bytes: u64,
}

impl Tensor {
    /// Its number of elements.
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Bytes of one row, the elements along its first dimension.
    pub fn row_bytes(&self) -> u64 {
        self.dims.first().and_then(|row| self.kind.bytes(*row)).unwrap_or(self.bytes)
    }
}

impl Header {
    /// Elements of all tensors: what is called the model's number of parameters.
    pub fn parameters(&self) -> u64 {
        // In a file that claims the largest size, types of under a byte would overflow.
        self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.elements()))
    }

    /// Bytes of all tensors, without what pads them.
    pub fn model_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes).sum()
    }

    /// Bytes at the end of the tensors that the file does not have: 0 for a whole file. A file that has its header alone is
    /// enough to predict from, and nothing can run it.
    pub fn missing(&self) -> u64 {
        let end = self.tensors.last().map_or(0, |tensor| tensor.offset + tensor.bytes);
        end.saturating_sub(self.len)
    }

    /// The tensor of that name, and its place in [`Header::tensors`].
    pub fn tensor(&self, name: &str) -> Option<(usize, &Tensor)> {
        self.tensors.iter().enumerate().find(|(_, tensor)| tensor.name == name)
    }

    /// The full name of a key of the model's own, as `llama.block_count`.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture.as_deref().unwrap_or_default())
    }

    /// The value of a key of the model's own, whose name is given without the architecture's: `block_count`.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.keys.get(&self.key(name))
    }

    /// A whole number under a key of the model's own.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.value(name)?.count()
    }

    /// The same for one layer, where the key may have a number for each.
    pub fn count_of_layer(&self, name: &str, layer: u64) -> Option<u64> {
        self.value(name)?.of_layer(layer)?.count()
    }
}
