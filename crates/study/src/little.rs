//! Little's law as an audit: operations a second × mean latency, summed over directions, are the operations in flight.
//! A closed loop that keeps its depth must give its depth; anything else says what a figure really is.

use crate::model::StepView;
use basics::job::{Pacing, Sync};

/// Operations in flight, from (operations a second, mean latency in seconds) of each direction.
pub fn in_flight(directions: &[(f64, f64)]) -> f64 {
    directions.iter().map(|(iops, latency_s)| iops * latency_s).sum()
}

/// Operations in flight of a step and what was asked (depth × threads).
///
/// Nothing for an open loop, where the depth is not fixed, nor for one that waits for syncs outside its operations.
pub fn audit(step: &StepView<'_>) -> Option<(f64, f64)> {
    let steady = step.job.pacing == Pacing::Closed && step.job.sync == Sync::None && !step.job.end_fsync;
    let seconds = step.elapsed.secs();
    if !steady || seconds <= 0.0 {
        return None;
    }
    let direction = |side: &basics::Side| Some((side.operations() as f64 / seconds, side.latency.mean()?.secs()));
    let directions: Vec<(f64, f64)> = [step.read, step.write].into_iter().filter_map(direction).collect();
    let asked = f64::from(step.job.depth) * f64::from(step.job.threads);
    (!directions.is_empty()).then(|| (in_flight(&directions), asked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Step;
    use basics::Nanos;

    #[test]
    fn the_published_rows_sum_to_what_the_audit_says() {
        // Optane, and the SD card that fio fed at depth 3 while 4 was asked.
        assert!((in_flight(&[(11_700.0, 217e-6), (5005.0, 278e-6)]) - 3.93).abs() < 0.01);
        assert!((in_flight(&[(496.0, 3430e-6), (211.0, 6520e-6)]) - 3.08).abs() < 0.01);
    }

    #[test]
    fn a_step_is_audited_against_its_depth() {
        let step = Step::swap_sim("sda").reads(&[700; 20], Nanos(400_000)).writes(&[300; 20], Nanos(400_000));
        let (found, asked) = audit(&step.view()).unwrap();
        assert!((found - 4.0).abs() < 0.05, "{found}");
        assert_eq!(asked, 4.0);
        let flushed = Step::seq_write("sda", 30.0);
        assert_eq!(audit(&flushed.view()), None);
    }
}
