//! From bytes to a [`Header`], with ggml's rules: what ggml would not load is not taken here either. The bounds are on top of
//! these, so that a file made to harm costs neither memory nor time.

use crate::error::GgufError;
use crate::error::Place;
use crate::header::{Header, Tensor};
use crate::kind::{self, Kind};
use crate::source::Source;
use crate::value::Value;
use basics::Bytes;
use std::collections::BTreeMap;
use std::io::{Read, Seek};

/// Keys of a file at most; models have some 50.
pub const MOST_KEYS: u64 = 4096;
/// Tensors of a file at most; the largest models have some 2000, and 25,000 where each expert is one.
pub const MOST_TENSORS: u64 = 65_536;
/// Texts in lists (tokens, merges) that are walked at most; the largest vocabularies have under a million.
pub const MOST_STRINGS: u64 = 4_000_000;
/// Numbers of a list that is kept.
pub const MOST_LISTED: u64 = 512;
/// Bytes of a text that is kept: a model's name, not its chat template.
pub const MOST_TEXT: u64 = 4096;

/// Bytes of all that is kept of keys.
const MOST_KEPT: u64 = 16 << 20;
/// Bytes of a key's name, by the format.
const MOST_KEY_NAME: u64 = 65_535;
/// ggml holds 64 with the terminating zero (`GGML_MAX_NAME`).
const MOST_TENSOR_NAME: u64 = 63;
/// `GGML_MAX_DIMS`.
const MOST_DIMS: u32 = 4;
/// `GGUF_DEFAULT_ALIGNMENT`, in bytes.
const ALIGNMENT: u64 = 32;
/// Bytes of the least key: two lengths of 8 and 4 bytes, a name of one byte, a value of one.
const LEAST_KEY: u64 = 14;
/// Bytes of the least tensor: an empty name, no dimension, type and offset.
const LEAST_TENSOR: u64 = 24;

/// Reads the header of a GGUF file of `len` bytes, and none of its weights. At most [`MOST_READ`](crate::MOST_READ) bytes are
/// read.
///
/// # Errors
/// One sentence on what is wrong with the file and where. That weights are missing is no error: see [`Header::missing`].
pub fn read(reader: impl Read + Seek, len: u64) -> Result<Header, GgufError> {
    let mut source = Source::new(reader, len)?;
    let version = version(&mut source)?;
    let at = source.position();
    let tensor_count = source.u64()?;
    let key_count = source.u64()?;
    counted(&source, at, tensor_count, "tensors", LEAST_TENSOR, MOST_TENSORS)?;
    counted(&source, at + 8, key_count, "keys", LEAST_KEY, MOST_KEYS)?;

    let keys = keys(&mut source, key_count)?;
    let alignment = alignment(&keys)?;
    let mut tensors = tensors(&mut source, tensor_count, alignment)?;
    let data_start = source.position().checked_next_multiple_of(alignment);
    let data_start =
        data_start.ok_or_else(|| source.broken(source.position(), "the tensors begin beyond 2^64 bytes"))?;
    for tensor in &mut tensors {
        // So far it counts from where the tensors begin.
        match tensor.offset.checked_add(data_start) {
            Some(offset) if offset.checked_add(tensor.bytes).is_some() => tensor.offset = offset,
            _ => {
                source.place = Place::Tensor(tensor.name.clone());
                return Err(source.broken(source.position(), "it ends beyond 2^64 bytes; the file is damaged"));
            }
        }
    }
    let text = |key: &str| keys.get(key).and_then(Value::text).map(str::to_owned);
    let (architecture, name) = (text("general.architecture"), text("general.name"));
    Ok(Header { version, big_endian: source.big_endian, architecture, name, keys, tensors, data_start, len })
}

