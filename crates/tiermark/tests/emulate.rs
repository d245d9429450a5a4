//! Emulated disks as other programs use them: file systems, swap, raw reads; their power is cut, their emulator killed.
//! Needs root, FUSE and loop devices; says what it skips and why. Whatever a test makes is found by its home's name and
//! removed, also when it fails.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Place, QUICK, Undo, emulation, full, has_keys, in_kib, patiently, sh, write_durably};
use rustix::process::{Signal, kill_process};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Duration;

#[test]
fn a_disk_from_start_to_stop() {
    if !emulation("a_disk_from_start_to_stop", &["mkfs.ext4"]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "64MiB", "--name", "one"]);
    has_keys(&disk.about, "schema name device size_B floor_us");
    assert_eq!(disk.about["size_B"], 64 << 20);
    let floor = disk.about["floor_us"].as_f64().unwrap();
    assert!((1.0..5000.0).contains(&floor), "{floor}");
    assert!(place.home.run(&["emulate", "./quick.toml", "--name", "one"]).code(2).err.contains("runs already"));
    disk.mkfs();
    let (at, mounted) = disk.mount();
    write_durably(&at.join("letter"), 7, 100_000);
    let listed = place.home.json(&["emulate", "list"]);
    assert_eq!(listed["disks"][0]["name"], "one");
    place.home.run(&["emulate", "stop", "one"]).code(3).says(&["is mounted at", at.to_str().unwrap(), "unmount"]);
    assert_eq!(std::fs::read(at.join("letter")).unwrap(), vec![7; 100_000]);
    drop(mounted);
    let figures = disk.figures();
    assert!(figures["writes"].as_u64() > Some(0) && figures["flushes"].as_u64() > Some(0), "{figures}");
    disk.stop();
    place.assert_clean();
}

#[test]
fn what_is_trimmed_is_given_back_and_a_file_is_made_anew() {
    if !emulation("what_is_trimmed_is_given_back_and_a_file_is_made_anew", &["blkdiscard"]) {
        return;
    }
    let place = Place::new();
    let image = place.home.work().join("disk.img");
    let disk = place.start(&["--size", "64MiB", "--backing", image.to_str().unwrap(), "--sector", "4096"]);
    assert_eq!(sh(&format!("blockdev --getss {}", disk.device)), "4096");
    let twice = ["emulate", "./quick.toml", "--backing", image.to_str().unwrap()];
    place.home.run(&twice).code(3).says(&["disk.img", "exists"]);
    let file = disk.open();
    file.write_all_at(&vec![5; 8 << 20], 4 << 20).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(disk.figure("taken_B") >= 8 << 20);
    assert_eq!(disk.read_direct(5 << 20).unwrap(), [5; 4096]);
    sh(&format!("blkdiscard {}", disk.device));
    assert_eq!(disk.read_direct(5 << 20).unwrap(), [0; 4096]);
    assert!(std::fs::metadata(&image).unwrap().blocks() < 100 && disk.figure("trims") > 0);
    disk.stop();
    assert!(!image.exists());
    place.assert_clean();
}

#[test]
fn memory_of_what_is_trimmed_goes_back_to_the_machine() {
    if !emulation("memory_of_what_is_trimmed_goes_back_to_the_machine", &["blkdiscard"]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "64MiB"]);
    let file = disk.open();
    file.write_all_at(&vec![5; 16 << 20], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let before = (disk.figure("taken_B"), in_kib(disk.id(), "VmRSS"));
    sh(&format!("blkdiscard --offset 9M --length 2M {}", disk.device));
    let after = (disk.figure("taken_B"), in_kib(disk.id(), "VmRSS"));
    assert_eq!(before.0 - after.0, 2 << 20);
    // Locked, as it is where it may be: since Linux 5.18. The kernel counts by some dozen pages for each thread.
    assert!(after.1 + 1024 < before.1, "{before:?} {after:?}");
    let read = [8 << 20, 10 << 20, 11 << 20].map(|at| disk.read_direct(at).unwrap()[4095]);
    assert_eq!(read, [5, 0, 5]);
    disk.stop();
    place.assert_clean();
}

