//! Small headers as models of each kind have them, and what decoding does with them.

use super::*;
use crate::Kind;
use crate::value::Value;

/// A header with these keys and tensors of F32, one behind the other.
fn header(architecture: &str, keys: &[(&str, Value)], tensors: &[(&str, &[u64])]) -> Header {
    let mut end = 0;
    let tensors = tensors.iter().map(|(name, dims)| {
        let bytes = dims.iter().product::<u64>() * 4;
        let offset = end;
        end += bytes;
        Tensor { name: (*name).to_owned(), dims: dims.to_vec(), kind: Kind::F32, offset, bytes }
    });
    let tensors: Vec<Tensor> = tensors.collect();
    let full = |key: &str| match key.split_once('/') {
        Some(("", key)) => key.to_owned(),
        _ => format!("{architecture}.{key}"),
    };
    let keys = keys.iter().map(|(key, value)| (full(key), value.clone())).collect();
    let architecture = Some(architecture.to_owned());
    Header { version: 3, big_endian: false, architecture, name: None, keys, tensors, data_start: 0, len: end }
}

fn count(number: u64) -> Value {
    Value::Unsigned(number)
}

/// The names in the order of the passes, with the part where it is not the whole.
fn order(header: &Header, decode: &Decode) -> Vec<String> {
    let shown = |touch: &Touch| {
        let name = &header.tensors[touch.tensor].name;
        match touch.part {
            Part::Whole => name.clone(),
            Part::Row => format!("{name} row"),
            Part::Experts { used, of } => format!("{name} {used}/{of}"),
        }
    };
    decode.passes.iter().map(shown).collect()
}

/// As GPT-2 and Qwen have them: biases, positions by row, tied or not, files out of order.
#[test]
fn the_order_is_the_computations_and_not_the_files() {
    let tensors: [(&str, &[u64]); 8] = [
        ("output_norm.weight", &[4]),
        ("blk.1.ffn_down.weight", &[4, 4]),
        ("blk.0.attn_qkv.bias", &[12]),
        ("blk.0.attn_qkv.weight", &[4, 12]),
        ("position_embd.weight", &[4, 100]),
        ("rope_freqs.weight", &[2]),
        ("blk.0.attn_norm.weight", &[4]),
        ("token_embd.weight", &[4, 50]),
    ];
    let mut tied = header("gpt2", &[("block_count", count(2))], &tensors);
    let decoded = decode(&tied).unwrap();
    let expected = [
        "token_embd.weight row",
        "position_embd.weight row",
        "rope_freqs.weight",
        "blk.0.attn_norm.weight",
        "blk.0.attn_qkv.weight",
        "blk.0.attn_qkv.bias",
        "blk.1.ffn_down.weight",
        "output_norm.weight",
        "token_embd.weight",
    ];
    assert_eq!(order(&tied, &decoded), expected);
    assert!(decoded.notes.iter().any(|note| note.contains("tied")), "{:?}", decoded.notes);
    assert_eq!(decoded.bytes_per_token(&tied), tied.model_bytes() - 4 * 99 * 4 + 4 * 4);

    let tensor = Tensor { name: "output.weight".to_owned(), ..tied.tensors[7].clone() };
    tied.tensors.push(tensor);
    let decoded = decode(&tied).unwrap();
    assert_eq!(order(&tied, &decoded).last().unwrap(), "output.weight");
    assert_eq!(order(&tied, &decoded).iter().filter(|name| name.starts_with("token_embd")).count(), 1);
}

#[test]
fn of_experts_the_used_slices_are_touched() {
    let tensors: [(&str, &[u64]); 6] = [
        ("token_embd.weight", &[4, 8]),
        ("blk.0.ffn_down_exps.weight", &[4, 4, 8]),
        ("blk.0.ffn_down_exps.bias", &[4, 8]),
        ("blk.0.ffn_norm_exps.weight", &[4]),
        ("blk.0.ffn_gate_inp.weight", &[4, 8]),
        ("blk.0.ffn_up_shexp.weight", &[4, 4]),
    ];
    let keys = [("expert_count", count(8)), ("expert_used_count", count(2))];
    let model = header("qwen2moe", &keys, &tensors);
    let decoded = decode(&model).unwrap();
    assert_eq!(decoded.experts, Some((2, 8)));
    let expected = [
        "token_embd.weight row",
        "blk.0.ffn_norm_exps.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.ffn_down_exps.weight 2/8",
        "blk.0.ffn_down_exps.bias 2/8",
        "blk.0.ffn_up_shexp.weight",
        "token_embd.weight",
    ];
    assert_eq!(order(&model, &decoded), expected);
    assert_eq!(decoded.passes[3].bytes(&model), 4 * 4 * 2 * 4);

    let told = decode(&header("qwen2moe", &keys[..1], &tensors)).unwrap_err().to_string();
    assert!(told.contains("\"qwen2moe.expert_used_count\" is missing"), "{told}");
    let keys = [("expert_used_count", count(9))];
    let told = decode(&header("qwen2moe", &keys, &tensors)).unwrap_err().to_string();
    assert!(told.contains("is 9, and \"blk.0.ffn_down_exps.weight\" has 8 experts"), "{told}");
}

