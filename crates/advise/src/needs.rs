//! Rules that speak of swap need a number of this machine: what the disk in question does with pages. Where no record has it, this says
//! what is to be measured; where one has it, it is told with the recommendation.

use crate::model::{Evidence, Origin, Recommendation};
use crate::situation::Situation;
use basics::units::{grouped, significant};
use machine::{Tier, TierKind};
use std::path::PathBuf;

/// Rules that are about what a page costs.
const OF_SWAP: [&str; 5] = ["swap-on-card", "no-swap", "page-cluster", "swappiness", "zswap"];

/// Something to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Which rule wants to know it.
    pub rule: &'static str,
    /// Of which tier.
    pub tier: String,
    /// Where files can be made on it.
    pub dir: PathBuf,
}

/// What a rule that speaks would need and no record has.
pub fn need(situation: &Situation<'_>) -> Option<Need> {
    let said = crate::advise(situation);
    let rule = said.iter().map(|said| said.rule).find(|rule| OF_SWAP.contains(rule))?;
    let tier = disk(situation).filter(|tier| situation.medium(&tier.name).is_none())?;
    let mounts = tier.mounts.iter().filter(|mount| !mount.read_only && !mount.at.starts_with("/boot"));
    let at = mounts.min_by_key(|mount| mount.at.components().count())?.at.clone();
    // Where large files of no lasting worth belong.
    let dir = if at.as_os_str() == "/" { PathBuf::from("/var/tmp") } else { at };
    Some(Need { rule, tier: tier.name.clone(), dir })
}

/// The disk that pages go to or would go to: that of the first swap area, or the system's.
fn disk<'a>(situation: &Situation<'a>) -> Option<&'a Tier> {
    let is_disk = |tier: &&Tier| !matches!(tier.kind, TierKind::Zram | TierKind::Ram | TierKind::FileSystem);
    let of_swap = situation.first_swap().and_then(|(_, tier)| tier).filter(is_disk);
    of_swap.or_else(|| situation.system().map(|(tier, _)| tier).filter(is_disk))
}

/// With what was measured of it.
pub(crate) fn told(mut said: Recommendation, situation: &Situation<'_>) -> Recommendation {
    let seen = disk(situation).and_then(|tier| situation.medium(&tier.name));
    if let Some(seen) = seen.filter(|_| OF_SWAP.contains(&said.rule)) {
        let pages = grouped(seen.pages_per_s.round() as i64);
        let mbps = significant(seen.pages_per_s * seen.page.0 as f64 / 1e6);
        let text =
            format!("{} as swap: {pages} pages of {} a second at 70/30, depth 4: {mbps} MB/s", seen.tier, seen.page);
        said.evidence.push(Evidence { text, from: Origin::Run(seen.run.clone()) });
    }
    said
}

#[cfg(test)]
mod tests {
    use crate::goals::Job;
    use crate::rules::testing::{Scene, tier};
    use crate::situation::{SeenMedium, Situation};
    use basics::Bytes;
    use machine::TierKind;
    use std::path::Path;

    #[test]
    fn what_was_not_measured_is_asked_for_and_then_told() {
        let mut scene = Scene::of(Job::Any).with_swap(TierKind::Sd);
        scene.machine.tiers[0] = tier("it", TierKind::Sd, "/");
        let wanted = super::need(&scene.situation()).unwrap();
        assert_eq!(
            (wanted.rule, wanted.tier.as_str(), wanted.dir.as_path()),
            ("swap-on-card", "it", Path::new("/var/tmp"))
        );
        let media = [SeenMedium { run: "4f".into(), tier: "it".into(), pages_per_s: 700.0, page: Bytes(16384) }];
        let situation = Situation { media: &media, ..scene.situation() };
        assert_eq!(super::need(&situation), None);
        let said = crate::advise(&situation);
        let said = said.iter().find(|said| said.rule == "swap-on-card").unwrap();
        assert!(said.evidence.iter().any(|evidence| evidence.text.contains("700 pages of 16 KiB")), "{said:?}");
        let gain = said.gain.as_ref();
        assert!(gain.is_none_or(|gain| gain.from.to_string().starts_with("predicted from")), "{gain:?}");
    }
}