/// Reads the magic and the version, from which the order of bytes follows.
fn version<R: Read + Seek>(source: &mut Source<R>) -> Result<u32, GgufError> {
    if source.left() == 0 {
        return Err(GgufError::NotGguf { why: "it is empty".to_owned() });
    }
    let begins = source.left().min(4) as usize;
    let magic = source.bytes(begins)?;
    if !b"GGUF".starts_with(&magic) {
        return Err(GgufError::NotGguf { why: foreign(&magic) });
    }
    if magic.len() < 4 {
        return Err(GgufError::Truncated { at: source.position(), place: Place::Start });
    }
    let version = source.u32()?;
    match (version, version.swap_bytes()) {
        (2 | 3, _) => Ok(version),
        (_, swapped @ (2 | 3)) => {
            source.big_endian = true;
            Ok(swapped)
        }
        (1, _) => Err(GgufError::Version {
            version,
            why: "which llama.cpp has not read since 2023; convert the model again or get a newer file of it",
        }),
        _ => Err(GgufError::Version {
            version,
            why: "and 2 and 3 are known; the file is damaged or newer than this program",
        }),
    }
}

/// What a file is that begins with these bytes.
fn foreign(magic: &[u8]) -> String {
    let is = match magic {
        b"lmgg" | b"fmgg" | b"tjgg" | b"algg" => "a ggml file from before GGUF; convert the model again",
        b"PK\x03\x04" => {
            "a zip archive, perhaps weights of PyTorch; convert them with llama.cpp's convert_hf_to_gguf.py"
        }
        b"vers" => "perhaps the pointer that Git LFS leaves in the place of a file; `git lfs pull` brings the file",
        [b'<', ..] => "perhaps a web page that was saved instead of the file; download the file itself",
        [_, _, _, 0] => "perhaps a safetensors file; convert it with llama.cpp's convert_hf_to_gguf.py",
        _ => "give a file whose name ends in .gguf, or an Ollama blob that is a model",
    };
    let begins = magic.escape_ascii();
    format!("it begins with \"{begins}\", not with \"GGUF\" ({is})")
}

/// A count that the bytes left can hold, and that is not beyond reason.
fn counted<R: Read + Seek>(
    source: &Source<R>,
    at: u64,
    count: u64,
    of: &str,
    least: u64,
    most: u64,
) -> Result<(), GgufError> {
    let left = source.left();
    match count.checked_mul(least) {
        Some(bytes) if bytes <= left => {}
        _ => {
            return Err(source.broken(
                at,
                format!(
                    "{count} {of} take at least {least} bytes each, and {left} bytes are left; the file is cut short or \
                     damaged: copy or download it again"
                ),
            ));
        }
    }
    if count > most {
        Err(source.too_much(at, format!("it has {count} {of}, of which {most} are read")))
    } else {
        Ok(())
    }
}

/// A name: a text that is UTF-8 and of at most `most` bytes.
fn name<R: Read + Seek>(source: &mut Source<R>, most: u64) -> Result<String, GgufError> {
    let at = source.position();
    let length = source.text_length()?;
    if length > most {
        return Err(
            source.broken(at, format!("its name is {length} bytes long, and {most} is the most that ggml takes"))
        );
    }
    let bytes = source.bytes(length as usize)?;
    String::from_utf8(bytes).map_err(|_| source.broken(at, "its name is no UTF-8 text; the file is damaged"))
}

fn keys<R: Read + Seek>(source: &mut Source<R>, count: u64) -> Result<BTreeMap<String, Value>, GgufError> {
    let mut keys = BTreeMap::new();
    let (mut kept, mut strings) = (0, 0);
    for number in 1..=count {
        source.place = Place::KeyNumber(number, count);
        let at = source.position();
        let name = name(source, MOST_KEY_NAME)?;
        if name.is_empty() {
            return Err(source.broken(at, "its name is empty; the file is damaged"));
        }
        source.place = Place::Key(name.clone());
        if keys.contains_key(&name) {
            return Err(source.broken(at, "it is there twice, and nobody knows which holds; make the file again"));
        }
        let value = value(source, &mut strings)?;
        kept += name.len() as u64 + size_of::<(String, Value)>() as u64;
        kept += match &value {
            Value::Text(text) => text.len() as u64,
            Value::List(values) => size_of_val(values.as_slice()) as u64,
            _ => 0,
        };
        if kept > MOST_KEPT {
            let most = Bytes(MOST_KEPT);
            return Err(source.too_much(at, format!("names and values up to here take more than {most} in memory")));
        }
        keys.insert(name, value);
    }
    Ok(keys)
}

