//! `move` from a made image to another: both trees are the same by other programs' account, what is interrupted goes on, and the source is
//! as it was but for the one line that leads to the copy.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Place, Random, Undo, emulation, full, possible, sh, try_sh};
use mover::{Boot, COMMAND_LINE, WAY_BACK};
use rustix::process::Signal;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MIB: u64 = 1 << 20;
const BOOT_AT: u64 = 4 * MIB;
const BOOT_LEN: u64 = 64 * MIB;
const ROOT_AT: u64 = BOOT_AT + BOOT_LEN;
const OLD: &str =
    "console=serial0,115200 console=tty1 root=PARTUUID=5e3da3da-02 rootfstype=ext4 fsck.repair=yes rootwait quiet\n";

fn can(test: &str) -> bool {
    let tools = ["sfdisk", "mkfs.ext4", "mkfs.btrfs", "mkswap", "losetup", "setfattr", "setcap"].map(Need::Tool);
    possible(test, &[&[Need::Root, Need::Loops][..], &tools].concat())
}

/// An image of a small system: a boot partition, and a root with every kind of file.
struct Image {
    path: PathBuf,
    boot: Boot,
}

impl Image {
    fn new(dir: &Path, mib: u64) -> Self {
        let path = dir.join("old.img");
        fs::File::create_new(&path).unwrap().set_len(mib * MIB).unwrap();
        let script = dir.join("table");
        let root = ROOT_AT / 512;
        fs::write(
            &script,
            format!(
                "label: dos\nlabel-id: 0x5e3da3da\nstart={}, size={}, type=c\nstart={root}, type=83\n",
                BOOT_AT / 512,
                BOOT_LEN / 512
            ),
        )
        .unwrap();
        sh(&format!("sfdisk -q {} < {}", path.display(), script.display()));
        let boot = Boot::Fat { path: path.clone(), start: basics::Bytes(BOOT_AT), len: basics::Bytes(BOOT_LEN) };
        boot.format().unwrap();
        boot.put(COMMAND_LINE, OLD.as_bytes()).unwrap();
        boot.put("config.txt", b"[all]\ndtparam=audio=on\n").unwrap();
        let image = Image { path, boot };
        let root = image.mounted(dir, "made", false, Some("mkfs.ext4 -q -F"));
        tree(&root.0);
        drop(root);
        image
    }

    /// Its root, mounted.
    fn mounted(&self, dir: &Path, name: &str, read_only: bool, mkfs: Option<&str>) -> (PathBuf, Vec<Undo>) {
        mounted(&self.path, ROOT_AT, dir, name, read_only, mkfs)
    }

    fn hash(&self) -> Vec<u8> {
        Sha256::digest(fs::read(&self.path).unwrap()).to_vec()
    }
}

/// What begins there in an image, mounted; unmounted and detached when it goes.
fn mounted(path: &Path, at: u64, dir: &Path, name: &str, read_only: bool, mkfs: Option<&str>) -> (PathBuf, Vec<Undo>) {
    let ro = if read_only { "-r" } else { "" };
    let device = sh(&format!("losetup {ro} -f --show -o {at} {}", path.display())).trim().to_owned();
    let detach = Undo(format!("losetup -d {device}"));
    if let Some(mkfs) = mkfs {
        sh(&format!("{mkfs} {device}"));
    }
    let to = dir.join(name);
    fs::create_dir_all(&to).unwrap();
    sh(&format!("mount {} {device} {}", if read_only { "-o ro" } else { "" }, to.display()));
    let unmount = Undo(format!("umount {}", to.display()));
    (to, vec![unmount, detach])
}

