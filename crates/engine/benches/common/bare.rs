//! The least that a client of a key-value server can do over sockets of its own: one epoll, one `recv` and one `send` for each pipeline,
//! on requests made before and answers whose length is known. It measures nothing, chooses nothing and looks at no answer, so its CPU
//! time is the kernel's price of asking, in the same run as the clients that do.

use super::Result;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::time::Instant;

/// Batches that connections take in turn.
const BATCHES: usize = 4096;
/// Answers read before the next requests are sent, as in the engine.
const READ: usize = 16;

/// Whole pipelines of requests, half of them GETs, and how long their answers are where all keys are set.
pub struct Batches(Vec<(Vec<u8>, usize)>);

impl Batches {
    pub fn new(pipeline: u32, keys: u64, payload: usize) -> Self {
        let mut state = 42_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let value = "x".repeat(payload);
        let batch = |_| {
            let (mut bytes, mut answer) = (Vec::new(), 0);
            for _ in 0..pipeline {
                let key = format!("key:{:012}", random() % keys);
                if random() % 2 == 0 {
                    bytes.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n$16\r\n{key}\r\n").as_bytes());
                    answer += format!("${payload}\r\n{value}\r\n").len();
                } else {
                    let set = format!("*3\r\n$3\r\nSET\r\n$16\r\n{key}\r\n${payload}\r\n{value}\r\n");
                    bytes.extend_from_slice(set.as_bytes());
                    answer += "+OK\r\n".len();
                }
            }
            (bytes, answer)
        };
        Batches((0..BATCHES).map(batch).collect())
    }
}

/// What it took.
pub struct Took {
    pub seconds: f64,
    pub cpu_seconds: f64,
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Sends so many batches over these sockets, one on its way on each.
pub fn run(sockets: &[OwnedFd], batches: &Batches, count: u64) -> Result<Took> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (index, socket) in sockets.iter().enumerate() {
        epoll::add(&epoll, socket, EventData::new_u64(index as u64), EventFlags::IN | EventFlags::ET)?;
    }
    let (mut left, mut input) = (vec![0; sockets.len()], vec![0; 72 << 10]);
    let (mut sent, mut answered) = (0_u64, 0_u64);
    let mut events: Vec<Event> = Vec::with_capacity(sockets.len());
    let (mut ready, mut idle): (VecDeque<usize>, Vec<usize>) = (VecDeque::new(), (0..sockets.len()).collect());
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    while answered < count {
        for index in idle.drain(..) {
            if sent == count {
                break;
            }
            let (bytes, answer) = &batches.0[sent as usize % BATCHES];
            if send(&sockets[index], bytes, SendFlags::NOSIGNAL)? != bytes.len() {
                return Err("a socket took a part of a request".into());
            }
            (left[index], sent) = (*answer, sent + 1);
        }
        if ready.is_empty() {
            events.clear();
            epoll::wait(&epoll, spare_capacity(&mut events), None)?;
            ready.extend(events.iter().map(|event| event.data.u64() as usize));
        }
        while idle.len() < READ {
            let Some(index) = ready.pop_front() else { break };
            let bytes = match recv(&sockets[index], &mut input[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err("the server has closed a connection".into()),
                Ok((bytes, _)) => bytes,
                Err(Errno::AGAIN) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if bytes > left[index] {
                return Err("an answer is longer than it should be".into());
            }
            left[index] -= bytes;
            if left[index] == 0 {
                answered += 1;
                idle.push(index);
            }
        }
    }
    Ok(Took { seconds: begun.elapsed().as_secs_f64(), cpu_seconds: cpu_seconds() - cpu })
}
