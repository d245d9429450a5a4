//! A disk that fills up, goes away, goes read-only or shrinks in mid-run: one clear sentence, exit status 1 or 4, the
//! partial record kept, nothing left behind.
#![forbid(unsafe_code)]

mod common;

use common::Need::{Loops, Root, Tool};
use common::{Disk, Home, Told, Undo, filled, finish, job, possible, sh};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Whatever was measured before the trouble is kept, and the run is listed as failed, with the sentence.
fn kept(home: &Home, told: &Told, side: &str) {
    let shown = home.json(&["show", "last"]);
    assert_eq!(shown["state"], "failed", "{shown}");
    assert!(told.sentence().contains(shown["why"].as_str().unwrap()), "{told:?}");
    let step = &shown["steps"][0];
    assert_eq!(step["state"], "failed");
    assert!(step[side]["ops"].as_u64() > Some(0), "{step}");
    let record = home.last();
    assert!(!record.intervals.is_empty());
    let operations: u64 = record.intervals.iter().map(|(_, i)| i.read.operations() + i.write.operations()).sum();
    assert_eq!(step[side]["ops"].as_u64(), Some(operations), "the intervals are the step's operations");
}

/// Waits until the run of this home has spooled some intervals.
fn measuring(home: &Home, running: &mut common::Running) {
    running.until("it measures", || {
        let store = record::Store::open_for_reading(&home.database()).ok();
        let run = store.and_then(|store| store.find("last").ok());
        let spooled =
            |run: &String| home.spools(run).iter().filter_map(|path| path.metadata().ok()).map(|m| m.len()).sum();
        run.as_ref().map_or(0u64, spooled) > 4096
    });
}

