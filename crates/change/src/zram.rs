//! A zram device of our own: a block device whose content is compressed into memory. The kernel chooses its number, so the
//! journal knows it only after it was made; until then it is told by the devices that there were before. It is removed when
//! its owner is dropped, and by the next start after a kill; never while something uses it.

use crate::error::ChangeError;
use crate::guard;
use crate::journal::{Journal, Standing, random};
use crate::kind::{Change, Present, Reversible};
use crate::value::{chosen, write};
use basics::Bytes;
use rustix::fs::{Access, FlockOperation};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Where devices are made and removed. To read `hot_add` makes one.
const CONTROL: &str = "/sys/class/zram-control";
const BLOCK: &str = "/sys/block";
/// Of a device's settings: the disk behind it.
const BACKING: &str = "backing_dev";
/// For programs that look at every new device (udev, blkid) and hold it open for a moment.
const SETTLE: Duration = Duration::from_secs(2);

/// Before: no such device. Wanted: the one that we made, in whatever state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ZramChange {
    /// Its number, once it is made.
    id: Option<u32>,
    /// The kernel's running number of the disk, which no other has in this boot; since Linux 5.15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diskseq: Option<u64>,
    /// Its size in bytes.
    size: u64,
    /// The devices that there were before.
    before: Vec<Device>,
}

/// A device that may be gone meanwhile; the kernel gives its number to the next one then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Device {
    id: u32,
    /// As for ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    diskseq: Option<u64>,
}

/// What the zram device at this node holds and takes now, whoever made it.
///
/// # Errors
/// When it is none.
pub fn stat(device: &Path) -> io::Result<ZramStat> {
    let text = std::fs::read_to_string(dir_at(device).join("mm_stat"))?;
    ZramStat::parse(&text)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("mm_stat: {text:?} lacks fields")))
}

/// What compresses it, as the kernel says.
///
/// # Errors
/// When it is none.
pub fn algorithm(device: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(dir_at(device).join("comp_algorithm"))?;
    Ok(chosen(&text).unwrap_or(text.trim()).to_owned())
}

/// What lies on the disk behind a zram device, and what was read from it and written to it (`bd_stat`, in units of 4 KiB whatever
/// the page).
///
/// # Errors
/// When it has none.
pub fn behind(device: &Path) -> io::Result<[Bytes; 3]> {
    let dir = dir_at(device);
    // The file is there, all 0, where the kernel could and nobody gave it a disk.
    if std::fs::read_to_string(dir.join(BACKING))?.trim() == "none" {
        return Err(io::ErrorKind::NotFound.into());
    }
    let text = std::fs::read_to_string(dir.join("bd_stat"))?;
    let numbers: Vec<u64> = text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let short = || io::Error::new(io::ErrorKind::InvalidData, format!("bd_stat: {text:?} lacks fields"));
    let [held, read, written, ..] = numbers[..] else { return Err(short()) };
    Ok([held, read, written].map(|units| Bytes(units * 4096)))
}

/// Has it write to the disk behind it: `huge` for what does not compress, `idle` for what is marked so.
///
/// # Errors
/// The kernel's: no space there is one of them.
pub fn write_back(device: &Path, what: &str) -> io::Result<()> {
    write(&dir_at(device).join("writeback"), what)
}

/// Marks all that it holds; the mark of a page goes when that is touched.
///
/// # Errors
/// The kernel's.
pub fn mark_idle(device: &Path) -> io::Result<()> {
    write(&dir_at(device).join("idle"), "all")
}

/// The directory of a device's settings.
fn dir_at(device: &Path) -> PathBuf {
    Path::new(BLOCK).join(device.file_name().unwrap_or_default())
}

fn dir_of(id: u32) -> PathBuf {
    Path::new(BLOCK).join(format!("zram{id}"))
}

