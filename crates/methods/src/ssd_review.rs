//! The method `ssd-review`: the sweeps of a data-centre SSD review. Reads and writes by transfer size at depth 1, by depth
//! in sequence (128 KiB) and at random (4 KiB) over at most four threads, and mixed from all reads to all writes. To the
//! letter each point takes four minutes, the first of them thrown away; by default a point ends when its mean is known.

use crate::settings::{Default as Usually, Parameter, Settings};
use crate::site::{Site, Where};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Figure, Order, Stop, Until};
use basics::plan::{LeftOut, Rounds, Step, step_seed};
use basics::units::{KIB, MIB};
use basics::{Bytes, Job, Nanos, Plan, Why};
use profile::Profile;

/// The sweeps of a review.
#[derive(Debug)]
pub struct SsdReview;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "precondition",
        aliases: &[],
        default: Usually::Depends("false; true with --as-published"),
        help: "two full passes of random 4 KiB writes first: twice the device's size of its life; unless \
               --as-published in tenths of its places, and the second ends once the rate holds still",
    },
    Parameter {
        key: "writes",
        aliases: &[],
        default: Usually::Depends("true; false on a file, and on a device without --destroy"),
        help: "the writes and the mixes too",
    },
    Parameter {
        key: "point",
        aliases: &["runtime"],
        default: Usually::Depends("22s at most; 3m with --as-published"),
        help: "measured time of a point",
    },
    Parameter {
        key: "warmup",
        aliases: &["ramp_time"],
        default: Usually::Depends("1s; 1m with --as-published"),
        help: "thrown away at the beginning of a point",
    },
    Parameter {
        key: "fill",
        aliases: &[],
        default: Usually::Depends("10s; 0s with --as-published"),
        help: "writes of 1 MiB before each sweep that writes, so that the device's cache is full",
    },
    Parameter {
        key: "until",
        aliases: &[],
        default: Usually::Depends("2; none with --as-published"),
        help: "end a point when its mean latency is known to so many per cent",
    },
    Parameter { key: "size", aliases: &[], default: Usually::Is("1GiB"), help: "length of a test file" },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "seed of every random choice" },
];

/// Transfer sizes: 512 B times a power of two.
const SIZES: u32 = 12;
/// Total depths: the powers of two, and 3 and 6, of which the review speaks (a p99 that jumps, a write that is saturated).
const DEPTHS: [u32; 9] = [1, 2, 3, 4, 6, 8, 16, 32, 64];
/// Threads at most.
const THREADS: u32 = 4;
/// Total depth of the mixes.
const MIXED_DEPTH: u32 = 16;
/// Where the mean must be known, this much is measured at least: a stall that comes once a second is met then, and a p99 of
/// a slow device has some hundred operations behind it.
const AT_LEAST: Nanos = Nanos::from_millis(4000);
/// So long a cache is filled: longer than the few GB of a disk's own memory take at its rate.
const FILL: Nanos = Nanos::from_millis(10_000);

/// Points with a name each, in the order of the review: what asks little of the device first.
struct Sweep {
    name: String,
    points: Vec<(String, Job)>,
}

/// A total depth over the most threads that divide it, each with its own region.
fn deep(total: u32, job: Job) -> Job {
    let threads = (1..=THREADS).rev().find(|threads| total.is_multiple_of(*threads)).unwrap_or(1);
    Job { depth: total / threads, threads, separate_regions: true, ..job }
}

