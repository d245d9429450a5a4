//! `load decode`: a language model's decoding without the model. The header of its file, or a few numbers, say which tensors a
//! token touches; weights of their size are made up, and multiplied in that order.

use crate::{Tier, WorkloadError, room};
use basics::decoding::{Decoding, Part, Piece};
use basics::job::{Block, Direction, Engine, Entropy, Stop};
use basics::plan::{Step, Target, step_seed};
use basics::pressure::{Area, Pressed, Pressure, Swap, Work};
use basics::{Bytes, Job, Nanos, Plan};
use gguf::Header;
use std::collections::BTreeMap;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The model, and what of it is done with it.
    pub decoding: Decoding,
    /// What is taken away; nothing where it is to have all memory.
    pub pressure: Pressure,
    /// Where the weights go that do not fit: a row each.
    pub tiers: Vec<Tier>,
    /// Threads that compute.
    pub threads: u32,
    /// The longest that a row's tokens take; what was made until then counts.
    pub time: Nanos,
    /// How often each tier is visited.
    pub repeat: u32,
    /// `vm.page-cluster`, where it is to be another.
    pub page_cluster: Option<u32>,
    /// `vm.swappiness`, where it is to be another.
    pub swappiness: Option<u8>,
    /// It is watched for its memory curve, for these limits or some of our choice.
    pub curve: Option<Vec<Bytes>>,
    /// Of every random choice.
    pub seed: u64,
    /// Length of this machine's pages.
    pub page: Bytes,
}

/// What is done with the model that `header` describes, by a runner that is asked for `room` tokens of context. It makes no more room
/// than the model can use, as Ollama does (`NewLlamaServer`: a context larger than the model's becomes the model's).
///
/// # Errors
/// When it is none that makes tokens.
pub fn decoding(
    model: &str,
    header: &Header,
    prompt: u32,
    tokens: u32,
    room: u32,
) -> Result<Decoding, gguf::GgufError> {
    let decode = gguf::decode(header)?;
    let room = decode.kv.context.map_or(room, |most| room.min(u32::try_from(most).unwrap_or(u32::MAX)));
    let mut pieces = Vec::with_capacity(decode.passes.len() + decode.layers as usize);
    let layers = decode.layers.max(1);
    let key_values = decode.kv.bytes_per_token.unwrap_or(0) / layers;
    let (mut layer, mut cached) = (None, 0);
    let heads = |key: &str| header.value(key).and_then(|value| value.of_layer(0)?.count()).filter(|heads| *heads > 0);
    let asking = heads("attention.head_count").unwrap_or(1);
    let asked = heads("attention.head_count_kv").unwrap_or(asking);
    let cache = |cached: u64| Piece {
        at: Bytes(cached * key_values),
        len: Bytes(key_values),
        row: Bytes(key_values / asked),
        packed: u8::try_from((asking / asked).max(1)).unwrap_or(u8::MAX),
        part: Part::Cache,
    };
    for touch in &decode.passes {
        let Some(tensor) = header.tensors.get(touch.tensor) else { continue };
        let of = layer_of(&tensor.name);
        // A layer's attention ends with its output; what has none is done with at the layer's end.
        let ends = of != layer && layer.is_some_and(|layer| cached == layer);
        let output = of.is_some_and(|of| cached == of) && tensor.name.contains(".attn_output");
        if (ends || output) && key_values > 0 && cached < layers {
            pieces.push(cache(cached));
            cached += 1;
        }
        layer = of;
        let part = match touch.part {
            gguf::Part::Whole => Part::Whole,
            gguf::Part::Row => Part::Row,
            gguf::Part::Experts { used, of } => Part::Experts { used: used as u32, of: of as u32 },
        };
        pieces.push(Piece {
            at: Bytes(tensor.offset.saturating_sub(header.data_start)),
            len: Bytes(tensor.bytes),
            row: Bytes(tensor.row_bytes()),
            packed: packed(tensor),
            part,
        });
    }
    let ends = header.tensors.iter().map(|tensor| tensor.offset.saturating_sub(header.data_start) + tensor.bytes);
    let size = Bytes(ends.max().unwrap_or(0).next_multiple_of(4096));
    Ok(Decoding { model: model.to_owned(), size, pieces, prompt, tokens, room, mapped: false })
}

