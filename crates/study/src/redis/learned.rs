//! A workload out of what was looked at of a server: lengths of values with their shares, reads and writes, how long keys live, how
//! unevenly they are used. What cannot be known that way stays unknown, and what `load redis` cannot do again is told.

use basics::job::Block;
use basics::learned::Looked;
use basics::redis_commands::Command;
use basics::stats::median;
use basics::units::significant;
use basics::{Bytes, Known, Nanos};

/// Lengths that are told apart.
const LENGTHS: usize = 8;
/// Fewer commands while it was looked at say nothing of what it does now: then all since it started count.
const ENOUGH: u64 = 1000;
/// Keys of which most have a TTL: what is set has one.
const MOST: f64 = 0.5;
/// Uses of keys without which nothing is said of how uneven they are.
const USES: u64 = 2000;
/// Exponents of a Zipf law that are worth telling apart from all keys alike, and the largest that is looked for.
const THETA: (f64, f64) = (0.2, 2.0);

/// Which of the commands that `load redis` knows costs a server about what this one does.
fn like(name: &str) -> Option<Command> {
    Some(match name {
        "get" | "exists" | "getbit" => Command::Get,
        "set" | "setex" | "psetex" | "setnx" | "getset" | "append" | "setrange" => Command::Set,
        "incr" | "incrby" | "decr" | "decrby" | "incrbyfloat" => Command::Incr,
        "hset" | "hmset" | "hsetnx" => Command::Hset,
        "hget" => Command::Hget,
        "zadd" => Command::Zadd,
        "xadd" => Command::Xadd,
        _ => return None,
    })
}

/// What serves nobody: health checks, administration, and this look, whose STRLEN and GETRANGE are rare otherwise.
const APART: [&str; 22] = [
    "info", "ping", "auth", "hello", "client", "config", "command", "dbsize", "scan", "type", "pttl", "ttl", "object",
    "strlen", "getrange", "memory", "slowlog", "latency", "select", "echo", "monitor", "quit",
];

/// A workload like that of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// What the server says that it is.
    pub version: String,
    /// Its keys.
    pub keys: u64,
    /// What its data take.
    pub memory: Bytes,
    /// Requests a second while it was looked at.
    pub ops_per_s: f64,
    /// Lengths of its values with how many of the sample have them.
    pub lengths: Known<Block>,
    /// GETs and their likes of all that is done to strings, per cent.
    pub reads: Known<u8>,
    /// Commands that serve somebody, the most frequent first: name, share of all, whether `load redis` does its like.
    pub commands: Vec<(String, f64, bool)>,
    /// Those that it does the like of, with their shares in a thousand; empty where they are GETs and SETs.
    pub mix: Vec<(Command, u64)>,
    /// Part of the keys that have a TTL.
    pub with_ttl: Known<f64>,
    /// How long a key is there from when it was set: twice the median of what is left, as keys are found at any time of their life.
    pub expires: Option<Nanos>,
    /// Keys whose time was over, a second.
    pub expired_per_s: f64,
    /// Part of the reads that found their key.
    pub hit_rate: Known<f64>,
    /// Exponent of a Zipf law by which the hottest keys get as much of the uses as they do.
    pub theta: Known<f64>,
    /// The part of the uses that the hottest hundredth of the keys get.
    pub hottest: Known<f64>,
    /// What is left of values when they are compressed.
    pub compressed_to: Known<f64>,
    /// Sentences about what is not reproduced, or not known.
    pub notes: Vec<String>,
}

