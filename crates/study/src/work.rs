//! Whether two steps did the same work: what was asked of them, and what really ran. Only then is a difference of their
//! figures one of the machine.

use crate::layer::direct_refused;
use crate::model::StepView;
use basics::Job;
use basics::job::Engine;

/// Regions whose lengths differ by more than this factor are different work: a cache may hold one and not the other. A
/// test file that its first step fills is a little longer or shorter each time.
const REGION: f64 = 2.0;

/// What of the work differs so much that the figures say nothing about each other. How long a step ran and with which
/// seed is no part of it.
pub(crate) fn differs(a: &StepView<'_>, b: &StepView<'_>) -> Option<&'static str> {
    asked(a.job, b.job).or_else(|| ran(a, b))
}

fn asked(a: &Job, b: &Job) -> Option<&'static str> {
    let both_threads = a.threads > 1 && b.threads > 1;
    let buffered = !a.direct && !b.direct;
    let all = [
        (a.direction != b.direction, "the direction"),
        (a.order != b.order, "the order of the offsets"),
        (a.block != b.block, "the block size"),
        (a.depth != b.depth, "the depth"),
        (a.threads != b.threads, "the number of threads"),
        (both_threads && a.separate_regions != b.separate_regions, "the threads' share of the region"),
        (a.offset != b.offset, "the region's offset"),
        (a.size.zip(b.size).is_some_and(|(a, b)| apart(a.0, b.0)), "the region's length"),
        (a.direct != b.direct, "the way around the page cache"),
        (buffered && a.invalidate != b.invalidate, "what the page cache held before"),
        (a.sync != b.sync, "what makes a write durable"),
        (a.end_fsync != b.end_fsync, "the fsync at the end"),
        (a.pacing != b.pacing, "the pacing"),
        (a.entropy != b.entropy, "what is written"),
    ];
    all.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

fn apart(a: u64, b: u64) -> bool {
    let (less, more) = (a.min(b) as f64, a.max(b) as f64);
    more > REGION * less
}

/// Whether large blocks were in one piece for the disk.
fn in_one_piece(step: &StepView<'_>) -> bool {
    let dropped = step.engine.is_some_and(|engine| engine.huge_pages_refused().is_some());
    step.job.direct && step.job.wants_huge_pages() && !dropped
}

fn ran(a: &StepView<'_>, b: &StepView<'_>) -> Option<&'static str> {
    if in_one_piece(a) != in_one_piece(b) {
        return Some("the kind of memory pages that the buffers lie in");
    }
    let (used_a, used_b) = (a.engine?.used, b.engine?.used);
    // Touching pages and loading from memory are no read calls.
    let apart = |engine| matches!(engine, Engine::Mmap | Engine::Memory) || engine.is_workload();
    let depth =
        |step: &StepView<'_>| step.job.depth > 1 && step.engine.is_some_and(|engine| engine.used == Engine::Psync);
    let all = [
        (used_a != used_b && (apart(used_a) || apart(used_b)), "the engine"),
        (
            direct_refused(a).is_some() != direct_refused(b).is_some(),
            "the way around the page cache (O_DIRECT dropped)",
        ),
        (depth(a) != depth(b), "the depth that the engine kept"),
    ];
    all.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

/// Another way to the same work, which moves figures a little: the engine, what was dropped of it, the region's length.
pub(crate) fn another_way(a: &StepView<'_>, b: &StepView<'_>) -> Option<String> {
    let mut out = Vec::new();
    if let (Some(a), Some(b)) = (a.engine, b.engine) {
        if a.used != b.used {
            out.push(format!("the engine differs: {}, then {}", a.used.name(), b.used.name()));
        }
        for (have, other, when) in [(a, b, "before"), (b, a, "after")] {
            let only = have.dropped.iter().filter(|(what, _)| !other.dropped.iter().any(|(also, _)| also == what));
            out.extend(only.map(|(what, why)| format!("without {what} {when} ({why})")));
        }
    }
    if let (Some(a), Some(b)) = (a.job.size, b.job.size)
        && a != b
    {
        out.push(format!("the region differs: {a}, then {b}"));
    }
    (!out.is_empty()).then(|| out.join("; "))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Run, Step};
    use crate::{Comparison, compare};
    use basics::Bytes;
    use basics::job::Engine;

    fn held(change: impl FnOnce(&mut Step)) -> Comparison {
        let base = || Step::seq_read("sda", 100.0);
        let mut after = base();
        change(&mut after);
        let (before, after) = (Run::default().steps([base()]), Run::default().steps([after]));
        compare(&[before.view()], &[after.view()])
    }

    /// Bug: these were called better or worse, as if the machine had changed and not the work.
    #[test]
    fn other_work_has_no_verdict() {
        let direct = |step: &mut Step| {
            step.engine.as_mut().unwrap().dropped.push((basics::EngineUse::DIRECT.to_owned(), "refused".to_owned()));
        };
        type Change = fn(&mut Step);
        let changes: [(&str, Change); 6] = [
            ("pages that the buffers lie in differs", |step| step.job.huge_pages = true),
            ("the fsync at the end differs", |step| step.job.end_fsync = true),
            ("the region's offset differs", |step| step.job.offset = Bytes(4096)),
            ("the depth that the engine kept differs", |step| step.engine.as_mut().unwrap().used = Engine::Psync),
            ("the engine differs", |step| step.engine.as_mut().unwrap().used = Engine::Mmap),
            ("(O_DIRECT dropped) differs", direct),
        ];
        for (what, change) in changes {
            let all = held(change);
            assert!(all.figures.is_empty() && all.unmatched[0].contains(what), "{what}: {all:?}");
        }
        let sized = |before: u64, after: u64| {
            let step = |size| {
                let mut step = Step::seq_read("sda", 100.0);
                step.job.size = Some(Bytes(size));
                Run::default().steps([step])
            };
            compare(&[step(before).view()], &[step(after).view()])
        };
        assert!(sized(1 << 20, 1 << 30).unmatched[0].contains("the region's length differs"));
        let near = sized(1 << 20, 3 << 19);
        assert!(!near.figures.is_empty());
        assert_eq!(near.notes.last().unwrap(), "sda seq-read: the region differs: 1 MiB, then 1.50 MiB.");
    }

    #[test]
    fn another_way_to_the_same_work_is_said() {
        let all = held(|step| {
            let engine = step.engine.as_mut().unwrap();
            engine.dropped.push(("registered buffers".to_owned(), "refused".to_owned()));
        });
        assert!(!all.figures.is_empty());
        assert_eq!(all.notes.last().unwrap(), "sda seq-read: without registered buffers after (refused).");
    }
}
