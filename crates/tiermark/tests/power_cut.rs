//! The power of an emulated disk goes in the middle of a copy of a source tree: the file system recovers and what was fsynced
//! is whole, unless the disk lies about flushes. `TIERMARK_TEST_FULL` copies more, and cuts more often. Needs root, FUSE
//! and loop devices.
#![forbid(unsafe_code)]

mod common;

use common::{Emulated, Place, Random, Undo, emulation, full, patiently, sh, try_sh};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A source tree: many small files of text, and a large one now and then.
struct Tree {
    root: PathBuf,
    /// Below the root, in the order in which they are copied.
    files: Vec<PathBuf>,
}

/// One file in so many is fsynced by whoever copies, the whole file system after so many; one in so many is large.
const FSYNCED: usize = 16;
const SYNCED: usize = 128;
const LARGE: usize = 96;

impl Tree {
    fn plant(root: PathBuf, bytes: u64) -> Self {
        let words =
            ["let", "the", "request", "=>", "{", "}\n", "return", "disk", "0x7f", "fn", "//", "while", ";\n", "of"];
        let mut random = Random(bytes);
        let (mut files, mut planted) = (Vec::new(), 0);
        while planted < bytes {
            let number = files.len();
            let len = if number.is_multiple_of(LARGE) { 2 << 20 } else { 500 + random.below(24_000) };
            let mut text = String::with_capacity(len as usize + 20);
            while (text.len() as u64) < len {
                text += words[random.below(words.len() as u64) as usize];
                text += if random.below(9) == 0 { "_" } else { " " };
            }
            let file = PathBuf::from(format!("part{:03}/source{number:05}.rs", number / 64));
            fs::create_dir_all(root.join(&file).parent().unwrap()).unwrap();
            fs::write(root.join(&file), &text).unwrap();
            planted += text.len() as u64;
            files.push(file);
        }
        Tree { root, files }
    }

    /// Copies it as long as the disk goes along: the files that an fsync (also of their directory) or a syncfs made durable,
    /// and what ended it.
    fn copy(&self, to: &Path) -> (Vec<&Path>, io::Result<()>) {
        let mut durable = Vec::new();
        let sync = |directory: &Path| File::open(directory)?.sync_all();
        let mut copy = |number: usize, file: &PathBuf| -> io::Result<()> {
            let target = to.join(file);
            let directory = target.parent().unwrap_or(to);
            if !directory.exists() {
                fs::create_dir(directory)?;
                sync(to)?;
            }
            let mut copied = File::create(&target)?;
            io::copy(&mut File::open(self.root.join(file))?, &mut copied)?;
            if number % SYNCED == SYNCED - 1 || number + 1 == self.files.len() {
                rustix::fs::syncfs(File::open(to)?)?;
                durable = self.files[..=number].iter().map(PathBuf::as_path).collect();
            } else if number.is_multiple_of(FSYNCED) {
                copied.sync_all()?;
                sync(directory)?;
                durable.push(self.files[number].as_path());
            }
            Ok(())
        };
        let ended = self.files.iter().enumerate().try_for_each(|(number, file)| copy(number, file));
        (durable, ended)
    }

    /// Those of these files that are not as they were.
    fn damaged<'a>(&self, copy: &Path, files: &[&'a Path]) -> Vec<&'a Path> {
        let differs = |file: &&&Path| fs::read(copy.join(file)).ok() != Some(fs::read(self.root.join(file)).unwrap());
        files.iter().filter(differs).copied().collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum FileSystem {
    Ext4,
    Btrfs,
}

impl FileSystem {
    fn make(self, device: &str) {
        // What could not be written when the power went before, and was told to nobody, is told to the next who syncs.
        let _ = File::open(device).unwrap().sync_all();
        match self {
            FileSystem::Ext4 => sh(&format!("mkfs.ext4 -q -F -E lazy_itable_init=0,nodiscard {device}")),
            FileSystem::Btrfs => sh(&format!("mkfs.btrfs -q -f -K {device}")),
        };
    }

    fn mount(self, device: &str, at: &Path) -> Result<Undo, String> {
        let options = if self == FileSystem::Btrfs { "-o compress" } else { "" };
        try_sh(&format!("mount {options} {device} {}", at.display()))?;
        Ok(Undo(format!("umount {}", at.display())))
    }

    /// Nothing is wrong with it, by its own checker.
    fn check(self, device: &str, when: &str) {
        let line = match self {
            FileSystem::Ext4 => format!("e2fsck -fn {device} 2>&1"),
            FileSystem::Btrfs => format!("btrfs check --readonly {device} 2>&1"),
        };
        if let Err(found) = try_sh(&line) {
            panic!("{when}: {line}: {found}");
        }
    }
}

/// What a power cut in the middle of a copy left behind.
struct Aftermath {
    fsynced: usize,
    /// Fsynced files that are not whole; all of them where the file system cannot be mounted any more.
    damaged: Vec<PathBuf>,
    mountable: Result<(), String>,
}

/// Writes that the disk gets from a whole copy, so that a cut can be put between any two of them.
fn writes_of_a_copy(disk: &Emulated, kind: FileSystem, tree: &Tree, at: &Path) -> u64 {
    kind.make(&disk.device);
    let mounted = kind.mount(&disk.device, at).unwrap();
    let before = disk.figure("writes");
    let (durable, whole) = tree.copy(at);
    whole.unwrap();
    let writes = disk.figure("writes") - before;
    assert_eq!(tree.damaged(at, &durable), [""; 0].map(Path::new));
    drop(mounted);
    kind.check(&disk.device, "without a cut");
    writes
}

