//! Who sets the limit of a tier: the lowest hop on the way to it, or the device itself.

use super::{Draft, Jointly, Scene, Subject, at, finding, mbps};
use crate::figures::best_sequential;
use crate::model::Finding;
use basics::units::listed;
use machine::Ceiling;

/// From this share of the practical ceiling's lower end on, the hop and not the device sets the rate.
const AT_THE_CEILING: f64 = 0.85;

/// True when the best sequential rate is what the lowest hop lets through.
pub(crate) fn is_bus_limited(best: f64, ceiling: &Ceiling) -> bool {
    best >= AT_THE_CEILING * ceiling.practical_mbps.0
}

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene.subjects.iter().filter(|subject| !super::links::says_it(subject)).filter_map(of).collect()
}

fn of(subject: &Subject<'_, '_>) -> Option<Draft> {
    let best = best_sequential(&subject.trusted)?;
    let ceiling = subject.steps.tier?.ceiling.get()?;
    let (low, high) = ceiling.practical_mbps;
    let way = if subject.trusted.seq_read_mbps.get() == Some(&best) { "seq-read" } else { "seq-write" };
    let evidence = subject.steps.measured(way).map(|step| at(step, mbps(best))).into_iter().chain([format!(
        "ceiling of {}: {} to {} MB/s",
        ceiling.hop,
        basics::units::significant(low),
        basics::units::significant(high)
    )]);
    Some(if is_bus_limited(best, ceiling) {
        let text = format!(
            "{} is held by its bus: {} of the {} to {} that {} lets through.",
            subject.name(),
            mbps(best),
            basics::units::significant(low),
            mbps(high),
            ceiling.hop
        );
        let found = finding("bus-limited", 35, Some(subject.name()), text, evidence.collect());
        let detail = format!("{} of {}, {}", basics::units::significant(best), mbps(high), ceiling.hop);
        Draft { finding: found, jointly: Some(Jointly { detail, sentence: buses }) }
    } else {
        let share = format!("{:.0} % of {}", 100.0 * best / high, mbps(high));
        let text = format!("{} is limited by itself, not by {} ({share}).", subject.name(), ceiling.hop);
        let found: Finding = finding("device-limited", 30, Some(subject.name()), text, evidence.collect());
        Draft { finding: found, jointly: Some(Jointly { detail: share, sentence: themselves }) }
    })
}

fn buses(tiers: &[(String, String)]) -> String {
    let each: Vec<String> = tiers.iter().map(|(tier, share)| format!("{tier} ({share})")).collect();
    format!("{} are held by their bus.", listed(&each))
}

fn themselves(tiers: &[(String, String)]) -> String {
    let each: Vec<String> = tiers.iter().map(|(tier, share)| format!("{tier} ({share})")).collect();
    format!("{} are limited by themselves, not by their bus.", listed(&each))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, capped};
    use machine::TierKind;

    fn run(rates: &[(&str, f64)]) -> Run {
        let usb3 = |name: &str| capped(name, TierKind::Usb, "USB 3 5 Gbit/s", 500.0, (430.0, 450.0));
        Run::default()
            .tiers(rates.iter().map(|(name, _)| usb3(name)))
            .steps(rates.iter().map(|(name, rate)| Step::seq_read(name, *rate)))
    }

    #[test]
    fn a_device_at_its_ceiling_is_held_by_the_hop() {
        let held = found(&run(&[("sda", 410.0)]), "bus-limited");
        assert_eq!(
            held[0].text,
            "sda is held by its bus: 410 MB/s of the 430 to 450 MB/s that USB 3 5 Gbit/s lets through."
        );
        assert_eq!(held[0].evidence[0], "step 0 seq-read: 410 MB/s");
        assert!(found(&run(&[("sda", 410.0)]), "device-limited").is_empty());
    }

    #[test]
    fn slower_devices_are_named_in_one_sentence() {
        let found = found(&run(&[("sda", 180.0), ("sdb", 90.0), ("sdc", 410.0)]), "device-limited");
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].text,
            "sda (40 % of 450 MB/s) and sdb (20 % of 450 MB/s) are limited by themselves, not by their bus."
        );
        assert_eq!(found[0].evidence.len(), 4);
    }
}
