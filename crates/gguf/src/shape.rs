//! Made-up models: a few numbers instead of a file, which become the header of a model of llama's form, so that
//! [`decode`](crate::decode) says of it what it would say of a file.

use crate::error::{GgufError, excerpt};
use crate::header::{Header, Tensor};
use crate::kind::Kind;
use crate::value::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The measures of a made-up model of llama's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Layers.
    pub layers: u64,
    /// Length of a token's vector.
    pub embd: u64,
    /// Inner length of a feed-forward block, of each expert where there are some. By default 8/3 of `embd`, rounded up to 256.
    pub ffn: u64,
    /// Heads of attention that ask. By default `embd` / 128, at least one.
    pub heads: u64,
    /// Heads of attention that are asked, of which `heads` is a multiple. By default as many.
    pub kv_heads: u64,
    /// Length of a head's vector. By default `embd` / `heads`.
    pub head_size: u64,
    /// Tokens of the vocabulary. By default 32,000.
    pub vocab: u64,
    /// Type of the matrices. By default Q4_K. Where rows are not whole blocks of it they are Q8_0, or F16 where not of that either;
    /// norms are F32. A real file of a mixture such as Q4_K_M has some matrices in larger types.
    pub quant: Kind,
    /// True when the output is the embedding. By default not.
    pub tied: bool,
    /// Experts of each layer; 0, the default, for one feed-forward block.
    pub experts: u64,
    /// Experts that a token uses; with `experts` 2 by default.
    pub experts_used: u64,
    /// Tokens of the longest context; none when nobody says.
    pub context: Option<u64>,
}

/// Each number with its bounds; together they keep a model's bytes within 63 bits.
const NUMBERS: [(&str, u64, u64); 10] = [
    ("layers", 1, 1000),
    ("embd", 32, 1 << 17),
    ("ffn", 32, 1 << 20),
    ("heads", 1, 4096),
    ("kv_heads", 1, 4096),
    ("head_size", 1, 4096),
    ("vocab", 1, 1 << 24),
    ("experts", 2, 1024),
    ("experts_used", 1, 1024),
    ("context", 1, 1 << 32),
];

const DEFAULT_VOCAB: u64 = 32_000;

fn wrong(key: &str, why: impl Into<String>) -> GgufError {
    GgufError::Shape { key: key.to_owned(), why: why.into() }
}