fn number<T: FromStr>(path: &Path) -> io::Result<T> {
    let text = std::fs::read_to_string(path)?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, format!("{}: {text:?} is no number", path.display()));
    text.trim().parse().map_err(|_| bad())
}

/// The devices that there are.
fn devices() -> io::Result<Vec<Device>> {
    let mut devices = Vec::new();
    for found in std::fs::read_dir(BLOCK)? {
        let id = found?.file_name().to_str().and_then(|name| name.strip_prefix("zram")?.parse::<u32>().ok());
        devices.extend(id.map(|id| Device { id, diskseq: diskseq(id) }));
    }
    devices.sort_by_key(|device| device.id);
    Ok(devices)
}

fn diskseq(id: u32) -> Option<u64> {
    number(&dir_of(id).join("diskseq")).ok()
}

/// One process at a time may have a device that it made and did not write down yet; freed when dropped.
fn alone() -> io::Result<File> {
    let lock = File::open(CONTROL)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

/// The same for recovery, which holds the journal: whoever makes a device may be waiting for that, so this does not wait for
/// ever.
fn alone_for_once() -> io::Result<File> {
    let lock = File::open(CONTROL)?;
    let began = Instant::now();
    loop {
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) if began.elapsed() < SETTLE => std::thread::sleep(Duration::from_millis(10)),
            locked => return Ok(locked.map(|()| lock)?),
        }
    }
}

/// Tries for a while as long as the kernel says that a program has it open.
fn patiently(path: &Path, value: &str) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match write(path, value) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && began.elapsed() < SETTLE => {
                std::thread::sleep(Duration::from_millis(10));
            }
            written => return written,
        }
    }
}

impl ZramChange {
    /// The device, when it was made but its number not written down any more: new, and as it comes from the kernel. The lock
    /// says that nobody else of ours is just there.
    fn nameless(&self) -> io::Result<Result<u32, Present>> {
        let empty = |id: u32| number::<u64>(&dir_of(id).join("disksize")).ok() == Some(0);
        let came = devices()?.into_iter().filter(|device| !self.before.contains(device));
        let fresh: Vec<u32> = came.map(|device| device.id).filter(|&id| empty(id)).collect();
        Ok(match fresh[..] {
            [] => Err(Present::Before),
            [id] => Ok(id),
            _ => Err(Present::Neither(format!("cannot be told from others that came ({fresh:?})"))),
        })
    }

    /// The number of our device if it is there and is ours.
    fn ours(&self) -> io::Result<Result<u32, Present>> {
        let Some(id) = self.id else { return self.nameless() };
        let dir = dir_of(id);
        if !dir.exists() {
            return Ok(Err(Present::Before));
        }
        if self.diskseq.is_some() {
            let same = diskseq(id) == self.diskseq;
            return Ok(if same { Ok(id) } else { Err(Present::Before) });
        }
        let size = number::<u64>(&dir.join("disksize"))?;
        if size == 0 || size == self.size {
            return Ok(Ok(id));
        }
        Ok(Err(Present::Neither(format!("came to have {}", Bytes(size)))))
    }

    /// Held while a device without a written number is looked for; else not needed.
    fn lock(&self) -> io::Result<Option<File>> {
        match self.id {
            Some(_) => Ok(None),
            None => alone_for_once().map(Some),
        }
    }
}

