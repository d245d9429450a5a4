//! What a `check` means: the figures of each tier, what holds them back, what they resemble and are good for.

use crate::figures::TierSteps;
use crate::findings::{self, Findings, Scene, Subject};
use crate::fitness::fitness;
use crate::headline;
use crate::likeness::likenesses;
use crate::model::{CheckStudy, RunView, TierFigures, TierStudy};
use basics::Known;
use machine::{Ceiling, Tier, TierKind};

/// Explains the run of a `check`.
pub fn explain(run: &RunView<'_>) -> CheckStudy {
    let names = tier_names(run);
    let subjects = names.into_iter().map(|name| Subject::new(TierSteps::new(run, name)));
    let mut scene = Scene { run, subjects: subjects.collect() };
    scene.subjects.sort_by(|a, b| slowness(&a.figures).total_cmp(&slowness(&b.figures)));
    let found = findings::all(&scene);
    CheckStudy {
        headline: headline::headline(&scene),
        tiers: scene.subjects.iter().map(|subject| tier_study(subject, &found)).collect(),
        findings: found.of_machine(),
    }
}

/// Names of the tiers to speak about: all that were measured, and of the others those that are a medium of their own.
fn tier_names<'r>(run: &'r RunView<'_>) -> Vec<&'r str> {
    let mut names: Vec<&str> = Vec::new();
    let measured = run.steps.iter().filter_map(|step| step.tier);
    let media = run.machine.tiers.iter().filter(|tier| is_a_medium(tier)).map(|tier| tier.name.as_str());
    for name in measured.chain(media) {
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

/// The better of the two sequential rates, 10^6 B/s.
pub(crate) fn best_sequential(figures: &TierFigures) -> Option<f64> {
    let rates = [figures.seq_read_mbps.get(), figures.seq_write_mbps.get()];
    rates.into_iter().flatten().copied().reduce(f64::max)
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
