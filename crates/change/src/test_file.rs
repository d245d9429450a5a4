//! A file of tiermark's own to measure on: made under a name that nobody else uses, journalled before it exists, removed
//! on every way out and by the next start after a kill. It leaves a tenth of the file system free.

use crate::error::ChangeError;
use crate::journal::{Journal, Standing, random, sync_dir};
use crate::kind::{Change, Present, Reversible};
use basics::Bytes;
use rustix::fs::{Access, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// However small the file system, this much stays free.
const LEAST_FREE: u64 = 16 << 20;
/// One part in this many of the file system stays free.
const FREE_PART: u64 = 10;

/// A journal entry's account of a test file. Before: nothing of that name. Wanted: a regular file of this user, at most
/// `size` long. Its name holds 64 random bits, drawn for this entry, so a file that bears it is the one that was made;
/// inode numbers would not do, because some file systems (FAT) give new ones at each mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileChange {
    /// Full path, without symbolic links.
    target: PathBuf,
    /// Its full length, in bytes.
    size: u64,
    /// Who made it.
    uid: u32,
    /// Device number of the directory: tells whether the same file system is mounted there.
    device: u64,
    /// Its name is the user's choice and holds nothing random: only a file of exactly that length, or one that was just made,
    /// is taken for it.
    #[serde(default)]
    named: bool,
}

impl Reversible for FileChange {
    fn target(&self) -> String {
        self.target.display().to_string()
    }