impl Reversible for ZramChange {
    fn target(&self) -> String {
        self.id.map_or_else(|| "a new zram device".to_owned(), |id| format!("/dev/zram{id}"))
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let fail = |source| ChangeError::Undo { action: "look at the devices in", path: BLOCK.into(), source };
        let _alone = match self.lock() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Present::Away("cannot be told while another process makes one".to_owned()));
            }
            // The module is gone, and its devices with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Present::Before),
            lock => lock.map_err(fail)?,
        };
        let id = match self.ours().map_err(fail)? {
            Ok(id) => id,
            Err(present) => return Ok(present),
        };
        let node = PathBuf::from(format!("/dev/zram{id}"));
        if !node.exists() {
            return Ok(Present::Wanted);
        }
        Ok(match guard::user_of(Path::new("/"), &node) {
            Ok(None) => Present::Wanted,
            Ok(Some((user, remedy))) => Present::Away(format!("is in use: {user}; {remedy}")),
            Err(error) => Present::Away(format!("cannot be looked at: {error}")),
        })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |path: &Path, source| ChangeError::Undo { action: "remove by", path: path.to_owned(), source };
        let control = Path::new(CONTROL);
        let _alone = self.lock().map_err(|e| fail(control, e))?;
        let Ok(id) = self.ours().map_err(|e| fail(control, e))? else { return Ok(()) };
        let reset = dir_of(id).join("reset");
        patiently(&reset, "1").map_err(|e| fail(&reset, e))?;
        let remove = control.join("hot_remove");
        match patiently(&remove, &id.to_string()) {
            Err(error) if Errno::from_io_error(&error) != Some(Errno::NODEV) => Err(fail(&remove, error)),
            _ => Ok(()),
        }
    }

    fn undone(&self) -> &'static str {
        "was removed"
    }

    fn of_this_boot(&self) -> bool {
        true
    }
}

/// What the kernel says of a zram device: `mm_stat` (Documentation/admin-guide/blockdev/zram.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ZramStat {
    /// What is stored, uncompressed; pages of one repeated word are not in it.
    pub orig_data_size: Bytes,
    /// The same, compressed.
    pub compr_data_size: Bytes,
    /// The memory that this takes, with what the allocator loses.
    pub mem_used_total: Bytes,
    /// The most memory that it may take; 0 for no limit.
    pub mem_limit: Bytes,
    /// The most memory that it has taken.
    pub mem_used_max: Bytes,
    /// Pages of one repeated word, which take no memory.
    pub same_pages: u64,
    /// Pages that compaction freed.
    pub pages_compacted: u64,
}

impl ZramStat {
    /// None when a field is missing; later kernels have more.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        Some(ZramStat {
            orig_data_size: Bytes(next()?),
            compr_data_size: Bytes(next()?),
            mem_used_total: Bytes(next()?),
            mem_limit: Bytes(next()?),
            mem_used_max: Bytes(next()?),
            same_pages: next()?,
            pages_compacted: next()?,
        })
    }
}

/// A zram device that is removed when this is dropped.
#[derive(Debug)]
pub struct Zram {
    journal: Journal,
    standing: Option<Standing>,
    id: u32,
    path: PathBuf,
}

