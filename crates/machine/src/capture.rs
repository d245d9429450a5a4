//! Writes a tree that [`crate::read`] understands: exactly the files that reading this machine looks at, and their likes for
//! questions to come, as a tar without anything that identifies a person, a machine or a medium.
//!
//! What to take is not listed here but found out: the machine is read once through a root that notes every file, folder and
//! link, so the capture can't miss what the reader needs.

use crate::root::{Root, Trace};
use crate::scrub::Scrubber;
use basics::Bytes;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::PoisonError;
use tar::{Builder, EntryType, Header};
use thiserror::Error;

/// Files that `read` does not ask for today, without anything private, which a later version or a person may.
const ALSO: [&str; 14] = [
    "/proc/diskstats",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/stat",
    "/proc/vmstat",
    "/sys/kernel/mm/lru_gen/min_ttl_ms",
    "/sys/kernel/mm/swap/vma_ra_enabled",
    "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
    "/sys/module/usb_storage/parameters/quirks",
    "/sys/module/zswap/parameters/accept_threshold_percent",
    "/sys/module/zswap/parameters/shrinker_enabled",
];
/// The same for each block device.
const ALSO_BLOCK: [&str; 14] = [
    "stat",
    "mm_stat",
    "max_comp_streams",
    "queue/add_random",
    "queue/discard_granularity",
    "queue/fua",
    "queue/io_poll",
    "queue/max_hw_sectors_kb",
    "queue/max_segments",
    "queue/minimum_io_size",
    "queue/nr_requests",
    "queue/optimal_io_size",
    "queue/rq_affinity",
    "queue/wbt_lat_usec",
];
/// Most bytes of a file that only may be of use.
const ALSO_BYTES: u64 = 1 << 20;

/// A capture that could not be written.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// Writing failed.
    #[error("the capture could not be written ({source}); look at the free space and the permissions of its folder")]
    Write {
        /// What the system said.
        #[from]
        source: std::io::Error,
    },
}

/// What a capture holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Files.
    pub files: usize,
    /// Symbolic links.
    pub links: usize,
    /// Bytes of all files.
    pub bytes: u64,
    /// Different identifiers and names that were replaced.
    pub replaced: usize,
}

impl fmt::Display for CaptureSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CaptureSummary { files, links, bytes, replaced } = self;
        write!(f, "{files} files and {links} links, {}; {replaced} identifiers and names replaced", Bytes(*bytes))
    }
}

/// Writes the machine below `root` as a tar to `out`: a folder that it is unpacked into is a root for [`crate::read`].
/// Entries have no owner and no time.
///
/// # Errors
/// When `out` can't be written. What can't be read of the machine is left out.
pub fn capture(root: &Root, out: &mut impl Write) -> Result<CaptureSummary, CaptureError> {
    let mut scrubber = Scrubber::new(root);
    let (traced, trace) = root.traced();
    crate::read(&traced);
    for path in ALSO {
        // What is missing stays missing.
        let _ = traced.bytes(path, ALSO_BYTES);
    }
    for disk in traced.names("/sys/block") {
        for file in ALSO_BLOCK {
            let _ = traced.bytes(Path::new("/sys/block").join(&disk).join(file), ALSO_BYTES);
        }
    }
    let trace = std::mem::take(&mut *trace.lock().unwrap_or_else(PoisonError::into_inner));
    write(trace, &mut scrubber, out)
}

fn write(trace: Trace, scrubber: &mut Scrubber, out: &mut impl Write) -> Result<CaptureSummary, CaptureError> {
    let mut tar = Builder::new(out);
    let mut summary = CaptureSummary { files: 0, links: 0, bytes: 0, replaced: 0 };
    let inside = |path: &str| path.trim_start_matches('/').to_owned();
    for folder in trace.folders.iter().filter(|folder| folder.parent().is_some()) {
        let name = inside(&scrubber.path(folder));
        tar.append_data(&mut header(EntryType::Directory, 0o755, 0), name, std::io::empty())?;
    }
    for (link, target) in &trace.links {
        let name = inside(&scrubber.path(link));
        let target = scrubber.path(target);
        tar.append_link(&mut header(EntryType::Symlink, 0o777, 0), name, target)?;
        summary.links += 1;
    }
    for (path, content) in &trace.files {
        let name = inside(&scrubber.path(path));
        let content = scrubber.content(path, content);
        summary.bytes += content.len() as u64;
        summary.files += 1;
        tar.append_data(&mut header(EntryType::Regular, 0o644, content.len() as u64), name, content.as_slice())?;
    }
    tar.finish()?;
    summary.replaced = scrubber.replaced();
    Ok(summary)
}

/// An entry without owner and time.
fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header
}