fn sweeps(job: &Job, smallest: Bytes) -> Vec<Sweep> {
    let both = [("read", Direction::Read), ("write", Direction::Write)];
    let mut sweeps = Vec::new();
    for (rw, direction) in both {
        let sizes = (0..SIZES).map(|power| Bytes(512 << power)).filter(|size| *size >= smallest);
        let point = |size: Bytes| {
            let job = Job { direction, block: Block::Fixed(size), ..job.clone() };
            (size.to_string().replace(' ', ""), job)
        };
        sweeps.push(Sweep { name: format!("size-{rw}"), points: sizes.map(point).collect() });
    }
    for (pattern, order, block) in [("seq", Order::Sequential, 128 * KIB), ("rand", Order::Permuted, 4 * KIB)] {
        for (rw, direction) in both {
            let point = |depth| {
                let job = Job { direction, order, block: Block::Fixed(Bytes(block)), ..job.clone() };
                (format!("qd{depth}"), deep(depth, job))
            };
            sweeps.push(Sweep { name: format!("depth-{pattern}-{rw}"), points: DEPTHS.map(point).into() });
        }
    }
    let mixed = (0..=10u8).rev().map(|tenth| {
        let read_percent = tenth * 10;
        let direction = Direction::Mixed { read_percent };
        let job = Job { direction, order: Order::Permuted, block: Block::Fixed(Bytes(4 * KIB)), ..job.clone() };
        (read_percent.to_string(), deep(MIXED_DEPTH, job))
    });
    sweeps.push(Sweep { name: "mixed".to_owned(), points: mixed.collect() });
    sweeps
}

/// Writes that leave no room in a device's cache, as the minute before each point does to the letter.
fn filling(job: &Job, time: Nanos) -> Job {
    Job {
        direction: Direction::Write,
        order: Order::Sequential,
        block: Block::Fixed(Bytes(MIB)),
        depth: 1,
        threads: 1,
        separate_regions: false,
        warmup: Nanos(0),
        stop: Stop { time: Some(time), ..Stop::default() },
        ..job.clone()
    }
}

/// Where they may end early, the writes before the sweeps come in rounds of such a part of the device.
const PARTS: u64 = 10;

/// The writes that fill a device before it is measured: so often all of it.
const PASSES: u64 = 2;

/// Operations so long are all rate.
const LARGE: Bytes = Bytes(MIB);

/// Whether all that a profile knows of a direction of a job is a rate.
fn is_rate_alone(profile: &Profile, job: &Job) -> bool {
    let sides = [(job.direction.reads(), &profile.read), (job.direction.writes(), &profile.write)];
    sides.into_iter().filter(|(is_asked, _)| *is_asked).any(|(_, side)| {
        let pattern = side.as_ref().map(|side| match (&side.sequential, job.order) {
            (Some(sequential), Order::Sequential) => sequential,
            _ => &side.random,
        });
        pattern.is_some_and(|pattern| pattern.latency_us.is_none() && pattern.size_us.is_empty())
    })
}

/// Why a profile has no answer to a job.
pub(crate) fn unanswered(profile: &Profile, job: &Job) -> Option<String> {
    let missing = match (&profile.read, &profile.write) {
        (None, _) if job.direction.reads() => Some("reads"),
        (_, None) if job.direction.writes() => Some("writes"),
        _ => None,
    };
    let is_endless = profile.channels.is_none()
        && profile.link.is_none_or(|link| link.bandwidth_mbps.is_none() && link.queue.is_none());
    let random = profile.unseen.iter().find_map(|text| text.strip_prefix("random: "));
    let random = random.filter(|_| job.order != Order::Sequential);
    let why = match missing {
        Some(what) => format!("the profile says nothing of {what}"),
        None if random.is_some() => {
            format!("the profile says nothing of operations at random: {}", random.unwrap_or_default())
        }
        None if job.depth * job.threads > 1 && is_endless => {
            "the profile does not say what it does at depth (neither channels nor a link)".to_owned()
        }
        None if job.block.largest() < LARGE && is_rate_alone(profile, job) => {
            "the profile has a rate and no latency: only operations of 1 MiB are known".to_owned()
        }
        None => return None,
    };
    Some(match profile.inconsistent.is_empty() {
        true => why,
        false => format!("{why}; its source: {}", profile.inconsistent.join("; ")),
    })
}

/// The shortest operation that is sure to be taken, and why not 512 B, if so.
pub(crate) fn smallest(request: &Request<'_>) -> (Bytes, Option<&'static str>) {
    if matches!(request.site.at, Where::Profile { .. } | Where::Null { .. }) {
        return (Bytes(512), None);
    }
    let tier = request.site.tier.as_deref().and_then(|name| request.machine.tier(name));
    match tier.and_then(|tier| tier.block.as_ref()?.logical_sector.get().copied()) {
        Some(Bytes(512)) => (Bytes(512), None),
        Some(_) => (Bytes(4096), Some("its sectors are longer")),
        None => (Bytes(4096), Some("its sector is not known")),
    }
}

