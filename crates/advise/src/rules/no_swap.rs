//! No swap at all on little memory: what was used once stays in memory for ever, and the first tab too many freezes the machine.

use super::{DESKTOP, swap_on_card};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;

pub(super) const RULE: Rule = Rule {
    name: "no-swap",
    title: "swap in compressed memory",
    condition: "there is no swap, and memory is 2 GiB at most (4 GiB for a desktop, a build or an LLM)",
    source: "Project Pi3Desk: swap is not a four letter word",
    jobs: &[Job::Any, Job::Desktop, Job::Llm, Job::Build, Job::Server],
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let ram = situation.ram_mib()?;
    let most = if matches!(situation.goals.job, Job::Any | Job::Server) { 2048 } else { 4096 };
    // A virtual machine that serves has none on purpose.
    let virtual_one = situation.system().is_some_and(|(tier, _)| tier.kind == machine::TierKind::Virtio);
    if virtual_one && most == 2048 {
        return None;
    }
    // Boards say a little less than they are sold with, virtual disks have no swap on purpose.
    if !situation.machine.swaps.is_empty()
        || ram > most
        || situation.machine.swap_managers.iter().any(|by| by != "fstab")
    {
        return None;
    }
    let changes = swap_on_card::zram(situation);
    let how = if changes.is_empty() { " The package zram-generator sets it up." } else { "" };
    Some(Recommendation {
        title: "swap in compressed memory (zram)".to_owned(),
        why: format!(
            "There is no swap and {ram} MiB of memory: pages that are never used again stay, files are dropped and read again \
             instead, and at the end programs are killed.{how}"
        ),
        evidence: vec![
            Evidence::machine("/proc/swaps", "none"),
            Evidence::machine("/proc/meminfo", format!("MemTotal {ram} MiB")),
            Evidence::published(DESKTOP, "swap lets the system move old pages out, leaving memory for what needs it"),
        ],
        risk: Some("zram takes its room from memory: a third to a half of what it holds.".to_owned()),
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::Scene;
    use super::*;

    #[test]
    fn on_little_memory() {
        let said = |job, gib| judge(&Scene::of(job).with_ram_gib(gib).situation()).is_some();
        assert!(said(Job::Any, 1) && said(Job::Desktop, 4) && !said(Job::Any, 4) && !said(Job::Desktop, 16));
        let scene = Scene::of(Job::Any).with_ram_gib(1).with_swap(machine::TierKind::Usb);
        assert!(judge(&scene.situation()).is_none());
    }
}
