//! A Redis server for one step: started in a folder of its own on its medium, filled, loaded, looked at, ended; or one that runs
//! already, and is left as it was. The media that are emulated disks live as long as the run.

mod cache;
mod limit;
mod lose;
mod media;
mod own;
mod replica;
mod requests;
mod running;
mod spikes;

pub(crate) use cache::Stock;
pub(crate) use limit::Limits;
pub(crate) use lose::Cut;
pub(crate) use media::Media;
pub(crate) use requests::{new_log, write_log};

use crate::RunError;
use crate::pressed::Heard;
use basics::job::{Block, Direction, Order, Pacing, Stop};
use basics::redis::{Medium, Served, Server};
use basics::redis_commands::{Command as Asked, CommandMix};
use basics::spikes::Spikes;
use basics::{Bytes, Interval, Job, Nanos};
use change::Journal;
use engine::{Control as Cancel, Ended, Endpoint, Keys, Outcome, Target};
use observe::stalls::Watch;
use own::Own;
use redisd::{Address, Control, Info, with_way_out};
use running::Running;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Until it answers: its data set may come from a slow card.
const READY: Duration = Duration::from_secs(120);
/// For a child that saves or rewrites, after the load.
const SAVED: Duration = Duration::from_secs(300);
/// For it to end by itself.
const GOODBYE: Duration = Duration::from_secs(20);
/// For its end to be seen, once its connections broke.
const GONE: Duration = Duration::from_millis(500);
/// The oldest version whose redis.conf, INFO and LATENCY are those that are asked for here.
const OLDEST: u32 = 6;
/// For a program to say its version.
const ASKED: Duration = Duration::from_secs(2);
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

/// Whose server it is.
enum Host {
    Own(Box<Own>),
    Running(Box<Running>),
}

