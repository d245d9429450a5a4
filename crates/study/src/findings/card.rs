//! An SD card against its own class. The official conditions depend on the bus mode and are for members only, so a card
//! is "consistent with" a class or not; nothing here certifies.

use super::{Draft, Scene, Subject, at, finding};
use basics::units::significant;

/// What an application class asks of random 4 KiB reads at depth 32 (METHODS: SD specification 5.1 and 6.0).
const CLASSES: [(&str, f64); 2] = [("A2", 4000.0), ("A1", 1500.0)];
/// Sequential write that both application classes sustain, 10^6 B/s.
const SUSTAINED: f64 = 10.0;

pub(super) fn find(scene: &Scene<'_, '_>) -> Vec<Draft> {
    scene.subjects.iter().filter_map(of).collect()
}

fn of(subject: &Subject<'_, '_>) -> Option<Draft> {
    let card = subject.steps.tier?.block.as_ref()?.card.as_deref()?;
    let (class, asked) = CLASSES.into_iter().find(|(class, _)| has_word(card, class))?;
    let reads = *subject.figures.rand_read_4k_qd32_iops.get()?;
    let written = subject.figures.seq_write_mbps.get().copied();
    let step = subject.steps.measured("rand-read-4k-qd32")?;
    let name = subject.name();
    let mut evidence = vec![format!("{name} card: {card}"), at(step, format_args!("{} IOPS", significant(reads)))];
    let mut measured = format!("{} random reads a second ({class} asks {})", significant(reads), significant(asked));
    if let Some(written) = written {
        measured += &format!(" and {} MB/s written (asked {})", significant(written), significant(SUSTAINED));
        evidence.extend(subject.steps.measured("seq-write").map(|step| at(step, super::mbps(written))));
    }
    Some(if reads < asked || written.is_some_and(|written| written < SUSTAINED) {
        let text = format!("{name} is below its own class {class}: {measured}.");
        let mut found = finding("below-own-class", 45, Some(name), text, evidence);
        found.advice = Some(
            if class == "A2" {
                "an A2 card needs the host's command queue; without it expect A1"
            } else {
                "the card may be worn, counterfeit, or in a slow bus mode: look at its bus mode and test its capacity"
            }
            .to_owned(),
        );
        found.into()
    } else {
        let text = format!("{name} is consistent with class {class}: {measured}.");
        finding("card-class", 15, Some(name), text, evidence).into()
    })
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::{found, remarked};
    use crate::testing::{Run, Step, tier};
    use basics::Nanos;
    use machine::{BlockFacts, Tier, TierKind};

    fn run(class: &str, iops: u64) -> Run {
        let block = BlockFacts { card: Some(format!("{class}, command queue off")), ..BlockFacts::default() };
        let card = Tier { block: Some(block), ..tier("mmcblk0", TierKind::Sd) };
        let reads = Step::small_reads("mmcblk0", 32, Nanos(32_000_000_000 / iops));
        Run::default().tiers([card]).steps([reads, Step::seq_write("mmcblk0", 31.0)])
    }

    #[test]
    fn a_card_is_held_against_its_own_class() {
        let below = found(&run("A2", 1900), "below-own-class");
        assert!(below[0].text.starts_with("mmcblk0 is below its own class A2: 1,"), "{}", below[0].text);
        assert!(below[0].text.contains("(A2 asks 4,000)"), "{}", below[0].text);
        let fine = remarked(&run("A1", 1900), "card-class");
        assert!(fine[0].text.contains("consistent with class A1"), "{}", fine[0].text);
        assert!(found(&run("A1", 1900), "below-own-class").is_empty());
    }
}
