//! Speed classes of SD cards: which of them the measured rates are consistent with, and which of those on the label not.
//! Figures of the SD Association, as METHODS.md lists them; it certifies, this does not.

use super::point;
use crate::model::RunView;
use basics::units::{listed, significant};
use serde::Serialize;

/// Guaranteed rates of sequential writes, 10^6 B/s, rising within a family.
const SUSTAINED: [(&str, f64); 11] = [
    ("C2", 2.0),
    ("C4", 4.0),
    ("C6", 6.0),
    ("C10", 10.0),
    ("U1", 10.0),
    ("U3", 30.0),
    ("V6", 6.0),
    ("V10", 10.0),
    ("V30", 30.0),
    ("V60", 60.0),
    ("V90", 90.0),
];
/// Application classes: random reads and writes of 4 KiB a second; beside them [`APPS_SUSTAINED`].
const APPS: [(&str, f64, f64); 2] = [("A1", 1500.0, 500.0), ("A2", 4000.0, 2000.0)];
/// What an application class guarantees of sequential writes, 10^6 B/s.
const APPS_SUSTAINED: f64 = 10.0;

/// A card's classes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SdClass {
    /// The highest class of each family (U, V, A; C only where it is below U1) that the figures are consistent with.
    pub consistent_with: Vec<&'static str>,
    /// Classes on the label that they are not consistent with.
    pub not_consistent_with: Vec<&'static str>,
    /// Sequential writes, 10^6 B/s.
    #[serde(rename = "seq_write_MBps")]
    pub seq_write_mbps: f64,
    /// Random reads of 4 KiB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rand_read_iops: Option<f64>,
    /// Random writes of 4 KiB a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rand_write_iops: Option<f64>,
    /// In words.
    pub verdict: String,
}

/// The classes in a label such as `U3,V30`.
///
/// # Errors
/// A word that is no speed class, in a sentence.
pub fn classes(label: &str) -> Result<Vec<&'static str>, String> {
    let known = || SUSTAINED.iter().map(|(name, _)| *name).chain(APPS.iter().map(|(name, ..)| *name));
    let words = label.split([',', ' ']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            known().find(|name| name.eq_ignore_ascii_case(word)).ok_or_else(|| {
                format!("{word:?} is no speed class; there are {}", known().collect::<Vec<_>>().join(", "))
            })
        })
        .collect()
}

pub(super) fn figures(run: &RunView<'_>) -> Option<SdClass> {
    let step = |name: &str| run.steps.iter().find(|step| step.name == name).map(point::of);
    let [_, write] = step("seq-write")?;
    let seq_write_mbps = write?.mbps;
    let rand_read_iops = step("rand-read").and_then(|[read, _]| Some(read?.iops));
    let rand_write_iops = step("rand-write").and_then(|[_, write]| Some(write?.iops));
    let label = run.parameters.get("label").and_then(|label| classes(label).ok()).unwrap_or_default();
    let sustained = |name: &str| SUSTAINED.iter().find(|(class, _)| *class == name).map(|(_, rate)| *rate);
    // Unknown where it takes figures that were not measured.
    let is_held = |name: &str| match sustained(name) {
        Some(rate) => Some(seq_write_mbps >= rate),
        None => {
            let (_, reads, writes) = APPS.iter().find(|(class, ..)| *class == name)?;
            Some(rand_read_iops? >= *reads && rand_write_iops? >= *writes && seq_write_mbps >= APPS_SUSTAINED)
        }
    };
    let highest = |family: char| {
        let mut names = SUSTAINED.iter().map(|(name, _)| *name).chain(APPS.iter().map(|(name, ..)| *name));
        names.rfind(|name| name.starts_with(family) && is_held(name) == Some(true))
    };
    let first = highest('U').or_else(|| highest('C'));
    let consistent_with: Vec<&str> = [first, highest('V'), highest('A')].into_iter().flatten().collect();
    let not_consistent_with: Vec<&str> = label.iter().copied().filter(|class| is_held(class) == Some(false)).collect();
    let mut verdict = match consistent_with.is_empty() {
        true => "consistent with no speed class".to_owned(),
        false => format!("consistent with {}", consistent_with.join(", ")),
    };
    if !not_consistent_with.is_empty() {
        verdict.push_str(&format!("; not with the {} on its label", listed(&not_consistent_with)));
    }
    Some(SdClass { consistent_with, not_consistent_with, seq_write_mbps, rand_read_iops, rand_write_iops, verdict })
}

impl SdClass {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut behind = format!("writes {} MB/s in sequence", significant(self.seq_write_mbps));
        if let (Some(read), Some(write)) = (self.rand_read_iops, self.rand_write_iops) {
            let [read, write] = [read, write].map(significant);
            behind.push_str(&format!(", reads {read} and writes {write} random 4 KiB a second"));
        }
        vec![self.verdict.clone(), behind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Run, Step};
    use basics::Nanos;

    fn card(label: &str, mbps: f64, iops: Option<(u64, u64)>) -> SdClass {
        let mut steps = vec![Step::seq_write("sd", mbps)];
        if let Some((reads, writes)) = iops {
            let depth = |iops: u64| Nanos(32 * 1_000_000_000 / iops);
            steps.push(Step::small_reads("sd", 32, depth(reads)).named("rand-read"));
            steps.push(Step::fsyncs("sd", Nanos(1_000_000_000 / writes)).named("rand-write"));
        }
        figures(&Run::of("sd-class", &[("label", label)]).steps(steps).view()).unwrap()
    }

    #[test]
    fn the_published_card_is_not_what_its_label_says() {
        let card = card("U3", 17.2, None);
        assert_eq!(card.verdict, "consistent with U1, V10; not with the U3 on its label");
        assert_eq!((card.consistent_with, card.not_consistent_with), (vec!["U1", "V10"], vec!["U3"]));
    }

    #[test]
    fn a_class_takes_all_that_it_guarantees() {
        assert_eq!(card("", 31.0, Some((1600, 500))).consistent_with, ["U3", "V30", "A1"]);
        assert_eq!(
            card("A1", 31.0, Some((1600, 400))).verdict,
            "consistent with U3, V30; not with the A1 on its label"
        );
        assert_eq!(card("", 9.0, Some((5000, 2500))).consistent_with, ["C6", "V6"], "an A class writes 10 MB/s too");
        assert_eq!(
            card("C10 u1", 1.0, None).verdict,
            "consistent with no speed class; not with the C10 and U1 on its label"
        );
        // What was not measured speaks neither for a class nor against it.
        assert!(card("A1", 31.0, None).not_consistent_with.is_empty());
        assert!(classes("U4").unwrap_err().contains("\"U4\" is no speed class"));
    }
}
