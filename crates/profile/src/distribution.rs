//! How long one operation's latency may be: a constant, a log-normal law with an optional slow tail, or the device's own
//! quantiles, so that p99 and p99.999 are those that were measured.

use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// A distribution of latencies, in µs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Latency {
    /// Always the same.
    Constant(f64),
    /// Log-normal.
    LogNormal(Law),
    /// Pairs of per cent and µs (`[[50, 100], [99.9, 3000]]`), rising; in between in proportion of the logarithms.
    Quantiles(Vec<(f64, f64)>),
}

/// A log-normal law.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Of the law itself, the tail left out.
    pub mean: f64,
    /// Standard deviation of the logarithm.
    pub sigma: f64,
    /// Some that take much longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<Tail>,
}

/// The slow ones.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tail {
    /// Part of all operations that are slow, 0 to 1.
    pub share: f64,
    /// Of the slow ones, µs.
    pub median: f64,
    /// Standard deviation of their logarithm.
    pub sigma: f64,
}

impl Latency {
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let sane = |us: f64| (0.0..=3.6e9).contains(&us);
        match self {
            Latency::Constant(us) if !sane(*us) => Err("it must be between 0 and an hour"),
            Latency::LogNormal(law) => {
                let tail = law.tail.unwrap_or(Tail { share: 0.0, median: 1.0, sigma: 0.0 });
                if !(sane(law.mean) && law.mean > 0.0 && sane(tail.median) && tail.median > 0.0) {
                    return Err("its mean and median must be above 0 and at most an hour");
                }
                if !((0.0..=5.0).contains(&law.sigma) && (0.0..=5.0).contains(&tail.sigma)) {
                    return Err("its sigma must be between 0 and 5");
                }
                if (0.0..=1.0).contains(&tail.share) {
                    Ok(())
                } else {
                    Err("the share of its tail must be between 0 and 1")
                }
            }
            Latency::Quantiles(all) => {
                let inside = |(percent, us): &(f64, f64)| (0.0..=100.0).contains(percent) && sane(*us);
                let rises = all.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
                if !all.is_empty() && rises && all.iter().all(inside) {
                    Ok(())
                } else {
                    Err("it must be pairs of per cent (0 to 100) and µs (0 to an hour), both rising")
                }
            }
            Latency::Constant(_) => Ok(()),
        }
    }

    /// Each latency so much longer (or shorter, down to nothing).
    #[must_use]
    pub fn shifted(&self, us: f64) -> Latency {
        match self {
            Latency::Constant(all) => Latency::Constant((all + us).max(0.0)),
            Latency::LogNormal(law) => {
                // The spread in µs stays, so that of the logarithm changes.
                let mean = (law.mean + us).max(law.mean * 1e-3);
                let variance = (law.sigma * law.sigma).exp_m1() * (law.mean / mean).powi(2);
                let tail = law.tail.map(|tail| Tail { median: (tail.median + us).max(mean), ..tail });
                Latency::LogNormal(Law { mean, sigma: variance.ln_1p().sqrt().min(5.0), tail })
            }
            Latency::Quantiles(all) => {
                Latency::Quantiles(all.iter().map(|(percent, all)| (*percent, (all + us).max(0.0))).collect())
            }
        }
    }
    /// Each latency so many times as long.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Latency {
        match self {
            Latency::Constant(us) => Latency::Constant(us * factor),
            Latency::LogNormal(law) => {
                let tail = law.tail.map(|tail| Tail { median: tail.median * factor, ..tail });
                Latency::LogNormal(Law { mean: law.mean * factor, tail, ..*law })
            }
            Latency::Quantiles(all) => {
                Latency::Quantiles(all.iter().map(|(percent, us)| (*percent, us * factor)).collect())
            }
        }
    }

    /// Mean in µs.
    pub fn mean_us(&self) -> f64 {
        match self {
            Latency::Constant(us) => *us,
            Latency::LogNormal(Law { mean, tail: None, .. }) => *mean,
            Latency::LogNormal(Law { mean, tail: Some(tail), .. }) => {
                mean * (1.0 - tail.share) + tail.share * tail.median * (tail.sigma * tail.sigma / 2.0).exp()
            }
            Latency::Quantiles(all) => {
                // Of the curve that `Sampler` draws from: between two points the logarithm rises in proportion.
                let points = parts(all);
                let between = |pair: &[(f64, f64)]| {
                    let [(q0, a), (q1, b)] = *pair else { return 0.0 };
                    let ratio = b / a;
                    let mean =
                        if a <= 0.0 || (ratio - 1.0).abs() < 1e-9 { (a + b) / 2.0 } else { (b - a) / ratio.ln() };
                    (q1 - q0) * mean
                };
                let first = points.first().map_or(0.0, |(q, us)| q * us);
                let last = points.last().map_or(0.0, |(q, us)| (1.0 - q) * us);
                first + points.windows(2).map(between).sum::<f64>() + last
            }
        }
    }
}

