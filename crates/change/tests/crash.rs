//! SIGKILL after every step of a change, then a new start: nothing is left behind and nothing else is touched.
#![forbid(unsafe_code)]

use basics::Bytes;
use change::{FuseMount, Journal, LoopDevice, TestFile};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Folder to work in, and after how many steps to die.
const ORDERS: &str = "TIERMARK_CRASH";

/// What the killed process does. Two files, so that one stands while the other comes and goes.
fn make_and_remove(dir: &Path, die_after: usize) {
    let steps = AtomicUsize::new(0);
    let watch = move |_: &'static str| {
        if steps.fetch_add(1, Ordering::Relaxed) + 1 == die_after {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    };
    let journal = Journal::open_watched(&dir.join("journal"), Arc::new(watch)).unwrap();
    let create = || TestFile::create(&journal, "0a1b2c3d", dir, Bytes(64 << 10)).unwrap();
    let (first, second) = (create(), create());
    first.remove().unwrap();
    drop(second);
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn killed_after_every_step_everything_is_as_before() {
    if let Ok(orders) = std::env::var(ORDERS) {
        let (die_after, dir) = orders.split_once(' ').unwrap();
        return make_and_remove(Path::new(dir), die_after.parse().unwrap());
    }
    let mut left_behind = 0;
    for die_after in 1.. {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".tiermark-0a1b2c3d-mine.tmp"), "of value").unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed_after_every_step_everything_is_as_before"])
            .env(ORDERS, format!("{die_after} {}", dir.path().display()))
            .output()
            .unwrap();
        left_behind += names(dir.path()).len() - 2;
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        for told in journal.recover().unwrap() {
            assert!(told.undone, "step {die_after}: {told}");
        }
        assert_eq!(names(dir.path()), [".tiermark-0a1b2c3d-mine.tmp", "journal"], "step {die_after}");
        assert_eq!(names(journal.dir()), [""; 0], "step {die_after}");
        if output.status.success() {
            assert!(die_after > 15, "only {die_after} steps: the test has lost its grip");
            assert!(left_behind > 10, "only {left_behind} files were ever left behind");
            return;
        }
        assert_eq!(output.status.signal(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// A folder, a sparse file in it and a loop device over that: what an emulated disk is made of, but for the mount.
fn make_a_disk(dir: &Path, die_after: usize) {
    let steps = AtomicUsize::new(0);
    let watch = move |_: &'static str| {
        if steps.fetch_add(1, Ordering::Relaxed) + 1 == die_after {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    };
    let journal = Journal::open_watched(&dir.join("journal"), Arc::new(watch)).unwrap();
    let folder = FuseMount::prepare(&journal, "disk-0a1b2c3d", dir, None, &["socket"]).unwrap();
    std::fs::write(folder.folder().join("socket"), "").unwrap();
    let file = TestFile::sparse(&journal, "disk-0a1b2c3d", &dir.join("image"), Bytes(1 << 20)).unwrap();
    let device = LoopDevice::attach(&journal, "disk-0a1b2c3d", file.path(), 512).unwrap();
    device.detach().unwrap();
    file.remove().unwrap();
    folder.remove().unwrap();
}

/// Loop devices over files below `dir`.
fn loops_below(dir: &Path) -> usize {
    let below = |entry: &std::fs::DirEntry| {
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file"));
        backing.is_ok_and(|backing| Path::new(&backing).starts_with(dir))
    };
    std::fs::read_dir("/sys/block").unwrap().map(Result::unwrap).filter(below).count()
}

#[test]
fn a_disk_killed_after_every_step_is_gone() {
    const NAME: &str = "a_disk_killed_after_every_step_is_gone";
    if let Ok(orders) = std::env::var(ORDERS) {
        let (die_after, dir) = orders.split_once(' ').unwrap();
        return make_a_disk(Path::new(dir), die_after.parse().unwrap());
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        println!("SKIP {NAME}: needs root and loop devices");
        return;
    }
    let mut loops = 0;
    for die_after in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME])
            .env(ORDERS, format!("{die_after} {}", dir.path().display()))
            .output()
            .unwrap();
        loops += loops_below(dir.path());
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        for told in journal.recover().unwrap() {
            assert!(told.undone, "step {die_after}: {told}");
        }
        assert_eq!(names(dir.path()), ["journal"], "step {die_after}");
        assert_eq!(names(journal.dir()), [""; 0], "step {die_after}");
        assert_eq!(loops_below(dir.path()), 0, "step {die_after}");
        if output.status.success() {
            assert!(die_after > 15 && loops > 0, "{die_after} steps, {loops} loop devices: the test has lost its grip");
            return;
        }
        assert_eq!(output.status.signal(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
