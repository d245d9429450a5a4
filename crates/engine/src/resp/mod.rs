//! A key-value server that speaks RESP (Redis, Valkey) as a target: block *i* of the region is key *i*, a read is a GET, a write is
//! a SET of so many bytes. Each thread has connections of its own and one epoll; a socket is read once for each time that it has
//! something. Several are read before the next requests go out, so that the server finds several when it looks; each has stamps of
//! its own for that, from just before it is sent to just after its answer was read.

mod commands;
mod connection;
mod mix;
mod null_server;
mod replies;

pub use commands::{Names, key_name};
pub use null_server::NullServer;

use crate::EngineError;
use crate::blocking::libc_errno;
use crate::queued::{Piece, Queue};
use basics::redis_commands::Command;
use basics::{Job, Latencies, Nanos};
use commands::Commands;
use connection::{Arrived, Connection};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::fs::Timespec;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use sys::clock::{Clock, Rate};

/// The longest wait at a stretch, so that a cancelled job ends soon.
const NAP: Duration = Duration::from_millis(20);
/// Answers that are read before the next requests are sent: the server sleeps and is woken so many times less. From one, 4, 16 and 64
/// sockets of 50 at a time they brought 157, 163, 163 and 175 thousand requests a second of the client's CPU over TCP, 294, 295, 353 and
/// 319 over a Unix socket; with 16 requests on each, one socket is best.
const READ: usize = 16;
/// What is read from a socket at a time: the replies of 16 requests of 4 KiB.
const INPUT: usize = 72 << 10;

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub enum Endpoint<'a> {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(&'a Path),
}

/// A key-value server, as [`crate::Target`] has it.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    /// Where.
    pub at: Endpoint<'a>,
    /// What is sent on each connection before the first request, whole commands; each reply must be no error.
    pub greeting: &'a [u8],
    /// Connections, over all threads; 0 for as many as a job's depth makes.
    pub connections: u32,
    /// Requests on the way on each connection; a job's depth, which is a thread's, is a multiple of it.
    pub pipeline: u32,
    /// How many keys there are to choose from.
    pub count: u64,
    /// Before the name of each key that is set, and read where there are no [`Names`].
    pub prefix: &'a str,
    /// Keys that are there already, of which GETs choose; as many as are counted.
    pub names: Option<&'a Names>,
    /// A key is gone so long after it was set.
    pub expires: Option<Duration>,
    /// What is asked, where it is more than GETs and SETs: reads and writes of the job are shared out among these.
    pub commands: &'a [(Command, u32)],
    /// So many of each thread's slowest requests are kept by themselves.
    pub slowest: usize,
}

/// Bytes that a job's connections take, in all threads.
pub(crate) fn memory(job: &Job) -> u64 {
    let each = job.block.largest().0.saturating_add(256);
    let thread = each.saturating_mul(u64::from(job.depth)).saturating_add(each.saturating_mul(2).max(1 << 20));
    thread.saturating_mul(u64::from(job.threads))
}

/// An answer.
#[derive(Debug, Clone, Copy)]
struct Done {
    slot: u32,
    result: i32,
    /// When it was sent and when it was answered, in ticks.
    stamps: (u64, u64),
    /// Which of the mix's commands it was.
    kind: u8,
}

impl Done {
    /// It failed, and took no time that counts.
    fn failed(slot: u32, errno: i32) -> Self {
        Done { slot, result: -errno, stamps: (0, 0), kind: 0 }
    }
}

/// The connections of one thread.
pub(crate) struct Connections<'a> {
    epoll: OwnedFd,
    all: Vec<Connection>,
    commands: Commands<'a>,
    /// Connections that may be given a request; some may have become full since.
    roomy: VecDeque<u32>,
    /// Those with requests that were not sent yet.
    unsent: Vec<u32>,
    /// Those whose socket may have something.
    ready: VecDeque<u32>,
    events: Vec<Event>,
    done: VecDeque<Done>,
    /// Of what was reaped last.
    stamps: (u64, u64),
    input: Vec<u8>,
    clock: Clock,
    rate: Rate,
    /// What the command that was reaped last is, and how long each took; empty without a mix.
    last: u8,
    took: Vec<(Command, Latencies)>,
    stop: &'a AtomicBool,
    /// What the server said when it refused a request.
    refused: Option<String>,
}