/// A system's tree, with what is awkward about one.
fn tree(root: &Path) {
    let script = r#"
set -e
mkdir -p etc sbin bin usr/bin usr/lib var/lib var/log home/pi boot/firmware dev proc sys tmp lib/modules/6.6.51-v8+ etc/systemd/system/multi-user.target.wants usr/lib/systemd/system
echo 'kernel/fs/ext4/ext4.ko' > lib/modules/6.6.51-v8+/modules.builtin
echo 'kernel/fs/btrfs/btrfs.ko' >> lib/modules/6.6.51-v8+/modules.builtin
printf 'proc            /proc           proc    defaults          0       0\nPARTUUID=5e3da3da-01  /boot/firmware  vfat    defaults          0       2\nPARTUUID=5e3da3da-02  /               ext4    defaults,noatime  0       1\n' > etc/fstab
printf 'ID=debian\nVERSION_CODENAME=bookworm\n' > etc/os-release
echo CONF_SWAPSIZE=100 > etc/dphys-swapfile
printf '[Install]\nWantedBy=multi-user.target\n' > usr/lib/systemd/system/dphys-swapfile.service
ln -s /usr/lib/systemd/system/dphys-swapfile.service etc/systemd/system/multi-user.target.wants/dphys-swapfile.service
printf '#!/bin/sh\n' > sbin/init; chmod 755 sbin/init
dd if=/dev/zero of=var/swap bs=1M count=8 status=none; chmod 600 var/swap; mkswap -q var/swap
chmod 1777 tmp; chmod 700 home/pi; chown 1000:1000 home/pi
mknod dev/null c 1 3; mknod dev/sda b 8 0; mkfifo -m 640 var/pipe
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("var/socket")' 2>/dev/null || true
cp /bin/true bin/ping; setcap cap_net_raw+ep bin/ping
cp /bin/true bin/su; chmod 4755 bin/su
echo one > home/pi/one; ln home/pi/one home/pi/two; ln home/pi/one var/three; chown 1000:1000 home/pi/one
ln -s ../nowhere home/pi/dangling; chown -h 1000:1000 home/pi/dangling
truncate -s 2G home/pi/sparse; printf x | dd of=home/pi/sparse bs=1 seek=1500000000 conv=notrunc status=none
setfattr -n user.note -v 'kept as it is' home/pi/one; setfattr -n trusted.hidden -v 1 etc
setfacl -m u:1234:r home/pi/one 2>/dev/null || true
printf 'x' > "$(printf 'home/pi/caf\351 \n end')"
touch -d '1999-01-02 03:04:05.123456789' home/pi/one etc/fstab home/pi/dangling -h
mkdir -p usr/lib/many; for i in $(seq 1 400); do echo $i > usr/lib/many/$i; done
head -c 20000000 /dev/urandom > usr/lib/blob; head -c 9000000 /dev/zero | tr '\0' 'a' > usr/lib/text
touch -d '2020-01-01' usr/lib/many usr/lib
"#;
    sh(&format!("cd {} && {script}", root.display()));
}

/// A tree by find, sha256sum and getfattr, without what a move is meant to change.
fn account(root: &Path) -> String {
    let not = "-path ./var/swap -prune -o -path ./lost+found -prune -o -path ./var/lib/tiermark -prune -o -path ./etc/fstab -prune -o \
               -path './etc/systemd/system*' -prune -o -path ./etc -prune -o";
    let line = format!(
        "cd {} && find . {not} \\( -type d -printf '%p %y %m %U %G %l\\n' -o -printf '%p %y %m %U %G %T@ %l %n %s %D\\n' \\) | sed 's/ [0-9]*$//' | sort && \
         find . {not} -type f -print0 | sort -z | xargs -0 sha256sum && \
         find . {not} -print0 | sort -z | xargs -0 getfattr -h -d -m - --absolute-names && \
         find . {not} -type b -printf '%p ' -exec stat -c '%t:%T' {{}} \\; && stat -c '%a %u %g' etc tmp",
        root.display()
    );
    sh(&line)
}

