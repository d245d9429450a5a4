//! One request over one connection to loopback, and its answer line by line as it comes. Reads wake up ten times a second to
//! see whether they should go on; a line, and each other thing waited for, has its own time. What the lines mean is for
//! others.

use crate::error::{Asked, LlmError, excerpt};
use basics::Nanos;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a read or a write may not notice that it should stop.
const TICK: Duration = Duration::from_millis(100);
/// Bytes of an answer's head.
const MOST_HEAD: usize = 64 << 10;
/// Header fields of an answer.
const MOST_FIELDS: usize = 64;
/// Bytes of a line of the answer. The last one of `llama-server` repeats the prompt.
const MOST_LINE: usize = 4 << 20;
/// Bytes of an answer that is read whole.
const MOST_WHOLE: usize = 16 << 20;
/// Bytes between one chunk and the next.
const MOST_BETWEEN: usize = 4 << 10;

/// For how long, and unless what, an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting<'a> {
    /// True when it is to be given up.
    pub(crate) cancel: &'a AtomicBool,
    /// The longest time without a next line.
    pub(crate) patience: Duration,
}

impl Waiting<'_> {
    fn until(self, began: Instant, asked: &Asked) -> Result<(), LlmError> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(LlmError::Cancelled);
        }
        if began.elapsed() >= self.patience {
            return Err(LlmError::Silent { asked: asked.clone(), waited: Nanos(self.patience.as_nanos() as u64) });
        }
        Ok(())
    }

    fn tick(self, began: Instant) -> Duration {
        self.patience.saturating_sub(began.elapsed()).clamp(Duration::from_millis(1), TICK)
    }
}

/// How the rest of an answer is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// So many bytes are left.
    Length(u64),
    /// A chunk's length comes next.
    ChunkHead,
    /// So many bytes of a chunk are left.
    Chunk(u64),
    /// The line end behind a chunk.
    ChunkEnd,
    /// Until the connection ends.
    Close,
    /// Nothing is left.
    Done,
}

/// An answer of which the head has come.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    stream: TcpStream,
    asked: Asked,
    waiting: Waiting<'a>,
    /// What came and has not been unwrapped.
    raw: Vec<u8>,
    /// What has been unwrapped and not taken.
    plain: Vec<u8>,
    /// How much of `plain` holds no line end.
    looked: usize,
    body: Body,
    pub(crate) status: u16,
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn connect(asked: &Asked, waiting: Waiting) -> Result<TcpStream, LlmError> {
    let began = Instant::now();
    let unreachable = |source| LlmError::Unreachable { asked: asked.clone(), source };
    loop {
        waiting.until(began, asked)?;
        match TcpStream::connect_timeout(&asked.addr, waiting.tick(began)) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(unreachable)?;
                return Ok(stream);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(unreachable(error)),
        }
    }
}

fn send(stream: &mut TcpStream, mut bytes: &[u8], asked: &Asked, waiting: Waiting) -> Result<(), LlmError> {
    let began = Instant::now();
    while !bytes.is_empty() {
        waiting.until(began, asked)?;
        let sent = stream.set_write_timeout(Some(waiting.tick(began))).and_then(|()| stream.write(bytes));
        match sent {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_pause(&error) => {}
            Err(source) => return Err(LlmError::Unreachable { asked: asked.clone(), source }),
        }
    }
    Ok(())
}

