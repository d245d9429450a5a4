//! Facts with their evidence, one file a family. Each family looks at the whole [`Scene`] and returns drafts; here they
//! are put in order, and equal ones about several tiers become one sentence.
//!
//! | weight | meaning |
//! | --- | --- |
//! | 90 – 100 | figures are not what they seem, or the machine suffers now |
//! | 60 – 89 | worth changing something |
//! | 30 – 59 | worth knowing |
//! | below 30 | a remark: said of its tier, not of the machine |

mod bus;
mod capacity;
mod card;
mod depth;
mod failed;
mod flush;
mod heat;
mod layer;
mod links;
mod memory;
mod missing;
mod noise;
mod origin;
mod pager;
mod stability;
pub(crate) mod swap;
mod sweep;
mod zram;

pub(crate) use bus::is_bus_limited;
pub(crate) use layer::distrust_caches;
pub(crate) use noise::disturbed;

use crate::figures::{TierSteps, figures};
use crate::model::{Finding, RunView, StepView, TierFigures};
use basics::Why;
use basics::units::significant;
use machine::Machine;

/// Below this weight a finding stays with its tier.
const REMARK: u8 = 30;

/// A tier with what was measured on it.
pub(crate) struct Subject<'r, 'a> {
    pub steps: TierSteps<'r, 'a>,
    /// As measured.
    pub figures: TierFigures,
    /// The same without what something else than the medium answered: only these may be judged.
    pub trusted: TierFigures,
}

impl<'r, 'a> Subject<'r, 'a> {
    pub fn new(machine: &Machine, steps: TierSteps<'r, 'a>) -> Self {
        let figures = figures(&steps);
        let mut trusted = figures.clone();
        if !layer::cached(&steps).is_empty() {
            trusted.forget_reads(&Why::NotMeasured("page cache".to_owned()));
        } else if zram::mostly_empty(machine, steps.name).is_some() {
            trusted.forget_reads(&Why::NotMeasured("empty".to_owned()));
        } else if !memory::within(machine, &steps).is_empty() {
            trusted.forget_reads(&Why::NotMeasured("CPU cache".to_owned()));
        }
        Subject { steps, figures, trusted }
    }
    pub fn name(&self) -> &str {
        self.steps.name
    }
}

/// All that a family of findings may look at.
pub(crate) struct Scene<'r, 'a> {
    pub run: &'r RunView<'a>,
    pub subjects: Vec<Subject<'r, 'a>>,
}

impl<'r, 'a> Scene<'r, 'a> {
    pub fn machine(&self) -> &'a Machine {
        self.run.machine
    }
    pub fn subject(&self, tier: &str) -> Option<&Subject<'r, 'a>> {
        self.subjects.iter().find(|subject| subject.name() == tier)
    }
}

/// A finding before it is put in order.
pub(crate) struct Draft {
    pub finding: Finding,
    /// How to say it once about several tiers; absent when each deserves its own sentence.
    pub jointly: Option<Jointly>,
}

/// Several equal findings in one sentence.
pub(crate) struct Jointly {
    /// What differs between the tiers, in a few words.
    pub detail: String,
    /// From (tier, detail) of each to the sentence.
    pub sentence: fn(&[(String, String)]) -> String,
}

impl From<Finding> for Draft {
    fn from(finding: Finding) -> Self {
        Draft { finding, jointly: None }
    }
}

/// A finding about a tier, without advice.
fn finding(id: &str, weight: u8, tier: Option<&str>, text: String, evidence: Vec<String>) -> Finding {
    Finding { id: id.to_owned(), weight, tier: tier.map(str::to_owned), text, advice: None, gain: None, evidence }
}

/// The same sentence from another tier: it is about more than one then, and has that evidence too.
fn also(finding: &mut Finding, other: &Finding) {
    if finding.tier != other.tier {
        finding.tier = None;
    }
    let new = other.evidence.iter().filter(|line| !finding.evidence.contains(line)).cloned().collect::<Vec<_>>();
    finding.evidence.extend(new);
}

