//! A desktop's work, as data: a browser with heavy pages, a compilation, and what was seen of them. A plan states the first two, a
//! record keeps the third.

use crate::latency::Latencies;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A browser that opens pages and goes from one to the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Browsing {
    /// Its program.
    pub program: PathBuf,
    /// The program and the files beside it are copied to the disk under test and started from there, so that its code is read from
    /// that disk as well.
    pub copied: bool,
    /// Pages, each in a tab of its own.
    pub pages: u32,
    /// What a page's script keeps in memory.
    pub weight: Bytes,
    /// A page that cannot be used after so long has not come.
    pub patience: Nanos,
}

/// A compilation, of files that are made for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Building {
    /// What compiles.
    pub compiler: Compiler,
    /// Its program; none where it is a mix of computing and writing of tiermark's own.
    pub program: Option<PathBuf>,
    /// Files of one build.
    pub units: u32,
    /// So many at a time.
    pub jobs: u32,
}

/// What compiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compiler {
    /// C, by `cc`, `gcc` or `clang`.
    C,
    /// Rust, by `rustc`.
    Rust,
    /// None: the same amount of computing and of files, made by tiermark.
    Mix,
}

impl Compiler {
    /// In records and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Compiler::C => "c",
            Compiler::Rust => "rust",
            Compiler::Mix => "mix",
        }
    }
}

/// What was seen of a browser.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Browsed {
    /// As it calls itself.
    pub version: String,
    /// What does not come within this has not come, for the user.
    pub patience: Nanos,
    /// From its start to its first answer.
    pub started: Nanos,
    /// Its pages, in the order in which they were opened.
    pub pages: Vec<PageSeen>,
    /// What the user waited for, in order: each page opened, each tab gone to.
    pub acts: Vec<Act>,
    /// The page in front was asked ten times a second whether it answers: how long that took.
    pub answers: Latencies,
    /// The longest that it did not.
    pub longest: Nanos,
    /// When that began, since the browser's start.
    pub longest_at: Nanos,
    /// When the browser itself ended, where it did.
    pub gone: Option<Nanos>,
    /// Major faults of the processes in the group; none where the kernel does not tell.
    pub major_faults: Option<u64>,
    /// The compressed cache in front of swap at the end, where there was one.
    pub zswap: Option<ZswapSeen>,
    /// Of the file system that its files are on: bytes of files, and bytes that they take there.
    pub files: Option<(Bytes, Bytes)>,
}

/// A page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PageSeen {
    /// Until it could be used.
    pub interactive: Option<Nanos>,
    /// At the end it answered.
    pub alive: bool,
    /// It crashed, which is what the kernel's lack of memory looks like from within.
    pub crashed: bool,
}

/// Something that a user waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Which page.
    pub page: u32,
    /// It was opened; else gone to.
    pub opens: bool,
    /// How long it took; none where it did not come within the patience, or was gone.
    pub took: Option<Nanos>,
}

/// A compressed cache, as it stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ZswapSeen {
    /// Bytes of pages in it.
    pub stored: Bytes,
    /// What they take.
    pub pool: Bytes,
    /// The most that they took.
    pub most: Bytes,
    /// The limit of the group was lowered by what they took, because this kernel does not count them there.
    pub counted_apart: bool,
}

/// What was seen of a compilation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Built {
    /// The compiler's own first line.
    pub version: String,
    /// Time of each whole build.
    pub builds: Vec<Nanos>,
    /// Files of one build.
    pub units: u32,
    /// So many at a time.
    pub jobs: u32,
    /// What it wrote, in bytes of files.
    pub objects: Bytes,
}
