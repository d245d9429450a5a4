//! A model's file in Ollama's folder, under the name that Ollama gives it: its SHA-256. It is put there without Ollama, so that
//! neither the hashing nor the copying falls into what is measured of it.

use crate::error::LlmError;
use basics::Bytes;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes read at once.
const PIECE: usize = 1 << 20;

/// A model's file as Ollama keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: Bytes,
    /// True when it was copied, false when it is another name of the file given, or was there already.
    pub copied: bool,
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LlmError + use<'a> {
    move |source| LlmError::File { action, path: path.to_owned(), source }
}

/// Taken away again unless it got its last name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Blob {
    /// Puts `file` into the folder `models`, which has no other owner: as a hard link where it can, else as a copy that has reached its
    /// disk. It is read once, so that afterwards it may be in the page cache.
    ///
    /// # Errors
    /// [`LlmError::File`]; [`LlmError::Cancelled`] when `cancel` gets true, and nothing is left of it then.
    pub fn place(models: &Path, file: &Path, cancel: &AtomicBool) -> Result<Blob, LlmError> {
        let file = file.canonicalize().map_err(failed("find", file))?;
        let mut source = File::open(&file).map_err(failed("open", &file))?;
        let folder = models.join("blobs");
        std::fs::create_dir_all(&folder).map_err(failed("make the folder", &folder))?;
        let temporary = Temporary(folder.join(format!(".placed-by-{}", std::process::id())));
        let link = std::fs::hard_link(&file, &temporary.0);
        let mut copy = match link {
            Ok(()) => None,
            Err(_) => {
                let new = OpenOptions::new().write(true).create_new(true).open(&temporary.0);
                Some(new.map_err(failed("make", &temporary.0))?)
            }
        };
        let (digest, bytes) =
            digest(&mut source, &file, copy.as_mut().map(|copy| (copy, temporary.0.as_path())), cancel)?;
        if let Some(copy) = &copy {
            copy.sync_all().map_err(failed("write", &temporary.0))?;
        }
        let path = folder.join(format!("sha256-{digest}"));
        let there = path.metadata().is_ok_and(|meta| meta.len() == bytes);
        if !there {
            std::fs::rename(&temporary.0, &path).map_err(failed("name", &path))?;
        }
        let copied = copy.is_some() && !there;
        Ok(Blob { digest: format!("sha256:{digest}"), path, bytes: Bytes(bytes), copied })
    }
}

/// The SHA-256 of all that `source` holds, in hexadecimal, and its length; written to `copy` on the way.
fn digest(
    source: &mut File,
    path: &Path,
    mut copy: Option<(&mut File, &Path)>,
    cancel: &AtomicBool,
) -> Result<(String, u64), LlmError> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        if cancel.load(Ordering::Relaxed) {
            return Err(LlmError::Cancelled);
        }
        let count = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed("read", path)(error)),
        };
        hasher.update(&piece[..count]);
        bytes += count as u64;
        if let Some((copy, to)) = &mut copy {
            copy.write_all(&piece[..count]).map_err(failed("write", to))?;
        }
    }
    let mut text = String::new();
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Ok((text, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_linked_under_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("m.gguf");
        std::fs::write(&file, "abc").unwrap();
        let models = dir.path().join("models");
        let go_on = AtomicBool::new(false);
        let blob = Blob::place(&models, &file, &go_on).unwrap();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((blob.digest.as_str(), blob.bytes, blob.copied), (&*format!("sha256:{digest}"), Bytes(3), false));
        assert_eq!(blob.path, models.join(format!("blobs/sha256-{digest}")));
        assert_eq!(blob.path.metadata().unwrap().ino(), file.metadata().unwrap().ino());
        assert_eq!(Blob::place(&models, &file, &go_on).unwrap(), blob);
        assert!(matches!(Blob::place(&models, &file, &AtomicBool::new(true)), Err(LlmError::Cancelled)));
        assert_eq!(std::fs::read_dir(models.join("blobs")).unwrap().count(), 1, "something is left");
        let missing = Blob::place(&models, &dir.path().join("none"), &go_on).unwrap_err().to_string();
        assert!(missing.starts_with("cannot find /") && missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn a_file_of_another_file_system_is_copied() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/dev/shm"));
        let Ok(there) = there else { return println!("SKIP a_file_of_another_file_system_is_copied: no /dev/shm") };
        let file = here.path().join("m");
        std::fs::write(&file, vec![7; PIECE + 5]).unwrap();
        let blob = Blob::place(there.path(), &file, &AtomicBool::new(false)).unwrap();
        assert_eq!(std::fs::read(&blob.path).unwrap(), std::fs::read(&file).unwrap());
        assert!(blob.copied || file.metadata().unwrap().dev() == blob.path.metadata().unwrap().dev());
    }
}
