//! Damage at random to what a record is read from: an export changed, cut or spliced never comes in by halves, and a spool
//! gives back whole entries or nothing. `./test --full` tries some hundred times as many cases.
#![forbid(unsafe_code)]

mod common;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;
use record::Store;
use std::io::{Read, Write};

fn cases(few: u32) -> ProptestConfig {
    let full = std::env::var_os("TIERMARK_TEST_FULL").is_some();
    let cases = if full { few * 100 } else { few };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// What is done to a file: where, how many bytes go, what comes instead.
type Damage = Vec<(Index, usize, Vec<u8>)>;

fn damage() -> impl Strategy<Value = Damage> {
    let odd = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        "[0-9eE+.\\-]{1,25}".prop_map(String::into_bytes),
        prop::sample::select(vec!["null", "\"", "{", "}", "[]", "\n", "18446744073709551616", "1e999", "\\u0000"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec((any::<Index>(), 0usize..12, odd), 1..6)
}

fn damaged(bytes: &[u8], damage: &Damage) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, gone, instead) in damage {
        let at = at.index(bytes.len() + 1);
        let end = (at + gone).min(bytes.len());
        bytes.splice(at..end, instead.iter().copied());
    }
    bytes
}

/// An import either brings in one run that can be read whole, or tells why in a sentence and changes nothing.
fn comes_in_whole_or_not(store: &mut Store, file: &[u8]) {
    let before = store.runs().unwrap();
    match store.import(file) {
        Ok(id) => series_of_an_engine(&store.load(&id).unwrap()),
        Err(error) => {
            let sentence = error.to_string();
            assert!(sentence.len() < 600 && !sentence.contains('\n'), "{sentence}");
            assert_eq!(store.runs().unwrap(), before, "{sentence}");
        }
    }
    drop(store.begin(&common::run()).expect("no transaction is left open"));
}

/// What study may rely on: jobs that an engine would take, intervals that follow each other within their step.
fn series_of_an_engine(record: &record::Record) {
    for step in &record.steps {
        step.job.check().unwrap();
        let mut until = basics::Nanos(0);
        for (_, interval) in record.intervals.iter().filter(|(index, _)| *index == step.index) {
            assert!(until <= interval.start && interval.start <= interval.end);
            until = interval.end;
        }
        assert!(until.0 <= step.elapsed.0.saturating_add(step.job.interval.0));
    }
    let known = |index| record.steps.iter().any(|step| step.index == index);
    assert!(record.intervals.iter().all(|(index, _)| known(*index)));
}

/// A store, an export of its run, and the text within.
fn exported(dir: &std::path::Path) -> (Vec<u8>, Vec<u8>) {
    let mut store = Store::open(&dir.join("here.db")).unwrap();
    let id = common::done(&mut store);
    let (mut file, mut text) = (Vec::new(), Vec::new());
    store.export(&id, &mut file).unwrap();
    GzDecoder::new(&file[..]).read_to_end(&mut text).unwrap();
    (file, text)
}

/// Random damage seldom hits a number: here it is nothing else.
#[test]
fn an_export_whose_times_were_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (_, text) = exported(dir.path());
    let text = String::from_utf8(text).unwrap();
    let there = std::cell::RefCell::new(Store::open(&dir.path().join("there.db")).unwrap());
    let mut runner = proptest::test_runner::TestRunner::new(cases(48));
    let key = prop::sample::select(vec!["\"start\":", "\"end\":", "\"interval\":", "\"elapsed\":", "\"step\":"]);
    let number = prop_oneof![Just(0), Just(u64::MAX), any::<u64>(), 0..1_000_000_000u64];
    let tried = runner.run(&(key, any::<Index>(), number), |(key, which, number)| {
        let places: Vec<usize> = text.match_indices(key).map(|(at, _)| at + key.len()).collect();
        let at = places[which.index(places.len())];
        let digits = text[at..].bytes().take_while(u8::is_ascii_digit).count();
        let changed = format!("{}{number}{}", &text[..at], &text[at + digits..]);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(changed.as_bytes()).unwrap();
        comes_in_whole_or_not(&mut there.borrow_mut(), &packed.finish().unwrap());
        Ok(())
    });
    tried.unwrap();
}

#[test]
fn an_export_that_was_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let (file, text) = exported(dir.path());
    let mut runner = proptest::test_runner::TestRunner::new(cases(24));
    let strategy = (any::<bool>(), damage(), any::<u32>());
    let tried = runner.run(&strategy, |(within, damage, number)| {
        let path = dir.path().join(format!("there-{number}.db"));
        let mut there = Store::open(&path).unwrap();
        let bytes = if within {
            let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(&damaged(&text, &damage)).unwrap();
            packed.finish().unwrap()
        } else {
            damaged(&file, &damage)
        };
        comes_in_whole_or_not(&mut there, &bytes);
        drop(there);
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        Ok(())
    });
    tried.unwrap();
}
