//! The folder below which everything is read: `/` for the live machine, or a captured or hand-made tree. Symbolic links
//! of a tree are resolved *below its root*, absolute and relative ones, `..` included, so that a tree can never make
//! tiermark read the machine it runs on. A missing, empty or garbled file is a [`Known::Unknown`], never an error.

use basics::{Known, Why};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

/// Symbolic links followed on one path before it counts as a loop; the kernel's own limit (path_resolution(7)).
const MAX_LINKS: u32 = 40;
/// Longest file that is read. The largest of them, a mount table with thousands of containers, stays below.
const MAX_TEXT: u64 = 4 << 20;

/// Where a machine's files are read.
#[derive(Debug, Clone)]
pub struct Root {
    base: PathBuf,
    live: bool,
    /// Paths whose real path is known, or known to be missing: a tree does not change while it is read. Only trees need it: on the live machine the kernel resolves.
    resolved: Arc<Mutex<HashMap<PathBuf, Option<PathBuf>>>>,
    trace: Option<Arc<Mutex<Trace>>>,
}

/// What was looked at, for [`crate::capture()`]: paths as seen from inside the root.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// Files whose content was read, by real path, with the content.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    /// Folders that were listed or found to exist, by real path.
    pub(crate) folders: BTreeSet<PathBuf>,
    /// Links that were followed, with their target.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
}

impl Root {
    /// The machine that this program runs on.
    pub fn live() -> Self {
        Root { base: PathBuf::from("/"), live: true, resolved: Arc::default(), trace: None }
    }

