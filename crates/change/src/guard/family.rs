//! Which block devices are touched when one is written: itself, its partitions, the disk it is a partition of, what it
//! is made of; and who holds any of them. Read from `/sys`.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Something that could not be read, and why.
pub(super) type Unreadable = (String, io::Error);

/// A block device's number, the only name that is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    major: u32,
    minor: u32,
}

impl Number {
    /// Of a `st_dev` or `st_rdev`.
    pub fn of(dev: u64) -> Self {
        Number { major: rustix::fs::major(dev), minor: rustix::fs::minor(dev) }
    }
}

impl FromStr for Number {
    type Err = ();
    /// As `/sys` and `mountinfo` write it: `8:1`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim().split_once(':').ok_or(())?;
        Ok(Number { major: major.parse().map_err(drop)?, minor: minor.parse().map_err(drop)? })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// A block device in `/sys`.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub number: Number,
    /// As the kernel calls it (`sda1`).
    pub name: String,
    /// Its folder.
    pub dir: PathBuf,
}

/// The device asked about and all that a write to it touches.
#[derive(Debug)]
pub(super) struct Family {
    /// The device itself first.
    pub members: Vec<Node>,
    /// Device that is held, and its holder's name.
    pub holders: Vec<(Node, String)>,
}

impl Family {
    /// Of the device of this number.
    pub fn of(root: &Path, number: Number) -> Result<Self, Unreadable> {
        let itself = node(root, number)?;
        let mut family = Family { members: Vec::new(), holders: Vec::new() };
        family.add(root, itself.clone(), &mut BTreeSet::new())?;
        // Holders of what it is made of are itself and its siblings, which it leaves alone.
        let mut held = vec![itself.clone()];
        held.extend(parts(&itself)?);
        held.extend(disk_of(&itself)?);
        for node in held {
            for holder in names(&node.dir.join("holders"))? {
                family.holders.push((node.clone(), holder));
            }
        }
        Ok(family)
    }

    /// Adds a device, its partitions and its disk, and the same of what it is made of.
    fn add(&mut self, root: &Path, node: Node, seen: &mut BTreeSet<Number>) -> Result<(), Unreadable> {
        if !seen.insert(node.number) {
            return Ok(());
        }
        let (parts, disk) = (parts(&node)?, disk_of(&node)?);
        let mut below = slaves(root, &node)?;
        // A partition of a RAID is made of what the RAID is made of.
        if let Some(disk) = &disk {
            below.extend(slaves(root, disk)?);
        }
        self.members.push(node);
        for relative in parts.into_iter().chain(disk) {
            if seen.insert(relative.number) {
                self.members.push(relative);
            }
        }
        // Of what it is made of, other partitions are nobody's business: a mirror on `sda2` leaves `sda1` alone.
        below.into_iter().try_for_each(|slave| self.add(root, slave, seen))
    }

    /// Whether the device asked about takes no writes.
    pub fn is_write_protected(&self) -> bool {
        let text = self.members.first().and_then(|itself| std::fs::read_to_string(itself.dir.join("ro")).ok());
        text.is_some_and(|text| text.trim() == "1")
    }

    /// The one of this number, if a write would touch it.
    pub fn member(&self, number: Number) -> Option<&Node> {
        self.members.iter().find(|node| node.number == number)
    }
}

fn node(root: &Path, number: Number) -> Result<Node, Unreadable> {
    let link = root.join("sys/dev/block").join(number.to_string());
    let dir = std::fs::canonicalize(&link).map_err(|e| (link.display().to_string(), e))?;
    let name = dir.file_name().map_or_else(|| number.to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Node { number, name, dir })
}

/// The device in this folder of `/sys`, when it is one.
fn node_in(dir: PathBuf) -> Result<Option<Node>, Unreadable> {
    let file = dir.join("dev");
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(text.parse().ok().map(|number| Node {
            number,
            name: dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            dir,
        })),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err((file.display().to_string(), error)),
    }
}

