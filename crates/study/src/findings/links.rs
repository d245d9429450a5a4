//! What the machine's description warns of, weighed by what was measured: a slow link matters to a device that fills it
//! and costs nothing to one that is slower still. Warnings with a name that is not known here are passed on as they are.

use super::bus::is_bus_limited;
use super::{Draft, Scene, Subject, at, finding, mbps};
use crate::figures::best_sequential;
use crate::model::Finding;
use basics::units::significant;
use machine::{Tier, Warning};

/// Weight of a link that holds a device back, as measured.
const HOLDS: u8 = 75;
/// Weight of a slow link in front of a device that is slower.
const HARMLESS: u8 = 20;

/// Weight of a warning about which nothing was measured; the usual one for names that are not known here.
fn untried(warning: &Warning) -> u8 {
    match warning.id.as_str() {
        "two-swap-managers" | "zswap-and-zram" | "swap-on-sd" => 60,
        "usb-storage-not-uas" => 55,
        "partition-unaligned" => 45,
        "usb-shared-port" => 40,
        // It is over: worth knowing, no more.
        "was-throttled" => 30,
        "throttled" => 70,
        _ => 50,
    }
}

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let machine = scene.machine();
    let of_tiers =
        machine.tiers.iter().flat_map(|tier| tier.warnings.iter().map(|warning| weigh(scene, tier, warning)));
    let of_machine = machine.notices.iter().map(|notice| plain(notice, None));
    let unread = machine.warnings.iter().map(|text| finding("unread", 30, None, sentence(text), vec![text.clone()]));
    of_tiers.chain(of_machine).chain(unread).map(Draft::from).collect()
}

/// True for a warning that says that a link runs below what it could.
fn slows_the_link(warning: &Warning) -> bool {
    matches!(
        warning.id.as_str(),
        "pcie-switch-limits" | "pcie-link-limits" | "pcie-port-limits" | "usb3-at-usb2" | "sd-slow-mode"
    )
}

/// A warning as the machine gave it.
fn plain(warning: &Warning, tier: Option<&str>) -> Finding {
    let text = sentence(&warning.text);
    let mut found = finding(&warning.id, untried(warning), tier, text, vec![warning.evidence.clone()]);
    found.advice = advice(&warning.id).map(str::to_owned);
    if warning.id == "swap-on-sd" {
        published(&mut found);
    }
    found
}

/// Beside a card that was not measured: what the swap simulation gave on a published card and on the fastest device of
/// the same article.
fn published(found: &mut Finding) {
    let reads = |name: &str| {
        let device = profile::device(name)?;
        Some((device, device.comparable(profile::Figure::SwapReadIops)?))
    };
    let (Some((card, few)), Some((fast, many))) = (reads("sd-evo-pi5"), reads("optane-pi5")) else { return };
    let label = profile::Figure::SwapReadIops.label();
    found.text += &format!(
        " Published: {} reads of 16 KiB a second at depth 4 on a {}, {} on an {}.",
        significant(few),
        card.title,
        significant(many),
        fast.title
    );
    found.evidence.extend(
        [(card, few), (fast, many)]
            .map(|(device, value)| format!("published {}: {label} {}", device.name, significant(value))),
    );
}

/// True when a warning about this tier's link says more than that the link is full or not.
pub(super) fn says_it(subject: &Subject<'_, '_>) -> bool {
    subject.steps.tier.is_some_and(|tier| tier.warnings.iter().any(slows_the_link))
}

fn weigh(scene: &Scene<'_, '_>, tier: &Tier, warning: &Warning) -> Finding {
    let mut found = plain(warning, Some(&tier.name));
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
        found.gain = gain(warning, tier, best);
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

/// What the better link would let through, where its ceiling is known and the warning's text does not compare it with
/// what was measured.
fn gain(warning: &Warning, tier: &Tier, best: f64) -> Option<String> {
    let better = tier.hops.iter().filter(|_| warning.id == "usb3-at-usb2").find_map(|hop| hop.could_be.as_deref())?;
    let (low, high) = machine::ceiling::usb_named(better)?.practical_mbps?;
    Some(format!("{low} to {} instead of {}", mbps(high), mbps(best)))
}

/// What to do about the warnings that are known by name.
fn advice(id: &str) -> Option<&'static str> {
    Some(match id {
        "pcie-switch-limits" => {
            "connect the device without the switch, or through one that links as fast as the device"
        }
        "pcie-link-limits" | "pcie-port-limits" => {
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
        let could_be = Some("USB 3 5 Gbit/s".to_owned());
        let hops = vec![machine::Hop { could_be, ..machine::Hop::default() }];
        Run::default().tiers([Tier { warnings, hops, ..usb2 }]).steps([Step::seq_read("sda", rate)])
    }

    #[test]
    fn a_slow_link_matters_to_a_device_that_fills_it() {
        let held = found(&on_usb2(34.8), "usb3-at-usb2");
        assert_eq!(
            held[0].text,
            "sda could do USB 3 and negotiated USB 2 (480 Mbit/s). It holds sda back: 34.6 of at most 40 MB/s are reached."
        );
        assert_eq!(held[0].weight, 75);
        assert_eq!(held[0].gain.as_deref(), Some("430 to 450 MB/s instead of 34.6 MB/s"));
        assert!(found(&on_usb2(34.8), "bus-limited").is_empty(), "said once is enough");
    }

    #[test]
    fn a_slow_link_costs_a_slower_device_nothing() {
        assert!(found(&on_usb2(12.0), "usb3-at-usb2").is_empty());
        let remark = remarked(&on_usb2(12.0), "usb3-at-usb2");
        assert!(remark[0].text.contains("costs nothing in sequence now"), "{}", remark[0].text);
    }

    #[test]
    fn swap_on_a_card_is_held_against_what_was_published() {
        let card = tier("mmcblk0", TierKind::Sd);
        let warnings =
            vec![warning("swap-on-sd", "Swap is on mmcblk0, an SD card: each page swapped in waits for it.")];
        let found = found(&Run::default().tiers([Tier { warnings, ..card }]), "swap-on-sd");
        assert!(
            found[0].text.contains(" 496 reads of 16 KiB a second at depth 4 on a Samsung EVO"),
            "{}",
            found[0].text
        );
        assert_eq!(found[0].evidence[1], "published sd-evo-pi5: 16K 70/30 QD4 read IOPS 496");
    }

    #[test]
    fn unknown_warnings_are_passed_on() {
        let odd =
            Tier { warnings: vec![warning("made-of-cheese", "sdb is made of cheese.")], ..tier("sdb", TierKind::Usb) };
        let found = found(&Run::default().tiers([odd]), "made-of-cheese");
        assert_eq!((found[0].text.as_str(), found[0].weight), ("sdb is made of cheese.", 50));
        assert_eq!(found[0].evidence, ["/sys/x/speed: 480"]);
    }

    #[test]
    fn notices_of_the_machine_are_findings_without_a_tier() {
        let mut run = Run::default();
        let old = warning("was-throttled", "It was throttled.");
        run.machine.notices = vec![warning("two-swap-managers", "dphys-swapfile and rpi-swap set up swap here"), old];
        let two = found(&run, "two-swap-managers");
        assert_eq!((two[0].weight, &two[0].tier), (60, &None));
        assert_eq!(found(&run, "was-throttled")[0].weight, 30);
    }
}
