//! The method `sd-class`: with which speed classes of the SD Association a card is consistent. The official conditions are
//! for members only and depend on the bus mode, so nothing is certified here: a stand-in in public use is measured, 256 MiB
//! written in sequence, then random reads and writes of 4 KiB at depth 32 with an fsync at the end.

use crate::settings::{Default as Usually, Parameter, bad};
use crate::site::Where;
use crate::{Method, MethodError, Request};
use basics::job::{Block, Direction, Entropy, Order, Stop};
use basics::plan::step_seed;
use basics::units::MIB;
use basics::{Bytes, Job, Nanos, Plan};

/// Speed classes of SD cards.
#[derive(Debug)]
pub struct SdClass;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "label",
        aliases: &[],
        default: Usually::Nothing,
        help: "what is printed on the card, such as U3,V30,A1: held against what it does",
    },
    Parameter {
        key: "apps",
        aliases: &[],
        default: Usually::Depends("true; false where the label promises neither A1 nor A2"),
        help: "the random reads and writes of the application classes too",
    },
    Parameter { key: "size", aliases: &[], default: Usually::Is("256MiB"), help: "written in sequence" },
    Parameter {
        key: "runtime",
        aliases: &[],
        default: Usually::Is("10s"),
        help: "measured time of the random reads, and of the random writes",
    },
    Parameter { key: "seed", aliases: &["randseed"], default: Usually::Is("42"), help: "seed of every random choice" },
];

impl Method for SdClass {
    fn name(&self) -> &'static str {
        "sd-class"
    }
    fn summary(&self) -> &'static str {
        "with which speed classes (C, U, V, A) an SD card is consistent, and whether with those on its label"
    }
    fn cost(&self) -> &'static str {
        "about 40 s; writes 256 MiB, then random 4 KiB for 10 s; a device needs --destroy"
    }
    fn source(&self) -> Option<&'static str> {
        Some("SD Association, speed classes; Raspberry PI Storage Performance: Part 1 USB vs SD Card")
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn expand(&self, request: &Request<'_>) -> Result<Plan, MethodError> {
        let (site, settings) = (request.site, request.settings);
        let label = settings.text("label").unwrap_or_default();
        let promised = study::published::classes(label).map_err(|why| bad("label", label, why))?;
        let apps = match settings.given("apps") {
            Some(_) => settings.flag("apps")?,
            None => promised.is_empty() || promised.iter().any(|class| class.starts_with('A')),
        };
        let (size, seed): (Bytes, u64) = (settings.value("size")?, settings.value("seed")?);
        // A bare card is written in its middle: its ends hold the tables of file systems, and are slow on some.
        let offset = match (&site.at, request.length()?) {
            (Where::Device { .. } | Where::Profile { .. }, Some(length)) => Bytes(length.0 / 2 / MIB * MIB),
            _ => Bytes(0),
        };
        let write = Job {
            direction: Direction::Write,
            block: Block::Fixed(Bytes(MIB)),
            offset,
            size: Some(size),
            end_fsync: true,
            stop: Stop { bytes: Some(size), ..Stop::default() },
            seed,
            ..Job::default()
        };
        let random = Job {
            direction: Direction::Read,
            order: Order::Permuted,
            block: Block::Fixed(Bytes(4096)),
            depth: 32,
            end_fsync: false,
            stop: Stop { time: Some(settings.value("runtime")?), ..Stop::default() },
            seed: step_seed(seed, 1),
            ..write.clone()
        };
        let random_write =
            Job { direction: Direction::Write, end_fsync: true, seed: step_seed(seed, 2), ..random.clone() };
        let mut steps = vec![site.step("seq-write", write, false)];
        if apps {
            steps.extend([site.step("rand-read", random, false), site.step("rand-write", random_write, false)]);
        }
        for step in &steps {
            step.job.check()?;
        }
        if steps.iter().any(|step| step.job.stop.time == Some(Nanos(0))) {
            return Err(bad("runtime", "0", "at least a second or so"));
        }
        Ok(Plan {
            method: self.name().to_owned(),
            parameters: settings.resolved(&[("apps", Some(apps.to_string()))]),
            as_published: request.as_published,
            seed,
            targets: vec![site.target(size, Entropy::Incompressible, true)],
            steps,
            left_out: Vec::new(),
            ..Plan::default()
        })
    }
}
