//! The files that make no token after another: adapters, projectors, encoders, parts of a model. Each is told by its keys
//! or its tensors, and by its architecture's name only where the file says no more.

use crate::error::{GgufError, excerpt};
use crate::header::Header;

/// Architectures of llama.cpp whose attention looks both ways and whose files do not always say so.
const ENCODERS: [&str; 10] = [
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "gemma-embedding",
    "llama-embed",
];

/// `llm_arch_is_diffusion` of llama.cpp.
const DIFFUSION: [&str; 4] = ["dream", "llada", "llada-moe", "rnd1"];

/// Fails for what does not decode.
pub(super) fn refuse(header: &Header) -> Result<(), GgufError> {
    let global = |key: &str| header.keys.get(key);
    if let Some(of) = global("split.count").and_then(|count| count.count()).filter(|count| *count > 1) {
        let number = global("split.no").and_then(|number| number.count()).unwrap_or(0).saturating_add(1);
        return Err(GgufError::Part { number, of });
    }
    let no = |why: String| Err(GgufError::NoDecode { why });
    let architecture = header.architecture.as_deref().unwrap_or_default();
    match global("general.type").and_then(|kind| kind.text()) {
        Some("adapter") => return no("an adapter (LoRA) changes a model; give the model itself".to_owned()),
        Some("mmproj") => return no(projector()),
        Some("imatrix") => return no("it is statistics for quantising (imatrix); give the model itself".to_owned()),
        _ if architecture == "clip" => return no(projector()),
        _ => {}
    }
    if header.tensors.is_empty() {
        return no("it has no tensors, so it is a vocabulary or a piece of a model; give the model itself".to_owned());
    }
    if DIFFUSION.contains(&architecture) {
        return no(format!("{architecture} is a diffusion model, which makes the tokens of a text together"));
    }
    if ENCODERS.contains(&architecture) {
        return no(format!("{architecture} is an encoder, which makes one vector of a text and no tokens"));
    }
    if header.value("attention.causal").and_then(|causal| causal.bool()) == Some(false) {
        let key = excerpt(&header.key("attention.causal"));
        return no(format!("an encoder or a diffusion model, whose attention looks both ways ({key} is false)"));
    }
    let output = header.tensor("output.weight").is_some();
    // 0 is LLAMA_POOLING_TYPE_NONE.
    if let Some(pooling) = header.count("pooling_type").filter(|pooling| *pooling > 0 && !output) {
        let key = excerpt(&header.key("pooling_type"));
        return no(format!("an encoder, which makes one vector of a text and no tokens ({key} is {pooling})"));
    }
    let any = |beginning: &str| header.tensors.iter().any(|tensor| tensor.name.starts_with(beginning));
    if any("blk.") || any("dec.blk.") {
        if !output && header.tensor("token_embd.weight").is_none() {
            return no("it has neither output.weight nor token_embd.weight, of which tokens would come".to_owned());
        }
        return Ok(());
    }
    if any("enc.blk.") {
        return no("an encoder alone: it has layers enc.blk.N and none of a decoder".to_owned());
    }
    no(format!("none of its {} tensors belongs to a layer blk.N", header.tensors.len()))
}

fn projector() -> String {
    "a projector of pictures or sound makes no tokens; give the language model that it belongs to".to_owned()
}
