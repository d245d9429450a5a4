//! Intervals and samples of the step in progress, kept where they survive SIGKILL and cost no disk write: an append-only
//! file in memory-backed storage, one `pwrite` an entry, emptied whenever a step has been committed to the database.
//!
//! The file begins with [`MAGIC`] and the run's name. An entry is its length (u32), the CRC-32 of its body (u32), and
//! the body: kind (u8), step (u32), content; all little-endian. A killed writer leaves at most one torn entry at the end,
//! which the length or the checksum tells.

use crate::blob::RawInterval;
use crate::error::RecordError;
use crate::model::RunId;
use basics::{Interval, Nanos};
use observe::Sample;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The first bytes of a spool; the digit is the format's version.
const MAGIC: &[u8; 8] = b"TMSPOOL1";
/// Magic and the run's name.
const HEADER: u64 = 16;
/// No entry is longer; a longer length is a torn or foreign one.
const LONGEST_ENTRY: u32 = 1 << 20;

const BEGIN: u8 = 0;
const INTERVAL: u8 = 1;
const SAMPLE: u8 = 2;
const MEASURED: u8 = 3;

/// The spool of a run, held by its process. Dropping it removes the file, unless it holds what was never committed: that is
/// for [`Store::finish`](crate::Store::finish) or the next start's [`Store::recover`](crate::Store::recover).
#[derive(Debug)]
pub struct Spool {
    run: RunId,
    path: PathBuf,
    file: File,
    /// Where the next entry goes.
    end: u64,
    limit: u64,
    in_memory: bool,
    step: Option<u32>,
    dropped: u64,
    /// Kept from entry to entry, so that steady state allocates nothing here.
    body: Vec<u8>,
}

impl Spool {
    /// Makes the file at `path`, which must not exist.
    pub(crate) fn create(run: &RunId, path: PathBuf, limit: u64, in_memory: bool) -> Result<Self, RecordError> {
        let fail = |source| RecordError::Io { action: "make the spool", path: path.clone(), source };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: File =
            rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| fail(errno.into()))?.into();
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&run.as_bytes()[..8.min(run.len())]);
        header.resize(HEADER as usize, 0);
        if let Err(error) = file.write_all_at(&header, 0) {
            let _ = std::fs::remove_file(&path);
            return Err(fail(error));
        }
        Ok(Spool {
            run: run.clone(),
            path,
            file,
            end: HEADER,
            limit,
            in_memory,
            step: None,
            dropped: 0,
            body: Vec::new(),
        })
    }

    /// The run whose spool it is.
    pub fn run(&self) -> &RunId {
        &self.run
    }
    /// Its file, which also stands in the database.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// False when no memory-backed place was found, so that intervals are written to a disk in mid-step; the record
    /// should say so.
    pub fn in_memory(&self) -> bool {
        self.in_memory
    }
    /// Intervals and samples of the step in progress that found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Keeps an interval of `step`. Without room it is counted in [`Spool::dropped`].
    pub fn interval(&mut self, step: u32, interval: &Interval) {
        self.begin(step, interval.end);
        self.append(step, INTERVAL, |body| RawInterval::of(interval).encode(body));
    }

    /// Keeps a sample of `step`. Without room it is counted in [`Spool::dropped`].
    pub fn sample(&mut self, step: u32, sample: &Sample) {
        self.begin(step, sample.at);
        self.append(step, SAMPLE, |body| {
            // Writing JSON to memory fails only for maps whose keys are no text; a sample has none.
            let _ = serde_json::to_writer(body, sample);
        });
    }

    /// Keeps where the intervals of `step` begin on the samples' clock, should its process not live to say so. The last
    /// that is told counts.
    pub fn measured_from(&mut self, step: u32, at: Nanos) {
        self.begin(step, at);
        self.append(step, MEASURED, |body| body.extend_from_slice(&at.0.to_le_bytes()));
    }

    /// Before the first entry of a step: when the step began, should its process not live to say so.
    fn begin(&mut self, step: u32, since: Nanos) {
        if self.step != Some(step) {
            self.step = Some(step);
            let began = now() - since;
            self.append(step, BEGIN, |body| body.extend_from_slice(&began.0.to_le_bytes()));
        }
    }

    fn append(&mut self, step: u32, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
        self.body.clear();
        self.body.extend_from_slice(&[0; 8]);
        self.body.push(kind);
        self.body.extend_from_slice(&step.to_le_bytes());
        content(&mut self.body);
        let length = self.body.len() - 8;
        let checksum = crc32fast::hash(&self.body[8..]);
        self.body[..4].copy_from_slice(&(length as u32).to_le_bytes());
        self.body[4..8].copy_from_slice(&checksum.to_le_bytes());
        let fits = length <= LONGEST_ENTRY as usize && self.end + self.body.len() as u64 <= self.limit;
        // A short write leaves a torn entry, over which the next one is written.
        match fits.then(|| self.file.write_at(&self.body, self.end)) {
            Some(Ok(written)) if written == self.body.len() => self.end += written as u64,
            _ => self.dropped += 1,
        }
    }

    /// All entries since the last [`Spool::clear`].
    pub(crate) fn entries(&mut self) -> io::Result<Entries<'_>> {
        self.file.seek(SeekFrom::Start(HEADER))?;
        Ok(Entries(BufReader::new((&self.file).take(self.end - HEADER))))
    }

    /// Forgets the entries, which are in the database now.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(HEADER)?;
        self.end = HEADER;
        self.step = None;
        self.dropped = 0;
        Ok(())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.end == HEADER {
            // Should it fail: the path stands in the database until the file is gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Unix time, in nanoseconds.
pub(crate) fn now() -> Nanos {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().into()
}

/// The spool that a dead process left.
#[derive(Debug)]
pub(crate) struct Orphan(File);

impl Orphan {
    /// Opens it for reading, if it is there and really is the spool of `run`, made by this user or by root: the folder
    /// may be writable for everybody.
    pub fn open(path: &Path, run: &RunId) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file: File = rustix::fs::open(path, flags, Mode::empty()).ok()?.into();
        let metadata = file.metadata().ok()?;
        let own = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
        let mut header = [0; HEADER as usize];
        let known = metadata.is_file()
            && own
            && file.read_exact(&mut header).is_ok()
            && header.starts_with(MAGIC)
            && header[8..].starts_with(run.as_bytes());
        known.then_some(Orphan(file))
    }

    /// Its entries, up to the first that is torn.
    pub fn entries(&mut self) -> io::Result<Entries<'_>> {
        self.0.seek(SeekFrom::Start(HEADER))?;
        Ok(Entries(BufReader::new((&self.0).take(u64::MAX))))
    }
}