/// Sends a request, with JSON where there is a `body`, and waits for the head of its answer.
pub(crate) fn request<'a>(
    asked: Asked,
    path: &str,
    body: Option<&str>,
    waiting: Waiting<'a>,
) -> Result<Answer<'a>, LlmError> {
    let mut stream = connect(&asked, waiting)?;
    let (method, body) = body.map_or(("GET", ""), |body| ("POST", body));
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: */*\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        asked.addr,
        body.len()
    );
    send(&mut stream, [head.as_bytes(), body.as_bytes()].concat().as_slice(), &asked, waiting)?;
    let (raw, plain) = (Vec::new(), Vec::new());
    let mut answer = Answer { stream, asked, waiting, raw, plain, looked: 0, body: Body::Done, status: 0 };
    answer.head()?;
    Ok(answer)
}

impl<'a> Answer<'a> {
    pub(crate) fn garbage(&self, what: impl Into<String>) -> LlmError {
        LlmError::Garbage { asked: self.asked.clone(), what: what.into() }
    }

    fn broke(&self, why: impl Into<String>) -> LlmError {
        LlmError::Broke { asked: self.asked.clone(), tokens: 0, why: why.into() }
    }

    /// Waits for more of the answer; false at the end of the connection.
    fn receive(&mut self, began: Instant) -> Result<bool, LlmError> {
        let mut room = [0; 16 << 10];
        loop {
            self.waiting.until(began, &self.asked)?;
            let wait = self.waiting.tick(began);
            match self.stream.set_read_timeout(Some(wait)).and_then(|()| self.stream.read(&mut room)) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.raw.extend_from_slice(&room[..count]);
                    return Ok(true);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(self.broke(error.to_string())),
            }
        }
    }

    fn head(&mut self) -> Result<(), LlmError> {
        let began = Instant::now();
        loop {
            let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
            let mut head = httparse::Response::new(&mut fields);
            match head.parse(&self.raw) {
                Ok(httparse::Status::Complete(length)) => {
                    let status = head.code.unwrap_or(0);
                    let body = body(status, head.headers);
                    self.raw.drain(..length);
                    // 100 and its like come before the answer.
                    if status < 200 {
                        continue;
                    }
                    (self.status, self.body) = (status, body.map_err(|what| self.garbage(what))?);
                    return self.unwrap();
                }
                Ok(httparse::Status::Partial) if self.raw.len() <= MOST_HEAD => {}
                Ok(httparse::Status::Partial) => {
                    return Err(self.garbage(format!("over {} KiB before any content", MOST_HEAD >> 10)));
                }
                Err(error) => {
                    let begins = String::from_utf8_lossy(&self.raw[..self.raw.len().min(80)]).into_owned();
                    return Err(self.garbage(format!("no HTTP ({error}), but {}", excerpt(&begins))));
                }
            }
            if !self.receive(began)? {
                return Err(self.broke("it ended the connection before it answered"));
            }
        }
    }

    /// Takes the wrapping off what came.
    fn unwrap(&mut self) -> Result<(), LlmError> {
        let mut at = 0;
        let mut wrong = None;
        while self.body != Body::Done && wrong.is_none() {
            let rest = &self.raw[at..];
            let most = match self.body {
                Body::Length(left) | Body::Chunk(left) => rest.len().min(usize::try_from(left).unwrap_or(usize::MAX)),
                _ => rest.len(),
            };
            match self.body {
                Body::Length(0) => self.body = Body::Done,
                Body::Chunk(0) => self.body = Body::ChunkEnd,
                _ if rest.is_empty() => break,
                Body::ChunkHead => match httparse::parse_chunk_size(rest) {
                    Ok(httparse::Status::Complete((length, size))) => {
                        at += length;
                        // What may follow the last chunk says nothing that is needed.
                        self.body = if size == 0 { Body::Done } else { Body::Chunk(size) };
                    }
                    Ok(httparse::Status::Partial) if rest.len() <= MOST_BETWEEN => break,
                    Ok(httparse::Status::Partial) => wrong = Some("a chunk's length that does not end"),
                    Err(_) => wrong = Some("a chunk without a length"),
                },
                Body::ChunkEnd if rest.starts_with(b"\r\n") => {
                    at += 2;
                    self.body = Body::ChunkHead;
                }
                Body::ChunkEnd if rest == b"\r" => break,
                Body::ChunkEnd => wrong = Some("a chunk longer than its length"),
                Body::Length(_) | Body::Chunk(_) | Body::Close | Body::Done => {
                    self.plain.extend_from_slice(&rest[..most]);
                    at += most;
                    self.body = match self.body {
                        Body::Length(left) => Body::Length(left - most as u64),
                        Body::Chunk(left) => Body::Chunk(left - most as u64),
                        body => body,
                    };
                }
            }
        }
        self.raw.drain(..at);
        wrong.map_or(Ok(()), |what| Err(self.garbage(what)))
    }

    /// Waits for more content; false when there is none.
    fn more(&mut self, began: Instant) -> Result<bool, LlmError> {
        if self.body == Body::Done {
            return Ok(false);
        }
        if self.receive(began)? {
            self.unwrap()?;
            return Ok(true);
        }
        if self.body != Body::Close {
            return Err(self.broke("it ended the connection inside its answer"));
        }
        self.body = Body::Done;
        Ok(false)
    }

    /// The next line without its end, or none after the last.
    pub(crate) fn line(&mut self) -> Result<Option<String>, LlmError> {
        let began = Instant::now();
        loop {
            let end = self.plain[self.looked..].iter().position(|byte| *byte == b'\n');
            let taken = match end {
                Some(end) => self.looked + end + 1,
                None => {
                    self.looked = self.plain.len();
                    if self.looked > MOST_LINE {
                        return Err(self.garbage(format!("a line of over {} MiB", MOST_LINE >> 20)));
                    }
                    if self.more(began)? {
                        continue;
                    }
                    if self.plain.is_empty() {
                        return Ok(None);
                    }
                    self.plain.len()
                }
            };
            let line: Vec<u8> = self.plain.drain(..taken).collect();
            self.looked = 0;
            let line = String::from_utf8(line).map_err(|_| self.garbage("a line that is not UTF-8"))?;
            return Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()));
        }
    }

    /// All of the content.
    pub(crate) fn whole(&mut self) -> Result<String, LlmError> {
        let began = Instant::now();
        while self.more(began)? {
            if self.plain.len() > MOST_WHOLE {
                return Err(self.garbage(format!("over {} MiB", MOST_WHOLE >> 20)));
            }
        }
        String::from_utf8(std::mem::take(&mut self.plain)).map_err(|_| self.garbage("an answer that is not UTF-8"))
    }
}

/// How an answer with this head is wrapped.
fn body(status: u16, fields: &[httparse::Header]) -> Result<Body, String> {
    let value = |name: &str| {
        let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(field.value).trim().to_ascii_lowercase())
    };
    if status == 204 || status == 304 {
        return Ok(Body::Done);
    }
    if let Some(coding) = value("transfer-encoding") {
        return if coding == "chunked" {
            Ok(Body::ChunkHead)
        } else {
            Err(format!("transfer coding {}", excerpt(&coding)))
        };
    }
    value("content-length").map_or(Ok(Body::Close), |length| {
        length.parse().map(Body::Length).map_err(|_| format!("content of length {}", excerpt(&length)))
    })
}