/// A pointer to a step's figure.
fn at(step: &StepView<'_>, what: impl std::fmt::Display) -> String {
    format!("step {} {}: {what}", step.index, step.name)
}

/// `410 MB/s`.
fn mbps(value: f64) -> String {
    format!("{} MB/s", significant(value))
}

/// How many times, at two digits: more would claim a precision that two latencies do not have.
pub(crate) fn times(ratio: f64) -> String {
    let tenths = (ratio * 10.0).round() / 10.0;
    if tenths >= 10.0 || tenths == tenths.trunc() { significant(tenths.round()) } else { format!("{tenths:.1}") }
}

/// Everything that can be said, by tier and as a whole.
pub(crate) struct Findings {
    drafts: Vec<Draft>,
}

/// A family of findings.
type Find = fn(&Scene<'_, '_>) -> Vec<Draft>;

/// Lets every family look that has something to say of a check.
pub(crate) fn of_check(scene: &Scene<'_, '_>) -> Findings {
    let families: [Find; 16] = [
        capacity::find,
        origin::find,
        layer::find,
        memory::find,
        swap::find,
        heat::find,
        links::find,
        noise::find,
        stability::find,
        missing::find,
        flush::find,
        card::find,
        bus::find,
        failed::find,
        zram::find,
        depth::find,
    ];
    let mut drafts = drafts(&families, scene);
    // What a fault costs there was measured: the machine's guess from the kind of medium has nothing to add.
    if drafts.iter().any(|draft| draft.finding.id == "swap-on-slow-tier") {
        drafts.retain(|draft| draft.finding.id != "swap-on-sd");
    }
    Findings { drafts }
}

/// Lets those families look that judge what was measured, and not the machine or a step that only a check has. That figures
/// are simulated or quoted stands beside every run.
pub(crate) fn of_method(scene: &Scene<'_, '_>) -> Vec<Finding> {
    let families: [Find; 14] = [
        origin::inconsistent,
        capacity::find,
        layer::find,
        memory::find,
        heat::find,
        noise::find,
        stability::find,
        missing::find,
        flush::find,
        failed::find,
        zram::find,
        depth::find,
        sweep::find,
        pager::find,
    ];
    Findings { drafts: drafts(&families, scene) }.once(0)
}

/// What all of them say, most important first.
fn drafts(families: &[Find], scene: &Scene<'_, '_>) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = families.iter().flat_map(|find| find(scene)).collect();
    drafts.sort_by_key(|draft| std::cmp::Reverse(draft.finding.weight));
    drafts
}

impl Findings {
    /// Of one tier, most important first.
    pub fn of(&self, tier: &str) -> Vec<Finding> {
        let of_tier = |draft: &&Draft| draft.finding.tier.as_deref() == Some(tier);
        self.drafts.iter().filter(of_tier).map(|draft| draft.finding.clone()).collect()
    }

    /// Of the whole machine and the most important of the tiers, each thing said once.
    pub fn of_machine(&self) -> Vec<Finding> {
        self.once(REMARK)
    }

    /// All of this weight and above, each thing said once.
    fn once(&self, least: u8) -> Vec<Finding> {
        let mut out: Vec<Finding> = Vec::new();
        let mut said: Vec<&str> = Vec::new();
        for draft in self.drafts.iter().filter(|draft| draft.finding.weight >= least) {
            let Some(joint) = &draft.jointly else {
                let same = |other: &&mut Finding| other.id == draft.finding.id && other.text == draft.finding.text;
                match out.iter_mut().find(same) {
                    Some(other) => also(other, &draft.finding),
                    None => out.push(draft.finding.clone()),
                }
                continue;
            };
            if said.contains(&draft.finding.id.as_str()) {
                continue;
            }
            said.push(&draft.finding.id);
            out.push(self.joined(draft, joint, least));
        }
        out
    }

