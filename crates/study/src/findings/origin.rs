//! A run whose figures were not measured says so before anything that is concluded from them.

use super::{Draft, Scene, finding};
use crate::model::Origin;

/// Of a shipped profile: where its source contradicts itself, or left something out as not to be trusted.
pub(super) fn inconsistent(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let Origin::Simulated(name) = scene.run.origin else { return Vec::new() };
    let Ok(profile) = profile::find(name) else { return Vec::new() };
    let one = |what: &String| {
        let text = format!("{name}: the published figures are not of one piece: {what}.");
        finding("source-inconsistent", 45, Some(name), text, vec![format!("published: {}", profile.source)]).into()
    };
    profile.inconsistent.iter().map(one).collect()
}

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let origin = scene.run.origin;
    let caution = origin.caution().into_iter();
    caution
        .map(|caution| {
            let text = format!("What is said here rests on figures that are not of this machine: {caution}.");
            finding("not-measured-here", 100, None, text, vec![format!("origin of the run: {origin}")]).into()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{Run, Step};
    use crate::{Origin, RunView, explain};
    use basics::Nanos;

    #[test]
    fn what_was_simulated_says_so_first() {
        let run = Run::default().steps([Step::page_read("nvme0n1", Nanos(71_000))]);
        let simulated = RunView { origin: Origin::Simulated("optane-pi5"), ..run.view() };
        let first = explain(&simulated).findings.remove(0);
        assert_eq!(first.id, "not-measured-here");
        assert!(first.text.contains("simulated from the profile optane-pi5, not measured"), "{}", first.text);
        assert!(explain(&run.view()).findings.iter().all(|finding| finding.id != "not-measured-here"));
    }

    #[test]
    fn what_a_source_says_against_itself_is_named() {
        let run = Run::of("ssd-review", &[]).steps([Step::page_read("p4800x", Nanos(71_000))]);
        let of = |profile| crate::findings(&RunView { origin: Origin::Simulated(profile), ..run.view() });
        let named = of("p4800x").into_iter().find(|finding| finding.id == "source-inconsistent").unwrap();
        assert!(named.text.contains("1.8 GB/s in the sweep over depths, above 2.0"), "{}", named.text);
        assert!(of("optane-pi5").iter().all(|finding| finding.id != "source-inconsistent"), "its figures agree");
        assert!(of("/my/own.toml").is_empty());
    }
}
