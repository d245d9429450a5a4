//! A tree of files, copied with all that belongs to it: owners, modes, times, extended attributes (ACLs, capabilities and labels are such),
//! hard links, holes, devices, pipes and sockets; subvolumes are folders. What was copied is written down beside it, so that whoever comes
//! back goes on, and what lies on the disk in the end is read again and held against it.

use crate::error::MoveError;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, SeekFrom, Timespec, Timestamps, XattrFlags, chownat, fsync, lgetxattr, llistxattr,
    lsetxattr, mknodat, seek, utimensat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use rustix::time::{ClockId, clock_gettime};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CString, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Read and written at once.
const CHUNK: usize = 1 << 20;
/// Zeros of this length and place count as a hole, whether they are one or not.
const BLOCK: usize = 4096;
/// tiermark's own, below the root of what it wrote.
pub const OWN: &str = "var/lib/tiermark/move";
/// Made by mkfs.ext4 on whatever it makes.
const MADE_BY_MKFS: &str = "lost+found";

/// What a file says: a hash of all blocks that are not zeros, each with its place, and the length.
pub type Hash = [u8; 32];

/// How it goes.
pub trait Watch {
    /// So many files and bytes more.
    fn went_on(&mut self, files: u64, bytes: u64);
    /// Whether to end.
    fn ends(&self) -> bool;
}

/// What was copied, and what could not be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// Of all kinds.
    pub files: u64,
    /// Of files' contents, holes left out.
    pub bytes: u64,
    /// Were there already, from before an interruption.
    pub there: u64,
    /// What the target's file system does not take, each a sentence once.
    pub lacks: Vec<String>,
}

/// Two roots and what is left out.
pub struct Trees<'a> {
    /// Read.
    pub from: &'a Path,
    /// Written.
    pub to: &'a Path,
    /// Paths from the root that are not copied: swap files, tiermark's own journal.
    pub without: &'a [PathBuf],
    /// Of a system that runs, when this was begun: what it wrote to since is no fault of the copy.
    pub since: Option<Since>,
}

/// A moment by the clock that the kernel stamps files with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Since(i64, i64);

impl Since {
    /// This moment.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Since(now.tv_sec, now.tv_nsec as _)
    }
}

/// What differs between both trees, each a path and what it is about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Differs {
    /// Although nobody wrote to it.
    pub really: Vec<String>,
    /// The system that runs wrote to it since the copy began.
    pub meanwhile: Vec<String>,
}

/// A regular file at one moment: what changes when somebody writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Moment {
    fn of(stat: &Metadata) -> Self {
        Moment {
            size: stat.size(),
            modified: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
        }
    }
}

/// What was copied of each file, in a file on the target: appended to as it goes, and read by who goes on.
pub struct Manifest {
    known: HashMap<Vec<u8>, (Moment, Hash)>,
    file: File,
    path: PathBuf,
}

impl Manifest {
    /// Of a target; a last line that a power cut left half written is forgotten.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(to: &Path) -> Result<Self, MoveError> {
        let folder = to.join(OWN);
        let path = folder.join("manifest");
        let made = fs::create_dir_all(&folder)
            .and_then(|()| File::options().read(true).append(true).create(true).mode(0o600).open(&path));
        let mut file = made.map_err(MoveError::io("open", &path))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(MoveError::io("read", &path))?;
        let whole = bytes.iter().rposition(|byte| *byte == 0).map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).map_err(MoveError::io("write", &path))?;
        }
        let known = bytes[..whole].split(|byte| *byte == 0).filter_map(Self::parsed).collect();
        Ok(Manifest { known, file, path })
    }

    /// `hash size modified changed path`, the path being all that follows.
    fn parsed(line: &[u8]) -> Option<(Vec<u8>, (Moment, Hash))> {
        let mut fields = line.splitn(7, |byte| *byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let hex = text()?;
        let mut hash = [0; 32];
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        let size = text()?.parse().ok()?;
        let mut number = || text()?.parse::<i64>().ok();
        let moment = Moment { size, modified: (number()?, number()?), changed: (number()?, number()?) };
        Some((fields.next()?.to_vec(), (moment, hash)))
    }

    fn add(&mut self, name: &Path, moment: Moment, hash: Hash) -> Result<(), MoveError> {
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let (modified, changed) = (moment.modified, moment.changed);
        let mut line =
            format!("{hex} {} {} {} {} {} ", moment.size, modified.0, modified.1, changed.0, changed.1).into_bytes();
        line.extend_from_slice(name.as_os_str().as_bytes());
        line.push(0);
        self.file.write_all(&line).map_err(MoveError::io("write", &self.path))?;
        self.known.insert(name.as_os_str().as_bytes().to_vec(), (moment, hash));
        Ok(())
    }

    /// What a file said when it was copied, if it has not been written to since.
    fn hash(&self, name: &Path, moment: Moment) -> Option<Hash> {
        self.known.get(name.as_os_str().as_bytes()).filter(|(then, _)| *then == moment).map(|(_, hash)| *hash)
    }
}

