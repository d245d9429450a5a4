//! The programs for the boards, run here by qemu: a 64-bit and a 32-bit ARM processor, static, with musl. `./test` has them made
//! (`./package --quickly aarch64 armv7`) and names their folder in TIERMARK_BOARDS.
#![forbid(unsafe_code)]

mod common;

use common::{Home, Need, Undo, attach, full, holds, possible, sh};
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Processor as qemu names it, and what Rust calls the target.
const BOARDS: [(&str, &str); 2] =
    [("aarch64", "aarch64-unknown-linux-musl"), ("arm", "armv7-unknown-linux-musleabihf")];

/// A home whose tiermark is the one of that board; nothing where it was not made, or there is no qemu.
fn home(test: &str, (processor, target): (&str, &str)) -> Option<Home> {
    let qemu: &'static str = if processor == "arm" { "qemu-arm-static" } else { "qemu-aarch64-static" };
    if !possible(test, &[Need::Tool(qemu)]) {
        return None;
    }
    let program = std::env::var_os("TIERMARK_BOARDS")
        .map(|folder| {
            ["board-test", "release"].map(|profile| Path::new(&folder).join(target).join(profile).join("tiermark"))
        })
        .and_then(|programs| programs.into_iter().find(|program| program.exists()));
    let Some(program) = program else {
        println!(
            "SKIP {test}: needs the program for {processor} (./package --quickly aarch64 armv7) below $TIERMARK_BOARDS"
        );
        return None;
    };
    let mut home = Home::new();
    fs::copy(program, home.path().join("tiermark")).unwrap();
    home.through = vec![qemu.to_owned()];
    Some(home)
}

/// Bytes read and written in the first step.
fn moved(run: &Value) -> (u64, u64) {
    let step = &run["steps"][0];
    let bytes = |side: &str| step[side]["ops"].as_u64().unwrap_or(0) * step["job"]["bs_B"].as_u64().unwrap();
    (bytes("read"), bytes("write"))
}

fn tree(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../machine/tests/trees").join(name)
}

#[test]
fn each_board_shows_measures_keeps_and_reports() {
    for board in BOARDS {
        let Some(home) = home("each_board_shows_measures_keeps_and_reports", board) else { continue };
        let tiers = home.run(&["tiers", "--root", tree("pi5-nvme").to_str().unwrap()]).code(0).out;
        assert!(tiers.contains("Raspberry Pi 5") && tiers.contains("PCIe Gen3 x1"), "{tiers}");

        let memory = home.json(&["run", "job", "--on", "memory", "--set", "size=16M", "--set", "time=300ms"]);
        assert!(moved(&memory).0 > 0, "{memory}");
        let work = home.work();
        let file = [
            "run",
            "job",
            "--on",
            work.to_str().unwrap(),
            "--set",
            "size=16M",
            "--set",
            "rw=randrw",
            "--set",
            "bytes=8M",
        ];
        let psync = home.json(&[&file[..], &["--set", "engine=psync"]].concat());
        let (read, written) = moved(&psync);
        assert_eq!(read + written, 8 << 20, "{psync}");
        assert_eq!(psync["steps"][0]["engine"], "psync", "{psync}");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "its test file is gone");

        let shown = home.run(&["show", "last"]).code(0).out;
        assert!(shown.contains("psync"), "{shown}");
        let report = home.path().join("report.html");
        home.run(&["report", "last", "--out", report.to_str().unwrap()]).code(0);
        assert!(fs::metadata(&report).unwrap().len() > 1 << 20);
        if full() {
            home.run(&["check", "--quick", "--in", work.to_str().unwrap()]).code(0);
        }
    }
}

/// What lies beyond 4 GiB is where it belongs, though a pointer of that processor reaches no further.
#[test]
fn the_small_board_goes_beyond_4_gib() {
    let test = "the_small_board_goes_beyond_4_gib";
    let Some(home) = home(test, BOARDS[1]) else { return };
    let file = home.path().join("big");
    File::create(&file).unwrap().set_len(6 << 30).unwrap();
    let beyond = ["--set", "offset=5G", "--set", "size=1G", "--set", "bytes=4M", "--set", "engine=psync"];
    let read =
        home.json(&[&["run", "job", "--on", file.to_str().unwrap(), "--set", "rw=randread"][..], &beyond].concat());
    assert_eq!(moved(&read).0, 4 << 20);
    if !possible(test, &[Need::Root, Need::Loops]) {
        return;
    }
    let device = attach(&file);
    let _undo = Undo(format!("losetup -d {}", device.display()));
    let device = device.to_str().unwrap();
    let writing = ["run", "job", "--on", device, "--destroy", device, "--set", "rw=write"];
    let written = home.json(&[&writing[..], &beyond].concat());
    assert_eq!(moved(&written).1, 4 << 20);
    let first = rustix::fs::seek(File::open(&file).unwrap(), rustix::fs::SeekFrom::Data(0)).unwrap();
    assert_eq!(first, 5 << 30, "the first byte that was written");
}