/// The words of a move between two images.
fn words(image: &Image, to: &Path, more: &[&str]) -> Vec<String> {
    let fixed = ["move", "--from", image.path.to_str().unwrap(), "--to", to.to_str().unwrap(), "--yes"];
    fixed.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

/// Where the root of a target begins.
fn root_at(path: &Path) -> u64 {
    let table: serde_json::Value = serde_json::from_str(&sh(&format!("sfdisk --json {}", path.display()))).unwrap();
    let parts = table["partitiontable"]["partitions"].as_array().unwrap();
    let is_root = |part: &&serde_json::Value| {
        let kind = part["type"].as_str().unwrap().to_uppercase();
        kind == "83" || kind == "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
    };
    parts.iter().find(is_root).unwrap()["start"].as_u64().unwrap() * 512
}

#[test]
fn a_system_moves_with_all_that_belongs_to_it() {
    if !can("a_system_moves_with_all_that_belongs_to_it") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = Home::new();
    let image = Image::new(dir.path(), 400);
    let before = image.hash();
    let to = dir.path().join("new.img");
    let more = ["--size", "600M", "--swap", "64M", "--fs", "btrfs", "--compress", "zstd:1"];
    let planned = home.json(&[&words(&image, &to, &more)[..], &["--dry-run".to_owned()]].concat());
    assert_eq!(
        (planned["partitions"].as_array().unwrap().len(), planned["without"][0].as_str()),
        (2, Some("var/swap"))
    );
    assert!(!to.exists() && image.hash() == before);
    let moved = home.json(&words(&image, &to, &more));
    assert!(moved["files"].as_u64().unwrap() > 440, "{moved}");
    let line = moved["command_line"].as_str().unwrap();
    let partuuid = moved["partitions"][0]["partuuid"].as_str().unwrap();
    let table = sh(&format!("sfdisk --json {}", to.display())).to_lowercase();
    assert!(table.contains(partuuid) && line.contains(&format!("root=PARTUUID={partuuid} rootfstype=btrfs")), "{line}");
    assert!(line.contains("zswap.enabled=1") && line.starts_with("console=serial0,115200"), "{line}");
    assert_eq!(image.boot.read(COMMAND_LINE).unwrap().unwrap(), format!("{line}\n").as_bytes());
    assert_eq!(image.boot.read(WAY_BACK).unwrap().unwrap(), OLD.as_bytes());
    {
        let (old, _undo) = image.mounted(dir.path(), "old", true, None);
        let (new, _undo) = mounted(&to, root_at(&to), dir.path(), "new", false, None);
        assert_eq!(account(&new), account(&old));
        assert!(!new.join("var/swap").exists());
        let fstab = fs::read_to_string(new.join("etc/fstab")).unwrap();
        let uuid = moved["root_uuid"].as_str().unwrap();
        assert!(
            fstab.contains(&format!(
                "UUID={uuid}  /               btrfs    defaults,noatime,compress=zstd:1  0       0"
            )),
            "{fstab}"
        );
        assert!(fstab.contains("none swap sw") && fstab.contains("PARTUUID=5e3da3da-01  /boot/firmware"), "{fstab}");
        assert!(sh(&format!("blkid -p -o value -s UUID --offset {} {}", root_at(&to), to.display())).contains(uuid));
        let unit = fs::read_link(new.join("etc/systemd/system/dphys-swapfile.service")).unwrap();
        assert_eq!(unit, Path::new("/dev/null"), "the old swap file's manager still starts");
    }
    // But for the boot partition nothing of the source changed.
    let bytes = fs::read(&image.path).unwrap();
    home.run(&["move", "--from", image.path.to_str().unwrap(), "--undo"]).code(0);
    assert_eq!(image.boot.read(COMMAND_LINE).unwrap().unwrap(), OLD.as_bytes());
    assert_eq!(image.boot.read(WAY_BACK).unwrap(), None);
    assert!(bytes[ROOT_AT as usize..] == fs::read(&image.path).unwrap()[ROOT_AT as usize..]);
    home.run(&["move", "--from", image.path.to_str().unwrap(), "--finish"]).code(4).says(&["nothing was moved"]);
    // Said once more it brings over what is another since, and switches.
    {
        let (old, _undo) = image.mounted(dir.path(), "old", false, None);
        fs::write(old.join("home/pi/later"), "later").unwrap();
        fs::remove_dir_all(old.join("usr/lib/many")).unwrap();
    }
    let again = home.json(&words(&image, &to, &more));
    assert!(again["written_B"].as_u64().unwrap() < 20_000 && again["command_line"].as_str() == Some(line), "{again}");
    {
        let (old, _undo) = image.mounted(dir.path(), "old", true, None);
        let (new, _undo) = mounted(&to, root_at(&to), dir.path(), "new", true, None);
        assert_eq!(account(&new), account(&old));
        assert!(new.join("home/pi/later").exists() && !new.join("usr/lib/many").exists());
    }
    home.run(&["move", "--from", image.path.to_str().unwrap(), "--finish"]).code(0);
    assert_eq!(image.boot.read(WAY_BACK).unwrap(), None);
    assert_eq!(home.journal(), [""; 0]);
}

#[test]
fn the_boot_partition_goes_with_it_where_that_is_wanted() {
    if !can("the_boot_partition_goes_with_it_where_that_is_wanted") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = Home::new();
    let image = Image::new(dir.path(), 400);
    let before = image.hash();
    let to = dir.path().join("new.img");
    let moved = home.json(&words(&image, &to, &["--size", "1200M", "--boot", "move"]));
    assert_eq!(image.hash(), before, "the source was written to");
    let file = fs::read(&to).unwrap();
    assert_eq!(file[510..512], [0x55, 0xaa]);
    let boot = Boot::Fat { path: to.clone(), start: basics::Bytes(4 * MIB), len: mover::BOOT_LEN };
    let line = String::from_utf8(boot.read(COMMAND_LINE).unwrap().unwrap()).unwrap();
    assert!(line.trim_end() == moved["command_line"].as_str().unwrap() && line.contains("rootfstype=ext4"), "{line}");
    assert!(boot.read("config.txt").unwrap().is_some() && boot.read(WAY_BACK).unwrap().is_none());
    let (new, _undo) = mounted(&to, root_at(&to), dir.path(), "new", true, None);
    let fstab = fs::read_to_string(new.join("etc/fstab")).unwrap();
    let of = |nth: usize| moved["partitions"][nth]["partuuid"].as_str().unwrap().to_owned();
    assert!(fstab.contains(&format!("PARTUUID={}  /boot/firmware", of(0))) && line.contains(&of(1)), "{fstab}{line}");
}

/// Killed at random moments, and stopped at others; the same command goes on each time, and ends with the same tree.
#[test]
fn what_is_interrupted_goes_on() {
    if !can("what_is_interrupted_goes_on") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = Home::new();
    let image = Image::new(dir.path(), 400);
    let mut before = image.hash();
    let to = dir.path().join("new.img");
    let mut random = Random(7);
    let words = words(&image, &to, &["--size", "600M", "--swap", "32M", "--destroy", to.to_str().unwrap()]);
    let (mut interrupted, wanted) = (0, if full() { 10 } else { 4 });
    for nth in 0..20 * wanted {
        let mut running = home.start(&words);
        std::thread::sleep(Duration::from_millis(random.below(400)));
        if running.child().try_wait().unwrap().is_none() {
            running.signal(if nth % 2 == 0 { Signal::KILL } else { Signal::INT });
            interrupted += 1;
        }
        let _ = common::finish(running);
        if image.boot.read(WAY_BACK).unwrap().is_some() {
            // It was done before it could be interrupted.
            home.run(&["move", "--from", image.path.to_str().unwrap(), "--undo"]).code(0);
            fs::remove_file(&to).unwrap();
            before = image.hash();
        }
        assert_eq!(image.hash(), before, "the source was written to before the end");
        if interrupted == wanted {
            break;
        }
    }
    println!("interrupted {interrupted} times");
    assert_eq!(interrupted, wanted);
    let moved = home.run(&words).code(0);
    println!("{}", moved.out);
    assert_eq!(home.journal(), [""; 0]);
    let (old, _undo_old) = image.mounted(dir.path(), "old", true, None);
    let (new, _undo) = mounted(&to, root_at(&to), dir.path(), "new", true, None);
    assert_eq!(account(&new), account(&old));
}

/// The target's power fails in the middle; the source is as it was, and a move begun anew comes to its end.
#[test]
fn a_power_cut_of_the_target_leaves_the_source() {
    let name = "a_power_cut_of_the_target_leaves_the_source";
    if !can(name) || !emulation(name, &[]) {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = Place::new();
    let image = Image::new(dir.path(), 400);
    let before = image.hash();
    let mut cut = 0;
    for after in [15, 40, 70] {
        let disk = place.start(&["--size", "600MiB"]);
        let words = words(&image, Path::new(&disk.device), &["--destroy", &disk.device]);
        disk.fault(&format!("power-cut:on=write,after={after},seed=1"));
        let told = place.home.run(&words);
        if told.status.code() != Some(0) {
            cut += 1;
            assert_eq!(image.hash(), before, "the source was written to");
        } else {
            place.home.run(&["move", "--from", image.path.to_str().unwrap(), "--undo"]).code(0);
        }
        disk.kill();
        place.home.run(&["emulate", "list"]);
    }
    assert!(cut >= 2, "{cut}");
    let disk = place.start(&["--size", "600MiB"]);
    let words = self::words(&image, Path::new(&disk.device), &["--destroy", &disk.device]);
    place.home.run(&words).code(0);
    disk.stop();
}

#[test]
fn what_cannot_be_moved_is_told_in_a_sentence() {
    if !can("what_cannot_be_moved_is_told_in_a_sentence") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut home = Home::new();
    let image = Image::new(dir.path(), 400);
    let to = dir.path().join("new.img");
    let no = |home: &Home, to: &Path, more: &[&str], code: i32, says: &[&str]| {
        home.run(&words(&image, to, more)).code(code).says(says);
    };
    let quiet = ["--json"];
    no(&home, &to, &[&quiet[..], &[]].concat(), 4, &["--size"]);
    no(&home, &to, &["--json", "--size", "24M"], 2, &["do not fit"]);
    assert!(!to.exists());
    no(&home, &to, &["--json", "--size", "600M", "--compress", "zstd:1"], 2, &["--fs btrfs"]);
    no(&home, &to, &["--json", "--size", "600M", "--fs", "btrfs", "--compress", "lz4"], 2, &["zstd, lzo and zlib"]);
    fs::write(&to, vec![1; 100 << 20]).unwrap();
    no(&home, &to, &["--json"], 3, &["--destroy"]);
    assert!(fs::read(&to).unwrap().iter().all(|byte| *byte == 1));
    no(&home, dir.path(), &["--json"], 2, &["a directory"]);
    let (_old, undo) = image.mounted(dir.path(), "old", true, None);
    let device = undo[1].0.split(' ').next_back().unwrap().to_owned();
    no(&home, Path::new(&device), &["--json", "--destroy", &device], 3, &["mounted"]);
    home.run(&["move", "--from", &device, "--to", to.to_str().unwrap(), "--yes"]).code(3).says(&["mounted"]);
    home.run(&["move", "--from", &device, "--undo"]).code(3).says(&["mounted"]);
    no(&home, &to, &["--json"], 3, &[&device, "mounted"]);
    drop(undo);
    // Onto itself, under whatever name, or into what a device is made of.
    let before = image.hash();
    let link = dir.path().join("link.img");
    std::os::unix::fs::symlink(&image.path, &link).unwrap();
    for to in [&image.path, &link] {
        no(&home, to, &["--json", "--destroy", to.to_str().unwrap()], 2, &["the same", "nothing was written"]);
    }
    assert_eq!(image.hash(), before);
    {
        let device = sh(&format!("losetup -f --show {}", to.display())).trim().to_owned();
        let _detach = Undo(format!("losetup -d {device}"));
        no(&home, &to, &["--json", "--destroy", to.to_str().unwrap()], 3, &[&device, "made of it"]);
        assert!(fs::read(&to).unwrap().iter().all(|byte| *byte == 1));
    }
    let text = dir.path().join("text");
    fs::write(&text, "no image").unwrap();
    let words = ["move", "--from", text.to_str().unwrap(), "--to", to.to_str().unwrap(), "--yes"];
    home.run(&words).code(4).says(&["partition table"]);
    // A kernel that has btrfs as a module cannot start from it.
    {
        let (root, _undo) = image.mounted(dir.path(), "old", false, None);
        fs::write(root.join("lib/modules/6.6.51-v8+/modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
    }
    fs::remove_file(&to).unwrap();
    no(&home, &to, &["--json", "--size", "600M", "--fs", "btrfs"], 4, &["module alone", "nothing was switched"]);
    assert_eq!(image.boot.read(COMMAND_LINE).unwrap().unwrap(), OLD.as_bytes());
    // It was begun without a boot partition.
    no(
        &home,
        &to,
        &["--json", "--fs", "btrfs", "--boot", "move", "--destroy", to.to_str().unwrap()],
        2,
        &["begun with --boot stay"],
    );
    assert!(try_sh("grep -q tiermark-move /proc/mounts").is_err());
    home.as_an_ordinary_user();
    no(&home, &to, &["--json"], 4, &["root"]);
}

/// The root that tiermark itself runs on, with its journal there, while another program writes to it without pause.
#[test]
fn a_system_that_runs_moves_while_it_is_written_to() {
    if !can("a_system_that_runs_moves_while_it_is_written_to") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let image = Image::new(dir.path(), 500);
    let (old, _undo_old) = image.mounted(dir.path(), "old", false, None);
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    let script = r#"
set -e
mkdir -p run target root var/log
for program in TIERMARK "$(command -v mkfs.ext4)"; do
    cp -L "$program" bin/
    ldd "$program" | grep -o '/[^ ]*' | while read -r lib; do mkdir -p ".${lib%/*}"; cp -L "$lib" ".$lib"; done
done
mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev; mount -t tmpfs tmpfs run; mount --bind OUT target
while [ ! -e target/end ]; do echo line >> var/log/busy; echo x > var/log/$(date +%N); rm -f var/log/[0-9]*; done &
code=0
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /bin/tiermark move --to /target/new.img --size 400M --yes --json || code=$?
touch target/end
wait
exit $code
"#;
    let script = script.replace("TIERMARK", env!("CARGO_BIN_EXE_tiermark")).replace("OUT", out.to_str().unwrap());
    let ran =
        std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(&old).output().unwrap();
    let (said, why) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    // How it starts is not known, there being no boot partition: that is all that is amiss.
    assert_eq!(ran.status.code(), Some(1), "{said}{why}");
    let moved: serde_json::Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}{why}"));
    let notes = moved["notes"].to_string();
    assert!(
        notes.contains("no cmdline.txt")
            && notes.contains("wrote to files while they were copied")
            && notes.contains(": /var/log"),
        "{notes}"
    );
    let to = out.join("new.img");
    let (new, _undo) = mounted(&to, root_at(&to), dir.path(), "new", false, None);
    assert!(new.join("var/log/busy").exists() && new.join("root/.local/share/tiermark").exists());
    assert!(!new.join("root/.local/share/tiermark/journal").exists());
    for root in [&old, &new] {
        for name in ["var/log", "root"] {
            fs::remove_dir_all(root.join(name)).unwrap();
        }
    }
    assert_eq!(account(&new), account(&old));
}

/// A kernel that starts anywhere, and its initial RAM disk.
fn kernel() -> Option<(PathBuf, PathBuf)> {
    let mut all: Vec<PathBuf> = fs::read_dir("/boot").ok()?.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all.into_iter().rev().find_map(|path| {
        let version = path.file_name()?.to_str()?.strip_prefix("vmlinuz-")?.to_owned();
        let initrd = path.with_file_name(format!("initrd.img-{version}"));
        initrd.exists().then_some((path, initrd))
    })
}

/// A real kernel, in a machine that has the new disk alone, finds its root by the new command line and starts what is there.
#[test]
fn a_moved_system_boots() {
    let test = "a_moved_system_boots";
    let tools = ["qemu-system-x86_64", "busybox"].map(Need::Tool);
    if !can(test) || !possible(test, &tools) {
        return;
    }
    let Some((kernel, initrd)) = kernel() else {
        return println!("SKIP {test}: needs a kernel with its initrd in /boot (linux-image-cloud-amd64)");
    };
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let home = Home::new();
    let image = Image::new(dir.path(), 400);
    {
        let (root, _undo) = image.mounted(dir.path(), "old", false, None);
        sh(&format!("cp $(command -v busybox) {0}/bin/busybox && {0}/bin/busybox true", root.display()));
        let init = "#!/bin/busybox sh\nb=/bin/busybox\n$b mount -t proc proc /proc\necho \"STARTED $($b grep ' / ' /proc/mounts)\"\n\
                    $b sha256sum /usr/lib/blob\n$b cat /etc/fstab\necho ENDED\n$b poweroff -f\n";
        fs::write(root.join("sbin/init"), init).unwrap();
    }
    for (file_system, more) in [("ext4", &["--size", "1200M"][..]), ("btrfs", &["--size", "1200M", "--fs", "btrfs"])] {
        let to = dir.path().join(format!("{file_system}.img"));
        let moved = home.json(&words(&image, &to, &[&["--boot", "move"], more].concat()));
        let boot = Boot::Fat { path: to.clone(), start: basics::Bytes(4 * MIB), len: mover::BOOT_LEN };
        let line = String::from_utf8(boot.read(COMMAND_LINE).unwrap().unwrap()).unwrap();
        let said = sh(&format!(
            "timeout 300 qemu-system-x86_64 -m 512 -nographic -no-reboot -net none -kernel {} -initrd {} \
             -append '{} console=ttyS0 panic=-1' -drive file={},format=raw,if=virtio",
            kernel.display(),
            initrd.display(),
            line.trim_end(),
            to.display()
        ));
        let (new, _undo) = mounted(&to, root_at(&to), dir.path(), file_system, true, None);
        let hash = sh(&format!("sha256sum < {}/usr/lib/blob", new.display()));
        let uuid = moved["root_uuid"].as_str().unwrap();
        for expected in [&format!(" / {file_system} "), hash.split(' ').next().unwrap(), uuid, "ENDED"] {
            assert!(said.contains(expected), "{expected} is missing in {said}");
        }
    }
}
