//! Compressed memory as a block device: reads of an empty one are no measurement.

use super::{Draft, Scene, at, finding};
use basics::units::significant;
use machine::{Machine, SwapArea, TierKind};

/// Below this share in use, most random reads meet pages that were never written and need no decompression.
const MOSTLY: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene
        .subjects
        .iter()
        .filter_map(|subject| {
            let area = mostly_empty(scene.machine(), subject.name())?;
            let step = subject.steps.all().find(|step| !step.read.latency.is_empty())?;
            let text = format!(
                "{} was mostly empty when it was read ({} of {} in use): a page that was never written comes back \
                 without decompression, so it is slower in use than these figures.",
                subject.name(),
                area.used,
                area.size
            );
            let share = significant(100.0 * area.used.0 as f64 / area.size.0 as f64);
            let evidence = vec![format!("/proc/swaps: {} {share} % used", area.path.display()), at(step, "raw reads")];
            Some(finding("empty-zram", 35, Some(subject.name()), text, evidence).into())
        })
        .collect()
}

/// The swap area of a zram tier, when less than half of it is in use.
pub(super) fn mostly_empty<'m>(machine: &'m Machine, tier: &str) -> Option<&'m SwapArea> {
    let zram = machine.tiers.iter().find(|known| known.name == tier && known.kind == TierKind::Zram)?;
    let area = machine.swaps.iter().find(|area| area.tier.as_deref() == Some(&zram.name))?;
    (area.size.0 > 0 && (area.used.0 as f64) < MOSTLY * area.size.0 as f64).then_some(area)
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, swap, tier};
    use basics::{Bytes, Nanos};
    use machine::{SwapArea, TierKind};

    fn run(used: u64) -> Run {
        let mut run = Run::default()
            .tiers([tier("zram0", TierKind::Zram)])
            .steps([Step::page_read("zram0", Nanos(6000)), Step::seq_read("zram0", 2690.0)]);
        run.machine.swaps = vec![SwapArea { used: Bytes(used), ..swap("/dev/zram0", "zram0", 100) }];
        run
    }

    #[test]
    fn an_empty_zram_is_no_measurement() {
        let empty = found(&run(20_000_000), "empty-zram");
        assert!(
            empty[0].text.starts_with("zram0 was mostly empty when it was read (19.1 MiB of "),
            "{}",
            empty[0].text
        );
        assert_eq!(empty[0].evidence[0], "/proc/swaps: /dev/zram0 1 % used");
        assert!(explain(&run(20_000_000).view()).tiers[0].resembles.is_empty());
        assert!(found(&run(1_500_000_000), "empty-zram").is_empty());
    }
}
