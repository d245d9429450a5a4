//! Intervals and samples of the step in progress, kept where they survive SIGKILL and cost no disk write: an append-only
//! file in memory-backed storage, one `pwrite` an entry, emptied whenever a step has been committed to the database.
//!
//! It is memory, so it is bounded: at two thirds of its limit it is thinned ([`Thinner`]) into a file beside it, which
//! then takes its name, and from there on entries come in as thin as that. What SIGKILL loses is the interval in
//! progress, which is wider then. Both files together stay within the limit.
//!
//! The file begins with [`MAGIC`] and the run's name; its first entry tells its process and its database ([`Owner`]), for
//! the database knows its spool, and when that is gone nobody else would. An entry is its length (u32), the CRC-32 of its body (u32), and
//! the body: kind (u8), step (u32), content; all little-endian. A killed writer leaves at most one torn entry at the end,
//! which the length or the checksum tells.

use crate::blob::RawInterval;
use crate::error::RecordError;
use crate::model::RunId;
use crate::thin::{Bounded, Thinner, copy_thinned};
use basics::{Interval, Nanos};
use observe::Sample;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use sys::process::Identity;

/// The first bytes of a spool; the digit is the format's version.
const MAGIC: &[u8; 8] = b"TMSPOOL1";
/// Magic and the run's name.
const HEADER: u64 = 16;
/// No entry is longer; a longer length is a torn or foreign one.
pub(crate) const LONGEST_ENTRY: u32 = 1 << 20;

pub(crate) const BEGIN: u8 = 0;
pub(crate) const INTERVAL: u8 = 1;
pub(crate) const SAMPLE: u8 = 2;
pub(crate) const MEASURED: u8 = 3;
const OWNER: u8 = 4;

/// Whose spool it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub process: Identity,
    /// The full path.
    pub database: PathBuf,
}

/// The spool of a run, held by its process. Dropping it removes the file, unless it holds what was never committed: that is
/// for [`Store::finish`](crate::Store::finish) or the next start's [`Store::recover`](crate::Store::recover).
#[derive(Debug)]
pub struct Spool {
    run: RunId,
    path: PathBuf,
    file: File,
    /// Where the first entry of a step goes.
    start: u64,
    /// Where the next entry goes.
    end: u64,
    limit: u64,
    /// Where it is thinned next.
    thin_at: u64,
    thinner: Thinner,
    in_memory: bool,
    step: Option<u32>,
    dropped: u64,
    /// Kept from entry to entry, so that steady state allocates nothing here.
    body: Vec<u8>,
}

