//! Well-known models by their names, from the numbers that their makers publish: the header that a file of the model would have,
//! so that [`decode`](crate::decode) says of it what it would say of the file. Names of tensors and types are those of llama.cpp's
//! files; what a tokenizer takes is not in it.

use crate::error::{GgufError, excerpt};
use crate::header::Header;
use crate::kind::Kind;
use crate::mix::{Mix, Role};
use crate::shape::Tensors;
use crate::value::Value;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// A model as its maker describes it, and how Ollama hands it out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// In Ollama, the most exact first.
    pub names: Vec<String>,
    /// The maker's repository; its `config.json` is the source of the numbers.
    pub config: String,
    /// `general.architecture` of its files.
    pub architecture: String,
    /// The quantisation that the name stands for.
    pub mix: Mix,
    /// Layers.
    pub layers: u64,
    /// Length of a token's vector.
    pub embd: u64,
    /// Inner length of a feed-forward block.
    pub ffn: u64,
    /// Heads of attention that ask.
    pub heads: u64,
    /// Heads of attention that are asked.
    pub kv_heads: u64,
    /// Length of a head's vector.
    pub head_size: u64,
    /// Tokens of the vocabulary.
    pub vocab: u64,
    /// Tokens of the longest context.
    pub context: u64,
    /// Tokens to which some layers look back at most.
    #[serde(default)]
    pub window: Option<u64>,
    /// The output is the embedding.
    #[serde(default)]
    pub tied: bool,
    /// Queries, keys and values have biases.
    #[serde(default)]
    pub qkv_bias: bool,
    /// Heads of queries and of keys are normalised.
    #[serde(default)]
    pub qk_norm: bool,
    /// Attention and feed-forward blocks have a norm behind them, too.
    #[serde(default)]
    pub post_norms: bool,
    /// Queries, keys and values are one matrix, gate and up another.
    #[serde(default)]
    pub fused: bool,
    /// Parameters for pictures, in F16.
    #[serde(default)]
    pub senses: u64,
    /// Elements of all tensors, as published.
    pub parameters: u64,
    /// Size of the download, 10^6 bytes, as published.
    #[serde(rename = "download_MB")]
    pub download_mb: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: Vec<Model>,
}

/// What Ollama's tags have between the size and the quantisation.
const MANNERS: [&str; 4] = ["-instruct", "-it", "-text", "-chat"];

/// All models that are known.
pub fn all() -> &'static [Model] {
    static ALL: LazyLock<Vec<Model>> = LazyLock::new(|| {
        // A test reads the file, so nothing is left out.
        toml::from_str::<File>(include_str!("../data/models.toml")).map(|file| file.model).unwrap_or_default()
    });
    &ALL
}

/// The model of that name in its default quantisation, or in that with which the name ends: `gemma2:2b`,
/// `gemma2:2b-instruct-q8_0`.
///
/// # Errors
/// [`GgufError::Model`], which lists the names.
pub fn find(name: &str) -> Result<(&'static Model, Mix), GgufError> {
    let lower = name.trim().to_ascii_lowercase();
    let plain = lower.strip_suffix(":latest").unwrap_or(&lower);
    let named = |name: &str| all().iter().find(|model| model.names.iter().any(|own| own == name));
    if let Some(model) = named(plain) {
        return Ok((model, model.mix));
    }
    let (front, mix) = match plain.rsplit_once('-') {
        Some((front, ending)) => Mix::from_name(ending).map_or((plain, None), |mix| (front, Some(mix))),
        None => (plain, None),
    };
    let bare = MANNERS.iter().find_map(|manner| front.strip_suffix(manner)).unwrap_or(front);
    if let Some(model) = named(bare) {
        return Ok((model, mix.unwrap_or(model.mix)));
    }
    let known: Vec<&str> = all().iter().filter_map(|model| model.names.first().map(String::as_str)).collect();
    Err(GgufError::Model { name: excerpt(name), known: known.join(", ") })
}

