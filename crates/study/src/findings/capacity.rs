//! A device that holds less than it claims: whoever fills it loses what is on it.

use super::{Draft, Scene, at, finding};
use crate::capacity::{Capacity, capacity};
use std::collections::BTreeSet;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let steps = &scene.run.steps;
    let targets: BTreeSet<&str> = steps.iter().map(|step| step.target).collect();
    let of = |target: &&str| {
        let (capacity, step) = capacity(steps.iter().filter(|step| step.target == *target));
        let step = step?;
        let name = step.tier.unwrap_or(step.target);
        let text = match capacity {
            Capacity::Wraps(size) => format!(
                "{name} holds {size}, whatever it claims: what is written beyond that takes the place of what lies at its beginning. \
                 Keep nothing on it, or make a partition of no more than {size} at its beginning."
            ),
            Capacity::Loses(place) => format!(
                "{name} lost what was written at {place}: it is broken, or smaller than it claims. Keep nothing on it."
            ),
            Capacity::All | Capacity::Unknown => return None,
        };
        let evidence = vec![at(step, step.failed.map_or("", |(_, why)| why))];
        Some(finding("fake-capacity", 100, step.tier, text, evidence).into())
    };
    targets.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step};
    use basics::job::Entropy;
    use basics::units::MIB;
    use basics::{Bytes, FailKind, Nanos};

    fn looked(at: u64, holds: Option<u64>) -> Step {
        let kind = FailKind::Astray { at: Bytes(at * MIB), holds: holds.map(|place| Bytes(place * MIB)) };
        let mut step = Step::page_read("sdb", Nanos(1000)).failed(kind, "something else is there");
        step.job.entropy = Entropy::Tagged;
        step
    }

    #[test]
    fn a_card_that_begins_again_is_said_with_its_size() {
        let run = Run::default().steps([looked(96, Some(64)), looked(64, Some(0)), looked(128, None)]);
        let fake = found(&run, "fake-capacity");
        assert!(fake[0].text.starts_with("sdb holds 64 MiB, whatever it claims"), "{}", fake[0].text);
        assert!(found(&run, "step-failed").is_empty(), "it was measured, and this is what came of it");
        let lost = found(&Run::default().steps([looked(64, None)]), "fake-capacity");
        assert!(lost[0].text.starts_with("sdb lost what was written at 64 MiB"), "{}", lost[0].text);
        let mut fine = Step::page_read("sdb", Nanos(1000));
        fine.job.entropy = Entropy::Tagged;
        assert!(found(&Run::default().steps([fine]), "fake-capacity").is_empty());
    }
}
