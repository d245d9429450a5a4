//! The guard against the kernel's own truth: loop devices that are mounted, swapped to, partitioned, members of btrfs.
//! Needs root; says what it skips and why.
#![forbid(unsafe_code)]

use basics::Bytes;
use change::guard::{self, Refused};
use change::{ChangeError, Journal, TestFile};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Runs a command and gives its output; fails the test when the command does.
fn run(command: &str) -> String {
    let Output { status, stdout, stderr } = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(status.success(), "{command}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap().trim().to_owned()
}

/// Tries again for a while: between fork and exec, another test's child holds this one's descriptors open.
fn patiently(command: &str) -> String {
    format!("for i in 1 2 3 4 5; do {command} 2>/dev/null && exit 0; sleep 0.1; done; {command}")
}

fn unmount(at: &Path) -> String {
    patiently(&format!("umount {}", at.display()))
}

/// What is undone when a test ends, however it ends.
struct Undo(String);

impl Drop for Undo {
    fn drop(&mut self) {
        let _ = Command::new("sh").args(["-c", &self.0]).stderr(Stdio::null()).status();
    }
}

/// A free loop device over a file or a disk.
fn attach(over: &Path, options: &str) -> PathBuf {
    // Two that look at once may find the same one. Who comes second has it open for a moment, for writing, while the
    // other's test goes on.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    run(&format!("losetup --find --show {options} {}", over.display())).into()
}

/// A loop device over a file of its own.
struct Disk {
    device: PathBuf,
    image: PathBuf,
    _detach: Undo,
    dir: tempfile::TempDir,
}

impl Disk {
    fn new(mib: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let image = dir.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let device = attach(&image, "");
        let detach = Undo(format!("partx -d {0}; losetup -d {0}", device.display()));
        Disk { device, image, _detach: detach, dir }
    }

    fn name(&self) -> &str {
        self.device.to_str().unwrap()
    }

    fn mkfs(&self) {
        run(&format!("mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 {}", self.name()));
    }

    /// Two partitions, made known to the kernel even where it reads no tables itself.
    fn partition(&self) -> (PathBuf, PathBuf) {
        run(&format!("printf 'label: dos\\n,16M,83\\n,,83\\n' | sfdisk -q --no-reread {}", self.name()));
        run(&format!("partx -a {0} 2>/dev/null || test -e {0}p1", self.name()));
        (format!("{}p1", self.name()).into(), format!("{}p2", self.name()).into())
    }

    fn mount(&self, device: &Path) -> Undo {
        let at = self.dir.path().join("mnt");
        std::fs::create_dir_all(&at).unwrap();
        run(&format!("mount {} {}", device.display(), at.display()));
        Undo(unmount(&at))
    }

    fn bytes(&self) -> Vec<u8> {
        run("sync");
        std::fs::read(&self.image).unwrap()
    }

    /// The device's own full name given to `--destroy` does not help, and neither does another's; no byte changes.
    fn refused(&self, device: &Path) -> String {
        let before = self.bytes();
        let sentence = ask(device, Some(device.to_str().unwrap())).unwrap_err().to_string();
        for destroy in [None, Some("/dev/null")] {
            assert_eq!(ask(device, destroy).unwrap_err().to_string(), sentence, "use comes before everything else");
        }
        assert!(self.bytes() == before, "bytes of {} changed", device.display());
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        sentence
    }
}

fn ask(device: &Path, destroy: Option<&str>) -> Result<guard::DeviceGrant, Refused> {
    guard::device_for_writing(Path::new("/"), device, destroy)
}

/// Whether the test can run here; says so when not.
fn possible(test: &str, tools: &[&str]) -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "needs root".to_owned()
    } else if !Path::new("/dev/loop-control").exists() {
        "needs loop devices".to_owned()
    } else if let Some(tool) = tools.iter().find(|tool| Undo::fails(&format!("command -v {tool}"))) {
        format!("needs {tool}")
    } else {
        return true;
    };
    println!("SKIP {test}: {why}");
    false
}

impl Undo {
    fn fails(command: &str) -> bool {
        !Command::new("sh").args(["-c", command]).stdout(Stdio::null()).status().unwrap().success()
    }
}

#[test]
fn a_mounted_device_is_refused() {
    if !possible("a_mounted_device_is_refused", &["mkfs.ext4"]) {
        return;
    }
    let disk = Disk::new(16);
    disk.mkfs();
    let mount = disk.mount(&disk.device);
    let sentence = disk.refused(&disk.device);
    assert!(sentence.contains(&format!("{} is mounted at", disk.name())), "{sentence}");
    drop(mount);
    ask(&disk.device, Some(disk.name())).unwrap();
}

