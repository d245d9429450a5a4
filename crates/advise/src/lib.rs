//! What a machine should be like for a job, why, and what to change: one file a rule in [`rules`]. A rule looks at a
//! [`Situation`] (the machine as it was read, what the user wants, what was measured here) and says nothing, or one
//! [`Recommendation`], whose changes are data. Nothing is measured and nothing is written here.
#![forbid(unsafe_code)]

mod begin;
mod files;
mod goals;
mod model;
mod needs;
mod proofs;
mod rules;
mod situation;

pub use begin::{Around, Suggestion, begin};
pub use files::{ConfFile, files};
pub use goals::{Goals, Job};
pub use model::{Evidence, Gain, Origin, Recommendation, Rule};
pub use needs::{Need, need};
pub use proofs::withheld;
pub use rules::{ALL, measure};
pub use situation::{Seen, SeenMedium, SeenProof, SeenVectors, Situation};

/// What all rules that are for the job say, in their order, but for those whose settings were proven to hurt here: [`withheld`].
pub fn advise(situation: &Situation<'_>) -> Vec<Recommendation> {
    let for_it = ALL.iter().filter(|rule| rule.jobs.contains(&situation.goals.job));
    let said = for_it.filter_map(|rule| Some(Recommendation { rule: rule.name, ..(rule.judge)(situation)? }));
    let said = said.filter_map(|said| proofs::refined(said, situation));
    said.map(|said| needs::told(said, situation)).collect()
}
