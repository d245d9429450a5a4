//! Published rows held against themselves: a rate of tokens, a time and shares of a processor's time that cannot all be true.
//! Nothing here knows a prediction; what a row should have been is left to others.

use crate::findings::times;
use basics::stats::median;
use basics::units::significant;
use serde::{Deserialize, Serialize};

/// A row of a table of decoding runs, as somebody published it. All rows of one model are taken for the same work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRun {
    /// The model.
    pub model: String,
    /// Where swap was.
    pub tier: String,
    /// Whole time in seconds, loading included.
    pub total_s: f64,
    /// Tokens a second.
    pub tps: f64,
    /// CPU use, per cent of all processors.
    pub cpu_percent: Option<f64>,
    /// Share of all processors' time that was idle with I/O under way, per cent.
    pub iowait_percent: Option<f64>,
}

/// What cannot be true of a published row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contradiction {
    /// The model.
    pub model: String,
    /// The row's tier; none when two rows contradict each other and nothing says which of them is wrong.
    pub tier: Option<String>,
    /// What contradicts what, a sentence without its full stop.
    pub why: String,
}

/// Answers to one question, sampled anew, differ in length by tens of per cent (in the article's other rows by 5 to 24); runs of
/// which one made more than twice the tokens of the other are not the same work, or a figure is wrong.
const SAME_WORK: f64 = 2.0;
/// Per cent that rounding may add to a sum of shares.
const ROUNDING: f64 = 1.0;

/// Every row of a table that contradicts itself or its neighbours.
///
/// Tokens a second times the whole time are the tokens made, or somewhat more, since loading counts as time. The same question on
/// another tier should give about as many. Where it does not, the row that is farther from the others, or with two rows from
/// what other models made, is the one at fault.
pub fn contradictions(runs: &[PublishedRun]) -> Vec<Contradiction> {
    let mut found: Vec<Contradiction> = runs.iter().filter_map(alone).collect();
    let mut models: Vec<&str> = Vec::new();
    for run in runs {
        if !models.contains(&run.model.as_str()) {
            models.push(&run.model);
        }
    }
    found.extend(models.into_iter().filter_map(|model| beside(model, runs)));
    found
}

fn tokens(run: &PublishedRun) -> f64 {
    run.tps * run.total_s
}

/// What one row says against itself.
fn alone(run: &PublishedRun) -> Option<Contradiction> {
    let told = |why: String| Some(Contradiction { model: run.model.clone(), tier: Some(run.tier.clone()), why });
    let sane = |value: f64| value.is_finite() && value > 0.0;
    if !sane(run.tps) || !sane(run.total_s) {
        return told(format!("{} tokens/s in {} s are no run", run.tps, run.total_s));
    }
    if tokens(run) < 1.0 {
        let (tps, total) = (significant(run.tps), significant(run.total_s));
        return told(format!("at {tps} tokens/s there was not one token in {total} s"));
    }
    let shares = run.cpu_percent.unwrap_or(0.0) + run.iowait_percent.unwrap_or(0.0);
    (shares > 100.0 + ROUNDING)
        .then(|| told(format!("CPU and I/O wait are {} % of the time together", significant(shares))))
        .flatten()
}

/// What the rows of one model say against each other.
fn beside(model: &str, runs: &[PublishedRun]) -> Option<Contradiction> {
    let sane = |run: &&PublishedRun| tokens(run).is_finite() && tokens(run) >= 1.0;
    let own: Vec<&PublishedRun> = runs.iter().filter(sane).filter(|run| run.model == model).collect();
    let most = own.iter().copied().max_by(|a, b| tokens(a).total_cmp(&tokens(b)))?;
    let least = own.iter().copied().min_by(|a, b| tokens(a).total_cmp(&tokens(b)))?;
    if tokens(most) / tokens(least) <= SAME_WORK {
        return None;
    }
    let count = |run: &PublishedRun| format!("{} tokens on {}", significant(tokens(run).round()), run.tier);
    let apart = format!("tokens/s times the total time gives {} and {}", count(least), count(most));
    // Of three rows and more the others of this model are the measure, of two those of other models.
    let others: Vec<f64> = if own.len() > 2 {
        own.iter().map(|run| tokens(run)).collect()
    } else {
        runs.iter().filter(sane).filter(|run| run.model != model).map(tokens).collect()
    };
    let usual = median(&others).filter(|_| others.len() > 1);
    let Some(usual) = usual else {
        let why = format!("{apart}: not the same work, or a figure of one of the two is wrong");
        return Some(Contradiction { model: model.to_owned(), tier: None, why });
    };
    let strays = |run: &PublishedRun| (tokens(run) / usual).ln().abs();
    let (wrong, right) = if strays(least) >= strays(most) { (least, most) } else { (most, least) };
    let faster = |by: f64| {
        if by >= 1.0 { format!("{} times faster", times(by)) } else { format!("{} times slower", times(1.0 / by)) }
    };
    let why = format!(
        "{apart}, {} being usual: not the same work, or a figure is wrong (by its total {} is {} than {}, by its tokens/s {})",
        significant(usual.round()),
        wrong.tier,
        faster(right.total_s / wrong.total_s),
        right.tier,
        faster(wrong.tps / right.tps),
    );
    Some(Contradiction { model: model.to_owned(), tier: Some(wrong.tier.clone()), why })
}

#[cfg(test)]
mod tests {
    use super::super::article_runs;
    use super::*;

    fn run(model: &str, tier: &str, total_s: f64, tps: f64) -> PublishedRun {
        let (model, tier) = (model.to_owned(), tier.to_owned());
        PublishedRun { model, tier, total_s, tps, cpu_percent: None, iowait_percent: None }
    }

    #[test]
    fn one_row_of_the_article_contradicts_itself() {
        let found = contradictions(&article_runs());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].model.as_str(), found[0].tier.as_deref()), ("phi4-mini:3.8b", Some("Optane")));
        let why = &found[0].why;
        assert!(why.contains("79 tokens on Optane") && why.contains("310 tokens on USB SSD array"), "{why}");
        assert!(why.contains("5.7 times faster") && why.contains("1.4 times faster"), "{why}");
    }

    /// The same of another table, in which it is another row of another tier.
    #[test]
    fn the_row_at_fault_is_found_by_its_neighbours() {
        let table = [
            run("a", "x", 100.0, 3.0),
            run("a", "y", 50.0, 6.2),
            run("b", "x", 400.0, 3.0),
            run("b", "y", 100.0, 3.1),
            run("c", "x", 30.0, 11.0),
        ];
        let found = contradictions(&table);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].model.as_str(), found[0].tier.as_deref()), ("b", Some("x")));
        let found = contradictions(&table[2..4]);
        assert_eq!((found.len(), &found[0].tier), (1, &None), "nothing says which");
        let three = [run("b", "x", 400.0, 3.0), run("b", "y", 100.0, 3.1), run("b", "z", 200.0, 1.6)];
        assert_eq!(contradictions(&three)[0].tier.as_deref(), Some("x"));
    }

    #[test]
    fn a_row_may_contradict_itself_alone() {
        let mut busy = run("a", "x", 100.0, 3.0);
        (busy.cpu_percent, busy.iowait_percent) = (Some(60.0), Some(55.0));
        let table = [busy, run("b", "x", 10.0, 0.01), run("c", "x", f64::NAN, 1.0), run("d", "x", 100.0, 3.0)];
        let found: Vec<String> = contradictions(&table).into_iter().map(|one| one.why).collect();
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("115 % of the time") && found[1].contains("not one token"), "{found:?}");
        assert!(contradictions(&[]).is_empty());
    }
}
