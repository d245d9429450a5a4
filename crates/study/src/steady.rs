//! Steady state as the SNIA's performance test specification has it: over a window of five rounds what is tracked neither
//! spreads nor rises by more than a part of its mean. The runner asks this to end rounds that show nothing new, and reports
//! ask it of the record: both come to the same round.

use crate::model::{RunView, State};
use basics::plan::Rounds;
use basics::{Nanos, Side};
use serde::Serialize;

/// Rounds that are looked at together.
pub const WINDOW: usize = 5;
/// Largest less smallest, per cent of the mean, at most.
const EXCURSION: f64 = 20.0;
/// Rise or fall of the best-fit line over the window, per cent of the mean, at most.
const SLOPE: f64 = 10.0;

/// What one tracked figure did over the last [`WINDOW`] rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Window {
    /// Mean, operations a second.
    pub mean_iops: f64,
    /// Largest less smallest, per cent of the mean.
    pub excursion_percent: f64,
    /// What the best-fit line rises by from the first round to the last, per cent of the mean; below 0 it falls.
    pub slope_percent: f64,
}

impl Window {
    /// The last rounds; nothing before there are so many, nor where nothing was done.
    pub fn last(iops: &[f64]) -> Option<Self> {
        let window = &iops[iops.len().checked_sub(WINDOW)?..];
        let mean = window.iter().sum::<f64>() / WINDOW as f64;
        let largest = window.iter().copied().fold(f64::MIN, f64::max);
        let smallest = window.iter().copied().fold(f64::MAX, f64::min);
        // Least squares over the rounds 0 … WINDOW - 1.
        let middle = (WINDOW - 1) as f64 / 2.0;
        let along: f64 = window.iter().enumerate().map(|(round, value)| (round as f64 - middle) * (value - mean)).sum();
        let squares: f64 = (0..WINDOW).map(|round| (round as f64 - middle).powi(2)).sum();
        let rise = along / squares * (WINDOW - 1) as f64;
        let percent = |value: f64| 100.0 * value / mean;
        (mean > 0.0).then(|| Window {
            mean_iops: mean,
            excursion_percent: percent(largest - smallest),
            slope_percent: percent(rise),
        })
    }

    /// Whether it held still.
    pub fn is_steady(&self) -> bool {
        self.excursion_percent <= EXCURSION && self.slope_percent.abs() <= SLOPE
    }
}

/// When all figures have held still for the first time, `least` rounds in any case being done: the last round of their
/// windows, from 1 on. Each figure has its operations a second round by round.
pub fn steady_at(figures: &[Vec<f64>], least: usize) -> Option<usize> {
    let rounds = figures.iter().map(Vec::len).min()?;
    let still = |values: &Vec<f64>, round| Window::last(&values[..round]).is_some_and(|window| window.is_steady());
    (least.max(1)..=rounds).find(|round| figures.iter().all(|values| still(values, *round)))
}

/// What a step adds to a figure: operations a second, reads and writes together.
pub fn iops(read: &Side, write: &Side, elapsed: Nanos) -> f64 {
    let operations = (read.operations() + write.operations()) as f64;
    if elapsed.0 > 0 { operations / elapsed.secs() } else { 0.0 }
}

/// What became of a plan's rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steadiness {
    /// Rounds that were measured whole.
    pub rounds: usize,
    /// The last round of the first window in which all that is tracked held still, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_at_round: Option<usize>,
    /// Figure by figure.
    pub tracked: Vec<Tracked>,
    /// Rounds at most.
    #[serde(skip)]
    most: usize,
}

/// One figure, round by round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tracked {
    /// The name of its steps, without the round.
    pub point: String,
    /// Operations a second.
    pub iops: Vec<f64>,
    /// The last five rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// Asks the rounds of a run, where it has any.
pub fn steadiness(run: &RunView<'_>) -> Option<Steadiness> {
    let rounds = run.rounds?;
    let whole = |index: &usize| run.steps.get(*index).is_some_and(|step| step.state == State::Done);
    let done = (0..rounds.most).take_while(|round| rounds.steps_of(*round).all(|index| whole(&index))).count();
    let tracked: Vec<Tracked> = rounds
        .tracked
        .iter()
        .map(|place| {
            let steps = (0..done).filter_map(|round| run.steps.get(rounds.steps_of(round).start + place));
            let iops: Vec<f64> = steps.map(|step| iops(step.read, step.write, step.elapsed)).collect();
            let name = run.steps.get(rounds.first + place).map_or("", |step| Rounds::point(step.name));
            Tracked { point: name.to_owned(), window: Window::last(&iops), iops }
        })
        .collect();
    let steady_at_round = steady_at(&tracked.iter().map(|one| one.iops.clone()).collect::<Vec<_>>(), rounds.least);
    Some(Steadiness { rounds: done, steady_at_round, tracked, most: rounds.most })
}

impl Steadiness {
    /// In one sentence.
    pub fn verdict(&self) -> String {
        match self.steady_at_round {
            Some(round) => format!("steady state in rounds {} to {round}", round + 1 - WINDOW),
            None if self.rounds < self.most => {
                format!("no steady state seen: {} of at most {} rounds came to their end", self.rounds, self.most)
            }
            None => format!("not steady after {} rounds", self.rounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady(values: &[f64]) -> bool {
        Window::last(values).is_some_and(|window| window.is_steady())
    }

    #[test]
    fn it_takes_five_rounds_that_neither_spread_nor_rise() {
        assert!(!is_steady(&[100.0; 4]) && is_steady(&[100.0; 5]));
        assert!(is_steady(&[500.0, 400.0, 100.0, 100.0, 100.0, 100.0, 100.0]), "only the last five count");
        // A spread of a fifth of the mean without a slope is the most.
        assert!(is_steady(&[100.0, 110.0, 90.0, 110.0, 90.0]));
        assert!(!is_steady(&[100.0, 111.0, 90.0, 110.0, 90.0]));
        // A slope of a tenth of the mean over the window is the most: 3 a round are 12 %.
        assert!(!is_steady(&[94.0, 97.0, 100.0, 103.0, 106.0]) && !is_steady(&[106.0, 103.0, 100.0, 97.0, 94.0]));
        assert!(is_steady(&[95.2, 97.6, 100.0, 102.4, 104.8]));
        let rising = Window::last(&[94.0, 97.0, 100.0, 103.0, 106.0]).unwrap();
        assert!((rising.slope_percent - 12.0).abs() < 1e-9 && (rising.excursion_percent - 12.0).abs() < 1e-9);
        assert!((rising.mean_iops - 100.0).abs() < 1e-9);
        assert_eq!(Window::last(&[0.0; 5]), None, "nothing was done");
    }

    #[test]
    fn all_that_is_tracked_must_hold_still_in_the_same_rounds() {
        let early = vec![100.0; 9];
        let late = vec![500.0, 500.0, 300.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        assert_eq!(steady_at(std::slice::from_ref(&early), 0), Some(5));
        assert_eq!(steady_at(std::slice::from_ref(&early), 7), Some(7), "not asked before");
        assert_eq!(steady_at(&[early, late.clone()], 1), Some(8));
        assert_eq!(steady_at(&[vec![100.0; 4], late], 1), None);
        assert_eq!(steady_at(&[], 1), None);
    }
}