/// How much there is: files of all kinds, and bytes of contents without holes.
///
/// # Errors
/// The kernel's.
pub fn measure(trees: &Trees<'_>) -> Result<(u64, u64), MoveError> {
    let (mut files, mut bytes) = (0, 0);
    walk(trees, &mut |_, stat, _| {
        files += 1;
        if FileType::from_raw_mode(stat.mode()) == FileType::RegularFile && stat.nlink() == 1 {
            bytes += (stat.blocks() * 512).min(stat.size());
        }
        Ok(())
    })?;
    Ok((files, bytes))
}

/// When a folder is come to: before what is in it, and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visit {
    Before,
    After,
}

/// All that is below the root, each folder before and after what is in it, names in order.
fn walk(
    trees: &Trees<'_>,
    each: &mut dyn FnMut(&Path, &Metadata, Visit) -> Result<(), MoveError>,
) -> Result<(), MoveError> {
    let mut stack = vec![(PathBuf::new(), Visit::Before)];
    while let Some((name, visit)) = stack.pop() {
        let path = trees.from.join(&name);
        let stat = match stat(&path) {
            Ok(stat) => stat,
            // It was there when its folder was read; a system that runs goes on.
            Err(MoveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        each(&name, &stat, visit)?;
        // Nothing is mounted into what is read here: another device number is a subvolume of btrfs, which belongs to the system.
        let below = FileType::from_raw_mode(stat.mode()) == FileType::Directory;
        if visit == Visit::After || !below {
            continue;
        }
        let mut names = match names(&path) {
            Err(error) if is_gone(trees, &error, &path) => continue,
            names => names?,
        };
        stack.push((name.clone(), Visit::After));
        names.retain(|child| !left_out(trees, &name.join(child)));
        names.sort_unstable_by(|a, b| b.cmp(a));
        stack.extend(names.into_iter().map(|child| (name.join(child), Visit::Before)));
    }
    Ok(())
}

/// Not copied, and not missed.
fn left_out(trees: &Trees<'_>, name: &Path) -> bool {
    name == Path::new(MADE_BY_MKFS) || name == Path::new(OWN) || trees.without.iter().any(|without| without == name)
}

/// Whether a system that runs took a file of the source away while it was looked at.
fn is_gone(trees: &Trees<'_>, error: &MoveError, source: &Path) -> bool {
    let MoveError::Io { path, source: why, .. } = error else { return false };
    trees.since.is_some() && path == source && why.kind() == io::ErrorKind::NotFound
}

/// Whether something in this folder is left out, so that its time need not be the same.
fn holds_left_out(trees: &Trees<'_>, name: &Path) -> bool {
    holds_own(name) || trees.without.iter().any(|without| without.parent() == Some(name))
}

fn names(path: &Path) -> Result<Vec<OsString>, MoveError> {
    let read = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
    fs::read_dir(path).and_then(|all| all.map(read).collect()).map_err(MoveError::io("read", path))
}

fn stat(path: &Path) -> Result<Metadata, MoveError> {
    fs::symlink_metadata(path).map_err(MoveError::io("look at", path))
}

/// Copies the tree, or goes on where that ended.
///
/// # Errors
/// The kernel's with the file; [`MoveError::Interrupted`].
pub fn copy(trees: &Trees<'_>, manifest: &mut Manifest, watch: &mut dyn Watch) -> Result<Copied, MoveError> {
    let mut copied = Copied::default();
    let mut lacks = Lacks::default();
    let mut links: HashMap<(u64, u64), PathBuf> = HashMap::new();
    let mut one = |name: &Path, from: &Metadata, visit: Visit| -> Result<(), MoveError> {
        if watch.ends() {
            return Err(MoveError::Interrupted);
        }
        let (source, target) = (trees.from.join(name), trees.to.join(name));
        let kind = FileType::from_raw_mode(from.mode());
        if kind == FileType::Directory {
            if visit == Visit::Before {
                folder(trees, name, &source, &target)?;
                return Ok(());
            }
            belongings(&source, &target, from, &mut lacks)?;
            copied.files += 1;
            watch.went_on(1, 0);
            return Ok(());
        }
        copied.files += 1;
        if from.nlink() > 1 {
            // Not there where the first name vanished while it was copied.
            match links.get(&(from.dev(), from.ino())).filter(|first| stat(first).is_ok()) {
                Some(first) => {
                    link(first, &target)?;
                    watch.went_on(1, 0);
                    return Ok(());
                }
                None => drop(links.insert((from.dev(), from.ino()), target.clone())),
            }
        }
        let bytes = match kind {
            FileType::RegularFile => {
                let moment = Moment::of(from);
                let known = manifest.hash(name, moment).is_some();
                if known
                    && stat(&target)
                        .is_ok_and(|to| Moment::of(&to).modified == moment.modified && to.size() == from.size())
                {
                    copied.there += 1;
                    let bytes = (from.blocks() * 512).min(from.size());
                    watch.went_on(1, bytes);
                    return Ok(());
                }
                clear(&target)?;
                let (hash, bytes) = contents(&source, &target, watch)?;
                belongings(&source, &target, from, &mut lacks)?;
                manifest.add(name, moment, hash)?;
                bytes
            }
            FileType::Symlink => {
                clear(&target)?;
                let to = fs::read_link(&source).map_err(MoveError::io("read", &source))?;
                std::os::unix::fs::symlink(to, &target).map_err(MoveError::io("make", &target))?;
                belongings(&source, &target, from, &mut lacks)?;
                0
            }
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Fifo | FileType::Socket => {
                clear(&target)?;
                let mode = Mode::from_raw_mode(from.mode() & 0o7777);
                mknodat(CWD, &target, kind, mode, from.rdev()).map_err(MoveError::errno("make", &target))?;
                belongings(&source, &target, from, &mut lacks)?;
                0
            }
            FileType::Directory | FileType::Unknown => 0,
        };
        copied.bytes += bytes;
        watch.went_on(1, 0);
        Ok(())
    };
    walk(trees, &mut |name, from, visit| match one(name, from, visit) {
        Err(error) if is_gone(trees, &error, &trees.from.join(name)) => clear(&trees.to.join(name)),
        result => result,
    })?;
    copied.lacks = lacks.told;
    Ok(copied)
}

/// Makes a folder, or takes out of one that is there what is not in the source any more.
fn folder(trees: &Trees<'_>, name: &Path, source: &Path, target: &Path) -> Result<(), MoveError> {
    match stat(target) {
        Ok(to) if FileType::from_raw_mode(to.mode()) == FileType::Directory => {
            let wanted: HashSet<OsString> = names(source)?.into_iter().collect();
            for child in names(target)? {
                if !wanted.contains(&child) && !left_out(trees, &name.join(&child)) && !holds_own(&name.join(&child)) {
                    clear(&target.join(&child))?;
                }
            }
            Ok(())
        }
        _ => {
            clear(target)?;
            fs::DirBuilder::new().mode(0o700).create(target).map_err(MoveError::io("make", target))
        }
    }
}

/// A folder above tiermark's own, which a source need not have.
fn holds_own(name: &Path) -> bool {
    Path::new(OWN).starts_with(name)
}

/// Nothing of that name is left.
fn clear(path: &Path) -> Result<(), MoveError> {
    let gone = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(stat) if FileType::from_raw_mode(stat.mode()) == FileType::Directory => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    gone.map_err(MoveError::io("remove", path))
}

fn link(first: &Path, target: &Path) -> Result<(), MoveError> {
    if let (Ok(one), Ok(other)) = (stat(first), stat(target))
        && (one.dev(), one.ino()) == (other.dev(), other.ino())
    {
        return Ok(());
    }
    clear(target)?;
    fs::hard_link(first, target).map_err(MoveError::io("link", target))
}

/// Contents alone, holes left as holes. What they say, and how many bytes were written.
fn contents(source: &Path, target: &Path, watch: &mut dyn Watch) -> Result<(Hash, u64), MoveError> {
    let mut from = File::open(source).map_err(MoveError::io("open", source))?;
    let to = File::options().write(true).create_new(true).mode(0o600).open(target);
    let to = to.map_err(MoveError::io("make", target))?;
    let mut written = 0;
    let hash = said(&mut from, source, &mut |at, bytes| {
        if watch.ends() {
            return Err(MoveError::Interrupted);
        }
        to.write_all_at(bytes, at).map_err(MoveError::io("write", target))?;
        written += bytes.len() as u64;
        watch.went_on(0, bytes.len() as u64);
        Ok(())
    })?;
    // A hole at the end.
    let len = from.metadata().map_err(MoveError::io("look at", source))?.len();
    to.set_len(len).map_err(MoveError::io("write", target))?;
    Ok((hash, written))
}

/// Takes a piece of a file, with its place.
type Piece<'a> = dyn FnMut(u64, &[u8]) -> Result<(), MoveError> + 'a;

/// What a file says, each piece that is no hole handed on in order.
fn said(file: &mut File, path: &Path, each: &mut Piece<'_>) -> Result<Hash, MoveError> {
    let fail = MoveError::io("read", path);
    let len = match file.metadata() {
        Ok(about) => about.len(),
        Err(error) => return Err(fail(error)),
    };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at < len {
        // A file system without holes says that all is data.
        let data = match seek(&*file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(_) => at,
        };
        let hole = seek(&*file, SeekFrom::Hole(data)).unwrap_or(len).max(data + 1).min(len);
        // Blocks are counted from the file's beginning, wherever a piece of data begins.
        at = data - data % BLOCK as u64;
        file.seek(io::SeekFrom::Start(at)).map_err(MoveError::io("read", path))?;
        while at < hole {
            let wanted = usize::try_from(hole - at).unwrap_or(CHUNK).next_multiple_of(BLOCK).min(CHUNK);
            let read = full(file, &mut buffer[..wanted]).map_err(MoveError::io("read", path))?;
            if read == 0 {
                break;
            }
            let bytes = &buffer[..read];
            for (nth, block) in bytes.chunks(BLOCK).enumerate() {
                if block.iter().any(|byte| *byte != 0) {
                    hash.update((at + (nth * BLOCK) as u64).to_le_bytes());
                    hash.update(block);
                }
            }
            each(at, bytes)?;
            at += read as u64;
        }
        at = at.max(hole);
    }
    hash.update(len.to_le_bytes());
    Ok(hash.finalize().into())
}

/// As much as there is room for, unless the file ends.
fn full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// What was not taken, each kind once.
#[derive(Default)]
struct Lacks {
    told: Vec<String>,
}

impl Lacks {
    fn add(&mut self, what: String) {
        if !self.told.contains(&what) {
            self.told.push(what);
        }
    }
}

/// Owner, mode, extended attributes and times, in the order in which none takes another away: chown(2) clears the bits of setuid and
/// capabilities.
fn belongings(source: &Path, target: &Path, from: &Metadata, lacks: &mut Lacks) -> Result<(), MoveError> {
    let kind = FileType::from_raw_mode(from.mode());
    let (owner, group) = (Uid::from_raw(from.uid()), Gid::from_raw(from.gid()));
    chownat(CWD, target, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(MoveError::errno("give an owner to", target))?;
    if kind != FileType::Symlink {
        let mode = fs::Permissions::from_mode(from.mode() & 0o7777);
        fs::set_permissions(target, mode).map_err(MoveError::io("set the mode of", target))?;
    }
    let (wanted, there) = (attributes(source)?, attributes(target)?);
    for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
        let _ = rustix::fs::lremovexattr(target, name.as_c_str());
    }
    for (name, value) in &wanted {
        if there.get(name) == Some(value) {
            continue;
        }
        match lsetxattr(target, name.as_c_str(), value, XattrFlags::empty()) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::PERM) => {
                lacks.add(format!("the attribute {} is not taken by the target's file system", name.to_string_lossy()));
            }
            Err(errno) => return Err(MoveError::errno("set an attribute of", target)(errno)),
        }
    }
    let time = |seconds: i64, nanos: i64| Timespec { tv_sec: seconds, tv_nsec: nanos as _ };
    let times = Timestamps {
        last_access: time(from.atime(), from.atime_nsec()),
        last_modification: time(from.mtime(), from.mtime_nsec()),
    };
    utimensat(CWD, target, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(MoveError::errno("set the times of", target))
}

/// All extended attributes.
fn attributes(path: &Path) -> Result<BTreeMap<CString, Vec<u8>>, MoveError> {
    let fail = |errno| MoveError::errno("read the attributes of", path)(errno);
    // XATTR_LIST_MAX and XATTR_SIZE_MAX (linux/limits.h).
    let mut names = vec![0u8; 1 << 16];
    match llistxattr(path, &mut names[..]) {
        Ok(len) => names.truncate(len),
        Err(Errno::OPNOTSUPP) => return Ok(BTreeMap::new()),
        Err(errno) => return Err(fail(errno)),
    }
    let mut all = BTreeMap::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let Ok(name) = CString::new(name) else { continue };
        let mut value = vec![0u8; 1 << 16];
        match lgetxattr(path, name.as_c_str(), &mut value[..]) {
            Ok(len) => {
                value.truncate(len);
                all.insert(name, value);
            }
            Err(Errno::NODATA) => {}
            Err(errno) => return Err(fail(errno)),
        }
    }
    Ok(all)
}

