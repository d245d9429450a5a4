//! A write for every read: the time of the last access.

use super::{DESKTOP, mount};
use crate::goals::Job;
use crate::model::{Evidence, Recommendation, Rule};
use crate::situation::Situation;
use machine::TierKind;

pub(super) const RULE: Rule = Rule {
    name: "noatime",
    title: "reading does not write",
    condition: "a file system on a memory card, or one of btrfs, keeps times of access, or any keeps all of them (strictatime)",
    source: "Project Pi3Desk: defaults,noatime,compress; mount(8)",
    jobs: &Job::ALL,
    judge,
};

fn judge(situation: &Situation<'_>) -> Option<Recommendation> {
    let (mut evidence, mut changes, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (tier, mounted) in situation.mounts().filter(|(_, mounted)| !mounted.read_only) {
        let has = |name: &str| mounted.options.iter().any(|option| option == name);
        let journals = matches!(mounted.fs.as_str(), "ext2" | "ext3" | "ext4" | "f2fs" | "xfs" | "btrfs");
        let costs = matches!(tier.kind, TierKind::Sd | TierKind::Emmc) || mounted.fs == "btrfs";
        // The kernel shows neither where all times are kept.
        let strict = has("strictatime") || !(has("noatime") || has("relatime") || has("nodiratime"));
        if !journals || has("noatime") || mounted.options.is_empty() || !(costs || strict) {
            continue;
        }
        let Some(line) = situation.setup.mounted_by(&mounted.at) else { continue };
        let at = mounted.at.display().to_string();
        let drop: Vec<&str> =
            ["relatime", "strictatime"].into_iter().filter(|name| line.options.iter().any(|o| o == name)).collect();
        changes.push(mount(&mounted.at, &["noatime"], &drop));
        evidence.push(Evidence::machine(
            "/proc/self/mountinfo",
            format!("{at} {} {}", mounted.fs, mounted.options.join(",")),
        ));
        places.push(at);
    }
    if changes.is_empty() {
        return None;
    }
    evidence.push(Evidence::published(DESKTOP, "/dev/sda2 / btrfs defaults,noatime,compress"));
    Some(Recommendation {
        title: format!("noatime for {}", places.join(", ")),
        why: "The time at which a file was last read is written down, which on a card is an erase block's worth of wear and on btrfs a copy of \
              a piece of the tree."
            .to_owned(),
        evidence,
        risk: Some("Programs that ask when a file was last read (few: some mail readers, cleaners of /tmp) are told an old time.".to_owned()),
        changes,
        ..Recommendation::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, tier};
    use super::*;

    #[test]
    fn where_reading_writes() {
        let said = |kind, fs: &str, options: &str| {
            let mut scene = Scene::of(Job::Any).with_fstab("/", fs, "defaults");
            let mut it = tier("it", kind, "/");
            it.mounts[0].fs = fs.to_owned();
            it.mounts[0].options = options.split(',').map(str::to_owned).collect();
            scene.machine.tiers = vec![it];
            judge(&scene.situation()).is_some()
        };
        assert!(said(TierKind::Sd, "ext4", "rw,relatime") && said(TierKind::Usb, "btrfs", "rw,relatime"));
        assert!(said(TierKind::Nvme, "ext4", "rw") && said(TierKind::Nvme, "ext4", "rw,strictatime"));
        assert!(!said(TierKind::Nvme, "ext4", "rw,relatime") && !said(TierKind::Sd, "ext4", "rw,noatime"));
        assert!(!said(TierKind::Sd, "vfat", "rw,relatime"));
    }
}
