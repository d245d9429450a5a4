//! Whole files, good and bad, made in memory: what is read of them, and what is said about those that are wrong. That a bad
//! file costs little is counted in bytes read and calls made, not timed.
#![forbid(unsafe_code)]

mod support;

use gguf::{GgufError, Kind, MOST_READ, MOST_STRINGS, MOST_TENSORS, Value};
use std::io::{Cursor, Read, Seek, SeekFrom};
use support::{Endless, Writer, read, small};

#[test]
fn a_small_file_is_read_as_it_was_written() {
    for big_endian in [false, true] {
        let file = small(big_endian);
        let header = file.read().unwrap();
        assert_eq!((header.version, header.big_endian), (3, big_endian));
        assert_eq!((header.architecture.as_deref(), header.name.as_deref()), (Some("llama"), Some("small")));
        assert_eq!(header.count("block_count"), Some(1));
        assert_eq!(header.keys["llama.attention.layer_norm_rms_epsilon"], Value::Float(1e-5f32.into()));
        assert_eq!(header.keys["llama.attention.causal"], Value::Bool(true));
        assert_eq!(header.count_of_layer("attention.head_count_kv", 1), Some(4));
        assert_eq!(header.count_of_layer("attention.head_count_kv", 2), None);
        assert_eq!(header.keys["tokenizer.ggml.tokens"], Value::Unread(3));
        assert_eq!(header.keys["llama.byte"], Value::Signed(-2));
        assert_eq!(header.keys["llama.double"], Value::Float(2.5));
        let (_, tensor) = header.tensor("blk.0.attn_q.weight").unwrap();
        assert_eq!((tensor.kind, tensor.bytes, tensor.offset), (Kind::F32, 36, header.data_start + 160));
        assert_eq!((header.parameters(), header.model_bytes()), (128 + 9 + 3, 136 + 36 + 6));
        assert_eq!((header.missing(), header.len), (0, file.bytes.len() as u64));
        assert!(header.data_start.is_multiple_of(32));
        let notes = gguf::decode(&header).unwrap().notes;
        assert_eq!(notes.iter().any(|note| note.contains("big-endian")), big_endian);
    }
}

#[test]
fn version_2_is_read_like_3() {
    let mut file = small(false);
    file.bytes[4] = 2;
    assert_eq!(file.read().unwrap().version, 2);
}

#[test]
fn a_file_cut_at_any_byte_is_a_sentence_or_a_header_with_bytes_missing() {
    for big_endian in [false, true] {
        let file = small(big_endian);
        let whole = file.read().unwrap();
        let header_end = whole.data_start as usize - 31;
        for end in 0..file.bytes.len() {
            match read(&file.bytes[..end]) {
                Ok(header) => {
                    assert!(end >= header_end, "{end} of {header_end}");
                    assert_eq!(header.missing(), (file.bytes.len() - end) as u64);
                    assert_eq!((header.tensors, header.keys), (whole.tensors.clone(), whole.keys.clone()));
                }
                Err(error) => {
                    let told = error.to_string();
                    let known = ["it is empty", "the file ends at byte", "the file is cut short"];
                    assert!(known.iter().any(|says| told.contains(says)), "{end}: {told}");
                    assert!(end < whole.data_start as usize, "{end}: {told}");
                }
            }
        }
    }
}

/// The length was taken when the file was opened, and something shortened it since.
#[test]
fn a_file_that_became_shorter_is_cut() {
    let file = small(false);
    let told = gguf::read(Cursor::new(&file.bytes[..100]), file.bytes.len() as u64).unwrap_err().to_string();
    assert!(told.contains("the file ends at byte 100, inside key"), "{told}");
}

#[test]
fn what_is_no_gguf_file_is_told_by_how_it_begins() {
    for (bytes, says) in [
        (&b"version https://git-lfs.github.com/spec/v1"[..], "`git lfs pull`"),
        (b"PK\x03\x04....", "PyTorch"),
        (b"<!DOCTYPE html>", "web page"),
        (b"lmgg....", "before GGUF"),
        (b"\x10\x02\0\0\0\0\0\0{", "safetensors"),
        (b"\x7fELF...", "begins with \"\\x7fELF\", not with \"GGUF\""),
        (b"GGM", "begins with \"GGM\""),
        (b"", "it is empty"),
    ] {
        let told = read(bytes).unwrap_err().to_string();
        assert!(told.starts_with("this is no GGUF file: ") && told.contains(says), "{told}");
    }
    assert!(Writer::new(1, 0, 0).told().contains("version 1, which llama.cpp has not read since 2023"));
    assert!(Writer::new(4, 0, 0).told().contains("version 4, and 2 and 3 are known"));
    assert!(Writer::new(0, 0, 0).told().contains("version 0, and"));
}

