//! One connection: what was asked on it and not answered yet, in order, and the bytes that are on their way.

use super::commands::Commands;
use super::replies::{Replies, Reply};
use super::{Endpoint, Keys};
use crate::EngineError;
use crate::stream::Op;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use sys::clock::Clock;

/// For a connection to be made and greeted: a server that loads its data set answers, and says so.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection of one thread.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    output: Vec<u8>,
    sent: usize,
    /// What is not answered.
    asked: VecDeque<Asked>,
    /// The last so many of them were not sent yet.
    fresh: usize,
    replies: Replies,
    pipeline: usize,
    /// It takes nothing any more, for this reason; what the server said before may still be there.
    pub(super) broken: Option<i32>,
}

/// A request on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub slot: u32,
    pub len: u32,
    /// When it was sent, in ticks.
    pub sent: u64,
    /// Which of a mix's commands it is.
    pub kind: u8,
}

/// What a look at a socket brought.
#[derive(Debug)]
pub(super) enum Arrived {
    /// All that there was.
    All,
    /// There may be more.
    More,
    /// The server does not do it.
    Refused { slot: u32, said: String },
}

/// Either kind of socket, while it is greeted.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(at: Endpoint<'_>) -> io::Result<(OwnedFd, Box<dyn Stream>)> {
    Ok(match at {
        Endpoint::Tcp(addr) => {
            let stream = TcpStream::connect_timeout(&addr, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            (stream.try_clone()?.into(), Box::new(stream))
        }
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            (stream.try_clone()?.into(), Box::new(stream))
        }
    })
}

impl Connection {
    /// Connected and greeted, with room for so many bytes to be sent.
    pub(super) fn open(keys: &Keys<'_>, room: usize) -> Result<Self, EngineError> {
        let failed = |source| EngineError::System { what: "a connection to the server", source };
        let (socket, mut stream) = connect(keys.at).map_err(failed)?;
        greet(&mut *stream, keys.greeting).map_err(failed)?;
        drop(stream);
        rustix::io::ioctl_fionbio(&socket, true).map_err(|errno| failed(errno.into()))?;
        let pipeline = keys.pipeline.max(1) as usize;
        let (output, asked) = (Vec::with_capacity(room), VecDeque::with_capacity(pipeline));
        Ok(Connection { socket, output, sent: 0, asked, fresh: 0, replies: Replies::new(), pipeline, broken: None })
    }

    /// Requests that may be on the way.
    pub(super) fn room(&self) -> u32 {
        self.pipeline as u32
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.asked.len() >= self.pipeline
    }

    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.sent < self.output.len()
    }

    #[inline]
    pub(super) fn ask(&mut self, slot: u32, op: &Op, commands: &mut Commands<'_>) {
        let kind = commands.write(op, &mut self.output);
        self.asked.push_back(Asked { slot, len: op.len, sent: 0, kind });
        self.fresh += 1;
    }

    /// True when all was sent.
    #[inline]
    pub(super) fn send(&mut self, clock: Clock) -> io::Result<bool> {
        let now = clock.ticks();
        self.asked.iter_mut().rev().take(std::mem::take(&mut self.fresh)).for_each(|asked| asked.sent = now);
        while self.has_unsent() {
            match rustix::net::send(&self.socket, &self.output[self.sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => self.sent += bytes,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Reads once, and tells what is answered, and when that is.
    #[inline]
    pub(super) fn receive(
        &mut self,
        input: &mut [u8],
        clock: Clock,
        mut answered: impl FnMut(Asked, u64),
    ) -> io::Result<Arrived> {
        let bytes = match rustix::net::recv(&self.socket, &mut *input, RecvFlags::empty()).map(|(bytes, _)| bytes) {
            Ok(0) => return Err(Errno::CONNRESET.into()),
            Ok(bytes) => bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Arrived::All),
            Err(errno) => return Err(errno.into()),
        };
        let now = clock.ticks();
        let (asked, mut refused) = (&mut self.asked, None);
        self.replies.take(&input[..bytes], |reply| {
            let Some(asked) = asked.pop_front() else { return };
            match reply {
                Reply::Fine => answered(asked, now),
                Reply::Error(said) | Reply::Nonsense(said) if refused.is_none() => {
                    refused = Some((asked.slot, String::from_utf8_lossy(said).trim().to_owned()));
                }
                // Refused as well; one is enough to end.
                Reply::Error(_) | Reply::Nonsense(_) => answered(asked, now),
            }
        });
        Ok(match refused {
            Some((slot, said)) => Arrived::Refused { slot, said },
            None if bytes == input.len() => Arrived::More,
            None => Arrived::All,
        })
    }

    /// Forgets what was asked, and tells the slots.
    pub(super) fn give_up(&mut self, mut told: impl FnMut(u32)) {
        self.fresh = 0;
        self.asked.drain(..).for_each(|asked| told(asked.slot));
    }
}

/// How many commands these bytes are: `*WORDS`, then for each word `$LENGTH` and its bytes, which may be anything.
fn commands_in(mut bytes: &[u8]) -> usize {
    let mut commands = 0;
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let number =
            std::str::from_utf8(&bytes[1..end]).ok().and_then(|text| text.trim_end().parse().ok()).unwrap_or(0);
        let word = if bytes[0] == b'$' { number + 2 } else { 0 };
        commands += usize::from(bytes[0] == b'*');
        bytes = bytes.get(end + 1 + word..).unwrap_or_default();
    }
    commands
}

/// Says what has to be said first, and waits until it is answered.
fn greet(stream: &mut dyn Stream, greeting: &[u8]) -> io::Result<()> {
    let mut left = commands_in(greeting);
    stream.write_all(greeting)?;
    let (mut replies, mut input, mut refused) = (Replies::new(), [0; 4096], None);
    while left > 0 {
        let bytes = stream.read(&mut input)?;
        if bytes == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        replies.take(&input[..bytes], |reply| {
            left = left.saturating_sub(1);
            if let Reply::Error(said) | Reply::Nonsense(said) = reply {
                refused.get_or_insert(String::from_utf8_lossy(said).trim().to_owned());
            }
        });
    }
    refused.map_or(Ok(()), |said| Err(io::Error::other(format!("it answers: {said}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_may_hold_anything() {
        let greeting = b"*2\r\n$4\r\nAUTH\r\n$6\r\n*1\r\n*2\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";
        assert_eq!((commands_in(greeting), commands_in(b""), commands_in(b"*1\r\n$4\r\nPI")), (2, 0, 1));
    }
}