/// Parts of 1 instead of per cent.
fn parts(quantiles: &[(f64, f64)]) -> Vec<(f64, f64)> {
    quantiles.iter().map(|(percent, us)| (percent / 100.0, *us)).collect()
}

/// Draws latencies.
#[derive(Debug, Clone)]
pub(crate) enum Sampler {
    Constant(f64),
    LogNormal { body: LogNormal<f64>, tail: Option<(f64, LogNormal<f64>)> },
    Quantiles(Vec<(f64, f64)>),
}

/// A uniform number in 0..1.
pub(crate) fn unit(rng: &mut Xoshiro256PlusPlus) -> f64 {
    // 53 bits, all that a f64 holds.
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

impl Sampler {
    /// Of a checked distribution.
    pub(crate) fn new(latency: Option<&Latency>) -> Self {
        let law = |mu: f64, sigma: f64| LogNormal::new(mu, sigma);
        match latency {
            None => Sampler::Constant(0.0),
            Some(Latency::Constant(us)) => Sampler::Constant(*us),
            Some(Latency::LogNormal(Law { mean, sigma, tail })) => {
                let body = law(mean.ln() - sigma * sigma / 2.0, *sigma);
                let tail = tail.and_then(|tail| Some((tail.share, law(tail.median.ln(), tail.sigma).ok()?)));
                // `Latency::check` has refused what the law refuses.
                body.map_or(Sampler::Constant(*mean), |body| Sampler::LogNormal { body, tail })
            }
            Some(Latency::Quantiles(all)) => Sampler::Quantiles(parts(all)),
        }
    }

    /// The next one, in µs.
    pub(crate) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        match self {
            Sampler::Constant(us) => *us,
            Sampler::LogNormal { body, tail: Some((share, tail)) } if unit(rng) < *share => {
                // A slow one is never faster than the others usually are.
                tail.sample(rng).max(body.sample(rng))
            }
            Sampler::LogNormal { body, .. } => body.sample(rng),
            Sampler::Quantiles(points) => at(points, unit(rng)),
        }
    }
}

/// Draws of a part of the scatter: each as far from the middle as what already scatters by itself leaves to be added.
#[derive(Debug, Clone)]
pub(crate) struct Narrowed {
    sampler: Sampler,
    /// Once it is asked for.
    shape: Option<Shape>,
    /// By how much draws lie nearer to the middle, 0 to 1.
    factor: f64,
}

/// All draws but the slowest hundredth: up to where they reach, their mean and standard deviation, µs.
#[derive(Debug, Clone, Copy)]
struct Shape {
    most: f64,
    middle: f64,
    deviation: f64,
}

impl Narrowed {
    pub(crate) fn new(latency: Option<&Latency>) -> Self {
        Narrowed { sampler: Sampler::new(latency), shape: None, factor: 1.0 }
    }

    /// Something else adds a scatter of that standard deviation, µs, to what is drawn: variances add.
    pub(crate) fn absorb(&mut self, deviation_us: f64) {
        let own = self.shape.get_or_insert_with(|| Shape::of(&self.sampler)).deviation;
        self.factor = if own > 0.0 { (1.0 - (deviation_us / own).powi(2)).max(0.0).sqrt() } else { 1.0 };
    }

    /// The next one, in µs. The slow tail keeps its form.
    pub(crate) fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let drawn = self.sampler.draw(rng);
        match self.shape {
            Some(Shape { most, middle, .. }) if self.factor < 1.0 => {
                drawn - (drawn.min(most) - middle) * (1.0 - self.factor)
            }
            _ => drawn,
        }
    }
}

impl Shape {
    fn of(sampler: &Sampler) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut drawn: Vec<f64> = (0..10_000).map(|_| sampler.draw(&mut rng)).collect();
        drawn.sort_by(f64::total_cmp);
        let usual = &drawn[..drawn.len() * 99 / 100];
        let middle = usual.iter().sum::<f64>() / usual.len() as f64;
        let variance = usual.iter().map(|us| (us - middle).powi(2)).sum::<f64>() / usual.len() as f64;
        Shape { most: usual[usual.len() - 1], middle, deviation: variance.sqrt() }
    }
}

