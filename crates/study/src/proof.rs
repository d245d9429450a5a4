//! Whether a change helped: one figure of each run before and after it, and an interval that holds without assuming how such figures
//! scatter. Turns in pairs whose order was drawn are judged by their signed ranks, turns on two sides of a reboot by their ranks.

use crate::build::build_rows;
use crate::desktop::desktop_rows;
use crate::load::load_rows;
use crate::model::RunView;
use crate::redis::redis_cells;
use crate::tokens::token_rows;
use basics::job::Pacing;
use basics::stats::median;

/// The chance of an effect that is none, per side: the test is at the 1 % level.
const TAIL: f64 = 0.005;
/// Fewest pairs for which an interval of that level exists: 2⁻⁸ lies below [`TAIL`], 2⁻⁷ does not.
pub const FEWEST_PAIRS: usize = 8;
/// Fewest turns on each side of a reboot for which it exists: one of 252 orders of ten.
pub const FEWEST_TURNS: usize = 5;

/// What a run is judged by.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The figure.
    pub value: f64,
    /// Its unit, and of what it is where there is more than one thing.
    pub of: String,
    /// More of it is better; less where not.
    pub more_is_better: bool,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proven {
    /// The interval lies above zero.
    Helped,
    /// It holds zero.
    NoEffect,
    /// It lies below zero.
    Hurt,
    /// Too few turns.
    Unknown,
}

impl Proven {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Proven::Helped => "helped",
            Proven::NoEffect => "no effect",
            Proven::Hurt => "hurt",
            Proven::Unknown => "unknown",
        }
    }
}

/// How much better it became, per cent of before: a rate by so much, a time by as much as it became shorter's worth (half the time is
/// 100 %).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Of the sign of the interval.
    pub verdict: Proven,
    /// The 99 % interval and the estimate in it (Hodges and Lehmann's): low, mid, high. None where there are too few turns.
    pub percent: Option<(f64, f64, f64)>,
}

/// The figure that a run stands for: tokens of a model, touches of memory, requests of Redis, and of a method the geometric mean
/// of its steps' rates.
///
/// # Errors
/// A sentence where it has none.
pub fn measure(run: &RunView<'_>) -> Result<Measure, String> {
    let more = |value: Option<f64>, of: &str| {
        let more = |value| Measure { value, of: of.to_owned(), more_is_better: true };
        value.filter(|value| *value > 0.0).map(more).ok_or_else(|| format!("the run has no {of}"))
    };
    let tokens = token_rows(run);
    if !tokens.is_empty() {
        return more(geometric(tokens.iter().map(|row| row.tps.get().copied())), "tokens/s");
    }
    let touches = load_rows(run);
    if !touches.is_empty() {
        return more(geometric(touches.iter().map(|row| row.mbps.get().copied())), "MB/s of memory touched");
    }
    let browsed = desktop_rows(run);
    if !browsed.is_empty() {
        let wait = more(geometric(browsed.iter().map(|row| row.wait_s.get().copied())), "s waited for an act")?;
        return Ok(Measure { more_is_better: false, ..wait });
    }
    let built = build_rows(run);
    if !built.is_empty() {
        return more(geometric(built.iter().map(|row| row.per_minute.get().copied())), "files compiled a minute");
    }
    let cells = redis_cells(run);
    if !cells.is_empty() {
        // A load of a given rate has that rate, whatever is changed.
        if run.steps.iter().any(|step| !matches!(step.job.pacing, Pacing::Closed)) {
            let p99 = geometric(cells.iter().map(|cell| Some(cell.lat.get()?.p99)));
            return Ok(Measure { more_is_better: false, ..more(p99, "µs of p99")? });
        }
        return more(geometric(cells.iter().map(|cell| cell.ops_per_s.get().copied())), "requests/s");
    }
    let steps: Vec<_> = run.steps.iter().filter(|step| step.is_whole() && step.elapsed.0 > 0).collect();
    let rates = steps.iter().map(|step| {
        let bytes = step.read.bytes + step.write.bytes;
        Some(bytes as f64 / 1e6 / step.elapsed.secs())
    });
    let of = match steps.len() {
        0 | 1 => "MB/s".to_owned(),
        n => format!("MB/s, the geometric mean of {n} steps"),
    };
    more(geometric(rates), &of)
}