/// What is to be made of it.
pub fn learned(looked: &Looked) -> Learned {
    let mut notes = looked.lacks.clone();
    let serving = |name: &str| {
        let first = name.split('|').next().unwrap_or(name);
        !APART.contains(&first)
    };
    let now: u64 = looked.commands.iter().filter(|(name, ..)| serving(name)).map(|(.., now)| now).sum();
    let count = |(_, all, then): &(String, u64, u64)| if now >= ENOUGH { *then } else { *all };
    let of = |command: Command| {
        looked.commands.iter().filter(|(name, ..)| like(name) == Some(command)).map(count).sum::<u64>()
    };
    let (reads, writes) = (of(Command::Get) as f64, of(Command::Set) as f64);
    let mix: Vec<(Command, u64)> =
        Command::ALL.into_iter().map(|command| (command, of(command))).filter(|(_, count)| *count > 0).collect();
    let total: u64 = looked.commands.iter().filter(|(name, ..)| serving(name)).map(count).sum();
    let mut commands: Vec<(String, f64, bool)> = looked
        .commands
        .iter()
        .filter(|command| serving(&command.0) && count(command) > 0)
        .map(|command| (command.0.clone(), count(command) as f64 / total.max(1) as f64, like(&command.0).is_some()))
        .collect();
    commands.sort_by(|a, b| b.1.total_cmp(&a.1));
    let others: Vec<String> = commands
        .iter()
        .filter(|(_, share, like)| !like && *share >= 0.005)
        .map(|(name, share, _)| format!("{} % {}", significant(100.0 * share), name.to_uppercase()))
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "not done again, as load redis knows nothing like it: {} of its commands",
            others.join(", ")
        ));
    }
    let strings = looked.sample.iter().filter(|key| key.length.is_some()).count();
    let different = looked.sample.len() - strings;
    if different > 0 {
        let share = 100.0 * different as f64 / looked.sample.len() as f64;
        notes.push(format!(
            "{} % of the keys that were looked at are no strings: their lengths are not seen",
            significant(share)
        ));
    }
    if now < ENOUGH && total > 0 {
        notes.push("it had little to do while it was looked at: the commands are those since it started".to_owned());
    }
    let with_ttl = looked.sample.iter().filter_map(|key| key.left).collect::<Vec<_>>();
    let ttl_share = (!looked.sample.is_empty()).then(|| with_ttl.len() as f64 / looked.sample.len() as f64);
    let left: Vec<f64> = with_ttl.iter().map(|left| left.secs()).collect();
    let expires = median(&left).filter(|_| ttl_share.is_some_and(|share| share >= MOST));
    if ttl_share.is_some_and(|share| share > 0.05 && share < MOST) {
        notes.push(
            "fewer than half of the keys have a TTL, so none is set: load redis gives one to all or to none".to_owned(),
        );
    }
    let hot = hot(looked);
    Learned {
        version: looked.version.clone(),
        keys: looked.keys,
        memory: looked.memory,
        ops_per_s: now as f64 / looked.time.secs().max(1e-3),
        lengths: known(lengths(looked), "it holds no strings"),
        reads: known(
            (reads + writes > 0.0).then(|| (100.0 * reads / (reads + writes)).round() as u8),
            "it was asked for no strings",
        ),
        commands,
        mix: shares(&mix),
        with_ttl: known(ttl_share, "it holds no keys"),
        expires: expires.map(|median| Nanos((2.0 * median * 1e9) as u64)),
        expired_per_s: looked.expired.1 as f64 / looked.time.secs().max(1e-3),
        hit_rate: known(
            (looked.hits.0 + looked.hits.1 > 0).then(|| looked.hits.0 as f64 / (looked.hits.0 + looked.hits.1) as f64),
            "nothing was read",
        ),
        theta: known(hot.map(|(_, theta)| theta), "only --monitor shows which keys are used"),
        hottest: known(hot.map(|(share, _)| share), "only --monitor shows which keys are used"),
        compressed_to: known(
            looked.compressed.map(|(raw, packed)| packed.0 as f64 / raw.0.max(1) as f64),
            "no value was read",
        ),
        notes,
    }
}

impl Learned {
    /// The words behind `tiermark load redis` that make such a load; a server that holds no strings makes none.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Known::Is(lengths) = &self.lengths {
            add("--payload", payload(lengths));
        }
        if !self.mix.is_empty() {
            let each: Vec<String> = self.mix.iter().map(|(command, share)| format!("{command}={share}")).collect();
            add("--commands", each.join(","));
        } else if let Known::Is(reads) = self.reads {
            add("--reads", reads.to_string());
        }
        if self.keys > 0 {
            add("--keys", self.keys.to_string());
        }
        if let Known::Is(theta) = self.theta
            && theta >= THETA.0
        {
            add("--theta", format!("{theta:.2}"));
        }
        if let Some(expires) = self.expires {
            add("--expires", format!("{}ms", expires.0 / 1_000_000));
        }
        if let Known::Is(left) = self.compressed_to {
            let content = if left < 0.1 {
                "zeros"
            } else if left < 0.75 {
                "half"
            } else {
                "random"
            };
            add("--content", content.to_owned());
        }
        words
    }
}

