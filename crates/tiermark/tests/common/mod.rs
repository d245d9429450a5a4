//! What the whole-program tests share: the real binary with a home of its own, and disks, mounts and swap areas that go
//! away when a test ends, however it ends.
#![allow(dead_code, reason = "each test binary takes what it needs of this module")]

mod disk;
pub mod docs;
mod emulated;
pub mod group;
pub mod machine;
mod server;

#[allow(unused_imports, reason = "as above")]
pub use disk::{Disk, Undo, attach, sh, try_sh};
#[allow(unused_imports, reason = "as above")]
pub use emulated::{Emulated, Place, QUICK, emulation, in_kib, patiently, write_durably};

#[allow(unused_imports, reason = "as above")]
pub use server::Server;

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// No command of these tests takes longer; one that hangs is ended so that its test fails by name.
const PATIENCE: Duration = Duration::from_secs(240);

/// A user of tiermark: a home with no runs in it yet, and a directory to measure in.
pub struct Home {
    dir: TempDir,
    /// What runs as someone else is put before the program's own name: `setpriv …`.
    pub through: Vec<String>,
}

/// What a command did.
#[derive(Debug)]
pub struct Told {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

/// Whether the long forms of tests are asked for.
pub fn full() -> bool {
    std::env::var_os("TIERMARK_TEST_FULL").is_some()
}

/// Numbers by splitmix64, the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What tests need beyond the program itself.
#[derive(Clone, Copy)]
pub enum Need {
    Root,
    Loops,
    Tool(&'static str),
}

/// Whether the test of that name can run here; says so in `./test`'s own words when not.
pub fn possible(test: &str, needs: &[Need]) -> bool {
    let missing = needs.iter().find_map(|need| match need {
        Need::Root => (!rustix::process::geteuid().is_root()).then(|| "needs root".to_owned()),
        Need::Loops => (!Path::new("/dev/loop-control").exists()).then(|| "needs loop devices".to_owned()),
        Need::Tool(tool) => (!has(tool)).then(|| format!("needs {tool}")),
    });
    let Some(why) = missing else { return true };
    println!("SKIP {test}: {why}");
    false
}

fn has(tool: &str) -> bool {
    let script = format!("command -v {tool}");
    Command::new("sh").args(["-c", &script]).stdout(Stdio::null()).status().unwrap().success()
}

impl Home {
    pub fn new() -> Self {
        let home = Home { dir: tempfile::tempdir().unwrap(), through: vec![] };
        fs::create_dir(home.work()).unwrap();
        home
    }