/// Mixtral's first files.
#[test]
fn an_expert_may_be_a_tensor_of_its_own() {
    let tensors: [(&str, &[u64]); 3] =
        [("token_embd.weight", &[4, 8]), ("blk.0.ffn_up.0.weight", &[4, 4]), ("blk.0.ffn_up.1.weight", &[4, 4])];
    let keys = [("expert_count", count(2)), ("expert_used_count", count(1))];
    let model = header("llama", &keys, &tensors);
    let decoded = decode(&model).unwrap();
    assert_eq!(order(&model, &decoded)[1..3], ["blk.0.ffn_up.0.weight 1/2", "blk.0.ffn_up.1.weight 1/2"]);
    assert_eq!(decoded.passes[1].bytes(&model), 4 * 4 * 4 / 2);
    assert!(decoded.notes.iter().any(|note| note.contains("tensor of its own")), "{:?}", decoded.notes);
}

#[test]
fn what_no_token_comes_by_is_left_out_and_said() {
    let tensors: [(&str, &[u64]); 6] = [
        ("token_embd.weight", &[4, 8]),
        ("v.blk.0.attn_q.weight", &[4, 4]),
        ("blk.0.attn_q.weight", &[4, 4]),
        ("blk.1.attn_k.weight", &[4, 4]),
        ("blk.2.attn_q.weight", &[4, 4]),
        ("blk.2.nextn.eh_proj.weight", &[4, 4]),
    ];
    let keys =
        [("block_count", count(3)), ("nextn_predict_layers", count(1)), ("attention.shared_kv_layers", count(2))];
    let model = header("glm4moe", &keys, &tensors);
    let decoded = decode(&model).unwrap();
    assert_eq!(decoded.untouched, [1, 3, 4, 5]);
    assert_eq!(order(&model, &decoded), ["token_embd.weight row", "blk.0.attn_q.weight", "token_embd.weight"]);
    for says in [
        "1 tensors of 64 B: they are for pictures",
        "2 tensors of 128 B: they guess",
        "1 tensors of 64 B: their layers",
    ] {
        assert!(decoded.notes.iter().any(|note| note.contains(says)), "{says}: {:?}", decoded.notes);
    }
}

#[test]
fn of_two_halves_the_decoder_is_touched() {
    let tensors: [(&str, &[u64]); 5] = [
        ("token_embd.weight", &[4, 8]),
        ("enc.blk.0.attn_q.weight", &[4, 4]),
        ("dec.blk.0.cross_attn_k.weight", &[4, 4]),
        ("dec.blk.0.attn_k.weight", &[4, 4]),
        ("dec.output_norm.weight", &[4]),
    ];
    let keys =
        [("attention.head_count", count(2)), ("attention.key_length", count(2)), ("attention.value_length", count(2))];
    let model = header("t5", &keys, &tensors);
    let decoded = decode(&model).unwrap();
    assert_eq!(
        order(&model, &decoded)[1..4],
        ["dec.blk.0.attn_k.weight", "dec.blk.0.cross_attn_k.weight", "dec.output_norm.weight"]
    );
    assert_eq!((decoded.layers, decoded.kv.bytes_per_token), (1, Some(2 * 4 * 2)));
}

