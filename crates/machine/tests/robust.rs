//! Whatever stands in a tree's files, reading ends and does not panic: bytes at random, files cut off, folders for files.
#![forbid(unsafe_code)]

mod support;

use machine::{Root, disks_below, tier_of_path};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use support::{GOLDEN, Tree, golden};

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_below(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found.sort();
}

/// Reads a tree in every way there is.
fn survive(tree: &Tree) {
    let root = tree.root();
    let machine = machine::read(&root);
    for tier in &machine.tiers {
        disks_below(&machine, &tier.name);
    }
    tier_of_path(&machine, &root, Path::new("/srv/x"));
    machine::capture(&root, &mut std::io::sink()).unwrap();
    assert!(machine.tier("RAM").is_some());
    serde_json::to_string(&machine).unwrap();
}

/// So many trees, or a hundred times as many in `./test --full`.
fn cases(few: u32) -> ProptestConfig {
    let full = std::env::var_os("TIERMARK_TEST_FULL").is_some();
    let cases = if full { few * 100 } else { few };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(10))]

    #[test]
    fn bytes_at_random(
        name in prop::sample::select(&GOLDEN[..]),
        picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..80)), 1..60),
    ) {
        let tree = Tree::copy_of(name);
        let mut files = Vec::new();
        files_below(tree.path(), &mut files);
        for (index, bytes) in picks {
            fs::write(&files[index.index(files.len())], bytes).unwrap();
        }
        survive(&tree);
    }

    /// Files that are almost right: some bytes gone, others in their place.
    #[test]
    fn files_damaged(
        name in prop::sample::select(&GOLDEN[..]),
        picks in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..9, "([0-9]{1,22}|[ -~\n]{0,9})"), 1..200),
    ) {
        let tree = Tree::copy_of(name);
        let mut files = Vec::new();
        files_below(tree.path(), &mut files);
        for (file, at, gone, instead) in picks {
            let file = &files[file.index(files.len())];
            let mut bytes = fs::read(file).unwrap();
            let at = at.index(bytes.len() + 1);
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, instead.into_bytes());
            fs::write(file, bytes).unwrap();
        }
        survive(&tree);
    }

    #[test]
    fn words_at_random(text in "([/=,:@. \\PC]|home|UUID|LABEL|[0-9a-f]{2}:|media|\n){0,60}") {
        let tree = Tree::empty();
        for path in ["/proc/self/mountinfo", "/proc/swaps", "/proc/cmdline", "/etc/fstab", "/etc/hostname", "/sys/block/loop0/loop/backing_file"] {
            tree.file(path, &text);
        }
        survive(&tree);
    }

    #[test]
    fn files_cut_off(name in prop::sample::select(&GOLDEN[..]), keep in 0usize..40) {
        let tree = Tree::copy_of(name);
        let mut files = Vec::new();
        files_below(tree.path(), &mut files);
        for file in files {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len().min(keep)]).unwrap();
        }
        survive(&tree);
    }
}

#[test]
fn numbers_at_their_limits() {
    for value in ["18446744073709551615", "-1", "0", "1e308", "NaN", "", "é\u{202e}"] {
        let tree = Tree::copy_of("pi5-optane");
        let mut files = Vec::new();
        files_below(tree.path(), &mut files);
        for file in files {
            fs::write(file, value).unwrap();
        }
        survive(&tree);
    }
}

#[test]
fn parts_missing() {
    for name in ["pi5-optane", "x86-laptop"] {
        for part in ["proc", "sys", "etc", "sys/block", "sys/class", "sys/devices", "sys/bus"] {
            let tree = Tree::copy_of(name);
            if tree.at(part).exists() {
                tree.remove(part);
            }
            survive(&tree);
        }
    }
    survive(&Tree::empty());
}

#[test]
fn a_root_that_does_not_exist() {
    let machine = machine::read(&Root::at(golden("none")));
    assert_eq!(machine.tiers.len(), 1);
    assert_eq!(machine.warnings.len(), 2);
}

/// A FIFO would block, a folder can't be read, a loop of slaves would never end.
#[test]
fn what_is_no_regular_file() {
    let tree = Tree::copy_of("x86-laptop");
    tree.remove("/proc/cpuinfo").remove("/proc/meminfo").remove("/proc/swaps");
    fs::create_dir(tree.at("/proc/cpuinfo")).unwrap();
    tree.link("/proc/meminfo", "meminfo").link("/proc/swaps", "../../../../../../../../etc/passwd");
    tree.link("/sys/devices/virtual/block/dm-0/slaves/dm-1", "../../dm-1");
    assert!(std::process::Command::new("mkfifo").arg(tree.at("/proc/loadavg")).status().unwrap().success());
    survive(&tree);
    assert!(tree.read().ram.is_unknown());
}
