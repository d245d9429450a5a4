//! Writes that were to go past the page cache and went through it, because the file system does so without saying it. What is
//! not known to do so is believed.

use machine::{Machine, Mount};
use rustix::fs::{IFlags, ioctl_getflags};
use std::os::fd::AsFd;
use std::path::Path;

/// Since this version of Linux btrfs takes direct writes to files with data checksums through the page cache, for a program
/// could change its buffer between the checksum and the transfer (Documentation of btrfs, Checksumming).
const BTRFS_SINCE: (u32, u32) = (6, 14);

/// Why direct writes to the opened file, which lies in or at `path`, are buffered ones; nothing where they are direct.
pub fn direct_writes(file: impl AsFd, path: &Path, machine: &Machine) -> Option<String> {
    let mount = machine.mount_of(path)?;
    // A file without copy-on-write (chattr +C) has no checksums. Who does not tell has them.
    let plain = || ioctl_getflags(&file).is_ok_and(|flags| flags.contains(IFlags::NOCOW));
    (by_btrfs(mount, machine.kernel_version()?) && !plain())
        .then(|| "since Linux 6.14 btrfs takes those to files with data checksums through the page cache".to_owned())
}

/// Whether a file with the mount's own settings is written so.
fn by_btrfs(mount: &Mount, kernel: (u32, u32)) -> bool {
    // nodatacow is listed as both.
    mount.fs == "btrfs" && kernel >= BTRFS_SINCE && !mount.options.iter().any(|option| option == "nodatasum")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn btrfs_buffers_what_it_keeps_checksums_of() {
        let mount = |fs: &str, options: &[&str]| Mount {
            source: "/dev/sda".to_owned(),
            at: PathBuf::from("/mnt"),
            fs: fs.to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            read_only: false,
            compression: None,
        };
        assert!(by_btrfs(&mount("btrfs", &["rw", "compress=zstd:1"]), (6, 14)));
        assert!(by_btrfs(&mount("btrfs", &[]), (7, 0)));
        assert!(!by_btrfs(&mount("btrfs", &["rw", "nodatasum"]), (6, 18)));
        assert!(!by_btrfs(&mount("btrfs", &[]), (6, 12)));
        assert!(!by_btrfs(&mount("ext4", &[]), (6, 18)));
    }
}
