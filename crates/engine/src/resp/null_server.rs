//! A server that does nothing: it answers each GET with as many bytes as it was made with, and everything else with OK. What
//! clients get from it is the most that they can do on this machine.

use super::{Endpoint, INPUT};
use memchr::memchr;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest wait at a stretch, so that it ends soon.
const NAP: Duration = Duration::from_millis(10);
/// The event of who listens.
const DOOR: u64 = u64::MAX;

/// It runs until it is dropped.
#[derive(Debug)]
pub struct NullServer {
    at: At,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum At {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl NullServer {
    /// On a port of loopback, or at a socket that is made; a GET brings so many bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn start(socket: Option<&Path>, value: usize) -> io::Result<Self> {
        let (door, at): (OwnedFd, At) = match socket {
            None => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                listener.set_nonblocking(true)?;
                let at = At::Tcp(listener.local_addr()?);
                (listener.into(), at)
            }
            Some(path) => {
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                (listener.into(), At::Unix(path.to_owned()))
            }
        };
        let over = Arc::new(AtomicBool::new(false));
        let mut serving = Serving::new(door, matches!(at, At::Tcp(_)), value, over.clone())?;
        let thread = std::thread::Builder::new().name("null-server".to_owned()).spawn(move || {
            // Whoever asks it sees that it is gone.
            if let Err(errno) = serving.serve() {
                tracing::debug!("the server that does nothing: {errno}");
            }
        })?;
        Ok(NullServer { at, over, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn endpoint(&self) -> Endpoint<'_> {
        match &self.at {
            At::Tcp(addr) => Endpoint::Tcp(*addr),
            At::Unix(path) => Endpoint::Unix(path),
        }
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
        if let At::Unix(path) = &self.at {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A client, what of its commands is not whole yet, and what could not be sent yet.
struct Client {
    socket: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Serving {
    door: OwnedFd,
    tcp: bool,
    epoll: OwnedFd,
    clients: Vec<Option<Client>>,
    /// The answer to a GET.
    value: Vec<u8>,
    over: Arc<AtomicBool>,
}

impl Serving {
    fn new(door: OwnedFd, tcp: bool, value: usize, over: Arc<AtomicBool>) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &door, EventData::new_u64(DOOR), EventFlags::IN)?;
        let value = [format!("${value}\r\n").as_bytes(), &vec![b'x'; value], b"\r\n"].concat();
        Ok(Serving { door, tcp, epoll, clients: Vec::new(), value, over })
    }

    fn serve(&mut self) -> Result<(), Errno> {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        let mut input = vec![0; INPUT];
        let nap = Timespec::try_from(NAP).unwrap_or_default();
        while !self.over.load(Relaxed) {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&nap)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            for event in &events {
                match event.data.u64() {
                    DOOR => self.let_in()?,
                    at => self.answer(at as usize, &mut input),
                }
            }
        }
        Ok(())
    }

    fn let_in(&mut self) -> Result<(), Errno> {
        let socket = match rustix::net::accept(&self.door) {
            Ok(socket) => socket,
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        rustix::io::ioctl_fionbio(&socket, true)?;
        if self.tcp {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        }
        let data = EventData::new_u64(self.clients.len() as u64);
        epoll::add(&self.epoll, &socket, data, EventFlags::IN)?;
        self.clients.push(Some(Client { socket, input: Vec::new(), output: Vec::new() }));
        Ok(())
    }

    /// Reads once, and answers every command that is whole.
    fn answer(&mut self, at: usize, input: &mut [u8]) {
        let Some(Some(client)) = self.clients.get_mut(at) else { return };
        let bytes = match rustix::net::recv(&client.socket, &mut *input, RecvFlags::empty()) {
            Ok((bytes @ 1.., _)) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Ok(_) | Err(_) => {
                // It leaves the epoll with its socket.
                self.clients[at] = None;
                return;
            }
        };
        let (value, output) = (&self.value, &mut client.output);
        let mut reply = |get| output.extend_from_slice(if get { value } else { b"+OK\r\n" });
        if client.input.is_empty() {
            let taken = commands(&input[..bytes], &mut reply);
            client.input.extend_from_slice(&input[taken..bytes]);
        } else {
            client.input.extend_from_slice(&input[..bytes]);
            let taken = commands(&client.input, &mut reply);
            client.input.drain(..taken);
        }
        let wanted = match send(client) {
            Ok(true) => EventFlags::IN,
            Ok(false) => EventFlags::IN | EventFlags::OUT,
            Err(_) => {
                self.clients[at] = None;
                return;
            }
        };
        if wanted.contains(EventFlags::OUT) || bytes == 0 {
            let _ = epoll::modify(&self.epoll, client.socket.as_fd(), EventData::new_u64(at as u64), wanted);
        }
    }
}

/// True when nothing is left to be sent.
fn send(client: &mut Client) -> Result<bool, Errno> {
    let mut sent = 0;
    let done = loop {
        if sent == client.output.len() {
            break true;
        }
        match rustix::net::send(&client.socket, &client.output[sent..], SendFlags::NOSIGNAL) {
            Ok(bytes) => sent += bytes,
            Err(Errno::AGAIN) => break false,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    };
    client.output.drain(..sent);
    Ok(done)
}

/// Tells of each whole command whether it is a GET, and how many bytes those are.
fn commands(input: &[u8], mut told: impl FnMut(bool)) -> usize {
    let mut at = 0;
    while let Some((get, len)) = command(&input[at..]) {
        told(get);
        at += len;
    }
    at
}

/// Of one command, an array of strings; none where it is not whole.
fn command(input: &[u8]) -> Option<(bool, usize)> {
    let (words, mut at) = number(input, b'*')?;
    let mut get = false;
    for word in 0..words {
        let (len, line) = number(&input[at..], b'$')?;
        let from = at + line;
        at = from + len + 2;
        if at > input.len() {
            return None;
        }
        get |= word == 0 && input[from..from + len].eq_ignore_ascii_case(b"get");
    }
    Some((get, at))
}

/// The number of a line of this kind, and how long the line is.
fn number(input: &[u8], kind: u8) -> Option<(usize, usize)> {
    let end = memchr(b'\n', input)?;
    let digits = input[..end].strip_prefix(&[kind])?.strip_suffix(b"\r")?;
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n*1\r\n$x\r\n";
    const GET: &[u8] = b"*2\r\n$3\r\nget\r\n$1\r\nk\r\n";

    #[test]
    fn only_whole_commands_count() {
        let both = [SET, GET].concat();
        let count = |input: &[u8]| {
            let mut all = Vec::new();
            let taken = commands(input, |get| all.push(get));
            (all, taken)
        };
        assert_eq!(count(&both), (vec![false, true], both.len()));
        for end in 0..both.len() {
            let (all, taken) = count(&both[..end]);
            assert_eq!((all.len(), taken), if end >= SET.len() { (1, SET.len()) } else { (0, 0) }, "{end}");
        }
    }

    fn talk(mut stream: impl Read + Write) {
        // In pieces, and several at once.
        for piece in [&SET[..5], &SET[5..], &[GET, SET, GET].concat()] {
            stream.write_all(piece).unwrap();
        }
        let mut told = [0; 5 + 9 + 5 + 9];
        stream.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"+OK\r\n$3\r\nxxx\r\n+OK\r\n$3\r\nxxx\r\n");
    }

    #[test]
    fn it_answers_over_either_link() {
        let server = NullServer::start(None, 3).unwrap();
        let Endpoint::Tcp(addr) = server.endpoint() else { panic!() };
        talk(TcpStream::connect(addr).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("null");
        let server = NullServer::start(Some(&path), 3).unwrap();
        talk(UnixStream::connect(&path).unwrap());
        drop(server);
        assert!(!path.exists());
    }
}
