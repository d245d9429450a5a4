//! `apply`, `status` and `revert` through the whole program: on the trees of known machines, with file systems that are full or cannot be
//! written, killed at every system call that changes something.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Told, Undo, has_keys, possible, sh};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Pi 5 with what an installed system has besides /proc and /sys, below the home.
fn machine(home: &Home, name: &str) -> PathBuf {
    let root = home.path().join("root");
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees").join(name);
    sh(&format!("cp -a {} {}", tree.display(), root.display()));
    for (path, text) in [
        ("boot/firmware/cmdline.txt", "root=PARTUUID=00000000-02 rootfstype=ext4 rootwait\n"),
        ("boot/firmware/config.txt", "dtparam=audio=on\n[cm5]\ndtoverlay=dwc2\n"),
        ("usr/lib/systemd/system/fstrim.timer", "[Install]\nWantedBy=timers.target\n"),
        ("etc/systemd/system/timers.target.wants/apt-daily.timer", ""),
        ("sys/module/zswap/parameters/enabled", "Y\n"),
        ("sys/fs/cgroup/cgroup.controllers", "cpu io\n"),
        ("sys/block/nvme0n1/queue/discard_max_bytes", "1073741824\n"),
        ("proc/sys/kernel/random/boot_id", "first\n"),
        // A port that says Gen2, as it does until it is told more.
        ("sys/bus/pci/devices/0001:00:00.0/max_link_speed", "5.0 GT/s PCIe\n"),
        ("sys/bus/pci/devices/0001:00:00.0/current_link_speed", "5.0 GT/s PCIe\n"),
        ("sys/bus/pci/devices/0001:01:00.0/current_link_speed", "5.0 GT/s PCIe\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

/// Every file below it, and every link.
fn picture(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut all, mut open) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let says = if about.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if about.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap()
            };
            all.insert(path.strip_prefix(root).unwrap().to_owned(), says);
        }
    }
    all
}

/// Says which ones differ, not all that is in them.
#[track_caller]
fn assert_same(root: &Path, before: &BTreeMap<PathBuf, Vec<u8>>, why: &str) {
    let now = picture(root);
    let other = |path: &&PathBuf| now.get(*path) != before.get(*path);
    let differ: Vec<&PathBuf> = now.keys().chain(before.keys()).filter(other).collect();
    assert!(differ.is_empty(), "{differ:?} {why}");
}

#[track_caller]
fn assert_says(told: &Told, words: &[&str]) {
    assert!(words.iter().all(|word| told.out.contains(word)), "{words:?}: {told:#?}");
}

fn words(root: &Path, words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.replace("ROOT", root.to_str().unwrap())).collect()
}

