//! The method `snia`: steady state as the SNIA's performance test specification finds it. Rounds of seven mixes of reads and
//! writes by eight sizes, until three figures hold still over five rounds, at most 25 of them. The plan holds all 25, and the
//! runner ends them. To the letter a point takes a minute and the device is written full twice before.

use crate::settings::{Default as Usually, Parameter};
use crate::site::Where;
use crate::ssd_review::{profile_of, smallest, typed, unanswered};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Order, Stop};
use basics::plan::{LeftOut, Rounds, Step, step_seed};
use basics::units::{KIB, MIB};
use basics::{Bytes, Job, Nanos, Plan, Why};
use study::steady;

/// The search for a steady state.
#[derive(Debug)]
pub struct Snia;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "point",
        aliases: &["runtime"],
        default: Usually::Depends("1s; 1m with --as-published"),
        help: "measured time of a mix and size; a round has 56 of them",
    },
    Parameter {
        key: "precondition",
        aliases: &[],
        default: Usually::Depends("false; true with --as-published"),
        help: "two full passes of 128 KiB writes in sequence first: twice the device's size of its life",
    },
    Parameter {
        key: "depth",
        aliases: &["iodepth"],
        default: Usually::Is("32"),
        help: "operations in flight; the specification leaves it to the tester",
    },
    Parameter { key: "size", aliases: &[], default: Usually::Is("1GiB"), help: "length of a test file" },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "seed of every random choice" },
];

/// Shares of reads, per cent, in their order.
const MIXES: [u8; 7] = [100, 95, 65, 50, 35, 5, 0];
/// Lengths of operations, in their order.
const SIZES: [Bytes; 8] = [
    Bytes(MIB),
    Bytes(128 * KIB),
    Bytes(64 * KIB),
    Bytes(32 * KIB),
    Bytes(16 * KIB),
    Bytes(8 * KIB),
    Bytes(4 * KIB),
    Bytes(512),
];
/// What must hold still: writes of 4 KiB, 65 % reads of 64 KiB, reads of 1 MiB.
const TRACKED: [(u8, Bytes); 3] = [(0, Bytes(4 * KIB)), (65, Bytes(64 * KIB)), (100, Bytes(MIB))];
/// Rounds at most.
const MOST: usize = 25;
/// A series has so many intervals for a point, unless they were shorter than usual: 25 rounds of an hour each are long.
const INTERVALS: u64 = 10;

/// A round: its mixes and sizes, in their order.
fn round(smallest: Bytes) -> impl Iterator<Item = (u8, Bytes)> {
    let sizes = move || SIZES.into_iter().filter(move |size| *size >= smallest);
    MIXES.into_iter().flat_map(move |mix| sizes().map(move |size| (mix, size)))
}