const TEXT: u32 = 8;
const LIST: u32 = 9;

/// Bytes of a number of the type with that id.
fn width(id: u32) -> Option<u64> {
    match id {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

fn number<R: Read + Seek>(source: &mut Source<R>, id: u32) -> Result<Value, GgufError> {
    Ok(match id {
        0 => Value::Unsigned(u8::from_le_bytes(source.array()?).into()),
        1 => Value::Signed(i8::from_le_bytes(source.array()?).into()),
        2 => Value::Unsigned(u16::from_le_bytes(source.array()?).into()),
        3 => Value::Signed(i16::from_le_bytes(source.array()?).into()),
        4 => Value::Unsigned(source.u32()?.into()),
        5 => Value::Signed(i32::from_le_bytes(source.array()?).into()),
        6 => Value::Float(f32::from_le_bytes(source.array()?).into()),
        7 => Value::Bool(source.array::<1>()? != [0]),
        10 => Value::Unsigned(source.u64()?),
        11 => Value::Signed(i64::from_le_bytes(source.array()?)),
        _ => Value::Float(f64::from_le_bytes(source.array()?)),
    })
}

fn value<R: Read + Seek>(source: &mut Source<R>, strings: &mut u64) -> Result<Value, GgufError> {
    let at = source.position();
    match source.u32()? {
        TEXT => text(source),
        LIST => list(source, strings),
        id if width(id).is_some() => number(source, id),
        id => Err(source.broken(at, format!("its type {id} is none of the format's; the file is damaged"))),
    }
}

fn text<R: Read + Seek>(source: &mut Source<R>) -> Result<Value, GgufError> {
    let length = source.text_length()?;
    if length > MOST_TEXT {
        source.skip(length)?;
        return Ok(Value::Unread(length));
    }
    let bytes = source.bytes(length as usize)?;
    Ok(Value::Text(String::from_utf8_lossy(&bytes).into_owned()))
}

fn list<R: Read + Seek>(source: &mut Source<R>, strings: &mut u64) -> Result<Value, GgufError> {
    let at = source.position();
    let id = source.u32()?;
    let count = source.u64()?;
    let least = match id {
        TEXT => 8,
        LIST => return Err(source.broken(at, "it is a list of lists, which ggml does not read either")),
        _ => match width(id) {
            Some(width) => width,
            None => return Err(source.broken(at, format!("its elements' type {id} is none of the format's"))),
        },
    };
    counted(source, at + 4, count, "elements", least, u64::MAX)?;
    if id == TEXT {
        *strings += count;
        if *strings > MOST_STRINGS {
            return Err(source.too_much(
                at,
                format!("the lists up to here have {strings} texts, of which {MOST_STRINGS} are walked"),
            ));
        }
        for _ in 0..count {
            let length = source.text_length()?;
            source.skip(length)?;
        }
        return Ok(Value::Unread(count));
    }
    if count > MOST_LISTED {
        source.skip(count * least)?;
        return Ok(Value::Unread(count));
    }
    (0..count).map(|_| number(source, id)).collect::<Result<_, _>>().map(Value::List)
}

/// Bytes of which each tensor's place is a multiple.
fn alignment(keys: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    const KEY: &str = "general.alignment";
    let why = match keys.get(KEY) {
        None => return Ok(ALIGNMENT),
        Some(Value::Unsigned(bytes)) if bytes.is_power_of_two() && u32::try_from(*bytes).is_ok() => return Ok(*bytes),
        Some(Value::Unsigned(bytes)) => {
            format!("is {bytes}, and must be a power of two of 32 bits; the file is damaged")
        }
        Some(_) => "is no unsigned number; the file is damaged".to_owned(),
    };
    Err(GgufError::Key { key: format!("{KEY:?}"), why })
}

/// The tensors, with offsets that count from where they begin.
fn tensors<R: Read + Seek>(source: &mut Source<R>, count: u64, alignment: u64) -> Result<Vec<Tensor>, GgufError> {
    let mut tensors = Vec::with_capacity(count as usize);
    let mut places = Vec::with_capacity(count as usize);
    let mut end: u64 = 0;
    for number in 1..=count {
        source.place = Place::TensorNumber(number, count);
        places.push(source.position());
        let name = name(source, MOST_TENSOR_NAME)?;
        source.place = Place::Tensor(name.clone());
        let (dims, kind, bytes) = extent(source)?;
        let at = source.position();
        let offset = source.u64()?;
        if offset != end {
            return Err(source.broken(
                at,
                format!(
                    "it begins {offset} bytes into the tensors, and by the sizes of those before it {end} are due; the file is \
                     damaged, so make or download it again"
                ),
            ));
        }
        let padded = bytes.checked_next_multiple_of(alignment).and_then(|padded| end.checked_add(padded));
        end = padded.ok_or_else(|| source.broken(at, "it ends beyond 2^64 bytes; the file is damaged"))?;
        tensors.push(Tensor { name, dims, kind, offset, bytes });
    }
    // Sorted rather than hashed: no names are worse than others.
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by(|a, b| tensors[*a].name.cmp(&tensors[*b].name).then(a.cmp(b)));
    if let Some(twice) = order.windows(2).find(|pair| tensors[pair[0]].name == tensors[pair[1]].name) {
        source.place = Place::Tensor(tensors[twice[1]].name.clone());
        return Err(source.broken(places[twice[1]], "another one before it has the same name; make the file again"));
    }
    Ok(tensors)
}

/// Dimensions, type and size in bytes of a tensor.
fn extent<R: Read + Seek>(source: &mut Source<R>) -> Result<(Vec<u64>, Kind, u64), GgufError> {
    let at = source.position();
    let count = source.u32()?;
    if count > MOST_DIMS {
        return Err(
            source.broken(at, format!("it has {count} dimensions, and {MOST_DIMS} are the most that ggml takes"))
        );
    }
    let dims = (0..count).map(|_| source.u64()).collect::<Result<Vec<_>, _>>()?;
    // ggml counts in 63 bits; without a zero among them, so that the others are judged as well.
    let product = dims.iter().filter(|dim| **dim > 0).try_fold(1u64, |product, dim| product.checked_mul(*dim));
    if product.is_none_or(|product| product > i64::MAX as u64) {
        let shown: Vec<String> = dims.iter().map(u64::to_string).collect();
        return Err(
            source.broken(at, format!("it has {} elements, more than 2^63; the file is damaged", shown.join(" × ")))
        );
    }
    let at = source.position();
    let id = source.u32()?;
    let kind = Kind::from_id(id).ok_or_else(|| source.broken(at, kind::unknown(id)))?;
    let row = dims.first().copied().unwrap_or(1);
    let (block, _) = kind.block();
    if !row.is_multiple_of(block) {
        return Err(source
            .broken(at, format!("its rows of {row} are not whole blocks of {block} elements, as {kind} has them")));
    }
    let bytes = kind.bytes(row).and_then(|bytes| dims.iter().skip(1).try_fold(bytes, |sum, dim| sum.checked_mul(*dim)));
    let bytes = bytes.ok_or_else(|| source.broken(at, "it takes more than 2^64 bytes; the file is damaged"))?;
    Ok((dims, kind, bytes))
}
