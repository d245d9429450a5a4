//! Language models: decoding without one, a real runner where there is one, and what is predicted of both. Each situation is
//! brought about and must be told by its own sentence.
#![forbid(unsafe_code)]

mod common;

use common::machine::{alone, machine};
use common::{Home, Need, Place, has_keys, possible};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// 120 MB of weights.
const SHAPE: &str = "layers=8,embd=1024,ffn=2816,vocab=8000,quant=Q8_0";

fn can(test: &str) -> bool {
    if !possible(test, &[Need::Root, Need::Loops]) {
        return false;
    }
    let v2 = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    let cgroup = v2.contains("memory") || Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists();
    if !Path::new("/sys/class/zram-control/hot_add").exists() || !cgroup {
        println!("SKIP {test}: needs zram and a memory cgroup");
        return false;
    }
    true
}

fn decode(place: &Place, options: &[&str]) -> Vec<Value> {
    decode_so_many(place, "8", options)
}

fn decode_so_many(place: &Place, tokens: &str, options: &[&str]) -> Vec<Value> {
    let words = ["load", "decode", "--shape", SHAPE, "--prompt", "2", "--tokens", tokens, "--runtime", "25s"];
    let document = place.home.json(&[&words, options].concat());
    document["rows"].as_array().unwrap().clone()
}

fn of(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} is not in {row}"))
}

#[test]
fn each_situation_is_told_by_its_sentence() {
    if !can("each_situation_is_told_by_its_sentence") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let zswap = format!("zswap+{}", work.display());
    let why = |row: &Value| row["why"].as_str().unwrap().to_owned();

    // As many as take longer than the machine is looked at twice, ten times a second.
    let fits = decode_so_many(&place, "100", &["--swap", "none", "--memory", "512M"]);
    has_keys(&fits[0], "tier model total_s load_s tps ttft_s cpu_percent iowait_percent bytes_per_token why");
    assert!(why(&fits[0]).starts_with("fits: the tier does not matter"), "{}", why(&fits[0]));

    let tiers = ["none", "optane-pi5", "zram", &zswap];
    let options: Vec<&str> = tiers.iter().flat_map(|tier| ["--swap", tier]).chain(["--memory", "72M"]).collect();
    let rows = decode(&place, &options);
    assert!(why(&rows[0]).starts_with("does not fit"), "{}", why(&rows[0]));
    assert!(rows[0].get("tps").is_none(), "{}", rows[0]);
    let swapped = why(&rows[1]);
    assert!(swapped.contains("anonymous weights go through swap") && swapped.contains("readahead ends"), "{swapped}");
    has_keys(&rows[1], "bound_tps share_of_bound disk_MBps");
    assert!(of(&rows[1], "bytes_per_token") > 20e6 && of(&rows[1], "share_of_bound") <= 1.1, "{}", rows[1]);
    assert!(why(&rows[2]).starts_with("compressed memory is taken from"), "{}", why(&rows[2]));
    // Where the disk is slow to write it answers all of it, where not, less than half.
    assert!(why(&rows[3]).contains("zswap") || why(&rows[3]).contains("anonymous"), "{}", why(&rows[3]));
    let seen = place.home.last().steps[1].load.clone().unwrap().generated.unwrap();
    assert!(seen.tokens.is_sorted() && !seen.lay.is_empty(), "{seen:?}");
    assert!(seen.lay.iter().any(|lay| lay.swap.0 > 20 << 20), "{:?}", seen.lay);

    // What is mapped leaves no swap to go to: room for more tokens would not fit.
    let mapped = decode(&place, &["--swap", "optane-pi5", "--memory", "72M", "--mapped", "--context", "64"]);
    assert!(why(&mapped[0]).starts_with("clean file pages are dropped and read again"), "{}", why(&mapped[0]));
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
}

#[test]
fn a_purchase_is_predicted_from_published_figures() {
    let home = Home::new();
    let words = ["predict", "llm", "--model", "gemma2:2b", "--ram", "4G", "--lock", "2.8GB", "--on", "optane-pi5"];
    let document = home.json(&[&words[..], &["--on", "nvme-usb3-pi5"]].concat());
    let rows = document["rows"].as_array().unwrap();
    for row in rows {
        has_keys(row, "model profile tps tps_low tps_high why");
        assert!(of(row, "tps_low") <= of(row, "tps") && of(row, "tps") <= of(row, "tps_high"), "{row}");
    }
    // The article: 0.355 on Optane, 0.078 on its array of SSDs over USB.
    assert!((of(&rows[0], "tps_low")..of(&rows[0], "tps_high")).contains(&0.355), "{}", rows[0]);
    assert!((of(&rows[1], "tps_low")..of(&rows[1], "tps_high")).contains(&0.078), "{}", rows[1]);
    assert!(document["beside"][0].as_str().unwrap().contains("times faster"), "{document}");
    let text = home.run(&words).code(0).out;
    assert!(text.contains("gemma2:2b") && text.contains("thrash"), "{text}");
    // With all memory it fits, and the disk is no matter.
    let ample = home.json(&["predict", "decode", "--model", "gemma2:2b", "--ram", "8G", "--on", "sd-evo-pi5"]);
    assert!(ample["rows"][0]["why"].as_str().unwrap().contains("fits"), "{ample}");
}