impl Spool {
    /// Makes the file at `path`, which must not exist.
    pub(crate) fn create(
        run: &RunId,
        path: PathBuf,
        owner: &Owner,
        limit: u64,
        in_memory: bool,
    ) -> Result<Self, RecordError> {
        let fail = |source| RecordError::Io { action: "make the spool", path: path.clone(), source };
        let file = make(&path).map_err(fail)?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&run.as_bytes()[..8.min(run.len())]);
        header.resize(HEADER as usize, 0);
        let mut body = Vec::new();
        // A path that is no text fails, and leaves an owner that nobody can read: such a spool is never swept away.
        encode(&mut body, 0, OWNER, |body| drop(serde_json::to_writer(body, owner)));
        header.extend_from_slice(&body);
        if let Err(error) = file.write_all_at(&header, 0) {
            let _ = std::fs::remove_file(&path);
            return Err(fail(error));
        }
        Ok(Spool {
            run: run.clone(),
            path,
            file,
            start: header.len() as u64,
            end: header.len() as u64,
            limit,
            thin_at: limit / 3 * 2,
            thinner: Thinner::new(1),
            in_memory,
            step: None,
            dropped: 0,
            body,
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

    /// How many intervals of the step in progress were joined to one, at most.
    pub fn together(&self) -> u32 {
        self.thinner.together
    }

    /// Keeps an interval of `step`. Without room it is counted in [`Spool::dropped`].
    pub fn interval(&mut self, step: u32, interval: &Interval) {
        self.begin(step, interval.end);
        if self.thinner.together == 1 {
            self.append(step, INTERVAL, |body| RawInterval::of(interval).encode(body));
        } else if let Some(joined) = self.thinner.interval(interval) {
            self.append(step, INTERVAL, |body| RawInterval::of(&joined).encode(body));
        }
    }

    /// Keeps a sample of `step`. Without room it is counted in [`Spool::dropped`].
    pub fn sample(&mut self, step: u32, sample: &Sample) {
        self.begin(step, sample.at);
        // Writing JSON to memory fails only for maps whose keys are no text; a sample has none.
        let write = |body: &mut Vec<u8>| drop(serde_json::to_writer(body, sample));
        if self.thinner.together == 1 {
            self.append(step, SAMPLE, write);
        } else {
            let mut json = Vec::new();
            write(&mut json);
            if let Some(json) = self.thinner.sample(json) {
                self.append(step, SAMPLE, |body| body.extend_from_slice(&json));
            }
        }
    }

    /// Writes what is held back until more follows.
    pub(crate) fn flush(&mut self) {
        let (interval, sample) = self.thinner.rest();
        let Some(step) = self.step else { return };
        if let Some(interval) = interval {
            self.append(step, INTERVAL, |body| RawInterval::of(&interval).encode(body));
        }
        if let Some(sample) = sample {
            self.append(step, SAMPLE, |body| body.extend_from_slice(&sample));
        }
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
            self.flush();
            self.step = Some(step);
            let began = now() - since;
            self.append(step, BEGIN, |body| body.extend_from_slice(&began.0.to_le_bytes()));
        }
    }

    fn append(&mut self, step: u32, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.body, step, kind, content);
        let fits = self.body.len() <= 8 + LONGEST_ENTRY as usize && self.end + self.body.len() as u64 <= self.limit;
        // A short write leaves a torn entry, over which the next one is written.
        match fits.then(|| self.file.write_at(&self.body, self.end)) {
            Some(Ok(written)) if written == self.body.len() => self.end += written as u64,
            _ => self.dropped += 1,
        }
        if self.end > self.thin_at {
            self.thin();
        }
    }

    /// Makes room. Where that fails, the spool goes on as it is, to its limit.
    fn thin(&mut self) {
        let thinned = self.write_thinned().and_then(|thinned| {
            std::fs::rename(beside(&self.path), &self.path)?;
            Ok(thinned)
        });
        match thinned {
            Ok(Thinned { file, end, factor }) => {
                (self.file, self.end) = (file, end);
                self.thinner.together = self.thinner.together.saturating_mul(factor);
            }
            // Should it fail: whoever removes the spool removes both.
            Err(_) => drop(std::fs::remove_file(beside(&self.path))),
        }
        // Never at every entry, even where thinning gained little or nothing.
        self.thin_at = (self.limit / 3 * 2).max(self.end + self.limit.saturating_sub(self.end) / 2);
    }

