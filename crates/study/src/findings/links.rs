//! What the machine's description warns of, weighed by what was measured: a slow link matters to a device that fills it
//! and costs nothing to one that is slower still. Warnings with a name that is not known here are passed on as they are.

use super::bus::is_bus_limited;
use super::{Draft, Scene, Subject, at, finding, mbps};
use crate::check::best_sequential;
use crate::model::Finding;
use basics::units::significant;
use machine::{Tier, Warning};

/// Weight of a link that holds a device back, as measured.
const HOLDS: u8 = 75;
/// Weight of a warning about which nothing was measured.
const UNTRIED: u8 = 50;
/// Weight of a slow link in front of a device that is slower.
const HARMLESS: u8 = 20;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut out: Vec<Draft> = Vec::new();
    for tier in &scene.machine().tiers {
        out.extend(tier.warnings.iter().map(|warning| Draft::from(weigh(scene, tier, warning))));
    }
    let whole = |text: &String| Draft::from(finding("machine", 30, None, text.clone(), Vec::new()));
    out.extend(scene.machine().warnings.iter().map(whole));
    out
}

/// True for a warning that says that a link runs below what it could.
fn slows_the_link(warning: &Warning) -> bool {
    let id = warning.id.as_str();
    id.ends_with("-limits") || id.contains("-at-")
}

/// True when a warning about this tier's link says more than that the link is full or not.
pub(super) fn says_it(subject: &Subject<'_, '_>) -> bool {
    subject.steps.tier.is_some_and(|tier| tier.warnings.iter().any(slows_the_link))
}

fn weigh(scene: &Scene<'_, '_>, tier: &Tier, warning: &Warning) -> Finding {
    let text = sentence(&warning.text);
    let mut found = finding(&warning.id, UNTRIED, Some(&tier.name), text, vec![warning.evidence.clone()]);
    found.advice = advice(&warning.id).map(str::to_owned);
    if !slows_the_link(warning) {
        return found;
    }
    let Some(subject) = scene.subject(&tier.name) else { return found };
    let (Some(best), Some(ceiling)) = (best_sequential(&subject.trusted), tier.ceiling.get()) else { return found };
    let step = subject.steps.measured("seq-read").or_else(|| subject.steps.measured("seq-write"));
    found.evidence.extend(step.map(|step| at(step, mbps(best))));
    if is_bus_limited(best, ceiling) {
        found.weight = HOLDS;
        found.text += &format!(
            " It holds {} back: {} of at most {} are reached.",
            tier.name,
            significant(best),
            mbps(ceiling.practical_mbps.1)
        );
        found.gain = gain(tier);
    } else {
        found.weight = HARMLESS;
        found.text += &format!(
            " It costs nothing in sequence now: {} gives {} of the {} that the link lets through.",
            tier.name,
            significant(best),
            mbps(ceiling.practical_mbps.1)
        );
    }
    found
}

/// With a full stop at its end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// What the hop that sets the ceiling could let through on the link that it names as possible.
fn gain(tier: &Tier) -> Option<String> {
    let ceiling = tier.ceiling.get()?;
    let hop = tier.hops.iter().find(|hop| hop.name == ceiling.hop)?;
    let could_be = hop.could_be.as_deref()?;
    Some(format!("the link of {could_be} instead of the {} of {}", mbps(ceiling.practical_mbps.1), hop.name))
}

/// What to do about the warnings that are known by name.
fn advice(id: &str) -> Option<&'static str> {
    Some(match id {
        "pcie-switch-limits" => {
            "connect the device without the switch, or through one that links as fast as the device"
        }
        "pcie-link-limits" => {
            "ask for the faster link in the firmware (Raspberry Pi 5: dtparam=pciex1_gen=3), if the wiring carries it"
        }
        "usb3-at-usb2" => "use a USB 3 port (blue) and a USB 3 cable, push the plug home, and look again",
        "usb-shared-port" => "spread the disks over ports, or do not count on their rates adding up",
        "usb-storage-not-uas" => {
            "use an enclosure whose bridge speaks UAS: without it one command is in flight at a time"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{found, remarked};
    use crate::testing::{Run, Step, capped, tier};
    use machine::{Tier, TierKind, Warning};

    fn warning(id: &str, text: &str) -> Warning {
        Warning { id: id.to_owned(), text: text.to_owned(), evidence: "/sys/x/speed: 480".to_owned() }
    }

    fn on_usb2(rate: f64) -> Run {
        let usb2 = capped("sda", TierKind::Usb, "USB 2", 60.0, (35.0, 40.0));
        let warnings = vec![warning("usb3-at-usb2", "sda could do USB 3 and negotiated USB 2 (480 Mbit/s)")];
        Run::default().tiers([Tier { warnings, ..usb2 }]).steps([Step::seq_read("sda", rate)])
    }

    #[test]
    fn a_slow_link_matters_to_a_device_that_fills_it() {
        let held = found(&on_usb2(34.8), "usb3-at-usb2");
        assert_eq!(
            held[0].text,
            "sda could do USB 3 and negotiated USB 2 (480 Mbit/s). It holds sda back: 34.6 of at most 40 MB/s are reached."
        );
        assert_eq!(held[0].weight, 75);
        assert!(found(&on_usb2(34.8), "bus-limited").is_empty(), "said once is enough");
    }

    #[test]
    fn a_slow_link_costs_a_slower_device_nothing() {
        assert!(found(&on_usb2(12.0), "usb3-at-usb2").is_empty());
        let remark = remarked(&on_usb2(12.0), "usb3-at-usb2");
        assert!(remark[0].text.contains("costs nothing in sequence now"), "{}", remark[0].text);
    }

    #[test]
    fn unknown_warnings_are_passed_on() {
        let odd =
            Tier { warnings: vec![warning("made-of-cheese", "sdb is made of cheese.")], ..tier("sdb", TierKind::Usb) };
        let found = found(&Run::default().tiers([odd]), "made-of-cheese");
        assert_eq!((found[0].text.as_str(), found[0].weight), ("sdb is made of cheese.", 50));
        assert_eq!(found[0].evidence, ["/sys/x/speed: 480"]);
    }
}
