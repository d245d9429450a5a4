//! The types of tensors that ggml stores, and how many bytes a block of each takes. What the bytes mean is left to ggml.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a tensor's elements, by ggml's name; its discriminant is ggml's number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(non_camel_case_types, missing_docs, reason = "the names are ggml's, and say all there is to say")]
#[repr(u32)]
pub enum Kind {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42,
}

/// Each type with the elements of a block and the bytes that they take.
///
/// From `GGML_QUANT_SIZES` of the Python package `gguf` 0.19.0, which `tests/architectures.rs` compares again, except:
/// - Q8_1 is 36 bytes in ggml since its two scales are halves (`block_q8_1` in `ggml-common.h`); the package still says 40. It is
///   a type of intermediate results, so no file should have it.
/// - Q2_0 is newer than the package: number 42 of `ggml.h`, a half and 64 elements of two bits.
const BLOCKS: [(Kind, u64, u64); 35] = [
    (Kind::F32, 1, 4),
    (Kind::F16, 1, 2),
    (Kind::Q4_0, 32, 18),
    (Kind::Q4_1, 32, 20),
    (Kind::Q5_0, 32, 22),
    (Kind::Q5_1, 32, 24),
    (Kind::Q8_0, 32, 34),
    (Kind::Q8_1, 32, 36),
    (Kind::Q2_K, 256, 84),
    (Kind::Q3_K, 256, 110),
    (Kind::Q4_K, 256, 144),
    (Kind::Q5_K, 256, 176),
    (Kind::Q6_K, 256, 210),
    (Kind::Q8_K, 256, 292),
    (Kind::IQ2_XXS, 256, 66),
    (Kind::IQ2_XS, 256, 74),
    (Kind::IQ3_XXS, 256, 98),
    (Kind::IQ1_S, 256, 50),
    (Kind::IQ4_NL, 32, 18),
    (Kind::IQ3_S, 256, 110),
    (Kind::IQ2_S, 256, 82),
    (Kind::IQ4_XS, 256, 136),
    (Kind::I8, 1, 1),
    (Kind::I16, 1, 2),
    (Kind::I32, 1, 4),
    (Kind::I64, 1, 8),
    (Kind::F64, 1, 8),
    (Kind::IQ1_M, 256, 56),
    (Kind::BF16, 1, 2),
    (Kind::TQ1_0, 256, 54),
    (Kind::TQ2_0, 256, 66),
    (Kind::MXFP4, 32, 17),
    (Kind::NVFP4, 64, 36),
    (Kind::Q1_0, 128, 18),
    (Kind::Q2_0, 64, 18),
];

impl Kind {
    /// Every type, by number.
    pub fn all() -> impl Iterator<Item = Kind> {
        BLOCKS.iter().map(|(kind, ..)| *kind)
    }

    /// The type with ggml's number `id`.
    pub fn from_id(id: u32) -> Option<Kind> {
        Kind::all().find(|kind| *kind as u32 == id)
    }

    /// The type of that name in whatever case.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::all().find(|kind| kind.to_string().eq_ignore_ascii_case(name))
    }

    /// Elements of a block and the bytes that they take.
    pub fn block(self) -> (u64, u64) {
        BLOCKS.iter().find(|(kind, ..)| *kind == self).map_or((1, 1), |(_, elements, bytes)| (*elements, *bytes))
    }

    /// Bytes that `elements` in a row take; none when they are no whole number of blocks or the bytes do not fit 64 bits.
    pub fn bytes(self, elements: u64) -> Option<u64> {
        let (block, bytes) = self.block();
        if elements.is_multiple_of(block) { (elements / block).checked_mul(bytes) } else { None }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What ggml's number `id` is when it is none of [`Kind`]: the rest of a sentence.
pub(crate) fn unknown(id: u32) -> String {
    match id {
        4 | 5 | 31..=33 | 36..=38 => {
            format!(
                "its type {id} was taken out of ggml, and nothing runs it any more; get the model in another quantisation"
            )
        }
        _ => format!("its type {id} is none that is known; the file is damaged or newer than this program"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_found_by_its_number_and_its_name() {
        for kind in Kind::all() {
            assert_eq!(Kind::from_id(kind as u32), Some(kind));
            assert_eq!(Kind::from_name(&kind.to_string().to_lowercase()), Some(kind));
            assert!(BLOCKS.iter().filter(|(other, ..)| *other == kind).count() == 1, "{kind}");
        }
        assert_eq!(Kind::from_id(4), None);
        assert_eq!(Kind::from_name("Q4_K_M"), None);
    }

    #[test]
    fn a_row_is_whole_blocks() {
        assert_eq!(Kind::Q4_K.bytes(3072), Some(1728));
        assert_eq!(Kind::Q4_K.bytes(3000), None);
        assert_eq!(Kind::F64.bytes(u64::MAX), None);
    }
}