#[test]
fn what_is_recommended_is_shown_applied_looked_at_and_taken_back() {
    let home = Home::new();
    let root = machine(&home, "pi5-nvme");
    let before = picture(&root);
    let run = |list: &[&str]| home.run(&words(&root, list));

    let shown = run(&["apply", "--for", "server", "--dry-run", "--root", "ROOT"]).code(0).out;
    for part in ["+++ /boot/firmware/cmdline.txt", "cgroup_enable=memory", "+dtparam=pciex1_gen=3", "fstrim.timer -> "]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(run(&["apply", "--root", "ROOT"]).code(2).sentence().contains("--yes"));
    assert!(run(&["apply", "nothing", "--root", "ROOT", "--yes"]).code(2).sentence().contains("tiermark rules"));
    assert_same(&root, &before, "nothing was asked for yet");

    let one = run(&["apply", "page-cluster", "--root", "ROOT", "--yes", "--json"]).code(0).json();
    has_keys(&one, "schema dry_run id rules files at_once refused then");
    assert_eq!((one["id"].as_str(), one["rules"][0]["rule"].as_str()), (Some("1"), Some("page-cluster")));
    assert_eq!(one["files"][0]["path"], "/etc/sysctl.d/99-tiermark-page-cluster.conf");
    assert_says(
        &run(&["apply", "--for", "server", "--root", "ROOT", "--yes"]).code(0),
        &["applied as 2", "tiermark revert 2"],
    );
    let again = run(&["apply", "--for", "server", "--root", "ROOT", "--yes"]).code(0).out;
    assert_eq!(again, "nothing to change\n");

    let status = run(&["status", "--root", "ROOT", "--json"]).code(0).json();
    assert_eq!(
        (status["applied"][1]["id"].as_str(), status["applied"][1]["state"].as_str()),
        (Some("2"), Some("waiting"))
    );
    // Started again, and the kernel did not take it.
    fs::write(root.join("proc/sys/kernel/random/boot_id"), "second\n").unwrap();
    let status = run(&["status", "--root", "ROOT", "--json"]).code(0).json();
    assert_eq!(status["applied"][1]["state"], "not-taken");
    fs::write(root.join("proc/sys/kernel/random/boot_id"), "first\n").unwrap();

    // Somebody else in the same line is told, and nothing is lost.
    let line = root.join("boot/firmware/cmdline.txt");
    let applied = fs::read_to_string(&line).unwrap();
    fs::write(&line, applied.replace("cgroup_enable=memory", "cgroup_enable=cpuset")).unwrap();
    let told = run(&["revert", "2", "--root", "ROOT", "--yes"]).code(1);
    assert!(told.sentence().contains("/boot/firmware/cmdline.txt"), "{told:?}");
    assert_says(&run(&["status", "--root", "ROOT"]).code(0), &["drifted"]);
    fs::write(&line, applied.replace(" rootwait", " rootwait splash")).unwrap();
    assert_says(&run(&["revert", "--all", "--root", "ROOT", "--yes"]).code(0), &["reverted 2", "reverted 1"]);
    fs::write(&line, fs::read_to_string(&line).unwrap().replace(" splash", "")).unwrap();
    assert_same(&root, &before, "");
    assert_eq!(run(&["revert", "--root", "ROOT", "--yes"]).code(0).out, "nothing is applied\n");
    assert!(run(&["revert", "7", "--root", "ROOT", "--yes"]).code(2).sentence().contains("7"));
    assert!(run(&["apply", "--root", "ROOT/none", "--yes"]).code(4).sentence().contains("none"));
    home.assert_clean(&home.work());
}

#[test]
fn a_full_or_closed_disk_and_a_second_one_at_work_leave_all_as_it_was() {
    const NAME: &str = "a_full_or_closed_disk_and_a_second_one_at_work_leave_all_as_it_was";
    if !possible(NAME, &[Need::Root]) {
        return;
    }
    let home = Home::new();
    let root = machine(&home, "pi5-nvme");
    let apply = ["apply", "--for", "server", "--root", "ROOT", "--yes"];
    // A boot partition with room for what is on it and for nothing more.
    let boot = root.join("boot/firmware");
    let files = ["cmdline.txt", "config.txt"].map(|name| (name, fs::read(boot.join(name)).unwrap()));
    {
        let _mounted = Undo(format!("umount {}", boot.display()));
        sh(&format!("mount -t tmpfs -o size=12k none {}", boot.display()));
        for (name, text) in &files {
            fs::write(boot.join(name), text).unwrap();
        }
        let before = picture(&root);
        let told = home.run(&words(&root, &apply)).code(4);
        assert!(told.sentence().contains("No space left"), "{told:?}");
        assert_same(&root, &before, &told.err);
        sh(&format!("mount -o remount,ro {}", boot.display()));
        let told = home.run(&words(&root, &apply)).code(4);
        assert!(told.sentence().contains("ead-only"), "{told:?}");
        assert_same(&root, &before, &told.err);
    }
    let before = picture(&root);
    let lock = fs::File::open(&root).unwrap();
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    let told = home.run(&words(&root, &apply)).code(4);
    assert!(told.sentence().contains("another tiermark"), "{told:?}");
    assert_same(&root, &before, "");
    drop(lock);
    home.assert_clean(&home.work());
}

/// All calls that change a file system.
const CALLS: [&str; 9] = ["rename", "renameat", "unlink", "unlinkat", "rmdir", "mkdir", "symlinkat", "fsync", "fchmod"];

