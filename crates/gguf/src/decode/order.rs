//! Where in a token's way through a model a tensor stands, told by its name alone. The names are those of llama.cpp's
//! `gguf-py/gguf/constants.py`; a layer's tensor of an unknown name stands after attention, in the order of the file.

/// The stages of a token, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Ahead of the layers: embeddings, tables of positions.
    Before,
    /// The layer of that number, counted from 0.
    Layer(u64),
    /// Behind the layers: the last norm, the output.
    After,
    /// No token that is decoded comes by.
    Untouched(Idle),
}

/// Why decoding does not touch a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Idle {
    /// It makes vectors of pictures or sound.
    Senses,
    /// It reads the prompt, once, in a model of two halves.
    Encoder,
    /// It classifies or embeds.
    Head,
    /// It guesses several tokens at once.
    Guess,
    /// Its layer reads the keys and values of an earlier one.
    SharedKv,
}

impl Idle {
    /// The rest of a sentence that begins "decoding does not touch N tensors".
    pub fn because(self) -> &'static str {
        match self {
            Idle::Senses => "they are for pictures or sound",
            Idle::Encoder => "they are the encoder's, which reads the prompt once",
            Idle::Head => "they classify or embed whole texts",
            Idle::Guess => "they guess several tokens ahead (nextn), which decoding token by token does not do",
            Idle::SharedKv => "their layers use the keys and values of an earlier one",
        }
    }
}

/// A tensor's place within its stage; the smallest comes first.
pub(super) type Rank = (usize, usize);

const BEFORE: [&str; 8] = [
    "token_embd",
    "token_types",
    "position_embd",
    "token_embd_norm",
    "per_layer_token_embd",
    "per_layer_model_proj",
    "per_layer_proj_norm",
    "altup_proj",
];

const AFTER: [&str; 5] = ["altup_unembd_proj", "output_norm", "output_norm_2", "dec.output_norm", "output"];

/// What is read one row a token: by the token, its kind or its position.
const ROWS: [&str; 4] = ["token_embd", "token_types", "position_embd", "per_layer_token_embd"];

/// What a layer has, in the order of the computation. An entry that ends in `*` stands for all of that beginning which are not
/// named themselves; `*` alone for all others.
const LAYER: [&str; 84] = [
    "altup_router_norm",
    "altup_router",
    "altup_predict_coef",
    "attn_norm",
    "attn_norm_2",
    "attn_rot_embd",
    "attn_q_a",
    "attn_q_a_norm",
    "attn_q_b",
    "attn_q",
    "attn_kv_a_mqa",
    "attn_kv_a_norm",
    "attn_kv_b",
    "attn_k_b",
    "attn_k",
    "attn_v_b",
    "attn_v",
    "attn_qkv",
    "attn_q_norm",
    "attn_k_norm",
    "indexer.*",
    "attn_rel_b",
    "attn_sinks",
    "attn_*",
    "shortconv.in_proj",
    "shortconv.conv",
    "shortconv.*",
    "ssm_in",
    "ssm_conv1d",
    "ssm_x",
    "ssm_dt_norm",
    "ssm_dt",
    "ssm_b_norm",
    "ssm_c_norm",
    "ssm_a",
    "ssm_d",
    "ssm_*",
    "ssm_norm",
    "ssm_out",
    "time_mix_lerp_x",
    "time_mix_*",
    "time_mix_ln",
    "time_mix_output",
    "attn_sub_norm",
    "attn_gate",
    "attn_output",
    "attn_o",
    "attn_output_norm",
    "post_attention_norm",
    "laurel_l",
    "laurel_r",
    "laurel_post_norm",
    "cross_attn_norm",
    "cross_attn_q",
    "cross_attn_k",
    "cross_attn_v",
    "cross_attn_rel_b",
    "cross_attn_*",
    "*",
    "ffn_norm",
    "pre_ffw_norm_2",
    "ffn_norm_exps",
    "ffn_gate_inp",
    "exp_probs_b",
    "ffn_latent_down",
    "ffn_gate_up_exps",
    "ffn_gate_exps",
    "ffn_up_exps",
    "ffn_down_exps",
    "ffn_gate_chexps",
    "ffn_up_chexps",
    "ffn_down_chexps",
    "ffn_latent_up",
    "ffn_gate_inp_shexp",
    "ffn_gate_shexp",
    "ffn_up_shexp",
    "ffn_down_shexp",
    "channel_mix_*",
    "ffn_gate",
    "ffn_*",
    "ffn_up",
    "ffn_sub_norm",
    "ffn_down",
    "post_ffw_norm",
];

