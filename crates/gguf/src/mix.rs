//! Which type llama.cpp's quantiser gives each matrix of a model: a "Q4_K_M" keeps some of them in Q6_K, and every mixture its
//! output. The rules are those of `llama_tensor_get_type` in llama.cpp's `src/llama-quant.cpp`, without an importance matrix.

use crate::kind::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A quantisation as files are named after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(non_camel_case_types, missing_docs, reason = "the names are llama.cpp's, and say all there is to say")]
pub enum Mix {
    F32,
    F16,
    BF16,
    Q8_0,
    Q6_K,
    Q5_K_M,
    Q5_K_S,
    Q5_1,
    Q5_0,
    Q4_K_M,
    Q4_K_S,
    Q4_1,
    Q4_0,
}

/// What a matrix is for, as far as the quantiser makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// What tokens come from: `output`, or an embedding that is the output as well.
    Output,
    /// `attn_v`.
    Values,
    /// `attn_qkv`: three in one.
    Fused,
    /// `ffn_down`.
    Down,
    /// Any other.
    Plain,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 13] = [
        Mix::F32,
        Mix::F16,
        Mix::BF16,
        Mix::Q8_0,
        Mix::Q6_K,
        Mix::Q5_K_M,
        Mix::Q5_K_S,
        Mix::Q5_1,
        Mix::Q5_0,
        Mix::Q4_K_M,
        Mix::Q4_K_S,
        Mix::Q4_1,
        Mix::Q4_0,
    ];

    /// The mixture of that name in whatever case; `fp16` is F16.
    pub fn from_name(name: &str) -> Option<Mix> {
        if name.eq_ignore_ascii_case("fp16") {
            return Some(Mix::F16);
        }
        Mix::ALL.into_iter().find(|mix| mix.to_string().eq_ignore_ascii_case(name))
    }

    /// The type of most matrices.
    fn most(self) -> Kind {
        match self {
            Mix::F32 => Kind::F32,
            Mix::F16 => Kind::F16,
            Mix::BF16 => Kind::BF16,
            Mix::Q8_0 => Kind::Q8_0,
            Mix::Q6_K => Kind::Q6_K,
            Mix::Q5_K_M | Mix::Q5_K_S => Kind::Q5_K,
            Mix::Q5_1 => Kind::Q5_1,
            Mix::Q5_0 => Kind::Q5_0,
            Mix::Q4_K_M | Mix::Q4_K_S => Kind::Q4_K,
            Mix::Q4_1 => Kind::Q4_1,
            Mix::Q4_0 => Kind::Q4_0,
        }
    }

    /// The type of a matrix with rows of `row` elements in layer `layer` of `layers`.
    pub(crate) fn kind(self, role: Role, layer: u64, layers: u64, row: u64) -> Kind {
        let most = self.most();
        let is_float = matches!(self, Mix::F32 | Mix::F16 | Mix::BF16);
        let is_medium = matches!(self, Mix::Q4_K_M | Mix::Q5_K_M);
        let wanted = match role {
            _ if is_float || self == Mix::Q8_0 => most,
            Role::Output => Kind::Q6_K,
            Role::Values | Role::Down if is_medium && takes_more_bits(layer, layers) => Kind::Q6_K,
            Role::Values if self == Mix::Q4_K_S && layer < 4 => Kind::Q5_K,
            Role::Down if self == Mix::Q4_K_S && layer < layers / 8 => Kind::Q5_K,
            Role::Fused if self == Mix::Q4_K_M => Kind::Q5_K,
            Role::Fused if self == Mix::Q5_K_M => Kind::Q6_K,
            _ => most,
        };
        if wanted.bytes(row).is_some() {
            return wanted;
        }
        // Rows that are no whole blocks of 256 get the next larger type with blocks of 32, and F16 where even that fails.
        let instead = match wanted {
            Kind::Q4_K => Kind::Q5_0,
            Kind::Q5_K => Kind::Q5_1,
            Kind::Q6_K => Kind::Q8_0,
            other => other,
        };
        if instead.bytes(row).is_some() { instead } else { Kind::F16 }
    }
}

/// `use_more_bits` of llama.cpp: the first and the last eighth of the layers, and every third between.
fn takes_more_bits(layer: u64, layers: u64) -> bool {
    layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_mixture_has_its_larger_matrices_where_llama_cpp_has_them() {
        let larger: Vec<u64> = (0..28).filter(|layer| takes_more_bits(*layer, 28)).collect();
        assert_eq!(larger, [0, 1, 2, 5, 8, 11, 14, 17, 20, 23, 24, 25, 26, 27]);
        assert_eq!(Mix::Q4_K_M.kind(Role::Down, 3, 28, 8192), Kind::Q4_K);
        assert_eq!(Mix::Q4_K_M.kind(Role::Down, 0, 28, 896), Kind::Q8_0, "no whole blocks");
        assert_eq!(Mix::Q4_K_M.kind(Role::Plain, 0, 28, 896), Kind::Q5_0);
        assert_eq!(Mix::Q4_0.kind(Role::Output, 0, 28, 2304), Kind::Q6_K);
        assert_eq!(Mix::Q8_0.kind(Role::Output, 0, 28, 2304), Kind::Q8_0);
    }

    #[test]
    fn names_are_read_in_any_case() {
        for mix in Mix::ALL {
            assert_eq!(Mix::from_name(&mix.to_string().to_lowercase()), Some(mix));
        }
        assert_eq!((Mix::from_name("fp16"), Mix::from_name("q4_k")), (Some(Mix::F16), None));
    }
}
