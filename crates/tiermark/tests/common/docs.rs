//! The documentation as tests read it: pages, and the commands that stand in them.

use std::fs;
use std::path::{Path, PathBuf};

/// The project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README.md and all pages, with what they say.
pub fn pages() -> Vec<(PathBuf, String)> {
    let mut all = vec![root().join("README.md")];
    for folder in ["docs", "docs/questions"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        all.extend(entries.filter(|path| path.extension().is_some_and(|is| is == "md")));
    }
    all.sort();
    all.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Commands in indented lines, without what is said of them behind; each with the name of its page.
pub fn mentioned() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (path, text) in pages() {
        for line in text.lines().filter_map(|line| line.strip_prefix("    ")) {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let line = line.strip_prefix("sudo ").unwrap_or(line);
            if let Some(words) = line.strip_prefix("tiermark ") {
                let command =
                    words.split("  ").next().unwrap().split(" #").next().unwrap().split(" > ").next().unwrap();
                all.push((path.file_name().unwrap().to_string_lossy().into_owned(), command.trim().to_owned()));
            }
        }
    }
    all
}