#[test]
fn nonsense_gets_one_sentence() {
    let home = Home::new();
    let told = |words: &[&str], code: i32, part: &str| {
        let told = home.run(words).code(code);
        assert!(told.err.lines().count() <= 3 && told.err.contains(part), "{words:?}: {}", told.err);
    };
    told(&["load", "decode", "--model", "/none.gguf", "--dry-run"], 4, "/none.gguf");
    told(&["load", "decode", "--model", "/etc/hostname", "--dry-run"], 2, "/etc/hostname");
    told(&["load", "decode", "--shape", "layers=3", "--dry-run"], 2, "embd");
    told(&["load", "decode", "--shape", SHAPE, "--swap", "none", "--mapped", "--dry-run"], 2, "mapped");
    told(&["load", "llm", "--model", "/none.gguf", "--program", "/bin/true", "--dry-run"], 4, "/none.gguf");
    told(&["load", "llm", "--model", "m.gguf", "--program", "/none/ollama", "--dry-run"], 4, "/none/ollama");
    told(&["predict", "llm", "--model", "gemma9:77b", "--on", "optane-pi5"], 2, "gemma9:77b");
    told(&["predict", "llm", "--model", "gemma2:2b", "--on", "no-such-disk"], 2, "no-such-disk");
    told(&["predict", "llm", "--model", "gemma2:2b", "--on", "optane-pi5", "--ram", "2G", "--lock", "3G"], 2, "--lock");
}

#[test]
fn a_probe_predicts_without_running_the_model() {
    if !can("a_probe_predicts_without_running_the_model") {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let shape = "layers=24,embd=1024,ffn=2816,vocab=8000,quant=Q8_0";
    let words = ["predict", "decode", "--shape", shape, "--probe", "--memory", "200M", "--on", "optane-pi5"];
    let document = place.home.json(&words);
    let row = &document["rows"][0];
    assert!(of(row, "tps") > 0.0 && of(row, "tps_low") <= of(row, "tps_high"), "{row}");
    assert!(row["why"].as_str().unwrap().contains("reads"), "{row}");
    assert_eq!(machine(), before);
    place.home.assert_clean(&place.home.work());
}

/// Where the program is said by `TIERMARK_OLLAMA`, or in the folders of `PATH`.
fn ollama() -> Option<PathBuf> {
    let said = std::env::var_os("TIERMARK_OLLAMA").map(PathBuf::from);
    said.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|dir| dir.join("ollama")).find(|file| file.is_file())
    })
}

/// A small model of random weights, and a prompt for it.
fn made_up(work: &Path) -> (PathBuf, String) {
    let (layers, embd, ffn, heads, kv_heads) = (4, 512, 1408, 8, 8);
    let (vocab, context, quant, seed) = (4096, 256, llm::Quant::Q8_0, 1);
    let model = llm::MadeUp { layers, embd, ffn, heads, kv_heads, vocab, context, quant, seed };
    let file = work.join("random.gguf");
    model.write(&file, &std::sync::atomic::AtomicBool::new(false)).unwrap();
    (file, model.prompt(8))
}

