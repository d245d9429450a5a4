//! The figures that a `check` is about, tier by tier, out of its steps. What is missing says why in a word.

use crate::layer::members;
use crate::model::{RunView, State, StepView, TierFigures};
use crate::summary::{latency_of, summarise};
use basics::plan::LeftOut;
use basics::{Known, Nanos, NotRun, Why};
use machine::Tier;

/// The steps of one tier by name; a later one of the same name (a repeat) wins when it was measured to its end.
pub(crate) struct TierSteps<'r, 'a> {
    /// The tier's name.
    pub name: &'r str,
    /// What the machine knows of it.
    pub tier: Option<&'a Tier>,
    tiers: &'a [Tier],
    steps: Vec<&'r StepView<'a>>,
    left_out: Vec<&'a LeftOut>,
}

impl<'r, 'a> TierSteps<'r, 'a> {
    /// The steps of `run` that speak about the tier called `name`, or ran on the target of that name where no tier is known.
    pub fn new(run: &'r RunView<'a>, name: &'r str) -> Self {
        TierSteps {
            name,
            tier: run.machine.tiers.iter().find(|tier| tier.name == name),
            tiers: &run.machine.tiers,
            steps: run.steps.iter().filter(|step| step.tier.unwrap_or(step.target) == name).collect(),
            left_out: run.left_out.iter().filter(|left| left.tier == name).collect(),
        }
    }
    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &'r StepView<'a>> + '_ {
        self.steps.iter().copied()
    }
    /// The last one of this name that was measured to its end: what a part of a step shows is judged by nobody.
    pub fn measured(&self, name: &str) -> Option<&'r StepView<'a>> {
        self.steps.iter().rev().copied().find(|step| step.name == name && step.is_whole())
    }
    /// The tiers that a step's bytes went to: this one, or all that carry the file system on which it ran.
    pub fn members(&self, step: &StepView<'_>) -> Vec<&'a Tier> {
        self.tier.map_or_else(Vec::new, |tier| members(step, tier, self.tiers))
    }
    /// Where the tier was measured, or its node.
    pub fn place(&self) -> String {
        self.steps
            .iter()
            .find(|step| !step.target.is_empty())
            .map(|step| step.target.to_owned())
            .or_else(|| self.tier?.path.as_ref().map(|path| path.display().to_string()))
            .unwrap_or_default()
    }

    /// A figure of the step called `name`, or the reason why there is none.
    fn figure<T>(&self, name: &str, writes: bool, figure: impl Fn(&StepView<'_>) -> Option<T>) -> Known<T> {
        match self.measured(name).and_then(figure) {
            Some(value) => Known::Is(value),
            None => Known::Unknown(self.why_not(name, writes)),
        }
    }

    /// Why a step has no figure: its own failure first, or that its turn did not come, then what the plan left out, else
    /// what the machine says.
    fn why_not(&self, name: &str, writes: bool) -> Why {
        let failed = |step: &&&StepView<'_>| Some(step.failed?.0.word());
        let of_name = || self.steps.iter().filter(|step| step.name == name);
        let word =
            of_name().find_map(|step| failed(&step)).or_else(|| match of_name().find_map(|step| step.not_run)? {
                // What the earlier step on the target failed of is this one's reason too.
                NotRun::TargetFailed => self.steps.iter().find_map(|step| failed(&step)).or(Some("target failed")),
                why => Some(why.word()),
            });
        if let Some(word) = word {
            return Why::NotMeasured(word.to_owned());
        }
        match self.steps.iter().rev().find(|step| step.name == name).map(|step| step.state) {
            Some(State::Interrupted) => return Why::NotMeasured("interrupted".to_owned()),
            Some(State::Running) => return Why::NotMeasured("still running".to_owned()),
            Some(State::Done | State::Failed | State::NotRun) | None => {}
        }
        if let Some(left) = self.left_out.iter().find(|left| left.step == name || left.step.is_empty()) {
            return left.why.clone();
        }
        if self.measured("ram-read").is_some() {
            // Nobody swaps to RAM or waits for it to sync: there is no such figure.
            return Why::NotReported;
        }
        let Some(tier) = self.tier else { return Why::NotMeasured("not measured".to_owned()) };
        let read_only = tier.block.as_ref().is_some_and(|block| block.read_only == Known::Is(true))
            || (!tier.mounts.is_empty() && tier.mounts.iter().all(|mount| mount.read_only));
        let word = match () {
            () if writes && read_only => "read-only",
            () if writes && tier.block.is_some() && tier.mounts.is_empty() => "not mounted",
            () => "not measured",
        };
        Why::NotMeasured(word.to_owned())
    }
}

/// All figures of one tier.
pub(crate) fn figures(steps: &TierSteps<'_, '_>) -> TierFigures {
    let memory = steps.measured("ram-read").is_some() || steps.measured("ram-load").is_some();
    let (read_step, write_step) = if memory { ("ram-read", "ram-write") } else { ("seq-read", "seq-write") };
    let mbps_read = |step: &StepView<'_>| summarise(step).read.map(|side| side.mbps);
    let mbps_write = |step: &StepView<'_>| summarise(step).write.map(|side| side.mbps);
    let read_latency = |step: &StepView<'_>| (!step.read.latency.is_empty()).then(|| latency_of(step.read));
    TierFigures {
        seq_read_mbps: steps.figure(read_step, false, mbps_read),
        seq_write_mbps: steps.figure(write_step, true, mbps_write),
        swap_sim_read: steps.figure("swap-sim", true, |step| summarise(step).read),
        swap_sim_write: steps.figure("swap-sim", true, |step| summarise(step).write),
        // Of RAM a load stands in its place; on a kernel with 4 KiB pages the 4 KiB read is the page read.
        page_read_qd1: match steps.figure("page-read-qd1", false, read_latency) {
            Known::Is(page) => Known::Is(page),
            Known::Unknown(_) if memory => steps.figure("ram-load", false, read_latency),
            Known::Unknown(_) if page_is_4k(steps) => steps.figure("rand-read-4k-qd1", false, read_latency),
            unknown => unknown,
        },
        rand_read_4k_qd1_us: steps.figure("rand-read-4k-qd1", false, |step| Some(step.read.latency.mean()?.us())),
        rand_read_4k_qd32_iops: steps.figure("rand-read-4k-qd32", false, |step| Some(summarise(step).read?.iops)),
        fsync: steps.figure("fsync", true, |step| (!step.write.latency.is_empty()).then(|| latency_of(step.write))),
        load_ns: steps.figure("ram-load", false, |step| Some(step.read.latency.mean()?.0 as f64)),
    }
}

/// Fewest operations whose 99th percentile is judged: with fewer it is their largest one, and no percentile.
const FOR_P99: u64 = 100;

/// The p99 of a write with its fsync, if enough of them ran to judge by it.
pub(crate) fn fsync_p99(steps: &TierSteps<'_, '_>, figures: &TierFigures) -> Known<Nanos> {
    let fsync = match &figures.fsync {
        Known::Is(fsync) => fsync,
        Known::Unknown(why) => return Known::Unknown(why.clone()),
    };
    let operations = steps.measured("fsync").map_or(0, |step| step.write.operations());
    if operations < FOR_P99 {
        return Known::not_measured(format!("{operations} operations are too few for it, {FOR_P99} are needed"));
    }
    Known::or_not_reported(fsync.percentile(99.0))
}

/// The better of the two sequential rates, 10^6 B/s.
pub(crate) fn best_sequential(figures: &TierFigures) -> Option<f64> {
    let rates = [figures.seq_read_mbps.get(), figures.seq_write_mbps.get()];
    rates.into_iter().flatten().copied().reduce(f64::max)
}

impl TierFigures {
    /// Puts a reason in the place of every figure that reads decided; writes that an fsync ended stay.
    pub(crate) fn forget_reads(&mut self, why: &Why) {
        let why = || why.clone();
        self.seq_read_mbps = Known::Unknown(why());
        self.swap_sim_read = Known::Unknown(why());
        self.swap_sim_write = Known::Unknown(why());
        self.page_read_qd1 = Known::Unknown(why());
        self.rand_read_4k_qd1_us = Known::Unknown(why());
        self.rand_read_4k_qd32_iops = Known::Unknown(why());
    }
}

/// True when there is no step of its own for the page, because a page is 4 KiB.
fn page_is_4k(steps: &TierSteps<'_, '_>) -> bool {
    !steps.all().any(|step| step.name == "page-read-qd1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain;
    use crate::testing::{Run, Step, mount, tier};
    use basics::FailKind;
    use machine::TierKind;

    fn of(run: &Run) -> TierFigures {
        explain(&run.view()).tiers.remove(0).figures
    }

    #[test]
    fn every_figure_comes_from_its_step() {
        let run = Run::default().steps([
            Step::seq_write("sda", 52.4288),
            Step::seq_read("sda", 104.8576),
            Step::swap_sim("sda").reads(&[70; 20], Nanos(4_000_000)).writes(&[30; 20], Nanos(4_000_000)),
            Step::page_read("sda", Nanos(500_000)),
            Step::small_reads("sda", 1, Nanos(400_000)),
            Step::small_reads("sda", 32, Nanos(3_200_000)),
            Step::fsyncs("sda", Nanos(1_000_000)),
        ]);
        let figures = of(&run);
        let near = |known: Known<f64>, value: f64| (known.get().unwrap() / value - 1.0).abs() < 0.001;
        assert!(near(figures.seq_write_mbps, 52.4288));
        assert!(near(figures.seq_read_mbps, 104.8576));
        assert!(near(figures.swap_sim_read.map(|side| side.iops), 700.0));
        assert!(near(figures.swap_sim_write.map(|side| side.mbps), 300.0 * 0.016_384));
        assert!(near(figures.page_read_qd1.map(|page| page.percentile(50.0).unwrap().us()), 500.0));
        assert!(near(figures.rand_read_4k_qd1_us, 400.0));
        assert!(near(figures.rand_read_4k_qd32_iops, 10_000.0));
        assert!(near(figures.fsync.map(|fsync| fsync.percentile(99.0).unwrap().us()), 1000.0));
        assert!(figures.load_ns.is_unknown());
    }

    #[test]
    fn without_a_page_of_its_own_the_4k_read_is_the_page_read() {
        let figures = of(&Run::default().steps([Step::small_reads("sda", 1, Nanos(400_000))]));
        assert!(!figures.page_read_qd1.is_unknown());
        let failed = Step::page_read("sda", Nanos(500_000)).replaced(&[], Nanos(1)).failed(FailKind::Io, "I/O error");
        let figures = of(&Run::default().steps([Step::small_reads("sda", 1, Nanos(400_000)), failed]));
        assert_eq!(figures.page_read_qd1, Known::not_measured("I/O error"));
    }

    #[test]
    fn memory_has_bandwidth_and_loads() {
        let mut loads = Step::small_reads("RAM", 1, Nanos(110)).named("ram-load");
        loads.read.untimed = 255 * loads.read.latency.count();
        let run = Run::default().steps([
            Step::seq_read("RAM", 9840.0).named("ram-read"),
            Step::seq_write("RAM", 7120.0).named("ram-write"),
            loads,
        ]);
        let figures = of(&run);
        assert!((figures.seq_read_mbps.get().unwrap() / 9840.0 - 1.0).abs() < 0.01);
        assert!((figures.seq_write_mbps.get().unwrap() / 7120.0 - 1.0).abs() < 0.01);
        assert_eq!(figures.load_ns, Known::Is(110.0));
        let load = figures.page_read_qd1.get().unwrap();
        assert_eq!((&load.mean, load.percentile(50.0)), (&Known::Is(Nanos(110)), None));
        assert_eq!(figures.fsync, Known::Unknown(Why::NotReported));
    }

    /// Bug: what a step had done when it was broken off was judged like the figure of a whole one.
    #[test]
    fn the_figures_of_a_part_are_judged_by_nobody() {
        for (state, word) in
            [(State::Interrupted, "interrupted"), (State::Failed, "I/O error"), (State::Running, "still running")]
        {
            let mut step = Step::seq_read("sda", 400.0);
            step.state = state;
            step.failed = (state == State::Failed).then(|| (FailKind::Io, "read: Input/output error".to_owned()));
            let usb = crate::testing::capped("sda", TierKind::Usb, "USB 3", 500.0, (430.0, 450.0));
            let study = explain(&Run::default().tiers([usb]).steps([step]).view()).tiers.remove(0);
            assert_eq!(study.figures.seq_read_mbps, Known::not_measured(word));
            assert_eq!(study.ceiling_share, Known::not_measured(word));
            assert!(study.good_for.iter().all(|fitness| fitness.verdict == "unknown"), "{:?}", study.good_for);
        }
        // An earlier whole one stands in for the part.
        let mut part = Step::seq_read("sda", 400.0);
        part.state = State::Interrupted;
        let figures = of(&Run::default().steps([Step::seq_read("sda", 104.8576), part]));
        assert!((figures.seq_read_mbps.get().unwrap() - 104.8576).abs() < 0.1);
    }

    #[test]
    fn a_gap_says_why_in_a_word() {
        let mut full = Run::default().steps([Step::swap_sim("sda").failed(FailKind::NoRoom, "the disk is full")]);
        assert_eq!(of(&full).swap_sim_read, Known::not_measured("no room"));
        full.left_out = vec![LeftOut { tier: "sda".into(), step: String::new(), why: Why::NoPermission }];
        assert_eq!(of(&full).seq_read_mbps.to_string(), "root only");
        let dead = Run::default().steps([
            Step::swap_sim("sda").failed(FailKind::Gone, "the device is gone"),
            Step::seq_write("sda", 0.0).replaced(&[], Nanos(1)).not_run(NotRun::TargetFailed),
            Step::seq_read("sda", 0.0).replaced(&[], Nanos(1)).not_run(NotRun::Interrupted),
        ]);
        let gaps = [of(&dead).seq_write_mbps.to_string(), of(&dead).seq_read_mbps.to_string()];
        assert_eq!(gaps, ["gone", "interrupted"]);
        let bare = Run::default().tiers([tier("sdb", TierKind::Usb)]).steps([Step::seq_read("sdb", 100.0)]);
        assert_eq!(of(&bare).seq_write_mbps.to_string(), "not mounted");
        let mut fixed = tier("sdc", TierKind::Usb);
        fixed.mounts = vec![machine::Mount { read_only: true, ..mount("/mnt", "iso9660", None) }];
        let fixed = Run::default().tiers([fixed]).steps([Step::seq_read("sdc", 100.0)]);
        assert_eq!(of(&fixed).fsync, Known::not_measured("read-only"));
    }
}
