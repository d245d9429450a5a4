//! Another program in the group whose memory is short: this program is started again, joins the group, and becomes it, so that what it
//! takes is counted from its first page on.

use super::ballast::Errand;
use crate::RunError;
use basics::{EngineUse, Job, Latencies, Nanos, Side, job};
use change::{Helper, Journal};
use engine::{Ended, Outcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What another program did, as the outcome of a job: its requests are its own, so nothing but their sum is known here.
pub(super) fn outcome(
    job: &Job,
    (used, why): (job::Engine, &str),
    (ended, elapsed): (Ended, Nanos),
    read: Side,
    notes: Vec<String>,
) -> Outcome {
    Outcome {
        engine: EngineUse { asked: job.engine, used, why: why.to_owned(), dropped: Vec::new() },
        ended,
        elapsed,
        read,
        write: Side::default(),
        faults: Latencies::lazy(),
        cpu_user: Nanos(0),
        cpu_system: Nanos(0),
        each: Vec::new(),
        slowest: Vec::new(),
        commands: Vec::new(),
        began: 0,
        notes,
    }
}

/// What a process becomes, with its input and outputs as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its path.
    pub program: PathBuf,
    /// What it is given, without its own name.
    pub arguments: Vec<String>,
    /// All that its environment shall hold.
    pub environment: BTreeMap<String, String>,
    /// Where it works.
    pub folder: PathBuf,
    /// The groups that it joins first.
    pub groups: Vec<PathBuf>,
    /// Its input and output are on descriptors 3 and 4, and it has neither on 0 and 1.
    pub on_three_and_four: bool,
}

/// Becomes it; returns only when that cannot be.
pub(super) fn become_it(this: &Program) -> io::Error {
    if let Err(error) = change::cgroup::join(&this.groups) {
        return error;
    }
    let mut command = if this.on_three_and_four {
        // A shell moves them: what is said there is not what a program prints.
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >&2"]).arg(&this.program);
        shell
    } else {
        Command::new(&this.program)
    };
    command.args(&this.arguments).env_clear().envs(&this.environment).current_dir(&this.folder);
    command.env(change::cgroup::MARK, "1").exec()
}

/// Whose child a program is.
pub(super) struct Parent<'a> {
    pub journal: &'a Journal,
    pub run: &'a str,
    /// This program.
    pub own: &'a Path,
}

/// One that runs. It is ended, with all that it started, when this is dropped.
pub(super) struct Running {
    pub child: Child,
    helper: Option<Helper>,
}

impl Running {
    /// Starts it; its input and output are pipes where it is told on them, else closed and the log.
    pub fn start(this: Program, log: &File, what: &str, parent: &Parent<'_>) -> Result<Self, RunError> {
        let failed =
            |error: &dyn std::fmt::Display| RunError::Load { what: format!("{what} cannot be started: {error}") };
        let piped = this.on_three_and_four;
        let words = serde_json::to_string(&Errand::Program(Box::new(this))).map_err(|error| failed(&error))?;
        let mut command = Command::new(parent.own);
        command.args(["load", "errand", &words]).env(change::cgroup::MARK, "1");
        let to_log = || log.try_clone().map_err(|error| failed(&error));
        if piped {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null()).stdout(to_log()?);
        }
        command.stderr(to_log()?);
        // Ctrl-C at a terminal is for the measuring process alone, which then ends this one.
        command.process_group(0);
        sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
        let child = command.spawn().map_err(|error| failed(&error))?;
        let mut running = Running { child, helper: None };
        running.helper = Some(Helper::of(parent.journal, parent.run, running.child.id(), what)?);
        Ok(running)
    }

    fn end(&mut self) {
        // Its group is its own: what it started is there too.
        if let Some(group) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
        drop(self.helper.take());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What of this process's environment another program needs as well.
pub(super) fn environment(home: &Path) -> BTreeMap<String, String> {
    let inherited = ["PATH", "LD_LIBRARY_PATH", "LANG", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"];
    let mut all: BTreeMap<String, String> =
        inherited.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    for name in ["HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"] {
        all.insert(name.to_owned(), home.display().to_string());
    }
    if !all.contains_key("RUSTUP_HOME")
        && let Ok(home) = std::env::var("HOME")
    {
        // A toolchain by rustup is found from the user's own home.
        all.insert("RUSTUP_HOME".to_owned(), format!("{home}/.rustup"));
    }
    all
}