impl Zram {
    /// Makes a zram device of `size` (whole pages, rounded up) for `run`, compressed by `algorithm` or by what the kernel
    /// takes by itself, with the block device `behind` it, which it then has for itself.
    ///
    /// # Errors
    /// [`ChangeError::Lacks`] where the kernel makes none, and without root, [`ChangeError::NotOffered`] with the algorithms that it has,
    /// [`ChangeError::Apply`] with its reason, [`ChangeError::Journal`].
    pub fn add(
        journal: &Journal,
        run: &str,
        size: Bytes,
        algorithm: Option<&str>,
        behind: Option<&Path>,
    ) -> Result<Self, ChangeError> {
        let apply = |action, path: &Path, source| ChangeError::as_root(action, path, source);
        let control = Path::new(CONTROL);
        let hot_add = control.join("hot_add");
        if !hot_add.exists() {
            return Err(ChangeError::Lacks {
                what: "this kernel makes no zram devices".to_owned(),
                remedy: "load the module (modprobe zram), or start a kernel that has it (CONFIG_ZRAM)",
            });
        }
        // One that is made must go again.
        let hot_remove = control.join("hot_remove");
        rustix::fs::access(&hot_remove, Access::WRITE_OK).map_err(|e| apply("write to", &hot_remove, e.into()))?;
        let size = size.0.next_multiple_of(rustix::param::page_size() as u64);
        let alone = alone().map_err(|e| apply("lock", control, e))?;
        let before = devices().map_err(|e| apply("look at the devices in", Path::new(BLOCK), e))?;
        let change = ZramChange { id: None, diskseq: None, size, before };
        let id = format!("{run}-zram-{:016x}", random());
        let mut standing = journal.begin(run, id, Change::Zram(change.clone()))?;
        let id = match hot_added(&hot_add) {
            Ok(id) => id,
            Err(error) => {
                journal.forget(&standing)?;
                return Err(apply("get a zram device from", &hot_add, error));
            }
        };
        journal.step("zram device made");
        let dir = dir_of(id);
        let change = ZramChange { id: Some(id), diskseq: diskseq(id), ..change };
        let rewritten = journal.rewrite(&mut standing, Change::Zram(change));
        // From here on a return drops it, and so undoes it.
        let path = PathBuf::from(format!("/dev/zram{id}"));
        let zram = Zram { journal: journal.clone(), standing: Some(standing), id, path };
        rewritten?;
        if let Some(algorithm) = algorithm {
            zram.choose(algorithm)?;
            journal.step("algorithm chosen");
        }
        if let Some(disk) = behind {
            let path = dir.join(BACKING);
            if !path.exists() {
                return Err(ChangeError::Lacks {
                    what: "this kernel's zram can have no disk behind it".to_owned(),
                    remedy: "start a kernel that can (CONFIG_ZRAM_WRITEBACK), or put zswap before the disk",
                });
            }
            write(&path, &disk.display().to_string()).map_err(|e| apply("give a disk to zram in", &path, e))?;
            journal.step("disk put behind zram");
        }
        let disksize = dir.join("disksize");
        write(&disksize, &size.to_string()).map_err(|e| apply("set the size of a zram device in", &disksize, e))?;
        journal.step("zram device set up");
        drop(alone);
        Ok(zram)
    }

    fn choose(&self, algorithm: &str) -> Result<(), ChangeError> {
        let path = dir_of(self.id).join("comp_algorithm");
        let Err(source) = write(&path, algorithm) else { return Ok(()) };
        let offered = std::fs::read_to_string(&path).unwrap_or_default().replace(['[', ']'], "");
        if source.kind() == io::ErrorKind::InvalidInput && !offered.split_whitespace().any(|one| one == algorithm) {
            let offered = offered.trim().to_owned();
            return Err(ChangeError::NotOffered { path, wanted: algorithm.to_owned(), offered });
        }
        Err(ChangeError::as_root("write", path, source))
    }

    /// Its node.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now, with all that is in it, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Away`] when something uses it; [`ChangeError::Undo`]. The next start tries again.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

/// Makes one. Read once, as each reading makes another.
fn hot_added(hot_add: &Path) -> io::Result<u32> {
    let mut text = [0; 16];
    let length = File::open(hot_add)?.read(&mut text)?;
    let text = String::from_utf8_lossy(&text[..length]);
    text.trim().parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("it says {text:?}")))
}

impl Drop for Zram {
    fn drop(&mut self) {
        if let Some(standing) = self.standing.take()
            && let Err(error) = self.journal.end(&standing)
        {
            tracing::warn!("{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_account_is_read() {
        let text = "  409600    20480    61440        0    65536        7        2        0        0\n";
        let stat = ZramStat::parse(text).unwrap();
        assert_eq!((stat.orig_data_size, stat.compr_data_size), (Bytes(409600), Bytes(20480)));
        assert_eq!((stat.mem_used_total, stat.mem_limit, stat.mem_used_max), (Bytes(61440), Bytes(0), Bytes(65536)));
        assert_eq!((stat.same_pages, stat.pages_compacted), (7, 2));
        assert_eq!(ZramStat::parse("1 2 3"), None);
        assert_eq!(ZramStat::parse("1 2 3 4 5 6 -"), None);
    }
}
