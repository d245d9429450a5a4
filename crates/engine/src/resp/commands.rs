//! Requests as bytes. All that does not change from one to the next is made before the first.

use super::Keys;
use super::mix::Mix;
use crate::entropy::Filler;
use crate::stream::Op;
use basics::Job;
use basics::job::Block;

/// Digits of a key, which all are as long as each other: `key:000000000042`.
pub(super) const DIGITS: usize = 12;
/// What values are taken from, each from another place.
const POOL: usize = 1 << 20;
/// Values begin at multiples of it.
const STEP: usize = 64;

/// The key of a number, as requests have it.
pub fn key_name(number: u64) -> String {
    format!("key:{number:0DIGITS$}")
}

/// Writes the commands of one thread.
#[derive(Debug)]
pub(super) struct Commands {
    get: Vec<u8>,
    /// Up to the value's length.
    set: Vec<u8>,
    /// After the value.
    after: Vec<u8>,
    /// A whole SET, where all values are as long as each other, and where its value begins.
    whole: Option<(Vec<u8>, usize)>,
    pool: Vec<u8>,
    /// Where the next value begins.
    at: usize,
    unit: u64,
    longest: usize,
    /// Where it is more than GETs and SETs.
    mix: Option<Mix>,
}

impl Commands {
    pub(super) fn new(job: &Job, keys: &Keys<'_>, thread: u32) -> Self {
        let key = format!("${}\r\nkey:{}", 4 + DIGITS, "0".repeat(DIGITS));
        let (words, after) = match keys.expires {
            None => (3, "\r\n".to_owned()),
            Some(time) => {
                let millis = time.as_millis().max(1).to_string();
                (5, format!("\r\n$2\r\nPX\r\n${}\r\n{millis}\r\n", millis.len()))
            }
        };
        let largest = job.block.largest().0 as usize;
        let mut pool = vec![0; POOL.max(2 * largest).next_multiple_of(4096)];
        Filler::new(job.entropy, job.seed, u64::from(thread)).fill(&mut pool);
        let (get, set) = (format!("*2\r\n$3\r\nGET\r\n{key}\r\n"), format!("*{words}\r\n$3\r\nSET\r\n{key}\r\n$"));
        let whole = matches!(job.block, Block::Fixed(_)).then(|| {
            let head = format!("{set}{largest}\r\n");
            ([head.as_bytes(), &pool[..largest], after.as_bytes()].concat(), head.len())
        });
        let mix = Mix::new(keys.commands, job, thread);
        let head = set.len().max(mix.as_ref().map_or(0, Mix::longest));
        Commands {
            longest: head + 24 + largest + after.len(),
            mix,
            get: get.into_bytes(),
            set: set.into_bytes(),
            after: after.into_bytes(),
            whole,
            pool,
            at: 0,
            unit: job.block.smallest().0.max(1),
        }
    }

    /// Bytes of the longest request.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// Appends the request of an operation; which of a mix's commands it is.
    #[inline]
    pub(super) fn write(&mut self, op: &Op, into: &mut Vec<u8>) -> u8 {
        let key = op.offset / self.unit;
        if let Some(mix) = &mut self.mix {
            let (kind, value) = mix.write(op.read, key, into);
            if value {
                into.push(b'$');
                self.value(op.len as usize, into);
                into.extend_from_slice(b"\r\n");
            }
            return kind;
        }
        if op.read {
            into.extend_from_slice(&self.get);
            // The key ends before the line does.
            number(into, 2, key);
            return 0;
        }
        let len = op.len as usize;
        if let Some((whole, value)) = &self.whole {
            let (whole, value) = (whole.as_slice(), *value);
            let start = into.len();
            into.extend_from_slice(whole);
            let from = next(&mut self.at, &self.pool, len);
            let command = &mut into[start..];
            digits(&mut command[self.set.len() - 3 - DIGITS..self.set.len() - 3], key);
            command[value..value + len].copy_from_slice(&self.pool[from..from + len]);
            return 0;
        }
        into.extend_from_slice(&self.set);
        number(into, 3, key);
        self.value(len, into);
        into.extend_from_slice(&self.after);
        0
    }

    /// Appends the length of a value and the value.
    #[inline]
    fn value(&mut self, len: usize, into: &mut Vec<u8>) {
        let from = next(&mut self.at, &self.pool, len);
        let mut digits = [b'0'; 10];
        let mut first = digits.len();
        let mut left = len;
        loop {
            first -= 1;
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        into.extend_from_slice(&digits[first..]);
        into.extend_from_slice(b"\r\n");
        into.extend_from_slice(&self.pool[from..from + len]);
    }
}

/// Where the next value begins: another place each time, so that values differ; overlapping ones do, too.
#[inline]
fn next(at: &mut usize, pool: &[u8], len: usize) -> usize {
    let from = *at;
    *at += len.next_multiple_of(STEP).max(STEP);
    if *at + len > pool.len() {
        *at = 0;
    }
    from
}

/// Puts the digits of a key where they belong, `after` bytes before the end.
#[inline]
fn number(into: &mut [u8], after: usize, key: u64) {
    let end = into.len() - after;
    digits(&mut into[end - DIGITS..end], key);
}

/// In place of zeros.
#[inline]
pub(super) fn digits(into: &mut [u8], number: u64) {
    let mut left = number;
    for digit in into.iter_mut().rev() {
        if left == 0 {
            return;
        }
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::Endpoint;
    use basics::Bytes;
    use basics::job::Block;
    use std::time::Duration;

    fn written(op: Op, expires: Option<Duration>) -> String {
        of(Block::Fixed(Bytes(64)), op, expires)
    }

    fn of(block: Block, op: Op, expires: Option<Duration>) -> String {
        let keys = Keys {
            at: Endpoint::Unix("/".as_ref()),
            greeting: b"",
            connections: 0,
            pipeline: 1,
            count: 100,
            expires,
            commands: &[],
            slowest: 0,
        };
        let entropy = basics::job::Entropy::Zeros;
        let job = Job { block, entropy, ..Job::default() };
        let mut commands = Commands::new(&job, &keys, 0);
        let mut out = Vec::new();
        commands.write(&op, &mut out);
        assert!(out.len() <= commands.longest());
        String::from_utf8(out).unwrap().replace('\0', "").replace("\r\n", " ")
    }

    #[test]
    fn requests_are_written() {
        let op = |read| Op { offset: 64 * 42, len: 64, read };
        assert_eq!(written(op(true), None), "*2 $3 GET $16 key:000000000042 ");
        assert_eq!(written(op(false), None), "*3 $3 SET $16 key:000000000042 $64  ");
        assert_eq!(key_name(42), "key:000000000042");
        let split = Block::Split(vec![(Bytes(64), 1), (Bytes(128), 1)]);
        assert_eq!(of(split, op(false), None), "*3 $3 SET $16 key:000000000042 $64  ");
        let timed = written(op(false), Some(Duration::from_secs(3)));
        assert_eq!(timed, "*5 $3 SET $16 key:000000000042 $64  $2 PX $4 3000 ");
    }
}
