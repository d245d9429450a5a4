//! Rates that do not hold: spread over time, stalls, and a rate that breaks in mid-step.

use super::{Draft, Scene, Subject, at, finding};
use crate::model::StepView;
use crate::series::{self, Piece, Way};
use basics::stats::{median, variation};
use basics::units::significant;
use basics::{Bytes, Nanos};

/// Coefficient of variation from which a rate is called unstable. SNIA's steady state allows a range of 20 % of the mean
/// over its window; a standard deviation of that size is well outside.
const UNSTABLE: f64 = 0.20;
/// Fewest pieces for a coefficient.
const PIECES: usize = 10;
/// A piece below this share of the median rate is a stall.
const STALL: f64 = 0.25;
/// Fewest operations in a usual piece for an empty one to be a stall and not luck: at 8 expected, none at all comes by
/// chance once in 3000 pieces.
const USUAL: f64 = 8.0;
/// A shorter one is the scheduler's as likely as the disk's.
const FELT: Nanos = Nanos(50_000_000);
/// Ratio of the first to the last third's median from which the rate broke.
const BROKE: f64 = 2.0;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene.subjects.iter().filter_map(of).collect()
}

/// The least stable step of a tier.
fn of(subject: &Subject<'_, '_>) -> Option<Draft> {
    // What an fsync costs is said in percentiles; its rate swings with every commit of the journal.
    let steady = |step: &&StepView<'_>| step.failed.is_none() && step.job.sync == basics::job::Sync::None;
    let steps = subject.steps.all().filter(steady);
    let worst = steps.filter_map(|step| Some((spread(step)?, step))).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (spread, step) = worst;
    (spread >= UNSTABLE).then(|| Draft::from(describe(subject.name(), step, spread)))
}

/// Coefficient of variation of a step's rate, when it is long enough for one.
fn spread(step: &StepView<'_>) -> Option<f64> {
    let pieces = series::joined(series::pieces(step, Way::Both));
    (pieces.len() >= PIECES).then(|| variation(&series::rates(&pieces))).flatten()
}

fn describe(tier: &str, step: &StepView<'_>, spread: f64) -> crate::Finding {
    let pieces = series::joined(series::pieces(step, Way::Both));
    let rates = series::rates(&pieces);
    let middle = median(&rates).unwrap_or_default();
    let lowest = pieces.iter().min_by(|a, b| a.rate().total_cmp(&b.rate()));
    let mut text = format!(
        "{tier} is unstable in {}: the rate varies by ±{:.0} % around {}",
        step.name,
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
    if let Some(longest) = stalls.iter().map(|(from, to)| *to - *from).max() {
        text += &match stalls.len() {
            1 => format!("; it stalled once, for {longest}"),
            n => format!("; it stalled {n} times, for {longest} at the longest"),
        };
        evidence.extend(stalls.iter().take(3).map(|(from, to)| at(step, format_args!("stall {from} to {to}"))));
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

/// Medians of the first and the last third, when one is at least twice the other.
fn broke(rates: &[f64]) -> Option<(f64, f64)> {
    let third = rates.len() / 3;
    let (before, after) = (median(rates.get(..third)?)?, median(rates.get(rates.len() - third..)?)?);
    (before >= BROKE * after || after >= BROKE * before).then_some((before, after))
}

/// Runs of pieces in which almost nothing was done, as (from, to).
fn stalls(step: &StepView<'_>) -> Vec<(Nanos, Nanos)> {
    let pieces = series::pieces(step, Way::Both);
    let counts: Vec<f64> = pieces.iter().map(|piece| piece.operations as f64).collect();
    let Some(usual) = median(&series::rates(&pieces)) else { return Vec::new() };
    if median(&counts).is_none_or(|count| count < USUAL) {
        return Vec::new();
    }
    let mut out: Vec<(Nanos, Nanos)> = Vec::new();
    for piece in pieces.iter().filter(|piece| piece.rate() < STALL * usual) {
        match out.last_mut() {
            Some(last) if last.1 == piece.start => last.1 = piece.end,
            _ => out.push((piece.start, piece.end)),
        }
    }
    out.retain(|(from, to)| *to - *from >= FELT);
    out
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
        let unstable = found(&run(&counts), "unstable");
        let text = &unstable[0].text;
        assert!(text.contains("it stalled once, for 200 ms."), "{text}");
        assert!(text.contains("around 315 MB/s, down to 0 MB/s at 0.8 s (offset "), "{text}");
        assert_eq!(unstable[0].evidence[2], "step 0 seq-write: stall 700 ms to 900 ms");
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
