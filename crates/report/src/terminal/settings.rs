//! What would be set, what was, and what became of it.

use super::Style;
use super::lay::Tone;
use crate::settings::Outcome;
use change::lasting::{Applied, Held, Status, Took};
use std::path::Path;

/// Each file as a diff, and what cannot be done.
pub fn plan_of_settings(outcome: &Outcome<'_>, style: &Style) -> String {
    let planned = outcome.planned;
    let mut out = String::new();
    for settings in &planned.settings {
        out.push_str(&style.paragraph(&format!("{}  ", settings.rule), &settings.title, Tone::Strong));
    }
    for edit in &planned.edits {
        out.push('\n');
        for line in edit.diff().lines() {
            out.push_str(&style.plain(line));
            out.push('\n');
        }
        if let Some(way_back) = &edit.way_back {
            out.push_str(&style.paragraph("  way back  ", &way_back.display().to_string(), Tone::Faint));
        }
    }
    if !planned.live.is_empty() {
        out.push('\n');
    }
    for live in &planned.live {
        let text = format!("{}: {} → {}", live.path.display(), live.before, live.wanted);
        out.push_str(&style.paragraph("at once  ", &text, Tone::Plain));
    }
    for (rule, why) in outcome.refused {
        out.push_str(&style.paragraph(&format!("{rule}  "), &format!("cannot be applied: {why}"), Tone::Fair));
    }
    if planned.edits.is_empty() && planned.live.is_empty() && outcome.refused.is_empty() {
        out.push_str("nothing to change\n");
    }
    out
}

/// What was written, and how it goes again.
pub fn applied(applied: &Applied, root: &Path, style: &Style) -> String {
    let below = if root == Path::new("/") { String::new() } else { format!(" --root {}", root.display()) };
    let mut out = String::from("\n");
    let files = if applied.edits.len() == 1 { "1 file".to_owned() } else { format!("{} files", applied.edits.len()) };
    let text = format!("{files}; `tiermark revert {}{below}` takes it back", applied.id);
    out.push_str(&style.paragraph(&format!("applied as {}  ", applied.id), &text, Tone::Good));
    for command in &applied.then {
        out.push_str(&style.paragraph("then  ", command, Tone::Fair));
    }
    out.push_str(&style.paragraph("", &format!("`tiermark status{below}` says what waits for a reboot"), Tone::Faint));
    out
}

/// What was taken back.
pub fn reverted(applied: &Applied, style: &Style) -> String {
    let rules: Vec<&str> = applied.settings.iter().map(|settings| settings.rule.as_str()).collect();
    let mut out = style.paragraph(&format!("reverted {}  ", applied.id), &rules.join(", "), Tone::Good);
    for command in &applied.then {
        out.push_str(&style.paragraph("then  ", command, Tone::Fair));
    }
    out
}

/// Each application, its files and its settings.
pub fn status(all: &[Status], style: &Style) -> String {
    if all.is_empty() {
        return "nothing is applied\n".to_owned();
    }
    let mut out = String::new();
    for status in all {
        let rules: Vec<&str> = status.applied.settings.iter().map(|settings| settings.rule.as_str()).collect();
        out.push_str(&style.paragraph(&format!("{}  ", status.applied.id), &rules.join(", "), Tone::Strong));
        for (path, held) in &status.files {
            let (words, tone) = match held {
                Held::AsApplied => ("as applied", Tone::Plain),
                Held::Edited => ("changed elsewhere since; the settings stand", Tone::Plain),
                Held::Drifted => ("drifted: the settings no longer stand in it as they were written", Tone::Fair),
                Held::Unreadable => ("cannot be read", Tone::Fair),
            };
            out.push_str(&style.paragraph(&format!("   {}  ", path.display()), words, tone));
        }
        for (rule, wanted, took) in &status.settings {
            let (words, tone) = match took {
                Took::Yes => ("holds", Tone::Good),
                Took::Waits => ("waits for a reboot", Tone::Fair),
                Took::No => ("did not take: the machine was started since", Tone::Fair),
                Took::Unknown => ("cannot be seen from outside", Tone::Faint),
            };
            out.push_str(&style.paragraph(&format!("   {rule}: {}  ", wanted.line()), words, tone));
        }
    }
    out
}