    /// Writes the file that is to take the spool's name, as thin as it takes to fit beside it.
    fn write_thinned(&mut self) -> io::Result<Thinned> {
        let room = self.limit.saturating_sub(self.end);
        let path = beside(&self.path);
        let mut header = vec![0; self.start as usize];
        self.file.read_exact_at(&mut header, 0)?;
        for factor in [2, 4, 8, 16, 32, 64] {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = make(&path)?;
            let mut out = Bounded::new(&file, room);
            if out.write(&header)? && copy_thinned(self.entries()?, factor, &mut out)? {
                let end = out.end;
                out.flush()?;
                drop(out);
                return Ok(Thinned { file, end, factor });
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// All entries since the last [`Spool::clear`].
    pub(crate) fn entries(&mut self) -> io::Result<Entries<'_>> {
        self.file.seek(SeekFrom::Start(self.start))?;
        Ok(Entries(BufReader::new((&self.file).take(self.end - self.start))))
    }

    /// Forgets the entries, which are in the database now.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(self.start)?;
        self.end = self.start;
        self.step = None;
        self.dropped = 0;
        self.thin_at = self.limit / 3 * 2;
        self.thinner = Thinner::new(1);
        Ok(())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if self.end == self.start {
            // Should it fail: the path stands in the database until the file is gone.
            let _ = std::fs::remove_file(&self.path);
        } else {
            self.flush();
        }
    }
}

/// A spool that was thinned and has not yet taken the place of the one that it was made of.
struct Thinned {
    file: File,
    end: u64,
    /// How many of its entries became one.
    factor: u32,
}

/// Makes a file that must not exist, for this user only.
fn make(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// Where a spool is thinned to.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Removes a spool, if it is there, and before it the one that was to take its place: none of the latter is left alone.
pub(crate) fn remove_spool(path: &Path) -> io::Result<()> {
    for path in [&beside(path), path] {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Makes `body` an entry.
pub(crate) fn encode(body: &mut Vec<u8>, step: u32, kind: u8, content: impl FnOnce(&mut Vec<u8>)) {
    body.clear();
    body.extend_from_slice(&[0; 8]);
    body.push(kind);
    body.extend_from_slice(&step.to_le_bytes());
    content(body);
    let length = body.len() - 8;
    let checksum = crc32fast::hash(&body[8..]);
    body[..4].copy_from_slice(&(length as u32).to_le_bytes());
    body[4..8].copy_from_slice(&checksum.to_le_bytes());
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

    /// Whose it is, where that can be read.
    pub fn owner(&mut self) -> io::Result<Option<Owner>> {
        self.0.seek(SeekFrom::Start(HEADER))?;
        let first = Entries(BufReader::new((&self.0).take(u64::MAX))).body();
        let owner = first.filter(|body| body[0] == OWNER);
        Ok(owner.and_then(|body| serde_json::from_slice(&body[5..]).ok()))
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

impl Entries<'_> {
    /// The next one that is whole: kind, step, content.
    fn body(&mut self) -> Option<Vec<u8>> {
        let mut head = [0; 8];
        self.0.read_exact(&mut head).ok()?;
        let (length, checksum) = (u32_at(&head, 0)?, u32_at(&head, 4)?);
        if !(5..=LONGEST_ENTRY).contains(&length) {
            return None;
        }
        let mut body = vec![0; length as usize];
        self.0.read_exact(&mut body).ok()?;
        (crc32fast::hash(&body) == checksum).then_some(body)
    }
}

impl Iterator for Entries<'_> {
    type Item = (u32, Entry);

    fn next(&mut self) -> Option<Self::Item> {
        let mut body = self.body()?;
        if body[0] == OWNER {
            body = self.body()?;
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
        let owner = Owner { process: Identity::of_this_process().unwrap(), database: dir.join("a.db") };
        Spool::create(&"0123abcd".to_owned(), dir.join("a.spool"), &owner, limit, true).unwrap()
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
        let mut spool = spool(dir.path(), 700);
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

    /// The tenth of a second after the `n`-th.
    fn tenth(n: u64) -> Interval {
        let mut read = Side { bytes: 4096, ..Side::default() };
        read.latency.record(Nanos(70_000 + n % 40 * 1_000));
        let (start, end) = (Nanos::from_millis(n * 100), Nanos::from_millis(n * 100 + 100));
        Interval { start, end, position: n, read, ..Interval::default() }
    }

    fn sample(n: u64) -> Sample {
        Sample { at: Nanos::from_millis(n * 100), temperature_c: Some(51.3), ..Sample::default() }
    }

    /// Intervals and the moments of samples.
    fn read(entries: Entries<'_>) -> (Vec<Interval>, Vec<Nanos>) {
        let (mut intervals, mut samples) = (vec![], vec![]);
        for (_, entry) in entries {
            match entry {
                Entry::Interval(raw) => intervals.push(raw.interval().unwrap()),
                Entry::Sample(json) => samples.push(serde_json::from_str::<Sample>(&json).unwrap().at),
                Entry::Begin(_) | Entry::Measured(_) => {}
            }
        }
        (intervals, samples)
    }

    /// All operations up to `until`, without a gap.
    fn assert_whole(intervals: &[Interval], until: u64) {
        assert!(intervals.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((intervals[0].start, intervals.last().unwrap().end), (Nanos(0), Nanos::from_millis(until * 100)));
        assert_eq!(intervals.iter().map(|one| one.read.operations()).sum::<u64>(), until);
        assert_eq!(intervals.iter().map(|one| one.read.bytes).sum::<u64>(), until * 4096);
    }

    /// Bug: a long step took up to 256 MB of the memory that was being measured.
    #[test]
    fn a_long_step_stays_within_the_limit_and_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let limit = 40_000;
        let mut spool = spool(dir.path(), limit);
        spool.measured_from(3, Nanos(5));
        let long = 6_000;
        for n in 0..long {
            spool.interval(3, &tenth(n));
            spool.sample(3, &sample(n));
            assert!(spool.end <= limit && spool.file.metadata().unwrap().len() <= limit);
            if n % 1_499 == 0 {
                // Killed here: the file under its name holds all but the interval in progress.
                let mut orphan = Orphan::open(&spool.path, &spool.run).unwrap();
                let (intervals, samples) = read(orphan.entries().unwrap());
                let until = intervals.last().unwrap().end.0 / 100_000_000;
                assert_whole(&intervals, until);
                let lost = n + 1 - until;
                assert!(lost < u64::from(spool.together()), "{lost} of {n}");
                assert_eq!(samples[0], Nanos(0));
            }
        }
        spool.flush();
        assert!(spool.end <= limit && spool.together() > 8, "{} together", spool.together());
        assert!(!beside(&spool.path).exists());
        let (intervals, samples) = read(spool.entries().unwrap());
        assert_whole(&intervals, long);
        assert_eq!((samples[0], *samples.last().unwrap()), (Nanos(0), Nanos::from_millis((long - 1) * 100)));
        assert!(samples.is_sorted() && samples.len() > 8, "{}", samples.len());
        assert_eq!(spool.dropped(), 0);
        let kinds = spool.entries().unwrap().filter(|(_, e)| matches!(e, Entry::Begin(_) | Entry::Measured(_))).count();
        assert_eq!(kinds, 2);
        spool.clear().unwrap();
        assert_eq!(spool.together(), 1, "the next step begins whole");
    }

    #[test]
    fn killed_before_the_thinned_file_takes_its_name_all_is_there_and_both_can_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = spool(dir.path(), 1 << 20);
        for n in 0..201 {
            spool.interval(0, &tenth(n));
            spool.sample(0, &sample(n));
        }
        let thinned = spool.write_thinned().unwrap();
        let old = read(Orphan::open(&spool.path, &spool.run).unwrap().entries().unwrap());
        assert_eq!((old.0.len(), old.1.len()), (201, 201));
        assert_whole(&old.0, 201);
        let (intervals, samples) = read(Orphan::open(&beside(&spool.path), &spool.run).unwrap().entries().unwrap());
        assert_eq!((thinned.factor, intervals.len(), samples.len()), (2, 101, 101));
        assert_whole(&intervals, 201);
        assert_eq!(samples.last(), old.1.last());
        remove_spool(&spool.path).unwrap();
        assert!(!spool.path.exists() && !beside(&spool.path).exists());
        remove_spool(&spool.path).unwrap();
    }

    #[test]
    fn no_interval_is_joined_across_a_gap() {
        let mut thinner = Thinner::new(4);
        let given: Vec<Interval> = [0, 1, 5, 6, 7, 8, 9].iter().filter_map(|n| thinner.interval(&tenth(*n))).collect();
        let ends: Vec<u64> = given.iter().chain(&thinner.rest().0).map(|one| one.end.0 / 100_000_000).collect();
        assert_eq!(ends, [2, 9, 10]);
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
