//! What decoding one token touches, in its order, by the tensors that are there and a few keys. The order is that in which
//! llama.cpp computes; a runner that computes otherwise still touches the same bytes.

mod experts;
mod kv;
mod order;
mod refuse;

pub use kv::KvCache;

use crate::error::{GgufError, excerpt};
use crate::header::{Header, Tensor};
use basics::Bytes;
use experts::Experts;
use order::{Idle, Name, Rank, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The shape of decoding: what each token touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decode {
    /// In the order of the computation. A tensor is there once, but for an embedding that is the output as well.
    pub passes: Vec<Touch>,
    /// The tensors that decoding does not touch, by their place in [`Header::tensors`]; [`Decode::notes`] say why.
    pub untouched: Vec<usize>,
    /// What each token of the context adds to.
    pub kv: KvCache,
    /// Layers that are passed.
    pub layers: u64,
    /// Experts used for a token and experts in a layer, in models that have some; of the first layer with experts.
    pub experts: Option<(u64, u64)>,
    /// What a reader of the figures should know, a sentence each.
    pub notes: Vec<String>,
}

/// A tensor that is touched, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// Its place in [`Header::tensors`].
    pub tensor: usize,
    /// How much of it.
    pub part: Part,
}

/// How much of a tensor a token touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All of it.
    Whole,
    /// One row of its first dimension, another for each token.
    Row,
    /// `used` of `of` slices of equal size along its last dimension, chosen anew for each token. In files that have a tensor
    /// for each expert it is the share of tokens that touch this one.
    Experts {
        /// Slices that a token touches.
        used: u64,
        /// Slices that there are; not zero.
        of: u64,
    },
}

impl Touch {
    /// Bytes that a token touches; of one expert's own tensor the mean over many tokens. Zero when the header is not the one
    /// that this was made from.
    pub fn bytes(&self, header: &Header) -> u64 {
        header.tensors.get(self.tensor).map_or(0, |tensor| self.bytes_of(tensor))
    }

    fn bytes_of(&self, tensor: &Tensor) -> u64 {
        match self.part {
            Part::Whole => tensor.bytes,
            // Empty tensors have rows, too.
            Part::Row => tensor.row_bytes().min(tensor.bytes),
            Part::Experts { used, of } => {
                let bytes = u128::from(tensor.bytes) * u128::from(used.min(of)) / u128::from(of.max(1));
                bytes as u64
            }
        }
    }
}

impl Decode {
    /// Bytes of the model that each token touches, without the cache of keys and values.
    pub fn bytes_per_token(&self, header: &Header) -> u64 {
        self.passes.iter().fold(0, |sum, touch| sum.saturating_add(touch.bytes(header)))
    }
}

