//! The SNIA's steady state: the figures that are tracked round by round, when they held still, and what the device does from
//! then on at every mix and size, averaged over the window.

use crate::model::RunView;
use crate::steady::{self, Steadiness, Tracked, WINDOW};
use basics::plan::Rounds;
use basics::units::significant;
use serde::Serialize;
use std::collections::BTreeMap;

/// A steady state, or that there was none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snia {
    /// When it was reached, and by what.
    #[serde(flatten)]
    pub steady: Steadiness,
    /// In one sentence.
    pub verdict: String,
    /// Written until the last round was over, what went before the rounds included, 10^9 bytes.
    #[serde(rename = "written_GB")]
    pub written_gb: f64,
    /// Operations a second over the window, where there is a steady state: by share of reads and size as in the steps' names.
    pub steady_iops: BTreeMap<String, f64>,
}

pub(super) fn figures(run: &RunView<'_>) -> Option<Snia> {
    let (rounds, steady) = (run.rounds?, steady::steadiness(run)?);
    let written: u64 = run.steps.iter().map(|step| step.write.bytes).sum();
    let mut steady_iops = BTreeMap::new();
    if let Some(end) = steady.steady_at_round {
        for index in (end - WINDOW..end).flat_map(|round| rounds.steps_of(round)) {
            let Some(step) = run.steps.get(index) else { continue };
            let iops = steady::iops(step.read, step.write, step.elapsed) / WINDOW as f64;
            *steady_iops.entry(Rounds::point(step.name).to_owned()).or_insert(0.0) += iops;
        }
    }
    Some(Snia { verdict: steady.verdict(), steady, written_gb: written as f64 / 1e9, steady_iops })
}

impl Snia {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}; {} GB were written", self.verdict, significant(self.written_gb))];
        lines.extend(self.steady.tracked.iter().map(line));
        lines
    }
}

/// `0-4KiB  mean 12,300 IOPS over the last 5 rounds, excursion 3.1 %, slope -0.4 %; by round 14,100 …`.
fn line(tracked: &Tracked) -> String {
    let rounds: Vec<String> = tracked.iops.iter().map(|iops| significant(*iops)).collect();
    let window = tracked.window.map_or(String::new(), |window| {
        let [mean, excursion, slope] =
            [window.mean_iops, window.excursion_percent, window.slope_percent].map(significant);
        format!("mean {mean} IOPS over the last {WINDOW} rounds, excursion {excursion} %, slope {slope} %; ")
    });
    format!("{:>9}  {window}by round {}", tracked.point, rounds.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};

    /// Rounds of two points, of which the first is tracked; of the last one only a part was done.
    fn rounds(most: usize, rates: &[f64]) -> Snia {
        let steps = rates.iter().zip(1..).flat_map(|(rate, round)| {
            let steady = Step::seq_read("x", 104.8576).named(&Rounds::name("100-1MiB", round));
            [Step::seq_write("x", *rate).named(&Rounds::name("0-1MiB", round)), steady]
        });
        let mut run = Run::of("snia", &[]).steps(steps);
        run.rounds = Some(Rounds { first: 0, steps: 2, least: WINDOW, most, tracked: vec![0] });
        figures(&run.view()).unwrap()
    }

    #[test]
    fn the_first_window_that_holds_still_is_the_steady_state() {
        let found = rounds(25, &[400.0, 300.0, 104.8576, 104.8576, 104.8576, 104.8576, 104.8576]);
        assert_eq!((found.steady.rounds, found.steady.steady_at_round), (7, Some(7)));
        assert!((found.steady_iops["0-1MiB"] - 100.0).abs() < 0.1, "{found:?}");
        assert!((found.steady_iops["100-1MiB"] - 100.0).abs() < 0.1, "{found:?}");
        assert!((found.written_gb - 2.45).abs() < 0.01, "{}", found.written_gb);
        let lines = found.lines();
        assert_eq!(lines[0], "steady state in rounds 3 to 7; 2.45 GB were written");
        assert!(lines[1].contains("0-1MiB  mean 100 IOPS over the last 5 rounds, excursion 0 %, slope"), "{lines:?}");
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!((&json["steady_at_round"], &json["tracked"][0]["point"]), (&7.into(), &"0-1MiB".into()));
    }

    #[test]
    fn what_does_not_hold_still_is_not_steady_and_what_was_broken_off_is_not_known() {
        let never = [400.0, 300.0, 200.0, 100.0, 80.0, 40.0];
        let found = rounds(6, &never);
        assert_eq!((found.steady.steady_at_round, found.steady_iops.len()), (None, 0));
        assert_eq!(found.verdict, "not steady after 6 rounds");
        assert!(found.steady.tracked[0].window.unwrap().excursion_percent > 20.0);
        assert_eq!(rounds(25, &never).verdict, "no steady state seen: 6 of at most 25 rounds came to their end");
    }
}
