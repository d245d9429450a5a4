//! What stands at a path, and putting something else there: whole or not at all, with owner, mode and extended attributes (among them
//! the label of SELinux) of what was there.

use rustix::fs::{Gid, Mode, OFlags, Uid};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// No settings file is larger.
const LARGEST: u64 = 1 << 20;
/// Attributes are short; those that are longer than this are no labels or lists of rights.
const LONGEST_ATTRIBUTE: usize = 64 << 10;

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Content {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// All of it.
        text: String,
        /// Permissions.
        mode: u32,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
    },
    /// A symbolic link.
    Link {
        /// What it says.
        to: PathBuf,
    },
}

impl Content {
    /// A file that was not there before: root's, readable by all.
    pub(super) fn new_file(text: String) -> Content {
        Content::File {
            text,
            mode: 0o644,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    /// The same file with another text.
    pub(super) fn with_text(&self, new: String) -> Content {
        match self {
            Content::File { mode, uid, gid, .. } => Content::File { text: new, mode: *mode, uid: *uid, gid: *gid },
            _ => Content::new_file(new),
        }
    }

    /// Its text; nothing of what is no file.
    pub(super) fn text(&self) -> &str {
        match self {
            Content::File { text, .. } => text,
            _ => "",
        }
    }

    /// Whether a reader finds the same: what a file system cannot keep (FAT has no owners) does not tell.
    pub(super) fn says_the_same(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::File { text, .. }, Content::File { text: other, .. }) => text == other,
            _ => self == other,
        }
    }

    /// What stands at a path, which is a real one: its last component may be a link and is told as such.
    pub(super) fn read(path: &Path) -> io::Result<Content> {
        let about = match fs::symlink_metadata(path) {
            Ok(about) => about,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Absent),
            Err(error) => return Err(error),
        };
        if about.file_type().is_symlink() {
            return Ok(Content::Link { to: fs::read_link(path)? });
        }
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if !about.is_file() {
            return Err(wrong("it is neither a file nor a link"));
        }
        if about.len() > LARGEST {
            return Err(wrong("it is larger than any file of settings"));
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("it is no text in UTF-8"))?;
        Ok(Content::File { text, mode: about.mode() & 0o7777, uid: about.uid(), gid: about.gid() })
    }
}

/// Where a file is made before it gets its name.
pub(super) fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.tiermark-draft"))
}

/// Puts it there, durably and in one step: whoever looks finds the one or the other. `step` is told of what was done.
pub(super) fn put(path: &Path, content: &Content, step: &dyn Fn(&'static str)) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let draft = draft_of(path);
    remove(&draft)?;
    match content {
        Content::Absent => {
            remove(path)?;
            step("file removed");
        }
        Content::Link { to } => {
            symlink(to, &draft)?;
            step("link drafted");
            fs::rename(&draft, path).inspect_err(|_| drop(remove(&draft)))?;
            step("link named");
        }
        Content::File { text, mode, uid, gid } => {
            let write = || -> io::Result<()> {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let mut file: File = rustix::fs::open(&draft, flags, Mode::RUSR | Mode::WUSR)?.into();
                step("file begun");
                file.write_all(text.as_bytes())?;
                like_the_one_before(&file, path, *mode, (*uid, *gid))?;
                file.sync_all()?;
                step("file drafted");
                fs::rename(&draft, path)?;
                step("file named");
                Ok(())
            };
            write().inspect_err(|_| drop(remove(&draft)))?;
        }
    }
    File::open(folder)?.sync_all()
}

/// Removes what may not be there; it is looked for first, as a file system that is read-only says so even of what it does not have.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path).and_then(|_| fs::remove_file(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Owner, mode and attributes. What the file system has no place for is no reason to stop.
fn like_the_one_before(file: &File, path: &Path, mode: u32, owner: (u32, u32)) -> io::Result<()> {
    let about = file.metadata()?;
    if (about.uid(), about.gid()) != owner {
        match rustix::fs::fchown(file, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1))) {
            // FAT has one owner for all files, and gives them the mode that it was mounted with.
            Err(error) if error == rustix::io::Errno::PERM && !is_fat(file) => return Err(error.into()),
            _ => {}
        }
    }
    match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
        Err(error) if error == rustix::io::Errno::PERM && !is_fat(file) => return Err(error.into()),
        _ => {}
    }
    let Ok(before) = File::open(path) else { return Ok(()) };
    for name in attributes(&before) {
        let mut value = vec![0; LONGEST_ATTRIBUTE];
        let Ok(length) = rustix::fs::fgetxattr(&before, &name, &mut value[..]) else { continue };
        match rustix::fs::fsetxattr(file, &name, &value[..length], rustix::fs::XattrFlags::empty()) {
            Err(error) if error == rustix::io::Errno::NOTSUP => {}
            other => other?,
        }
    }
    Ok(())
}

/// `MSDOS_SUPER_MAGIC` (statfs(2)).
fn is_fat(file: &impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| about.f_type == 0x4d44)
}

fn attributes(file: &File) -> Vec<String> {
    let mut list = vec![0; LONGEST_ATTRIBUTE];
    let Ok(length) = rustix::fs::flistxattr(file, &mut list[..]) else { return Vec::new() };
    let names = list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_comes_back_with_mode_and_attributes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fstab");
        assert_eq!(Content::read(&path).unwrap(), Content::Absent);
        fs::write(&path, "before\n").unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
        let labelled = rustix::fs::setxattr(&path, "user.label", b"kept", rustix::fs::XattrFlags::empty()).is_ok();
        let before = Content::read(&path).unwrap();
        put(&path, &before.with_text("after".to_owned()), &|_| {}).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        put(&path, &before, &|_| {}).unwrap();
        assert_eq!(Content::read(&path).unwrap(), before);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        let mut label = [0; 8];
        if labelled {
            assert_eq!(rustix::fs::getxattr(&path, "user.label", &mut label).unwrap(), 4);
        }
        put(&path, &Content::Link { to: "/dev/null".into() }, &|_| {}).unwrap();
        assert_eq!(Content::read(&path).unwrap(), Content::Link { to: "/dev/null".into() });
        put(&path, &Content::Absent, &|_| {}).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_settings_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(Content::read(&path).unwrap_err().to_string().contains("UTF-8"));
        assert!(Content::read(dir.path()).is_err());
    }
}