impl Model {
    /// The header of a file of this model in that quantisation, its tensors in the order of decoding. No file has it, so it
    /// counts as whole.
    pub fn header(&self, mix: Mix) -> Header {
        let mut tensors = Tensors::default();
        let embedding = if self.tied { Role::Output } else { Role::Plain };
        let kind = |role, row| mix.kind(role, 0, self.layers, row);
        tensors.push("token_embd.weight".to_owned(), &[self.embd, self.vocab], kind(embedding, self.embd));
        for layer in 0..self.layers {
            self.layer(layer, mix, &mut tensors);
        }
        tensors.push("output_norm.weight".to_owned(), &[self.embd], Kind::F32);
        if !self.tied {
            tensors.push("output.weight".to_owned(), &[self.embd, self.vocab], kind(Role::Output, self.embd));
        }
        if self.senses > 0 {
            tensors.push("v.all.weight".to_owned(), &[self.senses], Kind::F16);
        }
        Header {
            version: 3,
            big_endian: false,
            architecture: Some(self.architecture.clone()),
            name: self.names.first().cloned(),
            keys: self.keys(),
            tensors: tensors.all,
            data_start: 0,
            len: tensors.end,
        }
    }

    fn layer(&self, layer: u64, mix: Mix, tensors: &mut Tensors) {
        let (asking, asked) = (self.heads * self.head_size, self.kv_heads * self.head_size);
        let mut add = |name: &str, part: &str, dims: &[u64], kind| {
            tensors.push(format!("blk.{layer}.{name}.{part}"), dims, kind);
        };
        let kind = |role, row| mix.kind(role, layer, self.layers, row);
        add("attn_norm", "weight", &[self.embd], Kind::F32);
        if self.fused {
            add("attn_qkv", "weight", &[self.embd, asking + 2 * asked], kind(Role::Fused, self.embd));
        } else {
            let parts =
                [("attn_q", asking, Role::Plain), ("attn_k", asked, Role::Plain), ("attn_v", asked, Role::Values)];
            for (name, rows, role) in parts {
                add(name, "weight", &[self.embd, rows], kind(role, self.embd));
                if self.qkv_bias {
                    add(name, "bias", &[rows], Kind::F32);
                }
            }
        }
        if self.qk_norm {
            add("attn_q_norm", "weight", &[self.head_size], Kind::F32);
            add("attn_k_norm", "weight", &[self.head_size], Kind::F32);
        }
        add("attn_output", "weight", &[asking, self.embd], kind(Role::Plain, asking));
        if self.post_norms {
            add("post_attention_norm", "weight", &[self.embd], Kind::F32);
        }
        add("ffn_norm", "weight", &[self.embd], Kind::F32);
        if self.fused {
            add("ffn_up", "weight", &[self.embd, 2 * self.ffn], kind(Role::Plain, self.embd));
        } else {
            add("ffn_gate", "weight", &[self.embd, self.ffn], kind(Role::Plain, self.embd));
            add("ffn_up", "weight", &[self.embd, self.ffn], kind(Role::Plain, self.embd));
        }
        add("ffn_down", "weight", &[self.ffn, self.embd], kind(Role::Down, self.ffn));
        if self.post_norms {
            add("post_ffw_norm", "weight", &[self.embd], Kind::F32);
        }
    }

