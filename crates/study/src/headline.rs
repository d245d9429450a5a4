//! The one sentence of a check: what swap should be on, what a fault costs there, and what holds that disk back.

use crate::figures::best_sequential;
use crate::findings::swap::{fastest, fault};
use crate::findings::{Scene, Subject};
use crate::fitness::fitness;
use basics::units::significant;
use machine::TierKind;

/// Characters in which a headline stays; what holds the disk back is left to the findings when it does not fit.
const LONGEST: usize = 105;

/// In one sentence. It says no more than was measured.
pub(crate) fn headline(scene: &Scene<'_, '_>) -> String {
    let Some(best) = fastest(scene) else { return without_pages(scene) };
    let others = scene.subjects.iter().filter(|subject| subject.name() != best.tier);
    let slowest = others.filter_map(|subject| fault(scene, subject)).max_by_key(|fault| fault.mean);
    let text = match slowest.filter(|slowest| slowest.mean > best.mean && slowest.page == best.page) {
        Some(slowest) => format!(
            "Best for swap: {}, a {} page in {} ({}: {})",
            best.tier, best.page, best.mean, slowest.tier, slowest.mean
        ),
        None => {
            let answers = format!("{} answers a {} page in {}", best.tier, best.page, best.mean);
            scene.subject(&best.tier).and_then(use_as_swap).map_or(answers.clone(), |word| format!("{answers}: {word}"))
        }
    };
    let limit = limit(scene, &best.tier).map(|limit| format!("; {limit}"));
    let limit = limit.filter(|limit| text.chars().count() + limit.chars().count() < LONGEST).unwrap_or_default();
    format!("{text}{limit}.")
}

/// What there is to say when no disk was asked for single pages, as in a check that was broken off.
fn without_pages(scene: &Scene<'_, '_>) -> String {
    let in_memory = |kind| matches!(kind, TierKind::Ram | TierKind::Zram);
    let disks = || scene.subjects.iter().filter(|subject| !subject.steps.tier.is_some_and(|tier| in_memory(tier.kind)));
    let mixed = disks().filter_map(|subject| {
        let (read, write) = (subject.trusted.swap_sim_read.get()?, subject.trusted.swap_sim_write.get()?);
        Some((subject.name(), subject.steps.measured("swap-sim")?.job.block.largest(), read.iops + write.iops))
    });
    if let Some((name, block, iops)) = mixed.max_by(|a, b| a.2.total_cmp(&b.2)) {
        return format!("{name} does {} random operations of {block} a second, 70 % of them reads.", significant(iops));
    }
    let moved = disks().filter_map(|subject| Some((subject.name(), best_sequential(&subject.trusted)?)));
    if let Some((name, rate)) = moved.max_by(|a, b| a.1.total_cmp(&b.1)) {
        return format!("{name} moves {} MB/s in sequence; no disk was measured with random reads.", significant(rate));
    }
    let measured = scene.subjects.iter().any(|subject| best_sequential(&subject.figures).is_some());
    if measured { "No disk was measured." } else { "Nothing was measured." }.to_owned()
}

/// What a tier is as swap, by the thresholds of its fitness; nothing when that was not measured.
fn use_as_swap(subject: &Subject<'_, '_>) -> Option<&'static str> {
    let fitness = fitness(&subject.steps, &subject.trusted);
    match fitness.iter().find(|fitness| fitness.purpose == "llm-swap")?.verdict.as_str() {
        "yes" => Some("fast enough to swap a language model"),
        "slow" => Some("bearable as swap, slow for a language model"),
        "no" => Some("too slow to swap a language model"),
        _ => None,
    }
}

/// The bus of a tier, when that sets its limit and not the disk.
fn limit(scene: &Scene<'_, '_>, tier: &str) -> Option<String> {
    let subject = scene.subject(tier)?;
    let ceiling = subject.steps.tier?.ceiling.get()?;
    let best = best_sequential(&subject.trusted)?;
    let full = crate::findings::is_bus_limited(best, ceiling);
    full.then(|| format!("{} caps it at {} MB/s", ceiling.hop, significant(best)))
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
            "Best for swap: nvme0n1, a 16 KiB page in 71.0 µs (mmcblk0: 710 µs); PCIe Gen2 x1 caps it at 410 MB/s."
        );
        assert_eq!(explain(&Run::default().view()).headline, "Nothing was measured.");
    }

    /// Bug: a check that was broken off said that nothing was measured with random reads beside a table that had them.
    #[test]
    fn a_check_that_was_broken_off_uses_what_is_there() {
        let run = |steps: Vec<Step>| Run::default().tiers([tier("vda", TierKind::Virtio)]).steps(steps);
        let said = |steps| explain(&run(steps).view()).headline;
        let swap = Step::swap_sim("vda").reads(&[1764; 20], Nanos(200_000)).writes(&[756; 20], Nanos(200_000));
        assert_eq!(
            said(vec![Step::seq_read("vda", 1048.576), swap]),
            "vda does 25,200 random operations of 16 KiB a second, 70 % of them reads."
        );
        assert_eq!(
            said(vec![Step::seq_read("vda", 1048.576)]),
            "vda moves 1,049 MB/s in sequence; no disk was measured with random reads."
        );
    }

    #[test]
    fn of_one_disk_it_says_what_that_is_good_for() {
        let page = || Step::page_read("vda", Nanos(186_000));
        let run = |steps: Vec<Step>| Run::default().tiers([tier("vda", TierKind::Virtio)]).steps(steps);
        let swap = |reads| Step::swap_sim("vda").reads(&[reads; 20], Nanos(300_000));
        let said = |steps| explain(&run(steps).view()).headline;
        assert_eq!(said(vec![page()]), "vda answers a 16 KiB page in 186 µs.");
        let all = [(1170, "fast enough to swap a language model"), (50, "too slow to swap a language model")];
        for (reads, word) in all {
            let both = swap(reads).writes(&[reads / 2; 20], Nanos(300_000));
            assert_eq!(said(vec![page(), both]), format!("vda answers a 16 KiB page in 186 µs: {word}."));
        }
    }
}
