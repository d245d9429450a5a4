//! Swap areas: the header that makes one of a file or a device, and the switching on, which is undone when its owner is
//! dropped and by the next start after a kill. What is written over, and where, is for the caller to decide.

use crate::claim::Claim;
use crate::error::ChangeError;
use crate::guard::unescape;
use crate::journal::{Journal, Standing, random};
use crate::kind::{Change, Present, Reversible};
use basics::Bytes;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The kernel's table of them.
const SWAPS: &str = "/proc/swaps";
/// What makes it a swap area (`union swap_header` of linux/swap.h), in the last bytes of the first page.
const MAGIC: &[u8] = b"SWAPSPACE2";
/// Where the header's fields begin: boot loaders may stand before.
const HEADER: usize = 1024;
/// As mkswap(8) asks for.
const LEAST_PAGES: u64 = 10;
/// Longest name of an area, in bytes.
const LONGEST_LABEL: usize = 16;
/// Each signal that this process gets interrupts the switching off once.
const TRIES: usize = 100;

/// Writes the header of a swap area of `size`, as long as this machine's pages are, and flushes it. `label` has at most 16
/// bytes and may be empty. What stood in the first page is gone.
///
/// # Errors
/// [`ChangeError::Apply`] when it is too small, the file is shorter, the label is too long, or it cannot be written.
pub fn format(file: &File, size: Bytes, label: &str) -> Result<(), ChangeError> {
    let write = || -> io::Result<()> {
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() < size.0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the file has {} and not {size}", Bytes(metadata.len())),
            ));
        }
        let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
        let uuid = u128::from_str_radix(&uuid.trim().replace('-', ""), 16).map_err(io::Error::other)?;
        file.write_all_at(&header(size, label, uuid.to_be_bytes())?, 0)?;
        file.sync_all()
    };
    write().map_err(|source| {
        let link = format!("/proc/self/fd/{}", file.as_raw_fd());
        let path = std::fs::read_link(&link).unwrap_or(link.into());
        ChangeError::Apply { action: "write a swap header to", path, source }
    })
}

/// The first page of a swap area; numbers are as the machine writes them.
fn header(size: Bytes, label: &str, uuid: [u8; 16]) -> io::Result<Vec<u8>> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let page = rustix::param::page_size();
    let pages = size.0 / page as u64;
    if pages < LEAST_PAGES {
        let least = Bytes(LEAST_PAGES * page as u64);
        return Err(invalid(format!("a swap area of {size} is too small; it has at least {least}")));
    }
    if label.len() > LONGEST_LABEL {
        return Err(invalid(format!("{label:?} has more than {LONGEST_LABEL} bytes")));
    }
    let last_page = u32::try_from(pages - 1).unwrap_or(u32::MAX);
    let mut bytes = vec![0; page];
    // version, last_page, nr_badpages
    for (at, number) in [1, last_page, 0].into_iter().enumerate() {
        bytes[HEADER + 4 * at..][..4].copy_from_slice(&number.to_ne_bytes());
    }
    bytes[HEADER + 12..][..16].copy_from_slice(&uuid);
    bytes[HEADER + 28..][..label.len()].copy_from_slice(label.as_bytes());
    bytes[page - MAGIC.len()..].copy_from_slice(MAGIC);
    Ok(bytes)
}

/// The part of its content that is in use, when the area is in the table; the name of a file that is no more has
/// ` (deleted)` at its end.
fn find(table: &str, area: &Path) -> Option<Bytes> {
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let used = (unescape(words.next()?) == area).then(|| words.nth(2))??;
        Some(Bytes(used.parse::<u64>().ok()? << 10))
    })
}

/// Whether an area is on, as far as the table tells.
pub(crate) fn is_on(area: &Path) -> bool {
    table().is_ok_and(|table| find(&table, area).is_some())
}

