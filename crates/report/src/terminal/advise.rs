//! Recommendations for people: what to do, why, what it stands on; then the files that follow. And the list of rules.

use super::Style;
use super::lay::Tone;
use advise::{ConfFile, Gain, Goals, Origin, Recommendation, Rule};
use basics::units::significant;

/// All recommendations for a job, and what follows from them. `measure` is the command that measures it.
pub fn advice(
    goals: &Goals,
    all: &[Recommendation],
    files: &[ConfFile],
    measure: Option<&str>,
    style: &Style,
) -> String {
    let mut out = style.paragraph("", &format!("{}: {}", goals.job, goals.in_words()), Tone::Strong);
    if all.is_empty() {
        out.push_str("\nnothing to change\n");
    }
    for (at, said) in all.iter().enumerate() {
        out.push('\n');
        out.push_str(&style.paragraph(&format!("{:>3}  ", at + 1), &said.title, Tone::Strong));
        out.push_str(&style.paragraph("     why     ", &said.why, Tone::Plain));
        for evidence in &said.evidence {
            let lead = if matches!(evidence.from, Origin::Published(_)) { "     read    " } else { "     seen    " };
            out.push_str(&style.paragraph(lead, &format!("{} ({})", evidence.text, evidence.from), Tone::Faint));
        }
        if let Some(gain) = &said.gain {
            out.push_str(&style.paragraph("     gain    ", &in_words(gain), Tone::Good));
        }
        if let Some(risk) = &said.risk {
            out.push_str(&style.paragraph("     but     ", risk, Tone::Fair));
        }
        out.push_str(&style.paragraph("     rule    ", said.rule, Tone::Faint));
    }
    for file in files {
        out.push('\n');
        out.push_str(&style.paragraph("", &format!("{}  ({})", file.name, file.belongs), Tone::Strong));
        for line in file.text.lines() {
            out.push_str("    ");
            out.push_str(&style.plain(line));
            out.push('\n');
        }
    }
    if let Some(command) = measure {
        out.push('\n');
        out.push_str(&style.paragraph("  measure it     ", command, Tone::Plain));
    }
    out
}

fn in_words(gain: &Gain) -> String {
    let [percent, low, high] = [gain.percent, gain.low, gain.high].map(significant);
    format!("{percent} % [{low}, {high}] {} ({})", gain.of, gain.from)
}

/// Every rule: whom it concerns, when it speaks, where it comes from.
pub fn rules(all: &[&Rule], style: &Style) -> String {
    let mut out = String::new();
    for rule in all {
        let jobs: Vec<_> = rule.jobs.iter().map(|job| job.name()).collect();
        out.push_str(&style.paragraph("", &format!("{}: {}", rule.name, rule.title), Tone::Strong));
        out.push_str(&style.paragraph("  for     ", &jobs.join(", "), Tone::Plain));
        out.push_str(&style.paragraph("  when    ", rule.condition, Tone::Plain));
        out.push_str(&style.paragraph("  from    ", rule.source, Tone::Faint));
    }
    out
}
