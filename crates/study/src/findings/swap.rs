//! Where swap is, what a major fault costs there, and where it would cost less.

use super::{Draft, Scene, Subject, at, finding};
use crate::summary::summarise;
use basics::units::GIB;
use basics::{Bytes, Nanos};
use machine::{SwapArea, TierKind};

/// A fault must be this much cheaper elsewhere, beyond what the noise leaves open, before a move is worth a sentence.
const CHEAPER: f64 = 1.5;
/// From this much RAM on, having no swap is common and no concern.
const ROOMY: Bytes = Bytes(16 * GIB);
/// Smallest device that is named as a place for swap.
const SMALLEST: Bytes = Bytes(GIB);

/// What a major fault costs on a tier: one random read of a page, nothing else in flight.
pub(crate) struct Fault {
    pub tier: String,
    pub mean: Nanos,
    /// What was read at once.
    pub page: Bytes,
    /// Half width of the 95 % interval over the mean.
    noise: f64,
    evidence: String,
}

/// The cost of a fault on a tier, when it was measured. RAM has none.
pub(crate) fn fault(scene: &Scene<'_, '_>, subject: &Subject<'_, '_>) -> Option<Fault> {
    if subject.trusted.page_read_qd1.is_unknown() {
        return None;
    }
    let small_pages = scene.machine().page_size.get().is_some_and(|page| page.0 <= 4096);
    let (first, second) =
        if small_pages { ("rand-read-4k-qd1", "page-read-qd1") } else { ("page-read-qd1", "rand-read-4k-qd1") };
    let step = subject.steps.measured(first).or_else(|| subject.steps.measured(second))?;
    let read = summarise(step).read?;
    let mean = *read.lat.mean.get()?;
    Some(Fault {
        tier: subject.name().to_owned(),
        mean,
        page: step.job.block.largest(),
        // At depth 1 the rate is the inverse of the latency, and so is as well known.
        noise: read.ci95_percent.get().map_or(0.5, |percent| percent / 100.0),
        evidence: at(step, format_args!("mean {mean}")),
    })
}

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut out = Vec::new();
    let fastest = fastest(scene);
    let move_to = fastest.as_ref().and_then(|fastest| on_slow_tier(scene, fastest));
    let moved = move_to.is_some();
    out.extend(move_to);
    if scene.machine().swaps.is_empty() {
        out.extend(none(scene, fastest.as_ref()));
    } else if !moved {
        out.extend(fastest.as_ref().and_then(|fastest| idle(scene, fastest)));
    }
    out
}

/// The cheapest fault among the tiers that swap could move to: block devices that can be written and have room.
pub(crate) fn fastest(scene: &Scene<'_, '_>) -> Option<Fault> {
    let eligible = |subject: &&Subject<'_, '_>| {
        subject.steps.tier.is_some_and(|tier| {
            let solid = !matches!(tier.kind, TierKind::Ram | TierKind::Zram | TierKind::FileSystem | TierKind::Loop);
            let writable = tier.block.as_ref().is_some_and(|block| block.read_only.get() != Some(&true));
            solid && writable && tier.size.get().is_none_or(|size| *size >= SMALLEST)
        })
    };
    scene.subjects.iter().filter(eligible).filter_map(|subject| fault(scene, subject)).min_by_key(|fault| fault.mean)
}

/// The swap area on a disk that is used first, with its tier's fault cost.
fn first_on_disk<'a>(scene: &Scene<'_, 'a>) -> Option<(&'a SwapArea, Fault)> {
    let mut areas: Vec<&SwapArea> = scene.machine().swaps.iter().collect();
    areas.sort_by_key(|area| std::cmp::Reverse(area.priority));
    areas.into_iter().find_map(|area| {
        let subject = scene.subject(area.tier.as_deref()?)?;
        let zram = subject.steps.tier.is_some_and(|tier| tier.kind == TierKind::Zram);
        (!zram).then(|| fault(scene, subject).map(|fault| (area, fault))).flatten()
    })
}

fn on_slow_tier(scene: &Scene<'_, '_>, fastest: &Fault) -> Option<Draft> {
    let (area, here) = first_on_disk(scene)?;
    let times = here.mean.secs() / fastest.mean.secs();
    let noise = here.noise.hypot(fastest.noise);
    if here.tier == fastest.tier || times / (1.0 + noise) < CHEAPER {
        return None;
    }
    let zram_first = scene.machine().swaps.iter().any(|other| {
        let tier = other.tier.as_deref().and_then(|tier| scene.machine().tiers.iter().find(|t| t.name == tier));
        other.priority > area.priority && tier.is_some_and(|tier| tier.kind == TierKind::Zram)
    });
    let opening = if zram_first { "What zram cannot hold is swapped to" } else { "Swap is on" };
    let text = format!(
        "{opening} {}: a major fault costs {} there, {} times the {} of {}.",
        here.tier,
        here.mean,
        super::times(times),
        fastest.mean,
        fastest.tier
    );
    let evidence = vec![
        format!("/proc/swaps: {} priority {}", area.path.display(), area.priority),
        here.evidence,
        fastest.evidence.clone(),
    ];
    let mut found = finding("swap-on-slow-tier", if zram_first { 65 } else { 90 }, Some(&here.tier), text, evidence);
    found.advice = Some(format!("put swap on {} with a higher priority", fastest.tier));
    found.gain = Some(format!("a major fault in {} instead of {}", fastest.mean, here.mean));
    Some(found.into())
}