    fn present(&self) -> Result<Present, ChangeError> {
        let metadata = match std::fs::symlink_metadata(&self.target) {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let dir = self.target.parent().and_then(|dir| std::fs::metadata(dir).ok());
                return Ok(match dir {
                    Some(dir) if dir.dev() == self.device => Present::Before,
                    _ => Present::Away("is on a file system that is not mounted there now".to_owned()),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Ok(Present::Away("cannot be looked at with the rights of this user".to_owned()));
            }
            Err(source) => {
                return Err(ChangeError::Undo { action: "look at", path: self.target.clone(), source });
            }
        };
        if crate::swap_area::is_on(&self.target) {
            return Ok(Present::Away("is in use as swap; switch it off with swapoff".to_owned()));
        }
        let neither = |how: &str| Ok(Present::Neither(how.to_owned()));
        if !metadata.is_file() {
            neither("became something other than a plain file")
        } else if metadata.uid() != self.uid {
            neither("came to belong to another user")
        } else if metadata.len() > self.size {
            neither("grew")
        } else if self.named && ![0, self.size].contains(&metadata.len()) {
            neither("became another file")
        } else {
            Ok(Present::Wanted)
        }
    }

    fn undo(&self) -> Result<(), ChangeError> {
        let fail = |source| ChangeError::Undo { action: "remove", path: self.target.clone(), source };
        match std::fs::remove_file(&self.target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
        // Flushed before its entry goes, or a power cut could bring the file back with nobody to know it.
        self.target.parent().map_or(Ok(()), sync_dir).map_err(fail)
    }

    fn undone(&self) -> &'static str {
        "was removed"
    }
}

/// A file that is removed when this is dropped.
#[derive(Debug)]
pub struct TestFile {
    journal: Journal,
    standing: Option<Standing>,
    path: PathBuf,
    size: Bytes,
}

/// How much a test file in `dir` may take: what is free for this user less a tenth of the file system, and less 16 MiB
/// where a tenth is smaller.
///
/// # Errors
/// [`ChangeError::NotADirectory`] and the like when it cannot be told.
pub fn room(dir: &Path) -> Result<Bytes, ChangeError> {
    let (free, kept) = free_and_kept(dir)?;
    Ok(Bytes(free.0.saturating_sub(kept.0)))
}

fn free_and_kept(dir: &Path) -> Result<(Bytes, Bytes), ChangeError> {
    let stat = rustix::fs::statvfs(dir).map_err(|e| ChangeError::in_dir("look at", dir, e.into()))?;
    if stat.f_blocks == 0 {
        return Err(ChangeError::NoPlace { dir: dir.to_owned() });
    }
    let whole = stat.f_blocks.saturating_mul(stat.f_frsize);
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    Ok((Bytes(free), Bytes((whole / FREE_PART).max(LEAST_FREE))))
}

/// Whether a test file of `size` may be made in `dir`, as far as looking tells; and the directory's full path.
///
/// # Errors
/// As [`TestFile::create`], which asks the same.
pub fn may_make(dir: &Path, size: Bytes) -> Result<PathBuf, ChangeError> {
    let fail = |action| move |source: io::Error| ChangeError::in_dir(action, dir, source);
    let full = std::fs::canonicalize(dir).map_err(fail("find"))?;
    if !std::fs::metadata(&full).map_err(fail("look at"))?.is_dir() {
        return Err(ChangeError::NotADirectory { dir: dir.to_owned() });
    }
    if size.0 == 0 {
        return Err(ChangeError::Empty { dir: dir.to_owned() });
    }
    let (free, kept) = free_and_kept(&full)?;
    let may_write = rustix::fs::access(&full, Access::WRITE_OK | Access::EXEC_OK);
    may_write.map_err(|errno| ChangeError::in_dir("write in", dir, errno.into()))?;
    if size.0.saturating_add(kept.0) > free.0 {
        return Err(ChangeError::NoRoom { dir: dir.to_owned(), needed: size, free, kept });
    }
    Ok(full)
}

impl TestFile {
    /// Makes a file of `size` in `dir` for `run`. Its space is reserved where the file system can do that, and not
    /// written.
    ///
    /// # Errors
    /// [`ChangeError::Empty`] for a size of 0; [`ChangeError::NoRoom`] when too little would stay free (see [`room`]); one sentence each for a missing
    /// directory, a read-only file system, a lack of rights, and a journal that cannot be written.
    pub fn create(journal: &Journal, run: &str, dir: &Path, size: Bytes) -> Result<Self, ChangeError> {
        let full = may_make(dir, size)?;
        let metadata = std::fs::metadata(&full).map_err(|error| ChangeError::in_dir("look at", dir, error))?;
        let (free, kept) = free_and_kept(&full)?;
        let no_room = |free, kept| ChangeError::NoRoom { dir: dir.to_owned(), needed: size, free, kept };
        let id = format!("{run}-{:016x}", random());
        let path = full.join(format!(".tiermark-{id}.tmp"));
        let change = Change::TestFile(FileChange {
            target: path.clone(),
            size: size.0,
            uid: rustix::process::geteuid().as_raw(),
            device: metadata.dev(),
            named: false,
        });
        let standing = journal.begin(run, id, change)?;
        // From here on a return drops it, and so undoes it.
        let file = TestFile { journal: journal.clone(), standing: Some(standing), path, size };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created: File = match rustix::fs::open(&file.path, flags, Mode::RUSR | Mode::WUSR) {
            Ok(created) => created.into(),
            Err(errno) => {
                // Refused before anything was made. To undo would mean to look, which may be refused as well, and then
                // the entry would stand for ever for a file that never was.
                if matches!(errno, Errno::ACCESS | Errno::PERM | Errno::ROFS) {
                    file.never_made()?;
                }
                return Err(ChangeError::in_dir("make a test file in", dir, errno.into()));
            }
        };
        journal.step("test file made");
        match rustix::fs::fallocate(&created, FallocateFlags::empty(), 0, size.0) {
            // It will be written anyway; reserving only tells earlier that it does not fit.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(Errno::NOSPC | Errno::DQUOT) => return Err(no_room(free, kept)),
            Err(errno) => return Err(ChangeError::in_dir("reserve room for a test file in", dir, errno.into())),
        }
        journal.step("test file reserved");
        Ok(file)
    }

    /// Forgets the entry of a file that the kernel refused to make.
    fn never_made(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.forget(&standing))
    }