/// Reads both trees once more, and says what differs: nothing, where each file is as it was read. A file that the source wrote to
/// meanwhile is named as such; `copy` brings it over.
///
/// # Errors
/// The kernel's; [`MoveError::Interrupted`].
pub fn compare(trees: &Trees<'_>, manifest: &Manifest, watch: &mut dyn Watch) -> Result<Differs, MoveError> {
    let mut differs = Differs::default();
    let mut links: HashMap<(u64, u64), u64> = HashMap::new();
    // A folder that came meanwhile brought files with it that nobody wrote to.
    let mut came: Option<PathBuf> = None;
    walk(trees, &mut |name, from, visit| {
        let mut said = Vec::new();
        match differences(trees, manifest, watch, &mut links, (name, from, visit), &mut said) {
            Err(error) if is_gone(trees, &error, &trees.from.join(name)) => return Ok(()),
            result => result?,
        }
        let since = came.as_ref().is_some_and(|came| name.starts_with(came)) || changed(trees, manifest, name, from);
        if since && said == [MISSING] && came.as_ref().is_none_or(|came| !name.starts_with(came)) {
            came = Some(name.to_owned());
        }
        let into = if since { &mut differs.meanwhile } else { &mut differs.really };
        into.extend(said.into_iter().map(|what| format!("/{}: {what}", name.display())));
        Ok(())
    })?;
    Ok(differs)
}