fn table() -> io::Result<String> {
    match std::fs::read_to_string(SWAPS) {
        // A kernel without swap.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// Before: not in the table. Wanted: in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SwapChange {
    /// Full path, without symbolic links, as the kernel lists it.
    target: PathBuf,
}

impl Reversible for SwapChange {
    fn target(&self) -> String {
        format!("the swap area {}", self.target.display())
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let fail = |source| ChangeError::Undo { action: "read", path: SWAPS.into(), source };
        let table = table().map_err(fail)?;
        if find(&table, &self.target).is_some() {
            return Ok(Present::Wanted);
        }
        let deleted = [self.target.as_os_str().as_bytes(), b" (deleted)"].concat();
        // It can no more be named to the kernel.
        Ok(match find(&table, Path::new(OsStr::from_bytes(&deleted))) {
            Some(_) => Present::Neither("was removed, and stays on until the machine is started again,".to_owned()),
            None => Present::Before,
        })
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Undo { action: "switch off the swap area", path: self.target.clone(), source };
        for _ in 0..TRIES {
            match sys::swap::off(&self.target) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is(&error, Errno::NOMEM) => {
                    let why = "its content does not fit into memory; end what uses the memory";
                    return Err(fail(io::Error::new(io::ErrorKind::OutOfMemory, why)));
                }
                // Somebody was faster.
                Err(error) if is(&error, Errno::INVAL) && self.present()? == Present::Before => return Ok(()),
                off => return off.map_err(fail),
            }
        }
        Err(fail(io::ErrorKind::Interrupted.into()))
    }

    fn undone(&self) -> &'static str {
        "was switched off"
    }

    fn of_this_boot(&self) -> bool {
        true
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// How much of the area at `path` is in use, whoever switched it on.
///
/// # Errors
/// When `/proc/swaps` cannot be read, or it is not there.
pub fn used(path: &Path) -> io::Result<Bytes> {
    find(&table()?, path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{} is not in {SWAPS}", path.display())))
}

/// A swap area that is switched off when this is dropped.
#[derive(Debug)]
pub struct SwapOn {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
    _claim: Claim,
}

impl SwapOn {
    /// Switches the swap area at `path` (a device, or a file without holes, that has a header) on for `run`, without
    /// discards. It is filled before those of a lower `priority`; without one, after all others.
    ///
    /// # Errors
    /// [`ChangeError::Taken`] while another process has settings or swap of its own; [`ChangeError::Apply`] when it is on
    /// already, or with the kernel's reason; [`ChangeError::Lacks`] without root; [`ChangeError::Journal`].
    pub fn on(journal: &Journal, run: &str, path: &Path, priority: Option<u16>) -> Result<Self, ChangeError> {
        let apply = |action, source| ChangeError::as_root(action, path, source);
        const SWITCH: &str = "switch on the swap area";
        let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "it is on already; switch it off first (swapoff)");
        let full = std::fs::canonicalize(path).map_err(|e| apply("find", e))?;
        let claim = Claim::take()?;
        let table = table().map_err(|source| ChangeError::Apply { action: "read", path: SWAPS.into(), source })?;
        if find(&table, &full).is_some() {
            return Err(apply(SWITCH, busy()));
        }
        let id = format!("{run}-swap-{:016x}", random());
        let standing = journal.begin(run, id, Change::SwapOn(SwapChange { target: full.clone() }))?;
        if let Err(error) = sys::swap::on(&full, priority) {
            // It was never on; whoever has it on now is somebody else.
            journal.forget(&standing)?;
            return Err(apply(SWITCH, explained(error, busy)));
        }
        // From here on a return drops it, and so undoes it.
        let area = SwapOn { journal: journal.clone(), standing: Some(standing), path: full, _claim: claim };
        journal.step("swap area on");
        Ok(area)
    }

    /// The area, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches it off now, and tells whether that went well. What it holds goes back into memory first.
    ///
    /// # Errors
    /// [`ChangeError::Undo`], as when its content does not fit into memory; the next start tries again.
    pub fn off(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

/// What the kernel means by refusing to switch on.
fn explained(error: io::Error, busy: impl Fn() -> io::Error) -> io::Error {
    let why = match Errno::from_io_error(&error) {
        Some(Errno::BUSY) => return busy(),
        Some(Errno::INVAL) => {
            "it has no swap header of this machine's page size, or the file has holes, or its file system takes no swap \
             files (btrfs only where copy-on-write and compression are off)"
        }
        Some(Errno::PERM) => "the kernel does not let this user, or there are as many swap areas as it can have",
        Some(Errno::NOSYS) => "this kernel has no swap",
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

impl Drop for SwapOn {
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
    fn an_area_is_found_by_its_path() {
        let table = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
                     /dev/zram1                              partition\t1048572\t\t12\t\t100\n\
                     /my\\040disk/swap                         file\t\t65532\t\t0\t\t-2\n\
                     /x\\040(deleted)                          file\t\t65532\t\t4\t\t-3\n";
        assert_eq!(find(table, Path::new("/dev/zram1")), Some(Bytes(12 << 10)));
        assert_eq!(find(table, Path::new("/my disk/swap")), Some(Bytes(0)));
        assert_eq!(find(table, Path::new("/x (deleted)")), Some(Bytes(4 << 10)));
        assert_eq!(find(table, Path::new("/dev/zram")), None);
        assert_eq!(find(table, Path::new("Filename")), None);
        assert_eq!(find("", Path::new("/dev/zram1")), None);
    }

    #[test]
    fn a_header_has_its_fields_where_the_kernel_looks() {
        let page = rustix::param::page_size();
        let bytes = header(Bytes(10 * page as u64 + 1), "tiermark", [7; 16]).unwrap();
        assert_eq!(bytes.len(), page);
        assert_eq!(&bytes[page - 10..], MAGIC);
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([number(1024), number(1028), number(1032)], [1, 9, 0]);
        assert_eq!(bytes[1036..1052], [7; 16]);
        assert_eq!(&bytes[1052..1068], b"tiermark\0\0\0\0\0\0\0\0");
        assert!(bytes[..1024].iter().chain(&bytes[1068..page - 10]).all(|&byte| byte == 0));
    }

    #[test]
    fn what_cannot_be_an_area_is_refused_unwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("area");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        let refused = |size, label: &str| format(&file, Bytes(size), label).unwrap_err().to_string();
        let page = rustix::param::page_size() as u64;
        assert!(refused(10 * page - 1, "").contains("too small"), "{}", refused(10 * page - 1, ""));
        assert!(refused(2 << 20, "").contains("the file has 1 MiB and not 2 MiB"), "{}", refused(2 << 20, ""));
        let long = refused(1 << 20, "seventeen letters");
        assert!(long.contains("more than 16") && long.contains(path.to_str().unwrap()), "{long}");
        assert!(std::fs::read(&path).unwrap().iter().all(|&byte| byte == 0));
        format(&file, Bytes(1 << 20), "x").unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    }
}
