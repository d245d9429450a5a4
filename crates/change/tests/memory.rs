//! Swap, zram, settings and control groups against the kernel itself. Needs root and leaves the machine as it was; says
//! what it skips and why. One at a time, here and in other test programs: they all change the same machine.
#![forbid(unsafe_code)]

use basics::Bytes;
use change::{Cgroup, ChangeError, Journal, Limits, SwapOn, TestFile, Value, Zram, cgroup, swap_area};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Groups to join and how many MiB to touch there.
const ORDERS: &str = "TIERMARK_TOUCH";
const MIB: u64 = 1 << 20;
/// One that nothing else of tiermark sets: its runs may go on beside this.
const SETTING: &str = "/proc/sys/vm/stat_interval";

fn possible(test: &str, needed: &[&str]) -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "needs root".to_owned()
    } else if let Some(path) = needed.iter().find(|path| !Path::new(path).exists()) {
        format!("needs {path}")
    } else {
        return true;
    };
    println!("SKIP {test}: {why}");
    false
}

/// A folder that is there for all, and needs no file to be left.
fn alone() -> File {
    let lock = File::open("/sys/block").unwrap();
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).unwrap();
    lock
}

fn swaps() -> String {
    std::fs::read_to_string("/proc/swaps").unwrap()
}

/// The kernel's running number of a disk: others make devices on this machine too.
fn diskseq(device: &Path) -> String {
    let name = device.file_name().unwrap();
    std::fs::read_to_string(Path::new("/sys/block").join(name).join("diskseq")).unwrap_or_default()
}

fn gone(seq: &str) -> bool {
    let devices = std::fs::read_dir("/sys/block").unwrap().map(|entry| diskseq(&entry.unwrap().path()));
    seq.is_empty() || devices.into_iter().all(|other| other != seq)
}

fn is_on(path: &Path) -> bool {
    swaps().lines().any(|line| line.starts_with(&format!("{} ", path.display())))
}

/// A journal, and its folder, which must be empty in the end.
struct Place {
    _dir: tempfile::TempDir,
    journal: Journal,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(&dir.path().join("journal")).unwrap();
        Place { _dir: dir, journal }
    }

    fn entries(&self) -> usize {
        std::fs::read_dir(self.journal.dir()).unwrap().count()
    }

    /// Makes the entries look as if their process had died.
    fn kill(&self) {
        for entry in std::fs::read_dir(self.journal.dir()).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(path, text.replace("\"start_ticks\": ", "\"start_ticks\": 9")).unwrap();
        }
    }

    fn zram(&self, mib: u64) -> Zram {
        let zram = Zram::add(&self.journal, "0a1b2c3d", Bytes(mib * MIB), None, None).unwrap();
        format(zram.path(), mib * MIB);
        zram
    }
}

fn format(path: &Path, size: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    swap_area::format(&file, Bytes(size), "tiermark").unwrap();
}