#[test]
fn errors_surface_and_go() {
    if !emulation("errors_surface_and_go", &[]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "16MiB", "--fault", "eio:on=read,range=1MiB-2MiB"]);
    assert!(disk.read_direct(0).is_ok() && disk.read_direct(1 << 20).is_err());
    disk.fault("clear");
    assert!(disk.read_direct(1 << 20).is_ok());
    disk.fault("disconnect");
    assert!(disk.read_direct(0).is_err());
    assert_eq!(disk.figures()["online"], false);
    disk.fault("return");
    assert!(disk.read_direct(0).is_ok());
    disk.fault("wrap:size=1MiB");
    disk.open().write_all_at(&[9; 4096], 0).unwrap();
    sh(&format!("sync {}", disk.device));
    assert_eq!(disk.read_direct(5 << 20).unwrap(), [9; 4096]);
    let wrong = place.home.run(&["emulate", "fault", &disk.name, "eoi"]).code(2);
    wrong.says(&["eoi", "eio, enospc, corrupt"]);
    disk.stop();
    place.assert_clean();
}

#[test]
fn a_power_cut_keeps_what_was_fsynced() {
    if !emulation("a_power_cut_keeps_what_was_fsynced", &["mkfs.ext4", "e2fsck"]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "64MiB"]);
    disk.mkfs();
    for seed in 1..=3 {
        let (at, mounted) = disk.mount();
        for i in 0..10 {
            write_durably(&at.join(format!("kept-{seed}-{i}")), seed, 20_000);
            let under_way = at.join(format!("lost-{seed}-{i}"));
            sh(&format!("dd if=/dev/zero of={} bs=16k count=4 oflag=direct status=none", under_way.display()));
        }
        disk.fault(&format!("power-cut:seed={seed}"));
        drop(mounted);
        patiently("it is there again", || disk.figures()["online"] == true);
        let (at, mounted) = disk.mount();
        for i in 0..10 {
            assert_eq!(std::fs::read(at.join(format!("kept-{seed}-{i}"))).unwrap(), vec![seed; 20_000], "seed {seed}");
        }
        drop(mounted);
        sh(&format!("e2fsck -fn {}", disk.device));
    }
    assert!(disk.figure("sectors_lost") > 0);
    disk.stop();
    place.assert_clean();
}

#[test]
fn a_killed_emulator_is_cleared() {
    if !emulation("a_killed_emulator_is_cleared", &["mkfs.ext4"]) {
        return;
    }
    let place = Place::new();
    let image = place.home.work().join("disk.img");
    let disk = place.start(&["--size", "32MiB", "--backing", image.to_str().unwrap()]);
    disk.kill();
    assert_eq!(place.loops(), [disk.device.as_str()]);
    let told = place.home.run(&["tiers"]).code(0);
    assert!(told.err.contains("was detached") && told.err.contains("was unmounted"), "{told:?}");
    place.assert_clean();
    assert!(!image.exists());

    // What somebody has mounted is left alone, and cleared when it is free.
    let disk = place.start(&["--size", "32MiB"]);
    disk.mkfs();
    let (at, mounted) = disk.mount();
    disk.kill();
    let told = place.home.run(&["runs"]).code(0);
    assert_eq!(place.loops(), [disk.device.as_str()], "{told:?}");
    assert!(sh("cat /proc/self/mounts").contains(at.to_str().unwrap()));
    drop(mounted);
    place.home.run(&["runs"]).code(0);
    place.assert_clean();
}

#[test]
fn swap_on_it_keeps_it_from_stopping() {
    if !emulation("swap_on_it_keeps_it_from_stopping", &["mkswap", "swapon"]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "256MiB"]);
    sh(&format!("mkswap {0} && swapon -p 32000 {0}", disk.device));
    let off = Undo(format!("swapoff {}", disk.device));
    place.home.run(&["emulate", "stop", &disk.name]).code(3).says(&["in use as swap", "swapoff"]);
    drop(off);
    disk.stop();
    place.assert_clean();
}