#[test]
fn a_device_mounted_in_another_processs_view_is_refused() {
    if !possible("a_device_mounted_in_another_processs_view_is_refused", &["mkfs.ext4", "unshare"]) {
        return;
    }
    struct Stopped(Child);
    impl Drop for Stopped {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let disk = Disk::new(16);
    disk.mkfs();
    let at = disk.dir.path().join("mnt");
    std::fs::create_dir(&at).unwrap();
    let ready = disk.dir.path().join("ready");
    let script = format!("mount {} {} && touch {} && exec sleep 60", disk.name(), at.display(), ready.display());
    let other = Stopped(Command::new("unshare").args(["--mount", "sh", "-c", &script]).spawn().unwrap());
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sentence = disk.refused(&disk.device);
    assert!(sentence.contains("for process"), "{sentence}");
    drop(other);
}

#[test]
fn swap_is_refused() {
    if !possible("swap_is_refused", &["mkswap", "swapon"]) {
        return;
    }
    let disk = Disk::new(16);
    run(&format!("mkswap {0} && swapon -p -1 {0} 2>/dev/null || swapon {0}", disk.name()));
    let off = Undo(format!("swapoff {}", disk.name()));
    let sentence = disk.refused(&disk.device);
    assert!(sentence.contains("in use as swap"), "{sentence}");
    drop(off);
    assert!(matches!(ask(&disk.device, None), Err(Refused::Holds { content, .. }) if content == "a swap area"));
}

#[test]
fn a_disk_with_a_mounted_partition_is_refused_and_its_other_partition_is_not() {
    let name = "a_disk_with_a_mounted_partition_is_refused_and_its_other_partition_is_not";
    if !possible(name, &["mkfs.ext4", "sfdisk", "partx"]) {
        return;
    }
    let disk = Disk::new(48);
    let (first, second) = disk.partition();
    run(&format!("mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 {}", first.display()));
    let _mount = disk.mount(&first);
    let sentence = disk.refused(&disk.device);
    assert!(sentence.contains(&format!("{} is mounted at", first.display())), "{sentence}");
    disk.refused(&first);
    ask(&second, second.to_str()).unwrap();
}

#[test]
fn a_partition_of_a_disk_that_is_used_whole_is_refused() {
    if !possible("a_partition_of_a_disk_that_is_used_whole_is_refused", &["mkswap", "sfdisk", "partx"]) {
        return;
    }
    let disk = Disk::new(48);
    let (first, _) = disk.partition();
    // In another loop device's hands, which the kernel counts as no claim at all.
    let over = attach(&disk.device, "");
    let _detach = Undo(format!("losetup -d {}", over.display()));
    let sentence = disk.refused(&first);
    assert!(sentence.contains(&format!("{} is behind {}", disk.name(), over.display())), "{sentence}");
    disk.refused(&disk.device);
}

#[test]
fn the_btrfs_member_that_no_mount_table_shows_is_refused() {
    if !possible("the_btrfs_member_that_no_mount_table_shows_is_refused", &["mkfs.btrfs"]) {
        return;
    }
    let (one, two) = (Disk::new(128), Disk::new(128));
    run(&format!("mkfs.btrfs -q -f -d single -m raid1 {} {}", one.name(), two.name()));
    let mount = one.mount(&one.device);
    let sentences = [&one, &two].map(|disk| disk.refused(&disk.device));
    assert!(sentences.iter().any(|sentence| sentence.contains("part of the mounted btrfs")), "{sentences:?}");
    drop(mount);
    assert!(matches!(ask(&two.device, None), Err(Refused::Holds { content, .. }) if content.contains("btrfs")));
}

#[test]
fn a_program_that_writes_it_is_named() {
    if !possible("a_program_that_writes_it_is_named", &[]) {
        return;
    }
    let disk = Disk::new(1);
    let script = format!("exec 3<>{}; read x", disk.name());
    let mut writer = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let refused = loop {
        match ask(&disk.device, None) {
            Err(refused @ Refused::InUse { .. }) => break refused.to_string(),
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    drop(writer.stdin.take());
    writer.wait().unwrap();
    assert!(refused.contains(&format!("process {} (sh)", writer.id())), "{refused}");
    ask(&disk.device, Some(disk.name())).unwrap();
}

#[test]
fn what_is_there_is_named_and_its_full_name_must_be_repeated() {
    if !possible("what_is_there_is_named_and_its_full_name_must_be_repeated", &["mkfs.ext4"]) {
        return;
    }
    let (disk, other) = (Disk::new(16), Disk::new(1));
    disk.mkfs();
    let before = disk.bytes();
    let sentence = ask(&disk.device, None).unwrap_err().to_string();
    assert!(sentence.contains("an ext4 file system") && sentence.contains("--destroy"), "{sentence}");
    let short = disk.name().trim_start_matches("/dev/");
    for wrong in [other.name(), short, "", "yes", &disk.name()[..disk.name().len() - 1]] {
        assert!(matches!(ask(&disk.device, Some(wrong)), Err(Refused::OtherName { .. })), "{wrong}");
    }
    assert!(disk.bytes() == before);
    assert!(matches!(ask(&other.device, None), Err(Refused::NotNamed { .. })), "empty, and yet never without a name");

    let link = disk.dir.path().join("by-id");
    std::os::unix::fs::symlink(&disk.device, &link).unwrap();
    assert!(matches!(ask(&link, None), Err(Refused::Holds { .. })));
    drop(ask(&link, Some(disk.name())).unwrap());
    drop(ask(&link, link.to_str()).unwrap());
    let grant = ask(&disk.device, Some(disk.name())).unwrap();
    assert_eq!(grant.overrides(), Some("an ext4 file system"));
    assert!(Undo::fails(&format!("mount {} {} 2>/dev/null", disk.name(), disk.dir.path().display())), "claimed");
    let file = std::fs::File::from(grant.into_fd(true).unwrap());
    let mut page = [0u8; 8192];
    let at = page.as_ptr().align_offset(4096);
    page[at..at + 4096].fill(7);
    file.write_all_at(&page[at..at + 4096], 0).unwrap();
    drop(file);
    assert!(disk.bytes() != before);
}

#[test]
fn reading_changes_nothing_and_needs_nobodys_leave() {
    if !possible("reading_changes_nothing_and_needs_nobodys_leave", &["mkfs.ext4"]) {
        return;
    }
    let disk = Disk::new(16);
    disk.mkfs();
    let _mount = disk.mount(&disk.device);
    let before = disk.bytes();
    let file = std::fs::File::from(guard::device_for_reading(&disk.device, false).unwrap());
    file.read_exact_at(&mut [0; 4096], 0).unwrap();
    file.write_all_at(&[1; 512], 0).unwrap_err();
    assert!(disk.bytes() == before);
}

#[test]
fn a_write_protected_device_is_not_refused_but_unavailable() {
    if !possible("a_write_protected_device_is_not_refused_but_unavailable", &[]) {
        return;
    }
    let disk = Disk::new(1);
    let protected = attach(&disk.image, "--read-only");
    let _detach = Undo(format!("losetup -d {}", protected.display()));
    let refused = ask(&protected, protected.to_str()).unwrap_err();
    assert!(refused.is_unavailable() && refused.to_string().contains("write protected"), "{refused}");
}

#[test]
fn a_small_file_system_keeps_its_tenth_and_a_read_only_one_is_told() {
    if !possible("a_small_file_system_keeps_its_tenth_and_a_read_only_one_is_told", &[]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("small");
    std::fs::create_dir(&at).unwrap();
    run(&format!("mount -t tmpfs -o size=400M tiermark-test {}", at.display()));
    let _unmount = Undo(unmount(&at));
    let journal = Journal::open(&dir.path().join("journal")).unwrap();
    assert_eq!(change::room(&at).unwrap(), Bytes(360 << 20));
    let file = TestFile::create(&journal, "0a1b2c3d", &at, Bytes(300 << 20)).unwrap();
    assert_eq!(change::room(&at).unwrap(), Bytes(60 << 20), "reserved before it is written");
    let refused = TestFile::create(&journal, "0a1b2c3d", &at, Bytes(61 << 20)).unwrap_err();
    assert!(matches!(refused, ChangeError::NoRoom { kept: Bytes(41943040), .. }), "{refused:?}");
    file.remove().unwrap();
    run(&patiently(&format!("mount -o remount,ro {}", at.display())));
    let refused = TestFile::create(&journal, "0a1b2c3d", &at, Bytes(1 << 20)).unwrap_err();
    assert!(matches!(refused, ChangeError::ReadOnly { .. }), "{refused:?}");
    assert_eq!(std::fs::read_dir(journal.dir()).unwrap().count(), 0, "what could not be made is not in the journal");
}

#[test]
fn a_file_on_a_disk_that_was_pulled_out_is_looked_for_again() {
    if !possible("a_file_on_a_disk_that_was_pulled_out_is_looked_for_again", &["mkfs.ext4"]) {
        return;
    }
    let disk = Disk::new(64);
    disk.mkfs();
    let mount = disk.mount(&disk.device);
    let journal = Journal::open(&disk.dir.path().join("journal")).unwrap();
    let file = TestFile::create(&journal, "0a1b2c3d", &disk.dir.path().join("mnt"), Bytes(1 << 20)).unwrap();
    let path = file.path().to_owned();
    run(&format!("umount -l {}", disk.dir.path().join("mnt").display()));
    let refused = file.remove().unwrap_err();
    assert!(refused.to_string().contains("tried again at the next start"), "{refused}");
    run(&format!("sed -i 's/\"start_ticks\": /&9/' {}/*.json", journal.dir().display()));
    let told = journal.recover().unwrap();
    assert!(!told[0].undone && told[0].to_string().contains("not mounted"), "{}", told[0]);
    drop(mount);
    let _mount = disk.mount(&disk.device);
    assert!(path.exists());
    let told = journal.recover().unwrap();
    assert!(told[0].undone && !path.exists(), "{}", told[0]);
    assert_eq!(journal.recover().unwrap(), []);
}
