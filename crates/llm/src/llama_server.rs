//! The words of llama.cpp's `llama-server`: the body of a request for a completion, and the events of its answer. Pure; the
//! connection is elsewhere.

use crate::client::Step;
use crate::generation::{Account, Ended, Prompt};
use basics::Nanos;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

pub(crate) fn completion(prompt: &Prompt) -> String {
    let mut body = json!({
        "prompt": prompt.text, "n_predict": prompt.tokens, "temperature": 0, "seed": prompt.seed, "stream": true,
        "ignore_eos": true, "cache_prompt": false,
    });
    if prompt.varied {
        body["frequency_penalty"] = 2.into();
        body["repeat_last_n"] = 64.into();
    }
    body.to_string()
}

/// The file of weights in an answer of `/props`.
pub(crate) fn shown_file(answer: &str) -> Option<PathBuf> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    let path = PathBuf::from(answer.get("model_path")?.as_str()?);
    path.is_absolute().then_some(path)
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    content: String,
    stop: Option<bool>,
    stop_type: Option<String>,
    error: Option<Value>,
    timings: Option<Timings>,
}

#[derive(Deserialize)]
struct Timings {
    prompt_n: u64,
    prompt_ms: f64,
    predicted_n: u64,
    predicted_ms: f64,
}

fn nanos(ms: f64) -> Nanos {
    Nanos((ms * 1e6).max(0.0) as u64)
}

/// What a line of the answer to [`completion`] means, or none when it means nothing.
pub(crate) fn step(line: &str) -> Option<Step> {
    let (kind, data) = line.split_once(':').unwrap_or((line, ""));
    let data = data.trim();
    match kind {
        "data" if data != "[DONE]" && data != "null" => {}
        "error" => return Some(Step::Refused(said(data))),
        // Between events; a comment, which keeps the connection awake; other fields of an event.
        "" | "data" | "event" | "id" | "retry" => return Some(Step::Nothing),
        _ => return None,
    }
    let event: Event = serde_json::from_str(data).ok()?;
    if event.error.is_some() {
        return Some(Step::Refused(said(data)));
    }
    if !event.stop? {
        return Some(Step::Token(event.content));
    }
    let timings = event.timings?;
    let account = Account {
        total: None,
        load: None,
        prompt_tokens: timings.prompt_n,
        prompt_time: nanos(timings.prompt_ms),
        tokens: timings.predicted_n,
        generate_time: nanos(timings.predicted_ms),
    };
    let ended = match event.stop_type.as_deref() {
        Some("eos" | "word") => Ended::OwnEnd,
        _ => Ended::Asked,
    };
    Some(Step::Done(ended, account))
}

/// The sentence in `{"error":"…"}`, `{"error":{"message":"…"}}` or `{"message":"…"}`; other text as it is.
pub(crate) fn said(text: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let error = value.get("error").unwrap_or(&value);
    error.as_str().or_else(|| error.get("message")?.as_str()).map_or_else(|| text.to_owned(), str::to_owned)
}

/// The names of models in an answer of `/v1/models`.
pub(crate) fn names(answer: &str) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    struct Models {
        data: Vec<Model>,
    }
    #[derive(Deserialize)]
    struct Model {
        id: String,
    }
    let models: Models = serde_json::from_str(answer).ok()?;
    Some(models.data.into_iter().map(|model| model.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with the keys that `tools/server/server-task.cpp` writes (llama.cpp of 2026); no server gave them.
    #[test]
    fn events_are_tokens_and_an_account() {
        let token = r#"data: {"index":0,"content":" a","tokens":[5],"stop":false,"id_slot":0,"tokens_predicted":1,"tokens_evaluated":4}"#;
        assert_eq!(step(token), Some(Step::Token(" a".to_owned())));
        let account = Account {
            total: None,
            load: None,
            prompt_tokens: 4,
            prompt_time: Nanos(21_500_000),
            tokens: 8,
            generate_time: Nanos(70_250_000),
        };
        for (kind, ended) in [("limit", Ended::Asked), ("eos", Ended::OwnEnd), ("word", Ended::OwnEnd)] {
            let end = format!(
                r#"data: {{"content":"","stop":true,"stop_type":"{kind}","prompt":"x","timings":{{"cache_n":0,"prompt_n":4,
                "prompt_ms":21.5,"prompt_per_second":186.0,"predicted_n":8,"predicted_ms":70.25}}}}"#
            );
            assert_eq!(step(&end), Some(Step::Done(ended, account)));
        }
        assert!(
            ["", ": awake", "data: [DONE]", "data: null", "event: x"]
                .iter()
                .all(|line| step(line) == Some(Step::Nothing))
        );
        for refused in ["error: ", "data: {\"error\":"] {
            let line =
                format!("{refused}{{\"code\":400,\"message\":\"too long\"}}{}", &"}"[..usize::from(refused.len() > 8)]);
            assert_eq!(step(&line), Some(Step::Refused("too long".to_owned())), "{line}");
        }
        let nonsense = ["what", "data: ", "data: {}", "data: {\"stop\":true}", "data: 3", "<html>: x"];
        assert!(nonsense.iter().all(|line| step(line).is_none()));
    }

    #[test]
    fn the_prompt_is_computed_each_time_and_its_end_is_passed_over() {
        let tokens = std::num::NonZeroU32::MIN;
        let mut prompt = Prompt { text: "a\n\"b".to_owned(), tokens, seed: 3, varied: false };
        let body: Value = serde_json::from_str(&completion(&prompt)).unwrap();
        let wanted = json!({ "prompt": "a\n\"b", "n_predict": 1, "temperature": 0, "seed": 3, "stream": true, "ignore_eos": true,
                             "cache_prompt": false });
        assert_eq!(body, wanted);
        prompt.varied = true;
        assert!(completion(&prompt).contains("\"frequency_penalty\":2"));
    }
}
