//! The one sentence of a check: what swap should be on, what a fault costs there, and what holds that disk back.

use crate::figures::best_sequential;
use crate::findings::Scene;
use crate::findings::swap::{fastest, fault};
use basics::units::significant;

/// In one sentence. It says no more than was measured.
pub(crate) fn headline(scene: &Scene<'_, '_>) -> String {
    let Some(best) = fastest(scene) else {
        let measured = scene.subjects.iter().any(|subject| best_sequential(&subject.figures).is_some());
        return if measured { "No disk was measured with random reads." } else { "Nothing was measured." }.to_owned();
    };
    let mut text = format!("{} is the fastest disk here: a page comes back in {}", best.tier, best.mean);
    let others = scene.subjects.iter().filter(|subject| subject.name() != best.tier);
    let slowest = others.filter_map(|subject| fault(scene, subject)).max_by_key(|fault| fault.mean);
    if let Some(slowest) = slowest.filter(|slowest| slowest.mean > best.mean) {
        let times = slowest.mean.secs() / best.mean.secs();
        if times >= 1.5 {
            text += &format!(", {} times sooner than from {}", crate::findings::times(times), slowest.tier);
        }
    }
    if let Some(limit) = limit(scene, &best.tier) {
        text += &format!("; {limit}");
    }
    text.push('.');
    text
}

/// What sets the limit of a tier, in a few words.
fn limit(scene: &Scene<'_, '_>, tier: &str) -> Option<String> {
    let subject = scene.subject(tier)?;
    let ceiling = subject.steps.tier?.ceiling.get()?;
    let best = best_sequential(&subject.trusted)?;
    let share = 100.0 * best / ceiling.practical_mbps.1;
    Some(if crate::findings::is_bus_limited(best, ceiling) {
        format!("its bus ({}) holds it at {} MB/s", ceiling.hop, significant(best))
    } else {
        format!("at {share:.0} % of what {} lets through it is limited by itself", ceiling.hop)
    })
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::testing::{Run, Step, capped, tier};
    use basics::Nanos;
    use machine::TierKind;

    #[test]
    fn it_names_the_fastest_and_what_holds_it() {
        let optane = capped("nvme0n1", TierKind::Nvme, "PCIe Gen2 x1", 500.0, (400.0, 430.0));
        let run = Run::default().tiers([tier("mmcblk0", TierKind::Sd), optane]).steps([
            Step::page_read("mmcblk0", Nanos(710_000)),
            Step::page_read("nvme0n1", Nanos(71_000)),
            Step::seq_read("nvme0n1", 410.0),
        ]);
        assert_eq!(
            explain(&run.view()).headline,
            "nvme0n1 is the fastest disk here: a page comes back in 71.0 µs, 10 times sooner than from mmcblk0; its bus \
             (PCIe Gen2 x1) holds it at 410 MB/s."
        );
        assert_eq!(explain(&Run::default().view()).headline, "Nothing was measured.");
    }
}
