//! Others at work while a step was measured: their CPU time, what a hypervisor took, and what they moved on the disk.

use super::{Draft, Scene, Subject, at, finding, mbps};
use crate::layer::{beyond_own, ends};
use crate::model::StepView;
use basics::Bytes;

/// From this share of the whole machine on, others' CPU time can move a figure. The kernel's own work for the I/O (its
/// threads and interrupts) is in it, so a low share means nothing.
const OTHERS: f64 = 0.25;
/// From this share on, a hypervisor that gives the CPU away shows in the percentiles.
const STOLEN: f64 = 0.05;
/// From this part of a step's own bytes on, what else the disk moved can have cost it as much time: others' requests may be
/// larger or smaller than its own, so the time itself is not known.
const SHARED: f64 = 0.1;
/// Clock ticks a second that Linux reports to programs (USER_HZ), on every architecture that this runs on.
const TICKS: f64 = 100.0;
/// Positions in [`observe::Sample::cpu_ticks`].
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const STEAL: usize = 7;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    processors(scene).into_iter().chain(scene.subjects.iter().filter_map(shared_disk)).collect()
}

fn processors(scene: &Scene<'_, '_>) -> Option<Draft> {
    let noisy: Vec<(&StepView<'_>, Noise)> =
        scene.run.steps.iter().filter_map(|step| Some((step, noise(step).filter(Noise::matters)?))).collect();
    let worst = |share: fn(&Noise) -> f64| noisy.iter().map(|(_, noise)| share(noise)).fold(0.0, f64::max);
    let (others, stolen) = (worst(|noise| noise.others), worst(|noise| noise.stolen));
    if noisy.is_empty() {
        return None;
    }
    let mut causes = Vec::new();
    if others >= OTHERS {
        causes.push(format!("other programs used up to {:.0} % of the processors", 100.0 * others));
    }
    if stolen >= STOLEN {
        causes.push(format!("the hypervisor gave up to {:.0} % of them to others", 100.0 * stolen));
    }
    let text = format!(
        "The machine was not quiet in {} of {} steps: {}; latencies and rates there may be worse than the disk's own.",
        noisy.len(),
        scene.run.steps.len(),
        basics::units::listed(&causes)
    );
    let evidence = noisy
        .iter()
        .map(|(step, n)| at(step, format_args!("others {:.0} %, stolen {:.0} %", 100.0 * n.others, 100.0 * n.stolen)));
    let mut found = finding("noisy-machine", 65, None, text, evidence.collect());
    found.advice = Some("measure again when nothing else runs".to_owned());
    Some(found.into())
}

/// Bytes on the disk that were not the steps' own.
fn shared_disk(subject: &Subject<'_, '_>) -> Option<Draft> {
    let whole = || subject.steps.all().filter(|step| step.is_whole());
    let more = |step: &StepView<'_>| beyond_own(step, &subject.steps.members(step)).filter(|more| *more >= SHARED);
    let own = |step: &StepView<'_>| Bytes(step.read.bytes + step.write.bytes).mbps(step.elapsed);
    let shared: Vec<(&StepView<'_>, f64)> = whole().filter_map(|step| Some((step, more(step)?))).collect();
    let (step, most) = shared.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!(
        "{} was not alone in {} of {} steps: beside {} of {} it moved {} more, for another program or for the file system itself; \
         rates there may be worse than the disk's own.",
        subject.name(),
        shared.len(),
        whole().count(),
        mbps(own(step)),
        step.name,
        mbps(most * own(step)),
    );
    let evidence =
        shared.iter().map(|(step, more)| at(step, format_args!("{:.0} % of its own bytes more", 100.0 * more)));
    let mut found = finding("shared-disk", 64, Some(subject.name()), text, evidence.collect());
    let advice =
        "measure again when nothing else uses it; a new ext4 writes its tables for minutes after it was mounted";
    found.advice = Some(advice.to_owned());
    Some(found.into())
}

/// True when others were at work enough to move this step's figures.
pub(crate) fn disturbed(step: &StepView<'_>) -> bool {
    noise(step).is_some_and(|noise| noise.matters())
}

/// Shares of the machine's CPU time in a step.
struct Noise {
    others: f64,
    stolen: f64,
}

impl Noise {
    fn matters(&self) -> bool {
        self.others >= OTHERS || self.stolen >= STOLEN
    }
}

fn noise(step: &StepView<'_>) -> Option<Noise> {
    let (first, last) = ends(step)?;
    let (before, after) = (first.cpu_ticks?, last.cpu_ticks?);
    let spent: Vec<f64> = before.iter().zip(after).map(|(b, a)| a.saturating_sub(*b) as f64).collect();
    let whole: f64 = spent.iter().sum();
    if whole <= 0.0 {
        return None;
    }
    let busy = whole - spent[IDLE] - spent[IOWAIT] - spent[STEAL];
    // Our own threads worked in the same time, as far as the samples cover the step.
    let covered = ((last.at - first.at).secs() / step.elapsed.secs()).min(1.0);
    // Where our own part is unknown, none of the work can be laid to others.
    let own = step.cpu.map_or(busy, |(user, system)| (user + system).secs() * TICKS * covered);
    Some(Noise { others: (busy - own).max(0.0) / whole, stolen: spent[STEAL] / whole })
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, tier};
    use basics::Nanos;
    use machine::TierKind;

    /// 2 s on four processors are 800 ticks, 40 in each of the 20 periods.
    fn run(busy: u64, stolen: u64, own: Nanos) -> Run {
        let mut step = Step::seq_read("sda", 100.0);
        step.cpu = Some((own, Nanos(0)));
        for (i, sample) in step.sampled().iter_mut().enumerate() {
            let i = i as u64;
            sample.cpu_ticks = Some([i * busy, 0, 0, i * (40 - busy - stolen), 0, 0, 0, i * stolen]);
        }
        Run::default().steps([step])
    }

    #[test]
    fn others_work_is_noise_and_our_own_is_not() {
        let noisy = found(&run(20, 0, Nanos(0)), "noisy-machine");
        assert!(noisy[0].text.contains("other programs used up to 50 % of the processors"), "{}", noisy[0].text);
        // 20 ticks a period over 2 s are 4 s of CPU time: ours.
        assert!(found(&run(20, 0, Nanos(4_000_000_000)), "noisy-machine").is_empty());
        assert!(found(&run(2, 0, Nanos(0)), "noisy-machine").is_empty());
    }

    #[test]
    fn without_our_own_part_nobody_is_accused() {
        let mut step = Step::seq_read("sda", 100.0);
        step.cpu = None;
        for (i, sample) in step.sampled().iter_mut().enumerate() {
            sample.cpu_ticks = Some([i as u64 * 20, 0, 0, i as u64 * 20, 0, 0, 0, 0]);
        }
        assert!(found(&Run::default().steps([step]), "noisy-machine").is_empty());
    }

    #[test]
    fn bytes_that_nobody_of_us_moved_are_somebody_elses() {
        let on = |share| {
            let step = Step::seq_read("sda", 100.0).at_disk("sda", share, 0);
            found(&Run::default().tiers([tier("sda", TierKind::Sata)]).steps([step]), "shared-disk")
        };
        let shared = on(1.6);
        assert!(
            shared[0].text.contains("in 1 of 1 steps: beside 100 MB/s of seq-read it moved 60"),
            "{}",
            shared[0].text
        );
        assert!(on(1.05).is_empty() && on(0.3).is_empty());
    }

    #[test]
    fn stolen_time_is_named() {
        let noisy = found(&run(0, 4, Nanos(0)), "noisy-machine");
        assert!(noisy[0].text.contains("the hypervisor gave up to 10 % of them to others"), "{}", noisy[0].text);
    }
}