impl<'a> Connections<'a> {
    /// Connected, greeted, nothing asked.
    pub(crate) fn new(
        keys: &Keys<'a>,
        job: &Job,
        thread: u32,
        (clock, rate, stop): (Clock, Rate, &'a AtomicBool),
    ) -> Result<Self, EngineError> {
        let system = |what| move |errno: Errno| EngineError::System { what, source: errno.into() };
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system("an epoll"))?;
        let pipeline = keys.pipeline.max(1);
        let most = job.depth / pipeline;
        let of_thread = |all: u32| all / job.threads + u32::from(thread < all % job.threads);
        let count = if keys.connections == 0 { most } else { of_thread(keys.connections).min(most) }.max(1);
        let commands = Commands::new(job, keys, thread);
        let mut all = Vec::with_capacity(count as usize);
        for index in 0..count {
            let connection = Connection::open(keys, commands.longest() * pipeline as usize)?;
            epoll::add(&epoll, connection.socket(), data(index), EventFlags::IN | EventFlags::ET)
                .map_err(system("an epoll of connections"))?;
            all.push(connection);
        }
        Ok(Connections {
            epoll,
            all,
            commands,
            roomy: (0..count).collect(),
            unsent: Vec::with_capacity(count as usize),
            ready: VecDeque::with_capacity(count as usize),
            events: Vec::with_capacity(count as usize),
            done: VecDeque::with_capacity(job.depth as usize),
            stamps: (0, 0),
            input: vec![0; INPUT],
            clock,
            rate,
            last: 0,
            took: keys.commands.iter().map(|(command, _)| (*command, Latencies::new())).collect(),
            stop,
            refused: None,
        })
    }

    /// Requests that may be on the way.
    pub(crate) fn slots(&self) -> u32 {
        self.all.iter().map(Connection::room).sum()
    }

    /// What the server said, where it refused a request.
    pub(crate) fn refused(&mut self) -> Option<String> {
        self.refused.take()
    }

    /// How long each command of the mix took.
    pub(crate) fn commands(&mut self) -> Vec<(Command, Latencies)> {
        std::mem::take(&mut self.took)
    }

