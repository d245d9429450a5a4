//! Whether a machine still starts with a file as it is to be: what the kernel's command line, fstab and config.txt name must be there, and be
//! something that its kernels know. What cannot be looked at (an image has no devices) is not held against the change; what can be seen to be
//! wrong refuses it before a byte is written.

use super::plan::lacks;
use super::text::words;
use crate::error::ChangeError;
use machine::Root;
use std::path::Path;

/// The least that any architecture's kernel takes of a command line (COMMAND_LINE_SIZE of 32-bit ARM), less what the firmware adds.
const LONGEST: usize = 1024 - 256;
/// Options of a mount that any file system takes (mount(8)).
const ANY: [&str; 34] = [
    "defaults",
    "rw",
    "ro",
    "noatime",
    "atime",
    "relatime",
    "norelatime",
    "strictatime",
    "nodiratime",
    "diratime",
    "lazytime",
    "nolazytime",
    "auto",
    "noauto",
    "nofail",
    "exec",
    "noexec",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "user",
    "nouser",
    "users",
    "group",
    "owner",
    "sync",
    "async",
    "dirsync",
    "_netdev",
    "iversion",
    "noiversion",
    "silent",
    "loud",
];
/// Options of ours that one file system alone has.
const OWN: [(&str, &[&str]); 7] = [
    ("compress", &["btrfs"]),
    ("compress-force", &["btrfs"]),
    ("compress_algorithm", &["f2fs"]),
    ("ssd", &["btrfs"]),
    ("space_cache", &["btrfs"]),
    ("commit", &["ext4", "ext3", "btrfs"]),
    ("discard", &["ext4", "btrfs", "f2fs", "xfs", "vfat", "swap"]),
];
/// What need not be a disk's.
const NO_DISK: [&str; 12] =
    ["proc", "sysfs", "tmpfs", "devtmpfs", "devpts", "none", "overlay", "nfs", "nfs4", "cifs", "fuse", "swap"];

/// Refuses a file that would keep the machine from starting.
pub(super) fn check(root: &Root, path: &Path, before: &str, after: &str) -> Result<(), ChangeError> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("cmdline.txt" | "cmdline") => command_line(root, path, before, after),
        Some("fstab") => fstab(root, before, after),
        Some("config.txt") => firmware(root, path, before, after),
        _ => Ok(()),
    }
}

fn refused(what: String) -> Result<(), ChangeError> {
    Err(lacks(what, "a machine that is started so may not start; look at it first, nothing was changed"))
}

