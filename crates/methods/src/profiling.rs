//! The method `profile`: the measurements that `study::fit` needs to describe a device, in about a minute. First one long
//! stretch of writes (to find where a write cache is full), then reads and writes by size at depth 1 (latency, bandwidth),
//! at depth (channels, link), mixed, with syncs (flush), and slices of a device (places of another speed).

use crate::settings::{Default as Usually, Parameter, bad};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Order, Stop, Sync};
use basics::plan::{LeftOut, Step, step_seed};
use basics::units::{GIB, KIB, MIB};
use basics::{Bytes, Job, Nanos, Plan, Why};

/// The plan behind a fitted profile.
#[derive(Debug)]
pub struct Profiling;

const PARAMETERS: &[Parameter] = &[
    Parameter { key: "runtime", aliases: &["time"], default: Usually::Is("60s"), help: "measured time in all" },
    Parameter {
        key: "writes",
        aliases: &[],
        default: Usually::Depends("50; 0 on a file, and on a device without --destroy"),
        help: "share of the time in which is written, per cent; 0 writes nothing",
    },
    Parameter {
        key: "size",
        aliases: &[],
        default: Usually::Depends("4GiB, or half of the room there is"),
        help: "length of the test file in a directory",
    },
    Parameter { key: "slices", aliases: &[], default: Usually::Is("20"), help: "slices of a device that are compared" },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "seed of every random choice" },
];

/// A step before it has its share of the time.
struct Draft {
    name: String,
    weight: f64,
    job: Job,
}

fn draft(name: &str, weight: f64, job: Job) -> Draft {
    Draft { name: name.to_owned(), weight, job }
}

fn random(direction: Direction, size: u64, depth: u32) -> Job {
    Job { direction, order: Order::Permuted, block: Block::Fixed(Bytes(size)), depth, ..Job::default() }
}

fn sequential(direction: Direction, size: u64, depth: u32) -> Job {
    Job { order: Order::Sequential, ..random(direction, size, depth) }
}

/// Reads; the weights are shares of the time among them.
fn reads() -> Vec<Draft> {
    let r = Direction::Read;
    vec![
        draft("seq-read-1m-qd4", 4.0, sequential(r, MIB, 4)),
        draft("seq-read-1m-qd1", 1.5, sequential(r, MIB, 1)),
        draft("seq-read-128k-qd1", 1.5, sequential(r, 128 * KIB, 1)),
        draft("rand-read-4k-qd1", 4.0, random(r, 4 * KIB, 1)),
        draft("rand-read-64k-qd1", 1.5, random(r, 64 * KIB, 1)),
        draft("rand-read-256k-qd1", 1.5, random(r, 256 * KIB, 1)),
        draft("rand-read-4k-qd4", 1.0, random(r, 4 * KIB, 4)),
        draft("rand-read-4k-qd16", 1.0, random(r, 4 * KIB, 16)),
        draft("rand-read-4k-qd64", 1.5, random(r, 4 * KIB, 64)),
        draft("rand-read-64k-qd32", 1.5, random(r, 64 * KIB, 32)),
        draft("rand-read-256k-qd16", 1.5, random(r, 256 * KIB, 16)),
    ]
}

/// Writes; the first is long, because only that finds the end of a cache.
fn writes() -> Vec<Draft> {
    let w = Direction::Write;
    let synced = |size, every| Job { sync: Sync::Fsync { every }, ..random(w, size, 1) };
    vec![
        draft("seq-write-1m-qd4", 18.0, sequential(w, MIB, 4)),
        draft("seq-write-1m-qd1", 1.0, sequential(w, MIB, 1)),
        draft("seq-write-128k-qd1", 1.0, sequential(w, 128 * KIB, 1)),
        draft("rand-write-4k-qd1", 2.5, random(w, 4 * KIB, 1)),
        draft("rand-write-64k-qd1", 1.0, random(w, 64 * KIB, 1)),
        draft("rand-write-256k-qd1", 1.0, random(w, 256 * KIB, 1)),
        draft("rand-write-4k-qd32", 1.5, random(w, 4 * KIB, 32)),
        draft("rand-write-256k-qd16", 1.0, random(w, 256 * KIB, 16)),
        draft("mixed-16k-qd4", 2.0, random(Direction::Mixed { read_percent: 70 }, 16 * KIB, 4)),
        draft("fsync-4k", 2.0, synced(4 * KIB, 1)),
        draft("fsync-256k-16", 1.5, synced(256 * KIB, 16)),
    ]
}

/// Of the time of the reads, so much is for the slices.
const SLICES: f64 = 7.0;
/// Largest test file where nothing else is asked.
const FILE: u64 = 4 * GIB;
/// Intervals of a step at the least, and how wide one may be: a short stall is found only in narrow ones.
const INTERVALS: u64 = 200;
const WIDEST: Nanos = Nanos::from_millis(50);
const NARROWEST: Nanos = Nanos::from_millis(5);

