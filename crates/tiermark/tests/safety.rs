//! Nothing of value is ever written over, by the program itself: whatever the disk's use and whatever is typed, exit status
//! 3, one sentence, every byte unchanged. And what may be written is written.
#![forbid(unsafe_code)]

mod common;

use common::Need::{Loops, Root, Tool};
use common::{Disk, Home, Told, Undo, attach, filled, job, patiently, possible, sh};
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const WRITE: [&str; 4] = ["rw=write", "bs=64k", "runtime=1s", "bytes=1M"];

/// A write job on a device.
fn write(home: &Home, device: &Path, destroy: Option<&str>) -> Told {
    let mut words = job(&WRITE, device);
    words.extend(destroy.into_iter().flat_map(|name| ["--destroy".to_owned(), name.to_owned()]));
    home.run(&words)
}

/// Neither bare, nor with its own full name, nor with another's; no byte of the disk changes and no run is listed.
fn refused(home: &Home, disk: &Disk, device: &Path) -> String {
    let before = disk.bytes();
    let mut sentences = Vec::new();
    for destroy in [None, device.to_str(), Some("/dev/null")] {
        let told = write(home, device, destroy).code(3);
        assert_eq!(told.out, "");
        sentences.push(told.sentence().to_owned());
    }
    assert!(disk.bytes() == before, "bytes of {} changed", device.display());
    assert_eq!(home.json(&["runs"])["runs"], serde_json::json!([]));
    assert!(sentences.iter().all(|other| *other == sentences[0]), "use comes before everything else: {sentences:?}");
    sentences.swap_remove(0)
}

fn written(home: &Home, disk: &Disk, device: &Path) {
    let before = disk.bytes();
    let told = write(home, device, device.to_str()).code(0);
    assert_eq!(told.err, "");
    assert!(disk.bytes() != before, "{} was not written", device.display());
}

#[test]
fn a_mounted_device_is_refused() {
    if !possible("a_mounted_device_is_refused", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(32));
    disk.mkfs();
    let mount = disk.mount(&disk.device, "");
    let sentence = refused(&home, &disk, &disk.device);
    assert!(sentence.contains(disk.name()) && sentence.contains("mounted"), "{sentence}");
    let mut words = job(&WRITE, &disk.device);
    words.extend(["--destroy", disk.name(), "--dry-run"].map(str::to_owned));
    let planned = home.run(&words).code(3);
    assert_eq!((planned.sentence(), planned.out.as_str()), (sentence.as_str(), ""), "a plan is refused as its run is");
    drop(mount);
    written(&home, &disk, &disk.device);
}

