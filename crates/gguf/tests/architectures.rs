//! Every architecture that llama.cpp's own Python package `gguf` knows, in a file that this package wrote: each is read, and
//! decoding touches every tensor of its layers in a sound order, or is refused with the reason. The interpreter is
//! `$TIERMARK_PYTHON`, by default `python3`; without the package there the tests are skipped.
#![forbid(unsafe_code)]

use gguf::{Header, Kind, Touch};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/architectures.py");

/// What the script prints, or none when it cannot run.
fn script(test: &str, argument: &Path) -> Option<String> {
    let python = std::env::var_os("TIERMARK_PYTHON").unwrap_or("python3".into());
    let mut probe = Command::new(&python);
    probe.args(["-c", "import gguf"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        println!("SKIP {test}: needs the Python package gguf (TIERMARK_PYTHON names an interpreter that has it)");
        return None;
    }
    let done = Command::new(&python).arg("-B").arg(SCRIPT).arg(argument).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(String::from_utf8(done.stdout).unwrap())
}

fn numbers<const N: usize>(texts: &[&str]) -> [u64; N] {
    std::array::from_fn(|index| texts[index].parse().unwrap())
}

/// Types that the package has and this crate has not, and those whose size differs, but for the one that is known.
#[test]
fn types_have_the_sizes_that_the_package_gives() {
    let Some(printed) = script("types_have_the_sizes_that_the_package_gives", Path::new("kinds")) else { return };
    assert!(printed.lines().count() > 30, "{printed}");
    for line in printed.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id] = numbers(&cells);
        let [elements, bytes] = numbers(&cells[2..]);
        let kind = Kind::from_id(id as u32).unwrap_or_else(|| panic!("{line} is not known"));
        assert_eq!(kind.to_string(), cells[1]);
        // `Kind`'s table says why.
        let bytes = if kind == Kind::Q8_1 { 36 } else { bytes };
        assert_eq!(kind.block(), (elements, bytes), "{kind}");
    }
}

/// What no decoded token comes by, by the beginning of its name or of its role.
fn may_stay_untouched(name: &str) -> bool {
    ["v.", "a.", "mm.", "resampler.", "enc.", "cls.", "dense_"].iter().any(|start| name.starts_with(start))
        || name.contains(".vis_")
}

/// What is wrong with the order for this header.
fn complaints(header: &Header, passes: &[Touch], untouched: &[usize]) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = |index: usize| header.tensors[index].name.as_str();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, touch) in passes.iter().enumerate() {
        let name = name(touch.tensor);
        if places.insert(name, place).is_some() && name != "token_embd.weight" {
            complaints.push(format!("{name} is touched twice"));
        }
    }
    for index in 0..header.tensors.len() {
        let (name, idle) = (name(index), untouched.contains(&index));
        if places.contains_key(name) == idle {
            complaints.push(format!("{name} is touched and not, or neither"));
        }
        if idle && !may_stay_untouched(name) {
            complaints.push(format!("{name} is not touched"));
        }
    }
    for layer in 0..2 {
        let of = |role: &str| {
            let names = ["", "dec."].map(|half| format!("{half}blk.{layer}.{role}.weight"));
            names.iter().find_map(|name| places.get(name.as_str()).copied())
        };
        for (first, then) in [
            ("attn_norm", "attn_q"),
            ("attn_norm", "attn_qkv"),
            ("attn_norm", "ssm_in"),
            ("attn_norm", "time_mix_key"),
            ("attn_q", "attn_k"),
            ("attn_k", "attn_v"),
            ("attn_v", "attn_output"),
            ("attn_qkv", "attn_output"),
            ("ssm_in", "ssm_out"),
            ("attn_output", "ffn_norm"),
            ("ssm_out", "ffn_norm"),
            ("attn_o", "cross_attn_q"),
            ("cross_attn_o", "ffn_norm"),
            ("ffn_norm", "ffn_gate"),
            ("ffn_norm", "ffn_gate_inp"),
            ("ffn_gate_inp", "ffn_up_exps"),
            ("ffn_up_exps", "ffn_down_exps"),
            ("ffn_gate", "ffn_up"),
            ("ffn_up", "ffn_down"),
            ("time_mix_output", "channel_mix_key"),
            ("ffn_down", "post_ffw_norm"),
            ("ffn_down", "layer_output_norm"),
        ] {
            if let (Some(one), Some(other)) = (of(first), of(then))
                && one > other
            {
                complaints.push(format!("layer {layer}: {then} comes before {first}"));
            }
        }
    }
    let layer = |place: usize| {
        let name = name(passes[place].tensor);
        name.strip_prefix("dec.").unwrap_or(name).strip_prefix("blk.").map(|rest| rest.starts_with("1."))
    };
    let layers: Vec<bool> = (0..passes.len()).filter_map(layer).collect();
    if !layers.is_sorted() {
        complaints.push("the layers are mixed".to_owned());
    }
    complaints
}