impl Shape {
    /// Reads `layers=28,embd=3072,ffn=8192,heads=24,kv_heads=8,vocab=128256,quant=Q4_K,tied=yes`. `layers` and `embd` must be there,
    /// the others have the defaults that stand at the fields.
    ///
    /// # Errors
    /// [`GgufError::Shape`], which names the key and what it may be.
    pub fn parse(text: &str) -> Result<Shape, GgufError> {
        let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
        let (mut quant, mut tied) = (None, None);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
                return Err(wrong(&excerpt(part), "has no value; write for example layers=28,embd=3072"));
            };
            let again = match key {
                "quant" => quant.replace(parse_kind(value)?).is_some(),
                "tied" => tied.replace(parse_tied(value)?).is_some(),
                _ => {
                    let (name, number) = parse_number(key, value)?;
                    numbers.insert(name, number).is_some()
                }
            };
            if again {
                return Err(wrong(key, "is there twice"));
            }
        }
        let get = |key: &str| numbers.get(key).copied();
        let needed = |key: &str| get(key).ok_or_else(|| wrong(key, "is missing; the least is layers=28,embd=3072"));
        let (layers, embd) = (needed("layers")?, needed("embd")?);
        let ffn = get("ffn").unwrap_or((embd * 8).div_ceil(3).next_multiple_of(256));
        let heads = get("heads").unwrap_or((embd / 128).max(1));
        let kv_heads = get("kv_heads").unwrap_or(heads);
        if !heads.is_multiple_of(kv_heads) {
            return Err(wrong("kv_heads", format!("is {kv_heads} and must divide heads, which is {heads}")));
        }
        let head_size = match get("head_size") {
            Some(size) => size,
            None if embd.is_multiple_of(heads) => embd / heads,
            None => {
                return Err(wrong(
                    "heads",
                    format!("is {heads}, of which embd={embd} is no multiple; say head_size as well"),
                ));
            }
        };
        let experts = get("experts").unwrap_or(0);
        let experts_used = get("experts_used").unwrap_or(if experts > 0 { 2 } else { 0 });
        if experts_used > experts {
            return Err(wrong(
                "experts_used",
                format!("is {experts_used}, and experts is {experts}; it cannot be more"),
            ));
        }
        Ok(Shape {
            layers,
            embd,
            ffn,
            heads,
            kv_heads,
            head_size,
            vocab: get("vocab").unwrap_or(DEFAULT_VOCAB),
            quant: quant.unwrap_or(Kind::Q4_K),
            tied: tied.unwrap_or(false),
            experts,
            experts_used,
            context: get("context"),
        })
    }

    /// The header of a file of such a model, its tensors in the order of decoding. No file has it, so it counts as whole.
    pub fn header(&self) -> Header {
        let mut tensors = Tensors::default();
        let kind = |row| self.kind(row);
        let mut matrix = |name: String, dims: &[u64]| tensors.push(name, dims, kind(dims[0]));
        matrix("token_embd.weight".to_owned(), &[self.embd, self.vocab]);
        let (asking, asked) = (self.heads * self.head_size, self.kv_heads * self.head_size);
        for layer in 0..self.layers {
            let mut add = |role: &str, dims: &[u64], kind: Kind| {
                tensors.push(format!("blk.{layer}.{role}.weight"), dims, kind);
            };
            add("attn_norm", &[self.embd], Kind::F32);
            add("attn_q", &[self.embd, asking], kind(self.embd));
            add("attn_k", &[self.embd, asked], kind(self.embd));
            add("attn_v", &[self.embd, asked], kind(self.embd));
            add("attn_output", &[asking, self.embd], kind(asking));
            add("ffn_norm", &[self.embd], Kind::F32);
            if self.experts > 0 {
                // llama-quantize leaves the router as it is.
                add("ffn_gate_inp", &[self.embd, self.experts], Kind::F32);
                add("ffn_gate_exps", &[self.embd, self.ffn, self.experts], kind(self.embd));
                add("ffn_up_exps", &[self.embd, self.ffn, self.experts], kind(self.embd));
                add("ffn_down_exps", &[self.ffn, self.embd, self.experts], kind(self.ffn));
            } else {
                add("ffn_gate", &[self.embd, self.ffn], kind(self.embd));
                add("ffn_up", &[self.embd, self.ffn], kind(self.embd));
                add("ffn_down", &[self.ffn, self.embd], kind(self.ffn));
            }
        }
        tensors.push("output_norm.weight".to_owned(), &[self.embd], Kind::F32);
        if !self.tied {
            tensors.push("output.weight".to_owned(), &[self.embd, self.vocab], kind(self.embd));
        }
        Header {
            version: 3,
            big_endian: false,
            architecture: Some("llama".to_owned()),
            name: Some("made-up model".to_owned()),
            keys: self.keys(),
            tensors: tensors.all,
            data_start: 0,
            len: tensors.end,
        }
    }

    fn keys(&self) -> BTreeMap<String, Value> {
        let mut keys = BTreeMap::new();
        let mut number = |key: &str, value: u64| keys.insert(format!("llama.{key}"), Value::Unsigned(value));
        number("block_count", self.layers);
        number("embedding_length", self.embd);
        number("feed_forward_length", self.ffn);
        number("vocab_size", self.vocab);
        number("attention.head_count", self.heads);
        number("attention.head_count_kv", self.kv_heads);
        number("attention.key_length", self.head_size);
        number("attention.value_length", self.head_size);
        if self.experts > 0 {
            number("expert_count", self.experts);
            number("expert_used_count", self.experts_used);
        }
        if let Some(context) = self.context {
            number("context_length", context);
        }
        keys.insert("general.architecture".to_owned(), Value::Text("llama".to_owned()));
        keys
    }

    /// The type of a matrix with rows of that length.
    fn kind(&self, row: u64) -> Kind {
        let fits = |kind: &Kind| kind.bytes(row).is_some();
        [self.quant, Kind::Q8_0].into_iter().find(fits).unwrap_or(Kind::F16)
    }
}

