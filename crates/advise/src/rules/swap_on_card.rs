//! Swap on a memory card: each page that is swapped in waits for it, and each that is swapped out wears it.

use super::{CARD, OPTANE, tool, variable};
use crate::goals::Job;
use crate::model::{Evidence, Gain, Origin, Recommendation, Rule};
use crate::situation::Situation;
use basics::Bytes;
use change::{Tool, Wanted};
use machine::{Tier, TierKind};
use study::predict::FaultPath;

pub(super) const RULE: Rule = Rule {
    name: "swap-on-card",
    title: "swap away from the memory card",
    condition: "the swap area that is filled first lies on an SD card",
    source: "Playing with an Intel Optane on a Raspberry Pi 5: the swap table; Project Pi3Desk",
    jobs: &Job::GENERAL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let (area, tier) = situation.first_swap()?;
    let card = tier.filter(|tier| tier.kind == TierKind::Sd)?;
    let managed = |name: &str| situation.machine.swap_managers.iter().any(|manager| manager == name);
    let (title, changes, to) = match faster(situation) {
        Some((tier, at)) if managed("dphys-swapfile") => {
            let file = if at.ends_with('/') { format!("{at}swapfile") } else { format!("{at}/swapfile") };
            let change = variable("/etc/dphys-swapfile", "CONF_SWAPFILE", &file);
            (format!("swap at {file} instead of on {}", card.name), vec![change], Some(tier))
        }
        _ => ("swap in compressed memory (zram) instead of on the card".to_owned(), zram(situation), None),
    };
    let who = situation.machine.swap_managers.join(", ");
    let hand = match (changes.is_empty(), who.is_empty()) {
        (false, _) => String::new(),
        (true, true) => " Nobody manages it here: swapoff and a line in fstab are yours.".to_owned(),
        (true, false) => {
            format!(" It is set up by {who}; the package zram-generator brings swap in compressed memory.")
        }
    };
    Some(Recommendation {
        title,
        why: format!(
            "{} is on {}, a memory card: a program whose page was swapped out waits for the card, and the card wears.{hand}",
            area.path.display(),
            card.name
        ),
        evidence: vec![
            Evidence::machine(
                "/proc/swaps",
                format!("{} {} priority {}", area.path.display(), area.size, area.priority),
            ),
            Evidence::published(
                OPTANE,
                "16 KiB 70/30 at depth 4: 707 IOPS on an SD card, 7,156 on a SATA disk behind USB 3",
            ),
            Evidence::published(CARD, "the card falls below 12 MB/s at both ends"),
        ],
        risk: Some(
            "zram takes its room from memory; what does not fit is refused where no other swap is left.".to_owned(),
        )
        .filter(|_| changes.iter().any(|change| matches!(change, Wanted::Tool { .. }))),
        gain: gain(situation, &card.name, to),
        changes,
        ..Recommendation::default()
    })
}

/// Published devices that stand for a disk of a kind as swap.
fn stands_for(kind: TierKind) -> Option<&'static str> {
    match kind {
        TierKind::Nvme => Some("nvme-usb3-pi5"),
        TierKind::Sata | TierKind::Usb => Some("sata-usb3-pi5"),
        TierKind::Zram => Some("zram-pi5"),
        _ => None,
    }
}

/// How many more pages a second come through faults, by `predict`'s path of a fault on both media: while nothing is written, and amid writes.
/// What was measured of both here takes the place of what was published of their like.
fn gain(situation: &Situation<'_>, card: &str, to: Option<&Tier>) -> Option<Gain> {
    let kind = to.map_or(TierKind::Zram, |tier| tier.kind);
    let measured = situation.medium(card).zip(to.and_then(|tier| situation.medium(&tier.name)));
    let page = situation.machine.page_size.get().copied().unwrap_or(Bytes(4096));
    let path = |name: &str| FaultPath::of(profile::find(name).ok()?, page);
    let there = stands_for(kind)?;
    let (slow, fast) = (path(CARD_LIKE)?, path(there)?);
    let mut times = vec![fast.mbps / slow.mbps, fast.amid_writes_mbps / slow.amid_writes_mbps];
    let mut from = format!("the published {CARD_LIKE} and {there}");
    if let Some((slow, fast)) = measured {
        times.push((fast.pages_per_s * fast.page.0 as f64) / (slow.pages_per_s * slow.page.0 as f64));
        from = format!("{from}, and runs {} and {}", slow.run, fast.run);
    }
    let percent = |times: f64| 100.0 * (times - 1.0);
    let low = times.iter().copied().fold(f64::INFINITY, f64::min);
    let high = times.iter().copied().fold(0.0, f64::max);
    let middle = (times.iter().map(|times| times.ln()).sum::<f64>() / times.len() as f64).exp();
    (low.is_finite() && low > 1.0).then(|| Gain {
        of: "more pages a second that a program waits for".to_owned(),
        percent: percent(middle),
        low: percent(low),
        high: percent(high),
        from: Origin::Predicted(from),
    })
}

/// A published card that stands for this one.
const CARD_LIKE: &str = "sd-evo-pi5";

/// Where a swap file of a disk that is no card could lie.
fn faster<'a>(situation: &Situation<'a>) -> Option<(&'a Tier, String)> {
    let fast = |kind| matches!(kind, TierKind::Nvme | TierKind::Sata | TierKind::Usb);
    let mounts = situation.mounts().filter(|(tier, mount)| {
        fast(tier.kind)
            && !mount.read_only
            && matches!(mount.fs.as_str(), "ext4" | "xfs")
            && !mount.at.starts_with("/boot")
    });
    let rate = |tier: &machine::Tier| tier.ceiling.get().map_or(0.0, |ceiling| ceiling.practical_mbps.1);
    let best = mounts.max_by(|(a, _), (b, _)| rate(a).total_cmp(&rate(b)));
    best.map(|(tier, mount)| (tier, mount.at.display().to_string()))
}

/// What brings zram here, if anything is installed that does.
pub(super) fn zram(situation: &Situation<'_>) -> Vec<Wanted> {
    if situation.setup.rpi_swap || situation.machine.swap_managers.iter().any(|manager| manager == "rpi-swap") {
        return vec![tool(Tool::RpiSwap, "Main", "Mechanism", "zram")];
    }
    if situation.setup.zram_generator {
        return vec![tool(Tool::ZramGenerator, "zram0", "zram-size", "min(ram / 2, 4096)")];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;

    #[test]
    fn who_manages_it_is_asked() {
        let mut scene = Scene::of(Job::Any).with_swap(TierKind::Sd);
        let said = judge(&scene.situation()).unwrap();
        assert!(said.changes.is_empty() && said.why.contains("Nobody manages it"), "{said:?}");
        scene.setup.rpi_swap = true;
        let lines =
            |scene: &Scene| judge(&scene.situation()).unwrap().changes.iter().map(Wanted::line).collect::<Vec<_>>();
        assert_eq!(lines(&scene), ["Mechanism=zram"]);
        scene.machine.swap_managers = vec!["dphys-swapfile".to_owned()];
        scene.machine.tiers.push(tier("sda", TierKind::Usb, "/mnt/ssd"));
        assert_eq!(lines(&scene), ["CONF_SWAPFILE=/mnt/ssd/swapfile"]);
        assert!(judge(&Scene::of(Job::Any).with_swap(TierKind::Nvme).situation()).is_none());
    }
}
