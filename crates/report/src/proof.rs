//! What a proof says, put together from its runs, for those who print it.

use crate::view::view;
use basics::stats::median;
use record::{Proof, Record};
use study::proof::{self, Effect, FEWEST_PAIRS, FEWEST_TURNS, Measure, Proven};

/// A proof and what its runs say.
#[derive(Debug, Clone, PartialEq)]
pub struct Proved<'a> {
    /// Its number.
    pub number: i64,
    /// Which runs.
    pub proof: &'a Proof,
    /// The unit of the figures, and of what they are; none where no run has one.
    pub of: Option<String>,
    /// Without the change, in order; of an interleaved proof those of whole pairs.
    pub before: Vec<f64>,
    /// With it.
    pub after: Vec<f64>,
    /// What follows.
    pub effect: Effect,
    /// What is missing for a verdict, or what stands against it.
    pub notes: Vec<String>,
}

impl<'a> Proved<'a> {
    /// Of the turns of `proof` and their runs, none where one is gone.
    pub fn of(number: i64, proof: &'a Proof, runs: &[Option<Record>]) -> Self {
        let measured = |run: &Option<Record>| match run {
            Some(record) => proof::measure(&view(record)),
            None => Err("a run of it was removed".to_owned()),
        };
        let measures: Vec<Result<Measure, String>> = runs.iter().map(measured).collect();
        let mut notes: Vec<String> = Vec::new();
        let counted = || proof.turns.iter().zip(&measures).filter(|(turn, _)| turn.pair.is_some());
        for (turn, measure) in counted() {
            if let Err(why) = measure {
                notes.push(format!("run {} counts for nothing: {why}", turn.run));
            }
        }
        let value = |pair: Option<u32>, changed: bool| {
            let mut same = counted().filter(|(turn, _)| turn.pair == pair && turn.changed == changed);
            same.find_map(|(_, measure)| measure.as_ref().ok()).map(|measure| measure.value)
        };
        let first = measures.iter().flatten().next();
        let more_is_better = first.is_none_or(|first| first.more_is_better);
        let (before, after, effect);
        if proof.interleaved {
            let pairs = proof.turns.iter().filter(|turn| !turn.changed && turn.pair.is_some()).map(|turn| turn.pair);
            let pairs: Vec<(f64, f64)> =
                pairs.filter_map(|pair| Some((value(pair, false)?, value(pair, true)?))).collect();
            if pairs.len() < FEWEST_PAIRS {
                notes.push(format!("{} whole pairs: a verdict takes {FEWEST_PAIRS}", pairs.len()));
            }
            effect = proof::paired(&pairs, more_is_better);
            (before, after) = pairs.into_iter().unzip();
        } else {
            let side = |changed| {
                let of_it = counted().filter(move |(turn, _)| turn.changed == changed);
                of_it.filter_map(|(_, measure)| Some(measure.as_ref().ok()?.value)).collect::<Vec<f64>>()
            };
            (before, after) = (side(false), side(true));
            for (name, turns) in [("before", &before), ("after", &after)] {
                if turns.len() < FEWEST_TURNS {
                    notes.push(format!("{} turns {name} the change: a verdict takes {FEWEST_TURNS}", turns.len()));
                }
            }
            if let (Some(before), Some(after)) = (machine_of(proof, runs, false), machine_of(proof, runs, true)) {
                notes.extend(
                    study::compare(&[before], &[after]).notes.into_iter().filter(|note| note.contains("differs")),
                );
            }
            effect = proof::apart(&before, &after, more_is_better);
        }
        Proved { number, proof, of: first.map(|first| first.of.clone()), before, after, effect, notes }
    }

    /// The verdict with its interval, as it is said.
    pub fn verdict(&self) -> String {
        let Some((low, mid, high)) = self.effect.percent else { return "unknown".to_owned() };
        let [low, mid, high] = [low, mid, high].map(percent);
        match self.effect.verdict {
            Proven::Helped => format!("helped by {mid} % [{low}, {high}]"),
            Proven::Hurt => format!("hurt by {} % [{low}, {high}]", mid.trim_start_matches('-')),
            _ => format!("no effect is seen: {mid} % [{low}, {high}]"),
        }
    }

    /// The medians of both sides.
    pub fn medians(&self) -> Option<(f64, f64)> {
        Some((median(&self.before)?, median(&self.after)?))
    }
}

/// The first run of a side.
fn machine_of<'r>(proof: &Proof, runs: &'r [Option<Record>], changed: bool) -> Option<study::RunView<'r>> {
    let run = proof.turns.iter().zip(runs).find_map(|(turn, run)| run.as_ref().filter(|_| turn.changed == changed));
    run.map(view)
}

/// To a tenth where that is much of it.
fn percent(value: f64) -> String {
    let text = if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) { "0".to_owned() } else { text }
}