#[test]
fn a_real_runner_makes_tokens_and_leaves_nothing() {
    let test = "a_real_runner_makes_tokens_and_leaves_nothing";
    if !can(test) {
        return;
    }
    let Some(program) = ollama() else {
        println!("SKIP {test}: needs Ollama; TIERMARK_OLLAMA says where it is");
        return;
    };
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let (file, prompt) = made_up(&work);
    let words =
        ["load", "llm", "--program", program.to_str().unwrap(), "--model", file.to_str().unwrap(), "--tokens", "6"];
    let rest = ["--random-weights", "--context", "64", "--memory", "1G", "--swap", "none", "--prompt", &prompt];
    let document = place.home.json(&[&words[..], &rest].concat());
    let row = &document["rows"][0];
    has_keys(row, "tier model total_s load_s tps ttft_s why");
    assert!(of(row, "tps") > 0.0, "{row}");
    let seen = place.home.last().steps[0].load.clone().unwrap().generated.unwrap();
    assert!(seen.tokens.len() >= 2 && !seen.lay.is_empty(), "{seen:?}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
}

/// llama.cpp copies quantised weights into an order that suits the processor, and keeps the file mapped beside.
#[test]
fn a_runner_that_repacks_is_told() {
    let test = "a_runner_that_repacks_is_told";
    if !can(test) {
        return;
    }
    let Some(program) = std::env::var_os("TIERMARK_LLAMA_SERVER").map(PathBuf::from) else {
        println!("SKIP {test}: needs llama-server; TIERMARK_LLAMA_SERVER says where it is");
        return;
    };
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let (layers, embd, ffn, heads, kv_heads) = (12, 1024, 2816, 16, 16);
    let (vocab, context, quant, seed) = (8000, 256, llm::Quant::Q4_0, 1);
    let model = llm::MadeUp { layers, embd, ffn, heads, kv_heads, vocab, context, quant, seed };
    let file = work.join("random.gguf");
    model.write(&file, &std::sync::atomic::AtomicBool::new(false)).unwrap();
    let words = ["load", "llm", "--runner", "llama-server", "--program", program.to_str().unwrap(), "--tokens", "6"];
    let rest = ["--model", file.to_str().unwrap(), "--random-weights", "--context", "64", "--prompt", &model.prompt(8)];
    let document = place.home.json(&[&words[..], &rest, &["--memory", "90M", "--swap", "optane-pi5"]].concat());
    let row = &document["rows"][0];
    assert!(row["why"].as_str().unwrap().starts_with("the runner repacks: "), "{row}");
    assert!(of(row, "prompt_tps") > 0.0, "{row}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
}

/// Ended with the test.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        // Asked, since it has a child of its own to end.
        let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.0), rustix::process::Signal::TERM);
        let _ = self.0.wait();
    }
}

#[test]
fn a_runner_that_runs_already_is_asked_and_stays() {
    let test = "a_runner_that_runs_already_is_asked_and_stays";
    if !can(test) {
        return;
    }
    let Some(program) = ollama() else {
        println!("SKIP {test}: needs Ollama; TIERMARK_OLLAMA says where it is");
        return;
    };
    let _alone = alone();
    let place = Place::new();
    let before = machine();
    let work = place.home.work();
    let (file, prompt) = made_up(&work);
    let at = format!("127.0.0.1:{}", llm::free_port().unwrap());
    let command = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(words).env("OLLAMA_HOST", &at).env("HOME", &work).env("OLLAMA_MODELS", work.join("models"));
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    let mut serving = Serving(command(&["serve"]).spawn().unwrap());
    let recipe = work.join("recipe");
    std::fs::write(&recipe, format!("FROM {}\n", file.display())).unwrap();
    let create = || command(&["create", "made-up", "-f", recipe.to_str().unwrap()]).status().unwrap().success();
    let made = (0..100).any(|_| {
        create() || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            false
        }
    });
    assert!(made, "Ollama at {at} made no model");

    let words = ["load", "llm", "--server", &at, "--model", "made-up", "--tokens", "6", "--random-weights"];
    let rest = ["--context", "64", "--prompt", &prompt, "--lock", "64M"];
    let document = place.home.json(&[&words[..], &rest].concat());
    let row = &document["rows"][0];
    has_keys(row, "tier model total_s load_s tps ttft_s touched_per_token why");
    assert_eq!((row["tier"].as_str(), row["model"].as_str()), (Some("own"), Some("made-up")), "{row}");
    assert!(of(row, "tps") > 0.0 && of(row, "load_s") > 0.0, "{row}");
    assert!(serving.0.try_wait().unwrap().is_none(), "it runs on");

    let told = |words: &[&str], code: i32, part: &str| {
        let told = place.home.run(words).code(code);
        assert!(told.err.contains(part), "{words:?}: {}", told.err);
    };
    told(&["load", "llm", "--server", &at, "--model", "nobodys"], 4, "nobodys");
    told(&["load", "llm", "--server", &at, "--model", "made-up", "--memory", "1G"], 2, "--memory");
    told(&["load", "llm", "--server", "192.0.2.1:80", "--model", "made-up"], 2, "loopback");
    drop(serving);
    std::fs::remove_dir_all(work.join("models")).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_file(&recipe).unwrap();
    let _ = std::fs::remove_dir_all(work.join(".ollama"));
    assert_eq!(machine(), before);
    place.home.assert_clean(&work);
}
