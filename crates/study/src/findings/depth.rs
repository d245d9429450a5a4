//! Steps whose figures do not sum to the depth they asked for, by Little's law: their rates are those of a lower depth, or
//! rate and latency contradict each other.

use super::{Draft, Scene, at, finding};
use crate::little;
use basics::little::{Cause, Verdict};
use basics::units::significant;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene
        .run
        .steps
        .iter()
        .filter_map(|step| {
            let audit = little::of_step(step);
            let Verdict::Off(cause) = audit.verdict else { return None };
            let name = step.tier.unwrap_or(step.target);
            let (found, asked) = (significant(audit.sum), significant(audit.depth));
            let mut evidence = vec![at(step, format_args!("IOPS × mean latency = {found}"))];
            if cause == Cause::More || audit.depth <= 1.0 {
                let text = format!("{} on {name}: {}.", step.name, audit.mark().unwrap_or_default());
                return Some(finding("figures-contradict", 20, step.tier, text, evidence).into());
            }
            // The engine names the depth that it could not keep.
            let depth = format!("depth {}", step.job.depth);
            let refused = step.engine.into_iter().flat_map(|engine| &engine.dropped).find(|(what, _)| *what == depth);
            let because = if let Some((_, why)) = refused {
                evidence
                    .extend(step.engine.filter(|engine| !engine.why.is_empty()).map(|engine| at(step, &engine.why)));
                why.clone()
            } else {
                cause.to_string()
            };
            let text = format!(
                "{} on {name} kept {found} of {asked} operations in flight ({because}): the rate is that of the lower \
                 depth.",
                step.name
            );
            Some(finding("depth-not-reached", 20, step.tier, text, evidence).into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::remarked;
    use crate::testing::{Run, Step};
    use basics::Nanos;

    #[test]
    fn a_device_that_completes_in_submission_is_marked() {
        // 10,000 a second of 90 µs: 0.9 in flight where 4 were asked.
        let zram = Step::swap_sim("zram0").reads(&[700; 20], Nanos(90_000)).writes(&[300; 20], Nanos(90_000));
        let marked = remarked(&Run::default().steps([zram]), "depth-not-reached");
        assert!(
            marked[0].text.starts_with("swap-sim on zram0 kept 0.900 of 4 operations in flight"),
            "{}",
            marked[0].text
        );
        let mut probed = Step::swap_sim("sda").reads(&[700; 20], Nanos(90_000)).writes(&[300; 20], Nanos(90_000));
        let engine = probed.engine.as_mut().unwrap();
        engine.dropped.push(("depth 4".to_owned(), "psync has one operation in flight for each thread".to_owned()));
        engine.why = "probed: 1,403 reads/s by io_uring at depth 4, 2,021 one at a time".to_owned();
        let marked = remarked(&Run::default().steps([probed]), "depth-not-reached");
        assert!(marked[0].text.contains("in flight (psync has one operation"), "{}", marked[0].text);
        assert!(marked[0].evidence[1].contains("2,021 one at a time"), "{:?}", marked[0].evidence);
        let disk = Step::swap_sim("sda").reads(&[700; 20], Nanos(400_000)).writes(&[300; 20], Nanos(400_000));
        assert!(remarked(&Run::default().steps([disk]), "depth-not-reached").is_empty());
        let beyond = Step::swap_sim("sda").reads(&[700; 20], Nanos(600_000)).writes(&[300; 20], Nanos(600_000));
        let marked = remarked(&Run::default().steps([beyond]), "figures-contradict");
        assert!(marked[0].text.contains("sums to 6.00, not to the depth of 4: more than"), "{}", marked[0].text);
    }
}
