//! A real redis-server as a cache of embeddings: what fewer bits keep, hits and misses, a model that is replaced, a server far away,
//! a file of NumPy's, and that nothing is left. Skipped where there is no redis-server.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, has_keys, possible, try_sh};
use serde_json::Value;

fn can(test: &str) -> bool {
    possible(test, &[Need::Tool("redis-server")])
}

fn load(home: &Home, more: &[&str]) -> Vec<Value> {
    let words = ["load", "vectors", "--vectors", "20000", "--dim", "64", "--repeat", "1"];
    let document = home.json(&[&words[..], more].concat());
    document["vectors"].as_array().unwrap().clone()
}

fn of(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {row}"))
}

#[test]
fn fewer_bits_hold_more_and_find_less() {
    if !can("fewer_bits_hold_more_and_find_less") {
        return;
    }
    let home = Home::new();
    let work = home.work();
    let rows = load(&home, &["--on", work.to_str().unwrap(), "--operations", "6000", "--compute", "30ms"]);
    assert_eq!(rows.len(), 3);
    for row in &rows {
        has_keys(
            row,
            "format place vector_B redis_B_per_vector recall_at_10 hot vectors hit_percent ops_per_s lat_us why",
        );
        has_keys(row, "hit_us miss_us fetch_us");
        has_keys(&row["lat_us"], "p50 p95 p99");
        assert!(of(row, "redis_B_per_vector") > of(row, "vector_B"), "{row}");
        assert!((0.8..1.3).contains(&(of(row, "kept") / of(row, "hot"))), "{row}");
        assert!(of(row, "miss_us") > of(row, "hit_us"), "{row}");
        assert!(row["why"].as_str().unwrap().contains("30 ms"), "{row}");
    }
    let each = |key: &str| rows.iter().map(|row| of(row, key)).collect::<Vec<_>>();
    assert_eq!(each("vector_B"), [256.0, 64.0, 32.0]);
    assert!(
        each("hot").is_sorted() && each("hit_percent")[1..].iter().all(|hits| *hits > each("hit_percent")[0]),
        "{rows:?}"
    );
    let recall = each("recall_at_10");
    assert!(recall[0] == 1.0 && recall[1] > 0.9 && recall[2] > 0.4 && recall[2] < recall[1], "{recall:?}");
    // Zipf's law says how many of the requests the most wanted tenth gets: 2000 of 20,000 with exponent 1 are H(2000) of H(20,000), 78 %.
    let hits = each("hit_percent")[0];
    assert!((55.0..80.0).contains(&hits), "{hits}");
    let text = home.run(&["show", "last"]).code(0).out;
    assert!(text.contains("In the same memory int8 holds") && text.contains("recall"), "{text}");
    let page = work.join("page.html");
    home.run(&["report", "last", "--out", page.to_str().unwrap()]).code(0);
    assert!(std::fs::read_to_string(&page).unwrap().contains("A cache of vectors"));
    std::fs::remove_file(&page).unwrap();
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "something is left");
    home.assert_clean(&work);
}

#[test]
fn a_new_model_is_prefetched() {
    if !can("a_new_model_is_prefetched") {
        return;
    }
    let home = Home::new();
    let load = |how: &str| {
        let options = ["--away", "2ms", "--format", "int8", "--runtime", "6s", "--replace", how];
        load(&home, &options).remove(0)
    };
    let (fetched, waited) = (load("prefetch"), load("on-demand"));
    assert!(of(&fetched, "back_s") < of(&waited, "back_s"), "{fetched} {waited}");
    for row in [&fetched, &waited] {
        assert_eq!(row["place"], "2 ms away", "{row}");
        assert!(of(row, "fetch_us") > 3900.0, "twice 2 ms: {row}");
        has_keys(row, "back_s after_us");
        assert!(of(row, "back_s") > 0.0 && row["why"].as_str().unwrap().contains("its hits were back in"), "{row}");
        assert!(of(row, "break_even_hit_percent") < 20.0, "{row}");
    }
}

#[test]
fn vectors_of_numpy_are_taken() {
    if !can("vectors_of_numpy_are_taken") {
        return;
    }
    let home = Home::new();
    let file = home.path().join("some.npy");
    // A header of version 1, padded to 128 bytes, and 6300 rows of 32 floats.
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(format!("{:<117}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (6300, 32), }").bytes());
    bytes.extend(
        (0..6300u32 * 32).flat_map(|n| ((n.wrapping_mul(2_654_435_761) >> 8) as f32 / 8e6 - 1.0).to_le_bytes()),
    );
    std::fs::write(&file, bytes).unwrap();
    let words = ["load", "vectors", "--on", home.path().to_str().unwrap(), "--file", file.to_str().unwrap()];
    let document =
        home.json(&[&words[..], &["--format", "f32", "--operations", "500", "--repeat", "1", "--hot", "50"]].concat());
    let row = &document["vectors"][0];
    assert_eq!((row["vectors"].as_u64(), row["vector_B"].as_u64()), (Some(6100), Some(128)), "{row}");
}

#[test]
fn nonsense_is_one_sentence_and_ctrl_c_leaves_nothing() {
    let home = Home::new();
    let work = home.work();
    let told = |words: &[&str], code: i32, part: &str| {
        let told = home.run(&[&["load", "vectors"], words].concat()).code(code);
        assert!(told.err.contains(part), "{words:?}: {}", told.err);
    };
    let on = work.to_str().unwrap();
    told(&["--on", on, "--format", "f16", "--dry-run"], 2, "f32, int8, int4");
    told(&["--on", on, "--vectors", "10", "--dry-run"], 2, "too few");
    told(&["--on", on, "--hot", "0", "--dry-run"], 2, "--hot");
    told(&["--on", on, "--vectors", "1000", "--dim", "8", "--dry-run"], 2, "what the server has for its clients");
    told(&["--on", on, "--file", "/etc/hostname", "--dry-run"], 2, "numpy.save");
    told(&["--on", on, "--file", "/none.npy", "--dry-run"], 4, "/none.npy");
    if !can("nonsense_is_one_sentence_and_ctrl_c_leaves_nothing") {
        return;
    }
    let mut running =
        home.start(&["load", "vectors", "--on", on, "--vectors", "20000", "--dim", "64", "--runtime", "60s"]);
    running.until("it runs", || std::fs::read_dir(&work).unwrap().count() > 0);
    std::thread::sleep(std::time::Duration::from_millis(700));
    running.signal(rustix::process::Signal::INT);
    common::finish(running).code(130);
    assert_eq!(std::fs::read_dir(&work).unwrap().count(), 0, "something is left");
    assert!(try_sh(&format!("pgrep -f '[r]edis-server.*{on}'")).is_err(), "a server still runs");
    home.assert_clean(&work);
}
