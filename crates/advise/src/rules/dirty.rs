//! Written pages that wait in memory: on a slow disk a fifth of memory is minutes of writing, for which all stands still at the end.

use super::{DESKTOP, KERNEL_VM, sysctl};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use basics::units::significant;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "dirty-bytes",
    title: "begin to write early, in bytes and not in parts of memory",
    condition: "the system's disk takes less than 100 MB/s, and what may wait to be written is more than it writes in five seconds",
    source: "Project Pi3Desk: let many dirty pages accumulate, start writing early; admin-guide/sysctl/vm",
    jobs: &[Job::Desktop, Job::Server, Job::Build],
    judge,
};

/// Begin when so much waits: two seconds of a card.
const BEGIN: u64 = 32 << 20;
/// What a disk of this kind takes, MB/s, where its bus does not say less: the published cards write 17 to 31.
const CARD: f64 = 30.0;

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let (tier, _) = situation.system()?;
    let bus = tier.ceiling.get().map(|ceiling| ceiling.practical_mbps.1);
    let rate = match tier.kind {
        TierKind::Sd => bus.unwrap_or(CARD).min(CARD),
        TierKind::Usb | TierKind::Emmc => bus?,
        _ => return None,
    };
    let background = situation.vm("dirty_background_bytes")?;
    let ratio = situation.vm("dirty_background_ratio").unwrap_or(10);
    let ram = situation.machine.ram.get()?.0;
    let waits = if background > 0 { background } else { ram / 100 * ratio };
    let seconds = waits as f64 / 1e6 / rate;
    if rate >= 100.0 || seconds <= 5.0 {
        return None;
    }
    // Many may accumulate, as the article wants, yet no more than half a minute's writing.
    let most = ((rate * 30e6) as u64).clamp(128 << 20, (ram / 4).max(128 << 20)) >> 20 << 20;
    Some(Recommendation {
        title: format!("vm.dirty_background_bytes = {BEGIN}, vm.dirty_bytes = {most}"),
        why: format!(
            "Writing begins when {} MiB wait, which {} writes in {} s: who syncs then waits for all of it.",
            waits >> 20,
            tier.name,
            significant(seconds)
        ),
        evidence: vec![
            Evidence::machine("/proc/sys/vm/dirty_background_ratio", ratio.to_string()),
            Evidence::machine("/proc/meminfo", format!("MemTotal {} MiB", ram >> 20)),
            Evidence::published(
                DESKTOP,
                "let an awful lot of dirty pages accumulate, but try to start writing them out as soon as you can",
            ),
            Evidence::published(KERNEL_VM, "dirty_background_bytes: setting it clears dirty_background_ratio"),
        ],
        risk: Some("Files that live for seconds are written though nobody needs them.".to_owned()),
        changes: vec![
            sysctl("vm.dirty_background_bytes", BEGIN.to_string()),
            sysctl("vm.dirty_bytes", most.to_string()),
        ],
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;

    #[test]
    fn on_slow_disks_with_much_memory() {
        let said = |kind, gib, bytes| {
            let mut scene = Scene::of(Job::Desktop).with_ram_gib(gib).vm("dirty_background_bytes", bytes);
            scene.machine.tiers = vec![tier("it", kind, "/")];
            judge(&scene.situation())
        };
        assert!(said(TierKind::Sd, 4, "0").unwrap().why.contains("14.3 s"), "{:?}", said(TierKind::Sd, 4, "0"));
        assert!(said(TierKind::Sd, 4, "33554432").is_none() && said(TierKind::Nvme, 4, "0").is_none());
        assert!(said(TierKind::Sd, 1, "0").is_none());
    }
}