impl fmt::Display for Shape {
    /// With every default said, as [`Shape::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { layers, embd, ffn, heads, kv_heads, head_size, vocab, quant, .. } = self;
        let tied = if self.tied { "yes" } else { "no" };
        write!(f, "layers={layers},embd={embd},ffn={ffn},heads={heads},kv_heads={kv_heads},head_size={head_size},")?;
        write!(f, "vocab={vocab},quant={quant},tied={tied}")?;
        if self.experts > 0 {
            write!(f, ",experts={},experts_used={}", self.experts, self.experts_used)?;
        }
        if let Some(context) = self.context {
            write!(f, ",context={context}")?;
        }
        Ok(())
    }
}

fn parse_number(key: &str, value: &str) -> Result<(&'static str, u64), GgufError> {
    let Some((name, least, most)) = NUMBERS.iter().find(|(name, ..)| *name == key) else {
        let known: Vec<&str> = NUMBERS.iter().map(|(name, ..)| *name).chain(["quant", "tied"]).collect();
        return Err(wrong(&excerpt(key), format!("is no key; there are {}", known.join(", "))));
    };
    match value.parse() {
        Ok(number) if (*least..=*most).contains(&number) => Ok((name, number)),
        _ => Err(wrong(name, format!("is {}, and may be a whole number from {least} to {most}", excerpt(value)))),
    }
}

fn parse_kind(value: &str) -> Result<Kind, GgufError> {
    Kind::from_name(value).ok_or_else(|| {
        let known: Vec<String> = Kind::all().map(|kind| kind.to_string()).collect();
        let upper = value.to_ascii_uppercase();
        let plain =
            ["_S", "_M", "_L", "_XL"].iter().find_map(|ending| upper.strip_suffix(ending)).and_then(Kind::from_name);
        let hint = plain.map_or(String::new(), |kind| format!(" ({upper} is a mixture, mostly of {kind})"));
        wrong("quant", format!("is {}, and may be one of {}{hint}", excerpt(value), known.join(", ")))
    })
}

fn parse_tied(value: &str) -> Result<bool, GgufError> {
    match value {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(wrong("tied", format!("is {}, and may be yes or no", excerpt(value)))),
    }
}

/// Tensors laid one behind the other, as in a file with ggml's alignment.
#[derive(Default)]
pub(crate) struct Tensors {
    pub(crate) all: Vec<Tensor>,
    pub(crate) end: u64,
}

