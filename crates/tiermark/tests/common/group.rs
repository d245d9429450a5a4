//! A memory cgroup of a test's own, of either version.

use super::patiently;
use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup with so much memory, and its way in.
pub struct Group(pub PathBuf);

impl Group {
    /// None where there is no memory cgroup that can be used.
    pub fn new(limit: &str) -> Option<Self> {
        let name = format!("tiermark-test-{}", std::process::id());
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.iter().find_map(|(root, file)| {
            let root = Path::new(root);
            // On the tmpfs that version 1 hangs its controllers into, a folder would be just that.
            if !root.join("cgroup.procs").exists() {
                return None;
            }
            let group = Group(root.join(&name));
            fs::create_dir(&group.0).ok()?;
            fs::write(group.0.join(file), limit).ok().map(|()| group)
        })
    }

    /// Gone, once the kernel has forgotten the last process in it.
    pub fn remove(&self) {
        patiently("the cgroup is gone", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
