//! Commands beside GET and SET: each as bytes that are made once, in which the digits of its key are put. Which one is next is drawn
//! by the weights of those that read or of those that write, as the operation does.

use super::commands::{DIGITS, digits};
use crate::order::below;
use basics::Job;
use basics::redis_commands::Command;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

/// Members of a sorted set.
const MEMBERS: u64 = 100;
/// Entries of a stream, about: the server trims whole nodes.
const ENTRIES: u64 = 1000;

/// A mix of commands.
#[derive(Debug)]
pub(super) struct Mix {
    each: Vec<Request>,
    reads: Draw,
    writes: Draw,
    rng: Xoshiro256PlusPlus,
}

/// Places in [`Mix::each`] with cumulated weights.
type Draw = Vec<(u64, u8)>;

/// A command up to its value.
#[derive(Debug)]
struct Request {
    bytes: Vec<u8>,
    /// Where a number's digits begin, and how many keys share that number.
    numbers: Vec<(usize, u64)>,
    /// A value follows.
    value: bool,
}

impl Mix {
    /// Of these commands; nothing where there are none.
    pub fn new(commands: &[(Command, u32)], job: &Job, thread: u32) -> Option<Self> {
        if commands.is_empty() {
            return None;
        }
        let draw = |reads: bool| {
            let mut sum = 0;
            let of = |(at, (command, weight)): (usize, &(Command, u32))| {
                (command.reads() == reads).then(|| {
                    sum += u64::from(*weight);
                    (sum, at as u8)
                })
            };
            commands.iter().enumerate().filter_map(of).collect::<Draw>()
        };
        // Other numbers than those by which keys and directions are drawn.
        let seed = job.seed.rotate_left(32) ^ (u64::from(thread) << 8) ^ 0x006d_6978;
        Some(Mix {
            each: commands.iter().map(|(command, _)| Request::new(*command)).collect(),
            reads: draw(true),
            writes: draw(false),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        })
    }

    /// Bytes of the longest request without its value.
    pub fn longest(&self) -> usize {
        self.each.iter().map(|request| request.bytes.len()).max().unwrap_or(0)
    }

    /// Appends the request for a key up to its value; which command it is, and whether a value follows.
    #[inline]
    pub fn write(&mut self, read: bool, key: u64, into: &mut Vec<u8>) -> (u8, bool) {
        let draw = if read { &self.reads } else { &self.writes };
        let kind = match draw.as_slice() {
            [(_, only)] => *only,
            several => {
                let pick = below(several.last().map_or(1, |(sum, _)| *sum), &mut self.rng);
                several.iter().find(|(sum, _)| pick < *sum).map_or(0, |(_, kind)| *kind)
            }
        };
        let request = &self.each[usize::from(kind)];
        let start = into.len();
        into.extend_from_slice(&request.bytes);
        for (at, shared) in &request.numbers {
            digits(&mut into[start + at..start + at + DIGITS], key / shared);
        }
        (kind, request.value)
    }
}

impl Request {
    fn new(command: Command) -> Self {
        let (prefix, zeros) = (command.prefix(), "0".repeat(DIGITS));
        let key = format!("{prefix}{zeros}");
        let entries = ENTRIES.to_string();
        // Of each word its text, and how many keys share the number at its end.
        let (words, value): (Vec<(&str, Option<u64>)>, bool) = match command {
            Command::Get => (vec![("GET", None), (&key, Some(1))], false),
            Command::Set => (vec![("SET", None), (&key, Some(1))], true),
            Command::Incr => (vec![("INCR", None), (&key, Some(1))], false),
            Command::Hget => (vec![("HGET", None), (&key, Some(1)), ("field", None)], false),
            Command::Hset => (vec![("HSET", None), (&key, Some(1)), ("field", None)], true),
            // A score as good as any, and a member for each key.
            Command::Zadd => (vec![("ZADD", None), (&key, Some(MEMBERS)), (&zeros, Some(1)), (&key, Some(1))], false),
            Command::Xadd => (
                vec![
                    ("XADD", None),
                    (&key, Some(ENTRIES)),
                    ("MAXLEN", None),
                    ("~", None),
                    (&entries, None),
                    ("*", None),
                    ("field", None),
                ],
                true,
            ),
        };
        let mut bytes = format!("*{}\r\n", words.len() + usize::from(value)).into_bytes();
        let mut numbers = Vec::new();
        for (word, shared) in words {
            bytes.extend_from_slice(format!("${}\r\n{word}", word.len()).as_bytes());
            numbers.extend(shared.map(|shared| (bytes.len() - DIGITS, shared)));
            bytes.extend_from_slice(b"\r\n");
        }
        Request { bytes, numbers, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(command: Command, key: u64) -> String {
        let mut out = Vec::new();
        let mut mix = Mix::new(&[(command, 1)], &Job::default(), 0).unwrap();
        let (kind, value) = mix.write(command.reads(), key, &mut out);
        assert_eq!((kind, value), (0, matches!(command, Command::Set | Command::Hset | Command::Xadd)));
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    #[test]
    fn each_is_what_the_server_understands() {
        assert_eq!(written(Command::Incr, 4217), "*2 $4 INCR $18 count:000000004217 ");
        assert_eq!(written(Command::Hget, 4217), "*3 $4 HGET $17 hash:000000004217 $5 field ");
        assert_eq!(written(Command::Hset, 4217), "*4 $4 HSET $17 hash:000000004217 $5 field ");
        assert_eq!(
            written(Command::Zadd, 4217),
            "*4 $4 ZADD $17 zset:000000000042 $12 000000004217 $17 zset:000000004217 "
        );
        assert_eq!(
            written(Command::Xadd, 4217),
            "*8 $4 XADD $19 stream:000000000004 $6 MAXLEN $1 ~ $4 1000 $1 * $5 field "
        );
    }

    #[test]
    fn weights_are_kept_to() {
        let commands = [(Command::Get, 50), (Command::Set, 30), (Command::Incr, 10), (Command::Hget, 10)];
        let mut mix = Mix::new(&commands, &Job::default(), 3).unwrap();
        let (mut seen, mut out) = ([0u32; 4], Vec::new());
        for n in 0..10_000u64 {
            out.clear();
            seen[usize::from(mix.write(n % 10 < 6, n, &mut out).0)] += 1;
            assert!(out.len() <= mix.longest());
        }
        assert_eq!((seen[0] + seen[3], seen[1] + seen[2]), (6000, 4000));
        assert!((4850..5150).contains(&seen[0]) && (2850..3150).contains(&seen[1]), "{seen:?}");
    }
}
