//! Others at work while a step was measured: their CPU time, what a hypervisor took, and what they moved on the disk.

use super::{Draft, Scene, Subject, at, finding, mbps};
use crate::layer::{Beyond, beyond_own, ends};
use crate::model::StepView;

/// From this share of the whole machine on, others' CPU time can move a figure. The kernel's own work for the I/O (its
/// threads and interrupts) is in it, so a low share means nothing.
const OTHERS: f64 = 0.25;
/// From this share on, a hypervisor that gives the CPU away shows in the percentiles.
const STOLEN: f64 = 0.05;
/// From this part of a step's own bytes on, what else the disk moved can have cost it as much time: others' requests may be
/// larger or smaller than its own, so the time itself is not known.
const SHARED: f64 = 0.1;
/// 10^6 B/s below which it is the few writes that every system makes.
const FELT: f64 = 1.0;
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
        causes.push(format!("the hypervisor gave up to {:.0} % of the processors to others", 100.0 * stolen));
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
    let whole = subject.steps.all().filter(|step| step.is_whole());
    let judged: Vec<(&StepView<'_>, Beyond)> =
        whole.filter_map(|step| Some((step, beyond_own(step, &subject.steps.members(step))?))).collect();
    let matters = |beyond: &Beyond| beyond.more_mbps >= FELT && beyond.more_mbps >= SHARED * beyond.own_mbps;
    let shared: Vec<_> = judged.iter().filter(|(_, beyond)| matters(beyond)).collect();
    let (step, most) = shared.iter().max_by(|a, b| a.1.more_mbps.total_cmp(&b.1.more_mbps))?;
    let text = format!(
        "{} was not alone in {} of {} steps: beside {} of {} it moved {} more, for another program or for the file system itself; \
         rates there may be worse than the disk's own.",
        subject.name(),
        shared.len(),
        judged.len(),
        mbps(most.own_mbps),
        step.name,
        mbps(most.more_mbps),
    );
    let evidence = shared.iter().map(|(step, beyond)| at(step, format_args!("{} more", mbps(beyond.more_mbps))));
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
    // Swapping is done by the kernel and by an emulated disk's process, which nobody has counted.
    let counted = step.cpu.filter(|_| step.load.is_none());
    let own = counted.map_or(busy, |(user, system)| (user + system).secs() * TICKS * covered);
    Some(Noise { others: (busy - own).max(0.0) / whole, stolen: spent[STEAL] / whole })
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::found;
    use crate::testing::{Run, Step, mount, tier};
    use basics::Nanos;
    use basics::job::Engine;
    use machine::{Tier, TierKind};

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
        let of = |step: Step, tier: Tier| found(&Run::default().tiers([tier]).steps([step]), "shared-disk");
        let sata = || tier("sda", TierKind::Sata);
        let read = |rate, share| Step::seq_read("sda", rate).at_disk("sda", share, 0);
        let shared = of(read(100.0, 1.6), sata());
        assert!(
            shared[0].text.contains("in 1 of 1 steps: beside 100 MB/s of seq-read it moved 60"),
            "{}",
            shared[0].text
        );
        for (rate, share) in [(100.0, 1.05), (100.0, 0.3), (2.0, 1.3)] {
            assert!(of(read(rate, share), sata()).is_empty(), "{rate} MB/s, {share} times at the disk");
        }
        let mut faults = read(100.0, 1.6);
        faults.engine.as_mut().unwrap().used = Engine::Mmap;
        assert!(of(faults, sata()).is_empty(), "the kernel reads around a fault");
        // A file system that writes its trees anew, or every byte twice.
        let write = || Step::seq_write("sda", 100.0).at_disk("sda", 1.6, 0);
        let on = |fs: &str| Tier { mounts: vec![mount("/mnt/here", fs, None)], ..sata() };
        assert!(of(write(), on("btrfs")).is_empty() && of(write(), on("ext4")).len() == 1);
    }

    #[test]
    fn stolen_time_is_named() {
        let noisy = found(&run(0, 4, Nanos(0)), "noisy-machine");
        assert!(
            noisy[0].text.contains("the hypervisor gave up to 10 % of the processors to others"),
            "{}",
            noisy[0].text
        );
    }
}