    /// A captured or hand-made tree at `path`. `/` is the live machine.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let base = path.into();
        if base == Path::new("/") { Root::live() } else { Root { base, live: false, ..Root::live() } }
    }

    /// True for the machine that this program runs on.
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// The same root, noting what is looked at.
    pub(crate) fn traced(&self) -> (Self, Arc<Mutex<Trace>>) {
        let trace = Arc::new(Mutex::new(Trace::default()));
        (Root { trace: Some(Arc::clone(&trace)), resolved: Arc::default(), ..self.clone() }, trace)
    }

    /// The content of a small file, without the white space and NUL bytes around it. Empty counts as not reported.
    pub fn text(&self, path: impl AsRef<Path>) -> Known<String> {
        match self.bytes(path, MAX_TEXT) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
                Known::or_not_reported((!text.is_empty()).then(|| text.to_owned()))
            }
            Err(why) => Known::Unknown(why),
        }
    }

    /// [`Root::text`] for those who don't ask why there is none.
    pub(crate) fn word(&self, path: impl AsRef<Path>) -> Option<String> {
        self.text(path).into_option()
    }

    /// A file that holds one number.
    pub fn number<T: FromStr>(&self, path: impl AsRef<Path>) -> Known<T> {
        match self.text(path) {
            Known::Is(text) => text.parse().map_or_else(|_| Known::Unknown(Why::Unreadable(excerpt(&text))), Known::Is),
            Known::Unknown(why) => Known::Unknown(why),
        }
    }

    /// At most `limit` first bytes of a regular file.
    ///
    /// # Errors
    /// Why there are none: no such file (or not a regular one), no permission, or what the system said.
    pub fn bytes(&self, path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, Why> {
        let real = self.followed(path.as_ref()).ok_or(Why::NotReported)?;
        let host = self.outside(&real);
        let why = |error: std::io::Error| match error.kind() {
            ErrorKind::PermissionDenied => Why::NoPermission,
            ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => Why::NotReported,
            _ => Why::Unreadable(error.to_string()),
        };
        // A tree may hold a FIFO or a device node, which would block or have effects; only a regular file is opened.
        if !fs::metadata(&host).map_err(why)?.is_file() {
            return Err(Why::NotReported);
        }
        let mut bytes = Vec::new();
        File::open(&host).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(why)?;
        self.note(|trace| {
            let known = trace.files.entry(real.into_owned()).or_default();
            if known.len() < bytes.len() {
                known.clone_from(&bytes);
            }
        });
        Ok(bytes)
    }

    /// The names in a folder, sorted so that `sda10` follows `sda9`; none when it can't be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Some(real) = self.followed(path.as_ref()) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(self.outside(&real)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| natural(name));
        self.note(|trace| {
            trace.folders.insert(real.into_owned());
        });
        names
    }

    /// [`Root::names`], each entry with where it leads to: what is only listed would be missing from a capture.
    pub(crate) fn entries(&self, path: impl AsRef<Path>) -> Vec<String> {
        let names = self.names(path.as_ref());
        if self.trace.is_some() {
            for entry in names.iter().map(|name| path.as_ref().join(name)) {
                if self.link_name(&entry).is_none() {
                    self.exists(&entry);
                }
            }
        }
        names
    }

    /// True when something is there, links followed.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.followed(path.as_ref()).is_some_and(|real| {
            let found = fs::metadata(self.outside(&real));
            if let Ok(meta) = &found {
                self.note(|trace| {
                    if meta.is_dir() {
                        trace.folders.insert(real.to_path_buf());
                    } else {
                        trace.files.entry(real.to_path_buf()).or_default();
                    }
                });
            }
            found.is_ok()
        })
    }

    /// The path without links, as seen from inside the root; none when nothing is there or the links go in circles.
    pub fn real(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        if self.live && self.trace.is_none() {
            return fs::canonicalize(path).ok();
        }
        let path = path.as_ref();
        let mut links = 0;
        // Most paths are files of a folder that was asked about before.
        match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => {
                let known = self.cached(folder);
                let folder = known.unwrap_or_else(|| {
                    let real = self.resolve(folder, &mut links);
                    self.remember(folder.to_owned(), real)
                })?;
                self.step(&folder, name, &mut links)
            }
            _ => self.resolve(path, &mut links),
        }
    }

    /// A path that can be opened without leaving the root: the real one in a tree, any on the live machine, where the kernel
    /// follows the links and looking them up first would cost twice the calls.
    fn followed<'p>(&self, path: &'p Path) -> Option<Cow<'p, Path>> {
        if self.live && self.trace.is_none() { Some(Cow::Borrowed(path)) } else { self.real(path).map(Cow::Owned) }
    }

    /// The last component of a link's target, whether or not it leads anywhere: sysfs names a driver or a subsystem so.
    pub(crate) fn link_name(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        let folder = self.real(path.parent()?)?;
        let link = folder.join(path.file_name()?);
        let target = fs::read_link(self.outside(&link)).ok()?;
        let name = target.file_name()?.to_str()?.to_owned();
        self.note(|trace| {
            trace.links.insert(link, target);
        });
        Some(name)
    }

    /// A path inside the root as the running system must name it.
    pub fn outside(&self, inside: &Path) -> PathBuf {
        if self.live { inside.to_owned() } else { self.base.join(inside.strip_prefix("/").unwrap_or(inside)) }
    }

    /// Walks the components from the root, following links without ever leaving it; `..` of the root is the root.
    fn resolve(&self, path: &Path, links: &mut u32) -> Option<PathBuf> {
        let mut at = PathBuf::from("/");
        for component in path.components() {
            match component {
                Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
                Component::ParentDir => {
                    at.pop();
                }
                Component::Normal(name) => at = self.step(&at, name, links)?,
            }
        }
        Some(at)
    }

    /// One component further from the real folder `at`.
    fn step(&self, at: &Path, name: &OsStr, links: &mut u32) -> Option<PathBuf> {
        let next = at.join(name);
        if let Some(known) = self.cached(&next) {
            return known;
        }
        // The live machine's own process is no link to a number that is gone when the capture is read.
        if self.live && next == Path::new("/proc/self") {
            return Some(next);
        }
        let host = self.outside(&next);
        let real = match fs::symlink_metadata(&host) {
            Ok(meta) if meta.is_symlink() => {
                *links += 1;
                if *links > MAX_LINKS {
                    return None;
                }
                let target = fs::read_link(&host).ok()?;
                self.note(|trace| {
                    trace.links.insert(next.clone(), target.clone());
                });
                self.resolve(&at.join(target), links)
            }
            Ok(_) => Some(next.clone()),
            Err(_) => None,
        };
        self.remember(next, real)
    }

    fn cached(&self, path: &Path) -> Option<Option<PathBuf>> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn remember(&self, path: PathBuf, real: Option<PathBuf>) -> Option<PathBuf> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner).insert(path, real.clone());
        real
    }

    fn note(&self, what: impl FnOnce(&mut Trace)) {
        if let Some(trace) = &self.trace {
            what(&mut trace.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// The beginning of a text that could not be understood, short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

/// A sort key under which runs of digits count as numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(digits);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(end);
        key.push((word.to_owned(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/devices/a/block/sda")).unwrap();
        fs::write(dir.path().join("sys/devices/a/block/sda/size"), "42").unwrap();
        fs::create_dir_all(dir.path().join("sys/block")).unwrap();
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn links_stay_below_the_root() {
        let (dir, root) = tree();
        symlink("../devices/a/block/sda", dir.path().join("sys/block/sda")).unwrap();
        symlink("/sys/devices/a/block/sda", dir.path().join("sys/block/sdb")).unwrap();
        symlink("../../../../../../../../etc", dir.path().join("sys/out")).unwrap();
        assert_eq!(root.number("/sys/block/sda/size"), Known::Is(42u64));
        assert_eq!(root.number("/sys/block/sdb/size"), Known::Is(42u64));
        assert_eq!(root.real("/sys/block/sdb").unwrap(), Path::new("/sys/devices/a/block/sda"));
        assert_eq!(root.real("/sys/block/sda/../.."), Some(PathBuf::from("/sys/devices/a")));
        assert!(root.text("/sys/out/passwd").is_unknown(), "a tree read the machine below it");
        assert!(root.text("/../../../../../../../../etc/passwd").is_unknown());
    }

    #[test]
    fn loops_end() {
        let (dir, root) = tree();
        symlink("b", dir.path().join("a")).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        symlink("c/c", dir.path().join("c")).unwrap();
        for path in ["/a", "/b", "/c", "/c/c/c"] {
            assert!(root.real(path).is_none(), "{path}");
            assert!(root.text(path).is_unknown(), "{path}");
        }
    }

    #[test]
    fn unknown_says_why() {
        let (dir, root) = tree();
        fs::write(dir.path().join("empty"), "").unwrap();
        fs::write(dir.path().join("garbage"), b"\xff\xfe12").unwrap();
        fs::write(dir.path().join("model"), b"Raspberry Pi 5\0").unwrap();
        assert_eq!(root.text("/empty"), Known::Unknown(Why::NotReported));
        assert_eq!(root.text("/sys"), Known::Unknown(Why::NotReported));
        assert_eq!(root.text("/model"), Known::Is("Raspberry Pi 5".to_owned()));
        assert!(matches!(root.number::<u64>("/garbage"), Known::Unknown(Why::Unreadable(_))));
    }

    #[test]
    fn names_sort_by_number() {
        let (dir, root) = tree();
        for name in ["sda10", "sda9", "sda1", "loop0"] {
            fs::write(dir.path().join("sys/block").join(name), "").unwrap();
        }
        assert_eq!(root.names("/sys/block"), ["loop0", "sda1", "sda9", "sda10"]);
    }
}
