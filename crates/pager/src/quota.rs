//! A control group's quota of processor time (`cpu.cfs_quota_us`, `cpu.max`): whether it held a process since somebody last looked.

use crate::groups::Groups;
use std::path::PathBuf;

/// The quotas that hold a process, by the kernel's count of the periods in which one was used up.
#[derive(Debug)]
pub struct Quota {
    stats: Vec<PathBuf>,
    periods: u64,
}

impl Quota {
    /// Those of this process, from now on.
    pub fn of(pid: u32) -> Self {
        let stats = Groups::of(pid, "cpu").all.iter().map(|group| group.join("cpu.stat")).collect();
        let mut quota = Quota { stats, periods: 0 };
        quota.has_held();
        quota
    }

    /// Whether one of them was used up since this was asked last, so that the process had to wait for the next period.
    pub fn has_held(&mut self) -> bool {
        let told = |path: &PathBuf| throttled(&std::fs::read_to_string(path).ok()?);
        let periods = self.stats.iter().filter_map(told).sum();
        std::mem::replace(&mut self.periods, periods) < periods
    }
}

/// The word is the same in v1 (Documentation/scheduler/sched-bwc.rst) and v2 (Documentation/admin-guide/cgroup-v2.rst).
fn throttled(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_is_not_counted_again() {
        let dir = std::env::temp_dir().join(format!("tiermark-quota-{}", std::process::id()));
        let stat = dir.join("cpu.stat");
        std::fs::create_dir_all(&dir).unwrap();
        let count = |number: u64| {
            let v2 = format!("usage_usec 4\nnr_periods 900\nnr_throttled {number}\nthrottled_usec 7\n");
            std::fs::write(&stat, v2).unwrap();
        };
        count(5);
        let mut quota = Quota { stats: vec![stat.clone(), dir.join("gone")], periods: 0 };
        let all = [
            quota.has_held(),
            quota.has_held(),
            {
                count(6);
                quota.has_held()
            },
            quota.has_held(),
        ];
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!(all, [true, false, true, false]);
        assert_eq!(throttled("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"), Some(0), "v1");
    }
}