impl Method for Profiling {
    fn name(&self) -> &'static str {
        "profile"
    }
    fn summary(&self) -> &'static str {
        "what a device is like, as far as a minute tells: the measurements that `tiermark profile` fits a profile to"
    }
    fn cost(&self) -> &'static str {
        "60 s; a test file of up to 4 GiB is written; a device is only read, unless --destroy allows writing over it"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        if site.at == Where::Memory {
            let why = "memory is no device; give a directory, a file, a block device or `profile:NAME`".to_owned();
            return Err(MethodError::Unusable { path: "memory".into(), why });
        }
        let runtime: Nanos = settings.value("runtime")?;
        if !(1.0..=3600.0).contains(&runtime.secs()) {
            return Err(bad("runtime", &runtime.to_string(), "from 1s to 1h"));
        }
        let allowed = site.may_write();
        let share: u32 = settings.get("writes")?.unwrap_or(if allowed { 50 } else { 0 });
        if share > 90 || (share > 0 && !allowed) {
            let why =
                if allowed { "from 0 to 90 per cent" } else { "here nothing may be written; a device needs --destroy" };
            return Err(bad("writes", &share.to_string(), why));
        }
        let slices: u64 = settings.value("slices")?;
        if slices > 200 {
            return Err(bad("slices", &slices.to_string(), "from 0 to 200"));
        }
        let seed: u64 = settings.value("seed")?;
        let room = site.room.get().map_or(FILE, |room| room.0 / 2);
        let size = settings.get("size")?.unwrap_or(Bytes(FILE.min(room) / MIB * MIB));
        let length = request.length()?;
        let in_slices = length.filter(|length| slices >= 1 && length.0 / slices >= 4 * MIB);

        let time = |part: f64, weight: f64, all: f64| Nanos::from_secs(runtime.secs() * part * weight / all);
        let mut steps = Vec::new();
        let mut push = |name: String, time: Nanos, job: Job| {
            let interval = Nanos((time.0 / INTERVALS).clamp(NARROWEST.0, WIDEST.0));
            let stop = Stop { time: Some(time), ..Stop::default() };
            let job = Job { stop, interval, huge_pages: true, seed: step_seed(seed, steps.len()), ..job };
            steps.push(Step { name, tier: site.tier.clone(), target: 0, job, may_fail: false, before: vec![] });
        };
        let written = f64::from(share) / 100.0;
        let mut writing = if share > 0 { writes() } else { Vec::new() };
        let all: f64 = writing.iter().map(|draft| draft.weight).sum();
        // The long stretch comes first: it meets a cache that is empty, and the reads give it time to empty again.
        let rest = writing.split_off(writing.len().min(1));
        for draft in writing {
            push(draft.name, time(written, draft.weight, all), draft.job);
        }
        let reading = reads();
        let every: f64 = reading.iter().map(|draft| draft.weight).sum::<f64>() + in_slices.map_or(0.0, |_| SLICES);
        for draft in reading {
            push(draft.name, time(1.0 - written, draft.weight, every), draft.job);
        }
        if let Some(length) = in_slices {
            let begin = |k: u64| length.0 / MIB * k / slices * MIB;
            for k in 0..slices {
                let job = Job {
                    offset: Bytes(begin(k)),
                    size: Some(Bytes(begin(k + 1) - begin(k))),
                    ..sequential(Direction::Read, MIB, 1)
                };
                push(format!("slice-{k}"), time(1.0 - written, SLICES / slices as f64, every), job);
            }
        }
        for draft in rest {
            push(draft.name, time(written, draft.weight, all), draft.job);
        }
        for step in &steps {
            step.job.check()?;
        }
        let tier = site.tier.clone().unwrap_or_default();
        let left_out = (share == 0).then(|| {
            let why = if allowed { "writes=0" } else { "not allowed to write" };
            LeftOut { tier, step: "writes".to_owned(), why: Why::NotMeasured(why.to_owned()) }
        });
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[("writes", Some(share.to_string())), ("size", Some(size.0.to_string()))]),
            as_published: false,
            seed,
            targets: vec![site.target(size, Entropy::Incompressible, share > 0)],
            steps,
            left_out: left_out.into_iter().collect(),
            ..Plan::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, Site};
    use basics::Known;
    use machine::Machine;

    fn plan(at: Where, words: &[&str]) -> Result<Plan, MethodError> {
        let site = Site { tier: None, at, room: Known::Is(Bytes(GIB)), compresses: false };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let settings = Settings::parse("profile", PARAMETERS, &words).unwrap();
        let machine = Machine::default();
        Profiling.plan(&Request { site: &site, settings: &settings, as_published: false, machine: &machine })
    }

    #[test]
    fn it_takes_the_time_it_promises_and_writes_only_where_it_may() {
        for (words, seconds) in [(&[][..], 60.0), (&["runtime=10s", "writes=80"], 10.0)] {
            let made = plan(Where::Directory("/tmp".into()), words).unwrap();
            let longest = made.longest().unwrap().secs();
            assert!((longest / seconds - 1.0).abs() < 0.02, "{longest}");
            assert_eq!(made.steps[0].job.direction, Direction::Write, "the first step fills the file");
        }
        let device =
            |destroy: Option<&str>| Where::Device { path: "/dev/x".into(), destroy: destroy.map(str::to_owned) };
        let made = plan(device(None), &[]).unwrap();
        assert!(made.steps.iter().all(|step| step.job.direction == Direction::Read));
        assert_eq!(made.left_out.len(), 1);
        assert!(plan(device(None), &["writes=10"]).unwrap_err().to_string().contains("--destroy"));
        assert!(plan(device(Some("/dev/x")), &[]).unwrap().steps[0].job.direction.writes());
        assert!(plan(Where::Memory, &[]).is_err());
    }
}
