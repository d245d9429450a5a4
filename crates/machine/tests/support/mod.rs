//! Trees for tests: a golden one, a copy of it to change, or one made from nothing.

#![allow(dead_code, reason = "each test file uses its part")]

use machine::{Machine, Root, Tier};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The golden trees' folder.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trees").join(name)
}

/// The names of all golden trees.
pub const GOLDEN: [&str; 7] =
    ["cloud-vm", "pi3-desktop", "pi4", "pi5-nvme", "pi5-optane", "usb3-at-usb2", "x86-laptop"];

/// A tree in a temporary folder.
pub struct Tree(tempfile::TempDir);

impl Tree {
    pub fn empty() -> Self {
        // Thousands of small files: in memory where there is a place for it.
        let memory = Path::new("/dev/shm");
        Tree(tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap())
    }
    pub fn copy_of(name: &str) -> Self {
        let tree = Tree::empty();
        copy(&golden(name), tree.0.path());
        tree
    }
    pub fn path(&self) -> &Path {
        self.0.path()
    }
    pub fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path.trim_start_matches('/'))
    }
    /// Writes a file, its folders included.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }
    /// Several files of one folder.
    pub fn files(&self, folder: &str, files: &[(&str, &str)]) -> &Self {
        for (name, content) in files {
            self.file(&format!("{folder}/{name}"), content);
        }
        self
    }
    /// A symbolic link with any target.
    pub fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }
    pub fn remove(&self, path: &str) -> &Self {
        let path = self.at(path);
        match fs::symlink_metadata(&path).unwrap().is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
        self
    }
    pub fn root(&self) -> Root {
        Root::at(self.0.path())
    }
    pub fn read(&self) -> Machine {
        machine::read(&self.root())
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if kind.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The tier of this name; the test fails without it.
pub fn tier<'a>(machine: &'a Machine, name: &str) -> &'a Tier {
    machine.tier(name).unwrap_or_else(|| {
        panic!("no tier {name} among {:?}", machine.tiers.iter().map(|tier| &tier.name).collect::<Vec<_>>())
    })
}

/// Names of a tier's hops.
pub fn hops(tier: &Tier) -> Vec<&str> {
    tier.hops.iter().map(|hop| hop.name.as_str()).collect()
}

/// Kinds of a tier's hops.
pub fn kinds(tier: &Tier) -> Vec<&str> {
    tier.hops.iter().map(|hop| hop.kind.as_str()).collect()
}

/// The text of a warning; none when it was not given.
pub fn warning<'a>(tier: &'a Tier, id: &str) -> Option<&'a str> {
    tier.warnings.iter().find(|warning| warning.id == id).map(|warning| warning.text.as_str())
}

/// Practical range of the ceiling.
pub fn practical(tier: &Tier) -> (f64, f64) {
    tier.ceiling.get().unwrap_or_else(|| panic!("{} has no ceiling", tier.name)).practical_mbps
}

/// Facts of a disk of 1 GiB.
pub fn disk(tree: &Tree, dir: &str, dev: &str) {
    tree.files(
        dir,
        &[
            ("size", "2097152\n"),
            ("dev", dev),
            ("ro", "0"),
            ("queue/rotational", "0"),
            ("queue/logical_block_size", "512"),
        ],
    );
}

/// The mount table of the first process, from the third field of each line on.
pub fn mounts(tree: &Tree, lines: &[&str]) {
    let lines: Vec<String> = lines.iter().enumerate().map(|(i, line)| format!("{} 1 {line}\n", 20 + i)).collect();
    tree.file("/proc/self/mountinfo", lines.concat());
}

pub fn mapping(tree: &Tree, number: u32, name: &str, uuid: &str, on: &str) {
    let dir = format!("/sys/devices/virtual/block/dm-{number}");
    disk(tree, &dir, &format!("254:{number}"));
    tree.files(&dir, &[("dm/name", name), ("dm/uuid", uuid)]).link(&format!("{dir}/slaves/{on}"), "nowhere");
    tree.link(&format!("/sys/block/dm-{number}"), &format!("../..{dir}"));
}
