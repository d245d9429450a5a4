//! A run whose figures were not measured says so before anything that is concluded from them.

use super::{Draft, Scene, finding};

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
}
