//! Files damaged at random as files are damaged on disks and in downloads, models put together at random from names and keys
//! that exist, and shapes with odd words. Every outcome is figures that hold or one clear sentence, soon. `./test --full` tries
//! for a minute each; a case is made again from its number, which a failure tells.
#![forbid(unsafe_code)]

mod support;

use gguf::{Header, Kind, Shape};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use support::{Writer, read, small};

/// No case takes so long, in a debug build on a busy machine.
const SOON: Duration = Duration::from_secs(20);
/// What each kind of case is tried with in `./test` and in `./test --full`.
const FEW: u64 = 2000;
const LONG: Duration = Duration::from_secs(60);

/// Instead of a number.
const ABSURD: [u64; 14] =
    [0, 1, 2, 31, 63, 64, 255, 1 << 16, u32::MAX as u64, 1 << 32, 1 << 60, i64::MAX as u64, 1 << 63, u64::MAX];

const ROLES: [&str; 26] = [
    "attn_norm.weight",
    "attn_q.weight",
    "attn_k.weight",
    "attn_v.weight",
    "attn_qkv.weight",
    "attn_kv_a_mqa.weight",
    "attn_output.weight",
    "ffn_norm.weight",
    "ffn_norm_exps.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_exps.weight",
    "ffn_down_exps.bias",
    "ffn_up_chexps.weight",
    "ffn_up.3.weight",
    "ffn_up.99999999999999999999.weight",
    "ffn_down.weight",
    "ssm_a",
    "ssm_in.weight",
    "time_mix_w1.weight",
    "shortconv.conv.weight",
    "nextn.eh_proj.weight",
    "vis_up.weight",
    "exp_probs_b.bias",
    ".",
    "",
    "\u{202e}\n",
];

const GLOBAL: [&str; 14] = [
    "token_embd.weight",
    "output.weight",
    "output_norm.weight",
    "rope_freqs.weight",
    "per_layer_token_embd.weight",
    "v.blk.0.attn_q.weight",
    "mm.0.bias",
    "enc.blk.0.attn_q.weight",
    "cls.weight",
    "blk",
    "blk.",
    "blk.x.attn_q.weight",
    "dec.blk.0",
    "",
];

const KEYS: [&str; 16] = [
    "block_count",
    "decoder_block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "nextn_predict_layers",
    "pooling_type",
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attention.shared_kv_layers",
];

const SHAPE: [&str; 30] = [
    "layers",
    "embd",
    "ffn",
    "heads",
    "kv_heads",
    "head_size",
    "vocab",
    "quant",
    "tied",
    "experts",
    "experts_used",
    "context",
    "=",
    ",",
    "=",
    ",",
    "1",
    "2",
    "32",
    "4096",
    "1000",
    "18446744073709551616",
    "-1",
    "Q4_K",
    "f16",
    "Q4_K_M",
    "yes",
    " ",
    "\u{202e}\0",
    "",
];

/// Numbers by splitmix64, the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
    /// Mostly small, as numbers of models are, and sometimes absurd.
    fn number(&mut self) -> u64 {
        if self.below(4) == 0 { self.of(&ABSURD) } else { self.below(9) as u64 }
    }
}

/// What is wrong with a sentence.
fn sentence(said: &str) -> Result<(), String> {
    match said.len() {
        20..=600 if !said.contains(|c: char| c.is_control()) => Ok(()),
        _ => Err(format!("no sentence for people: {said:?}")),
    }
}

/// Figures that can be figures: tensors behind one another, passes within the model.
fn holds(header: &Header) -> Result<(), String> {
    let mut end = header.data_start;
    for tensor in &header.tensors {
        if tensor.offset < end {
            return Err(format!("{} overlaps the one before", tensor.name));
        }
        end = tensor.offset + tensor.bytes;
    }
    if header.missing() != end.saturating_sub(header.len) && !header.tensors.is_empty() {
        return Err(format!("{} bytes are missing, not {}", end.saturating_sub(header.len), header.missing()));
    }
    let decode = match gguf::decode(header) {
        Ok(decode) => decode,
        Err(error) => return sentence(&error.to_string()),
    };
    decode.notes.iter().try_for_each(|note| sentence(note))?;
    let mut touched = vec![0; header.tensors.len()];
    for touch in &decode.passes {
        touched[touch.tensor] += 1;
        if touch.bytes(header) > header.tensors[touch.tensor].bytes {
            return Err(format!("more is touched than there is: {touch:?}"));
        }
    }
    for index in &decode.untouched {
        touched[*index] += 1;
    }
    let once = |(index, count): (usize, &i32)| {
        *count == 1 || (*count == 2 && header.tensors[index].name == "token_embd.weight")
    };
    if !touched.iter().enumerate().all(once) {
        return Err(format!("not each tensor once: {touched:?}"));
    }
    let most = header.model_bytes().saturating_mul(2);
    if decode.bytes_per_token(header) > most {
        return Err(format!("{} bytes a token of {most}", decode.bytes_per_token(header)));
    }
    Ok(())
}