fn layers(roles: &[&'static str]) -> Vec<(&'static str, &'static [u64])> {
    let embedding: (&str, &[u64]) = ("token_embd.weight", &[4, 8]);
    let one = |name: &&'static str| (*name, &[4u64, 4][..]);
    std::iter::once(embedding).chain(roles.iter().map(one)).collect()
}

#[test]
fn the_cache_is_summed_over_layers_that_attend() {
    let hybrid =
        layers(&["blk.0.attn_k.weight", "blk.1.ssm_in.weight", "blk.1.attn_qkv.weight", "blk.2.attn_qkv.weight"]);
    let heads = Value::List(vec![count(2), count(7), count(1)]);
    let keys = [
        ("embedding_length", count(64)),
        ("attention.head_count", count(8)),
        ("attention.head_count_kv", heads),
        ("attention.value_length", count(4)),
        ("context_length", count(2048)),
        ("attention.sliding_window", count(512)),
    ];
    let decoded = decode(&header("hybrid", &keys, &hybrid)).unwrap();
    // (2 + 1) heads, keys of 64 / 8, values of 4, two bytes each.
    let cache = KvCache { bytes_per_token: Some(3 * (8 + 4) * 2), context: Some(2048), window: Some(512) };
    assert_eq!(decoded.kv, cache);
    assert!(decoded.notes.iter().any(|note| note.starts_with("1 of 3 layers keep no keys")), "{:?}", decoded.notes);

    // Without the number for the cache llama.cpp takes that of the heads.
    let keys = [("embedding_length", count(64)), ("attention.head_count", count(8))];
    let decoded = decode(&header("llama", &keys, &layers(&["blk.0.attn_k.weight"]))).unwrap();
    assert_eq!(decoded.kv.bytes_per_token, Some(8 * (8 + 8) * 2));

    let decoded = decode(&header("mamba", &[], &layers(&["blk.0.ssm_in.weight"]))).unwrap();
    assert_eq!(decoded.kv.bytes_per_token, Some(0));
}

#[test]
fn a_cache_is_unknown_rather_than_zero() {
    let attention = layers(&["blk.0.attn_k.weight"]);
    for (keys, missing) in [
        (vec![], "llama.attention.head_count"),
        (vec![("attention.head_count", count(8))], "llama.embedding_length"),
        (vec![("attention.head_count_kv", Value::List(vec![]))], "llama.attention.head_count_kv"),
        (vec![("attention.head_count_kv", count(1))], "llama.attention.head_count"),
    ] {
        let decoded = decode(&header("llama", &keys, &attention)).unwrap();
        assert_eq!(decoded.kv.bytes_per_token, None, "{missing}");
        let said = format!("unknown: the key \"{missing}\" is missing");
        assert!(decoded.notes.iter().any(|note| note.contains(&said)), "{said}: {:?}", decoded.notes);
    }
}

/// Gemma 4 has other heads in the layers with a window.
#[test]
fn layers_with_a_window_may_have_heads_of_their_own() {
    let keys = [
        ("attention.head_count_kv", count(1)),
        ("attention.key_length", count(512)),
        ("attention.value_length", count(512)),
        ("attention.key_length_swa", count(256)),
        ("attention.value_length_swa", count(256)),
        ("attention.sliding_window_pattern", Value::List(vec![Value::Bool(true), Value::Bool(false)])),
    ];
    let decoded = decode(&header("gemma4", &keys, &layers(&["blk.0.attn_k.weight", "blk.1.attn_k.weight"]))).unwrap();
    assert_eq!(decoded.kv.bytes_per_token, Some((512 + 1024) * 2));
}

#[test]
fn what_makes_no_tokens_one_by_one_says_what_it_is() {
    let text = |text: &str| Value::Text(text.to_owned());
    let usual = layers(&["blk.0.attn_k.weight"]);
    for (architecture, keys, tensors, says) in [
        ("bert", vec![], &usual[..], "it does not decode: bert is an encoder"),
        ("new", vec![("attention.causal", Value::Bool(false))], &usual, "\"new.attention.causal\" is false"),
        ("qwen3", vec![("pooling_type", count(3))], &usual, "an encoder, which makes one vector"),
        ("llada", vec![], &usual, "llada is a diffusion model"),
        ("clip", vec![], &usual, "a projector of pictures or sound makes no tokens"),
        ("llama", vec![("/general.type", text("mmproj"))], &usual, "a projector of pictures"),
        ("llama", vec![("/general.type", text("adapter"))], &usual, "an adapter (LoRA)"),
        ("llama", vec![], &[], "it has no tensors"),
        ("llama", vec![], &usual[..1], "none of its 1 tensors belongs to a layer"),
        ("llama", vec![], &usual[1..], "neither output.weight nor token_embd.weight"),
        ("t5encoder", vec![], &[("enc.blk.0.attn_q.weight", &[4, 4])], "an encoder alone"),
        ("llama", vec![("/split.count", count(3)), ("/split.no", count(1))], &usual, "only part 2 of the 3 files"),
    ] {
        let told = decode(&header(architecture, &keys, tensors)).unwrap_err().to_string();
        assert!(told.contains(says), "{says}: {told}");
    }
}

#[test]
fn layers_that_are_missing_or_too_many_are_said() {
    let tensors = layers(&["blk.0.attn_k.weight", "blk.5.attn_k.weight"]);
    let decoded = decode(&header("deci", &[("block_count", count(4))], &tensors)).unwrap();
    assert_eq!(decoded.layers, 2);
    for says in
        ["there are 4 layers, and 3 of them have no tensors", "1 layers are more than \"deci.block_count\" says"]
    {
        assert!(decoded.notes.iter().any(|note| note.contains(says)), "{says}: {:?}", decoded.notes);
    }
}

#[test]
fn an_order_survives_json() {
    let model = header("llama", &[], &layers(&["blk.0.attn_k.weight"]));
    let decoded = decode(&model).unwrap();
    let text = serde_json::to_string(&decoded).unwrap();
    assert_eq!(serde_json::from_str::<Decode>(&text).unwrap(), decoded);
    assert!(serde_json::to_string(&model).unwrap().contains(r#""kind":"F32""#));
}
