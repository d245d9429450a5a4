//! A Redis server for one step: started in a folder of its own on its medium, filled, loaded, looked at, ended. The media that are
//! emulated disks live as long as the run.

mod limit;
mod lose;
mod media;
mod replica;
mod requests;
mod spikes;

pub(crate) use limit::Limits;
pub(crate) use lose::Cut;
pub(crate) use media::Media;
pub(crate) use requests::{new_log, write_log};

use crate::RunError;
use crate::pressed::Heard;
use basics::job::{Direction, Order, Pacing, Stop};
use basics::redis::{Medium, Served, Server};
use basics::redis_commands::{Command as Asked, CommandMix};
use basics::spikes::Spikes;
use basics::{Bytes, Interval, Job, Nanos};
use change::{Folder, Helper, Journal};
use engine::{Control as Cancel, Ended, Endpoint, Keys, Outcome, Target};
use observe::stalls::Watch;
use redisd::{Address, Control, Info, Start, with_way_out};
use replica::Replica;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Until it answers: its data set may come from a slow card.
const READY: Duration = Duration::from_secs(120);
/// For a child that saves or rewrites, after the load.
const SAVED: Duration = Duration::from_secs(300);
/// For it to end by itself.
const GOODBYE: Duration = Duration::from_secs(20);
/// For its end to be seen, once its connections broke.
const GONE: Duration = Duration::from_millis(500);
/// Looked at for what it wrote before it ended.
const LOG: &str = "log";

/// What a step needs of its run.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub journal: &'a Journal,
    pub run: &'a str,
    /// This program.
    pub program: &'a Path,
}

fn failed(what: impl std::fmt::Display) -> RunError {
    RunError::Load { what: what.to_string() }
}

/// A server that runs. Fields go in this order.
pub(crate) struct Cell<'a> {
    server: &'a Server,
    address: Address,
    control: Control,
    helper: Option<Helper>,
    child: Child,
    replica: Option<Replica>,
    /// The folder of the replica that took its place.
    taken_over: Option<Folder>,
    /// Its folder.
    dir: PathBuf,
    /// The same where it is journalled: on an emulated disk it goes with that.
    folder: Option<Folder>,
    /// What each connection says first.
    greeting: Vec<u8>,
    /// What the slowest requests of the last load met.
    spikes: Option<Spikes>,
    /// Requests a second that its clients could make, where that was tried.
    limit: Option<f64>,
}

/// Figures of a server that only grow.
pub(crate) struct Before {
    info: Info,
    main: Option<Nanos>,
    all: Option<Nanos>,
    written: Option<u64>,
}

impl<'a> Cell<'a> {
    /// Starts it and waits until it answers.
    pub fn start(server: &'a Server, dir: &Path, site: Site<'_>) -> Result<Self, RunError> {
        let folder = match &server.medium {
            Medium::Directory(_) => Some(Folder::make(site.journal, site.run, dir)?),
            Medium::Emulated { .. } => None,
        };
        let dir = folder.as_ref().map_or_else(|| dir.join("redis"), |folder| folder.path().to_owned());
        if folder.is_none() {
            // What an earlier step left.
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir(&dir).map_err(failed)?;
        }
        let (address, control, helper, child) = launch(server, &dir, site)?;
        let helper = Some(helper);
        let greeting = server.password().map(greeting).unwrap_or_default();
        let replica = Replica::of(server, &address, site)?;
        Ok(Cell {
            server,
            address,
            control,
            helper,
            child,
            replica,
            taken_over: None,
            dir,
            folder,
            greeting,
            spikes: None,
            limit: None,
        })
    }

    /// Where it answers.
    pub fn address(&self) -> &Address {
        &self.address
    }