    /// Makes a file of `size` that is all hole, at a path of the user's choice where nothing is yet, for `run`. Its space is
    /// neither reserved nor asked for.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] when something of that name exists, which is left as it is; else as [`TestFile::create`].
    pub fn sparse(journal: &Journal, run: &str, path: &Path, size: Bytes) -> Result<Self, ChangeError> {
        let apply = |source: io::Error| ChangeError::Apply { action: "make", path: path.to_owned(), source };
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let full = std::fs::canonicalize(dir).map_err(|e| ChangeError::in_dir("find", dir, e))?;
        let metadata = std::fs::metadata(&full).map_err(|e| ChangeError::in_dir("look at", dir, e))?;
        let name = path.file_name().ok_or_else(|| apply(io::ErrorKind::InvalidFilename.into()))?;
        let target = full.join(name);
        if target.symlink_metadata().is_ok() {
            return Err(apply(io::ErrorKind::AlreadyExists.into()));
        }
        let change = Change::TestFile(FileChange {
            target: target.clone(),
            size: size.0,
            uid: rustix::process::geteuid().as_raw(),
            device: metadata.dev(),
            named: true,
        });
        let standing = journal.begin(run, format!("{run}-file"), change)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created: File = match rustix::fs::open(&target, flags, Mode::RUSR | Mode::WUSR) {
            Ok(created) => created.into(),
            Err(errno) => {
                // Somebody made one meanwhile, or nothing was made: either way there is nothing to undo.
                journal.forget(&standing)?;
                return Err(apply(errno.into()));
            }
        };
        let file = TestFile { journal: journal.clone(), standing: Some(standing), path: target, size };
        journal.step("sparse file made");
        created.set_len(size.0).map_err(apply)?;
        Ok(file)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its full length.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Removes the file and makes it anew, empty and without room reserved, under the same name and the same journal entry.
    ///
    /// # Errors
    /// [`ChangeError::Apply`] when the file system does not let it be done.
    pub fn renew(&self) -> Result<(), ChangeError> {
        let apply = |action| move |source: io::Error| ChangeError::Apply { action, path: self.path.clone(), source };
        std::fs::remove_file(&self.path).map_err(apply("remove"))?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR);
        made.map(drop).map_err(|errno| apply("make")(errno.into()))
    }

    /// Removes it now, and tells whether that went well.
    ///
    /// # Errors
    /// [`ChangeError::Meddled`] when somebody else changed the file, which is left then. [`ChangeError::Undo`],
    /// [`ChangeError::Away`] or [`ChangeError::Journal`]; the next start tries again.
    pub fn remove(mut self) -> Result<(), ChangeError> {
        self.standing.take().map_or(Ok(()), |standing| self.journal.end(&standing))
    }
}

impl Drop for TestFile {
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

    struct Place {
        dir: tempfile::TempDir,
        journal: Journal,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let journal = Journal::open(&dir.path().join("journal")).unwrap();
            Place { dir, journal }
        }

        fn file(&self) -> TestFile {
            TestFile::create(&self.journal, "0a1b2c3d", self.dir.path(), Bytes(1 << 20)).unwrap()
        }

        fn entries(&self) -> Vec<PathBuf> {
            std::fs::read_dir(self.journal.dir()).unwrap().map(|entry| entry.unwrap().path()).collect()
        }