const MISSING: &str = "is missing";

/// Whether the system that runs wrote to it after it was copied: by what was written down of it then, or by its time.
fn changed(trees: &Trees<'_>, manifest: &Manifest, name: &Path, from: &Metadata) -> bool {
    let Some(since) = trees.since else { return false };
    match manifest.known.get(name.as_os_str().as_bytes()) {
        Some((then, _)) if from.is_file() => *then != Moment::of(from),
        _ => Since(from.ctime(), from.ctime_nsec()) >= since,
    }
}

/// What differs of one file.
fn differences(
    trees: &Trees<'_>,
    manifest: &Manifest,
    watch: &mut dyn Watch,
    links: &mut HashMap<(u64, u64), u64>,
    (name, from, visit): (&Path, &Metadata, Visit),
    differs: &mut Vec<String>,
) -> Result<(), MoveError> {
    if watch.ends() {
        return Err(MoveError::Interrupted);
    }
    let kind = FileType::from_raw_mode(from.mode());
    let (source, target) = (trees.from.join(name), trees.to.join(name));
    let mut say = |what: &str| differs.push(what.to_owned());
    let to = match fs::symlink_metadata(&target) {
        Ok(to) => to,
        Err(_) => {
            say(MISSING);
            return Ok(());
        }
    };
    if kind == FileType::Directory {
        if visit == Visit::Before {
            let (wanted, there): (HashSet<_>, Vec<_>) = (names(&source)?.into_iter().collect(), names(&target)?);
            for extra in there.iter().filter(|child| !wanted.contains(*child)) {
                let name = name.join(extra);
                if !left_out(trees, &name) && !holds_own(&name) {
                    say(&format!("holds {} that is not in the source", extra.to_string_lossy()));
                }
            }
            return Ok(());
        }
        // Writing tiermark's own into it made it younger.
        if from.mtime() != to.mtime() && !holds_left_out(trees, name) {
            say("its time differs");
        }
    } else if (from.mtime(), from.mtime_nsec()) != (to.mtime(), to.mtime_nsec()) {
        say("its time differs");
    }
    if from.mode() != to.mode() {
        say(&format!("its mode is {:o} and was {:o}", to.mode(), from.mode()));
    }
    if (from.uid(), from.gid()) != (to.uid(), to.gid()) {
        say("its owner differs");
    }
    if kind != FileType::Directory && from.nlink() > 1 {
        let first = links.entry((from.dev(), from.ino())).or_insert(to.ino());
        if *first != to.ino() {
            say("is another file than the one that it was linked to");
        }
    }
    if attributes(&source)? != attributes(&target)? {
        say("its extended attributes differ");
    }
    match kind {
        FileType::RegularFile => {
            let open = |path: &Path| File::open(path).map_err(MoveError::io("open", path));
            let moment = Moment::of(from);
            let wanted = match manifest.hash(name, moment) {
                Some(hash) => hash,
                None => said(&mut open(&source)?, &source, &mut |_, _| Ok(()))?,
            };
            let mut read = 0;
            let there = said(&mut open(&target)?, &target, &mut |_, bytes| {
                read += bytes.len() as u64;
                watch.went_on(0, bytes.len() as u64);
                if watch.ends() { Err(MoveError::Interrupted) } else { Ok(()) }
            })?;
            if wanted != there {
                say("what it says differs");
            }
        }
        FileType::Symlink if fs::read_link(&source).ok() != fs::read_link(&target).ok() => say("leads elsewhere"),
        FileType::CharacterDevice | FileType::BlockDevice if from.rdev() != to.rdev() => {
            say("is another device");
        }
        _ => {}
    }
    watch.went_on(1, 0);
    Ok(())
}

/// Everything of the file system that `path` lies on is on its disk.
///
/// # Errors
/// The kernel's.
pub fn settle(path: &Path) -> Result<(), MoveError> {
    let folder = File::open(path).map_err(MoveError::io("open", path))?;
    rustix::fs::syncfs(&folder).map_err(MoveError::errno("sync", path))?;
    fsync(&folder).map_err(MoveError::errno("sync", path))
}

#[cfg(test)]
mod tests;