#[test]
fn a_setting_of_the_kernel_is_set_and_set_back() {
    const NAME: &str = "a_setting_of_the_kernel_is_set_and_set_back";
    if !possible(NAME, &[SETTING]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let now = || std::fs::read_to_string(SETTING).unwrap();
    let before = now();
    let wanted = if before.trim() == "2" { "3" } else { "2" };
    let value = Value::set(&place.journal, "r", Path::new(SETTING), wanted).unwrap();
    assert_eq!((now().trim(), value.before(), place.entries()), (wanted, before.trim(), 1));
    let refused = Value::set(&place.journal, "r", Path::new(SETTING), "often").unwrap_err();
    assert!(matches!(refused, ChangeError::Apply { .. }) && now().trim() == wanted, "{refused}");
    value.restore().unwrap();
    assert_eq!((now(), place.entries()), (before, 0));

    // A switch, shown as Y or N, and a choice, shown in brackets.
    let switch = Path::new("/sys/module/zswap/parameters/shrinker_enabled");
    let choice = Path::new("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    for (path, values) in [(switch, ["0", "1"]), (choice, ["advise", "within_size"])] {
        let Ok(before) = std::fs::read_to_string(path) else {
            println!("SKIP a part of {NAME}: no {}", path.display());
            continue;
        };
        for value in values {
            Value::set(&place.journal, "r", path, value).unwrap().restore().unwrap();
            assert_eq!(std::fs::read_to_string(path).unwrap(), before, "{value}");
        }
    }
    assert_eq!(place.entries(), 0);
}

#[test]
fn a_value_that_the_kernel_changes_is_told_and_put_back() {
    const PATH: &str = "/sys/block/zram0/queue/read_ahead_kb";
    let path = ["/sys/block/loop0/queue/read_ahead_kb", PATH].into_iter().find(|path| Path::new(path).exists());
    if !possible("a_value_that_the_kernel_changes_is_told_and_put_back", &[path.unwrap_or(PATH)]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let path = Path::new(path.unwrap());
    let before = std::fs::read_to_string(path).unwrap();
    // Whole pages only.
    let refused = Value::set(&place.journal, "r", path, "63").unwrap_err();
    assert!(matches!(&refused, ChangeError::NotTaken { said, .. } if said != "63"), "{refused}");
    assert_eq!((std::fs::read_to_string(path).unwrap(), place.entries()), (before, 0));
}

/// On a kernel that can, or with one sentence on one that cannot; either way nothing is left.
#[test]
fn a_disk_stands_behind_zram_where_the_kernel_has_that() {
    let test = "a_disk_stands_behind_zram_where_the_kernel_has_that";
    if !possible(test, &["/sys/class/zram-control/hot_add", "/dev/loop-control"]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let backing = dir.path().join("disk");
    std::fs::File::create(&backing).unwrap().set_len(32 * MIB).unwrap();
    let disk = change::LoopDevice::attach(&place.journal, "r", &backing, 4096).unwrap();
    match Zram::add(&place.journal, "r", Bytes(32 * MIB), None, Some(disk.path())) {
        Err(ChangeError::Lacks { what, remedy }) => {
            assert!(what.contains("can have no disk") && remedy.contains("CONFIG_ZRAM_WRITEBACK"), "{what}; {remedy}");
        }
        added => {
            let zram = added.unwrap();
            assert_eq!(change::zram::behind(zram.path()).unwrap(), [Bytes(0); 3]);
            let random: Vec<u8> = (0..MIB).map(|i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
            let mut file = std::fs::OpenOptions::new().write(true).open(zram.path()).unwrap();
            std::io::Write::write_all(&mut file, &random).unwrap();
            file.sync_all().unwrap();
            drop(file);
            change::zram::mark_idle(zram.path()).unwrap();
            change::zram::write_back(zram.path(), "idle").unwrap();
            let [held, _, written] = change::zram::behind(zram.path()).unwrap();
            assert!(held >= Bytes(MIB) && written >= held, "{held} {written}");
            zram.remove().unwrap();
        }
    }
    disk.detach().unwrap();
    assert_eq!(place.entries(), 0);
}

#[test]
fn a_zram_swap_comes_and_goes() {
    if !possible("a_zram_swap_comes_and_goes", &["/sys/class/zram-control/hot_add", "/proc/swaps"]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let error = Zram::add(&place.journal, "r", Bytes(MIB), Some("zip"), None).unwrap_err();
    assert!(matches!(&error, ChangeError::NotOffered { offered, .. } if !offered.contains('[')), "{error}");
    assert_eq!(place.entries(), 0);

    let offered = std::fs::read_to_string("/sys/block/zram0/comp_algorithm").unwrap_or("lzo".to_owned());
    let last = offered.split_whitespace().last().unwrap().trim_matches(['[', ']']).to_owned();
    let zram = Zram::add(&place.journal, "r", Bytes(32 * MIB - 1), Some(&last), None).unwrap();
    let (seq, path) = (diskseq(zram.path()), zram.path().to_owned());
    assert_eq!(change::zram::algorithm(zram.path()).unwrap(), last);
    format(zram.path(), 32 * MIB);
    assert!(change::zram::stat(zram.path()).unwrap().orig_data_size >= Bytes(4096));
    let swap = SwapOn::on(&place.journal, "r", zram.path(), Some(7)).unwrap();
    let listed = swaps();
    let ours = format!("{} ", path.display());
    assert!(listed.lines().any(|line| line.starts_with(&ours) && line.ends_with("\t7")), "{listed}");
    assert!(change::swap_area::used(swap.path()).is_ok());
    let twice = SwapOn::on(&place.journal, "r", zram.path(), None).unwrap_err().to_string();
    assert!(twice.contains("it is on already"), "{twice}");
    // Not while it is swap; the entry stays, and a later start removes it.
    let error = zram.remove().unwrap_err();
    assert!(matches!(&error, ChangeError::Away { why, .. } if why.contains("in use as swap")), "{error}");
    assert_eq!(place.entries(), 2);
    swap.off().unwrap();
    assert!(!is_on(&path));
    place.kill();
    let [told] = place.journal.recover().unwrap().try_into().unwrap();
    assert!(told.undone && told.to_string().contains("was removed"), "{told}");
    assert!(gone(&seq) && place.entries() == 0);
}

#[test]
fn a_device_that_took_the_number_of_ours_is_left() {
    if !possible("a_device_that_took_the_number_of_ours_is_left", &["/sys/block/zram0/diskseq"]) {
        return;
    }
    let _alone = alone();
    let (place, other) = (Place::new(), Place::new());
    let first = place.zram(4);
    let number = first.path().display().to_string().replace("/dev/zram", "");
    std::mem::forget(first);
    std::fs::write("/sys/class/zram-control/hot_remove", number).unwrap();
    let second = other.zram(4);
    place.kill();
    let [told] = place.journal.recover().unwrap().try_into().unwrap();
    assert!(told.undone && told.to_string().contains("nothing had to be undone"), "{told}");
    second.remove().unwrap();
}

/// A device that came when another of its number had just gone was taken for that one, and stayed for ever.
#[test]
fn a_device_killed_unnamed_that_has_a_number_from_before_is_removed() {
    let name = "a_device_killed_unnamed_that_has_a_number_from_before_is_removed";
    if !possible(name, &["/sys/class/zram-control/hot_add", "/sys/block/zram0/diskseq"]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let zram = place.zram(4);
    let (id, seq) = (zram.path().display().to_string().replace("/dev/zram", ""), diskseq(zram.path()));
    std::mem::forget(zram);
    std::fs::write(format!("/sys/block/zram{id}/reset"), "1").unwrap();
    let entry = std::fs::read_dir(place.journal.dir()).unwrap().next().unwrap().unwrap().path();
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&entry).unwrap()).unwrap();
    let change = json["change"].as_object_mut().unwrap();
    change.remove("diskseq");
    let id = change.insert("id".to_owned(), serde_json::Value::Null).unwrap();
    let before = serde_json::json!({ "id": id, "diskseq": 1 });
    change["before"].as_array_mut().unwrap().push(before);
    std::fs::write(&entry, serde_json::to_vec_pretty(&json).unwrap()).unwrap();
    place.kill();
    let [told] = place.journal.recover().unwrap().try_into().unwrap();
    assert!(told.undone && told.to_string().contains("was removed"), "{told}");
    assert!(gone(&seq));
}

#[test]
fn a_swap_file_comes_and_goes_and_one_with_holes_is_refused() {
    if !possible("a_swap_file_comes_and_goes_and_one_with_holes_is_refused", &["/proc/swaps"]) {
        return;
    }
    let _alone = alone();
    // Where the build is; a folder in memory takes no swap file.
    let place = Place::new();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let spaced = dir.path().join("my disk");
    std::fs::create_dir(&spaced).unwrap();
    let file = TestFile::create(&place.journal, "r", &spaced, Bytes(4 * MIB)).unwrap();
    let unformatted = SwapOn::on(&place.journal, "r", file.path(), None).unwrap_err().to_string();
    assert!(unformatted.contains("no swap header"), "{unformatted}");
    format(file.path(), 4 * MIB);
    match SwapOn::on(&place.journal, "r", file.path(), None) {
        Ok(swap) => {
            assert!(swaps().contains("my\\040disk"), "{}", swaps());
            assert!(change::swap_area::used(swap.path()).is_ok());
            // The swap area and its file, left over together: the latest change first.
            std::mem::forget((swap, file));
            place.kill();
            let told = place.journal.recover().unwrap();
            assert!(told.len() == 2 && told.iter().all(|told| told.undone), "{told:?}");
        }
        Err(error) => println!("SKIP a part of a_swap_file_comes_and_goes: {error}"),
    }
    let sparse = TestFile::sparse(&place.journal, "r", &dir.path().join("sparse"), Bytes(4 * MIB)).unwrap();
    format(sparse.path(), 4 * MIB);
    let holes = SwapOn::on(&place.journal, "r", sparse.path(), None).unwrap_err().to_string();
    assert!(holes.contains("has holes"), "{holes}");
    drop(sparse);
    assert!(!swaps().contains("my\\040disk") && place.entries() == 0, "{}", swaps());
}

/// What a process in a group does.
fn touch(orders: &str) {
    let mut words = orders.split(':');
    let mib: usize = words.next().unwrap().parse().unwrap();
    cgroup::join(&words.map(PathBuf::from).collect::<Vec<_>>()).unwrap();
    let mut memory = vec![0u8; mib << 20];
    // Nothing that compresses to nothing.
    let mut state = 1u64;
    for word in memory.chunks_exact_mut(64) {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        word[..8].copy_from_slice(&state.to_le_bytes());
    }
    std::io::stdout().write_all(b"touched\n").unwrap();
    let _ = std::io::stdin().read(&mut [0]);
    std::hint::black_box(memory);
}

/// A process that touches so much memory in the group.
fn toucher(group: &Cgroup, mib: u64) -> Child {
    let groups = group.groups().iter().map(|dir| format!(":{}", dir.display())).collect::<String>();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_group_limits_swaps_and_ends_what_is_in_it", "--nocapture"])
        .env(ORDERS, format!("{mib}{groups}"))
        .env(change::cgroup::MARK, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// All that it says until it has touched its memory or ended.
fn said(child: &mut Child) -> String {
    let (mut said, mut byte) = (String::new(), [0]);
    while !said.contains("touched") && child.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 {
        said.push(byte[0].into());
    }
    said
}

#[test]
fn a_group_limits_swaps_and_ends_what_is_in_it() {
    const NAME: &str = "a_group_limits_swaps_and_ends_what_is_in_it";
    if let Ok(orders) = std::env::var(ORDERS) {
        return touch(&orders);
    }
    if !possible(NAME, &["/sys/class/zram-control/hot_add", "/proc/swaps"]) {
        return;
    }
    let _alone = alone();
    let place = Place::new();
    let name = format!("test-{}", std::process::id());
    let limits = Limits { memory: Bytes(32 * MIB), swap: Some(Bytes(64 * MIB)), swappiness: Some(100) };
    let group = match Cgroup::make(&place.journal, "r", &name, &limits) {
        Err(ChangeError::Lacks { what, .. }) => return println!("SKIP {NAME}: {what}"),
        made => made.unwrap(),
    };
    let twice = Cgroup::make(&place.journal, "r", &name, &limits).unwrap_err().to_string();
    assert!(twice.contains("exists") && group.groups().iter().all(|dir| dir.is_dir()), "{twice}");

    let zram = place.zram(128);
    let swap = SwapOn::on(&place.journal, "r", zram.path(), Some(32767)).unwrap();
    let mut child = toucher(&group, 64);
    assert!(said(&mut child).contains("touched"));
    let used = change::swap_area::used(swap.path()).unwrap();
    // Half of what does not fit, at least: another area of this priority may take its share, as others may use ours.
    assert!(used >= Bytes(12 * MIB), "{used} swapped");
    assert!(
        change::zram::stat(zram.path()).unwrap().orig_data_size >= Bytes(8 * MIB),
        "{:?}",
        change::zram::stat(zram.path())
    );
    let peak = group.peak().unwrap_or(limits.memory);
    assert!(peak > Bytes(16 * MIB) && peak <= limits.memory, "{peak}");
    assert_eq!(group.oom_kills(), Some(0));
    if let Some(pressure) = group.pressure() {
        assert!(std::fs::read_to_string(pressure).unwrap().contains("some avg10="));
    }
    let dirs = group.groups().to_vec();
    group.remove().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9), "it was in there");
    assert!(dirs.iter().all(|dir| !dir.exists()));

    // Without swap it does not fit.
    let limits = Limits { swap: Some(Bytes(0)), swappiness: None, ..limits };
    match Cgroup::make(&place.journal, "r", &name, &limits) {
        Err(ChangeError::Lacks { what, .. }) => println!("SKIP a part of {NAME}: {what}"),
        made => {
            let group = made.unwrap();
            let mut child = toucher(&group, 64);
            assert!(!said(&mut child).contains("touched"));
            assert_eq!((child.wait().unwrap().signal(), group.oom_kills()), (Some(9), Some(1)));
        }
    }
    swap.off().unwrap();
    let seq = diskseq(zram.path());
    zram.remove().unwrap();
    assert!(gone(&seq) && place.entries() == 0);
}