    /// Sends what was asked; what a socket has no room for goes on once it has.
    fn send(&mut self) -> Result<(), i32> {
        while let Some(index) = self.unsent.pop() {
            let connection = &mut self.all[index as usize];
            match connection.send(self.clock) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    // What the server answered before it went may still be there to be read.
                    connection.broken = Some(number(&error));
                    self.ready.push_back(index);
                    continue;
                }
            }
            let wants = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::modify(&self.epoll, connection.socket(), data(index), wants).map_err(Errno::raw_os_error)?;
        }
        Ok(())
    }

    /// Finds sockets that have something, for so long at most.
    fn look(&mut self, at_most: Duration) -> Result<(), i32> {
        let time = Timespec::try_from(at_most).unwrap_or_default();
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.raw_os_error()),
        }
        for event in &self.events {
            let (index, flags) = (event.data.u64() as u32, event.flags);
            if flags.contains(EventFlags::OUT) && self.all[index as usize].has_unsent() {
                let wants = EventFlags::IN | EventFlags::ET;
                let socket = self.all[index as usize].socket();
                epoll::modify(&self.epoll, socket, data(index), wants).map_err(Errno::raw_os_error)?;
                self.unsent.push(index);
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.ready.push_back(index);
            }
        }
        Ok(())
    }

    /// Reads one socket once.
    fn receive(&mut self, index: u32) {
        let connection = &mut self.all[index as usize];
        let was_full = connection.is_full();
        let done = &mut self.done;
        let arrived = connection.receive(&mut self.input, self.clock, |asked, answered| {
            let stamps = (asked.sent, answered);
            done.push_back(Done { slot: asked.slot, result: asked.len as i32, stamps, kind: asked.kind });
        });
        match arrived {
            Ok(Arrived::All) => {
                if let Some(errno) = connection.broken {
                    connection.give_up(|slot| done.push_back(Done::failed(slot, errno)));
                }
            }
            Ok(Arrived::More) => self.ready.push_back(index),
            Ok(Arrived::Refused { slot, said }) => {
                self.refused.get_or_insert(said);
                self.done.push_back(Done::failed(slot, libc_errno::EPROTO));
            }
            // Its own requests fail; what others have been answered meanwhile still counts.
            Err(error) => {
                let errno = number(&error);
                connection.broken = Some(errno);
                connection.give_up(|slot| done.push_back(Done::failed(slot, errno)));
            }
        }
        if was_full && !connection.is_full() {
            self.roomy.push_back(index);
        }
    }

    /// Nobody waits for what is on the way.
    fn give_up(&mut self) {
        for connection in &mut self.all {
            connection.give_up(|slot| self.done.push_back(Done::failed(slot, libc_errno::ECANCELED)));
        }
    }
}

fn data(index: u32) -> EventData {
    EventData::new_u64(u64::from(index))
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc_errno::EPIPE)
}

impl Queue for Connections<'_> {
    const CHOOSES: bool = false;
    const MAKES_DATA: bool = false;

    #[inline]
    fn room(&self) -> u32 {
        u32::MAX
    }

    #[inline]
    fn issue(&mut self, slot: u32, piece: Piece) {
        let Piece::Transfer { op, .. } = piece else {
            // Nothing is made durable from here.
            let now = self.clock.ticks();
            return self.done.push_back(Done { slot, result: 0, stamps: (now, now), kind: 0 });
        };
        // A slot is free only while a connection has room.
        while let Some(&index) = self.roomy.front() {
            let connection = &mut self.all[index as usize];
            if connection.is_full() {
                self.roomy.pop_front();
                continue;
            }
            if !connection.has_unsent() {
                self.unsent.push(index);
            }
            connection.ask(slot, &op, &mut self.commands);
            return;
        }
        self.done.push_back(Done::failed(slot, libc_errno::EPIPE));
    }

    #[inline]
    fn enter(&mut self, wait: bool, at_most: Option<Duration>) -> Result<(), i32> {
        if !self.unsent.is_empty() {
            self.send()?;
        }
        if !self.done.is_empty() {
            return Ok(());
        }
        if self.ready.is_empty() {
            self.look(if wait { at_most.unwrap_or(NAP).min(NAP) } else { Duration::ZERO })?;
        }
        if self.ready.is_empty() && self.stop.load(Relaxed) {
            self.give_up();
        }
        while self.done.len() < READ {
            let Some(index) = self.ready.pop_front() else { break };
            self.receive(index);
        }
        Ok(())
    }

    #[inline]
    fn reap(&mut self) -> Option<(u32, i32)> {
        let Done { slot, result, stamps, kind } = self.done.pop_front()?;
        (self.stamps, self.last) = (stamps, kind);
        Some((slot, result))
    }

    #[inline(always)]
    fn stamps(&self) -> Option<(u64, u64)> {
        Some(self.stamps)
    }

    #[inline]
    fn took(&mut self, ticks: u64) {
        if let Some((_, latencies)) = self.took.get_mut(usize::from(self.last)) {
            latencies.record(Nanos(self.rate.nanos(ticks as f64) as u64));
        }
    }

    fn is_all_done(&self) -> bool {
        false
    }

    fn flush(&mut self, _data_only: bool) -> Result<(), i32> {
        Ok(())
    }
}
