//! How much each token of the context adds to the cache of keys and values, by the keys of the file: what a runner allocates
//! for it in half precision, before it pads or quantises it.

use crate::error::excerpt;
use crate::header::Header;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The cache of keys and values, which decoding reads as a whole for each token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KvCache {
    /// Bytes that each token of the context takes in all layers together, in f16 (two bytes a number); none when the file does
    /// not say enough. Zero for models without attention.
    pub bytes_per_token: Option<u64>,
    /// Tokens of the longest context that the model was made for; none when the file does not say.
    pub context: Option<u64>,
    /// Tokens to which some layers or all look back at most (`attention.sliding_window`); none without such a window. Beyond it
    /// those layers keep and read no more, so [`KvCache::bytes_per_token`] is an upper bound there.
    pub window: Option<u64>,
}

const F16: u64 = 2;

/// The cache of `layers`, each with the roles of its tensors. `shared` are layers without a cache of their own.
pub(super) fn cache(
    header: &Header,
    layers: &BTreeMap<u64, BTreeSet<&str>>,
    shared: impl Fn(u64) -> bool,
    notes: &mut Vec<String>,
) -> KvCache {
    let attention = layers.iter().filter(|(layer, roles)| attends(roles) && !shared(**layer)).map(|(layer, _)| *layer);
    let attention: Vec<u64> = attention.collect();
    if attention.len() < layers.len() {
        let without = layers.len() - attention.len();
        notes.push(format!("{without} of {} layers keep no keys and values of their own", layers.len()));
    }
    let keys = Keys::of(header);
    let mut unknown = None;
    let bytes = attention.iter().try_fold(0u64, |sum, layer| match keys.of_layer(*layer) {
        Ok(bytes) => Some(sum.saturating_add(bytes)),
        Err(key) => {
            unknown = Some(key);
            None
        }
    });
    if let Some(key) = unknown {
        let key = excerpt(&header.key(key));
        notes.push(format!("what the context takes is unknown: the key {key} is missing or of no use"));
    }
    let window = header.count("attention.sliding_window").filter(|window| *window > 0);
    if let Some(window) = window {
        notes.push(format!(
            "some layers or all look back {window} tokens at most; the bytes of the context are an upper bound beyond them"
        ));
    }
    if header.value("attention.key_length_mla").is_some() {
        notes.push("newer runners keep the values of this attention (MLA) within its keys, so the context takes up to half less".to_owned());
    }
    KvCache { bytes_per_token: bytes, context: header.count("context_length"), window }
}

/// Whether a layer with these tensors keeps keys and values. A recurrent layer may call its input `attn_qkv` (Qwen3-Next).
fn attends(roles: &BTreeSet<&str>) -> bool {
    let has = |role: &str| roles.contains(role);
    let recurrent = roles.iter().any(|role| role.starts_with("ssm_"));
    has("attn_k") || has("attn_kv_a_mqa") || has("attn_kv_b") || (has("attn_qkv") && !recurrent)
}

/// The keys that shape the cache, looked up once for all layers.
struct Keys<'a> {
    embedding: Option<u64>,
    heads: Option<&'a Value>,
    kv_heads: Option<&'a Value>,
    /// Lengths of keys and of values.
    lengths: [Option<u64>; 2],
    /// The same in layers with a window, where they differ.
    lengths_in_window: [Option<u64>; 2],
    /// Which layers have a window.
    pattern: Option<&'a Value>,
}

impl<'a> Keys<'a> {
    fn of(header: &'a Header) -> Self {
        Keys {
            embedding: header.count("embedding_length"),
            heads: header.value("attention.head_count"),
            kv_heads: header.value("attention.head_count_kv"),
            lengths: ["attention.key_length", "attention.value_length"].map(|key| header.count(key)),
            lengths_in_window: ["attention.key_length_swa", "attention.value_length_swa"].map(|key| header.count(key)),
            pattern: header.value("attention.sliding_window_pattern"),
        }
    }

    /// Bytes a token of one layer, or the key that is missing for it.
    fn of_layer(&self, layer: u64) -> Result<u64, &'static str> {
        let count = |value: Option<&Value>| value.and_then(|value| value.of_layer(layer)?.count());
        let heads = count(self.heads).ok_or("attention.head_count");
        // llama.cpp takes the number of heads where that of the cache is not said.
        let kv_heads = match self.kv_heads {
            Some(_) => count(self.kv_heads).ok_or("attention.head_count_kv")?,
            None => heads?,
        };
        if kv_heads == 0 {
            return Ok(0);
        }
        let windowed = self.pattern.and_then(|pattern| pattern.of_layer(layer)?.bool()).unwrap_or(false);
        let mut numbers = 0u64;
        for (length, in_window) in self.lengths.into_iter().zip(self.lengths_in_window) {
            let length = match in_window.filter(|_| windowed).or(length) {
                Some(length) => length,
                None => {
                    let heads = heads?;
                    let embedding = self.embedding.ok_or("embedding_length")?;
                    embedding.checked_div(heads).ok_or("attention.head_count")?
                }
            };
            numbers = numbers.saturating_add(length);
        }
        Ok(kv_heads.saturating_mul(numbers).saturating_mul(F16))
    }
}