/// How long a point takes and what ends it.
fn timed(settings: &Settings, as_published: bool) -> Result<Job, MethodError> {
    let [point, warmup] = if as_published { [180.0, 60.0] } else { [22.0, 1.0] }.map(Nanos::from_secs);
    let percent = settings.get("until")?.or((!as_published).then_some(2.0));
    let until = percent.map(|percent| Until { figure: Figure::MeanLatency, percent, at_least: AT_LEAST });
    let stop = Stop { time: Some(settings.get("point")?.unwrap_or(point)), until, ..Stop::default() };
    Ok(Job { stop, warmup: settings.get("warmup")?.unwrap_or(warmup), ..Job::default() })
}

impl Method for SsdReview {
    fn name(&self) -> &'static str {
        "ssd-review"
    }
    fn summary(&self) -> &'static str {
        "the sweeps of an SSD review: by transfer size, by depth, and mixed; mean, median, p99 and p99.999"
    }
    fn cost(&self) -> &'static str {
        "7 to 28 min, as published nearly 5 h and two full passes of writes; a device is only read without --destroy"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Intel Optane SSD DC P4800X review: sequential access")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        if site.at == Where::Memory {
            let why = "memory is no disk; give a directory, a file, a block device or `profile:NAME`".to_owned();
            return Err(MethodError::Unusable { path: "memory".into(), why });
        }
        let seed: u64 = settings.value("seed")?;
        let yes = |key, usual| if settings.given(key).is_some() { settings.flag(key) } else { Ok(usual) };
        let writes = yes("writes", site.may_write())?;
        let precondition = yes("precondition", request.as_published && writes)?;
        let length = request.length()?.unwrap_or(settings.value("size")?);
        let job = timed(settings, request.as_published)?;
        let usual = if request.as_published { Nanos(0) } else { FILL };
        let fill: Nanos = settings.get("fill")?.unwrap_or(usual);
        let (smallest, why) = smallest(request);
        let mut left_out = Vec::new();
        let mut leave = |step: &str, why: String| {
            let tier = site.tier.clone().unwrap_or_default();
            let new = LeftOut { tier, step: step.to_owned(), why: Why::NotMeasured(why) };
            if !left_out.contains(&new) {
                left_out.push(new);
            }
        };
        let mut steps: Vec<Step> = Vec::new();
        let mut rounds = None;
        if precondition {
            let writes = |offset: Bytes, size: Bytes, bytes: Bytes, index: usize| Job {
                direction: Direction::Write,
                order: Order::Permuted,
                depth: 32,
                offset,
                size: Some(size),
                warmup: Nanos(0),
                stop: Stop { bytes: Some(bytes), ..Stop::default() },
                seed: step_seed(seed, index),
                ..job.clone()
            };
            if request.as_published {
                steps.push(site.step("precondition", writes(Bytes(0), length, length * PASSES, 0), false));
            } else {
                let most = (PASSES * PARTS) as usize;
                // Each in its own place, so that ten of them have written all of it.
                let part = (length.0 / PARTS).next_multiple_of(4 * KIB);
                let writes = |index: usize| {
                    let offset = part * (index as u64 % PARTS);
                    let size = Bytes(part.min(length.0 - offset));
                    writes(Bytes(offset), size, size, index)
                };
                let name = |index: usize| Rounds::name("precondition", index + 1);
                steps.extend((0..most).map(|index| site.step(name(index), writes(index), false)));
                rounds = Some(Rounds { first: 0, steps: 1, least: PARTS as usize, most, tracked: vec![0] });
            }
        } else {
            leave(
                "precondition",
                "not asked for: writes are those of a device that was not written full before".into(),
            );
        }
        if let Some(why) = why {
            leave("sizes below 4 KiB", why.to_owned());
        }
        let profile = profile_of(site)?;
        for Sweep { name: sweep, mut points } in sweeps(&job, smallest) {
            if !request.as_published && points.iter().any(|(_, job)| job.direction.writes()) {
                // The cache is full when the first point comes and, with what asks the most first, stays so as long as
                // the device is asked for more than it can move on.
                points.reverse();
            }
            let mut is_full = fill == Nanos(0);
            for (at, job) in points {
                if job.direction.writes() && !writes {
                    leave(&sweep, "nothing is written here".to_owned());
                } else if let Some(why) = profile.as_ref().and_then(|profile| unanswered(profile, &job)) {
                    leave(&sweep, why);
                } else {
                    if job.direction.writes() && !std::mem::replace(&mut is_full, true) {
                        let job = Job { seed: step_seed(seed, steps.len()), ..filling(&job, fill) };
                        steps.push(site.step(format!("fill-{sweep}"), job, false));
                    }
                    let job = Job { seed: step_seed(seed, steps.len()), ..job };
                    job.check()?;
                    steps.push(site.step(format!("{sweep}-{at}"), job, false));
                }
            }
        }
        let until = job.stop.until.map(|until| until.percent.to_string());
        let decided = [
            ("precondition", Some(precondition.to_string())),
            ("writes", Some(writes.to_string())),
            ("point", job.stop.time.map(typed)),
            ("warmup", Some(typed(job.warmup))),
            ("fill", Some(typed(fill))),
            ("until", until),
        ];
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&decided),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(
                Bytes(settings.value::<Bytes>("size")?.0.max(MIB)),
                Entropy::Incompressible,
                false,
            )],
            steps,
            left_out,
            rounds,
            ..Plan::default()
        })
    }
}