    fn keys(&self) -> BTreeMap<String, Value> {
        let mut keys = BTreeMap::new();
        let mut number = |key: &str, value: u64| {
            keys.insert(format!("{}.{key}", self.architecture), Value::Unsigned(value));
        };
        number("block_count", self.layers);
        number("embedding_length", self.embd);
        number("feed_forward_length", self.ffn);
        number("vocab_size", self.vocab);
        number("attention.head_count", self.heads);
        number("attention.head_count_kv", self.kv_heads);
        number("attention.key_length", self.head_size);
        number("attention.value_length", self.head_size);
        number("context_length", self.context);
        if let Some(window) = self.window {
            number("attention.sliding_window", window);
        }
        keys.insert("general.architecture".to_owned(), Value::Text(self.architecture.clone()));
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    /// Numbers of a config that were mistyped would not give the count of parameters that is published beside them.
    #[test]
    fn every_model_has_the_parameters_that_its_maker_counts() {
        let file: File = toml::from_str(include_str!("../data/models.toml")).unwrap();
        assert_eq!(file.model.len(), all().len());
        let mut wrong = String::new();
        for model in all() {
            let found = model.header(model.mix).parameters();
            if found != model.parameters {
                wrong += &format!("{}: {found}, published {}\n", model.names[0], model.parameters);
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn every_model_is_as_large_as_its_download() {
        let mut wrong = String::new();
        for model in all() {
            let found = model.header(model.mix).model_bytes() as f64 / 1e6;
            if (found / model.download_mb - 1.0).abs() > 0.05 {
                wrong += &format!("{}: {found:.0} MB, published {}\n", model.names[0], model.download_mb);
            }
        }
        assert!(wrong.is_empty(), "{wrong}");
    }

    /// Sizes in three digits, as they stand beside the files of these models that bartowski quantised with llama.cpp and
    /// published (with an importance matrix, which changes no type in these mixtures).
    #[test]
    fn mixtures_are_right_to_two_per_cent() {
        for (name, mix, megabytes) in [
            ("llama3.2:3b", Mix::Q4_K_M, 2020.0),
            ("llama3.2:3b", Mix::Q4_K_S, 1930.0),
            ("llama3.2:3b", Mix::Q5_K_M, 2320.0),
            ("llama3.2:3b", Mix::Q8_0, 3420.0),
            ("llama3.1:8b", Mix::Q4_K_M, 4920.0),
            ("gemma2:2b", Mix::Q4_K_M, 1710.0),
            ("phi4-mini", Mix::Q4_K_M, 2490.0),
        ] {
            let found = find(name).unwrap().0.header(mix).model_bytes() as f64 / 1e6;
            assert!((found / megabytes - 1.0).abs() < 0.02, "{name} {mix}: {found:.0}, published {megabytes}");
        }
    }

    #[test]
    fn every_model_decodes_all_that_it_has_but_its_eyes() {
        for model in all() {
            let header = model.header(model.mix);
            let decode = decode(&header).unwrap();
            assert_eq!(decode.layers, model.layers);
            assert_eq!(decode.untouched.len(), usize::from(model.senses > 0), "{}", model.names[0]);
            let kv = model.layers * model.kv_heads * model.head_size * 4;
            assert_eq!(decode.kv.bytes_per_token, Some(kv), "{}", model.names[0]);
        }
    }

    #[test]
    fn a_name_may_say_its_quantisation() {
        let names =
            |name: &str| find(name).map(|(model, mix)| (model.names[0].as_str(), mix)).map_err(|e| e.to_string());
        assert_eq!(names("gemma2:2b"), Ok(("gemma2:2b", Mix::Q4_0)));
        assert_eq!(names("Gemma2:2b-instruct-q8_0"), Ok(("gemma2:2b", Mix::Q8_0)));
        assert_eq!(names("llama3.2:1b-instruct-fp16"), Ok(("llama3.2:1b", Mix::F16)));
        assert_eq!(names("phi4-mini"), Ok(("phi4-mini:3.8b", Mix::Q4_K_M)));
        assert_eq!(names("mistral:latest"), Ok(("mistral:7b", Mix::Q4_K_M)));
        let told = names("gpt-5").unwrap_err();
        assert!(told.contains("\"gpt-5\" is not known") && told.contains("gemma2:2b"), "{told}");
        let unique: std::collections::BTreeSet<&String> = all().iter().flat_map(|model| &model.names).collect();
        assert_eq!(unique.len(), all().iter().map(|model| model.names.len()).sum::<usize>());
    }
}
