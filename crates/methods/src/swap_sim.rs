//! The method `swap-sim`: what a swap area would have to do, as the first article simulates it with fio: 16 KiB random
//! blocks (the page of a Raspberry Pi 5; without `--as-published` the kernel's own), 70 % reads, depth 4, on a 512 MiB
//! file, for 60 s.

use crate::settings::{Default as Usually, Parameter, Settings, bad};
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Figure, Order, Stop, Until};
use basics::plan::Step;
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};

/// Random 70/30 reads and writes of a page.
#[derive(Debug)]
pub struct SwapSim;

/// The page of the published simulation, that of a Raspberry Pi 5.
pub(crate) const PAGE: Bytes = Bytes(16384);

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "page",
        aliases: &["bs"],
        default: Usually::Depends("the kernel's page; 16KiB with --as-published"),
        help: "length of an operation",
    },
    Parameter { key: "size", aliases: &[], default: Usually::Is("512MiB"), help: "length of the test file" },
    Parameter { key: "runtime", aliases: &[], default: Usually::Is("60s"), help: "measured time at most" },
    Parameter {
        key: "until",
        aliases: &[],
        default: Usually::Depends("2; none with --as-published"),
        help: "end when the rate is known to so many per cent",
    },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "seed of every random choice" },
];

/// Where `until` is not set and may be.
const UNTIL: f64 = 2.0;

/// Refuses settings that depart from what was published: page, size and time have its values (the table's defaults), and
/// nothing ends it early.
fn to_the_letter(settings: &Settings) -> Result<(), MethodError> {
    fn same<T>(settings: &Settings, key: &str, published: T) -> Result<(), MethodError>
    where
        T: std::str::FromStr<Err: std::fmt::Display> + PartialEq + std::fmt::Display,
    {
        match (settings.given(key), settings.get::<T>(key)?) {
            (Some(typed), Some(value)) if value != published => {
                Err(bad(key, typed, format!("as published it is {published}; leave this or --as-published away")))
            }
            _ => Ok(()),
        }
    }
    same(settings, "page", PAGE)?;
    same(settings, "size", Bytes(512 * MIB))?;
    same(settings, "runtime", Nanos::from_millis(60_000))?;
    settings.given("until").map_or(Ok(()), |typed| {
        Err(bad("until", typed, "as published nothing ends it early; leave this or --as-published away"))
    })
}

/// The job at the heart of it; `check` uses the same.
pub(crate) fn swap_job(page: Bytes, seed: u64) -> Job {
    Job {
        direction: Direction::Mixed { read_percent: 70 },
        order: Order::Permuted,
        block: Block::Fixed(page),
        depth: 4,
        direct: true,
        seed,
        ..Job::default()
    }
}

impl Method for SwapSim {
    fn name(&self) -> &'static str {
        "swap-sim"
    }
    fn summary(&self) -> &'static str {
        "what this place would do as swap: random pages, 70 % reads, depth 4"
    }
    fn cost(&self) -> &'static str {
        "up to 60 s; a test file of 512 MiB is written, then about a third of the operations write"
    }
    fn source(&self) -> Option<&'static str> {
        Some("Playing with an Intel Optane on a Raspberry Pi 5, phase 2 (fio)")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let settings = request.settings;
        if request.as_published {
            to_the_letter(settings)?;
        }
        let page = settings.get("page")?.unwrap_or(if request.as_published { PAGE } else { request.page_size() });
        let size = settings.value("size")?;
        let percent = settings.get("until")?.or((!request.as_published).then_some(UNTIL));
        let until = percent.map(|percent| Until { figure: Figure::Iops, percent, at_least: Nanos::from_millis(3000) });
        let mut job = swap_job(page, settings.value("seed")?);
        job.size = Some(size);
        job.stop = Stop { time: Some(settings.value("runtime")?), until, ..Stop::default() };
        job.check()?;
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings
                .resolved(&[("page", Some(page.0.to_string())), ("until", percent.map(|percent| percent.to_string()))]),
            as_published: request.as_published,
            seed: job.seed,
            targets: vec![request.site.target(size, Entropy::Incompressible, false)],
            steps: vec![Step {
                name: "swap-sim".to_owned(),
                tier: request.site.tier.clone(),
                target: 0,
                job,
                may_fail: false,
                before: vec![],
            }],
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Site, Where};
    use basics::Known;
    use machine::Machine;

    fn plan(words: &[&str], as_published: bool) -> Result<Plan, MethodError> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let settings = Settings::parse("swap-sim", PARAMETERS, &words)?;
        let at = Where::Directory("/mnt".into());
        let site = Site { tier: None, at, room: Known::default(), compresses: false };
        let machine = Machine { page_size: Known::Is(Bytes(4096)), ..Machine::default() };
        SwapSim.plan(&Request { site: &site, settings: &settings, as_published, machine: &machine })
    }

    #[test]
    fn as_published_is_to_the_letter_or_bad_usage() {
        let letter = plan(&[], true).unwrap();
        let job = &letter.steps[0].job;
        assert!(letter.as_published);
        assert_eq!((&job.block, job.size), (&Block::Fixed(PAGE), Some(Bytes(512 * MIB))));
        assert_eq!(job.stop, Stop { time: Some(Nanos::from_millis(60_000)), ..Stop::default() });
        let said_again = plan(&["page=16k", "size=512MiB", "runtime=1m"], true).unwrap();
        assert_eq!(said_again.steps, letter.steps);
        for departs in ["page=4k", "size=1GiB", "runtime=5s", "until=2"] {
            let error = plan(&[departs], true).unwrap_err();
            assert!(matches!(error, MethodError::Value { .. }), "{departs}: {error}");
            assert!(error.to_string().contains("as published"), "{error}");
            assert!(!plan(&[departs], false).unwrap().as_published);
        }
    }

    /// What the table says in words about the defaults that depend on more, held against what the plan does.
    #[test]
    fn the_table_says_what_is_done() {
        let default = |key| PARAMETERS.iter().find(|parameter| parameter.key == key).unwrap().default.text();
        let (usual, letter) = (plan(&[], false).unwrap(), plan(&[], true).unwrap());
        assert_eq!(default("page"), "the kernel's page; 16KiB with --as-published");
        let page = |plan: &Plan| plan.steps[0].job.block.largest();
        assert_eq!((page(&usual), page(&letter)), (Bytes(4096), "16KiB".parse().unwrap()));
        assert_eq!(default("until"), "2; none with --as-published");
        let percent = |plan: &Plan| plan.steps[0].job.stop.until.map(|until| until.percent);
        assert_eq!((percent(&usual), percent(&letter)), (Some(2.0), None));
    }

    #[test]
    fn the_parameters_of_a_plan_make_it_again() {
        for (words, as_published) in [(vec![], true), (vec![], false), (vec!["page=64k", "until=1.5", "seed=7"], false)]
        {
            let first = plan(&words, as_published).unwrap();
            let words: Vec<String> = first.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(plan(&words, as_published).unwrap(), first);
        }
    }

    #[test]
    fn what_would_never_or_at_once_end_is_refused() {
        for word in ["until=nan", "until=0", "until=-1", "until=inf", "runtime=0"] {
            let error = plan(&[word], false).unwrap_err().to_string();
            assert!(error.contains(word.split('=').next().unwrap()), "{word}: {error}");
        }
    }
}
