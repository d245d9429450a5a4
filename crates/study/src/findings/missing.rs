//! Intervals that the record has lost (the spool had no room for them, or an import lacks them): what happened in them is
//! in a step's totals and not in its series, so nothing about its steadiness may be concluded from the gap.

use super::{Draft, Jointly, Scene, at, finding};
use crate::series;
use basics::units::listed;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let each = scene.run.steps.iter().map(|step| (step, series::missing(step)));
    each.filter(|(_, missing)| *missing > 0)
        .map(|(step, missing)| {
            let tier = step.tier.unwrap_or(step.target);
            let intervals = if missing == 1 { "interval is" } else { "intervals are" };
            let text = format!(
                "{missing} {intervals} missing from the record of {} on {tier}: nothing is known of how steady it was then.",
                step.name
            );
            let evidence = vec![at(step, format_args!("{missing} {intervals} missing"))];
            let detail = format!("{missing} of {}", step.name);
            Draft {
                finding: finding("intervals-missing", 35, step.tier, text, evidence),
                jointly: Some(Jointly { detail, sentence: together }),
            }
        })
        .collect()
}

fn together(steps: &[(String, String)]) -> String {
    let each: Vec<String> = steps.iter().map(|(tier, what)| format!("{what} on {tier}")).collect();
    format!("Intervals are missing from the record: {}.", listed(&each))
}