impl Method for Snia {
    fn name(&self) -> &'static str {
        "snia"
    }
    fn summary(&self) -> &'static str {
        "steady state: rounds of 7 mixes by 8 sizes until three figures hold still over five rounds, at most 25"
    }
    fn cost(&self) -> &'static str {
        "5 to 25 min, as published 5 to 24 h and two full passes of writes before; writes most of that time"
    }
    fn source(&self) -> Option<&'static str> {
        Some("SNIA Solid State Storage Performance Test Specification")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let unusable = |what: &str, why: String| MethodError::Unusable { path: what.into(), why };
        if site.at == Where::Memory {
            let why = "memory is no disk; give a directory, a block device with --destroy or `profile:NAME`";
            return Err(unusable("memory", why.to_owned()));
        }
        if !site.may_write() {
            let why = "this writes most of the time; give a directory, or a device with --destroy";
            return Err(unusable("the target", why.to_owned()));
        }
        let seed: u64 = settings.value("seed")?;
        let usual = Nanos::from_secs(if request.as_published { 60.0 } else { 1.0 });
        let point = settings.get("point")?.unwrap_or(usual);
        let precondition = match settings.given("precondition") {
            Some(_) => settings.flag("precondition")?,
            None => request.as_published,
        };
        let size = Bytes(settings.value::<Bytes>("size")?.0.max(MIB));
        let job = Job {
            order: Order::Uniform,
            depth: settings.value("depth")?,
            stop: Stop { time: Some(point), ..Stop::default() },
            ..Job::default()
        };
        let job = Job { interval: Nanos(point.0 / INTERVALS).max(job.interval), ..job };
        let tier = || site.tier.clone().unwrap_or_default();
        let left = |step: &str, why: &str| {
            let (step, why) = (step.to_owned(), Why::NotMeasured(why.to_owned()));
            LeftOut { tier: tier(), step, why }
        };
        let mut left_out = vec![left("purge", "nothing here erases a device; do it before")];
        let mut steps: Vec<Step> = Vec::new();
        if precondition {
            let twice = Stop { bytes: Some(request.length()?.unwrap_or(size) * 2), ..Stop::default() };
            let (direction, order) = (Direction::Write, Order::Sequential);
            let passes =
                Job { direction, order, block: Block::Fixed(Bytes(128 * KIB)), stop: twice, seed, ..job.clone() };
            passes.check()?;
            steps.push(site.step("precondition", passes, false));
        } else {
            let why = "not asked for: a cache that five rounds do not fill looks like a steady state";
            left_out.push(left("precondition", why));
        }
        let (smallest, why) = smallest(request);
        left_out.extend(why.map(|why| left("512 B", why)));
        let profile = profile_of(site)?;
        let first = steps.len();
        for number in 1..=MOST {
            for (read_percent, block) in round(smallest) {
                let (direction, seed) = (Direction::Mixed { read_percent }, step_seed(seed, steps.len()));
                let job = Job { direction, block: Block::Fixed(block), seed, ..job.clone() };
                job.check()?;
                if let Some(why) = profile.as_ref().and_then(|profile| unanswered(profile, &job)) {
                    return Err(unusable(&format!("profile:{}", tier()), why));
                }
                let name = format!("{read_percent}-{}", block.to_string().replace(' ', ""));
                steps.push(site.step(Rounds::name(&name, number), job, false));
            }
        }
        let tracked =
            TRACKED.iter().filter_map(|tracked| round(smallest).position(|point| point == *tracked)).collect();
        let rounds = Rounds { first, steps: round(smallest).count(), least: steady::WINDOW, most: MOST, tracked };
        let decided = [("point", Some(typed(point))), ("precondition", Some(precondition.to_string()))];
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&decided),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(size, Entropy::Incompressible, false)],
            steps,
            left_out,
            rounds: Some(rounds),
            ..Plan::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, Site};
    use basics::Known;
    use basics::units::GIB;
    use machine::Machine;

    fn plan(at: Where, words: &[&str], as_published: bool) -> Result<Plan, MethodError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let settings = Settings::parse("snia", PARAMETERS, &words).unwrap();
        let site = Site { tier: None, at, room: Known::default(), compresses: false };
        let machine = Machine::default();
        Snia.plan(&Request { site: &site, settings: &settings, as_published, machine: &machine })
    }
    fn model(toml: &str) -> Where {
        Where::Profile { name: "x".to_owned(), toml: format!("name = \"x\"\nsize = \"{}\"\n{toml}", Bytes(GIB)) }
    }
    const BOTH: &str = "channels = 4\n[read]\nlatency_us = 100\n[write]\nlatency_us = 100";

    #[test]
    fn to_the_letter_it_is_two_passes_and_25_rounds_of_56_minutes() {
        let letter = plan(model(BOTH), &[], true).unwrap();
        let rounds = letter.rounds.clone().unwrap();
        assert_eq!((rounds.first, rounds.steps, rounds.most, letter.steps.len()), (1, 56, 25, 1 + 25 * 56));
        assert_eq!(letter.steps[0].job.stop, Stop { bytes: Some(Bytes(2 * GIB)), ..Stop::default() });
        let first = &letter.steps[rounds.steps_of(0)];
        let minute = Some(Nanos::from_secs(60.0));
        assert!(first.iter().all(|step| step.job.stop.time == minute && step.job.order == Order::Uniform));
        assert_eq!(
            [0, 7, 8, 55].map(|place| first[place].name.as_str()),
            ["100-1MiB-r1", "100-512B-r1", "95-1MiB-r1", "0-512B-r1"]
        );
        let tracked: Vec<&str> = rounds.tracked.iter().map(|place| first[*place].name.as_str()).collect();
        assert_eq!(tracked, ["0-4KiB-r1", "65-64KiB-r1", "100-1MiB-r1"]);
        assert_eq!(letter.steps[rounds.steps_of(24)].last().unwrap().name, "0-512B-r25");
        assert_eq!(letter.left_out.len(), 1, "the purge");
    }

    #[test]
    fn the_usual_form_is_sixty_times_shorter() {
        let usual = plan(model(BOTH), &[], false).unwrap();
        assert_eq!(usual.longest().unwrap(), Nanos::from_secs(25.0 * 56.0));
        assert!(usual.left_out.iter().any(|left| left.step == "precondition"));
        let words: Vec<String> = usual.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(plan(model(BOTH), &words, false).unwrap(), usual);
    }

    #[test]
    fn what_may_not_be_written_or_has_no_answer_is_refused() {
        for at in [
            Where::Memory,
            Where::File("/film".into()),
            model("channels = 1\n[read]\nlatency_us = 1"),
            model("[read]\nlatency_us = 1\n[write]\nlatency_us = 1"),
        ] {
            assert!(matches!(plan(at.clone(), &[], false), Err(MethodError::Unusable { .. })), "{at:?}");
        }
        let there = plan(Where::Directory("/tmp".into()), &[], false).unwrap();
        let rounds = there.rounds.unwrap();
        assert_eq!(rounds.steps, 49, "whether its sectors are as short as 512 B is not known");
        assert_eq!(there.steps[rounds.tracked[1]].name, "65-64KiB-r1");
    }
}
