//! Memory measured in a region that the processor's caches hold: the figures are the cache's.

use super::{Draft, Scene, at, finding};
use crate::figures::TierSteps;
use crate::model::StepView;
use basics::Bytes;
use machine::{Machine, TierKind};

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let Some(cache) = scene.machine().cpu.last_level_cache.get() else { return Vec::new() };
    scene
        .subjects
        .iter()
        .filter_map(|subject| {
            let inside = within(scene.machine(), &subject.steps);
            let largest = inside.iter().map(|(_, region)| *region).max()?;
            let text = format!(
                "What was measured of {} in {largest} is the CPU's cache, not the memory: its last level holds {cache}.",
                subject.name()
            );
            let evidence = inside.iter().map(|(step, region)| at(step, region)).collect();
            let mut found = finding("cpu-cache", 95, Some(subject.name()), text, evidence);
            found.advice = Some(format!("measure in {} or more (`--set size=…`)", Bytes(FAR * cache.0)));
            Some(found.into())
        })
        .collect()
}

/// In a region of so many times the cache, what the cache holds of it changes a figure by an eighth at most.
const FAR: u64 = 8;

/// The steps on memory whose region the last level of cache holds, with that region.
pub(super) fn within<'r, 'a>(machine: &Machine, steps: &TierSteps<'r, 'a>) -> Vec<(&'r StepView<'a>, Bytes)> {
    let memory = steps.tier.is_none_or(|tier| tier.kind == TierKind::Ram);
    let Some(cache) = machine.cpu.last_level_cache.get().filter(|_| memory) else { return Vec::new() };
    let whole = steps.all().filter(|step| step.is_whole() && step.target == "memory");
    whole.filter_map(|step| Some((step, step.region.filter(|region| region <= cache)?))).collect()
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, tier};
    use basics::{Bytes, Known};
    use machine::TierKind;

    fn run(region: u64, cache: Option<u64>) -> Run {
        let mut step = Step::seq_read("RAM", 90_000.0).named("ram-read");
        (step.region, step.target) = (Some(Bytes(region)), "memory".to_owned());
        let mut run = Run::default().tiers([tier("RAM", TierKind::Ram)]).steps([step]);
        run.machine.cpu.last_level_cache = Known::or_not_reported(cache.map(Bytes));
        run
    }

    #[test]
    fn what_fits_the_cache_is_the_cache() {
        let cached = found(&run(16 << 20, Some(32 << 20)), "cpu-cache");
        assert_eq!(
            cached[0].text,
            "What was measured of RAM in 16 MiB is the CPU's cache, not the memory: its last level holds 32 MiB."
        );
        assert_eq!(cached[0].evidence, ["step 0 ram-read: 16 MiB"]);
        assert_eq!(cached[0].advice.as_deref(), Some("measure in 256 MiB or more (`--set size=…`)"));
        assert!(found(&run(64 << 20, Some(32 << 20)), "cpu-cache").is_empty());
        assert!(found(&run(16 << 20, None), "cpu-cache").is_empty(), "not known is not small");
        // The row shows what was measured, and nothing is judged by it.
        let study = explain(&run(16 << 20, Some(32 << 20)).view()).tiers.remove(0);
        assert!(study.figures.seq_read_mbps.get().is_some() && study.resembles.is_empty(), "{study:?}");
        assert!(study.good_for.iter().all(|fitness| fitness.verdict == "unknown"), "{:?}", study.good_for);
    }
}