        /// Makes the entry look as if its process had died.
        fn kill(&self, file: TestFile) -> PathBuf {
            let path = file.path().to_owned();
            let [entry] = self.entries().try_into().unwrap();
            let text = std::fs::read_to_string(&entry).unwrap();
            std::mem::forget(file);
            std::fs::write(entry, text.replace("\"start_ticks\": ", "\"start_ticks\": 9")).unwrap();
            path
        }
    }

    #[test]
    fn it_is_there_whole_and_goes_with_its_owner() {
        let place = Place::new();
        let file = place.file();
        let path = file.path().to_owned();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
        assert_eq!(place.entries().len(), 1);
        assert_eq!(place.journal.recover().unwrap(), [], "its owner lives");
        drop(file);
        assert!(!path.exists() && place.entries().is_empty());
        place.file().remove().unwrap();
        assert!(place.entries().is_empty());
    }

    #[test]
    fn a_file_of_the_users_name_is_made_anew_and_never_another_removed() {
        let place = Place::new();
        let path = place.dir.path().join("disk.img");
        let sparse = || TestFile::sparse(&place.journal, "0a1b2c3d", &path, Bytes(1 << 30));
        let file = sparse().unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (1 << 30, 0));
        assert!(sparse().unwrap_err().to_string().contains("exists"));
        let path_of_killed = place.kill(file);
        std::fs::write(&path_of_killed, "of value").unwrap();
        let [told] = place.journal.recover().unwrap().try_into().unwrap();
        assert!(!told.undone && told.to_string().contains("became another file"), "{told}");
        assert!(path.exists() && place.entries().is_empty());
        assert!(sparse().is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"of value");
        assert!(place.entries().is_empty());
    }

    #[test]
    fn a_dead_owners_file_is_removed() {
        let place = Place::new();
        let path = place.kill(place.file());
        let [told] = place.journal.recover().unwrap().try_into().unwrap();
        assert_eq!(told.to_string(), format!("{} was removed, left over from run 0a1b2c3d", path.display()));
        assert!(told.undone && !path.exists() && place.entries().is_empty());
    }

    #[test]
    fn what_became_something_else_is_told_and_left() {
        let place = Place::new();
        let path = place.kill(place.file());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let [told] = place.journal.recover().unwrap().try_into().unwrap();
        assert!(told.to_string().contains("something other than a plain file"), "{told}");
        assert!(!told.undone && path.exists() && place.entries().is_empty());

        let path = place.kill(place.file());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
        let [told] = place.journal.recover().unwrap().try_into().unwrap();
        assert!(!told.undone && path.exists(), "{told}");
    }

    #[test]
    fn the_owner_is_told_what_somebody_else_did() {
        let place = Place::new();
        let file = place.file();
        let path = file.path().to_owned();
        std::fs::File::options().write(true).open(&path).unwrap().set_len(2 << 20).unwrap();
        let error = file.remove().unwrap_err();
        assert!(matches!(error, ChangeError::Meddled { .. }), "{error}");
        assert!(error.to_string().contains("grew meanwhile"), "{error}");
        assert!(path.exists() && place.entries().is_empty());
    }

    #[test]
    fn the_latest_change_is_undone_first() {
        let place = Place::new();
        let files: Vec<TestFile> = (0..8).map(|_| place.file()).collect();
        let mut made: Vec<String> = files.iter().map(|file| file.path().display().to_string()).collect();
        files.into_iter().for_each(std::mem::forget);
        for entry in place.entries() {
            let text = std::fs::read_to_string(&entry).unwrap();
            std::fs::write(entry, text.replace("\"start_ticks\": ", "\"start_ticks\": 9")).unwrap();
        }
        let undone: Vec<String> = place.journal.recover().unwrap().into_iter().map(|told| told.target).collect();
        made.reverse();
        assert_eq!(undone, made);
    }

    #[test]
    fn an_unreadable_entry_is_told_and_kept() {
        let place = Place::new();
        std::fs::write(place.journal.dir().join("x.json"), "{").unwrap();
        let [told] = place.journal.recover().unwrap().try_into().unwrap();
        assert!(told.to_string().contains("x.json cannot be read"), "{told}");
        assert_eq!(place.entries().len(), 1);
    }

    #[test]
    fn without_room_or_a_directory_nothing_is_made() {
        let place = Place::new();
        let create = |dir: &Path, size| TestFile::create(&place.journal, "0a1b2c3d", dir, Bytes(size)).unwrap_err();
        assert!(matches!(create(place.dir.path(), u64::MAX), ChangeError::NoRoom { needed: Bytes(u64::MAX), .. }));
        let (free, kept) = free_and_kept(place.dir.path()).unwrap();
        // Others write to this file system too; far above the limit is enough to see that the tenth counts.
        let size = free.0 - kept.0 / 2;
        assert!(matches!(create(place.dir.path(), size), ChangeError::NoRoom { .. }));
        let missing = create(&place.dir.path().join("missing"), 1);
        assert!(matches!(missing, ChangeError::NotADirectory { .. }), "{missing}");
        assert!(matches!(create(place.dir.path(), 0), ChangeError::Empty { .. }));
        assert!(matches!(create(Path::new("/proc/version"), 1), ChangeError::NotADirectory { .. }));
        assert!(matches!(create(Path::new("/proc"), 1), ChangeError::NoPlace { .. }));
        assert!(place.entries().is_empty());
    }
}