/// The curve's value at a quantile.
fn at(points: &[(f64, f64)], q: f64) -> f64 {
    let above = points.partition_point(|(point, _)| *point < q);
    match (above.checked_sub(1).map(|i| points[i]), points.get(above).copied()) {
        (None, Some((_, us))) | (Some((_, us)), None) => us,
        (Some((q0, a)), Some((q1, b))) => {
            let part = (q - q0) / (q1 - q0).max(f64::MIN_POSITIVE);
            if a <= 0.0 { a + (b - a) * part } else { a * (b / a).powf(part) }
        }
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::stats;

    fn drawn(latency: &Latency, n: usize) -> Vec<f64> {
        latency.check().unwrap();
        let sampler = Sampler::new(Some(latency));
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut all: Vec<f64> = (0..n).map(|_| sampler.draw(&mut rng)).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn draws_have_the_mean_that_is_stated() {
        let tail = Some(Tail { share: 0.02, median: 900.0, sigma: 0.3 });
        for latency in [
            Latency::Constant(7.0),
            Latency::LogNormal(Law { mean: 200.0, sigma: 0.4, tail: None }),
            Latency::LogNormal(Law { mean: 200.0, sigma: 0.1, tail }),
            Latency::Quantiles(vec![(0.0, 50.0), (50.0, 100.0), (99.0, 400.0), (100.0, 5000.0)]),
            Latency::Quantiles(vec![(50.0, 100.0)]),
        ] {
            let all = drawn(&latency, 200_000);
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!((mean / latency.mean_us() - 1.0).abs() < 0.02, "{latency:?}: {mean}, not {}", latency.mean_us());
        }
    }

    /// The device's own percentiles come out again.
    #[test]
    fn quantiles_are_kept() {
        let percentiles = [(1.0, 60.0), (50.0, 100.0), (99.0, 400.0), (99.9, 3000.0)];
        let all = drawn(&Latency::Quantiles(percentiles.to_vec()), 200_000);
        for (percent, us) in percentiles {
            let found = all[(percent / 100.0 * (all.len() - 1) as f64) as usize];
            assert!((found / us - 1.0).abs() < 0.1, "p{percent}: {found}, not {us}");
        }
        assert!(all[0] >= 60.0 && all[all.len() - 1] <= 3000.0);
    }

    /// What scatters by itself and what is drawn for it make up the scatter that was asked for; the mean stays, and so does a
    /// slow tail.
    #[test]
    fn narrowed_draws_leave_room_for_another_scatter() {
        let tail = Some(Tail { share: 0.01, median: 5000.0, sigma: 0.1 });
        for (tail, most_usual) in [(None, f64::INFINITY), (tail, 2500.0)] {
            let law = Latency::LogNormal(Law { mean: 61.0, sigma: 0.62, tail });
            let mut narrowed = Narrowed::new(Some(&law));
            let own = Shape::of(&narrowed.sampler).deviation;
            for (absorbed, left) in [(0.0, 1.0), (0.6, 0.8), (0.8, 0.6), (3.0, 0.0)] {
                narrowed.absorb(absorbed * own);
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
                let (usual, slow): (Vec<f64>, Vec<f64>) =
                    (0..100_000).map(|_| narrowed.draw(&mut rng)).partition(|us| *us < most_usual);
                let mean = stats::mean(&usual).unwrap();
                assert!((mean / 61.0 - 1.0).abs() < 0.04, "{mean}");
                let spread = stats::quantile(&usual, 0.9).unwrap() - stats::quantile(&usual, 0.1).unwrap();
                // Of the law itself: its tenth and ninetieth percentile are 1.2816 deviations of the logarithm away.
                let (median, reach) = (61.0 * (-0.62_f64.powi(2) / 2.0).exp(), 1.2816 * 0.62);
                let whole = median * (f64::exp(reach) - f64::exp(-reach));
                assert!((spread / whole - left).abs() < 0.03, "{absorbed}: {spread} of {whole}");
                if tail.is_some() {
                    let middle = stats::median(&slow).unwrap();
                    assert!(slow.len().abs_diff(1000) < 150 && (4700.0..5300.0).contains(&middle), "{middle}");
                }
            }
        }
        let mut constant = Narrowed::new(Some(&Latency::Constant(5.0)));
        constant.absorb(10.0);
        assert_eq!(constant.factor, 1.0, "nothing to narrow");
    }
}