/// The value of a parameter of a command line.
fn parameter<'t>(line: &'t str, name: &str) -> Option<&'t str> {
    line.split_whitespace().rev().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn command_line(root: &Root, path: &Path, before: &str, after: &str) -> Result<(), ChangeError> {
    let first = |text: &str| text.lines().next().unwrap_or_default().trim().to_owned();
    let (old, line) = (first(before), first(after));
    let shown = path.display();
    if line.len() > LONGEST && line.len() > old.len() {
        return refused(format!("{shown} would have {} characters, more than every kernel takes", line.len()));
    }
    let Some(source) = parameter(&line, "root") else {
        // A partition of the right type is found without one.
        return if parameter(&old, "root").is_some() { refused(format!("{shown} names no root=")) } else { Ok(()) };
    };
    if parameter(&old, "root").is_some_and(|old| old != source) {
        return refused(format!("{shown} would name another root than before"));
    }
    is_there(root, source, &format!("{shown} starts from"))?;
    let kind = parameter(&line, "rootfstype").filter(|kind| parameter(&old, "rootfstype") != Some(*kind));
    for kind in kind.into_iter().flat_map(|kinds| kinds.split(',')) {
        known(root, kind, &shown.to_string())?;
    }
    // Both name the same root where they name it in the same way.
    let fstab = root.text("/etc/fstab").into_option().unwrap_or_default();
    let of_fstab = lines(&fstab).find(|fields| fields.at == "/");
    let way = |text: &str| text.split_once('=').map(|(way, _)| way.to_ascii_uppercase());
    match of_fstab {
        Some(other) if way(other.what).is_some() && way(other.what) == way(source) => {
            if !same_name(other.what, source) {
                return refused(format!("{shown} starts from {source}, and /etc/fstab has {} as /", other.what));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Names of disks are written in either case, and in quotes or without.
fn same_name(a: &str, b: &str) -> bool {
    let bare = |text: &str| text.replace('"', "").to_ascii_lowercase();
    bare(a) == bare(b)
}

/// A line of fstab(5).
struct Line<'t> {
    what: &'t str,
    at: &'t str,
    kind: &'t str,
    options: &'t str,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(|line| {
        let fields = words(line);
        let field = |at: usize| fields.get(at).map(|(_, word)| *word);
        Some(Line { what: field(0)?, at: field(1)?, kind: field(2)?, options: field(3).unwrap_or("defaults") })
    })
}

fn fstab(root: &Root, before: &str, after: &str) -> Result<(), ChangeError> {
    if lines(before).count() != lines(after).count() {
        return refused("/etc/fstab would have lost or gained a line".to_owned());
    }
    for (old, new) in lines(before).zip(lines(after)) {
        if old.options == new.options && old.what == new.what && old.kind == new.kind && old.at == new.at {
            continue;
        }
        if (old.what, old.at) != (new.what, new.at) {
            return refused(format!("/etc/fstab would mount {} at {} instead of {}", new.what, new.at, old.what));
        }
        let may_fail = new.options.split(',').any(|option| matches!(option, "nofail" | "noauto"));
        if !may_fail {
            if !NO_DISK.contains(&new.kind) {
                is_there(root, new.what, &format!("/etc/fstab has at {}", new.at))?;
            }
            // What it has already may be a helper's, as ntfs-3g.
            for kind in new.kind.split(',').filter(|_| new.kind != old.kind) {
                known(root, kind, "/etc/fstab")?;
            }
        }
        let had: Vec<&str> = old.options.split(',').collect();
        for option in new.options.split(',').filter(|option| !had.contains(option)) {
            takes(option, new.kind, new.at)?;
        }
    }
    Ok(())
}

/// A file system takes an option that is added.
fn takes(option: &str, kind: &str, at: &str) -> Result<(), ChangeError> {
    let name = option.split_once('=').map_or(option, |(name, _)| name);
    if ANY.contains(&name) || name.starts_with("x-") || kind == "auto" {
        return Ok(());
    }
    match OWN.iter().find(|(own, _)| *own == name) {
        Some((_, kinds)) if !kinds.contains(&kind) => {
            refused(format!("{kind} at {at} does not know the option {option}"))
        }
        _ => Ok(()),
    }
}

/// What names a disk leads to one, as far as this root has devices.
fn is_there(root: &Root, source: &str, what: &str) -> Result<(), ChangeError> {
    let (way, name) = source.split_once('=').unwrap_or(("", source));
    // What udev cannot have in a name, and fstab in a field, is written as a number; `PARTUUID=…/PARTNROFF=1` is another's neighbour.
    let name = name.trim_matches('"').replace("\\040", "\\x20");
    let name =
        if way.eq_ignore_ascii_case("PARTUUID") { name.split('/').next().unwrap_or_default() } else { name.as_str() };
    let folder = match way.to_ascii_uppercase().as_str() {
        "UUID" => "/dev/disk/by-uuid",
        "PARTUUID" => "/dev/disk/by-partuuid",
        "LABEL" => "/dev/disk/by-label",
        "PARTLABEL" => "/dev/disk/by-partlabel",
        "" if name.starts_with("/dev/disk/") => name.rsplit_once('/').map_or("/dev", |(folder, _)| folder),
        "" if name.starts_with("/dev/") => {
            // Aliases of the kernel's own are no files.
            if root.is_live() && name != "/dev/root" && name != "/dev/nfs" && !root.exists(name) {
                return refused(format!("{what} {source}, which is not there"));
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    let there = root.names(folder);
    let name = name.rsplit('/').next().unwrap_or(name);
    if !there.is_empty() && !there.iter().any(|other| other.eq_ignore_ascii_case(name)) {
        return refused(format!("{what} {source}, and no disk of this machine has that name"));
    }
    Ok(())
}

/// Some kernel of this root knows a file system, built in or as a module; where none says what it knows, nothing is held against it.
fn known(root: &Root, kind: &str, where_it_stands: &str) -> Result<(), ChangeError> {
    if kind == "auto" || NO_DISK.contains(&kind) || kind.starts_with("fuse") {
        return Ok(());
    }
    let now = root.text("/proc/filesystems").into_option().unwrap_or_default();
    if now.lines().any(|line| line.split_whitespace().last() == Some(kind)) {
        return Ok(());
    }
    // ext4's module mounts the older two.
    let names: &[&str] = if matches!(kind, "ext2" | "ext3") { &[kind, "ext4"] } else { &[kind] };
    let (mut told, mut silent) = (false, true);
    for folder in ["/lib/modules", "/usr/lib/modules"] {
        for kernel in root.names(Path::new(folder)) {
            for file in ["modules.builtin", "modules.dep"] {
                let Some(text) = root.text(Path::new(folder).join(&kernel).join(file)).into_option() else { continue };
                silent = false;
                let is_it = |line: &str| {
                    let path = line.split(':').next().unwrap_or(line);
                    let name = path.rsplit('/').next().unwrap_or(path);
                    names.iter().any(|kind| name.split(".ko").next() == Some(kind) && name.contains(".ko"))
                };
                told |= text.lines().any(is_it);
            }
        }
    }
    if !told && !silent {
        return refused(format!("{where_it_stands} has a file system {kind} that no kernel below /lib/modules knows"));
    }
    Ok(())
}

/// What config.txt has the firmware load lies beside it.
fn firmware(root: &Root, path: &Path, before: &str, after: &str) -> Result<(), ChangeError> {
    let folder = path.parent().unwrap_or(Path::new("/boot"));
    for line in after.lines().filter(|line| !before.lines().any(|old| old == *line)) {
        let Some((name, value)) = line.trim().split_once('=') else { continue };
        let file = match name.trim() {
            "dtoverlay" => {
                let overlay = value.split([',', ':']).next().unwrap_or_default().trim();
                if overlay.is_empty() || root.names(folder.join("overlays")).is_empty() {
                    continue;
                }
                folder.join("overlays").join(format!("{overlay}.dtbo"))
            }
            "kernel" | "ramfsfile" | "device_tree" => folder.join(value.trim()),
            _ => continue,
        };
        if !root.exists(&file) {
            return refused(format!("{} would have {line}, and there is no {}", path.display(), file.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree(dir)
        }

        fn says(&self, path: &str, before: &str, after: &str) -> String {
            let checked = check(&Root::at(self.0.path()), Path::new(path), before, after);
            checked.err().map(|error| error.to_string()).unwrap_or_default()
        }
    }

    const LINE: &str = "/boot/firmware/cmdline.txt";

    #[test]
    fn a_command_line_names_what_is_there() {
        let tree = Tree::new(&[
            ("dev/disk/by-partuuid/ab-02", ""),
            ("lib/modules/6.12/modules.builtin", "kernel/fs/ext4/ext4.ko\n"),
            ("lib/modules/6.12/modules.dep", "kernel/fs/btrfs/btrfs.ko.xz: kernel/lib/xor.ko.xz\n"),
            ("etc/fstab", "PARTUUID=AB-02 / ext4 defaults 0 1\n"),
        ]);
        let good = "root=PARTUUID=ab-02 rootfstype=ext4 rootwait";
        assert_eq!(tree.says(LINE, good, &format!("{good} zswap.enabled=1\n")), "");
        for (before, after, says) in [
            (good, "rootwait\n", "names no root="),
            (good, "root=PARTUUID=ab-03\n", "another root"),
            ("root=PARTUUID=ab-03", "root=PARTUUID=ab-03 quiet", "no disk of this machine has that name"),
            (good, "root=PARTUUID=ab-02 rootfstype=bcachefs", "no kernel below /lib/modules knows"),
        ] {
            let said = tree.says(LINE, before, after);
            assert!(said.contains(says), "{after}: {said}");
        }
        assert_eq!(tree.says(LINE, good, "root=PARTUUID=ab-02 rootfstype=btrfs"), "");
        let long = format!("{good} {}", "x".repeat(1000));
        assert!(tree.says(LINE, good, &long).contains("more than every kernel takes"));
        // It was as long before, and started.
        assert_eq!(tree.says(LINE, &format!("{long}yy"), &long), "");
        let bare = Tree::new(&[("etc/fstab", "PARTUUID=cd-02 / ext4 defaults 0 1\n")]);
        assert!(bare.says(LINE, good, &format!("{good} quiet")).contains("/etc/fstab has PARTUUID=cd-02 as /"));
    }

    #[test]
    fn fstab_keeps_its_lines_and_gains_what_its_file_systems_take() {
        let tree = Tree::new(&[
            ("dev/disk/by-uuid/1-2", ""),
            ("proc/filesystems", "nodev\tproc\n\text4\n\tvfat\n"),
            ("lib/modules/6.12/modules.builtin", "kernel/fs/ext4/ext4.ko\n"),
        ]);
        let before = "# a note\nUUID=1-2 / ext4 defaults 0 1\nUUID=9 /data xfs defaults,nofail 0 0\n";
        let with = |from: &str, to: &str| before.replacen(from, to, 1);
        assert_eq!(tree.says("/etc/fstab", before, &with("defaults 0 1", "defaults,noatime 0 1")), "");
        assert_eq!(tree.says("/etc/fstab", before, &with("defaults,nofail", "noatime,nofail")), "");
        for (from, to, says) in [
            ("defaults 0 1", "compress=zstd:1 0 1", "does not know the option compress=zstd:1"),
            ("UUID=1-2", "UUID=1-3", "instead of"),
            ("# a note\nUUID=1-2 / ext4 defaults 0 1\n", "", "lost or gained"),
            ("ext4 defaults", "btrfs noatime", "no kernel"),
        ] {
            let said = tree.says("/etc/fstab", before, &with(from, to));
            assert!(said.contains(says), "{to}: {said}");
        }
        let gone = "UUID=7 / ext4 defaults 0 1\n";
        assert!(tree.says("/etc/fstab", gone, &gone.replace("defaults", "noatime")).contains("no disk"));
        // An image has no devices.
        let image = Tree::new(&[]);
        assert_eq!(image.says("/etc/fstab", gone, &gone.replace("defaults", "noatime")), "");
    }

    #[test]
    fn the_firmware_finds_what_it_is_to_load() {
        let tree = Tree::new(&[("boot/firmware/overlays/dwc2.dtbo", "")]);
        let path = "/boot/firmware/config.txt";
        assert_eq!(tree.says(path, "", "dtoverlay=dwc2,dr_mode=host\ndtparam=pciex1_gen=3\n"), "");
        assert!(tree.says(path, "", "dtoverlay=none\n").contains("overlays/none.dtbo"));
        assert_eq!(tree.says(path, "dtoverlay=none\n", "dtoverlay=none\narm_boost=1\n"), "");
    }
}