#[test]
fn every_architecture_is_read_and_decodes_or_says_why_not() {
    const TEST: &str = "every_architecture_is_read_and_decodes_or_says_why_not";
    let folder = tempfile::tempdir().unwrap();
    let Some(printed) = script(TEST, folder.path()) else { return };
    let mut wrong = Vec::new();
    let (mut decoding, mut refused) = (BTreeSet::new(), BTreeMap::new());
    for line in printed.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let architecture = cells[0];
        let [tensors, padded] = numbers(&cells[1..]);
        let path = folder.path().join(format!("{architecture}.gguf"));
        let file = File::open(&path).unwrap();
        let len = file.metadata().unwrap().len();
        let header = gguf::read(file, len).unwrap_or_else(|error| panic!("{architecture}: {error}"));
        assert_eq!((header.architecture.as_deref(), header.tensors.len() as u64), (Some(architecture), tensors));
        // The file ends with its header, and the last tensor needs no padding.
        let due = header.data_start + padded - header.len;
        assert!((due - 31..=due).contains(&header.missing()), "{architecture}: {due} {}", header.missing());

        let mut bytes = std::fs::read(&path).unwrap();
        bytes[4] = 2;
        let second = gguf::read(std::io::Cursor::new(&bytes), len).unwrap();
        assert_eq!((second.version, &second.tensors), (2, &header.tensors), "{architecture}");

        match gguf::decode(&header) {
            Ok(decode) => {
                let found = complaints(&header, &decode.passes, &decode.untouched);
                wrong.extend(found.into_iter().map(|why| format!("{architecture}: {why}")));
                let experts =
                    header.tensors.iter().any(|tensor| tensor.name.contains("_exps.") && tensor.dims.len() > 1);
                assert_eq!(decode.experts, experts.then_some((2, 8)), "{architecture}");
                assert_eq!(decode.layers, 2, "{architecture}");
                assert!(decode.kv.bytes_per_token.is_some(), "{architecture}: {:?}", decode.notes);
                assert!(decode.bytes_per_token(&header) <= header.model_bytes() * 2, "{architecture}");
                decoding.insert(architecture.to_owned());
            }
            Err(error) => {
                let told = error.to_string();
                assert!(told.starts_with("it does not decode: "), "{architecture}: {told}");
                refused.insert(architecture.to_owned(), told);
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    println!("{} architectures decode", decoding.len());
    for (architecture, told) in &refused {
        println!("{architecture}: {told}");
    }
    for known in
        ["llama", "qwen3moe", "gemma3n", "mamba", "rwkv7", "jamba", "deepseek2", "gpt2", "t5", "lfm2", "gpt-oss"]
    {
        assert!(decoding.contains(known), "{known}");
    }
    for known in ["bert", "nomic-bert", "jina-bert-v2", "t5encoder", "clip"] {
        assert!(refused.contains_key(known), "{known}");
    }
}