/// What closes a layer, behind all of [`LAYER`].
const LAYER_END: [&str; 9] = [
    "post_ffw_norm_1",
    "post_ffw_norm_2",
    "inp_gate",
    "proj",
    "post_norm",
    "altup_correct_coef",
    "altup_correct_scale",
    "layer_output_norm",
    "layer_output_scale",
];

/// A tensor's name taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name<'a> {
    /// The layer that it says, counted from 0, and whether it is one of the decoder of a model of two halves.
    pub layer: Option<u64>,
    /// Its role: `attn_q` of `blk.0.attn_q.weight`.
    pub role: &'a str,
    /// The expert that it belongs to in files that have a tensor for each: 3 of `blk.0.ffn_up.3.weight`.
    pub expert: Option<u64>,
    /// Place of the part within the role: weight, bias, others.
    part: usize,
}

impl<'a> Name<'a> {
    pub fn of(name: &'a str) -> Name<'a> {
        let block = name.strip_prefix("dec.").unwrap_or(name).strip_prefix("blk.");
        let in_layer = block.and_then(|rest| rest.split_once('.'));
        let in_layer = in_layer.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let (layer, rest) = in_layer.map_or((None, name), |(number, rest)| (Some(number), rest));
        let parts = [".weight", ".bias"];
        let part = parts.iter().position(|part| rest.ends_with(part)).unwrap_or(parts.len());
        let role = match part {
            0 | 1 => &rest[..rest.len() - parts[part].len()],
            // Scales of a quantisation stand beside their weight.
            _ => rest.strip_suffix(".scale").or_else(|| rest.strip_suffix(".input_scale")).unwrap_or(rest),
        };
        let of_expert = role.split_once('.').filter(|(role, _)| matches!(*role, "ffn_gate" | "ffn_up" | "ffn_down"));
        match of_expert.and_then(|(role, number)| Some((role, number.parse().ok()?))) {
            Some((role, expert)) if layer.is_some() => Name { layer, role, expert: Some(expert), part },
            _ => Name { layer, role, expert: None, part },
        }
    }

    /// True when one row of it is read a token.
    pub fn by_row(&self) -> bool {
        self.layer.is_none() && self.part == 0 && ROWS.contains(&self.role)
    }

    /// The stage by the name; what keys say about layers is left to the caller.
    pub fn stage(&self) -> Stage {
        let begins = |all: &[&str]| all.iter().any(|beginning| self.role.starts_with(beginning));
        match self.layer {
            Some(_) if self.role.starts_with("vis_") => Stage::Untouched(Idle::Senses),
            Some(layer) => Stage::Layer(layer),
            None if begins(&["v.", "a.", "mm.", "resampler."]) => Stage::Untouched(Idle::Senses),
            None if begins(&["enc."]) => Stage::Untouched(Idle::Encoder),
            None if self.role == "cls" || begins(&["cls.", "dense_"]) => Stage::Untouched(Idle::Head),
            None if AFTER.contains(&self.role) => Stage::After,
            None => Stage::Before,
        }
    }

    /// The place within the stage.
    pub fn rank(&self) -> Rank {
        let listed = |all: &[&str]| all.iter().position(|role| *role == self.role);
        let place = match self.stage() {
            Stage::Layer(_) => listed(&LAYER)
                .or_else(|| listed(&LAYER_END).map(|place| LAYER.len() + place))
                .or_else(|| {
                    let like = |entry: &&str| entry.strip_suffix('*').is_some_and(|start| self.role.starts_with(start));
                    // The longest beginning says most; `*` has none.
                    let best = LAYER.iter().enumerate().filter(|(_, entry)| like(entry));
                    best.max_by_key(|(_, entry)| entry.len()).map(|(place, _)| place)
                })
                .unwrap_or(LAYER.len()),
            Stage::After => listed(&AFTER).unwrap_or(AFTER.len()),
            Stage::Before | Stage::Untouched(_) => listed(&BEFORE).unwrap_or(BEFORE.len()),
        };
        (place, if is_wildcard(self.role, place) { 0 } else { self.part })
    }
}

/// Roles that share a place stay in the order of the file, weights and biases together.
fn is_wildcard(role: &str, place: usize) -> bool {
    LAYER.get(place).is_some_and(|entry| entry.ends_with('*') && *entry != role)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(mut names: Vec<&str>) -> Vec<&str> {
        names.sort_by_key(|name| {
            let name = Name::of(name);
            (name.stage(), name.rank())
        });
        names
    }

    #[test]
    fn a_name_says_layer_role_and_expert() {
        let name = Name::of("blk.12.attn_q.weight");
        assert_eq!((name.layer, name.role, name.expert, name.part), (Some(12), "attn_q", None, 0));
        let name = Name::of("dec.blk.3.cross_attn_k.bias");
        assert_eq!((name.layer, name.role, name.part), (Some(3), "cross_attn_k", 1));
        let name = Name::of("blk.0.ffn_gate.7.weight");
        assert_eq!((name.role, name.expert), ("ffn_gate", Some(7)));
        assert_eq!(Name::of("blk.0.ssm_a").role, "ssm_a");
        assert_eq!(Name::of("blk.0.shortconv.conv.weight").role, "shortconv.conv");
        for odd in ["blk..x", "blk.-1.x", "blk.99999999999999999999.x", "blk.", "", "."] {
            assert_eq!(Name::of(odd).layer, None, "{odd}");
        }
    }

    #[test]
    fn a_layer_goes_from_norm_to_attention_to_ffn_whatever_the_files_order() {
        let order = vec![
            "token_embd.weight",
            "blk.0.attn_norm.weight",
            "blk.0.attn_q.weight",
            "blk.0.attn_q.bias",
            "blk.0.attn_k.weight",
            "blk.0.attn_v.weight",
            "blk.0.attn_output.weight",
            "blk.0.post_attention_norm.weight",
            "blk.0.never_heard_of.weight",
            "blk.0.ffn_norm.weight",
            "blk.0.ffn_gate_inp.weight",
            "blk.0.ffn_gate_exps.weight",
            "blk.0.ffn_up_exps.weight",
            "blk.0.ffn_down_exps.weight",
            "blk.0.ffn_gate_shexp.weight",
            "blk.0.ffn_gate.weight",
            "blk.0.ffn_up.weight",
            "blk.0.ffn_down.weight",
            "blk.0.post_ffw_norm.weight",
            "blk.0.layer_output_scale.weight",
            "blk.1.attn_norm.weight",
            "blk.10.attn_norm.weight",
            "output_norm.weight",
            "output.weight",
        ];
        let mut mixed = order.clone();
        mixed.reverse();
        mixed.rotate_left(7);
        assert_eq!(sorted(mixed), order);
    }

    #[test]
    fn what_no_token_comes_by_is_told_by_its_beginning() {
        for (name, idle) in [
            ("v.blk.0.attn_q.weight", Idle::Senses),
            ("mm.0.weight", Idle::Senses),
            ("blk.0.vis_up.weight", Idle::Senses),
            ("enc.blk.0.attn_q.weight", Idle::Encoder),
            ("cls.output.weight", Idle::Head),
        ] {
            assert_eq!(Name::of(name).stage(), Stage::Untouched(idle), "{name}");
        }
        assert_eq!(Name::of("rope_freqs.weight").stage(), Stage::Before);
    }
}
