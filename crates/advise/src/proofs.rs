//! What was proven on this machine has the last word: the newest verdict on a rule's settings becomes its gain, or keeps it back.

use crate::model::{Evidence, Gain, Origin, Recommendation};
use crate::rules::ALL;
use crate::situation::{SeenProof, Situation};
use basics::units::significant;
use study::proof::Proven;

/// With what was proven of it; nothing where that hurt.
pub(crate) fn refined(mut said: Recommendation, situation: &Situation<'_>) -> Option<Recommendation> {
    let Some((proof, (low, mid, high))) = newest(situation, said.rule) else { return Some(said) };
    let from = Origin::Proof(proof.number.to_string());
    match proof.effect.verdict {
        Proven::Hurt => return None,
        Proven::Helped => {
            let of = format!("in {} with `{}`", proof.of, proof.with);
            said.gain = Some(Gain { of, percent: mid, low, high, from });
        }
        _ => {
            let [low, high] = [low, high].map(significant);
            let text = format!("with `{}` no effect was seen: {low} to {high} % in {}", proof.with, proof.of);
            said.evidence.insert(0, Evidence { text, from });
        }
    }
    Some(said)
}

/// Rules that would recommend what was proven to hurt here, each with a sentence about it.
pub fn withheld(situation: &Situation<'_>) -> Vec<(&'static str, String)> {
    let for_it = ALL.iter().filter(|rule| rule.jobs.contains(&situation.goals.job));
    let hurt = for_it.filter_map(|rule| {
        let (proof, (low, mid, high)) = newest(situation, rule.name)?;
        if proof.effect.verdict != Proven::Hurt {
            return None;
        }
        (rule.judge)(situation)?;
        let [low, mid, high] = [low, mid, high].map(significant);
        let text = format!("{mid} % [{low}, {high}] in {} with `{}` (proof {})", proof.of, proof.with, proof.number);
        Some((rule.name, format!("not recommended, because it hurt here: {text}")))
    });
    hurt.collect()
}

/// The newest that came to a verdict.
fn newest<'a>(situation: &Situation<'a>, rule: &str) -> Option<(&'a SeenProof, (f64, f64, f64))> {
    situation.proofs.iter().filter(|proof| proof.rule == rule).find_map(|proof| Some((proof, proof.effect.percent?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise;
    use crate::goals::Job;
    use crate::rules::testing::Scene;
    use machine::TierKind;
    use study::proof::Effect;

    #[test]
    fn what_was_proven_here_has_the_last_word() {
        let case = Scene::of(Job::Any).with_swap(TierKind::Sd).vm("page-cluster", "0");
        let rules = |proofs: &[SeenProof]| -> Vec<Recommendation> { advise(&Situation { proofs, ..case.situation() }) };
        let said = rules(&[]);
        let rule = said[0].rule;
        let proof = |number, verdict, percent| SeenProof {
            number,
            rule: rule.to_owned(),
            with: "load swap".to_owned(),
            of: "MB/s".to_owned(),
            effect: Effect { verdict, percent },
        };
        let helped = proof(1, Proven::Helped, Some((31.0, 38.0, 44.0)));
        let hurt = proof(2, Proven::Hurt, Some((-20.0, -12.0, -4.0)));
        let broken_off = proof(3, Proven::Unknown, None);
        let gain = rules(&[broken_off.clone(), helped.clone()])[0].gain.clone().unwrap();
        assert_eq!((gain.low, gain.percent, gain.high, gain.from), (31.0, 38.0, 44.0, Origin::Proof("1".into())));
        let all = [hurt, helped];
        assert!(rules(&all).iter().all(|said| said.rule != rule));
        let withheld = withheld(&Situation { proofs: &all, ..case.situation() });
        assert_eq!(withheld[0].0, rule);
        assert!(withheld[0].1.contains("-12 % [-20, -4") && withheld[0].1.contains("proof 2"), "{withheld:?}");
        let none = proof(4, Proven::NoEffect, Some((-2.0, 0.5, 3.0)));
        assert!(rules(&[none])[0].evidence[0].text.contains("no effect was seen"));
    }
}
