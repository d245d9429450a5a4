//! One self-contained HTML file: the answer first, the reason second, the evidence one step away, the raw figures for
//! whoever asks. Offline (a content security policy forbids every fetch), printable, light and dark, from 360 px up.
//! The words and tables stand in the page itself; only charts and the download need its script.

mod charts;
pub(crate) mod check;
mod finding;
mod load;
pub(crate) mod page;
mod pipe;
mod redis;
mod run;
mod sweeps;
mod timeline;
mod tokens;

use crate::view::view;
use flate2::read::DeflateDecoder;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use record::Record;
use serde::Serialize;
use std::io::Read;
use study::{CheckStudy, Finding, RunView, StepSummary};

/// A run with what `study` says of it, asked once.
pub(crate) struct Entry<'a> {
    pub record: &'a Record,
    pub view: RunView<'a>,
    pub steps: Vec<StepSummary>,
    /// Most important first; the remarks of another run than a check stand at its steps.
    pub findings: Vec<Finding>,
    /// Of a `check` only.
    pub study: Option<CheckStudy>,
}

impl<'a> Entry<'a> {
    pub fn new(record: &'a Record) -> Self {
        let view = view(record);
        let study = (record.run.plan.method == "check").then(|| study::explain(&view));
        let findings = match &study {
            Some(study) => study.each_finding().into_iter().cloned().collect(),
            None => study::findings(&view).into_iter().filter(|finding| !finding.is_remark()).collect(),
        };
        Entry { record, steps: view.steps.iter().map(study::summarise).collect(), view, findings, study }
    }
}

/// The template's world.
#[derive(Serialize)]
struct Whole {
    page: page::Page,
    css: String,
    js: String,
    plotly: String,
    data: String,
}

/// The report of one run or of several side by side, the first of them being the one that the headline speaks of, with what
/// `study` has to say of each and of one beside the other.
pub fn report(records: &[&Record]) -> String {
    let entries: Vec<Entry<'_>> = records.iter().map(|record| Entry::new(record)).collect();
    let page = page::page(&entries);
    let whole = Whole {
        css: include_str!("../../templates/report.css").to_owned(),
        js: concat!(
            include_str!("../../templates/tokens.js"),
            include_str!("../../templates/redis.js"),
            include_str!("../../templates/report.js")
        )
        .to_owned(),
        plotly: if page.has_charts || page.has_tokens { plotly_js() } else { String::new() },
        data: script_json(&charts::data(&entries, &page)),
        page,
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let rendered = environment.render_str(include_str!("../../templates/report.html"), Serde(&whole));
    match rendered {
        Ok(html) => html,
        // The template is part of the program and a test renders it with every section: this would be a bug, and
        // the reader is better served by its message than by a lost run.
        Err(error) => {
            format!("<!doctype html><title>tiermark</title><pre>the report's template failed: {error:#?}</pre>")
        }
    }
}

/// JSON that may stand in a `<script>`: nothing in it can end the element or start a comment.
fn script_json(value: &serde_json::Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// plotly.js as `build.rs` packs it.
fn plotly_js() -> String {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.js.deflate"));
    let mut script = String::new();
    // What was packed when this was built unpacks, as a test sees; a page without charts would still hold every figure.
    match DeflateDecoder::new(packed).read_to_string(&mut script) {
        Ok(_) => script,
        Err(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_leave_its_script() {
        let text = script_json(&serde_json::json!({"path": "/mnt/</script><img src=x>&\u{2028}"}));
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["path"], "/mnt/</script><img src=x>&\u{2028}");
    }

    #[test]
    fn plotly_is_whole_and_alone() {
        let js = plotly_js();
        assert!(js.trim_start().starts_with("/**") && js.contains("plotly.js v"), "{}", &js[..200]);
        assert!(js.len() > 3_000_000 && !js.contains("MathJax.loader"));
    }
}