/// What the decoding of a token touches in this model.
///
/// # Errors
/// [`GgufError::NoDecode`] for encoders and others that make no tokens one by one, [`GgufError::Part`] for one of several files,
/// [`GgufError::Key`] when a model of experts does not say how many it uses.
pub fn decode(header: &Header) -> Result<Decode, GgufError> {
    refuse::refuse(header)?;
    let names: Vec<Name<'_>> = header.tensors.iter().map(|tensor| Name::of(&tensor.name)).collect();
    let bounds = Bounds::of(header, &names);
    let keys = Experts::of(header);
    let mut notes = Vec::new();
    if header.big_endian {
        notes.push("the file is for big-endian machines; others cannot run it".to_owned());
    }

    let mut passes: Vec<(Stage, Rank, Touch)> = Vec::new();
    let mut idle: BTreeMap<Idle, Vec<usize>> = BTreeMap::new();
    let mut layers: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    let (mut experts, mut apart) = (None, false);
    for (index, (tensor, name)) in header.tensors.iter().zip(&names).enumerate() {
        let stage = bounds.stage(name);
        if let Stage::Untouched(why) = stage {
            idle.entry(why).or_default().push(index);
            continue;
        }
        let part = if name.by_row() { Part::Row } else { keys.part(tensor, name)? };
        if let Stage::Layer(layer) = stage {
            layers.entry(layer).or_default().insert(name.role);
        }
        if let Part::Experts { used, of } = part {
            experts = experts.or(Some((used, of)));
            apart |= name.expert.is_some();
        }
        passes.push((stage, name.rank(), Touch { tensor: index, part }));
    }
    if header.tensor("output.weight").is_none()
        && let Some((tensor, _)) = header.tensor("token_embd.weight")
    {
        let rank = Name::of("output.weight").rank();
        passes.push((Stage::After, rank, Touch { tensor, part: Part::Whole }));
        notes.push("the output is the embedding (tied): it is read whole for each token".to_owned());
    }
    // Stable: what shares a place stays in the order of the file.
    passes.sort_by_key(|(stage, rank, _)| (*stage, *rank));

    if apart {
        notes.push(
            "each expert is a tensor of its own; a token touches all of the chosen ones and nothing of the others"
                .to_owned(),
        );
    }
    for (why, tensors) in &idle {
        let bytes = tensors.iter().map(|index| header.tensors[*index].bytes).sum();
        let (count, bytes) = (tensors.len(), Bytes(bytes));
        notes.push(format!("decoding does not touch {count} tensors of {bytes}: {}", why.because()));
    }
    bounds.note(header, &layers, &mut notes);
    let kv = kv::cache(header, &layers, |layer| bounds.shares(layer), &mut notes);
    let mut untouched: Vec<usize> = idle.into_values().flatten().collect();
    untouched.sort_unstable();
    let passes = passes.into_iter().map(|(_, _, touch)| touch).collect();
    Ok(Decode { passes, untouched, kv, layers: layers.len() as u64, experts, notes })
}

/// What keys say about layers as such.
struct Bounds {
    /// Layers by the keys, or by the tensors where these do not say.
    count: u64,
    /// The first layer of those that only guess ahead.
    guessing_from: u64,
    /// The first layer of those that use the keys and values of an earlier one.
    sharing_from: u64,
    /// A model of two halves, of which the decoder's layers are told by their names.
    halves: bool,
}

impl Bounds {
    fn of(header: &Header, names: &[Name<'_>]) -> Bounds {
        let halves = header.tensors.iter().any(|tensor| tensor.name.starts_with("dec.blk."));
        let present = names.iter().filter_map(|name| name.layer).max().map_or(0, |last| last.saturating_add(1));
        let said = if halves { header.count("decoder_block_count") } else { None };
        let count = said.or_else(|| header.count("block_count")).unwrap_or(present);
        let less = |key| count.saturating_sub(header.count(key).unwrap_or(0));
        let guessing_from = if less("nextn_predict_layers") < count { less("nextn_predict_layers") } else { u64::MAX };
        let sharing = less("attention.shared_kv_layers");
        let sharing_from = if sharing < count { sharing } else { u64::MAX };
        Bounds { count, guessing_from, sharing_from, halves }
    }

    fn shares(&self, layer: u64) -> bool {
        layer >= self.sharing_from
    }

    fn stage(&self, name: &Name<'_>) -> Stage {
        match name.stage() {
            Stage::Layer(layer) if layer >= self.guessing_from => Stage::Untouched(Idle::Guess),
            Stage::Layer(layer)
                if self.shares(layer) && matches!(name.role, "attn_k" | "attn_v" | "attn_k_norm" | "attn_v_norm") =>
            {
                Stage::Untouched(Idle::SharedKv)
            }
            stage => stage,
        }
    }

    fn note(&self, header: &Header, layers: &BTreeMap<u64, BTreeSet<&str>>, notes: &mut Vec<String>) {
        let due = self.count.min(self.guessing_from);
        let within = layers.range(..due).count() as u64;
        let beyond = layers.len() as u64 - within;
        let key = if self.halves && header.count("decoder_block_count").is_some() {
            header.key("decoder_block_count")
        } else {
            header.key("block_count")
        };
        let key = excerpt(&key);
        if within < due {
            let without = due - within;
            notes.push(format!(
                "by {key} there are {due} layers, and {without} of them have no tensors: they do nothing, or the file is not whole"
            ));
        }
        if beyond > 0 {
            notes.push(format!(
                "{beyond} layers are more than {key} says; they are counted as if each token passed them"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
