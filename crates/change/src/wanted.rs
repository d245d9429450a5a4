//! What a machine shall be like, as data: one line of one file for each [`Wanted`]. Whoever advises makes them; nothing here
//! touches the machine.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One setting that shall hold, also after the next start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
}

/// A file that settings are lines of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A server's own file.
    RedisConf,
    /// Read by sysctl(8) at each start (sysctl.d(5)).
    SysctlD,
    /// Written by systemd-tmpfiles(8) at each start (tmpfiles.d(5)): what `/sys` has no file of its own for.
    TmpfilesD,
}

impl Wanted {
    /// Which file it is a line of.
    pub fn place(&self) -> Place {
        match self {
            Wanted::Redis { .. } => Place::RedisConf,
            Wanted::Sysctl { .. } => Place::SysctlD,
            Wanted::Sysfs { .. } => Place::TmpfilesD,
        }
    }

    /// The line.
    pub fn line(&self) -> String {
        match self {
            Wanted::Redis { name, value } if value.is_empty() => format!("{name} \"\""),
            Wanted::Redis { name, value } => format!("{name} {value}"),
            Wanted::Sysctl { name, value } => format!("{name} = {value}"),
            // Type, path, mode, user, group, age, argument.
            Wanted::Sysfs { path, value } => format!("w {} - - - - {value}", path.display()),
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
    }
}