/// With `TIERMARK_TEST_FULL` a minute for each disk instead of five seconds:
/// `TIERMARK_TEST_FULL=1 cargo test -p tiermark --test emulate memory -- --nocapture`.
#[test]
fn its_memory_is_bounded() {
    if !emulation("its_memory_is_bounded", &["fio"]) {
        return;
    }
    let place = Place::new();
    let cache = 32 << 20;
    let cached = format!("{QUICK}[cache]\nsize = {cache}\ndrain_MBps = 400\n");
    std::fs::write(place.home.path().join("cached.toml"), cached).unwrap();
    let image = place.home.work().join("disk.img");
    // The file holds the bytes of the second one: all that it takes of memory is cache and room to work in.
    let in_a_file = ["--size", "128MiB", "--backing", image.to_str().unwrap()];
    for (profile, args, cache) in [("./quick.toml", &in_a_file[..2], 0), ("./cached.toml", &in_a_file[..], cache)] {
        let disk = place.start_as(profile, args);
        let job =
            "--rw=randrw --bsrange=4k-1M --ioengine=libaio --direct=1 --iodepth=16 --numjobs=16 --thread --size=128MiB";
        let time = format!("--time_based --runtime={} --group_reporting", if full() { 60 } else { 5 });
        sh(&format!("fio --name=x --filename={} {job} {time}", disk.device));
        let (peak, figures) = (in_kib(disk.id(), "VmHWM") << 10, disk.figures());
        let backing = if args.len() == 2 { figures["taken_B"].as_u64().unwrap() } else { 0 };
        let (mb, most) = (|bytes: u64| bytes as f64 / 1e6, backing + cache + 64_000_000);
        let requests = figures["reads"].as_u64().unwrap() + figures["writes"].as_u64().unwrap();
        println!("{profile}: {requests} requests, peak {:.1} MB of {:.1} MB", mb(peak), mb(most));
        assert!(peak < most, "{profile}: {peak} bytes, backing {backing}, cache {cache}");
        disk.stop();
    }
    place.assert_clean();
}

#[test]
fn a_disk_that_hangs_does_not_hold_up_another() {
    if !emulation("a_disk_that_hangs_does_not_hold_up_another", &[]) {
        return;
    }
    let place = Place::new();
    let hangs = place.start(&["--size", "16MiB", "--name", "hangs"]);
    let _other = place.start(&["--size", "16MiB", "--name", "other"]);
    kill_process(hangs.pid(), Signal::STOP).unwrap();
    let told = place.home.run(&["emulate", "stop", "other"]);
    kill_process(hangs.pid(), Signal::CONT).unwrap();
    told.code(0);
    assert_eq!(place.loops(), [hangs.device.as_str()]);
    hangs.stop();
    place.assert_clean();
}

#[test]
fn a_signal_ends_it_cleanly_unless_it_is_used() {
    if !emulation("a_signal_ends_it_cleanly_unless_it_is_used", &["mkswap", "swapon"]) {
        return;
    }
    let place = Place::new();
    let disk = place.start(&["--size", "16MiB"]);
    sh(&format!("mkswap {0} && swapon {0}", disk.device));
    let off = Undo(format!("swapoff {}", disk.device));
    kill_process(disk.pid(), Signal::TERM).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(disk.figures()["online"], true);
    drop(off);
    kill_process(disk.pid(), Signal::INT).unwrap();
    let folder = place.home.path().join("data/tiermark/emulate");
    patiently("it is gone", || std::fs::read_dir(&folder).unwrap().count() == 0);
    patiently("the journal is empty", || place.home.journal().is_empty());
    place.assert_clean();
}

#[test]
fn what_cannot_be_is_said_in_one_sentence() {
    let home = Home::new();
    std::fs::write(home.path().join("quick.toml"), QUICK).unwrap();
    let quick = "./quick.toml";
    assert!(home.run(&["emulate", "no-such-disk"]).code(2).sentence().contains("tiermark profiles"));
    home.run(&["emulate", quick, "--fault", "eio:p=7"]).code(2).says(&["eio:p=7", "between 0 and 1"]);
    home.run(&["emulate", quick, "--size", "4 apples"]).code(2).says(&["4 apples"]);
    home.run(&["emulate", quick, "--size", "4k"]).code(2).says(&["too small"]);
    home.run(&["emulate", quick, "--backing", quick]).code(3).says(&["quick.toml", "exists"]);
    home.run(&["emulate", "stop", "nobody"]).code(2).says(&["nobody", "emulate list"]);
    let asked = r#"{ "what": "write", "region_B": 4096, "len_B": 4096, "depth": 1, "time_ms": 1 }"#;
    home.run(&["emulate", "ask", asked]).code(3).says(&["emulated disks alone"]);
    home.run(&["emulate", "ask", "{}"]).code(2).says(&["what"]);
    assert!(home.run(&["emulate", "list"]).code(0).out.contains("no emulated disk runs"));
    let mut home = Home::new();
    home.as_an_ordinary_user();
    home.run(&["emulate", "sd-evo-pi5"]).code(4).says(&["root"]);
    home.run(&["emulate", "sd-evo-pi5", "--detach"]).code(4).says(&["root"]);
}
