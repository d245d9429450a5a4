//! A USB disk that is given one command at a time although it could queue them.

use super::{boot, without_boot};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "uas",
    title: "USB disks with a queue",
    condition: "a USB 3 disk, or one that offers UAS, is driven by usb-storage",
    source: "Linux kernel documentation, admin-guide/kernel-parameters: usb-storage.quirks, u = IGNORE_UAS",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let all: Vec<_> = situation.noticed("usb-storage-not-uas").collect();
    all.first()?;
    let setup = situation.setup;
    let on_line = setup.parameter("usb-storage.quirks").map(str::to_owned);
    let changes = match &on_line {
        None => Vec::new(),
        Some(value) => {
            // Those that say something else than to ignore UAS stay.
            let others: Vec<&str> = value.split(',').filter(|quirk| !ignores_uas(quirk)).collect();
            match (others.is_empty(), others.len() == value.split(',').count()) {
                (_, true) => Vec::new(),
                (true, _) => vec![without_boot("usb-storage.quirks")],
                _ => vec![boot("usb-storage.quirks", &others.join(","))],
            }
        }
    };
    let file = setup.usb_quirks.iter().find(|(_, value)| value.split(',').any(ignores_uas));
    let hand = match (changes.is_empty(), file) {
        (false, _) => String::new(),
        (true, Some((path, value))) => format!(" {} says so (quirks={value}): take it out there.", path.display()),
        (true, None) => {
            " Nothing here forbids it, so the bridge does not offer UAS; another enclosure does.".to_owned()
        }
    };
    let mut evidence: Vec<_> =
        all.iter().map(|(_, warning)| Evidence::machine("/sys/bus/usb/devices", warning.evidence.clone())).collect();
    evidence.extend(on_line.map(|value| Evidence::machine("/proc/cmdline", format!("usb-storage.quirks={value}"))));
    Some(Recommendation {
        title: "uas instead of usb-storage".to_owned(),
        why: format!("{}{hand}", all.iter().map(|(_, warning)| warning.text.as_str()).collect::<Vec<_>>().join(" ")),
        evidence,
        risk: Some(
            "Some bridges were given that quirk because they fail under UAS: look at the kernel's log for resets, and revert.".to_owned(),
        ),
        changes,
        ..Recommendation::default()
    })
}

/// `152d:0578:u`
fn ignores_uas(quirk: &str) -> bool {
    quirk.rsplit(':').next().is_some_and(|flags| flags.contains('u'))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn the_quirk_goes_where_there_is_one() {
        let said = |quirks: &str| {
            let mut scene = Scene::of(Job::Any).warned("usb-storage-not-uas");
            scene.setup.parameters.extend((!quirks.is_empty()).then(|| format!("usb-storage.quirks={quirks}")));
            let said = judge(&scene.situation()).unwrap();
            said.changes.iter().map(change::Wanted::line).collect::<Vec<_>>()
        };
        assert_eq!(said("152d:0578:u"), ["without usb-storage.quirks"]);
        assert_eq!(said("152d:0578:u,174c:55aa:k"), ["usb-storage.quirks=174c:55aa:k"]);
        assert_eq!((said("174c:55aa:k").len(), said("").len()), (0, 0));
        let mut scene = Scene::of(Job::Any).warned("usb-storage-not-uas");
        scene.setup.usb_quirks.push(("/etc/modprobe.d/uas.conf".into(), "152d:0578:u".to_owned()));
        assert!(judge(&scene.situation()).unwrap().why.contains("/etc/modprobe.d/uas.conf says so"));
    }
}
