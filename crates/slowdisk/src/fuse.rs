//! The one place that knows `fuser`: a file system of one file, `disk`, opened past the page cache. Two threads read
//! requests, ask the disk what becomes of them, and leave answers that are not due yet to the schedule's thread.

use crate::disk::{Disk, Verdict};
use crate::faults::Act;
use crate::schedule::Schedule;
use basics::Nanos;
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, WriteFlags,
};
use rustix::fs::FallocateFlags;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// The file's name.
pub(crate) const FILE: &str = "disk";
const DISK: INodeNo = INodeNo(2);
const READERS: usize = 2;
/// Largest request, and what the kernel may have under way.
const LARGEST: u32 = 1 << 20;
const BACKGROUND: u16 = 128;
/// Memory of answers that were read and wait for their time; beyond that they are read when they are due, and so is what
/// needs no copy.
const WAITING: usize = 4 << 20;
/// Sizes that buffers have, and how many of each are kept: one that could grow would end up as large as the largest request,
/// and a hundred small answers that wait would hold a hundred of those.
const SIZES: [(usize, usize); 3] = [(16 << 10, 128), (128 << 10, 32), (LARGEST as usize, 4)];

/// Memory that an answer of so many bytes takes while it waits.
fn weight(len: usize) -> usize {
    SIZES[class(len)].0
}

/// Which of the sizes holds so much; the kernel asks for no more than the largest.
fn class(len: usize) -> usize {
    SIZES.iter().position(|(size, _)| len <= *size).unwrap_or(SIZES.len() - 1)
}
/// Attributes never change.
const FOREVER: Duration = Duration::from_secs(86_400);

/// An answer that waits for its time.
pub(crate) struct Pending {
    verdict: Verdict,
    reply: Reply,
}

enum Reply {
    Data { reply: ReplyData, offset: u64, len: usize, bytes: Option<Vec<u8>> },
    Written { reply: ReplyWrite, len: u32 },
    Empty(ReplyEmpty),
}

/// What readers and the schedule's thread share.
struct Shared {
    disk: Arc<Disk>,
    schedule: Schedule<Pending>,
    waiting: AtomicUsize,
    /// By size.
    buffers: Mutex<[Vec<Vec<u8>>; SIZES.len()]>,
}

impl Shared {
    /// One that holds at least so much.
    fn buffer(&self, len: usize) -> Vec<u8> {
        let class = class(len);
        let kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner)[class].pop();
        kept.unwrap_or_else(|| vec![0; SIZES[class].0.max(len)])
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let class = class(buffer.len());
        let mut kept = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if kept[class].len() < SIZES[class].1 {
            kept[class].push(buffer);
        }
    }

    fn later(&self, verdict: Verdict, reply: Reply) {
        let pending = Pending { verdict, reply };
        // What is due already leaves at once, without waking another thread.
        match self.disk.clock.now().0.checked_sub(verdict.due.0) {
            Some(late) => self.leave(pending, Nanos(late)),
            None => self.schedule.push(verdict.due, pending),
        }
    }

    fn leave(&self, pending: Pending, late: Nanos) {
        let verdict = pending.verdict;
        self.answer(pending);
        self.disk.answered(&verdict, late);
    }

    /// The time has come.
    fn answer(&self, pending: Pending) {
        let Pending { verdict, reply } = pending;
        let outcome = if self.disk.stands(&verdict) { verdict.outcome } else { Err(sys::errno::EIO) };
        match (reply, outcome) {
            (Reply::Data { reply, len, bytes: Some(bytes), .. }, Ok(())) => {
                reply.data(&bytes[..len]);
                self.waiting.fetch_sub(weight(len), Relaxed);
                self.give_back(bytes);
            }
            (Reply::Data { reply, offset, len, bytes: None }, Ok(())) => {
                self.read_and_answer(&verdict, reply, offset, len)
            }
            (Reply::Data { reply, len, bytes, .. }, Err(errno)) => {
                if let Some(bytes) = bytes {
                    self.waiting.fetch_sub(weight(len), Relaxed);
                    self.give_back(bytes);
                }
                reply.error(Errno::from_i32(errno));
            }
            (Reply::Written { reply, len }, Ok(())) => reply.written(len),
            (Reply::Written { reply, .. }, Err(errno)) => reply.error(Errno::from_i32(errno)),
            (Reply::Empty(reply), Ok(())) => reply.ok(),
            (Reply::Empty(reply), Err(errno)) => reply.error(Errno::from_i32(errno)),
        }
    }

    fn read_and_answer(&self, verdict: &Verdict, reply: ReplyData, offset: u64, len: usize) {
        let left = self.disk.lend(verdict, offset, len, |lent| match lent {
            Some(bytes) => {
                reply.data(bytes);
                None
            }
            None => Some(reply),
        });
        let Some(reply) = left else { return };
        match self.read(verdict, offset, len) {
            Ok(bytes) => {
                reply.data(&bytes[..len]);
                self.give_back(bytes);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(&self, verdict: &Verdict, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.buffer(len);
        self.disk.read(verdict, offset, &mut bytes[..len])?;
        Ok(bytes)
    }
}

/// The file system of one file.
struct OneFile(Arc<Shared>);

impl OneFile {
    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.0.disk.size),
            _ => return None,
        };
        let time = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// The part of a range that lies on the disk.
    fn within(&self, offset: u64, len: u64) -> u64 {
        len.min(self.0.disk.size.saturating_sub(offset))
    }
}

