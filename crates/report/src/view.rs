//! The bridge from a record to what `study` reads: `study` stands below `record`'s neighbours and knows nothing of how a
//! record is kept, so its view borrows the parts that mean something.

use basics::Nanos;
use observe::Sample;
use record::{Origin, Record, State, StepRecord};
use study::{Comparison, RunView, StepSummary, StepView};

/// Lends a record to `study`. Intervals and samples are put to their steps in the order in which the record holds them,
/// which is the order of time.
pub fn view(record: &Record) -> RunView<'_> {
    let steps = record
        .steps
        .iter()
        .map(|step| StepView {
            index: step.index,
            name: &step.name,
            tier: step.tier.as_deref(),
            target: &step.target,
            job: &step.job,
            region: step.region,
            engine: step.engine.as_ref(),
            state: state(&step.state),
            elapsed: step.elapsed,
            read: &step.read,
            write: &step.write,
            cpu: step.cpu_user.zip(step.cpu_system),
            failed: match &step.state {
                State::Failed(failure) => Some((failure.kind, failure.why.as_str())),
                State::Running | State::Done | State::Interrupted | State::NotRun(_) => None,
            },
            not_run: match &step.state {
                State::NotRun(why) => Some(*why),
                State::Running | State::Done | State::Interrupted | State::Failed(_) => None,
            },
            each: &step.each,
            load: step.load.as_deref(),
            notes: &step.notes,
            intervals: of_step(&record.intervals, step.index),
            samples: measured(record, step),
            before: before(record, step),
        })
        .collect();
    RunView {
        id: &record.run.id,
        state: state(&record.run.state),
        origin: origin(&record.run.origin),
        machine: &record.run.machine,
        harness_ns_per_op: record.run.harness_ns_per_op,
        method: &record.run.plan.method,
        as_published: record.run.plan.as_published,
        scale: record.run.plan.scale,
        rounds: record.run.plan.rounds.as_ref(),
        parameters: &record.run.plan.parameters,
        left_out: &record.run.plan.left_out,
        quoted: record.run.quoted.as_ref(),
        steps,
    }
}

fn state(state: &State) -> study::State {
    match state {
        State::Running => study::State::Running,
        State::Done => study::State::Done,
        State::Interrupted => study::State::Interrupted,
        State::Failed(_) => study::State::Failed,
        State::NotRun(_) => study::State::NotRun,
    }
}

/// The origin as a study knows it, and as all outputs say it.
pub(crate) fn origin(origin: &Origin) -> study::Origin<'_> {
    match origin {
        Origin::Measured => study::Origin::Measured,
        Origin::Simulated(profile) => study::Origin::Simulated(profile),
        Origin::Quoted(source) => study::Origin::Quoted(source),
    }
}

/// Every step, summed up by `study`, in the record's order.
pub(crate) fn summaries(record: &Record) -> Vec<StepSummary> {
    view(record).steps.iter().map(study::summarise).collect()
}

/// Each later group of repeated runs held against the first.
pub(crate) fn comparisons<'a>(
    groups: &'a [Vec<&'a Record>],
) -> impl Iterator<Item = (&'a [&'a Record], Comparison)> + 'a {
    let views = |group: &'a [&'a Record]| group.iter().map(|record| view(record)).collect::<Vec<RunView<'a>>>();
    let before = groups.first().map(|group| views(group)).unwrap_or_default();
    groups.iter().skip(1).map(move |after| (after.as_slice(), study::compare(&before, &views(after))))
}

/// The samples of a step without those from before its measurement: what they show is our own preparation and warm-up.
pub(crate) fn measured<'a>(record: &'a Record, step: &StepRecord) -> Vec<&'a Sample> {
    let from = step.measured_from.unwrap_or_default();
    // What a process under pressure gives back when it ends is no part of it either.
    let until = step.load.as_ref().map_or(Nanos(u64::MAX), |_| from + step.elapsed);
    let during = |sample: &&Sample| (from..=until).contains(&sample.at);
    of_step(&record.samples, step.index).into_iter().filter(during).collect()
}

/// Those from before.
fn before<'a>(record: &'a Record, step: &StepRecord) -> Vec<&'a Sample> {
    let from = step.measured_from.unwrap_or_default();
    of_step(&record.samples, step.index).into_iter().filter(|sample| sample.at < from).collect()
}

fn of_step<T>(series: &[(u32, T)], index: u32) -> Vec<&T> {
    series.iter().filter(|(step, _)| *step == index).map(|(_, value)| value).collect()
}