/// Partitions of a disk.
fn parts(node: &Node) -> Result<Vec<Node>, Unreadable> {
    let mut found = Vec::new();
    for name in names(&node.dir)? {
        let dir = node.dir.join(name);
        if dir.join("partition").exists() {
            found.extend(node_in(dir)?);
        }
    }
    Ok(found)
}

/// The disk of a partition.
fn disk_of(node: &Node) -> Result<Option<Node>, Unreadable> {
    if !node.dir.join("partition").exists() {
        return Ok(None);
    }
    node.dir.parent().map_or(Ok(None), |dir| node_in(dir.to_owned()))
}

/// What a RAID or a device-mapper target is made of.
fn slaves(root: &Path, node: &Node) -> Result<Vec<Node>, Unreadable> {
    let dir = node.dir.join("slaves");
    let mut found = Vec::new();
    for name in names(&dir)? {
        let link = dir.join(&name);
        let text = std::fs::read_to_string(link.join("dev")).map_err(|e| (link.display().to_string(), e))?;
        if let Ok(number) = text.parse() {
            found.push(self::node(root, number)?);
        }
    }
    Ok(found)
}

/// Names in a folder, sorted; none when it is not there.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, Unreadable> {
    let fail = |e| (dir.display().to_string(), e);
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry.map_err(fail)?.file_name().to_string_lossy().into_owned());
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A `/sys` with sda (8:0) of sda1 (8:1) and sda2 (8:2), and md0 (9:0) on sda2.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let block = root.path().join("sys/devices/block");
        let device = |path: &str, number: &str, partition: bool| {
            let dir = block.join(path);
            fs::create_dir_all(dir.join("holders")).unwrap();
            fs::create_dir_all(dir.join("slaves")).unwrap();
            fs::write(dir.join("dev"), format!("{number}\n")).unwrap();
            if partition {
                fs::write(dir.join("partition"), "1\n").unwrap();
            }
            fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
            symlink(&dir, root.path().join("sys/dev/block").join(number)).unwrap();
        };
        device("sda", "8:0", false);
        device("sda/sda1", "8:1", true);
        device("sda/sda2", "8:2", true);
        device("md0", "9:0", false);
        symlink(block.join("md0"), block.join("sda/sda2/holders/md0")).unwrap();
        symlink(block.join("sda/sda2"), block.join("md0/slaves/sda2")).unwrap();
        root
    }

    fn of(root: &tempfile::TempDir, number: &str) -> (Vec<String>, Vec<String>) {
        let family = Family::of(root.path(), number.parse().unwrap()).unwrap();
        let mut members: Vec<String> = family.members.iter().map(|node| node.name.clone()).collect();
        members.sort();
        (members, family.holders.iter().map(|(node, holder)| format!("{holder} holds {}", node.name)).collect())
    }

    #[test]
    fn a_disk_is_in_use_when_a_partition_is() {
        let tree = tree();
        assert_eq!(of(&tree, "8:0"), (vec!["sda".into(), "sda1".into(), "sda2".into()], vec!["md0 holds sda2".into()]));
    }

    #[test]
    fn a_partition_has_nothing_to_do_with_the_others() {
        let tree = tree();
        assert_eq!(of(&tree, "8:1"), (vec!["sda".into(), "sda1".into()], vec![]));
        assert_eq!(of(&tree, "8:2").1, ["md0 holds sda2"]);
    }

    #[test]
    fn a_raid_takes_in_what_it_is_made_of_and_does_not_hold_itself() {
        let tree = tree();
        assert_eq!(of(&tree, "9:0"), (vec!["md0".into(), "sda".into(), "sda2".into()], vec![]));
    }

    #[test]
    fn a_device_that_sysfs_does_not_know_is_an_error() {
        let tree = tree();
        assert!(Family::of(tree.path(), "8:99".parse().unwrap()).is_err());
    }
}
