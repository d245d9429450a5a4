//! A real browser (Chromium and its kin): where its program is, how it is started so that it listens on a pipe, what is said on that pipe
//! (the DevTools protocol), and heavy pages on loopback for it to open. No process is started here, and nothing is timed.
#![forbid(unsafe_code)]

mod devtools;
mod error;
mod pages;

pub use devtools::{DevTools, Event};
pub use error::BrowserError;
pub use pages::{INTERACTIVE, Pages};

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What it may be called, the first that is there being taken.
const PROGRAMS: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// Where distributions have the program itself, which the one in PATH is a script for.
const FOLDERS: [&str; 4] =
    ["/usr/lib/chromium", "/usr/lib/chromium-browser", "/usr/lib64/chromium-browser", "/opt/google/chrome"];
/// What the program itself is called there.
const BINARIES: [&str; 3] = ["chromium", "chromium-browser", "chrome"];
/// Of the files beside it those that headless work does not need: other languages, drivers for graphics, tools.
const NEEDLESS: [&str; 5] = ["libVk", "libvulkan", "chrome_crashpad", "libvk_", "vk_"];

fn is_program(path: &PathBuf) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The program: in the folders where distributions have it, else in those of `path`, which is what the variable `PATH` holds.
///
/// # Errors
/// [`BrowserError::NotFound`].
pub fn find(path: &OsStr) -> Result<PathBuf, BrowserError> {
    let own = FOLDERS.iter().flat_map(|folder| BINARIES.map(|name| Path::new(folder).join(name)));
    let in_path = || PROGRAMS.iter().flat_map(|name| std::env::split_paths(path).map(move |folder| folder.join(name)));
    own.chain(in_path())
        .find(is_program)
        .ok_or_else(|| BrowserError::NotFound { searched: path.to_string_lossy().into_owned() })
}

/// The files beside a program that it needs, each with its place below the program's folder; the program itself is one of them.
///
/// # Errors
/// The system's, with the path.
pub fn files(program: &Path) -> Result<Vec<PathBuf>, BrowserError> {
    let folder = program.parent().unwrap_or(Path::new("/"));
    let mut all = Vec::new();
    let read =
        |dir: &Path| std::fs::read_dir(dir).map_err(|source| BrowserError::Read { path: dir.to_owned(), source });
    for entry in read(folder)?.flatten() {
        let name = entry.file_name();
        let named = name.to_string_lossy();
        if NEEDLESS.iter().any(|needless| named.starts_with(needless)) {
            continue;
        }
        if entry.path().is_file() {
            all.push(PathBuf::from(&name));
        }
    }
    all.push(PathBuf::from("locales/en-US.pak"));
    all.retain(|name| folder.join(name).is_file());
    Ok(all)
}

/// What it is given so that it works without a screen and without asking, keeps everything in `profile`, and listens on descriptors 3
/// (commands) and 4 (answers).
pub fn arguments(profile: &Path, is_root: bool) -> Vec<String> {
    let mut all: Vec<String> = [
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-first-run",
        "--no-default-browser-check",
        // Nothing leaves this machine, and nothing is fetched that the pages do not ask for.
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
        "--disable-breakpad",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        // Without a graphics card, as on a board whose memory is short.
        "--disable-gpu",
        // /dev/shm may be small; its pages would be the group's all the same.
        "--disable-dev-shm-usage",
        "--password-store=basic",
        "--window-size=1280,720",
    ]
    .map(str::to_owned)
    .into();
    all.push(format!("--user-data-dir={}", profile.display()));
    if is_root {
        // It refuses to start as root with its sandbox.
        all.push("--no-sandbox".to_owned());
    }
    all.push("about:blank".to_owned());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_found_and_what_it_needs() {
        let dir = std::env::temp_dir().join(format!("tiermark-browser-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("locales")).unwrap();
        for name in ["chrome", "icudtl.dat", "libVkLayer.so", "locales/en-US.pak", "locales/de.pak"] {
            std::fs::write(dir.join(name), "x").unwrap();
        }
        std::fs::set_permissions(dir.join("chrome"), PermissionsExt::from_mode(0o755)).unwrap();
        let mut needed = files(&dir.join("chrome")).unwrap();
        needed.sort();
        assert_eq!(needed, ["chrome", "icudtl.dat", "locales/en-US.pak"].map(PathBuf::from));
        let found = find(dir.as_os_str()).unwrap();
        assert!(found.starts_with(&dir) || FOLDERS.iter().any(|folder| found.starts_with(folder)));
        assert!(arguments(&dir, true).contains(&"--no-sandbox".to_owned()));
        assert!(!arguments(&dir, false).contains(&"--no-sandbox".to_owned()));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
