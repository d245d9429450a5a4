//! Memory taken away by locking it, as the first article did: a process that holds it, in the cgroup of the process that is
//! pressed on where there is one, and lets it go when its standard input ends.

use super::built::Mixed;
use super::program::Program;
use super::served::Become;
use super::toucher::Task;
use crate::RunError;
use basics::Bytes;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What such a process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// How much.
    pub size: Bytes,
    /// The groups that it joins first.
    pub groups: Vec<PathBuf>,
}

/// Anything that this program is started again for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Errand {
    /// Touch memory.
    Touch(Box<Task>),
    /// Hold memory.
    Hold(Hold),
    /// Become another program.
    Become(Box<Become>),
    /// Become any other, with its input and outputs.
    Program(Box<Program>),
    /// Do a unit of a compilation's work.
    Mix(Box<Mixed>),
}

/// Holds it, in the process that was started for it, until nobody wants it any more.
///
/// # Errors
/// When it cannot be had; the sentence goes to who asked for it as well.
pub(super) fn hold(hold: &Hold, out: &mut impl Write) -> io::Result<()> {
    let held = change::cgroup::join(&hold.groups).and_then(|()| {
        let size = usize::try_from(hold.size.0).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut buffer = sys::memory::Buffer::new(size, sys::memory::Pages::Usual)?;
        buffer.lock()?;
        Ok(buffer)
    });
    match &held {
        Ok(_) => writeln!(out, "held")?,
        Err(error) => writeln!(out, "{error}")?,
    }
    out.flush()?;
    let _ = io::stdin().read(&mut [0]);
    Ok(())
}

/// A process that holds memory; it is gone when this is dropped.
pub(crate) struct Ballast(Child);

impl Ballast {
    /// Waits until all of it is locked.
    pub fn lock(program: &Path, hold: Hold) -> Result<Self, RunError> {
        let size = hold.size;
        let failed = |why: String| RunError::Load { what: format!("{size} of RAM cannot be locked away: {why}") };
        let words = serde_json::to_string(&Errand::Hold(hold)).map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command.args(["load", "errand", &words]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.env(change::cgroup::MARK, "1");
        // Ctrl-C at a terminal is for the measuring process alone, which then ends this one.
        command.process_group(0);
        sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
        let mut ballast = Ballast(command.spawn().map_err(|error| failed(error.to_string()))?);
        let mut line = String::new();
        if let Some(output) = ballast.0.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        match line.trim() {
            "held" => Ok(ballast),
            "" => Err(failed("the kernel ended the process that held it; lock less".to_owned())),
            why => Err(failed(why.to_owned())),
        }
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