    fn keys<'k>(&'k self, pipeline: u32, connections: u32) -> Keys<'k> {
        let at = match &self.address {
            Address::Tcp(addr) => Endpoint::Tcp(*addr),
            Address::Unix(path) => Endpoint::Unix(path),
        };
        let expires = self.server.expires.map(|time| Duration::from_nanos(time.0));
        Keys {
            at,
            greeting: &self.greeting,
            connections,
            pipeline,
            count: self.server.keys,
            expires,
            commands: self.server.commands.weights(),
            slowest: spikes::SLOWEST,
        }
    }

    /// Sets all keys once.
    pub fn fill(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
        mut told: impl FnMut(Bytes),
    ) -> Result<Bytes, RunError> {
        const CONNECTIONS: u32 = 16;
        const PIPELINE: u32 = 32;
        let job = Job {
            direction: Direction::Write,
            order: Order::Sequential,
            depth: CONNECTIONS * PIPELINE,
            threads: 1,
            pacing: Pacing::Closed,
            each: false,
            warmup: Nanos(0),
            stop: Stop { operations: Some(self.server.keys), ..Stop::default() },
            ..job.clone()
        };
        let mut done = 0;
        let mut sink = |interval: &Interval| {
            done += interval.write.bytes;
            told(Bytes(done));
        };
        // What is read must be there; the rest comes by itself.
        let mix = &self.server.commands;
        let strings = mix.is_empty() || mix.has(Asked::Get) || mix.has(Asked::Set);
        let hashes = mix.has(Asked::Hget) || mix.has(Asked::Hset);
        let mut filled = Bytes(0);
        for (_, command) in [(strings, Asked::Set), (hashes, Asked::Hset)].into_iter().filter(|(wanted, _)| *wanted) {
            let only = CommandMix::only(command);
            let keys = self.keys(PIPELINE, CONNECTIONS);
            // A SET as it is without a mix, with its time to live.
            let commands = if command == Asked::Set { &[] } else { only.weights() };
            let keys = Keys { commands, slowest: 0, ..keys };
            let outcome = engine::run(&job, Target::Keys(keys), &Cancel::new(interrupted), &mut sink)?;
            match &outcome.ended {
                Ended::Cancelled => return Err(RunError::Interrupted),
                Ended::Operations => filled = Bytes(filled.0 + outcome.write.bytes),
                ended => return Err(self.trouble("while its keys were set", ended)),
            }
        }
        Ok(filled)
    }

    /// What it is before the load, once all that was held back is written.
    pub fn before(&mut self, disk: Option<&str>) -> Result<Before, RunError> {
        self.settle();
        self.link_up()?;
        let info = self.control.info().map_err(failed)?;
        for order in ["CONFIG RESETSTAT", "SLOWLOG RESET", "LATENCY RESET"] {
            self.control.order(order).map_err(failed)?;
        }
        Ok(Before { info, main: self.main_cpu(), all: self.cpu(), written: disk.and_then(written) })
    }

    /// Has it loaded; in the middle it is told to save or to rewrite, where that is its mode.
    pub fn run(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
        sink: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Outcome, RunError> {
        let midway = self.server.mode.midway();
        let half = job.stop.operations.map(|operations| operations / 2);
        let half_time = job.stop.time.map(|time| Nanos(time.0 / 2));
        let (address, password) = (self.address.clone(), self.server.password());
        // Of a server that is taken away in the middle nobody asks why it was slow.
        let watch = self.server.lose.is_none().then(|| spikes::begin(self.child.id()));
        let mut outcome = std::thread::scope(|scope| {
            let (now, when) = channel::<()>();
            let ordered = midway.map(|command| {
                scope.spawn(move || -> Result<(), RunError> {
                    // Connected before, so that only the order is given in the middle.
                    let mut control = Control::open(&address, password).map_err(failed)?;
                    match when.recv() {
                        Ok(()) => control.order(command).map_err(failed),
                        // It was over before.
                        Err(_) => Ok(()),
                    }
                })
            });
            let (mut done, mut given) = (0, false);
            let mut heard = |interval: &Interval| {
                done += interval.read.operations() + interval.write.operations();
                let is_half =
                    half.is_some_and(|half| done >= half) || half_time.is_some_and(|half| interval.end >= half);
                if is_half && !given {
                    given = true;
                    let _ = now.send(());
                }
                sink(Heard::Interval(interval));
            };
            let keys = self.keys(self.server.pipeline, self.server.connections);
            let outcome = engine::run(job, Target::Keys(keys), &Cancel::new(interrupted), &mut heard);
            drop(now);
            if let Some(Ok(Err(error))) = ordered.map(std::thread::ScopedJoinHandle::join) {
                tracing::debug!("{error}");
            }
            outcome
        })?;
        self.spikes = watch.map(|watch| self.spikes(watch.map(Watch::end), &mut outcome));
        match &outcome.ended {
            Ended::Failed { .. } if self.server.lose.is_none() => Err(self.trouble("under load", &outcome.ended)),
            _ => Ok(outcome),
        }
    }

    /// What was seen of it.
    pub fn account(&mut self, before: &Before, outcome: &Outcome, disk: Option<&str>) -> Result<Served, RunError> {
        let (main, all) = (self.main_cpu(), self.cpu());
        let info = self.when_saved()?;
        self.settle();
        let peak = status(self.child.id(), "VmHWM:");
        let moved = |a: Option<Nanos>, b: Option<Nanos>| a.zip(b).map(|(a, b)| b - a);
        let number = |key: &str| info.number(key).unwrap_or(0);
        let copied = number("rdb_last_cow_size").max(number("aof_last_cow_size"));
        Ok(Served {
            mode: Some(self.server.mode),
            medium: self.server.medium.name(),
            version: info.version(),
            keys: self.server.keys,
            peak: Bytes(peak.unwrap_or(0) + copied),
            main_cpu: moved(before.main, main),
            cpu: moved(before.all, all),
            forks: number("total_forks").saturating_sub(before.info.number("total_forks").unwrap_or(0)),
            last_fork: info.number("latest_fork_usec").map(|us| Nanos(us * 1000)),
            delayed_fsyncs: number("aof_delayed_fsync")
                .saturating_sub(before.info.number("aof_delayed_fsync").unwrap_or(0)),
            copied: Bytes(copied),
            hits: number("keyspace_hits"),
            misses: number("keyspace_misses"),
            written: disk.and_then(written).zip(before.written).map(|(after, before)| Bytes(after - before)),
            logical: Bytes(outcome.write.bytes),
            spikes: self.spikes.take().map(Box::new),
            replica: self.server.delay,
            client_limit: self.limit,
            commands: outcome.commands.clone(),
            ..Served::default()
        })
    }

    /// Its figures, once no child saves or rewrites any more.
    fn when_saved(&mut self) -> Result<Info, RunError> {
        let begun = Instant::now();
        loop {
            let info = self.control.info().map_err(failed)?;
            let busy = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"];
            if busy.iter().all(|key| info.number(key) != Some(1)) || begun.elapsed() > SAVED {
                return Ok(info);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What its file system holds back is written.
    pub fn settle(&self) {
        if let Ok(dir) = std::fs::File::open(&self.dir) {
            let _ = rustix::fs::syncfs(dir);
        }
    }

    fn main_cpu(&self) -> Option<Nanos> {
        let pid = self.child.id();
        scheduled(&format!("/proc/{pid}/task/{pid}/schedstat"))
    }

    fn cpu(&self) -> Option<Nanos> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let each = tasks.flatten().filter_map(|task| scheduled(&task.path().join("schedstat").display().to_string()));
        Some(each.fold(Nanos(0), |sum, time| sum + time))
    }

    fn trouble(&mut self, when: &str, ended: &Ended) -> RunError {
        let why = match ended {
            Ended::Refused { said } => format!("it answers: {}", with_way_out(said)),
            Ended::Failed { errno, .. } => std::io::Error::from_raw_os_error(*errno).to_string(),
            ended => format!("{ended:?}"),
        };
        // Its connections break a moment before it is gone.
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(None) if matches!(ended, Ended::Failed { .. }) && begun.elapsed() < GONE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                status => break status.ok().flatten(),
            }
        };
        let Some(status) = status else { return failed(format!("the server failed {when}: {why}")) };
        match std::os::unix::process::ExitStatusExt::signal(&status) {
            Some(signal) => failed(format!(
                "the server was killed {when} (signal {signal}), by somebody or by the kernel for want of memory"
            )),
            None => {
                let wrote = last_line(&self.dir).map_or_else(String::new, |line| format!("; it wrote: {line}"));
                failed(format!("the server ended {when} ({status}){wrote}"))
            }
        }
    }

    /// What it says that it is.
    pub fn version(&mut self) -> Result<String, RunError> {
        Ok(self.control.info().map_err(failed)?.version())
    }

    /// Ends it and removes its folder.
    pub fn end(mut self) -> Vec<RunError> {
        // The answer is that it is gone.
        let _ = self.control.order("SHUTDOWN NOSAVE");
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

/// A password as RESP has it.
fn greeting(password: &str) -> Vec<u8> {
    format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len()).into_bytes()
}

/// Starts a server in its folder, with what is there, and waits until it answers.
fn launch(server: &Server, dir: &Path, site: Site<'_>) -> Result<(Address, Control, Helper, Child), RunError> {
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
fn last_line(dir: &Path) -> Option<String> {
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

/// CPU time that a thread has had (Documentation/scheduler/sched-stats.rst).
fn scheduled(path: &str) -> Option<Nanos> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split(' ').next()?.parse().ok().map(Nanos)
}

/// A field of `/proc/PID/status`, in bytes.
fn status(pid: u32, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Bytes that a disk was told to write so far (Documentation/block/stat.rst: sectors of 512 bytes).
fn written(disk: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/sys/class/block/{disk}/stat")).ok()?;
    Some(text.split_ascii_whitespace().nth(6)?.parse::<u64>().ok()? * 512)
}
