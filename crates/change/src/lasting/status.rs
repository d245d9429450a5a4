//! What became of what was applied: whether its files still say it, and whether the machine does it.

use super::content::Content;
use super::ledger::{Applied, boot_id};
use super::merge;
use crate::wanted::Wanted;
use machine::Root;
use std::path::{Path, PathBuf};

/// How a file is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// As it was written.
    AsApplied,
    /// Somebody changed it elsewhere; the settings stand.
    Edited,
    /// The settings no longer stand in it as they were written.
    Drifted,
    /// It cannot be read.
    Unreadable,
}

/// Whether the machine does what was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Took {
    /// It does.
    Yes,
    /// It will after a reboot.
    Waits,
    /// It was started since, and does not.
    No,
    /// It does not tell.
    Unknown,
}

/// One application and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What was applied.
    pub applied: Applied,
    /// Each of its files.
    pub files: Vec<(PathBuf, Held)>,
    /// Each of its settings, with the rule that it is of.
    pub settings: Vec<(String, Wanted, Took)>,
}

pub(super) fn of(root: &Root, applied: Applied) -> Status {
    let files = applied.edits.iter().map(|edit| {
        let held = match Content::read(&root.outside(&edit.path)) {
            Err(_) => Held::Unreadable,
            Ok(now) if now.says_the_same(&edit.wanted) => Held::AsApplied,
            Ok(now) if now.says_the_same(&edit.before) => Held::Drifted,
            Ok(now) if merge::taken_back(&edit.before, &edit.wanted, &now).is_some() => Held::Edited,
            Ok(_) => Held::Drifted,
        };
        (edit.path.clone(), held)
    });
    let files = files.collect();
    let restarted = match (&applied.boot_id, boot_id(root)) {
        (Some(then), Some(now)) => Some(*then != now),
        _ => None,
    };
    let all = applied.settings.iter().flat_map(|of| of.wanted.iter().map(|wanted| (of.rule.clone(), wanted.clone())));
    let settings = all.map(|(rule, wanted)| {
        let took = match (holds(root, &wanted), restarted) {
            (Some(true), _) => Took::Yes,
            (Some(false), Some(true)) => Took::No,
            (Some(false), _) => Took::Waits,
            (None, Some(false)) => Took::Waits,
            (None, _) => Took::Unknown,
        };
        (rule, wanted, took)
    });
    let settings = settings.collect();
    Status { applied, files, settings }
}

/// Whether the machine does it now; none where that cannot be seen.
fn holds(root: &Root, wanted: &Wanted) -> Option<bool> {
    let says = |path: &Path, value: &str| {
        let now = root.text(path).into_option()?;
        let now = crate::value::chosen(&now).unwrap_or(&now);
        Some(crate::value::same(now, value))
    };
    match wanted {
        Wanted::Sysctl { name, value } => says(&Path::new("/proc/sys").join(name.replace('.', "/")), value),
        Wanted::Sysfs { path, value } => says(path, value),
        Wanted::Queue { disk, name, value } => {
            says(&Path::new("/sys/block").join(disk).join("queue").join(name), value)
        }
        Wanted::Boot { name, value } => {
            let line = root.text("/proc/cmdline").into_option()?;
            let with = super::text::with_parameter(&line, name, value.as_deref());
            Some(with == line)
        }
        Wanted::Mount { at, add, drop } => {
            let mount = machine::mount_at(root, at)?;
            let has = |option: &String| mount.options.iter().any(|other| other == option);
            let named =
                |option: &String| mount.options.iter().any(|other| other.split('=').next() == Some(option.as_str()));
            // The kernel shows `compress=zstd:1` for `compress=zstd:1`, and nothing for `defaults`.
            Some(add.iter().all(has) && !drop.iter().any(named))
        }
        Wanted::Redis { .. }
        | Wanted::Firmware { .. }
        | Wanted::Unit { .. }
        | Wanted::Tool { .. }
        | Wanted::Variable { .. } => None,
    }
}
