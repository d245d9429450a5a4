//! A trial: the same plan run in turns with a change and without it, in pairs whose order is drawn, each turn with its settings
//! made before and taken back after it. Which runs stood on which side is kept as the trial goes on.

use crate::{Finished, RunError, Runner};
use basics::Plan;
use change::{ChangeError, Journal, Value};
use machine::Root;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use record::{Proof, State, Turn};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A kernel setting that is one thing on one side and another on the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// The file below `/proc/sys` or `/sys`.
    pub path: PathBuf,
    /// Its value without the change.
    pub before: String,
    /// With it.
    pub after: String,
}

/// What is tried.
#[derive(Debug, Clone)]
pub struct Trial<'a> {
    /// The work.
    pub plan: &'a Plan,
    /// What is switched between the turns; nothing where both sides are not of one boot.
    pub switches: &'a [Switch],
    /// The turns to come: with the change or not, and of which pair. The first of a side whose pair is none warms up.
    pub turns: Vec<(bool, Option<u32>)>,
    /// As typed, for the record.
    pub command: &'a str,
}

/// One turn that warms up and so many pairs, which side of a pair is first being drawn: where nothing is changed either sign of a
/// pair's difference is as likely as the other, whatever drifts.
pub fn pairs(pairs: u32, seed: u64) -> Vec<(bool, Option<u32>)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut turns = vec![(false, None)];
    for pair in 0..pairs {
        // The highest bit is the best of this generator.
        let first = random.next_u64() >> 63 == 1;
        turns.extend([(first, Some(pair)), (!first, Some(pair))]);
    }
    turns
}

/// One side alone, the first turn for warming up.
pub fn side(changed: bool, turns: u32) -> Vec<(bool, Option<u32>)> {
    std::iter::once(None).chain((0..turns).map(Some)).map(|pair| (changed, pair)).collect()
}

/// Whether the kernel takes each of these values: better known before the first turn than after it.
///
/// # Errors
/// Those of [`Value::set`].
pub fn attempt(switches: &[Switch], journal: &Journal) -> Result<(), ChangeError> {
    for switch in switches {
        for wanted in [&switch.before, &switch.after] {
            Value::set(journal, &run(), &switch.path, wanted)?.restore()?;
        }
    }
    Ok(())
}

/// What changes are made for, in the journal.
fn run() -> String {
    format!("prove-{}", std::process::id())
}

impl Runner<'_> {
    /// Runs all turns, each told to `told` before it begins; `proof` gets them as they end and is kept under `number`.
    /// How the last one ended: not well where it was interrupted or failed, and then no other followed.
    ///
    /// # Errors
    /// Those of [`Runner::run`] and of [`Value::set`].
    pub fn trial(
        &mut self,
        trial: &Trial<'_>,
        number: i64,
        proof: &mut Proof,
        told: &mut dyn FnMut(usize, bool),
    ) -> Result<Option<Finished>, RunError> {
        let mut last = None;
        for (index, (changed, pair)) in trial.turns.iter().enumerate() {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            told(index, *changed);
            let finished = self.turn(trial, *changed)?;
            let boot = Root::live().text("/proc/sys/kernel/random/boot_id").into_option();
            proof.turns.push(Turn { run: finished.id.clone(), changed: *changed, pair: *pair, boot });
            self.store.keep_proof(Some(number), proof)?;
            let well = finished.state == State::Done;
            last = Some(finished);
            if !well {
                break;
            }
        }
        Ok(last)
    }

    fn turn(&mut self, trial: &Trial<'_>, changed: bool) -> Result<Finished, RunError> {
        let mut values = Vec::new();
        for switch in trial.switches {
            let wanted = if changed { &switch.after } else { &switch.before };
            values.push(Value::set(self.journal, &run(), &switch.path, wanted)?);
        }
        let finished = self.run(trial.plan.clone(), machine::read(&Root::live()), trial.command)?;
        // The latest first: a setting may depend on one before it.
        for value in values.into_iter().rev() {
            value.restore()?;
        }
        Ok(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_both_sides_in_an_order_of_its_own() {
        let turns = pairs(64, 5);
        assert_eq!(turns[0], (false, None));
        let mut first = 0;
        for (pair, turns) in turns[1..].chunks(2).enumerate() {
            let pair = Some(pair as u32);
            assert!(turns[0].0 != turns[1].0 && turns[0].1 == pair && turns[1].1 == pair);
            first += usize::from(turns[0].0);
        }
        assert!((16..=48).contains(&first), "{first}");
        assert!(pairs(64, 5) == turns && pairs(64, 6) != turns);
        assert_eq!(side(true, 2), [(true, None), (true, Some(0)), (true, Some(1))]);
    }
}