/// As it can be typed again.
pub(crate) fn typed(time: Nanos) -> String {
    format!("{}ns", time.0)
}

pub(crate) fn profile_of(site: &Site) -> Result<Option<Profile>, MethodError> {
    match &site.at {
        Where::Profile { toml, .. } => Ok(Some(Profile::parse(toml)?)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use basics::Known;
    use basics::units::GIB;
    use machine::Machine;

    fn plan(at: Where, words: &[&str], as_published: bool) -> Plan {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let settings = Settings::parse("ssd-review", PARAMETERS, &words).unwrap();
        let site = Site { tier: None, at, room: Known::default(), compresses: false };
        let machine = Machine::default();
        SsdReview.plan(&Request { site: &site, settings: &settings, as_published, machine: &machine }).unwrap()
    }
    fn model(toml: &str) -> Where {
        Where::Profile { name: "x".to_owned(), toml: format!("name = \"x\"\nsize = \"{}\"\n{toml}", Bytes(GIB)) }
    }
    const BOTH: &str = "channels = 4\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100";

    #[test]
    fn to_the_letter_it_takes_hours_and_two_passes() {
        let letter = plan(model(BOTH), &[], true);
        assert_eq!(letter.steps.len(), 1 + 24 + 36 + 11);
        assert_eq!(letter.steps[0].job.stop.bytes, Some(Bytes(2 * GIB)));
        let points = &letter.steps[1..];
        let (minute, three) = (Nanos::from_secs(60.0), Some(Nanos::from_secs(180.0)));
        assert!(points.iter().all(|step| step.job.warmup == minute && step.job.stop.time == three));
        let deepest = points.iter().find(|step| step.name == "depth-rand-read-qd64").unwrap();
        assert_eq!((deepest.job.threads, deepest.job.depth), (4, 16));
        let six = points.iter().find(|step| step.name == "depth-rand-read-qd6").unwrap();
        assert_eq!((six.job.threads, six.job.depth), (3, 2));
        assert!(letter.left_out.is_empty());
    }

    /// At least ten times less time and bytes, whatever the device.
    #[test]
    fn the_usual_form_is_ten_times_shorter_and_says_what_it_leaves_out() {
        let usual = plan(model(BOTH), &[], false);
        let longest = usual.longest().unwrap().secs();
        assert!(longest * 10.0 <= 71.0 * 240.0, "{longest} s");
        assert_eq!((usual.left_out.len(), usual.left_out[0].step.as_str()), (1, "precondition"));
        let words: Vec<String> = usual.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(plan(model(BOTH), &words, false), usual);
    }

    /// A cache that is full stays so while more is asked than the device can move on: so the first points ask the most.
    #[test]
    fn a_sweep_that_writes_begins_with_a_full_cache_and_what_asks_the_most() {
        let names = |as_published| -> Vec<String> {
            plan(model(BOTH), &[], as_published).steps.into_iter().map(|step| step.name).collect()
        };
        let after = |names: &[String], before: &str| {
            let at = names.iter().position(|name| name == before).unwrap();
            names[at + 1].clone()
        };
        let (usual, letter) = (names(false), names(true));
        assert_eq!(after(&usual, "fill-size-write"), "size-write-1MiB");
        assert_eq!(after(&usual, "fill-depth-rand-write"), "depth-rand-write-qd64");
        assert_eq!((after(&usual, "fill-mixed"), after(&usual, "mixed-0")), ("mixed-0".into(), "mixed-10".into()));
        assert_eq!(after(&usual, "size-read-512B"), "size-read-1KiB", "what only reads is read as published");
        assert!(!letter.iter().any(|name| name.starts_with("fill")));
        assert_eq!(after(&letter, "size-write-512B"), "size-write-1KiB");
    }

    #[test]
    fn the_writes_before_may_end_early_unless_to_the_letter() {
        let usual = plan(model(BOTH), &["precondition=true"], false);
        let rounds = usual.rounds.unwrap();
        assert_eq!((rounds.end(), rounds.steps, rounds.least), (20, 1, 10));
        let bytes: u64 = usual.steps[..20].iter().filter_map(|step| step.job.stop.bytes).map(|bytes| bytes.0).sum();
        assert_eq!(bytes, 2 * GIB);
        let places = |steps: &[Step]| -> Vec<(u64, u64)> {
            steps.iter().map(|step| (step.job.offset.0, step.job.offset.0 + step.job.size.unwrap().0)).collect()
        };
        let first = places(&usual.steps[..10]);
        assert!(first.windows(2).all(|pair| pair[0].1 == pair[1].0), "one place beside the other: {first:?}");
        assert_eq!((first[0].0, first[9].1), (0, GIB), "all of it");
        assert_eq!(places(&usual.steps[10..20]), first);
        assert_eq!([19, 20].map(|index| usual.steps[index].name.as_str()), ["precondition-r20", "size-read-512B"]);
        assert_eq!(plan(model(BOTH), &[], true).rounds, None);
    }

    #[test]
    fn what_a_profile_does_not_say_is_left_out_with_the_reason() {
        let bare = plan(model("inconsistent = [\"erratic\"]\n[write]\nbandwidth_MBps = 1250"), &[], false);
        let names: Vec<&str> = bare.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["fill-size-write", "size-write-1MiB"], "a rate alone says nothing of short operations");
        let why = |step: &str| bare.left_out.iter().find(|left| left.step == step).unwrap().why.to_string();
        assert!(why("depth-seq-write").ends_with("its source: erratic"), "{}", why("depth-seq-write"));
        assert!(why("depth-rand-read").starts_with("the profile says nothing of reads"));
        let lone = plan(model("[write]\nlatency_us = 10\nbandwidth_MBps = 1250"), &[], false);
        let sizes = lone.steps.iter().filter(|step| step.name.starts_with("size-write-")).count();
        assert_eq!((sizes, lone.steps.len()), (12, 17), "and depth 1 of both sweeps over depths, each filled before");
        let ordered = plan(model(&format!("unseen = [\"random: not published\"]\n{BOTH}")), &[], false);
        assert_eq!(ordered.steps.len(), 24 + 18 + 2, "neither at random nor mixed");
        assert!(ordered.left_out.iter().any(|left| left.why.to_string().ends_with("at random: not published")));
        let file = plan(Where::File("/film".into()), &[], false);
        assert!(!file.steps.iter().any(|step| step.job.direction.writes()), "a file is only read");
        assert_eq!(file.steps[0].name, "size-read-4KiB");
        assert!(file.left_out.iter().any(|left| left.step == "sizes below 4 KiB"));
    }
}
