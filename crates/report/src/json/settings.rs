//! `apply --json`, `revert --json`, `status --json`.

use super::Object;
use super::advise::change;
use crate::settings::Outcome;
use change::lasting::{Applied, Held, Status, Took};
use serde_json::Value;

/// What was written, or would be.
pub fn applied(outcome: &Outcome<'_>, dry_run: bool) -> Value {
    let planned = outcome.planned;
    let file = |edit: &change::lasting::Edit| {
        let way_back = edit.way_back.as_ref().map(|path| path.display().to_string());
        Object::default()
            .with("path", edit.path.display().to_string())
            .with("diff", edit.diff())
            .maybe("way_back", way_back)
            .build()
    };
    let rule = |settings: &change::lasting::Settings| {
        Object::default()
            .with("rule", settings.rule.as_str())
            .with("title", settings.title.as_str())
            .with("changes", settings.wanted.iter().map(change).collect::<Value>())
            .build()
    };
    let live = |live: &change::lasting::Live| {
        Object::default()
            .with("path", live.path.display().to_string())
            .with("before", live.before.as_str())
            .with("wanted", live.wanted.as_str())
            .build()
    };
    let refused = |(rule, why): &(String, String)| {
        Object::default().with("rule", rule.as_str()).with("why", why.as_str()).build()
    };
    Object::default()
        .with("schema", "tiermark.applied/1")
        .with("dry_run", dry_run)
        .maybe("id", outcome.id)
        .with("rules", planned.settings.iter().map(rule).collect::<Value>())
        .with("files", planned.edits.iter().map(file).collect::<Value>())
        .with("at_once", planned.live.iter().map(live).collect::<Value>())
        .with("refused", outcome.refused.iter().map(refused).collect::<Value>())
        .with("then", planned.then.iter().map(String::as_str).collect::<Value>())
        .build()
}

fn rules(applied: &Applied) -> Value {
    applied.settings.iter().map(|settings| settings.rule.as_str()).collect()
}

/// What was taken back.
pub fn reverted(all: &[Applied]) -> Value {
    let one = |applied: &Applied| {
        let files: Value = applied.edits.iter().map(|edit| edit.path.display().to_string()).collect();
        Object::default().with("id", applied.id.as_str()).with("rules", rules(applied)).with("files", files).build()
    };
    Object::default()
        .with("schema", "tiermark.reverted/1")
        .with("reverted", all.iter().map(one).collect::<Value>())
        .build()
}

/// What became of what was applied.
pub fn status(all: &[Status]) -> Value {
    let one = |status: &Status| {
        let files = status.files.iter().map(|(path, held)| {
            Object::default().with("path", path.display().to_string()).with("state", held_name(*held)).build()
        });
        let settings = status.settings.iter().map(|(rule, wanted, took)| {
            Object::default()
                .with("rule", rule.as_str())
                .with("change", change(wanted))
                .with("state", took_name(*took))
                .build()
        });
        Object::default()
            .with("id", status.applied.id.as_str())
            .with("at_s", status.applied.at)
            .with("rules", rules(&status.applied))
            .with("state", state(status))
            .with("files", files.collect::<Value>())
            .with("settings", settings.collect::<Value>())
            .build()
    };
    Object::default()
        .with("schema", "tiermark.status/1")
        .with("applied", all.iter().map(one).collect::<Value>())
        .build()
}

fn held_name(held: Held) -> &'static str {
    match held {
        Held::AsApplied => "as-applied",
        Held::Edited => "edited",
        Held::Drifted => "drifted",
        Held::Unreadable => "unreadable",
    }
}

fn took_name(took: Took) -> &'static str {
    match took {
        Took::Yes => "holds",
        Took::Waits => "waiting",
        Took::No => "not-taken",
        Took::Unknown => "unknown",
    }
}

/// The worst of it.
fn state(status: &Status) -> &'static str {
    let file = |wanted| status.files.iter().any(|(_, held)| *held == wanted);
    let setting = |wanted| status.settings.iter().any(|(.., took)| *took == wanted);
    if file(Held::Drifted) || file(Held::Unreadable) {
        "drifted"
    } else if setting(Took::No) {
        "not-taken"
    } else if setting(Took::Waits) {
        "waiting"
    } else {
        "applied"
    }
}