fn none(scene: &Scene<'_, '_>, fastest: Option<&Fault>) -> Option<Draft> {
    let ram = *scene.machine().ram.get()?;
    let mut text = format!("There is no swap: when the {ram} of RAM are full, the kernel ends programs");
    let mut evidence = vec!["/proc/swaps: empty".to_owned()];
    if let Some(fastest) = fastest {
        text += &format!("; a major fault would cost {} on {}", fastest.mean, fastest.tier);
        evidence.push(fastest.evidence.clone());
    }
    text.push('.');
    let mut found = finding("no-swap", if ram < ROOMY { 50 } else { 20 }, None, text, evidence);
    found.advice = fastest.map(|fastest| format!("put a swap area on {}, and zram in front of it", fastest.tier));
    Some(found.into())
}

/// The fastest disk carries nothing while a slower one carries a mounted file system.
fn idle(scene: &Scene<'_, '_>, fastest: &Fault) -> Option<Draft> {
    let unused = |subject: &Subject<'_, '_>| {
        subject
            .steps
            .tier
            .is_some_and(|tier| tier.mounts.is_empty() && tier.swaps.is_empty() && !built_on(scene, &tier.name))
    };
    if !unused(scene.subject(&fastest.tier)?) {
        return None;
    }
    let root = scene.subjects.iter().find(|subject| {
        subject.steps.tier.is_some_and(|tier| tier.mounts.iter().any(|mount| mount.at.as_os_str() == "/"))
    })?;
    let slower = fault(scene, root)?;
    let times = slower.mean.secs() / fastest.mean.secs();
    if times / (1.0 + slower.noise.hypot(fastest.noise)) < CHEAPER {
        return None;
    }
    let text = format!(
        "{} is the fastest disk here and holds nothing: a random read takes {} there, {} on {}, which holds the system.",
        fastest.tier, fastest.mean, slower.mean, slower.tier
    );
    let mut found =
        finding("faster-tier-idle", 45, Some(&fastest.tier), text, vec![fastest.evidence.clone(), slower.evidence]);
    found.advice = Some(format!("put swap, databases or the system on {}", fastest.tier));
    Some(found.into())
}

/// True when another tier lies on this one.
fn built_on(scene: &Scene<'_, '_>, name: &str) -> bool {
    scene.machine().tiers.iter().any(|tier| tier.below.iter().any(|below| below == name))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, mount, swap, tier};
    use basics::units::GIB;
    use basics::{Bytes, Known, Nanos};
    use machine::{Tier, TierKind};

    fn card_and_nvme() -> Run {
        Run::default()
            .tiers([tier("mmcblk0", TierKind::Sd), tier("nvme0n1", TierKind::Nvme)])
            .steps([Step::page_read("mmcblk0", Nanos(3_400_000)), Step::page_read("nvme0n1", Nanos(200_000))])
    }

    #[test]
    fn swap_on_the_slow_tier_says_what_a_fault_costs_and_would_cost() {
        let mut run = card_and_nvme();
        run.machine.swaps = vec![swap("/var/swap", "mmcblk0", -2)];
        let slow = found(&run, "swap-on-slow-tier");
        assert_eq!(
            slow[0].text,
            "Swap is on mmcblk0: a major fault costs 3.40 ms there, 17 times the 200 µs of nvme0n1."
        );
        assert_eq!(slow[0].evidence[0], "/proc/swaps: /var/swap priority -2");
        assert_eq!(slow[0].gain.as_deref(), Some("a major fault in 200 µs instead of 3.40 ms"));
        run.machine.swaps = vec![swap("/dev/nvme0n1p3", "nvme0n1", -2)];
        assert!(found(&run, "swap-on-slow-tier").is_empty());
    }

    #[test]
    fn behind_zram_it_matters_less() {
        let mut run = card_and_nvme().tiers([tier("zram0", TierKind::Zram)]);
        run.machine.swaps = vec![swap("/var/swap", "mmcblk0", -2), swap("/dev/zram0", "zram0", 100)];
        let slow = found(&run, "swap-on-slow-tier");
        assert!(slow[0].text.starts_with("What zram cannot hold is swapped to mmcblk0"), "{}", slow[0].text);
        assert_eq!(slow[0].weight, 65);
    }

    /// 20 % apart is no reason to move.
    #[test]
    fn nearly_equal_tiers_are_left_alone() {
        let mut run = Run::default()
            .tiers([tier("sda", TierKind::Usb), tier("sdb", TierKind::Usb)])
            .steps([Step::page_read("sda", Nanos(240_000)), Step::page_read("sdb", Nanos(200_000))]);
        run.machine.swaps = vec![swap("/dev/sda2", "sda", -2)];
        assert!(found(&run, "swap-on-slow-tier").is_empty());
    }

    #[test]
    fn no_swap_matters_on_a_small_machine() {
        let mut run = card_and_nvme();
        run.machine.ram = Known::Is(Bytes(4 * GIB));
        let none = found(&run, "no-swap");
        assert!(none[0].text.contains("when the 4 GiB of RAM are full"), "{}", none[0].text);
        assert!(none[0].text.ends_with("would cost 200 µs on nvme0n1."), "{}", none[0].text);
        run.machine.ram = Known::Is(Bytes(64 * GIB));
        assert!(found(&run, "no-swap").is_empty());
    }

    #[test]
    fn an_idle_disk_is_named() {
        let root = Tier { mounts: vec![mount("/", "ext4", None)], ..tier("mmcblk0", TierKind::Sd) };
        let mut run = Run::default()
            .tiers([root, tier("nvme0n1", TierKind::Nvme)])
            .steps([Step::page_read("mmcblk0", Nanos(600_000)), Step::page_read("nvme0n1", Nanos(60_000))]);
        run.machine.swaps = vec![swap("/dev/zram0", "zram0", 100)];
        let idle = found(&run, "faster-tier-idle");
        assert!(idle[0].text.starts_with("nvme0n1 is the fastest disk here and holds nothing"), "{}", idle[0].text);
    }
}