#[test]
fn killed_at_any_system_call_the_next_command_leaves_it_as_before_or_as_wanted() {
    const NAME: &str = "killed_at_any_system_call_the_next_command_leaves_it_as_before_or_as_wanted";
    if !possible(NAME, &[Need::Tool("strace")]) {
        return;
    }
    let home = Home::new();
    let root = machine(&home, "pi5-nvme");
    let before = picture(&root);
    // The database is made before, so that its own calls are not counted.
    home.run(&["runs"]).code(0);
    let run = |list: &[&str]| home.run(&words(&root, list)).code(0);
    for what in ["apply", "revert"] {
        let (mut befores, mut wanteds) = (0, 0);
        // Each call is counted by itself; the list is gone through once it no longer comes so often.
        let (mut calls, mut when) = (CALLS.iter(), 0);
        let mut next = calls.next();
        while let Some(call) = next {
            when += 1;
            if what == "revert" && picture(&root) == before {
                run(&["apply", "--for", "server", "--root", "ROOT", "--yes"]);
            }
            let program = home.command(&words(&root, &[what, "--root", "ROOT", "--yes"]));
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
            command.args(["-e", &format!("inject={call}:signal=KILL:when={when}")]);
            command.arg(program.get_program()).args(program.get_args());
            command.args(if what == "apply" { &["--for", "server"][..] } else { &[] });
            for (name, value) in program.get_envs() {
                command.env(name, value.unwrap_or_default());
            }
            let ended = command.output().unwrap();
            let status = run(&["status", "--root", "ROOT", "--json"]).json();
            let applied = status["applied"].as_array().unwrap();
            let context = format!("{what} {call} {when}: {status}");
            if picture(&root) == before {
                befores += 1;
                assert!(applied.is_empty(), "{context}");
            } else {
                wanteds += 1;
                assert_eq!(applied.len(), 1, "{context}");
                let files = applied[0]["files"].as_array().unwrap();
                assert!(files.iter().all(|file| file["state"] == "as-applied"), "{context}");
                run(&["revert", "--root", "ROOT", "--yes"]);
                assert_same(&root, &before, &context);
            }
            assert_eq!(home.journal(), [""; 0], "{context}");
            if ended.status.code() == Some(0) {
                (next, when) = (calls.next(), 0);
                continue;
            }
            assert!(ended.status.signal().is_some(), "{context} {}", String::from_utf8_lossy(&ended.stderr));
        }
        println!("{what}: {befores} times as before, {wanteds} times as wanted");
        assert!(befores > 20 && wanteds > 0, "{what}: {befores}, {wanteds}");
    }
}

/// SELinux need not run for a label to be there: it is an attribute that root may set.
#[test]
fn labels_of_selinux_stay() {
    const NAME: &str = "labels_of_selinux_stay";
    const LABEL: &str = "security.selinux";
    if !possible(NAME, &[Need::Root]) {
        return;
    }
    let home = Home::new();
    let root = machine(&home, "pi5-nvme");
    let line = root.join("boot/firmware/cmdline.txt");
    let set = rustix::fs::setxattr(&line, LABEL, b"system_u:object_r:boot_t:s0\0", rustix::fs::XattrFlags::empty());
    if let Err(error) = set {
        println!("SKIP {NAME}: labels cannot be set here: {error}");
        return;
    }
    let label = || {
        let mut value = [0; 64];
        let length = rustix::fs::getxattr(&line, LABEL, &mut value).unwrap();
        String::from_utf8_lossy(&value[..length]).into_owned()
    };
    let before = (label(), fs::read(&line).unwrap());
    home.run(&words(&root, &["apply", "--for", "server", "--root", "ROOT", "--yes"])).code(0);
    assert_ne!(fs::read(&line).unwrap(), before.1);
    assert_eq!(label(), before.0);
    home.run(&words(&root, &["revert", "--all", "--root", "ROOT", "--yes"])).code(0);
    assert_eq!((label(), fs::read(&line).unwrap()), before);
}

/// What would keep the machine from starting is refused in a sentence, and nothing is written.
#[test]
fn what_would_not_start_is_refused_before_it_is_written() {
    let home = Home::new();
    let root = machine(&home, "pi5-nvme");
    fs::create_dir_all(root.join("dev/disk/by-partuuid")).unwrap();
    fs::write(root.join("dev/disk/by-partuuid/11111111-02"), "").unwrap();
    let before = picture(&root);
    let told = home.run(&words(&root, &["apply", "memory-cgroup", "--root", "ROOT", "--yes", "--for", "server"]));
    assert!(format!("{}{}", told.out, told.err).contains("no disk of this machine has that name"), "{told:#?}");
    assert_same(&root, &before, "it was refused");
    fs::write(root.join("dev/disk/by-partuuid/00000000-02"), "").unwrap();
    home.run(&words(&root, &["apply", "memory-cgroup", "--root", "ROOT", "--yes", "--for", "server"])).code(0);
    assert!(root.join("boot/firmware/cmdline.txt.before-tiermark").exists());
    home.run(&words(&root, &["revert", "--all", "--root", "ROOT", "--yes"])).code(0);
}
