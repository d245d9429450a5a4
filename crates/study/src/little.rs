//! Little's law for recorded steps: what of a step may be held against its depth, and how near it must come. The
//! arithmetic and its verdicts are those of [`basics::little`], for published rows as for our own.

use crate::model::StepView;
use basics::Side;
use basics::job::{Engine, Pacing, Sync};
use basics::little::{Audit, Flow, Unsaid, audit};

/// Operations for each of the depth from which on the law is asked.
const ENOUGH: f64 = 40.0;
/// Part of the time that operations under way at the ends of a step may make up.
const ENDS: f64 = 0.25;
/// What a thread does between two operations, µs: counting one, choosing the next, and being woken late at times. Ten times
/// what the harness costs on the null target.
const BETWEEN_US: f64 = 3.0;

/// Part of a queue's slots that are free while its thread hands operations in one after the other and takes what is done; a
/// tenth was seen at depth 32 on a disk of 100,000 operations a second. With [`basics::little::OFF`] it makes a quarter.
const HANDED: f64 = 0.17;

/// A step held against the depth that was asked of it: depth × threads.
pub fn of_step(step: &StepView<'_>) -> Audit {
    at_depth(step, step.job.depth)
}

/// The same against a depth of each thread that is known to be another one.
pub fn at_depth(step: &StepView<'_>, depth: u32) -> Audit {
    let job = step.job;
    let seconds = step.elapsed.secs();
    let used = step.engine.map_or(job.engine, |engine| engine.used);
    let count = (step.read.operations() + step.write.operations()) as f64;
    let asked = f64::from(depth) * f64::from(job.threads);
    let longest = [step.read, step.write].into_iter().filter_map(|side| side.latency.max()).max();
    // Where something is under way at an end, each slot is off by one operation at the most; a warm-up has two such ends.
    let ends = if job.warmup.0 > 0 { 2.0 } else { 1.0 };
    let edge = longest.map_or(0.0, |longest| ends * longest.secs() / seconds);
    let shared_out = job.threads > 1 && (job.stop.bytes.is_some() || job.stop.operations.is_some());
    let unsaid = if !step.is_whole() || seconds <= 0.0 {
        Some(Unsaid::Unfinished)
    } else if matches!(used, Engine::Memory | Engine::Mmap) || used.is_workload() {
        Some(Unsaid::Batches)
    } else if job.pacing != Pacing::Closed {
        Some(Unsaid::OpenLoop)
    } else if job.end_fsync || matches!(job.sync, Sync::Fsync { .. } | Sync::Fdatasync { .. }) {
        Some(Unsaid::Syncs)
    } else if shared_out {
        Some(Unsaid::Shares)
    } else if count < ENOUGH * asked || edge > ENDS {
        Some(Unsaid::Few)
    } else {
        None
    };
    if let Some(unsaid) = unsaid {
        return Audit::unsaid(unsaid);
    }
    let flow = |side: &Side| Flow {
        iops: side.operations() as f64 / seconds,
        mean_us: side.latency.mean().map(|mean| mean.us()),
    };
    let between = count / seconds * BETWEEN_US / 1e6 / asked;
    let handed = if used == Engine::IoUring { HANDED } else { 0.0 };
    let in_submission = used == Engine::Psync && depth > 1;
    audit(&[flow(step.read), flow(step.write)], depth, job.threads, edge + between + handed, in_submission)
}

