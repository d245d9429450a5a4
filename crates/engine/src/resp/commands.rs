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

/// Keys that are there already, as whole GETs: what is read of a server that serves somebody. Threads share it.
#[derive(Debug, Clone, Default)]
pub struct Names {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    longest: usize,
}

impl Names {
    /// Of their names.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Self {
        let mut all = Names::default();
        for name in names {
            let from = all.bytes.len();
            all.bytes.extend_from_slice(format!("*2\r\n$3\r\nGET\r\n${}\r\n", name.len()).as_bytes());
            all.bytes.extend_from_slice(name);
            all.bytes.extend_from_slice(b"\r\n");
            all.ends.push(all.bytes.len());
            all.longest = all.longest.max(all.bytes.len() - from);
        }
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    #[inline]
    fn get(&self, key: u64) -> &[u8] {
        let at = key as usize;
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[from..self.ends[at]]
    }
}

/// Writes the commands of one thread.
#[derive(Debug)]
pub(super) struct Commands<'a> {
    /// What is read is one of these.
    names: Option<&'a Names>,
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

impl<'a> Commands<'a> {
    pub(super) fn new(job: &Job, keys: &Keys<'a>, thread: u32) -> Self {
        let key = format!("{}key:{}", keys.prefix, "0".repeat(DIGITS));
        let key = format!("${}\r\n{key}", key.len());
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
        let named = keys.names.map_or(0, |names| names.longest);
        Commands {
            names: keys.names,
            longest: (head + 24 + largest + after.len()).max(named),
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
            if let Some(names) = self.names {
                into.extend_from_slice(names.get(key));
                return 0;
            }
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
    // The one before may have been shorter: what is left after it must do for this one.
    let from = if *at + len > pool.len() { 0 } else { *at };
    *at = from + len.next_multiple_of(STEP).max(STEP);
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
            prefix: "",
            names: None,
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
    fn values_of_any_lengths_in_any_order_lie_within_the_pool() {
        let (pool, mut at) = ([0; 4096], 0);
        for turn in 0..1000 {
            let len = [1, 2048, 64, 100, 4096, 0][(turn * 7 + turn / 6) % 6];
            let from = next(&mut at, &pool, len);
            assert!(from + len <= pool.len() && from.is_multiple_of(STEP), "{len} from {from}");
        }
    }

    #[test]
    fn requests_are_written() {
        let op = |read| Op { offset: 64 * 42, len: 64, read };
        assert_eq!(written(op(true), None), "*2 $3 GET $16 key:000000000042 ");
        assert_eq!(written(op(false), None), "*3 $3 SET $16 key:000000000042 $64  ");
        assert_eq!(key_name(42), "key:000000000042");
        let names = Names::new(["a".as_bytes(), b"user:7"]);
        assert_eq!((names.len(), names.get(0)), (2, &b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"[..]));
        assert_eq!((names.longest, names.get(1)), (25, &b"*2\r\n$3\r\nGET\r\n$6\r\nuser:7\r\n"[..]));
        let split = Block::Split(vec![(Bytes(64), 1), (Bytes(128), 1)]);
        assert_eq!(of(split, op(false), None), "*3 $3 SET $16 key:000000000042 $64  ");
        let timed = written(op(false), Some(Duration::from_secs(3)));
        assert_eq!(timed, "*5 $3 SET $16 key:000000000042 $64  $2 PX $4 3000 ");
    }
}
