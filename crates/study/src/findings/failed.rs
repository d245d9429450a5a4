//! Steps that did not come to their end: what was to be measured, and why it was not.

use super::{Draft, Jointly, Scene, finding};
use basics::FailKind;
use basics::units::listed;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut out: Vec<Draft> = Vec::new();
    for step in &scene.run.steps {
        let Some((kind, why)) = step.failed else { continue };
        // That is what the step was to find out.
        let does_not_fit = kind == FailKind::NoRoom && step.load.is_some();
        if matches!(kind, FailKind::Astray { .. }) || does_not_fit {
            continue;
        }
        let why = why.trim_end_matches('.');
        let tier = step.tier.unwrap_or(step.target);
        let text = format!("{} was not measured on {tier}: {why}.", step.name);
        let evidence = vec![format!("step {} {}: failed", step.index, step.name)];
        let found = finding("step-failed", 50, step.tier, text, evidence);
        let detail = format!("{}: {why}", step.name);
        out.push(Draft { finding: found, jointly: Some(Jointly { detail, sentence: together }) });
    }
    out
}

fn together(steps: &[(String, String)]) -> String {
    // A reason that several have, a server that does not start for example, is said once.
    let mut reasons: Vec<(Vec<String>, &str)> = Vec::new();
    for (tier, what) in steps {
        let (name, why) = what.split_once(": ").unwrap_or((what, ""));
        let step = format!("{tier} {name}");
        match reasons.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) if names.contains(&step) => {}
            Some((names, _)) => names.push(step),
            None => reasons.push((vec![step], why)),
        }
    }
    let each: Vec<String> = reasons.iter().map(|(names, why)| format!("{}: {why}", listed(names))).collect();
    format!("Steps that were not measured: {}.", listed(&each))
}

#[cfg(test)]
mod tests {
    use super::FailKind;
    use crate::findings::tests::found;
    use crate::testing::{Run, Step};

    #[test]
    fn failures_are_said_once_with_their_reasons() {
        let step = |tier: &str, why: &str| Step::swap_sim(tier).failed(FailKind::Io, why);
        let one = Run::default().steps([step("sda", "write at 4 MiB: Input/output error.")]);
        assert_eq!(
            found(&one, "step-failed")[0].text,
            "swap-sim was not measured on sda: write at 4 MiB: Input/output error."
        );
        let two = Run::default().steps([step("sda", "I/O error"), step("sdb", "no room")]);
        let both = found(&two, "step-failed");
        assert_eq!(both.len(), 1);
        assert_eq!(both[0].text, "Steps that were not measured: sda swap-sim: I/O error and sdb swap-sim: no room.");
        let same = Run::default().steps([step("sda", "no room"), step("sdb", "no room"), step("sdb", "no room")]);
        let text = &found(&same, "step-failed")[0].text;
        assert_eq!(text, "Steps that were not measured: sda swap-sim and sdb swap-sim: no room.");
    }
}