/// Debian's kernel for the 64-bit board, in a folder as the package has it, and its release; `./test` brings it.
fn kernel() -> Option<(PathBuf, String)> {
    let folder = PathBuf::from(std::env::var_os("TIERMARK_ARM64")?);
    let kernel = fs::read_dir(folder.join("boot")).ok()?.filter_map(Result::ok).map(|entry| entry.file_name());
    let release = kernel.filter_map(|name| Some(name.to_str()?.strip_prefix("vmlinuz-")?.to_owned())).next()?;
    Some((folder, release))
}

/// A home with all that a board of 512 MB boots from: an initial file system, a disk and a card.
fn board(test: &str) -> Option<(Home, String)> {
    let tools = ["qemu-system-aarch64", "cpio", "modprobe", "mke2fs"].map(Need::Tool);
    if !possible(test, &tools) || !possible(test, &[Need::Root, Need::Loops]) {
        return None;
    }
    let home = home(test, BOARDS[0])?;
    let Some((folder, release)) = kernel() else {
        println!(
            "SKIP {test}: needs Debian's kernel for arm64 (crates/tiermark/tests/boards/kernel FOLDER) in $TIERMARK_ARM64"
        );
        return None;
    };
    let (at, folder) = (home.path().display(), folder.display());
    fs::create_dir_all(home.path().join("root/bin")).unwrap();
    fs::write(home.path().join("root/init"), include_str!("boards/init")).unwrap();
    sh(&format!(
        "cd {at}/root && chmod +x init && mkdir proc sys dev disk card tmp && cp {folder}/bin/busybox {at}/tiermark bin/ && \
         for module in virtio_pci virtio_blk sdhci-pci crc32c_generic ext4; do modprobe -d {folder} -S {release} --show-depends $module; done | \
         sed -n 's/^insmod \\([^ ]*\\).*/\\1/p' | sort -u | while read -r file; do \
         in=lib/modules/${{file#*/lib/modules/}}; mkdir -p ${{in%/*}}; cp $file $in; done && \
         cp {folder}/lib/modules/{release}/modules.* lib/modules/{release}/ && \
         find . | cpio --quiet -o -H newc | gzip -1 > {at}/initrd && cd {at} && truncate -s 1G disk card && \
         mke2fs -q -F -t ext4 disk && mke2fs -q -F -t ext4 card"
    ));
    let boots = format!(
        "cd {at} && timeout 200 qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 512 -nographic -no-reboot -net none \
         -kernel {folder}/boot/vmlinuz-{release} -initrd initrd \
         -device sdhci-pci -device sd-card,drive=card -drive id=card,file=card,format=raw,if=none"
    );
    Some((home, boots))
}

/// What the board's disk or card kept is read on another machine, by the program for this one.
fn kept(home: &Home, image: &str) -> Value {
    let mounted = home.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    sh(&format!("mount -o loop {}/{image} {}", home.path().display(), mounted.display()));
    let _undo = Undo(format!("umount {}", mounted.display()));
    let database = mounted.join("home/.local/share/tiermark/tiermark.db");
    Home::new().json(&["--db", database.to_str().unwrap(), "runs"])
}

#[test]
fn a_board_of_512_mb_boots_measures_and_keeps_its_record() {
    let Some((home, boots)) = board("a_board_of_512_mb_boots_measures_and_keeps_its_record") else { return };
    let disk = "-append 'console=ttyAMA0 panic=-1 quiet' -drive file=disk,format=raw,if=virtio";
    let said = sh(&format!("{boots} {disk}"));
    holds(&said, &["mmcblk0 QEMU!", "SD mmc0", "virtio", "CHECK ended with 0", "Power down"]);
    let runs = kept(&home, "disk");
    assert_eq!(runs["runs"][0]["state"], "done", "{runs}");
    holds(&said, &[runs["runs"][0]["run"].as_str().unwrap()]);
}

/// No pressure figures, no memory cgroup, a card as its only disk, and a clock that goes from 1970 to 2026 in mid-run.
#[test]
fn a_poor_board_says_what_it_lacks() {
    let Some((home, boots)) = board("a_poor_board_says_what_it_lacks") else { return };
    let poor = "-rtc base=1970-01-02 -append 'console=ttyAMA0 panic=-1 quiet psi=0 cgroup_disable=memory poor'";
    let said = sh(&format!("{boots} {poor}"));
    holds(&said, &["mmcblk0 QEMU!", "CHECK ended with 0", "PSI is off: psi=1", "no memory controller", "Power down"]);
    let runs = kept(&home, "card");
    let check = runs["runs"].as_array().unwrap().iter().find(|run| run["method"] == "check").unwrap();
    assert_eq!(check["state"], "done", "{runs}");
    // So long it took, and not the years by which the clock was wrong.
    for when in ["started", "ended"] {
        assert!(check[when].as_str().unwrap().starts_with("1970-01-02T00:0"), "{runs}");
    }
}
