//! Runs side by side with a verdict that the noise allows.

use super::Style;
use super::lay::{Align, Grid, Tone};
use crate::view::comparisons;
use crate::words;
use basics::units::significant;
use record::Record;
use study::{Comparison, Verdict};

/// Each later run, or group of repeated runs, against the first: the headline, what is compared, figure by figure.
pub fn compare(groups: &[Vec<&Record>], style: &Style) -> String {
    let Some(before) = groups.first() else { return String::new() };
    let parts: Vec<String> =
        comparisons(groups).map(|(after, comparison)| one(before, after, &comparison, style)).collect();
    if parts.is_empty() {
        return style.paragraph("", "There is only one run, and nothing to hold it against.", Tone::Plain);
    }
    parts.join("\n")
}

fn one(before: &[&Record], after: &[&Record], comparison: &Comparison, style: &Style) -> String {
    let mut out = style.paragraph("", &comparison.headline, Tone::Strong);
    out.push('\n');
    let before = before.iter().map(|record| ("  before  ", *record));
    for (lead, record) in before.chain(after.iter().map(|record| ("  after   ", *record))) {
        let run = &record.run;
        let when = words::minute(run.started, &style.zone);
        let text = format!("{}  {when}  {} on {}", run.id, run.plan.method, run.target);
        out.push_str(&style.paragraph(lead, &text, Tone::Plain));
    }
    if !comparison.figures.is_empty() {
        out.push('\n');
        out.push_str(&table(comparison, style));
    }
    if !comparison.unmatched.is_empty() || !comparison.notes.is_empty() {
        out.push('\n');
    }
    for text in &comparison.unmatched {
        out.push_str(&style.paragraph("  left out  ", text, Tone::Faint));
    }
    for text in &comparison.notes {
        out.push_str(&style.paragraph("  note      ", text, Tone::Faint));
    }
    out
}

fn table(comparison: &Comparison, style: &Style) -> String {
    let mut grid = Grid::new(
        style,
        &[
            ("step", Align::Left),
            ("figure", Align::Left),
            ("before", Align::Right),
            ("after", Align::Right),
            ("after / before", Align::Left),
            ("verdict", Align::Left),
        ],
    );
    let mut last = String::new();
    for figure in &comparison.figures {
        let step = figure.tier.as_ref().map_or_else(|| figure.step.clone(), |tier| format!("{tier}  {}", figure.step));
        let ratio = match figure.ratio_ci95.get() {
            Some((low, high)) => format!("{:.2} ({low:.2} to {high:.2})", figure.ratio),
            None => format!("{:.2}", figure.ratio),
        };
        let verdict = match figure.verdict {
            Verdict::Same => ("same", Tone::Plain),
            Verdict::Better => ("better", Tone::Good),
            Verdict::Worse => ("worse", Tone::Bad),
            Verdict::Unclear => ("unclear", Tone::Faint),
        };
        grid.row(vec![
            (if step == last { String::new() } else { step.clone() }, Tone::Strong),
            (figure.figure.clone(), Tone::Plain),
            (significant(figure.before), Tone::Plain),
            (significant(figure.after), Tone::Plain),
            (ratio, Tone::Plain),
            (verdict.0.to_owned(), verdict.1),
        ]);
        last = step;
    }
    grid.fit(&[(0, 12)]);
    grid.render()
}