    /// An empty directory to measure in; on a real file system where the temporary folder is one.
    pub fn work(&self) -> PathBuf {
        self.path().join("work")
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn database(&self) -> PathBuf {
        self.path().join("data/tiermark/tiermark.db")
    }

    /// The program with this home and none of the tester's own settings.
    pub fn command<S: AsRef<str>>(&self, args: &[S]) -> Command {
        let program = assert_cmd::cargo::cargo_bin!("tiermark");
        let mut command = match self.through.split_first() {
            Some((first, more)) => {
                let mut command = Command::new(first);
                command.args(more).arg(self.path().join("tiermark"));
                command
            }
            None => Command::new(program),
        };
        command.args(args.iter().map(AsRef::as_ref)).current_dir(self.path()).stdin(Stdio::null());
        command.env("HOME", self.path()).env("XDG_DATA_HOME", self.path().join("data"));
        for name in ["XDG_RUNTIME_DIR", "NO_COLOR", "CLICOLOR_FORCE", "RUST_LOG", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<str>>(&self, args: &[S]) -> Told {
        finish(self.start(args))
    }

    /// Runs the program, which must succeed, and reads the document that it prints.
    pub fn json<S: AsRef<str>>(&self, args: &[S]) -> Value {
        let mut args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        args.push("--json");
        self.run(&args).code(0).json()
    }

    /// Starts the program with its output kept.
    pub fn start<S: AsRef<str>>(&self, args: &[S]) -> Running {
        started(self.command(args))
    }

    /// Starts the program in another directory.
    pub fn start_in<S: AsRef<str>>(&self, directory: &Path, args: &[S]) -> Running {
        let mut command = self.command(args);
        command.current_dir(directory);
        started(command)
    }

    /// Starts the program by another one, whose last words are the program and its own.
    pub fn start_through<S: AsRef<str>>(&self, starter: &[&str], args: &[S]) -> Running {
        let own = self.command(args);
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(own.get_program()).args(own.get_args()).current_dir(self.path());
        command.stdin(Stdio::null());
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        started(command)
    }

    /// The same at the head of a group of its own, as a shell starts it at a terminal.
    pub fn start_leading<S: AsRef<str>>(&self, args: &[S]) -> Running {
        let mut command = self.command(args);
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running(Some(command.spawn().unwrap()))
    }

    /// From here on commands of this home run as a user who owns nothing: nobody when root tests, else the tester.
    pub fn as_an_ordinary_user(&mut self) {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let program = assert_cmd::cargo::cargo_bin!("tiermark");
        fs::copy(program, self.path().join("tiermark")).unwrap();
        let data = self.path().join("data");
        fs::create_dir_all(&data).unwrap();
        sh(&format!("chmod 755 {0}; chown 65534:65534 {1}", self.path().display(), data.display()));
        self.through = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(str::to_owned).to_vec();
    }

    /// Test files that lie in `dir` now.
    pub fn left_in(&self, dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(".tiermark")).collect()
    }

    /// Entries of the journal of changes.
    pub fn journal(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path().join("data/tiermark/journal")) else { return vec![] };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What lies in memory-backed storage for a run of that name.
    pub fn spools(&self, run: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir("/dev/shm") else { return vec![] };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.file_name().unwrap().to_string_lossy().contains(run)).collect()
    }

    /// Nothing of a run stays behind: no test file, no journal entry, no spool.
    pub fn assert_clean(&self, dir: &Path) {
        assert_eq!(self.left_in(dir), [""; 0], "test files in {}", dir.display());
        assert_eq!(self.journal(), [""; 0], "journal entries");
        for run in self.json(&["runs"])["runs"].as_array().unwrap() {
            let run = run["run"].as_str().unwrap();
            assert_eq!(self.spools(run), [""; 0].map(PathBuf::from), "spools of {run}");
        }
    }

    /// The last run as it lies in the database.
    pub fn last(&self) -> record::Record {
        let store = record::Store::open_for_reading(&self.database()).unwrap();
        store.load(&store.find("last").unwrap()).unwrap()
    }
}

impl Drop for Home {
    /// A test that ends in mid-run has killed its program by now, whose spool lies outside of this home.
    fn drop(&mut self) {
        if self.database().exists()
            && let Ok(mut store) = record::Store::open(&self.database())
        {
            let _ = store.recover();
        }
    }
}

/// A started program; ended when the test forgets it.
pub struct Running(Option<Child>);

impl Running {
    pub fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_raw(self.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Waits until `true`, or until the program has ended.
    pub fn until(&mut self, what: &str, mut happened: impl FnMut() -> bool) {
        let began = Instant::now();
        while !happened() {
            assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
            let ended = self.child().try_wait().unwrap();
            if ended.is_some() && !happened() {
                let told = finish(Running(self.0.take()));
                panic!("it ended before {what}: {told:?}");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// All of these words are in the text, however its lines were broken.
#[track_caller]
pub fn holds(text: &str, words: &[&str]) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(text.contains(word), "{word:?} is missing in {text}");
    }
}

/// Starts a command with its output kept.
fn started(mut command: Command) -> Running {
    Running(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

/// Waits for the program's end and what it said.
pub fn finish(mut running: Running) -> Told {
    let child = running.child();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |stream: &mut dyn Read| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    // The pipes are read beside the clock: a program that hangs holds them open.
    let out = std::thread::spawn(move || read(&mut stdout));
    let err = std::thread::spawn(move || read(&mut stderr));
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > PATIENCE => {
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    running.0 = None;
    Told { status, out: out.join().unwrap(), err: err.join().unwrap() }
}

impl Told {
    /// Ended with this exit status.
    #[track_caller]
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self
    }

    /// Said exactly one sentence, on standard error; gives it.
    #[track_caller]
    pub fn sentence(&self) -> &str {
        let sentence = self.err.strip_prefix("tiermark: ").and_then(|text| text.strip_suffix('\n'));
        let sentence = sentence.unwrap_or_else(|| panic!("not a sentence of tiermark: {self:#?}"));
        assert!(!sentence.contains('\n') && sentence.len() > 10, "not one sentence: {self:#?}");
        for word in ["panicked", "RUST_BACKTRACE", "Os {", "Error("] {
            assert!(!sentence.contains(word), "not a sentence for people: {sentence}");
        }
        sentence
    }

    /// Said exactly one sentence that holds each of these words.
    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        let sentence = self.sentence();
        for word in words {
            assert!(sentence.contains(word), "{word:?} is not in {sentence:?}");
        }
    }

    /// The document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON document ({error}): {self:#?}"))
    }
}

/// The document, or a part of it, has each of these keys.
#[track_caller]
pub fn has_keys(value: &Value, keys: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("no object: {value}"));
    for key in keys.split(' ') {
        assert!(object.contains_key(key), "{key} is not in {value}");
    }
}

/// `run job` with these settings on a target.
pub fn job(settings: &[&str], on: impl AsRef<Path>) -> Vec<String> {
    let mut words = vec!["run".to_owned(), "job".to_owned(), "--on".to_owned()];
    words.push(on.as_ref().to_str().unwrap().to_owned());
    words.extend(settings.iter().flat_map(|setting| ["--set".to_owned(), (*setting).to_owned()]));
    words
}

/// A file of `mib` MiB that is no hole.
pub fn filled(path: &Path, mib: usize) -> PathBuf {
    let block: Vec<u8> = (0..1 << 20u32).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(path, block.repeat(mib)).unwrap();
    fs::File::open(path).unwrap().sync_all().unwrap();
    path.to_owned()
}
