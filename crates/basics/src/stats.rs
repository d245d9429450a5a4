//! The statistics that a stop rule and a verdict need: mean, spread, quantiles, Student's t and confidence intervals
//! from batch means, which stay honest when neighbouring samples resemble each other (Law & Kelton, *Simulation Modeling
//! and Analysis*, "batch means"). Distributions come from the `statrs` crate.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Arithmetic mean; nothing when empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n − 1); nothing below two values.
pub fn stdev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The `q` quantile (0 to 1) by linear interpolation between order statistics; nothing when empty.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64))
}

/// The middle value; nothing when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Standard deviation over mean, the coefficient of variation; nothing below two values or at a mean of zero.
pub fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    (mean != 0.0).then_some(stdev(values)? / mean.abs())
}

/// Correlation of each value with its successor, −1 to 1; nothing below three values or without any spread.
pub fn lag1_autocorrelation(values: &[f64]) -> Option<f64> {
    if values.len() < 3 {
        return None;
    }
    let mean = mean(values)?;
    let spread: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (spread > 0.0).then(|| values.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / spread)
}

/// Student's t for a two-sided interval of `confidence` (0 to 1) with `degrees` of freedom.
pub fn student_t(confidence: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees.max(1.0)).map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

/// A mean with the half width of its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub mean: f64,
    /// Half the width of the interval, in the unit of the mean.
    pub half_width: f64,
}

impl Interval {
    /// Half width in per cent of the mean; infinite at a mean of zero.
    pub fn percent(&self) -> f64 {
        if self.mean == 0.0 { f64::INFINITY } else { 100.0 * self.half_width / self.mean.abs() }
    }
}

/// Fewest batches that an interval is built from: below ten the t quantile dominates and the interval says little.
const FEWEST_BATCHES: usize = 10;
/// Lag-1 correlation of batch means above which batches are still too short to be taken as independent.
const CORRELATED: f64 = 0.1;

/// Largest correlation that batch means are credited with; it triples the width.
const MOST_RHO: f64 = 0.8;
/// Fewest degrees of freedom that are left to the t quantile.
const LEAST_DEGREES: f64 = 5.0;

/// The 95 % confidence interval of the mean of a series whose neighbours may be correlated: values are joined into
/// ever longer batches until the batch means no longer predict each other, and Student's t is applied to those. What
/// correlation ρ is left widens the interval by √((1 + ρ) / (1 − ρ)), the variance inflation of a first-order process,
/// and takes as many degrees of freedom. Estimates of ρ from n values fall short by about (1 + 4ρ) / n (Kendall, *Note on
/// Bias in the Estimation of Autocorrelation*, 1954, with the mean estimated too), which is put back. Of a short series that
/// drifts neither ρ nor what is left of the degrees of freedom can be told, so both are bounded (at 0.8 and 5): the interval is wide then, and not absurd. Nothing below ten values.
pub fn batch_means(values: &[f64]) -> Option<Interval> {
    if values.len() < FEWEST_BATCHES {
        return None;
    }
    let mut batches = values.to_vec();
    loop {
        let correlation = lag1_autocorrelation(&batches).unwrap_or(0.0);
        if correlation <= CORRELATED || batches.len() < 2 * FEWEST_BATCHES {
            let n = batches.len() as f64;
            let rho = (correlation + (1.0 + 4.0 * correlation) / n).clamp(0.0, MOST_RHO);
            let inflation = ((1.0 + rho) / (1.0 - rho)).sqrt();
            let t = student_t(0.95, (n / inflation.powi(2) - 1.0).max(LEAST_DEGREES));
            return Some(Interval { mean: mean(values)?, half_width: inflation * t * stdev(&batches)? / n.sqrt() });
        }
        batches = batches.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small reproducible generator, uniform in 0..1 (splitmix64).
    fn uniform(state: &mut u64) -> f64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn textbook_figures() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        assert!((stdev(&values).unwrap() - 2.138).abs() < 0.001);
        assert_eq!(median(&values), Some(4.5));
        assert!((student_t(0.95, 9.0) - 2.262).abs() < 0.001);
        assert_eq!(mean(&[]), None);
        assert_eq!(batch_means(&[1.0; 9]), None);
    }

    /// Of many 95 % intervals about nineteen in twenty must hold the truth, also when samples are correlated.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for rho in [0.0, 0.5, 0.8] {
            let mut state = 42;
            let mut held = 0;
            for _ in 0..400 {
                let mut x = 0.0;
                let series: Vec<f64> = (0..600)
                    .map(|_| {
                        x = rho * x + uniform(&mut state) - 0.5;
                        x
                    })
                    .collect();
                let interval = batch_means(&series).unwrap();
                held += usize::from(interval.mean.abs() <= interval.half_width);
            }
            let share = held as f64 / 400.0;
            assert!(share > 0.90, "rho {rho}: only {share} of the intervals hold the truth");
        }
    }
}
