//! A server that tiermark started: its process, its folder, and its replica where it has one.

use super::{ASKED, GONE, GOODBYE, LOG, OLDEST, READY, Site, failed};
use crate::RunError;
use crate::redis::replica::Replica;
use basics::redis::{Medium, Server};
use change::{Folder, Helper};
use redisd::{Address, Control, Start};
use std::io::Read;
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
            // What it refused, it refused as a server.
            let dumb = matches!(error, redisd::RedisError::Ended { .. } | redisd::RedisError::NotReady { .. });
            Err(failed(match dumb.then(|| of_what_kind(&server.program)).flatten() {
                Some(kind) => format!("{error}; {kind}"),
                None => error.to_string(),
            }))
        }
    }
}

/// The first line of what a program says when asked for its version, if it does.
fn version_line(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    sys::child::dies_with_us(&mut command, rustix::process::Signal::KILL);
    let mut child = command.spawn().ok()?;
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < ASKED {
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = matches!(child.try_wait(), Ok(Some(_)));
    let _ = child.kill();
    let _ = child.wait();
    let mut said = [0; 256];
    // Whoever has not ended may have left the pipe to somebody who has not either.
    let bytes = if ended { child.stdout.take()?.read(&mut said).ok()? } else { 0 };
    let line = String::from_utf8_lossy(&said[..bytes]).lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

/// What a program that does not answer says that it is, as the end of a sentence;
/// nothing of one that should know all that is asked of it.
fn of_what_kind(program: &Path) -> Option<String> {
    let shown = program.display();
    let Some(said) = version_line(program) else {
        return Some(format!("{shown} does not say its --version: is it a redis-server?"));
    };
    // `Redis server v=7.0.15 sha=00000000:0 …`, `Valkey server v=8.0.1 …`.
    let Some((name, rest)) = said.split_once(" server v=") else {
        return Some(format!("{shown} is no redis-server: asked for its --version it says: {said}"));
    };
    let version = rest.split(' ').next().unwrap_or_default();
    let major: Option<u32> = version.split('.').next().and_then(|major| major.parse().ok());
    let is_old = major.is_none_or(|major| major < OLDEST);
    is_old.then(|| format!("{shown} is {name} {version}, and {OLDEST} or later is needed"))
}

/// The last line that a server wrote, without its time.
pub(super) fn last_line(dir: &Path) -> Option<String> {
    let log = std::fs::read_to_string(dir.join(LOG)).ok()?;
    // Of a redis.conf that it does not take the last three are where, `>>> 'what'`, and why.
    if let Some((before, after)) = log.rsplit_once("\n>>> ")
        && before.contains("FATAL CONFIG")
    {
        let (what, why) = after.split_once('\n').unwrap_or((after, ""));
        return Some(format!("{}: {}", what.trim(), why.trim()).trim_end_matches([' ', ':']).to_owned());
    }
    let lines = || log.lines().rev().map(str::trim).filter(|line| !line.is_empty());
    // `12:M 23 Nov 2026 12:00:00.000 # Bad directive`.
    let said = |line: &str| line.split_once(" # ").or(line.split_once(" * ")).map_or(line, |(_, said)| said).to_owned();
    // Warnings of how it starts say nothing of how it ended.
    let telling = |line: &&str| {
        (line.contains(" # ") || line.contains("rror") || line.starts_with("***")) && !line.contains("WARNING")
    };
    lines().find(telling).or_else(|| lines().next()).map(said)
}
