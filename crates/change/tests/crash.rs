//! SIGKILL after every step of a change, then a new start: nothing is left behind and nothing else is touched.
#![forbid(unsafe_code)]

use basics::Bytes;
use change::{Cgroup, FuseMount, Helper, Journal, Limits, LoopDevice, Mount, SwapOn, TestFile, Value, Zram, swap_area};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Folder to work in, and after how many steps to die.
const ORDERS: &str = "TIERMARK_CRASH";

/// A journal in `dir` whose process dies after so many steps.
fn doomed(dir: &Path, die_after: usize) -> Journal {
    let steps = AtomicUsize::new(0);
    let watch = move |_: &'static str| {
        if steps.fetch_add(1, Ordering::Relaxed) + 1 == die_after {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    };
    Journal::open_watched(&dir.join("journal"), Arc::new(watch)).unwrap()
}

/// What the killed process does. Two files, so that one stands while the other comes and goes.
fn make_and_remove(dir: &Path, die_after: usize) {
    let journal = doomed(dir, die_after);
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

/// A folder, a sparse file in it, a loop device over that, and a file system on it, mounted: what an emulated disk is made of, but for
/// its own mount.
fn make_a_disk(dir: &Path, die_after: usize) {
    let journal = doomed(dir, die_after);
    let folder = FuseMount::prepare(&journal, "disk-0a1b2c3d", dir, None, &["socket"]).unwrap();
    std::fs::write(folder.folder().join("socket"), "").unwrap();
    let file = TestFile::sparse(&journal, "disk-0a1b2c3d", &dir.join("image"), Bytes(1 << 20)).unwrap();
    let device = LoopDevice::attach(&journal, "disk-0a1b2c3d", file.path(), 512).unwrap();
    let mkfs = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).stderr(Stdio::null()).status();
    // Without it the rest is tried all the same.
    if mkfs.is_ok_and(|status| status.success()) {
        let mount = Mount::new(&journal, "0a1b2c3d", device.path(), c"ext4", dir).unwrap();
        std::fs::write(mount.path().join("log"), "x").unwrap();
        mount.unmount().unwrap();
    }
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

/// One that nothing else of tiermark sets: its runs may go on beside this.
const SETTING: &str = "/proc/sys/vm/stat_interval";

/// A setting, a zram device as swap, a control group with a process in it, and a helper.
fn press(dir: &Path, die_after: usize) {
    let (journal, run) = (doomed(dir, die_after), "0a1b2c3d");
    let wanted = if std::fs::read_to_string(SETTING).unwrap().trim() == "2" { "3" } else { "2" };
    let value = Value::set(&journal, run, Path::new(SETTING), wanted).unwrap();
    let size = Bytes(ODD);
    let zram = Zram::add(&journal, run, size, Some("lzo"), None).unwrap();
    let file = File::options().read(true).write(true).open(zram.path()).unwrap();
    swap_area::format(&file, size, run).unwrap();
    drop(file);
    let swap = SwapOn::on(&journal, run, zram.path(), Some(1)).unwrap();
    let limits = Limits { memory: Bytes(8 << 20), swap: Some(size), swappiness: Some(10) };
    let name = format!("crash-{}", std::process::id());
    let group = Cgroup::make(&journal, run, &name, &limits).unwrap();
    let sleeper = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("set -e; {script} exec sleep 60")]).stdin(Stdio::null());
        command.env(change::cgroup::MARK, "1");
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let join = group.groups().iter().map(|dir| format!("echo $$ > {}/cgroup.procs; ", dir.display()));
    let mut inside = sleeper(&join.collect::<String>());
    let last = group.groups().last().unwrap().join("cgroup.procs");
    while std::fs::read_to_string(&last).unwrap().is_empty() {
        std::thread::yield_now();
    }
    let mut child = sleeper("");
    std::fs::write(dir.join("helper"), child.id().to_string()).unwrap();
    let helper = Helper::of(&journal, run, child.id(), "a sleeper").unwrap();
    helper.end().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    group.remove().unwrap();
    assert_eq!(inside.wait().unwrap().signal(), Some(9));
    swap.off().unwrap();
    zram.remove().unwrap();
    value.restore().unwrap();
}

