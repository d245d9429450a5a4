//! The processor held back: by its governor, by heat, by a weak supply.

use super::{DESKTOP, KERNEL_CPU};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use change::Wanted;
use std::path::Path;

pub(super) const GOVERNOR: Rule = Rule {
    name: "governor",
    title: "a frequency that follows the work",
    condition: "the processor is held at its lowest frequency (powersave without a driver of the maker's, or userspace)",
    source: "Linux kernel documentation, admin-guide/pm/cpufreq",
    jobs: &Job::ALL,
    judge: governor,
};

pub(super) const HEAT: Rule = Rule {
    name: "heat",
    title: "a heat sink",
    condition: "the processor is or was held back by heat",
    source: "Project Pi3Desk: without a good heat sink it throttles, badly",
    jobs: &Job::ALL,
    judge: heat,
};

pub(super) const SUPPLY: Rule = Rule {
    name: "supply",
    title: "a supply that holds its voltage",
    condition: "the board reports under-voltage now or since its start",
    source: "Raspberry Pi documentation: get_throttled",
    jobs: &Job::ALL,
    judge: supply,
};

fn governor(situation: &Situation<'_>) -> Option<Recommendation> {
    let slow = |governor: &str| matches!(governor, "powersave" | "userspace");
    // Of fast and slow processors one group may be held down.
    let held: Vec<_> = situation.setup.policies.iter().filter(|(_, governor)| slow(governor)).collect();
    let now = match held.first() {
        Some((_, governor)) => governor,
        None => situation.machine.cpu.governor.get()?,
    };
    // Intel's and AMD's own drivers call what follows the work powersave, too.
    let own = situation.setup.frequency_driver.get().is_some_and(|driver| driver.contains("pstate"));
    let model = situation.machine.cpu.model.get().map_or("", String::as_str);
    let arm = ["Cortex", "ARM", "Neoverse"].iter().any(|core| model.starts_with(core));
    if own || (situation.setup.governors.is_empty() && !arm) || !slow(now) {
        return None;
    }
    let has = |name: &&&str| situation.setup.governors.iter().any(|governor| governor == **name);
    let wanted = ["schedutil", "ondemand", "conservative"].iter().find(has).copied();
    let first = Path::new("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor");
    let files: Vec<&Path> = match held.as_slice() {
        [] => vec![first],
        held => held.iter().map(|(path, _)| path.as_path()).collect(),
    };
    let set = |wanted: &str| {
        let set = |path: &&Path| Wanted::Sysfs { path: path.to_path_buf(), value: wanted.to_owned() };
        files.iter().map(set).collect::<Vec<_>>()
    };
    let changes = wanted.map(set).unwrap_or_default();
    Some(Recommendation {
        title: wanted.map_or("another governor".to_owned(), |wanted| format!("governor {wanted}")),
        why: format!("The governor is {now}: the processor stays at its lowest frequency whatever it has to do."),
        evidence: vec![
            Evidence::machine(&files[0].display().to_string(), now.clone()),
            Evidence::published(KERNEL_CPU, "powersave: the lowest frequency within the limits"),
        ],
        risk: Some("More power and heat while it works.".to_owned()),
        changes,
        ..Recommendation::default()
    })
}

fn words<'a>(situation: &Situation<'a>, of: &[&str]) -> Vec<&'a str> {
    let all = situation.machine.throttled.get().map_or(&[][..], Vec::as_slice);
    all.iter().map(String::as_str).filter(|word| of.iter().any(|one| word.contains(one))).collect()
}

/// What it costs at this moment, where the frequencies are told.
fn lost(situation: &Situation<'_>) -> String {
    let now = words(situation, &["now:"]);
    let Some((mhz, most)) = situation.setup.mhz.get().filter(|(mhz, most)| mhz < most && !now.is_empty()) else {
        return String::new();
    };
    format!(" It runs at {mhz} of {most} MHz now: {} % are lost.", 100 - 100 * mhz / most)
}

fn heat(situation: &Situation<'_>) -> Option<Recommendation> {
    let told = words(situation, &["throttled", "temperature", "held down", "capped"]);
    let weak = words(situation, &["under-voltage"]);
    // A weak supply caps the frequency, too; heat is named by itself.
    let told: Vec<&str> = told.into_iter().filter(|word| weak.is_empty() || word.contains("temperature")).collect();
    if told.is_empty() {
        return None;
    }
    Some(Recommendation {
        title: "a heat sink or a fan".to_owned(),
        why: format!("The processor was held back by heat ({}).{}", told.join("; "), lost(situation)),
        evidence: vec![
            Evidence::machine("get_throttled", told.join("; ")),
            Evidence::published(DESKTOP, "a good heat sink really makes a big difference under load"),
        ],
        ..Recommendation::default()
    })
}

fn supply(situation: &Situation<'_>) -> Option<Recommendation> {
    let told = words(situation, &["under-voltage"]);
    if told.is_empty() {
        return None;
    }
    Some(Recommendation {
        title: "a better power supply and a short thick cable".to_owned(),
        why: format!(
            "The board had too little voltage ({}): it lowers its frequency, and disks on its ports may fall off the bus.{}",
            told.join("; "),
            lost(situation)
        ),
        evidence: vec![Evidence::machine("get_throttled", told.join("; "))],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;

    #[test]
    fn each_by_its_own_name() {
        let of = |words: &[&str]| {
            let mut scene = Scene::of(Job::Any);
            scene.machine.throttled = Known::Is(words.iter().map(|word| (*word).to_owned()).collect());
            scene.setup.mhz = Known::Is((600, 1400));
            let situation = scene.situation();
            (heat(&situation).map(|said| said.why), supply(&situation).map(|said| said.why))
        };
        let (hot, weak) = of(&["now: throttled", "now: soft temperature limit"]);
        assert!(hot.unwrap().contains("58 % are lost") && weak.is_none());
        let (hot, weak) = of(&["since boot: under-voltage", "since boot: throttled"]);
        assert!(hot.is_none() && !weak.unwrap().contains("lost"));
        assert_eq!(of(&[]), (None, None));
    }

    #[test]
    fn the_lowest_frequency_is_nobodys_wish() {
        let said = |now: &str, driver: &str| {
            let mut scene = Scene::of(Job::Any);
            scene.machine.cpu.governor = Known::Is(now.to_owned());
            scene.setup.frequency_driver = Known::Is(driver.to_owned());
            scene.setup.governors = vec!["ondemand".to_owned(), "powersave".to_owned()];
            governor(&scene.situation()).map(|said| said.title)
        };
        assert_eq!(said("powersave", "cpufreq-dt").unwrap(), "governor ondemand");
        assert_eq!((said("powersave", "intel_pstate"), said("ondemand", "cpufreq-dt")), (None, None));
    }
}
