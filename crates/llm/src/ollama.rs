//! Ollama's words: the bodies of its requests and the lines of its answers, as of version 0.6.8. Pure; the connection is
//! elsewhere.

use crate::client::Step;
use crate::generation::{Account, Ended, Prompt};
use crate::start::Setup;
use basics::Nanos;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Equal tokens in a row, spaces around them apart, that come before it ends an answer: the next one is not sent any more.
pub(crate) const MOST_EQUAL: usize = 31;

fn options(setup: &Setup) -> Map<String, Value> {
    let mut options = Map::new();
    options.insert("num_ctx".to_owned(), setup.context.into());
    // What is on a GPU is in no tier.
    options.insert("num_gpu".to_owned(), 0.into());
    if let Some(threads) = setup.threads {
        options.insert("num_thread".to_owned(), threads.into());
    }
    if let Some(mmap) = setup.mmap {
        options.insert("use_mmap".to_owned(), mmap.into());
    }
    options
}

/// How long a model stays after the last request: longer than anything between two of ours takes, and not for ever in a server that
/// is somebody else's, should nobody be left to put it away.
const KEPT: &str = "10m";

/// Loads a model: a request without a prompt.
pub(crate) fn load(model: &str, setup: &Setup) -> String {
    json!({ "model": model, "stream": false, "keep_alive": KEPT, "options": options(setup) }).to_string()
}

/// Puts it away.
pub(crate) fn unload(model: &str) -> String {
    json!({ "model": model, "stream": false, "keep_alive": 0 }).to_string()
}

/// Makes a model of a blob that is in its folder.
pub(crate) fn create(model: &str, digest: &str) -> String {
    json!({ "model": model, "stream": false, "files": { "model.gguf": digest } }).to_string()
}

pub(crate) fn generate(model: &str, setup: &Setup, prompt: &Prompt) -> String {
    let mut options = options(setup);
    options.insert("num_predict".to_owned(), prompt.tokens.get().into());
    options.insert("temperature".to_owned(), 0.into());
    options.insert("seed".to_owned(), prompt.seed.into());
    if prompt.varied {
        // Added to a token's logit once for each time that it is among the last 64.
        options.insert("frequency_penalty".to_owned(), 2.into());
        options.insert("repeat_last_n".to_owned(), 64.into());
    }
    let body = json!({
        "model": model, "prompt": prompt.text, "raw": true, "stream": true, "keep_alive": KEPT, "options": options,
    });
    body.to_string()
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    response: String,
    done: Option<bool>,
    done_reason: Option<String>,
    error: Option<String>,
    total_duration: Option<u64>,
    load_duration: Option<u64>,
    // A zero is left out.
    #[serde(default)]
    prompt_eval_count: u64,
    #[serde(default)]
    prompt_eval_duration: u64,
    #[serde(default)]
    eval_count: u64,
    #[serde(default)]
    eval_duration: u64,
}

/// What a line of the answer to [`generate`] means, or none when it means nothing.
pub(crate) fn step(line: &str) -> Option<Step> {
    let line: Line = serde_json::from_str(line).ok()?;
    if let Some(error) = line.error {
        return Some(Step::Refused(error));
    }
    if !line.done? {
        return Some(Step::Token(line.response));
    }
    let account = Account {
        total: line.total_duration.map(Nanos),
        load: line.load_duration.map(Nanos),
        prompt_tokens: line.prompt_eval_count,
        prompt_time: Nanos(line.prompt_eval_duration),
        tokens: line.eval_count,
        generate_time: Nanos(line.eval_duration),
    };
    let ended = match line.done_reason.as_deref() {
        Some("length") => Ended::Asked,
        Some("stop") => Ended::OwnEnd,
        _ => Ended::NoAccount,
    };
    Some(Step::Done(ended, account))
}

fn says(answer: &str, key: &str, value: impl Into<Value>) -> bool {
    serde_json::from_str(answer).is_ok_and(|answer: Value| answer.get(key) == Some(&value.into()))
}

/// Whether the answer to [`create`] says that it was done.
pub(crate) fn is_created(answer: &str) -> bool {
    says(answer, "status", "success")
}

/// Whether the answer to [`load`] says that it was done.
pub(crate) fn is_loaded(answer: &str) -> bool {
    says(answer, "done", true)
}

/// Asks about a model.
pub(crate) fn show(model: &str) -> String {
    json!({ "model": model }).to_string()
}

/// The file of weights in the answer to [`show`]: the first `FROM` of its model file that is a path.
pub(crate) fn shown_file(answer: &str) -> Option<PathBuf> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let lines = answer.get("modelfile")?.as_str()?.lines();
    let paths = lines.filter_map(|line| line.strip_prefix("FROM ")).map(|path| PathBuf::from(path.trim()));
    paths.into_iter().find(|path| path.is_absolute())
}

/// The names of models in an answer of `/api/tags` or `/api/ps`.
pub(crate) fn names(answer: &str) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Models {
        models: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        name: String,
    }
    let models: Models = serde_json::from_str(answer).ok()?;
    Some(models.models.into_iter().map(|model| model.name).collect())
}

/// The whole name of a model: the tag is `latest` when none is given.
pub(crate) fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains(':') { name.to_owned() } else { format!("{name}:latest") }
}
