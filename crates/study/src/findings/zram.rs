//! Compressed memory as a block device: an empty one is no measurement, and zswap in front of it does the work twice.

use super::{Draft, Scene, at, finding};
use basics::units::significant;
use machine::{Machine, SwapArea, TierKind};

/// Below this share in use, most random reads meet pages that were never written and need no decompression.
const MOSTLY: f64 = 0.5;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut out: Vec<Draft> = scene
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
        .collect();
    out.extend(twice(scene.machine()));
    out
}

/// The swap area of a zram tier, when less than half of it is in use.
pub(super) fn mostly_empty<'m>(machine: &'m Machine, tier: &str) -> Option<&'m SwapArea> {
    let area = zram_areas(machine).find(|area| area.tier.as_deref() == Some(tier))?;
    (area.size.0 > 0 && (area.used.0 as f64) < MOSTLY * area.size.0 as f64).then_some(area)
}

fn zram_areas(machine: &Machine) -> impl Iterator<Item = &SwapArea> {
    machine.swaps.iter().filter(|area| {
        let of = |tier: &&machine::Tier| Some(tier.name.as_str()) == area.tier.as_deref();
        machine.tiers.iter().find(of).is_some_and(|tier| tier.kind == TierKind::Zram)
    })
}

fn twice(machine: &Machine) -> Option<Draft> {
    let zswap = machine.zswap.get().filter(|zswap| zswap.enabled)?;
    let area = zram_areas(machine).next()?;
    let text = format!(
        "zswap is on in front of swap on zram ({}): pages are compressed twice, and RAM is held by both.",
        area.path.display()
    );
    let evidence = vec![
        format!("/sys/module/zswap/parameters/enabled: Y ({})", zswap.compressor),
        format!("/proc/swaps: {}", area.path.display()),
    ];
    let mut found = finding("zswap-over-zram", 60, area.tier.as_deref(), text, evidence);
    found.advice = Some("keep zram and switch zswap off, or keep zswap and put swap on a disk".to_owned());
    Some(found.into())
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, swap, tier};
    use basics::{Bytes, Known, Nanos};
    use machine::{SwapArea, TierKind, Zswap};

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

    #[test]
    fn zswap_before_zram_is_said() {
        let mut run = run(1_500_000_000);
        run.machine.zswap = Known::Is(Zswap { enabled: true, ..Zswap::default() });
        assert_eq!(found(&run, "zswap-over-zram").len(), 1);
        run.machine.zswap = Known::Is(Zswap::default());
        assert!(found(&run, "zswap-over-zram").is_empty());
    }
}