/// Like no other: others may have swap on this machine too.
const ODD: u64 = (16 << 20) + (64 << 10);

/// All that such a process changes: swap on its zram device, that device, groups, the setting.
fn memory_of_this_machine() -> [String; 4] {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let of_size = |name: &String| {
        let size = read(&Path::new("/sys/block").join(name).join("disksize"));
        name.starts_with("zram") && ["0".to_owned(), ODD.to_string()].contains(&size.trim().to_owned())
    };
    let zrams: Vec<String> = names(Path::new("/sys/block")).into_iter().filter(of_size).collect();
    let swaps = read(Path::new("/proc/swaps"));
    let on = |name: &&String| swaps.lines().any(|line| line.starts_with(&format!("/dev/{name} ")));
    let swaps = zrams.iter().filter(on).cloned().collect::<String>();
    let groups = ["", "memory", "unified"].map(|at| {
        let dir = Path::new("/sys/fs/cgroup").join(at);
        let names = if dir.exists() { names(&dir) } else { Vec::new() };
        names.into_iter().filter(|name| name.starts_with("tiermark-crash")).collect::<String>()
    });
    [swaps, zrams.join(" "), groups.concat(), read(Path::new(SETTING))]
}

/// Tries for a while, for the moment in which somebody else's new device looks like ours.
fn is_as(before: &[String; 4]) -> bool {
    let began = std::time::Instant::now();
    while began.elapsed().as_secs() < 5 {
        if memory_of_this_machine() == *before {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    false
}

#[test]
fn a_pressed_machine_killed_after_every_step_is_as_before() {
    const NAME: &str = "a_pressed_machine_killed_after_every_step_is_as_before";
    if let Ok(orders) = std::env::var(ORDERS) {
        let (die_after, dir) = orders.split_once(' ').unwrap();
        return press(Path::new(dir), die_after.parse().unwrap());
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/sys/class/zram-control/hot_add").exists() {
        println!("SKIP {NAME}: needs root and zram");
        return;
    }
    // The tests of memory.rs change the same machine.
    let alone = File::open("/sys/block").unwrap();
    rustix::fs::flock(&alone, FlockOperation::LockExclusive).unwrap();
    {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let limits = Limits { memory: Bytes(8 << 20), swap: Some(Bytes(0)), swappiness: None };
        if let Err(error) = Cgroup::make(&journal, "0a1b2c3d", "crash-look", &limits) {
            println!("SKIP {NAME}: {error}");
            return;
        }
    }
    let before = memory_of_this_machine();
    let (mut left_behind, mut ended) = ([0; 4], 0);
    for die_after in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME])
            .env(ORDERS, format!("{die_after} {}", dir.path().display()))
            .output()
            .unwrap();
        for (left, (now, before)) in left_behind.iter_mut().zip(memory_of_this_machine().iter().zip(&before)) {
            *left += usize::from(now != before);
        }
        let pid = std::fs::read_to_string(dir.path().join("helper")).ok().and_then(|pid| pid.parse().ok());
        let helper = pid.and_then(|pid| sys::process::Identity::of(pid).ok());
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        for told in journal.recover().unwrap() {
            assert!(told.undone, "step {die_after}: {told}");
            ended += usize::from(told.to_string().contains("was ended"));
        }
        assert!(is_as(&before), "step {die_after}: {before:?} became {:?}", memory_of_this_machine());
        assert_eq!(names(journal.dir()), [""; 0], "step {die_after}");
        if let Some(helper) = helper {
            // One that was killed before it had an entry is nobody's.
            let _ = helper.signal(rustix::process::Signal::KILL);
        }
        if output.status.success() {
            assert!(die_after > 40, "only {die_after} steps: the test has lost its grip");
            assert!(
                left_behind.iter().all(|&left| left > 4) && ended > 0,
                "{left_behind:?} left behind, {ended} ended"
            );
            return;
        }
        assert_eq!(output.status.signal(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
