//! What a runner does for a token beside multiplying weights. Between two of them, on one thread while the others wait, it chooses
//! the token among the vocabulary, and writes down anew what the next one takes; in each layer it asks all that was said before. A
//! large model's time doesn't show it; of a small one's it is a tenth.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;

/// Tokens that are chosen from at most: the largest vocabularies have a quarter of a million.
const MOST_TOKENS: u32 = 1 << 20;
/// Tokens that were said last, and those among which one is chosen (`penalty_last_n`, `top_k` of llama.cpp and Ollama).
const SAID: u32 = 64;
const BEST: usize = 40;
/// Looks at the whole graph, to choose each node's processor and where its result lies (`ggml_backend_sched_split_graph`).
const PASSES: u32 = 5;

/// One that may be said next (`llama_token_data`).
struct Candidate {
    id: u32,
    logit: f32,
    probability: f32,
}

/// Where a number is looked for by itself, as a C++ `unordered_map` does; what is safe against chosen keys takes three times as long.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }
    fn write_u32(&mut self, number: u32) {
        // The table goes by the highest bits, too.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Takes the likeliest of all tokens, as llama.cpp's sampler does (llama-sampling.cpp): what was said last becomes less likely, the
/// best forty are put in order.
pub(crate) fn choose(vocabulary: u32, token: u32) {
    let said: HashMap<u32, u32, BuildHasherDefault<Itself>> =
        (token.saturating_sub(SAID)..token).map(|said| (said, 1)).collect();
    let likely = |id: u32| (id ^ token).wrapping_mul(0x9e37_79b9) as f32;
    let mut all: Vec<Candidate> =
        (0..vocabulary.min(MOST_TOKENS)).map(|id| Candidate { id, logit: likely(id), probability: 0.0 }).collect();
    for candidate in &mut all {
        if said.contains_key(&candidate.id) {
            candidate.logit /= 1.1;
        }
    }
    let best = |a: &Candidate, b: &Candidate| b.logit.total_cmp(&a.logit);
    if all.len() > BEST {
        all.select_nth_unstable_by(BEST, best);
        all.truncate(BEST);
    }
    all.sort_unstable_by(best);
    black_box(all.first().map(|first| (first.id, first.probability)));
}

/// Numbers that are taken at a time.
const LANES: usize = 16;
/// The longest key and value of a head whose cost is known, numbers.
const LONGEST: usize = 4096;
/// Half-precision numbers (bf16, which take as long as f16 does), that mean nothing.
static KEYS: [u16; LONGEST] = [0x3e80; LONGEST];

/// One head asks the keys and values of `before` tokens and its own, `bytes` of each (`ggml_vec_dot_f16`, `ggml_vec_soft_max_f32`).
/// What they are lies in the cache, which is read elsewhere; this is what asking costs.
pub(crate) fn attend(bytes: usize, before: u64) {
    let keys = &KEYS[..(bytes / 2).min(LONGEST) / LANES * LANES];
    let (key, value) = keys.split_at(keys.len() / 2);
    let mut all = 0.0;
    for token in 0..=before {
        let weight = (product(black_box(key), token as f32) * -1e-4).exp();
        all += weight + product(black_box(value), weight);
    }
    black_box(all);
}

fn product(keys: &[u16], with: f32) -> f32 {
    let mut sums = [0.0_f32; LANES];
    for lanes in keys.chunks_exact(LANES) {
        for (sum, key) in sums.iter_mut().zip(lanes) {
            *sum += f32::from_bits(u32::from(*key) << 16) * with;
        }
    }
    sums.iter().sum()
}

/// A node of the graph (`ggml_tensor`, 336 bytes).
#[derive(Clone)]
struct Node {
    shape: [u64; 8],
    parameters: [u32; 16],
    sources: [usize; 2],
    processor: u32,
    name: String,
}

/// Writes a graph of so many nodes, as `llama_decode` does for each token: each is made, named, looked up and given its place.
pub(crate) fn write_graph(nodes: usize) {
    let mut graph: Vec<Node> = Vec::new();
    let mut known: HashMap<usize, usize> = HashMap::new();
    for node in 0..nodes {
        let sources = [node.saturating_sub(1), node.saturating_sub(2)];
        let mut name = String::new();
        // A name is no more than what it is written into, which never fails.
        let _ = write!(name, "node-{node}");
        let shape = [node as u64; 8];
        graph.push(Node { shape, parameters: [0; 16], sources, processor: 0, name });
        for source in sources {
            *known.entry(source).or_default() += 1;
        }
    }
    for pass in 0..PASSES {
        for at in 0..nodes {
            let processors = graph[at].sources.map(|source| graph[source].processor);
            let used = known.get(&at).copied().unwrap_or(0) as u32;
            graph[at].processor = processors[0].max(processors[1]).max(used & pass);
        }
    }
    for node in &graph {
        black_box((node.shape, node.parameters, &node.name, known.get(&node.sources[0])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_too_little() {
        for few in [0, 1, BEST as u32, BEST as u32 + 1] {
            choose(few, few);
            attend(few as usize, u64::from(few));
            write_graph(few as usize);
        }
    }
}
