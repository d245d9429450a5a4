use super::*;
use std::ffi::OsStr;

/// Ends after so many calls.
struct Ends(usize);

impl Watch for Ends {
    fn went_on(&mut self, _: u64, _: u64) {
        self.0 = self.0.saturating_sub(1);
    }

    fn ends(&self) -> bool {
        self.0 == 0
    }
}

/// All kinds that an ordinary user can make, too; whether one of them has an attribute.
fn awkward(root: &Path) -> bool {
    for dir in ["a/b/c", "empty", "tmp", "var/lib"] {
        fs::create_dir_all(root.join(dir)).unwrap();
    }
    fs::write(root.join("a/text"), "text").unwrap();
    fs::write(root.join("a/b/nothing"), "").unwrap();
    fs::hard_link(root.join("a/text"), root.join("a/b/c/linked")).unwrap();
    std::os::unix::fs::symlink("nowhere/at all", root.join("a/dangling")).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"a/caf\xe9\n name")), vec![3; 100_001]).unwrap();
    let sparse = File::create(root.join("a/sparse")).unwrap();
    sparse.set_len(3 << 30).unwrap();
    sparse.write_all_at(&[9; 5000], (1 << 30) + 777).unwrap();
    mknodat(CWD, root.join("a/pipe"), FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("a/socket")).unwrap();
    let noted = lsetxattr(root.join("a/text"), "user.note", b"kept", XattrFlags::empty()).is_ok();
    let mode = |mode| fs::Permissions::from_mode(mode);
    fs::set_permissions(root.join("tmp"), mode(0o1777)).unwrap();
    fs::set_permissions(root.join("a/text"), mode(0o4711)).unwrap();
    fs::set_permissions(root.join("a/b"), mode(0o500)).unwrap();
    let old = Timespec { tv_sec: 86_400, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: old, last_modification: old };
    for name in ["a/dangling", "empty", "a/text"] {
        utimensat(CWD, root.join(name), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
    fs::write(root.join("var/swap"), vec![1; 10_000]).unwrap();
    noted
}

#[test]
fn a_tree_is_the_same_however_often_it_was_broken_off() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let from = dir.path().join("from");
    fs::create_dir(&from).unwrap();
    let noted = awkward(&from);
    let without = [PathBuf::from("var/swap")];
    let mut needed = 0;
    for ends in (1..200).chain([usize::MAX]) {
        let to = dir.path().join(format!("to{ends}"));
        fs::create_dir(&to).unwrap();
        let trees = Trees { from: &from, to: &to, without: &without, since: None };
        let mut broken = 0;
        loop {
            let mut manifest = Manifest::open(&to).unwrap();
            // Each time a little further, else it would never come to its end.
            match copy(&trees, &mut manifest, &mut Ends(ends.saturating_add(7 * broken))) {
                Err(MoveError::Interrupted) => broken += 1,
                result => {
                    let copied = result.unwrap();
                    assert_eq!(copied.lacks, [""; 0]);
                    break;
                }
            }
        }
        let manifest = Manifest::open(&to).unwrap();
        assert_eq!(compare(&trees, &manifest, &mut Ends(usize::MAX)).unwrap(), Differs::default());
        assert!(!to.join("var/swap").exists());
        if noted {
            let mut value = [0; 16];
            let len = lgetxattr(to.join("a/b/c/linked"), "user.note", &mut value[..]).unwrap();
            assert_eq!(&value[..len], b"kept");
        }
        let sparse = stat(&to.join("a/sparse")).unwrap();
        assert!(sparse.size() == 3 << 30 && sparse.blocks() * 512 < 1 << 20, "{}", sparse.blocks());
        needed = needed.max(broken);
        fs::remove_dir_all(&to).unwrap();
    }
    assert!(needed > 2, "{needed}");
}