impl Tensors {
    pub(crate) fn push(&mut self, name: String, dims: &[u64], kind: Kind) {
        let rows: u64 = dims.iter().skip(1).product();
        let bytes = kind.bytes(dims[0]).unwrap_or(0) * rows;
        let offset = self.end.next_multiple_of(32);
        self.end = offset + bytes;
        self.all.push(Tensor { name, dims: dims.to_vec(), kind, offset, bytes });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    /// Llama 3.2 3B: the number is that of its published safetensors; a GGUF file adds the 64 of rope_freqs.
    #[test]
    fn llama_3_2_3b_has_its_makers_number_of_parameters() {
        let shape =
            Shape::parse("layers=28,embd=3072,ffn=8192,heads=24,kv_heads=8,vocab=128256,quant=Q4_K,tied=yes").unwrap();
        let header = shape.header();
        assert_eq!(header.parameters(), 3_212_749_824);
        assert_eq!(header.missing(), 0);
        let decode = decode(&header).unwrap();
        assert_eq!((decode.layers, decode.experts), (28, None));
        // One row of the embedding, then all of it as the output.
        let row = Kind::Q4_K.bytes(3072).unwrap();
        assert_eq!(decode.bytes_per_token(&header), header.model_bytes() + row);
        // 28 layers, 8 heads, keys and values of 128 halves each.
        assert_eq!(decode.kv.bytes_per_token, Some(28 * 8 * 2 * 128 * 2));
        let order: Vec<usize> = decode.passes.iter().map(|touch| touch.tensor).collect();
        assert_eq!(order, (0..header.tensors.len()).chain([0]).collect::<Vec<_>>());
    }

    #[test]
    fn defaults_are_those_that_the_fields_say() {
        let shape = Shape::parse(" layers=4, embd=4096 ").unwrap();
        assert_eq!(
            shape.to_string(),
            "layers=4,embd=4096,ffn=11008,heads=32,kv_heads=32,head_size=128,vocab=32000,quant=Q4_K,tied=no"
        );
        assert_eq!(Shape::parse(&shape.to_string()).unwrap(), shape);
        let shape = Shape::parse("layers=4,embd=1024,experts=8,context=8192").unwrap();
        assert_eq!((shape.experts, shape.experts_used), (8, 2));
        assert_eq!(Shape::parse(&shape.to_string()).unwrap(), shape);
    }

    #[test]
    fn rows_that_are_no_whole_blocks_fall_back() {
        let shape = Shape::parse("layers=1,embd=2880,heads=45,quant=q4_k").unwrap();
        let header = shape.header();
        assert_eq!(header.tensor("blk.0.attn_q.weight").unwrap().1.kind, Kind::Q8_0);
        assert_eq!(header.tensor("blk.0.ffn_down.weight").unwrap().1.kind, Kind::Q4_K);
        assert_eq!(Shape::parse("layers=1,embd=100").unwrap().header().tensors[0].kind, Kind::F16);
    }

    #[test]
    fn experts_are_touched_in_part() {
        let header = Shape::parse("layers=2,embd=1024,experts=8,experts_used=2").unwrap().header();
        let decode = decode(&header).unwrap();
        assert_eq!(decode.experts, Some((2, 8)));
        let experts = header.tensors.iter().filter(|tensor| tensor.name.contains("_exps"));
        let experts: u64 = experts.map(|tensor| tensor.bytes).sum();
        let embedding = header.tensors[0].bytes;
        let row = header.tensors[0].row_bytes();
        assert_eq!(decode.bytes_per_token(&header), header.model_bytes() - experts * 3 / 4 - embedding + row);
    }

    #[test]
    fn the_largest_shape_fits_its_numbers() {
        let text =
            "layers=1000,embd=131072,ffn=1048576,heads=4096,head_size=4096,vocab=16777216,quant=F64,experts=1024";
        let header = Shape::parse(text).unwrap().header();
        assert!(header.model_bytes() < 1 << 63 && header.parameters() > 1 << 50);
        assert!(decode(&header).unwrap().bytes_per_token(&header) < header.model_bytes());
    }

    #[test]
    fn what_is_wrong_is_said_with_what_it_may_be() {
        for (text, says) in [
            ("", "layers is missing"),
            ("layers=28", "embd is missing"),
            ("layers", "\"layers\" has no value"),
            ("layers=0,embd=64", "layers is \"0\", and may be a whole number from 1 to 1000"),
            ("layers=two,embd=64", "layers is \"two\""),
            ("layers=2,embd=-64", "embd is \"-64\""),
            ("layers=2,embd=64,layers=2", "layers is there twice"),
            ("layers=2,embd=64,width=3", "\"width\" is no key; there are layers, embd"),
            ("layers=2,embd=64,quant=Q4_K_M", "quant is \"Q4_K_M\", and may be one of F32, F16"),
            ("layers=2,embd=64,quant=Q4_K_M", "(Q4_K_M is a mixture, mostly of Q4_K)"),
            ("layers=2,embd=64,tied=maybe", "tied is \"maybe\", and may be yes or no"),
            ("layers=2,embd=4096,heads=32,kv_heads=5", "kv_heads is 5 and must divide heads, which is 32"),
            ("layers=2,embd=4096,heads=31", "heads is 31, of which embd=4096 is no multiple"),
            ("layers=2,embd=4096,experts=4,experts_used=5", "experts_used is 5, and experts is 4"),
            ("layers=2,embd=4096,experts_used=5", "experts is 0"),
        ] {
            let told = Shape::parse(text).unwrap_err().to_string();
            assert!(told.starts_with("in the shape of a model, ") && told.contains(says), "{text}: {told}");
        }
    }
}
