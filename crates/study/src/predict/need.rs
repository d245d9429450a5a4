//! What decoding one token needs: bytes that it touches, and bytes that must be there beside them.

use basics::decoding::columns;
use basics::{Bytes, Known};
use gguf::{Decode, GgufError, Header, Part};
use serde::{Deserialize, Serialize};

/// What a runner keeps in memory beside weights and cache: its programs, buffers for one token, and what is on its way. An upper
/// bound: of a limit of 650 MiB (682 MB) the best that a pager could keep of a model under Ollama was 630 MB (FIELD-NOTES.md 13).
const RUNNER: Bytes = Bytes(50_000_000);

/// How much is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens that are made.
    pub generated: u64,
}

impl Default for Usage {
    /// A question and an answer of the length that the published rows have (240 to 350 tokens).
    fn default() -> Self {
        Usage { prompt: 30, generated: 300 }
    }
}

impl Usage {
    /// Tokens of the context in the middle of the generation, where a token costs what it costs on average.
    fn middle(self) -> u64 {
        self.prompt.saturating_add(self.generated / 2)
    }
}

/// What decoding one token needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Need {
    /// Its name.
    pub model: String,
    /// Of the model's weights, touched by each token.
    pub weights: Bytes,
    /// Weights that tokens touch sooner or later: more than `weights` in models of experts, of which each token uses some.
    pub reach: Bytes,
    /// Weights that a token is multiplied with: their number, whatever their types.
    pub multiplied: u64,
    /// Of the cache of keys and values, read by a token in the middle of the generation.
    pub kv: Known<Bytes>,
    /// Of the cache when the last token is made.
    pub kv_at_end: Known<Bytes>,
    /// What a runner holds beside, touched again by every token: it is kept whatever happens.
    pub resident: Bytes,
}

impl Need {
    /// Of a model by its header.
    pub fn of(model: &str, header: &Header, decode: &Decode, usage: Usage) -> Self {
        let context = |tokens: u64| {
            let tokens = decode.kv.context.map_or(tokens, |most| tokens.min(most));
            match decode.kv.bytes_per_token {
                Some(each) => Known::Is(Bytes(each.saturating_mul(tokens))),
                None => Known::not_measured("the file does not say enough"),
            }
        };
        let weights = decode.bytes_per_token(header);
        let numbers = decode.passes.iter().filter_map(|touch| {
            let tensor = header.tensors.get(touch.tensor)?;
            let share = touch.bytes(header) as f64 / tensor.bytes.max(1) as f64;
            Some((tensor.elements() as f64 * share) as u64)
        });
        let whole = |tensor: usize| header.tensors.get(tensor).map_or(0, |tensor| tensor.bytes);
        let more = decode.passes.iter().filter(|touch| matches!(touch.part, Part::Experts { .. }));
        let more: u64 = more.map(|touch| whole(touch.tensor).saturating_sub(touch.bytes(header))).sum();
        Need {
            model: model.to_owned(),
            weights: Bytes(weights),
            reach: Bytes(weights.saturating_add(more)),
            multiplied: numbers.fold(0, u64::saturating_add),
            kv: context(usage.middle()),
            kv_at_end: context(usage.prompt.saturating_add(usage.generated)),
            resident: RUNNER,
        }
    }

    /// With room for so many tokens in its cache, on a machine with such pages: a token goes through that room
    /// ([`columns`]).
    pub fn with_room(self, room: u64, page: Bytes, decode: &Decode) -> Self {
        let room = decode.kv.context.map_or(room, |most| room.min(most));
        let within = |all: Known<Bytes>| match (all, decode.kv.bytes_per_token) {
            (Known::Is(all), Some(each)) => {
                let values = (each / 2).saturating_mul(columns(all.0 / each.max(1), room, page));
                Known::Is(Bytes((all.0 / 2).saturating_add(values).max(all.0)))
            }
            (all, _) => all,
        };
        Need { kv: within(self.kv), kv_at_end: within(self.kv_at_end), ..self }
    }

