//! An emulated disk for a run: this program started again as `emulate --detach` does it, in a session of its own that ends with this
//! process.

use crate::RunError;
use basics::Bytes;
use change::{Helper, Journal};
use serde_json::Value as Json;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The emulator, on its way or there.
pub(crate) struct Emulated {
    name: String,
    helper: Helper,
    child: Child,
    device: Option<PathBuf>,
    /// As `emulate` calls it.
    called: String,
}

fn failed(what: String) -> RunError {
    RunError::Load { what }
}

impl Emulated {
    /// Starts it; several start side by side.
    pub fn begin(
        (name, toml): (&str, &str),
        size: Bytes,
        (journal, run, program): (&Journal, &str, &Path),
    ) -> Result<Self, RunError> {
        let cannot = |error: std::io::Error| failed(format!("the emulated disk {name} cannot be started: {error}"));
        let mut command = Command::new(program);
        command.args(["--json", "emulate", "/dev/stdin", "--detached", "--size", &size.0.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::child::dies_with_us(&mut command, rustix::process::Signal::TERM);
        let mut child = command.spawn().map_err(cannot)?;
        let helper = Helper::of(journal, run, child.id(), "an emulated disk")?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(toml.as_bytes()).map_err(cannot)?;
        }
        Ok(Emulated { name: name.to_owned(), helper, child, device: None, called: String::new() })
    }

    /// Its device, once it is there.
    pub fn device(&mut self) -> Result<PathBuf, RunError> {
        if let Some(device) = &self.device {
            return Ok(device.clone());
        }
        let mut line = String::new();
        if let Some(output) = self.child.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let document = serde_json::from_str::<Json>(&line).ok();
        if let Some(device) = document.as_ref().and_then(|document| document["device"].as_str()) {
            let device = PathBuf::from(device);
            self.helper.serves(&device)?;
            self.device = Some(device.clone());
            self.called = document.and_then(|all| all["name"].as_str().map(str::to_owned)).unwrap_or_default();
            return Ok(device);
        }
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let said = said.trim().trim_start_matches("tiermark: ");
        Err(failed(format!("the emulated disk {} did not start: {said}", self.name)))
    }

    /// What makes something go wrong with it, once its device is there.
    pub fn faults(&self, program: &Path) -> Faults {
        Faults { program: program.to_owned(), called: self.called.clone() }
    }

    /// Ends it; one that something still uses stays, and the reason is told.
    pub fn end(self) -> Option<RunError> {
        let Emulated { helper, mut child, .. } = self;
        match helper.end() {
            Err(error) => Some(error.into()),
            Ok(()) => {
                let _ = child.wait();
                None
            }
        }
    }
}

/// Makes something go wrong with an emulated disk that runs, as `emulate fault` does.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    program: PathBuf,
    called: String,
}

impl Faults {
    /// Puts these to work; some, such as `power-cut`, happen at once.
    pub fn put(&self, specs: &[&str]) -> Result<(), RunError> {
        let mut command = Command::new(&self.program);
        command.args(["emulate", "fault", &self.called]).args(specs).stdin(Stdio::null());
        let output = command
            .output()
            .map_err(|error| failed(format!("the emulated disk {} cannot be told {specs:?}: {error}", self.called)))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("tiermark: ");
        Err(failed(format!("the emulated disk {} does not do {}: {said}", self.called, specs.join(", "))))
    }
}