/// What was spooled.
#[derive(Debug)]
pub(crate) enum Entry {
    /// The step began at this Unix time.
    Begin(Nanos),
    /// Its intervals begin here on the samples' clock.
    Measured(Nanos),
    Interval(RawInterval),
    /// JSON of a sample.
    Sample(String),
}

/// Reads entries until the end or the first torn one, in bounded memory.
pub(crate) struct Entries<'a>(BufReader<io::Take<&'a File>>);

impl Iterator for Entries<'_> {
    type Item = (u32, Entry);

    fn next(&mut self) -> Option<Self::Item> {
        let mut head = [0; 8];
        self.0.read_exact(&mut head).ok()?;
        let (length, checksum) = (u32_at(&head, 0)?, u32_at(&head, 4)?);
        if !(5..=LONGEST_ENTRY).contains(&length) {
            return None;
        }
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).ok()?;
        if crc32fast::hash(&body) != checksum {
            return None;
        }
        let (step, content) = (u32_at(&body, 1)?, &body[5..]);
        let entry = match body[0] {
            BEGIN => Entry::Begin(Nanos(u64::from_le_bytes(content.try_into().ok()?))),
            MEASURED => Entry::Measured(Nanos(u64::from_le_bytes(content.try_into().ok()?))),
            INTERVAL => Entry::Interval(RawInterval::decode(content)?),
            SAMPLE => Entry::Sample(String::from_utf8(content.to_vec()).ok()?),
            _ => return None,
        };
        Some((step, entry))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Side;

    fn interval(ms: u64) -> Interval {
        let mut read = Side { bytes: 4096, ..Side::default() };
        read.latency.record(Nanos(ms * 1000));
        Interval { start: Nanos::from_millis(ms), end: Nanos::from_millis(ms + 100), read, ..Interval::default() }
    }

    fn spool(dir: &Path, limit: u64) -> Spool {
        Spool::create(&"0123abcd".to_owned(), dir.join("a.spool"), limit, true).unwrap()
    }

    #[test]
    fn every_cut_leaves_the_whole_entries_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = spool(dir.path(), 1 << 20);
        let mut ends = vec![];
        for i in 0..4 {
            spool.interval(7, &interval(i * 100));
            ends.push(spool.end);
        }
        let whole = std::fs::read(&spool.path).unwrap();
        for cut in HEADER..=whole.len() as u64 {
            let path = dir.path().join("cut");
            std::fs::write(&path, &whole[..cut as usize]).unwrap();
            let mut orphan = Orphan::open(&path, &spool.run).unwrap();
            let kept = orphan.entries().unwrap().filter(|(_, e)| matches!(e, Entry::Interval(_))).count();
            assert_eq!(kept, ends.iter().filter(|end| **end <= cut).count(), "cut at {cut}");
        }
        let mut damaged = whole.clone();
        damaged[ends[1] as usize + 20] ^= 1;
        std::fs::write(dir.path().join("damaged"), damaged).unwrap();
        let mut orphan = Orphan::open(&dir.path().join("damaged"), &spool.run).unwrap();
        assert_eq!(orphan.entries().unwrap().count(), 3, "its beginning and two intervals");
    }

    #[test]
    fn without_room_entries_are_counted_and_the_others_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = spool(dir.path(), 400);
        for i in 0..50 {
            spool.interval(0, &interval(i));
        }
        let kept = spool.entries().unwrap().count() as u64;
        assert!(kept > 1 && spool.dropped() > 0);
        assert_eq!(kept - 1 + spool.dropped(), 50);
        spool.clear().unwrap();
        assert_eq!((spool.dropped(), spool.entries().unwrap().count()), (0, 0));
        spool.interval(1, &interval(0));
        assert_eq!(spool.entries().unwrap().count(), 2);
    }

    #[test]
    fn a_strangers_file_is_no_orphan() {
        let dir = tempfile::tempdir().unwrap();
        let spool = spool(dir.path(), 1 << 20);
        assert!(Orphan::open(&spool.path, &"ffffffff".to_owned()).is_none());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&spool.path, &link).unwrap();
        assert!(Orphan::open(&link, &spool.run).is_none());
        assert!(Orphan::open(dir.path(), &spool.run).is_none());
        assert!(Orphan::open(&dir.path().join("absent"), &spool.run).is_none());
        let path = spool.path.clone();
        drop(spool);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_never_committed_outlives_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = spool(dir.path(), 1 << 20);
        spool.interval(0, &interval(0));
        let (path, run) = (spool.path.clone(), spool.run.clone());
        drop(spool);
        let mut orphan = Orphan::open(&path, &run).unwrap();
        assert_eq!(orphan.entries().unwrap().count(), 2);
    }

    /// Whatever a spool has become, reading it ends, and what it gives is what was written, in order.
    #[test]
    fn a_spool_damaged_anywhere_gives_whole_entries() {
        use proptest::prelude::*;
        let dir = tempfile::tempdir().unwrap();
        let mut spool = spool(dir.path(), 1 << 20);
        for i in 0..6 {
            spool.interval(7, &interval(i * 100));
        }
        let whole = std::fs::read(&spool.path).unwrap();
        let written: Vec<String> = spool.entries().unwrap().map(|entry| format!("{entry:?}")).collect();
        let path = dir.path().join("damaged");
        let cases = if std::env::var_os("TIERMARK_TEST_FULL").is_some() { 50_000 } else { 300 };
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        // Never all of an entry, of which the shortest has 21 bytes: the rest would be a spool as good as any.
        let damage = (any::<prop::sample::Index>(), 0usize..20, prop::collection::vec(any::<u8>(), 0..40));
        let tried = proptest::test_runner::TestRunner::new(config).run(&damage, |(at, gone, instead)| {
            let mut bytes = whole.clone();
            let at = at.index(bytes.len());
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, instead);
            std::fs::write(&path, &bytes).unwrap();
            if let Some(mut orphan) = Orphan::open(&path, &spool.run) {
                let read: Vec<String> = orphan.entries().unwrap().map(|entry| format!("{entry:?}")).collect();
                prop_assert!(read.len() <= written.len());
                prop_assert_eq!(&read[..], &written[..read.len()]);
            }
            Ok(())
        });
        tried.unwrap();
    }
}