    /// One finding for all drafts of this id that can be said jointly.
    fn joined(&self, first: &Draft, joint: &Jointly, least: u8) -> Finding {
        let same = |draft: &&Draft| draft.finding.id == first.finding.id && draft.finding.weight >= least;
        let equals: Vec<(&Draft, &Jointly)> =
            self.drafts.iter().filter(same).filter_map(|draft| Some((draft, draft.jointly.as_ref()?))).collect();
        if equals.len() < 2 {
            return first.finding.clone();
        }
        let details: Vec<(String, String)> = equals
            .iter()
            .map(|(draft, joint)| (draft.finding.tier.clone().unwrap_or_default(), joint.detail.clone()))
            .collect();
        Finding {
            tier: None,
            text: (joint.sentence)(&details),
            evidence: equals.iter().flat_map(|(draft, _)| draft.finding.evidence.clone()).collect(),
            ..first.finding.clone()
        }
    }
}

impl Finding {
    /// Said of its tier or its step, and not worth a place among what a run is about.
    pub fn is_remark(&self) -> bool {
        self.weight < REMARK
    }
}

impl crate::CheckStudy {
    /// Every finding once, most important first: those of the whole, then the remarks that only their tiers carry. What
    /// was said jointly of several tiers is not repeated for each.
    pub fn each_finding(&self) -> Vec<&Finding> {
        let said = |finding: &Finding| {
            let same = |other: &Finding| other.id == finding.id && (other.tier.is_none() || other.tier == finding.tier);
            self.findings.iter().any(same)
        };
        let remarks = self.tiers.iter().flat_map(|tier| &tier.findings).filter(|finding| !said(finding));
        let mut all: Vec<&Finding> = self.findings.iter().chain(remarks).collect();
        // Stable: among equals the order of the tiers stays.
        all.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
        all
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::model::Finding;
    use crate::testing::{Run, Step, tier};
    use basics::Nanos;
    use machine::TierKind;

    /// The machine's findings of this name.
    pub(super) fn found(run: &Run, id: &str) -> Vec<Finding> {
        explain(&run.view()).findings.into_iter().filter(|finding| finding.id == id).collect()
    }

    #[test]
    fn the_most_important_comes_first_and_nothing_twice() {
        let warning = |evidence: &str| machine::Warning {
            id: "usb-shared-port".into(),
            text: "sda and sdb share one port".into(),
            evidence: evidence.into(),
        };
        let disk = |name: &str| machine::Tier { warnings: vec![warning(name)], ..tier(name, TierKind::Usb) };
        let run = Run::default()
            .tiers([disk("sda"), disk("sdb")])
            .steps([Step::fsyncs("sda", Nanos(33_000_000)), Step::fsyncs("sdb", Nanos(44_000_000))]);
        let findings = explain(&run.view()).findings;
        assert!(findings.is_sorted_by(|a, b| a.weight >= b.weight), "{findings:#?}");
        let shared: Vec<&Finding> = findings.iter().filter(|finding| finding.id == "usb-shared-port").collect();
        assert_eq!((shared.len(), &shared[0].tier), (1, &None));
        assert_eq!(shared[0].evidence, ["sda", "sdb"]);
        let fsync: Vec<&Finding> = findings.iter().filter(|finding| finding.id == "slow-fsync").collect();
        assert_eq!(fsync.len(), 1);
        let study = explain(&run.view());
        assert_eq!(study.tiers[0].findings.iter().filter(|finding| finding.id == "slow-fsync").count(), 1);
        assert_eq!(study.each_finding().iter().filter(|finding| finding.id == "slow-fsync").count(), 1);
    }

    /// What is said of the run of a method under this name.
    pub(super) fn said(run: &Run, id: &str) -> Vec<Finding> {
        crate::findings(&run.view()).into_iter().filter(|finding| finding.id == id).collect()
    }

    /// The findings of this name on any tier.
    pub(super) fn remarked(run: &Run, id: &str) -> Vec<Finding> {
        let study = explain(&run.view());
        study.tiers.into_iter().flat_map(|tier| tier.findings).filter(|finding| finding.id == id).collect()
    }
}