    /// Of a well-known model by its name, as `gemma2:2b` or `gemma2:2b-instruct-q8_0`.
    ///
    /// # Errors
    /// [`GgufError::Model`] where the name is not known.
    pub fn named(name: &str, usage: Usage) -> Result<Self, GgufError> {
        let (model, mix) = gguf::models::find(name)?;
        let header = model.header(mix);
        let decode = gguf::decode(&header)?;
        Ok(Need::of(name, &header, &decode, usage))
    }

    /// Bytes that one token touches: weights and, as far as it is known, the cache.
    pub fn touched(&self) -> Bytes {
        self.weights + self.kv.get().copied().unwrap_or_default()
    }

    /// Bytes that tokens come back to.
    pub fn cycle(&self) -> Bytes {
        self.reach + self.kv.get().copied().unwrap_or_default()
    }

    /// How many times too large it is for that memory.
    pub(super) fn times_too_large(&self, left: Bytes) -> f64 {
        if left.0 == 0 { f64::INFINITY } else { self.cycle().0 as f64 / left.0 as f64 }
    }

    /// Misses under a replacement at random, as a share of what is touched. Experts are chosen anew for each token, so of what is
    /// kept each part is met with its share and no law of cycles holds.
    pub(super) fn random_misses(&self, left: Bytes) -> f64 {
        let x = self.times_too_large(left);
        if self.reach > self.weights { (1.0 - 1.0 / x).max(0.0) } else { super::random_misses(x) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Shape;

    #[test]
    fn gemma_needs_its_file_and_some_cache() {
        let need = Need::named("gemma2:2b", Usage::default()).unwrap();
        assert!((1.61e9..1.64e9).contains(&(need.weights.0 as f64)), "{need:?}");
        // 26 layers, 4 heads, keys and values of 256 halves: 104 KiB a token.
        assert_eq!(need.kv, Known::Is(Bytes(180 * 26 * 4 * 2 * 256 * 2)));
        assert_eq!(need.kv_at_end, Known::Is(Bytes(330 * 26 * 4 * 2 * 256 * 2)));
        assert!((2.61e9..2.62e9).contains(&(need.multiplied as f64)), "{need:?}");
        assert_eq!((need.reach, need.touched()), (need.weights, need.weights + Bytes(180 * 106_496)));
    }

    #[test]
    fn an_untied_embedding_is_not_touched_and_senses_are_not_either() {
        let touched = |name: &str| Need::named(name, Usage::default()).unwrap().weights.0 as f64 / 1e9;
        let (untied, tied) = (touched("deepseek-r1:1.5b"), touched("qwen2.5:1.5b"));
        assert!((untied / tied - 1.0).abs() < 0.01, "{untied} {tied}");
        assert!((2.4..2.6).contains(&touched("gemma3:4b")));
    }

    #[test]
    fn experts_are_a_longer_way_than_a_token_goes() {
        let header = Shape::parse("layers=4,embd=1024,experts=8,experts_used=2").unwrap().header();
        let need = Need::of("x", &header, &gguf::decode(&header).unwrap(), Usage::default());
        assert!(need.reach.0 > 5 * need.weights.0 / 2, "{need:?}");
        let half = Bytes(need.cycle().0 / 2);
        assert!((need.random_misses(half) - 0.5).abs() < 1e-6);
        assert_eq!(need.random_misses(need.cycle()), 0.0);
    }

    #[test]
    fn an_unknown_cache_is_not_zero() {
        let mut header = Shape::parse("layers=4,embd=1024").unwrap().header();
        header.keys.retain(|key, _| !key.contains("head_count"));
        let need = Need::of("x", &header, &gguf::decode(&header).unwrap(), Usage::default());
        assert!(need.kv.is_unknown() && need.kv_at_end.is_unknown());
    }
}