/// What to say of each step whose figures do not sum to its depth, with its name.
pub fn marks(run: &crate::RunView<'_>) -> Vec<String> {
    let mark = |step: &StepView<'_>| Some(format!("step {} {}: {}", step.index, step.name, of_step(step).mark()?));
    run.steps.iter().filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;
    use basics::Nanos;
    use basics::job::Stop;
    use basics::little::{Cause, Verdict};

    /// At depth 4: 10,000 operations a second of so many µs.
    fn step(us: u64) -> Step {
        let latency = Nanos(us * 1000);
        Step::swap_sim("sda").reads(&[700; 20], latency).writes(&[300; 20], latency)
    }
    fn verdict(step: &Step) -> Verdict {
        of_step(&step.view()).verdict
    }

    #[test]
    fn a_step_is_held_against_its_depth() {
        let good = of_step(&step(400).view());
        assert!((good.sum - 4.0).abs() < 0.05 && good.depth == 4.0, "{good:?}");
        assert_eq!(good.verdict, Verdict::Consistent);
        // A queue of our own may have free slots; figures of another program may not.
        assert_eq!(verdict(&step(320)), Verdict::Consistent);
        let mut quoted = step(300);
        quoted.engine = None;
        assert_eq!(verdict(&quoted), Verdict::Off(Cause::BlockedInSubmission));
        assert_eq!(verdict(&step(290)), Verdict::Off(Cause::BlockedInSubmission));
        assert_eq!(verdict(&step(90)), Verdict::Off(Cause::InSubmission));
        assert_eq!(verdict(&step(600)), Verdict::Off(Cause::More));
    }

    /// Each of these breaks the law without being wrong.
    #[test]
    fn what_need_not_sum_to_its_depth_is_left_open() {
        let changed = |change: &dyn Fn(&mut Step)| {
            let mut off = step(90);
            change(&mut off);
            verdict(&off)
        };
        let unsaid = Verdict::Unsaid;
        assert_eq!(changed(&|s| s.job.pacing = Pacing::Fixed { iops: 1e4 }), unsaid(Unsaid::OpenLoop));
        assert_eq!(changed(&|s| s.job.pacing = Pacing::Poisson { iops: 1e4 }), unsaid(Unsaid::OpenLoop));
        assert_eq!(changed(&|s| s.job.sync = Sync::Fsync { every: 8 }), unsaid(Unsaid::Syncs));
        assert_eq!(changed(&|s| s.job.end_fsync = true), unsaid(Unsaid::Syncs));
        assert_eq!(changed(&|s| s.job.depth = 1024), unsaid(Unsaid::Few));
        assert_eq!(changed(&|s| s.elapsed = Nanos(200_000)), unsaid(Unsaid::Few));
        assert_eq!(changed(&|s| s.state = crate::State::Interrupted), unsaid(Unsaid::Unfinished));
        assert_eq!(changed(&|s| s.engine.as_mut().unwrap().used = Engine::Memory), unsaid(Unsaid::Batches));
        let shares = |s: &mut Step| {
            s.job.threads = 4;
            s.job.stop = Stop { operations: Some(20_000), ..Stop::default() };
        };
        assert_eq!(changed(&shares), unsaid(Unsaid::Shares));
        assert!(matches!(changed(&|s| s.job.sync = Sync::Dsync), Verdict::Off(_)), "such a write is one operation");
    }

    /// The time between two operations is the more of the whole the shorter they are; at a disk it hides nothing.
    #[test]
    fn short_operations_one_at_a_time_leave_room_between_them() {
        let short = Step::page_read("ram0", Nanos(3000)).replaced(&[20_000; 20], Nanos(3000));
        assert_eq!(verdict(&short), Verdict::Consistent, "0.6 of 1: 2 µs lie between two operations of 3 µs");
        let long = Step::page_read("sda", Nanos(300_000)).replaced(&[200; 20], Nanos(300_000));
        assert_eq!(verdict(&long), Verdict::Off(Cause::Between), "0.6 of 1 at 300 µs");
    }

    /// A second in which everything stands still is in the latencies of what it held up.
    #[test]
    fn one_long_operation_at_the_end_of_a_short_step_is_no_contradiction() {
        let mut late = step(400);
        late.read.latency.record(Nanos(300_000_000));
        late.elapsed = late.elapsed + Nanos(300_000_000);
        assert_eq!(verdict(&late), Verdict::Consistent);
    }
}
