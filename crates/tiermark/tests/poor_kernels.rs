//! Kernels that are old or forbid something: each thing that a board may lack is taken away from the program alone (a call that fails,
//! a mount of its own over a folder), and it does what is left and says in a sentence what is lost. Processors and pages of other
//! sizes are in `boards.rs`.
#![forbid(unsafe_code)]

mod common;

use common::machine::alone;
use common::{Home, Need, Told, finish, holds, possible, sh};

/// The program, with its call to `io_uring_setup` failing as told.
fn without_ring(home: &Home, fails: &str, more: &[&str]) -> Told {
    let work = home.work();
    let job = ["run", "job", "--on", work.to_str().unwrap(), "--set", "size=16M", "--set", "bytes=4M"];
    let words = [&job[..], &["--set", "rw=randread", "--set", "depth=4"], more].concat();
    let inject = format!("inject=io_uring_setup:{fails}");
    let traced = ["strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=io_uring_setup", "-e", &inject];
    finish(home.start_through(&traced, &words))
}

#[track_caller]
fn tells(told: &Told, words: &[&str]) {
    holds(&format!("{} {}", told.out, told.err), words);
}

/// The program, with something mounted where only it sees it.
fn where_mounted(home: &Home, mounts: &str, words: &[&str]) -> Told {
    let script = format!("{mounts} && exec \"$@\"");
    finish(home.start_through(&["unshare", "-m", "sh", "-ec", &script, "sh"], words))
}

fn can(test: &str) -> bool {
    possible(test, &[Need::Root, Need::Tool("unshare")])
}

#[test]
fn io_uring_that_is_forbidden_or_not_there() {
    if !possible("io_uring_that_is_forbidden_or_not_there", &[Need::Tool("strace")]) {
        return;
    }
    let home = Home::new();
    for (fails, why) in [("error=EPERM", "Operation not permitted"), ("error=ENOSYS", "Function not implemented")] {
        let told = without_ring(&home, fails, &[]).code(0);
        tells(&told, &["psync", "io_uring cannot be used here", why, "one operation in flight"]);
        // Who asks for it by name is told, and nothing else is measured in its place.
        let told = without_ring(&home, fails, &["--set", "engine=io_uring"]).code(4);
        tells(&told, &["io_uring cannot be used here", why, "engine=auto"]);
    }
}

/// 5.10 knows neither of the later ways to set it up, and refuses what it does not know.
#[test]
fn io_uring_of_an_old_kernel() {
    if !possible("io_uring_of_an_old_kernel", &[Need::Tool("strace")]) {
        return;
    }
    let home = Home::new();
    // Four ways are tried, each without one thing more.
    let told = without_ring(&home, "error=EINVAL:when=1..3", &["--set", "engine=io_uring"]).code(0);
    tells(&told, &["io_uring", "without NO_SQARRAY", "DEFER_TASKRUN", "it came with Linux"]);
}

#[test]
fn no_account_of_waiting() {
    let _alone = alone();
    if !can("no_account_of_waiting") {
        return;
    }
    let home = Home::new();
    let no_pressure =
        "mount -t tmpfs none /proc/pressure && if [ -d /sys/fs/cgroup ]; then mount -t tmpfs none /sys/fs/cgroup; fi";
    let words = ["load", "swap", "--size", "32M", "--lock", "16M", "--swap", "none", "--runtime", "1s"];
    let told = where_mounted(&home, no_pressure, &words).code(0);
    tells(&told, &["PSI is off: psi=1", "RAM and swap alone"]);
    let watched = where_mounted(&home, no_pressure, &["watch", "--count", "1"]).code(0);
    assert!(watched.out.contains("free") && !watched.out.contains("stalled for memory"), "{}", watched.out);
}

#[test]
fn no_memory_cgroup() {
    let _alone = alone();
    if !can("no_memory_cgroup") {
        return;
    }
    let home = Home::new();
    let words = ["load", "swap", "--size", "64M", "--memory", "40M", "--swap", "none", "--runtime", "1s"];
    let told = where_mounted(&home, "umount -l /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup", &words);
    tells(&told, &["no memory controller", "cgroup_enable=memory", "--lock"]);
    assert_ne!(told.status.code(), Some(0));
}

/// Of a card the bus mode stands there alone.
#[test]
fn no_debugfs() {
    let home = Home::new();
    let tree = home.path().join("tree");
    sh(&format!("cp -r {}/../machine/tests/trees/pi4 {}", env!("CARGO_MANIFEST_DIR"), tree.display()));
    let words = ["tiers", "--root", tree.to_str().unwrap()];
    let told = home.run(&words).code(0);
    assert!(told.out.contains("SD DDR50") && !told.out.contains("debugfs"), "{}", told.out);
    std::fs::remove_dir_all(tree.join("sys/kernel/debug")).unwrap();
    tells(&home.run(&words).code(0), &["bus mode of mmcblk0", "debugfs", "not mounted", "mount -t debugfs"]);
}

/// A load of Redis goes on, and says why its slowest requests have no cause.
#[test]
fn no_tracefs() {
    let test = "no_tracefs";
    let tools = [Need::Root, Need::Tool("unshare"), Need::Tool("strace"), Need::Tool("redis-server")];
    if !tools.into_iter().all(|tool| possible(test, &[tool])) {
        return;
    }
    let home = Home::new();
    let hidden = "for at in /sys/kernel/debug /sys/kernel/tracing; do [ ! -d $at ] || mount -t tmpfs none $at; done";
    let script = format!("{hidden}; exec \"$@\"");
    // It mounts tracefs for itself where nobody has; a kernel without it refuses that.
    let lacks = [
        "strace",
        "-qq",
        "-f",
        "--seccomp-bpf",
        "-o",
        "/dev/null",
        "-e",
        "trace=fsopen",
        "-e",
        "inject=fsopen:error=ENODEV",
    ];
    let starter = [&["unshare", "-m", "sh", "-ec", &script, "sh"][..], &lacks].concat();
    let work = home.work();
    let mut words = vec!["load", "redis", "--on", work.to_str().unwrap(), "--rate", "500", "--runtime", "1s"];
    words.extend(["--repeat", "1", "--threads", "1", "--link", "unix"]);
    let told = finish(home.start_through(&starter, &words)).code(0);
    tells(&told, &["tracepoints (tracefs) cannot be looked at", "No such device"]);
}

#[test]
fn a_sysfs_that_cannot_be_written() {
    let _alone = alone();
    if !can("a_sysfs_that_cannot_be_written") {
        return;
    }
    let home = Home::new();
    let only_read = "mount --bind /sys /sys && mount -o remount,bind,ro /sys";
    where_mounted(&home, only_read, &["tiers"]).code(0);
    let words = ["load", "swap", "--size", "32M", "--lock", "16M", "--swap", "zram", "--runtime", "1s"];
    let told = where_mounted(&home, only_read, &words);
    tells(&told, &["zram", "Read-only file system"]);
    assert_ne!(told.status.code(), Some(0));
    assert_eq!(home.journal(), Vec::<String>::new(), "nothing was made that could not be taken away");
}
