//! Follows a plan's rounds while they are run, and ends them once what is tracked holds still. What holding still is, `study`
//! says; the bounds are the plan's.

use basics::plan::Rounds;
use record::StepRecord;
use study::steady;

/// What was heard of the rounds of a plan.
pub struct Judge<'a> {
    rounds: &'a Rounds,
    /// Figure by figure, operations a second round by round.
    tracked: Vec<Vec<f64>>,
}

impl<'a> Judge<'a> {
    pub fn new(rounds: &'a Rounds) -> Self {
        Judge { rounds, tracked: vec![Vec::new(); rounds.tracked.len()] }
    }

    /// Takes in a step that came to its end. The step that the run goes on with, where the rounds until there are not needed.
    pub fn hears(&mut self, index: usize, step: &StepRecord) -> Option<usize> {
        let Rounds { first, steps, least, most, tracked } = self.rounds;
        let (round, place) = (index.checked_sub(*first)?.checked_div(*steps)?, (index - first) % steps);
        if round >= *most {
            return None;
        }
        if let Some(figure) = tracked.iter().position(|tracked| *tracked == place) {
            self.tracked[figure].push(steady::iops(&step.read, &step.write, step.elapsed));
        }
        let is_over = place + 1 == *steps;
        (is_over && steady::steady_at(&self.tracked, *least).is_some()).then(|| self.rounds.end())
    }
}