#[test]
fn what_differs_is_named_and_mended() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    for root in [&from, &to] {
        fs::create_dir(root).unwrap();
    }
    awkward(&from);
    let trees = Trees { from: &from, to: &to, without: &[], since: None };
    let mut manifest = Manifest::open(&to).unwrap();
    copy(&trees, &mut manifest, &mut Ends(usize::MAX)).unwrap();
    // As a power cut leaves it: length and time are there, what it says is not.
    let name = OsStr::from_bytes(b"a/caf\xe9\n name");
    let stat_of = stat(&from.join(name)).unwrap();
    fs::write(to.join(name), vec![0; 100_001]).unwrap();
    let old = Timespec { tv_sec: stat_of.mtime(), tv_nsec: stat_of.mtime_nsec() as _ };
    let times = Timestamps { last_access: old, last_modification: old };
    utimensat(CWD, to.join(name), &times, AtFlags::empty()).unwrap();
    fs::remove_file(to.join("a/b/c/linked")).unwrap();
    fs::write(to.join("a/b/c/linked"), "text").unwrap();
    fs::write(to.join("empty/more"), "").unwrap();
    let differs = compare(&trees, &manifest, &mut Ends(usize::MAX)).unwrap();
    assert_eq!(differs.meanwhile, [""; 0]);
    let all = differs.really.join("; ");
    for what in ["name: what it says differs", "linked: its time", "text: is another file", "/empty: holds more"] {
        assert!(all.contains(what), "{what:?} is not in {differs:?}");
    }
    // A file that is told to differ is copied anew; the rest of it is mended by the copy itself.
    fs::remove_file(to.join(name)).unwrap();
    copy(&trees, &mut manifest, &mut Ends(usize::MAX)).unwrap();
    assert_eq!(compare(&trees, &manifest, &mut Ends(usize::MAX)).unwrap(), Differs::default());
}

/// Writes to the source each time that it is asked whether to end.
struct Writes<'a>(&'a Path);

impl Watch for Writes<'_> {
    fn went_on(&mut self, _: u64, _: u64) {}

    fn ends(&self) -> bool {
        let mut log = File::options().append(true).open(self.0.join("log")).unwrap();
        log.write_all(b"a line\n").unwrap();
        let _ = fs::remove_file(self.0.join("tmp/b"));
        false
    }
}

#[test]
fn what_a_system_writes_meanwhile_is_no_fault_of_the_copy() {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    for root in [&from, &to] {
        fs::create_dir(root).unwrap();
    }
    awkward(&from);
    for name in ["log", "tmp/a", "tmp/b", "still"] {
        fs::write(from.join(name), "x").unwrap();
    }
    fs::create_dir(from.join("journal")).unwrap();
    let without = [PathBuf::from("journal")];
    // The clock that files are stamped with goes in steps.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let trees = Trees { from: &from, to: &to, without: &without, since: Some(Since::now()) };
    let mut manifest = Manifest::open(&to).unwrap();
    copy(&trees, &mut manifest, &mut Writes(&from)).unwrap();
    fs::write(from.join("log"), "another").unwrap();
    fs::write(from.join("journal/entry"), "mine").unwrap();
    fs::create_dir(from.join("later")).unwrap();
    fs::rename(from.join("still"), from.join("later/still")).unwrap();
    fs::write(to.join("a/b/nothing"), "broken").unwrap();
    let differs = compare(&trees, &manifest, &mut Writes(&from)).unwrap();
    assert!(differs.really.iter().all(|what| what.starts_with("/a/b/nothing: ")), "{:?}", differs.really);
    assert!(differs.really.contains(&"/a/b/nothing: what it says differs".to_owned()), "{:?}", differs.really);
    let meanwhile = differs.meanwhile.join("; ");
    for what in ["/log: ", "/later: is missing", "/later/still: is missing", "/: holds still"] {
        assert!(meanwhile.contains(what), "{what:?} is not in {meanwhile:?}");
    }
    assert!(!meanwhile.contains("journal") && !to.join("journal").exists(), "{meanwhile}");
}
