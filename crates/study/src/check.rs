//! What a `check` means: the figures of each tier, what holds them back, what they resemble and are good for.

use crate::figures::{TierSteps, best_sequential};
use crate::findings::{self, Findings, Scene, Subject};
use crate::fitness::fitness;
use crate::headline;
use crate::likeness::likenesses;
use crate::model::{CheckStudy, Finding, RunView, TierFigures, TierStudy};
use basics::{Known, Why};
use machine::{Ceiling, Tier, TierKind};

/// What there is to say of any run, most important first, each thing once.
pub fn findings(run: &RunView<'_>) -> Vec<Finding> {
    if run.method == "check" {
        return explain(run).each_finding().into_iter().cloned().collect();
    }
    let mut names: Vec<&str> = Vec::new();
    for name in run.steps.iter().map(|step| step.tier.unwrap_or(step.target)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    findings::of_method(&scene(run, names))
}

/// Explains the run of a `check`.
pub fn explain(run: &RunView<'_>) -> CheckStudy {
    let scene = scene(run, tier_names(run));
    let found = findings::of_check(&scene);
    CheckStudy {
        headline: headline::headline(&scene),
        tiers: scene.subjects.iter().map(|subject| tier_study(subject, &found)).collect(),
        findings: found.of_machine(),
    }
}

/// The subjects of these names, fastest first.
fn scene<'r, 'a>(run: &'r RunView<'a>, names: Vec<&'r str>) -> Scene<'r, 'a> {
    let subjects = names.into_iter().map(|name| Subject::new(run.machine, TierSteps::new(run, name)));
    let mut scene = Scene { run, subjects: subjects.collect() };
    findings::distrust_caches(&mut scene.subjects);
    scene.subjects.sort_by(|a, b| slowness(&a.figures).total_cmp(&slowness(&b.figures)));
    scene
}

/// Names of the tiers to speak about: all that were measured, of the others those that are a medium of their own, and
/// those that only root may measure.
fn tier_names<'r>(run: &'r RunView<'_>) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    let measured = run.steps.iter().filter_map(|step| step.tier);
    let media = run.machine.tiers.iter().filter(|tier| is_a_medium(tier)).map(|tier| tier.name.as_str());
    let refused = run.left_out.iter().filter(|left| left.step.is_empty() && left.why == Why::NoPermission);
    for name in measured.chain(media).chain(refused.map(|left| left.tier.as_str())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_a_medium(tier: &Tier) -> bool {
    !matches!(tier.kind, TierKind::FileSystem | TierKind::Loop | TierKind::Dm | TierKind::Md)
}

fn tier_study(subject: &Subject<'_, '_>, found: &Findings) -> TierStudy {
    let Subject { steps, figures, trusted } = subject;
    let ceiling = steps.tier.and_then(|tier| tier.ceiling.get());
    TierStudy {
        name: steps.name.to_owned(),
        place: steps.place(),
        figures: figures.clone(),
        ceiling_share: ceiling_share(trusted, ceiling),
        ceiling_hop: ceiling.map(|ceiling| ceiling.hop.clone()),
        resembles: likenesses(steps, trusted),
        findings: found.of(steps.name),
        good_for: fitness(steps, trusted),
    }
}

fn ceiling_share(figures: &TierFigures, ceiling: Option<&Ceiling>) -> Known<f64> {
    match (best_sequential(figures), ceiling) {
        (Some(best), Some(ceiling)) if ceiling.practical_mbps.1 > 0.0 => Known::Is(best / ceiling.practical_mbps.1),
        (None, Some(_)) => figures.seq_read_mbps.clone(),
        _ => Known::not_measured("no ceiling known"),
    }
}

/// For ordering: time of a small random read in µs, the memory's load, or at last the time to move a page in sequence.
fn slowness(figures: &TierFigures) -> f64 {
    let load = figures.load_ns.get().map(|ns| ns / 1e3);
    let page = figures.page_read_qd1.get().and_then(|page| page.mean.get()).map(|mean| mean.us());
    let small = figures.rand_read_4k_qd1_us.get().copied();
    let moved = best_sequential(figures).map(|mbps| 16384.0 / mbps);
    load.or(page).or(small).or(moved).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step, capped, mount, swap, tier};
    use basics::Nanos;
    use basics::units::GIB;
    use machine::Warning;
    use proptest::prelude::*;

    /// A loop device is no medium of its own, but where root could measure it that must be seen.
    #[test]
    fn what_only_root_may_measure_has_a_row() {
        let mut run = Run::default().tiers([
            tier("RAM", TierKind::Ram),
            tier("loop0", TierKind::Loop),
            tier("loop1", TierKind::Loop),
        ]);
        let left_out = |tier: &str, why| basics::plan::LeftOut { tier: tier.into(), step: String::new(), why };
        run.left_out =
            vec![left_out("loop0", Why::NoPermission), left_out("loop1", Why::NotMeasured("read-only image".into()))];
        let study = explain(&run.view());
        let row = study.tiers.iter().find(|tier| tier.name == "loop0").unwrap();
        assert_eq!(row.figures.seq_read_mbps, Known::Unknown(Why::NoPermission));
        assert!(study.tiers.iter().all(|tier| tier.name != "loop1"));
    }

    /// The Raspberry Pi 5 of the first article, measured as its tables say.
    fn pi5() -> Run {
        let card = capped("mmcblk0", TierKind::Sd, "SD SDR104", 104.0, (85.0, 95.0));
        let card = Tier { mounts: vec![mount("/", "ext4", None)], ..card };
        let sata = capped("sda", TierKind::Usb, "USB 3 5 Gbit/s", 500.0, (430.0, 450.0));
        let sata = Tier { mounts: vec![mount("/mnt/ssd", "ext4", None)], ..sata };
        let optane = capped("nvme0n1", TierKind::Nvme, "PCIe Gen2 x1", 500.0, (400.0, 430.0));
        let switch = Warning {
            id: "pcie-switch-limits".to_owned(),
            text: "nvme0n1 could do PCIe Gen3 x2, the switch before it links at Gen2 x1".to_owned(),
            evidence: "/sys/devices/pci0001:00/0001:00:00.0/current_link_speed: 5.0 GT/s PCIe".to_owned(),
        };
        let optane = Tier { warnings: vec![switch], ..optane };
        let disk = |name: &str, sequential: f64, swap_sim: ([u64; 2], [u64; 2]), read: u64| {
            let ([reads, writes], [read_ns, write_ns]) = swap_sim;
            [
                Step::seq_read(name, sequential),
                Step::swap_sim(name).reads(&[reads; 20], Nanos(read_ns)).writes(&[writes; 20], Nanos(write_ns)),
                Step::page_read(name, Nanos(read)),
            ]
        };
        let mut run = Run::default()
            .tiers([card, sata, optane, tier("RAM", TierKind::Ram)])
            .steps(disk("mmcblk0", 92.4, ([50, 21], [4_570_000, 8_690_000]), 3_400_000))
            .steps(disk("sda", 179.6, ([501, 215], [704_000, 171_000]), 212_000))
            .steps(disk("nvme0n1", 430.1, ([1170, 500], [217_000, 278_000]), 71_000))
            .steps([
                Step::seq_read("RAM", 9840.0).named("ram-read"),
                Step::small_reads("RAM", 1, Nanos(110)).named("ram-load"),
            ]);
        run.machine.ram = Known::Is(basics::Bytes(4 * GIB));
        run.machine.swaps = vec![swap("/var/swap", "mmcblk0", -2)];
        run
    }

    #[test]
    fn the_articles_machine_gets_the_articles_answers() {
        let study = explain(&pi5().view());
        let order: Vec<&str> = study.tiers.iter().map(|tier| tier.name.as_str()).collect();
        assert_eq!(order, ["RAM", "nvme0n1", "sda", "mmcblk0"]);
        let likes: Vec<&str> = study.tiers[1..].iter().map(|tier| tier.resembles[0].name.as_str()).collect();
        assert_eq!(likes, ["optane-pi5", "sata-usb3-pi5", "sd-evo-pi5"]);
        assert!((study.tiers[1].ceiling_share.get().unwrap() - 1.0).abs() < 0.01);
        let ids: Vec<&str> = study.findings.iter().map(|finding| finding.id.as_str()).collect();
        assert_eq!(ids, ["swap-on-slow-tier", "pcie-switch-limits", "bus-limited", "device-limited"]);
        assert!(study.findings[1].text.ends_with("It holds nvme0n1 back: 430 of at most 430 MB/s are reached."));
        assert!(study.headline.starts_with("Best for swap: nvme0n1, "), "{}", study.headline);
        for finding in study.findings.iter().chain(study.tiers.iter().flat_map(|tier| &tier.findings)) {
            assert!(finding.text.ends_with('.') && !finding.evidence.is_empty(), "{finding:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever a run holds, a study of it is whole: no infinity and no NaN, which JSON could not hold.
        #[test]
        fn nothing_that_was_measured_breaks_a_study(
            counts in prop::collection::vec(0u64..50, 0..14),
            latency in 1u64..10_000_000_000,
            elapsed in prop::option::of(0u64..10_000_000_000),
            share in 0.0f64..2.0,
            name in prop::sample::select(vec!["seq-read", "swap-sim", "page-read-qd1", "fsync", "ram-load", "other"]),
        ) {
            let step = || {
                let mut step = Step::seq_read("sda", 1.0).replaced(&counts, Nanos(latency)).named(name);
                step = step.at_disk("sda", share, 3);
                step.elapsed = elapsed.map_or(step.elapsed, Nanos);
                step
            };
            let usb = capped("sda", TierKind::Usb, "USB 2", 60.0, (35.0, 40.0));
            let run = Run::default().tiers([usb]).steps([step(), step()]);
            let study = explain(&run.view());
            let json = serde_json::to_value(&study).unwrap();
            prop_assert!(!has_nan(&json), "{json}");
            let compared = crate::compare(&[run.view()], &[run.view()]);
            prop_assert!(compared.figures.iter().all(|figure| figure.ratio == 1.0));
        }
    }

    /// An infinite or undefined number becomes null, where only tier and advice may be null.
    fn has_nan(json: &serde_json::Value) -> bool {
        match json {
            serde_json::Value::Array(all) => all.iter().any(|v| v.is_null() || has_nan(v)),
            serde_json::Value::Object(all) => all.iter().any(|(key, v)| {
                (v.is_null() && !["tier", "advice", "gain", "ceiling_hop", "service"].contains(&key.as_str()))
                    || has_nan(v)
            }),
            _ => false,
        }
    }
}