fn judge(bytes: &[u8]) -> Result<(), String> {
    match read(bytes) {
        Ok(header) => holds(&header),
        Err(error) => sentence(&error.to_string()),
    }
}

/// A small file with a few things wrong with it.
fn damaged(random: &mut Random) -> Result<(), String> {
    let mut bytes = small(random.below(2) == 0).bytes;
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] ^= 1 << random.below(8),
            3 => {
                let end = (at + random.below(64)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece.repeat(1 + random.below(3)));
            }
            4 => {
                let end = (at + random.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
            _ => {
                let number = random.of(&ABSURD).to_le_bytes();
                let end = (at + if random.below(2) == 0 { 4 } else { 8 }).min(bytes.len());
                bytes[at..end].copy_from_slice(&number[..end - at]);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    judge(&bytes)
}

/// A file that is as it should be, of a model that need not be.
fn model(random: &mut Random) -> Result<(), String> {
    let architecture = random.of(&["llama", "t5", "deepseek2", "bert", "", "\u{1b}[31m"]);
    let keys = random.below(KEYS.len());
    let mut names: Vec<String> = (0..random.below(24))
        .map(|_| match random.below(3) {
            0 => random.of(&GLOBAL).to_owned(),
            1 => format!("{}blk.{}.{}", random.of(&["", "dec."]), random.below(3), random.of(&ROLES)),
            _ => format!("blk.{}.{}", random.number(), random.of(&ROLES)),
        })
        .filter(|name| name.len() < 64)
        .collect();
    names.sort();
    names.dedup();
    let mut file = Writer::new(3, names.len() as u64, 1 + keys as u64).word("general.architecture", architecture);
    for key in &KEYS[KEYS.len() - keys..] {
        file = file.text(&format!("{architecture}.{key}"));
        file = match random.below(4) {
            0 => file.u32(7).raw(&[random.below(2) as u8]),
            1 => {
                let count = random.below(6) as u64;
                (0..count).fold(file.u32(9).u32(10).u64(count), |file, _| file.u64(random.number()))
            }
            _ => file.u32(10).u64(random.number()),
        };
    }
    let mut offset = 0u64;
    for name in &names {
        let dims: Vec<u64> = (0..random.below(5)).map(|_| random.below(9) as u64).collect();
        file = file.tensor(name, &dims, Kind::F32, offset);
        offset += (dims.iter().product::<u64>() * 4).next_multiple_of(32);
    }
    let header = file.read().map_err(|error| format!("it should have been read: {error}"))?;
    holds(&header)
}

fn shape(random: &mut Random) -> Result<(), String> {
    let text: String = match random.below(2) {
        0 => (0..random.below(30)).map(|_| random.of(&SHAPE)).collect(),
        // Well formed, with numbers of any size.
        _ => {
            let mut text = format!("layers={},embd={}", 1 + random.below(40), 32 << random.below(8));
            for key in &SHAPE[2..7] {
                if random.below(2) == 0 {
                    text += &format!(",{key}={}", random.number().max(1) << random.below(12));
                }
            }
            text
        }
    };
    match Shape::parse(&text) {
        Ok(shape) if Shape::parse(&shape.to_string()).ok() != Some(shape) => Err(format!("{shape} is not read back")),
        Ok(shape) => holds(&shape.header()),
        Err(error) => sentence(&error.to_string()),
    }
    .map_err(|why| format!("{why} ({text:?})"))
}

/// Tries one kind of case; one that does not come back is told by its number.
fn fuzz(kind: &'static str, case: fn(&mut Random) -> Result<(), String>) {
    let full = std::env::var_os("TIERMARK_TEST_FULL").is_some();
    let until = Instant::now() + LONG;
    let (began, under_way) = channel();
    let worker = std::thread::spawn(move || {
        let mut number = 0;
        while if full { Instant::now() < until } else { number < FEW } {
            began.send(number).unwrap();
            let outcome = std::panic::catch_unwind(|| case(&mut Random(number << 8)));
            if let Err(why) = outcome.unwrap_or(Err("it panicked".to_owned())) {
                panic!("case {number} of {kind}: {why}");
            }
            number += 1;
        }
        number
    });
    let mut last = 0;
    loop {
        match under_way.recv_timeout(SOON) {
            Ok(number) => last = number,
            Err(RecvTimeoutError::Timeout) => panic!("case {last} of {kind} hangs"),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match worker.join() {
        Ok(tried) => println!("{kind}: {tried} cases"),
        Err(told) => std::panic::resume_unwind(told),
    }
}

#[test]
fn damaged_files() {
    fuzz("damaged files", damaged);
}

#[test]
fn made_up_models() {
    fuzz("made-up models", model);
}

#[test]
fn shapes() {
    fuzz("shapes", shape);
}