/// The verdict with the outcome of what was done to the bytes.
fn with(verdict: Verdict, done: io::Result<()>) -> Verdict {
    let failed = done.err().map(|error| match error.kind() {
        io::ErrorKind::StorageFull => sys::errno::ENOSPC,
        _ => error.raw_os_error().unwrap_or(sys::errno::EIO),
    });
    Verdict { outcome: failed.map_or(verdict.outcome, Err), ..verdict }
}

impl Filesystem for OneFile {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without it the loop device's requests go one at a time: 136 µs instead of 58 at depth 4.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::other("this kernel's FUSE has no asynchronous direct I/O (Linux 3.13)"))?;
        let _ = config.set_max_background(BACKGROUND);
        let _ = config.set_congestion_threshold(BACKGROUND);
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_readahead(LARGEST);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(DISK).filter(|_| parent == INodeNo::ROOT && name == FILE) {
            Some(attributes) => reply.entry(&FOREVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&FOREVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if offset == 0 {
            let _ = reply.add(DISK, 1, FileType::RegularFile, FILE);
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let shared = &self.0;
        let len = self.within(offset, u64::from(size));
        let verdict = shared.disk.arrive(shared.disk.clock.now(), Act::Read, offset, len);
        let len = len as usize;
        // A copy made beforehand is only for what has to be put together.
        if verdict.outcome.is_ok() && shared.disk.lend(&verdict, offset, len, |lent| lent.is_some()) {
            return shared.later(verdict, Reply::Data { reply, offset, len, bytes: None });
        }
        let taken = weight(len);
        if verdict.outcome.is_err() || shared.waiting.fetch_add(taken, Relaxed) + taken > WAITING {
            if verdict.outcome.is_ok() {
                shared.waiting.fetch_sub(taken, Relaxed);
            }
            return shared.later(verdict, Reply::Data { reply, offset, len, bytes: None });
        }
        match shared.read(&verdict, offset, len) {
            Ok(bytes) => shared.later(verdict, Reply::Data { reply, offset, len, bytes: Some(bytes) }),
            Err(error) => {
                shared.waiting.fetch_sub(taken, Relaxed);
                shared.later(with(verdict, Err(error)), Reply::Data { reply, offset, len, bytes: None });
            }
        }
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let shared = &self.0;
        let data = &data[..self.within(offset, data.len() as u64) as usize];
        let mut verdict = shared.disk.arrive(shared.disk.clock.now(), Act::Write, offset, data.len() as u64);
        if verdict.outcome.is_ok() {
            verdict = with(verdict, shared.disk.write(&verdict, offset, data));
        }
        shared.later(verdict, Reply::Written { reply, len: data.len() as u32 });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let shared = &self.0;
        let verdict = shared.disk.arrive(shared.disk.clock.now(), Act::Flush, 0, 0);
        if verdict.outcome.is_ok() {
            shared.disk.flush(&verdict);
        }
        shared.later(verdict, Reply::Empty(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let shared = &self.0;
        let mode = FallocateFlags::from_bits_truncate(mode as u32);
        let len = self.within(offset, length);
        let now = shared.disk.clock.now();
        if mode.contains(FallocateFlags::PUNCH_HOLE) {
            let mut verdict = shared.disk.arrive(now, Act::Trim, offset, len);
            if verdict.outcome.is_ok() {
                verdict = with(verdict, shared.disk.trim(&verdict, offset, len));
            }
            shared.later(verdict, Reply::Empty(reply));
        } else if mode.contains(FallocateFlags::ZERO_RANGE) {
            // A command without data: it costs a write of a sector, whatever its length.
            let mut verdict = shared.disk.arrive(now, Act::Write, offset, len.min(512));
            if verdict.outcome.is_ok() {
                verdict = with(verdict, shared.disk.zero(&verdict, offset, len));
            }
            shared.later(verdict, Reply::Empty(reply));
        } else {
            reply.error(Errno::EOPNOTSUPP);
        }
    }
}

/// A mounted file system with its threads.
pub(crate) struct Mounted {
    session: Option<BackgroundSession>,
    shared: Arc<Shared>,
    answering: Option<JoinHandle<()>>,
}

impl Mounted {
    /// Mounts the disk's file at `at`, with this source.
    pub fn new(disk: Arc<Disk>, at: &Path, source: &str) -> io::Result<Self> {
        let schedule = Schedule::new(disk.clock);
        let shared = Arc::new(Shared { disk, schedule, waiting: AtomicUsize::new(0), buffers: Mutex::default() });
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName(source.to_owned()), MountOption::Subtype("tiermark".into()), MountOption::NoAtime];
        config.n_threads = Some(READERS);
        let session = Session::new(OneFile(Arc::clone(&shared)), at, &config)?.spawn()?;
        let answers = Arc::clone(&shared);
        let answering = std::thread::Builder::new().name("answers".into()).spawn(move || {
            sys::thread::sharpen_timers();
            answers.schedule.run(|pending, late| answers.leave(pending, late));
        })?;
        Ok(Mounted { session: Some(session), shared, answering: Some(answering) })
    }

    /// True when the file system's threads have ended by themselves: somebody unmounted it, or aborted its connection.
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.guard.is_finished())
    }

    fn end(&mut self) -> io::Result<()> {
        // Whoever still waits is answered first: unmounting waits for them.
        let unmounted = self.session.take().map_or(Ok(()), BackgroundSession::umount_and_join);
        self.shared.schedule.close();
        if let Some(answering) = self.answering.take() {
            let _ = answering.join();
        }
        unmounted
    }

    /// Unmounts and ends the threads.
    pub fn unmount(mut self) -> io::Result<()> {
        self.end()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.session.is_some()
            && let Err(error) = self.end()
        {
            tracing::warn!("cannot unmount: {error}");
        }
    }
}