#[test]
fn absurd_counts_are_refused_before_anything_is_held_for_them() {
    for (file, says) in [
        (
            Writer::new(3, u64::MAX, 0),
            "the first 24 bytes, at byte 8: 18446744073709551615 tensors take at least 24 bytes",
        ),
        (
            Writer::new(3, 0, 1 << 62),
            "at byte 16: 4611686018427387904 keys take at least 14 bytes each, and 0 bytes are left",
        ),
        (Writer::new(3, 1, 0), "1 tensors take"),
        (
            Writer::new(3, 0, 1).text("k").u32(9).u32(4).u64(1 << 61).u32(0),
            "key \"k\", at byte 41: 2305843009213693952 elements",
        ),
        (
            Writer::new(3, 0, 1).text("k").u32(9).u32(8).u64(u64::MAX).u64(0),
            "18446744073709551615 elements take at least 8",
        ),
        (
            Writer::new(3, 0, 1).u64(1 << 40).raw(&[0; 20]),
            "key 1 of 1, at byte 24: a text of 1099511627776 bytes begins here",
        ),
        (Writer::new(3, 0, 1).text("k").u32(8).u64(9).raw(&[0; 8]), "a text of 9 bytes begins here, and 8 are left"),
    ] {
        let told = file.told();
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn keys_that_cannot_be_are_named() {
    let key = |key: &str| Writer::new(3, 0, 1).text(key);
    for (file, says) in [
        (key("").u32(4).u32(1).raw(&[0; 8]), "key 1 of 1, at byte 24: its name is empty"),
        (key("a").u32(13).u32(0), "key \"a\", at byte 33: its type 13 is none of the format's"),
        (key("a").u32(9).u32(9).u64(1).raw(&[0; 12]), "key \"a\", at byte 37: it is a list of lists"),
        (key("a").u32(9).u32(99).u64(1).raw(&[0; 12]), "its elements' type 99 is none"),
        (Writer::new(3, 0, 1).u64(2).raw(b"\xff\xfe").u32(4).u32(1), "its name is no UTF-8 text"),
        (Writer::new(3, 0, 2).number("a", 1).number("a", 1), "key \"a\", at byte 41: it is there twice"),
        (key(&"k".repeat(70_000)).u32(4).u32(1), "its name is 70000 bytes long, and 65535 is the most"),
        (key("general.alignment").u32(4).u32(48), "the key \"general.alignment\" is 48, and must be a power of two"),
        (key("general.alignment").u32(4).u32(0), "is 0, and must be a power of two"),
        (key("general.alignment").u32(8).text("32"), "is no unsigned number"),
    ] {
        let told = file.told();
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn tensors_that_cannot_be_are_named() {
    let one = |name: &str, dims: &[u64], kind: Kind, offset: u64| Writer::new(3, 1, 0).tensor(name, dims, kind, offset);
    let id = |id: u32| Writer::new(3, 1, 0).text("t").u32(1).u64(32).u32(id).u64(0);
    let two = |offset: u64| Writer::new(3, 2, 0).tensor("a", &[8], Kind::F32, 0).tensor("b", &[8], Kind::F32, offset);
    for (file, says) in [
        (
            one(&"n".repeat(64), &[1], Kind::F32, 0),
            "tensor 1 of 1, at byte 24: its name is 64 bytes long, and 63 is the most",
        ),
        (one("t", &[1, 1, 1, 1, 1], Kind::F32, 0), "tensor \"t\", at byte 33: it has 5 dimensions, and 4 are the most"),
        (one("t", &[1 << 32, 1 << 32], Kind::F32, 0), "it has 4294967296 × 4294967296 elements, more than 2^63"),
        (one("t", &[0, 1 << 32, 1 << 32], Kind::F32, 0), "it has 0 × 4294967296 × 4294967296 elements"),
        (one("t", &[1 << 62], Kind::F64, 0), "it takes more than 2^64 bytes"),
        (one("t", &[48], Kind::Q8_0, 0), "its rows of 48 are not whole blocks of 32 elements, as Q8_0 has them"),
        (id(4), "its type 4 was taken out of ggml"),
        (id(31), "its type 31 was taken out"),
        (id(200), "its type 200 is none that is known"),
        (
            one("t", &[1], Kind::F32, 32),
            "it begins 32 bytes into the tensors, and by the sizes of those before it 0 are due",
        ),
        (
            two(0),
            "tensor \"b\", at byte 82: it begins 0 bytes into the tensors, and by the sizes of those before it 32 are due",
        ),
        (two(64), "it begins 64 bytes"),
        (
            Writer::new(3, 2, 0).tensor("a", &[8], Kind::F32, 0).tensor("a", &[8], Kind::F32, 32),
            "tensor \"a\", at byte 57: another one before it has the same name",
        ),
        (
            Writer::new(3, 3, 0)
                .tensor("a", &[1 << 60], Kind::F64, 0)
                .tensor("b", &[1 << 60], Kind::F64, 1 << 63)
                .tensor("c", &[1], Kind::F32, 0),
            "tensor \"b\", at byte 82: it ends beyond 2^64 bytes",
        ),
    ] {
        let told = file.told();
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn sums_at_the_edge_of_64_bits_do_not_overflow() {
    // Padded to 2^64 - 32, to which the place of the data is still added.
    let file =
        Writer::new(3, 2, 0).tensor("a", &[1 << 60], Kind::F64, 0).tensor("b", &[(1 << 60) - 4], Kind::F64, 1 << 63);
    assert!(file.told().contains("tensor \"b\""), "{}", file.told());
    let bits =
        Writer::new(3, 2, 0).tensor("a", &[1 << 62], Kind::Q1_0, 0).tensor("b", &[1 << 62], Kind::Q1_0, (1 << 55) * 18);
    let header = bits.read().unwrap();
    assert_eq!(header.parameters(), 1 << 63);
    assert!(header.missing() > 1 << 59);
}

#[test]
fn empty_and_scalar_tensors_are_tensors() {
    let file = Writer::new(3, 2, 0).tensor("empty", &[0, 5], Kind::F32, 0).tensor("one", &[], Kind::F32, 0).data(32, 4);
    let header = file.read().unwrap();
    assert_eq!(header.tensors.iter().map(|tensor| tensor.bytes).collect::<Vec<_>>(), [0, 4]);
    assert_eq!((header.parameters(), header.missing()), (1, 0));
}

#[test]
fn the_alignment_of_the_file_is_kept() {
    let file = Writer::new(3, 2, 1)
        .number("general.alignment", 4096)
        .tensor("a", &[1], Kind::F32, 0)
        .tensor("b", &[1], Kind::F32, 4096)
        .data(4096, 4100);
    let header = file.read().unwrap();
    assert_eq!((header.data_start, header.tensors[1].offset, header.missing()), (4096, 8192, 0));
}

/// What a bad file of endless length costs: bytes read and calls made until the sentence.
fn cost(start: Writer, again: &[u8], says: &str) -> (u64, u64) {
    let mut file = Endless::new(start.bytes, again);
    let told = gguf::read(&mut file, 1 << 50).unwrap_err().to_string();
    assert!(told.contains(says), "{told}");
    (file.read, file.calls)
}

#[test]
fn bombs_cost_little() {
    let list = |count: u64| Writer::new(3, 0, 1).text("tokenizer.ggml.tokens").u32(9).u32(8).u64(count);
    // A billion empty texts, and as many as are walked: of a little over eight bytes, and far from one another.
    let (read, calls) = cost(list(1_000_000_000), &[0], "1000000000 texts, of which 4000000 are walked");
    assert!(read <= 1 << 16 && calls < 4, "{read} bytes, {calls} calls");
    let word = |length: u64| [&length.to_le_bytes()[..], &vec![b'x'; length as usize]].concat();
    for length in [16, 100_000] {
        let (read, calls) = cost(list(MOST_STRINGS), &word(length), "longer than the 64 MiB that are read of one");
        assert!(read <= MOST_READ && calls < 10_000, "{read} bytes, {calls} calls");
    }
    // Empty ones, which are walked to their end, and then no more of them.
    let walked = list(MOST_STRINGS).raw(&vec![0; 8 * MOST_STRINGS as usize]);
    let file = Writer { bytes: [&walked.bytes[..16], &2u64.to_le_bytes(), &walked.bytes[24..]].concat(), ..walked };
    let (read, _) =
        cost(file.text("more").u32(9).u32(8).u64(1), &[0], "key \"more\", at byte 32000085: the lists up to here");
    assert!(read <= MOST_READ, "{read} bytes");
    // Long numbers are sought past.
    let file = Writer::new(3, 0, 2).text("a").u32(9).u32(10).u64(1 << 40);
    let (read, calls) = cost(file, &[0], "key 2 of 2");
    assert!(read <= 2 << 16 && calls < 6, "{read} bytes, {calls} calls");
    let (read, _) = cost(Writer::new(3, MOST_TENSORS + 1, 0), &[0], "65537 tensors, of which 65536 are read");
    assert!(read <= 1 << 16, "{read} bytes");
    cost(Writer::new(3, 0, 5000), &[0], "5000 keys, of which 4096 are read");
}

#[test]
fn what_is_kept_of_keys_has_a_bound() {
    let count = 2000;
    let file = (0..count).fold(Writer::new(3, 0, count), |file, number| {
        file.text(&format!("k{number}")).u32(9).u32(0).u64(512).raw(&[7; 512])
    });
    assert!(file.told().contains("take more than 16 MiB in memory"), "{}", file.told());
}

#[test]
fn the_most_tensors_are_read_and_decoded() {
    let file = (0..MOST_TENSORS).fold(Writer::new(3, MOST_TENSORS, 0), |file, number| {
        let name = if number == 0 { "token_embd.weight".to_owned() } else { format!("blk.{number}.attn_k.weight") };
        file.tensor(&name, &[1, 1, 1, 1], Kind::F32, number * 32)
    });
    let header = file.read().unwrap();
    assert_eq!(gguf::decode(&header).unwrap().passes.len() as u64, MOST_TENSORS + 1);
}

#[test]
fn a_reader_that_fails_is_told_with_the_place() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the card was pulled out"))
        }
    }
    impl Seek for Broken {
        fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
            Ok(0)
        }
    }
    let error = gguf::read(Broken, 100).unwrap_err();
    assert!(matches!(error, GgufError::Io { at: 0, .. }));
    assert_eq!(error.to_string(), "reading failed at byte 0: the card was pulled out");
}
