//! The pager beside a process under pressure: this program again, outside of the limit, ended with the measurement. It is a process
//! of its own so that it works as it does for anybody.

use basics::pressure::Paged;
use basics::{Bytes, Nanos};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Paging, until it is ended or dropped.
pub(super) struct Paging {
    child: Option<Child>,
    told: Option<JoinHandle<Option<Value>>>,
    trouble: Option<String>,
}

impl Paging {
    /// Begins to help a process and those that it starts.
    pub fn of(program: &Path, pid: u32) -> Self {
        let mut command = Command::new(program);
        command.args(["--json", "pager", "--live", "--pid", &pid.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
        match command.spawn() {
            Err(error) => {
                Paging { child: None, told: None, trouble: Some(format!("the pager cannot be started: {error}")) }
            }
            Ok(mut child) => {
                let last = |output| {
                    let lines = BufReader::new(output).lines().map_while(Result::ok);
                    lines.filter_map(|line| serde_json::from_str(&line).ok()).last()
                };
                let told = child.stdout.take().map(|output| std::thread::spawn(move || last(output)));
                Paging { child: Some(child), told, trouble: None }
            }
        }
    }

    /// What it did.
    pub fn end(mut self) -> Paged {
        self.stop();
        let last = self.told.take().and_then(|told| told.join().ok()).flatten();
        let Some(last) = last else {
            let trouble = self.trouble.take().unwrap_or_else(|| "the pager said nothing".to_owned());
            return Paged { trouble: Some(trouble), ..Paged::default() };
        };
        let first = &last["processes"][0];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let time = |value: &Value| Nanos::from_secs(value.as_f64().unwrap_or(0.0));
        Paged {
            cycle: Bytes(number(&first["cycle_bytes"])),
            kept: Bytes(number(&first["kept_bytes"])),
            laps: number(&first["laps"]),
            lap: time(&first["lap_s"]),
            lap_before: time(&first["lap_before_s"]),
            ahead: Bytes(number(&first["ahead_bytes"])),
            cpu: time(&last["cpu_s"]),
            trouble: last["trouble"].as_str().map(str::to_owned),
        }
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = child.wait();
        }
    }
}

impl Drop for Paging {
    fn drop(&mut self) {
        self.stop();
    }
}
