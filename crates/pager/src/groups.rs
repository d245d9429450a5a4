//! The control groups that a process is in (cgroups(7), v1 or v2), by what they count or limit.

use std::path::{Path, PathBuf};

/// Those that have one controller's say about a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The nearest first, without the root, which has no limits.
    pub all: Vec<PathBuf>,
    /// Of the unified hierarchy.
    pub are_v2: bool,
}

impl Groups {
    /// Of this process and this controller: `memory`, `cpu`. None where there are no control groups, or it has ended.
    pub fn of(pid: u32, controller: &str) -> Self {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self::told(&groups, &mounts, controller).unwrap_or_default()
    }

    fn told(groups: &str, mounts: &str, controller: &str) -> Option<Self> {
        let fields = |line: &'_ str| {
            let mut fields = line.splitn(3, ':').map(str::to_owned);
            Some((fields.next()?, fields.next()?, fields.next()?))
        };
        let all: Vec<(String, String, String)> = groups.lines().filter_map(fields).collect();
        let has = |controllers: &str| controllers.split(',').any(|name| name == controller);
        if let Some((_, _, path)) = all.iter().find(|(_, controllers, _)| has(controllers)) {
            return Some(Groups { all: upwards(&mounted(mounts, "cgroup", Some(controller))?, path), are_v2: false });
        }
        let (_, _, path) = all.iter().find(|(number, controllers, _)| number == "0" && controllers.is_empty())?;
        Some(Groups { all: upwards(&mounted(mounts, "cgroup2", None)?, path), are_v2: true })
    }
}

/// Where a file system of this kind is mounted, with this option of its own (proc_pid_mountinfo(5)).
fn mounted(mounts: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut words = file_system.split(' ');
        let is = words.next() == Some(kind);
        let has = option.is_none_or(|option| words.nth(1).is_some_and(|all| all.split(',').any(|o| o == option)));
        (is && has).then(|| mount.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn upwards(root: &Path, group: &str) -> Vec<PathBuf> {
    let nearest = root.join(group.trim_start_matches('/'));
    nearest.ancestors().take_while(|at| at.starts_with(root) && *at != root).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 1 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs rw\n\
        32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n\
        33 31 0:28 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
        34 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn groups_of_both_kinds_are_found() {
        let found = |groups: &str, controller: &str| {
            let groups = Groups::told(groups, MOUNTS, controller)?;
            Some((groups.all.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(), groups.are_v2))
        };
        let both = "5:cpu,cpuacct:/a/b\n4:memory:/tiermark-a\n0::/tiermark-a\n";
        assert_eq!(found(both, "memory"), Some((vec!["/sys/fs/cgroup/memory/tiermark-a".to_owned()], false)));
        let nearest_first = ["/sys/fs/cgroup/cpu,cpuacct/a/b", "/sys/fs/cgroup/cpu,cpuacct/a"].map(str::to_owned);
        assert_eq!(found(both, "cpu"), Some((nearest_first.to_vec(), false)));
        let v2 = ["/sys/fs/cgroup/unified/user.slice/x", "/sys/fs/cgroup/unified/user.slice"].map(str::to_owned);
        assert_eq!(found("0::/user.slice/x\n", "cpu"), Some((v2.to_vec(), true)));
        assert_eq!(found("4:memory:/\n", "memory"), Some((vec![], false)), "the root has none");
        assert_eq!(found("", "memory"), None);
        assert_eq!(Groups::told("4:memory:/a\n", "", "memory"), None);
    }
}
