//! Findings as the page shows them: the sentence, and evidence that leads to its step.

use serde::Serialize;
use study::Finding;

#[derive(Serialize)]
pub struct FindingText {
    /// The run in words, where the page is of several.
    of_run: Option<String>,
    tier: Option<String>,
    color: Option<usize>,
    text: String,
    advice: Option<String>,
    gain: Option<String>,
    /// The run that the steps are of.
    run: String,
    evidence: Vec<Evidence>,
    /// What would bury the next finding if it stood open.
    more: Vec<Evidence>,
}

#[derive(Serialize)]
struct Evidence {
    text: String,
    /// The step that the sentence points at.
    step: Option<u32>,
}

/// Pieces of evidence that stand open.
const OPEN: usize = 5;

/// `of_run` is the run in words, where the page is of several.
pub fn finding_text(
    finding: &Finding,
    run: &str,
    of_run: Option<String>,
    color_of: &dyn Fn(&str) -> usize,
) -> FindingText {
    let mut evidence: Vec<Evidence> =
        finding.evidence.iter().map(|text| Evidence { step: step_of(text), text: text.clone() }).collect();
    FindingText {
        of_run,
        color: finding.tier.as_deref().map(color_of),
        tier: finding.tier.clone(),
        text: finding.text.clone(),
        advice: finding.advice.clone(),
        gain: finding.gain.clone(),
        run: run.to_owned(),
        more: evidence.split_off(evidence.len().min(OPEN)),
        evidence,
    }
}

/// The step that a piece of evidence starts with (`step 3 read p99`).
fn step_of(evidence: &str) -> Option<u32> {
    let rest = evidence.strip_prefix("step ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
