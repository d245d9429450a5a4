//! The one sentence of a check: what swap should be on, what a fault costs there, and what holds that disk back.

use crate::figures::best_sequential;
use crate::findings::swap::{fastest, fault};
use crate::findings::{Scene, Subject};
use crate::fitness::fitness;
use basics::units::significant;

/// Characters in which a headline stays; what holds the disk back is left to the findings when it does not fit.
const LONGEST: usize = 105;

/// In one sentence. It says no more than was measured.
pub(crate) fn headline(scene: &Scene<'_, '_>) -> String {
    let Some(best) = fastest(scene) else {
        let measured = scene.subjects.iter().any(|subject| best_sequential(&subject.figures).is_some());
        return if measured { "No disk was measured with random reads." } else { "Nothing was measured." }.to_owned();
    };
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
