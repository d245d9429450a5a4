//! What a machine shall be like, as data: one setting that shall hold also after the next start for each [`Wanted`]. Whoever advises
//! makes them; nothing here touches the machine. How each becomes a change of a file is [`crate::lasting`]'s.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One setting that shall hold, also after the next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Wanted {
    /// A line of redis.conf.
    Redis {
        /// Its name.
        name: String,
        /// Its value, words apart by a space; none at all is written `""`.
        value: String,
    },
    /// A kernel setting below `/proc/sys`, by the name that sysctl(8) has for it.
    Sysctl {
        /// `vm.swappiness`.
        name: String,
        /// Its value.
        value: String,
    },
    /// A kernel setting below `/sys`.
    Sysfs {
        /// The file.
        path: PathBuf,
        /// What is written into it.
        value: String,
    },
    /// A setting of a disk's queue, by what udev(7) sees of the disk.
    Queue {
        /// `mmcblk0`.
        disk: String,
        /// `scheduler`, `read_ahead_kb`.
        name: String,
        /// Its value.
        value: String,
    },
    /// A parameter of the kernel's command line.
    Boot {
        /// `zswap.enabled`.
        name: String,
        /// What it is set to; none where it shall not stand there.
        value: Option<String>,
    },
    /// A line of the Raspberry Pi firmware's config.txt.
    Firmware {
        /// `dtparam=pciex1_gen`: all before the last `=`.
        name: String,
        /// Its value.
        value: String,
    },
    /// Options of a line of fstab(5).
    Mount {
        /// Where it is mounted.
        at: PathBuf,
        /// Options that it shall have; one of the same name before `=` is replaced.
        add: Vec<String>,
        /// Options that it shall not have, by their names.
        drop: Vec<String>,
    },
    /// A unit of systemd that shall start by itself, or shall not start at all.
    Unit {
        /// `fstrim.timer`.
        name: String,
        /// Which of both.
        enabled: bool,
    },
    /// A setting in a section of a tool that reads drop-ins.
    Tool {
        /// Whose.
        tool: Tool,
        /// Its section without the brackets.
        section: String,
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// A variable in a file of the shell's form.
    Variable {
        /// The file.
        path: PathBuf,
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
}

/// A tool with a folder of drop-ins in sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Raspberry Pi OS's since Debian 13 (swap.conf(5)).
    RpiSwap,
    /// zram-generator.conf(5).
    ZramGenerator,
}

impl Tool {
    /// Where its drop-ins lie.
    pub fn folder(self) -> &'static str {
        match self {
            Tool::RpiSwap => "/etc/rpi/swap.conf.d",
            Tool::ZramGenerator => "/etc/systemd/zram-generator.conf.d",
        }
    }
}

/// What settings are lines of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A server's own file.
    RedisConf,
    /// Read by sysctl(8) at each start (sysctl.d(5)).
    SysctlD,
    /// Written by systemd-tmpfiles(8) at each start (tmpfiles.d(5)): what `/sys` has no file of its own for.
    TmpfilesD,
    /// Rules of udev(7), which acts when a disk appears.
    UdevRules,
    /// The kernel's command line, wherever the boot loader has it.
    CommandLine,
    /// The firmware's config.txt.
    ConfigTxt,
    /// fstab(5).
    Fstab,
    /// systemd's links.
    Units,
    /// Drop-ins of a tool.
    ToolDropIn,
    /// A file of shell variables.
    Variables,
}

impl Wanted {
    /// What it is a line of.
    pub fn place(&self) -> Place {
        match self {
            Wanted::Redis { .. } => Place::RedisConf,
            Wanted::Sysctl { .. } => Place::SysctlD,
            Wanted::Sysfs { .. } => Place::TmpfilesD,
            Wanted::Queue { .. } => Place::UdevRules,
            Wanted::Boot { .. } => Place::CommandLine,
            Wanted::Firmware { .. } => Place::ConfigTxt,
            Wanted::Mount { .. } => Place::Fstab,
            Wanted::Unit { .. } => Place::Units,
            Wanted::Tool { .. } => Place::ToolDropIn,
            Wanted::Variable { .. } => Place::Variables,
        }
    }

    /// Whether a machine that runs takes it at once, as far as its kernel has it at all.
    pub fn is_live(&self) -> bool {
        match self {
            Wanted::Sysctl { .. } | Wanted::Sysfs { .. } | Wanted::Queue { .. } => true,
            // zswap takes its settings while it runs; of other modules it is not known.
            Wanted::Boot { name, value: Some(_) } => name.starts_with("zswap."),
            _ => false,
        }
    }

    /// The line, or what is done where it is none.
    pub fn line(&self) -> String {
        match self {
            Wanted::Redis { name, value } if value.is_empty() => format!("{name} \"\""),
            Wanted::Redis { name, value } => format!("{name} {value}"),
            Wanted::Sysctl { name, value } => format!("{name} = {value}"),
            // Type, path, mode, user, group, age, argument.
            Wanted::Sysfs { path, value } => format!("w {} - - - - {value}", path.display()),
            Wanted::Queue { disk, name, value } => format!(
                "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\", ATTR{{queue/{name}}}=\"{value}\""
            ),
            Wanted::Boot { name, value: Some(value) } if value.is_empty() => name.clone(),
            Wanted::Boot { name, value: Some(value) } => format!("{name}={value}"),
            Wanted::Boot { name, value: None } => format!("without {name}"),
            Wanted::Firmware { name, value }
            | Wanted::Tool { name, value, .. }
            | Wanted::Variable { name, value, .. } => {
                format!("{name}={value}")
            }
            Wanted::Mount { at, add, drop } => {
                let with = (!add.is_empty()).then(|| format!("with {}", add.join(",")));
                let without = (!drop.is_empty()).then(|| format!("without {}", drop.join(",")));
                let parts: Vec<String> = [with, without].into_iter().flatten().collect();
                format!("{} {}", at.display(), parts.join(" and "))
            }
            Wanted::Unit { name, enabled: true } => format!("{name} starts by itself"),
            Wanted::Unit { name, enabled: false } => format!("{name} does not start"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_line_of_its_file() {
        let redis = |name: &str, value: &str| Wanted::Redis { name: name.to_owned(), value: value.to_owned() };
        assert_eq!(redis("save", "").line(), "save \"\"");
        assert_eq!(redis("appendfsync", "everysec").line(), "appendfsync everysec");
        let sysctl = Wanted::Sysctl { name: "vm.swappiness".to_owned(), value: "10".to_owned() };
        assert_eq!((sysctl.place(), sysctl.line().as_str()), (Place::SysctlD, "vm.swappiness = 10"));
        let path = PathBuf::from("/sys/kernel/mm/transparent_hugepage/enabled");
        let pages = Wanted::Sysfs { path, value: "madvise".to_owned() };
        assert_eq!(pages.line(), "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise");
        let boot = |value: Option<&str>| Wanted::Boot { name: "quiet".into(), value: value.map(str::to_owned) }.line();
        assert_eq!([boot(Some("")), boot(Some("1")), boot(None)], ["quiet", "quiet=1", "without quiet"]);
        let mount = Wanted::Mount { at: "/".into(), add: vec!["noatime".into()], drop: vec!["discard".into()] };
        assert_eq!(mount.line(), "/ with noatime and without discard");
    }
}