/// A server that runs. Fields go in this order.
pub(crate) struct Cell<'a> {
    server: &'a Server,
    address: Address,
    control: Control,
    host: Host,
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
    /// Starts it and waits until it answers, or finds it.
    pub fn start(server: &'a Server, dir: &Path, site: Site<'_>) -> Result<Self, RunError> {
        let (host, address, control, greeting) = match &server.medium {
            Medium::Running { url, secret, writes } => {
                let url = if secret.0.is_empty() { url } else { &secret.0 };
                let (running, control) = Running::attach(url, *writes, server, site)?;
                let (address, greeting) = (running.address().clone(), running.greeting());
                (Host::Running(Box::new(running)), address, control, greeting)
            }
            _ => {
                let (own, address, control) = Own::start(server, dir, site)?;
                let greeting = server.password().map(greeting).unwrap_or_default();
                (Host::Own(Box::new(own)), address, control, greeting)
            }
        };
        Ok(Cell { server, address, control, host, greeting, spikes: None, limit: None })
    }

    /// Where it answers.
    pub fn address(&self) -> &Address {
        &self.address
    }

    fn own(&self) -> Option<&Own> {
        match &self.host {
            Host::Own(own) => Some(own),
            Host::Running(_) => None,
        }
    }

    fn own_mut(&mut self) -> Option<&mut Own> {
        match &mut self.host {
            Host::Own(own) => Some(own),
            Host::Running(_) => None,
        }
    }

    /// Its process, where that is on this machine and seen.
    fn pid(&self) -> Option<u32> {
        match &self.host {
            Host::Own(own) => Some(own.child.id()),
            Host::Running(running) => running.pid(),
        }
    }

    /// Whether nothing is set, and what was there before is read.
    fn reads_theirs(&self) -> bool {
        matches!(&self.host, Host::Running(running) if running.keys().1.is_some())
    }

    /// The job as it is asked for: values that are there already are as long as they are, in the mean.
    fn asked(&self, job: &Job) -> Job {
        match &self.host {
            Host::Running(running) if self.reads_theirs() => Job { block: Block::Fixed(running.mean()), ..job.clone() },
            _ => job.clone(),
        }
    }

    /// Where its files lie, of one that is not ours, and what is worth a note of it.
    pub fn found(&self) -> Option<(&Path, &[String])> {
        match &self.host {
            Host::Own(_) => None,
            Host::Running(running) => Some((running.dir(), running.notes())),
        }
    }

    fn keys<'k>(&'k self, pipeline: u32, connections: u32) -> Keys<'k> {
        let at = match &self.address {
            Address::Tcp(addr) => Endpoint::Tcp(*addr),
            Address::Unix(path) => Endpoint::Unix(path),
        };
        let expires = self.server.expires.map(|time| Duration::from_nanos(time.0));
        let (prefix, names) = match &self.host {
            Host::Own(_) => ("", None),
            Host::Running(running) => running.keys(),
        };
        Keys {
            at,
            greeting: &self.greeting,
            connections,
            pipeline,
            count: names.map_or(self.server.keys, |names| names.len() as u64),
            expires,
            commands: self.server.commands.weights(),
            slowest: spikes::SLOWEST,
            prefix,
            names,
        }
    }

    /// Sets all keys once.
    pub fn fill(
        &mut self,
        job: &Job,
        interrupted: &AtomicBool,
        mut told: impl FnMut(Bytes),
    ) -> Result<Bytes, RunError> {
        if self.reads_theirs() {
            return Ok(Bytes(0));
        }
        if let Host::Running(running) = &self.host {
            running.may_fill(&mut self.control, job.block.mean())?;
        }
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
        // Whoever else looks at a server that is not ours keeps what it counts.
        if self.own().is_some() {
            for order in ["CONFIG RESETSTAT", "SLOWLOG RESET", "LATENCY RESET"] {
                self.control.order(order).map_err(failed)?;
            }
        }
        let info = self.control.info().map_err(failed)?;
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
        let job = &self.asked(job);
        // Of a server that is taken away in the middle nobody asks why it was slow.
        let watch = self.server.lose.is_none().then(|| spikes::begin(self.pid()));
        let mut outcome = std::thread::scope(|scope| {
            let (now, when) = channel::<()>();
            // A snapshot at equal distances, until the load is over.
            let every = self.server.every.map(|time| Duration::from_nanos(time.0));
            let (ends, over) = channel::<()>();
            if let Some(every) = every {
                let (address, password) = (self.address.clone(), password);
                scope.spawn(move || {
                    let Ok(mut control) = Control::open(&address, password) else { return };
                    while matches!(over.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
                        // One that still goes on is enough.
                        if let Err(error) = control.order("BGSAVE") {
                            tracing::debug!("{error}");
                        }
                    }
                });
            }
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
            drop((now, ends));
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
    pub fn account(
        &mut self,
        before: &Before,
        job: &Job,
        outcome: &Outcome,
        disk: Option<&str>,
    ) -> Result<Served, RunError> {
        let (main, all) = (self.main_cpu(), self.cpu());
        let info = self.when_saved()?;
        self.settle();
        let moved = |a: Option<Nanos>, b: Option<Nanos>| a.zip(b).map(|(a, b)| b - a);
        let number = |key: &str| info.number(key).unwrap_or(0);
        let since = |key: &str| number(key).saturating_sub(before.info.number(key).unwrap_or(0));
        let peak = match &self.host {
            // Of a process that lived before, the most was perhaps long ago.
            Host::Own(own) => status(own.child.id(), "VmHWM:"),
            Host::Running(_) => info.number("used_memory_rss"),
        };
        let copied = number("rdb_last_cow_size").max(number("aof_last_cow_size"));
        Ok(Served {
            mode: Some(self.server.mode),
            medium: self.server.medium.name(),
            version: info.version(),
            keys: self.keys(1, 1).count,
            payload: self.asked(job).block.mean(),
            peak: Bytes(peak.unwrap_or(0) + copied),
            main_cpu: moved(before.main, main),
            cpu: moved(before.all, all),
            forks: since("total_forks"),
            last_fork: info.number("latest_fork_usec").map(|us| Nanos(us * 1000)),
            delayed_fsyncs: since("aof_delayed_fsync"),
            copied: Bytes(copied),
            hits: since("keyspace_hits"),
            misses: since("keyspace_misses"),
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
        let Some(own) = self.own() else { return };
        if let Ok(dir) = std::fs::File::open(&own.dir) {
            let _ = rustix::fs::syncfs(dir);
        }
    }

    fn main_cpu(&self) -> Option<Nanos> {
        let pid = self.pid()?;
        scheduled(&format!("/proc/{pid}/task/{pid}/schedstat"))
    }

    fn cpu(&self) -> Option<Nanos> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid()?)).ok()?;
        let each = tasks.flatten().filter_map(|task| scheduled(&task.path().join("schedstat").display().to_string()));
        Some(each.fold(Nanos(0), |sum, time| sum + time))
    }

    fn trouble(&mut self, when: &str, ended: &Ended) -> RunError {
        let why = match ended {
            Ended::Refused { said } => format!("it answers: {}", with_way_out(said)),
            Ended::Failed { errno, .. } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                match error.kind() {
                    std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe => format!(
                        "it closed a connection ({error}): fewer --connections where its maxclients is less, \
                         and no timeout that is shorter than what lies between two requests"
                    ),
                    _ => error.to_string(),
                }
            }
            ended => format!("{ended:?}"),
        };
        let broken = matches!(ended, Ended::Failed { .. });
        let gone = match &mut self.host {
            Host::Own(own) => own.ended(broken),
            Host::Running(_) => None,
        };
        failed(match gone {
            Some(gone) => format!("the server {}", gone.replace('#', when)),
            None => format!("the server failed {when}: {why}"),
        })
    }

    /// What it says that it is.
    pub fn version(&mut self) -> Result<String, RunError> {
        Ok(self.control.info().map_err(failed)?.version())
    }

    /// Ends it and removes its folder; of one that is not ours what was set.
    pub fn end(mut self) -> Vec<RunError> {
        match self.host {
            Host::Own(own) => own.end(&mut self.control),
            Host::Running(running) => running.end(),
        }
    }
}

/// A password as RESP has it.
fn greeting(password: &str) -> Vec<u8> {
    format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len()).into_bytes()
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