#[test]
fn a_device_mounted_in_another_mount_namespace_is_refused() {
    let name = "a_device_mounted_in_another_mount_namespace_is_refused";
    if !possible(name, &[Root, Loops, Tool("mkfs.ext4"), Tool("unshare")]) {
        return;
    }
    struct Ended(Child);
    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let (home, disk) = (Home::new(), Disk::new(32));
    disk.mkfs();
    std::fs::create_dir(disk.mount_point()).unwrap();
    let script = format!("mount {} {} && echo ready && exec sleep 300", disk.name(), disk.mount_point().display());
    let mut unshare = Command::new("unshare");
    let mut other = Ended(unshare.args(["--mount", "sh", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = [0; 6];
    std::io::Read::read_exact(other.0.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let here = sh("cat /proc/self/mounts").contains(&format!("{} ", disk.name()));
    assert!(!here, "the mount is visible here: the test shows nothing");
    let sentence = refused(&home, &disk, &disk.device);
    assert!(sentence.contains("mounted"), "{sentence}");
    drop(other);
    // The kernel takes the namespace down after its last process is gone.
    let claim = OFlags::EXCL.bits() as i32;
    patiently("it is unmounted there", || File::options().read(true).custom_flags(claim).open(&disk.device).is_ok());
    written(&home, &disk, &disk.device);
}

#[test]
fn swap_in_use_is_refused() {
    if !possible("swap_in_use_is_refused", &[Root, Loops, Tool("mkswap"), Tool("swapon")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(32));
    sh(&format!("mkswap {0} && swapon {0}", disk.name()));
    let off = Undo(format!("swapoff {}", disk.name()));
    let sentence = refused(&home, &disk, &disk.device);
    assert!(sentence.contains("swap"), "{sentence}");
    drop(off);
    written(&home, &disk, &disk.device);
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused_and_its_other_partition_is_not() {
    let name = "a_disk_with_a_mounted_partition_is_refused_and_its_other_partition_is_not";
    if !possible(name, &[Root, Loops, Tool("mkfs.ext4"), Tool("sfdisk"), Tool("partx")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(48));
    let (first, second) = disk.partition();
    disk.mkfs_on(&first);
    let _mount = disk.mount(&first, "");
    let sentence = refused(&home, &disk, &disk.device);
    assert!(sentence.contains(&format!("{} is mounted", first.display())), "{sentence}");
    refused(&home, &disk, &first);
    written(&home, &disk, &second);
}

#[test]
fn a_partition_table_is_named_before_it_is_written_over() {
    let name = "a_partition_table_is_named_before_it_is_written_over";
    if !possible(name, &[Root, Loops, Tool("sfdisk"), Tool("partx")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(48));
    disk.partition();
    let before = disk.bytes();
    write(&home, &disk.device, None).code(3).says(&["partition table", &format!("--destroy {}", disk.name())]);
    assert!(disk.bytes() == before);
    written(&home, &disk, &disk.device);
}

#[test]
fn both_members_of_a_mounted_btrfs_are_refused() {
    if !possible("both_members_of_a_mounted_btrfs_are_refused", &[Root, Loops, Tool("mkfs.btrfs")]) {
        return;
    }
    let (home, one, two) = (Home::new(), Disk::new(128), Disk::new(128));
    sh(&format!("mkfs.btrfs -q -f -d single -m raid1 {} {}", one.name(), two.name()));
    let _mount = one.mount(&one.device, "");
    // Which of the two the mount table names is btrfs's own choice.
    for disk in [&one, &two] {
        let sentence = refused(&home, disk, &disk.device);
        assert!(sentence.contains("mounted"), "{sentence}");
    }
}

#[test]
fn a_device_below_another_is_refused() {
    if !possible("a_device_below_another_is_refused", &[Root, Loops]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(8));
    let over = attach(&disk.device);
    let detach = Undo(format!("losetup -d {}", over.display()));
    let sentence = refused(&home, &disk, &disk.device);
    assert!(sentence.contains(over.to_str().unwrap()), "{sentence}");
    drop(detach);
}

#[test]
fn a_member_of_md_is_refused() {
    if !possible("a_member_of_md_is_refused", &[Root, Loops, Tool("mdadm")]) {
        return;
    }
    if !Path::new("/proc/mdstat").exists() {
        println!("SKIP a_member_of_md_is_refused: the kernel has no md");
        return;
    }
    let (home, one, two) = (Home::new(), Disk::new(32), Disk::new(32));
    let md = format!("/dev/md/tiermark{}", std::process::id());
    let members = format!("{} {}", one.name(), two.name());
    let _stop = Undo(format!("mdadm --stop {md}"));
    sh(&format!("mdadm --create {md} --run --level=1 --metadata=1.2 --raid-devices=2 --assume-clean {members}"));
    let sentence = refused(&home, &two, &two.device);
    assert!(sentence.contains("md"), "{sentence}");
}

#[test]
fn a_signature_is_named_and_only_the_full_name_overrides_it() {
    let name = "a_signature_is_named_and_only_the_full_name_overrides_it";
    if !possible(name, &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk, other) = (Home::new(), Disk::new(32), Disk::new(1));
    disk.mkfs();
    let before = disk.bytes();
    write(&home, &disk.device, None).code(3).says(&["ext4", &format!("--destroy {}", disk.name())]);
    let short = disk.name().strip_prefix("/dev/").unwrap();
    for wrong in [other.name(), short, "", "yes", "/dev/loop", &format!("{}p1", disk.name())] {
        let told = write(&home, &disk.device, Some(wrong)).code(3);
        assert!(told.sentence().contains(disk.name()), "{told:?}");
    }
    let link = home.path().join("by-id");
    std::os::unix::fs::symlink(&disk.device, &link).unwrap();
    write(&home, &link, None).code(3).says(&["ext4", disk.name()]);
    write(&home, &disk.device, link.to_str()).code(3).says(&["by-id", &format!("--destroy {}", disk.name())]);
    assert!(disk.bytes() == before, "a byte changed");
    written(&home, &disk, &disk.device);
}

#[test]
fn an_empty_device_is_not_written_without_its_name_either() {
    if !possible("an_empty_device_is_not_written_without_its_name_either", &[Root, Loops]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(8));
    let before = disk.bytes();
    write(&home, &disk.device, None).code(3).says(&[&format!("--destroy {}", disk.name())]);
    for rw in ["rw=randwrite", "rw=rw", "rw=randrw"] {
        home.run(&job(&[rw, "runtime=100ms"], &disk.device)).code(3).sentence();
    }
    assert!(disk.bytes() == before);
    written(&home, &disk, &disk.device);
}

#[test]
fn raw_reads_change_no_byte() {
    if !possible("raw_reads_change_no_byte", &[Root, Loops, Tool("mkfs.ext4")]) {
        return;
    }
    let (home, disk) = (Home::new(), Disk::new(32));
    disk.mkfs();
    let before = disk.bytes();
    for engine in ["psync", "io_uring", "mmap"] {
        for direct in ["direct=true", "direct=false"] {
            let settings = ["rw=randread", "runtime=200ms", &format!("engine={engine}"), direct];
            let told = home.run(&job(&settings, &disk.device));
            assert!(told.status.success() || engine == "mmap", "{told:?}");
        }
    }
    // A device in use may be read too.
    let _mount = disk.mount(&disk.device, "-o ro");
    let document = home.json(&job(&["rw=read", "bs=1M", "runtime=200ms"], &disk.device));
    assert_eq!(document["steps"][0]["tier"], *disk.name().strip_prefix("/dev/").unwrap(), "{document}");
    assert!(disk.bytes() == before, "a byte changed");
}

#[test]
fn an_existing_file_is_never_written() {
    let home = Home::new();
    let file = filled(&home.work().join("photos"), 1);
    let before = std::fs::read(&file).unwrap();
    for rw in ["write", "randwrite", "rw", "randrw"] {
        let told = home.run(&job(&[&format!("rw={rw}"), "runtime=100ms"], &file)).code(3);
        told.says(&["photos", "directory"]);
    }
    // --destroy is for devices and changes nothing here.
    let mut words = job(&WRITE, &file);
    words.extend(["--destroy".to_owned(), file.to_str().unwrap().to_owned()]);
    home.run(&words).code(3).sentence();
    assert!(std::fs::read(&file).unwrap() == before);
    home.run(&job(&["rw=randread", "runtime=100ms"], &file)).code(0);
    assert!(std::fs::read(&file).unwrap() == before);
}
