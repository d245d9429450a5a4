//! The first screen of somebody who typed nothing: what is here, what can be asked, and what to ask first.

use super::Style;
use super::lay::{Align, Grid, Tone};
use super::tiers::head;
use crate::words;
use advise::Suggestion;
use basics::units::significant;
use machine::Machine;

/// What people ask, and what answers.
const QUESTIONS: [(&str, &str); 5] = [
    ("What should swap, a model, Redis, a desktop, files live on?", "check, load"),
    ("Why is it slow?", "tiers, watch, show"),
    ("What would another disk, or more memory, bring?", "predict, profiles, emulate"),
    ("What should be set otherwise?", "advise, apply, revert, pager, move"),
    ("Did it help?", "prove, compare"),
];

/// All of it on a screen of 80 by 24.
pub fn begin(machine: &Machine, suggestions: &[Suggestion], style: &Style) -> String {
    let mut out = style.paragraph("", &words::machine(machine), Tone::Strong);
    for tier in &machine.tiers {
        let ceiling = tier.ceiling.get().map_or_else(String::new, |ceiling| {
            format!(", at most {} MB/s ({})", significant(ceiling.practical_mbps.0), ceiling.hop)
        });
        out.push_str(&style.paragraph("  ", &format!("{}{ceiling}", head(tier)), Tone::Plain));
    }
    out.push('\n');
    let mut grid = Grid::new(style, &[("you ask", Align::Left), ("tiermark …", Align::Left)]);
    for (question, verbs) in QUESTIONS {
        grid.row(vec![(question.to_owned(), Tone::Plain), (verbs.to_owned(), Tone::Strong)]);
    }
    out.push_str(&grid.render());
    out.push_str("\nHere, to begin with:\n");
    for said in suggestions {
        out.push_str(&style.paragraph("  ", &said.command, Tone::Strong));
        out.push_str(&style.paragraph("      ", &said.why, Tone::Plain));
    }
    out.push_str("\n`tiermark help` lists all; `tiermark VERB --help` explains one.\n");
    out
}