/// In a thousand, without those that are rarer than one; nothing where all are GETs and SETs.
fn shares(mix: &[(Command, u64)]) -> Vec<(Command, u64)> {
    let all: u64 = mix.iter().map(|(_, count)| count).sum();
    let shares = mix.iter().map(|(command, count)| (*command, (1000 * count + all / 2) / all.max(1)));
    let shares: Vec<(Command, u64)> = shares.filter(|(_, share)| *share > 0).collect();
    let strings = shares.iter().all(|(command, _)| matches!(command, Command::Get | Command::Set));
    if strings { Vec::new() } else { shares }
}

fn known<T>(value: Option<T>, why: &str) -> Known<T> {
    value.map_or_else(|| Known::not_measured(why), Known::Is)
}

/// As `--payload` takes it.
fn payload(lengths: &Block) -> String {
    match lengths {
        Block::Fixed(size) => size.0.to_string(),
        Block::Split(parts) => {
            parts.iter().map(|(size, share)| format!("{}:{share}", size.0)).collect::<Vec<_>>().join(",")
        }
    }
}

/// Equal parts of the sorted lengths, each by its mean; those of the same length are one.
fn lengths(looked: &Looked) -> Option<Block> {
    let mut all: Vec<u64> = looked.sample.iter().filter_map(|key| Some(key.length?.0)).filter(|len| *len > 0).collect();
    all.sort_unstable();
    let mut different = all.clone();
    different.dedup();
    let mut parts: Vec<(Bytes, u32)> = Vec::new();
    if different.len() <= LENGTHS {
        for len in different {
            parts.push((Bytes(len), all.iter().filter(|one| **one == len).count() as u32));
        }
    } else {
        for part in all.chunks(all.len().div_ceil(LENGTHS)) {
            let mean = Bytes((part.iter().sum::<u64>() / part.len() as u64).max(1));
            match parts.last_mut() {
                Some((last, count)) if *last == mean => *count += part.len() as u32,
                _ => parts.push((mean, part.len() as u32)),
            }
        }
    }
    match parts.as_slice() {
        [] => None,
        [(len, _)] => Some(Block::Fixed(*len)),
        _ => Some(Block::Split(parts)),
    }
}

/// Which part of the uses the hottest hundredth of the keys gets, and the exponent of the Zipf law that gives it as much.
///
/// The hottest of a sample are hottest by chance, too. Of a Zipf law over n keys, of which each use is drawn alone, the part that the
/// most frequent m of u uses get is what is compared: both are of the same number of uses.
fn hot(looked: &Looked) -> Option<(f64, f64)> {
    let uses: u64 = looked.uses.iter().sum();
    if uses < USES || looked.keys < 100 {
        return None;
    }
    let mut sorted = looked.uses.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let most = (looked.keys / 100).max(1) as usize;
    let share = sorted.iter().take(most).sum::<u64>() as f64 / uses as f64;
    let (mut low, mut high) = (0.0, THETA.1);
    for _ in 0..30 {
        let theta = f64::midpoint(low, high);
        if expected(looked.keys, most, uses, theta) < share { low = theta } else { high = theta }
    }
    Some((share, f64::midpoint(low, high)))
}

