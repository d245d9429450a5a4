//! A server that tiermark started: its process, its folder, and its replica where it has one.

use super::{GONE, GOODBYE, LOG, READY, Site, failed};
use crate::RunError;
use crate::redis::replica::Replica;
use basics::redis::{Medium, Server};
use change::{Folder, Helper};
use redisd::{Address, Control, Start};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Fields go in this order.
pub(super) struct Own {
    pub helper: Option<Helper>,
    pub child: Child,
    pub replica: Option<Replica>,
    /// The folder of the replica that took its place.
    pub taken_over: Option<Folder>,
    /// Its folder.
    pub dir: PathBuf,
    /// The same where it is journalled: on an emulated disk it goes with that.
    pub folder: Option<Folder>,
}

impl Own {
    /// Starts it and waits until it answers.
    pub fn start(server: &Server, dir: &Path, site: Site<'_>) -> Result<(Self, Address, Control), RunError> {
        let folder = match &server.medium {
            Medium::Emulated { .. } => None,
            _ => Some(Folder::make(site.journal, site.run, dir)?),
        };
        let dir = folder.as_ref().map_or_else(|| dir.join("redis"), |folder| folder.path().to_owned());
        if folder.is_none() {
            // What an earlier step left.
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).map_err(failed)?;
        }
        let (address, control, helper, child) = launch(server, &dir, site)?;
        let helper = Some(helper);
        let replica = Replica::of(server, &address, site)?;
        Ok((Own { helper, child, replica, taken_over: None, dir, folder }, address, control))
    }

    /// How it ended, once its connections broke, and the last that it wrote; nothing where it runs.
    pub fn ended(&mut self, broken: bool) -> Option<String> {
        // Its connections break a moment before it is gone.
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(None) if broken && begun.elapsed() < GONE => std::thread::sleep(Duration::from_millis(5)),
                status => break status.ok().flatten(),
            }
        }?;
        Some(match std::os::unix::process::ExitStatusExt::signal(&status) {
            Some(signal) => {
                format!("was killed # (signal {signal}), by somebody or by the kernel for want of memory")
            }
            None => {
                let wrote = last_line(&self.dir).map_or_else(String::new, |line| format!("; it wrote: {line}"));
                format!("ended # ({status}){wrote}")
            }
        })
    }

    /// Ends it and removes its folder.
    pub fn end(mut self, control: &mut Control) -> Vec<RunError> {
        // The answer is that it is gone.
        let _ = control.order("SHUTDOWN NOSAVE");
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < GOODBYE {
            std::thread::sleep(Duration::from_millis(2));
        }
        let mut troubles: Vec<RunError> =
            self.helper.take().and_then(|helper| helper.end().err()).map(RunError::from).into_iter().collect();
        let _ = self.child.wait();
        troubles.extend(self.replica.take().map(Replica::end).unwrap_or_default());
        troubles.extend(self.taken_over.take().and_then(|folder| folder.remove().err()).map(RunError::from));
        match self.folder {
            Some(folder) => troubles.extend(folder.remove().err().map(RunError::from)),
            None => drop(std::fs::remove_dir_all(&self.dir)),
        }
        troubles
    }
}

/// A second server of a cell, in a folder of its own. Not on the medium: a disk that loses its power must have no other user.
pub(super) struct Beside {
    pub control: Control,
    pub address: Address,
    pub helper: Option<Helper>,
    pub child: Child,
    pub folder: Folder,
}

impl Beside {
    /// Starts it and waits until it answers.
    pub fn start(server: &Server, site: Site<'_>) -> Result<Self, RunError> {
        let folder = Folder::make(site.journal, site.run, &std::env::temp_dir())?;
        let (address, control, helper, child) = launch(server, folder.path(), site)?;
        Ok(Beside { control, address, helper: Some(helper), child, folder })
    }

    /// Ends it.
    pub fn end(mut self) -> Vec<RunError> {
        let _ = self.control.order("SHUTDOWN NOSAVE");
        let alive = self.helper.take().and_then(|helper| helper.end().err());
        let _ = self.child.wait();
        [alive, self.folder.remove().err()].into_iter().flatten().map(RunError::from).collect()
    }
}

/// Starts a server in its folder, with what is there, and waits until it answers.
pub(super) fn launch(
    server: &Server,
    dir: &Path,
    site: Site<'_>,
) -> Result<(Address, Control, Helper, Child), RunError> {
    let address = Address::of(server.link, dir).map_err(failed)?;
    let start = Start { server, dir, address: address.clone() };
    let conf = start.write().map_err(failed)?;
    let log = std::fs::File::create(dir.join(LOG)).map_err(failed)?;
    let mut command = Command::new(&server.program);
    command.arg(conf).stdin(Stdio::null()).current_dir(dir);
    command.stdout(log.try_clone().map_err(failed)?).stderr(log);
    // Ctrl-C at a terminal is for the measuring process alone, which then ends this one.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
    let program = server.program.display();
    let mut child = command.spawn().map_err(|error| failed(format!("{program} cannot be started: {error}")))?;
    let helper = Helper::of(site.journal, site.run, child.id(), &program.to_string())?;
    let ready = Control::wait(&address, server.password(), READY, || matches!(child.try_wait(), Ok(None)));
    match ready {
        Ok(control) => Ok((address, control, helper, child)),
        Err(error) => {
            let _ = helper.end();
            let _ = child.wait();
            let error = match error {
                redisd::RedisError::Ended { .. } => redisd::RedisError::Ended { wrote: last_line(dir) },
                error => error,
            };
            Err(failed(error))
        }
    }
}

/// The last line that a server wrote, without its time.
pub(super) fn last_line(dir: &Path) -> Option<String> {
    let log = std::fs::read_to_string(dir.join(LOG)).ok()?;
    let lines = || log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // `12:M 23 Nov 2026 12:00:00.000 # Bad directive`.
    let said = |line: &str| line.split_once(" # ").or(line.split_once(" * ")).map_or(line, |(_, said)| said).to_owned();
    // Warnings of how it starts say nothing of how it ended.
    let telling = |line: &&str| {
        (line.contains(" # ") || line.contains("rror") || line.starts_with("***")) && !line.contains("WARNING")
    };
    lines().find(telling).or_else(|| lines().next()).map(said)
}
