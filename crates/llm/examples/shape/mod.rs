//! A made-up model by its measures, as the examples are given it.

use llm::{MadeUp, Quant};
use std::error::Error;

/// Of `layers=4,embd=512,quant=Q4_0`; what is not said is small.
pub fn made_up(text: &str) -> Result<MadeUp, Box<dyn Error>> {
    let mut model = MadeUp {
        layers: 4,
        embd: 512,
        ffn: 1536,
        heads: 8,
        kv_heads: 8,
        vocab: 4096,
        context: 4096,
        quant: Quant::Q8_0,
        seed: 1,
    };
    for (key, value) in text.split(',').filter_map(|part| part.split_once('=')) {
        let place = match key {
            "layers" => &mut model.layers,
            "embd" => &mut model.embd,
            "ffn" => &mut model.ffn,
            "heads" => &mut model.heads,
            "kv_heads" => &mut model.kv_heads,
            "vocab" => &mut model.vocab,
            _ => {
                model.quant = if value == "Q4_0" { Quant::Q4_0 } else { Quant::Q8_0 };
                continue;
            }
        };
        *place = value.parse()?;
    }
    Ok(model)
}