#[test]
fn a_disk_full_in_mid_run() {
    if !possible("a_disk_full_in_mid_run", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    for engine in ["engine=psync", "engine=io_uring"] {
        let (home, disk) = (Home::new(), Disk::promising(256, 48));
        disk.mkfs();
        let mount = disk.mount(&disk.device, "");
        // 51 MB/s, so that the disk gives out after about a second.
        let settings = ["rw=write", "bs=256k", "size=128MiB", "rate=200", "depth=2", "runtime=30s", engine];
        let told = home.run(&job(&settings, disk.mount_point())).code(1);
        told.says(&["writing at", "kept"]);
        kept(&home, &told, "write");
        home.assert_clean(&disk.mount_point());
        drop(mount);
    }
}

#[test]
fn a_disk_full_while_the_test_file_is_written() {
    if !possible("a_disk_full_while_the_test_file_is_written", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::promising(256, 32));
    disk.mkfs();
    let _mount = disk.mount(&disk.device, "");
    let told = home.run(&job(&["rw=randread", "size=128MiB", "runtime=1s"], disk.mount_point())).code(1);
    told.says(&["writing at"]);
    assert_eq!(home.json(&["runs"])["runs"][0]["state"], "failed");
    home.assert_clean(&disk.mount_point());
}

#[test]
fn a_file_system_without_room() {
    if !possible("a_file_system_without_room", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(64));
    disk.mkfs();
    let _mount = disk.mount(&disk.device, "");
    home.run(&job(&["rw=write", "size=60MiB"], disk.mount_point())).code(4).says(&["60 MiB", "mnt"]);
    home.assert_clean(&disk.mount_point());
}

#[test]
fn a_device_gone_in_mid_run() {
    if !possible("a_device_gone_in_mid_run", &[Root, Loops, Tool("xfs_io"), Tool("mkfs.ext4")]) {
        return;
    }
    for (fs, engine) in [("ext4", "engine=psync"), ("ext4", "engine=io_uring"), ("xfs", "engine=io_uring")] {
        if fs == "xfs" && !possible("a_device_gone_in_mid_run (xfs)", &[Tool("mkfs.xfs")]) {
            continue;
        }
        let (home, disk) = (Home::new(), Disk::new(512));
        if fs == "xfs" {
            sh(&format!("mkfs.xfs -q {}", disk.name()));
        } else {
            disk.mkfs();
        }
        let mount = disk.mount(&disk.device, "");
        let words = job(&["rw=randread", "size=16MiB", "depth=4", "runtime=60s", engine], disk.mount_point());
        let mut running = home.start(&words);
        measuring(&home, &mut running);
        sh(&format!("xfs_io -x -c shutdown {}", disk.mount_point().display()));
        let told = finish(running);
        assert!(matches!(told.status.code(), Some(1 | 4)), "{told:?}");
        let first = told.err.lines().next().unwrap_or_default();
        assert!(first.contains("reading at") && first.contains("gone") && first.contains("kept"), "{fs}: {told:?}");
        assert!(!told.err.contains("panicked"), "{told:?}");
        let shown = home.run(&["show", "last", "--json"]).code(0).json();
        assert_eq!(shown["state"], "failed");
        assert!(shown["steps"][0]["read"]["ops"].as_u64() > Some(0), "{shown}");
        assert!(!home.last().intervals.is_empty());
        // Nothing can be removed on a file system that is shut down; once it is back, the next start does it.
        drop(mount);
        let _mount = disk.mount(&disk.device, "");
        home.run(&["runs"]).code(0);
        home.assert_clean(&disk.mount_point());
    }
}

#[test]
fn a_read_only_mount() {
    if !possible("a_read_only_mount", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(64));
    disk.mkfs();
    let _mount = disk.mount(&disk.device, "-o ro");
    let told = home.run(&job(&["rw=randread", "size=8MiB"], disk.mount_point())).code(4);
    told.says(&["mnt", "read-only"]);
    assert_eq!(home.journal(), [""; 0]);
    assert_eq!(home.json(&["runs"])["runs"].as_array().unwrap().len(), 0, "it was refused before there was a run");
}

#[test]
fn a_directory_that_may_not_be_written() {
    let mut home = Home::new();
    fs::set_permissions(home.work(), fs::Permissions::from_mode(0o555)).unwrap();
    home.as_an_ordinary_user();
    home.run(&job(&["rw=randread", "size=8MiB"], home.work())).code(4).says(&["may not write", "work"]);
    home.assert_clean(&home.work());
    fs::set_permissions(home.work(), fs::Permissions::from_mode(0o755)).unwrap();
}

/// The directory cannot even be looked into: the entry for the file that never was must not stand for ever.
#[test]
fn a_directory_that_may_not_be_looked_into_leaves_no_journal_entry() {
    let name = "a_directory_that_may_not_be_looked_into_leaves_no_journal_entry";
    if !possible(name, &[Root, Tool("setpriv")]) {
        return;
    }
    let mut home = Home::new();
    home.as_an_ordinary_user();
    sh(&format!("chmod 700 {}", home.work().display()));
    let told = home.run(&job(&["rw=read", "runtime=1s", "size=16M"], home.work())).code(4);
    assert!(told.err.contains("may not write in"), "{told:?}");
    assert_eq!(home.journal(), [""; 0]);
    assert_eq!(home.run(&["runs"]).code(0).err, "");
}

/// What a killed run left where this user can no longer look is told by what measures, once, and not by what reads.
#[test]
fn what_waits_for_rights_is_told_once_and_by_no_reader() {
    let name = "what_waits_for_rights_is_told_once_and_by_no_reader";
    if !possible(name, &[Root, Tool("setpriv")]) {
        return;
    }
    let mut home = Home::new();
    home.as_an_ordinary_user();
    sh(&format!("chown 65534:65534 {}", home.work().display()));
    let words = job(&["rw=write", "bs=64k", "runtime=60s", "size=16M"], home.work());
    let mut running = home.start(&words);
    running.until("its file exists", || !home.left_in(&home.work()).is_empty());
    running.child().kill().unwrap();
    running.child().wait().unwrap();
    sh(&format!("chown 0:0 {0}; chmod 700 {0}", home.work().display()));
    drop(home.run(&["runs"]).code(0));
    assert_eq!(home.run(&["runs"]).code(0).err, "");
    let measured = home.run(&job(&["rw=randread", "runtime=1s"], "null")).code(0);
    assert_eq!(measured.err.matches("left over from run").count(), 1, "{measured:?}");
    assert!(measured.err.contains("rights"), "{measured:?}");
    sh(&format!("chown 65534:65534 {}", home.work().display()));
    assert!(home.run(&["runs"]).code(0).err.contains("was removed"));
    home.assert_clean(&home.work());
}

#[test]
fn a_device_that_may_not_be_read() {
    let mut home = Home::new();
    let disks = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let Some(disk) = disks.map(|disk| format!("/dev/{disk}")).find(|disk| fs::metadata(disk).is_ok()) else {
        println!("SKIP a_device_that_may_not_be_read: there is no block device");
        return;
    };
    home.as_an_ordinary_user();
    home.run(&job(&["rw=randread", "runtime=100ms"], &disk)).code(4).says(&[&disk, "root"]);
}

#[test]
fn a_file_truncated_in_mid_run() {
    for engine in ["psync", "io_uring"] {
        let home = Home::new();
        let file = filled(&home.work().join("film"), 16);
        let settings = ["rw=randread", "runtime=60s", "depth=2", &format!("engine={engine}")];
        let mut running = home.start(&job(&settings, &file));
        measuring(&home, &mut running);
        fs::File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
        let told = finish(running).code(1);
        told.says(&["reading at", "film"]);
        kept(&home, &told, "read");
        home.assert_clean(&home.work());
    }
}

/// A mapping of a file that shrank answers with SIGBUS, which must not end in a wrecked terminal and a lost run.
#[test]
fn a_mapped_file_truncated_in_mid_run() {
    let home = Home::new();
    let file = filled(&home.work().join("film"), 16);
    let settings = ["rw=randread", "runtime=60s", "direct=false", "engine=mmap"];
    let mut running = home.start(&job(&settings, &file));
    measuring(&home, &mut running);
    fs::File::options().write(true).open(&file).unwrap().set_len(4096).unwrap();
    let told = finish(running);
    assert!(!told.status.success(), "{told:?}");
    let runs = home.run(&["runs", "--json"]).code(0).json();
    assert!(runs["runs"][0]["state"] == "failed" || runs["runs"][0]["state"] == "interrupted", "{runs}");
    assert!(!home.last().intervals.is_empty());
    home.assert_clean(&home.work());
}

#[test]
fn the_databases_own_disk_full_in_mid_run() {
    if !possible("the_databases_own_disk_full_in_mid_run", &[Root]) {
        return;
    }
    let home = Home::new();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    sh(&format!("mount -t tmpfs -o size=2m none {}", data.display()));
    let _mount = Undo(format!("umount {}", data.display()));
    let mut running = home.start(&job(&["rw=randread", "size=8MiB", "runtime=2s", "interval=20ms"], home.work()));
    measuring(&home, &mut running);
    let filler = data.join("filler");
    // Ends with "no space left", as it should.
    let _ = sh(&format!("dd if=/dev/zero of={} bs=4k 2>/dev/null; sync", filler.display()));
    let told = finish(running).code(4);
    told.says(&["full", "tiermark.db"]);
    assert_eq!(home.left_in(&home.work()), [""; 0]);
    fs::remove_file(&filler).unwrap();
    let runs = home.run(&["runs", "--json"]).code(0).json();
    assert_eq!(runs["runs"][0]["state"], "interrupted");
    assert!(home.last().intervals.len() > 10, "{} intervals", home.last().intervals.len());
    home.assert_clean(&home.work());
}

#[test]
fn a_full_disk_below_the_database_at_the_start() {
    if !possible("a_full_disk_below_the_database_at_the_start", &[Root]) {
        return;
    }
    let home = Home::new();
    let data = home.path().join("data");
    fs::create_dir(&data).unwrap();
    sh(&format!("mount -t tmpfs -o size=64k none {}", data.display()));
    let _mount = Undo(format!("umount {}", data.display()));
    let _ = sh(&format!("dd if=/dev/zero of={}/filler bs=4k 2>/dev/null; sync", data.display()));
    home.run(&job(&["rw=randread", "size=8MiB", "runtime=1s"], home.work())).code(4).sentence();
    assert_eq!(home.left_in(&home.work()), [""; 0]);
}
