//! Rates that do not hold: spread over time, stalls, and a rate that breaks in mid-step.

use super::{Draft, Scene, Subject, at, finding};
use crate::model::StepView;
use crate::series::{self, Piece, Way};
use crate::stalls::{Stall, settled, stalls};
use crate::summary::summarise;
use basics::stats::{median, variation};
use basics::units::{listed, significant};
use basics::{Bytes, Nanos};

/// Coefficient of variation from which a rate is called unstable. SNIA's steady state allows a range of 20 % of the mean
/// over its window; a standard deviation of that size is well outside.
const UNSTABLE: f64 = 0.20;
/// Fewest pieces for a coefficient.
const PIECES: usize = 10;
/// Ratio of the first to the last third's median from which the rate broke.
const BROKE: f64 = 2.0;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    let prepares = crate::published::preparing(scene.run);
    scene.subjects.iter().flat_map(|subject| of(subject, &prepares)).collect()
}

/// The least stable step of a tier, and the stalls of its others; not of those that prepare others.
fn of(subject: &Subject<'_, '_>, prepares: &[u32]) -> Vec<Draft> {
    // Swapping goes by fits and starts whatever the disk: what that costs stands in its row.
    let judged = |step: &&StepView<'_>| step.is_whole() && step.load.is_none() && !prepares.contains(&step.index);
    let whole = || subject.steps.all().filter(judged);
    // What an fsync costs is said in percentiles; its rate swings with every commit of the journal, but does not break.
    let steady = whole().filter(|step| step.job.sync == basics::job::Sync::None || broken(step));
    let worst = steady.filter_map(|step| Some((spread(step)?, step))).max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.filter(|(spread, _)| *spread >= UNSTABLE);
    let others = whole().filter(|step| worst.is_none_or(|(_, worst)| worst.index != step.index));
    let stalled: Vec<(&StepView<'_>, Vec<Stall>)> =
        others.map(|step| (step, stalls(step))).filter(|(_, stalls)| !stalls.is_empty()).collect();
    let unstable = worst.map(|(spread, step)| describe(subject.name(), step, spread));
    let stalled = (!stalled.is_empty()).then(|| hung(subject.name(), &stalled));
    unstable.into_iter().chain(stalled).map(Draft::from).collect()
}

/// Coefficient of variation of a step's rate, when it is long enough for one.
fn spread(step: &StepView<'_>) -> Option<f64> {
    let pieces = series::joined(settled(step, Way::Both));
    (pieces.len() >= PIECES).then(|| variation(&series::rates(&pieces))).flatten()
}

fn describe(tier: &str, step: &StepView<'_>, spread: f64) -> crate::Finding {
    let pieces = series::joined(settled(step, Way::Both));
    let rates = series::rates(&pieces);
    let summary = summarise(step);
    // The rate that every other output gives; what is typical differs from it by what the slow stretches cost.
    let all: f64 = [summary.read, summary.write].into_iter().flatten().map(|side| side.iops).sum();
    let middle = median(&rates).unwrap_or_default();
    let lowest = pieces.iter().min_by(|a, b| a.rate().total_cmp(&b.rate()));
    let mut text = format!(
        "{tier} is unstable in {}: {} over the whole step, ±{:.0} % from interval to interval, {} in a typical one",
        step.name,
        rate(step, all),
        100.0 * spread,
        rate(step, middle)
    );
    let mut evidence = vec![at(step, format_args!("coefficient of variation {}", significant(spread)))];
    if let Some(low) = lowest {
        text += &format!(", down to {} at {}", rate(step, low.rate()), place(step, low));
        evidence.push(at(step, format_args!("{} at {}", rate(step, low.rate()), place(step, low))));
    }
    if let Some((before, after)) = broke(&rates) {
        text += &format!("; it begins at {} and ends at {}", rate(step, before), rate(step, after));
    }
    let stalls = stalls(step);
    if let Some(times) = how_often(&stalls) {
        text += &format!("; it stalled {times}");
        evidence.extend(pointers(step, &stalls));
    }
    let weight = match (super::noise::disturbed(step), stalls.is_empty()) {
        (true, _) => {
            text += ", while other programs were at work";
            25
        }
        (false, true) => 45,
        (false, false) => 60,
    };
    text.push('.');
    finding("unstable", weight, Some(tier), text, evidence)
}

/// The stalls of steps whose rate is not called unstable for another reason.
fn hung(tier: &str, stalled: &[(&StepView<'_>, Vec<Stall>)]) -> crate::Finding {
    let each = stalled.iter().filter_map(|(step, stalls)| Some(format!("{} {}", step.name, how_often(stalls)?)));
    let disturbed = stalled.iter().all(|(step, _)| super::noise::disturbed(step));
    let meanwhile = if disturbed { ", while other programs were at work" } else { "" };
    let text = format!("{tier} stalled: {}{meanwhile}.", listed(&each.collect::<Vec<_>>()));
    let evidence = stalled.iter().flat_map(|(step, stalls)| pointers(step, stalls)).collect();
    finding("stalled", if disturbed { 25 } else { 55 }, Some(tier), text, evidence)
}

/// `once, for 200 ms`; nothing where there was no stall.
fn how_often(stalls: &[Stall]) -> Option<String> {
    let longest = stalls.iter().map(|stall| stall.lasted).max()?;
    Some(match stalls.len() {
        1 => format!("once, for {longest}"),
        n => format!("{n} times, for {longest} at the longest"),
    })
}

fn pointers(step: &StepView<'_>, stalls: &[Stall]) -> Vec<String> {
    stalls.iter().take(3).map(|stall| at(step, format_args!("stall {} to {}", stall.from, stall.to))).collect()
}

/// A rate in the unit that the step is spoken of.
fn rate(step: &StepView<'_>, iops: f64) -> String {
    let block = step.job.block.largest().0;
    if block >= 64 * basics::units::KIB {
        super::mbps(iops * block as f64 / 1e6)
    } else {
        format!("{} IOPS", significant(iops))
    }
}

/// Where a piece is: its time, and the offset where order makes that mean something.
fn place(step: &StepView<'_>, piece: &Piece) -> String {
    match step.job.order {
        basics::job::Order::Sequential if piece.position > 0 && step.job.engine != basics::job::Engine::Memory => {
            format!("{} (offset {})", seconds(piece.start), Bytes(piece.position))
        }
        _ => seconds(piece.start),
    }
}

fn seconds(at: Nanos) -> String {
    format!("{:.1} s", at.secs())
}

/// True when a step ends at another rate than it began with.
fn broken(step: &StepView<'_>) -> bool {
    broke(&series::rates(&series::joined(settled(step, Way::Both)))).is_some()
}

/// Medians of the first and the last third, when one is at least twice the other.
fn broke(rates: &[f64]) -> Option<(f64, f64)> {
    let third = rates.len() / 3;
    let (before, after) = (median(rates.get(..third)?)?, median(rates.get(rates.len() - third..)?)?);
    (before >= BROKE * after || after >= BROKE * before).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{found, remarked};
    use crate::testing::{Run, Step};
    use basics::Nanos;

    fn run(counts: &[u64]) -> Run {
        Run::default().steps([Step::seq_write("mmcblk0", 1.0).replaced(counts, Nanos(1_000_000))])
    }

    #[test]
    fn a_stall_is_found_where_it_was() {
        let mut counts = [30; 20];
        counts[7] = 2;
        counts[8] = 0;
        let mut run = run(&counts);
        run.steps[0].intervals[9].write.latency.record(Nanos(300_000_000));
        let unstable = found(&run, "unstable");
        let text = &unstable[0].text;
        assert!(text.contains("it stalled once, for 200 ms."), "{text}");
        let rates =
            "in seq-write: 284 MB/s over the whole step, ±34 % from interval to interval, 315 MB/s in a typical one";
        assert!(text.contains(rates), "{text}");
        assert!(text.contains(", down to 0 MB/s at 0.8 s (offset "), "{text}");
        assert_eq!(unstable[0].evidence[2], "step 0 seq-write: stall 700 ms to 900 ms");
    }

    /// Bug: stalls were shaded in the chart of an fsync step and no finding named them.
    #[test]
    fn a_stall_in_any_step_is_named() {
        let mut counts = [300; 20];
        counts[5..8].fill(0);
        let mut fsyncs = Step::fsyncs("sda", Nanos(330_000)).replaced(&counts, Nanos(330_000));
        fsyncs.intervals[8].write.latency.record(Nanos(310_000_000));
        let stalled = found(&Run::default().steps([fsyncs]), "stalled");
        assert_eq!(stalled[0].text, "sda stalled: fsync once, for 300 ms.");
        assert_eq!(stalled[0].evidence, ["step 0 fsync: stall 500 ms to 800 ms"]);
    }

    #[test]
    fn an_fsync_that_breaks_is_unstable_and_one_that_swings_is_not() {
        let fsyncs = |counts: [u64; 20]| {
            remarked(
                &Run::default().steps([Step::fsyncs("sda", Nanos(300_000)).replaced(&counts, Nanos(300_000))]),
                "unstable",
            )
        };
        let mut broken = [300; 20];
        broken[..9].fill(20);
        assert_eq!(fsyncs(broken).len(), 1);
        let swinging: Vec<u64> = (0..20).map(|i| if i % 2 == 0 { 100 } else { 300 }).collect();
        assert!(fsyncs(swinging.try_into().unwrap()).is_empty());
    }

    /// Bug: a part of a step, whose figures nobody judges, was called unstable.
    #[test]
    fn a_part_of_a_step_is_not_judged() {
        let mut counts = [30; 20];
        counts[7..9].fill(0);
        let mut run = run(&counts);
        assert_eq!(found(&run, "unstable").len(), 1);
        run.steps[0].state = crate::State::Interrupted;
        assert!(remarked(&run, "unstable").is_empty() && remarked(&run, "stalled").is_empty());
    }

    /// Bug: what the spool had no room for was called a stall of the disk.
    #[test]
    fn a_lost_interval_is_no_stall() {
        let mut run = run(&[30; 20]);
        run.steps[0].intervals.drain(7..9);
        assert!(remarked(&run, "unstable").is_empty());
        let lost = found(&run, "intervals-missing");
        assert_eq!(
            lost[0].text,
            "2 intervals are missing from the record of seq-write on mmcblk0: nothing is known of how steady it was then."
        );
    }

    #[test]
    fn a_rate_that_breaks_is_said() {
        let mut counts = [80; 20];
        counts[9..].fill(20);
        let unstable = found(&run(&counts), "unstable");
        assert!(unstable[0].text.contains("it begins at 839 MB/s and ends at 210 MB/s"), "{}", unstable[0].text);
    }

    /// With the processors busy elsewhere, nobody knows whose the spread is: a remark, not a finding.
    #[test]
    fn a_spread_under_noise_is_not_blamed_on_the_disk() {
        let mut counts = [30; 20];
        counts[7..9].fill(1);
        let mut run = run(&counts);
        for (i, sample) in run.steps[0].sampled().iter_mut().enumerate() {
            sample.cpu_ticks = Some([30 * i as u64, 0, 0, 10 * i as u64, 0, 0, 0, 0]);
        }
        assert!(found(&run, "unstable").is_empty());
        assert!(remarked(&run, "unstable")[0].text.ends_with("while other programs were at work."));
    }

    /// Two or three operations an interval look like ±20 % only because they are whole.
    #[test]
    fn counting_to_two_is_not_unstable() {
        let counts: Vec<u64> = (0..100).map(|i| 2 + i % 2).collect();
        assert!(found(&run(&counts), "unstable").is_empty());
        assert!(found(&run(&[30; 20]), "unstable").is_empty());
    }
}
