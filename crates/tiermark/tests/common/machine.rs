//! What of a machine belongs to nobody: one test at a time may change it, and has to leave it as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Settings of the machine are nobody's own: one test at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What must be as before, by its path: settings, swap areas, zram and loop devices, cgroups, mounts.
pub fn machine() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let settings = ["compressor", "enabled", "max_pool_percent", "zpool"]
        .map(|name| format!("/sys/module/zswap/parameters/{name}"));
    let settings =
        settings.into_iter().chain(["page-cluster", "swappiness"].map(|name| format!("/proc/sys/vm/{name}")));
    for path in settings.chain(["/proc/swaps".to_owned()]) {
        all.extend(fs::read_to_string(&path).ok().map(|text| (path, text)));
    }
    let mut names = |folder: &str, which: &dyn Fn(&Path) -> bool| {
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut names: Vec<PathBuf> = entries.filter(|path| which(path)).collect();
        names.sort();
        all.insert(folder.to_owned(), format!("{names:?}"));
    };
    let begins = |path: &Path, with: &str| path.file_name().unwrap().to_string_lossy().starts_with(with);
    names("/sys/block", &|path| begins(path, "zram") || path.join("loop/backing_file").exists());
    names("/sys/fs/cgroup", &|path| begins(path, "tiermark"));
    names("/sys/fs/cgroup/memory", &|path| begins(path, "tiermark"));
    names("/sys/fs/cgroup/unified", &|path| begins(path, "tiermark"));
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    all.insert("mounts".to_owned(), mounts.lines().filter(|line| line.contains("tiermark")).collect());
    all
}