/// Copies the tree to a new file system until the power goes at the write of that number, and looks at what is left.
fn cut(disk: &Emulated, kind: FileSystem, tree: &Tree, at: &Path, after: u64, seed: u64, honest: bool) -> Aftermath {
    let when = format!("{kind:?}, power-cut:on=write,after={after},seed={seed}");
    kind.make(&disk.device);
    let mounted = kind.mount(&disk.device, at).unwrap();
    if !honest {
        disk.fault("lying-flush");
    }
    disk.fault(&format!("power-cut:on=write,after={after},seed={seed}"));
    let (durable, ended) = tree.copy(at);
    assert!(ended.is_err() && disk.figures()["online"] == false, "{when}: the copy was over before");
    drop(mounted);
    patiently("the disk is there again", || disk.figures()["online"] == true);
    disk.fault("clear");
    if honest && kind == FileSystem::Ext4 {
        let head = sh(&format!("dumpe2fs -h {} 2>/dev/null", disk.device));
        assert!(head.contains("needs_recovery"), "{when}: there is no journal to replay");
    }
    let (damaged, mountable) = match kind.mount(&disk.device, at) {
        Ok(_mounted) => (tree.damaged(at, &durable), Ok(())),
        Err(why) => (durable.clone(), Err(why.lines().next().unwrap_or_default().to_owned())),
    };
    if honest {
        assert_eq!(mountable, Ok(()), "{when}");
        kind.check(&disk.device, &when);
    }
    let damaged = damaged.into_iter().map(Path::to_owned).collect();
    Aftermath { fsynced: durable.len(), damaged, mountable }
}

/// Where the cut of a seed falls in a copy of so many writes: somewhere from a tenth to nine tenths.
fn moment(writes: u64, seed: u64) -> u64 {
    writes / 10 + Random(seed).below(writes * 8 / 10)
}

fn what_was_fsynced_survives(test: &str, kind: FileSystem) {
    if !emulation(test, &["mkfs.ext4", "e2fsck", "dumpe2fs", "mkfs.btrfs", "btrfs"]) {
        return;
    }
    let (bytes, size, wanted) = if full() { (500_000_000, "1GiB", 5) } else { (40_000_000, "192MiB", 2) };
    let place = Place::new();
    let tree = Tree::plant(place.home.work().join("tree"), bytes);
    let disk = place.start(&["--size", size]);
    let at = place.mount_point();
    let writes = writes_of_a_copy(&disk, kind, &tree, &at);
    println!("{kind:?}: {} files of {} MB in {writes} writes", tree.files.len(), bytes / 1_000_000);
    // A cut right behind a flush takes nothing back; it must be survived as well, but does not count.
    let mut biting = 0;
    for seed in 1..=20 {
        let (before, after) = (disk.figure("sectors_lost"), moment(writes, seed));
        let Aftermath { fsynced, damaged, .. } = cut(&disk, kind, &tree, &at, after, seed, true);
        let lost = disk.figure("sectors_lost") - before;
        println!("seed {seed}: cut at write {after}, {lost} sectors lost, {fsynced} fsynced files are whole");
        assert!(
            damaged.is_empty(),
            "{kind:?}, seed {seed}: {fsynced} files were fsynced and {damaged:?} are not whole"
        );
        assert!(fsynced > 0, "{kind:?}, seed {seed}: nothing was fsynced before");
        biting += u32::from(lost > 0);
        if biting == wanted {
            break;
        }
    }
    assert_eq!(biting, wanted, "{kind:?}: hardly a cut took anything back");
    disk.stop();
    place.assert_clean();
}

/// A copy of 500 MB, five cuts: `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test power_cut ext4_in_mid_copy -- --nocapture`.
#[test]
fn a_power_cut_of_ext4_in_mid_copy() {
    what_was_fsynced_survives("a_power_cut_of_ext4_in_mid_copy", FileSystem::Ext4);
}

/// The same with compression: `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test power_cut btrfs_in_mid_copy -- --nocapture`.
#[test]
fn a_power_cut_of_btrfs_in_mid_copy() {
    what_was_fsynced_survives("a_power_cut_of_btrfs_in_mid_copy", FileSystem::Btrfs);
}

/// The two tests above are able to fail. All seeds instead of up to the first that loses something:
/// `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test power_cut lying_flush -- --nocapture`.
#[test]
fn a_lying_flush_loses_what_was_fsynced() {
    let tools = ["mkfs.ext4", "mkfs.btrfs"];
    if !emulation("a_lying_flush_loses_what_was_fsynced", &tools) {
        return;
    }
    let place = Place::new();
    let tree = Tree::plant(place.home.work().join("tree"), 6_000_000);
    let disk = place.start(&["--size", "128MiB"]);
    let at = place.mount_point();
    for kind in [FileSystem::Ext4, FileSystem::Btrfs] {
        let writes = writes_of_a_copy(&disk, kind, &tree, &at);
        let mut losing = Vec::new();
        for seed in 1..=20 {
            let Aftermath { fsynced, damaged, mountable } =
                cut(&disk, kind, &tree, &at, moment(writes, seed), seed, false);
            if !damaged.is_empty() {
                let why = mountable.err().map_or(String::new(), |why| format!(" ({why})"));
                println!("{kind:?}, seed {seed}: {} of {fsynced} fsynced files lost{why}", damaged.len());
                losing.push(seed);
                if !full() {
                    break;
                }
            }
        }
        assert!(!losing.is_empty(), "{kind:?}: a lying flush lost nothing in 20 seeds");
        println!("{kind:?}: a lying flush lost what was fsynced with the seeds {losing:?}");
    }
    disk.stop();
    place.assert_clean();
}
