//! A PCIe link below what device and board can do.

use super::{OPTANE, gain_of_links};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use change::Wanted;

pub(super) const RULE: Rule = Rule {
    name: "pcie-generation",
    title: "the PCIe generation that both ends can do",
    condition: "a disk's PCIe link is slower than the disk",
    source: "Playing with an Intel Optane on a Raspberry Pi 5; Raspberry Pi documentation: dtparam=pciex1_gen=3",
    jobs: &Job::ALL,
    judge,
};

const PARAMETER: &str = "dtparam=pciex1_gen";

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let model = situation.machine.model.get().map_or("", String::as_str);
    let pi5 = ["Raspberry Pi 5", "Compute Module 5", "Raspberry Pi 500"].iter().any(|board| model.contains(board));
    // A Pi 5's port says Gen2 until it is told more; of other boards it is what they can do.
    let second = |tier: &machine::Tier| tier.hops.iter().any(|hop| hop.name.contains("Gen2"));
    let of_port = || situation.noticed("pcie-port-limits").find(|(tier, _)| pi5 && second(tier));
    let of_switch = || situation.noticed("pcie-switch-limits").next();
    let (tier, warning) = situation.noticed("pcie-link-limits").next().or_else(of_port).or_else(of_switch)?;
    let switch = warning.id == "pcie-switch-limits";
    let forced = situation.setup.firmware.iter().find(|(_, line)| line.starts_with(PARAMETER) && !line.ends_with("=3"));
    let third = situation.setup.firmware.iter().any(|(_, line)| line.trim() == "dtparam=pciex1_gen=3");
    let changes = if pi5 && !switch && !third {
        vec![Wanted::Firmware { name: PARAMETER.to_owned(), value: "3".to_owned() }]
    } else {
        Vec::new()
    };
    let hand = match (changes.is_empty(), switch) {
        (false, _) => "",
        (true, true) => " Another board or HAT, without that switch, lets more through.",
        (true, false) => " The firmware's setup, the slot or the cable decides it.",
    };
    let mut evidence = vec![Evidence::machine("/sys", warning.evidence.clone())];
    evidence.extend(forced.map(|(section, line)| Evidence::machine("config.txt", format!("[{section}] {line}"))));
    evidence.push(Evidence::published(OPTANE, "PCIe Gen2 x1: 400–430 MB/s in practice"));
    let gain = if changes.is_empty() { None } else { gain_of_links(tier, machine::ceiling::pcie(3, 1, None)) };
    let title = if changes.is_empty() { "a faster link".to_owned() } else { format!("{PARAMETER}=3") };
    let risk = "The Pi 5 is certified for Gen2: with a long or poor cable Gen3 shows errors, and the disk may not be found at the start.";
    Some(Recommendation {
        title,
        why: format!("{}{hand}", warning.text),
        evidence,
        gain,
        risk: Some(risk.to_owned()).filter(|_| !changes.is_empty()),
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;
    use basics::Known;

    #[test]
    fn where_the_board_can() {
        let said = |id: &str, model: &str, line: Option<&str>| {
            let mut scene = Scene::of(Job::Any).warned(id);
            scene.machine.model = Known::Is(model.to_owned());
            scene.setup.firmware.extend(line.map(|line| ("all".to_owned(), line.to_owned())));
            judge(&scene.situation()).unwrap().title
        };
        let pi = "Raspberry Pi 5 Model B Rev 1.0";
        assert_eq!(said("pcie-link-limits", pi, Some("dtparam=pciex1_gen=2")), "dtparam=pciex1_gen=3");
        assert_eq!(said("pcie-link-limits", pi, Some("dtparam=pciex1_gen=3")), "a faster link");
        assert_eq!(said("pcie-switch-limits", pi, None), "a faster link");
        assert_eq!(said("pcie-link-limits", "ThinkPad", None), "a faster link");
    }
}