/// Nothing when one is missing or none is there.
fn geometric(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Vec<f64> = values.map(|value| value.filter(|v| *v > 0.0).map(f64::ln)).collect::<Option<_>>()?;
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// What pairs of (before, after) say whose order within each was drawn: Wilcoxon's signed ranks and the interval that belongs to them
/// (Hollander, Wolfe and Chicken, *Nonparametric Statistical Methods*, 3.3). The draw makes either sign of a difference as likely as
/// the other where nothing was changed, whatever drifts meanwhile.
pub fn paired(pairs: &[(f64, f64)], more_is_better: bool) -> Effect {
    let logs: Vec<f64> = pairs.iter().filter_map(|(before, after)| gain(*before, *after, more_is_better)).collect();
    let n = logs.len();
    let averages = (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).map(|(i, j)| (logs[i] + logs[j]) / 2.0);
    // Of ranks 1 to n each is with the positive ones or is not.
    let mut ways = vec![1.0];
    for rank in 1..=n {
        ways = added(&ways, rank);
    }
    interval(averages.collect(), &ways)
}

/// What turns before and after a reboot say: the rank sum test's interval (the same, 4.3).
pub fn apart(before: &[f64], after: &[f64], more_is_better: bool) -> Effect {
    let gains = before.iter().flat_map(|b| after.iter().filter_map(move |a| gain(*b, *a, more_is_better)));
    interval(gains.collect(), &orders(before.len(), after.len()))
}

/// ln of how much better.
fn gain(before: f64, after: f64, more_is_better: bool) -> Option<f64> {
    let log = (after / before).ln();
    (before > 0.0 && log.is_finite()).then_some(if more_is_better { log } else { -log })
}

/// The ways of each sum, with one more rank that is in it or not.
fn added(ways: &[f64], rank: usize) -> Vec<f64> {
    let mut sums = vec![0.0; ways.len() + rank];
    for (sum, ways) in ways.iter().enumerate() {
        sums[sum] += ways;
        sums[sum + rank] += ways;
    }
    sums
}

/// In how many of the orders of `m` and `n` values so many of the m·n pairs have the first one behind: the coefficients of Gauss's
/// binomial (m + n over m).
fn orders(m: usize, n: usize) -> Vec<f64> {
    let mut table = vec![vec![1.0]; n + 1];
    for _ in 0..m {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=n {
            // The last of an order is one of the n, which is behind nobody, or one of the m, which is behind all n.
            let (shorter, above) = (&row[j - 1], &table[j]);
            let mut sums = vec![0.0; above.len().max(shorter.len()) + j];
            for (sum, ways) in shorter.iter().enumerate() {
                sums[sum] += ways;
            }
            for (sum, ways) in above.iter().enumerate() {
                sums[sum + j] += ways;
            }
            while sums.len() > 1 && sums.last() == Some(&0.0) {
                sums.pop();
            }
            row.push(sums);
        }
        table = row;
    }
    table.swap_remove(n)
}

/// Between the order statistics that the test would not refuse.
fn interval(mut values: Vec<f64>, ways: &[f64]) -> Effect {
    values.sort_by(f64::total_cmp);
    let all: f64 = ways.iter().sum();
    let mut sum = 0.0;
    let refused = ways.iter().take_while(|ways| {
        sum += **ways;
        sum / all <= TAIL
    });
    let refused = refused.count();
    let (Some(mid), true) = (median(&values), refused > 0 && 2 * refused <= values.len()) else {
        return Effect { verdict: Proven::Unknown, percent: None };
    };
    let percent = |log: f64| 100.0 * (log.exp() - 1.0);
    let (low, high) = (values[refused - 1], values[values.len() - refused]);
    let verdict = match (low > 0.0, high < 0.0) {
        (true, _) => Proven::Helped,
        (_, true) => Proven::Hurt,
        _ => Proven::NoEffect,
    };
    Effect { verdict, percent: Some((percent(low), percent(mid), percent(high))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Tables of the signed rank and the rank sum test (Hollander, Wolfe and Chicken, A.4 and A.6).
    #[test]
    fn what_is_refused_is_as_in_the_tables() {
        let mut ways = vec![1.0];
        for rank in 1..=10 {
            ways = added(&ways, rank);
        }
        assert_eq!(ways.iter().sum::<f64>(), 1024.0);
        // P(W ≤ 3) = 5 / 1024.
        assert_eq!(ways[..4].iter().sum::<f64>(), 5.0);
        let orders = orders(5, 5);
        assert_eq!(
            (orders.iter().sum::<f64>(), orders.len(), orders[0], orders[1], orders[2]),
            (252.0, 26, 1.0, 1.0, 2.0)
        );
        assert_eq!(super::orders(3, 2), [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn eight_pairs_that_agree_are_enough_and_seven_are_not() {
        let pairs = |n: usize| -> Vec<(f64, f64)> { (0..n).map(|i| (100.0 + i as f64, 138.0 + i as f64)).collect() };
        assert_eq!(paired(&pairs(7), true), Effect { verdict: Proven::Unknown, percent: None });
        let effect = paired(&pairs(FEWEST_PAIRS), true);
        let (low, mid, high) = effect.percent.unwrap();
        assert!(
            effect.verdict == Proven::Helped && low < mid && mid < high && (36.0..38.0).contains(&mid),
            "{effect:?}"
        );
        let slower = paired(&pairs(FEWEST_PAIRS), false);
        assert!(slower.verdict == Proven::Hurt && slower.percent.unwrap().1 < -26.0, "{slower:?}");
        let (before, after): (Vec<f64>, Vec<f64>) = pairs(FEWEST_TURNS).into_iter().unzip();
        assert_eq!(apart(&before, &after, true).verdict, Proven::Helped);
        assert_eq!(apart(&before[..4], &after[..4], true).verdict, Proven::Unknown);
    }

    /// Figures that scatter by 20 %, now and then by a factor, drift by half, and of which nothing was changed: at most one in a
    /// hundred is called an effect. The order is drawn, as the runner draws it.
    #[test]
    fn what_is_none_is_called_none() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut unit = move || random.next_u64() as f64 / u64::MAX as f64;
        let mut wrong = 0;
        let all = 4000;
        for _ in 0..all {
            let pairs: Vec<(f64, f64)> = (0..10)
                .map(|pair| {
                    let drift = 1.0 - 0.05 * f64::from(pair);
                    let mut figure = |later: f64| {
                        let hog = if unit() < 0.1 { 0.4 } else { 1.0 };
                        hog * (drift - 0.025 * later) * (0.8 + 0.4 * unit())
                    };
                    let (first, second) = (figure(0.0), figure(1.0));
                    if unit() < 0.5 { (first, second) } else { (second, first) }
                })
                .collect();
            wrong += usize::from(paired(&pairs, true).verdict != Proven::NoEffect);
        }
        // 40 and four standard deviations of that; and an interval that is never wrong is too wide.
        assert!((10..=65).contains(&wrong), "{wrong} of {all}");
    }
}