/// The layer that a tensor is of, by its name.
fn layer_of(name: &str) -> Option<u64> {
    name.split_once("blk.")?.1.split_once('.')?.0.parse().ok()
}

/// Weights in a byte, as far as multiplying them differs.
fn packed(tensor: &gguf::Tensor) -> u8 {
    let bits = 8 * tensor.bytes / tensor.elements().max(1);
    if bits < 6 { 2 } else { 1 }
}

impl Request {
    /// The plan: a target for each tier, a step for each visit.
    ///
    /// # Errors
    /// When sizes or tiers make no sense together.
    pub fn plan(&self) -> Result<Plan, WorkloadError> {
        let size = Bytes(self.decoding.size.0 + self.decoding.cache_in_use(self.page).0);
        let refused = |sentence: String| Err(WorkloadError::Size(sentence));
        if self.decoding.tokens < 2 {
            return refused("--tokens 1 has no rate: the first token is the prompt's; take 2 or more".to_owned());
        }
        let mut targets = Vec::with_capacity(self.tiers.len());
        for tier in &self.tiers {
            let room = if self.decoding.mapped { self.decoding.size } else { room(size) };
            let swap = Swap { page_cluster: self.page_cluster, swappiness: self.swappiness, ..tier.sized(room) };
            if self.decoding.mapped {
                match swap.areas.as_slice() {
                    [Area::Device { path, .. }] => {
                        let path = path.display();
                        return refused(format!("--mapped would write weights over {path}; give a directory on it"));
                    }
                    [area] if swap.zswap.is_none() && *area != Area::Own => {}
                    _ => {
                        let name = &tier.name;
                        return refused(format!(
                            "mapped weights are one file, and {name:?} is no place for one; give a directory or a profile"
                        ));
                    }
                }
            }
            let work = Work::Decode(Box::new(self.decoding.clone()));
            targets.push(Target::Pressed(Pressed {
                size,
                pressure: self.pressure.clone(),
                swap,
                work,
                curve: self.curve.clone(),
                pager: false,
            }));
        }
        let mut plan = Plan {
            method: "load-decode".to_owned(),
            parameters: self.parameters(),
            seed: self.seed,
            targets,
            ..Plan::default()
        };
        for round in 0..self.repeat.max(1) {
            for (target, tier) in self.tiers.iter().enumerate() {
                let name = if self.repeat > 1 { format!("decode-r{}", round + 1) } else { "decode".to_owned() };
                let job = Job { seed: step_seed(self.seed, plan.steps.len()), ..self.job(size) };
                let step =
                    Step { name, tier: Some(tier.name.clone()), target, job, may_fail: true, before: Vec::new() };
                plan.steps.push(step);
            }
        }
        Ok(plan)
    }

