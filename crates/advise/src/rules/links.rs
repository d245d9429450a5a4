//! Links that are slower than what hangs on them: a cable, a port, a hub. What to do is done by hand.

use super::{OPTANE, gain_of_links};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const SLOW: Rule = Rule {
    name: "usb3-at-usb2",
    title: "a USB 3 disk on a USB 3 link",
    condition: "a disk that announces USB 3 has negotiated USB 2",
    source: "Playing with an Intel Optane on a Raspberry Pi 5: 625 → 500 → 430–450 MB/s of USB 3; USB 2 gives 40",
    jobs: &Job::ALL,
    judge: slow,
};

pub(super) const SHARED: Rule = Rule {
    name: "usb-shared-port",
    title: "disks apart",
    condition: "two disks hang on one USB port",
    source: "Playing with an Intel Optane on a Raspberry Pi 5: the USB array",
    jobs: &Job::ALL,
    judge: shared,
};

fn slow(situation: &Situation<'_>) -> Option<Recommendation> {
    let all: Vec<_> = situation.noticed("usb3-at-usb2").collect();
    let (tier, _) = all.first()?;
    let gain = gain_of_links(tier, machine::ceiling::usb(5000.0, 1)?);
    let evidence = all.iter().map(|(_, warning)| Evidence::machine("/sys", warning.evidence.clone()));
    Some(Recommendation {
        title: "another port, another cable or no hub".to_owned(),
        why: all.iter().map(|(_, warning)| warning.text.as_str()).collect::<Vec<_>>().join(" "),
        evidence: evidence.chain([Evidence::published(OPTANE, "USB 3: 430–450 MB/s in practice")]).collect(),
        gain,
        ..Recommendation::default()
    })
}

fn shared(situation: &Situation<'_>) -> Option<Recommendation> {
    // Each of them has the same words.
    let (_, warning) = situation.noticed("usb-shared-port").next()?;
    Some(Recommendation {
        title: "one disk to a port".to_owned(),
        why: warning.text.clone(),
        evidence: vec![
            Evidence::machine("/sys/bus/usb/devices", warning.evidence.clone()),
            Evidence::published(OPTANE, "two disks behind one hub share its 430–450 MB/s"),
        ],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn what_the_bus_shows() {
        let said = |id: &str, judge: fn(&Situation<'_>) -> Option<Recommendation>| {
            judge(&Scene::of(Job::Any).warned(id).situation()).map(|said| said.title)
        };
        assert!(said("usb3-at-usb2", slow).is_some() && said("usb3-at-usb2", shared).is_none());
        assert!(said("usb-shared-port", shared).is_some() && said("usb-shared-port", slow).is_none());
    }
}