/// The part of `uses` draws from a Zipf law over `keys` that the `most` most drawn of them get, in expectation.
///
/// How often a key is drawn is Poisson about its mean; the keys are put into classes of nearly equal mean, and the counts of all
/// classes are put in order together.
fn expected(keys: u64, most: usize, uses: u64, theta: f64) -> f64 {
    // Classes whose ranks grow by a tenth.
    let mut classes: Vec<(f64, f64)> = Vec::new();
    let (mut from, mut sum) = (1u64, 0.0);
    while from <= keys {
        let until = (from + from / 10).min(keys);
        let members = (until - from + 1) as f64;
        let weight = ((from as f64 * until as f64).sqrt()).powf(-theta);
        classes.push((members, weight));
        sum += members * weight;
        from = until + 1;
    }
    // Keys by how often they are drawn: expected number with each count, from the largest down.
    let mut counts: Vec<f64> = Vec::new();
    let mut beyond: Vec<(f64, f64)> = Vec::new();
    for (members, weight) in classes {
        let mean = uses as f64 * weight / sum;
        // Far from zero the spread matters little.
        if mean > 200.0 {
            beyond.push((mean, members));
            continue;
        }
        let mut chance = (-mean).exp();
        for count in 0..=(mean + 12.0 * mean.sqrt() + 12.0) as usize {
            if counts.len() <= count {
                counts.resize(count + 1, 0.0);
            }
            counts[count] += members * chance;
            chance *= mean / (count + 1) as f64;
        }
    }
    beyond.extend(counts.into_iter().enumerate().map(|(count, members)| (count as f64, members)));
    beyond.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut room, mut got) = (most as f64, 0.0);
    for (count, members) in beyond {
        let taken = members.min(room);
        got += taken * count;
        room -= taken;
    }
    got / uses as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::learned::LookedKey;

    fn key(length: u64, left_s: Option<u64>) -> LookedKey {
        LookedKey {
            kind: "string".to_owned(),
            length: Some(Bytes(length)),
            left: left_s.map(|left| Nanos(left * 1_000_000_000)),
        }
    }

    fn command(name: &str, all: u64, now: u64) -> (String, u64, u64) {
        (name.to_owned(), all, now)
    }

    fn looked() -> Looked {
        let sample = (0..1000u64).map(|n| key(if n % 10 < 7 { 64 } else { 512 }, Some(n % 60))).collect();
        Looked {
            keys: 100_000,
            time: Nanos::from_millis(2000),
            commands: vec![command("get", 10, 8000), command("set", 90_000, 2000), command("info", 5, 2)],
            sample,
            ..Looked::default()
        }
    }

    #[test]
    fn a_command_is_made_of_it() {
        let learned = learned(&looked());
        let words = learned.words().join(" ");
        // What it does now, not since it started; 29 s are left in the median.
        assert_eq!(words, "--payload 64:700,512:300 --reads 80 --keys 100000 --expires 58000ms");
        assert!((learned.ops_per_s - 5000.0).abs() < 1.0);
        assert!(learned.theta.get().is_none() && learned.notes.is_empty(), "{learned:?}");
    }

    #[test]
    fn what_is_not_done_again_is_told() {
        let mut server = looked();
        server.commands = vec![command("get", 500, 0), command("lpush", 500, 0), command("ping", 9000, 0)];
        server.sample.extend((0..250).map(|_| LookedKey { kind: "zset".to_owned(), length: None, left: None }));
        let learned = learned(&server);
        let notes = learned.notes.join("\n");
        assert!(notes.contains("50 % LPUSH") && !notes.contains("PING"), "{notes}");
        assert!(notes.contains("20 % of the keys") && notes.contains("since it started"), "{notes}");
        assert_eq!(learned.reads, Known::Is(100));
    }

    #[test]
    fn other_commands_become_a_mix() {
        let mut server = looked();
        server.commands = vec![command("get", 0, 6000), command("hset", 0, 2500), command("incrby", 0, 1500)];
        let words = learned(&server).words().join(" ");
        assert!(words.contains("--commands get=600,incr=150,hset=250 --keys") && !words.contains("--reads"), "{words}");
    }

    #[test]
    fn many_lengths_become_eight() {
        let mut server = looked();
        server.sample = (0..1000).map(|n| key(100 + n, None)).collect();
        let Known::Is(Block::Split(parts)) = learned(&server).lengths else { panic!() };
        assert_eq!((parts.len(), parts[0]), (8, (Bytes(162), 125)));
        server.sample = vec![key(7, None); 10];
        assert_eq!(learned(&server).lengths, Known::Is(Block::Fixed(Bytes(7))));
        server.sample.clear();
        assert!(learned(&server).words().join(" ").starts_with("--reads"));
    }

    /// Draws from Zipf laws give their exponents again, also where there are fewer draws than keys.
    #[test]
    fn an_exponent_comes_out_again() {
        use rand_xoshiro::Xoshiro256PlusPlus;
        use rand_xoshiro::rand_core::{Rng, SeedableRng};
        for (keys, uses) in [(10_000u64, 100_000u64), (100_000, 20_000)] {
            for theta in [0.0, 0.5, 0.9, 1.2] {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
                let mut sum = 0.0;
                let cumulated: Vec<f64> = (1..=keys)
                    .map(|rank| {
                        sum += (rank as f64).powf(-theta);
                        sum
                    })
                    .collect();
                let mut counts = vec![0u64; keys as usize];
                for _ in 0..uses {
                    let at = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64 * sum;
                    counts[cumulated.partition_point(|one| *one < at)] += 1;
                }
                let server = Looked { uses: counts, keys, ..looked() };
                let found = *learned(&server).theta.get().unwrap();
                // What is below 0.2 is no reason to choose keys otherwise than all alike.
                let within = if theta < THETA.0 { THETA.0 } else { 0.1 };
                assert!((found - theta).abs() < within, "{theta} of {keys} keys in {uses} uses: {found}");
            }
        }
    }
}