    fn job(&self, size: Bytes) -> Job {
        Job {
            direction: Direction::Read,
            block: Block::Fixed(self.page),
            threads: self.threads,
            size: Some(size),
            direct: false,
            // Weights hold nearly as much as their bytes can: zram and zswap gain nothing on them.
            entropy: Entropy::Incompressible,
            stop: Stop { time: Some(self.time), operations: Some(u64::from(self.decoding.tokens)), ..Stop::default() },
            engine: Engine::Decode,
            ..Job::default()
        }
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        let decoding = &self.decoding;
        let mut all = BTreeMap::from([
            ("model".to_owned(), decoding.model.clone()),
            ("weights".to_owned(), decoding.size.to_string()),
            ("prompt".to_owned(), decoding.prompt.to_string()),
            ("tokens".to_owned(), decoding.tokens.to_string()),
            ("mapped".to_owned(), if decoding.mapped { "yes" } else { "no" }.to_owned()),
        ]);
        let mut add = |key: &str, value: Option<String>| all.extend(value.map(|value| (key.to_owned(), value)));
        add("memory", self.pressure.memory.map(|memory| memory.to_string()));
        add("lock", self.pressure.lock.map(|lock| lock.to_string()));
        add("page-cluster", self.page_cluster.map(|pages| pages.to_string()));
        add("swappiness", self.swappiness.map(|percent| percent.to_string()));
        add("repeat", (self.repeat > 1).then(|| self.repeat.to_string()));
        add("tiers", Some(self.tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(" ")));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gguf::Shape;

    fn of(shape: &str) -> (Header, Decoding) {
        let header = Shape::parse(shape).unwrap().header();
        let decoding = decoding("made up", &header, 10, 4, 0).unwrap();
        (header, decoding)
    }

    #[test]
    fn a_token_touches_what_the_header_says() {
        let (header, decoding) = of("layers=4,embd=512,vocab=4096,quant=Q4_0");
        let decode = gguf::decode(&header).unwrap();
        let weights: u64 = decoding.pieces.iter().filter(|p| p.part != Part::Cache).map(|p| p.touched(0)).sum();
        assert_eq!(weights, decode.bytes_per_token(&header));
        let caches: Vec<_> = decoding.pieces.iter().filter(|piece| piece.part == Part::Cache).collect();
        assert_eq!(caches.len(), 4);
        assert_eq!(decoding.cache().0, decode.kv.bytes_per_token.unwrap() * 32);
        // Each layer's cache between what it is made of and its output.
        let place = |name: &str| {
            let (index, tensor) = header.tensor(name).unwrap();
            let at = Bytes(tensor.offset - header.data_start);
            let found = decoding.pieces.iter().position(|piece| piece.at == at && piece.part != Part::Cache);
            assert!(index < header.tensors.len());
            found.unwrap()
        };
        assert_eq!(decoding.pieces[place("blk.2.attn_output.weight") - 1].part, Part::Cache);
        assert_eq!(decoding.pieces[place("blk.0.attn_q.weight")].packed, 2);
        assert_eq!(decoding.pieces[place("blk.0.attn_norm.weight")].packed, 1);
    }

    #[test]
    fn no_more_room_than_the_model_can_use() {
        let header = |shape: &str| Shape::parse(shape).unwrap().header();
        let room = |shape: &str| decoding("made up", &header(shape), 10, 4, 2048).unwrap().context();
        assert_eq!(room("layers=4,embd=512,context=256"), 256);
        assert_eq!(room("layers=4,embd=512,context=4096"), 2048);
        assert_eq!(room("layers=4,embd=512"), 2048);
    }

    #[test]
    fn experts_are_touched_in_part() {
        let (header, decoding) = of("layers=2,embd=512,vocab=4096,experts=8,experts_used=2");
        assert!(decoding.pieces.iter().any(|piece| piece.part == Part::Experts { used: 2, of: 8 }));
        assert!(decoding.touched().0 < header.model_bytes());
    }

    fn request(tier: &str, mapped: bool) -> Request {
        let (_, decoding) = of("layers=4,embd=512,vocab=4096");
        Request {
            decoding: Decoding { mapped, ..decoding },
            pressure: Pressure::default(),
            tiers: vec![Tier::parse(tier, &|name| Ok((name.to_owned(), String::new()))).unwrap()],
            threads: 2,
            time: Nanos::from_millis(60_000),
            repeat: 1,
            page_cluster: None,
            swappiness: None,
            curve: None,
            seed: 1,
            page: Bytes(4096),
        }
    }

    #[test]
    fn mapped_weights_need_one_place_that_may_be_written() {
        assert!(request("optane-pi5", true).plan().is_ok());
        assert!(request("none", false).plan().is_ok());
        let bad = |tier: &str| request(tier, true).plan().unwrap_err().to_string();
        assert!(bad("/dev/sda").contains("give a directory"));
        assert!(bad("none").contains("no place"));
        assert!(bad("optane-pi5,sd-pi3").contains("one file"));
        let few = request("none", false);
        let few = Request { decoding: Decoding { tokens: 1, ..few.decoding.clone() }, ..few };
        assert!(few.plan().unwrap_err().to_string().contains("--tokens"));
    }
}
